"""The parameters and responses of a study as columns of numbers, for the figures and the terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.amounts import LENGTHS, TIMES, choose_unit
from heatsim.counts import plain
from heatsim.limits import Limits
from heatsim.render.curves.curves import LimitLine, limit_lines
from heatsim.scenario.documents.key_paths import axes_of, containers, numbered, parts_of
from heatsim.study.columns import DONE, FINAL_COLUMNS, LIMITS, PASS, STATUS, probe_columns, rms_column
from heatsim.study.definition import Definition
from heatsim.study.model import LOG, Range, Response, StudyAxis
from heatsim.study.results import Row, column_units
from heatsim.temperature_units import KELVIN, TEMPERATURE_UNITS, TemperatureUnit

_SCALES = {"m": LENGTHS, "s": TIMES}
_MOST_PROBES = 4
_FEWEST_FOR_RANKS = 8
_LOG_RATIO = 10.0


@dataclass(frozen=True)
class Parameter:
    """The values of a parameter.

    Attributes:
        name: its keys.
        short: its name in the file, or the shortest ends of its keys that differ from all other keys; see
            :func:`key_label`.
        unit: its unit as texts write it; empty for texts and pure numbers. Lengths and times have a
            readable one.
        values: the value in each finished run in this unit; for a parameter of texts, the index of the category.
        categories: the different texts; empty for a parameter of numbers.
        logarithmic: whether figures have a logarithmic axis for it.
    """

    name: str
    short: str
    unit: str
    values: NDArray[np.float64]
    categories: tuple[str, ...] = ()
    logarithmic: bool = False

    @property
    def label(self) -> str:
        """The label of an axis: short name and unit."""
        return f"{self.short} ({self.unit})" if self.unit else self.short


def extreme_runs(definition: Definition, rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """The finished runs with the smallest and the largest value of each response, by its name and "smallest" …."""
    found: dict[tuple[str, str], Row] = {}
    for response in definition.table.responses:
        known = [row for row in finished_rows(rows) if row[response.name] is not None]
        if known:
            found[response.name, "smallest"] = min(known, key=lambda row: float(row[response.name]))
            found[response.name, "largest"] = max(known, key=lambda row: float(row[response.name]))
    return found


def best_run(definition: Definition, rows: Sequence[Row]) -> Row | None:
    """The finished run that is farthest within its limits, or nearest to them if none keeps them.

    The distance of a run is the smallest of its responses', each in parts of the range of the response over all runs.
    None without limits of responses.
    """
    limited = [response for response in definition.table.responses if response.limits.given]
    done = finished_rows(rows)
    if not limited or not done:
        return None
    scores = np.min([_margins(definition, response, done) for response in limited], axis=0)
    kept = [row[LIMITS] == PASS for row in done]
    return max(zip(kept, scores.tolist(), done, strict=True), key=lambda each: each[:2])[2]


def _margins(definition: Definition, response: Response, done: Sequence[Row]) -> NDArray[np.float64]:
    """How far the response of each run is within its limits, in parts of its range; ±1 for times not reached."""
    limits = response.limits.in_unit(TEMPERATURE_UNITS.get(column_units(definition)[response.name]))
    values = np.array([row[response.name] for row in done], dtype=np.float64)
    known = values[np.isfinite(values)]
    span = float(np.ptp(known)) if len(known) else 0.0
    never = 1.0 if limits.at_most is None else -1.0
    margins = [limits.margin(value) / (span or 1.0) if np.isfinite(value) else never for value in values.tolist()]
    return np.array(margins)


def describe_point(over: Sequence[Parameter], index: int) -> str:
    """The values of the parameters in the run with an index among those that the parameters are of."""
    texts = (
        parameter.categories[int(parameter.values[index])]
        if parameter.categories
        else f"{plain(parameter.values[index], 6)} {parameter.unit}".strip()
        for parameter in over
    )
    return ", ".join(f"{parameter.short} {text}" for parameter, text in zip(over, texts, strict=True))


@dataclass(frozen=True)
class ResponseValues:
    """The values of a response.

    Attributes:
        name: its column.
        unit: its unit as texts write it, the symbol of a unit of temperatures for instance. Times and lengths have the
            most readable one.
        values: the value in each finished run in this unit; NaN if a run has none.
        limits: its limits in this unit.
    """

    name: str
    unit: str
    values: NDArray[np.float64]
    limits: Limits

    @property
    def label(self) -> str:
        """The label of an axis: name and unit."""
        return f"{self.name} ({self.unit})"

    @property
    def marks(self) -> tuple[LimitLine, ...]:
        """The limits as lines across pictures."""
        return _marks(self.values, self.limits, self.unit)

    @property
    def beyond(self) -> NDArray[np.bool_]:
        """Whether each value is beyond a limit."""
        if not self.limits.given:
            return np.zeros(len(self.values), dtype=bool)
        return np.array([self.limits.margin(value) < 0.0 for value in self.values.tolist()])


def finished_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows of runs that are done."""
    return [row for row in rows if row[STATUS] == DONE]


