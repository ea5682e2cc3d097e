"""manifest.json: the files of a folder that heatsim wrote. It removes or replaces no other file.

    {"about": "…", "layout": 1, "files": [
    {"path": "scenario.toml", "bytes": 1734, "crc32": "5f1c09aa", "group": ""},
    …
    ]}

Each entry has its own line, and new entries go to the end. After a kill at most one line is incomplete, and does not
count. A folder without this file is someone else's. The layout is a number that goes up when files of heatsim get
another form; a folder with another number is refused.

The entry of a file is on the disk before the file exists, and not long before. So a kill leaves no file of heatsim's
without an entry, and hardly an entry without a file:

- An entry has the size and checksum of the file, of a very large one its size. If the file agrees with no entry of its
  path, the user changed it: it is the user's, and stays.
- What is not known yet has no size: heatsim knows the file by its path. So it is with pictures while they are drawn and
  tables until the run is complete. Fields and checkpoints, whose checksums would take too long, keep such an entry.
- A file that is being written may have the same name with `.part` behind it.
"""

import json
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from heatsim.errors import FolderError, StorageError
from heatsim.storage import system
from heatsim.storage.disk import free_part_of, parts_of, reason, remedy, write_synced, write_whole
from heatsim.storage.own_files import is_own_file, is_own_folder
from heatsim.storage.system import File

NAME = "manifest.json"
# Known by their paths alone, whatever is in them.
GROWING = ("fields.vtkhdf", "checkpoint.h5", "checkpoint.previous.h5")
LAYOUT = 1
_ABOUT = "Files that heatsim wrote. It removes or replaces only these."
_HEAD = f'{{"about": "{_ABOUT}", "layout": {LAYOUT}, "files": ['
_TAIL = "\n]}\n"
_MOST_SUMMED = 1 << 26  # bytes
_LONGEST_HEAD = 1 << 10  # bytes


@dataclass(frozen=True)
class FileEntry:
    """What is known about a file.

    Attributes:
        bytes: its size; None while it is written.
        crc32: its checksum; None while it is written, and of very large files.
        group: files of one group are replaced together; "" for a file that is replaced alone.
        removed: whether heatsim has removed the file, or has not written it in the end.
        before: the entry of the path before this one, whose file may still be there.
    """

    bytes: int | None = None
    crc32: str | None = None
    group: str = ""
    removed: bool = False
    before: "FileEntry | None" = field(default=None, compare=False, repr=False)


def create(folder: Path, names: Iterable[str]) -> None:
    """Begin the manifest of an empty folder, with the files that are about to be written; an earlier one is replaced.

    Raises:
        StorageError: the disk refused.
    """
    path = folder / NAME
    part = free_part_of(path)
    lines = (_line(name, FileEntry()) for name in dict.fromkeys(names) if name != NAME)
    try:
        write_synced(part, f"{_HEAD}{','.join(lines)}{_TAIL}".encode())
        system.calls.rename(part, path)
    except OSError as error:
        raise _refused(path, error) from error


def read(folder: Path) -> dict[str, FileEntry] | None:
    """The entries of a folder by path; None if there is no manifest.

    Raises:
        FolderError: it cannot be read.
    """
    path = folder / NAME
    if not is_own_file(path):
        return None
    try:
        return _parse(path, path.read_bytes())[0]
    except OSError as error:
        raise FolderError(f"{path}: could not be read: {reason(error)}") from error


def check_layout(folder: Path) -> None:
    """Refuse a folder that another version of heatsim wrote. A folder without a manifest may be of any version.

    Raises:
        FolderError: it has another layout.
    """
    path = folder / NAME
    with suppress(OSError), open(path, "rb") as file:
        _check_head(path, file.readline(_LONGEST_HEAD).rstrip(b"\n"), damaged_too=False)


def owns(folder: Path, name: str, entries: Mapping[str, FileEntry]) -> bool:
    """Whether the file of a name in a folder is as heatsim wrote it, and no part of its path is a link."""
    entry, path = entries.get(name), folder / name
    if entry is None or entry.removed or not _is_inside(folder, name) or not is_own_file(path):
        return False
    return entry.bytes is None or _agrees(path, entry)


def find_yours(folder: Path, names: Iterable[str]) -> list[str]:
    """Those of some names in a folder that the user's files have.

    Raises:
        FolderError: the manifest cannot be read.
    """
    entries = read(folder) or {}
    return [name for name in names if _is_yours(folder, name, entries)]


def _is_yours(folder: Path, name: str, entries: Mapping[str, FileEntry]) -> bool:
    path = folder / name
    linked = any(part.is_symlink() for part in parts_of(path))
    return linked or (os.path.lexists(path) and not owns(folder, name, entries))


