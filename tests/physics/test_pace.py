"""The longest step over which conditions may be seen at a few moments."""

import subprocess
import sys
import tomllib
from math import inf, pi

import numpy as np
import pytest
import runs

from heatsim.physics.boundary import Boundary
from heatsim.physics.pace import Pace
from heatsim.scenario import Expression, Formula, parse

TEXT = """
[domain]
size = [0.1, 0.1, 0.1]
cells = [5, 4, 2]
[material]
conductivity = 20.0
density = 1000.0
specific_heat = 300.0
[initial]
temperature = 300.0
[time]
end = 100.0
"""


def formula(text: str) -> Formula:
    return Formula(Expression(text, ("t",)))


def conditions(face: str, tolerance: float = 0.01) -> Pace:
    boundary = Boundary.from_scenario(parse(tomllib.loads(f"{TEXT}[boundaries]\nx_min = {face}"), "pace.toml"))
    return Pace.of_conditions(boundary, tolerance)


@pytest.mark.parametrize("periods", [1, 7, 100, 20_000])
def test_a_step_over_a_wave_is_at_most_a_quarter_of_its_period(periods: int) -> None:
    """From a zero: its value has then changed by half its range. Samples are added until all periods are seen."""
    pace = Pace.of_functions([formula(f"300 + 20*sin(2*pi*t*{periods}/100)")], 100.0)
    assert pace.changes[-1] == pytest.approx(2.0 * periods, rel=0.05)
    middle = periods // 2 * 100.0 / periods
    assert pace.longest(middle) == pytest.approx(100.0 / periods / 4.0, rel=0.3)
    assert len(pace.edges()) == pytest.approx(2.0 * periods, rel=0.05, abs=1.0)


def test_a_step_reaches_half_way_up_a_pulse_and_no_farther() -> None:
    """A pulse at 50 s of 0.5 s: it may not be stepped over, and before it steps are as long as they like."""
    pace = Pace.of_functions([formula("300 + 80*exp(-((t - 50)/0.5)^2)")], 100.0)
    half = 50.0 - 0.5 * np.log(2.0) ** 0.5
    for time in (0.0, 30.0, 45.0):
        assert time + pace.longest(time) == pytest.approx(half, abs=0.05)
    assert pace.longest(49.9) < 1.0
    assert pace.longest(55.0) == inf


def test_functions_change_together() -> None:
    """Two waves of the same period, one of which changes as the other does, halve the step."""
    wave, other = formula("sin(t)"), formula("5*sin(t)")
    one, two = Pace.of_functions([wave], 100.0), Pace.of_functions([wave, other], 100.0)
    assert one.longest(10 * pi) == pytest.approx(pi / 2.0, rel=0.05)
    assert two.longest(10 * pi) == pytest.approx(np.arcsin(0.5), rel=0.05)


@pytest.mark.parametrize(
    ("face", "bounded"),
    [
        ('{ type = "convection", coefficient = 5.0, ambient = 300.0 }', False),
        ('{ type = "convection", coefficient = 5.0, ambient = "300 + sin(t)" }', True),
        ('{ type = "convection", coefficient = 5.0, ambient = "300 + 0.001*sin(t)" }', False),
        ('{ type = "convection", coefficient = "5 + sin(t)", ambient = 300.0 }', True),
        ('{ type = "radiation", emissivity = "0.5 + 0.1*sin(t)", ambient = 300.0 }', True),
        ('{ type = "temperature", value = "300 + sin(t)" }', True),
        ('{ type = "flux", value = "300 + sin(t)" }', False),
        (
            '{ type = "temperature", value = { times = [0, 9, 20], values = [300, 400, 300] } }',
            False,
        ),
    ],
)
def test_only_expressions_that_are_seen_at_moments_bound_steps(face: str, bounded: bool) -> None:
    """Fluxes are averaged; tables have their kinks; changes below the tolerance do not count."""
    assert (conditions(face).longest(1.0) < 10.0) == bounded
    assert (conditions(face).longest(1.0) == inf) != bounded


def test_runs_agree_to_the_bit() -> None:
    """Hashes of texts differ from process to process; a run that is resumed must take the same steps."""
    values = 'coefficient = "5 + sin(t)", ambient = "300 + 9*cos(0.7*t)", emissivity = "0.5 + 0.1*sin(3*t)"'
    program = """
import sys, tomllib
from heatsim.physics.boundary import Boundary
from heatsim.physics.pace import Pace
from heatsim.scenario import parse
text = sys.stdin.read()
pace = Pace.of_conditions(Boundary.from_scenario(parse(tomllib.loads(text), "pace.toml")), 0.01)
print([pace.longest(time / 7.0).hex() for time in range(100)])
"""
    text = f'{TEXT}[boundaries]\nx_min = {{ type = "convection", {values} }}'
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=text,
            env={**runs.environment(), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
