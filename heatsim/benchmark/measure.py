"""Speed of the kernels on a grid, compared with a plain copy of it in the same run."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf

import numpy as np

from heatsim import device as devices
from heatsim.benchmark import check
from heatsim.benchmark.case import (
    SCHEME,
    BenchmarkCase,
    Stepping,
    new_field,
    new_ledger,
    random_case,
    random_field,
    upload,
)
from heatsim.benchmark.results import KernelResult, Measurement, StageTimings
from heatsim.benchmark.stopwatch import KernelTiming, TimedWork, elapsed, enough, time_in_turn
from heatsim.device import Device
from heatsim.kernels import autotune, catalog, structs
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.launch_shapes import Choice, Shape, Task
from heatsim.solver.field.field import Field

AUTO = "auto"  # name of the result for the autotuned kernel
_OPERATIONS = 13  # per cell and step: 7 products and 6 sums
_MOST_STEPS = 1 << 14
_SEED = 20
_CPU_REPEATS = 3
_CPU_PATIENCE = 10.0  # s; if a step on the CPU takes longer, the comparison is omitted


def measure(
    device: Device,
    specs: Sequence[KernelSpec],
    auto: bool,
    cells: tuple[int, int, int],
    precision: str,
    repeats: int,
    energy: bool,
    say: Callable[[str], None],
) -> Measurement:
    """Verify kernels, then time the correct ones, with convection on all six faces.

    Args:
        device: the device.
        specs: kernels for it; their sweeps are launched one by one. A resident kernel that does not suit the grid is
            left out.
        auto: whether the choice of "auto" is also measured, with CUDA graphs on small grids as in a run.
        cells: cells along x, y, z; the caller has checked the memory.
        precision: "float32" or "float64".
        repeats: repeats of each measurement.
        energy: whether the heat through the faces is also summed.
        say: called with a text before each part of the work.
    """
    case = random_case(cells, (False, False, False), steps=1, seed=_SEED)
    field = new_field(device, case.grid, precision, _SEED)
    specs = [spec for spec in specs if not spec.resident or _task(field, case).suits(spec)]
    errors, shapes, chosen = _verify(field, case, specs, auto, say)
    steppings = {name: _stepping(shape, field, case, energy, recorded=name == AUTO) for name, shape in shapes.items()}
    say(f"{precision}: timing {', '.join(('copy', *steppings))}")
    works = {name: _work(stepping) for name, stepping in steppings.items()}
    copy, timed = _time_with_copy(field, works, repeats)
    speeds = {name: case.grid.cell_count / timing.seconds / 1e9 for name, timing in timed.items()}
    stages = None
    if speeds:
        say(f"{precision}: timing the stages of a computation")
        fastest = max(speeds, key=lambda name: speeds[name])
        stages = _time_stages(fastest, works[fastest], field, repeats)
    cpu = _cpu_speed(case, precision, energy, say) if device.backend == "cuda" else speeds.get(catalog.AUTO["cpu"])
    copy_speed = 2.0 * int(field.deviation.nbytes) / copy.seconds / 1e9
    value = int(field.deviation.itemsize)
    ceiling = copy_speed / (2.0 * value)
    return Measurement(
        device=device.name,
        precision=precision,
        cells=cells,
        copy_GBps=copy_speed,
        ceiling_GCells=ceiling,
        kernels=tuple(
            KernelResult(name, error=error)
            if error
            else _result(name, steppings[name], timed[name].spread, speeds, ceiling, cpu, value, chosen)
            for name, error in errors.items()
        ),
        copy_spread=copy.spread,
        cpu_GCells=cpu,
        stages=stages,
        energy=energy,
        repeats=repeats,
    )


def _verify(
    field: Field, case: BenchmarkCase, specs: Sequence[KernelSpec], auto: bool, say: Callable[[str], None]
) -> tuple[dict[str, str], dict[str, Shape], Choice | None]:
    """The error of each kernel ("" if correct), the shapes of the correct ones, and the choice of "auto"."""
    device, precision, cells = field.device, field.precision, case.grid.cells
    errors = {}
    for spec in specs:
        say(f"{precision}: verifying {spec.name}")
        errors[spec.name] = check.fault(spec, device, precision, cells)
    shapes = {spec.name: Shape(spec) for spec in specs}
    chosen = None
    if auto:
        say(f"{precision}: autotuning")
        chosen = _choose(field, case)
        shapes[AUTO] = chosen.shape
        errors[AUTO] = check.fault(chosen.shape.spec, device, precision, cells)
    return errors, {name: shape for name, shape in shapes.items() if not errors[name]}, chosen


def _time_with_copy(
    field: Field, works: Mapping[str, TimedWork], repeats: int
) -> tuple[KernelTiming, dict[str, KernelTiming]]:
    """The times of the fastest copy of the field and of each work, all measured in turn."""
    copying = copies(field)
    timings = time_in_turn(field.device, [*copying, *works.values()], repeats)
    copy = min(timings[: len(copying)], key=lambda timing: timing.seconds)
    return copy, dict(zip(works, timings[len(copying) :], strict=True))


def _result(
    name: str,
    stepping: Stepping,
    spread: float,
    speeds: Mapping[str, float],
    ceiling: float,
    cpu: float | None,
    value: int,
    chosen: Choice | None,
) -> KernelResult:
    """The result of one kernel; ``value`` is the size of a value in bytes."""
    speed, naive = speeds[name], speeds.get("naive")
    return KernelResult(
        name=name,
        GCells=speed,
        fraction=speed / ceiling,
        spread=spread,
        registers=stepping.registers,
        spills=stepping.spills,
        effective_GBps=speed * 2.0 * value,
        GFLOPs=speed * _OPERATIONS,
        intensity=_OPERATIONS * stepping.reach / (2.0 * value),
        over_naive=speed / naive if naive else None,
        over_cpu=speed / cpu if cpu else None,
        launch=chosen.describe() if chosen and name == AUTO else None,
    )


def _choose(field: Field, case: BenchmarkCase) -> Choice:
    """The choice of a run on the field's GPU and grid that is long enough for autotuning."""
    coefficients = np.array((case.c,), dtype=structs.coefficients_dtype(field.precision))
    return autotune.choose(_task(field, case), inf, field.deviation, field.spare, coefficients)


