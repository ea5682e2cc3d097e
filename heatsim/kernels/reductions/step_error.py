"""The error of a step of a stabilized method, and fields between both ends of it, on a GPU or on the CPU.

With the fields T0 and T1 at both ends of a step and their rates F0 = dT/dt and F1, the error of a cell is a combination

    e = w0·T0 + w1·F0 + w2·T1 + w3·F1                    (heatsim/solver/stabilized/interpolation.py has the weights)

GPU and CPU give the same bits.

The mean over a block is that of its cells, also where they have unequal volumes. It serves to average the rounding of
cells, and that of a small cell is no less; where e is smooth, any mean is alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import compiled
from heatsim.kernels.cpu.oracle import share_rows

SOURCE = "step_error.cu"
THREADS = 256  # of a block
_BLOCKS = 2048  # of the first launch, at most
_CPU_CHUNK = 1 << 15  # values, whose float64 copies stay in a core's cache

# struct Found of step_error.cu.
FOUND = np.dtype([*((name, np.float64) for name in ("mean", "cell", "lowest", "highest")), ("not_finite", np.uint64)])


Fields = tuple[Any, Any, Any, Any]
Weights = tuple[float, float, float, float]


@dataclass(frozen=True)
class StepError:
    """The result of one pass over both ends of a step; cells of void are left out.

    Attributes:
        mean: the largest |mean of e| over blocks of 2×2×2 cells, in K. Where materials change with temperature, fields
            hold enthalpy in kelvins of the constant heat capacity that the material's table names, and so do the
            errors: 1 K is that capacity times 1 K of heat, while the cell melts too.
        cell: the largest |e| of a cell, in the same unit.
        lowest, highest: extremes of T1 in the unit of the field; inf and −inf if there are no cells.
        finite: whether T1 and e are finite everywhere.
    """

    mean: float
    cell: float
    lowest: float
    highest: float
    finite: bool


def combined(parts: Sequence[StepError]) -> StepError:
    """The result for all cells from those for several parts. The parts are cut below planes with an even number."""
    return StepError(
        mean=max(part.mean for part in parts),
        cell=max(part.cell for part in parts),
        lowest=min(part.lowest for part in parts),
        highest=max(part.highest for part in parts),
        finite=all(part.finite for part in parts),
    )


@dataclass(frozen=True, eq=False)
class StepEnds:
    """Both ends of a step.

    Attributes:
        fields: T0, F0, T1, F1, [z, y, x], float32 or float64, contiguous.
        weights: w0 … w3.
        cells: the cells' bytes on the device, [z, y, x]; they matter only if there is void.
        void: the type of void; negative if there is none.
    """

    fields: Fields
    weights: Weights
    cells: Any = None
    void: int = -1


def step_errors(device: Device, steps: Sequence[StepEnds]) -> list[StepError]:
    """The errors of several steps. On a GPU all are queued before the first is read."""
    if device.backend == "cpu":
        return [_look_on_cpu(step) for step in steps]
    size = FOUND.itemsize
    results = device.xp.empty(len(steps) * size, dtype=np.uint8)
    for number, step in enumerate(steps):
        _queue(device, step, results[number * size : (number + 1) * size])
    return [_read(tuple(found.tolist())) for found in device.to_host(results).view(FOUND)]


def _look_on_cpu(step: StepEnds) -> StepError:
    from heatsim.kernels.reductions import cpu_step_error

    fields, (cells, void) = step.fields, _void_of(step, np)
    flat = (field.reshape(-1) for field in fields)
    nz, ny, nx = (int(n) for n in fields[0].shape)
    found = np.empty(((nz + 1) // 2, 5))
    numbers = (np.array(step.weights), cells.reshape(-1), void, (nx, ny, nz), found)
    look: Any = cpu_step_error.look
    share_rows(partial(look, *flat, *numbers), len(found), fields[0].size)
    mean, cell, lowest, highest, not_finite = found.T
    return _read((mean.max(), cell.max(), lowest.min(), highest.max(), int(not_finite.sum())))


def _void_of(step: StepEnds, xp: Any) -> tuple[Any, int]:
    """The cells' bytes and the type of void, in a form that kernels take where there is none."""
    if step.cells is None or not step.cells.size:
        return xp.zeros(1, dtype=np.uint8), -1
    return step.cells, step.void


def _queue(device: Device, step: StepEnds, result: Any) -> None:
    """Launch the kernels that write struct Found to ``result``, a device array of bytes."""
    fields, (cells, void) = step.fields, _void_of(step, device.xp)
    nz, ny, nx = (int(n) for n in fields[0].shape)
    # Rows begin at multiples of two values if all fields do.
    pair = 2 * fields[0].dtype.itemsize
    paired = nx % 2 == 0 and all(field.data.ptr % pair == 0 for field in fields)
    defined = macros(str(fields[0].dtype), paired)
    blocks = min(_BLOCKS, ceil(ceil(nx / 2) * ceil(ny / 2) * ceil(nz / 2) / THREADS))
    partial = device.xp.empty(blocks * FOUND.itemsize, dtype=np.uint8)
    numbers = (*(np.float64(weight) for weight in step.weights), cells)
    limits = (np.int32(void), np.int32(nx), np.int32(ny), np.int32(nz))
    look = compiled.function(SOURCE, "look", defined)
    look((blocks,), (THREADS,), (*fields, *numbers, *limits, partial))
    fold = compiled.function(SOURCE, "fold", defined)
    fold((1,), (THREADS,), (partial, np.uint32(blocks), result))


def combine(device: Device, out: Any, weights: Weights, fields: Fields) -> None:
    """Set out = w0·T0 + w1·F0 + w2·T1 + w3·F1, found in float64 and rounded once.

    Args:
        device: the fields' device.
        out: a field; it may be one of the four.
        weights: w0 … w3.
        fields: T0, F0, T1, F1, contiguous, of the shape and precision of ``out``.
    """
    if device.backend == "cpu":
        _combine_on_cpu(out, weights, fields)
        return
    count = int(out.size)
    blocks = min(16 * _BLOCKS, ceil(count / THREADS))
    launch = compiled.function(SOURCE, "combine", macros(str(out.dtype), False))
    launch((blocks,), (THREADS,), (*fields, *(np.float64(weight) for weight in weights), np.uint64(count), out))


def macros(precision: str, pairs: bool) -> dict[str, str | int]:
    """The macros of step_error.cu."""
    return {"REAL": compiled.REAL[precision], "THREADS": THREADS, "PAIRS": int(pairs)}


def _read(found: tuple[float, float, float, float, int]) -> StepError:
    mean, cell, lowest, highest, not_finite = found
    return StepError(float(mean), float(cell), float(lowest), float(highest), not_finite == 0)


def _combine_on_cpu(out: NDArray[Any], weights: tuple[float, ...], fields: tuple[NDArray[Any], ...]) -> None:
    """Chunk by chunk, so that each value is read from memory once."""
    target, flat = out.reshape(-1), [field.reshape(-1) for field in fields]
    room = np.empty((2, min(_CPU_CHUNK, target.size)))
    for first in range(0, target.size, _CPU_CHUNK):
        part = slice(first, first + _CPU_CHUNK)
        total, term = room[:, : len(target[part])]
        np.multiply(flat[0][part], weights[0], out=total, dtype=np.float64)
        for weight, field in zip(weights[1:], flat[1:], strict=True):
            np.multiply(field[part], weight, out=term, dtype=np.float64)
            total += term
        target[part] = total
