"""Pictures of snapshots: sections, surfaces and isosurfaces of 3-D grids, and flat pictures of planes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill, wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import AXES, Grid
from heatsim.render.figure import QUIET, SMALL, WIDTH, add_axes, add_colour_bar, add_text, new_figure
from heatsim.render.layout import Page, Panel, view_height
from heatsim.render.legend import Entry, draw_legend, height_of
from heatsim.render.outlines import draw_outlines, material_entries
from heatsim.render.scales import LENGTHS, Scale, Unit, choose_unit, ticks
from heatsim.render.sections import Section, wide_axes
from heatsim.render.view import VIEW_MARGINS, View, describe_stretch, drawn_size

_Image = NDArray[np.uint8]

# A flat picture has a whole number of pixels per cell. It becomes larger than this if it has more cells.
_PLANE_WIDTH, _PLANE_HEIGHT = 1230, 960
_LARGEST_PLANE = 4096
_INDENT, _LETTER = 40, 13.5
_REMARK_ROW = 44
_HEADING = 80
_BESIDE_VIEW = 320  # for the colour bar or the legend of isosurfaces


@dataclass(frozen=True)
class Caption:
    """The texts around a picture.

    Attributes:
        title: above it.
        materials: the names of the materials, for the legend.
        remarks: sentences below it.
        entries: the legend; by default that of the materials.
    """

    title: str
    materials: Sequence[str] = ()
    remarks: Sequence[str] = ()
    entries: Sequence[Entry] = ()

    @property
    def legend(self) -> Sequence[Entry]:
        """The entries of the legend."""
        return self.entries or material_entries(self.materials)

    def height(self, width: float = WIDTH, larger: float = 1.0) -> int:
        """The room in pixels for the legend and the remarks below a picture of some width."""
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
        """The remarks in lines that fit a width."""
        most = int((width - 2 * _INDENT) / _LETTER)
        together = "  ".join(filter(None, self.remarks))
        if len(together) <= most:
            return [together] if together else []
        return [line for remark in self.remarks for line in wrap(remark, most)]


def length_unit(grid: Grid) -> Unit:
    """The unit of a grid's lengths."""
    return choose_unit(LENGTHS, max(grid.size[axis] for axis in wide_axes(grid) or range(3)))


def ends_of(grid: Grid, axis: int, unit: Unit) -> tuple[float, float]:
    """The ends of the domain along an axis."""
    low = grid.origin[axis] / unit.size
    return low, low + grid.size[axis] / unit.size


def add_view(figure: Any, grid: Grid, view: View, image: _Image, place: tuple[int, int]) -> Any:
    """Draw a 3-D view with ticks along the three edges of the box that bound its outline; the axes, in its pixels."""
    from heatsim.render.raster import Raster

    axes = add_axes(figure, *place, view.width, view.height)
    figure.add_artist(Raster(image, *place))
    axes.set_xlim(0, view.width)
    axes.set_ylim(0, view.height)
    axes.set_axis_off()
    unit = length_unit(grid)
    x, y, z = view.size
    # Start and end of each edge, and the alignment of its text.
    edges = (
        ((0.0, 0.0, 0.0), (x, 0.0, 0.0), "right", "top"),
        ((x, 0.0, 0.0), (x, y, 0.0), "left", "top"),
        ((0.0, 0.0, 0.0), (0.0, 0.0, z), "right", "center"),
    )
    body = view.project(0.5 * np.array([view.size]))[0]
    for axis, (begin, end, across, up) in enumerate(edges):
        low, high = ends_of(grid, axis, unit)
        begin_at, end_at = view.project(np.array([begin, end]))
        along = end_at - begin_at
        length = float(np.linalg.norm(along))
        outward = np.array([along[1], -along[0]]) / length
        outward *= np.sign(outward @ (0.5 * (begin_at + end_at) - body))
        for value, text in ticks(low, high, min(5, int(length / 90))).items():
            at = begin_at + along * (value - low) / (high - low)
            axes.plot(*np.stack([at, at + 10 * outward]).T, color="black", linewidth=0.6)
            axes.text(*(at + 15 * outward), text, ha=across, va=up, fontsize=7.5)
        middle = 0.5 * (begin_at + end_at) + 100 * outward
        name, turned = f"{AXES[axis]} ({unit.symbol})", 90 if axis == 2 else 0
        axes.text(*middle, name, ha="center", va="center", rotation=turned)
    return axes


