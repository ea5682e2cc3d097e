"""The folder of a study: its definition, a folder for each run, and which definitions may go on in it.

study.json             the scenario's tables and the points, which keep their numbers
runs/0001/ …           what `heatsim run` writes, one a point; failure.json where it failed
results.csv            a row a run, made anew from what is in those folders; results.parquet has the same
figures/               pictures of the responses
"""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from heatsim.errors import FolderError, RunError, StorageError
from heatsim.scenario.problems import show
from heatsim.storage import folder as run_folder
from heatsim.storage.disk import part_of, reason, write_whole
from heatsim.storage.own_files import refuse_links
from heatsim.study.definition import Definition
from heatsim.study.points import identity

STUDY = "study.json"
RUNS = "runs"
RESULTS_CSV, RESULTS_PARQUET = "results.csv", "results.parquet"
FIGURES = "figures"
LEASE = "lease"

_FILES = (RESULTS_CSV, RESULTS_PARQUET, LEASE, STUDY)
# Settings that no run's numbers depend on; they may change between two starts.
_FREE = ("study", "output.figures", "output.checkpoint_wall")
_MOST_DIFFERENCES = 8
AGAIN = "the same `heatsim study` command again"


def run_path(study: Path, number: int) -> Path:
    """The folder of a run."""
    return study / RUNS / f"{number:04d}"


def open_study(study: Path, definition: Definition, *, extend: bool = False, overwrite: bool = False) -> Definition:
    """Make ``study`` the folder of a study, or see that what is there can go on; the caller has claimed it.

    As long as no run of it has begun, a study is replaced by any other.

    Args:
        study: the folder, which exists.
        definition: what is to be run.
        extend: points that are not there yet are added.
        overwrite: whatever another study left there is removed.

    Returns:
        The definition with the points in the order of their numbers.

    Raises:
        FolderError: the folder holds something else, or a symbolic link in place of a file of the study or of the
            folder of a run; says what differs and what to do.
    """
    refuse_links([study / name for name in (*_FILES, RUNS, FIGURES)])
    refuse_links([run_path(study, number) for number in definition.numbers])
    if not (study / STUDY).exists():
        _refuse_other_files(study)
    elif overwrite:
        _clear(study)
    elif (study / RUNS).is_dir():
        definition = _merged(study, read_study(study), definition, extend)
    content = {
        "path": str(definition.path.absolute()),
        "document": definition.document,
        "points": [dict(point) for point in definition.points],
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, default=str)
    if not (study / STUDY).exists() or (study / STUDY).read_text(encoding="utf-8") != text:
        write_whole(study / STUDY, text.encode(), AGAIN)
    return definition


def read_study(study: Path) -> Definition:
    """The definition that a study's folder holds.

    Raises:
        FolderError: there is none.
        StorageError: it is damaged.
    """
    path = study / STUDY
    try:
        content = json.loads(path.read_bytes())
        return Definition(Path(content["path"]), content["document"], tuple(content["points"]))
    except FileNotFoundError:
        raise FolderError(f"{study}: is not the folder of a study, {STUDY} is missing") from None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise StorageError(f"{path}: could not be read: {reason(error)}; choose another --output") from error


def write_failure(folder: Path, message: str, *, again: bool) -> None:
    """Say in a run's folder why it failed; ``again``: the next start tries once more.

    Raises:
        StorageError: the disk refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"message": message, "again": again}, ensure_ascii=False)
    write_whole(folder / run_folder.FAILURE, (text + "\n").encode(), AGAIN)


def read_failure(folder: Path) -> tuple[str, bool] | None:
    """Why a run failed and whether it should be tried again; None if it has not failed."""
    try:
        content = json.loads((folder / run_folder.FAILURE).read_bytes())
        return str(content["message"]), bool(content["again"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def forget_failure(folder: Path) -> None:
    """Remove what :func:`write_failure` wrote."""
    for path in (part_of(folder / run_folder.FAILURE), folder / run_folder.FAILURE):
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()


def is_done(folder: Path) -> bool:
    """Whether the run in a folder is complete."""
    return (folder / run_folder.SUMMARY).exists()


def wait_until_free(folder: Path, seconds: float = 60.0) -> None:
    """Return once no process writes to a folder: those of a killed study need a moment to notice.

    Raises:
        RunError: one still does after ``seconds``.
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
    elsewhere = "go on with the file as it was, choose another --output, or replace all of it with --overwrite"
    differences = list(_differences(there.document, here.document))
    known, wanted = ({identity(point): point for point in each.points} for each in (there, here))
    missing, added = known.keys() - wanted.keys(), [point for key, point in wanted.items() if key not in known]
    if missing:
        differences += _differences({"study ": there.document["study"]}, {"study ": here.document["study"]})
    if differences or missing:
        lines = [f"\n  {line}" for line in differences[:_MOST_DIFFERENCES]]
        if len(differences) > _MOST_DIFFERENCES:
            lines.append(f"\n  and {len(differences) - _MOST_DIFFERENCES} more")
        if missing:
            lines.append(f"\n  {len(missing)} of its {len(known)} points are not among the {len(wanted)} of the file")
        raise FolderError(f"{study}: holds a study of other settings; {elsewhere}:{''.join(lines)}")
    if added and not extend:
        raise FolderError(
            f"{study}: holds a study of {len(known)} points, to which the file adds {len(added)}; run them too with "
            f"--extend, or choose another --output"
        )
    return Definition(here.path, here.document, (*there.points, *added))


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


def _refuse_other_files(study: Path) -> None:
    others = sorted(path.name for path in study.iterdir() if path.name != part_of(study / STUDY).name)
    if others:
        few = ", ".join(others[:4]) + (f" and {len(others) - 4} more" if len(others) > 4 else "")
        raise FolderError(
            f"{study}: holds files that are not from a heatsim study ({few}); nothing was removed; move them away or "
            "choose another --output"
        )


def _clear(study: Path) -> None:
    """Remove what a study wrote, its definition last; other files stay, and are refused."""
    try:
        for folder in sorted((study / RUNS).iterdir()) if (study / RUNS).is_dir() else []:
            if not (folder / run_folder.SCENARIO).exists():
                forget_failure(folder)
            run_folder.prepare(folder, overwrite=True)
            folder.rmdir()
        pictures = sorted((study / FIGURES).glob("*.png")) if (study / FIGURES).is_dir() else []
        for path in pictures:
            path.unlink()
        for name in (RUNS, FIGURES):
            if (study / name).is_dir():
                (study / name).rmdir()
        for name in _FILES:
            for path in (part_of(study / name), study / name):
                path.unlink(missing_ok=True)
    except OSError as error:
        raise FolderError(
            f"{error.filename}: could not be removed: {reason(error)}; choose another --output"
        ) from error
    _refuse_other_files(study)
