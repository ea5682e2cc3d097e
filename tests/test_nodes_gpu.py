"""Nodes and channels on a GPU, and on the host in the part of one, against the CPU."""

from typing import Any

import numpy as np
import pytest
from cuda_host import gpu
from cuda_host.strict import StrictModule

from heatsim.kernels.nodes.node_stage import NodeKernels
from heatsim.physics.operator.balance_surfaces import find_surfaces
from heatsim.physics.operator.cell_sums import LocalSums
from heatsim.physics.problem import HeatProblem
from heatsim.run.simulation import Simulation
from heatsim.scenario import parse
from heatsim.solver.nodes.node_exchange import NodeExchange

CONVECTION = {"type": "convection", "coefficient": 40.0, "ambient": {"node": "air"}}
RADIATION = {"type": "radiation", "emissivity": 0.8, "ambient": {"node": "walls"}}
SLOT = {"name": "slot", "material": "void", "box": {"min": [0.0, 0.01, 0.01], "max": [0.08, 0.02, 0.02]}}
WATER = {"name": "water", "region": "slot", "from": "x_min", "inlet": 290.0, "mass_flow": 1e-4, "specific_heat": 4180.0}
BODY: dict[str, Any] = {
    "title": "nodes",
    "domain": {"size": [0.08, 0.03, 0.03], "cells": [8, 6, 6], "material": "brick"},
    "materials": {"brick": {"conductivity": 2.0, "density": 1800.0, "specific_heat": 900.0}},
    "regions": [SLOT],
    "initial": {"temperature": 320.0},
    "boundaries": {"x_min": CONVECTION, "y_max": RADIATION, "z_max": {"type": "temperature", "value": 310.0}},
    "nodes": [
        {
            "name": "air",
            "flows": [{"inlet": 280.0, "mass_flow": 1e-5, "specific_heat": 1006.0}],
            "links": [{"node": "walls", "conductance": 0.02}],
        },
        {"name": "walls", "heat_capacity": 5.0, "initial_temperature": 300.0, "power": 0.1},
    ],
    "channels": [{**WATER, "coefficient": 300.0}],
    "output": {"fields": False},
}


# Where nothing radiates and nothing but temperatures changes, a GPU moves the nodes itself.
LINEAR = {**BODY["boundaries"], "y_max": {**CONVECTION, "coefficient": 25.0, "ambient": {"node": "walls"}}}


def found(device: str, method: str, boundaries: Any = BODY["boundaries"]) -> tuple[Any, Any]:
    time = {"method": method} if method == "steady" else {"method": method, "end": 2.0}
    document = {**BODY, "boundaries": boundaries, "time": time, "solver": {"device": device, "precision": "float64"}}
    simulation = Simulation.from_dict(document, in_memory=True)
    simulation.run()
    network = simulation.plan.problem.boundary.network
    assert network is not None
    return simulation.temperature, network.state.copy()


GPU = [pytest.param("gpu", method, marks=pytest.mark.gpu) for method in ("euler", "stabilized", "implicit", "steady")]


@pytest.mark.parametrize("boundaries", [BODY["boundaries"], LINEAR], ids=["radiating", "linear"])
@pytest.mark.parametrize(("part", "method"), [("host", "euler"), ("host", "stabilized"), *GPU])
def test_a_gpu_gives_the_temperatures_of_the_cpu(
    part: str, method: str, boundaries: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = found("cpu", method, boundaries)
    if part == "host":
        gpu.play_gpu(monkeypatch)
    T, state = found("cuda", method, boundaries)
    # Steps and solutions that follow a tolerance stop where rounding decides.
    near = 1e-9 if method == "euler" else 1e-5
    np.testing.assert_allclose(T, expected[0], rtol=near)
    np.testing.assert_allclose(state, expected[1], rtol=100.0 * near, atol=near * np.abs(expected[1]).max())


@pytest.mark.parametrize("coefficient", [40.0, 1e6])  # below and above what half a cell conducts
def test_the_exchange_of_nodes_takes_arrays_of_a_device(coefficient: float) -> None:
    """Arrays that do not mix with NumPy's, of a kind that refuses what CuPy refuses."""
    document = {**BODY, "time": {"method": "steady"}}
    document["boundaries"] = {**BODY["boundaries"], "x_min": {**CONVECTION, "coefficient": coefficient}}
    problem = HeatProblem.from_scenario(parse(document, "case.toml"))
    found = []
    for xp in (np, StrictModule()):
        exchange = NodeExchange(problem.boundary, LocalSums())
        surfaces = [of for of in find_surfaces(xp, problem, 300.0, changing=True) if exchange.couples(of)]
        cells = [(of, xp.linspace(5.0, 25.0, len(of.cells)), 1.0) for of in surfaces]
        columns = exchange.columns(cells)
        gathered = exchange.gathered(columns, [of.slopes for of in columns])
        found.append((*exchange.exchanged(cells), gathered))
    for plain, strict in zip(*found, strict=True):
        np.testing.assert_allclose(strict, plain, rtol=1e-13)
        assert np.abs(plain).max() > 0.0


@pytest.mark.parametrize("method", ["euler", "stabilized"])
def test_nodes_with_heat_capacities_move_beside_the_cells(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a stage of the nodes runs before or behind that of the cells changes no bit."""
    air, walls = BODY["nodes"]
    air = {**air, "heat_capacity": 20.0, "initial_temperature": 290.0}
    for key, value in {"regions": [], "channels": [], "nodes": [air, walls]}.items():
        monkeypatch.setitem(BODY, key, value)
    expected = found("cpu", method, LINEAR)
    gpu.play_gpu(monkeypatch)
    calls = list[NodeKernels]()

    def behind(kernels: NodeKernels, T: Any) -> Any:
        calls.append(kernels)
        return lambda: kernels.move(kernels.sums(T))

    first = found("cuda", method, LINEAR)
    monkeypatch.setattr(NodeKernels, "beside", behind)
    last = found("cuda", method, LINEAR)
    assert calls
    for one, other, host in zip(first, last, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, host, rtol=1e-9 if method == "euler" else 1e-5, atol=1e-5)
