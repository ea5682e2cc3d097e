"""Random bodies beside nodes against dense matrices that are written down independently."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from covering import mostly_slow
from node_bodies import HEATS, START, NodeBody
from numpy.typing import NDArray

from heatsim import Simulation
from heatsim.errors import ScenarioError
from heatsim.opened.run import Run
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse
from heatsim.solver.nodes.node_exchange import NodeExchange

pytestmark = pytest.mark.usefixtures("one_thread")
Array = NDArray[np.float64]

_PLACES = ("x_min", "x_max", "y_min", "y_max", "z_min", "z_max", "void")


def simulated(body: NodeBody, at: Path, precision: str, **time: Any) -> Simulation:
    document = {**body.document, "time": {**body.document["time"], **time}}
    if "end" in time:
        document["output"] = {"every": time["end"], "probe_every": time["end"] / 4.0, "figures": False}
    document["solver"] = {**document["solver"], "precision": precision}
    simulation = Simulation.from_dict(document, at / "run")
    simulation.run()
    return simulation


def nodes(body: NodeBody, at: Path, unit: str = "J") -> tuple[Array, Array, Array]:
    """Of each row the time, the temperatures of the nodes, and their heats, shape (rows, nodes, 4)."""
    table = Run(at / "run").nodes
    heats = [[f"{name} {heat} ({unit})" for heat in HEATS] for name in body.names]
    temperatures = table[[f"{name} (K)" for name in body.names]].to_numpy()
    return table.index.to_numpy(), temperatures, np.stack([table[names].to_numpy() for names in heats], axis=1)


def check_heats(body: NodeBody, at: Path, precision: str, only: bool) -> None:
    """The heats of each node add up to what it stores; where all surfaces face nodes, those are what passes them."""
    _, temperatures, heats = nodes(body, at)
    stored = body.capacities * (temperatures - temperatures[0])
    turned_over = np.abs(heats).sum() + np.abs(stored).sum() + 1e-9 * body.exchange * body.end
    np.testing.assert_allclose(heats.sum(axis=2), stored, rtol=0.0, atol=1e-8 * turned_over)
    if only:
        energy = Run(at / "run").energy
        through = sum(energy[f"{place} (J)"].to_numpy() for place in _PLACES if f"{place} (J)" in energy)
        rounding = 1e-12 if precision == "float64" else 1e-6
        np.testing.assert_allclose(heats[:, :, 0].sum(axis=1), -through, rtol=0.0, atol=rounding * turned_over)


@pytest.mark.parametrize(
    ("seed", "radiates", "precision"),
    mostly_slow(
        product(range(60), (False, True), ("float32", "float64")),
        *((3, False, "float64"), (12, False, "float32"), (18, False, "float32"), (31, True, "float64")),
        *((5, True, "float32"), (33, True, "float64"), (9, True, "float64")),
    ),
)
def test_steady_states_are_those_of_the_matrices(tmp_path: Path, seed: int, radiates: bool, precision: str) -> None:
    """Or refused, where nothing fixes the level of a part. Nodes that are tied loosely make cycles blind to it."""
    body = NodeBody(seed, 60, radiates, steady=True, only_nodes=seed % 3 == 0)
    if not body.grounded:
        with pytest.raises(ScenarioError, match="no steady temperature"):
            simulated(body, tmp_path, precision)
        return
    expected = body.steady()
    if expected[: len(body.cells)].min() < 20.0:
        pytest.skip("it would be colder than 0 K on the way")
    simulation = simulated(body, tmp_path, precision)
    assert simulation.state.steady is not None
    allowed = simulation.state.steady.progress.tolerance
    cells, of_nodes, flows = body.parts(expected)
    _, temperatures, found = nodes(body, tmp_path, "W")
    np.testing.assert_allclose(simulation.temperature.reshape(-1)[body.cells], cells, rtol=0.0, atol=allowed)
    np.testing.assert_allclose(temperatures[-1], of_nodes, rtol=0.0, atol=allowed)
    through = body.exchange * allowed + 1e-6 * np.abs(flows).max()
    np.testing.assert_allclose(found[-1], flows, rtol=0.0, atol=through)
    np.testing.assert_allclose(found[-1].sum(axis=1), 0.0, rtol=0.0, atol=1e-12 * (body.exchange * 300.0))


@pytest.mark.parametrize(
    ("seed", "radiates", "precision"),
    mostly_slow(
        product(range(40), (False, True), ("float32", "float64")),
        *((2, False, "float32"), (3, False, "float64"), (22, True, "float32")),
    ),
)
def test_steps_of_euler_are_those_of_the_matrices(tmp_path: Path, seed: int, radiates: bool, precision: str) -> None:
    only = seed % 3 == 0
    body = NodeBody(seed, 30, radiates, only_nodes=only)
    problem = HeatProblem.from_scenario(parse(body.document, "case.toml"))
    end = min(body.end, 100.0 * problem.limit.dt)
    simulation = simulated(body, tmp_path, precision, method="euler", end=end)
    state = simulation.state
    cells, of_nodes, heats = body.parts(body.euler(state.problem.timeline.dt, state.step))
    rounding = 1e-8 if precision == "float64" else 1e-3  # a stiff node does many steps with little heat
    through = rounding * (np.abs(heats).max() + body.exchange * end)
    _, temperatures, found = nodes(body, tmp_path)
    np.testing.assert_allclose(simulation.temperature.reshape(-1)[body.cells], cells, rtol=0.0, atol=rounding)
    np.testing.assert_allclose(temperatures[-1], of_nodes, rtol=0.0, atol=rounding)
    np.testing.assert_allclose(found[-1], heats, rtol=0.0, atol=through)
    check_heats(body, tmp_path, precision, only)


@pytest.mark.quick(
    "implicit-2-False-float32", "stabilized-6-False-float32", "implicit-21-True-float64", "stabilized-21-True-float64"
)
@pytest.mark.parametrize(
    ("seed", "radiates", "precision"),
    mostly_slow(
        product(range(40), (False, True), ("float32", "float64")),
        *((2, False, "float32"), (6, False, "float32"), (21, True, "float64")),
    ),
)
@pytest.mark.parametrize("method", ["stabilized", "implicit"])
def test_steps_with_a_tolerance_keep_it(tmp_path: Path, method: str, seed: int, radiates: bool, precision: str) -> None:
    """Temperatures of nodes in every row, of cells at the end, and the heats of nodes."""
    only = seed % 3 == 0
    body = NodeBody(seed, 20, radiates, only_nodes=only)
    problem = HeatProblem.from_scenario(parse(body.document, "case.toml"))
    if method == "stabilized" and body.end > 3e4 * problem.limit.dt:
        pytest.skip("a node is too stiff for explicit stages")
    simulation = simulated(body, tmp_path, precision, method=method)
    assert simulation.state.method is not None
    allowed = simulation.state.method.tolerance
    times, temperatures, found = nodes(body, tmp_path)
    for y, row in zip(body.courses_at(times), temperatures, strict=True):
        cells, of_nodes, heats = body.parts(y)
        np.testing.assert_allclose(row, of_nodes, rtol=0.0, atol=allowed)
    np.testing.assert_allclose(simulation.temperature.reshape(-1)[body.cells], cells, rtol=0.0, atol=allowed)
    through = 1e-3 * np.abs(heats).max() + body.exchange * allowed * body.end
    np.testing.assert_allclose(found[-1], heats, rtol=0.0, atol=through)
    check_heats(body, tmp_path, precision, only)


@pytest.mark.parametrize("radiates", [False, True])
def test_slopes_of_the_exchange_are_those_of_differences(radiates: bool) -> None:
    """Of the heat into nodes by their temperatures and by those of cells; wrong slopes only slow Newton's method."""
    for seed in range(12):
        random = np.random.default_rng(seed)
        problem = HeatProblem.from_scenario(parse(NodeBody(seed, 30, radiates).document, "case.toml"))
        balance = Balance(problem, START)
        exchange, T = NodeExchange(problem.boundary, balance.sums), random.uniform(-50.0, 300.0, problem.grid.shape)
        network = exchange.network
        network.state[:, 0] = START + random.uniform(-50.0, 300.0, len(network))

        def surfaces(T: Array) -> list[tuple[BalanceSurface, Any, Any]]:
            balance.take_nodes()  # noqa: B023
            coupled = filter(exchange.couples, balance.surfaces)  # noqa: B023
            return [(one, one.of(T), 1.0) for one in coupled]  # type: ignore[misc]

        found, columns = exchange.exchanged(surfaces(T)), exchange.columns(surfaces(T))
        of_cells = exchange.gathered(columns, [np.ones(column.nodes.shape) for column in columns])
        by_cells = exchange.exchanged(surfaces(T + 1e-3)).heat - exchange.exchanged(surfaces(T - 1e-3)).heat
        size = np.abs(found.slopes).max() + 1e-12
        np.testing.assert_allclose(of_cells, by_cells / 2e-3, rtol=1e-5, atol=1e-6 * size)
        for node in range(len(network)):
            ends = []
            for change in (1e-3, -2e-3):
                network.state[node, 0] += change
                ends.append(exchange.exchanged(surfaces(T)).heat)
            network.state[node, 0] += 1e-3
            difference = (ends[1] - ends[0]) / 2e-3
            np.testing.assert_allclose(found.slopes[:, node], difference, rtol=1e-5, atol=1e-6 * size)
