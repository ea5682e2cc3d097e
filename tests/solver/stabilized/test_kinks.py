"""Steps across kinks of the surroundings: a wall in weather that is known by the hour."""

import json

import numpy as np
import pytest
from reference_substeps import Block, ReferenceSubsteps, classical_runge_kutta

from heatsim.physics.time.tolerance import Tolerance
from heatsim.solver.stabilized.controller import Controller
from heatsim.solver.stabilized.method import AdaptiveMethod, Step

HOUR = 3600.0
HOURS = np.arange(121.0)
_RNG = np.random.default_rng(1)
WEATHER = 5.0 * np.sin(HOURS * np.pi / 12.0) + np.cumsum(_RNG.normal(size=len(HOURS))) * 0.5
WALL = Block(
    (1, 1, 42), 0.9, 0.0, 1.6e6, 0.01, 20.0, ambient=lambda t, side: float(np.interp(t, HOURS * HOUR, WEATHER))
)


def method(tolerance: float, T: np.ndarray | None = None) -> AdaptiveMethod:
    return AdaptiveMethod(
        ReferenceSubsteps(WALL, np.zeros(WALL.shape) if T is None else T), Tolerance(tolerance, 20.0, 0.0, 0.0)
    )


def run(some: AdaptiveMethod, last: int, stops: slice = slice(None)) -> list[Step]:
    """To an hour; steps end at some of the hours."""
    steps = []
    for stop in (HOURS[1 : last + 1][stops] * HOUR).tolist():
        while some.t < stop:
            steps.append(some.step(stop, jump=False, kink=True))
    return steps


def exact() -> np.ndarray:
    T = np.zeros(WALL.shape)
    for hour in HOURS[:-1]:
        T = classical_runge_kutta(WALL, T, (hour + 1.0) * HOUR, hour * HOUR)
    return T


@pytest.fixture(scope="module")
def solution() -> np.ndarray:
    return exact()


@pytest.mark.parametrize("tolerance", [0.02, 0.1, 0.5])
def test_the_error_is_within_the_tolerance_and_few_steps_are_rejected(tolerance: float, solution: np.ndarray) -> None:
    some = method(tolerance)
    run(some, 120)
    backend = some.substeps
    assert isinstance(backend, ReferenceSubsteps)
    assert np.abs(backend.last.T - solution).max() <= tolerance
    assert some.work.rejected <= 0.05 * (some.work.steps + some.work.rejected)


def test_a_trial_is_done_once_and_not_at_each_kink() -> None:
    some = method(0.1)
    backend = some.substeps
    assert isinstance(backend, ReferenceSubsteps)
    run(some, 120)
    rates = sum(name == "rate" for name, _ in backend.calls)
    # Each tried step ends with a rate; at the start, and at the first kink, a trial takes two.
    assert rates == some.work.steps + some.work.rejected + 4


@pytest.mark.quick("2", "60")
@pytest.mark.parametrize("hours", [0, 1, 2, 60])
def test_a_restart_at_a_kink_gives_the_same_bits(hours: int) -> None:
    whole, first = method(0.1), method(0.1)
    run(whole, 120)
    run(first, hours)
    first.settle()
    saved = json.loads(json.dumps(first.save()))
    backend = first.substeps
    assert isinstance(backend, ReferenceSubsteps)
    second = method(0.1, backend.first.T)
    second.resume(saved)
    run(second, 120, slice(hours, None))
    assert second.save() == whole.save()


def test_the_first_step_after_a_kink_follows_the_one_after_the_last_kink() -> None:
    """By the third root of its error, and by a factor of three at most."""
    fresh = Controller(h=5.0).accepted(5.0, 0.5).kinked()
    assert fresh.h is None
    assert fresh.first
    after = fresh.started(1.0, 1e-2, 100.0).accepted(0.7, 0.5)
    assert not after.first
    later = after.accepted(3.0, 0.9)
    assert later.kinked().h == pytest.approx(0.8 * 0.7 * 0.5 ** (-1 / 3))
    assert later.jumped().h is None
    assert later.jumped().restart == later.restart
    assert fresh.started(1.0, 1e-2, 100.0).accepted(0.7, 0.0).kinked().h == pytest.approx(2.1)
    refused = later.kinked().refused(0.7, 8.0)
    assert refused.first
    assert refused.accepted(0.28, 1.0).kinked().h == pytest.approx(0.8 * 0.28)
    assert Controller.from_dict(refused.to_dict()) == refused
