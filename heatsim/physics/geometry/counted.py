"""Places counted in cells from the corner of the grid, and in m.

Within a cell both are linear in each other. So what lies in one cell is cut and weighed alike in both, but a straight
line through cells of several widths is straight in m only.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Axis, Grid

Array = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]


def places(grid: Grid, points: Floats) -> Array:
    """Points (x, y, z) in m, shape (…, 3), counted in cells from the corner of the grid."""
    if grid.uniform:
        return np.asarray((points - np.array(grid.origin)) / np.array(grid.spacing))
    return np.stack([axis.places(points[..., number]) for number, axis in enumerate(grid.axes)], axis=-1)


def coordinates(grid: Grid, points: Floats) -> Array:
    """Places (x, y, z) that are counted in cells, shape (…, 3), in m."""
    if grid.uniform:
        return np.asarray(np.array(grid.origin) + points * np.array(grid.spacing))
    return np.stack([axis.coordinates(points[..., number]) for number, axis in enumerate(grid.axes)], axis=-1)


def widths(grid: Grid, points: Floats) -> Array:
    """The widths in m of the cells at places that are counted in cells, shape (n, 3); (3,) if all cells are equal."""
    if grid.uniform:
        return np.array(grid.spacing)
    return np.stack([widths_along(axis, points[:, number]) for number, axis in enumerate(grid.axes)], axis=1)


def widths_along(axis: Axis, place: Floats) -> Array:
    """The widths in m of the cells at places along an axis, or of those at its ends."""
    return np.asarray(axis.widths[_cells(axis, place)])


def widths_around(grid: Grid, faces: Floats, axis: int) -> Array:
    """As :func:`widths` at the centres of faces across an axis; along it the distance of the two cells' centres."""
    found = widths(grid, faces)
    if not grid.axes[axis].uniform:
        below, above = (widths_along(grid.axes[axis], faces[:, axis] + side) for side in (-0.5, 0.5))
        found[:, axis] = (below + above) / 2.0
    return found


def narrowest(grid: Grid) -> Array:
    """The smallest widths along x, y and z in m."""
    return np.array([axis.widths.min() for axis in grid.axes])


def turned(axis: Axis, place: Floats, wraps: bool) -> Array:
    """Coordinates in m of places counted in cells, also beyond the ends of an axis that wraps."""
    if axis.uniform or not wraps:
        return np.asarray(axis.coordinates(place))
    turns = np.floor(place / len(axis))
    return np.asarray(axis.coordinates(place - turns * len(axis)) + turns * (axis.borders[-1] - axis.borders[0]))


def counted(axis: Axis, coordinate: Array, wraps: bool) -> Array:
    """Places of coordinates in m: the inverse of :func:`turned`."""
    if axis.uniform or not wraps:
        return np.asarray(axis.places(coordinate))
    length = axis.borders[-1] - axis.borders[0]
    turns = np.floor((coordinate - axis.borders[0]) / length)
    return np.asarray(axis.places(coordinate - turns * length) + turns * len(axis))


def extreme_widths(axis: Axis, low: Array, high: Array) -> tuple[Array, Array]:
    """The smallest and the largest width in m of the cells that each range of places touches; shape (n,) each."""
    first, last = _cells(axis, low), _cells(axis, high)
    # Of each number of cells 2^k from each cell on: a range is covered by two of them.
    found = np.tile(axis.widths[first], (2, 1))
    least, most, length = axis.widths, axis.widths, 1
    level = np.frexp(last - first + 1)[1] - 1
    for number in range(int(level.max(initial=0)) + 1):
        some = level == number
        ends = first[some], last[some] - length + 1
        found[0, some] = np.minimum(*(least[end] for end in ends))
        found[1, some] = np.maximum(*(most[end] for end in ends))
        least, most = np.minimum(least[:-length], least[length:]), np.maximum(most[:-length], most[length:])
        length *= 2
    return found[0], found[1]


def _cells(axis: Axis, place: Floats) -> NDArray[Any]:
    return np.clip(np.floor(place), 0, len(axis) - 1).astype(np.intp)
