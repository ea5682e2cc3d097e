"""The balance of bodies with everything that there is, against a step of the NumPy oracle and exact answers."""

import tomllib
from typing import Any

import bodies
import numpy as np
import pytest
from cuda_host.multigrid import sweeps_on_host
from cuda_host.strict import StrictArray, StrictModule
from numpy.typing import NDArray

from heatsim import device
from heatsim.kernels.composite.arrays import CompositeArrays, make_tables
from heatsim.kernels.cpu.composite_body import CompositeCall
from heatsim.kernels.cpu.composite_oracle import advance_numpy
from heatsim.kernels.multigrid.sweeps import CpuSweeps
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.heat_sums import no_sums
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse
from heatsim.solver.steady.newton import Convergence, solve
from heatsim.solver.steady.steady_equations import Equations, VaryingEquations

Array = NDArray[np.float64]


def body_of(text: str) -> HeatProblem:
    return HeatProblem.from_scenario(parse(tomllib.loads(text), "body.toml"))


def solved(
    body: HeatProblem, reference: float, tolerance: float | None = None, precision: str = "float64"
) -> tuple[Array, Equations, Convergence]:
    """Deviations, the equations, and how they were solved, from the reference temperature on."""
    balance = Balance(body, reference)
    equations = Equations(balance, precision, np.zeros(body.materials.grid.shape), CpuSweeps())
    progress = solve(equations, CpuSweeps(), tolerance)
    return equations.temperature, equations, progress


def stepped(body: HeatProblem, T: Array, reference: float, dt: float) -> Array:
    """T after one explicit step of the oracle, in which the conditions are those of t = 0."""
    conditions = body.boundary
    arrays = CompositeArrays(
        device.choose("cpu"),
        body.materials,
        conditions.maps,
        reference,
        "float64",
        mixed=conditions.mixed,
    )
    rows = body.rows(np.zeros(1), dt, reference)
    tables: Any = make_tables(body.materials, (0.0,) * 7, dt, "float64")
    T_new = np.empty_like(T)
    call = CompositeCall(body.periodic, arrays.body, tables, arrays.steps(rows, 1), no_sums(), "increments")
    advance_numpy(T, T_new, call, 0)
    return T_new


@pytest.mark.parametrize(
    "text",
    [
        bodies.WALL,
        bodies.STILL,
        bodies.STILL.replace(
            "[[contacts]]", '[[contacts]]\nbetween = ["copper", "glass"]\nresistance = 1e-3\n[[contacts]]', 1
        ),
        bodies.STILL.replace(
            "min = [0.005, 0.005], max = [0.01, 0.01] }\ntype", "min = [0.0053, 0.0047], max = [0.0102, 0.01] }\ntype"
        ).replace("max = [0.015, 0.003]", "max = [0.0146, 0.0034]"),
        bodies.STILL.replace(
            "x_max = { type =", 'x_min = { type = "periodic" }\nx_max = { type = "periodic" } # {'
        ).replace(
            '[[patches]]\nname = "cold strip"\nface = "x_min"', '[[patches]]\nname = "cold strip"\nface = "y_max"'
        ),
    ],
    ids=["wall", "everything", "contact around a sphere", "patches off the grid", "periodic"],
)
def test_a_steady_state_stays_when_it_is_stepped(text: str) -> None:
    """The oracle of transient kernels knows contacts, patches, radiation, void, sources and beams by itself."""
    body, dt = body_of(text), 1e-9
    T, equations, progress = solved(body, 300.0, tolerance=1e-9)
    rates = (stepped(body, T, 300.0, dt) - T) / dt
    before = (stepped(body, np.zeros_like(T), 300.0, dt)) / dt
    assert np.abs(before).max() > 0.1
    # A rate is a difference of conductances that nearly cancel: rounding leaves 1e-16 of a cell's own rate times T.
    assert np.abs(rates).max() <= 1e-6 * np.abs(before).max() + 1e-15 * np.abs(T).max() / dt
    flows = equations.flows()
    assert abs(flows.imbalance) <= 1e-9 * flows.turnover
    assert progress.newton_steps == 1 if equations.linear else progress.newton_steps > 1


