"""Random bodies on grids of several widths against dense matrices that are written down independently."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from covering import mostly_slow
from graded_bodies import GradedBody, LayeredBody

from heatsim import Simulation
from heatsim.opened.run import Run
from heatsim.physics.cells.cell_heat import GAPS
from heatsim.physics.operator.balance import Balance
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse


@pytest.mark.parametrize("kind", [GradedBody, LayeredBody])
@pytest.mark.parametrize("axial", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_links_and_limits_are_those_of_the_matrices(seed: int, axial: bool, kind: type[GradedBody]) -> None:
    body = kind(seed, axial)
    problem = HeatProblem.from_scenario(parse(body.document, "case.toml"))
    equations = body.equations
    links = Balance(problem, 300.0).links("float64", 1.0)
    shape, size = problem.grid.shape, problem.grid.cell_count
    places, full = np.arange(size).reshape(shape), np.zeros((size, size))
    for axis, link in enumerate(links):
        before = np.roll(places, 1, 2 - axis)
        full[places.reshape(-1), before.reshape(-1)] -= link.reshape(-1)
        full[before.reshape(-1), places.reshape(-1)] -= link.reshape(-1)
    np.fill_diagonal(full, 0.0)
    cells, matrix = equations.cells, equations.matrix
    expected = matrix - np.diag(matrix.diagonal())
    # Cells with layers whose numbers agree to 1e-9 share a type.
    same = 1e-12 if kind is GradedBody else 2e-9
    np.testing.assert_allclose(full[np.ix_(cells, cells)], expected, rtol=same, atol=1e-12 * np.abs(matrix).max())
    assert problem.limit.dt == pytest.approx(1.0 / (matrix.diagonal() / equations.capacity).max(), rel=max(same, 1e-9))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("seed", "axial", "kind"),
    mostly_slow(
        product(range(7, 47), (False, True), (GradedBody, LayeredBody)),
        (8, False, GradedBody),
        (18, True, GradedBody),
        (11, True, LayeredBody),
    ),
)
@pytest.mark.parametrize("method", ["steady", "implicit", "stabilized", "euler"])
def test_runs_give_what_the_matrices_do(
    tmp_path: Path, method: str, seed: int, axial: bool, kind: type[GradedBody]
) -> None:
    """Temperatures, and in time the stored heat, that of sources, and what is left of the balance."""
    body = kind(seed, axial)
    equations, end = body.equations, 50.0
    shortest = 1.0 / (equations.matrix.diagonal() / equations.capacity).max()
    if method == "euler":
        end = min(end, 500.0 * shortest)
    time = {"method": method} if method == "steady" else {"method": method, "end": end}
    simulation = Simulation.from_dict({**body.document, "time": time}, tmp_path / "run")
    if method != "steady" and equations.at(end, 300.0).min() < 20.0:
        pytest.skip("it would cool below 0 K on the way")
    if method == "steady" and equations.steady().min() < 0.0:
        pytest.skip("below 0 K")
    simulation.run()
    found, state = simulation.temperature.reshape(-1)[equations.cells], simulation.state
    if state.steady is not None:
        np.testing.assert_allclose(found, equations.steady(), rtol=0.0, atol=state.steady.progress.tolerance)
        return
    if state.method is None:
        expected, timeline = np.full(len(found), 300.0), state.problem.timeline
        for step in range(state.step):
            gained = equations.heat - equations.matrix @ expected
            expected = expected + timeline.dt(step) * gained / equations.capacity
        np.testing.assert_allclose(found, expected, rtol=1e-11 if kind is GradedBody else 1e-9)
    else:
        np.testing.assert_allclose(found, equations.at(end, 300.0), rtol=0.0, atol=3.0 * state.method.tolerance)
    row = Run(tmp_path / "run").energy.iloc[-1]
    in_joules = {name: value for name, value in row.items() if name.endswith("(J)")}
    turned_over = sum(map(abs, in_joules.values())) + 1e-12
    stored = equations.capacity @ (found - 300.0)
    heated = sum(source["power"] for source in body.document.get("sources", ()))
    assert in_joules["stored (J)"] == pytest.approx(stored, abs=1e-9 * turned_over)
    assert in_joules["sources (J)"] == pytest.approx(heated * end, rel=1e-9)
    assert abs(in_joules["residual (J)"]) <= 1e-6 * turned_over


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("seed", "axial"), mostly_slow(product(range(40), (False, True)), (4, False), (8, True), (18, True))
)
def test_conductivities_that_hardly_vary_give_what_the_matrices_do(seed: int, axial: bool) -> None:
    """The equations of materials that vary with temperature, also at the axis, where no heat passes."""
    body = GradedBody(seed, axial)
    if body.equations.steady().min() < 0.0:
        pytest.skip("below 0 K")
    for material in body.document["materials"].values():
        k = np.array(material["conductivity"])
        tables = [k.tolist(), (k * (1.0 + 1e-9)).tolist()]
        material["conductivity"] = {"temperatures": [200.0, 500.0], "values": tables}
    simulation = Simulation.from_dict({**body.document, "time": {"method": "steady"}}, in_memory=True)
    simulation.run()
    assert simulation.state.steady is not None
    found, progress = simulation.temperature.reshape(-1)[body.equations.cells], simulation.state.steady.progress
    np.testing.assert_allclose(found, body.equations.steady(), rtol=0.0, atol=progress.tolerance)


def _with_gaps(body: GradedBody) -> HeatProblem:
    """Its problem, with a conductance that hardly varies with temperature in place of the resistance of contacts."""
    (contact,) = body.document["contacts"]
    conductance = 1.0 / contact.pop("resistance")
    contact["conductance"] = {"temperatures": [250.0, 400.0], "values": [conductance, conductance * (1.0 + 1e-9)]}
    return HeatProblem.from_scenario(parse(body.document, "case.toml"))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("kernel", ["numpy", "numba"])
@pytest.mark.parametrize("axial", [False, True])
def test_gaps_that_hardly_vary_give_what_the_matrices_do(axial: bool, kernel: str) -> None:
    """Steps of Euler's method across gaps between cells of all widths, and in rings."""
    along, seed = set[int](), 0
    while len(along) < (2 if axial else 3) or seed < 30:
        body, seed = GradedBody(seed, axial), seed + 1
        if "contacts" not in body.document:
            continue
        body.document["solver"] |= {"kernel": kernel}
        problem = _with_gaps(body)
        heated, equations = problem.materials.heated, body.equations
        if not problem.boundary.gaps or not (heated.numbers >= GAPS).any():
            continue
        along |= set((heated.spots[heated.numbers >= GAPS, 0] // 2).tolist())
        shortest = 1.0 / (equations.matrix.diagonal() / equations.capacity).max()
        simulation = Simulation.from_dict(
            {**body.document, "time": {"end": 20.0 * shortest, "method": "euler"}}, in_memory=True
        )
        simulation.run()
        expected, state = np.full(len(equations.cells), 300.0), simulation.state
        for step in range(state.step):
            gained = equations.heat - equations.matrix @ expected
            expected = expected + state.problem.timeline.dt(step) * gained / equations.capacity
        found = simulation.temperature.reshape(-1)[equations.cells]
        np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=f"seed {seed - 1}")
