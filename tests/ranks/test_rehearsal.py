"""Plans of several ranks in one process are those that the ranks of a job would make."""

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
import runs
from thread_team import on_ranks

from heatsim.errors import RanksError, ScenarioError
from heatsim.parallel import rehearsal, slab
from heatsim.parallel.rehearsal import rehearse
from heatsim.parallel.team import ALONE, Parcel, Team
from heatsim.run.plan import Plan
from heatsim.run.plan_ranks import describe_job
from heatsim.run.ranks import plane_costs
from heatsim.scenario import Scenario, load

pytestmark = pytest.mark.usefixtures("frozen_again")
SCENARIOS = Path(__file__).parents[2] / "scenarios"


def nothing(number: int, rank: int) -> None:
    pass


def running_sum(team: Team) -> tuple[int, list[int]]:
    """Three calls, each of which depends on the one before; the last value comes from the neighbour above."""
    total = sum(team.gathered(team.rank + 1))
    largest = team.highest(total * (team.size - team.rank))
    first = team.broadcast(largest + team.rank)
    below, above = np.array([first + team.rank]), np.zeros(1, dtype=np.int64)
    up, down = team.rank + 1, team.rank - 1
    team.exchange([Parcel(down, 0, below)] if down >= 0 else [], [Parcel(up, 0, above)] if up < team.size else [])
    return largest, team.gathered(int(above[0]))


def test_values_are_those_of_a_job_although_they_depend_on_each_other() -> None:
    shown: list[tuple[int, int]] = []
    found = rehearse(3, running_sum, lambda number, rank: shown.append((number, rank)))
    assert found == on_ranks(3, running_sum) == [(18, [19, 20, 0])] * 3
    passes = shown[-1][0]
    assert shown == [(number, rank) for number in range(1, passes + 1) for rank in range(3)]


def test_a_rank_cannot_change_what_others_receive() -> None:
    """What can change is copied for each rank; arrays in what they share are read-only."""

    def work(team: Team) -> tuple[list[int], int]:
        for each in team.gathered(([team.rank], np.array([team.rank]))):
            each[0].append(7)
            each[1][0] = 7
        lists = [number for each in team.gathered([team.rank]) for number in each]
        for array in team.gathered(np.array([team.rank])):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 7
        large = team.gathered(np.full(20_000, team.rank))
        large[0] += 7
        return lists, int(team.broadcast(np.full(20_000, team.rank))[0])

    assert rehearse(3, work, nothing) == [([0, 1, 2], 0)] * 3


def test_work_that_all_ranks_share_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time of a plan would grow with the square of the number of ranks."""
    gc.unfreeze()  # what earlier tests keep
    found, collected = list[int](), list[int]()
    cheapest, collect = slab.cheapest_cuts, gc.collect
    monkeypatch.setattr(slab, "cheapest_cuts", lambda *given: found.append(0) or cheapest(*given))
    monkeypatch.setattr(gc, "collect", lambda: collected.append(len(gc.get_objects())) or collect())
    slab._slabs.cache_clear()
    scenario = load(SCENARIOS / "cube.toml")
    costs = plane_costs(scenario, ALONE)
    rehearse(8, lambda team: describe_job(scenario, team, costs)[1], nothing)
    assert len(found) == 1
    assert max(collected[1:]) < 0.5 * collected[0]
    assert gc.get_freeze_count() == 0


def test_only_errors_of_the_last_pass_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own values only, rank 0 finds nothing; in the last pass rank 1 finds too much."""

    def work(team: Team) -> int:
        if not any(team.gathered(team.rank == 2)):
            raise ValueError("nothing found")
        if team.rank > 0 and sum(team.gathered(1)) == 3:
            raise ValueError(f"too much on rank {team.rank}")
        return team.rank

    with pytest.raises(ValueError, match="too much on rank 1"):
        rehearse(3, work, nothing)

    def changing(team: Team, calls: list[int] = []) -> None:  # noqa: B006
        calls.append(0)
        team.gathered(len(calls))

    monkeypatch.setattr(rehearsal, "_MOST_PASSES", 5)
    with pytest.raises(RanksError, match="the ranks do not agree after 5 passes"):
        rehearse(2, changing, nothing)

    def too_large(team: Team) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        rehearse(2, too_large, nothing)


@pytest.mark.quick(
    "power_module-3-overrides0", "cube-3-overrides5", "laser_track-2-overrides4", "periodic_cosine-2-overrides6"
)
@pytest.mark.parametrize(
    ("name", "ranks", "overrides"),
    [
        ("power_module", 3, ()),
        ("cooling_gear", 3, ("domain.cells=[20,20,48]", 'time={method="steady"}')),
        pytest.param("circuit_board", 2, ("domain.cells=[10,8,15]",), marks=pytest.mark.slow),
        pytest.param("melting_block", 3, (), marks=pytest.mark.slow),
        ("laser_track", 2, ()),
        ("cube", 3, ("time.method=implicit",)),
        ("periodic_cosine", 2, ()),
        pytest.param("house_wall", 2, (), marks=pytest.mark.slow),
    ],
)
def test_the_plan_is_that_of_a_job(name: str, ranks: int, overrides: tuple[str, ...]) -> None:
    """Contacts, void, layers, steady states (whose ranks exchange arrays), melting, beams, periodic axes, faces."""
    scenario = load(SCENARIOS / f"{name}.toml", overrides)

    def in_job(team: Team) -> str:
        return describe_job(scenario, team, plane_costs(scenario, team))[1]

    costs = plane_costs(scenario, ALONE)
    found = rehearse(ranks, lambda team: describe_job(scenario, team, costs)[1], nothing)
    assert found == on_ranks(ranks, in_job)
    assert f"ranks        {ranks}, each with " in found[0]


def test_only_one_rank_at_a_time_needs_memory() -> None:
    scenario = load(SCENARIOS / "power_module.toml")
    costs, of_ranks, alive = plane_costs(scenario, ALONE), list["weakref.ref[Plan]"](), list[int]()

    def work(team: Team) -> str:
        alive.append(sum(plan() is not None for plan in of_ranks))
        plan, text = describe_job(scenario, team, costs)
        of_ranks.append(weakref.ref(plan))
        return text

    rehearse(3, work, nothing)
    assert len(alive) >= 6
    assert set(alive) == {0}


def test_a_mistake_of_the_user_is_that_of_a_run(tmp_path: Path) -> None:
    outside = '\n[[regions]]\nname = "far"\nmaterial = "a"\nbox = { min = [1.0, 1.0, 1.0], max = [2.0, 2.0, 2.0] }\n'
    text = runs.TEXT.replace("[material]", "[materials.a]").replace("size =", 'material = "a"\nsize =') + outside
    scenario: Scenario = load(runs.write(tmp_path, text), ("domain.cells=[7,5,24]", "domain.size=[0.07,0.05,0.24]"))
    with pytest.raises(ScenarioError, match=r'"far" reaches from .* and lies outside the domain'):
        rehearse(2, lambda team: describe_job(scenario, team, np.ones(24))[1], nothing)
