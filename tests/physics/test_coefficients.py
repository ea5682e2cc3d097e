"""The seven coefficients: what they are, that they sum to one, and when they are given up for increments."""

from fractions import Fraction

import numpy as np
import pytest
from exact import scenario
from hypothesis import given
from hypothesis import strategies as st
from problem_text import problem

from heatsim.grid import Grid
from heatsim.physics.matter.coefficients import Precision, choose_scheme, derive

PRECISIONS: tuple[Precision, ...] = ("float32", "float64")
CUBE = Grid((8, 8, 8), (1.0, 1.0, 1.0))
# Where the seven-term sum is used, its coefficients are this close to what they stand for.
ROUNDING_OF_COEFFICIENTS = {"float32": 1e-5, "float64": 1e-12}


def test_coefficients_are_diffusivity_times_time_over_spacing_squared() -> None:
    text = scenario(
        (0.1, 0.2, 0.3), (10, 10, 10), initial=300.0, end=1.0, k=(2.0, 3.0, 4.0), rho=1000.0, cp=500.0, dt=1.0
    )
    (coefficients,) = problem(text).coefficients.values()
    # α = 4e-6, 6e-6, 8e-6 m²/s; spacings 1, 2 and 3 cm
    cx, cy, cz = 4e-6 / 1e-4, 6e-6 / 4e-4, 8e-6 / 9e-4
    assert coefficients.c == pytest.approx((1.0 - 2.0 * (cx + cy + cz), cx, cx, cy, cy, cz, cz), rel=1e-12)
    assert coefficients.exchange == pytest.approx((cx, cy, cz), rel=1e-12)


def test_rates_of_an_anisotropic_material() -> None:
    text = scenario((0.1, 0.2, 0.3), (10, 10, 10), initial=300.0, end=1.0, k=(2.0, 3.0, 4.0), rho=1000.0, cp=500.0)
    assert problem(text).rates == pytest.approx((0.04, 0.015, 8.0 / 900.0), rel=1e-14)


@pytest.mark.parametrize("precision", PRECISIONS)
@given(rates=st.tuples(*[st.floats(1e-3, 1.0)] * 3), fraction=st.floats(0.01, 1.0))
def test_coefficients_sum_to_exactly_one(
    precision: Precision, rates: tuple[float, float, float], fraction: float
) -> None:
    dt = fraction / (2.0 * sum(rates))
    c = derive(CUBE, rates, dt, precision, "seven_term").c
    assert sum(Fraction(value) for value in c) == 1
    for value in c:
        assert float(np.dtype(precision).type(value)) == value
    if choose_scheme(CUBE, rates, dt, precision) == "seven_term":
        expected = [rate * dt for rate in rates for _ in range(2)]
        assert c[1:] == pytest.approx(expected, rel=ROUNDING_OF_COEFFICIENTS[precision])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_increments_take_coefficients_as_they_are(precision: Precision) -> None:
    number = np.dtype(precision).type
    rates = (0.3, 1e-7, 0.01)
    c = derive(CUBE, rates, 1.0, precision, "increments").c
    assert c[1:] == tuple(float(number(rate)) for rate in rates for _ in range(2))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_axis_of_one_cell_has_no_neighbours_but_exchanges(precision: Precision) -> None:
    grid = Grid((8, 1, 8), (1.0, 1.0, 1.0))
    coefficients = derive(grid, (0.1, 50.0, 0.2), 1.0, precision, "seven_term")
    assert coefficients.c[3:5] == (0.0, 0.0)
    assert coefficients.exchange[1] == 50.0
    assert sum(Fraction(value) for value in coefficients.c) == 1


@pytest.mark.parametrize(
    ("cells", "rates", "dt", "precision", "scheme"),
    [
        # cubic cells near the limit
        ((8, 8, 8), (1.0, 1.0, 1.0), 0.15, "float32", "seven_term"),
        ((8, 8, 8), (1.0, 1.0, 1.0), 0.15, "float64", "seven_term"),
        # c·1e-5 against half of 2⁻²⁵: 1.49e-3 is the smallest coefficient that rounding leaves within 1e-5
        ((8, 8, 8), (1.0, 1.0, 1.0), 1.5e-3, "float32", "seven_term"),
        ((8, 8, 8), (1.0, 1.0, 1.0), 1.4e-3, "float32", "increments"),
        # flat cells, 20:1 and 100:1
        ((8, 8, 1), (1.0 / 400.0, 1.0, 0.0), 0.45, "float32", "increments"),
        ((8, 8, 1), (1e-4, 1.0, 0.0), 0.45, "float32", "increments"),
        ((8, 8, 1), (1e-4, 1.0, 0.0), 0.45, "float64", "seven_term"),
        ((8, 8, 1), (1e-5, 1.0, 0.0), 0.45, "float64", "increments"),
        # an axis of one cell has no coefficient that could be too small
        ((8, 1, 1), (1.0, 1e-9, 1e-9), 0.45, "float32", "seven_term"),
        ((1, 1, 1), (1e-9, 1e-9, 1e-9), 0.45, "float32", "seven_term"),
    ],
)
def test_increments_where_rounding_would_change_the_diffusivity(
    cells: tuple[int, int, int], rates: tuple[float, float, float], dt: float, precision: Precision, scheme: str
) -> None:
    assert choose_scheme(Grid(cells, (1.0, 1.0, 1.0)), rates, dt, precision) == scheme


def test_every_step_length_has_its_coefficients() -> None:
    text = scenario((1.0, 1.0, 1.0), (10, 1, 1), initial=300.0, end=1.0, every=0.3)
    derived = problem(text)
    assert set(derived.coefficients) == set(derived.timeline.step_lengths)
    assert len(derived.coefficients) == 2
    for dt, coefficients in derived.coefficients.items():
        assert coefficients.dt == dt
        assert coefficients.c[1] == pytest.approx(100.0 * dt, rel=1e-12)
