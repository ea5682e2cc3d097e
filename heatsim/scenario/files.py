"""Finding and comparing the files that a scenario names."""

import codecs
import os
import re
from dataclasses import dataclass
from pathlib import Path

from heatsim.scenario.messages import has_control_characters, show


@dataclass(frozen=True, eq=False)
class InputFile:
    """A file, or a folder of PNG slices, that a scenario reads.

    Two are equal if they have the same name and content.
    """

    path: Path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputFile) and same_file(self.path, other.path)

    def __hash__(self) -> int:
        return hash(self.path.name)


def existing(name: object, folder: Path, suffixes: tuple[str, ...], folders: bool = False) -> Path:
    """The path of a file that a scenario names.

    Args:
        name: the value in the scenario.
        folder: the folder in which relative paths start.
        suffixes: the allowed endings, with dots, in lower case.
        folders: whether a folder is allowed too.

    Raises:
        ValueError: the file does not exist or has another ending; the message is for the user.
    """
    if not isinstance(name, str) or not name or has_control_characters(name):
        raise ValueError(f"got {show(name)}; the name of a file is expected, relative to the scenario's folder")
    path = folder / name
    try:
        there, is_folder = path.is_file(), path.is_dir()
        special = path.is_fifo() or path.is_char_device() or path.is_socket()
    except OSError:  # For instance a name longer than the file system allows.
        there = is_folder = special = False
    if folders and is_folder:
        return Path(os.path.abspath(path))  # gives the folder its name, even for ".."
    if special:
        raise ValueError(f"got {show(name)}; this is a pipe or a device: name a regular file")
    if is_folder:
        raise ValueError(f"got {show(name)}; this is a folder: name a file in it")
    if not there:
        raise ValueError(f"got {show(name)}; there is no such file in {path.parent}")
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"got {show(name)}; a file ending in {', '.join(suffixes)} is expected")
    return path


def same_file(one: Path, other: Path) -> bool:
    """Whether two files, or two folders of PNG slices, have the same name and content."""
    import filecmp

    if one == other:
        return True
    if one.name != other.name or one.is_dir() != other.is_dir():
        return False
    if not one.is_dir():
        return filecmp.cmp(one, other, shallow=False)
    names = [file.name for file in slice_files(one)]
    if names != [file.name for file in slice_files(other)]:
        return False
    return not any(filecmp.cmpfiles(one, other, names, shallow=False)[1:])


def slice_files(folder: Path) -> list[Path]:
    """The PNG files of a folder in the order of the numbers in their names: 2 before 10."""
    files = [path for path in folder.iterdir() if path.suffix.lower() == ".png" and path.is_file()]
    return sorted(files, key=lambda path: (_natural(path.name), path.name))


def _natural(name: str) -> list[tuple[int, str]]:
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(part), "") if part[0] in "0123456789" else (-1, part) for part in parts]


def is_utf_16(content: bytes) -> bool:
    """Whether a text file begins as UTF-16 text does: with a byte order mark, or with a zero in its first letter."""
    return content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or content[:2].count(0) == 1


def one_line(error: Exception) -> str:
    """The text of a library's error, on one line of at most 200 characters."""
    return " ".join(str(error).split())[:200] or type(error).__name__
