"""Where the 3-D view and the flat sections of a body stand on a page, so that flat and long bodies fill it too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import log

from heatsim.render.page.figure import WIDTH
from heatsim.render.page.view import DEFAULT_CAMERA, VIEW_MARGINS, Camera, View

# Pixels. Around each section there is room for its title, ticks and labels.
LEFT, BELOW, ABOVE, BETWEEN = 118, 88, 46, 20
_BAR = 190  # for the colour bar with its texts
_HEADING = 80
NARROWEST = 240.0  # room for the title of a thin section
_LARGEST_HEIGHT = 1450
_LARGEST_WITH_PART = 2000
_USUAL_TEXTS = 200  # below the sections; more make the page higher
# Fractions of the page for the first of two blocks, which are side by side or one above the other.
_FRACTIONS = (0.35, 0.42, 0.5, 0.58, 0.65)
# Weights in the score of a page: the sizes of the view, of the sections and of enlarged ones; a low page.
_VIEW_COUNTS, _SECTIONS_COUNT, _HEIGHT_COUNTS = 0.6, 0.6, 0.7
_ROUNDING = 1e-6  # pixels
_LARGE_ENOUGH = 1100.0  # pixels: a larger section shows no more

Size = tuple[float, float, float]


@dataclass(frozen=True)
class Panel:
    """A section on the page: its place in pixels from the lower left, and the axes that it shows.

    Attributes:
        normal: the axis normal to it.
        across: the axis to the right.
        up: the axis upwards.
        x, y: its lower left corner.
        width, height: its size.
        enlarged: whether it shows a part of the body.
    """

    normal: int
    across: int
    up: int
    x: float
    y: float
    width: float
    height: float
    enlarged: bool = False

    @property
    def title_side(self) -> str:
        """Where its title stands: that of a thin section begins at its left edge."""
        return "left" if self.width < NARROWEST else "center"


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


# The normal of a section, and its axes across and up.
Axes = tuple[int, int, int]
_X, _Y, _Z, _X_LYING = (0, 1, 2), (1, 0, 2), (2, 0, 1), (0, 2, 1)
# Columns from left to right, each listed from above. The arrangements: as in an engineering drawing, side by side, one
# below the other, and with the thin sections of flat or tall bodies beside the large one.
_ARRANGEMENTS: Sequence[Sequence[Sequence[Axes]]] = (
    ((_Z, _Y), (_X_LYING,)),
    ((_Z,), (_Y,), (_X,)),
    ((_Z, _Y, _X),),
    ((_Z,), (_Y, _X)),
    ((_Y, _Z), (_X,)),
    ((_Y,), (_X, _Z)),
)


@dataclass(frozen=True)
class _Block:
    """Sections of a body or of its part, all to the same scale.

    Attributes:
        size: of the drawn box along x, y, z.
        normals: of its sections.
        enlarged: whether it is the part.
    """

    size: Size
    normals: Sequence[int]
    enlarged: bool = False

    def fit(self, corner: tuple[float, float], room: tuple[float, float]) -> Sequence[Panel]:
        """The arrangement that is largest in a rectangle, at its lower left corner; none if none fits."""
        placed = [panels for axes in self._arrangements() if (panels := self._place(axes, corner, room))]
        return max(placed, key=lambda panels: (_area(panels), -_top(panels)), default=())

    def _arrangements(self) -> Iterator[Sequence[Sequence[Axes]]]:
        for columns in _ARRANGEMENTS:
            kept = [[axes for axes in column if axes[0] in self.normals] for column in columns]
            yield [column for column in kept if column]

    def _place(
        self, axes: Sequence[Sequence[Axes]], corner: tuple[float, float], room: tuple[float, float]
    ) -> Sequence[Panel]:
        """The panels of one arrangement, as large as possible; an empty result if there is not enough room."""
        widths = [max(self.size[across] for _, across, _ in column) for column in axes]
        heights = [sum(self.size[up] for _, _, up in column) for column in axes]
        across = room[0] - len(axes) * (LEFT + BETWEEN)
        scale = across / sum(widths)
        # Thin sections need room for their titles, which leaves less for the others.
        thin = [wide for wide in widths if scale * wide < NARROWEST]
        if thin and len(thin) < len(widths):
            scale = (across - len(thin) * NARROWEST) / (sum(widths) - sum(thin))
        for column, tall in zip(axes, heights, strict=True):
            scale = min(scale, (room[1] - len(column) * (BELOW + ABOVE)) / tall)
        columns = [max(scale * wide, NARROWEST if len(widths) > 1 else 0.0) for wide in widths]
        if scale <= 0.0 or sum(columns) > across + _ROUNDING:
            return []
        top = max(len(column) * (BELOW + ABOVE) + scale * tall for column, tall in zip(axes, heights, strict=True))
        panels, x = [], corner[0]
        for column, wide in zip(axes, columns, strict=True):
            x += LEFT
            y = corner[1] + top
            for normal, level, up in column:
                y -= ABOVE + scale * self.size[up]
                width, height = scale * self.size[level], scale * self.size[up]
                panels.append(Panel(normal, level, up, x, y, width, height, self.enlarged))
                y -= BELOW
            x += wide + BETWEEN
        return panels


def arrange(
    size: Size,
    with_view: bool = True,
    below: int = 0,
    with_bar: bool = True,
    normals: Sequence[int] = (0, 1, 2),
    part: Size | None = None,
    inside: Sequence[int] = (0, 1, 2),
    camera: Camera = DEFAULT_CAMERA,
) -> Page:
    """The page on which the body is largest.

    Args:
        size: of the drawn box along x, y, z.
        with_view: whether there is a 3-D view.
        below: room in pixels for a legend and remarks at the lower edge.
        with_bar: whether there is a colour bar.
        normals: the axes normal to the sections.
        part: the drawn size of a part of the body, whose sections are drawn too; None without a part.
        inside: the axes normal to the sections that go through the part.
        camera: of the 3-D view.
    """
    width = float(WIDTH - (_BAR if with_bar else 20))
    height = (_LARGEST_HEIGHT if part is None else _LARGEST_WITH_PART) - _HEADING - min(below, _USUAL_TEXTS)
    blocks = [_Block(size, normals)]
    if part is not None and (through := [axis for axis in normals if axis in inside]):
        blocks.append(_Block(part, through, enlarged=True))
    pages = _pages(size if with_view else None, blocks, (0.0, float(below)), (width, float(height)), below, camera)
    return max(pages, key=_usefulness)


def _pages(
    viewed: Size | None,
    blocks: Sequence[_Block],
    corner: tuple[float, float],
    room: tuple[float, float],
    below: int,
    camera: Camera,
) -> Iterator[Page]:
    """All ways to divide a rectangle among a 3-D view and blocks of sections."""
    (x, y), (width, height) = corner, room
    if viewed is None:
        for panels in _placed(blocks, corner, room):
            yield _finish(None, (0, 0), panels, below)
        return
    for fraction in _FRACTIONS:
        across = round(fraction * width)
        for panels in _placed(blocks, (x + across, y), (width - across, height)):
            tall = round(min(height, max(_top(panels) - y, view_height(viewed, across, camera))))
            view = View.fitting(across, tall, VIEW_MARGINS, viewed, camera)
            yield _finish(view, (round(x), round(y)), _centred(panels, y, tall), below)
        tall = round(min(fraction * height, view_height(viewed, width, camera)))
        for panels in _placed(blocks, corner, (width, height - tall)):
            view = View.fitting(round(width), tall, VIEW_MARGINS, viewed, camera)
            yield _finish(view, (round(x), round(_top(panels))), panels, below)
    if len(blocks) == 1 and len(blocks[0].normals) == 3:
        yield _quartered(viewed, width, height, below, camera)


def _placed(
    blocks: Sequence[_Block], corner: tuple[float, float], room: tuple[float, float]
) -> Iterator[Sequence[Panel]]:
    """All ways to place one or two blocks of sections in a rectangle: side by side, or one above the other."""
    (x, y), (width, height) = corner, room
    if len(blocks) == 1:
        yield from filter(None, [blocks[0].fit(corner, room)])
        return
    body, part = blocks
    for fraction in _FRACTIONS:
        across = fraction * width
        one = body.fit((x, y), (across, height))
        other = part.fit((x + across, y), (width - across, height))
        if one and other:
            tall = max(_top(one), _top(other)) - y
            yield [*_centred(one, y, tall), *_centred(other, y, tall)]
        if lower := part.fit((x, y), (width, fraction * height)):
            upper = body.fit((x, _top(lower)), (width, (1.0 - fraction) * height))
            if upper:
                yield [*upper, *lower]


def _quartered(size: Size, width: float, height: float, below: int, camera: Camera) -> Page:
    """The view and the three sections in a square of four."""
    half, around = width / 2.0, BELOW + ABOVE
    scale = min((half - LEFT - BETWEEN) / max(size[:2]), (height - 2 * around) / (size[1] + size[2]))
    lower, upper = scale * size[2] + around, scale * size[1] + around
    upper = min(max(upper, view_height(size, half, camera)), height - lower)
    right = half + LEFT
    panels = (
        Panel(2, 0, 1, right, below + lower + upper - ABOVE - scale * size[1], scale * size[0], scale * size[1]),
        Panel(1, 0, 2, LEFT, below + BELOW, scale * size[0], scale * size[2]),
        Panel(0, 1, 2, right, below + BELOW, scale * size[1], scale * size[2]),
    )
    view = View.fitting(round(half), round(upper), VIEW_MARGINS, size, camera)
    return _finish(view, (0, round(below + lower)), panels, below)


def view_height(size: Size, width: float, camera: Camera = DEFAULT_CAMERA) -> float:
    """The height in pixels that a 3-D view of a box needs if its outline is as wide as the view."""
    low, high = camera.outline(size)
    left, right, below, above = VIEW_MARGINS
    return below + above + (width - left - right) * float((high[1] - low[1]) / (high[0] - low[0]))


def _usefulness(page: Page) -> float:
    """The score of a page: large sections, a large view and a low page are better."""
    total = -_HEIGHT_COUNTS * log(page.height)
    if page.view is not None:
        low, high = page.view.camera.outline(page.view.size)
        total += _VIEW_COUNTS * log(page.view.scale * float(max(high - low)))
    for enlarged in (False, True):
        if panels := [panel for panel in page.panels if panel.enlarged == enlarged]:
            longest = max(max(panel.width, panel.height) for panel in panels)
            total += _SECTIONS_COUNT * log(min(longest, _LARGE_ENOUGH))
    return total


def _area(panels: Sequence[Panel]) -> float:
    return sum(panel.width * panel.height for panel in panels)


def _top(panels: Sequence[Panel]) -> float:
    """The upper edge of panels with their titles."""
    return max(panel.y + panel.height + ABOVE for panel in panels)


def _centred(panels: Sequence[Panel], below: float, tall: float) -> Sequence[Panel]:
    """The panels in the middle between ``below`` and ``below + tall``."""
    low = min(panel.y for panel in panels) - BELOW
    shift = below + 0.5 * (tall - (_top(panels) - low)) - low
    return [replace(panel, y=panel.y + shift) for panel in panels]


def _finish(view: View | None, place: tuple[int, int], panels: Sequence[Panel], below: int) -> Page:
    top = _top(panels)
    if view is not None:
        top = max(top, place[1] + view.height)
    bottom = min(chain((panel.y for panel in panels), [below + BELOW]))
    bar = (WIDTH - _BAR + 10.0, bottom, 26.0, top - bottom - 20.0)
    return Page(round(top + _HEADING), view, place, panels, bar)
