"""What each boundary condition exchanges, and the temperature of the surface."""

import numpy as np
import pytest
from exact import INSULATED, PERIODIC, convection, flux, held, scenario
from problem_text import problem

from heatsim.grid import FACES
from heatsim.physics.conditions.surface_balance import AMBIENT as AMBIENT_NUMBER
from heatsim.physics.conditions.surface_balance import FILM
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.surface_temperature import SurfacePoint, SurfaceTemperatures, acting_at

K, D = 20.0, 0.05  # W/(m K), m: conductivity and spacing normal to the x faces
H, AMBIENT, Q = 300.0, 350.0, 4000.0


def bar(x_min: str, x_max: str = INSULATED, **settings: object) -> HeatProblem:
    """20 cells of 5 cm along x."""
    text = scenario(
        (1.0, 1.0, 1.0),
        (20, 1, 1),
        **{"initial": 300.0, "end": 8.0, "k": K, "rho": 1000.0, "cp": 100.0, "dt": 1.0, **settings},
        boundaries=f"x_min = {x_min}\nx_max = {x_max}",
    )
    return problem(text)


def at_start(derived: HeatProblem, face: int = 0) -> tuple[float, ...]:
    """Film, ambient, flux, emission, surroundings, free."""
    return tuple(derived.boundary.rows(np.zeros(1), 0.0)[0, face].tolist())


def film_conductance(derived: HeatProblem, face: int = 0) -> float:
    """What g means between the surroundings and the centre of a cell, in W/(m² K)."""
    (dt,) = derived.coefficients
    g = derived.linear_terms(np.zeros(1), dt, 0.0)[1]
    capacity, d = derived.materials.heat_capacity[0], derived.grid.spacing[face // 2]
    return float(g[0, face]) * float(capacity) * d / dt


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        (held(400.0), (1.0, 400.0, 0.0, 0.0, 0.0, 0.0)),
        (INSULATED, (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),
        (flux(Q), (0.0, 0.0, Q, 0.0, 0.0, 1.0)),
        (convection(H, AMBIENT), (H, AMBIENT, 0.0, 0.0, 0.0, 1.0)),
        (convection(0.0, AMBIENT), (0.0, AMBIENT, 0.0, 0.0, 0.0, 1.0)),
    ],
    ids=["held", "insulated", "flux", "convection", "no convection"],
)
def test_a_condition_is_six_numbers(condition: str, numbers: tuple[float, ...]) -> None:
    derived = bar(condition)
    assert at_start(derived)[:3] == pytest.approx(numbers[:3], rel=1e-15)
    assert at_start(derived)[5] == numbers[5]
    assert at_start(derived, 1) == (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("condition", "conductance"),
    [
        (held(400.0), 2.0 * K / D),
        (INSULATED, 0.0),
        (flux(Q), 0.0),
        (convection(H, AMBIENT), 1.0 / (1.0 / H + D / (2.0 * K))),
    ],
    ids=["held", "insulated", "flux", "convection"],
)
def test_a_film_is_in_series_with_half_a_cell(condition: str, conductance: float) -> None:
    derived = bar(condition, precision="float64")
    assert film_conductance(derived) == pytest.approx(conductance, rel=1e-12)


@pytest.mark.parametrize(
    "condition", [held(400.0), flux(Q), convection(H, AMBIENT)], ids=["held", "flux", "convection"]
)
def test_a_step_gains_what_flows_in(condition: str) -> None:
    """f − g·T is q_in·dt/(ρ·cp·d), q_in through half a cell and the film."""
    derived = bar(condition, precision="float64")
    (dt,) = derived.coefficients
    reference, T = 310.0, 330.0
    f, g = derived.linear_terms(np.zeros(1), dt, reference)
    into_body = {
        held(400.0): K / (D / 2.0) * (400.0 - T),
        flux(Q): Q,
        convection(H, AMBIENT): (AMBIENT - T) / (1.0 / H + D / (2.0 * K)),
    }[condition]
    gained = float(f[0, 0]) - float(g[0, 0]) * (T - reference)
    assert gained == pytest.approx(into_body * dt / (1000.0 * 100.0 * D), rel=1e-12)
    assert not f[0, 1:].any()
    assert not g[0, 1:].any()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_body_at_the_ambient_temperature_gains_nothing(precision: str) -> None:
    """f is made from the rounded g: at the reference temperature itself both are exact."""
    for condition in (held(373.15), convection(H, 373.15)):
        derived = bar(condition, precision=precision)
        f, g = derived.linear_terms(np.zeros(1), 1.0, 373.15)
        assert f[0, 0] == 0.0
        assert g[0, 0] > 0.0
        f, g = derived.linear_terms(np.zeros(1), 1.0, 300.0)
        unit_roundoff = float(np.finfo(precision).eps) / 2.0
        assert float(f[0, 0]) / float(g[0, 0]) == pytest.approx(373.15 - 300.0, rel=2.0 * unit_roundoff)


