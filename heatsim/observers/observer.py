"""What every observer is and sees."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import NotFiniteError
from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.physics.energy_bound import EnergyBound
from heatsim.physics.problem import HeatProblem
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.field import Extremes, Field
from heatsim.solver.field_copy import Frame
from heatsim.solver.steady_state import SteadyState
from heatsim.storage.checkpoint import Pieces
from heatsim.storage.writer import Writer

Value = int | float | str | bool
# What a checkpoint says: values, and arrays about the files that it counts on.
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Record:
    """A temperature that was never lower, or never higher.

    Attributes:
        temperature: in K.
        time: in s.
        cell: (x, y, z), where it was looked for.
    """

    temperature: float
    time: float
    cell: tuple[int, int, int] | None = None

    def as_list(self) -> list[float]:
        """The numbers one after the other."""
        return [self.temperature, self.time, *(self.cell or ())]


@dataclass
class RunState:
    """A run as its observers see it.

    Attributes:
        problem: the numbers of the scenario.
        field: the temperatures after ``step`` steps; device work up to there is done.
        ledger: the heat through the faces up to there.
        folder: where the run writes.
        step: number of steps done.
        initial_total: sum of the deviations in K at step 0; of a composite body the heat in J that they stand for.
        energy_bound: how large the residual of the energy balance may be; None without one.
        wall_time: wall-clock seconds of stepping so far, those of earlier parts of a resumed run included.
        arrays: a composite body on the device, or None.
        stopped: whether the run is to end here, before its last step.
        lowest: the lowest temperature at the due times so far.
        beyond: the lowest and highest temperature of materials that went beyond their tables, by (material, "low" or
            "high").
        compared: a step done and the deviations after it, for runs that end when the field changes no more.
        steady: how the steady state was found that the field holds; None of a run in which time passes.
        writer: what fields and checkpoints are written by while the run goes on.
        copies: whether the device has room for a copy of the field; without one the run waits while a field is written.
    """

    problem: HeatProblem
    field: Field
    ledger: Ledger
    folder: Path
    step: int = 0
    initial_total: float = 0.0
    energy_bound: EnergyBound | None = None
    wall_time: float = 0.0
    arrays: CompositeArrays | None = None
    stopped: bool = False
    lowest: Record | None = None
    beyond: dict[tuple[str, str], Record] = dataclasses.field(default_factory=dict)
    compared: tuple[int, Any] | None = None
    steady: SteadyState | None = None
    writer: Writer = dataclasses.field(default_factory=Writer)
    copies: bool = True

    _frame: tuple[int, Frame] | None = None
    _room: Any = None
    _total: tuple[int, float] | None = None

    @property
    def time(self) -> float:
        """Simulated time in s."""
        return self.problem.timeline.time(self.step)

    @property
    def finished(self) -> bool:
        """Whether the last step is done, or none is needed."""
        return self.stopped or self.step >= self.problem.timeline.last_step

    def total(self) -> float:
        """Sum of the deviations in K, calculated once a step.

        Raises:
            NotFiniteError: there is NaN or infinity in the field.
        """
        if self._total is None or self._total[0] != self.step:
            total = self.field.total()
            if not np.isfinite(total):
                raise NotFiniteError(
                    f"NaN or infinity in the field, seen at step {self.step} (t = {self.time!r} s); nothing of it was "
                    "saved. The files up to the step before are good, the last checkpoint too"
                )
            self._total = (self.step, total)
        return self._total[1]

    def write(self, work: Callable[[Frame], object]) -> None:
        """Have something done with the field as it is at this step; the run goes on in the meantime.

        One copy of the field is kept at most: at another step than the last time, what was handed over then is waited
        for first.

        Raises:
            StorageError: what was to be written before could not be.
        """
        with self._frame_of_step() as frame:
            self.writer.submit(partial(work, frame))

    def write_beside(self, work: Callable[[Frame, Callable[[], None]], object]) -> None:
        """The same beside what was handed over before.

        ``work`` is also given what waits for that, and raises its error if it failed. Of the frame it may read the
        deviations only.

        Raises:
            StorageError: what was to be written before could not be.
        """
        with self._frame_of_step() as frame:
            self.writer.submit_beside(partial(work, frame))

    @contextmanager
    def _frame_of_step(self) -> Iterator[Frame]:
        """The field as it is at this step; what is handed over meanwhile is waited for where the field is no copy."""
        copied = self.copies and not self.finished
        if self._frame is None or self._frame[0] != self.step:
            self.writer.wait()
            if copied and self._room is None:
                try:
                    self._room = self.field.device.xp.empty_like(self.field.deviation)
                except MemoryError:
                    self.copies = copied = False
            self._frame = (self.step, Frame(self.field, self._room if copied else None))
        yield self._frame[1]
        if not (copied or self.finished):
            self.writer.wait()

    def content(self) -> float:
        """What ``initial_total`` is counted in, for the current step."""
        return self.total() if self.arrays is None else self.arrays.content(self.field.deviation)

    def stored_heat(self) -> float:
        """Heat in J that the body has gained since the start."""
        gained = self.content() - self.initial_total
        return gained if self.arrays is not None else gained * self.problem.cell_heat_capacity

    def absolute_heat(self) -> float:
        """Σ ρ·cp·V·|T − T_ref| in J, of what the field holds in place of T − T_ref where materials change."""
        if self.arrays is not None:
            return self.arrays.content(self.field.deviation, absolute=True)
        return self.field.absolute_total() * self.problem.cell_heat_capacity

    def deviations(self) -> Extremes:
        """The lowest and highest T − T_ref in K; where nothing changes with temperature void may be among them."""
        if self.field.thermometer is not None and self.arrays is not None:
            return Extremes(*self.arrays.extremes(self.field.deviation))
        found = self.field.statistics()
        return Extremes(found.lowest, found.highest)

    def extremes(self) -> Extremes:
        """Lowest and highest temperature in K, void left out."""
        if self.arrays is None:
            return self.field.extremes()
        lowest, highest = self.arrays.extremes(self.field.deviation)
        return Extremes(lowest + self.field.reference, highest + self.field.reference)

    def lowest_cell(self, kind: int | None = None) -> tuple[int, int, int]:
        """The first cell (x, y, z) with the lowest value, of a composite body among those of a kind."""
        deviation, (_, ny, nx) = self.field.deviation, self.field.grid.shape
        if self.arrays is None or kind is None:
            number = int(deviation.argmin())
        else:
            number = self.arrays.lowest_cell(deviation, kind)
        return number % nx, number // nx % ny, number // (nx * ny)

    def mean(self) -> float:
        """Mean temperature in K over the volume, void left out."""
        field = self.field
        if self.arrays is None:
            return self.total() / field.grid.cell_count + field.reference
        return self.arrays.mean(field.deviation) + field.reference


class Observer:
    """Something that looks at a run. Methods that a kind of observer has no use for do nothing.

    ``due`` is known in whole steps beforehand, so that kernels run uninterrupted in between; ``poll`` is called between
    batches, where only the clock may be looked at: nothing that is calculated may depend on where a batch ended.
    """

    def due(self, state: RunState) -> NDArray[np.int64]:
        """The steps, ascending, after which :meth:`handle` is to be called."""
        return np.empty(0, dtype=np.int64)

    def prepare(self) -> None:
        """The kernel is about to be compiled, which can take some seconds; called before :meth:`start`."""

    def check(self, state: RunState, saved: Values) -> None:
        """See that the files hold what the checkpoint counts, before :meth:`start` changes any of them.

        Raises:
            StorageError: one does not; says which, where, and what to do.
        """

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open what is needed.

        ``saved`` is what :meth:`save` and :meth:`record` gave to the checkpoint that the run resumes from, or None.
        """

    def handle(self, state: RunState) -> None:
        """Look at the field; called after each due step, step 0 included."""

    def poll(self, state: RunState) -> None:
        """Look at the clock."""

    def save(self) -> dict[str, Value]:
        """What a checkpoint has to keep for this observer, under names of its own."""
        return {}

    def record(self) -> dict[str, Pieces]:
        """Arrays that a checkpoint keeps about this observer's files, under names of its own.

        They are read in a thread of the writer's, after all that was handed to the writer before is on the disk.
        """
        return {}

    def flush(self) -> None:
        """Bring to disk what a checkpoint is about to rely on; called in a thread of the writer's, beside the run.

        Raises:
            StorageError: the disk refused, or a file was removed.
        """

    def finish(self, state: RunState) -> None:
        """The run is complete."""

    def close(self) -> None:
        """Let go of files and terminal, whatever happened."""
