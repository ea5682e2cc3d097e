"""Pictures of a field in space, and flat pictures of grids of one plane."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from heatsim.counts import plain
from heatsim.grid import Grid
from heatsim.render.page.axes import Image, add_view
from heatsim.render.page.caption import Caption
from heatsim.render.page.figure import WIDTH, add_colour_bar, new_figure
from heatsim.render.page.layout import Panel, view_height
from heatsim.render.page.levels import Isotherm, uniform_colour
from heatsim.render.page.samples import wide_axes
from heatsim.render.page.scales import Scale
from heatsim.render.page.view import VIEW_MARGINS, Camera, View, drawn_size
from heatsim.render.spatial.section_pictures import SectionsToDraw, draw_panel

# A flat picture has a whole number of pixels per cell. It becomes larger than this if it has more cells.
_PLANE_WIDTH, _PLANE_HEIGHT = 1230, 960
_LARGEST_PLANE = 4096
_PART_HEIGHT, _BELOW_PLANE = 700, 130
_HEADING = 80
_BESIDE_VIEW = 320  # for the colour bar or the legend of isosurfaces
_LETTERS_BESIDE_VIEW = 13


def view_beside(grid: Grid, camera: Camera) -> View:
    """The 3-D view of a page with nothing else than a colour bar or a legend."""
    size, width = drawn_size(grid), WIDTH - _BESIDE_VIEW
    return View.fitting(width, round(min(view_height(size, width, camera), 1150.0)), VIEW_MARGINS, size, camera)


def draw_surface(path: Path, caption: Caption, grid: Grid, scale: Scale, view: View, image: Image) -> None:
    """Draw the surface of a body in void (``image``, seen through ``view``) in the colours of its cells."""
    height = max(view.height, 500)
    with new_figure(
        path, caption.title, WIDTH, caption.height() + height + _HEADING, description=caption.description
    ) as figure:
        add_view(figure, grid, view, image, (0, caption.height() + (height - view.height) // 2))
        add_colour_bar(figure, scale, (WIDTH - _BESIDE_VIEW + 60, caption.height() + 50, 26, height - 100))
        caption.draw(figure)


def draw_isosurfaces(
    path: Path,
    caption: Caption,
    grid: Grid,
    scale: Scale,
    levels: Sequence[Isotherm],
    view: View,
    image: Image,
) -> None:
    """Draw isosurfaces (``image``, seen through ``view``) with a legend of their temperatures."""
    from matplotlib.patches import Patch

    height = max(view.height, 500)
    with new_figure(
        path, caption.title, WIDTH, caption.height() + height + _HEADING, description=caption.description
    ) as figure:
        add_view(figure, grid, view, image, (0, caption.height() + (height - view.height) // 2))
        middle = plain(float(scale.drawn(0.5 * (scale.low + scale.high))), 6)
        entries = {fill(level.text, _LETTERS_BESIDE_VIEW): level.colour for level in levels} or {
            middle: uniform_colour()
        }
        patches = [Patch(facecolor=colour, edgecolor="#333333", linewidth=0.3) for colour in entries.values()]
        figure.legend(
            patches[::-1],
            list(entries)[::-1],
            loc="center left",
            bbox_to_anchor=((WIDTH - _BESIDE_VIEW + 10.0) / WIDTH, 0.5),
            title=("Isosurfaces\n" if levels else "Uniform\n") + fill(scale.label, 16),
            fontsize=8.0,
            title_fontsize=8.0,
            alignment="left",
        )
        caption.draw(figure)


def draw_plane(path: Path, caption: Caption, scale: Scale, shown: SectionsToDraw) -> None:
    """Draw a grid of one plane of cells as a flat picture, with its part enlarged below it, if there is one.

    Square cells become squares of a whole number of pixels.
    """
    grid = shown.grid
    level, upright = wide_axes(grid)
    normal = 3 - level - upright
    width, height = _plane_size(grid, (_PLANE_WIDTH, _PLANE_HEIGHT))
    larger = max(1.0, width / _PLANE_WIDTH)
    beside = height >= 400
    left, right, below, above = (round(margin * larger) for margin in (150, 220 if beside else 60, 90, 90))
    below = below if beside else round(250 * larger)
    part_width, part_height = (0, 0)
    if shown.part is not None:
        part_width, part_height = _plane_size(shown.part, (width, _PART_HEIGHT))
    room = part_height + round(_BELOW_PLANE * larger) if part_height else 0
    figure_width = max(left + width + right, 900)
    words = caption.height(figure_width, larger)
    below += words
    figure_height = below + room + height + above
    left += (figure_width - left - width - right) // 2
    with new_figure(path, caption.title, figure_width, figure_height, larger, caption.description) as figure:
        draw_panel(figure, scale, shown, Panel(normal, level, upright, left, below + room, width, height))
        if part_height:
            draw_panel(figure, scale, shown, Panel(normal, level, upright, left, below, part_width, part_height, True))
        place = (left + width + 30 * larger, below + room, 28 * larger, height)
        add_colour_bar(figure, scale, place if beside else (left, words + 100, width, 26))
        caption.draw(figure, figure_width, larger)


def _plane_size(grid: Grid, room: tuple[float, float]) -> tuple[int, int]:
    """Width and height in pixels of a flat picture that fits a room."""
    level, upright = wide_axes(grid)
    columns, rows = grid.cells[level], grid.cells[upright]
    size = drawn_size(grid)
    square = grid.uniform and abs(size[level] * rows / (size[upright] * columns) - 1.0) < 1e-9
    pixels_a_cell = min(room[0] // columns, room[1] // rows)
    if square and max(rows, columns) <= _LARGEST_PLANE:
        return columns * max(int(pixels_a_cell), 1), rows * max(int(pixels_a_cell), 1)
    factor = min(room[0] / size[level], room[1] / size[upright])
    return round(size[level] * factor), round(size[upright] * factor)
