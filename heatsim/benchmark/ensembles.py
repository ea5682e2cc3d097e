"""Speed of ensembles, compared with one large grid that the same kernel steps in the same run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from heatsim import device as devices
from heatsim.benchmark.case import SCHEME, Stepping, new_field, new_ledger, random_case
from heatsim.benchmark.measure import AUTO
from heatsim.benchmark.memory import check_memory
from heatsim.benchmark.stopwatch import TimedWork, time_in_turn
from heatsim.counts import counted
from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import autotune, catalog, fitting, structs
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.ensemble.launches import EnsembleLaunches, MemberSteps
from heatsim.kernels.launch_shapes import Choice, Shape, Task

_SEED = 22
_MOST_STEPS = 1 << 12
_COMPARED = 3  # members whose bits are compared with those of a single run


@dataclass(frozen=True)
class EnsembleResult:
    """The result of one kernel. If it is wrong, all but name, launch and error are None.

    Attributes:
        name: the name in the catalog, or "auto".
        GCells: cells · members · steps / s / 1e9, from the median time.
        spread: (largest − smallest) / median of the times.
        alone_GCells: cells · steps / s / 1e9 of the large grid.
        alone_spread: the spread of its times.
        fraction: GCells / alone_GCells.
        launch: the choice of "auto"; None for a named kernel.
        error: the kernel's error; None if it is correct.
    """

    name: str
    GCells: float | None = None
    spread: float | None = None
    alone_GCells: float | None = None
    alone_spread: float | None = None
    fraction: float | None = None
    launch: dict[str, Any] | None = None
    error: str | None = None


@dataclass(frozen=True)
class EnsembleMeasurement:
    """The measurements in one precision.

    Attributes:
        device: name of the device.
        precision: "float32" or "float64".
        cells: cells of a member along x, y, z.
        members: number of members.
        alone_cells: cells of the large grid.
        kernels: one result per kernel.
        energy: whether the heat through the faces was summed.
        repeats: repeats of each measurement.
    """

    device: str
    precision: str
    cells: tuple[int, int, int]
    members: int
    alone_cells: tuple[int, int, int]
    kernels: tuple[EnsembleResult, ...]
    energy: bool
    repeats: int


def measure_ensembles(
    specs: Sequence[KernelSpec],
    auto: bool,
    cells: tuple[int, int, int],
    members: int,
    alone_cells: tuple[int, int, int],
    precision: str,
    repeats: int,
    energy: bool,
    say: Callable[[str], None],
) -> EnsembleMeasurement:
    """Verify kernels, then time the correct ones, with convection on all six faces.

    Args:
        specs: kernels for a GPU.
        auto: whether the choice of "auto" is also measured.
        cells: cells of a member.
        members: number of members.
        alone_cells: cells of the large grid.
        precision: "float32" or "float64".
        repeats: repeats of each measurement.
        energy: whether the heat through the faces is also summed.
        say: called with a text before each part of the work.

    Raises:
        CapacityError: the grids do not fit in memory; nothing has been allocated.
    """
    device = devices.choose("cuda")
    _check_capacity(device, cells, members, alone_cells, precision)
    choices: list[tuple[str, Shape, dict[str, Any] | None]] = [(spec.name, Shape(spec), None) for spec in specs]
    results = []
    if auto:
        say(f"{precision}: autotuning")
        chosen = _choose(device, cells, members, precision)
        choices.append((AUTO, chosen.shape, chosen.describe()))
    for name, shape, launched in choices:
        say(f"{precision}: verifying {name}")
        error = _fault(device, shape, cells, precision)
        if error:
            results.append(EnsembleResult(name, launch=launched, error=error))
            continue
        say(f"{precision}: timing {name}")
        together = _Ensemble(device, shape, cells, members, precision, energy)
        large = random_case(alone_cells, (False, False, False), steps=1, seed=_SEED)
        field = new_field(device, large.grid, precision, _SEED)
        alone = Stepping(_alone(shape), field, large, new_ledger(device, large, energy), _MOST_STEPS)
        works = [
            TimedWork(together.advance, unit=together.reach, most=_MOST_STEPS),
            TimedWork(alone.advance, unit=alone.reach, most=_MOST_STEPS),
        ]
        timing, alone_timing = time_in_turn(device, works, repeats)
        speed = members * together.case.grid.cell_count / timing.seconds / 1e9
        alone_speed = large.grid.cell_count / alone_timing.seconds / 1e9
        results.append(
            EnsembleResult(name, speed, timing.spread, alone_speed, alone_timing.spread, speed / alone_speed, launched)
        )
    return EnsembleMeasurement(device.name, precision, cells, members, alone_cells, tuple(results), energy, repeats)


class _Ensemble:
    """Random fields on equal grids, one per member; all members have the same coefficients and faces."""

    def __init__(
        self, device: Device, shape: Shape, cells: tuple[int, int, int], members: int, precision: str, energy: bool
    ) -> None:
        self.case = random_case(cells, (False, False, False), steps=1, seed=_SEED)
        self.fields = [new_field(device, self.case.grid, precision, _SEED + number) for number in range(members)]
        self._ledgers = [new_ledger(device, self.case, energy) for _ in range(members)]
        builds = fitting.builds(
            shape.spec, precision, SCHEME, self.case.grid, self.case.periodic, device.room(), members=True
        )
        self._launches = EnsembleLaunches(
            device, builds, self.case.grid, self.case.periodic, shape.planes, members, energy
        )
        self.reach = builds[0].spec.steps

    def advance(self, steps: int) -> None:
        """Queue ``steps`` steps of every member."""
        precision = self.fields[0].precision
        sweeps = np.zeros(1, dtype=structs.sweep_dtype(precision))
        sweeps["f"], sweeps["g"] = self.case.f, self.case.g
        coefficients = np.array((self.case.c,), dtype=structs.coefficients_dtype(precision))
        members = []
        for field, ledger in zip(self.fields, self._ledgers, strict=True):
            pointers = np.array(([sums.data.ptr if sums.size else 0 for sums in ledger],), dtype=structs.LEDGER)
            members.append(MemberSteps(field.deviation, field.spare, coefficients, pointers, sweeps, steps))
        for field, (T, T_new) in zip(self.fields, self._launches.advance(members), strict=True):
            field.deviation, field.spare = T, T_new
            field.changed()


def _alone(shape: Shape) -> Shape:
    """The shape of the same kernel for a single grid."""
    return Shape(catalog.choose(shape.spec.name, "cuda"))


def _choose(device: Device, cells: tuple[int, int, int], members: int, precision: str) -> Choice:
    """The choice of a study on the device whose runs are long enough for autotuning."""
    case = random_case(cells, (False, False, False), steps=1, seed=_SEED)
    coefficients = np.array((case.c,), dtype=structs.coefficients_dtype(precision))
    no_ledger, no_sweeps = np.zeros((), dtype=structs.LEDGER), np.zeros(0, dtype=structs.sweep_dtype(precision))
    fields = [new_field(device, case.grid, precision, _SEED + number) for number in range(members)]
    resting = [MemberSteps(field.deviation, field.spare, coefficients, no_ledger, no_sweeps, 0) for field in fields]
    task = Task(device, case.grid, case.periodic, precision, SCHEME, members)
    return autotune.choose_for_members(task, inf, resting)


def _fault(device: Device, shape: Shape, cells: tuple[int, int, int], precision: str) -> str | None:
    """Compare an ensemble's bits with those of single runs; return the error, or None if they are equal."""
    steps = 2 * shape.spec.steps + 1
    together = _Ensemble(device, shape, cells, _COMPARED, precision, energy=True)
    together.advance(steps)
    for number, field in enumerate(together.fields):
        alone = new_field(device, together.case.grid, precision, _SEED + number)
        ledger = new_ledger(device, together.case, True)
        Stepping(_alone(shape), alone, together.case, ledger, steps).advance(steps)
        if device.to_host(alone.deviation).tobytes() != device.to_host(field.deviation).tobytes():
            return f"member {number} differs from a single run"
    return None


def _check_capacity(
    device: Device, cells: tuple[int, int, int], members: int, alone: tuple[int, int, int], precision: str
) -> None:
    value = np.dtype(precision).itemsize

    def needed_by(grid: Grid) -> int:
        nx, ny, nz = grid.cells
        return 2 * value * grid.cell_count + 16 * (ny * nz + nx * nz + nx * ny)

    spacing = (1.0, 1.0, 1.0)
    needed = members * needed_by(Grid(cells, spacing)) + needed_by(Grid(alone, spacing))
    what = (
        f"--members {members}: {counted(members, 'grid')} of {cells[0]} × {cells[1]} × {cells[2]} cells beside "
        f"one of {alone[0]} × {alone[1]} × {alone[2]} in {precision} need"
    )
    check_memory(what, device, needed, remedy="use fewer")
