"""Speed of the primers: the stages of a computation on a GPU, its kernels, and the same on the CPU."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim import device as devices
from heatsim.benchmark.measure import copies
from heatsim.benchmark.memory import check_memory
from heatsim.benchmark.stopwatch import KernelTiming, TimedWork, elapsed, time_in_turn
from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels.primers.primers import PRIMERS, RADIUS, Primer
from heatsim.solver.field.field import Field

_SEED = 33


@dataclass(frozen=True)
class PrimerResult:
    """The result of one kernel. If it is wrong, all but name, idea and error are None.

    Attributes:
        name: of the kernel.
        idea: in a few words.
        milliseconds: the median time of a launch.
        spread: (largest − smallest) / median of the times.
        GBps: bytes of the values, each read once and written once, / s / 1e9.
        fraction: GBps / that of a copy.
        over_cpu: time on the CPU / time of the kernel.
        over_cpu_with_copies: time on the CPU / time of the kernel and both copies between host and GPU.
        registers: registers per thread.
        error: None if it is correct.
    """

    name: str
    idea: str
    milliseconds: float | None = None
    spread: float | None = None
    GBps: float | None = None
    fraction: float | None = None
    over_cpu: float | None = None
    over_cpu_with_copies: float | None = None
    registers: int | None = None
    error: str | None = None

    @property
    def verdict(self) -> str:
        """The word "right" or "wrong" for a table."""
        return "wrong" if self.error else "right"


@dataclass(frozen=True)
class PrimerMeasurement:
    """The measurements of one primer in one precision.

    Attributes:
        device: name of the GPU.
        precision: "float32" or "float64".
        primer: its name.
        shape: of its array.
        cores: CPU threads that compute the same.
        copy_GBps: bytes read and written per second by a copy on the GPU / 1e9.
        milliseconds: median time of each stage: "generate" on the host, "to the GPU", "to the host", "CPU".
        kernels: one result per kernel.
        repeats: repeats of each measurement.
    """

    device: str
    precision: str
    primer: str
    shape: tuple[int, ...]
    cores: int
    copy_GBps: float
    milliseconds: dict[str, float]
    kernels: tuple[PrimerResult, ...]
    repeats: int


def measure_primers(
    device: Device, edge: int, precision: str, repeats: int, say: Callable[[str], None]
) -> list[PrimerMeasurement]:
    """Verify the kernels of all primers, then time the correct ones.

    Args:
        device: a GPU.
        edge: pixels along either axis of the image; the line has as many values as the image.
        precision: "float32" or "float64".
        repeats: repeats of each measurement.
        say: called with a text before each part of the work.

    Raises:
        CapacityError: the arrays do not fit in memory; nothing has been allocated.
    """
    nbytes = edge * edge * np.dtype(precision).itemsize
    check_memory(f"--cells {edge} in {precision} needs", device, 3 * nbytes, host=7 * nbytes)
    return [_measure(device, primer, edge, precision, repeats, say) for primer in PRIMERS]


def shape_of(primer: Primer, edge: int) -> tuple[int, ...]:
    """The shape of a primer's array for an image of edge × edge pixels."""
    return (edge * edge,) if primer.dimensions == 1 else (edge, edge)


def some_values(shape: tuple[int, ...], precision: str) -> NDArray[Any]:
    """Random values from 0 to 1."""
    return np.asarray(np.random.default_rng(_SEED).random(shape, dtype=np.dtype(precision).type))


