"""Autotuning: find the fastest kernel and launch shape for a grid on a GPU by measurement, and keep the result on disk.

All CUDA kernels give the same bits, so the choice affects only the time. A kernel that does not compile is skipped, so
autotuning never makes a run fail.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import autotune_cache, compilation, fitting, launch, structs, tiling
from heatsim.kernels.catalog import KERNELS, RESIDENT, KernelSpec
from heatsim.kernels.cuda_graphs import LARGEST_GRID, Sweeps, record
from heatsim.kernels.ensemble.launches import MemberSteps, trial
from heatsim.physics.coefficients import Scheme

# Runs shorter than this many seconds are not tuned. The time of a run is estimated from the highest speed of any GPU in
# cells/s and the shortest time of a step in s.
_WORTH_TRYING = 2.0
_FASTEST_CELLS = 1e12
_SHORTEST_STEP = 1e-6

# Rules of thumb for runs that are not tuned: `resident` where it suits, else `boxed` up to 2¹⁹ cells, and `temporal`
# from 2²³ cells.
_SMALL_GRID = 1 << 19
LARGE_GRID = 1 << 23
# For ensembles: `temporal` from 2²⁰ cells in total; `boxed` if a member has fewer than 24 cells along x or y, because
# `temporal` tiles would be mostly empty.
_LARGE_ENSEMBLE = 1 << 20
_NARROW = 24
# Boxes, each with the smallest and largest grid in cells for which it is tried: enough boxes for the device, few halos.
_BOXES = (((16, 16, 8), 0, 1 << 22), ((8, 8, 8), 0, 1 << 18), ((32, 16, 16), 1 << 18, 1 << 22))

_STREAMED_PLANES = (1, 2, 4, 8, 16, 32)

_TRIAL_SECONDS = 3e-3
_MOST_SWEEPS = 64  # per trial
_ROUNDS = 3
_HOPELESS = 3.0  # skip a shape whose first sweep takes more than this times the best one


@dataclass(frozen=True)
class Shape:
    """A kernel and how it is launched.

    Attributes:
        spec: the kernel, with the tile and the steps a sweep that it is built for.
        planes: planes that a block marches through; None for the default of launch.launches.
    """

    spec: KernelSpec
    planes: int | None = None

    def describe(self) -> dict[str, Any]:
        """The shape as JSON values, for the summary and the cache file."""
        return {
            "kernel": self.spec.name,
            "steps_a_sweep": self.spec.steps,
            "tile": list(self.spec.tile),
            "planes": self.planes,
        }


@dataclass(frozen=True)
class Choice:
    """A shape and its origin: the user, a rule of thumb, a measurement now, or one from the cache file."""

    shape: Shape
    chosen: Literal["asked for", "by rule", "tried", "remembered"]

    def describe(self) -> dict[str, Any]:
        """The choice as JSON values, for the summary."""
        return {**self.shape.describe(), "chosen": self.chosen}


@dataclass(frozen=True)
class Task:
    """The work to tune for.

    Attributes:
        device: a GPU.
        grid, periodic: the cells, and which axes wrap.
        precision, scheme: how steps are summed.
        members: number of grids that the same launches step, one or more; None for a run alone.
    """

    device: Device
    grid: Grid
    periodic: tuple[bool, bool, bool]
    precision: str
    scheme: Scheme
    members: int | None = None

    @property
    def cells(self) -> int:
        """Cells of all members."""
        return (self.members or 1) * self.grid.cell_count

    def suits(self, spec: KernelSpec) -> bool:
        """Whether a kernel works on this grid and device without falling back to single steps."""
        built = self.builds(spec)[0].spec
        return built.resident if spec.resident else built == spec

    def builds(self, spec: KernelSpec) -> tuple[compilation.Build, ...]:
        """The builds that together can do any number of steps."""
        return fitting.builds(
            *(spec, self.precision, self.scheme, self.grid, self.periodic, self.device.room()),
            members=self.members is not None,
        )


Timer = Callable[[Device, Callable[[], None]], float]
Work = Callable[[int], None]  # queues a number of sweeps
WorkOf = Callable[[Shape], Work]


def choose(
    task: Task, steps: float, T: Any, T_new: Any, coefficients: NDArray[Any], timer: Timer | None = None
) -> Choice:
    """The fastest shape: from the cache file, else measured; by rule if the run is too short or no shape works.

    Args:
        task: the work.
        steps: number of steps of the run; inf to measure always.
        T: the field on the device; it is read.
        T_new: a buffer like T; it is overwritten.
        coefficients: struct Coefficients.
        timer: measures the seconds of work on the device; None for the device's clock.
    """
    return _choose(task, steps, lambda shape: _sweeps(task, shape, T, T_new, coefficients), timer or seconds)


def choose_for_members(task: Task, steps: float, members: Sequence[MemberSteps], timer: Timer | None = None) -> Choice:
    """The same for an ensemble. Only fields and coefficients are used; each T_new is overwritten."""
    return _choose(task, steps, lambda shape: _sweeps_of_members(task, shape, members), timer or seconds)


def _choose(task: Task, steps: float, work_of: WorkOf, timer: Timer) -> Choice:
    path = autotune_cache.path_of(_circumstances(task))
    shapes = candidates(task)
    remembered = _read(path, shapes)
    if remembered is not None:
        return Choice(remembered, "remembered")
    if not is_worth_trying(task.cells, steps):
        return Choice(shapes[0], "by rule")
    times = _try(task, shapes, work_of, timer)
    if not times:
        return Choice(shapes[0], "by rule")
    fastest = min(times, key=lambda shape: times[shape])
    _write(path, task, fastest, times)
    return Choice(fastest, "tried")


def is_worth_trying(cells: int, steps: float) -> bool:
    """Whether a run is long enough for autotuning."""
    return steps * max(cells / _FASTEST_CELLS, _SHORTEST_STEP) >= _WORTH_TRYING


def candidates(task: Task) -> tuple[Shape, ...]:
    """All shapes to measure; the first is the choice by rule."""
    spec = {kernel.name: kernel for kernel in KERNELS}
    cells = task.cells

    streamed = [Shape(spec["streamed"])]
    streamed += [Shape(spec["streamed"], planes) for planes in _STREAMED_PLANES if planes <= task.grid.cells[2]]
    variants = [
        replace(spec["boxed"], tile=box) for box, least, most in _BOXES if least <= task.grid.cell_count <= most
    ]
    boxed = [Shape(variant) for variant in variants if task.suits(variant)]
    resident = [Shape(kernel) for kernel in RESIDENT if task.suits(kernel)]
    temporal = [Shape(spec["temporal"])] if cells > _SMALL_GRID and task.suits(spec["temporal"]) else []

    together = (task.members or 1) > 1
    shallow = in_three_steps(spec["temporal"])
    if temporal and together and task.precision == "float64" and task.suits(shallow):
        temporal = sorted((*temporal, Shape(shallow)), key=lambda shape: _cells_made(task, shape.spec))
    if resident:
        return (*resident, *boxed, *streamed, *temporal)
    if boxed and (cells <= _SMALL_GRID or (together and min(task.grid.cells[:2]) < _NARROW)):
        return (*boxed, *streamed, *temporal)
    if temporal and cells >= (_LARGE_ENSEMBLE if together else LARGE_GRID):
        return (*temporal, *streamed, *boxed)
    return (*streamed, *temporal, *boxed)


def in_three_steps(temporal: KernelSpec) -> KernelSpec:
    """07 with three steps per sweep, for ensembles in float64: its tiles have 36 rows.

    Two such tiles cover a plane of 64 rows; with four steps per sweep it would take three tiles of 32 rows.
    """
    return replace(temporal, block=(32, 12, 1), rows=3, steps=3)


def _cells_made(task: Task, spec: KernelSpec) -> int:
    """Cells per plane that a pipeline computes, including halos and cells outside the box."""
    pipeline = task.builds(spec)[0].pipeline
    assert pipeline is not None
    tiles = len(tiling.tiles(task.grid.cells, task.periodic, pipeline))
    return tiles * pipeline.threads * pipeline.vector * pipeline.rows


def seconds(device: Device, work: Callable[[], None]) -> float:
    """Seconds that work takes on a GPU, by the GPU's clock."""
    first, last = device.xp.cuda.Event(), device.xp.cuda.Event()
    first.record()
    work()
    last.record()
    last.synchronize()
    milliseconds: float = device.xp.cuda.get_elapsed_time(first, last)
    return milliseconds * 1e-3


