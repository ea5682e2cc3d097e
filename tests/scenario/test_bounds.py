"""Between which values an expression lies in a box of its variables."""

from math import inf
from random import Random

import numpy as np
import pytest
from random_expressions import random_expression

from heatsim.scenario.values.bounds import bounds
from heatsim.scenario.values.expressions import Expression

NAMES = ("x", "y", "t", "T")
POINTS = {1: 20_001, 2: 161, 3: 31}  # along each variable


def box_of(seed: int) -> dict[str, tuple[float, float]]:
    random, found = Random(-seed), {}
    for name in NAMES:
        low = random.choice([0.0, 0.0, -1.0, random.uniform(-5.0, 5.0)])
        found[name] = (low, low + random.choice([1.0, 10.0, 0.1, random.uniform(0.0, 5.0)]))
    return found


def sampled(expression: Expression, box: dict[str, tuple[float, float]]) -> tuple[float, float, bool]:
    """The lowest and highest value at a grid of points and around the extremes, and whether all are finite."""
    names, random = sorted(expression.used), np.random.default_rng(0)
    points = POINTS[len(names)]
    axes = np.meshgrid(*(np.linspace(*box[name], points) for name in names))
    at = np.array([axis.ravel() for axis in axes])
    low, high = (np.array([box[name][end] for name in names])[:, None] for end in (0, 1))
    reach, least, most, complete = (high - low) / points, inf, -inf, True
    for _ in range(5):
        coordinates = dict.fromkeys(NAMES, np.zeros(at.shape[1])) | dict(zip(names, at, strict=True))
        values = expression.evaluate(**coordinates)
        finite = np.isfinite(values)
        complete &= bool(finite.all())
        if not finite.any():
            break
        at, values = at[:, finite], values[finite]
        best = at[:, [np.argmin(values)]], at[:, [np.argmax(values)]]
        least, most = min(least, values.min()), max(most, values.max())
        near = [point + reach * random.uniform(-1.0, 1.0, (len(names), 2000)) for point in best]
        at, reach = np.clip(np.concatenate((*near, *best), axis=1), low, high), reach / 10.0
    return least, most, complete


@pytest.mark.parametrize(
    ("first", "count"), [(0, 80), *(pytest.param(seed, 250, marks=pytest.mark.slow) for seed in range(0, 2000, 250))]
)
def test_bounds_hold_and_are_sharp(first: int, count: int) -> None:
    """Against values at a grid of points. They are within 1 % of the range, or 0.01 % of the values, for 95 %."""
    sharp = []
    for seed in range(first, first + count):
        expression, box = random_expression(seed, NAMES), box_of(seed)
        found = bounds(expression, **box)
        low, high, complete = sampled(expression, box)
        what = (seed, expression.text, {name: box[name] for name in expression.used}, found)
        assert complete or not found.defined, what
        assert found.low <= low, (*what, low)
        assert high <= found.high, (*what, high)
        if found.defined:
            size = max(high - low, 1e-2 * max(-low, high))
            sharp.append(found.high - found.low <= high - low + 0.01 * size)
    assert np.mean(sharp) >= 0.95
