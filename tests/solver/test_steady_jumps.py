"""Steady states of bodies whose conductivities jump with temperature, by up to 1 : 3,000 within a few kelvins."""

from typing import Any

import numpy as np
import pytest
from covering import mostly_slow
from numpy.typing import NDArray

from heatsim.kernels.multigrid.sweeps import CpuSweeps
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.cell_sums import LocalSums
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse
from heatsim.solver.steady.anderson import Acceleration
from heatsim.solver.steady.newton import Convergence, solve
from heatsim.solver.steady.steady_equations import VaryingEquations

Array = NDArray[np.float64]
pytestmark = pytest.mark.usefixtures("one_thread")


def material(random: np.random.Generator) -> dict[str, Any]:
    """Conductivities from 0.1 to 300 W/(m K) at random temperatures, two of them 0.5 to 3 K apart."""
    count = int(random.integers(3, 7))
    T = np.sort(random.uniform(200.0, 900.0, count - 1))
    place = int(random.integers(0, count - 1))
    T = np.insert(T, place + 1, T[place] + random.uniform(0.5, 3.0))
    values = np.exp(random.uniform(np.log(0.1), np.log(300.0), count))
    table = {"temperatures": np.sort(T).tolist(), "values": values.tolist()}
    return {"conductivity": table, "density": 1000.0, "specific_heat": 500.0}


def jumping(seed: int) -> HeatProblem:
    """Three materials in random boxes, with a contact, a source, a held face, convection and radiation."""
    random = np.random.default_rng(seed)
    cells = [int(n) for n in random.integers(5, 9, 3)]
    corners = random.uniform(0.0, 0.07, (4, 3))
    boxes = [{"min": at.tolist(), "max": (at + random.uniform(0.03, 0.08, 3)).tolist()} for at in corners]
    T = [float(value) for value in random.uniform(200.0, 900.0, 3)]
    document = {
        "domain": {"size": [0.1, 0.1, 0.1], "cells": cells, "material": "m0"},
        "materials": {f"m{number}": material(random) for number in range(3)},
        "regions": [
            {"name": f"box {number}", "material": f"m{number % 3}", "box": box} for number, box in enumerate(boxes, 1)
        ],
        "contacts": [{"between": ["m0", "m1"], "resistance": 1e-4}],
        "sources": [{"power": 20.0, "box": {"min": [0.02, 0.02, 0.02], "max": [0.07, 0.07, 0.07]}}],
        "boundaries": {
            "x_min": {"type": "temperature", "value": T[0]},
            "x_max": {"type": "convection", "coefficient": 1000.0, "ambient": T[1]},
            "y_max": {"type": "radiation", "emissivity": 0.8, "ambient": T[2]},
        },
        "time": {"method": "steady"},
    }
    return HeatProblem.from_scenario(parse(document, "jumps.toml"))


def solved(problem: HeatProblem, tolerance: float | None) -> tuple[Array, VaryingEquations, Convergence]:
    balance = Balance(problem, problem.reference)
    equations = VaryingEquations(balance, "float64", np.zeros(problem.grid.shape), CpuSweeps())
    progress = solve(equations, CpuSweeps(), tolerance)
    return equations.temperature, equations, progress


@pytest.mark.quick("6")
@pytest.mark.parametrize("seed", mostly_slow([6, 10, 12], 6, 12))
def test_conductivities_that_jump_have_a_steady_state(seed: int) -> None:
    """Bodies for which Newton's steps with a symmetric matrix do not converge without acceleration.

    The seeds are chosen: with 4 of the first 19 no steady state is found; see "Limits" in heatsim/physics/README.md.
    """
    problem = jumping(seed)
    T, _, progress = solved(problem, None)
    known, equations, _ = solved(problem, 1e-8)
    assert np.abs(T - known).max() <= progress.tolerance
    flows = equations.flows()
    assert abs(flows.imbalance) <= 1e-8 * flows.turnover


@pytest.mark.parametrize("n", [8, 16])
def test_conductivities_that_rise_beside_others_that_fall(n: int) -> None:
    """Nothing jumps here, but k differs 20 times along the interface, in opposite directions on both sides."""

    def between(first: float, last: float) -> dict[str, Any]:
        table = {"temperatures": [300.0, 800.0], "values": [first, last]}
        return {"conductivity": table, "density": 1000.0, "specific_heat": 500.0}

    document = {
        "domain": {"size": [0.1, 0.1, 0.1], "cells": [n, n, n], "material": "rising"},
        "materials": {"rising": between(10.0, 200.0), "falling": between(300.0, 20.0)},
        "regions": [{"name": "block", "material": "falling", "box": {"min": [0, 0, 0], "max": [0.05, 0.07, 0.05]}}],
        "boundaries": {
            "x_min": {"type": "temperature", "value": 300.0},
            "z_max": {"type": "convection", "coefficient": 500.0, "ambient": 800.0},
        },
        "time": {"method": "steady"},
    }
    problem = HeatProblem.from_scenario(parse(document, "rising.toml"))
    T, _, progress = solved(problem, None)
    known, _, _ = solved(problem, 1e-8)
    assert np.abs(T - known).max() <= progress.tolerance
    assert progress.newton_steps <= 25


def test_acceleration_solves_linear_equations_that_the_iteration_alone_does_not() -> None:
    """x ← x + (b − A·x) diverges for eigenvalues −1, 3 and 5; for n of them n + 1 steps find the solution."""
    A, b = np.diag([-1.0, 3.0, 5.0]) + np.diag([0.5, 0.5], 1), np.array([1.0, 2.0, 3.0])
    acceleration, x = Acceleration(LocalSums()), np.zeros(3)
    for _ in range(6):
        x = x + acceleration.change(x, b - A @ x, 1.0)
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-5)
