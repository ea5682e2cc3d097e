"""Writes the whole field to fields.vtkhdf."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer, RunState, Values
from heatsim.physics.flux import heat_flux
from heatsim.storage import folder
from heatsim.storage.vtkhdf import FieldWriter

_CELLS_AT_ONCE = 2**20


class Snapshots(Observer):
    """At 0, every, 2·every, … and the end."""

    _writer: FieldWriter

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a field is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.every)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the file, with room for all fields of the run, or cut it back to what the checkpoint knows."""
        path, field, expected = state.folder / folder.FIELDS, state.field, len(self.due(state))
        if saved is None:
            vectors = state.problem.scenario.output.heat_flux
            self._writer = FieldWriter.create(path, field.grid, field.precision, expected, vectors)
        else:
            keep = int(saved["snapshots"])
            self._writer = FieldWriter.reopen(path, field.grid, field.precision, keep, expected)

    def handle(self, state: RunState) -> None:
        """Append the field."""
        flux = _heat_flux(state) if state.problem.scenario.output.heat_flux else ()
        self._writer.append(state.time, state.field.temperature_slabs(), flux)

    def save(self) -> dict[str, int | float | str | bool]:
        """How many fields are in the file."""
        return {"snapshots": len(self._writer)}

    def flush(self) -> None:
        """Bring the file to disk."""
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if hasattr(self, "_writer"):
            self._writer.close()


def _heat_flux(state: RunState) -> Iterator[NDArray[np.float64]]:
    """Heat-flux vectors in W/m² from the bottom up, a few planes at a time."""
    field = state.field
    nz, ny, nx = field.grid.shape

    def temperatures(first: int, last: int) -> NDArray[np.float64]:
        return field.device.to_host(field.degrees(slice(first, last))).astype(np.float64) + field.reference

    planes = max(1, _CELLS_AT_ONCE // (nx * ny))
    for first in range(0, nz, planes):
        yield heat_flux(state.problem, state.step, first, temperatures, min(planes, nz - first))
