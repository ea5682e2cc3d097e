"""Temperatures at points and along lines, and statistics of regions and of surfaces, written to probes.csv.

heatsim/physics/interpolation.py explains the temperatures at points.
"""

import json
from collections.abc import Iterator, Sequence
from math import isfinite

from heatsim.errors import NotFiniteError
from heatsim.observers.observer import Value, Values
from heatsim.observers.regions import RegionStatistic, TimeBeyond
from heatsim.observers.state import Record, RunState
from heatsim.observers.surfaces import SurfaceStatistic
from heatsim.observers.table import Column, TableObserver
from heatsim.physics.interpolation import Interpolation
from heatsim.scenario import Probe
from heatsim.storage import folder

_STATISTICS, _RECORDS = "probe_statistics", "probe_records"


class Probes(TableObserver):
    """Writes probes.csv."""

    file = folder.PROBES
    saved_as = "probe"

    def columns(self, state: RunState) -> list[Column]:
        """The columns of the probes."""
        unit = state.problem.scenario.output.temperature
        probes = state.problem.scenario.probes
        return [(name, probe.unit or unit) for probe in probes for name in probe.columns]

    def columns_without_units(self, state: RunState) -> Sequence[str]:
        """The columns of the probes, in K."""
        return state.problem.scenario.probe_columns

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open the table; find the cells around each point."""
        problem, self._state, self._follows = state.problem, state, True
        probes = problem.scenario.probes
        self._statistics: dict[str, RegionStatistic | SurfaceStatistic] = {
            probe.name: RegionStatistic(probe, state) if probe.surface is None else SurfaceStatistic(probe, state)
            for probe in probes
            if probe.statistic is not None and not probe.points
        }
        self._times_beyond = {
            probe.name: TimeBeyond.of(probe) for probe in probes if probe.points and probe.threshold is not None
        }
        if saved is not None:
            values = json.loads(str(saved.get(_STATISTICS, "{}")))
            for name, statistic in self._of_rows():
                statistic.restore(values.get(name))
            records = json.loads(str(saved.get(_RECORDS, "{}")))
            # Checkpoints of an older heatsim do not have them.
            self._follows = _RECORDS in saved
            state.of_probes = {name: Record.from_list(values) for name, values in records.items()}
        self._points = Interpolation(problem, [point for probe in probes for point in probe.points])
        self._cells = state.field.points(*self._points.cells)
        super().start(state, saved)

    def row(self, state: RunState) -> list[float]:
        """The numbers of the probes.

        Raises:
            NotFiniteError: the temperature of a face is not finite at this time.
        """
        points = self._points.of(self._cells.temperatures(), state.step)
        unit = state.problem.scenario.output.temperature_unit
        row, left = list[float](), iter(points)
        for probe in state.problem.scenario.probes:
            if probe.points:
                kelvins = [next(left) for _ in probe.points]
                self._check(probe, kelvins, state)
                if probe.name in self._times_beyond:
                    row.append(self._times_beyond[probe.name].at(kelvins[0], state.time))
                else:
                    row.extend(unit.of(each) for each in kelvins)
            else:
                statistic = self._statistics[probe.name]
                value = statistic.now()
                if probe.surface is not None:
                    self._check(probe, [value], state)
                if probe.has_place and self._follows:
                    self._record(probe, value, statistic)
                row.append(unit.of(value) if probe.unit is None else value)
        return row

    def save(self) -> dict[str, Value]:
        """The number of rows, and what statistics need from the rows before."""
        found = {name: statistic.save() for name, statistic in self._of_rows()}
        kept = {name: values for name, values in found.items() if values is not None}
        records = {name: record.as_list() for name, record in self._state.of_probes.items()}
        texts = {_STATISTICS: kept, _RECORDS: records}
        return {**super().save(), **{key: json.dumps(values) for key, values in texts.items() if values}}

    def _record(self, probe: Probe, value: float, statistic: RegionStatistic | SurfaceStatistic) -> None:
        """Keep the extreme of a probe with its time and place. Collective."""
        state, known = self._state, self._state.of_probes.get(probe.name)
        sign = 1.0 if probe.statistic == "max" else -1.0
        if known is None or sign * value > sign * known.temperature:
            state.of_probes[probe.name] = Record(value, state.time, statistic.place())

    def _of_rows(self) -> Iterator[tuple[str, RegionStatistic | SurfaceStatistic | TimeBeyond]]:
        """What may need the rows before, by the name of the probe."""
        yield from self._statistics.items()
        yield from self._times_beyond.items()

    def _check(self, probe: Probe, kelvins: Sequence[float], state: RunState) -> None:
        for column, value in zip(probe.columns, kelvins, strict=True):
            if not isfinite(value):
                raise NotFiniteError(
                    f'probe "{column}" is {value!r} K at t = {state.time!r} s, but the field is finite: the face at '
                    "the probe has no finite temperature at that time; change the expression in t of that face"
                )
