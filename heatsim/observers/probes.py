"""Temperatures at points, along lines and of regions, written to probes.csv.

heatsim/physics/interpolation.py explains the temperatures at points.
"""

from contextlib import ExitStack
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import NotFiniteError
from heatsim.observers.observer import Observer, Value, Values
from heatsim.observers.regions import RegionStatistic
from heatsim.observers.state import RunState
from heatsim.physics.interpolation import Interpolation
from heatsim.physics.problem import HeatProblem
from heatsim.physics.surface_temperature import surfaces_at
from heatsim.storage import folder
from heatsim.storage.checkpoint import Pieces
from heatsim.storage.tables import TableWriter

_CHECKSUMS = "probe_checksums"


def columns(problem: HeatProblem) -> list[str]:
    """The columns of probes.csv."""
    return ["time", *problem.scenario.probe_columns]


class Probes(Observer):
    """Writes a row at 0, probe_every, 2·probe_every, … and the end."""

    _table: TableWriter

    def __init__(self) -> None:
        self._open = ExitStack()

    def due(self, state: RunState) -> NDArray[np.int64]:
        """Steps at which a row is written."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def check(self, state: RunState, saved: Values) -> None:
        """Check that the rows of the checkpoint are still in the file, unchanged."""
        path, names = state.folder / folder.PROBES, columns(state.problem)
        TableWriter.check(path, names, int(saved["probe_rows"]), saved[_CHECKSUMS])

    def start(self, state: RunState, saved: Values | None) -> None:
        """Create the table, or remove the rows after the checkpoint; find the cells around each point."""
        problem = state.problem
        probes = problem.scenario.probes
        self._regions = {
            probe.name: RegionStatistic(probe, problem, state.field) for probe in probes if probe.region is not None
        }
        self._points = Interpolation(problem, [point for probe in probes for point in probe.points])
        self._cells = state.field.points(*self._points.cells)

        path, names = state.folder / folder.PROBES, columns(problem)
        if saved is None:
            self._table = TableWriter.create(path, names)
        else:
            self._table = TableWriter.reopen(path, names, int(saved["probe_rows"]), saved[_CHECKSUMS])
        self._open.callback(self._table.close)

    def handle(self, state: RunState) -> None:
        """Append a row.

        Raises:
            NotFiniteError: the temperature of a face is not finite at this time.
        """
        time = state.time
        points = self._points.of(self._cells.temperatures(), surfaces_at(state.problem, state.step))
        row, left = [time], iter(points)
        for probe in state.problem.scenario.probes:
            if probe.region is not None:
                row.append(self._regions[probe.name].of(state.field))
            else:
                row.extend(next(left) for _ in probe.points)
        for column, value in zip(state.problem.scenario.probe_columns, row[1:], strict=True):
            if not isfinite(value):
                raise NotFiniteError(
                    f'probe "{column}" is {value!r} K at t = {time!r} s, but the field is finite: the face at the '
                    "probe has no finite temperature at that time; change the expression in t of that face"
                )
        self._table.append(row)

    def save(self) -> dict[str, Value]:
        """The number of rows in the table."""
        return {"probe_rows": self._table.rows}

    def record(self) -> dict[str, Pieces]:
        """The running checksum of the table after each row."""
        rows = self._table.rows
        return {_CHECKSUMS: Pieces((rows + 1,), np.uint32, lambda: [self._table.checksums(rows)])}

    def flush(self) -> None:
        """Write the table to the disk."""
        self._table.flush()
        if not self._table.is_in_place:
            raise folder.removed(self._table.path)

    def close(self) -> None:
        """Close the table."""
        self._open.close()