def test_a_region_of_the_same_material_changes_nothing() -> None:
    """Whole faces of one material are looked at as slices, other surfaces cell by cell."""
    region = """
[materials.twin]
conductivity = 15.0
density = 7900.0
specific_heat = 500.0
[[regions]]
name = "half"
material = "twin"
box = { min = [0.0, 0.0, 0.0], max = [0.06, 0.1, 0.08] }
"""
    (T, equations, _), (known, others, _) = (
        solved(body_of(text), 350.0, tolerance=1e-9) for text in (bodies.ONE_MATERIAL, bodies.ONE_MATERIAL + region)
    )
    assert np.abs(T - known).max() <= 2e-9
    found, expected = equations.flows(), others.flows()
    assert list(found.faces.values()) == pytest.approx(list(expected.faces.values()), abs=1e-9 * expected.turnover)
    assert abs(found.imbalance) <= 1e-9 * found.turnover


def test_a_wall_has_the_temperatures_of_resistances_in_series() -> None:
    T, equations, _ = solved(body_of(bodies.WALL), 300.0, tolerance=1e-10)
    d = 0.05
    copper = 600.0 - 250.0 * d * (np.arange(8) + 0.5)
    iron = 500.0 - 1250.0 * d * (np.arange(8) + 0.5)
    np.testing.assert_allclose(T.ravel() + 300.0, np.concatenate((copper, iron)), rtol=0.0, atol=1e-9)
    heat = 100.0 / (0.4 / 401.0)
    assert equations.flows().faces["x_min"] == pytest.approx(heat, rel=1e-12)
    assert equations.flows().faces["x_max"] == pytest.approx(-heat, rel=1e-12)


def test_float32_conductances_leave_an_imbalance_of_their_rounding() -> None:
    T, equations, progress = solved(body_of(bodies.STILL), 300.0, precision="float32")
    known, _, _ = solved(body_of(bodies.STILL), 300.0, tolerance=1e-9)
    assert np.abs(T - known).max() <= progress.tolerance
    flows = equations.flows()
    assert abs(flows.imbalance) <= 1e-4 * flows.turnover


def test_a_body_that_only_radiates_takes_up_what_it_gives_off() -> None:
    """500 W from the inside of a cube, of which each face gives off a sixth; the first guess is far too cold."""
    text = """
    title = "Radiating cube"
    domain = { size = [0.1, 0.1, 0.1], cells = [8, 8, 8] }
    material = { conductivity = 1e6, density = 1000.0, specific_heat = 500.0 }
    initial = { temperature = 4.0 }
    time = { end = 1.0 }
    sources = [{ power = 500.0 }]
    boundaries = { default = { type = "radiation", emissivity = 0.8, ambient = 3.0 } }
    """
    T, equations, progress = solved(body_of(text), 4.0, tolerance=1e-6)
    known = (500.0 / (0.06 * 0.8 * 5.670374419e-8) + 3.0**4) ** 0.25
    assert np.abs(T + 4.0 - known).max() <= 1e-3  # of the 0.01 K that 500 W take from the centre to a face
    flows = equations.flows()
    assert flows.imbalance == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(list(flows.faces.values()), -500.0 / 6.0, rtol=1e-9)
    assert progress.newton_steps <= 16


