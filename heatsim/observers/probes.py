"""Temperatures at points and along lines, statistics of regions and of surfaces, couplings, written to probes.csv.

heatsim/physics/readings/interpolation.py explains the temperatures at points.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import NotFiniteError
from heatsim.observers.observer import FIELD, Reads, Value, Values
from heatsim.observers.regions import RegionStatistic
from heatsim.observers.state import Record, RunState
from heatsim.observers.surfaces import SurfaceStatistic
from heatsim.observers.table import Column, TableObserver
from heatsim.observers.time_beyond import TimeBeyond
from heatsim.physics.readings.interpolation import Interpolation
from heatsim.scenario import Probe
from heatsim.scenario.tables.probes import TEMPERATURE_FACTOR
from heatsim.solver.field.extreme_cells import Extreme
from heatsim.storage import folder

_STATISTICS, _RECORDS = "probe_statistics", "probe_records"


class _ProbeSample(NamedTuple):
    """What a row needs of the field.

    Attributes:
        step: number of steps done.
        time: in s.
        temperatures: of the cells around the points, in K.
        statistics: of regions and surfaces, by the name of the probe.
    """

    step: int
    time: float
    temperatures: NDArray[np.float64]
    statistics: Mapping[str, float]


class Probes(TableObserver):
    """Writes probes.csv."""

    file = folder.PROBES
    saved_as = "probe"

    def columns(self, state: RunState) -> list[Column]:
        """The columns of the probes and of the couplings."""
        scenario = state.problem.scenario
        unit = scenario.output.table_unit.name
        columns = [(name, probe.unit or unit) for probe in scenario.probes for name in probe.columns]
        return columns + [column for each in scenario.couplings for column in each.columns.items()]

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open the table; find the cells around each point."""
        problem, self._state = state.problem, state
        set_beams = any(not track.source.factor.foreseen for track in problem.sources.tracks)
        if set_beams or not problem.boundary.lasts:
            # What acts on surfaces may be set after the row; and if one has no finite temperature, the run stops then.
            self._rows_at_once = 1
        probes = problem.scenario.probes
        self._statistics: dict[str, RegionStatistic | SurfaceStatistic] = {
            probe.name: RegionStatistic(probe, state) if probe.surface is None else SurfaceStatistic(probe, state)
            for probe in probes
            if probe.statistic is not None and not probe.points
        }
        self._times_beyond = {
            probe.name: TimeBeyond.of(probe, state) for probe in probes if probe.points and probe.threshold is not None
        }
        if saved is not None:
            values, records = (json.loads(str(saved[key])) for key in (_STATISTICS, _RECORDS))
            for name, statistic in self._of_rows():
                statistic.restore(values.get(name))
            state.of_probes = {name: Record.from_list(values) for name, values in records.items()}
        self._without_points = [(probe, self._statistics[probe.name]) for probe in probes if not probe.points]
        self._points = Interpolation(problem, [point for probe in probes for point in probe.points])
        self._cells = state.field.points(*self._points.cells)
        self._limit_samples(8 * self._points.cells[0].size)
        super().start(state, saved)

    def rows(self, samples: "Sequence[_ProbeSample]") -> list[list[float]]:
        """Make many rows together, because NumPy takes about as long for one row as for many.

        Raises:
            NotFiniteError: the temperature of a face is not finite at the time of a row.
        """
        values = np.array([sample.temperatures for sample in samples])
        kelvins = self._points.of(values, [sample.step for sample in samples])
        if not np.isfinite(kelvins).all():
            self._refuse(samples, kelvins.tolist())
        times = [sample.time for sample in samples]
        columns, first = [np.array(times)[:, np.newaxis]], 0
        unit = self._state.problem.scenario.output.table_unit
        for probe in self._state.problem.scenario.probes:
            if not probe.points:
                numbers = np.array([sample.statistics[probe.name] for sample in samples])
                column = unit.of(numbers) if probe.unit is None else numbers
                columns.append(column[:, np.newaxis])
                continue
            here = kelvins[:, first : first + len(probe.points)]
            first += len(probe.points)
            beyond = self._times_beyond.get(probe.name)
            if beyond is None:
                columns.append(unit.of(here))
            else:
                seconds = [beyond.at(*of_row) for of_row in zip(here[:, 0].tolist(), times, strict=True)]
                columns.append(np.array(seconds)[:, np.newaxis])
        columns += [np.full((len(samples), 1), value) for value in self._couplings()]
        rows: list[list[float]] = np.concatenate(columns, axis=1).tolist()
        return rows

    def _couplings(self) -> Iterator[float]:
        """The numbers of the couplings; only a steady state has them."""
        found = () if self._state.steady is None else self._state.steady.couplings
        for coupling, conductance in zip(self._state.problem.scenario.couplings, found, strict=True):
            yield from coupling.values(conductance)

    def reads(self, state: RunState) -> Reads:
        """The sums, with the extremes of regions whose cells are recorded; the field if a statistic reads it."""
        if any(statistic.reads_field for statistic in self._statistics.values()):
            return FIELD
        extremes = [
            Extreme(None, probe.region, probe.statistic == "max")
            for probe, statistic in self._without_points
            if probe.has_place and isinstance(statistic, RegionStatistic)
        ]
        return Reads(extremes=extremes)

    def sample(self, state: RunState) -> "_ProbeSample":
        """Read the points, and the statistics of regions and surfaces.

        Raises:
            NotFiniteError: the temperature of a surface is not finite at this time.
        """
        statistics: dict[str, float] = {}
        for probe, statistic in self._without_points:
            value = statistics[probe.name] = statistic.now()
            if probe.surface is not None:
                _check(probe, [value], state.time)
            if probe.has_place:
                self._record(probe, value, statistic)
        return _ProbeSample(state.step, state.time, self._cells.temperatures(), statistics)

    def _refuse(self, samples: "Sequence[_ProbeSample]", kelvins: Sequence[Sequence[float]]) -> NoReturn:
        """Raise the error for the first point, in the first row, without a finite temperature."""
        points = [probe for probe in self._state.problem.scenario.probes if probe.points]
        for sample, of_row in zip(samples, kelvins, strict=True):
            rest = iter(of_row)
            for probe in points:
                _check(probe, [next(rest) for _ in probe.points], sample.time)
        raise AssertionError("all temperatures are finite")

    def save(self) -> dict[str, Value]:
        """The number of rows, and what statistics need from the rows before."""
        saved = super().save()  # writes rows
        found = {name: statistic.save() for name, statistic in self._of_rows()}
        kept = {name: values for name, values in found.items() if values is not None}
        records = {name: record.as_list() for name, record in self._state.of_probes.items()}
        return {**saved, _STATISTICS: json.dumps(kept), _RECORDS: json.dumps(records)}

    def _record(self, probe: Probe, value: float, statistic: RegionStatistic | SurfaceStatistic) -> None:
        """Keep the extreme of a probe with its time and place. Collective."""
        state, known = self._state, self._state.of_probes.get(probe.name)
        if isinstance(statistic, SurfaceStatistic) and probe.statistic == TEMPERATURE_FACTOR:
            new, value = statistic.is_smallest, statistic.extreme
        else:
            sign = 1.0 if probe.statistic == "max" else -1.0
            new = known is None or sign * value > sign * known.temperature
        if new:
            state.of_probes[probe.name] = Record(value, state.time, statistic.place(), statistic.point())

    def _of_rows(self) -> Iterator[tuple[str, RegionStatistic | SurfaceStatistic | TimeBeyond]]:
        """What may need the rows before, by the name of the probe."""
        yield from self._statistics.items()
        yield from self._times_beyond.items()


