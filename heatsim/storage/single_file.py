"""Files outside of a run's folder, such as `plan --picture FILE`: heatsim replaces only those that it wrote.

heatsim writes its mark into each of them: a text of a PNG file, the creator of a PDF or SVG file, a key of a JSON file.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heatsim.errors import FolderError, StorageError
from heatsim.storage.disk import reason

MARK = "heatsim"
_JSON_KEY = "written_by"
# The largest file whose mark is looked for; heatsim writes none that is larger.
_MOST_BYTES = 1 << 28
_IN_PDF = re.compile(rb"/Creator \(heatsim\)")
_IN_SVG = re.compile(rb"<dc:creator>\s*<cc:Agent>\s*<dc:title>heatsim</dc:title>")
_PNG_TEXT = b"tEXtSoftware\0heatsim"


def check_replaceable(path: Path, suffixes: Sequence[str], overwrite: bool) -> None:
    """Check that a file of results can be written, before any work is spent on its contents.

    Args:
        path: the file.
        suffixes: the allowed ends of its name.
        overwrite: replace a file that heatsim did not write too.

    Raises:
        FolderError: its name ends otherwise, its folder does not exist, the path is not a regular file, or there is a
            file without heatsim's mark.
    """
    if path.is_dir():
        raise FolderError(f"{path}: is a folder; give the name of a file")
    if path.suffix not in suffixes:
        raise FolderError(f"{path}: the name must end in {' or '.join(suffixes)}; nothing was written")
    if not path.absolute().parent.is_dir():
        raise FolderError(f"{path}: there is no folder {path.parent}; create it, or choose another")
    if not path.exists():
        return
    if not path.is_file():
        raise FolderError(f"{path}: is no regular file; choose another name")
    if not overwrite and not is_marked(path):
        raise FolderError(
            f"{path}: is there already, and heatsim did not write it; choose another name, or replace it with "
            "--overwrite; nothing was written"
        )


def refuse_inputs(path: Path, inputs: Iterable[Path]) -> None:
    """Check that a file of results is none of the files that a command reads, under any name.

    Raises:
        FolderError: it is one, or it lies in a folder that the command reads.
    """
    for each in inputs:
        files = each.iterdir() if each.is_dir() else (each,)
        if path.exists() and any(file.exists() and os.path.samefile(path, file) for file in files):
            raise FolderError(f"{path}: is an input file of this scenario; nothing was written; choose another name")
        if each.is_dir() and path.resolve().parent == each.resolve():
            raise FolderError(
                f"{path}: lies among input files of this scenario; nothing was written; choose another name"
            )


def is_marked(path: Path) -> bool:
    """Whether heatsim wrote a file, as its mark says."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return False
        content = path.read_bytes()
    except OSError:
        return False
    match path.suffix:
        case ".png":
            return _PNG_TEXT in _chunks(content)
        case ".pdf":
            return _IN_PDF.search(content) is not None
        case ".svg":
            return _IN_SVG.search(content) is not None
        case _:
            return _is_marked_json(content)


def _chunks(content: bytes) -> Iterator[bytes]:
    """The types and contents of the chunks of a PNG file; stops where it is damaged."""
    place = 8
    while place + 12 <= len(content) and content.startswith(b"\x89PNG"):
        length = int.from_bytes(content[place : place + 4], "big")
        yield content[place + 4 : place + 8 + length]
        place += 12 + length


def _is_marked_json(content: bytes) -> bool:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get(_JSON_KEY) == MARK


def marked_json(content: Mapping[str, Any], indent: int = 2) -> str:
    """JSON text of an object with heatsim's mark; numbers in the shortest form that reads back exactly."""
    return json.dumps({_JSON_KEY: MARK, **content}, indent=indent, ensure_ascii=False) + "\n"


def picture_metadata(suffix: str, title: str) -> dict[str, str]:
    """The metadata of a picture for Matplotlib: its title and heatsim's mark; none for other suffixes."""
    if suffix not in (".png", ".pdf", ".svg"):
        return {}
    return {"Title": title, "Software" if suffix == ".png" else "Creator": MARK}


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """Run a block that writes a file; errors of the system become a message.

    Raises:
        StorageError: names the file and the reason.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(f"{path}: could not be written: {reason(error)}") from error


def write_text(path: Path, text: str) -> None:
    """Write a file of results.

    Raises:
        StorageError: the system refused.
    """
    with saving(path):
        path.write_text(text, encoding="utf-8")
