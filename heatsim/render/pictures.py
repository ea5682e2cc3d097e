"""Pictures of snapshots: slices and isosurfaces of 3-D grids, flat pictures of planes, curves of lines."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import AXES, Grid
from heatsim.render.figure import HEIGHT, add_axes, add_colour_bar, new_figure
from heatsim.render.scales import LENGTHS, TemperatureScale, Unit, choose_unit, colour_map, ticks
from heatsim.render.sections import Section, wide_axes
from heatsim.render.view import View, describe_stretch, drawn_size

# The area of the 3-D view in a picture, in pixels from the lower left: x, y, width, height.
VIEW = (0, 40, 1030, 1080)
VIEW_MARGIN = 128
_ISOSURFACES_WIDTH = 1300
_QUIET = "#444444"
_OUTLINE = "#8a9ba8"  # visible on the dark and the light end of the colour map

# A flat picture has a whole number of pixels per cell. It becomes larger than this if it has more cells.
_PLANE_WIDTH, _PLANE_HEIGHT = 1280, 960
_LARGEST_PLANE = 4096


def _length_unit(grid: Grid) -> Unit:
    return choose_unit(LENGTHS, max(grid.size[axis] for axis in wide_axes(grid)))


def _ends(grid: Grid, axis: int, unit: Unit) -> tuple[float, float]:
    low = grid.origin[axis] / unit.size
    return low, low + grid.size[axis] / unit.size


def _add_view(figure: Any, grid: Grid, view: View, image: NDArray[np.uint8]) -> None:
    """Draw a 3-D view with ticks along the three edges of the box that bound its outline."""
    from heatsim.render.raster import Raster

    axes = add_axes(figure, *VIEW)
    figure.add_artist(Raster(image, *VIEW[:2]))
    axes.set_xlim(0, view.width)
    axes.set_ylim(0, view.height)
    axes.set_axis_off()
    unit = _length_unit(grid)
    x, y, z = view.size
    # Start and end of each edge, and the alignment of its text.
    edges = (
        ((0.0, 0.0, 0.0), (x, 0.0, 0.0), "right", "top"),
        ((x, 0.0, 0.0), (x, y, 0.0), "left", "top"),
        ((0.0, 0.0, 0.0), (0.0, 0.0, z), "right", "center"),
    )
    body = view.project(0.5 * np.array([view.size]))[0]
    for axis, (begin, end, across, up) in enumerate(edges):
        low, high = _ends(grid, axis, unit)
        begin_at, end_at = view.project(np.array([begin, end]))
        along = end_at - begin_at
        length = float(np.linalg.norm(along))
        outward = np.array([along[1], -along[0]]) / length
        outward *= np.sign(outward @ (0.5 * (begin_at + end_at) - body))
        for value, text in ticks(low, high, min(5, int(length / 70))).items():
            at = begin_at + along * (value - low) / (high - low)
            axes.plot(*np.stack([at, at + 9 * outward]).T, color="black", linewidth=1.0)
            axes.text(*(at + 14 * outward), text, ha=across, va=up, fontsize=13)
        middle = 0.5 * (begin_at + end_at) + (80 if axis < 2 else 82) * outward
        axes.text(*middle, f"{AXES[axis]} ({unit.symbol})", ha="center", va="center", fontsize=15)


def draw_slices(
    path: Path,
    title: str,
    grid: Grid,
    scale: TemperatureScale,
    sections: Sequence[Section],
    view: View,
    image: NDArray[np.uint8],
) -> None:
    """Draw planes normal to x, y and z as a 3-D view (``image``, seen through ``view``) and as flat panels."""
    with new_figure(path, title) as figure:
        _add_view(figure, grid, view, image)
        unit = _length_unit(grid)
        for number, (normal, across, up) in enumerate(((2, 0, 1), (1, 0, 2), (0, 1, 2))):
            section = sections[normal]
            plane, materials = section.values, section.materials
            # The longer axis is horizontal, so that panels of tall and flat bodies have the same size.
            swapped = drawn_size(grid)[up] > 1.6 * drawn_size(grid)[across]
            level, upright = (up, across) if swapped else (across, up)
            axes = add_axes(figure, 1075, 825 - 355 * number, 350, 265)
            if swapped:
                plane, materials = plane.T, materials.T
            _show_plane(axes, grid, scale, plane, level, upright)
            _outline(axes, grid, materials, level, upright)
            low, high = _ends(grid, normal, unit)
            axes.set_title(f"{AXES[normal]} = {low + section.place * (high - low):.4g} {unit.symbol}", pad=8)
        add_colour_bar(figure, scale, (1478, 115, 26, 975))
        figure.text(0.02, 20.0 / HEIGHT, describe_stretch(grid), color=_QUIET, va="center")


def _show_plane(
    axes: Any, grid: Grid, scale: TemperatureScale, plane: NDArray[np.floating[Any]], level: int, upright: int
) -> None:
    unit = _length_unit(grid)
    horizontal, vertical = _ends(grid, level, unit), _ends(grid, upright, unit)
    low, high = scale.limits
    axes.imshow(
        scale.drawn(plane),
        extent=(*horizontal, *vertical),
        origin="lower",
        cmap=colour_map(),
        vmin=low,
        vmax=high,
        aspect="auto",
        interpolation="nearest" if max(plane.shape) < 256 else "auto",
    )
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.8)
    size = drawn_size(grid)
    axes.set_box_aspect(size[upright] / size[level])
    axes.set_anchor("C")
    for which, ends, axis in (
        (axes.xaxis, horizontal, level),
        (axes.yaxis, vertical, upright),
    ):
        extent = axes.bbox.width if which is axes.xaxis else axes.bbox.height
        longest = max(size[level] / axes.bbox.width, size[upright] / axes.bbox.height)
        pixels = min(extent, size[axis] / longest)
        marks = ticks(*ends, min(6, int(pixels / (70 if which is axes.xaxis else 40))))
        which.set_ticks(list(marks), list(marks.values()))
        which.set_label_text(f"{AXES[axis]} ({unit.symbol})")


def _outline(axes: Any, grid: Grid, materials: NDArray[np.uint8], level: int, upright: int) -> None:
    """Draw lines between cells of different materials; ``materials`` is indexed [vertical, horizontal]."""
    from matplotlib.collections import LineCollection

    unit = _length_unit(grid)
    rows, columns = materials.shape
    x, y = (np.linspace(*_ends(grid, axis, unit), n + 1) for axis, n in ((level, columns), (upright, rows)))
    row, column = np.nonzero(materials[:, 1:] != materials[:, :-1])
    lines = [((x[i], y[j]), (x[i], y[j + 1])) for j, i in zip(row, column + 1, strict=True)]
    row, column = np.nonzero(materials[1:] != materials[:-1])
    lines += [((x[i], y[j]), (x[i + 1], y[j])) for j, i in zip(row + 1, column, strict=True)]
    axes.add_collection(LineCollection(lines, colors=_OUTLINE, linewidths=0.8, capstyle="projecting"), autolim=False)


def draw_surface(
    path: Path, title: str, grid: Grid, scale: TemperatureScale, view: View, image: NDArray[np.uint8]
) -> None:
    """Draw the surface of a body in void (``image``, seen through ``view``) in the colours of its cells."""
    with new_figure(path, title, _ISOSURFACES_WIDTH) as figure:
        _add_view(figure, grid, view, image)
        add_colour_bar(figure, scale, (1110, 115, 26, 975))
        figure.text(0.02, 20.0 / HEIGHT, describe_stretch(grid), color=_QUIET, va="center")


def draw_isosurfaces(
    path: Path,
    title: str,
    grid: Grid,
    scale: TemperatureScale,
    levels: dict[float, str],
    colours: Sequence[str],
    view: View,
    image: NDArray[np.uint8],
    remark: str,
) -> None:
    """Draw isosurfaces (``image``, seen through ``view``) with a legend of their temperatures."""
    from matplotlib.patches import Patch

    with new_figure(path, title, _ISOSURFACES_WIDTH) as figure:
        _add_view(figure, grid, view, image)
        patches = [Patch(facecolor=colour, edgecolor="#333333", linewidth=0.6) for colour in colours]
        texts = list(levels.values()) if levels else [f"{0.5 * (scale.low + scale.high):.7g}"]
        legend = figure.legend(
            patches[::-1],
            texts[::-1],
            loc="center left",
            bbox_to_anchor=(1050.0 / _ISOSURFACES_WIDTH, 0.5),
            title=("Isosurfaces\n" if levels else "Uniform\n") + fill(scale.label, 18),
            fontsize=15,
            title_fontsize=15,
            labelspacing=0.7,
            handlelength=2.0,
            handleheight=1.1,
            alignment="left",
        )
        legend.get_title().set_linespacing(1.4)
        figure.text(
            0.02, 20.0 / HEIGHT, "   ".join(filter(None, (remark, describe_stretch(grid)))), color=_QUIET, va="center"
        )


def draw_plane(path: Path, title: str, grid: Grid, scale: TemperatureScale, plane: NDArray[np.floating[Any]]) -> None:
    """Draw a grid of one cell's thickness as a flat picture; ``plane`` is indexed [vertical, horizontal].

    Square cells become squares of a whole number of pixels.
    """
    level, upright = wide_axes(grid)
    rows, columns = plane.shape
    size = drawn_size(grid)
    square = abs(size[level] * rows / (size[upright] * columns) - 1.0) < 1e-9
    pixels_a_cell = min(_PLANE_WIDTH // columns, _PLANE_HEIGHT // rows)
    if square and max(rows, columns) <= _LARGEST_PLANE:
        width, height = columns * max(pixels_a_cell, 1), rows * max(pixels_a_cell, 1)
    else:
        factor = min(_PLANE_WIDTH / size[level], _PLANE_HEIGHT / size[upright])
        width, height = round(size[level] * factor), round(size[upright] * factor)
    larger = max(1.0, width / _PLANE_WIDTH)
    beside = height >= 400
    left, right, below, above = (round(margin * larger) for margin in (130, 230 if beside else 60, 100, 90))
    if not beside:
        below = 250
    figure_width, figure_height = max(left + width + right, 900), below + height + above
    left += (figure_width - left - width - right) // 2
    with new_figure(path, title, figure_width, figure_height, larger) as figure:
        axes = add_axes(figure, left, below, width, height)
        _show_plane(axes, grid, scale, plane, level, upright)
        axes.images[0].set_interpolation("nearest")
        axes.set_box_aspect(None)
        place = (left + width + 35 * larger, below, 28 * larger, height) if beside else (left, 110, width, 26)
        add_colour_bar(figure, scale, place)
        figure.text(0.01, 16.0 * larger / figure_height, describe_stretch(grid), color=_QUIET)


def draw_profile(
    path: Path,
    title: str,
    grid: Grid,
    axis: int,
    scale: TemperatureScale,
    curves: Sequence[tuple[str, NDArray[np.floating[Any]]]],
) -> None:
    """Draw temperatures along a line of cells, one curve for each time; ``curves`` has legend texts and values in K."""
    unit = choose_unit(LENGTHS, grid.size[axis])
    with new_figure(path, title) as figure:
        axes = add_axes(figure, 130, 110, 1200, 990)
        colours = colour_map()(np.linspace(0.0, 0.85, len(curves)))
        marker = "o" if grid.cells[axis] <= 50 else None
        for (text, values), colour in zip(curves, colours, strict=True):
            position = grid.centres(axis) / unit.size
            axes.plot(
                position, scale.drawn(values), color=colour, linewidth=2.2, marker=marker, markersize=5, label=text
            )
        axes.set_xlim(*_ends(grid, axis, unit))
        if scale.uniform:
            axes.set_ylim(*scale.limits)
        axes.set_xlabel(f"{AXES[axis]} ({unit.symbol})")
        axes.set_ylabel(scale.label)
        axes.grid(alpha=0.25)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="Time", fontsize=14)
