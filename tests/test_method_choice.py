"""The work of each method is counted from numbers of the problem, and agrees with what runs took."""

from math import inf

import numpy as np
import pytest
import runs

from heatsim.physics.jumps import Jumps
from heatsim.physics.problem import HeatProblem
from heatsim.run.method_choice import WorkEstimate, count_work, euler_steps, stages_between
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe, rounding_note
from heatsim.scenario import load
from heatsim.solver import device_bytes


def problem(at, *overrides):
    return HeatProblem.from_scenario(load(runs.write(at), ["time.method=stabilized", *overrides]))


@pytest.mark.parametrize(
    ("euler", "measured", "edges", "melts"),
    [
        (7_990, 546, 1, False),  # a quenched cube of 64³ cells
        (127_836, 2_195, 1, False),  # of 256³ cells
        (2_627, 318, 1, False),  # a block that radiates
        (419_430, 18_101, 14, False),  # a wall through a week, whose surroundings turn twice a day
        (25_205, 7_053, 1, True),  # wax that melts in steel
        (54_270, 3_918, 6, False),  # a power module, switched five times
    ],
)
def test_counted_stages_are_those_of_runs_at_a_thousandth_of_the_range(euler, measured, edges, melts):
    """Stages that prototypes of the method took, which the factor was not fitted to but for the cubes."""
    fewest, most = stages_between(np.linspace(0.0, 0.9 * euler, edges + 1), 1.0, 1e-3, melts)
    assert fewest <= measured <= most
    assert most <= 9 * fewest


def test_stages_grow_with_the_root_of_time_and_slowly_with_the_tolerance():
    edges = np.array([0.0, 1e4])
    (few, _), (more, _) = stages_between(edges, 1.0, 1e-3, False), stages_between(4.0 * edges, 1.0, 1e-3, False)
    assert more / few == pytest.approx(2.0, rel=0.01)
    (tight, _) = stages_between(edges, 1.0, 1e-4, False)
    assert tight / few == pytest.approx(10.0 ** (1.0 / 6.0), rel=0.01)


def test_a_short_interval_takes_a_whole_step():
    """Six stages are the fewest of a step; with 1,000 jumps there are 1,001 steps."""
    fewest, most = stages_between(np.linspace(0.0, 1.0, 1002), 1.0, 1e-3, False)
    assert fewest == 4 * 1001
    assert most == 12 * 1001


def test_nothing_conducts():
    assert euler_steps(10.0, inf, 0.9) == 1
    assert stages_between(np.array([0.0, 10.0]), inf, 1e-3, False)[0] == 6


def test_the_choice_needs_a_gain_of_three():
    none = Jumps(np.zeros(0), np.zeros(0, dtype=bool))
    assert WorkEstimate(3_000, (500, 2_000), none, 0.1).stabilized_pays
    assert not WorkEstimate(2_999, (500, 2_000), none, 0.1).stabilized_pays


def test_plan_shows_stages_as_a_range(tmp_path):
    """With the memory of five fields, without coefficients of Euler steps, without advice about their rounding."""
    long = ("time.end=2e4", "output.every=1e3", "output.probe_every=1e3", "boundaries.x_min.value=310")
    plan = Plan.of(problem(tmp_path, *long, "time.tolerance=0.05 K"))
    text = describe(plan)
    work = count_work(plan.problem)
    assert "at most 0.05 K" in text
    assert "stages       about" in text
    euler = Plan.of(HeatProblem.from_scenario(load(tmp_path / "mixed.toml", long)))
    assert work.stages[0] < work.stages[1] < work.euler <= euler.problem.timeline.last_step <= 1.01 * work.euler
    assert "c0" not in text
    assert "dt  " not in text
    assert euler.problem.timeline.last_step > 10_000
    assert rounding_note(plan.problem) == ""
    assert [device_bytes.of_run(of.problem).fields for of in (plan, euler)] == [5, 2]
    default = describe(Plan.of(problem(tmp_path)))
    assert "0.02 % of the temperature range" in default


def test_plan_counts_jumps(tmp_path):
    # The coefficient of x_max has a kink at 5 s.
    switched = 'sources=[{power = 1.0, during = [0.1, 0.2], scale = "abs(t - 0.15)"}]'
    text = describe(Plan.of(problem(tmp_path, switched)))
    assert "jumps        4, 2 of them kinks" in text
