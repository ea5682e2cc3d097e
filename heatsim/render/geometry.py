"""A picture of a scenario before it runs: materials, sources, patches, layers, contacts, probes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import AXES, Grid
from heatsim.render import pictures
from heatsim.render.figure import WIDTH, new_figure
from heatsim.render.layout import Page, Panel, arrange
from heatsim.render.legend import AREA, LINE, POINT, Entry, draw_point
from heatsim.render.pictures import Caption, add_panel, add_view, length_unit, oriented
from heatsim.render.scales import material_colour
from heatsim.render.solids import SOURCE_COLOUR, SolidScene
from heatsim.render.view import drawn_size
from heatsim.storage.vtkhdf import VOID

_Mask = NDArray[np.bool_]
_Floats = NDArray[np.float64]

CONTACT_COLOUR, BEAM_COLOUR = "#d500f9", "#ff6d00"
_PATCH_COLOURS = ("#1b5e20", "#4527a0", "#0d47a1", "#bf360c", "#006064", "#827717")
_EDGE = "#37474f"


@dataclass(frozen=True)
class Source:
    """A heat source: its text in the legend, and its cells, shape (nz, ny, nx)."""

    text: str
    cells: _Mask


@dataclass(frozen=True)
class Contact:
    """A resistance between two parts: its text in the legend, and the cells of both, shape (nz, ny, nx)."""

    text: str
    one: _Mask
    other: _Mask


@dataclass(frozen=True)
class Rectangle3D:
    """A patch on a face, or a layer in a plane: its text, the axis normal to it, and two corners (x, y, z) in m."""

    text: str
    normal: int
    low: tuple[float, float, float]
    high: tuple[float, float, float]


@dataclass(frozen=True)
class Path3D:
    """Points (x, y, z) in m with a text: a probe, or the path of a beam; shape (points, 3)."""

    text: str
    points: _Floats


@dataclass(frozen=True)
class Geometry:
    """What a scenario describes in space.

    Attributes:
        title: of the scenario.
        grid: its cells.
        materials: their names.
        labels: the number of each cell's material, shape (nz, ny, nx).
        sources: of heat, without beams.
        contacts: resistances between parts.
        rectangles: patches on faces, and layers in planes.
        beams: the paths of beams.
        probes: points and lines.
        remarks: texts on conditions, and on probes of regions.
    """

    title: str
    grid: Grid
    materials: Sequence[str]
    labels: NDArray[np.uint8]
    sources: Sequence[Source]
    contacts: Sequence[Contact]
    rectangles: Sequence[Rectangle3D]
    beams: Sequence[Path3D]
    probes: Sequence[Path3D]
    remarks: Sequence[str]


def draw(path: Path, geometry: Geometry, with_view: bool) -> None:
    """Draw a geometry in space, if ``with_view``, and in three sections that show most of it.

    Raises:
        StorageError: the picture could not be written.
    """
    grid = geometry.grid
    caption = Caption(
        f"{geometry.title} — geometry",
        geometry.materials,
        pictures.remarks_of(grid, *geometry.remarks),
        list(_entries(geometry)),
    )
    wide = sum(n > 1 for n in grid.cells)
    if wide < 3:
        _draw_flat(path, caption, geometry)
        return
    page = arrange(drawn_size(grid), with_view, caption.height(), with_bar=False)
    with new_figure(path, caption.title, WIDTH, page.height) as figure:
        if page.view is not None:
            _draw_space(figure, geometry, page)
        for panel in page.panels:
            index = _section_of(geometry, panel.normal)
            axes = add_panel(figure, grid, panel)
            _draw_section(axes, geometry, panel, index)
            unit = length_unit(grid)
            place = grid.centres(panel.normal)[index] / unit.size
            axes.set_title(f"{AXES[panel.normal]} = {place:.4g} {unit.symbol}".replace("-", "−"), pad=2.5)
        caption.draw(figure)


def _draw_flat(path: Path, caption: Caption, geometry: Geometry) -> None:
    """Draw a grid of one plane or one line of cells as one section."""
    grid = geometry.grid
    wide = [axis for axis in range(3) if grid.cells[axis] > 1] or [0]
    level, upright = (wide[0], wide[1]) if len(wide) > 1 else (wide[0], 2 if wide[0] != 2 else 1)
    normal = 3 - level - upright
    size = drawn_size(grid)
    tall = min(1000.0, 1350.0 * size[upright] / size[level]) if len(wide) > 1 else 160.0
    across = 1350.0 if len(wide) < 2 else min(1350.0, tall * size[level] / size[upright])
    below = caption.height()
    panel = Panel(normal, level, upright, 0.5 * (WIDTH - across) + 40, below + 100.0, across, tall)
    with new_figure(path, caption.title, WIDTH, round(below + tall + 210)) as figure:
        axes = add_panel(figure, grid, panel)
        _draw_section(axes, geometry, panel, 0)
        if len(wide) < 2:
            axes.set_yticks([])
            axes.set_ylabel("")
        caption.draw(figure)


def _entries(geometry: Geometry) -> Iterator[Entry]:
    """The legend."""
    for number, name in enumerate(geometry.materials):
        if name != VOID:
            yield Entry(name, material_colour(number), AREA)
    for source in geometry.sources:
        yield Entry(source.text, SOURCE_COLOUR, LINE)
    for beam in geometry.beams:
        yield Entry(beam.text, BEAM_COLOUR, LINE)
    for number, patch in enumerate(geometry.rectangles):
        yield Entry(patch.text, _patch_colour(number), LINE)
    for contact in geometry.contacts:
        yield Entry(contact.text, CONTACT_COLOUR, LINE)
    for number, probe in enumerate(geometry.probes, 1):
        yield Entry(probe.text, "black", POINT, str(number))


def _patch_colour(number: int) -> str:
    return _PATCH_COLOURS[number % len(_PATCH_COLOURS)]


def _section_of(geometry: Geometry, axis: int) -> int:
    """The plane of cells normal to an axis that shows most materials, sources and probes; the nearest to the centre."""
    along = 2 - axis
    others = tuple(other for other in range(3) if other != along)
    n = geometry.grid.cells[axis]
    score = np.zeros(n)
    for number, name in enumerate(geometry.materials):
        if name != VOID:
            score += (geometry.labels == number).any(axis=others)
    for source in geometry.sources:
        score += source.cells.any(axis=others)
    for probe in geometry.probes:
        cell = np.floor((probe.points[:, axis] - geometry.grid.origin[axis]) / geometry.grid.spacing[axis])
        score[np.unique(np.clip(cell, 0, n - 1).astype(np.intp))] += 0.25
    from_centre = np.abs(np.arange(n) - 0.5 * (n - 1)) / n
    return int(np.argmax(score - 1e-3 * from_centre - 0.2 * from_centre))


def _draw_section(axes: Any, geometry: Geometry, panel: Panel, index: int) -> None:
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
        _draw_patch(axes, patch, panel, place, unit.size, _patch_colour(number))
    near = max(0.75 * grid.spacing[panel.normal], 0.01 * grid.size[panel.normal])
    for beam in geometry.beams:
        if np.abs(beam.points[:, panel.normal] - place).min() <= near:
            axes.plot(*(beam.points[:, [panel.across, panel.up]] / unit.size).T, color=BEAM_COLOUR, linewidth=1.0)
    for number, probe in enumerate(geometry.probes, 1):
        close = np.abs(probe.points[:, panel.normal] - place) <= near
        points = probe.points[close][:, [panel.across, panel.up]] / unit.size
        _draw_probe(axes, points, number)
    axes.set_xlim(*extent[:2])
    axes.set_ylim(*extent[2:])


def _section(cells: NDArray[Any], panel: Panel, index: int) -> NDArray[Any]:
    """One plane of an array of shape (nz, ny, nx), as the panel shows it."""
    plane: NDArray[Any] = np.take(cells, index, axis=2 - panel.normal)
    return oriented(plane, panel)


def _draw_probe(axes: Any, points: _Floats, number: int) -> None:
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


def _draw_space(figure: Any, geometry: Geometry, page: Page) -> None:
    """Draw the 3-D view, and on it patches, layers, beams and probes."""
    assert page.view is not None
    view, grid = page.view, geometry.grid
    with SolidScene(grid, view) as scene:
        image = scene.solids(geometry.labels, geometry.materials, [source.cells for source in geometry.sources])
    axes = add_view(figure, grid, view, image, page.place)
    size = np.array(view.size) / np.array(grid.size)

    def project(points: _Floats) -> _Floats:
        return view.project((points - np.array(grid.origin)) * size)

    for number, patch in enumerate(geometry.rectangles):
        corners = project(_corners(patch))
        axes.fill(
            *corners.T, facecolor=_patch_colour(number), alpha=0.35, edgecolor=_patch_colour(number), linewidth=1.0
        )
    for beam in geometry.beams:
        axes.plot(*project(beam.points).T, color=BEAM_COLOUR, linewidth=1.2)
    for number, probe in enumerate(geometry.probes, 1):
        _draw_probe(axes, project(probe.points), number)


def _corners(patch: Rectangle3D) -> _Floats:
    """The four corners of a rectangle, in order around it."""
    u, v = (axis for axis in range(3) if axis != patch.normal)
    corners = np.array([patch.low] * 4, dtype=np.float64)
    corners[[1, 2], u] = patch.high[u]
    corners[[2, 3], v] = patch.high[v]
    return corners
