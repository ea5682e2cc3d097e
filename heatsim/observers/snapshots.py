"""Writes the whole field to fields.vtkhdf."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from heatsim.observers.observer import Observer, Values
from heatsim.observers.state import RunState
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.heat_flux import heat_flux
from heatsim.solver.field.field_copy import FieldCopy
from heatsim.storage import folder
from heatsim.storage.checkpoint_draft import Pieces
from heatsim.storage.field_writer import FieldWriter

CELLS_AT_ONCE = 2**17  # whose heat fluxes are found together
_PREFIX = "fields_"


class Snapshots(Observer):
    """Writes the field at 0, every, 2·every, … and the end."""

    _writer: FieldWriter
    _finished = False

    def __init__(self) -> None:
        self._open = ExitStack()

    @property
    def files(self) -> Sequence[str]:
        """The file of the fields."""
        return (folder.FIELDS,)

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a field is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.every)

    def check(self, state: RunState, saved: Values) -> None:
        """Compare the checksums of the fields of the checkpoint with the file."""
        path, field = state.folder / folder.FIELDS, state.field
        FieldWriter.check(path, field.grid, field.precision, int(saved["snapshots"]), _record(saved), state.team)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the file with space for all fields of the run, or remove the fields after the checkpoint."""
        self._count = 0 if saved is None else int(saved["snapshots"])
        path, field, expected = state.folder / folder.FIELDS, state.field, len(self.due(state))
        materials, team, slab = state.problem.materials, state.team.branch("fields"), field.slab
        if saved is None:
            vectors = state.problem.scenario.output.heat_flux
            names = () if materials.uniform else materials.material_names
            self._writer = FieldWriter.create(path, field.grid, field.precision, expected, vectors, names, team, slab)
        else:
            known = (self._count, expected, _record(saved))
            self._writer = FieldWriter.reopen(
                path, field.grid, field.precision, *known, checked=True, team=team, slab=slab
            )
        self._open.callback(lambda: self._writer.close(give_back=self._finished))
        if saved is None and not materials.uniform:
            self._writer.write_materials(materials.materials(slab.first, slab.last))

    def handle(self, state: RunState) -> None:
        """Queue the field for writing; the run continues."""
        problem, step, time = state.problem, state.step, state.time
        vectors = problem.scenario.output.heat_flux
        beside = state.field.beside() if vectors else {}

        def append(field_copy: FieldCopy) -> None:
            flux = heat_flux_in_own_planes(problem, step, field_copy, beside) if vectors else ()
            self._writer.append(time, field_copy.temperatures(), flux)

        state.write(append)
        self._count += 1

    def save(self) -> dict[str, int | float | str | bool]:
        """The number of fields in the file when all queued ones are written."""
        return {"snapshots": self._count}

    def record(self) -> dict[str, Pieces]:
        """The structure of the file, and the times and checksums of its fields."""
        count = self._count

        def pieces(name: str, shape: tuple[int, ...], dtype: DTypeLike) -> Pieces:
            return Pieces(shape, dtype, lambda: [self._writer.record(count)[name]])

        shapes = self._writer.record_shapes(count)
        return {_PREFIX + name: pieces(name, *shape_and_type) for name, shape_and_type in shapes.items()}

    def flush(self) -> None:
        """Write the file to the disk."""
        self._writer.flush()
        if not self._writer.is_in_place:
            raise folder.removed(self._writer.path)

    def finish(self, state: RunState) -> None:
        """Remember that no more fields follow, so that :meth:`close` can release unused space."""
        self._finished = True

    def close(self) -> None:
        """Close the file. If the run is not complete, the file keeps its space for further fields."""
        self._open.close()


def _record(saved: Values) -> dict[str, Any]:
    """The arrays of :meth:`Snapshots.record` by their names there."""
    return {name.removeprefix(_PREFIX): array for name, array in saved.items() if name.startswith(_PREFIX)}


def heat_flux_in_own_planes(
    problem: HeatProblem, step: int, field_copy: FieldCopy, beside: Mapping[int, NDArray[np.float64]]
) -> Iterator[NDArray[np.float64]]:
    """Heat-flux vectors in W/m² in own planes, a few at a time, from the bottom up.

    Args:
        problem: of the whole grid.
        step: number of steps done.
        field_copy: the temperatures.
        beside: those of the planes next to the own ones, from :meth:`Field.beside`.
    """

    def planes(first: int, last: int) -> NDArray[np.float64]:
        if first in beside and not field_copy.slab.first <= first < field_copy.slab.last:
            return beside[first]
        return field_copy.planes(first, last)

    _, ny, nx = problem.grid.shape
    count, slab = max(1, CELLS_AT_ONCE // (nx * ny)), field_copy.slab
    for first in range(slab.first, slab.last, count):
        yield heat_flux(problem, step, first, planes, min(count, slab.last - first))
