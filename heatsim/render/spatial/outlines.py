"""Outlines of materials in sections, each in the colour of its material."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.render.page.legend import AREA, LINE, Entry
from heatsim.render.page.material_colours import material_colour
from heatsim.render.page.section_cells import SectionCells
from heatsim.storage.vtkhdf import VOID

_STROKE = 2.2  # pixels, on either side of a border
# Pixels: the light line between two strokes and the dark one around it; one of them is visible on any field.
_BETWEEN, _CASED = 0.9, 2.4
_CASING = "#202020a0"
_LIBRARY = "library:"  # begins the name of a material that has no other


@dataclass(frozen=True)
class Outline:
    """Borders of one material in a section, in cells from the section's lower left corner.

    Attributes:
        segments: the borders as (x, y) of both ends, shape (borders, 2, 2).
        inward: unit steps from each border into the material, shape (borders, 2).
    """

    segments: NDArray[np.float64]
    inward: NDArray[np.float64]


def find_outlines(labels: NDArray[np.uint8]) -> dict[int, Outline]:
    """The borders of each material in a section, at other materials and at the edge, by its number.

    Args:
        labels: the number of each cell's material, shape (rows, columns).
    """
    rows, columns = labels.shape
    framed = np.full((rows + 2, columns + 2), -1, dtype=np.int64)
    framed[1:-1, 1:-1] = labels
    parts: dict[int, list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {}
    for down, right in ((0, -1), (0, 1), (-1, 0), (1, 0)):
        other = framed[1 + down : 1 + down + rows, 1 + right : 1 + right + columns]
        row, column = np.nonzero(other != labels)
        x, y = column + 0.5 + 0.5 * right, row + 0.5 + 0.5 * down
        along = 0.5 * np.array([abs(down), abs(right)])
        middle = np.stack([x, y], axis=1).astype(np.float64)
        segments = np.stack([middle - along, middle + along], axis=1)
        inward = np.broadcast_to(np.array([-right, -down], dtype=np.float64), (len(row), 2))
        for number in np.unique(labels[row, column]).tolist():
            chosen = labels[row, column] == number
            parts.setdefault(int(number), []).append((segments[chosen], inward[chosen]))
    return {
        number: Outline(np.concatenate([s for s, _ in found]), np.concatenate([i for _, i in found]))
        for number, found in sorted(parts.items())
    }


def draw_outlines(axes: Any, labels: NDArray[np.uint8], names: Sequence[str], cells: SectionCells) -> None:
    """Draw the borders of each material of a section, just inside the material, with a light line between two.

    Args:
        axes: Matplotlib axes, already of their final size and limits.
        labels: the number of each cell's material, shape (rows, columns).
        names: of the materials; void has no outline.
        cells: of the section.
    """
    from matplotlib.collections import LineCollection

    box, (start, end), (bottom, top) = axes.get_window_extent(), axes.get_xlim(), axes.get_ylim()
    pixel = np.array([(end - start) / box.width, (top - bottom) / box.height])
    width = _STROKE * 72.0 / axes.figure.dpi
    for number, outline in find_outlines(labels).items():
        if number < len(names) and names[number] == VOID:
            continue
        shift = 0.5 * _STROKE * pixel * outline.inward
        lines = cells.at(outline.segments) + shift[:, None, :]
        axes.add_collection(
            LineCollection(list(lines), colors=material_colour(number, names), linewidths=width, capstyle="projecting"),
            autolim=False,
        )
        between = list(cells.at(outline.segments))
        for colour, wide in ((_CASING, _CASED), ("white", _BETWEEN)):
            borders = LineCollection(between, colors=colour, linewidths=width * wide / _STROKE, capstyle="projecting")
            axes.add_collection(borders, autolim=False)


def material_entries(
    names: Sequence[str], with_cells: Collection[int] | None = None, of_layers: Collection[str] = ()
) -> list[Entry]:
    """The entries of the legend of materials; none if the legend is not needed.

    Args:
        names: of the materials.
        with_cells: the numbers of the materials that cells have; None for all.
        of_layers: the names of the materials of layers. A material without cells has a line in the legend, as in
            sections.
    """
    entries = []
    for number, name in enumerate(names):
        cells = with_cells is None or number in with_cells
        if name != VOID and (cells or name in of_layers):
            shown = name.removeprefix(_LIBRARY)
            text = shown if cells else f"{shown} (layers)"
            entries.append(Entry(text, material_colour(number, names), AREA if cells else LINE))
    return entries if len(entries) > 1 or any(entry.text != "material" for entry in entries) else []
