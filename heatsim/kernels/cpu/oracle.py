"""CPU kernels: the NumPy oracle, which defines the result, and numba, which does several steps at a time in cache.

Both do the operations of stencil.cuh in the same order and without fma, so their bits agree. Arrays are [z, y, x];
``c`` holds c0…c6, ``f`` and ``g`` the terms of the six faces, all in the field's precision. ``ledger`` holds one
float64 array per face; it is empty if the face is not recorded. ``planes`` holds the factors of the planes (planes.py);
if cells have several widths, steps sum increments.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu import tiling
from heatsim.kernels.cpu.planes import EQUAL_CELLS, LINK, Planes, across, factors_of, graded
from heatsim.kernels.cpu.tiling import Tiling
from heatsim.physics.matter.coefficients import SCHEMES, Scheme

Field = NDArray[Any]

# With fewer cells, one core is done before a second has started: on a busy two-core machine threads wait 50 to 250 µs
# for each other.
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


# Overflow needs no warning here: the run's watchdog finds it in the field.
@np.errstate(over="ignore", invalid="ignore")
def advance_numpy(
    T: Field,
    T_new: Field,
    periodic: tuple[bool, bool, bool],
    c: Field,
    f: Field,
    g: Field,
    ledger: Sequence[NDArray[np.float64]],
    scheme: Scheme,
    planes: Planes = EQUAL_CELLS,
) -> None:
    """One step of the whole field, T to T_new."""
    west, east = neighbours(T, 2, periodic[0])
    south, north = neighbours(T, 1, periodic[1])
    below, above = neighbours(T, 0, periodic[2])
    around = (west, east, south, north, below, above)

    if scheme == "seven_term":
        total = c[5] * below
        for coefficient, value in zip((*c[:5], c[6]), (T, west, east, south, north, above), strict=True):
            total = total + coefficient * value
    else:
        links = links_of_planes(planes, T)
        total = c[1] * links[0] * (west - T)
        for coefficient, link, neighbour in zip(c[2:], links[1:], around[1:], strict=True):
            total = total + coefficient * link * (neighbour - T)

    for face, cells in enumerate(FACE_SLICES):
        heat = f[face] - g[face] * T[cells]
        total[cells] += heat
        if ledger[face].size:
            ledger[face][...] += heat

    T_new[...] = total if scheme == "seven_term" else T + total


def links_of_planes(planes: Planes, T: Field) -> list[Field]:
    """The factors of links towards x−, x+, …, z+, in shapes that multiply T."""
    axes = enumerate(factors_of(planes, T.shape, T.dtype))
    return [across(axis, factors[LINK + side]) for axis, factors in axes for side in (0, 1)]


def neighbours(T: Field, axis: int, periodic: bool) -> tuple[Field, Field]:
    """The values before and after each cell along an axis; at an end the cell itself or, if periodic, the other end."""
    n = T.shape[axis]
    positions = np.arange(n)
    if periodic:
        return T.take((positions - 1) % n, axis), T.take((positions + 1) % n, axis)
    return T.take(np.maximum(positions - 1, 0), axis), T.take(np.minimum(positions + 1, n - 1), axis)


def _advance_numpy(
    T: Field, T_new: Field, periodic: tuple[bool, bool, bool], c: Field, f: Field, g: Field, *others: Any
) -> tuple[Field, Field]:
    """``others``: the further arguments of :func:`advance_numpy`."""
    from heatsim.kernels.cpu.subnormals import subnormals_flushed

    f, g = np.atleast_2d(f), np.atleast_2d(g)
    with subnormals_flushed():
        for terms in zip(_of_each(c, len(f)), f, g, strict=True):
            advance_numpy(T, T_new, periodic, *terms, *others)
            T, T_new = T_new, T
    return T, T_new


def _advance_numba(
    T: Field,
    T_new: Field,
    periodic: tuple[bool, bool, bool],
    c: Field,
    f: Field,
    g: Field,
    ledger: Sequence[NDArray[np.float64]],
    scheme: Scheme,
    planes: Planes = EQUAL_CELLS,
) -> tuple[Field, Field]:
    # numba's import takes half a second.
    from heatsim.kernels.cpu import blocked
    from heatsim.kernels.cpu.plan import KernelPlan

    f, g = (np.ascontiguousarray(np.atleast_2d(terms)) for terms in (f, g))
    nz, ny, nx = T.shape
    chosen = choose_tiling((nz, ny, nx), periodic, T.itemsize, len(f))
    x_min, x_max, y_min, y_max, z_min, z_max = ledger
    values: dict[str, Any] = {"scheme": SCHEMES.index(scheme), "c": _of_each(c, len(f)), "f": f, "g": g}
    sums = {"x_min": x_min, "x_max": x_max, "y_min": y_min, "y_max": y_max, "z_min": z_min, "z_max": z_max}
    memory = chosen.ring
    if graded(planes):
        values |= {**_graded(planes, T, np.atleast_2d(c)), "heat": memory}
        memory += 2 * values["links_width"]
    plan = KernelPlan(blocked.PLAN, {**chosen.plan(T.shape, periodic, len(f)), **values, **sums})
    return run_sweeps(partial(blocked.advance, plan.numbers), T, T_new, len(f), chosen, memory)


def _graded(planes: Planes, T: Field, c: Field) -> dict[str, Any]:
    """The fields GRADED of a plan; ``c``: c0…c6 of all steps or of each, shape (1 or steps, 7)."""
    x, y, z = factors_of(planes, T.shape, T.dtype)
    line = tiling.LINE // T.itemsize
    width = -(-x.shape[1] // line) * line
    links = tiling.zeros_on_lines((len(c), 2, width), T.dtype)
    links[:, :, : x.shape[1]] = c[:, 1:3, None] * x[LINK : LINK + 2]
    of_links = {"links_x": links, "links_width": width, "links_stride": 2 * width if len(c) > 1 else 0}
    return {**of_links, "planes_x": x, "planes_y": y, "planes_z": z}


def choose_tiling(
    shape: tuple[int, int, int], periodic: tuple[bool, bool, bool], itemsize: int, steps: int, fields: int = 1
) -> Tiling:
    """The tiling for all cores; arguments as for :func:`heatsim.kernels.cpu.tiling.choose`."""
    return tiling.choose(shape, periodic, itemsize, steps, _thread_count(), fields)


def run_sweeps(
    advance: Callable[..., None], T: Field, T_new: Field, steps: int, chosen: Tiling, memory: int
) -> tuple[Field, Field]:
    """Do the sweeps of a call on the threads of its tiling.

    Args:
        advance: (T, T_new, first_sweep, end_sweep, memory, worker) does a worker's share of some sweeps.
        T: the field.
        T_new: the array that the first sweep writes.
        steps: number of steps.
        chosen: the tiling.
        memory: cells of a worker's memory.

    Returns:
        The result, and the other array.
    """
    sweeps = chosen.sweeps(steps)
    memories = _memories((chosen.workers, -(-memory // chosen.margin) * chosen.margin), T.dtype)
    run = partial(advance, T.reshape(-1), T_new.reshape(-1))
    if chosen.workers == 1:
        run(0, sweeps, memories[0], 0)
    else:
        for sweep in range(sweeps):
            others = [
                _threads().submit(run, sweep, sweep + 1, memories[worker], worker)
                for worker in range(1, chosen.workers)
            ]
            run(sweep, sweep + 1, memories[0], 0)
            for other in others:
                other.result()
    return (T, T_new) if sweeps % 2 == 0 else (T_new, T)


def _of_each(c: Field, steps: int) -> Field:
    """c0…c6 of each step, shape (steps, 7)."""
    of_each = np.empty((steps, 7), c.dtype)
    of_each[...] = c
    return of_each


def share_rows(work: Callable[[int, int], None], rows: int, cells: int) -> None:
    """Have rows 0 to below ``rows`` done by all cores, each a run of them, or by one where there are few cells.

    Args:
        work: does rows from … to below …; compiled code that runs without the interpreter's lock.
        rows: how many there are.
        cells: in all of them.
    """
    if cells < _CELLS_FOR_THREADS:
        work(0, rows)
        return
    parts = min(_thread_count(), rows)
    ends = [rows * part // parts for part in range(parts + 1)]
    others = [_threads().submit(work, *run) for run in pairwise(ends[1:])]
    work(ends[0], ends[1])
    for other in others:
        other.result()


def steps_a_sweep(
    name: str, shape: tuple[int, int, int], periodic: tuple[bool, bool, bool], itemsize: int, steps: int
) -> int:
    """Steps that a kernel does per read and write of the field, when it is called for ``steps`` steps."""
    return 1 if name == "numpy" else tiling.choose(shape, periodic, itemsize, steps, _thread_count()).depth


def _thread_count() -> int:
    import numba

    return int(vars(numba.config)["NUMBA_NUM_THREADS"])


@cache
def _threads() -> ThreadPoolExecutor:
    """Additional threads; compiled code runs without the interpreter's lock."""
    if hasattr(os, "register_at_fork"):
        # A forked process does not inherit threads.
        os.register_at_fork(after_in_child=_threads.cache_clear)
    return ThreadPoolExecutor(os.cpu_count(), "heatsim-cpu")


def _memories(shape: tuple[int, int], dtype: np.dtype[Any]) -> Field:
    """Memory of each worker, from a cache line on. It holds what the last call of this thread left there.

    New memory costs a page fault for every 4 KiB, which takes as long as some steps.
    """
    kept, size = vars(_kept).get("memory"), shape[0] * shape[1]
    if kept is None or kept.dtype != dtype or kept.size < size:
        kept = _kept.memory = tiling.zeros_on_lines((size,), dtype)
    return kept[:size].reshape(shape)


_kept = threading.local()

# kernel(T, T_new, periodic, c, f, g, ledger, scheme, planes) does one step for each row of f and g; c has one row for
# all steps, or one for each. It returns (result, other array); the other array has no useful contents. With one row, or
# f and g of shape (6,), the result is in T_new and T is unchanged.
CPU_KERNELS: dict[str, Callable[..., tuple[Field, Field]]] = {"numpy": _advance_numpy, "numba": _advance_numba}
