"""Legends in rows below a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from heatsim.render.page.figure import text_width

_ROW = 46  # pixels
_SWATCH, _GAP = 40, 45
_LONGEST = 60  # characters
_SIZE = 7.5  # pt

AREA, LINE, POINT, TEXT = "area", "line", "point", "text"


@dataclass(frozen=True)
class Entry:
    """An entry of a legend.

    Attributes:
        text: its name.
        colour: its colour.
        kind: an area, a line, a point with a number, or a text without a sign.
        sign: the number of a point.
        dashes: the style of a line.
    """

    text: str
    colour: str = "black"
    kind: str = AREA
    sign: str = ""
    dashes: Any = "-"

    @property
    def width(self) -> float:
        """Its width in pixels."""
        sign = 0 if self.kind == TEXT else _SWATCH + 12
        return sign + text_width(self.shown, _SIZE) + _GAP

    @property
    def shown(self) -> str:
        """Its text, shortened if it is too long."""
        return shorten(self.text, _LONGEST, placeholder=" …")


def rows_of(entries: Sequence[Entry], width: float) -> list[list[Entry]]:
    """The entries in rows that fit a width in pixels."""
    rows: list[list[Entry]] = []
    used = width
    for entry in entries:
        if used + entry.width - _GAP > width:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += entry.width
    return rows


def height_of(entries: Sequence[Entry], width: float) -> int:
    """The height of a legend in pixels."""
    return _ROW * len(rows_of(entries, width))


def draw_legend(figure: Any, entries: Sequence[Entry], x: float, y: float, width: float, larger: float = 1.0) -> None:
    """Draw a legend with its lower left corner at (x, y) in pixels, all scaled by ``larger``."""
    across, up = figure.get_size_inches() * figure.dpi / larger
    rows = rows_of(entries, width)
    for number, row in enumerate(rows):
        at, height = x, y + (len(rows) - 1 - number) * _ROW
        for entry in row:
            _draw_sign(figure, entry, at, height + 20, (across, up), larger)
            start = at if entry.kind == TEXT else at + _SWATCH + 12
            figure.text(start / across, (height + 20) / up, entry.shown, va="center", fontsize=_SIZE * larger)
            at += entry.width


def _draw_sign(figure: Any, entry: Entry, x: float, y: float, size: tuple[float, float], larger: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    across, up = size
    if entry.kind == AREA:
        figure.add_artist(
            Rectangle(
                (x / across, (y - 12) / up),
                _SWATCH / across,
                24 / up,
                transform=figure.transFigure,
                facecolor=entry.colour,
                edgecolor="#333333",
                linewidth=0.3,
            )
        )
    elif entry.kind == LINE:
        ends = [x / across, (x + _SWATCH) / across]
        line = Line2D(ends, [y / up, y / up], transform=figure.transFigure, color=entry.colour, linewidth=2.0 * larger)
        line.set_linestyle(entry.dashes)
        figure.add_artist(line)
    elif entry.kind == POINT:
        middle = ((x + 0.5 * _SWATCH) / across, y / up)
        draw_point(figure, middle, entry.sign, figure.transFigure, larger)


def draw_point(axes: Any, place: tuple[float, float], sign: str, transform: Any, larger: float = 1.0) -> None:
    """Draw the sign of a point, a number, in a circle, or that of a region, letters, in a square."""
    style = "square,pad=0.15" if sign.isalpha() else "circle,pad=0.15"
    axes.text(
        *place,
        sign,
        transform=transform,
        ha="center",
        va="center",
        fontsize=7.0 * larger,
        zorder=6,
        bbox={"boxstyle": style, "facecolor": "white", "edgecolor": "black", "linewidth": 0.5},
    )
