"""Files that are what they seem: nothing is read or written through links in the folder of a run.

A run's folder may come from elsewhere. Through a symbolic link heatsim would replace files outside of it, and an HDF5
file can name others as the place of its data.
"""

from pathlib import Path

import h5py

from heatsim.errors import FolderError
from heatsim.storage.disk import part_of


def refuse_links(paths: list[Path]) -> None:
    """See that none of these paths, or of the names under which they are written, is a symbolic link.

    Raises:
        FolderError: one is.
    """
    for path in (*paths, *map(part_of, paths)):
        if path.is_symlink():
            raise FolderError(
                f"{path}: is a symbolic link, through which heatsim neither reads nor writes; put the file or folder "
                "itself in its place"
            )


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
