"""Temperatures at points, along lines and of regions, written to probes.csv.

Between cell centres temperatures are interpolated linearly along each axis. The last half cell before a face lies
between the outermost centre and the face's own temperature, which follows from the boundary condition:

        face      cell 0      cell 1
         |  ---●--- | ---●---  |           node positions: 0, 1/2, 3/2, … cells
         0     ½    1   3/2

Void has no temperature: towards a surface in the box the last half cell before it has that of its cell's centre.
"""

from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import NotFiniteError
from heatsim.grid import Grid
from heatsim.observers.observer import Observer, RunState, Value, Values
from heatsim.observers.regions import RegionStatistic
from heatsim.physics.cell_types import INTERIOR
from heatsim.physics.faces import Faces
from heatsim.physics.surface_temperature import surfaces_at
from heatsim.storage import folder
from heatsim.storage.tables import TableWriter


@dataclass(frozen=True)
class Position:
    """Where a point lies along one axis.

    Attributes:
        cells: the two cells that it lies between; twice the same in the half cell before a face.
        weight: share of the second of the two values, 0…1.
        face: number of the face whose own temperature is the first value, or None.
    """

    cells: tuple[int, int]
    weight: float
    face: int | None


def locate(grid: Grid, faces: Faces, axis: int, coordinate: float) -> Position:
    """Where a coordinate (m) lies along an axis of the grid."""
    n = grid.cells[axis]
    # In cells, counted from the first centre; rounding must not carry a point on a face outside.
    s = min(max((coordinate - grid.origin[axis]) / grid.size[axis], 0.0), 1.0) * n - 0.5
    if faces.periodic(axis):
        lower = int(np.floor(s))
        return Position((lower % n, (lower + 1) % n), s - lower, None)
    if s < 0.0:
        return Position((0, 0), 2.0 * (s + 0.5), 2 * axis)
    if s > n - 1:
        return Position((n - 1, n - 1), 2.0 * (n - 0.5 - s), 2 * axis + 1)
    lower = min(int(s), max(n - 2, 0))
    return Position((lower, min(lower + 1, n - 1)), s - lower, None)


def _conducting(cell: tuple[int, ...], positions: tuple[Position, ...], conducts: NDArray[np.bool_]) -> tuple[int, ...]:
    """The cell if it conducts, else the one of those around a point (2×2×2, [z, y, x]) that weighs most and does."""
    x, y, z = (np.array([1.0 - position.weight, position.weight]) for position in positions)
    own = tuple(int(position.weight >= 0.5) for position in positions)
    if conducts[own[::-1]]:
        return cell
    weights = np.where(conducts, z[:, None, None] * y[:, None] * x, -1.0)
    found = np.unravel_index(int(np.argmax(weights)), weights.shape)
    return tuple(position.cells[int(at)] for position, at in zip(positions, found[::-1], strict=True))


class Probes(Observer):
    """At 0, probe_every, 2·probe_every, … and the end."""

    _table: TableWriter

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a row is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the table, or cut it back to what the checkpoint knows; find the cells around each point."""
        problem = state.problem
        probes = problem.scenario.probes
        self._regions = {
            probe.name: RegionStatistic(probe, problem, state.field) for probe in probes if probe.region is not None
        }
        points = [point for probe in probes for point in probe.points]
        self._positions = [
            tuple(locate(problem.grid, problem.faces, axis, point[axis]) for axis in range(3)) for point in points
        ]
        # Axes of each point's 2×2×2 block of cells, as open index arrays [point, z, y, x].
        indices = np.array(
            [[position.cells for position in positions] for positions in self._positions], dtype=np.int64
        )
        # The cell in which each point lies: that of the greatest weight.
        self._cells = [
            tuple(position.cells[position.weight >= 0.5] for position in positions) for positions in self._positions
        ]
        x, y, z = indices.reshape(-1, 3, 2).transpose(1, 0, 2)
        blocks = np.broadcast_arrays(x[:, None, None, :], y[:, None, :, None], z[:, :, None, None])
        self._blocks = state.field.points(*blocks)
        self._conducts = np.ones(blocks[0].shape, dtype=bool)
        if problem.body is not None and problem.body.medium.void is not None:
            medium = problem.body.medium
            self._conducts = medium.cells[blocks[2], blocks[1], blocks[0]] & (INTERIOR - 1) != medium.void
        for number, (positions, conducts) in enumerate(zip(self._positions, self._conducts, strict=True)):
            self._cells[number] = _conducting(self._cells[number], positions, conducts)

        path, columns = state.folder / folder.PROBES, ["time", *problem.scenario.probe_columns]
        if saved is None:
            self._table = TableWriter.create(path, columns)
        else:
            self._table = TableWriter.reopen(path, columns, keep_rows=int(saved["probe_rows"]))

    def handle(self, state: RunState) -> None:
        """Append a row.

        Raises:
            NotFiniteError: a face's own temperature is not finite at this very time.
        """
        time = state.time
        surface = surfaces_at(state.problem, state.step)
        blocks = self._blocks.temperatures()
        points = []
        for values, known, positions, cell in zip(blocks, self._conducts, self._positions, self._cells, strict=True):
            for position in positions:  # along x, then y, then z: the last index each time
                first = np.where(known[..., 0], values[..., 0], values[..., 1])
                second = np.where(known[..., 1], values[..., 1], values[..., 0])
                known = known.any(axis=-1)
                if position.face is not None:
                    first = surface(position.face, (cell[0], cell[1], cell[2]), second)
                values = first + position.weight * (second - first)
            points.append(float(values))
        row, left = [time], iter(points)
        for probe in state.problem.scenario.probes:
            if probe.region is not None:
                row.append(self._regions[probe.name].of(state.field))
            else:
                row.extend(next(left) for _ in probe.points)
        for column, value in zip(state.problem.scenario.probe_columns, row[1:], strict=True):
            if not isfinite(value):
                raise NotFiniteError(
                    f'{value!r} K at probe "{column}" at t = {time!r} s, where the field is finite: a face that it '
                    f"lies at has no finite value at that time; change the expression in t on that face"
                )
        self._table.append(row)

    def save(self) -> dict[str, Value]:
        """How many rows are in the table."""
        return {"probe_rows": self._table.rows}

    def flush(self) -> None:
        """Bring the table to disk."""
        self._table.flush()

    def close(self) -> None:
        """Close the table."""
        if hasattr(self, "_table"):
            self._table.close()
