"""Writes the whole field to fields.vtkhdf."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer, RunState, Values
from heatsim.physics.heat_flux import heat_flux
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field_copy import Frame
from heatsim.storage import folder
from heatsim.storage.field_writer import FieldWriter

_CELLS_AT_ONCE = 2**20


class Snapshots(Observer):
    """At 0, every, 2·every, … and the end."""

    _writer: FieldWriter

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a field is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.every)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the file, with room for all fields of the run, or cut it back to what the checkpoint knows."""
        self._count = 0 if saved is None else int(saved["snapshots"])
        path, field, expected = state.folder / folder.FIELDS, state.field, len(self.due(state))
        if saved is None:
            vectors = state.problem.scenario.output.heat_flux
            body = state.problem.body
            medium = None if body is None or body.medium.uniform else body.medium
            names = () if medium is None else tuple(substance.name for substance in medium.palette)
            self._writer = FieldWriter.create(path, field.grid, field.precision, expected, vectors, names)
            if medium is not None:
                self._writer.write_materials(medium.materials())
        else:
            self._writer = FieldWriter.reopen(path, field.grid, field.precision, self._count, expected)

    def handle(self, state: RunState) -> None:
        """Have the field appended while the run goes on."""
        problem, step, time = state.problem, state.step, state.time
        vectors = problem.scenario.output.heat_flux

        def append(frame: Frame) -> None:
            flux = _heat_flux(problem, step, frame) if vectors else ()
            self._writer.append(time, frame.temperatures(), flux)

        state.write(append)
        self._count += 1

    def save(self) -> dict[str, int | float | str | bool]:
        """How many fields are in the file once the last of them is written."""
        return {"snapshots": self._count}

    def flush(self) -> None:
        """Bring the file to disk."""
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_writer"):
            self._writer.close()


def _heat_flux(problem: HeatProblem, step: int, frame: Frame) -> Iterator[NDArray[np.float64]]:
    """Heat-flux vectors in W/m² from the bottom up, a few planes at a time."""
    nz, ny, nx = problem.grid.shape
    planes = max(1, _CELLS_AT_ONCE // (nx * ny))
    for first in range(0, nz, planes):
        yield heat_flux(problem, step, first, frame.planes, min(planes, nz - first))
