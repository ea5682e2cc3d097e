"""Flat sections of what a scenario describes in space."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.render.axes import length_unit
from heatsim.render.layout import Panel
from heatsim.render.legend import draw_point
from heatsim.render.parts import Geometry, Rectangle3D
from heatsim.render.scales import material_colour
from heatsim.render.sections import oriented
from heatsim.render.solids import SOURCE_COLOUR
from heatsim.storage.vtkhdf import VOID

_Mask = NDArray[np.bool_]
_Floats = NDArray[np.float64]

CONTACT_COLOUR, BEAM_COLOUR = "#d500f9", "#ff6d00"
_COLOURS = ("#1b5e20", "#4527a0", "#0d47a1", "#bf360c", "#006064", "#827717")
_EDGE = "#37474f"


def rectangle_colour(number: int) -> str:
    """The colour of a patch or layer by its number."""
    return _COLOURS[number % len(_COLOURS)]


def draw_section(axes: Any, geometry: Geometry, panel: Panel, index: int) -> None:
    """Draw what lies in one plane of cells."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgb

    grid, unit = geometry.grid, length_unit(geometry.grid)
    extent = (*axes.get_xlim(), *axes.get_ylim())
    labels = _section(geometry.labels, panel, index)
    colours = np.array(
        [to_rgb("white" if name == VOID else material_colour(number)) for number, name in enumerate(geometry.materials)]
    )
    axes.imshow(colours[labels], extent=extent, origin="lower", aspect="auto", interpolation="nearest")

    def add(segments: _Floats, colour: str, width: float) -> None:
        """Add lines, given in cells."""
        rows, columns = labels.shape
        cell = np.array([(extent[1] - extent[0]) / columns, (extent[3] - extent[2]) / rows])
        lines = np.array([extent[0], extent[2]]) + segments * cell
        collection = LineCollection(list(lines), colors=colour, linewidths=width, capstyle="projecting")
        axes.add_collection(collection, autolim=False)

    add(_borders(labels[..., None] == np.arange(len(geometry.materials))), _EDGE, 0.4)
    for source in geometry.sources:
        cells = _section(source.cells, panel, index)
        if cells.any():
            shade = np.zeros((*cells.shape, 4))
            shade[cells] = (*to_rgb(SOURCE_COLOUR), 0.25)
            axes.imshow(shade, extent=extent, origin="lower", aspect="auto", interpolation="nearest")
            add(_borders(np.pad(cells, 1)[..., None])[:] - 1.0, SOURCE_COLOUR, 1.0)
    for contact in geometry.contacts:
        one, other = (_section(mask, panel, index) for mask in (contact.one, contact.other))
        add(_between(one, other), CONTACT_COLOUR, 1.4)
    place = float(grid.centres(panel.normal)[index])
    for number, patch in enumerate(geometry.rectangles):
        _draw_patch(axes, patch, panel, place, unit.size, rectangle_colour(number))
    near = max(0.75 * grid.spacing[panel.normal], 0.01 * grid.size[panel.normal])
    for beam in geometry.beams:
        if np.abs(beam.points[:, panel.normal] - place).min() <= near:
            axes.plot(*(beam.points[:, [panel.across, panel.up]] / unit.size).T, color=BEAM_COLOUR, linewidth=1.0)
    for number, probe in enumerate(geometry.probes, 1):
        close = np.abs(probe.points[:, panel.normal] - place) <= near
        points = probe.points[close][:, [panel.across, panel.up]] / unit.size
        draw_probe(axes, points, number)
    axes.set_xlim(*extent[:2])
    axes.set_ylim(*extent[2:])


def _section(cells: NDArray[Any], panel: Panel, index: int) -> NDArray[Any]:
    """One plane of an array of shape (nz, ny, nx), as the panel shows it."""
    plane: NDArray[Any] = np.take(cells, index, axis=2 - panel.normal)
    return oriented(plane, panel.across, panel.up)


def draw_probe(axes: Any, points: _Floats, number: int) -> None:
    """Draw the points of a probe, if there are any, with its number at the first."""
    if len(points):
        if len(points) > 1:
            axes.plot(*points.T, color="black", linewidth=0.6, marker=".", markersize=1.5)
        draw_point(axes, (float(points[0, 0]), float(points[0, 1])), str(number), axes.transData)


def _draw_patch(axes: Any, patch: Rectangle3D, panel: Panel, place: float, unit: float, colour: str) -> None:
    """Draw a patch or a layer as a line where the section meets it."""
    if patch.normal == panel.normal or not patch.low[panel.normal] <= place <= patch.high[panel.normal]:
        return
    ends = np.array([patch.low, patch.high])[:, [panel.across, panel.up]] / unit
    axes.plot(*ends.T, color=colour, linewidth=3.0, solid_capstyle="butt", clip_on=False, zorder=4)


def _borders(masks: NDArray[np.bool_]) -> _Floats:
    """Lines between cells that differ in a mask; ``masks`` has the shape (rows, columns, masks)."""
    row, column = np.nonzero((masks[:, 1:] != masks[:, :-1]).any(axis=-1))
    upright = _upright(row, column + 1)
    row, column = np.nonzero((masks[1:] != masks[:-1]).any(axis=-1))
    return np.concatenate([upright, _level(row + 1, column)])


def _between(one: _Mask, other: _Mask) -> _Floats:
    """Lines between cells of one part and cells of another."""
    row, column = np.nonzero((one[:, 1:] & other[:, :-1]) | (other[:, 1:] & one[:, :-1]))
    upright = _upright(row, column + 1)
    row, column = np.nonzero((one[1:] & other[:-1]) | (other[1:] & one[:-1]))
    return np.concatenate([upright, _level(row + 1, column)])


def _upright(row: NDArray[np.intp], x: NDArray[np.intp]) -> _Floats:
    return np.stack([np.stack([x, row], axis=1), np.stack([x, row + 1], axis=1)], axis=1).astype(np.float64)


def _level(y: NDArray[np.intp], column: NDArray[np.intp]) -> _Floats:
    return np.stack([np.stack([column, y], axis=1), np.stack([column + 1, y], axis=1)], axis=1).astype(np.float64)
