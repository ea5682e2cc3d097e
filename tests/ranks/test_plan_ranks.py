"""`heatsim plan --ranks N`: memory, messages and the model of efficiency."""

from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim.cli import main
from heatsim.commands import terminal
from heatsim.parallel.halo import halo_bytes
from heatsim.parallel.rehearsal import rehearse
from heatsim.parallel.slab import slabs
from heatsim.physics.problem import HeatProblem
from heatsim.run import step_times
from heatsim.run.plan import Plan
from heatsim.run.plan_ranks import LINKS, describe_job
from heatsim.run.rank_model import Link, efficiency_of_cycles, efficiency_of_steps
from heatsim.run.work_time import WorkTime
from heatsim.scenario import load

pytestmark = pytest.mark.usefixtures("frozen_again")
PLANES = ("domain.cells=[7,5,24]", "domain.size=[0.07,0.05,0.24]")


def test_efficiency_counts_halo_planes_and_messages() -> None:
    """512³ cells a GPU, swept in 550 µs; the rank in the middle has two cuts."""
    link, at_once = Link("", 15e-6, 300e9), Link("", 0.0, float("inf"))
    sent = 4 * 512 * 512 * 4
    of_ranks, costs = slabs(3 * 512, 3, periodic=True, group=512), np.ones(3 * 512)
    found = efficiency_of_steps(of_ranks, costs, 3 * 550e-6, sent, link, writes_halo=True)
    assert found == pytest.approx(550 / (550 * 520 / 512 + 15 + 2 * 14), rel=1e-3)
    assert efficiency_of_steps(of_ranks, costs, 1.0, sent, at_once, writes_halo=True) == pytest.approx(512 / 520)
    assert efficiency_of_steps(slabs(512, 1, periodic=True), np.ones(512), 1.0, sent, link, writes_halo=True) == 1.0
    # The planes of the first third cost twice as much as the others.
    costs[:512] = 2.0
    assert efficiency_of_steps(of_ranks, costs, 1.0, sent, at_once, writes_halo=True) == pytest.approx(
        4 / 3 * 512 / (2 * 512 + 8)
    )


def test_copies_overlap_with_the_rest_of_a_sweep() -> None:
    """Two ranks of 100 planes, each of which takes 1 s; a divided sweep takes 22 s longer."""
    of_ranks, costs = slabs(200, 2, periodic=False), np.ones(200)
    for waited, taken in ((10.0, 122.0), (95.0, 122.0), (97.0, 123.0), (200.0, 226.0)):
        found = efficiency_of_steps(
            of_ranks, costs, 200.0, 1, Link("", waited, float("inf")), writes_halo=False, overlaps=True
        )
        assert found == pytest.approx(100.0 / taken)


AFTER, BESIDE = False, True


@pytest.mark.parametrize(
    ("overlaps", "cells", "planes", "itemsize", "sweep", "measured"),
    [
        # weak scaling, 22 November 2026
        (AFTER, 512, 1024, 4, 443.7e-6, 0.905),
        (AFTER, 768, 1536, 4, 1366.0e-6, 0.961),
        (AFTER, 1024, 2048, 4, 3289.7e-6, 0.966),
        (AFTER, 512, 1024, 8, 898.0e-6, 0.933),
        (AFTER, 768, 1536, 8, 2922.0e-6, 0.961),
        # weak and strong scaling, 23 November 2026
        (AFTER, 512, 1024, 4, 428.6e-6, 0.911),
        (AFTER, 768, 1536, 4, 1312.0e-6, 0.955),
        (AFTER, 1024, 2048, 4, 3234.0e-6, 0.968),
        (AFTER, 1024, 1024, 4, 3234.0e-6, 1.87 / 2),
        (BESIDE, 512, 1024, 4, 428.6e-6, 0.958),
        (BESIDE, 768, 1536, 4, 1312.0e-6, 0.972),
        (BESIDE, 1024, 2048, 4, 3234.0e-6, 0.980),
        (BESIDE, 512, 1024, 8, 871.4e-6, 0.970),
        (BESIDE, 1024, 1024, 4, 3234.0e-6, 1.91 / 2),
    ],
)
def test_the_model_agrees_with_two_gpus(
    overlaps: bool, cells: int, planes: int, itemsize: int, sweep: float, measured: float
) -> None:
    """Two H200 with NVLink, kernels/MEASUREMENTS.md; ``sweep``: of a cube on one GPU."""
    of_ranks, costs, whole = slabs(planes, 2, periodic=False), np.ones(planes), sweep * planes / cells
    sent, link = 4 * cells**2 * itemsize, LINKS["cuda"][0]
    found = efficiency_of_steps(of_ranks, costs, whole, sent, link, writes_halo=False, overlaps=overlaps)
    assert found == pytest.approx(measured, rel=0.03)


