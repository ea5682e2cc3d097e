"""Where the 3-D view and the flat sections of a body stand on a page, so that flat and long bodies fill it too."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from heatsim.render.figure import WIDTH
from heatsim.render.view import VIEW_MARGINS, View, outline

# Pixels. Around each section there is room for its title, ticks and labels.
_LEFT, _BELOW, _ABOVE, _BETWEEN = 118, 88, 46, 20
_BAR = 190  # for the colour bar with its texts
_HEADING = 80
_NARROWEST = 200.0  # room for the title of a thin section
_LARGEST_HEIGHT = 1400

_Size = tuple[float, float, float]


@dataclass(frozen=True)
class Panel:
    """A section on the page: its place in pixels from the lower left, and the axes that it shows."""

    normal: int
    across: int
    up: int
    x: float
    y: float
    width: float
    height: float

    @property
    def title_side(self) -> str:
        """Where its title stands: that of a thin section begins at its left edge."""
        return "left" if self.width < _NARROWEST else "center"


@dataclass(frozen=True)
class Page:
    """A page with a 3-D view, sections and a colour bar; places are (x, y, width, height) in pixels.

    Attributes:
        height: of the page in pixels.
        view: the 3-D view; None where there is none.
        place: of the 3-D view.
        panels: the sections.
        bar: place of the colour bar itself.
    """

    height: int
    view: View | None
    place: tuple[int, int]
    panels: Sequence[Panel]
    bar: tuple[float, float, float, float]


# Columns of (normal, axis across, axis up), from left to right, each from above: as in an engineering drawing, side by
# side, one below the other, and the thin sections of flat or tall bodies beside the large one.
_ARRANGEMENTS: Sequence[Sequence[Sequence[tuple[int, int, int]]]] = (
    (((2, 0, 1), (1, 0, 2)), ((0, 2, 1),)),
    (((2, 0, 1),), ((1, 0, 2),), ((0, 1, 2),)),
    (((2, 0, 1), (1, 0, 2), (0, 1, 2)),),
    (((2, 0, 1),), ((1, 0, 2), (0, 1, 2))),
    (((1, 0, 2), (2, 0, 1)), ((0, 1, 2),)),
)


def arrange(size: _Size, with_view: bool = True, below: int = 0, with_bar: bool = True) -> Page:
    """The page on which the body is largest.

    Args:
        size: of the drawn box along x, y, z.
        with_view: whether there is a 3-D view.
        below: room in pixels for a legend and remarks at the lower edge.
        with_bar: whether there is a colour bar.
    """
    width, height = WIDTH - (_BAR if with_bar else 20), _LARGEST_HEIGHT - _HEADING
    if not with_view:
        return _finish(None, (0, 0), _fit(size, (20, below), (width - 20, height)), below)
    beside = [_beside(size, fraction, width, height, below) for fraction in (0.5, 0.56, 0.62)]
    stacked = [_stacked(size, fraction, width, height, below) for fraction in (0.45, 0.55, 0.65)]
    return max((*beside, *stacked, _quartered(size, width, height, below)), key=_usefulness)


def _usefulness(page: Page) -> float:
    """How large the body is on a page: the view counts more than the sections, and a lower page is better."""
    assert page.view is not None
    area = sum(panel.width * panel.height for panel in page.panels)
    return page.view.scale**2 * sqrt(area) / page.height


def _beside(size: _Size, fraction: float, width: float, height: float, below: int) -> Page:
    """The view on the left, sections on the right."""
    across = round(fraction * width)
    panels = _fit(size, (across, below), (width - across, height))
    used = max(panel.y + panel.height + _ABOVE for panel in panels) - below
    tall = round(min(height, max(used, view_height(size, across))))
    view = View.fitting(across, tall, VIEW_MARGINS, size)
    moved = _centred(panels, below, tall)
    return _finish(view, (0, below), moved, below)


def _stacked(size: _Size, fraction: float, width: float, height: float, below: int) -> Page:
    """The view above, sections below."""
    tall = round(min(fraction * height, view_height(size, width)))
    panels = _fit(size, (20, below), (width - 20, height - tall))
    top = max(panel.y + panel.height + _ABOVE for panel in panels)
    view = View.fitting(round(width), tall, VIEW_MARGINS, size)
    return _finish(view, (0, round(top)), panels, below)


def _quartered(size: _Size, width: float, height: float, below: int) -> Page:
    """The view and the three sections in a square of four."""
    half, around = width / 2.0, _BELOW + _ABOVE
    scale = min((half - _LEFT - _BETWEEN) / max(size[:2]), (height - 2 * around) / (size[1] + size[2]))
    lower, upper = scale * size[2] + around, scale * size[1] + around
    upper = min(max(upper, view_height(size, half)), height - lower)
    right = half + _LEFT
    panels = (
        Panel(2, 0, 1, right, below + lower + upper - _ABOVE - scale * size[1], scale * size[0], scale * size[1]),
        Panel(1, 0, 2, _LEFT, below + _BELOW, scale * size[0], scale * size[2]),
        Panel(0, 1, 2, right, below + _BELOW, scale * size[1], scale * size[2]),
    )
    view = View.fitting(round(half), round(upper), VIEW_MARGINS, size)
    return _finish(view, (0, round(below + lower)), panels, below)


def view_height(size: _Size, width: float) -> float:
    """The height in pixels that a 3-D view of a box needs if its outline is as wide as the view."""
    low, high = outline(size)
    across, up = VIEW_MARGINS
    return 2 * up + (width - 2 * across) * float((high[1] - low[1]) / (high[0] - low[0]))


def _centred(panels: Sequence[Panel], below: int, tall: float) -> Sequence[Panel]:
    """The panels in the middle between ``below`` and ``below + tall``."""
    low = min(panel.y for panel in panels) - _BELOW
    high = max(panel.y + panel.height for panel in panels) + _ABOVE
    shift = below + 0.5 * (tall - (high - low)) - low
    return [Panel(p.normal, p.across, p.up, p.x, p.y + shift, p.width, p.height) for p in panels]


def _finish(view: View | None, place: tuple[int, int], panels: Sequence[Panel], below: int) -> Page:
    top = max(panel.y + panel.height + _ABOVE for panel in panels)
    if view is not None:
        top = max(top, place[1] + view.height)
    bottom = below + 60.0
    bar = (WIDTH - _BAR + 10.0, bottom, 26.0, top - bottom - 20.0)
    return Page(round(top + _HEADING), view, place, panels, bar)


def _fit(size: _Size, corner: tuple[float, float], room: tuple[float, float]) -> Sequence[Panel]:
    """The arrangement of sections that is largest in a rectangle with a lower left corner; it stands at the corner."""
    placed = [_place(columns, size, corner, room) for columns in _ARRANGEMENTS]
    return max(placed, key=lambda panels: sum(panel.width * panel.height for panel in panels))


def _place(
    columns: Sequence[Sequence[tuple[int, int, int]]],
    size: _Size,
    corner: tuple[float, float],
    room: tuple[float, float],
) -> Sequence[Panel]:
    """The panels of one arrangement, as large as there is room."""
    widths = [max(size[across] for _, across, _ in column) for column in columns]
    heights = [sum(size[up] for _, _, up in column) for column in columns]
    across = room[0] - len(columns) * (_LEFT + _BETWEEN)
    scale = across / sum(widths)
    # Thin sections need room for their titles, which leaves less for the others.
    thin = [wide for wide in widths if scale * wide < _NARROWEST]
    if thin and len(thin) < len(widths):
        scale = (across - len(thin) * _NARROWEST) / (sum(widths) - sum(thin))
    for column, tall in zip(columns, heights, strict=True):
        scale = min(scale, (room[1] - len(column) * (_BELOW + _ABOVE)) / tall)
    top = max(len(column) * (_BELOW + _ABOVE) + scale * tall for column, tall in zip(columns, heights, strict=True))
    panels, x = [], corner[0]
    for column, wide in zip(columns, widths, strict=True):
        x += _LEFT
        y = corner[1] + top
        for normal, across, up in column:
            y -= _ABOVE + scale * size[up]
            panels.append(Panel(normal, across, up, x, y, scale * size[across], scale * size[up]))
            y -= _BELOW
        x += max(scale * wide, _NARROWEST if len(widths) > 1 else 0.0) + _BETWEEN
    return panels
