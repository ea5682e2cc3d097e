"""The folder of a study: its definition, the folders of its runs, and the rules for continuing it.

manifest.json          the files at the top and in figures/ that heatsim wrote
study.json             the scenario's document, the points, whose numbers do not change, and the precision of the runs
runs/0001/ …           the output of `heatsim run` for each point; failure.json if the run failed
results.csv            a row for each run, made from the files in runs/; results.parquet has the same table
figures/               pictures of the responses
report.html            all of it on one page
"""

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heatsim.counts import counted
from heatsim.errors import FolderError, RunError, ScenarioError, StorageError
from heatsim.scenario.messages import show
from heatsim.storage import folder as run_folder
from heatsim.storage import manifest, system
from heatsim.storage.disk import make_folders, parts_of, reason, writing
from heatsim.storage.own_files import is_own_file, is_own_folder, refuse_others, walk
from heatsim.storage.preparation import find_replaceable, remove_run
from heatsim.storage.study_hint import STUDY
from heatsim.storage.summary_model import first_mistake
from heatsim.study.definition import Definition
from heatsim.study.model import MAX_RUNS
from heatsim.study.points import Point, identity

RUNS = "runs"
RESULTS_CSV, RESULTS_PARQUET = "results.csv", "results.parquet"
FIGURES = "figures"
REPORT = run_folder.REPORT
LEASE = "lease"

_FILES = (REPORT, RESULTS_CSV, RESULTS_PARQUET, LEASE, STUDY)
# Settings that do not change the results; they may differ between two starts.
_FREE = ("study", "output.figures", "output.checkpoint_wall")
_MOST_DIFFERENCES = 8
AGAIN = "the same command again"


class StoredStudy(BaseModel):
    """The content of study.json."""

    model_config = ConfigDict(strict=True)

    path: str
    document: dict[str, Any]
    points: Annotated[list[dict[str, Any]], Field(max_length=MAX_RUNS)]
    inputs: dict[str, int] = {}
    precision: str = ""


def run_path(study: Path, number: int) -> Path:
    """The folder of a run."""
    return study / RUNS / f"{number:04d}"


def check_study(study: Path, definition: Definition, *, extend: bool = False, overwrite: bool = False) -> Definition:
    """Check that a study can start in its folder or continue there; nothing is changed.

    Without any run, a study in the folder may be replaced. The caller has claimed the folder.

    Args:
        study: the folder, which exists.
        definition: the study to run.
        extend: whether to add points that the study there does not have.
        overwrite: whether to replace another study.

    Returns:
        The definition, with the points in the order of their numbers.

    Raises:
        FolderError: the folder has other files or another study, or a symbolic link in place of a file of the study or
            of a run's folder; the message has the differences.
    """
    _refuse_foreign(study)
    # A file in the place of a run's folder fails this run alone.
    refuse_others((), filter(Path.is_symlink, (run_path(study, number) for number in definition.numbers)))
    entries = manifest.read(study) or {}
    if not (study / STUDY).exists() or STUDY not in entries:
        _refuse_others(study, manifest.find_files(study, entries))
        return definition
    if overwrite:
        _refuse_to_clear(study, entries)
        return definition
    changed = [name for name in _FILES if (study / name).exists() and not manifest.owns(study, name, entries)]
    manifest.refuse(study, changed)
    if (study / RUNS).is_dir():
        return _merged(study, read_study(study), definition, extend)
    return definition


def write_study(study: Path, definition: Definition, *, overwrite: bool = False) -> None:
    """Write the definition that :func:`check_study` returned; with ``overwrite``, remove the study there first.

    Raises:
        FolderError: a file could not be removed.
        StorageError: the definition could not be written.
    """
    if overwrite and (study / STUDY).exists():
        _clear(study)
    if manifest.read(study) is None:
        manifest.create(study, [])
    content = {
        "path": str(definition.path.absolute()),
        "document": definition.document,
        "points": [dict(point) for point in definition.points],
        "inputs": dict(definition.inputs),
        "precision": definition.precision,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, default=str)
    if not (study / STUDY).exists() or (study / STUDY).read_text(encoding="utf-8") != text:
        manifest.write_own(study, STUDY, text.encode(), AGAIN)