def parameters_of(definition: Definition, rows: Sequence[Row]) -> list[Parameter]:
    """The parameters of a study, with their values in the given rows."""
    axes, units = definition.table.axes, column_units(definition)
    found = []
    for axis in axes:
        others = [key for other in axes if other is not axis for key in other.keys]
        labels = dict.fromkeys(key_label(key, others, definition.document) for key in axis.keys)
        names = ", ".join(axis.keys), axis.name or ", ".join(labels)
        found.append(_parameter(axis, names, units[axis.keys[0]], rows, definition.temperature_unit))
    return found


def _parameter(
    axis: StudyAxis, names: tuple[str, str], unit: str, rows: Sequence[Row], shown: TemperatureUnit
) -> Parameter:
    values = [row[axis.keys[0]] for row in rows]
    if any(isinstance(value, str) for value in values):
        categories = tuple(dict.fromkeys(str(value) for value in values))
        numbers = np.array([categories.index(str(value)) for value in values], dtype=np.float64)
        return Parameter(*names, "", numbers, categories)
    unit, numbers = _readable(unit, np.array(values, dtype=np.float64), shown)
    if isinstance(axis.values, Range):
        return Parameter(*names, unit, numbers, (), axis.values.scale == LOG)
    different = np.unique(numbers)
    wide = len(different) > 2 and different[0] > 0.0 and different[-1] >= _LOG_RATIO * different[0]
    return Parameter(*names, unit, numbers, (), bool(wide))


def responses_of(definition: Definition, rows: Sequence[Row]) -> list[ResponseValues]:
    """The responses in the given rows; without responses, the deviations from what was measured.

    Without measured values, these are the final values of the probes, and without probes those of the body.
    """
    units = column_units(definition)
    columns = [response.name for response in definition.table.responses]
    deviations = [rms_column(probe) for probe in definition.measured_probes[:_MOST_PROBES]]
    columns = columns or deviations or [probe_columns(probe)[1] for probe in definition.probes[:_MOST_PROBES]]
    columns = columns or list(FINAL_COLUMNS)
    limits = {response.name: response.limits for response in definition.table.responses}
    found = []
    for name in columns:
        its = limits.get(name, Limits()).in_unit(TEMPERATURE_UNITS.get(units[name]))
        values = np.array([*(row[name] for row in rows), *its.given.values()], dtype=np.float64)
        unit, values = _readable(units[name], values, KELVIN if name in deviations else definition.temperature_unit)
        its = Limits(**dict(zip(its.given, values[len(rows) :].tolist(), strict=True)))
        found.append(ResponseValues(name, unit, values[: len(rows)], its))
    return found


