"""The primers on all cores of the CPU, compiled by numba; the same order of additions as the CUDA kernels."""

from typing import Any

from numba import prange

from heatsim.numba_cache import kept


@kept(parallel=True, error_model="numpy")
def moving_sum(values: Any, sums: Any, radius: int) -> None:
    """Write the sum of the 2·radius + 1 values around each of a 1-d array; the ends are repeated."""
    last = len(values) - 1
    for i in prange(len(values)):
        total = values.dtype.type(0)
        for place in range(i - radius, i + radius + 1):
            total += values[min(max(place, 0), last)]
        sums[i] = total


@kept(parallel=True, error_model="numpy")
def conduct(T: Any, between: Any, T_new: Any) -> None:
    """Write two steps of heat conduction along a line; the first one to ``between``."""
    last, quarter, two = len(T) - 1, T.dtype.type(0.25), T.dtype.type(2)
    for i in prange(len(T)):
        between[i] = T[i] + quarter * (T[max(i - 1, 0)] + T[min(i + 1, last)] - two * T[i])
    for i in prange(len(T)):
        T_new[i] = between[i] + quarter * (between[max(i - 1, 0)] + between[min(i + 1, last)] - two * between[i])


@kept(parallel=True, error_model="numpy")
def smooth(image: Any, smoothed: Any) -> None:
    """Write the mean of the 3 × 3 pixels around each of an image [y, x]; the edges are repeated."""
    height, width = image.shape
    nine = image.dtype.type(9)
    for y in prange(height):
        above, below = max(y - 1, 0), min(y + 1, height - 1)
        for x in range(width):
            west, east = max(x - 1, 0), min(x + 1, width - 1)
            total = image[above, west] + image[above, x] + image[above, east]
            total += image[y, west] + image[y, x] + image[y, east]
            total += image[below, west] + image[below, x] + image[below, east]
            smoothed[y, x] = total / nine
