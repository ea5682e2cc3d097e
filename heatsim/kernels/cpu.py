"""The CPU's kernels: NumPy, the oracle, written to be read; numba, compiled loops over rows on all cores.

Both do what stencil.cuh says, operation by operation in the same order and without fma, so they agree to the bit.
Arrays are [z, y, x]; ``c`` holds c0…c6, ``f`` and ``g`` the six faces' terms, all in the field's precision; ``ledger``
holds a float64 array for each face that somebody asked for, else an empty one.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.coefficients import SCHEMES, Scheme

Field = NDArray[Any]

# Below this a step is done before a second core has woken up: threads wait for each other 50 to 250 µs a step on a busy
# two-core machine, in which one core does as many cells.
_CELLS_FOR_THREADS = 2**16

# Shapes of the ledger's arrays, faces in the order x_min, x_max, y_min, y_max, z_min, z_max.
FACE_SLICES: tuple[tuple[Any, ...], ...] = (
    (slice(None), slice(None), 0),
    (slice(None), slice(None), -1),
    (slice(None), 0),
    (slice(None), -1),
    (0,),
    (-1,),
)


# What overflows shows in the field, where the run's watchdog finds it and says so.
@np.errstate(over="ignore", invalid="ignore")
def advance_numpy(
    T: Field,
    T_new: Field,
    periodic: tuple[bool, bool, bool],
    c: Field,
    f: Field,
    g: Field,
    step: int,
    ledger: Sequence[NDArray[np.float64]],
    scheme: Scheme,
) -> None:
    """One step of the whole field, T to T_new."""
    west, east = neighbours(T, 2, periodic[0])
    south, north = neighbours(T, 1, periodic[1])
    below, above = neighbours(T, 0, periodic[2])
    around = (west, east, south, north, below, above)

    if scheme == "seven_term":
        total = c[0] * T
        for coefficient, neighbour in zip(c[1:], around, strict=True):
            total = total + coefficient * neighbour
    else:
        total = c[1] * (west - T)
        for coefficient, neighbour in zip(c[2:], around[1:], strict=True):
            total = total + coefficient * (neighbour - T)

    for face, cells in enumerate(FACE_SLICES):
        heat = f[face] - g[face] * T[cells]
        total[cells] += heat
        if ledger[face].size:
            ledger[face][...] += heat

    if scheme == "seven_term":
        T_new[...] = total
    elif scheme == "increments":
        T_new[...] = T + total
    else:
        T_new[...] = rounded_sum(T, total, step)


def neighbours(T: Field, axis: int, periodic: bool) -> tuple[Field, Field]:
    """The values before and after each cell along an axis; beyond an end the cell itself, or the other end."""
    n = T.shape[axis]
    positions = np.arange(n)
    if periodic:
        return T.take((positions - 1) % n, axis), T.take((positions + 1) % n, axis)
    return T.take(np.maximum(positions - 1, 0), axis), T.take(np.minimum(positions + 1, n - 1), axis)


def rounded_sum(T: Field, increment: Field, step: int) -> Field:
    """T + increment, rounded up or down by a hash of (step, cell) with probabilities that make the mean exact."""
    x, y, z = (np.arange(n, dtype=np.uint32) for n in reversed(T.shape))
    h = (
        (x * np.uint32(0x9E3779B1))[None, None, :]
        + (y * np.uint32(0x85EBCA77))[None, :, None]
        + (z * np.uint32(0xC2B2AE3D))[:, None, None]
        + np.uint32(step * 0x27D4EB2F & 0xFFFFFFFF)
    )
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x2C1B3C6D)
    h ^= h >> np.uint32(12)
    h *= np.uint32(0x297A2D39)
    dither = (h >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-47) + np.float32(2.0**-48 - 2.0**-24)
    power_of_two = (T.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32)
    rounded: Field = T + (dither * power_of_two + increment)
    return rounded


def advance_numba(
    T: Field,
    T_new: Field,
    periodic: tuple[bool, bool, bool],
    c: Field,
    f: Field,
    g: Field,
    step: int,
    ledger: Sequence[NDArray[np.float64]],
    scheme: Scheme,
) -> None:
    """One step of the whole field, T to T_new; numba's import takes half a second, so it waits until here."""
    from heatsim.kernels import cpu_numba

    choose_threads(T.size)
    cpu_numba.advance(T, T_new, *periodic, c, f, g, step, SCHEMES.index(scheme), *ledger)


def choose_threads(cells: int) -> None:
    """Let numba use all cores where there are cells enough for them."""
    import numba

    all_threads: int = vars(numba.config)["NUMBA_NUM_THREADS"]
    numba.set_num_threads(all_threads if cells >= _CELLS_FOR_THREADS else 1)


CPU_KERNELS: dict[str, Callable[..., None]] = {"numpy": advance_numpy, "numba": advance_numba}
