"""Record the lowest and highest temperature of a run, and temperatures outside the ranges of tables."""

import json
from dataclasses import replace
from math import nan

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import RunError
from heatsim.observers.observer import FIELD, Observer, Reads, Value, Values
from heatsim.observers.state import LeftRange, Record, RunState
from heatsim.observers.temperature_ranges import ROUNDING, WatchedSurface, ranged, warnings
from heatsim.physics.operator.cold_surfaces import CooledSurface, cooled_surfaces
from heatsim.solver.field.extreme_cells import Extreme

# Relative to a temperature; if rounding raises an extreme by less than this, its time and place stay the same.
_SAME = 1e-6
_FLUX = "flux"


class ExtremeTemperatures(Observer):
    """Compares the lowest and highest temperature of each cell type with the records, at all due times.

    The temperature of a record is the extreme of all due times. Its time and place are the first whose temperature is
    equal to it within rounding.
    """

    def due(self, state: RunState) -> NDArray[np.int64]:
        """All due times."""
        return state.problem.timeline.steps

    def start(self, state: RunState, saved: Values | None) -> None:
        """Restore the records of the checkpoint."""
        # The temperatures at the times and places of both records.
        self._lowest_there = self._highest_there = nan
        if saved is not None:
            lowest, highest, beyond, there = json.loads(str(saved["extreme_temperatures"]))
            state.lowest, state.highest = (record and Record.from_list(record) for record in (lowest, highest))
            state.beyond = {LeftRange(*which): Record.from_list(record) for *which, record in beyond}
            self._lowest_there, self._highest_there = there
        self._state = state
        self._ranged = ranged(state, looking=True)
        cooled = cooled_surfaces(state.problem.boundary, state.problem.materials)
        self._cooled = [(one, WatchedSurface(state, one.number)) for one in cooled if one.drop > ROUNDING]

    def reads(self, state: RunState) -> Reads:
        """The extremes of all cell types; the field if cells of a source must be compared with its table."""
        if any(one.amount is not None for one in self._ranged):
            return FIELD
        types, void = range(len(state.problem.materials.types)), state.problem.materials.void
        both = (False, True)
        return Reads(extremes=[Extreme(number, None, each) for number in types if number != void for each in both])

    def handle(self, state: RunState) -> None:
        """Compare the field with the records.

        Raises:
            RunError: a temperature, of a cell or of a surface that a flux cools, is below 0 K.
        """
        low, high = state.statistics.temperatures_of_types()
        lowest, highest = min(low), max(high)
        if state.lowest is None or _passes(lowest, self._lowest_there, -1.0):
            state.lowest = self._record_of(state, low.index(lowest), lowest, highest=False)
            self._lowest_there = lowest
        elif lowest < state.lowest.temperature:
            state.lowest = replace(state.lowest, temperature=lowest)
        if state.lowest.temperature < -ROUNDING:
            raise RunError(_below_zero(state, state.lowest))
        if state.highest is None or _passes(highest, self._highest_there, 1.0):
            state.highest = self._record_of(state, high.index(highest), highest, highest=True)
            self._highest_there = highest
        elif highest > state.highest.temperature:
            state.highest = replace(state.highest, temperature=highest)
        for one in self._ranged:
            one.compare(state, low, high)
        for cooled, surface in self._cooled:
            if lowest - cooled.drop < -ROUNDING and (coldest := surface.extremes(state)[0]) < -ROUNDING:
                if cooled.exchanges:
                    raise RunError(_cold_surface(state, cooled, coldest))
                which = LeftRange(_FLUX, state.problem.boundary.keys[cooled.number], "low")
                if which not in state.beyond or coldest < state.beyond[which].temperature:
                    state.beyond[which] = Record(coldest, state.time)

    def save(self) -> dict[str, Value]:
        """The records as text."""
        lowest, highest = (record and record.as_list() for record in (self._state.lowest, self._state.highest))
        beyond = [[*key, record.as_list()] for key, record in self._state.beyond.items()]
        records = [lowest, highest, beyond, [self._lowest_there, self._highest_there]]
        return {"extreme_temperatures": json.dumps(records)}

    @staticmethod
    def _record_of(state: RunState, cell_type: int, temperature: float, highest: bool) -> Record:
        return Record(temperature, state.time, state.statistics.extreme_cells.of_type(cell_type, highest))


def _passes(temperature: float, record: float, sign: float) -> bool:
    """Whether a temperature lies above (sign 1) or below (sign −1) that of a record by more than rounding."""
    return sign * (temperature - record) > _SAME * abs(record)


def _below_zero(state: RunState, lowest: Record) -> str:
    """The message about a temperature below 0 K, which no body has."""
    steady = state.problem.scenario.steady
    what = "a temperature of the steady state is below 0 K" if steady else "a temperature falls below 0 K"
    when = "" if steady else f" at t = {lowest.time:.6g} s"
    shorter = "" if steady or state.method is not None else ", or take a shorter time.dt"
    return (
        f"{what}: {lowest.temperature:.6g} K{when} in cell {list(lowest.cell or ())}; sources or fluxes take out more "
        f"heat than {'surfaces can supply' if steady else 'there is'}; check the signs and units of their powers"
        f"{shorter}"
    )


def _cold_surface(state: RunState, cooled: CooledSurface, coldest: float) -> str:
    """The message about a surface below 0 K that exchanges heat."""
    when = "" if state.problem.scenario.steady else f" at t = {state.time:.6g} s"
    return (
        f"a surface is below 0 K: {coldest:.6g} K{when}, because the flux of "
        f"{state.problem.boundary.keys[cooled.number]} takes out more heat than the body can supply: a flux of "
        f"{cooled.reason(state.problem.materials)}"
    )


def temperature_warnings(state: RunState) -> list[str]:
    """Warnings about the temperatures of a run: surfaces below 0 K, one of several states, beyond tables."""
    steady = state.steady is not None
    found = []
    for which, of in state.beyond.items():
        if which.kind == _FLUX:
            when = "" if steady else f" at t = {of.time:.6g} s"
            found.append(
                f"the flux of {which.name} left its surface with {of.temperature:.6g} K{when}, below 0 K: the body has "
                "the heat as written, but this temperature has no meaning; check the sign and unit of the flux, and if "
                "it is a short pulse use finer cells"
            )
    lowest, unit = state.lowest, state.problem.scenario.output.temperature_unit
    rising = state.problem.boundary.rises_of_laws(*state.problem.reached) if steady else {}
    if rising and lowest is not None and state.highest is not None:
        keys = dict.fromkeys(state.problem.boundary.keys[number] for number in rising)
        found.append(
            f"several steady states may exist, because the heat flux of {', '.join(keys)} rises with the temperature "
            f"of the surface; the stable one that was found has {unit.text(lowest.temperature)} to "
            f"{unit.text(state.highest.temperature)}; begin with another initial.temperature to look for others"
        )
    return [*found, *warnings(state)]
