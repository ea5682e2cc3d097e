"""A picture of a scenario before it runs: materials, sources, patches, layers, contacts, probes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.counts import plain
from heatsim.grid import AXES
from heatsim.render.geometry.part_sections import (
    BEAM_COLOUR,
    CONTACT_COLOUR,
    PartSection,
    border_colour,
    draw_beam,
    draw_probe,
    layer_colour,
)
from heatsim.render.geometry.parts import Geometry, sign_of
from heatsim.render.page.axes import add_panel, add_view, length_unit
from heatsim.render.page.caption import Caption, remarks_of
from heatsim.render.page.figure import WIDTH, import_matplotlib, new_figure, title_of
from heatsim.render.page.labels import PlacedLabels
from heatsim.render.page.layout import Page, Panel, arrange
from heatsim.render.page.legend import LINE, POINT, Entry
from heatsim.render.page.view import drawn_size
from heatsim.render.spatial.layers import corners_of
from heatsim.render.spatial.outlines import material_entries
from heatsim.render.spatial.solids import SOURCE_COLOUR, SolidScene
from heatsim.storage.vtkhdf import VOID

_Floats = NDArray[np.float64]

_THIN = 120.0  # pixels
_TITLE_PAD = 5.0  # pt: above the signs of beams
_MOST_LAYERS = 40  # cells between the letter of a region in space and the edge of what is seen of it
_MOST_CONTACT_PLANES = 12  # of one contact in space; those of round parts have more
_MOST_ALONE = 3  # sources or contacts with an entry each in the legend


def draw(path: Path, geometry: Geometry, with_view: bool) -> None:
    """Draw a geometry in space, if ``with_view``, and in three sections that show most of it.

    Raises:
        StorageError: the picture could not be written.
    """
    import_matplotlib()
    grid = geometry.grid
    caption = Caption(
        title_of(geometry.title, "geometry"),
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
        cuts = [(panel, _section_of(geometry, panel.normal)) for panel in page.panels]
        named = _named_regions(geometry, cuts)
        for panel, index in cuts:
            axes = add_panel(figure, grid, panel)
            PartSection(axes, geometry, panel, index, named[panel.normal]).draw()
            unit = length_unit(grid)
            place = grid.centres(panel.normal)[index] / unit.size
            axes.set_title(
                f"{AXES[panel.normal]} = {plain(place, 4)} {unit.symbol}",
                pad=_TITLE_PAD,
                loc=panel.title_side,
            )
        caption.draw(figure)


def _named_regions(geometry: Geometry, cuts: Sequence[tuple[Panel, int]]) -> dict[int, set[int]]:
    """The numbers of the regions to mark with letters in each section, by the axis normal to it.

    In a thin section letters hide the parts, so only regions that are largest in this section are marked there.
    """
    areas = np.zeros((len(geometry.regions), 3))
    for panel, index in cuts:
        owners = np.take(geometry.owners, index, axis=2 - panel.normal)
        low, high = (of.widths / of.spacing for number, of in enumerate(geometry.grid.axes) if number != panel.normal)
        sizes = np.outer(high, low).reshape(-1)
        found = np.bincount(owners.reshape(-1), sizes, minlength=len(geometry.regions) + 1)[1:]
        areas[:, panel.normal] = found[: len(geometry.regions)] / owners.size * panel.width * panel.height
    return {
        panel.normal: {
            number
            for number, of_region in enumerate(areas)
            if min(panel.width, panel.height) >= _THIN or int(np.argmax(of_region)) == panel.normal
        }
        for panel, _ in cuts
    }


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
        PartSection(axes, geometry, panel, 0, range(len(geometry.regions))).draw()
        if len(wide) < 2:
            axes.set_yticks([])
            axes.set_ylabel("")
        caption.draw(figure)


def _entries(geometry: Geometry) -> Iterator[Entry]:
    """The legend; many things of a kind share an entry, and :func:`_remarks` has their names."""
    with_cells = set(np.unique(geometry.labels).tolist())
    yield from material_entries(geometry.materials, with_cells, {layer.material for layer in geometry.layers})
    for number, text in enumerate(geometry.regions):
        if (geometry.owners == number + 1).any():
            yield Entry(text, "black", POINT, sign_of(number))
    for name, kind, colour in (
        ("sources", geometry.sources, SOURCE_COLOUR),
        ("contacts", geometry.contacts, CONTACT_COLOUR),
    ):
        texts = [thing.text for thing in kind]
        for text in texts if len(texts) <= _MOST_ALONE else [name]:
            yield Entry(text, colour, LINE)
    for beam in geometry.beams:
        yield Entry(beam.text, BEAM_COLOUR, LINE)
    borders = [*(patch.text for patch in geometry.patches), *(surface.text for surface in geometry.surfaces)]
    for number, text in enumerate(borders):
        yield Entry(text, border_colour(number), LINE)
    for number, probe in enumerate(geometry.probes, 1):
        yield Entry(probe.text, "black", POINT, str(number))


def _remarks(geometry: Geometry) -> Iterator[str]:
    for name, kind in (("Sources", geometry.sources), ("Contacts", geometry.contacts)):
        if len(kind) > _MOST_ALONE:
            texts = (thing.text.removeprefix("source ").removeprefix("contact ") for thing in kind)
            yield f"{name}: {', '.join(texts)}."
    if geometry.layers:
        yield f"Layers: {', '.join(layer.text for layer in geometry.layers)}."
    yield from geometry.remarks


def _section_of(geometry: Geometry, axis: int) -> int:
    """The plane of cells normal to an axis that shows most materials, sources and probes; the nearest to the centre."""
    along = 2 - axis
    others = tuple(other for other in range(3) if other != along)
    cells, n = geometry.grid.axes[axis], geometry.grid.cells[axis]
    score = np.zeros(n)
    for number, name in enumerate(geometry.materials):
        if name != VOID:
            score += (geometry.labels == number).any(axis=others)
    for source in geometry.sources:
        score += source.cells.any(axis=others)
    for beam in geometry.beams:
        places = np.clip(cells.places(beam.points[:, axis]), 0, n - 1)
        if beam.normal != axis and np.ptp(places) < 1.0:  # the path lies in the plane
            score[int(places[0])] += 1.0
    for probe in geometry.probes:
        cell = np.floor(cells.places(probe.points[:, axis]))
        score[np.unique(np.clip(cell, 0, n - 1).astype(np.intp))] += 0.25
    # Rounded, so that both cells beside the centre are equally near.
    from_centre = np.round(np.abs(cells.fractions(np.arange(n) + 0.5) - 0.5), 9)
    return int(np.argmax(score - 1e-3 * from_centre - 0.2 * from_centre))


def _draw_space(figure: Any, geometry: Geometry, page: Page) -> None:
    """Draw the 3-D view, then patches, layers, beams, and labels of probes and regions on it."""
    from matplotlib.colors import to_rgba

    assert page.view is not None
    view, grid = page.view, geometry.grid
    with SolidScene(grid, view) as scene:
        image = scene.solids(geometry.labels, geometry.materials, [source.cells for source in geometry.sources])
    axes = add_view(figure, grid, view, image, page.place)
    size = np.array(view.size) / np.array(grid.size)

    def project(points: _Floats) -> _Floats:
        return view.project((points - np.array(grid.origin)) * size)

    for rectangle, colour, alpha in (
        *((layer, layer_colour(geometry, layer), 0.1) for layer in geometry.layers),
        *((patch, border_colour(number), 0.3) for number, patch in enumerate(geometry.patches)),
    ):
        corners = project(corners_of(rectangle.normal, rectangle.low, rectangle.high))
        axes.fill(*corners.T, facecolor=to_rgba(colour, alpha), edgecolor=colour, linewidth=0.8)
    for contact in geometry.contacts:
        rectangles = list(contact.rectangles(grid))
        for rectangle in rectangles if len(rectangles) <= _MOST_CONTACT_PLANES else ():
            corners = project(corners_of(rectangle.normal, rectangle.low, rectangle.high))
            axes.fill(*corners.T, facecolor="none", edgecolor=CONTACT_COLOUR, linewidth=0.8)
    labels = PlacedLabels(axes)
    for beam in geometry.beams:
        draw_beam(axes, project(beam.points), project(beam.spot))
        labels.avoid(project(beam.spot))
    for number, probe in enumerate(geometry.probes, 1):
        draw_probe(axes, labels, project(probe.points), number)
    for number, place in _seen_from_above(geometry):
        labels.add_area(project(place[None]), sign_of(number))


def _seen_from_above(geometry: Geometry) -> Iterator[tuple[int, _Floats]]:
    """The regions that are visible in the 3-D view, with a place in m on their upper faces, far from other parts."""
    grid = geometry.grid
    clear = np.array([name == VOID for name in geometry.materials])[geometry.labels] | (geometry.owners == 0)
    for number in range(len(geometry.regions)):
        inside = geometry.owners == number + 1
        if not inside.any():
            continue
        top = int(np.flatnonzero(inside.any(axis=(1, 2)))[-1])
        seen = inside[top] & clear[top + 1 :].all(axis=0)
        if seen.any():
            cells = np.argwhere(_core(seen))
            row, column = cells[np.abs(cells - cells.mean(axis=0)).sum(axis=1).argmin()]
            place = [grid.centres(0)[column], grid.centres(1)[row], grid.axes[2].borders[top + 1]]
            yield number, np.array(place)


def _core(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The cells of an area that are farthest from its edge, or at least ``_MOST_LAYERS`` cells away."""
    for _ in range(_MOST_LAYERS):
        rows = np.pad(inside, 1)
        less = np.logical_and.reduce([rows[1 + i : rows.shape[0] - 1 + i] for i in (-1, 0, 1)])
        less = np.logical_and.reduce([less[:, 1 + i : less.shape[1] - 1 + i] for i in (-1, 0, 1)])
        if not less.any():
            break
        inside = less
    return inside