class ProbeNow:
    """The value of a probe at the present step of a run, apart from the rows of probes.csv.

    Args:
        probe: a probe whose statistic is no time.
        state: the run.
    """

    def __init__(self, probe: Probe, state: RunState) -> None:
        self._probe, self._state = probe, state
        self._statistic: RegionStatistic | SurfaceStatistic | None = None
        if probe.points:
            self._points = Interpolation(state.problem, list(probe.points))
            self._cells = state.field.points(*self._points.cells)
        else:
            kind = RegionStatistic if probe.surface is None else SurfaceStatistic
            self._statistic = kind(probe, state)

    def read(self) -> list[float]:
        """One number, or one for each point of a line: temperatures in K, lengths in m, fractions. Collective.

        Raises:
            NotFiniteError: a surface has no finite temperature at this time.
        """
        if self._statistic is not None:
            values = [self._statistic.now()]
        else:
            values = self._points.of(self._cells.temperatures()[np.newaxis], [self._state.step])[0].tolist()
        _check(self._probe, values * (len(self._probe.columns) // len(values)), self._state.time)
        return values


def _check(probe: Probe, kelvins: Sequence[float], time: float) -> None:
    for column, value in zip(probe.columns, kelvins, strict=True):
        if not isfinite(value):
            raise NotFiniteError(
                f'probe "{column}" is {value!r} K at t = {time!r} s, but the field is finite: the face at the probe '
                "has no finite temperature at that time; change the expression in t of that face"
            )
