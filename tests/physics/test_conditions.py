"""Conditions that kernels evaluate: the surface between a cell and what lies outside."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from exact import INSULATED, convection, flux, held, scenario
from numba import njit
from numpy.typing import NDArray
from problem_text import box, problem

from heatsim.kernels.cpu import surface_rises
from heatsim.kernels.cpu.lines import OPTIONS
from heatsim.kernels.cpu.plan import address_of, reals_at
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.surface_balance import STEFAN_BOLTZMANN, TOLERANCES, surface_rise

K, D = 20.0, 0.05
REFERENCE = 300.0


def balance_by_bisection(
    K: NDArray[np.float64],
    h: NDArray[np.float64],
    T: NDArray[np.float64],
    ambient: NDArray[np.float64],
    q: NDArray[np.float64],
    es: NDArray[np.float64],
    sur: NDArray[np.float64],
) -> NDArray[np.longdouble]:
    """Surface temperature in K: the balance falls from plus to minus as the surface warms."""
    K, h, T, ambient, q, es, sur = (values.astype(np.longdouble) for values in (K, h, T, ambient, q, es, sur))
    low = np.zeros_like(T)
    high = np.maximum(np.maximum(T, ambient), np.maximum(sur, (np.maximum(q, 0) / es + sur**4) ** 0.25)) + 1
    for _ in range(140):
        middle = (low + high) / 2
        excess = K * (T - middle) + h * (ambient - middle) + q + es * (sur**4 - middle**4)
        low, high = np.where(excess > 0, middle, low), np.where(excess > 0, high, middle)
    return (low + high) / 2


@pytest.mark.quick("float32")
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_newtons_steps_reach_rounding_from_anywhere(precision: str) -> None:
    """Jumps from 1 to 4,000 K, good and bad conductors, with and without film and flux."""
    rng = np.random.default_rng(0)
    n = 2_000

    def spread(low: float, high: float) -> NDArray[np.float64]:
        return np.exp(rng.uniform(np.log(low), np.log(high), n))

    number = np.dtype(precision).type
    T, ambient, sur = (spread(1.0, 4000.0) for _ in range(3))
    K, es = spread(1e-1, 1e7), STEFAN_BOLTZMANN * spread(0.01, 1.0)
    h = np.where(rng.random(n) < 0.5, 0.0, spread(0.1, 1e5))
    q = np.where(rng.random(n) < 0.7, 0.0, spread(1.0, 1e9))
    values = [number(v) for v in (K, h, T - REFERENCE, ambient - REFERENCE, q, es, sur - REFERENCE)]
    K, h, T, ambient, q, es, sur = values
    ambient = np.where(h > 0, ambient, sur)
    row = np.array([h, ambient, q, es, sur, np.ones(n)], dtype=precision)
    rise = surface_rise(row, K, number(REFERENCE), T)
    assert rise.dtype == precision

    inputs = [np.float64(v) for v in (K, h, T, ambient, q, es, sur)]
    for index in (2, 3, 6):
        inputs[index] = inputs[index] + REFERENCE
    exact = balance_by_bisection(*inputs) - inputs[2]
    # What the rounding of the fluxes that balance each other leaves in the rise, beside its own.
    hottest = np.maximum(inputs[2], inputs[2] + np.float64(exact)) + inputs[6]
    radiated = 4.0 * inputs[5] * hottest**3
    conducted = inputs[0] + inputs[1] + radiated
    fluxes = inputs[1] * np.abs(inputs[3] - inputs[2]) + inputs[4] + radiated * np.abs(inputs[6] - inputs[2])
    size = np.abs(np.float64(exact)) + fluxes / conducted + radiated * (hottest + REFERENCE) / conducted
    bound = 16.0 * np.finfo(precision).eps * size + 2.0 * np.finfo(np.longdouble).eps * hottest
    assert (np.abs(rise - exact) <= bound).all()


@njit(**OPTIONS)
def find_rises(row: int, scale: int, surface: int, T: int, K: int, count: int, like: NDArray[Any]) -> None:
    """The function of the CPU kernels, which takes addresses of arrays with numbers like those of an array."""
    surface_rises.find_rises(
        reals_at(row, like), reals_at(scale, like), reals_at(surface, like), reals_at(T, like), reals_at(K, like), count
    )


def rises_on_cpu(row: NDArray[Any], K: NDArray[Any], T: NDArray[Any], beam: NDArray[Any]) -> NDArray[Any]:
    """T_s − T in K as the CPU kernels find it, for one condition."""
    scale, surface = (
        np.array(of, T.dtype) for of in ([REFERENCE, TOLERANCES[T.dtype.name]], np.zeros(surface_rises.ROOM))
    )
    surface[surface_rises.BEAM_AT :][: len(T)] = beam
    find_rises(*(address_of(array) for array in (row, scale, surface, T, K)), len(T), T)
    return surface[surface_rises.RISE_AT :][: len(T)]


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_nothing_radiates_below_absolute_zero(precision: str) -> None:
    """A cell that was cooled beyond it is heated by its surroundings, however good a conductor it is."""
    number = np.dtype(precision).type
    row = np.array([0.0, 0.0, 0.0, STEFAN_BOLTZMANN, 0.0, 1.0], dtype=precision)
    cells = np.array([-10.0, -300.0, -700.0, -4000.0], dtype=precision) - number(REFERENCE)
    rise = surface_rise(row, number(1e6), number(REFERENCE), cells)
    assert (rise > 0.0).all()
    found = rises_on_cpu(row, np.full(len(cells), 1e6, precision), cells, np.zeros_like(cells))
    np.testing.assert_array_equal(found, rise)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_beams_on_random_conditions_bring_the_kernels_what_the_formula_says(precision: str) -> None:
    """On held surfaces, fluxes, films and surfaces that radiate; a third of the cells lie in the dark."""
    random, kinds = np.random.default_rng(2), set()
    for _ in range(60):
        held, film, radiates = random.random(3) < (0.3, 0.6, 0.4)
        h = float(held) or film * 10.0 ** random.uniform(-1.0, 5.0)
        emission = STEFAN_BOLTZMANN * random.uniform(0.1, 1.0) * (radiates and not held)
        numbers = h, random.uniform(-100.0, 500.0), random.uniform(-1e4, 1e5), emission, random.uniform(-100.0, 900.0)
        row = np.array([*numbers, float(not held)], precision)
        K, T = 10.0 ** random.uniform(0.0, 6.0, 50), random.uniform(-100.0, 900.0, 50)
        beam = 10.0 ** random.uniform(2.0, 8.0, 50) * (random.random(50) < 2.0 / 3.0)
        K, T, beam = (of.astype(precision) for of in (K, T, beam))
        rise = surface_rise(row, K, row.dtype.type(REFERENCE), T, beam)
        np.testing.assert_array_equal(rises_on_cpu(row, K, T, beam), rise)
        kinds.add((bool(held), bool(film), bool(emission)))
    assert len(kinds) == 6


def text_of(condition: str, precision: str = "float32") -> str:
    return scenario(
        (1.0, 1.0, 1.0),
        (20, 1, 1),
        **{"initial": 300.0, "end": 8.0, "k": K, "rho": 1000.0, "cp": 100.0, "precision": precision, "dt": 1.0},
        boundaries=f"x_min = {condition}",
    )


def bar(condition: str) -> Boundary:
    return problem(text_of(condition)).boundary


@pytest.mark.parametrize(
    "condition",
    [held(400.0), INSULATED, flux(4000.0), convection(300.0, 350.0), convection(0.0, 350.0)],
    ids=["held", "insulated", "flux", "convection", "no convection"],
)
def test_without_radiation_the_balance_is_linear(condition: str) -> None:
    """A step gives the cell f − g·T = dt/(ρ·cp·d)·K·(T_s − T)."""
    derived = problem(text_of(condition, precision="float64"))
    (dt,) = derived.coefficients
    f, g = derived.linear_terms(np.zeros(1), dt, REFERENCE)
    T = np.array([290.0, 300.0, 333.3]) - REFERENCE
    row = derived.boundary.rows(np.zeros(1), REFERENCE)[0, 0]
    rise = surface_rise(row, np.float64(2.0 * K / D), REFERENCE, T)
    gained = dt / (1000.0 * 100.0 * D) * (2.0 * K / D) * rise
    np.testing.assert_allclose(f[0, 0] - g[0, 0] * T, gained, rtol=1e-11)


def test_a_held_surface_takes_a_beam_away() -> None:
    row = bar(held(400.0)).rows(np.zeros(1), REFERENCE)[0, 0]
    rise = surface_rise(row, np.float64(2.0 * K / D), REFERENCE, np.array([0.0]), 1e6)
    assert rise[0] == pytest.approx(100.0, rel=1e-15)


def test_patches_have_their_cells_and_conditions_in_time() -> None:
    text = scenario((1.0, 1.0, 1.0), (4, 4, 4), initial=300.0, end=8.0, boundaries=f"z_max = {convection(10.0, 290.0)}")
    text += """