def _measure(
    device: Device, primer: Primer, edge: int, precision: str, repeats: int, say: Callable[[str], None]
) -> PrimerMeasurement:
    from numba import get_num_threads

    shape = shape_of(primer, edge)
    nx, ny, *_ = (*reversed(shape), 1)
    say(f"{primer.name}, {precision}: making values")
    values = some_values(shape, precision)
    field = Field(device, Grid((nx, ny, 1), (1.0, 1.0, 1.0)), precision, reference=0.0)
    source, target = field.deviation.reshape(shape), field.spare.reshape(shape)
    source.set(values)

    say(f"{primer.name}, {precision}: verifying")
    expected, result = primer.oracle(values), np.empty_like(values)
    on_cpu = _on_cpu(primer, values, result)
    on_cpu()
    assert np.array_equal(result, expected), "the CPU kernel differs from the oracle"
    launched = {kernel.name: primer.launcher(kernel, source, target) for kernel in primer.kernels}
    errors = {name: _fault(device, launch, target, expected) for name, (_, launch) in launched.items()}
    right = [name for name, error in errors.items() if error is None]

    say(f"{primer.name}, {precision}: timing {', '.join(right)}")
    copying = copies(field)
    timings = time_in_turn(device, [*(TimedWork.repeating(launched[name][1]) for name in right), *copying], repeats)
    copy_GBps = max(2.0 * values.nbytes / timing.seconds for timing in timings[len(right) :]) / 1e9
    cpu = devices.choose("cpu")
    stages = {
        "generate": _seconds(cpu, lambda: some_values(shape, precision), repeats),
        "to the GPU": _seconds(device, lambda: source.set(values), repeats),
        "to the host": _seconds(device, lambda: source.get(out=result), repeats),
        "CPU": _seconds(cpu, on_cpu, repeats),
    }
    results = [PrimerResult(kernel.name, kernel.idea, error=errors[kernel.name]) for kernel in primer.kernels]
    timed = dict(zip(right, timings, strict=False))
    return PrimerMeasurement(
        device=device.name,
        precision=precision,
        primer=primer.name,
        shape=shape,
        cores=get_num_threads(),
        copy_GBps=copy_GBps,
        milliseconds={stage: seconds * 1e3 for stage, seconds in stages.items()},
        kernels=tuple(
            _timed(one, timed[one.name], values.nbytes, copy_GBps, stages, launched[one.name][0])
            if one.name in timed
            else one
            for one in results
        ),
        repeats=repeats,
    )


def _timed(
    result: PrimerResult, timing: KernelTiming, nbytes: int, copy_GBps: float, stages: dict[str, float], function: Any
) -> PrimerResult:
    """The result of a correct kernel with its times.

    Args:
        result: name and idea.
        timing: of a launch.
        nbytes: of the values.
        copy_GBps: speed of a copy on the GPU.
        stages: seconds of the other stages.
        function: the compiled kernel.
    """
    speed, copied = 2.0 * nbytes / timing.seconds / 1e9, stages["to the GPU"] + stages["to the host"]
    return replace(
        result,
        milliseconds=timing.seconds * 1e3,
        spread=timing.spread,
        GBps=speed,
        fraction=speed / copy_GBps,
        over_cpu=stages["CPU"] / timing.seconds,
        over_cpu_with_copies=stages["CPU"] / (timing.seconds + copied),
        registers=int(function.num_regs),
    )


def _on_cpu(primer: Primer, values: NDArray[Any], result: NDArray[Any]) -> Callable[[], None]:
    """Computes the primer on all cores."""
    from heatsim.kernels.primers import cpu

    if primer.function == "conduct":
        between = np.empty_like(values)
        return lambda: cpu.conduct(values, between, result)
    if primer.dimensions == 1:
        return lambda: cpu.moving_sum(values, result, RADIUS)
    return lambda: cpu.smooth(values, result)


def _fault(device: Device, launch: Callable[[], None], target: Any, expected: NDArray[Any]) -> str | None:
    """What is wrong with a kernel: it must give the oracle's bits."""
    target.fill(np.nan)
    launch()
    found = device.to_host(target)
    wrong = int(np.count_nonzero(found.view(np.uint8) != expected.view(np.uint8)))
    return f"{wrong:,} bytes differ from NumPy's" if wrong else None


def _seconds(device: Device, work: Callable[[], object], repeats: int) -> float:
    """The median seconds of some work that takes long enough to be timed alone."""
    return median(elapsed(device, TimedWork.repeating(work), 1) for _ in range(repeats))
