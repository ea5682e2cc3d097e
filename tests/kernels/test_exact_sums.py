"""Sums of many rows of numbers, found together, have the bits of math.fsum."""

from collections.abc import Callable
from math import fsum, inf, nan

import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim.kernels.reductions.statistics import STATISTICS, FieldReduction, exact_sums

Array = NDArray[np.float64]

KINDS: dict[str, Callable[[np.random.Generator, Array], Array]] = {
    "both signs": lambda rng, values: values,
    "one sign": lambda rng, values: np.abs(values),
    "sizes far apart": lambda rng, values: values * 2.0 ** rng.integers(-60, 60, values.shape),
    "nearly cancelling": lambda rng, values: np.concatenate([values, -values * (1.0 + 1e-15)], axis=-1),
    "exact": lambda rng, values: np.round(values * 8.0) / 8.0,
    "halfway between two numbers": lambda rng, values: np.stack(
        [np.abs(np.round(values * 2.0**50)) + 2.0**52, np.full(values.shape, 0.5)], axis=-1
    ),
    "subnormal": lambda rng, values: np.round(values * 100.0) * 5e-324,
    "zeros": lambda rng, values: values * -0.0,
}


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_rows_are_those_of_fsum(kind: str) -> None:
    rng = np.random.default_rng(1)
    values = KINDS[kind](rng, rng.normal(size=(40, 3, 21)))
    expected = [fsum(row) for row in values.reshape(-1, values.shape[-1]).tolist()]
    assert exact_sums(values).reshape(-1).tobytes() == np.array(expected).tobytes()


def test_sums_are_those_of_fsum_without_extended_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on machines whose widest numbers have 64 bits."""
    values = np.random.default_rng(2).normal(size=(50, 9))
    monkeypatch.setattr(np, "longdouble", np.float64)
    assert exact_sums(values).tolist() == [fsum(row) for row in values.tolist()]


def test_sums_of_what_is_not_finite_are_not_finite() -> None:
    found = exact_sums(np.array([[1.0, nan], [inf, 1.0], [inf, -inf], [1e308, 1e308], [1.0, 2.0]]))
    assert np.isfinite(found).tolist() == [False, False, False, False, True]


def test_a_reduction_calls_a_field_finite_only_if_its_sum_certainly_is() -> None:
    found = np.zeros((4, 3, 2), STATISTICS)
    found["total"], found["magnitude"] = -1.0, 1.0
    found["magnitude"][1, 2, 1], found["magnitude"][2, 0, 0], found["magnitude"][3, 1, 0] = nan, inf, 1e307
    reductions = FieldReduction.of_each(found)
    assert [reduction.finite for reduction in reductions] == [True, False, False, False]
    assert reductions[0].sums.tolist() == [[[-1.0, 1.0]] * 2] * 3