[[patches]]
face = "z_max"
rectangle = { min = [0.25, 0.0], max = [0.5, 0.5] }
type = "temperature"
value = "300 + t"
"""
    conditions = problem(text).boundary
    expected = np.full((4, 4), 5)
    expected[:2, 1] = 6
    np.testing.assert_array_equal(conditions.maps[5], expected)
    assert all(not conditions.maps[face].size for face in range(5))
    assert conditions.on_face(5) == [5, 6]
    assert not conditions.constant
    rows = conditions.rows(np.array([0.0, 2.0]), 290.0)
    assert rows[:, 6, 1].tolist() == [10.0, 12.0]
    films = conditions.largest_films(8.0)
    assert films[5] == 10.0
    assert films[6] == np.inf
    assert films[0] == 0.0


def test_constant_conditions_keep_their_numbers_beside_one_that_varies() -> None:
    """For every reference and number of times, and whatever is done to rows that were returned before."""
    boundary = bar(convection(10.0, 290.0) + '\nx_max = { type = "temperature", value = "300 + t" }')
    for times in (np.array([0.0]), np.array([1.0, 2.0, 4.0])):
        for reference in (0.0, 280.0):
            rows = boundary.rows(times, reference)
            around = 290.0 - reference
            assert rows[:, 0].tolist() == [[10.0, around, 0.0, 0.0, rows[0, 0, 4], 1.0]] * len(times)
            np.testing.assert_array_equal(rows[:, 1, 1], 300.0 + times - reference)
            np.testing.assert_array_equal(rows[:, 2, :4], np.broadcast_to([0.0, -reference, 0.0, 0.0], (len(times), 4)))
            rows[...] = np.nan


def test_the_largest_slope_of_radiating_surfaces_is_that_of_their_flux_at_the_hottest_temperature() -> None:
    """−dq/dT_s by differences of h·(T_a − T_s) + ε·σ·(T_a⁴ − T_s⁴), at the largest h and ε of the run."""
    heated = box(
        """
