"""Memory that a run needs on its device, counted before anything is allocated."""

from dataclasses import dataclass
from math import prod

import numpy as np

from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.temporal_composite import correction
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import ADAPTIVE
from heatsim.solver.energy_ledger import STEPS_TO_CARRY, shapes_of_sums


@dataclass(frozen=True)
class DeviceBytes:
    """Bytes of a run.

    Attributes:
        field: of one buffer of the field; a copy for writing takes another one where there is room.
        ledger: of the sums of heat, those that are carried over among them.
        body: of cell types, conditions on faces with patches, and a kernel's tables.
        fields: number of buffers of the field. Steps that follow a tolerance keep the fields and rates of both ends.
    """

    field: int
    ledger: int
    body: int
    fields: int = 2

    @property
    def total(self) -> int:
        """All of it, without a copy of the field."""
        return self.fields * self.field + self.ledger + self.body


def of_run(problem: HeatProblem, kernel: KernelSpec | None = None) -> DeviceBytes:
    """Count the bytes of a run of a problem; with the tables of a kernel, if one is named."""
    materials, boundary = problem.materials, problem.boundary
    sums = sum(prod(shape) for shape in shapes_of_sums(problem).values()) * problem.scenario.output.energy
    carried = problem.timeline.last_step >= STEPS_TO_CARRY
    body = materials.nbytes + sum(numbers.nbytes for numbers in boundary.maps)
    if len(boundary.mixed.places):
        body += boundary.mixed.nbytes
    if not problem.linear and kernel is not None and kernel.steps > 1 and not kernel.boxed and not materials.varies:
        body += correction.table_bytes(materials, problem.open_faces)
    field = problem.grid.cell_count * np.dtype(problem.precision).itemsize
    fields = 5 if problem.scenario.time.method in ADAPTIVE else 2
    return DeviceBytes(field, 8 * sums * (2 if carried else 1), body, fields)
