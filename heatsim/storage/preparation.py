"""Prepare a folder for a new run: check that it may be used, and remove the previous run.

heatsim removes only the files of the folder's manifest that are as it wrote them (:mod:`heatsim.storage.manifest`), and
never follows symbolic links. scenario.toml is the first file removed: a folder with a manifest and without it holds no
run, and the next `heatsim run` may use it.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from heatsim.errors import FolderError
from heatsim.storage import manifest, system
from heatsim.storage.disk import make_folders, parts_of, reason, resume_command
from heatsim.storage.folder import SCENARIO, SUMMARY, claim
from heatsim.storage.own_files import is_own_file, walk


def prepare(folder: Path, overwrite: bool, inputs: Iterable[Path] = (), names: Iterable[str] = ()) -> None:
    """Make `folder` a folder that a run can write to, with nothing in it but a manifest.

    A missing folder is created. Files of a finished run, and of a run that was killed during its preparation, are
    removed; files of an unfinished run only with `overwrite`. A folder with any other file is refused, and nothing is
    removed.

    Args:
        folder: where the run will write.
        overwrite: replace an unfinished run too.
        inputs: files that the coming run reads; they must not be among those removed.
        names: the files that it will write.

    Raises:
        FolderError: the folder cannot be used; says why and what to do.
        StorageError: the disk refused.
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
        _remove(find_replaceable(folder, overwrite, inputs))
        manifest.create(folder, names)


def remove_run(folder: Path) -> None:
    """Remove a folder with the files of a run, which :func:`find_replaceable` has found to be all that there is.

    Raises:
        FolderError: the folder has other files, or the system refused.
    """
    with claim(folder):
        _remove([*find_replaceable(folder, overwrite=True), *_of_manifest(folder), folder])


def find_replaceable(folder: Path, overwrite: bool, inputs: Iterable[Path] = ()) -> list[Path]:
    """The files and folders of a run in ``folder``, in the order in which they can be removed; nothing is removed.

    Args:
        folder: the folder, which the caller has claimed.
        overwrite: whether an unfinished run may be removed too.
        inputs: files that must not be among those removed.

    Raises:
        FolderError: the folder cannot be read, or has files that must not be removed.
    """
    entries = manifest.read(folder) or {}
    files, folders = manifest.find_files(folder, entries), manifest.find_folders(folder, entries)
    try:
        others = sorted({*walk(folder)} - {*files, *folders, *_of_manifest(folder)})
    except OSError as error:
        raise FolderError(f"{folder}: could not be read: {reason(error)}; choose another --output") from error
    if others:
        raise FolderError(
            f"{folder}: holds files that are not from heatsim, or were changed since ({_few(folder, others)}); "
            "nothing was removed; move them away, or choose another --output"
        )
    if folder / SCENARIO in files and folder / SUMMARY not in files and not overwrite:
        raise FolderError(
            f"{folder}: holds an unfinished run; continue it with `{resume_command(folder)}`, replace it with "
            f"--overwrite, or choose another --output"
        )
    kept = {path.resolve() for path in inputs} & {path.resolve() for path in files}
    if kept:
        raise FolderError(
            f"{folder}: holds input files of this very run ({_few(folder.resolve(), sorted(kept))}), and "
            f"replacing the run there would remove them; choose another --output"
        )
    return [*sorted(files, key=lambda path: path != folder / SCENARIO), *folders]


def _remove(paths: Iterable[Path]) -> None:
    """Remove files and empty folders.

    Raises:
        FolderError: the system refused.
    """
    try:
        for path in paths:
            if path.is_dir():
                system.calls.remove_folder(path)
            else:
                system.calls.remove(path)
    except OSError as error:
        raise FolderError(
            f"{error.filename}: could not be removed: {reason(error)}; choose another --output"
        ) from error


def _of_manifest(folder: Path) -> list[Path]:
    """The manifest of a folder, the last one to remove, and what a kill may have left of a new one."""
    path = folder / manifest.NAME
    return [each for each in (*parts_of(path), path) if is_own_file(each)]


def _few(folder: Path, paths: Sequence[Path]) -> str:
    return manifest.few([path.relative_to(folder).as_posix() for path in paths])
