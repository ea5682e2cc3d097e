"""The error of the solver alone: steady states to the default tolerance, and to a tolerance far smaller."""

import gc
import tomllib
import weakref
from pathlib import Path

import bodies
import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim.kernels.multigrid.sweeps import CpuSweeps
from heatsim.physics.operator.balance import Balance
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import Scenario, load, parse
from heatsim.solver.steady.newton import Convergence, NewtonSolver, solve
from heatsim.solver.steady.steady_equations import Equations, VaryingEquations

MODULE = Path(__file__).parents[2] / "scenarios" / "power_module.toml"
_FAR_SMALLER = 1e-10  # K


def steady(text: str) -> Scenario:
    document = tomllib.loads(text)
    return parse(document | {"time": {"method": "steady"}}, "body.toml")


def found(
    problem: HeatProblem, precision: str, tolerance: float | None, reference: float | None = None
) -> tuple[NDArray[np.float64], Convergence]:
    """Deviations from a reference temperature in K, at which the search begins."""
    balance = Balance(problem, problem.reference if reference is None else reference)
    make = VaryingEquations if problem.materials.varies else Equations
    equations = make(balance, precision, np.zeros(problem.grid.shape), CpuSweeps())
    progress = solve(equations, CpuSweeps(), tolerance)
    return equations.temperature, progress


def block(cells: str, more: str = "", size: str = "[0.1, 0.08, 0.06]") -> str:
    """A steel block of some cells, a quarter of it heated, one face held, others cooled."""
    return f"""
    domain = {{ size = {size}, cells = {cells} }}
    material = {{ conductivity = 15.0, density = 7900.0, specific_heat = 500.0 }}
    sources = [{{ power = 200.0, box = {{ min = [0.0, 0.0, 0.0], max = [0.025, 1.0, 1.0] }} }}]
    boundaries.default = {{ type = "convection", coefficient = 50.0, ambient = 300.0 }}
    boundaries.x_max = {{ type = "temperature", value = 350.0 }}
    {more}
    """


PERIODIC = 'boundaries.y_min = { type = "periodic" }\nboundaries.y_max = { type = "periodic" }'
RADIATES = 'boundaries.z_max = { type = "radiation", emissivity = 0.9, ambient = 3.0 }'
BODIES = {
    "everything": bodies.STILL,
    "conductivities that vary": bodies.VARYING,
    "one material that radiates": bodies.ONE_MATERIAL,
    "cube": block("[24, 24, 24]", size="[0.1, 0.1, 0.1]"),
    "odd sizes": block("[31, 23, 17]"),
    "one-cell axis": block("[37, 1, 29]"),
    "a row": block("[211, 1, 1]", size="[1.0, 0.01, 0.01]"),
    "periodic": block("[17, 12, 9]", PERIODIC),
    "one periodic cell": block("[41, 1, 3]", PERIODIC),
    "flat cells": block("[20, 20, 20]", size="[0.1, 0.1, 0.01]"),
    "radiates to space": block("[19, 14, 11]", RADIATES),
}


@pytest.mark.each_value
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("text", BODIES.values(), ids=BODIES.keys())
def test_the_error_is_within_the_tolerance(text: str, precision: str) -> None:
    """Contacts, patches, void, beams, radiation, k(T), periodic axes, odd sizes, axes of one cell, flat cells."""
    check(HeatProblem.from_scenario(steady(text)), precision)


@pytest.mark.parametrize("tolerance", ["0.001 K", "1 K"])
def test_the_error_of_a_module_with_contacts_is_within_the_tolerance(tolerance: str) -> None:
    scenario = load(MODULE, ["time.method=steady", "domain.cells=[40, 30, 20]", f"time.tolerance={tolerance}"])
    check(HeatProblem.from_scenario(scenario), "float32")


def check(problem: HeatProblem, precision: str) -> None:
    T, progress = found(problem, precision, problem.scenario.time.tolerance)
    known, _ = found(problem, precision, _FAR_SMALLER)
    assert np.abs(T - known).max() <= progress.tolerance


@pytest.mark.parametrize("reference", [0.0, 300.0])
@pytest.mark.parametrize("emissivity", [0.8, 1e-3])
def test_radiation_in_float32_is_found_to_less_than_roundings_of_its_temperature(
    emissivity: float, reference: float
) -> None:
    """500 W leave a cube at 655 K or 3,480 K; float32 rounds the latter to 0.0002 K. The search may begin at 0 K."""
    text = f"""
    domain = {{ size = [0.1, 0.1, 0.1], cells = [8, 8, 8] }}
    material = {{ conductivity = 1e6, density = 1000.0, specific_heat = 500.0 }}
    sources = [{{ power = 500.0 }}]
    boundaries.default = {{ type = "radiation", emissivity = {emissivity}, ambient = 3.0 }}
    """
    problem = HeatProblem.from_scenario(steady(text))
    T, _ = found(problem, "float32", 1e-7, reference)
    known = (500.0 / (0.06 * emissivity * 5.670374419e-8) + 3.0**4) ** 0.25
    # 500 W take 0.001 K from the centre to the faces; the mean of the faces' fourth powers is exact.
    assert np.abs(T + reference - known).max() <= 1e-3


def test_a_solver_leaves_no_arrays_behind() -> None:
    """On a GPU the memory of a solver must be free as soon as it ends, not when Python looks for cycles."""
    problem = HeatProblem.from_scenario(steady(BODIES["cube"]))
    shape = problem.grid.shape
    equations = Equations(Balance(problem, 300.0), "float32", np.zeros(shape), CpuSweeps())
    solver = NewtonSolver(equations, CpuSweeps())
    gc.collect()
    gc.disable()
    try:
        solver.solve()
        there = weakref.ref(equations)
        del solver, equations
        assert there() is None
    finally:
        gc.enable()
