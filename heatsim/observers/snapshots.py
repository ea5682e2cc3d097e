"""Writes the whole field to fields.vtkhdf."""

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer, RunState, Values
from heatsim.storage import folder
from heatsim.storage.vtkhdf import FieldWriter


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
            self._writer = FieldWriter.create(path, field.grid, field.precision, expected)
        else:
            keep = int(saved["snapshots"])
            self._writer = FieldWriter.reopen(path, field.grid, field.precision, keep, expected)

    def handle(self, state: RunState) -> None:
        """Append the field."""
        self._writer.append(state.time, state.field.temperature_slabs())

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
