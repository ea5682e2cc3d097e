"""Speed of sums over a field: the textbook ladder, CuPy's sum and the fused pass, compared with plain reading.

The ceiling is the fastest of several plain reads of the field in the same run, or the copy if it moves more bytes per
second. A sum at the ceiling is limited by memory alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim import device as devices
from heatsim.benchmark.case import random_field, upload
from heatsim.benchmark.measure import copies
from heatsim.benchmark.memory import check_memory
from heatsim.benchmark.stopwatch import KernelTiming, TimedWork, time_in_turn
from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import compiled
from heatsim.kernels.reductions import fused
from heatsim.kernels.reductions.fused import Pass, Sections
from heatsim.kernels.reductions.ladder import LADDER, Summing
from heatsim.kernels.reductions.statistics import STATISTICS, Statistics, combined
from heatsim.solver.field.field import Field

_SEED = 21
_READERS = (4, 8, 16)  # blocks of 256 threads per multiprocessor, for plain reading
_READ_LOADS = 4  # LOADS of read.cu
_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}


@dataclass(frozen=True)
class ReductionResult:
    """The result of one reduction. If it is wrong, all but name, idea and error are None.

    Attributes:
        name: a rung, a call of CuPy, or the fused pass.
        idea: its idea in a few words.
        GBps: bytes of the values, each read once, / s / 1e9.
        fraction: GBps / ceiling.
        milliseconds: the median time.
        spread: (largest − smallest) / median of the times.
        registers: registers per thread; None for CuPy.
        spills: bytes of local memory per thread for spilled registers; None for CuPy.
        error: its error; None if it is correct.
    """

    name: str
    idea: str
    GBps: float | None = None
    fraction: float | None = None
    milliseconds: float | None = None
    spread: float | None = None
    registers: int | None = None
    spills: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class ReductionMeasurement:
    """The measurements in one precision.

    Attributes:
        device: name of the device.
        precision: "float32" or "float64".
        cells: cells along x, y, z.
        read_GBps: the ceiling, bytes read per second / 1e9.
        read_spread: the spread of its times.
        copy_GBps: bytes read and written per second by a copy / 1e9.
        reductions: one result per reduction.
        repeats: repeats of each measurement.
    """

    device: str
    precision: str
    cells: tuple[int, int, int]
    read_GBps: float
    read_spread: float
    copy_GBps: float
    reductions: tuple[ReductionResult, ...]
    repeats: int


@dataclass(frozen=True)
class _Candidate:
    """A reduction to verify and time: ``queue()`` starts it once; it reads ``fields`` fields."""

    name: str
    idea: str
    queue: Callable[[], Any]
    fields: int = 1
    function: Any = None
    error: str | None = None


def measure_reductions(
    device: Device, cells: tuple[int, int, int], precision: str, repeats: int, say: Callable[[str], None]
) -> ReductionMeasurement:
    """Verify all reductions, then time the correct ones.

    Args:
        device: a GPU.
        cells: cells along x, y, z.
        precision: "float32" or "float64".
        repeats: repeats of each measurement.
        say: called with a text before each part of the work.

    Raises:
        CapacityError: the fields do not fit in memory; nothing has been allocated.
    """
    grid = Grid(cells, (1.0, 1.0, 1.0))
    nbytes = grid.cell_count * np.dtype(precision).itemsize
    # On the GPU two fields and CuPy's temporaries, on the host two fields.
    what = f"--cells {' '.join(map(str, cells))} in {precision} needs"
    check_memory(what, device, 4 * nbytes, host=2 * nbytes)
    say(f"{precision}: making a field")
    values = random_field(grid, precision, _SEED)
    values -= values.dtype.type(0.25)
    field = Field(device, grid, precision, reference=0.0)
    upload(field, values)
    field.spare[...] = field.deviation
    field.spare[-1, -1, -1] += 1.0

    say(f"{precision}: verifying")
    candidates = _candidates(device, field, values)
    right = [candidate for candidate in candidates if not candidate.error]
    say(f"{precision}: timing {', '.join(candidate.name for candidate in right)}")
    reading, copying = _readings(device, field), copies(field)
    works = [*reading, *(TimedWork.repeating(candidate.queue) for candidate in right), *copying]
    timings = time_in_turn(device, works, repeats)
    read = min(timings[: len(reading)], key=lambda timing: timing.seconds)
    copy_speed = max(2.0 * nbytes / timing.seconds for timing in timings[-len(copying) :]) / 1e9
    ceiling = max(nbytes / read.seconds / 1e9, copy_speed)
    timed = dict(zip((candidate.name for candidate in right), timings[len(reading) :], strict=False))
    return ReductionMeasurement(
        device=device.name,
        precision=precision,
        cells=cells,
        read_GBps=ceiling,
        read_spread=read.spread,
        copy_GBps=copy_speed,
        reductions=tuple(_result(candidate, timed.get(candidate.name), nbytes, ceiling) for candidate in candidates),
        repeats=repeats,
    )


def _result(candidate: _Candidate, timing: KernelTiming | None, nbytes: int, ceiling: float) -> ReductionResult:
    if timing is None:
        return ReductionResult(candidate.name, candidate.idea, error=candidate.error)
    speed = candidate.fields * nbytes / timing.seconds / 1e9
    function = candidate.function
    return ReductionResult(
        name=candidate.name,
        idea=candidate.idea,
        GBps=speed,
        fraction=speed / ceiling,
        milliseconds=timing.seconds * 1e3,
        spread=timing.spread,
        registers=None if function is None else int(function.num_regs),
        spills=None if function is None else int(function.local_size_bytes),
    )


def _candidates(device: Device, field: Field, values: NDArray[Any]) -> list[_Candidate]:
    """The ladder, CuPy's sums and the fused pass, each verified against NumPy in float64."""
    xp, on_device, precision = device.xp, field.deviation.reshape(-1), field.precision
    other = field.spare.reshape(-1)
    flat = values.reshape(-1)
    planes = field.grid.shape[0]
    bounds = field.grid.groups.starts(planes) * (flat.size // planes)
    expected = fused.statistics(devices.choose("cpu"), [Sections(flat, bounds)])[0][0]

    def sum_fault(queue: Callable[[], Any], depth: int, roundoff: float) -> str | None:
        total = float(device.to_host(queue()).reshape(-1)[0])
        bound = depth * roundoff * expected.absolute_total
        off = abs(total - expected.total)
        return None if off <= bound else f"sum off by {off:.2g}; rounding explains {bound:.2g}"

    found = []
    for rung in LADDER:
        summing = Summing.of(rung, xp, on_device, device.multiprocessors())
        depth = rung.depth(flat.size, device.multiprocessors())
        error = sum_fault(summing.queue, depth, _ROUNDOFF[precision])
        found.append(_Candidate(rung.name, rung.idea, summing.queue, function=summing.function, error=error))

    found.append(_Candidate("cupy.sum", f"CuPy's own, in {precision}", lambda: on_device.sum()))
    found.append(
        _Candidate("cupy, all five", "CuPy's sums, extremes and count in float64", lambda: _five(xp, on_device))
    )

    single = Pass.of(xp, [Sections(on_device, bounds)])
    compared = Pass.of(xp, [Sections(on_device, bounds, before=other)])
    exact_change = float(np.abs(flat[-1] - device.to_host(other[-1:])[0]))
    for name, idea, one, fields, change in (
        ("fused", "sums, extremes, count of what is not finite, in one pass", single, 1, 0.0),
        ("fused, change", "the same, and the largest change from a second field", compared, 2, exact_change),
    ):
        error = _fused_fault(device, one, expected, change)
        found.append(_Candidate(name, idea, one.queue, fields, one.look, error))
    return found


def _fused_fault(device: Device, one: Pass, expected: Statistics, change: float) -> str | None:
    (found,) = combined(device.to_host(one.queue()).view(STATISTICS).reshape(-1, 1))
    exactly = ("lowest", "highest", "not_finite")
    wrong = [name for name in exactly if getattr(found, name) != getattr(expected, name)]
    wrong += ["change"] if found.largest_change != change else []
    # Additions of a thread, of a warp that combines chunks, and those of the three trees; sections are added exactly.
    depth = fused.ROUNDS * 4 + ceil(one.chunks / fused.WARP) + 3 * 5
    bound = depth * _ROUNDOFF["float64"] * expected.absolute_total
    for name in ("total", "absolute_total"):
        wrong += [name] if not abs(getattr(found, name) - getattr(expected, name)) <= bound else []
    return f"{', '.join(wrong)} differ from NumPy's" if wrong else None


def _five(xp: Any, values: Any) -> None:
    """The statistics of the fused pass, written with CuPy functions."""
    values.sum(dtype=np.float64)
    abs(values).sum(dtype=np.float64)
    values.min()
    values.max()
    xp.count_nonzero(~xp.isfinite(values))


def _readings(device: Device, field: Field) -> list[TimedWork]:
    """Plain reads of the field in whole vectors, with several numbers of blocks."""
    read = compiled.function("read.cu", "read", {"THREADS": fused.THREADS})
    vectors = int(field.deviation.nbytes) // 16
    most = max(1, ceil(vectors / (_READ_LOADS * fused.THREADS)))
    kept = device.xp.empty(max(_READERS) * device.multiprocessors(), dtype=np.uint32)
    values = field.deviation.reshape(-1)

    def reading(blocks: int) -> TimedWork:
        return TimedWork.repeating(lambda: read((blocks,), (fused.THREADS,), (values, kept, np.uint64(vectors))))

    return [reading(min(most, readers * device.multiprocessors())) for readers in _READERS]
