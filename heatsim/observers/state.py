"""A run as its observers see it."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from heatsim.errors import NotFiniteError
from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.parallel.team import Team
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.energy_bound import EnergyBound
from heatsim.solver.field.field import Field
from heatsim.solver.field.field_copy import FieldCopy
from heatsim.solver.field.field_statistics import FieldStatistics
from heatsim.solver.field.restart_point import RestartPoint
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.nodes.node_stages import node_stages
from heatsim.solver.rows.observables import Observables
from heatsim.solver.rows.row_sums import RowSums
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.solver.steady.steady_state import SteadyState
from heatsim.storage.writer import Writer


@dataclass(frozen=True)
class Record:
    """A temperature that was never lower, or never higher, at the due times so far.

    Attributes:
        temperature: in K.
        time: in s.
        cell: (x, y, z), where it was looked for.
        point: (x, y, z) in m, where it is not the centre of the cell or of its face.
    """

    temperature: float
    time: float
    cell: tuple[int, int, int] | None = None
    point: tuple[float, float, float] | None = None

    def as_list(self) -> list[float]:
        """The numbers one after the other."""
        return [self.temperature, self.time, *(self.cell or ()), *(self.point or ())]

    @classmethod
    def from_list(cls, values: Sequence[float]) -> "Record":
        """The record with the numbers of :meth:`as_list`."""
        temperature, time, *place = values
        cell = (int(place[0]), int(place[1]), int(place[2])) if place else None
        return cls(temperature, time, cell, (place[3], place[4], place[5]) if len(place) > 3 else None)


class EnergyRow(NamedTuple):
    """The energy balance at a row.

    Attributes:
        heats: the time in s, and heats in J since the start, by name.
        turnover: the heat in J that has entered the body since the start, or that has left it if this is more.
    """

    heats: dict[str, float]
    turnover: float


class LeftRange(NamedTuple):
    """A material, source or surface that left the range of its tables, or a flux that cools one below 0 K; the side.

    Attributes:
        kind: "material", "source", "surface", "contact" or "flux".
        name: its name, or the key of its condition.
        side: "low" or "high".
    """

    kind: str
    name: str
    side: str


@dataclass
class RunState:
    """A run as its observers see it.

    Attributes:
        problem: the numbers of the scenario.
        part: the problem of the planes that this rank steps; ``problem`` in a run on one rank.
        field: the temperatures after ``step`` steps; device work up to there is done.
        ledger: the heat through the faces up to there.
        folder: where the run writes.
        step: number of steps done.
        statistics: heat, extremes and means of the field.
        arrays: the arrays of ``part`` on the field's device.
        initial_heat: Σ ρ·cp·V·(T − T_ref) in J at step 0.
        energy_row: the last row of energy.csv that was made; None without one.
        energy_bound: how large the residual of the energy balance may be, by the rows that were made; None without one.
        wall_time: wall-clock seconds of stepping so far, those of earlier parts of a resumed run included.
        stopped: whether the run is to end here, before its last step.
        lowest: the lowest temperature at the due times so far.
        highest: the highest temperature at the due times so far.
        beyond: the most extreme temperature of each material or source that left the range of its tables.
        of_probes: the records of probes whose statistic is "max" or "min", by their names.
        compared: a step done and the deviations after it, for runs that end when the field changes no more.
        steady: how the steady state was found that the field holds; None of a run in which time passes.
        method: the stepper of a method that chooses its own steps; None for ``euler`` and ``steady``.
        writer: writes fields and checkpoints while the run goes on.
        put_in: heat in J that a new field has put in, by the time in s.
        copies: whether the device has room for a copy of the field; without one the run waits while a field is written.
    """

    problem: HeatProblem
    part: HeatProblem
    field: Field
    ledger: Ledger
    statistics: FieldStatistics
    arrays: CompositeArrays
    folder: Path
    step: int = 0
    initial_heat: float = 0.0
    energy_row: EnergyRow | None = None
    energy_bound: EnergyBound | None = None
    wall_time: float = 0.0
    stopped: bool = False
    lowest: Record | None = None
    highest: Record | None = None
    beyond: dict[LeftRange, Record] = dataclasses.field(default_factory=dict)
    of_probes: dict[str, Record] = dataclasses.field(default_factory=dict)
    compared: tuple[int, Any] | None = None
    steady: SteadyState | None = None
    method: AdaptiveStepper | None = None
    writer: Writer = dataclasses.field(default_factory=Writer)
    put_in: dict[float, float] = dataclasses.field(default_factory=dict)
    copies: bool = True

    _copy: tuple[int, FieldCopy] | None = None
    _room: Any = None
    _time: tuple[int, float] = (-1, 0.0)
    _finite_at: int | None = None
    _sums: RowSums = dataclasses.field(default_factory=RowSums)

    def field_was_set(self) -> None:
        """Forget what was found of the field of this step: it is another one now."""
        self._copy = self._finite_at = None
        self.check()

    def show_nodes(self) -> None:
        """Find the nodes without a heat capacity for the field of a run in which time passes. Collective."""
        nodes = None if self.problem.scenario.steady else node_stages(self.part, self.field)
        if nodes is not None:
            nodes.show(self.field.deviation, self.time)

    @property
    def team(self) -> Team:
        """The ranks that do the run."""
        return self.field.team

    @property
    def time(self) -> float:
        """Simulated time in s."""
        if self._time[0] != self.step:
            self._time = (self.step, self.problem.timeline.time(self.step))
        return self._time[1]

    @property
    def reached(self) -> float:
        """The time in s to which the run has been calculated: at least that of the field."""
        return self.time if self.method is None else self.method.reached

    @property
    def progress(self) -> str:
        """The steps done so far, as text."""
        return f"at step {self.step:,}" if self.method is None else f"after {self.method.describe()}"

    @property
    def roundings(self) -> float:
        """The weighted roundings of a method that chooses its own steps; 0 for others."""
        return 0.0 if self.method is None else self.method.roundings

    @property
    def imbalance(self) -> float:
        """Heat in J that a solver of equations left in the steps so far, by magnitude; 0 for methods without one."""
        return 0.0 if self.method is None else self.method.counts.get("imbalance", 0.0)

    @property
    def finished(self) -> bool:
        """Whether the last step is done, or none is needed."""
        return self.stopped or self.step >= self.problem.timeline.last_step

    @property
    def observables(self) -> Observables:
        """The data that observers read at a due time."""
        return Observables(self.field, self.ledger, self.statistics)

    def queue_row(self) -> None:
        """On a GPU, queue the sums that :meth:`find_row` will read, behind the steps so far."""
        self._sums.queue([self.observables])

    def find_row(self) -> None:
        """Find the sums that observers read at this due time, unless they are known. Collective."""
        if self._sums.queued or not self.field.known:
            self._sums.find([self.observables])

    def check(self) -> None:
        """Check that the sum of the field is finite, once a step.

        Raises:
            NotFiniteError: there is NaN or infinity in the field.
        """
        if self._finite_at != self.step:
            self.check_finite(self.field)
            self._finite_at = self.step

    def check_finite(self, field: Field) -> None:
        """Check that the sum of a field is finite.

        Raises:
            NotFiniteError: there is NaN or infinity in it.
        """
        if not (field.reduction().finite or np.isfinite(field.total())):
            raise NotFiniteError(
                f"NaN or infinity in the field, seen {self.progress} (t = {self.time!r} s); nothing of it was saved. "
                "The files up to the step before are good, the last checkpoint too"
            )

    def write(self, work: Callable[[FieldCopy], object]) -> None:
        """Have something done with the field as it is at this step; the run goes on in the meantime.

        One copy of the field is kept at most: at another step than the last time, what was handed over then is waited
        for first.

        Raises:
            StorageError: what was to be written before could not be.
        """
        with self._copy_of_step() as field_copy:
            self.writer.submit(partial(work, field_copy))

    def restart_point(self) -> RestartPoint:
        """Where a run goes on that is resumed from a checkpoint written now. A finished run has what it shows."""
        if self.method is not None and not self.finished:
            return self.method.restart_point()
        values = {} if self.method is None else self.method.values()
        network = self.problem.boundary.network
        nodes = {} if network is None else network.saved()
        return RestartPoint(self.step, self.field, self.ledger.save(), values | nodes)

    def write_beside(self, field: Field, work: Callable[[FieldCopy, Callable[[], None]], object]) -> None:
        """Have something done with a field beside what was handed over before.

        ``work`` is also given what waits for that, and raises its error if it failed. Of the copy it may read the
        deviations only. A field that is not the one at this step is not copied; then the run waits for ``work``.

        Raises:
            StorageError: what was to be written before could not be.
        """
        if field is not self.field:
            self.writer.submit_beside(partial(work, FieldCopy(field)))
            self.writer.wait()
            return
        with self._copy_of_step() as field_copy:
            self.writer.submit_beside(partial(work, field_copy))

    @contextmanager
    def _copy_of_step(self) -> Iterator[FieldCopy]:
        """The field as it is at this step; what is handed over meanwhile is waited for where the field is no copy."""
        copied = self.copies and not self.finished
        if self._copy is None or self._copy[0] != self.step:
            self.writer.wait()
            if copied and self._room is None:
                try:
                    self._room = self.field.device.xp.empty_like(self.field.own)
                except MemoryError:
                    self.copies = copied = False
            self._copy = (self.step, FieldCopy(self.field, self._room if copied else None))
        yield self._copy[1]
        if not (copied or self.finished):
            self.writer.wait()
