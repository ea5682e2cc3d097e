"""Remembers the lowest temperature of a run, and where materials left the temperatures that their tables cover."""

import json

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer, Value, Values
from heatsim.observers.state import Record, RunState
from heatsim.physics.enthalpy import Thermometer
from heatsim.scenario import Material

ROUNDING = 0.01  # K; rounding does not carry a temperature so far beyond a limit


class ExtremeTemperatures(Observer):
    """At every step at which anything is due.

    The lowest and highest values that the buffer holds are known there already. They bound the temperatures of all
    materials, so the field is read again only where a bound says that there may be something new.
    """

    def due(self, state: RunState) -> NDArray[np.int64]:
        """All due times."""
        return state.problem.timeline.steps

    def start(self, state: RunState, saved: Values | None) -> None:
        """Take back what the checkpoint remembers."""
        if saved is not None:
            lowest, beyond = json.loads(str(saved["extreme_temperatures"]))
            state.lowest = lowest and _record(lowest)
            state.beyond = {(name, side): _record(record) for name, side, record in beyond}
        self._state = state
        materials = state.problem.materials
        self._thermometer = Thermometer(np, materials.enthalpies, lambda kinds: kinds)
        palette = [material for _, material in state.problem.scenario.palette]
        self._ends = [_ends(palette[kind.material]) for kind in materials.kinds]

    def handle(self, state: RunState) -> None:
        """Compare the field with what was seen before."""
        found, kinds = state.field.statistics(), len(self._ends)
        low, high = (self._temperatures(state, np.full(kinds, end)) for end in (found.lowest, found.highest))
        known = np.inf if state.lowest is None else state.lowest.temperature
        if low.min() < known or any(
            ends is not None and (low[kind] < ends[0] - ROUNDING or high[kind] > ends[1] + ROUNDING)
            for kind, ends in enumerate(self._ends)
        ):
            self._look(state, known)

    def save(self) -> dict[str, Value]:
        """What is remembered, as text."""
        lowest = self._state.lowest
        beyond = [[*key, record.as_list()] for key, record in self._state.beyond.items()]
        return {"extreme_temperatures": json.dumps([lowest and lowest.as_list(), beyond])}

    def _look(self, state: RunState, known: float) -> None:
        lows, highs = state.statistics.extremes_of_kinds()
        low, high = self._temperatures(state, lows), self._temperatures(state, highs)
        present = np.isfinite(lows)
        coldest = int(np.argmin(np.where(present, low, np.inf)))
        if low[coldest] < known:
            state.lowest = Record(float(low[coldest]), state.time, state.statistics.lowest_cell(coldest))
        medium = state.problem.materials
        for kind, ends in enumerate(self._ends):
            if ends is None or not present[kind]:
                continue
            name = medium.palette[medium.kinds[kind].material].name
            for side, sign, found, end in (("low", -1.0, low[kind], ends[0]), ("high", 1.0, high[kind], ends[1])):
                before = state.beyond.get((name, side))
                if sign * found > (sign * end + ROUNDING if before is None else sign * before.temperature):
                    state.beyond[name, side] = Record(float(found), state.time)

    def _temperatures(self, state: RunState, contents: NDArray[np.float64]) -> NDArray[np.float64]:
        """Temperatures in K of a content of each kind."""
        return np.asarray(self._thermometer(contents, np.arange(len(contents))) + state.field.reference)


def temperature_warnings(state: RunState) -> list[str]:
    """What the user should know of the temperatures that a run came to."""
    warnings = []
    lowest = state.lowest
    if lowest is not None and lowest.temperature < -ROUNDING:
        warnings.append(
            f"the lowest temperature is {lowest.temperature:.6g} K, below absolute zero, at t = {lowest.time:.6g} s in "
            f"cell {list(lowest.cell or ())}: given fluxes or sources take out more heat than there is; make them "
            "smaller or shorter"
        )
    materials = dict(state.problem.scenario.palette)
    for (name, side), record in state.beyond.items():
        material = materials[name]
        assert material is not None, "void has no tables"
        high = side == "high"
        ends = {key: highest if high else least for key, least, highest in material.table_ends}
        passed = [
            f"{key} {'ends' if high else 'begins'} at {end:.6g} K"
            for key, end in ends.items()
            if (record.temperature > end + ROUNDING if high else record.temperature < end - ROUNDING)
        ]
        warnings.append(
            f'material "{name}" came to {record.temperature:.6g} K at t = {record.time:.6g} s, but its '
            f"{' and its '.join(passed)}: the value there was used beyond; extend the table or the temperature_range"
        )
    return warnings


def _ends(material: Material | None) -> tuple[float, float] | None:
    """The nearest ends of a material's tables and temperature_range in K; None where nothing ends."""
    if material is None or not material.table_ends:
        return None
    return max(low for _, low, _ in material.table_ends), min(high for _, _, high in material.table_ends)


def _record(values: list[float]) -> Record:
    temperature, time, *cell = values
    return Record(temperature, time, (int(cell[0]), int(cell[1]), int(cell[2])) if cell else None)
