"""Protection against links: heatsim reads and writes only regular files that are themselves in the folder of a run.

The folder of a run may come from someone else. Through a symbolic link heatsim would change files outside of it, and an
HDF5 file can refer to other files for its data.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import h5py

from heatsim.errors import FolderError
from heatsim.storage.disk import parts_of
from heatsim.storage.system import link_refused


def refuse_others(files: Iterable[Path], folders: Iterable[Path] = ()) -> None:
    """Check that what is at the paths of files of a run, and at the names they have while they are written, is a file.

    Args:
        files: paths where a regular file or nothing may be.
        folders: paths where a folder or nothing may be.

    Raises:
        FolderError: a path is a link, or something else.
    """
    for path in files:
        for name in (path, *parts_of(path)):
            _refuse_link(name)
            # While it is written, a file has another name if a folder has the first one.
            if os.path.lexists(name) and not name.is_file() and (name == path or not name.is_dir()):
                what = "a folder" if name.is_dir() else "a pipe, a socket or a device"
                raise FolderError(f"{name}: is {what} where a file of heatsim's belongs; move it away")
    for path in folders:
        _refuse_link(path)
        if os.path.lexists(path) and not path.is_dir():
            raise FolderError(f"{path}: is a file where a folder of heatsim's belongs; move it away")


def refuse_outside(folder: Path, paths: Iterable[Path]) -> None:
    """Check that files which a run reads again lie in its folder, without links on the way.

    Raises:
        FolderError: one does not; names it.
    """
    here = folder.resolve()
    for path in paths:
        inside = Path(os.path.abspath(path))
        for each in sorted(inside.iterdir()) if inside.is_dir() else [inside]:
            if here not in each.resolve().parents or each.resolve() != here / _relative(each, folder):
                raise FolderError(
                    f"{each}: is a link, or lies outside of the run's folder; put the file itself into {folder}"
                )


def _relative(path: Path, folder: Path) -> str:
    return os.path.relpath(path, os.path.abspath(folder))


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise link_refused(path)


def check_contained(file: h5py.File) -> None:
    """Check that an HDF5 file contains all of its data.

    Raises:
        ValueError: a link, an external or a virtual dataset refers to another file.
    """
    seen, waiting = set(), [file["/"]]
    while waiting:
        group = waiting.pop()
        for name in group:
            place = f"{group.name.rstrip('/')}/{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise ValueError(f"{place} is a link")
            item = group[name]
            if isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
                raise ValueError(f"the data of {place} are in another file")
            if isinstance(item, h5py.Group) and item.id not in seen:
                seen.add(item.id)
                waiting.append(item)


def is_own_file(path: Path) -> bool:
    """Whether a path is a file and not a symbolic link."""
    return path.is_file() and not path.is_symlink()


def is_own_folder(path: Path) -> bool:
    """Whether a path is a folder and not a symbolic link."""
    return path.is_dir() and not path.is_symlink()


def walk(folder: Path) -> Iterator[Path]:
    """All paths below a folder; symbolic links are among them and are not followed."""
    for path in folder.iterdir():
        yield path
        if is_own_folder(path):
            yield from walk(path)
