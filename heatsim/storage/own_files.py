"""Protection against links: heatsim reads and writes only files that are themselves in the folder of a run.

The folder of a run may come from someone else. Through a symbolic link heatsim would change files outside of it, and an
HDF5 file can refer to other files for its data.
"""

from collections.abc import Iterator
from pathlib import Path

import h5py

from heatsim.storage.disk import parts_of
from heatsim.storage.system import link_refused


def refuse_links(paths: list[Path]) -> None:
    """Check that no path, and no name that it has while it is written, is a symbolic link.

    Raises:
        FolderError: one is.
    """
    for path in paths:
        for name in (path, *parts_of(path)):
            if name.is_symlink():
                raise link_refused(name)


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
