"""Runs with cells of different widths on a GPU, and on the host in the part of one, against dense matrices."""

import numpy as np
import pytest
from cuda_host import gpu
from graded_bodies import Document, GradedBody
from numpy.typing import NDArray

from heatsim.errors import ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.run.simulation import Simulation
from heatsim.scenario import parse
from heatsim.study.groups import fits_ensemble


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


# One material with linear faces; void, contacts and sources; rings.
@pytest.mark.parametrize(
    ("kernel", "seed", "axial"),
    [("auto", 3, False), ("streamed", 3, False), ("auto", 6, False), ("streamed", 6, False), ("streamed", 1, True)],
)
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


@pytest.mark.quick("host-7")
@pytest.mark.parametrize("seed", [3, 7])
def test_long_steps_agree_with_the_matrices(seed: int) -> None:
    body = GradedBody(seed)
    end = 60.0 * HeatProblem.from_scenario(parse(body.document, "case.toml")).limit.dt
    document = with_kernel(body.document, "auto", end, "stabilized")
    document["time"]["tolerance"] = "0.01 K"
    found = run(document)[body.equations.cells]
    np.testing.assert_allclose(found, body.equations.at(end, 300.0), rtol=0.0, atol=0.01)


@pytest.mark.parametrize("kernel", ["tiled", "temporal", "boxed"])
def test_a_kernel_for_equal_cells_is_refused(kernel: str) -> None:
    document = with_kernel(GradedBody(3).document, kernel, 1.0, "euler")
    with pytest.raises(
        ScenarioError, match=f'solver.kernel: got "{kernel}", which steps only cells of one width; choose'
    ):
        Simulation.from_dict(document, in_memory=True)


def test_runs_on_graded_grids_do_not_step_together() -> None:
    document = with_kernel(GradedBody(3).document, "auto", 1.0, "euler")
    plan = Simulation.from_dict(document, in_memory=True).plan
    assert not fits_ensemble(plan.problem, plan.device.backend)
    equal = {**document, "domain": {"size": [1.0, 1.0, 1.0], "cells": [4, 4, 4], "material": "one"}}
    plan = Simulation.from_dict(equal, in_memory=True).plan
    assert fits_ensemble(plan.problem, plan.device.backend)