def find_files(folder: Path, entries: Mapping[str, FileEntry]) -> list[Path]:
    """The files of a folder that are as heatsim wrote them, or that it was writing; without the manifest."""
    found = []
    for name, entry in entries.items():
        path = folder / name
        parts = [] if entry.removed or not _is_inside(folder, name) else parts_of(path)
        found += [part for part in parts if is_own_file(part)]
        found += [path] if owns(folder, name, entries) else []
    return found


def find_folders(folder: Path, entries: Mapping[str, FileEntry]) -> list[Path]:
    """The folders below a folder that heatsim makes for its files, the deepest first."""
    above = {parent for name in entries for parent in PurePosixPath(name).parents if parent.parts}
    found = [folder / parent for parent in above if _is_inside(folder, f"{parent}/x")]
    return sorted(filter(is_own_folder, found), key=lambda path: (-len(path.parts), path))


def begin(folder: Path, names: Iterable[str], group: str = "") -> list[str]:
    """Record files that are about to be written; on the disk when this returns.

    Args:
        folder: of the manifest.
        names: their paths in the folder.
        group: of the files; "" keeps the group that they have.

    Returns:
        The names that the user's files have, which must stay. They are not recorded.

    Raises:
        FolderError: heatsim did not write the folder.
        StorageError: the disk refused.
    """
    with _opened(folder) as (file, entries, end):
        yours, new = [], {}
        for name in names:
            entry = entries.get(name, FileEntry(removed=True))
            if _is_yours(folder, name, entries):
                yours.append(name)
            elif entry != (wanted := FileEntry(group=group or entry.group)):
                new[name] = wanted
        if new:
            _append(file, entries, end, new)
            file.sync()
    return yours


def end(folder: Path, names: Iterable[str] | None = None) -> None:
    """Record the sizes and checksums of files that have been written.

    If the disk refuses, they keep their entries as files that are being written.

    Args:
        folder: of the manifest; without one, nothing is recorded.
        names: their paths in the folder; None for all that are being written.
    """
    with suppress(FolderError, StorageError), _opened(folder) as (file, entries, place):
        pending = [name for name, entry in entries.items() if entry.bytes is None and not entry.removed]
        new = {}
        for name in pending if names is None else names:
            path, entry = folder / name, entries.get(name, FileEntry())
            if not is_own_file(path):
                new[name] = FileEntry(group=entry.group, removed=True)
            elif name not in GROWING:
                new[name] = _entry_of(path, entry.group)
        if new:
            _append(file, entries, place, new)


@contextmanager
def replacing(folder: Path, names: Iterable[str], group: str = "") -> Iterator[list[str]]:
    """Write files within the context. Then those of the group that heatsim wrote under other names are removed.

    Yields:
        The names that the user's files have; see :func:`begin`.

    Raises:
        FolderError: heatsim did not write the folder, or a file could not be removed.
        StorageError: the disk refused.
    """
    names = list(names)
    yours = begin(folder, names, group)
    old = list[str]()
    try:
        yield yours
        old = _others_of_group(folder, names, group) if group else []
        for name in old:
            system.calls.remove(folder / name)
    except OSError as error:
        raise FolderError(f"{error.filename}: could not be removed: {reason(error)}") from error
    finally:
        end(folder, [name for name in (*names, *old) if name not in yours])


def _others_of_group(folder: Path, names: Collection[str], group: str) -> list[str]:
    entries = read(folder) or {}
    others = [name for name, entry in entries.items() if entry.group == group and name not in names]
    return [name for name in others if owns(folder, name, entries)]


def write_own(folder: Path, name: str, content: bytes, again: str = "") -> None:
    """Replace a small file of heatsim's in a folder; see :func:`heatsim.storage.disk.write_whole`.

    Raises:
        FolderError: the file there is the user's, or heatsim did not write the folder.
        StorageError: the disk refused.
    """
    with _opened(folder) as (file, entries, end):
        refuse(folder, [name] if _is_yours(folder, name, entries) else [])
        _append(file, entries, end, {name: _complete(len(content), lambda: content, "")})
        file.sync()
    write_whole(folder / name, content, again)


def refuse(folder: Path, yours: Iterable[str]) -> None:
    """Refuse to replace the user's files.

    Raises:
        FolderError: there are any; names them.
    """
    names = list(yours)
    if names:
        are, them, were = ("is", "it", "was") if len(names) == 1 else ("are", "them", "were")
        raise FolderError(
            f"{folder}: {few(names)} {are} not as heatsim wrote {them}, and {were} kept; move {them} away and repeat "
            "the command"
        )


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder without a manifest.

    Raises:
        FolderError: there is none, or it cannot be read.
    """
    if read(folder) is None:
        raise _foreign(folder)


def few(names: list[str]) -> str:
    """The first of some names."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _foreign(folder: Path) -> FolderError:
    return FolderError(
        f"{folder}: {NAME} is missing, so heatsim did not write this folder and changes nothing in it; if it holds a "
        f"scenario, run that with `heatsim run … --output …`"
    )


