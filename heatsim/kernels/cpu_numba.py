"""What the CPU does with a row of cells whose neighbours are rows like it, vectorised by the compiler.

The functions do for a row what stencil.cuh does for a cell: the sum over neighbours, the
rounding. Results equal those of the NumPy oracle to the bit: neither fastmath nor fma.
"""

from typing import Any

import numpy as np
from numba import njit

SEVEN_TERM, INCREMENTS, STOCHASTIC = 0, 1, 2


@njit(inline="always")
def _neighbour(i: int, n: int, periodic: bool) -> int:
    if i < 0:
        return n - 1 if periodic else 0
    if i >= n:
        return 0 if periodic else n - 1
    return i


@njit
def _sum_seven_term(c: Any, T: Any, south: Any, north: Any, below: Any, above: Any, periodic: bool, total: Any) -> None:
    n = T.size
    c0, c1, c2, c3, c4, c5, c6 = c[0], c[1], c[2], c[3], c[4], c[5], c[6]
    for x in (0, n - 1):
        west, east = T[_neighbour(x - 1, n, periodic)], T[_neighbour(x + 1, n, periodic)]
        total[x] = c0 * T[x] + c1 * west + c2 * east + c3 * south[x] + c4 * north[x] + c5 * below[x] + c6 * above[x]
    # Slices instead of x - 1 and x + 1: an index that might be negative would keep the loop from being vectorised.
    wests, centres, easts = T[: n - 2], T[1 : n - 1], T[2:]
    souths, norths, belows, aboves, totals = south[1:], north[1:], below[1:], above[1:], total[1:]
    for i in range(n - 2):
        totals[i] = (
            c0 * centres[i]
            + c1 * wests[i]
            + c2 * easts[i]
            + c3 * souths[i]
            + c4 * norths[i]
            + c5 * belows[i]
            + c6 * aboves[i]
        )


@njit
def _sum_increments(c: Any, T: Any, south: Any, north: Any, below: Any, above: Any, periodic: bool, total: Any) -> None:
    n = T.size
    c1, c2, c3, c4, c5, c6 = c[1], c[2], c[3], c[4], c[5], c[6]
    for x in (0, n - 1):
        here, west, east = T[x], T[_neighbour(x - 1, n, periodic)], T[_neighbour(x + 1, n, periodic)]
        total[x] = (
            c1 * (west - here)
            + c2 * (east - here)
            + c3 * (south[x] - here)
            + c4 * (north[x] - here)
            + c5 * (below[x] - here)
            + c6 * (above[x] - here)
        )
    wests, centres, easts = T[: n - 2], T[1 : n - 1], T[2:]
    souths, norths, belows, aboves, totals = south[1:], north[1:], below[1:], above[1:], total[1:]
    for i in range(n - 2):
        here = centres[i]
        totals[i] = (
            c1 * (wests[i] - here)
            + c2 * (easts[i] - here)
            + c3 * (souths[i] - here)
            + c4 * (norths[i] - here)
            + c5 * (belows[i] - here)
            + c6 * (aboves[i] - here)
        )


@njit
def _round_row(T: Any, increment: Any, h0: Any) -> None:
    scale, shift, exponent = np.float32(2.0**-47), np.float32(2.0**-48 - 2.0**-24), np.uint32(0x7F800000)
    for x in range(T.size):
        # numba widens unsigned products; cut back to 32 bits after each.
        h = np.uint32(h0 + np.uint32(x * 0x9E3779B1))
        h = np.uint32(h ^ (h >> np.uint32(15)))
        h = np.uint32(h * np.uint32(0x2C1B3C6D))
        h = np.uint32(h ^ (h >> np.uint32(12)))
        h = np.uint32(h * np.uint32(0x297A2D39))
        dither = np.float32(h >> np.uint32(8)) * scale + shift
        power_of_two = np.uint32(np.float32(T[x]).view(np.uint32) & exponent).view(np.float32)
        increment[x] = T[x] + (dither * power_of_two + increment[x])
