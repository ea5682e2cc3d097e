"""Runs with cells of different widths on a GPU, and on the host in the part of one, against dense matrices."""

import numpy as np
import pytest
from cuda_host import gpu
from graded_bodies import Document, GradedBody
from numpy.typing import NDArray

from heatsim.physics.problem import HeatProblem
from heatsim.run.simulation import Simulation
from heatsim.scenario import parse


@pytest.fixture(autouse=True, params=["host", pytest.param("gpu", marks=pytest.mark.gpu)])
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU, or the host in its part."""
    if request.param == "host":
        gpu.play_gpu(monkeypatch)


def with_kernel(document: Document, kernel: str, end: float, method: str) -> Document:
    solver = {"device": "cuda", "precision": "float64", "kernel": kernel}
    return {**document, "time": {"method": method, "end": end}, "solver": solver}


def run(document: Document) -> NDArray[np.float64]:
    """Temperatures at the end, in the order of memory."""
    simulation = Simulation.from_dict(document, in_memory=True)
    simulation.advance(document["time"]["end"])
    return simulation.temperature.reshape(-1)


# Plain ones without sources, void and contacts, some with all of these, two axial ones.
@pytest.mark.parametrize("kernel", ["auto", "naive", "streamed"])
@pytest.mark.parametrize(("seed", "axial"), [(0, False), (1, False), (3, False), (5, False), (2, True), (4, True)])
def test_steps_are_those_of_the_matrices(kernel: str, seed: int, axial: bool) -> None:
    body = GradedBody(seed, axial)
    equations = body.equations
    limit = HeatProblem.from_scenario(parse(body.document, "case.toml")).limit.dt
    document = with_kernel(body.document, kernel, 7.5 * limit, "euler")
    T = np.full(len(equations.cells), 300.0)
    timeline = HeatProblem.from_scenario(parse(document, "case.toml")).timeline
    for step in range(timeline.last_step):
        T += timeline.dt(step) * (equations.heat - equations.matrix @ T) / equations.capacity
    found = run(document)[equations.cells]
    np.testing.assert_allclose(found, T, rtol=0.0, atol=1e-9 * np.abs(T - 300.0).max() + 1e-9)
