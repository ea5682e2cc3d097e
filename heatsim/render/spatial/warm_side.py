"""Choose from where to look at a body: usually from the front right, unless another side is warmer."""

import numpy as np
from numpy.typing import NDArray

from heatsim.render.page.view import DEFAULT_CAMERA, Camera

# The part of what is seen that counts: the warmest tenth.
_WARMEST = 0.1
# Another camera has to see a surface that is warmer by this part of the range of the field.
_WORTH_TURNING = 0.1


def warm_side(values: NDArray[np.float64], size: tuple[float, float, float]) -> Camera:
    """The camera that sees the warmest surface, of those from above at all corners, then of those from below.

    Args:
        values: temperatures of cells in K, NaN in void, shape (nz, ny, nx).
        size: of the drawn box along x, y, z.
    """
    if not np.isfinite(values).any() or np.nanmin(values) == np.nanmax(values):
        return DEFAULT_CAMERA
    corners = [
        Camera(DEFAULT_CAMERA.azimuth + turn, side * DEFAULT_CAMERA.elevation)
        for side in (1, -1)
        for turn in (0.0, 90.0, -90.0, 180.0)
    ]
    outside = {(axis, end): _outside(values, axis, end) for axis in range(3) for end in (0, 1)}
    best, least = DEFAULT_CAMERA, _WORTH_TURNING * float(np.nanmax(values) - np.nanmin(values))
    for camera in corners[1:]:
        if _warmth(outside, camera, size) > _warmth(outside, best, size) + least:
            best = camera
    return best


def _outside(values: NDArray[np.float64], axis: int, end: int) -> NDArray[np.float64]:
    """The temperatures that are seen from an end of an axis: along each line those of the first cell without void."""
    lines = np.moveaxis(values, 2 - axis, 0)[:: -1 if end else 1]
    first = np.isfinite(lines).argmax(axis=0)
    seen = np.take_along_axis(lines, first[None], axis=0)[0]
    return np.asarray(seen[np.isfinite(seen)])


def _warmth(
    outside: dict[tuple[int, int], NDArray[np.float64]], camera: Camera, size: tuple[float, float, float]
) -> float:
    """The mean temperature of the warmest part of the surface that a camera sees."""
    seen, areas = [], []
    for axis, component in enumerate(camera.direction()):
        values = outside[axis, int(component > 0.0)]
        area = np.prod(np.delete(size, axis)) / max(len(values), 1)
        seen.append(values)
        areas.append(np.full(len(values), area))
    values, weights = np.concatenate(seen), np.concatenate(areas)
    order = np.argsort(-values)
    sums = np.cumsum(weights[order])
    warmest = order[: int(np.searchsorted(sums, _WARMEST * sums[-1])) + 1]
    return float(np.average(values[warmest], weights=weights[warmest]))