def run_folders(study: Path) -> list[Path]:
    """The folders of the runs that a study has on disk."""
    return sorted((study / RUNS).iterdir()) if (study / RUNS).is_dir() else []


def read_study(study: Path) -> Definition:
    """The definition in a study's folder.

    Raises:
        FolderError: there is none, or a file of the study is a link.
        StorageError: it is damaged.
    """
    path = study / STUDY
    run_folder.check_names(study)
    _refuse_foreign(study)
    try:
        content = StoredStudy.model_validate_json(path.read_bytes())
        definition = Definition(
            Path(content.path), content.document, tuple(content.points), content.inputs, content.precision
        )
        definition.check()
        return definition
    except FileNotFoundError:
        raise FolderError(f"{study}: is not the folder of a study, {STUDY} is missing") from None
    except ScenarioError as error:
        raise StorageError(f"{path}: could not be read: {error.mistakes[0]}; choose another --output") from error
    except ValidationError as error:
        raise StorageError(f"{path}: could not be read: {first_mistake(error)}; choose another --output") from error
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}; choose another --output") from error


def write_failure(folder: Path, message: str, *, again: bool) -> None:
    """Write the reason of a failure into a run's folder; with ``again``, the next start runs it again.

    Raises:
        FolderError: the folder holds files that are not heatsim's.
        StorageError: the file could not be written.
    """
    with writing(folder, AGAIN):
        make_folders(folder)
    text = json.dumps({"message": message, "again": again}, ensure_ascii=False)
    if manifest.read(folder) is None and not any(folder.iterdir()):
        manifest.create(folder, [])
    manifest.write_own(folder, run_folder.FAILURE, (text + "\n").encode(), AGAIN)


