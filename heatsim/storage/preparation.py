"""Prepare a folder for a new run: check that it may be used, and remove the previous run.

heatsim removes only files with the names of a run's files, of its pictures in figures/ and of its exported fields in
export/, and the copies of input files that the run's scenario.toml names. It never removes or follows symbolic links.

scenario.toml.part without scenario.toml marks a folder in which a run is being prepared or removed. It is the first
file written and the last removed. After a kill in between, the next `heatsim run` may use the folder.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from heatsim.errors import FolderError
from heatsim.storage import system
from heatsim.storage.disk import PARTS, make_folders, part_of, reason, resume_command
from heatsim.storage.folder import FAILURE, FILES, OWN_NAMES, SCENARIO, SUMMARY, claim
from heatsim.storage.input_copies import input_copies
from heatsim.storage.own_files import is_own_file, is_own_folder, walk


def prepare(folder: Path, overwrite: bool, inputs: Iterable[Path] = ()) -> None:
    """Make `folder` an empty folder that a run can write to.

    A missing folder is created. Files of a finished run, and of a run that was killed during its preparation, are
    removed; files of an unfinished run only with `overwrite`. A folder with any other file is refused, and nothing is
    removed.

    Args:
        folder: where the run will write.
        overwrite: replace an unfinished run too.
        inputs: files that the coming run reads; they must not be among those removed.

    Raises:
        FolderError: the folder cannot be used; says why and what to do.
    """
    try:
        make_folders(folder)
    except (FileExistsError, NotADirectoryError):
        if folder.is_symlink() and not folder.exists():
            raise FolderError(
                f"{folder}: is a link to {folder.readlink()}, which is not there; choose another --output"
            ) from None
        raise FolderError(f"{folder}: is a file, or inside of a file; choose another --output") from None
    except OSError as error:
        raise FolderError(f"{folder}: could not be created: {reason(error)}; choose another --output") from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise FolderError(f"{folder}: is not writable; change its permissions or choose another --output")
    with claim(folder):
        ours = find_replaceable(folder, overwrite, inputs)
        if ours:
            _remove(folder, ours)


def find_replaceable(folder: Path, overwrite: bool, inputs: Iterable[Path] = ()) -> list[Path]:
    """The files and folders of a run in ``folder``, in the order in which they can be removed; nothing is removed.

    Args:
        folder: the folder, which the caller has claimed.
        overwrite: whether an unfinished run may be removed too.
        inputs: files that must not be among those removed.

    Raises:
        FolderError: the folder cannot be read, or has files that must not be removed.
    """
    try:
        ours, others = _contents(folder)
    except OSError as error:
        raise FolderError(f"{folder}: could not be read: {reason(error)}; choose another --output") from error
    if ours or others:
        _refuse_to_replace(folder, ours, others, overwrite, inputs)
    return ours


def _refuse_to_replace(
    folder: Path, ours: Sequence[Path], others: Sequence[Path], overwrite: bool, inputs: Iterable[Path]
) -> None:
    """Check that all files of a folder may be removed: ``ours`` are of a run, ``others`` are not.

    Raises:
        FolderError: a file must not be removed.
    """
    scenario, marker = folder / SCENARIO, part_of(folder / SCENARIO)
    if others and scenario in ours and _are_inputs(folder, others):
        raise FolderError(
            f"{folder}: holds a scenario and its input files ({_few(folder, others)}) but no fields; the "
            f"files may be originals: run it with `{resume_command(folder)}`, or choose another --output"
        )
    if others or not {scenario, marker} & set(ours):
        raise FolderError(
            f"{folder}: holds files that are not from a heatsim run ({_few(folder, others or ours)}); nothing was "
            f"removed; move them away, or choose another --output"
        )
    if scenario in ours and folder / SUMMARY not in ours and not overwrite:
        raise FolderError(
            f"{folder}: holds an unfinished run; continue it with `{resume_command(folder)}`, replace it with "
            f"--overwrite, or choose another --output"
        )
    kept = {path.resolve() for path in inputs} & {path.resolve() for path in ours}
    if kept:
        raise FolderError(
            f"{folder}: holds input files of this very run ({_few(folder.resolve(), sorted(kept))}), and "
            f"replacing the run there would remove them; choose another --output"
        )


def _remove(folder: Path, ours: Sequence[Path]) -> None:
    """Remove the files of a run from its folder; scenario.toml becomes scenario.toml.part first and goes last.

    Raises:
        FolderError: the system refused.
    """
    scenario, marker = folder / SCENARIO, part_of(folder / SCENARIO)
    try:
        if scenario in ours:
            system.calls.rename(scenario, marker)
        for path in ours:
            if path.is_dir():
                system.calls.remove_folder(path)
            elif path not in (scenario, marker):
                system.calls.remove(path)
        system.calls.remove(marker)
    except OSError as error:
        raise FolderError(
            f"{error.filename}: could not be removed: {reason(error)}; choose another --output"
        ) from error


def _contents(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files and folders of a run in the order in which they can be removed, and all other paths."""
    names = [name + suffix for name in (FAILURE, *FILES) for suffix in (*PARTS, "")]
    scenario = folder / SCENARIO if is_own_file(folder / SCENARIO) else part_of(folder / SCENARIO)
    # A scenario alone may be the user's, and so may the files that it names: no run has written here yet.
    ran = any(is_own_file(folder / name) for name in FILES if name != SCENARIO)
    copies = input_copies(folder, scenario) if scenario.suffix == ".part" or ran else []
    expected: list[Path] = []
    for sub, own in OWN_NAMES.items():
        if is_own_folder(folder / sub):
            found = sorted(path for path in (folder / sub).iterdir() if is_own_file(path))
            expected += [path for path in found if own.fullmatch(path.name.removesuffix(".part"))]
            expected.append(folder / sub)
    parents = {parent for copy in copies for parent in copy.parents if folder in parent.parents}
    expected += [*copies, *sorted(parents, key=lambda path: len(path.parts), reverse=True)]
    expected += [folder / name for name in names if is_own_file(folder / name)]
    ours = list(dict.fromkeys(expected))
    return ours, sorted(path for path in walk(folder) if path not in ours)


def _are_inputs(folder: Path, paths: Iterable[Path]) -> bool:
    files = {path for path in paths if not is_own_folder(path)}
    return bool(files) and files <= set(input_copies(folder, folder / SCENARIO))


def _few(folder: Path, paths: Sequence[Path]) -> str:
    names = [path.relative_to(folder).as_posix() for path in paths[:4]]
    return ", ".join(names) + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")
