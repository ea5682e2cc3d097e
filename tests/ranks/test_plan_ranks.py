"""`heatsim plan --ranks N`: memory, messages and the model of efficiency."""

from pathlib import Path

import pytest
import runs

from heatsim.cli import main
from heatsim.parallel.slab import slabs
from heatsim.physics.problem import HeatProblem
from heatsim.run.plan import Plan
from heatsim.run.plan_ranks import LINKS, Link, efficiency, halo_bytes, plan_of_ranks
from heatsim.scenario import load

PLANES = ("domain.cells=[7,5,24]", "domain.size=[0.07,0.05,0.24]")


def test_efficiency_counts_halo_planes_and_messages() -> None:
    """512³ cells a GPU, swept in 550 µs; 4 planes over NVLink both ways take 29 µs, as was measured."""
    link = LINKS["cuda"][0]
    sent = 4 * 512 * 512 * 4
    assert link.latency + sent / link.bandwidth == pytest.approx(29e-6, rel=0.01)
    of_ranks = slabs(3 * 512, 3, periodic=False)
    found = [efficiency(slab, 3 * 550e-6, sent, link) for slab in of_ranks]
    end, middle = 550 / (550 * 516 / 512 + 29), 550 / (550 * 520 / 512 + 15 + 2 * 14)
    assert found == pytest.approx([end, middle, end], rel=1e-3)
    at_once = Link("", 0.0, float("inf"))
    assert efficiency(of_ranks[1], 1.0, sent, at_once) == pytest.approx(512 / 520)
    assert efficiency(slabs(512, 1, periodic=True)[0], 1.0, sent, link) == 1.0


def test_ranks_need_their_part_of_the_memory(tmp_path: Path) -> None:
    problem = HeatProblem.from_scenario(load(runs.write(tmp_path), PLANES))
    plans = plan_of_ranks(problem, 3)
    assert [plan.slab.count for plan in plans] == [8, 8, 8]
    assert halo_bytes(problem) == 4 * 7 * 5 * 4
    # The axis is periodic: each rank has two cuts.
    assert {plan.copy_bytes for plan in plans} == {(8 + 2 * 4) * 7 * 5 * 4}
    assert {plan.disk_bytes for plan in plans} == {Plan.of(problem).disk_bytes}


def test_the_plan_of_several_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(runs.write(tmp_path)), *(f"--set={override}" for override in PLANES)]
    assert main(["plan", *arguments, "--ranks", "2"]) == 0
    out = capsys.readouterr().out
    assert "ranks        2, each with 12 planes of its own and up to 8 of its neighbours" in out
    assert "halo         560 B over each cut and direction, every 4 steps" in out
    assert "% over one machine" in out
    for ranks, message in (("0", "--ranks = 0: a number of ranks from 1 on is expected"), ("9", "at most")):
        assert main(["plan", *arguments, "--ranks", ranks]) == 2
        assert message in capsys.readouterr().err