def read_failure(folder: Path) -> tuple[str, bool] | None:
    """The reason of a failure, and whether to run again; None if the run has not failed."""
    if folder.is_symlink() or not is_own_file(folder / run_folder.FAILURE):
        return None
    try:
        content = json.loads((folder / run_folder.FAILURE).read_bytes())
        return str(content["message"]), bool(content["again"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def forget_failure(folder: Path) -> None:
    """Remove the file that :func:`write_failure` wrote."""
    there = (folder / run_folder.FAILURE).exists()
    if there and manifest.owns(folder, run_folder.FAILURE, manifest.read(folder) or {}):
        system.calls.remove(folder / run_folder.FAILURE)
        manifest.end(folder, [run_folder.FAILURE])


def is_done(folder: Path) -> bool:
    """Whether the run in a folder is complete."""
    return (folder / run_folder.SUMMARY).exists()


def wait_until_free(folder: Path, seconds: float = 60.0) -> None:
    """Wait until no process uses a folder; workers of a killed study need a moment to end.

    Raises:
        RunError: a process still uses it after ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while folder.is_dir():
        try:
            with run_folder.claim(folder):
                return
        except FolderError as error:
            if time.monotonic() > deadline:
                raise RunError(str(error)) from None
            time.sleep(0.1)


def _merged(study: Path, there: Definition, here: Definition, extend: bool) -> Definition:
    elsewhere = "restore these settings, choose another --output, or replace the whole study with --overwrite"
    differences = list(_differences(there.document, here.document))
    differences += [
        f"{name}: has another content now"
        for name, checksum in there.inputs.items()
        if here.inputs.get(name, checksum) != checksum
    ]
    known, wanted = ({identity(point): point for point in each.points} for each in (there, here))
    missing, added = known.keys() - wanted.keys(), [point for key, point in wanted.items() if key not in known]
    kept = [
        None if identity(point) in missing and not run_path(study, number).exists() else point
        for number, point in enumerate(there.points, 1)
    ]
    unwanted = [point for point in kept if point is not None and identity(point) in missing]
    if unwanted:
        differences += _differences({"study ": there.document["study"]}, {"study ": here.document["study"]})
    if differences or unwanted:
        lines = [f"\n  {line}" for line in differences[:_MOST_DIFFERENCES]]
        if len(differences) > _MOST_DIFFERENCES:
            lines.append(f"\n  and {len(differences) - _MOST_DIFFERENCES} more")
        if unwanted:
            one = len(unwanted) == 1
            lines.append(
                f"\n  {len(unwanted)} of its {len(known)} points {'has a run and is' if one else 'have runs and are'} "
                f"not in the file; write {'it' if one else 'them'} there again"
            )
        raise FolderError(f"{study}: holds a study with other settings; {elsewhere}:{''.join(lines)}")
    if (added or missing) and not extend:
        changes = [f"adds {len(added)}"] * bool(added) + [f"drops {len(missing)} that have no run"] * bool(missing)
        raise FolderError(
            f"{study}: holds a study of {counted(len(known), 'point')}, to which the file {' and '.join(changes)}; "
            f"{'change' if added and missing else 'add' if added else 'drop'} them with --extend, or choose another "
            "--output"
        )
    return replace(here, points=_numbered(study, kept, added), precision=there.precision)


def _numbered(study: Path, kept: Sequence[Point | None], added: Sequence[Point]) -> tuple[Point, ...]:
    """The points of a study without those that were dropped, which are None. Points with a run keep their numbers.

    Points that are added, and then the last points without a run, take the places of dropped ones.

    Raises:
        FolderError: a point with a run would get another number.
    """
    points, waiting = list(kept), list(added)
    while None in points:
        if points[-1] is None:
            points.pop()
            continue
        place = points.index(None)
        if not waiting and run_path(study, len(points)).exists():
            raise FolderError(
                f"{study}: run {len(points)} would get another number, because the file drops point {place + 1}; keep "
                "this point, or choose another --output"
            )
        points[place] = waiting.pop(0) if waiting else points.pop()
    return (*(point for point in points if point is not None), *waiting)


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    old, new = (dict(_flat(document)) for document in (there, here))
    for key in dict.fromkeys([*old, *new]):
        if key.startswith(tuple(f"{free}." for free in _FREE)) or key in _FREE or key.startswith("study .responses"):
            continue
        before, after = (show(values[key]) if key in values else "nothing" for values in (old, new))
        if key not in old or key not in new or old[key] != new[key]:
            yield f"{key.replace('study .', 'study.')}: {before} there, {after} in the file"


def _flat(value: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
        path = f"{above}{key}"
        nested = isinstance(item, Mapping) or (isinstance(item, list) and any(isinstance(i, Mapping) for i in item))
        if nested and item:
            yield from _flat(item, f"{path}.")
        else:
            yield path, item


def _refuse_foreign(study: Path) -> None:
    """Refuse a folder with links in place of its files, or of another version of heatsim."""
    refuse_others([study / name for name in (*_FILES, manifest.NAME)], [study / RUNS, study / FIGURES])
    manifest.check_layout(study)


def _refuse_others(study: Path, own: Collection[Path]) -> None:
    """Refuse a folder that has other paths than ``own``, its manifest and what is in the folders of runs.

    Raises:
        FolderError: names them.
    """
    runs, made = study / RUNS, parts_of(study / manifest.NAME)
    found = [path for path in walk(study) if runs not in path.parents or path.parent == runs]
    others = [path for path in found if path not in own and path not in (study / manifest.NAME, *made)]
    if others:
        names = manifest.few(sorted(path.relative_to(study).as_posix() for path in others))
        raise FolderError(
            f"{study}: holds files that are not from a heatsim study, or were changed since ({names}); nothing was "
            "removed; move them away or choose another --output"
        )


def _refuse_to_clear(study: Path, entries: Mapping[str, manifest.FileEntry]) -> None:
    """Refuse a folder of which :func:`_clear` could not remove everything."""
    folders = [folder for folder in run_folders(study) if is_own_folder(folder)]
    own = [*manifest.find_files(study, entries), *manifest.find_folders(study, entries)]
    _refuse_others(study, [*own, *folders, study / RUNS, study / FIGURES])
    for folder in folders:
        with run_folder.claim(folder):
            find_replaceable(folder, overwrite=True)


def _clear(study: Path) -> None:
    """Remove the files of a study, its definition last."""
    entries = manifest.read(study) or {}
    try:
        for folder in run_folders(study):
            remove_run(folder)
        for path in manifest.find_files(study, entries):
            if path != study / STUDY:
                system.calls.remove(path)
        for path in (study / RUNS, study / FIGURES):
            if path.is_dir():
                system.calls.remove_folder(path)
        system.calls.remove(study / STUDY)
    except OSError as error:
        raise FolderError(
            f"{error.filename}: could not be removed: {reason(error)}; choose another --output"
        ) from error