def test_conditions_in_time_are_taken_at_each_step() -> None:
    table = "{ times = [0.0, 2.0, 4.0], values = [300.0, 400.0, 400.0] }"
    held_in_time = f'{{ type = "temperature", value = {table} }}'
    derived = bar(held_in_time, convection("100 + 10*t", "300 + t"))
    times = np.arange(6.0)
    rows = derived.boundary.rows(times, 0.0)
    np.testing.assert_allclose(rows[:, 0, AMBIENT_NUMBER], [300.0, 350.0, 400.0, 400.0, 400.0, 400.0], rtol=1e-15)
    np.testing.assert_allclose(rows[:, 1, FILM], 100.0 + 10.0 * times, rtol=1e-15)
    np.testing.assert_allclose(rows[:, 1, AMBIENT_NUMBER], 300.0 + times, rtol=1e-15)
    assert not derived.boundary.constant


def test_what_is_constant_and_what_exchanges() -> None:
    boundary = bar(held(300.0), convection(1.0, 300.0)).boundary
    assert boundary.constant
    assert [boundary.exchanging(face) for face in range(6)] == [True, True, False, False, False, False]
    boundary = bar(PERIODIC, PERIODIC).boundary
    assert [boundary.exchanging(face) for face in range(6)] == [False] * 6
    assert boundary.periodic == (True, False, False)


@pytest.mark.parametrize(
    ("condition", "surface"),
    [
        (held(400.0), 400.0),
        (INSULATED, 330.0),
        (flux(Q), 330.0 + Q * D / (2.0 * K)),
        # the film and the half cell divide the difference in proportion to their resistances
        (convection(H, AMBIENT), 330.0 + (AMBIENT - 330.0) * (D / (2.0 * K)) / (1.0 / H + D / (2.0 * K))),
    ],
    ids=["held", "insulated", "flux", "convection"],
)
def test_the_surface_lies_half_a_cell_away(condition: str, surface: float) -> None:
    derived = bar(condition)
    surfaces = SurfaceTemperatures(derived, [SurfacePoint(0, (0, 0, 0), (0.0, 0.0, 0.0))])
    (found,) = surfaces.of(np.array([330.0]), acting_at(derived, 0))
    assert found == pytest.approx(surface, rel=1e-14)


def test_a_narrow_peak_of_convection_bounds_the_time_step() -> None:
    """A peak of 20 µs in 11 s: the limit is that of its height, as if it lasted."""
    peak, lasting = (
        bar(convection(film, 300.0), dt="auto", end=11.0).limit.dt
        for film in ("1 + 1e4*exp(-((t - 3.3333)/1e-5)^2)", 1.0 + 1e4)
    )
    assert peak == pytest.approx(lasting, rel=1e-6)
    assert peak < 0.9 * bar(convection(1.0, 300.0), dt="auto", end=11.0).limit.dt


@pytest.mark.parametrize("end", [1e2, 1e3, 2e4, 1e6])
def test_the_largest_film_of_an_ordinary_sine_is_never_exceeded(end: float) -> None:
    """So that no stage meets a larger one than the method counts on."""
    derived = bar(convection("40 + 25*sin(t/777)", 300.0), dt="auto", end=end)
    largest = derived.boundary.largest_films(end)[0]
    times = np.linspace(0.0, end, 300_001)
    assert largest >= (40.0 + 25.0 * np.sin(times / 777.0)).max() * (1.0 - 1e-12)
    assert largest <= 65.0


def test_conditions_lie_on_their_own_axis() -> None:
    """Spacing and conductivity normal to the face decide."""
    boundaries = "\n".join(f"{name} = {convection(100.0, 300.0)}" for name in FACES)
    text = scenario(
        (1.0, 2.0, 3.0),
        (10, 10, 10),
        initial=300.0,
        end=1e-3,
        boundaries=boundaries,
        k=(10.0, 20.0, 40.0),
        precision="float64",
    )
    derived = problem(text)
    for face, (k, d) in enumerate(((10.0, 0.1), (10.0, 0.1), (20.0, 0.2), (20.0, 0.2), (40.0, 0.3), (40.0, 0.3))):
        assert film_conductance(derived, face) == pytest.approx(1.0 / (1.0 / 100.0 + d / (2.0 * k)), rel=1e-12)
