"""Place labels so that they do not overlap: numbers of points and letters of regions move aside if there is no room."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.render.page.figure import SMALL, text_width

_HEIGHT, _PADDING = 34.0, 16.0  # pixels
_POINT = 3.0  # pt
_NEAR = 8.0  # pixels around a point
# Directions and distances in pixels from a point to its label, the nearest first.
_STEPS = [(0.0, 0.0)] + [
    (distance * np.cos(angle), distance * np.sin(angle))
    for distance in (30.0, 45.0, 65.0, 90.0, 130.0)
    for angle in np.radians([45.0, 135.0, -45.0, -135.0, 90.0, -90.0, 0.0, 180.0])
]

_Box = tuple[float, float, float, float]


class PlacedLabels:
    """The labels on Matplotlib axes whose size and limits are final."""

    def __init__(self, axes: Any) -> None:
        box = axes.get_window_extent()
        self._axes, self._taken = axes, list[_Box]()
        self._inside = (box.x0, box.y0, box.x1, box.y1)

    def avoid(self, places: NDArray[np.float64]) -> None:
        """Keep labels away from these places, shape (n, 2)."""
        self._taken += [(x - _NEAR, y - _NEAR, x + _NEAR, y + _NEAR) for x, y in self._pixels(places).tolist()]

    def add_point(self, place: Sequence[float], sign: str) -> None:
        """Add a point with its sign beside it, in the coordinates of the axes."""
        x, y = self._pixels([place])[0]
        self._axes.plot(*place, color="black", marker="o", markersize=_POINT, clip_on=False, zorder=6)
        self._taken.append((x - _NEAR, y - _NEAR, x + _NEAR, y + _NEAR))
        self._draw(self._free([(x, y)], sign, _STEPS[1:]), (x, y), sign, "circle,pad=0.12")

    def add_name(self, place: Sequence[float], name: str) -> None:
        """Add a point with a name beside it; nothing if there is no room for the name."""
        (x, y), half = self._pixels([place])[0], 0.5 * text_width(name, SMALL) + _PADDING
        steps = [(side * half, up) for up in (45.0, -45.0, 90.0, -90.0) for side in (0.0, 1.0, -1.0)]
        at = self._free([(x, y)], name, steps)
        if at is not None:
            self._axes.plot(*place, color="black", marker="o", markersize=_POINT, clip_on=False, zorder=6)
            self._draw(at, (x, y), name, "square,pad=0.15")

    def add_area(self, places: NDArray[np.float64], sign: str) -> None:
        """Add a sign at the first place with room, shape (n, 2); if none has room, beside the first place."""
        pixels = [(float(x), float(y)) for x, y in self._pixels(places)]
        inside = self._free(pixels, sign, _STEPS[:1])
        at = inside or self._free(pixels[:1], sign, _STEPS)
        self._draw(at, inside or pixels[0], sign, "square,pad=0.15")

    def _pixels(self, places: Any) -> Any:
        return self._axes.transData.transform(np.asarray(places, dtype=np.float64))

    def _free(
        self, places: Iterable[tuple[float, float]], sign: str, steps: Sequence[tuple[float, float]]
    ) -> tuple[float, float] | None:
        """A free place for a label inside the axes."""
        for x, y in places:
            for across, up in steps:
                box = _box_of(x + across, y + up, sign)
                if _within(box, self._inside) and not any(_overlap(box, other) for other in self._taken):
                    return x + across, y + up
        return None

    def _draw(self, at: tuple[float, float] | None, point: tuple[float, float], sign: str, style: str) -> None:
        place = point if at is None else at
        self._taken.append(_box_of(*place, sign))
        to_data = self._axes.transData.inverted()
        if abs(place[0] - point[0]) + abs(place[1] - point[1]) > 1.0:
            ends = to_data.transform([point, place])
            self._axes.plot(*ends.T, color="black", linewidth=0.5, clip_on=False, zorder=5)
        self._axes.text(
            *to_data.transform(place),
            sign,
            ha="center",
            va="center",
            fontsize=SMALL,
            zorder=7,
            bbox={"boxstyle": style, "facecolor": "white", "edgecolor": "black", "linewidth": 0.5},
        )


def _box_of(x: float, y: float, sign: str) -> _Box:
    half = max(0.5 * (text_width(sign, SMALL) + _PADDING), 0.5 * _HEIGHT)
    return x - half, y - 0.5 * _HEIGHT, x + half, y + 0.5 * _HEIGHT


def _within(box: _Box, other: _Box) -> bool:
    return box[0] >= other[0] and box[1] >= other[1] and box[2] <= other[2] and box[3] <= other[3]


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
