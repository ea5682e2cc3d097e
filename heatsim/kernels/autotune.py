"""Autotuning: find the fastest kernel and launch shape for a grid on a GPU by measurement, and keep the result on disk.

All CUDA kernels give the same bits, so the choice affects only the time. A kernel that does not compile is skipped, so
autotuning never makes a run fail.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import disk_cache, launch, structs
from heatsim.kernels.catalog import KERNELS
from heatsim.kernels.compilation import FOLDER
from heatsim.kernels.cuda_graphs import LARGEST_GRID, Sweeps, record
from heatsim.kernels.ensemble.launches import MemberSteps, trial
from heatsim.kernels.launch_shapes import Choice, Shape, Task, candidates

# The code that launches the kernels and chooses among them.
_LAUNCHING = ("tiling.py", "launch_shapes.py", "autotune.py")


def _path_of(task: Task) -> Path:
    """The cache file of a choice; its name is a digest of all that the choice depends on."""
    text = json.dumps([_circumstances(task), _kernels_digest()], sort_keys=True)
    return disk_cache.cache_folder() / "tuning" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _kernels_digest() -> str:
    """A digest of the kernels' text and of the code that launches them."""
    digest = hashlib.sha256(repr([spec for spec in KERNELS if spec.backend == "cuda"]).encode())
    for path in sorted([*FOLDER.rglob("*.cu*"), *(FOLDER / name for name in _LAUNCHING)]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# Runs shorter than this many seconds are not tuned. The time of a run is estimated from the highest speed of any GPU in
# cells/s and the shortest time of a step in s.
_WORTH_TRYING = 2.0
_FASTEST_CELLS = 1e12
_SHORTEST_STEP = 1e-6

_TRIAL_SECONDS = 3e-3
_MOST_SWEEPS = 64  # per trial
_ROUNDS = 3
_HOPELESS = 3.0  # skip a shape whose first sweep takes more than this times the best one

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


def choose_for_members(task: Task, steps: float, members: Sequence[MemberSteps]) -> Choice:
    """The same for an ensemble. Only fields and coefficients are used; each T_new is overwritten."""
    return _choose(task, steps, lambda shape: _sweeps_of_members(task, shape, members), seconds)


def _choose(task: Task, steps: float, work_of: WorkOf, timer: Timer) -> Choice:
    path = _path_of(task)
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


def seconds(device: Device, work: Callable[[], None]) -> float:
    """Seconds that work takes on a GPU, by the GPU's clock."""
    return device.timed(work)()


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
        kernel.build,
        task.grid,
        task.periodic,
        task.device.multiprocessors(),
        shape.planes,
        False,
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
    return partial(_launch, graph, work)


def _launch(graph: Any, work: Work) -> None:
    """Launch a graph. Its kernels read arrays that ``work`` keeps alive."""
    graph.launch()


def _circumstances(task: Task) -> dict[str, Any]:
    """What the choice depends on besides the kernels, as JSON values."""
    return {
        "device": task.device.name,
        "software": task.device.software(),
        "cells": list(task.grid.cells),
        "graded": not task.grid.uniform,
        "periodic": list(task.periodic),
        "precision": task.precision,
        "scheme": task.scheme,
        "members": task.members or 1,
    }


def _read(path: Path, shapes: Sequence[Shape]) -> Shape | None:
    """The shape in a cache file; None if there is none, or it is not among ``shapes``."""
    try:
        named = json.loads(disk_cache.load(path))["shape"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return next((shape for shape in shapes if shape.describe() == named), None)


def _write(path: Path, task: Task, fastest: Shape, times: dict[Shape, float]) -> None:
    """Write the fastest shape, and the times per step of all shapes for information, to a cache file."""
    microseconds = [{**shape.describe(), "microseconds": round(time * 1e6, 3)} for shape, time in times.items()]
    content = {"shape": fastest.describe(), "for": _circumstances(task), "microseconds_a_step": microseconds}
    with suppress(OSError):
        disk_cache.store(path, json.dumps(content, indent=1).encode())
