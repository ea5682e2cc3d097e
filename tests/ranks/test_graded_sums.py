"""Sums over cells of several widths count with their volumes: means, heats, liquid parts, the ledger; also on ranks."""

import tomllib
from math import fsum
from typing import Any

import numpy as np
import pytest
from bodies import EVERYTHING
from numpy.typing import NDArray
from slab_runs import AROUND, LINEAR, LIT, SCENARIOS, painted, same
from thread_team import on_ranks

from heatsim import device
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.operator.boundary_faces import boundary_faces
from heatsim.physics.problem import HeatProblem
from heatsim.run.initial_state import initial_state
from heatsim.run.plan import Plan
from heatsim.scenario import parse
from heatsim.solver.ledger.energy_ledger import Ledger

PROBES = """
[[probes]]
name = "mean"
statistic = "mean"
region = "ball"
[[probes]]
name = "liquid"
statistic = "liquid_fraction"
"""


def graded(text: str, **solver: Any) -> HeatProblem:
    """The problem of a scenario, with cells whose widths are spread over an order of magnitude."""
    tables, random = tomllib.loads(text), np.random.default_rng(3)
    domain = tables["domain"]
    for axis, n, length in zip("xyz", domain["cells"], domain["size"], strict=True):
        widths = 10.0 ** random.uniform(0.0, 1.0, n)
        domain[axis] = {"widths": (widths * length / widths.sum()).tolist()}
    tables["solver"] = {"device": "cpu"} | solver
    return HeatProblem.from_scenario(parse(tables, SCENARIOS / "here.toml"))


def volumes(problem: HeatProblem) -> NDArray[np.float64]:
    """Of all cells in m³, from their borders."""
    x, y, z = (np.diff(axis.borders) for axis in problem.grid.axes)
    return np.asarray(z[:, None, None] * y[:, None] * x)


@pytest.mark.quick("everything", "lit")
@pytest.mark.parametrize("text", [LINEAR, AROUND, LIT, EVERYTHING], ids=["linear", "around", "lit", "everything"])
def test_heats_of_the_ledger_count_with_the_volumes_of_their_cells(text: str) -> None:
    problem = graded(text)
    ledger = Ledger(device.choose("cpu"), problem, True)
    layout, materials = ledger.sums.layout, problem.materials
    faces = list(boundary_faces(problem.boundary, materials, problem.open_faces))
    capacity_of = np.zeros(layout.size)  # of the cell of each sum, in J/K
    sizes = volumes(problem).reshape(-1)
    for of_side in faces:
        capacity_of[layout.places_of(of_side)] = (
            sizes[of_side.cells] * materials.heat_capacity[of_side.types(materials)]
        )
    lit = np.zeros(layout.size, dtype=np.bool_)
    for of_side in faces:  # light has sums behind those of all heat
        if of_side.side in problem.sources.beam_faces() and (reached := of_side.lit(materials)) is not None:
            places = layout.places_of(of_side)
            capacity_of[places + layout.to_beams] = np.where(reached >= 0, capacity_of[places], 0.0)
            lit[places + layout.to_beams] = True
    assert lit.any() == (text in (LIT, EVERYTHING))
    heated = materials.heated.cells
    types = materials.types_of(np.unravel_index(heated, problem.grid.shape))
    capacity_of[layout.cells] = sizes[heated] * materials.heat_capacity[types]
    ledger.sums.values[...] = np.random.default_rng(4).uniform(-1.0, 1.0, layout.size) * (capacity_of > 0.0)
    expected = ledger.sums.values * capacity_of
    found = ledger.heats()
    towards_void = np.zeros(layout.size, dtype=np.bool_)
    for side in range(6):
        here = np.zeros(layout.size, dtype=np.bool_)
        for of_side in faces:
            if of_side.side == side and not of_side.towards_void:
                here[layout.places_of(of_side)] = True
            elif of_side.towards_void:
                towards_void[layout.places_of(of_side)] = True
        assert found.faces[0, side] == pytest.approx(expected[here].sum(), abs=1e-12)
    assert found.towards_void[0, 0] == pytest.approx(expected[towards_void].sum(), abs=1e-12)
    assert found.beams[0] == pytest.approx(expected[lit].sum(), abs=1e-12)
    assert found.cells[0] == pytest.approx(expected[layout.cells].sum(), abs=1e-12)
    assert found.magnitude[0] == pytest.approx(np.abs(expected[: layout.boundary_faces]).sum(), rel=1e-12)


def statistics(problem: HeatProblem, team: Team) -> dict[str, float]:
    state = initial_state(Plan.of(problem, team), SCENARIOS)
    found, regions = state.statistics, (None, "ball") if problem.scenario.probes else (None,)
    numbers = {f"mean {region}": found.mean(region) for region in regions}
    numbers |= {f"liquid {region}": found.liquid_fraction(region) for region in regions}
    return numbers | {"heat": found.heat(), "magnitude": found.heat(absolute=True)}


@pytest.mark.quick("regions")
@pytest.mark.parametrize("probes", ["", PROBES], ids=["types", "regions"])
def test_statistics_count_with_the_volumes_of_cells(probes: str) -> None:
    """To the bit on three ranks too."""
    text = AROUND + probes
    problem = graded(text, precision="float64")
    found = statistics(problem, ALONE)
    assert on_ranks(3, lambda team: statistics(painted(problem, team), team)) == [found] * 3
    state, materials = initial_state(Plan.of(problem, ALONE), SCENARIOS), problem.materials
    T, weights, types = state.field.temperature(), volumes(problem), materials.types_of(slice(None))
    names = np.array([materials.palette[one.material].name for one in materials.types])[types]
    conducts, ball = names != "void", names == "tin"
    liquid = np.clip((T - 330.0) / 10.0, 0.0, 1.0)
    assert found["mean None"] == pytest.approx(np.average(T[conducts], weights=weights[conducts]), rel=1e-13)
    assert found["liquid None"] == pytest.approx(np.average(liquid[ball], weights=weights[ball]), rel=1e-12)
    capacities = (weights * materials.heat_capacity[types])[conducts]
    contents = state.field.own[conducts]
    assert found["heat"] == pytest.approx(fsum(capacities * contents), rel=1e-12)
    assert found["magnitude"] == pytest.approx(fsum(capacities * np.abs(contents)), rel=1e-12)
    if probes:
        assert found["mean ball"] == pytest.approx(np.average(T[ball], weights=weights[ball]), rel=1e-13)
        assert found["liquid ball"] == found["liquid None"]
        assert 0.0 < found["liquid ball"] < 1.0


def test_ranks_give_the_bits_of_one() -> None:
    """Of the field, the sums of the ledger and its heats."""
    same(graded(LINEAR), 3)
