"""Slabs on several ranks give the bits of the whole grid: the field, the ledger, what observers read."""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import bodies
import numpy as np
import pytest
from covering import mostly_slow
from slab_runs import AROUND, LINEAR, SCENARIOS, equal, painted, problem_of, same, stepped
from thread_team import on_ranks

from heatsim.errors import ScenarioError
from heatsim.grid import Grid
from heatsim.observers.edges.surface_edges import SurfaceEdges
from heatsim.observers.parts import ContactFlows, ContactHeats, RegionHeats
from heatsim.observers.regions import RegionStatistic
from heatsim.observers.snapshots import heat_flux_in_own_planes
from heatsim.observers.state import RunState
from heatsim.observers.surfaces import SurfaceStatistic
from heatsim.parallel.halo import Halo
from heatsim.parallel.slab import HALO, TooManyRanksError, slabs
from heatsim.parallel.team import ALONE
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.contact_balances import contact_balances
from heatsim.physics.readings.interpolation import Interpolation
from heatsim.physics.readings.surface_cells import SurfaceCells
from heatsim.run.plan import Plan
from heatsim.scenario import load
from heatsim.solver.field.field_copy import FieldCopy

# Scenarios with few cells.
BUNDLED = {
    "cube": ["domain.cells=[10, 9, 13]"],
    "anisotropic_block": ["domain.cells=[12, 9, 12]"],
    "periodic_cosine": ["domain.cells=[8, 9, 10]"],
    "laser_track": ["domain.cells=[24, 20, 9]"],
    "melting_block": ["domain.cells=[12, 12, 12]"],
    "power_module": [],
    "cooling_gear": [],
    "house_wall": [],
}


def bundled(name: str, *more: str) -> HeatProblem:
    overrides = [*BUNDLED[name], "solver.device=cpu", "time.method=euler", *more]
    return HeatProblem.from_scenario(load(SCENARIOS / f"{name}.toml", overrides))


@pytest.mark.quick("power_module", "house_wall", "melting_block", "laser_track", "cube")
@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_scenarios(name: str) -> None:
    same(bundled(name), 2)


def test_thin_layers() -> None:
    text = (SCENARIOS / "circuit_board.toml").read_text().replace("[200, 160, 15]", "[50, 40, 15]")
    time, solver = {"end": 0.1, "method": "euler"}, {"device": "cpu"}
    problem = problem_of(text, time=time, solver=solver, initial={"temperature": "300 + 1e3*x"}, output={})
    assert len(problem.materials.layering.cells)
    same(problem, 2)


@pytest.mark.quick("everything-3-float32", "ring-2-float32")
@pytest.mark.parametrize(
    ("text", "ranks", "precision"),
    mostly_slow(
        product(("everything", "ring"), (2, 3), ("float64", "float32")),
        ("everything", 2, "float64"),
        ("everything", 3, "float32"),
        ("ring", 2, "float32"),
    ),
)
def test_composite_bodies(text: str, ranks: int, precision: str) -> None:
    solver = {"device": "cpu", "precision": precision}
    same(problem_of({"everything": bodies.EVERYTHING, "ring": AROUND}[text], solver=solver), ranks)


@pytest.mark.parametrize(("ranks", "kernel"), mostly_slow([(2, "numpy"), (3, "numba")], (3, "numba")))
def test_values_in_space(ranks: int, kernel: str) -> None:
    film = '{ type = "convection", coefficient = "20 + 1e4*x", ambient = "295 + 1e3*z", emissivity = 0.5 }'
    text = bodies.EVERYTHING.replace(
        'void = { type = "convection", coefficient = 20.0, ambient = 295.0, emissivity = 0.5 }', f"void = {film}"
    )
    assert film in text
    same(problem_of(text, solver={"device": "cpu", "kernel": kernel}), ranks)


def observed(state: RunState) -> dict[str, Any]:
    """What observers read of a run."""
    problem, field, numbers = state.problem, state.field, dict[str, Any]()
    scenario = problem.scenario
    for probe in scenario.probes:
        if probe.statistic is not None:
            statistic = (RegionStatistic if probe.surface is None else SurfaceStatistic)(probe, state)
            numbers[probe.name] = statistic.now(), (statistic.place(), statistic.point()) if probe.has_place else None
        if probe.surface is not None:
            surface = SurfaceCells(state.part, probe.surface, probe.region, field.team)
            edges = SurfaceEdges(state.part, surface, probe.region, field.team)
            own = edges.of(field.points(*edges.own_places).own_temperatures(), state.step)
            of_edges = edges.mean(field.joined(edges.order, own, edges.shape)) if edges.count else own
            numbers[f"edges of {probe.name}"] = np.column_stack((of_edges, edges.points, edges.cells))
    points = Interpolation(problem, [point for probe in scenario.probes for point in probe.points])
    numbers["points"] = points.of(field.points(*points.cells).temperatures()[None], [state.step])
    of = state.statistics
    numbers |= {"heat": of.heat(), "absolute heat": of.heat(absolute=True), "mean": of.mean()}
    numbers |= {"extremes": of.extremes(), "deviations": of.deviations(), "statistics": field.statistics()}
    numbers |= {
        "by type": np.array(of.temperatures_of_types()),
        "lowest": of.extreme_cells.of_type(0, highest=False),
        "hottest": of.extreme_cells.of_type(0, highest=True),
    }
    numbers |= {"region heats": RegionHeats(state, None).initial, "contacts": ContactFlows(state).row()}
    numbers |= {"behind contacts": ContactHeats(state, None).initial, "levels": contact_balances(state.problem)}
    numbers["heats"] = state.ledger.heats().numbers
    numbers["change"] = field.largest_change(field.own * 0.5)
    numbers["T"] = field.temperature()
    copy = FieldCopy(field)
    numbers["flux"] = np.concatenate(field.team.gathered(np.concatenate(list(heat_flux_of(state, copy)))))
    return numbers


