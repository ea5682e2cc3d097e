"""Pictures of sections: a view in space with flat panels, and enlarged panels of the part where the field varies."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import Unit
from heatsim.grid import Grid
from heatsim.render.page.axes import Image, add_panel, add_view, ends_of, length_unit, place_text
from heatsim.render.page.caption import Caption
from heatsim.render.page.figure import WIDTH, add_colour_bar, new_figure
from heatsim.render.page.labels import PlacedLabels
from heatsim.render.page.layout import Page, Panel
from heatsim.render.page.levels import MeltFront
from heatsim.render.page.scales import PlainScale, Scale
from heatsim.render.page.section_cells import SectionCells
from heatsim.render.spatial.outlines import draw_outlines
from heatsim.render.spatial.sections import Section, oriented

_LAYER_WIDTH, _FRONT_WIDTH = 1.1, 1.0  # pt
_PART_COLOUR = "#00b8d4"
PART_REMARK = "Enlarged: the part in the blue frame."
_MOST_WITHOUT_SMOOTHING = 256


@dataclass(frozen=True)
class LayerLines:
    """A thin layer on a section: the colour of its material, and lines by both ends (x, y, z) in m.

    Attributes:
        colour: the colour of its material.
        lines: both ends of each line, shape (lines, 2, 3).
        filled: whether the lines bound an area of the material.
    """

    colour: str
    lines: NDArray[np.float64]
    filled: bool = False


@dataclass(frozen=True)
class SectionsToDraw:
    """The sections of a picture.

    Attributes:
        grid: the cells.
        sections: normal to x, y, z.
        materials: names of the materials.
        layers: thin layers on each section.
        part: of the body, which the page shows enlarged; None for none.
        fronts: the melt fronts to draw.
        names: of hot parts: the axis normal to the section that shows it, the text, and its place (x, y, z) in m.
        one: whether the grid has one plane: its section needs no title, and each cell is drawn with sharp edges.
    """

    grid: Grid
    sections: Sequence[Section]
    materials: Sequence[str] = ()
    layers: Sequence[Sequence[LayerLines]] = ((), (), ())
    part: Grid | None = None
    fronts: Sequence[MeltFront] = ()
    names: Sequence[tuple[int, str, Sequence[float]]] = ()
    one: bool = False


def draw_slices(
    path: Path, caption: Caption, scale: Scale, shown: SectionsToDraw, page: Page, image: Image | None
) -> None:
    """Draw planes normal to x, y and z as a 3-D view (``image``, if there is one) and as flat panels."""
    with new_figure(path, caption.title, WIDTH, page.height, description=caption.description) as figure:
        if page.view is not None and image is not None:
            axes = add_view(figure, shown.grid, page.view, image, page.place)
            if shown.part is not None:
                _draw_box(axes, shown.grid, page, shown.part)
        for panel in page.panels:
            draw_panel(figure, scale, shown, panel)
        add_colour_bar(figure, scale, page.bar)
        caption.draw(figure)


def draw_panel(figure: Any, scale: Scale, shown: SectionsToDraw, panel: Panel) -> None:
    """Draw a section: the field, melt fronts, outlines of materials and thin layers."""
    from matplotlib.colors import Normalize

    grid, section, unit = shown.grid, shown.sections[panel.normal], length_unit(shown.grid)
    axes = add_panel(figure, grid, panel, shown.part)
    limits = axes.get_xlim(), axes.get_ylim()
    cells = SectionCells(grid, panel.across, panel.up, unit)
    plane, labels = (oriented(of, panel.across, panel.up) for of in (section.values, section.materials))
    sharp = panel.enlarged or shown.one or max(plane.shape) < _MOST_WITHOUT_SMOOTHING
    cells.show(
        axes,
        scale.drawn(plane),
        "nearest" if sharp else "auto",
        cmap=scale.colour_map,
        norm=Normalize(*scale.limits),
    )
    _draw_fronts(axes, shown.fronts, plane, labels, cells)
    axes.set_xlim(limits[0])
    axes.set_ylim(limits[1])
    if not shown.one or len(np.unique(labels)) > 1:
        draw_outlines(axes, labels, shown.materials, cells)
    draw_layers(axes, shown.layers[panel.normal], (panel.across, panel.up), unit, scale)
    placed = PlacedLabels(axes)
    for text, place in ((text, place) for normal, text, place in shown.names if normal == panel.normal):
        at = place[panel.across] / unit.size, place[panel.up] / unit.size
        if all(low <= value <= high for (low, high), value in zip(limits, at, strict=True)):
            placed.add_name(at, text)
    if shown.part is not None and not panel.enlarged:
        _draw_frame(axes, panel, shown.part, unit)
    if panel.enlarged:
        for spine in axes.spines.values():
            spine.set(color=_PART_COLOUR, linewidth=1.2)
    if not shown.one:
        axes.set_title(place_text(grid, panel.normal, section.place), pad=2.5, loc=panel.title_side)


def _draw_fronts(
    axes: Any,
    fronts: Sequence[MeltFront],
    plane: NDArray[np.float64],
    labels: NDArray[np.uint8],
    cells: SectionCells,
) -> None:
    """Draw where materials melt. The outermost values reach to the edges of the section."""
    left, right, low, high = cells.ends
    across, up = cells.centres
    x, y = np.array([left, *across, right]), np.array([low, *up, high])
    for front in fronts:
        values = plane if front.material is None else np.where(labels == front.material, plane, np.nan)
        there = values[np.isfinite(values)]
        if there.size and float(there.min()) < front.temperature < float(there.max()):
            padded = np.pad(values, 1, mode="edge")
            axes.contour(x, y, padded, levels=[front.temperature], colors=front.colour, linewidths=_FRONT_WIDTH)


def draw_layers(axes: Any, layers: Sequence[LayerLines], along: tuple[int, int], unit: Unit, scale: Scale) -> None:
    """Draw thin layers on a section. If colours show materials, fill the area of a layer with that of its material.

    Args:
        axes: of the section.
        layers: on it.
        along: the axes of the body across and up.
        unit: of lengths.
        scale: of the colours.
    """
    limits = axes.get_xlim(), axes.get_ylim()
    for layer in layers:
        lines = layer.lines[:, :, list(along)] / unit.size
        if layer.filled and isinstance(scale, PlainScale) and scale.categories:
            axes.fill(*lines[:, 0].T, color=layer.colour, linewidth=0.0)
        for line in lines:
            axes.plot(*line.T, color=layer.colour, linewidth=_LAYER_WIDTH, solid_capstyle="butt")
    axes.set_xlim(limits[0])
    axes.set_ylim(limits[1])


def _draw_frame(axes: Any, panel: Panel, part: Grid, unit: Unit) -> None:
    """Draw where the enlarged part lies in a section."""
    (left, right), (low, high) = (ends_of(part, axis, unit) for axis in (panel.across, panel.up))
    axes.plot((left, right, right, left, left), (low, low, high, high, low), color=_PART_COLOUR, linewidth=0.8)


def _draw_box(axes: Any, grid: Grid, page: Page, part: Grid) -> None:
    """Draw the edges of the enlarged part in a view in space."""
    assert page.view is not None
    scale = np.array(page.view.size) / np.array(grid.size)
    low = (np.array(part.origin) - np.array(grid.origin)) * scale
    high = low + np.array(part.size) * scale
    for axis in range(3):
        u, v = (other for other in range(3) if other != axis)
        for at_u, at_v in ((low[u], low[v]), (low[u], high[v]), (high[u], low[v]), (high[u], high[v])):
            ends = np.empty((2, 3))
            ends[:, axis], ends[:, u], ends[:, v] = (low[axis], high[axis]), at_u, at_v
            axes.plot(*page.view.project(ends).T, color=_PART_COLOUR, linewidth=0.8)