def _try(task: Task, shapes: Sequence[Shape], work_of: WorkOf, timer: Timer) -> dict[Shape, float]:
    """Seconds per step of each shape that works, the minimum of a few rounds."""
    trials: dict[Shape, Callable[[], None]] = {}
    steps: dict[Shape, int] = {}
    times: dict[Shape, float] = {}
    best = inf
    for shape in shapes:
        with suppress(Exception):  # a shape that fails is skipped
            work = work_of(shape)
            work(1)  # the first call may load the kernel
            once = timer(task.device, partial(work, 1))
            if once / shape.spec.steps > _HOPELESS * best:
                continue
            best = min(best, once / shape.spec.steps)
            sweeps = max(1, min(_MOST_SWEEPS, round(_TRIAL_SECONDS / max(once, 1e-9))))
            trials[shape], steps[shape] = _repeated(task, shape, work, sweeps), sweeps * shape.spec.steps
    # In rounds over all shapes, so that a drift of the clock rate affects all equally.
    for _ in range(_ROUNDS):
        for shape, repeat in trials.items():
            with suppress(Exception):
                times[shape] = min(times.get(shape, inf), timer(task.device, repeat) / steps[shape])
    return times


def _sweeps(task: Task, shape: Shape, T: Any, T_new: Any, coefficients: NDArray[Any]) -> Work:
    """Sweeps from T to T_new. Faces are insulated, which costs the same as other conditions."""
    kernel = launch.compile_kernel(task.builds(shape.spec)[0])
    launches = launch.launches(
        kernel.build, task.grid, task.periodic, task.device.multiprocessors(), planes=shape.planes
    )
    sweeps = Sweeps(kernel, launches, coefficients, np.zeros((), dtype=structs.LEDGER))
    table = task.device.xp.zeros(_MOST_SWEEPS * sweeps.sweep_bytes, dtype=np.uint8)

    def work(count: int) -> None:
        if sweeps.together and count > 1:
            sweeps.queue(count, T_new, T_new, int(table.data.ptr))  # several steps write both buffers
            return
        for _ in range(count):
            sweeps.queue(1, T, T_new, int(table.data.ptr))

    return work