def heat_flux_of(state: RunState, field_copy: FieldCopy) -> Iterator[Any]:
    return heat_flux_in_own_planes(state.problem, state.step, field_copy, state.field.beside())


PROBES = """
[[probes]]
name = "hot length"
statistic = "extent_z"
threshold = 335.0
[[probes]]
name = "mean"
statistic = "mean"
[[probes]]
name = "liquid"
region = "ball"
statistic = "liquid_fraction"
[[probes]]
name = "hot ball"
region = "ball"
statistic = "extent_z"
threshold = 336.0
[[probes]]
name = "patched face"
surface = "x_min"
statistic = "mean"
[[probes]]
name = "lit face"
surface = "y_max"
statistic = "max"
[[probes]]
name = "inner surface"
surface = "void"
statistic = "mean"
[[probes]]
name = "long line"
line = { from = [0.001, 0.009, 0.0], to = [0.011, 0.0075, 0.015], count = 9 }
[output]
region_heat = true
"""


# A void of boxes with inner and outer edges along z, at the cuts and across them.
EDGES = """
[[regions]]
name = "shaft"
material = "void"
box = { min = [0.001, 0.001, 0.001], max = [0.004, 0.004, 0.008] }
[[probes]]
name = "coldest inside"
surface = "void"
statistic = "min"
[[probes]]
name = "hottest inside"
surface = "void"
statistic = "max"
[[probes]]
name = "die outside"
region = "die"
surface = "void"
statistic = "max"
"""


@pytest.mark.quick("edges")
@pytest.mark.parametrize(
    ("text", "ranks"),
    [(bodies.EVERYTHING + EDGES, 3), (AROUND + PROBES, 2)],
    ids=["edges", "around"],
)
def test_what_observers_read(text: str, ranks: int) -> None:
    problem = problem_of(text, solver={"device": "cpu"})
    alone = observed(stepped(problem, ALONE))
    equal(alone, on_ranks(ranks, lambda team: observed(stepped(painted(problem, team), team))))


@pytest.mark.quick("everything-float64-3", "linear-float32-2")
@pytest.mark.parametrize(
    ("text", "precision", "ranks"),
    mostly_slow(
        product(("everything", "around", "linear"), ("float32", "float64"), (2, 3)),
        ("everything", "float64", 3),
        ("around", "float32", 3),
        ("linear", "float32", 2),
    ),
)
def test_stabilized_steps(text: str, precision: str, ranks: int) -> None:
    texts = {"everything": bodies.EVERYTHING, "around": AROUND, "linear": LINEAR}
    solver = {"device": "cpu", "precision": precision}
    same(problem_of(texts[text], solver=solver).with_method("stabilized"), ranks)


@pytest.mark.parametrize("planes", [8, 13, 600, 4096])
@pytest.mark.parametrize("ranks", [1, 2, 3, 64])
def test_slabs_cover_the_grid_and_are_cut_between_groups(planes: int, ranks: int) -> None:
    group = Grid((1, 1, planes), (1.0, 1.0, 1.0)).groups.size
    if planes < ranks * max(HALO, group):
        with pytest.raises(TooManyRanksError, match=f"got {ranks} ranks"):
            slabs(planes, ranks, periodic=False, group=group)
        return
    for periodic in (False, True):
        found = slabs(planes, ranks, periodic=periodic, group=group)
        own = np.concatenate([slab.place[slab.own] for slab in found])
        np.testing.assert_array_equal(own, np.arange(planes))
        assert all(slab.first % group == 0 and slab.count >= HALO for slab in found) or ranks == 1
        ends = (found[0].cut[0], found[-1].cut[1])
        assert ends == ((periodic and ranks > 1),) * 2
        for below, above in pairwise(found):
            np.testing.assert_array_equal(below.place[-below.above :], above.place[above.own][:HALO])
            np.testing.assert_array_equal(above.place[: above.below], below.place[below.own][-HALO:])


def test_what_runs_on_one_rank_only_is_refused() -> None:
    few = problem_of(LINEAR, solver={"device": "cpu"})
    with pytest.raises(ScenarioError, match=r"domain.cells: .* 13 planes .* at most 3 ranks"):
        on_ranks(4, lambda team: Plan.of(few, team))


def test_halos_that_are_not_exchanged_in_time_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the tests above would mean nothing."""
    monkeypatch.setattr(Halo, "stepped", lambda halo, steps: None)
    with pytest.raises(AssertionError, match="T"):
        same(problem_of(LINEAR, solver={"device": "cpu"}), 2)
