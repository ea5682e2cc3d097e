"""Axes of 3-D views and flat sections: their limits, ticks and labels."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import LENGTHS, Unit, choose_unit
from heatsim.counts import plain
from heatsim.grid import AXES, Grid
from heatsim.render.page.figure import TICK_SIZE, add_axes, text_width
from heatsim.render.page.layout import Panel
from heatsim.render.page.samples import wide_axes
from heatsim.render.page.scales import ticks
from heatsim.render.page.view import View

Image = NDArray[np.uint8]

_TICK_HEIGHT, _TICK_GAP = 40.0, 14.0  # pixels
_SHORTEST_EDGE = 20.0  # pixels: shorter edges have no ticks
_ASIDE = 0.1
_ALIGNMENTS = (("right", "center", "left"), ("top", "center", "bottom"))
_LABEL_AWAY = 82.0  # pixels from an edge in space to the middle of its label, for ticks without a width


def length_unit(grid: Grid) -> Unit:
    """The unit of a grid's lengths."""
    return choose_unit(LENGTHS, max(grid.size[axis] for axis in wide_axes(grid) or range(3)))


def ends_of(grid: Grid, axis: int, unit: Unit) -> tuple[float, float]:
    """The ends of the domain along an axis."""
    low = grid.origin[axis] / unit.size
    return low, low + grid.size[axis] / unit.size


def add_view(figure: Any, grid: Grid, view: View, image: Image, place: tuple[int, int]) -> Any:
    """Draw a 3-D view with ticks along three edges of the box; returns the axes, whose coordinates are its pixels."""
    from heatsim.render.page.raster import Raster

    axes = add_axes(figure, *place, view.width, view.height)
    figure.add_artist(Raster(image, *place))
    axes.set_xlim(0, view.width)
    axes.set_ylim(0, view.height)
    axes.set_axis_off()
    unit = length_unit(grid)
    body = view.project(0.5 * np.array([view.size]))[0]
    for axis in range(3):
        begin_at, end_at = _labelled_edge(view, axis)
        along = end_at - begin_at
        length = float(np.linalg.norm(along))
        if length < _SHORTEST_EDGE:
            continue
        low, high = ends_of(grid, axis, unit)
        outward = np.array([along[1], -along[0]]) / length
        outward *= np.sign(outward @ (0.5 * (begin_at + end_at) - body))
        across, up = (_side(part, names) for part, names in zip(outward, _ALIGNMENTS, strict=True))
        marks = ticks(low, high, min(5, int(length / 90)))
        for value, text in marks.items():
            at = begin_at + along * (value - low) / (high - low)
            axes.plot(*np.stack([at, at + 10 * outward]).T, color="black", linewidth=0.6)
            axes.text(*(at + 15 * outward), text, ha=across, va=up, fontsize=7.5)
        widest = max(text_width(text, TICK_SIZE) for text in marks.values())
        middle = 0.5 * (begin_at + end_at) + (_LABEL_AWAY + 0.5 * widest) * outward
        name, turned = f"{grid.axis_names[axis]} ({unit.symbol})", 90 if abs(along[1]) > abs(along[0]) else 0
        axes.text(*middle, name, ha="center", va="center", rotation=turned)
    return axes


def _labelled_edge(view: View, axis: int) -> NDArray[np.float64]:
    """Both ends in the image of the edge along an axis that has its ticks: of the outline, the lowest or leftmost."""
    ends = np.zeros((2, 3))
    ends[1, axis] = view.size[axis]
    found = []
    for sides in view.camera.silhouette(axis) or [(0, 0)]:
        for other, side in zip((other for other in range(3) if other != axis), sides, strict=True):
            ends[:, other] = side * view.size[other]
        found.append(view.project(ends))
    along = np.abs(found[0][1] - found[0][0])
    return min(found, key=lambda edge: float(edge[:, 0 if along[1] > along[0] else 1].mean()))


def _side(part: float, names: tuple[str, str, str]) -> str:
    """The alignment of a text beside an edge, by a component of the direction away from the body."""
    return names[0] if part < -_ASIDE else names[2] if part > _ASIDE else names[1]


def add_panel(figure: Any, grid: Grid, panel: Panel, part: Grid | None = None) -> Any:
    """Axes of a section with ticks and labels. An enlarged panel shows a part of the body."""
    axes = add_axes(figure, panel.x, panel.y, panel.width, panel.height)
    unit = length_unit(grid)
    for axis, limit in ((panel.across, axes.set_xlim), (panel.up, axes.set_ylim)):
        limit(*ends_of(part if panel.enlarged and part is not None else grid, axis, unit))
    finish_plane(axes, grid, panel.across, panel.up)
    return axes


def finish_plane(axes: Any, grid: Grid, level: int, upright: int) -> None:
    """Draw the frame, ticks and labels of a section whose axes have their final size and limits."""
    from matplotlib import rcParams

    unit = length_unit(grid)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.5)
    box, larger = axes.get_window_extent(), rcParams["xtick.labelsize"] / TICK_SIZE
    for which, axis, limits, room in (
        (axes.xaxis, level, axes.get_xlim(), box.width / larger),
        (axes.yaxis, upright, axes.get_ylim(), box.height / larger),
    ):
        low, high = limits
        marks = fitting_ticks(low, high, room, is_level=which is axes.xaxis)
        which.set_ticks(list(marks), list(marks.values()))
        which.set_label_text(f"{grid.axis_names[axis]} ({unit.symbol})")


def fitting_ticks(low: float, high: float, room: float, is_level: bool) -> dict[float, str]:
    """Ticks whose texts do not overlap on a horizontal or vertical axis of ``room`` pixels."""
    marks: dict[float, str] = {}
    for most in range(6, 0, -1):
        marks = ticks(low, high, most)
        one, other, *_ = marks
        widest = max(text_width(text, TICK_SIZE) for text in marks.values()) + _TICK_GAP
        if (other - one) / (high - low) * room >= (widest if is_level else _TICK_HEIGHT):
            return marks
    first, *_, last = marks
    return {value: marks[value] for value in (first, last)}


def describe_box(grid: Grid) -> str:
    """The ends of a grid as text: ``"x from 30 to 38 mm, y from …"``."""
    unit = length_unit(grid)
    ends = (ends_of(grid, axis, unit) for axis in range(3))
    texts = (f"{name} from {plain(low, 4)} to {plain(high, 4)}" for name, (low, high) in zip(AXES, ends, strict=True))
    return f"{', '.join(texts)} {unit.symbol}"


def place_text(grid: Grid, axis: int, place: float) -> str:
    """The place of a section, as a fraction of the box, as text: ``"x = 50 mm"``."""
    unit = length_unit(grid)
    start, end = ends_of(grid, axis, unit)
    return f"{AXES[axis]} = {plain(start + place * (end - start), 4)} {unit.symbol}"
