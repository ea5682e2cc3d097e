"""How fast the kernels are on a grid, beside a plain copy of it in the same run."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heatsim import device as devices
from heatsim.benchmark import check
from heatsim.benchmark.case import Stepping, new_ledger, random_case, random_field, upload
from heatsim.benchmark.stopwatch import Timing, Work, elapsed, enough, time_in_turn
from heatsim.device import Device
from heatsim.field import Field
from heatsim.grid import Grid
from heatsim.kernels import catalog
from heatsim.kernels.catalog import KernelSpec

# A cell and step: 7 products and 6 sums.
OPERATIONS = 13

_MOST_STEPS = 1 << 14
_SEED = 20
_CPU_KERNEL = "numba"
_CPU_REPEATS = 3
_CPU_PATIENCE = 10.0  # s that a step on the CPU may take before its comparison is left out
_STAGES = ("generate", "host_to_device", "kernel", "device_to_host", "total")


@dataclass(frozen=True)
class KernelResult:
    """One kernel. All but name and error are None where it is wrong.

    Attributes:
        name: in the catalog.
        GCells: cells · steps / s / 1e9, from the median time.
        fraction: of the ceiling.
        spread: of the time, the largest less the smallest as a fraction of the median.
        registers: of a thread; None on a CPU.
        spills: bytes of local memory that a thread spills to; None on a CPU.
        effective_GBps: 2 values a cell and step / s / 1e9.
        GFLOPs: 13 operations a cell and step / s / 1e9.
        intensity: operations a byte of memory traffic that its idea needs: one value read and one written, a sweep.
        over_naive: times as fast as naive; None where that was not measured.
        over_cpu: times as fast as numba on this machine's CPU, t_CPU / t_this; None where that was not measured.
        error: what is wrong with it, None if nothing is.
    """

    name: str
    GCells: float | None = None
    fraction: float | None = None
    spread: float | None = None
    registers: int | None = None
    spills: int | None = None
    effective_GBps: float | None = None
    GFLOPs: float | None = None
    intensity: float | None = None
    over_naive: float | None = None
    over_cpu: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class Stages:
    """A whole computation: a field made on the host, sent to the device, advanced, fetched.

    Attributes:
        kernel: what advances it, the fastest.
        steps: how far.
        seconds: median of each stage and of the total.
        spread: of each.
    """

    kernel: str
    steps: int
    seconds: dict[str, float]
    spread: dict[str, float]


@dataclass(frozen=True)
class Measurement:
    """What was measured in one precision.

    Attributes:
        device: its name.
        precision: "float32" or "float64".
        cells: along x, y, z.
        copy_GBps: bytes read and written a second by a copy on the device / 1e9.
        ceiling_GCells: that, by the bytes of one value read and one written.
        kernels: one result each.
        copy_spread: of the copy's time.
        cpu_GCells: of numba on this machine's CPU; None where it was not measured.
        stages: None where no kernel is right.
        energy: whether the heat through the faces was summed.
        repeats: of every time but the CPU's on a machine with a GPU.
    """

    device: str
    precision: str
    cells: tuple[int, int, int]
    copy_GBps: float
    ceiling_GCells: float
    kernels: tuple[KernelResult, ...]
    copy_spread: float
    cpu_GCells: float | None
    stages: Stages | None
    energy: bool
    repeats: int


def measure(
    device: Device,
    specs: Sequence[KernelSpec],
    grid: Grid,
    precision: str,
    repeats: int,
    energy: bool,
    say: Callable[[str], None],
) -> Measurement:
    """Verify kernels, then time those that are right, with convection on all six faces.

    Args:
        device: where.
        specs: kernels for it.
        grid: what is timed; memory for it is taken for granted.
        precision: "float32" or "float64".
        repeats: of every time.
        energy: whether the heat through the faces is summed too.
        say: told what is being done.
    """
    errors = {}
    for spec in specs:
        say(f"{precision}: verifying {spec.name}")
        errors[spec.name] = check.fault(spec, device, precision, grid.cells)
    right = [spec for spec in specs if not errors[spec.name]]

    say(f"{precision}: timing {', '.join(('copy', *(spec.name for spec in right)))}")
    steppings = _steppings(device, right, grid, precision, energy)
    field = steppings[0].field if steppings else _loaded_field(device, grid, precision)
    copies = [Work(copy) for copy in _copies(field)]
    works = [_stepping_work(spec, stepping) for spec, stepping in zip(right, steppings, strict=True)]
    timings = time_in_turn(device, [*copies, *works], repeats)
    copy = min(timings[: len(copies)], key=lambda timing: timing.seconds)
    step_timings = {spec.name: timing for spec, timing in zip(right, timings[len(copies) :], strict=True)}
    speeds = {name: grid.cell_count / timing.seconds / 1e9 for name, timing in step_timings.items()}

    stages = None
    if right:
        name = max(speeds, key=lambda kernel: speeds[kernel])
        say(f"{precision}: timing the stages of a computation")
        best = [spec.name for spec in right].index(name)
        stages = _time_stages(name, works[best], field, precision, repeats)
    del steppings, works, copies, field  # before the CPU needs memory of its own

    if device.backend == "cpu":
        cpu = speeds.get(_CPU_KERNEL)
    else:
        say(f"{precision}: timing {_CPU_KERNEL} on the CPU")
        cpu = _cpu_speed(grid, precision, energy)
    return _result(device, specs, grid, precision, repeats, energy, errors, copy, step_timings, right_info, cpu, stages)
