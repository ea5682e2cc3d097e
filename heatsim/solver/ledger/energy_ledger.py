"""The heat that has passed each boundary face since the last row, summed over every step, not sampled.

One float64 sum for each boundary face, in kelvins of its cell, added to by the thread that updates the cell; turned
into joules in a fixed order when a row is due, so that two runs give the same digits. When steps go on from a row, all
sums begin at 0 again. So a row knows for each boundary face how much heat has entered or left since the row before,
and its sums over positive and over negative heats are what has entered and what has left. Methods that choose their
own steps keep sums since the start at both ends of a step; from those shown, the sums at the last row are subtracted.

A sum of n terms that are alike may be off by n/2 units in its last place, 1e-10 of it after a million steps. So the
sums that kernels add to are short: every STEPS_TO_CARRY steps after a row they are carried over to long ones and begin
at 0 again, which leaves less than 1e-12 of the heat.
"""

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels.reductions.fused import Labelling, Sections, partials
from heatsim.kernels.reductions.statistics import Partials
from heatsim.parallel.slab import Share
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.operator.heat_sums import HeatSums, SumLayout
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.interval_sums import interval_sums
from heatsim.solver.ledger.heats import HeatRows
from heatsim.solver.ledger.sum_table import OwnSums, Read, SumSections, SumTable, layout_of

# Sums are carried over after each multiple of this number of steps, counted from the last row. So an interruption
# changes no bit.
STEPS_TO_CARRY = 8_192

# Suffixes of the names of sums that were carried over, and of those at the last row.
_CARRIED, _AT_ROW = "_carried", "_at_row"
_ONE_ROW = np.zeros(1, np.int64)