def _refused(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: could not be written: {reason(error)}; {remedy(error)} and repeat the command")


def _is_inside(folder: Path, name: str) -> bool:
    """Whether a path stays in the folder, without links on the way."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in name:
        return False
    return not any((folder / parent).is_symlink() for parent in path.parents if parent.parts)


def _complete(size: int, content: Callable[[], bytes], group: str) -> FileEntry:
    """The entry of a complete file; only the content of one that is not very large is read."""
    return FileEntry(size, None if size > _MOST_SUMMED else f"{zlib.crc32(content()):08x}", group)


def _entry_of(path: Path, group: str) -> FileEntry:
    """The entry of a file as it is."""
    try:
        return _complete(path.stat().st_size, path.read_bytes, group)
    except OSError:
        return FileEntry(removed=True)


def _agrees(path: Path, entry: FileEntry) -> bool:
    """Whether a file is as an entry or one before it says; it is read only if its size agrees."""
    known = set()
    while not entry.removed:
        known.add((entry.bytes, entry.crc32))
        if entry.before is None:
            break
        entry = entry.before
    try:
        size = path.stat().st_size
        if size not in {each for each, _ in known}:
            return False
        found = _complete(size, path.read_bytes, "")
        return (size, found.crc32) in known
    except OSError:
        return False


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[File, dict[str, FileEntry], int]]:
    """The open manifest of a folder, locked; its entries, and the end of the last one.

    Raises:
        FolderError: there is none, or it cannot be read.
        StorageError: the disk refused.
    """
    path = folder / NAME
    try:
        while True:
            with File(path) as file:
                _lock(file)
                if file.is_in_place:
                    entries, place = _parse(path, file.read(0, file.length))
                    yield file, entries, place
                    return
    except FileNotFoundError:
        raise _foreign(folder) from None
    except OSError as error:
        raise _refused(path, error) from error


def _lock(file: File) -> None:
    """Wait until this process alone changes a file, where the system can lock files."""
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(file.descriptor, fcntl.LOCK_EX)


def _append(file: File, entries: Mapping[str, FileEntry], place: int, new: Mapping[str, FileEntry]) -> None:
    """Add entries behind the last whole one."""
    lines = ",".join(_line(name, entry) for name, entry in new.items())
    content = (("," if entries else "") + lines + _TAIL).encode()
    file.write(place, content)
    if file.length > place + len(content):
        file.truncate(place + len(content))


def _line(name: str, entry: FileEntry) -> str:
    content = {"path": name, "bytes": entry.bytes, "crc32": entry.crc32, "group": entry.group}
    return "\n" + json.dumps({**content, "removed": True} if entry.removed else content)


def _parse(path: Path, content: bytes) -> tuple[dict[str, FileEntry], int]:
    """The entries of a manifest by path, without damaged ones, and the byte after the last whole entry.

    Raises:
        FolderError: it is not a manifest.
    """
    lines = content.split(b"\n")
    _check_head(path, lines[0])
    entries, place, passed = dict[str, FileEntry](), len(lines[0]), len(lines[0])
    for line in lines[1:]:
        found = _entry(line.rstrip(b","))
        if found is not None:
            name, entry = found
            entries[name] = replace(entry, before=entries.get(name))
            place = passed + 1 + len(line.rstrip(b","))
        passed += 1 + len(line)
    return entries, place


def _check_head(path: Path, line: bytes, damaged_too: bool = True) -> None:
    """Refuse a manifest by its first line.

    Raises:
        FolderError: another version of heatsim wrote it, or with ``damaged_too`` something else.
    """
    head = line.decode(errors="replace")
    if head != _HEAD and head.startswith(f'{{"about": "{_ABOUT}"'):
        raise FolderError(
            f"{path.parent}: was written by another version of heatsim, whose files have another form (first line of "
            f"{path.name}); read it with that version, or move the folder away and start again"
        )
    if head != _HEAD and damaged_too:
        raise FolderError(f"{path}: was not written by heatsim, or is damaged; move it away")


def _entry(line: bytes) -> tuple[str, FileEntry] | None:
    """The path and the entry of a line; None if it is none."""
    try:
        match json.loads(line):
            case {"path": str(name), "bytes": int() | None as size, "crc32": str() | None as sum_, "group": str(group)}:
                return name, FileEntry(size, sum_, group, json.loads(line).get("removed") is True)
    except (ValueError, RecursionError):
        pass
    return None
