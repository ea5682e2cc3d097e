"""The points of a study: which values its keys have in each run."""

import json
from collections.abc import Mapping
from itertools import product
from math import exp, log, prod

import numpy as np

from heatsim.scenario.messages import show
from heatsim.study.table import GRID, LATIN_HYPERCUBE, MAXIMUM_RUNS, Range, StudyTable

# The value of every key that varies, as the file has it; those drawn from a range are numbers in SI units.
Point = Mapping[str, object]


def identity(point: Point) -> str:
    """What makes a point: its values, whether written 1 or 1.0."""
    values = {key: _as_float(value) if isinstance(value, int | float) else value for key, value in point.items()}
    return json.dumps(values, sort_keys=True, default=str)


def _as_float(number: int | float) -> int | float:
    try:
        return float(number)
    except OverflowError:  # an integer that no key takes; the scenario's reader says so
        return number


def describe(point: Point) -> str:
    """A point as text: keys and values."""
    return ", ".join(f"{key} = {show(value)}" for key, value in point.items())


def count(table: StudyTable) -> int:
    """Number of points, without making them."""
    if table.method == LATIN_HYPERCUBE:
        return table.samples
    lengths = [len(axis.values) for axis in table.axes if not isinstance(axis.values, Range)]
    return prod(lengths) if table.method == GRID else lengths[0]


def points(table: StudyTable) -> list[Point]:
    """All points in order.

    A grid has every combination, the last axis varying fastest; zip takes the values of all lists side by side.
    """
    assert count(table) <= MAXIMUM_RUNS
    if table.method == LATIN_HYPERCUBE:
        rows = _latin_hypercube(table)
    else:
        lists = [axis.values for axis in table.axes if not isinstance(axis.values, Range)]
        rows = [*product(*lists)] if table.method == GRID else [*zip(*lists, strict=True)]
    return [{key: value for axis, value in zip(table.axes, row, strict=True) for key in axis.keys} for row in rows]


def _latin_hypercube(table: StudyTable) -> list[tuple[object, ...]]:
    """Each range is cut into as many equal parts as there are samples, and each part is drawn from once.

    McKay, Beckman and Conover, *Technometrics* 21(2), 1979. Each axis has its own stream of random numbers.
    """
    columns = []
    for number, axis in enumerate(table.axes):
        generator = np.random.Generator(np.random.PCG64([table.seed, number]))
        parts = (generator.permutation(table.samples) + generator.random(table.samples)) / table.samples
        assert isinstance(axis.values, Range)
        columns.append([_within(axis.values, float(part)) for part in parts])
    return [*zip(*columns, strict=True)]


def _within(values: Range, fraction: float) -> float:
    """The value at a fraction of a range."""
    low, high = (log(values.low), log(values.high)) if values.scale == "log" else (values.low, values.high)
    value = low + fraction * (high - low)
    return min(max(exp(value) if values.scale == "log" else value, values.low), values.high)
