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

_DECIMALS = 12  # of directions, so that a face seen edge-on counts as hidden

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
class Camera:
    """The direction from the box to the camera, in degrees; by default from the corner x_max, y_min, z_max.

    Attributes:
        azimuth: of the direction in the plane of x and y, from x towards y.
        elevation: above this plane.
    """

    azimuth: float = -57.0
    elevation: float = 26.0

    def direction(self) -> _Floats:
        """The unit vector from the box to the camera, shape (3,)."""
        azimuth, elevation = np.radians([self.azimuth, self.elevation])
        flat = np.cos(elevation)
        return np.round([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)], _DECIMALS)

    def screen_axes(self) -> _Floats:
        """The image's right and up as unit vectors in space, shape (2, 3)."""
        azimuth = np.radians(self.azimuth)
        right = np.round([-np.sin(azimuth), np.cos(azimuth), 0.0], _DECIMALS)
        return np.stack([right, np.cross(self.direction(), right)])

    def outline(self, size: tuple[float, float, float]) -> tuple[_Floats, _Floats]:
        """The lowest and the highest coordinates of a box's outline along the image's right and up."""
        corners = np.array([[x, y, z] for x in (0.0, size[0]) for y in (0.0, size[1]) for z in (0.0, size[2])])
        drawn = corners @ self.screen_axes().T
        return drawn.min(axis=0), drawn.max(axis=0)

    def silhouette(self, axis: int) -> list[tuple[int, int]]:
        """The edges along an axis that bound the outline of a box: for each, the ends of the two other axes, 0 or 1.

        An edge does if the camera sees one of its two faces.
        """
        u, v = (self.direction()[other] for other in range(3) if other != axis)
        return [(at_u, at_v) for at_u in (0, 1) for at_v in (0, 1) if _faces(u, at_u) != _faces(v, at_v)]


DEFAULT_CAMERA = Camera()
# Cameras with names; the image's up is z, or y if the camera looks along z.
CAMERAS = {
    "front": Camera(-90.0, 0.0),
    "back": Camera(90.0, 0.0),
    "top": Camera(-90.0, 90.0),
    "below": Camera(-90.0, -90.0),
}


def _faces(component: float, end: int) -> bool:
    """Whether a face at an end of an axis looks towards a camera in a direction with this component."""
    return component > 0.0 if end else component < 0.0


@dataclass(frozen=True)
class View:
    """A parallel projection of the box onto an image of ``width`` × ``height``.

    Attributes:
        width: of the image in pixels.
        height: of the image in pixels.
        size: of the drawn box along x, y, z; its corner is the origin.
        scale: pixels per unit of ``size``.
        middle: the middle of the image, in units of ``size`` along the image's right and up.
        camera: the direction from which the box is seen.
    """

    width: int
    height: int
    size: tuple[float, float, float]
    scale: float
    middle: tuple[float, float]
    camera: Camera = DEFAULT_CAMERA

    @classmethod
    def fitting(
        cls,
        width: int,
        height: int,
        margins: Margins,
        size: tuple[float, float, float],
        camera: Camera = DEFAULT_CAMERA,
    ) -> "View":
        """The view that fills an image except for margins in pixels: left, right, below, above."""
        left, right, below, above = margins
        low, high = camera.outline(size)
        extent = high - low
        scale = float(min((width - left - right) / extent[0], (height - below - above) / extent[1]))
        across, up = 0.5 * (low + high) - 0.5 * np.array([left - right, below - above]) / scale
        return cls(width, height, size, scale, (float(across), float(up)), camera)

    def project(self, points: _Floats) -> _Floats:
        """The positions of points (n, 3) in the image: (n, 2), in pixels from its lower left corner."""
        centred = points @ self.camera.screen_axes().T - np.array(self.middle)
        pixels: _Floats = centred * self.scale + np.array([0.5 * self.width, 0.5 * self.height])
        return pixels
