"""`heatsim plan --ranks N`: memory, messages and the model of efficiency."""

from pathlib import Path

import numpy as np
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
    """512³ cells a GPU, swept in 550 µs; the rank in the middle has two cuts."""
    link, at_once = Link("", 15e-6, 300e9), Link("", 0.0, float("inf"))
    sent = 4 * 512 * 512 * 4
    of_ranks, costs = slabs(3 * 512, 3, periodic=True, group=512), np.ones(3 * 512)
    found = efficiency(of_ranks, costs, 3 * 550e-6, sent, link)
    assert found == pytest.approx(550 / (550 * 520 / 512 + 15 + 2 * 14), rel=1e-3)
    assert efficiency(of_ranks, costs, 1.0, sent, at_once) == pytest.approx(512 / 520)
    assert efficiency(slabs(512, 1, periodic=True), np.ones(512), 1.0, sent, link) == 1.0
    # The planes of the first third cost twice as much as the others.
    costs[:512] = 2.0
    assert efficiency(of_ranks, costs, 1.0, sent, at_once) == pytest.approx(4 / 3 * 512 / (2 * 512 + 8))


@pytest.mark.parametrize(
    ("edge", "itemsize", "sweep", "measured"),
    [
        (512, 4, 443.0e-6, 0.912),
        (768, 4, 1360.8e-6, 0.958),
        (1024, 4, 3274e-6, 0.958),
        (512, 8, 902.3e-6, 0.933),
        (768, 8, 2970.4e-6, 0.958),
    ],
)
def test_the_model_agrees_with_two_gpus(edge: int, itemsize: int, sweep: float, measured: float) -> None:
    """Weak scaling on two H200 with NVLink, kernels/MEASUREMENTS.md."""
    of_ranks, costs = slabs(2 * edge, 2, periodic=False), np.ones(2 * edge)
    found = efficiency(of_ranks, costs, 2 * sweep, 4 * edge * edge * itemsize, LINKS["cuda"][0])
    assert found == pytest.approx(measured, rel=0.03)


def test_ranks_need_their_part_of_the_memory(tmp_path: Path) -> None:
    problem = HeatProblem.from_scenario(load(runs.write(tmp_path), PLANES))
    plans = plan_of_ranks(problem, 3, np.ones(24))
    assert [plan.slab.count for plan in plans] == [8, 8, 8]
    assert halo_bytes(problem) == 4 * 7 * 5 * 4
    # The axis is periodic: each rank has two cuts.
    assert {plan.copy_bytes for plan in plans} == {(8 + 2 * 4) * 7 * 5 * 4}
    assert {plan.disk_bytes for plan in plans} == {Plan.of(problem).disk_bytes}


def test_the_plan_of_several_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(runs.write(tmp_path)), *(f"--set={override}" for override in PLANES)]
    assert main(["plan", *arguments, "--ranks", "2"]) == 0
    out = capsys.readouterr().out
    assert "ranks        2, each with 12 own planes and up to 8 halo planes" in out
    assert "halo         560 B over each cut in each direction, every 4 steps" in out
    assert "% over one machine" in out
    assert main(["plan", *arguments, "--set=time.method=implicit", "--ranks", "2"]) == 0
    out = capsys.readouterr().out
    assert "halo         560 B over each cut in each direction, for each vector and level of a cycle" in out
    assert "efficiency" not in out
    for ranks, message in (("0", "--ranks = 0: expected a number of ranks, 1 or more"), ("9", "at most")):
        assert main(["plan", *arguments, "--ranks", ranks]) == 2
        assert message in capsys.readouterr().err
