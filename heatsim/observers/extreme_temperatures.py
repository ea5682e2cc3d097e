"""The lowest and highest temperature of a run, and temperatures at which materials left the range of their tables."""

import json

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.observer import Observer, Value, Values
from heatsim.observers.state import Record, RunState
from heatsim.scenario import Material

ROUNDING = 0.01  # K; rounding moves a temperature less than this beyond a limit


class ExtremeTemperatures(Observer):
    """Compares the lowest and highest temperature of each cell type with the records, at all due times."""

    def due(self, state: RunState) -> NDArray[np.int64]:
        """All due times."""
        return state.problem.timeline.steps

    def start(self, state: RunState, saved: Values | None) -> None:
        """Restore the records of the checkpoint."""
        self._follows_highest = True
        if saved is not None:
            lowest, beyond, *highest = json.loads(str(saved["extreme_temperatures"]))
            state.lowest = lowest and Record.from_list(lowest)
            state.beyond = {(name, side): Record.from_list(record) for name, side, record in beyond}
            # Checkpoints of an older heatsim do not have it.
            self._follows_highest = bool(highest)
            state.highest = Record.from_list(highest[0]) if highest and highest[0] else None
        self._state = state
        materials = state.problem.materials
        palette = dict(state.problem.scenario.palette)
        self._ends = [_ends(palette[materials.palette[cell_type.material].name]) for cell_type in materials.types]

    def handle(self, state: RunState) -> None:
        """Compare the field with the records."""
        low, high = state.statistics.temperatures_of_types()
        coldest, hottest = min(range(len(low)), key=low.__getitem__), max(range(len(high)), key=high.__getitem__)
        if state.lowest is None or low[coldest] < state.lowest.temperature:
            state.lowest = self._record_of(state, coldest, low[coldest], highest=False)
        if self._follows_highest and (state.highest is None or high[hottest] > state.highest.temperature):
            state.highest = self._record_of(state, hottest, high[hottest], highest=True)
        materials = state.problem.materials
        for cell_type, ends in enumerate(self._ends):
            if ends is None:
                continue
            name = materials.palette[materials.types[cell_type].material].name
            for side, sign, found, end in (
                ("low", -1.0, low[cell_type], ends[0]),
                ("high", 1.0, high[cell_type], ends[1]),
            ):
                before = state.beyond.get((name, side))
                if sign * found > (sign * end + ROUNDING if before is None else sign * before.temperature):
                    state.beyond[name, side] = Record(found, state.time)

    def save(self) -> dict[str, Value]:
        """The records as text."""
        lowest, highest = self._state.lowest, self._state.highest
        beyond = [[*key, record.as_list()] for key, record in self._state.beyond.items()]
        records: list[object] = [lowest and lowest.as_list(), beyond]
        if self._follows_highest:
            records.append(highest and highest.as_list())
        return {"extreme_temperatures": json.dumps(records)}

    @staticmethod
    def _record_of(state: RunState, cell_type: int, temperature: float, highest: bool) -> Record:
        return Record(temperature, state.time, state.statistics.first_cell(cell_type, highest))


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
    passed: dict[str, list[tuple[str, str]]] = {}
    for (name, side), record in state.beyond.items():
        passed.setdefault(name, []).append((f"{unit.text(record.temperature)} at t = {record.time:.6g} s", side))
    for name, reached in passed.items():
        ends = [
            f"its {key} {'ends' if side == 'high' else 'begins'} at {unit.text(end)}"
            for _, side in reached
            for key, end in _ends_passed(state, name, side).items()
        ]
        warnings.append(
            f'material "{name}" reached {" and ".join(place for place, _ in reached)}, but {" and ".join(ends)}: '
            "outside, the run used the nearest known value; extend the table or the temperature_range"
        )
    return warnings


def _ends_passed(state: RunState, name: str, side: str) -> dict[str, float]:
    """The ends of a material's tables that its highest, or its lowest, temperature has passed, by their keys."""
    material, found = dict(state.problem.scenario.palette)[name], state.beyond[name, side].temperature
    assert material is not None, "void has no tables"
    if side == "high":
        return {key: highest for key, _, highest in material.table_ends if found > highest + ROUNDING}
    return {key: least for key, least, _ in material.table_ends if found < least - ROUNDING}


def _ends(material: Material | None) -> tuple[float, float] | None:
    """The range in K that all tables and the temperature_range of a material cover; None if it has no end."""
    if material is None or not material.table_ends:
        return None
    return max(low for _, low, _ in material.table_ends), min(high for _, _, high in material.table_ends)
