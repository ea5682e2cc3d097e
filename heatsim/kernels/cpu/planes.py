"""The planes of cells for the CPU kernels: factors of links, half cells and gains where cells have several widths.

A kernel multiplies the numbers of a cell of the mean widths by the factors of its three planes; see
:meth:`heatsim.grid.Axis.kernel_factors`. Multiplication by the factors of an axis whose cells are equal changes no bit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Field = NDArray[Any]
# The factors of the planes across x, y and z, of shapes (n, 6), or (0, 6) along an axis whose cells are equal.
Planes = tuple[Field, Field, Field]

# Rows of the factors: the first of two, towards smaller coordinates; the other follows.
LINK, HALF, GAIN = 0, 2, 4
FACTORS = 6
EQUAL_CELLS: Planes = (np.zeros((0, FACTORS)),) * 3


def graded(planes: Planes) -> bool:
    """Whether cells have several widths along any axis."""
    return any(len(factors) > 0 for factors in planes)


def factors_of(planes: Planes, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Planes:
    """The factors of all planes across x, y and z, of shapes (6, n); those of equal cells are 1.

    Args:
        planes: of the grid.
        shape: cells along z, y, x.
        dtype: of the factors of equal cells.
    """
    x, y, z = (
        np.ascontiguousarray(factors.T) if len(factors) else np.ones((FACTORS, n), dtype)
        for factors, n in zip(planes, reversed(shape), strict=True)
    )
    return x, y, z


def across(axis: int, factors: Field) -> Field:
    """A factor of each plane across an axis in the shape that multiplies an array of shape (nz, ny, nx)."""
    return factors.reshape([-1 if dimension == 2 - axis else 1 for dimension in range(3)])


def half_cells(halves: Field, factors: Field, side: int | NDArray[Any], plane: int | NDArray[Any]) -> tuple[Field, ...]:
    """Conductance, share and gain of half cells in some planes.

    Args:
        halves: those of cells of the mean widths, in the last axis.
        factors: of the planes across the sides, from :func:`factors_of`.
        side: 0 towards smaller and 1 towards larger coordinates.
        plane: the planes of the cells.
    """
    conductance, share, gain = halves[..., 0], halves[..., 1], halves[..., 2]
    half, gains = factors[HALF + side, plane], factors[GAIN + side, plane]
    return conductance * half, share * half * gains, gain * gains
