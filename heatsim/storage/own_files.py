"""Files that are what they seem: nothing is read or written through links in the folder of a run.

A run's folder may come from elsewhere. Through a symbolic link heatsim would replace files outside of it, and an HDF5
file can name others as the place of its data.
"""

from pathlib import Path

import h5py

from heatsim.storage.disk import parts_of
from heatsim.storage.system import link_refused


def refuse_links(paths: list[Path]) -> None:
    """See that none of these paths, or of the names under which they are written, is a symbolic link.

    Raises:
        FolderError: one is.
    """
    for path in paths:
        for name in (path, *parts_of(path)):
            if name.is_symlink():
                raise link_refused(name)


def check_contained(file: h5py.File) -> None:
    """See that all of an HDF5 file is in the file itself.

    Raises:
        ValueError: a link, an external or a virtual dataset leads out of it.
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
                raise ValueError(f"the data of {place} lie in another file")
            if isinstance(item, h5py.Group) and item.id not in seen:
                seen.add(item.id)
                waiting.append(item)
