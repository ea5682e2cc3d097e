"""The points of a study: the values of its parameters in each run."""

import json
from collections.abc import Mapping
from itertools import product
from math import exp, log, prod

import numpy as np

from heatsim.scenario.messages import show
from heatsim.study.model import GRID, LATIN_HYPERCUBE, LOG, MAX_RUNS, Range, StudyTable

# The value of every key that varies, as the file has it; a value drawn from a range is a number in SI units.
Point = Mapping[str, object]


def identity(point: Point) -> str:
    """A text that is equal for equal points; 1 and 1.0 are the same value."""
    values = {key: _as_float(value) if isinstance(value, int | float) else value for key, value in point.items()}
    return json.dumps(values, sort_keys=True, default=str)


def _as_float(number: int | float) -> int | float:
    try:
        return float(number)
    except OverflowError:  # no key accepts such an integer; the scenario's validation reports it
        return number


def describe(point: Point) -> str:
    """A point as text, for a message."""
    return ", ".join(f"{key} = {show(value)}" for key, value in point.items())


def count(table: StudyTable) -> int:
    """The number of points, without making them."""
    if table.method == LATIN_HYPERCUBE:
        return table.samples or 0
    lengths = [len(axis.values) for axis in table.axes if not isinstance(axis.values, Range)]
    return prod(lengths) if table.method == GRID else lengths[0]


def points(table: StudyTable) -> list[Point]:
    """All points in order.

    A grid has every combination; the last parameter varies fastest. A zip takes the first value of every list, then the
    second, and so on.
    """
    assert count(table) <= MAX_RUNS
    if table.method == LATIN_HYPERCUBE:
        rows = _latin_hypercube(table)
    else:
        lists = [axis.values for axis in table.axes if not isinstance(axis.values, Range)]
        rows = [*product(*lists)] if table.method == GRID else [*zip(*lists, strict=True)]
    return [{key: value for axis, value in zip(table.axes, row, strict=True) for key in axis.keys} for row in rows]


def _latin_hypercube(table: StudyTable) -> list[tuple[object, ...]]:
    """Rows of values: every range has as many equal parts as there are samples, and every part gives one value.

    McKay, Beckman and Conover, *Technometrics* 21(2), 1979. Each parameter has a separate stream of random numbers.
    """
    samples = count(table)
    columns = []
    for number, axis in enumerate(table.axes):
        generator = np.random.Generator(np.random.PCG64([table.seed, number]))
        parts = (generator.permutation(samples) + generator.random(samples)) / samples
        assert isinstance(axis.values, Range)
        low, high = axis.values.ends
        columns.append([_within(low, high, axis.values.scale, float(part)) for part in parts])
    return [*zip(*columns, strict=True)]


def _within(low: float, high: float, scale: str, fraction: float) -> float:
    """The value at a fraction of a range."""
    start, end = (log(low), log(high)) if scale == LOG else (low, high)
    value = start + fraction * (end - start)
    return min(max(exp(value) if scale == LOG else value, low), high)