class Ledger:
    """Sums of the heat through each boundary face, and of the heat of sources in single cells.

    Attributes:
        sums: those of kernels, on the device; empty if the ledger is off.
        recorded: whether it sums anything, on this rank or on another.
        rows: the numbers of steps after which a row is due, ascending; the first is 0.
    """

    def __init__(
        self,
        device: Device,
        problem: HeatProblem,
        enabled: bool,
        team: Team = ALONE,
        rows: NDArray[np.int64] = _ONE_ROW,
    ) -> None:
        """Sums of zero; none unless ``enabled``.

        Args:
            device: of the sums.
            problem: what the kernels step; of several ranks the problem of this rank's slab.
            enabled: whether heat is recorded.
            team: the ranks. Then the sums here are those of the slab with its halos; what comes from all of them is
                collective.
            rows: the numbers of steps after which a row is due; without them, the sums are those since the start.
        """
        layout = layout_of(problem) if enabled else SumLayout()
        self.rows = rows
        self.sums = HeatSums.zeros(device.xp, layout)
        self.recorded = any(team.gathered(layout.size > 0))
        self._values: Any = self.sums.values
        self._table = SumTable(problem, layout, team)
        self._problem, self._team = problem, team
        self._device = device
        self._sources_step, self._sources_heat = 0, 0.0
        self._kept_sections: SumSections | None = None
        self._row: OwnSums | None = None
        # Like the values. None if nothing was carried over since the last row:
        self._carried: Any = None
        self._together: Any = None  # with the carried sums; made at the first row that needs it
        # Since the start, of methods that choose their own steps: what is shown, and what was shown at the last row.
        self._shown: Any = None
        self._at_row: Any = None

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.sums.layout.nbytes * sum(
            each is not None for each in (self._values, self._carried, self._together, self._shown, self._at_row)
        )

    def heats(self) -> HeatRows:
        """Heat into the body since the last row by where it passed, in J."""
        return self.heats_of([self.row()])

    def row(self) -> OwnSums:
        """The present sums, for :meth:`heats_of`. Collective."""
        if self._row is None:
            self.store(self._team.gathered(self.own_row()))
        assert self._row is not None
        return self._row

    def own_row(self) -> OwnSums:
        """The present sums of this rank, found at once."""
        self.add_up()
        (found,) = partials(self._device, [self.sections()], self.division)
        return self.own_sums(found)

    def heats_of(self, rows: Sequence[OwnSums]) -> HeatRows:
        """Heat into the body in J between rows, from the results of :meth:`row` at each."""
        return self._sections.heats(rows)

    @property
    def division(self) -> Labelling:
        """The parts of the sums; collective at the first time."""
        return self._sections.division

    @property
    def labelling_key(self) -> Hashable:
        """A key that is equal for ledgers whose sums one launch can find; None if nothing is recorded."""
        if not self.recorded:
            return None
        return self.division.parts, self.division.mask, self._problem.grid.uniform

    @property
    def address(self) -> int:
        """Where the sums of a row lie on a GPU, after :meth:`add_up`."""
        return int(self._of_row.data.ptr)

    def own_sums(self, found: Partials) -> OwnSums:
        """The sums of this rank by part, from STATISTICS of :meth:`sections`; with more axes in front, of several."""
        return self._sections.of_rank(found)

    def lies_like(self, other: "Ledger") -> bool:
        """Whether the sums of another ledger lie at the same places."""
        return self._sections.lies_like(other._sections)

    def store(self, of_ranks: Sequence[OwnSums]) -> None:
        """Store the present sums; ``of_ranks``: :meth:`own_sums` of each rank."""
        self._row = of_ranks[0] if len(of_ranks) == 1 else np.concatenate(of_ranks)

    @property
    def _sections(self) -> SumSections:
        """Where the sums lie; collective at the first time."""
        if self._kept_sections is None:
            self._kept_sections = SumSections(self._table, self._device.xp, self._team)
        return self._kept_sections

    @property
    def _of_row(self) -> Any:
        return self._values if self._carried is None else self._together

    def add_up(self) -> None:
        """Add carried sums to the others for a row; on a GPU this is queued behind the steps so far."""
        if self._carried is not None:
            if self._together is None:
                self._together = self._device.xp.empty_like(self._values)
            self._device.xp.add(self._values, self._carried, out=self._together)

    def sections(self) -> Sections:
        """The sections of the sums since the last row; call :meth:`add_up` before."""
        return self._sections.sections(self._of_row)

    def steps_since_row(self, step: int) -> int:
        """The number of steps between the last row and ``step`` steps."""
        return step - int(self.rows[self.rows.searchsorted(step, "right") - 1])

    def leave(self, step: int) -> None:
        """Begin all sums at 0 if a row is due after ``step`` steps: steps go on from there, or other sums are shown."""
        if self.steps_since_row(step):
            return
        if self._shown is not None:
            self._at_row = self._shown
        elif not self._problem.timeline.adaptive:
            self.changed()
            self._values.fill(0.0)
            self._carried = None

    def take(self, sources: float = 0.0) -> HeatSums:
        """Return the sums that kernels have entered, with the heat of sources in J, and set them to 0."""
        self.changed()
        taken = HeatSums(self.sums.layout, self._values.copy(), sources)
        self._values.fill(0.0)
        return taken

    def show(self, sums: HeatSums) -> None:
        """Let observers read sums since the start, which nothing may change later, less those at the last row."""
        self.changed()
        self._shown = sums.values
        if self._at_row is None:
            self._values[...] = sums.values
        else:
            self._device.xp.subtract(sums.values, self._at_row, out=self._values)
        self._sources_heat = sums.sources

    def shown(self) -> HeatSums:
        """A copy of the sums, with the heat of sources."""
        return HeatSums(self.sums.layout, self._values.copy(), self._sources_heat)

    def since_start(self) -> HeatSums:
        """What :meth:`show` shows, or before it what a checkpoint had, since the start; nothing changes it later."""
        return self.shown() if self._shown is None else HeatSums(self.sums.layout, self._shown, self._sources_heat)

    def follow(self, other: "Ledger") -> None:
        """Take over the sums of a ledger of the same problem; on a GPU this is queued behind the steps so far."""
        self.changed()
        self._kept_sections = self._kept_sections or other._kept_sections
        self._device.copy(self._values, other._values)
        self._carried = None if other._carried is None else other._carried.copy()

    def changed(self) -> None:
        """Discard what was derived from the sums. Call this after every change of the sums."""
        if self.recorded:
            self._row = None

    def carry(self) -> None:
        """Carry the sums over; on a GPU this is queued behind the steps so far."""
        if self._carried is None:
            self._carried = self._values.copy()
        else:
            self._carried += self._values
        self._values.fill(0.0)

    @property
    def shown_sources(self) -> float:
        """Heat in J of the sources that belongs to the sums, by :meth:`show` or by the last :meth:`source_heats`."""
        return self._sources_heat

    def source_heats(self, steps: Sequence[int]) -> list[float]:
        """Heat in J that sources in the body have released until each of some steps of Euler's method, ascending.

        It is added up from one call to the next, in pieces that do not depend on where a run was interrupted.

        Args:
            steps: the numbers of steps done, at due times; later calls ask for later steps.
        """
        if not self._problem.sources.even:
            return [self._sources_heat] * len(steps)
        found = interval_sums(self._problem.timeline, self._sources_step, steps[-1], self._heat_of_steps)
        heats = np.add.accumulate(np.concatenate(([self._sources_heat], found.sums)))
        self._sources_step, self._sources_heat = max(self._sources_step, steps[-1]), float(heats[-1])
        released: list[float] = heats[np.searchsorted(found.ends, steps, side="right")].tolist()
        return released

    def _heat_of_steps(self, first: int, until: int) -> NDArray[np.float64]:
        """Heat in J of the sources in the body in each of steps ``first`` … ``until`` − 1, all of one length."""
        problem = self._problem
        heat = problem.sources.heat_of_steps(problem.step_heat.of(first, until), problem.precision)
        return np.broadcast_to(heat, until - first)

    def saved(self, sums: HeatSums) -> dict[str, Share]:
        """Other sums since the start, and those at the last row, for :meth:`restore`. Collective."""
        at_row = {} if self._at_row is None else self._table.shares(self._device, self._at_row)
        saved = self.shares(sums) | {name + _AT_ROW: share for name, share in at_row.items()}
        return saved | {"ledger_sources": self._common(0.0, sums.sources)}

    def shares(self, sums: HeatSums) -> dict[str, Share]:
        """This rank's share of other sums of the whole grid, by name. Collective."""
        return self._table.shares(self._device, sums.values)

    def part(self, read: Read, sources: float) -> HeatSums:
        """This rank's part of sums of the whole grid, from the arrays of :meth:`shares` of all ranks. Collective.

        Args:
            read: reads entries of the array with a name.
            sources: heat or power of the sources.
        """
        found = HeatSums.zeros(self._device.xp, self.sums.layout, sources)
        self._table.put(self._device.xp, found.values, read)
        return found

    def save(self) -> dict[str, Share]:
        """This rank's share of the sums of the whole grid, by name. Collective."""
        saved = self.shares(self.sums)
        if self._carried is not None:
            carried = self._table.shares(self._device, self._carried)
            saved |= {name + _CARRIED: share for name, share in carried.items()}
        if self._sources_step or self._sources_heat:
            saved["ledger_sources"] = self._common(self._sources_step, self._sources_heat)
        return saved

    def restore(self, names: Collection[str], read: Read) -> None:
        """Set the sums to those of :meth:`save` or :meth:`saved`.

        Args:
            names: those of the saved arrays.
            read: reads entries of one of them.
        """
        self.changed()
        self._table.put(self._device.xp, self._values, read)
        self._carried, self._at_row = (self._restored(suffix, names, read) for suffix in (_CARRIED, _AT_ROW))
        if "ledger_sources" in names:
            step, heat = read("ledger_sources", 0, 2).tolist()
            self._sources_step, self._sources_heat = int(step), heat

    def _restored(self, suffix: str, names: Collection[str], read: Read) -> Any:
        """The sums whose names end with a suffix; None if there are none. Collective."""
        if not any(name.endswith(suffix) for name in names):
            return None
        values = self._device.xp.zeros(self.sums.layout.size)
        self._table.put(self._device.xp, values, lambda of, *place: read(of + suffix, *place))
        return values

    def _common(self, *numbers: float) -> Share:
        """Numbers that all ranks know."""
        return Share.of_first(np.array(numbers), self._team.first)
