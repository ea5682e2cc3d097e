"""All factors in time of a source are averaged together: its density, its scale, and when it is on."""

from math import cos, sin

import numpy as np
import pytest
from problem_text import problem

from heatsim.errors import ScenarioError
from heatsim.physics.problem import HeatProblem

VOLUME = 0.05 * 0.01 * 0.01
# Ends of steps of all lengths, none of them at a jump.
ENDS = np.concatenate(([0.0, 0.7, 0.71, 9.3, 16.7, 16.9], np.linspace(20.0, 39.9, 13)))
STARTS, LENGTHS = ENDS[:-1], np.diff(ENDS)


def bar(source: str) -> HeatProblem:
    return problem(
        f"""
domain = {{ size = [0.05, 0.01, 0.01], cells = [10, 1, 1] }}
material = {{ conductivity = 2.0, density = 2000.0, specific_heat = 1000.0 }}
initial = {{ temperature = 300.0 }}
time = {{ end = 40.0, method = "implicit" }}
[[sources]]
{source}
"""
    )


def given(derived: HeatProblem) -> np.ndarray:  # type: ignore[type-arg]
    """The heat in J that the source brings in each step, and has to bring the same by all ways to ask for it."""
    if derived.sources.even:
        power = derived.sources.powers(STARTS, LENGTHS)[:, 0]
        heat = derived.sources.heat(STARTS, 1.0, LENGTHS) @ (
            derived.materials.counts * derived.materials.cell_heat_capacity
        )
        np.testing.assert_allclose(heat, power, rtol=1e-12)
        return power * LENGTHS
    weight = float(derived.materials.heated.weights.sum()) * derived.materials.heated.volume
    T = np.full(10, 350.0)
    powers = [
        derived.sources.cell_powers(*step, T)[0].net for step in zip(STARTS.tolist(), LENGTHS.tolist(), strict=True)
    ]
    if not derived.materials.heated.tables:
        power = derived.sources.amounts(STARTS, 1.0, LENGTHS)[:, 0] * weight
        np.testing.assert_allclose(powers, power, rtol=1e-12, atol=1e-14)
    return np.array(powers) * LENGTHS


def between(integral, ends=ENDS, on=(0.0, 40.0)):  # type: ignore[no-untyped-def]
    """The exact heat in the steps from the integral of the power, which acts between two times."""
    return np.diff([integral(min(max(end, on[0]), on[1])) for end in ends])


def test_pulses_at_different_times_bring_nothing() -> None:
    derived = bar('power_density = "2e5*where(t%16<8,1,0)*(1+0*x)"\nscale = "where(t%16<8,0,1)"')
    assert np.abs(given(derived)).max() <= 1e-9 * 2e5 * VOLUME * 40.0


def test_a_sine_times_a_sine_has_the_mean_of_its_square() -> None:
    derived = bar('power_density = "2e5*sin(0.3*t)*(1+0*x)"\nscale = "sin(0.3*t)"')
    exact = between(lambda t: 2e5 * VOLUME * (t / 2.0 - sin(0.6 * t) / 1.2))
    np.testing.assert_allclose(given(derived), exact, atol=1e-6 * 2e5 * VOLUME * 20.0)


def test_a_table_times_an_expression() -> None:
    """(1 + t/10)·cos(t/3) up to 20 s, then 3·cos(t/3)."""
    table = "{ times = [0.0, 20.0], values = [1.0, 3.0] }"
    derived = bar(f'power_density = "2e5*cos(t/3)*(1+0*x)"\nscale = {table}')

    def integral(t: float) -> float:
        early, late = min(t, 20.0), max(t, 20.0)
        ramp = 3.0 * sin(early / 3.0) + 0.3 * early * sin(early / 3.0) + 0.9 * (cos(early / 3.0) - 1.0)
        return 2e5 * VOLUME * (ramp + 9.0 * (sin(late / 3.0) - sin(20.0 / 3.0)))

    np.testing.assert_allclose(given(derived), between(integral), atol=1e-6 * 2e5 * VOLUME * 60.0)


@pytest.mark.parametrize(
    "amount",
    ["power = 7.0", 'power = 7.0\ndistribution = "1 + 20*x"', f"power_density = {7.0 / VOLUME}"],
    ids=["even", "distributed", "density"],
)
def test_what_is_on_in_a_part_of_a_step_brings_this_part(amount: str) -> None:
    derived = bar(f'{amount}\nscale = "t"\nduring = [3.3, 31.7]')
    exact = between(lambda t: 3.5 * t**2, on=(3.3, 31.7))
    np.testing.assert_allclose(given(derived), exact, rtol=1e-9, atol=1e-12)
    assert exact[0] == 0.0
    assert exact[-1] == 0.0


def test_a_density_in_temperature_too() -> None:
    derived = bar('power_density = "1e3*(T - 300)"\nscale = "t"\nduring = [3.3, 31.7]')
    exact = between(lambda t: 50.0e3 * VOLUME * t**2 / 2.0, on=(3.3, 31.7))
    np.testing.assert_allclose(given(derived), exact, rtol=1e-6, atol=1e-12)


def test_a_value_that_is_undefined_at_a_time_of_a_step_ends_the_run_with_its_key() -> None:
    """No bound tells whether 0/0 is reached: the expression is allowed until it is."""
    derived = bar('power = 7.0\nscale = "sin(t - 40/3)/(t - 40/3)"\n[solver]\nprecision = "float32"')
    derived.sources.powers(np.array([4.0]), np.array([1.0]))
    with pytest.raises(ScenarioError, match=r"sources\.0\.scale: is not finite in the step from t = 13\.0 s"):
        derived.sources.powers(np.array([13.0]), np.array([1.0]))
