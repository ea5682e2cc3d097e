"""Random scenarios that try to deceive the methods in time, against the exact solution of their cells."""

import pytest
from adversary.judge import judge
from adversary.random_cases import random_case

pytestmark = pytest.mark.usefixtures("one_thread")

IN_CI, ONCE, AT_ONCE = 40, 10_000, 10


def all_within_the_tolerance(first: int) -> None:
    wrong = [verdict for seed in range(first, first + AT_ONCE) if (verdict := judge(random_case(seed))).faults]
    assert not wrong, "\n".join(f"seed {v.case.seed}, {v.method}: {'; '.join(v.faults)}" for v in wrong)


@pytest.mark.parametrize("first", range(0, IN_CI, AT_ONCE))
def test_cells_follow_their_equations(first: int) -> None:
    """Every row of every cell within three tolerances; given heats to 1e-6."""
    all_within_the_tolerance(first)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(IN_CI, ONCE, AT_ONCE))
def test_many_more_follow_their_equations(first: int) -> None:
    all_within_the_tolerance(first)
