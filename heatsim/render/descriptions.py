"""What pictures show, in a few words, as their files have it."""

import re
from html import unescape
from pathlib import Path

_TITLE_OF_SVG = re.compile(r"<dc:title>(.*?)</dc:title>", re.DOTALL)
_MOST_OF_SVG = 10_000  # bytes before the end of the title
_ANIMATIONS = (".gif", ".mp4")


def description_of(path: Path) -> str:
    """What a picture shows; for a picture that heatsim did not draw, the name of its file.

    Raises:
        OSError: the file cannot be read.
    """
    if path.suffix in _ANIMATIONS:
        return f"Animation: {path.stem.replace('_', ' ')}"
    found = ""
    if path.suffix == ".png":
        found = _title_of_png(path)
    elif path.suffix == ".svg":
        with path.open("rb") as file:
            match = _TITLE_OF_SVG.search(file.read(_MOST_OF_SVG).decode(errors="replace"))
        found = unescape(match[1]) if match else ""
    return " ".join(found.split()) or path.name


def _title_of_png(path: Path) -> str:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path, formats=("PNG",)) as picture:
            return str(picture.info.get("Title", ""))
    except (UnidentifiedImageError, SyntaxError, ValueError, Image.DecompressionBombError):
        return ""