def _sweeps_of_members(task: Task, shape: Shape, members: Sequence[MemberSteps]) -> Work:
    """Sweeps of every member, from T to T_new."""
    kernel = launch.compile_kernel(task.builds(shape.spec)[0])
    launches = launch.launches(
        *(kernel.build, task.grid, task.periodic, task.device.multiprocessors(), shape.planes, False),
        members=task.members or 1,
    )
    sweep = trial(kernel, launches, task.device, members)

    def work(count: int) -> None:
        for _ in range(count):
            sweep()

    return work


def _repeated(task: Task, shape: Shape, work: Work, count: int) -> Callable[[], None]:
    """A number of sweeps, as a CUDA graph if a run would use one."""
    if task.cells > LARGEST_GRID or shape.spec.resident:
        return partial(work, count)
    graph = record(task.device, partial(work, count))
    graph.launch()  # the first launch takes longer
    return lambda: graph.launch()


def _circumstances(task: Task) -> dict[str, Any]:
    """What the choice depends on besides the kernels, as JSON values."""
    return {
        "device": task.device.name,
        "software": task.device.software(),
        "cells": list(task.grid.cells),
        "periodic": list(task.periodic),
        "precision": task.precision,
        "scheme": task.scheme,
        "members": task.members or 1,
    }


def _read(path: Path, shapes: Sequence[Shape]) -> Shape | None:
    """The shape in a cache file; None if there is none, or it is not among ``shapes``."""
    named = autotune_cache.read(path)
    return next((shape for shape in shapes if shape.describe() == named), None)


def _write(path: Path, task: Task, fastest: Shape, times: dict[Shape, float]) -> None:
    """Write the fastest shape, and the times of all shapes for information, to a cache file."""
    microseconds = [{**shape.describe(), "microseconds": round(time * 1e6, 3)} for shape, time in times.items()]
    autotune_cache.write(path, fastest.describe(), _circumstances(task), microseconds)