def draw_slices(
    path: Path,
    caption: Caption,
    grid: Grid,
    scale: Scale,
    sections: Sequence[Section],
    page: Page,
    image: _Image | None,
) -> None:
    """Draw planes normal to x, y and z as a 3-D view (``image``, if there is one) and as flat panels."""
    with new_figure(path, caption.title, WIDTH, page.height) as figure:
        if page.view is not None and image is not None:
            add_view(figure, grid, page.view, image, page.place)
        unit = length_unit(grid)
        for panel in page.panels:
            section = sections[panel.normal]
            axes = add_panel(figure, grid, panel)
            low, high = scale.limits
            plane, labels = oriented(section.values, panel), oriented(section.materials, panel)
            axes.imshow(
                scale.drawn(plane),
                extent=(*axes.get_xlim(), *axes.get_ylim()),
                origin="lower",
                cmap=scale.colour_map,
                vmin=low,
                vmax=high,
                aspect="auto",
                interpolation="nearest" if max(plane.shape) < 256 else "auto",
            )
            draw_outlines(axes, labels, caption.materials, (*axes.get_xlim(), *axes.get_ylim()))
            start, end = ends_of(grid, panel.normal, unit)
            place = f"{AXES[panel.normal]} = {start + section.place * (end - start):.4g} {unit.symbol}"
            axes.set_title(place.replace("-", "−"), pad=2.5, loc=panel.title_side)
        add_colour_bar(figure, scale, page.bar)
        caption.draw(figure)


def oriented(plane: NDArray[Any], panel: Panel) -> NDArray[Any]:
    """A section as the panel shows it, indexed [up, across]; sections are indexed with the higher axis first."""
    return plane if panel.up > panel.across else plane.T


def add_panel(figure: Any, grid: Grid, panel: Panel) -> Any:
    """Axes of a section with ticks and labels."""
    axes = add_axes(figure, panel.x, panel.y, panel.width, panel.height)
    unit = length_unit(grid)
    axes.set_xlim(*ends_of(grid, panel.across, unit))
    axes.set_ylim(*ends_of(grid, panel.up, unit))
    finish_plane(axes, grid, panel.across, panel.up)
    return axes


def finish_plane(axes: Any, grid: Grid, level: int, upright: int) -> None:
    """Draw the frame, ticks and labels of a section whose axes have their final size and limits."""
    unit = length_unit(grid)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(0.5)
    for which, axis, room in ((axes.xaxis, level, 95), (axes.yaxis, upright, 48)):
        pixels = axes.bbox.width if which is axes.xaxis else axes.bbox.height
        marks = ticks(*ends_of(grid, axis, unit), min(6, int(pixels / room)))
        which.set_ticks(list(marks), list(marks.values()))
        which.set_label_text(f"{AXES[axis]} ({unit.symbol})")


def view_beside(grid: Grid) -> View:
    """The 3-D view of a page with nothing else than a colour bar or a legend."""
    size, width = drawn_size(grid), WIDTH - _BESIDE_VIEW
    return View.fitting(width, round(min(view_height(size, width), 1150.0)), VIEW_MARGINS, size)