def _marks(values: NDArray[np.float64], limits: Limits, unit: str) -> tuple[LimitLine, ...]:
    """The limits as lines across pictures, for all curves of a picture; those far from the values are left out."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return ()
    return tuple(limit_lines({"": finite}, {"": limits}, lambda value: f"{plain(value, 5)} {unit}".rstrip()))


def curve_marks(definition: Definition, probe: str, curves: Sequence[NDArray[np.float64]]) -> tuple[LimitLine, ...]:
    """The limits of a probe as lines across its curves, which are those of ``curve_of``."""
    unit, limits = definition.probe_units[probe], definition.probe_limits.get(probe, Limits())
    if unit in TEMPERATURE_UNITS:
        shown = definition.temperature_unit
        return _marks(np.concatenate(curves), limits.in_unit(shown), shown.symbol)
    return _marks(np.concatenate(curves), limits, unit)


def _readable(unit: str, values: NDArray[np.float64], shown: TemperatureUnit) -> tuple[str, NDArray[np.float64]]:
    """Temperatures in the unit in which they are shown, times and lengths in their most readable one, with its symbol.

    Other values stay as they are.
    """
    written = TEMPERATURE_UNITS.get(unit)
    if written is not None:
        return shown.symbol, values if shown == written else shown.of(written.kelvins(values))
    sizes = np.abs(values[np.isfinite(values)])
    if unit not in _SCALES or not sizes.size:
        return unit.replace("^2", "²").replace("^3", "³"), values
    better = choose_unit(_SCALES[unit], float(sizes.max()))
    return better.symbol, values / better.size


def curve_of(definition: Definition, probe: str, columns: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """The curve of a probe, of those from ``read_curves``, in the unit of the label."""
    temperature = definition.probe_units[probe] in TEMPERATURE_UNITS
    return definition.temperature_unit.of(columns[probe]) if temperature else columns[probe]


def label_of(definition: Definition, probe: str) -> str:
    """The label of an axis of a probe's curves."""
    unit = definition.probe_units[probe]
    return f"Temperature ({definition.temperature_unit.symbol})" if unit in TEMPERATURE_UNITS else f"{probe} ({unit})"


def rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Spearman's coefficient, −1 to 1, over the pairs without NaN; None for few pairs or if all values are equal."""
    good = np.isfinite(first) & np.isfinite(second)
    if good.sum() < _FEWEST_FOR_RANKS:
        return None
    a, b = _ranks(first[good]), _ranks(second[good])
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0.0 else None


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 0; equal values have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: NDArray[np.float64] = np.cumsum(counts) - 0.5 * (counts + 1.0)
    return means[inverse]


def key_label(key: str, others: Sequence[str], document: Mapping[str, Any]) -> str:
    """The shortest end of a key that is not the end of another key, such as "conductivity".

    Names replace the numbers of entries, and letters of axes the numbers of coordinates: `regions.1.box.max.1` becomes
    "fin.box.max.y" if the second region is the fin. A label does not begin with a number.

    Args:
        key: a path of keys.
        others: the other keys that vary.
        document: the tables of the scenario.
    """
    path = numbered(parts_of(key), document)
    texts, entry = _texts(key, document)
    shown = [f".{'.'.join(_texts(other, document)[0])}" for other in others]
    for start in reversed(range(len(texts))):
        begins_with_number = path[start].isdigit() and start != entry
        end = ".".join(texts[start:])
        if not begins_with_number and not any(other.endswith(f".{end}") for other in shown):
            return end if entry is None else ".".join(texts[min(start, entry) :])
    return key


def _texts(key: str, document: Mapping[str, Any]) -> tuple[list[str], int | None]:
    """The parts of a key as a reader knows them, and which of them is the name of an entry, if any."""
    path = numbered(parts_of(key), document)
    within, texts, entry = containers(path, document), list[str](), None
    for place, part in enumerate(path):
        table, axes = within[place + 1], axes_of(path[:place], within[: place + 1])
        if isinstance(within[place], list) and isinstance(table, Mapping) and "name" in table:
            part, entry = str(table["name"]), place
        elif axes and table is not None:
            part = axes[int(part)]
        texts.append(part)
    return texts, entry
