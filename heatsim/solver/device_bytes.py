"""Memory that a run needs on its device, counted before it is allocated."""

from dataclasses import dataclass

import numpy as np

from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.temporal_composite import correction
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field.cell_parts import watched_regions
from heatsim.solver.ledger.energy_ledger import STEPS_TO_CARRY
from heatsim.solver.ledger.sum_table import layout_of


@dataclass(frozen=True)
class DeviceBytes:
    """Bytes of a run.

    Attributes:
        field: one buffer of the field. A copy for writing takes another one, and steps ahead of rows too, if there is
            memory.
        ledger: sums of heat, including carried ones, and those at the last row.
        body: cell types, parts of the body for statistics, conditions of faces with patches, and tables of the kernel.
        fields: number of buffers of the field. Steps that follow a tolerance keep the fields and rates of both ends.
    """

    field: int
    ledger: int
    body: int
    fields: int = 2

    @property
    def total(self) -> int:
        """Sum of all, without a copy of the field."""
        return self.fields * self.field + self.ledger + self.body


def of_run(problem: HeatProblem, kernel: KernelSpec | None = None) -> DeviceBytes:
    """The bytes of a run of a problem, including the tables of ``kernel`` if it is not None."""
    materials, boundary = problem.materials, problem.boundary
    ledger = layout_of(problem).nbytes * problem.scenario.output.energy
    rows = problem.timeline.steps_at(problem.scenario.output.probe_every)
    # Sums are carried over where rows are far apart, and added up for a row.
    copies = 3 if np.diff(rows, prepend=0).max() > STEPS_TO_CARRY else 1
    body = materials.nbytes + sum(numbers.nbytes for numbers in boundary.maps)
    if len(boundary.mixed.places):
        body += boundary.mixed.nbytes
    if watched_regions(problem):
        body += problem.grid.cell_count  # labels of the parts
    if not problem.linear and kernel is not None and kernel.steps > 1 and not materials.varies:
        body += correction.table_bytes(materials, problem.open_faces)
    field = problem.grid.cell_count * np.dtype(problem.precision).itemsize
    body += field * (len(materials.heated) > 0)  # their heat, as an array of the grid
    if not problem.timeline.adaptive:
        return DeviceBytes(field, ledger * copies, body, 2)
    # Both ends of a step have sums and flows; those under way, those since the last row that observers read, those
    # shown since the start, and the same at the last row are four more.
    return DeviceBytes(field, ledger * 8, body, 5)