def _task(field: Field, case: BenchmarkCase) -> Task:
    return Task(field.device, case.grid, case.periodic, field.precision, SCHEME)


def _stepping(shape: Shape, field: Field, case: BenchmarkCase, energy: bool, recorded: bool = False) -> Stepping:
    return Stepping(shape, field, case, new_ledger(field.device, case, energy), _MOST_STEPS, recorded=recorded)


def _work(stepping: Stepping) -> TimedWork:
    return TimedWork(stepping.advance, unit=stepping.reach, most=_MOST_STEPS)


def copies(field: Field) -> list[TimedWork]:
    """Ways to copy the current values to the spare buffer; the fastest one defines the ceiling."""
    source, target, xp = field.deviation.reshape(-1), field.spare.reshape(-1), field.device.xp

    if field.device.backend == "cuda":
        return [
            TimedWork.repeating(lambda: target.data.copy_from_device_async(source.data, source.nbytes)),
            TimedWork.repeating(lambda: xp.positive(source, out=target)),
        ]
    cores = os.cpu_count() or 1
    parts = list(zip(np.array_split(target, cores), np.array_split(source, cores), strict=True))

    def copy_on_all_cores(count: int) -> None:
        with ThreadPoolExecutor(cores) as pool:
            for _ in range(count):
                list(pool.map(lambda part: np.copyto(*part), parts))

    return [TimedWork(copy_on_all_cores), TimedWork.repeating(lambda: np.copyto(target, source))]


def _time_stages(kernel: str, work: TimedWork, field: Field, repeats: int) -> StageTimings:
    """Wall-clock times of four stages: make a field on the host, send it to the device, advance it, fetch it."""
    device = field.device
    steps = enough(device, work)
    times: dict[str, list[float]] = {
        stage: [] for stage in ("generate", "host_to_device", "kernel", "device_to_host", "total")
    }
    for repeat in range(repeats + 1):
        marks = [time.perf_counter()]
        deviation = random_field(field.grid, field.precision, _SEED + repeat)
        marks.append(time.perf_counter())
        upload(field, deviation)
        device.synchronise()
        marks.append(time.perf_counter())
        work.do(steps)
        device.synchronise()
        marks.append(time.perf_counter())
        device.to_host(field.deviation)
        marks.append(time.perf_counter())
        if repeat:  # the first repeat is a warm-up
            for stage, duration in zip(times, (*np.diff(marks), marks[-1] - marks[0]), strict=True):
                times[stage].append(float(duration))
    timings = {stage: KernelTiming.of(durations) for stage, durations in times.items()}
    return StageTimings(
        kernel=kernel,
        steps=steps,
        seconds={stage: timing.seconds for stage, timing in timings.items()},
        spread={stage: timing.spread for stage, timing in timings.items()},
    )


def _cpu_speed(case: BenchmarkCase, precision: str, energy: bool, say: Callable[[str], None]) -> float | None:
    """GCells/s of this machine's CPU with its fastest kernel on the same grid; None if it is wrong or too slow."""
    say(f"{precision}: timing the CPU for comparison")
    device = devices.choose("cpu")
    spec = catalog.choose("auto", "cpu")
    if check.fault(spec, device, precision, case.grid.cells):
        return None
    field = new_field(device, case.grid, precision, _SEED)
    work = _work(_stepping(Shape(spec), field, case, energy))
    if elapsed(device, work, work.unit) > _CPU_PATIENCE:
        return None
    (timing,) = time_in_turn(device, [work], _CPU_REPEATS)
    return case.grid.cell_count / timing.seconds / 1e9
