"""Cut between planes of different costs: the slowest rank is as fast as possible, and bits do not depend on cuts."""

import tracemalloc
from itertools import combinations, pairwise

import numpy as np
import pytest
from slab_runs import painted, problem_of, same
from thread_team import on_ranks

from heatsim.parallel.cuts import cheapest_cuts
from heatsim.parallel.slab import HALO
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.estimates.plane_costs import plane_contents
from heatsim.run.plan import Plan
from heatsim.run.ranks import cut, divide, plane_costs

# The upper half is void; pins stand on a plate, and heat leaves through their surfaces.
PINS = """
[domain]
size = [0.011, 0.010, 0.064]
cells = [11, 10, 64]
material = "void"
[materials.steel]
conductivity = 40.0
density = 7800.0
specific_heat = 470.0
[[regions]]
name = "plate"
material = "steel"
box = { min = [0.0, 0.0, 0.0], max = [0.011, 0.010, 0.014] }
[[regions]]
name = "left"
material = "steel"
cylinder = { from = [0.003, 0.005, 0.0], to = [0.003, 0.005, 0.032], radius = 0.0022 }
[[regions]]
name = "right"
material = "steel"
box = { min = [0.007, 0.002, 0.0], max = [0.009, 0.008, 0.032] }
[initial]
temperature = "300 + 1000*x + 500*z"
[boundaries]
void = { type = "convection", coefficient = 300.0, ambient = 300.0 }
[[sources]]
power_density = "1e6*(1 + 100*x)"
box = { min = [0.0, 0.0, 0.0], max = [0.011, 0.010, 0.002] }
[time]
end = 0.5
method = "euler"
"""
SOLVER = {"device": "cpu"}


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_no_other_cuts_make_the_slowest_rank_faster(ranks: int, periodic: bool) -> None:
    """Nor the others more equal."""
    rng = np.random.default_rng(ranks)
    costs, group, least = rng.exponential(size=33) + 0.1, 2, 4
    edges = np.append(np.arange(0, 33, group), 33)
    padded = np.concatenate((costs, costs, costs) if periodic else (0 * costs, costs, 0 * costs))
    slab = np.array([[padded[33 + a - HALO : 33 + b + HALO].sum() for b in edges] for a in edges])
    choices = [
        [slab[a, b] for a, b in pairwise(places)]
        for inner in combinations(range(1, len(edges) - 1), ranks - 1)
        if min(np.diff(edges[[*(places := (0, *inner, len(edges) - 1))]])) >= least
    ]
    best = min(map(max, choices))
    squares = min(np.square(of).sum() for of in choices if max(of) <= 1.000001 * best)
    cuts = cheapest_cuts(costs, ranks, least, group, HALO, periodic)
    assert cuts[0] == 0
    assert cuts[-1] == 33
    assert min(np.diff(cuts)) >= least
    assert all(edge % group == 0 for edge in cuts[:-1])
    found = [padded[33 + a - HALO : 33 + b + HALO].sum() for a, b in pairwise(cuts)]
    assert max(found) == pytest.approx(best)
    assert np.square(found).sum() == pytest.approx(squares)


def test_many_planes_are_divided_among_many_ranks_without_a_table_of_all_slabs() -> None:
    """Each rank finds the cuts before it starts: that may need neither minutes nor gigabytes."""
    planes, ranks = 8192, 64
    tracemalloc.start()
    cuts = cheapest_cuts(np.ones(planes), ranks, 4, 2, HALO, periodic=True)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert set(np.diff(cuts)) == {planes // ranks}
    assert most < 8 * (planes // 2) ** 2 / 10  # bytes


def test_planes_that_cost_more_are_shared_by_more_ranks() -> None:
    """Pins cost twice as much as void. The costs of slabs differ by at most one group of planes."""
    problem = problem_of(PINS, solver=SOLVER)
    of_ranks = on_ranks(3, lambda team: plane_costs(problem.scenario, team))
    costs = plane_costs(problem.scenario, ALONE)
    assert [each.tolist() for each in of_ranks] == [costs.tolist()] * 3
    assert costs[20] > 1.5 * costs[40]
    assert costs[0] > 1.5 * costs[8]
    slabs = cut(problem.scenario, problem.boundary, 3, costs)
    assert max(slab.count for slab in slabs) >= 2 * min(slab.count for slab in slabs)
    found = [costs[slab.place].sum() for slab in slabs]
    assert max(found) - min(found) <= problem.grid.groups.size * costs.max()
    held = on_ranks(3, lambda team: painted(problem, team).held.slab)
    assert [(each.first, each.last) for each in held if each] == [(each.first, each.last) for each in slabs]


def test_contents_are_those_of_the_painted_body() -> None:
    problem = problem_of(PINS, solver=SOLVER)
    contents = plane_contents(problem.scenario, problem.boundary, problem.slab, ALONE)
    assert contents is not None
    solid = problem.materials.cells & 0x7F != problem.materials.void
    beside = [np.diff(solid.astype(np.int8), axis=axis) != 0 for axis in range(3)]
    faces = sum(np.count_nonzero(each[z : z + 1]) for each in beside for z in [20])
    assert contents.faces[20] == contents.surfaces[20] == faces
    assert contents.surfaces.sum() == sum(np.count_nonzero(each) for each in beside)
    assert contents.heated.tolist() == [110, 110] + [0] * 62


@pytest.mark.parametrize(("method", "ranks"), [("euler", 2), ("euler", 4), ("stabilized", 3)])
def test_equal_bits(method: str, ranks: int) -> None:
    same(problem_of(PINS, solver=SOLVER).with_method(method), ranks)


def test_some_ranks_paint_all_planes() -> None:
    """Other ranks do not, and no rank waits for a message that another rank does not send."""
    problem = problem_of(PINS, solver=SOLVER)

    def on_rank(team: Team) -> tuple[bool, int]:
        plan = Plan.of(painted(problem, team), team)
        return plan.problem.held.whole, team.broadcast(plan.disk_bytes) - plan.disk_bytes

    assert on_ranks(3, on_rank) == [(False, 0), (True, 0), (True, 0)]


def test_all_weighted_cells_of_a_slab_are_listed() -> None:
    """Kernels enter heat at the place of a cell in the list, also for cells of the outermost halo planes."""
    problem = problem_of(PINS, solver=SOLVER)

    def on_rank(team: Team) -> None:
        part = divide(painted(problem, team), team)
        solid = np.pad(part.materials.cells & 0x7F != problem.materials.void, 1, mode="edge")
        beside = np.zeros(part.grid.shape, dtype=bool)
        for axis in range(3):
            for side in (-1, 1):
                beside |= ~np.roll(solid, side, axis)[1:-1, 1:-1, 1:-1]
        wanted = np.flatnonzero(beside & solid[1:-1, 1:-1, 1:-1])
        listed = part.materials.weighted_surfaces.cells
        assert set(wanted.tolist()) <= set(listed.tolist())
        outermost = listed // (11 * 10) == part.slab.depth - 1
        assert outermost.any() == (part.slab.start + part.slab.depth <= 32)

    on_ranks(4, on_rank)