def test_efficiency_of_cycles_counts_levels_that_each_rank_solves_alone() -> None:
    """The finest level takes the work of five applications, other levels that of four; 16³ cells are not divided."""
    shapes = [(64, 64, 64), (32, 32, 32), (16, 16, 16), (8, 8, 8), (4, 4, 4)]
    at_once, slab = Link("", 0.0, float("inf")), slabs(64, 2, periodic=False)[0]
    alone = 5 + 4 / 8 + 4 / 64 + 4 / 512
    found = efficiency_of_cycles(slab, [(128, 64, 64), *shapes], 1.0, at_once, 0.0)
    # Levels of 2·64³ and 64³ cells are divided, with four halo planes; 32³ and fewer are not.
    taken = 5 * (0.5 + 4 / 128) + 4 / 2 * (0.5 + 4 / 64) + 4 / 16 + 4 / 128 + 4 / 1024
    assert found == pytest.approx((5 + 4 / 2 + 4 / 16 + 4 / 128 + 4 / 1024) / 2 / taken)
    # Three exchanges on the finest level, and two sums; none of the other levels is divided.
    waiting = efficiency_of_cycles(slab, shapes, 1e-3, Link("", 1e-3, float("inf")), 0.0)
    assert waiting == pytest.approx(alone / 2 / (5 * (0.5 + 4 / 64) + alone - 5 + 3 + 2))
    # Python queues the work of four levels in 8 s.
    assert efficiency_of_cycles(slab, shapes, 1.0, at_once, 2.0) == pytest.approx(alone / 2 / 8)
    assert efficiency_of_cycles(slabs(64, 1, periodic=False)[0], shapes, 1.0, at_once, 2.0) == 1.0


def test_ranks_need_their_part_of_the_memory(tmp_path: Path) -> None:
    scenario = load(runs.write(tmp_path), PLANES)
    plans = rehearse(3, lambda team: describe_job(scenario, team, np.ones(24))[0], lambda number, rank: None)
    problem = HeatProblem.from_scenario(scenario)
    assert [plan.slab.count for plan in plans] == [8, 8, 8]
    assert halo_bytes(problem.grid, problem.precision) == 4 * 7 * 5 * 4
    # The axis is periodic: each rank has two cuts.
    assert {plan.copy_bytes for plan in plans} == {(8 + 2 * 4) * 7 * 5 * 4}
    assert {plan.disk_bytes for plan in plans} == {Plan.of(problem).disk_bytes}


def test_the_plan_of_several_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [str(runs.write(tmp_path)), *(f"--set={override}" for override in PLANES)]
    assert main(["plan", *arguments, "--ranks", "2"]) == 0
    out = capsys.readouterr().out
    assert "ranks        2, each with 12 own planes and up to 8 halo planes" in out
    assert "halo         560 B over each cut in each direction, every 4 steps" in out
    assert "% over one machine" in out
    assert "times        of stepping the whole grid on one processor, from" in out
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_LINES", 0.0)
    # Times measured on a busy machine can scatter so much that none is found per application of the operator.
    monkeypatch.setattr(step_times, "measure_any_grid", lambda scenario: {"implicit": WorkTime(1e-4)})
    assert main(["plan", *arguments, "--set=time.method=implicit", "--ranks", "2"]) == 0
    out, err = capsys.readouterr()
    assert "planning rank " in err  # what takes long for large grids
    assert "halo         560 B over each cut in each direction, for each vector and level of a cycle" in out
    assert "% over one machine" in out
    for ranks, message in (("0", '--ranks = "0": expected a number of ranks, 1 or more'), ("9", "at most")):
        assert main(["plan", *arguments, "--ranks", ranks]) == 2
        out, err = capsys.readouterr()
        assert message in err
        assert out == ""  # refused before anything is painted or timed
