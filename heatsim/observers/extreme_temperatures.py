"""The lowest temperature of a run, and the temperatures at which materials left the range of their tables."""

import json

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer, Value, Values
from heatsim.observers.state import Record, RunState
from heatsim.physics.enthalpy import Thermometer
from heatsim.scenario import Material

Temperatures = NDArray[np.float64]

ROUNDING = 0.01  # K; rounding moves a temperature less than this beyond a limit


class ExtremeTemperatures(Observer):
    """Checks the field at all due times.

    The lowest and highest values in the buffer are known then. They bound the temperatures of all materials, so the
    field is read again only if the bounds allow a new extreme.
    """

    def due(self, state: RunState) -> NDArray[np.int64]:
        """All due times."""
        return state.problem.timeline.steps

    def start(self, state: RunState, saved: Values | None) -> None:
        """Restore the records of the checkpoint."""
        if saved is not None:
            lowest, beyond = json.loads(str(saved["extreme_temperatures"]))
            state.lowest = lowest and _record(lowest)
            state.beyond = {(name, side): _record(record) for name, side, record in beyond}
        self._state = state
        materials = state.problem.materials
        self._thermometer = Thermometer(np, materials.enthalpies, lambda cell_types: cell_types)
        palette = dict(state.problem.scenario.palette)
        self._ends = [_ends(palette[materials.palette[cell_type.material].name]) for cell_type in materials.types]
        self._limited = any(ends is not None for ends in self._ends)

    def handle(self, state: RunState) -> None:
        """Compare the field with the records."""
        found, count = state.field.statistics(), len(self._ends)
        low = self._temperatures(state, np.full(count, found.lowest))
        high = self._temperatures(state, np.full(count, found.highest)) if self._limited else low
        known = np.inf if state.lowest is None else state.lowest.temperature
        if low.min() < known or any(
            ends is not None and (low[cell_type] < ends[0] - ROUNDING or high[cell_type] > ends[1] + ROUNDING)
            for cell_type, ends in enumerate(self._ends)
        ):
            self._look(state, known, low, high)

    def save(self) -> dict[str, Value]:
        """The records as text."""
        lowest = self._state.lowest
        beyond = [[*key, record.as_list()] for key, record in self._state.beyond.items()]
        return {"extreme_temperatures": json.dumps([lowest and lowest.as_list(), beyond])}

    def _look(self, state: RunState, known: float, low: Temperatures, high: Temperatures) -> None:
        """Update the records. ``low`` and ``high`` bound the temperatures in K of each cell type."""
        present = np.ones(len(low), dtype=bool)
        if not state.problem.materials.uniform:
            lows, highs = state.statistics.extremes_by_type()
            low, high, present = self._temperatures(state, lows), self._temperatures(state, highs), np.isfinite(lows)
        coldest = int(np.argmin(np.where(present, low, np.inf)))
        if low[coldest] < known:
            state.lowest = Record(float(low[coldest]), state.time, state.statistics.lowest_cell(coldest))
        materials = state.problem.materials
        for cell_type, ends in enumerate(self._ends):
            if ends is None or not present[cell_type]:
                continue
            name = materials.palette[materials.types[cell_type].material].name
            for side, sign, found, end in (
                ("low", -1.0, low[cell_type], ends[0]),
                ("high", 1.0, high[cell_type], ends[1]),
            ):
                before = state.beyond.get((name, side))
                if sign * found > (sign * end + ROUNDING if before is None else sign * before.temperature):
                    state.beyond[name, side] = Record(float(found), state.time)

    def _temperatures(self, state: RunState, contents: NDArray[np.float64]) -> NDArray[np.float64]:
        """Temperatures in K from one content for each cell type."""
        return np.asarray(self._thermometer(contents, np.arange(len(contents))) + state.field.reference)


def temperature_warnings(state: RunState) -> list[str]:
    """Warnings about the temperatures of a run: below absolute zero, or beyond a material's tables."""
    warnings = []
    lowest, unit = state.lowest, state.problem.scenario.output.temperature_unit
    if lowest is not None and lowest.temperature < -ROUNDING:
        warnings.append(
            f"the lowest temperature is {unit.text(lowest.temperature)}, below absolute zero, at t = {lowest.time:.6g} "
            f"s in cell {list(lowest.cell or ())}: fluxes or sources remove more heat than the body has; make them "
            "smaller or shorter"
        )
    materials = dict(state.problem.scenario.palette)
    for (name, side), record in state.beyond.items():
        material = materials[name]
        assert material is not None, "void has no tables"
        high = side == "high"
        ends = {key: highest if high else least for key, least, highest in material.table_ends}
        passed = [
            f"{key} {'ends' if high else 'begins'} at {unit.text(end)}"
            for key, end in ends.items()
            if (record.temperature > end + ROUNDING if high else record.temperature < end - ROUNDING)
        ]
        warnings.append(
            f'material "{name}" reached {unit.text(record.temperature)} at t = {record.time:.6g} s, but its '
            f"{' and its '.join(passed)}: outside, the run used the nearest known value; extend the table or the "
            "temperature_range"
        )
    return warnings


def _ends(material: Material | None) -> tuple[float, float] | None:
    """The range in K that all tables and the temperature_range of a material cover; None if it has no end."""
    if material is None or not material.table_ends:
        return None
    return max(low for _, low, _ in material.table_ends), min(high for _, _, high in material.table_ends)


def _record(values: list[float]) -> Record:
    temperature, time, *cell = values
    return Record(temperature, time, (int(cell[0]), int(cell[1]), int(cell[2])) if cell else None)