def test_conductivities_that_depend_on_temperature_end_where_the_oracle_stays() -> None:
    """What melts and how heat is stored does not matter; conductivities of both centres do, at every interface."""
    problem = HeatProblem.from_scenario(parse(tomllib.loads(bodies.VARYING), "body.toml"))
    body, dt = problem, 1e-9
    assert body.materials.varies
    balance = Balance(body, 350.0)
    equations = VaryingEquations(balance, "float64", np.zeros(body.materials.grid.shape), CpuSweeps())
    progress = solve(equations, CpuSweeps(), 1e-8)
    T = equations.temperature
    assert np.ptp(T) > 300.0
    contents, before = body.materials.contents(0, T), body.materials.contents(0, np.zeros_like(T))
    rates = (stepped(body, contents, 350.0, dt) - contents) / dt
    largest = np.abs(stepped(body, before, 350.0, dt) - before).max() / dt
    assert np.abs(rates).max() <= 1e-6 * largest + 1e-15 * np.abs(contents).max() / dt
    flows = equations.flows()
    assert abs(flows.imbalance) <= 1e-9 * flows.turnover
    assert progress.newton_steps <= 30


@pytest.mark.quick("everything")
@pytest.mark.parametrize(
    "text",
    [
        bodies.STILL.replace("[12, 9, 12]", "[11, 9, 7]"),
        bodies.VARYING.replace("[15, 8, 7]", "[11, 6, 5]"),
        bodies.ONE_MATERIAL,
    ],
    ids=["everything", "conductivities that vary", "one material"],
)
def test_arrays_of_a_device_give_the_same_steady_state(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CUDA kernels on the host, with arrays that do not mix with NumPy's; steps are replayed from a graph."""
    body = HeatProblem.from_scenario(parse(tomllib.loads(text) | {"time": {"method": "steady"}}, "body.toml"))
    xp = StrictModule()
    sweeps, queue = sweeps_on_host(xp, monkeypatch)
    solutions = []
    for module, using in ((np, CpuSweeps()), (xp, sweeps)):
        balance = Balance(body, body.reference, module)
        make = VaryingEquations if body.materials.varies else Equations
        equations = make(balance, "float32", module.zeros(body.grid.shape), using)
        progress = solve(equations, using, 0.01)
        flows = equations.flows()
        solutions.append((balance.contents(equations.temperature), [*flows.faces.values(), flows.void], progress))
    (known, heat, _), (found, found_heat, progress) = solutions
    assert isinstance(found, StrictArray)
    assert queue.graphs >= 1
    assert progress.newton_steps > 1
    assert np.abs(found.get() - known).max() <= 2.0 * 0.01
    np.testing.assert_allclose(found_heat, heat, rtol=1e-3, atol=1e-3 * np.abs(heat).max())


def test_a_slab_has_the_temperatures_of_kirchhoff_s_potential() -> None:
    """k = 20 + 0.08·(T − 300), between 300 K and 800 K: φ is a straight line, and the grid has no error."""
    for n in (5, 40):
        text = f"""
        domain = {{ size = [0.1, 0.1, 0.1], cells = [{n}, 1, 1] }}
        time = {{ method = "steady" }}
        initial = {{ temperature = 300.0 }}
        [material]
        conductivity = {{ temperatures = [300.0, 800.0], values = [20.0, 60.0] }}
        density = 1000.0
        specific_heat = 1.0
        [boundaries]
        x_min = {{ type = "temperature", value = 300.0 }}
        x_max = {{ type = "temperature", value = 800.0 }}
        """
        body = HeatProblem.from_scenario(parse(tomllib.loads(text), "slab.toml"))
        balance = Balance(body, 300.0)
        equations = VaryingEquations(balance, "float64", np.zeros((1, 1, n)), CpuSweeps())
        solve(equations, CpuSweeps(), 1e-6)
        potential = (np.arange(n) + 0.5) / n * (20.0 * 500.0 + 0.04 * 500.0**2)
        known = (-20.0 + np.sqrt(400.0 + 0.16 * potential)) / 0.08
        # EnthalpyTables are tabulated to 1e-6 of the range.
        assert np.abs(equations.temperature.ravel() - known).max() <= 1e-6 * 500.0
