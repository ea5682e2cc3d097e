"""Which cells belong to a shape: those whose centres lie inside it or on its surface.

A centre is on the surface if its distance is at most 1e-9 of the smallest spacing, so that rounded decimals of a shape
do not lose cells.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.geometry.counted import narrowest
from heatsim.physics.geometry.stl import Surface
from heatsim.scenario import Box, Cylinder, Sphere, Stl
from heatsim.scenario.tables.regions import Shape, Shaped

Mask = NDArray[np.bool_]
Vector = tuple[float, ...]
Block = tuple[slice, slice, slice]

_TOLERANCE = 1e-9
_CELLS_PER_SLAB = 2**22

# What to do about an STL file that is not in m. Its surface is then more than _MUCH_LARGER times as large as the box.
OTHER_UNIT = "if the file is in mm, write scale = 0.001"
_MUCH_LARGER = 10.0


@dataclass(frozen=True)
class Solid:
    """A shape that can list its cells.

    Attributes:
        shape: the shape; for an STL file its surface.
        low, high: the smallest and largest coordinates (x, y, z) in m.
    """

    shape: Box | Sphere | Cylinder | Surface
    low: Vector
    high: Vector

    @classmethod
    def of(cls, shape: Shape) -> "Solid":
        """The solid of a scenario's shape.

        Raises:
            ValueError: the surface of an STL file is open, or cannot be read; the message is for the user.
        """
        if isinstance(shape, Stl):
            surface = Surface.from_stl(shape)
            return cls(surface, *surface.bounds)
        return cls(shape, *_bounds(shape))

    def blocks(self, grid: Grid, begin: int = 0, end: int | None = None) -> Iterator[tuple[Block, Mask]]:
        """Blocks of cells (slices along z, y, x) with their masks, from the bottom up; they hold all its cells.

        Blocks are small, so that working on one needs little memory.

        Args:
            grid: the whole grid.
            begin: the first plane that counts.
            end: the end of these planes; None for all of them.
        """
        x, y, z = (cells_between(grid, axis, self.low[axis], self.high[axis]) for axis in range(3))
        z = slice(max(z.start, begin), z.stop if end is None else min(z.stop, end))
        if not (x.start < x.stop and y.start < y.stop and z.start < z.stop):
            return
        planes = max(1, _CELLS_PER_SLAB // ((x.stop - x.start) * (y.stop - y.start)))
        for first in range(z.start, z.stop, planes):
            block = (slice(first, min(first + planes, z.stop)), y, x)
            yield block, self._inside(grid, block)

    def _inside(self, grid: Grid, block: Block) -> Mask:
        shape = self.shape
        if isinstance(shape, Surface):
            return shape.inside(grid, block)
        z, y, x = (grid.centres(2 - axis)[span] for axis, span in enumerate(block))
        margin = _TOLERANCE * float(narrowest(grid).min())
        return np.broadcast_to(_holds(shape, x, y[:, None], z[:, None, None], margin), (len(z), len(y), len(x)))

    def contains(self, points: NDArray[np.float64]) -> Mask:
        """Whether points (x, y, z) in m, shape (n, 3), lie inside; shape (n,)."""
        found = np.ones(len(points), dtype=bool)
        for along, low, high in zip(points.T, self.low, self.high, strict=True):
            found &= (along >= low) & (along <= high)
        near = np.flatnonzero(found)
        if len(near):
            if isinstance(self.shape, Surface):
                found[near] = self.shape.winding(points[near]) != 0
            else:
                x, y, z = points[near].T
                found[near] = _holds(self.shape, x, y, z, 0.0)
        return found


def _holds(
    shape: Box | Sphere | Cylinder,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    z: NDArray[np.float64],
    margin: float,
) -> Mask:
    """Whether points within a shape's bounds lie inside, or at most ``margin`` (m) outside."""
    if isinstance(shape, Sphere):
        cx, cy, cz = shape.centre
        squared = (z - cz) ** 2 + ((y - cy) ** 2 + (x - cx) ** 2)
        return np.asarray(squared <= (shape.radius + margin) ** 2)
    if isinstance(shape, Cylinder):
        start, axis = np.array(shape.from_), np.array(shape.to) - np.array(shape.from_)
        length = float(np.linalg.norm(axis))
        ux, uy, uz = (axis / length).tolist()
        rx, ry, rz = x - start[0], y - start[1], z - start[2]
        along = rx * ux + ry * uy + rz * uz
        across = (ry * uz - rz * uy) ** 2 + (rz * ux - rx * uz) ** 2 + (rx * uy - ry * ux) ** 2
        within = (along >= -margin) & (along <= length + margin)
        return np.asarray(within & (across <= (shape.radius + margin) ** 2))
    return np.ones(np.broadcast_shapes(x.shape, y.shape, z.shape), dtype=bool)


def holds(shaped: Shaped, point: tuple[float, float, float], margin: float) -> bool:
    """Whether a point (m) lies in the shape of a region, or at most ``margin`` (m) outside.

    Always True for surfaces from files and for label images: only their cells are known.
    """
    shape = shaped.shape
    if isinstance(shape, Box):
        sides = zip(point, shape.min, shape.max, strict=True)
        return all(low - margin <= at <= high + margin for at, low, high in sides)
    if isinstance(shape, Sphere):
        return float(np.linalg.norm(np.subtract(point, shape.centre))) <= shape.radius + margin
    if isinstance(shape, Cylinder):
        axis, arm = np.subtract(shape.to, shape.from_), np.subtract(point, shape.from_)
        length = float(np.linalg.norm(axis))
        along = float(arm @ axis) / length
        across = float(np.linalg.norm(arm - along * axis / length))
        return -margin <= along <= length + margin and across <= shape.radius + margin
    return True


def _bounds(shape: Box | Sphere | Cylinder) -> tuple[Vector, Vector]:
    if isinstance(shape, Box):
        return shape.min, shape.max
    if isinstance(shape, Sphere):
        return tuple(c - shape.radius for c in shape.centre), tuple(c + shape.radius for c in shape.centre)
    ends = np.array([shape.from_, shape.to])
    axis = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    reach = shape.radius * np.sqrt(np.maximum(1.0 - axis**2, 0.0))  # half extent of the round ends along x, y, z
    return tuple((ends.min(axis=0) - reach).tolist()), tuple((ends.max(axis=0) + reach).tolist())


def cells_between(grid: Grid, axis: int, low: float, high: float) -> slice:
    """The cells along an axis whose centres lie between two coordinates (m), or on them."""
    n, length, origin = grid.cells[axis], grid.size[axis], grid.origin[axis]
    low, high = max(min(low, origin + length), origin - length), max(min(high, origin + 2 * length), origin)
    if grid.axes[axis].uniform:
        first, last = (low - origin) / length * n, (high - origin) / length * n
    else:
        first, last = (float(grid.axes[axis].places(end)) for end in (low, high))
    return slice(max(ceil(first - 0.5 - _TOLERANCE), 0), min(floor(last - 0.5 + _TOLERANCE) + 1, n))


def is_of_other_unit(low: Vector, high: Vector, grid: Grid) -> bool:
    """Whether a box from ``low`` to ``high`` is so large along all axes that its unit is probably not m."""
    return all(end - start > _MUCH_LARGER * size for start, end, size in zip(low, high, grid.size, strict=True))