def draw_surface(path: Path, caption: Caption, grid: Grid, scale: Scale, view: View, image: _Image) -> None:
    """Draw the surface of a body in void (``image``, seen through ``view``) in the colours of its cells."""
    height = max(view.height, 500)
    with new_figure(path, caption.title, WIDTH, caption.height() + height + _HEADING) as figure:
        add_view(figure, grid, view, image, (0, caption.height() + (height - view.height) // 2))
        add_colour_bar(figure, scale, (WIDTH - _BESIDE_VIEW + 60, caption.height() + 50, 26, height - 100))
        caption.draw(figure)


def draw_isosurfaces(
    path: Path,
    caption: Caption,
    grid: Grid,
    scale: Scale,
    levels: Mapping[float, str],
    colours: Sequence[str],
    view: View,
    image: _Image,
) -> None:
    """Draw isosurfaces (``image``, seen through ``view``) with a legend of their temperatures."""
    from matplotlib.patches import Patch

    height = max(view.height, 500)
    with new_figure(path, caption.title, WIDTH, caption.height() + height + _HEADING) as figure:
        add_view(figure, grid, view, image, (0, caption.height() + (height - view.height) // 2))
        patches = [Patch(facecolor=colour, edgecolor="#333333", linewidth=0.3) for colour in colours]
        texts = list(levels.values()) if levels else [f"{float(scale.drawn(0.5 * (scale.low + scale.high))):.6g}"]
        figure.legend(
            patches[::-1],
            texts[::-1],
            loc="center left",
            bbox_to_anchor=((WIDTH - _BESIDE_VIEW + 10.0) / WIDTH, 0.5),
            title=("Isosurfaces\n" if levels else "Uniform\n") + fill(scale.label, 16),
            fontsize=8.0,
            title_fontsize=8.0,
            alignment="left",
        )
        caption.draw(figure)


def draw_plane(
    path: Path,
    caption: Caption,
    grid: Grid,
    scale: Scale,
    plane: NDArray[np.floating[Any]],
    labels: NDArray[np.uint8],
) -> None:
    """Draw a grid of one cell's thickness as a flat picture; ``plane`` is indexed [vertical, horizontal].

    Square cells become squares of a whole number of pixels.
    """
    level, upright = wide_axes(grid)
    width, height = _plane_size(grid, plane.shape)
    larger = max(1.0, width / _PLANE_WIDTH)
    beside = height >= 400
    left, right, below, above = (round(margin * larger) for margin in (150, 220 if beside else 60, 90, 90))
    below = below if beside else round(250 * larger)
    figure_width = max(left + width + right, 900)
    words = caption.height(figure_width, larger)
    below += words
    figure_height = below + height + above
    left += (figure_width - left - width - right) // 2
    with new_figure(path, caption.title, figure_width, figure_height, larger) as figure:
        axes = add_axes(figure, left, below, width, height)
        extent = (*ends_of(grid, level, length_unit(grid)), *ends_of(grid, upright, length_unit(grid)))
        low, high = scale.limits
        axes.imshow(
            scale.drawn(plane),
            extent=extent,
            origin="lower",
            cmap=scale.colour_map,
            vmin=low,
            vmax=high,
            aspect="auto",
            interpolation="nearest",
        )
        finish_plane(axes, grid, level, upright)
        if len(np.unique(labels)) > 1:
            draw_outlines(axes, labels, caption.materials, extent)
        place = (left + width + 30 * larger, below, 28 * larger, height)
        add_colour_bar(figure, scale, place if beside else (left, words + 100, width, 26))
        caption.draw(figure, figure_width, larger)


def _plane_size(grid: Grid, shape: tuple[int, ...]) -> tuple[int, int]:
    """Width and height of a flat picture in pixels."""
    level, upright = wide_axes(grid)
    rows, columns = shape
    size = drawn_size(grid)
    square = abs(size[level] * rows / (size[upright] * columns) - 1.0) < 1e-9
    pixels_a_cell = min(_PLANE_WIDTH // columns, _PLANE_HEIGHT // rows)
    if square and max(rows, columns) <= _LARGEST_PLANE:
        return columns * max(pixels_a_cell, 1), rows * max(pixels_a_cell, 1)
    factor = min(_PLANE_WIDTH / size[level], _PLANE_HEIGHT / size[upright])
    return round(size[level] * factor), round(size[upright] * factor)


def remarks_of(grid: Grid, *others: str) -> list[str]:
    """Sentences for below a picture: the stretch of the drawing, and others."""
    return [remark for remark in (*others, describe_stretch(grid)) if remark]
