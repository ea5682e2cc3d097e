"""Coefficients of stages: exact sums, little rounding, and the scheme for those that it would change."""

from fractions import Fraction

import numpy as np
import pytest

from heatsim.grid import Grid
from heatsim.physics.matter.coefficients import Precision, choose_stage_scheme, derive, stage_coefficients

DIGITS = {"float32": 24, "float64": 53}
PRECISIONS = pytest.mark.parametrize("precision", ["float32", "float64"])
RATES = (0.7, 1.1, 0.4)


def grid(*cells: int) -> Grid:
    return Grid((cells[0], cells[1], cells[2]), (1.0, 1.0, 1.0))


@PRECISIONS
@pytest.mark.parametrize("cells", [(9, 8, 7), (9, 1, 7), (1, 8, 1)])
def test_the_sum_is_exactly_one(precision: Precision, cells: tuple[int, int, int]) -> None:
    """Also around the lengths at which the quantum doubles; and every coefficient is a number of the precision."""
    inner = sum(rate for rate, n in zip(RATES, cells, strict=True) if n > 1)
    rng = np.random.default_rng(1)
    doubling = (1.0 + 2.0 ** np.arange(0.0, 13.0)) / (2.0 * inner)
    beside = doubling[:, None] * (1.0 + np.arange(-6, 7) * 2.0 ** -DIGITS[precision])
    sizes = np.concatenate((10.0 ** rng.uniform(-6.0, 4.0, 200), beside.reshape(-1)))
    found = stage_coefficients(grid(*cells), RATES, sizes, precision, "seven_term")
    np.testing.assert_array_equal(found.c, found.c.astype(precision))
    for c0, x, y, z in found.c.tolist():
        assert Fraction(c0) == 1 - 2 * (Fraction(x) + Fraction(y) + Fraction(z))


@PRECISIONS
def test_coefficients_are_rounded_by_at_most_half_an_ulp_of_the_largest(precision: Precision) -> None:
    sizes = 10.0 ** np.random.default_rng(2).uniform(-3.0, 4.0, 300)
    found = stage_coefficients(grid(5, 6, 7), RATES, sizes, precision, "seven_term")
    exact = sizes[:, None] * np.array(RATES)
    largest = np.maximum(np.abs(1.0 - 2.0 * exact.sum(axis=1)), 1.0)
    assert (np.abs(found.c[:, 1:] - exact).max(axis=1) <= largest * 2.0 ** -DIGITS[precision]).all()
    np.testing.assert_array_equal(found.exchange, found.c[:, 1:])


@PRECISIONS
def test_a_step_below_the_limit_has_the_coefficients_of_eulers_method(precision: Precision) -> None:
    for dt in (1e-3, 0.1, 0.2, 0.22):
        for scheme in ("seven_term", "increments"):
            euler = derive(grid(4, 1, 5), RATES, dt, precision, scheme)
            stage = stage_coefficients(grid(4, 1, 5), RATES, np.array([dt]), precision, scheme)
            assert tuple(stage.c[0]) == euler.c[:2] + euler.c[3:6:2]
            assert tuple(stage.exchange[0]) == euler.exchange


@PRECISIONS
def test_the_scheme_follows_from_how_much_rounding_changes_the_diffusivity(precision: Precision) -> None:
    """The diffusivity of an axis over all stages may change by 1e-5 in float32, by 1e-12 in float64."""
    allowed = {"float32": 1e-5, "float64": 1e-12}[precision]
    sizes = np.array([400.0, 30.0, 2.0, 0.2])

    def changed(rates: tuple[float, float, float], lengths: np.ndarray) -> float:  # type: ignore[type-arg]
        found = stage_coefficients(grid(5, 5, 5), rates, lengths, precision, "seven_term")
        exact = lengths[:, None] * np.array(rates)
        return float((np.abs(found.c[:, 1:] - exact).sum(axis=0) / exact.sum(axis=0)).max())

    assert choose_stage_scheme(grid(5, 5, 5), RATES, sizes, precision) == "seven_term"
    assert changed(RATES, sizes) <= allowed
    flat = (0.7, 1.1, 1e-5)
    assert choose_stage_scheme(grid(5, 5, 5), flat, sizes, precision) == "increments"
    assert choose_stage_scheme(grid(5, 5, 1), flat, sizes, precision) == "seven_term"
    short = sizes * 1e-7
    assert choose_stage_scheme(grid(5, 5, 5), RATES, short, precision) == "increments"
    assert changed(RATES, short) > allowed / 20.0
