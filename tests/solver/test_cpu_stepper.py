"""Steps of general bodies on the CPU: conditions are evaluated for many steps before they are needed."""

import tomllib

import numpy as np
import pytest
import runs
from exact import convection, scenario

from heatsim import device
from heatsim.errors import ScenarioError
from heatsim.kernels import catalog
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.field.field import Field
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.make_stepper import make_stepper

CPU = device.choose("cpu")


def stepper_of(film: str, every: float) -> Stepper:
    """A body with a radiating face and a film that changes; something is due every ``every`` seconds."""
    faces = f'x_max = {{ type = "radiation", emissivity = 0.5, ambient = 400.0 }}\nx_min = {convection(film, 350.0)}'
    text = scenario(
        (0.06, 0.05, 0.04),
        (6, 5, 4),
        initial=300.0,
        end=2.0,
        boundaries=faces,
        k=20.0,
        rho=7800.0,
        cp=500.0,
        dt=0.01,
        every=every,
    )
    problem = HeatProblem.from_scenario(parse(tomllib.loads(text), "case.toml"))
    field = Field(CPU, problem.grid, problem.precision, 300.0)
    field.deviation[...] = 0.0
    return make_stepper(problem, field, Ledger(CPU, problem, True), catalog.choose("numba", "cpu"))


def test_a_condition_that_cannot_be_used_later_does_not_stop_the_steps_before(monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = stepper_of("20 + sin(t)", 0.5)
    runs.make_unphysical(monkeypatch, stepper.problem.boundary, "boundaries.x_min", 1.2 - 1e-9)
    stepper.advance(120)
    assert np.isfinite(stepper.field.deviation).all()
    with pytest.raises(ScenarioError, match=r"boundaries.x_min.*t = 1\.2"):
        stepper.advance(100)


def test_the_steps_of_a_call_do_not_show() -> None:
    together, apart = stepper_of("20 + 10*sin(7*t)", 0.5), stepper_of("20 + 10*sin(7*t)", 0.5)
    together.advance(200)
    for steps in (1, 7, 50, 100, 42):
        apart.advance(steps)
    assert together.field.deviation.tobytes() == apart.field.deviation.tobytes()
    assert float(np.abs(together.field.deviation).max()) > 0.0
