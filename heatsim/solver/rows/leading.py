"""Steps that a GPU does while the host reads the field before them.

The steps have a field and a ledger for themselves. When observers are due, these are copied to the field and the ledger
that observers read, and the next steps are queued before the row is read:

    host    queue steps │ queue copy, sums │ queue steps │ read the row, call observers │ queue copy, sums │ …
    GPU     steps       │ copy, sums       │ steps ─────────────────────────────►       │ copy, sums       │ …

So observers see the field of their step, whatever is queued behind it. If they need sums only, those of many rows are
found of the field that is ahead (rows_ahead.py), and the copy is made once for all of these rows. If a run stops, the
steps ahead are dropped; a resumed run does them again with the same bits.
"""

from heatsim.kernels.cuda_graphs import LARGEST_GRID
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field.field import Field
from heatsim.solver.ledger.energy_ledger import Ledger


class Leading:
    """A field and its ledger that may be steps ahead of those that observers read.

    Attributes:
        field: what a stepper advances. It shares the spare buffer of the field that observers read.
        ledger: the heat that passed its surfaces.
    """

    def __init__(self, field: Field, ledger: Ledger, problem: HeatProblem) -> None:
        """Copy the field and the ledger that observers read.

        Raises:
            MemoryError: the device has no room for a copy of the field.
        """
        self._shown = field, ledger
        self.field = field.of(field.deviation.copy())
        self.ledger = Ledger(field.device, problem, ledger.recorded, field.team, ledger.rows)
        self.ledger.follow(ledger)

    @classmethod
    def of(cls, field: Field, ledger: Ledger, problem: HeatProblem) -> "Leading | None":
        """None if it does not pay, or if the device has no room.

        It pays on a GPU if a step takes no longer than its launch. Of several ranks, each would wait for the others.
        """
        if field.device.backend == "cpu" or not field.slab.alone or field.grid.cell_count > LARGEST_GRID:
            return None
        if problem.boundary.network is not None:  # observers see the nodes of the field that is stepped
            return None
        try:
            return cls(field, ledger, problem)
        except MemoryError:
            return None

    def show(self) -> None:
        """Queue a copy to the field and the ledger that observers read."""
        field, ledger = self._shown
        field.changed()
        field.device.copy(field.deviation, self.field.deviation)
        ledger.follow(self.ledger)
