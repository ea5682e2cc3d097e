"""Flat sections of what a scenario describes in space."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.render.geometry.parts import Geometry, Rectangle3D, ShownBeam, ShownBorder, sign_of
from heatsim.render.page.axes import length_unit
from heatsim.render.page.labels import PlacedLabels
from heatsim.render.page.layout import Panel
from heatsim.render.page.material_colours import material_colour
from heatsim.render.page.section_cells import SectionCells
from heatsim.render.spatial.sections import oriented
from heatsim.render.spatial.solids import SOURCE_COLOUR
from heatsim.storage.vtkhdf import VOID

_Mask = NDArray[np.bool_]
_Floats = NDArray[np.float64]

CONTACT_COLOUR, BEAM_COLOUR = "#d500f9", "#ff6d00"
# Of patches, then of surfaces towards void.
_COLOURS = ("#bf360c", "#4527a0", "#827717", "#880e4f", "#3e2723", "#ffab00", "#1a237e", "#c51162")
_EDGE = "#37474f"
_SHADE = 0.15
_GRID_WIDTH, _GRID_OPACITY = 0.25, 0.5
_PATCH_WIDTH, _SURFACE_WIDTH, _CONTACT_WIDTH, _LAYER_WIDTH = 3.0, 1.8, 1.4, 1.2  # pt
_MOST_PLACES = 40
_DEEP_ENOUGH = 40.0  # pixels: a letter fits
_DIGITS = 6  # of pixels: equal lengths stay equal


def border_colour(number: int) -> str:
    """The colour of a patch by its number; numbers of surfaces follow those of patches."""
    return _COLOURS[number % len(_COLOURS)]


def layer_colour(geometry: Geometry, layer: Rectangle3D) -> str:
    """The colour of a layer: that of its material."""
    return material_colour(list(geometry.materials).index(layer.material), geometry.materials)


class PartSection:
    """One plane of cells of a geometry, drawn on axes of a panel."""

    def __init__(self, axes: Any, geometry: Geometry, panel: Panel, index: int, named: Collection[int]) -> None:
        """Prepare the section.

        Args:
            axes: of Matplotlib, with their final size and limits.
            geometry: what to draw.
            panel: the axes across and up.
            index: the number of the plane of cells.
            named: the numbers of the regions whose letters are drawn.
        """
        self._axes, self._geometry, self._panel, self._index = axes, geometry, panel, index
        self._named = named
        unit = length_unit(geometry.grid)
        self._unit, self._cells = unit.size, SectionCells(geometry.grid, panel.across, panel.up, unit)
        self._extent = (*axes.get_xlim(), *axes.get_ylim())
        self._place = float(geometry.grid.centres(panel.normal)[index])

    def draw(self) -> None:
        """Draw everything that lies in the plane."""
        self._draw_materials()
        self._draw_grid()
        for source in self._geometry.sources:
            self._draw_source(self._section(source.cells))
        for number, surface in enumerate(self._geometry.surfaces, len(self._geometry.patches)):
            self._draw_border(surface, border_colour(number), _SURFACE_WIDTH)
        for layer in self._geometry.layers:
            self._draw_rectangle(layer, layer_colour(self._geometry, layer), _LAYER_WIDTH)
        for number, patch in enumerate(self._geometry.patches):
            self._draw_rectangle(patch, border_colour(number), _PATCH_WIDTH)
        for contact in self._geometry.contacts:  # over sources and layers, whose edges may lie there too
            self._draw_border(contact, CONTACT_COLOUR, _CONTACT_WIDTH, zorder=4.5)
        for beam in self._geometry.beams:
            self._draw_beam(beam)
        self._draw_labels()
        self._axes.set_xlim(*self._extent[:2])
        self._axes.set_ylim(*self._extent[2:])

    def _section(self, cells: NDArray[Any]) -> NDArray[Any]:
        """The plane of an array of shape (nz, ny, nx), as the panel shows it."""
        plane: NDArray[Any] = np.take(cells, self._index, axis=2 - self._panel.normal)
        return oriented(plane, self._panel.across, self._panel.up)

    def _flat(self, points: _Floats) -> _Floats:
        """Points (x, y, z) in m in the coordinates of the axes, shape (points, 2)."""
        return points[..., [self._panel.across, self._panel.up]] / self._unit

    @property
    def _near(self) -> float:
        """The largest distance in m at which a point still belongs to the plane."""
        grid, normal = self._geometry.grid, self._panel.normal
        return max(0.75 * float(grid.axes[normal].widths[self._index]), 0.01 * grid.size[normal])

    def _draw_materials(self) -> None:
        from matplotlib.colors import to_rgb

        names = self._geometry.materials
        colours = np.array(
            [to_rgb("white" if name == VOID else material_colour(number, names)) for number, name in enumerate(names)]
        )
        labels = self._section(self._geometry.labels)
        self._cells.show(self._axes, colours[labels])
        different = np.stack([labels, self._section(self._geometry.owners)], axis=-1)
        self._add_lines(_borders(different), _EDGE, 0.4)

    def _draw_grid(self) -> None:
        """Draw the borders between the cells of axes whose cells differ in width."""
        across, up = (axis.borders[1:-1] / self._unit if not axis.uniform else () for axis in self._cells.axes)
        left, right, low, high = self._extent
        style = {"colors": _EDGE, "linewidths": _GRID_WIDTH, "alpha": _GRID_OPACITY, "zorder": 1.5}
        self._axes.vlines(across, low, high, **style)
        self._axes.hlines(up, left, right, **style)

    def _draw_source(self, cells: _Mask) -> None:
        from matplotlib.colors import to_rgb

        if cells.any():
            shade = np.zeros((*cells.shape, 4))
            shade[cells] = (*to_rgb(SOURCE_COLOUR), _SHADE)
            self._cells.show(self._axes, shade)
            self._add_lines(_borders(np.pad(cells, 1)[..., None]) - 1.0, SOURCE_COLOUR, 1.0)

    def _draw_border(self, border: ShownBorder, colour: str, width: float, zorder: float = 2.0) -> None:
        self._add_lines(_between(self._section(border.one), self._section(border.other)), colour, width, zorder)

    def _add_lines(self, segments: _Floats, colour: str, width: float, zorder: float = 2.0) -> None:
        """Add lines that are in cells."""
        from matplotlib.collections import LineCollection

        lines = list(self._cells.at(segments))
        collection = LineCollection(lines, colors=colour, linewidths=width, capstyle="projecting", zorder=zorder)
        self._axes.add_collection(collection, autolim=False)

    def _draw_rectangle(self, rectangle: Rectangle3D, colour: str, width: float) -> None:
        """Draw a patch or a layer: a line if the section crosses it, its edge if it lies in the section."""
        normal = self._panel.normal
        low, high = np.array(rectangle.low), np.array(rectangle.high)
        if rectangle.normal == normal:
            if abs(low[normal] - self._place) <= self._near:
                (left, bottom), (right, top) = self._flat(np.stack([low, high]))
                x, y = (left, right, right, left, left), (bottom, bottom, top, top, bottom)
                self._axes.plot(x, y, color=colour, linewidth=0.5 * width + 0.5, zorder=4)
        elif low[normal] <= self._place <= high[normal]:
            ends = self._flat(np.stack([low, high]))
            self._axes.plot(*ends.T, color=colour, linewidth=width, solid_capstyle="butt", clip_on=False, zorder=4)

    def _draw_beam(self, beam: ShownBeam) -> None:
        """Draw the path and the spot of a beam on its face, or where the path crosses the plane."""
        normal = self._panel.normal
        if beam.normal == normal:
            if abs(beam.points[0, normal] - self._place) <= self._near:
                draw_beam(self._axes, self._flat(beam.points), self._flat(beam.spot))
            return
        near = np.abs(beam.points[:, normal] - self._place) <= self._near
        for start in np.flatnonzero(near[:-1] & near[1:]).tolist():
            ends = self._flat(beam.points[start : start + 2])
            self._axes.plot(*ends.T, color=BEAM_COLOUR, linewidth=1.6, clip_on=False, zorder=5)
        points = self._flat(beam.crossings(normal, self._place))
        if len(beam.points) == 1 and abs(beam.points[0, normal] - self._place) <= beam.radius:
            points = self._flat(beam.points)
        self._axes.plot(*points.T, color=BEAM_COLOUR, marker="v", markersize=5.0, linestyle="", clip_on=False, zorder=5)

    def _draw_labels(self) -> None:
        """Add the numbers of probes and the letters of regions."""
        labels = PlacedLabels(self._axes)
        for number, probe in enumerate(self._geometry.probes, 1):
            close = np.abs(probe.points[:, self._panel.normal] - self._place) <= self._near
            draw_probe(self._axes, labels, self._flat(probe.points[close]), number)
        owners = self._section(self._geometry.owners)
        across, up = self._cells.axes
        widths = across.widths / across.spacing * (self._panel.width / len(across))
        heights = up.widths / up.spacing * (self._panel.height / len(up))
        for number in self._named:
            inside = owners == number + 1
            if inside.any():
                places = _inner(inside, widths, heights)[:, ::-1] + 0.5
                labels.add_area(self._cells.at(places), sign_of(number))


def draw_beam(axes: Any, path: _Floats, spot: _Floats) -> None:
    """Draw the path of a beam, with an arrow at its end, and its spot at the start; in the coordinates of the axes."""
    axes.plot(*spot.T, color=BEAM_COLOUR, linewidth=0.8, zorder=5)
    if len(path) > 1:
        axes.plot(*path.T, color=BEAM_COLOUR, linewidth=1.0, zorder=5)
        arrow = {"arrowstyle": "->", "color": BEAM_COLOUR, "shrinkA": 0.0, "shrinkB": 0.0}
        axes.annotate("", path[-1], path[-2], arrowprops=arrow, zorder=5)
    else:
        axes.plot(*path.T, color=BEAM_COLOUR, marker="+", markersize=5.0, zorder=5)


def draw_probe(axes: Any, labels: PlacedLabels, points: _Floats, number: int) -> None:
    """Draw the points of a probe, if there are any, with its number at the first; in the coordinates of the axes."""
    if len(points):
        if len(points) > 1:
            axes.plot(*points.T, color="black", linewidth=0.6, marker=".", markersize=1.5, zorder=5)
        labels.add_point((float(points[0, 0]), float(points[0, 1])), str(number))


def _inner(inside: _Mask, widths: _Floats, heights: _Floats) -> NDArray[np.intp]:
    """Some cells (row, column) of an area, sorted: the farthest from its edge first, then the nearest to its middle.

    Args:
        inside: the cells of the area.
        widths: of the columns of cells in pixels.
        heights: of the rows of cells in pixels.
    """
    cells = np.argwhere(inside)
    across, up = (_from_edge(inside, axis, sizes)[inside] for axis, sizes in ((1, widths), (0, heights)))
    depth = np.round(np.minimum(across, _DEEP_ENOUGH) + np.minimum(up, _DEEP_ENOUGH), _DIGITS)
    middles = [(np.cumsum(sizes) - 0.5 * sizes)[of] for sizes, of in zip((heights, widths), cells.T, strict=True)]
    distance = np.sum([np.abs(middle - middle.mean()) for middle in middles], axis=0)
    order = np.lexsort((np.round(distance, _DIGITS), -depth))
    return cells[order[:: max(1, len(order) // _MOST_PLACES)]]


def _from_edge(inside: _Mask, axis: int, sizes: _Floats) -> _Floats:
    """For each cell of an area, the length to the nearer end along an axis, including the cell.

    Args:
        inside: the cells of the area.
        axis: 0 = along the rows' numbers, 1 = along the columns' numbers.
        sizes: of the cells along it.
    """

    def run(mask: _Mask, lengths: _Floats) -> _Floats:
        sums = np.cumsum(mask * (lengths if axis == 1 else lengths[:, None]), axis=axis)
        return np.asarray(sums - np.maximum.accumulate(np.where(mask, 0.0, sums), axis=axis))

    return np.minimum(run(inside, sizes), np.flip(run(np.flip(inside, axis), sizes[::-1]), axis))


def _borders(layers: NDArray[Any]) -> _Floats:
    """Lines between cells that differ in one of several arrays; shape (rows, columns, arrays)."""
    row, column = np.nonzero((layers[:, 1:] != layers[:, :-1]).any(axis=-1))
    upright = _upright(row, column + 1)
    row, column = np.nonzero((layers[1:] != layers[:-1]).any(axis=-1))
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
