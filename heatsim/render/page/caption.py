"""The texts around a picture: its title, a legend, and remarks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from heatsim.grid import Grid
from heatsim.render.page.figure import QUIET, SMALL, WIDTH, add_text, text_width
from heatsim.render.page.legend import Entry, draw_legend, height_of
from heatsim.render.page.view import describe_stretch

_INDENT = 40
_REMARK_ROW = 44


@dataclass(frozen=True)
class Caption:
    """The texts around a picture.

    Attributes:
        title: above it.
        remarks: sentences below it.
        legend: entries between title and remarks.
        description: what the picture shows, in a few words; see :func:`heatsim.render.page.figure.new_figure`.
    """

    title: str
    remarks: Sequence[str] = ()
    legend: Sequence[Entry] = ()
    description: str = ""

    def height(self, width: float = WIDTH, larger: float = 1.0) -> int:
        """The height in pixels of the legend and the remarks below a picture of a certain width."""
        legend = height_of(self.legend, width / larger - 2 * _INDENT)
        return round((legend + _REMARK_ROW * len(self._lines(width / larger)) + 14) * larger)

    def draw(self, figure: Any, width: float = WIDTH, larger: float = 1.0) -> None:
        """Draw the legend and the remarks at the lower edge."""
        lines = self._lines(width / larger)
        for number, line in enumerate(reversed(lines)):
            y = (12 + number * _REMARK_ROW) * larger
            add_text(figure, _INDENT * larger, y, line, color=QUIET, va="bottom", fontsize=SMALL * larger)
        y = 10 + _REMARK_ROW * len(lines)
        draw_legend(figure, self.legend, _INDENT, y, width / larger - 2 * _INDENT, larger)

    def _lines(self, width: float) -> list[str]:
        """The remarks, broken to a width: all in one line if they fit, else each begins a new line."""
        room = width - 2 * _INDENT
        remarks = [remark for remark in self.remarks if remark]
        together = "  ".join(remarks)
        if text_width(together, SMALL) <= room:
            return [together] if together else []
        return [line for remark in remarks for line in _wrapped(remark, room)]


def _wrapped(text: str, room: float) -> Iterator[str]:
    """The words of a text in lines that fit a width in pixels."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".lstrip()
        if line and text_width(longer, SMALL) > room:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def remarks_of(grid: Grid, *others: str) -> list[str]:
    """The remarks below a picture: how the drawing is stretched, then others."""
    return [remark for remark in (*others, describe_stretch(grid)) if remark]
