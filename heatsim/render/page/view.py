"""The projection of 3-D views, and the size of the box in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import AXES, Grid
from heatsim.render.page.samples import wide_axes

# An edge is drawn with at least this fraction of the longest one, so that gradients across a thin plate are visible.
_THINNEST = 1.0 / 8.0

# Room around a 3-D view for ticks and labels, in pixels: left, right, below, above.
Margins = tuple[int, int, int, int]
VIEW_MARGINS: Margins = (135, 115, 125, 25)

_AZIMUTH = np.radians(-57.0)
_ELEVATION = np.radians(26.0)

_Floats = NDArray[np.float64]


def drawn_size(grid: Grid) -> tuple[float, float, float]:
    """Edge lengths of the drawn box along x, y, z; the longest is 1, and thin ones are stretched.

    An axis of one cell does not count if other axes have more, because it is not drawn.
    """
    return stretched(grid.size, wide_axes(grid))


def stretched(lengths: Sequence[float], wide: Sequence[int] = (0, 1, 2)) -> tuple[float, float, float]:
    """Edge lengths of a drawn box. The longest of the axes ``wide`` has length 1; thin axes are stretched."""
    longest = max(lengths[axis] for axis in wide or range(3))
    x, y, z = (max(length / longest, _THINNEST) for length in lengths)
    return x, y, z


def describe_stretch(grid: Grid) -> str:
    """A remark about stretched edges, such as ``"z is drawn 6.3 times as long"``; empty if none is stretched."""
    longest = max(grid.size[axis] for axis in wide_axes(grid) or range(3))
    ratios = {AXES[axis]: drawn_size(grid)[axis] * longest / grid.size[axis] for axis in wide_axes(grid)}
    parts = [f"{axis} is drawn {ratio:.3g} times as long" for axis, ratio in ratios.items() if ratio > 1.0 + 1e-9]
    return f"Not to scale: {', '.join(parts)}." if parts else ""


@dataclass(frozen=True)
class View:
    """A parallel projection of the box from its corner x_max, y_min, z_max onto an image of ``width`` × ``height``.

    Attributes:
        width: of the image in pixels.
        height: of the image in pixels.
        size: of the drawn box along x, y, z; its corner is the origin.
        scale: pixels per unit of ``size``.
        middle: the middle of the image, in units of ``size`` along the image's right and up.
    """

    width: int
    height: int
    size: tuple[float, float, float]
    scale: float
    middle: tuple[float, float]

    @classmethod
    def fitting(cls, width: int, height: int, margins: Margins, size: tuple[float, float, float]) -> "View":
        """The view that fills an image except for margins in pixels: left, right, below, above."""
        left, right, below, above = margins
        low, high = outline(size)
        extent = high - low
        scale = float(min((width - left - right) / extent[0], (height - below - above) / extent[1]))
        across, up = 0.5 * (low + high) - 0.5 * np.array([left - right, below - above]) / scale
        return cls(width, height, size, scale, (float(across), float(up)))

    def project(self, points: _Floats) -> _Floats:
        """The positions of points (n, 3) in the image: (n, 2), in pixels from its lower left corner."""
        centred = points @ screen_axes().T - np.array(self.middle)
        pixels: _Floats = centred * self.scale + np.array([0.5 * self.width, 0.5 * self.height])
        return pixels


def outline(size: tuple[float, float, float]) -> tuple[_Floats, _Floats]:
    """The lowest and the highest coordinates of a box's outline along the image's right and up."""
    corners = np.array([[x, y, z] for x in (0.0, size[0]) for y in (0.0, size[1]) for z in (0.0, size[2])])
    drawn = corners @ screen_axes().T
    return drawn.min(axis=0), drawn.max(axis=0)


def to_camera() -> _Floats:
    """The unit vector from the box to the camera, shape (3,)."""
    return np.array([np.cos(_ELEVATION) * np.cos(_AZIMUTH), np.cos(_ELEVATION) * np.sin(_AZIMUTH), np.sin(_ELEVATION)])


def screen_axes() -> _Floats:
    """The image's right and up as unit vectors in space, shape (2, 3)."""
    right = np.array([-np.sin(_AZIMUTH), np.cos(_AZIMUTH), 0.0])
    return np.stack([right, np.cross(to_camera(), right)])
