"""Random scenarios that try to deceive the methods in time, against the exact solution of their cells."""

from collections.abc import Iterable

import numpy as np
import pytest
from adversary.judge import extremes, judge, run
from adversary.random_cases import random_case
from adversary.semi_discrete import Body, solve

pytestmark = pytest.mark.usefixtures("one_thread")

# In CI not those that take long, and none of which the error is far below the tolerance.
IN_CI, ONCE = [seed for seed in range(26) if seed not in (0, 5, 6, 13, 14, 15, 18, 22, 23)], 10_000


def all_within_the_tolerance(seeds: Iterable[int]) -> None:
    wrong = [verdict for seed in seeds if (verdict := judge(random_case(seed))).faults]
    assert not wrong, "\n".join(f"seed {v.case.seed}, {v.method}: {'; '.join(v.faults)}" for v in wrong)


@pytest.mark.parametrize("turn", range(4))
def test_cells_follow_their_equations(turn: int) -> None:
    """Every row of every cell within three tolerances; given heats to 1e-6."""
    all_within_the_tolerance(IN_CI[turn::4])


def test_heat_that_bends_hides_no_error() -> None:
    """Cells with rates λ of 1.1 to 1.8 1/s follow |sin(ω·t)| with ω = 1.6 1/s: λ²·dT/dt cancels d²q/dt² in d³T/dt³."""
    verdict = judge(random_case(21041))
    assert not verdict.faults
    assert verdict.error < 2.0


def test_an_error_that_rounding_could_be_counts() -> None:
    """Planes behind contacts level out with alternating signs, in float32 with steps of 18 stages.

    Rounding could cause 3,200 u·T in a cell, causes 220, and hid an error of 1,900.
    """
    verdict = judge(random_case(104218))
    assert not verdict.faults
    assert verdict.error < 2.2


def test_the_judge_sees_kinks_between_a_node_and_the_end_of_a_panel() -> None:
    """The heat through a face whose flux is a clipped sine, against a sum over a million intervals."""
    case = random_case(20201)
    body = Body(case.document)
    (flux,) = (drive for drive in body.drives if drive.owner == "z_min")
    middles = (np.arange(1_000_000) + 0.5) * body.end / 1e6
    exact = flux.amount(middles).mean() * body.end * flux.share.sum()
    heat = solve(body, np.array([0.0, body.end]), case.marks).heats["z_min"][-1]
    assert heat == pytest.approx(exact, rel=1e-6)


def test_heat_of_a_steep_slope_is_not_that_after_it() -> None:
    """Heats on slopes of 0.2 µs of a run of 0.19 s; the rate just before their end once said that no step is right."""
    assert not judge(random_case(604842)).faults


def test_rates_at_ends_of_steps_are_of_a_moment_that_is_short_beside_them() -> None:
    """A pulse of 4 µs in 200 s: 1,098 steps where rates were means over 0.2 µs; a shorter pulse was never passed."""
    document = {
        "domain": {"size": [0.02, 0.01, 0.01], "cells": [4, 2, 2]},
        "material": {"conductivity": 2e8, "density": 2000.0, "specific_heat": 500.0},
        "initial": {"temperature": 300.0},
        "boundaries": {"z_max": {"type": "convection", "coefficient": 1e8, "ambient": 300.0}},
        "sources": [{"power": 1e6, "scale": "exp(-((t - 127.4)/4e-6)^2)"}],
        "time": {"end": 200.0, "method": "implicit"},
        "solver": {"device": "cpu"},
        "output": {"figures": False, "fields": False, "error": "none", "probe_every": 200.0},
        "probes": [{"name": "hottest", "statistic": "max"}],
    }
    found = run(document)
    assert found.energy["sources"][-1] == pytest.approx(np.sqrt(np.pi) * 4.0, rel=1e-6)
    assert found.summary["steps"] < 300


@pytest.mark.parametrize("seed", [603084, 604875])
def test_the_judge_sees_extremes_before_and_after_the_middle_of_a_pulse(seed: int) -> None:
    """A flux that takes out more heat than there is for 0.15 s; the surface of a body, later than its flux."""
    case = random_case(seed)
    body = Body(case.document)
    times = [a + part * w for a, w in case.marks for part in np.linspace(-3.0, 3.0, 121)]
    low, high = extremes(case, body)
    closely = solve(body, np.unique([0.0, *times]), case.marks)
    assert (low, high) == pytest.approx((closely.low, closely.high), abs=0.05 * (high - low))


def test_the_judge_knows_bodies_that_would_fall_below_zero_while_they_radiate() -> None:
    assert judge(random_case(1006448)).method == "refused"


@pytest.mark.slow
def test_strong_films_that_fall_below_what_half_cells_conduct_are_followed() -> None:
    """Films of up to 16 MW/(m² K) that fall to 16 kW/(m² K) for 24 µs, 25 times: each time was off the same way."""
    verdict = judge(random_case(1004287))
    assert not verdict.faults
    assert verdict.error < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, ONCE, 120))
def test_many_more_follow_their_equations(first: int) -> None:
    all_within_the_tolerance(seed for seed in range(first, min(first + 120, ONCE)) if seed not in IN_CI)
