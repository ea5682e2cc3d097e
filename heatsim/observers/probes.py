"""Temperatures at points, along lines and of regions, written to probes.csv.

heatsim/physics/interpolation.py explains the temperatures at points.
"""

from collections.abc import Sequence
from math import isfinite

from heatsim.errors import NotFiniteError
from heatsim.observers.observer import Values
from heatsim.observers.regions import RegionStatistic
from heatsim.observers.state import RunState
from heatsim.observers.table import Column, TableObserver
from heatsim.physics.interpolation import Interpolation
from heatsim.storage import folder


class Probes(TableObserver):
    """Writes probes.csv."""

    file = folder.PROBES
    saved_as = "probe"

    def columns(self, state: RunState) -> list[Column]:
        """The columns of the probes."""
        unit = state.problem.scenario.output.temperature
        return [(name, unit) for name in state.problem.scenario.probe_columns]

    def columns_without_units(self, state: RunState) -> Sequence[str]:
        """The columns of the probes, in K."""
        return state.problem.scenario.probe_columns

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open the table; find the cells around each point."""
        problem = state.problem
        probes = problem.scenario.probes
        self._regions = {
            probe.name: RegionStatistic(probe, problem, state.field) for probe in probes if probe.region is not None
        }
        self._points = Interpolation(problem, [point for probe in probes for point in probe.points])
        self._cells = state.field.points(*self._points.cells)
        super().start(state, saved)

    def row(self, state: RunState) -> list[float]:
        """The temperatures of the probes.

        Raises:
            NotFiniteError: the temperature of a face is not finite at this time.
        """
        points = self._points.of(self._cells.temperatures(), state.step)
        row, left = list[float](), iter(points)
        for probe in state.problem.scenario.probes:
            if probe.region is not None:
                row.append(self._regions[probe.name].of(state.field))
            else:
                row.extend(next(left) for _ in probe.points)
        for column, value in zip(state.problem.scenario.probe_columns, row, strict=True):
            if not isfinite(value):
                raise NotFiniteError(
                    f'probe "{column}" is {value!r} K at t = {state.time!r} s, but the field is finite: the face at '
                    "the probe has no finite temperature at that time; change the expression in t of that face"
                )
        unit = state.problem.scenario.output.temperature_unit
        return [unit.of(kelvins) for kelvins in row]
