"""What the figures and the terminal show of a study: columns of numbers, and which of them go together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.study.definition import Definition
from heatsim.study.results import DONE, FINAL_COLUMNS, STATUS, Row, probe_columns, probe_names
from heatsim.study.table import TIME_ABOVE, TIME_BELOW, Axis, Range

_MOST_PROBES = 4
_FEWEST_FOR_RANKS = 8
_LOG_RATIO = 10.0


@dataclass(frozen=True)
class Parameter:
    """An axis of the study as something to draw over.

    Attributes:
        name: its keys.
        short: its keys, as short as can be told apart.
        values: of each finished run; numbers of the categories where it is no number.
        categories: texts of the values where they are no numbers, else none.
        logarithmic: whether a logarithmic scale shows it best.
    """

    name: str
    short: str
    values: NDArray[np.float64]
    categories: tuple[str, ...] = ()
    logarithmic: bool = False


@dataclass(frozen=True)
class ResponseValues:
    """A response as something to draw.

    Attributes:
        name: its column.
        unit: "K" or "s".
        values: of each finished run; NaN where a run has none.
    """

    name: str
    unit: str
    values: NDArray[np.float64]

    @property
    def label(self) -> str:
        """What an axis of it is called."""
        return f"{self.name} ({self.unit})"


def finished_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows of runs that are done."""
    return [row for row in rows if row[STATUS] == DONE]


def parameters_of(definition: Definition, rows: Sequence[Row]) -> list[Parameter]:
    """What varies, over the given rows."""
    axes = definition.table.axes
    return [_parameter(axis, [key for other in axes if other is not axis for key in other.keys], rows) for axis in axes]


def _shortest(key: str, others: Sequence[str]) -> str:
    """The last parts of a key, as many as no other one ends with."""
    parts = key.split(".")
    endings = (".".join(parts[-count:]) for count in range(1, len(parts) + 1))
    return next((end for end in endings if not any(f".{other}".endswith(f".{end}") for other in others)), key)


def _parameter(axis: Axis, others: Sequence[str], rows: Sequence[Row]) -> Parameter:
    values = [row[axis.keys[0]] for row in rows]
    names = ", ".join(axis.keys), ", ".join(dict.fromkeys(_shortest(key, others) for key in axis.keys))
    if any(isinstance(value, str) for value in values):
        categories = tuple(dict.fromkeys(str(value) for value in values))
        numbers = np.array([categories.index(str(value)) for value in values], dtype=np.float64)
        return Parameter(*names, numbers, categories)
    numbers = np.array(values, dtype=np.float64)
    if isinstance(axis.values, Range):
        return Parameter(*names, numbers, (), axis.values.scale == "log")
    different = np.unique(numbers)
    wide = len(different) > 2 and different[0] > 0.0 and different[-1] >= _LOG_RATIO * different[0]
    return Parameter(*names, numbers, (), bool(wide))


def responses_of(definition: Definition, rows: Sequence[Row]) -> list[ResponseValues]:
    """What was asked of the given rows; final values of the probes, or of the body, where nothing was."""
    columns = {
        response.name: "s" if response.statistic in (TIME_ABOVE, TIME_BELOW) else "K"
        for response in definition.table.responses
    }
    if not columns:
        columns = {probe_columns(probe)[1]: "K" for probe in probe_names(definition)[:_MOST_PROBES]}
    if not columns:
        columns = dict.fromkeys(FINAL_COLUMNS, "K")
    return [
        ResponseValues(name, unit, np.array([row[name] for row in rows], dtype=np.float64))
        for name, unit in columns.items()
    ]


def rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Spearman's coefficient, −1 … 1, over the pairs without NaN; None where there are too few, or all are equal."""
    good = np.isfinite(first) & np.isfinite(second)
    if good.sum() < _FEWEST_FOR_RANKS:
        return None
    a, b = _ranks(first[good]), _ranks(second[good])
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0.0 else None


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 0, equal values sharing their mean."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    means: NDArray[np.float64] = np.cumsum(counts) - 0.5 * (counts + 1.0)
    return means[inverse]
