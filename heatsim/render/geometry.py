"""A picture of a scenario before it runs: materials, sources, patches, layers, contacts, probes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import AXES
from heatsim.render.axes import add_panel, add_view, length_unit
from heatsim.render.caption import Caption, remarks_of
from heatsim.render.figure import WIDTH, new_figure
from heatsim.render.layout import Page, Panel, arrange
from heatsim.render.legend import AREA, LINE, POINT, Entry
from heatsim.render.part_sections import BEAM_COLOUR, CONTACT_COLOUR, draw_probe, draw_section, rectangle_colour
from heatsim.render.parts import Geometry, Rectangle3D
from heatsim.render.scales import material_colour
from heatsim.render.solids import SOURCE_COLOUR, SolidScene
from heatsim.render.view import drawn_size
from heatsim.storage.vtkhdf import VOID

_Floats = NDArray[np.float64]

_MOST_ALONE = 3  # sources or contacts with an entry each in the legend


def draw(path: Path, geometry: Geometry, with_view: bool) -> None:
    """Draw a geometry in space, if ``with_view``, and in three sections that show most of it.

    Raises:
        StorageError: the picture could not be written.
    """
    grid = geometry.grid
    caption = Caption(
        f"{geometry.title} — geometry",
        remarks_of(grid, *_remarks(geometry)),
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
            draw_section(axes, geometry, panel, index)
            unit = length_unit(grid)
            place = grid.centres(panel.normal)[index] / unit.size
            axes.set_title(
                f"{AXES[panel.normal]} = {place:.4g} {unit.symbol}".replace("-", "−"), pad=2.5, loc=panel.title_side
            )
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
        draw_section(axes, geometry, panel, 0)
        if len(wide) < 2:
            axes.set_yticks([])
            axes.set_ylabel("")
        caption.draw(figure)


def _entries(geometry: Geometry) -> Iterator[Entry]:
    """The legend; many things of a kind share an entry, and :func:`_remarks` has their names."""
    for number, name in enumerate(geometry.materials):
        if name != VOID:
            yield Entry(name, material_colour(number), AREA)
    for name, kind, colour in (
        ("sources", geometry.sources, SOURCE_COLOUR),
        ("contacts", geometry.contacts, CONTACT_COLOUR),
    ):
        texts = [thing.text for thing in kind]
        for text in texts if len(texts) <= _MOST_ALONE else [name]:
            yield Entry(text, colour, LINE)
    for beam in geometry.beams:
        yield Entry(beam.text, BEAM_COLOUR, LINE)
    for number, rectangle in enumerate(geometry.rectangles):
        yield Entry(rectangle.text, rectangle_colour(number), LINE)
    for number, probe in enumerate(geometry.probes, 1):
        yield Entry(probe.text, "black", POINT, str(number))


def _remarks(geometry: Geometry) -> Iterator[str]:
    for name, kind in (("Sources", geometry.sources), ("Contacts", geometry.contacts)):
        if len(kind) > _MOST_ALONE:
            texts = (thing.text.removeprefix("source ").removeprefix("contact ") for thing in kind)
            yield f"{name}: {', '.join(texts)}."
    yield from geometry.remarks


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
            *corners.T,
            facecolor=rectangle_colour(number),
            alpha=0.18,
            edgecolor=rectangle_colour(number),
            linewidth=1.0,
        )
    for beam in geometry.beams:
        axes.plot(*project(beam.points).T, color=BEAM_COLOUR, linewidth=1.2)
    for number, probe in enumerate(geometry.probes, 1):
        draw_probe(axes, project(probe.points), number)


def _corners(patch: Rectangle3D) -> _Floats:
    """The four corners of a rectangle, in order around it."""
    u, v = (axis for axis in range(3) if axis != patch.normal)
    corners = np.array([patch.low] * 4, dtype=np.float64)
    corners[[1, 2], u] = patch.high[u]
    corners[[2, 3], v] = patch.high[v]
    return corners
