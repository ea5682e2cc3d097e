"""A picture to draw, before it is drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Picture:
    """A picture to draw.

    Attributes:
        name: of its file, without suffix.
        draw: draws it into a file, in the format of the file's suffix.
        draw_flat: draws what needs no OpenGL of a view in space; None if there is nothing.
    """

    name: str
    draw: Callable[[Path], None]
    draw_flat: Callable[[Path], None] | None = None