[boundaries]
x_min = { type = "convection", coefficient = "20 + 30*t", ambient = 300.0, emissivity = 0.7 }
x_max = { type = "radiation", emissivity = "0.3 + 0.5*t", ambient = 400.0 }
""",
        end=1.0,
    )
    conditions = replace(heated.boundary, hottest=900.0)

    def flux(h: float, emissivity: float, ambient: float, surface: float) -> float:
        return h * (ambient - surface) + emissivity * STEFAN_BOLTZMANN * (ambient**4 - surface**4)

    expected = [
        (flux(*numbers, 900.0 - 0.1) - flux(*numbers, 900.0 + 0.1)) / 0.2
        for numbers in ((50.0, 0.7, 300.0), (0.0, 0.8, 400.0))
    ]
    assert conditions.largest_slopes(1.0)[:2] == pytest.approx(expected, rel=1e-6)


def test_the_largest_slope_of_a_law_is_found_wherever_the_ambient_temperature_passes() -> None:
    """A film that is large for ambient temperatures of 350 ± 2 K alone, which a ramp passes within 2 % of its time."""
    law = '"5 + 500*exp(-((Tamb - 350)/2)^2)"'
    ramp = "ambient = { times = [0, 10], values = [300, 400] }"
    heated = box(f'[boundaries]\nx_min = {{ type = "convection", coefficient = {law}, {ramp}, emissivity = "0.05*t" }}')
    conditions = replace(heated.boundary, hottest=350.0)
    expected = 505.0 + 4.0 * 0.5 * STEFAN_BOLTZMANN * 350.0**3
    assert conditions.largest_slopes(10.0)[0] == pytest.approx(expected, rel=5e-3)
