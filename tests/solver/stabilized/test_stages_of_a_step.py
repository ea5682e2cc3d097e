"""The stages of a step, and their choice."""

from itertools import pairwise
from math import inf

import pytest

from heatsim.solver.stabilized.scheme import all_stages, choose, longest_step


@pytest.mark.parametrize("stages", all_stages(), ids=lambda stages: f"s={stages.count}")
def test_intervals_tile_the_step_without_gaps(stages):
    pair = stages.pair
    intervals = [(substep.start, substep.end) for substep in stages.substeps]
    intervals.insert(pair.after, (pair.start, pair.end))
    assert intervals[0][0] == 0.0
    assert intervals[-1][1] == 1.0
    assert all(before[1] == after[0] for before, after in pairwise(intervals))
    assert pair.start < pair.middle < pair.end
    for substep in stages.substeps:
        assert substep.end - substep.start == pytest.approx(substep.delta, abs=3e-16)
    # Heat that is even in time has its mean in all stages together.
    moment = sum(substep.delta * substep.start for substep in stages.substeps) + pair.a * pair.middle
    assert moment == pytest.approx(0.5, abs=1e-14)


def test_a_step_has_the_fewest_stages_that_are_stable():
    dt_limit = 0.25
    for fewer, stages in pairwise(all_stages()):
        assert choose(fewer.longest(dt_limit), dt_limit) is fewer
        assert choose(fewer.longest(dt_limit) * (1 + 1e-12), dt_limit) is stages
    assert choose(1e-9, dt_limit) is all_stages()[0]


def test_a_step_beyond_all_polynomials_is_refused():
    longest = longest_step(2.0)
    assert choose(longest, 2.0).count == 514
    with pytest.raises(ValueError, match="longer than the longest stable one"):
        choose(longest * (1 + 1e-12), 2.0)


def test_a_body_without_a_limit_takes_the_fewest():
    assert choose(1e9, inf).count == 6
