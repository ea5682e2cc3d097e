"""Steps that follow a tolerance: errors, jumps, rows in between, rejected and interrupted steps, restart."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import exp, floor, pi, sin
from typing import NamedTuple

import numpy as np
import pytest
from reference_substeps import Block, ReferenceSubsteps, Sums, classical_runge_kutta

from heatsim.errors import NotFiniteError, RunError
from heatsim.physics.time.stage_times import Side
from heatsim.physics.time.tolerance import Tolerance
from heatsim.solver.stabilized.interpolation import Weights
from heatsim.solver.stabilized.method import AdaptiveMethod, Step
from heatsim.solver.stabilized.substeps import Measure, StepInterrupted

CUBE = Block((16, 16, 16))
# A slab whose face swings by ± 20 K in 60 s.
SWINGING = Block((32, 1, 1), edge=0.1 / 32, coefficient=1e5, ambient=lambda t, side: 20.0 * sin(2 * pi * t / 60.0))
RADIATING = Block((10, 8, 6), 30.0, 0.0, 4.68e6, 0.01, 0.0, 0.9, lambda t, side: 300.0, hottest=1000.0)  # from 1,000 K


def switched(t: float, side: Side) -> float:
    """1 in the first half of every 4 s, else 0."""
    position = t / 2.0
    number = floor(position) - (position == floor(position) and side is Side.BEFORE)
    return 1.0 if number % 2 == 0 else 0.0


def on_for(t0: float, t1: float, side: Side) -> float:
    """Mean of the same over an interval that no jump divides."""
    return switched((t0 + t1) / 2, side)


# 4 W/cm³ for 2 s of every 4 s, while the surroundings jump by 30 K.
PULSED = Block(
    (8, 6, 10),
    edge=0.004,
    coefficient=4000.0,
    ambient=lambda t, side: 30.0 * switched(t, side),
    power=lambda t0, t1, side: 4e6 * on_for(t0, t1, side),
)
JUMPS = (2.0, 4.0, 6.0)


def method_for(
    block: Block, T0: float, tolerance: float, dtype: str = "f8", span: float | None = None
) -> AdaptiveMethod:
    """With a tolerance of the run; that of a step is the same if no span of temperatures is given."""
    backend = ReferenceSubsteps(block, np.full(block.shape, T0, dtype))
    return AdaptiveMethod(backend, Tolerance(tolerance, tolerance / 2e-4 if span is None else span, T0, T0))


def run(method: AdaptiveMethod, end: float, jumps: tuple[float, ...] = ()) -> list[Step]:
    """Steps until ``end``."""
    steps = []
    for stop in (*(jump for jump in jumps if method.t < jump < end), end):
        while method.t < stop:
            steps.append(method.step(stop, stop in jumps))
    return steps


def backend_of(method: AdaptiveMethod) -> ReferenceSubsteps:
    assert isinstance(method.substeps, ReferenceSubsteps)
    return method.substeps


def residual(backend: ReferenceSubsteps, T: np.ndarray, sums: Sums) -> float:
    """Imbalance of a state as a part of the heat that has passed."""
    stored = (float(T.sum(dtype=np.float64)) - backend.start) * backend.block.capacity
    return abs(stored - sums.through - sums.given) / (abs(sums.through) + abs(sums.given) + abs(stored))


# The body, its temperature at first, the end in s and the range in K.
CASES = {
    "cube": (CUBE, 80.0, 30.0, 80.0),
    "swinging": (SWINGING, 0.0, 100.0, 40.0),
    "radiating": (RADIATING, 1000.0, 600.0, 700.0),
}


@cache
def exact_end(case: str) -> np.ndarray:
    """The field at the end of a case."""
    block, T0, end, _ = CASES[case]
    return classical_runge_kutta(block, np.full(block.shape, T0), end)


@pytest.mark.each_value
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("part", [1e-2, 1e-3, 2e-4])
def test_the_error_stays_within_the_tolerance(case: str, part: float) -> None:
    """From 1 % of the range to the default, 0.02 % of it."""
    block, T0, end, span = CASES[case]
    tolerance = part * span
    method = method_for(block, T0, tolerance, span=span)
    steps = run(method, end)
    assert np.abs(backend_of(method).last.T - exact_end(case)).max() <= tolerance
    assert all(step.error <= step.tolerance for step in steps)
    assert steps[-1].end == method.t == end
    assert all(before.end == after.start for before, after in pairwise(steps))


def test_a_tighter_tolerance_brings_a_smaller_error() -> None:
    """The error of a run is its tolerance: a hundredth of it leaves a hundredth of the error."""
    errors = []
    for tolerance in (0.1, 0.001):
        method = method_for(SWINGING, 0.0, tolerance, span=CASES["swinging"][3])
        run(method, 100.0)
        errors.append(np.abs(backend_of(method).last.T - exact_end("swinging")).max())
    assert errors[1] <= errors[0] / 50


def test_few_steps_are_rejected() -> None:
    """With the default tolerance of 0.02 % of the range."""
    methods = []
    for block, T0, end, span in CASES.values():
        methods.append(method_for(block, T0, 2e-4 * span))
        run(methods[-1], end)
    assert sum(method.work.rejected for method in methods) <= 0.05 * sum(method.work.steps for method in methods)


def test_a_quenched_cube_takes_few_stages() -> None:
    """30 s at 0.1 K; Euler needs 1,997 steps of 0.9 of its limit."""
    block = Block((32, 32, 32), edge=0.1 / 32)
    method = method_for(block, 80.0, 0.1)
    steps = run(method, 30.0)
    assert method.work.stages <= 330
    assert method.work.steps == len(steps)
    assert method.work.rejected == sum(step.rejected for step in steps)
    # Stages that were accepted stay in the physical range.
    assert backend_of(method).seen[0] > 0.0
    assert backend_of(method).seen[1] <= 80.0 + 1e-9


def test_float32_takes_the_same_steps() -> None:
    """Means over 2 × 2 × 2 cells keep rounding out of the estimate, at 10⁻³ of the range."""
    work = []
    for dtype in ("f8", "f4"):
        method = method_for(PULSED, 0.0, 0.03, dtype)
        run(method, 8.0, JUMPS)
        work.append(method.work.stages)
    assert work[1] <= 1.1 * work[0]


def test_steps_end_at_jumps_with_the_values_before_and_start_with_those_after() -> None:
    method = method_for(PULSED, 0.0, 0.01)
    steps = run(method, 8.0, JUMPS)
    exact = np.zeros(PULSED.shape)
    for start in (0.0, *JUMPS):  # on, off, on, off
        on = start % 4.0 == 0.0
        constant = replace(PULSED, ambient=lambda t, side, on=on: 30.0 * on, power=lambda t0, t1, side, on=on: 4e6 * on)
        exact = classical_runge_kutta(constant, exact, start + 2.0, start)
    assert np.abs(backend_of(method).last.T - exact).max() <= 0.01
    assert {step.end for step in steps} >= {*JUMPS, 8.0}
    sides = [(t, side) for name, (_, t, side) in backend_of(method).calls if t in JUMPS]
    assert sides == [(t, side) for t in JUMPS for side in (Side.BEFORE, Side.AFTER)]
    # The limit before a jump and a new first step after it: no step is rejected because of them.
    assert method.work.rejected <= 0.05 * method.work.steps


@pytest.mark.parametrize(("dtype", "allowed"), [("f8", 1e-12), ("f4", 1e-5)])
def test_the_ledger_closes_at_the_ends_of_steps_and_between(dtype: str, allowed: float) -> None:
    method = method_for(PULSED, 20.0, 0.3, dtype)
    backend = backend_of(method)
    # Far too long a step: it is rejected, and its heat with it.
    run(method, 0.5, JUMPS)
    method.controller = replace(method.controller, h=100.0)
    for stop in (*JUMPS, 8.0):
        while method.t < stop:
            step = method.step(stop, stop in JUMPS)
            assert residual(backend, backend.last.T, backend.last.sums) <= allowed
            for theta in (0.1, 0.5, 0.77):
                method.interpolate(step.start + theta * step.h)
                T, stored, sums = backend.shown
                assert residual(backend, T, sums) <= allowed
                assert stored == pytest.approx((T.sum(dtype=np.float64) - backend.start) * PULSED.capacity)
    assert method.work.rejected >= 1


@pytest.mark.slow
def test_rows_between_are_as_exact_as_those_at_the_ends_of_steps() -> None:
    tolerance, end = 0.1, 30.0
    method = method_for(CUBE, 80.0, tolerance)
    exact, T = {}, np.full(CUBE.shape, 80.0)
    for number in range(30):
        T = exact[number + 1.0] = classical_runge_kutta(CUBE, T, number + 1.0, float(number))
    while method.t < end:
        step = method.step(end, False)
        for t, expected in exact.items():
            if step.start < t <= step.end:
                method.interpolate(t)
                assert np.abs(backend_of(method).shown[0] - expected).max() <= tolerance
    method.interpolate(end)
    np.testing.assert_array_equal(backend_of(method).shown[0], backend_of(method).last.T)


@pytest.mark.parametrize("stop", [0.6, 2.0, 5.3])
def test_a_restart_gives_the_same_bits(stop: float) -> None:
    """From a checkpoint within a smooth interval, and from one at a jump."""
    whole = method_for(PULSED, 10.0, 0.2)
    run(whole, 8.0, JUMPS)

    first = method_for(PULSED, 10.0, 0.2)
    for until in (*JUMPS, 8.0):
        while first.t < min(until, stop):
            first.step(until, until in JUMPS)
    first.settle()
    saved = json.loads(json.dumps(first.save()))
    state = backend_of(first).first

    backend = ReferenceSubsteps(PULSED, state.T)
    backend.first.sums = state.sums
    second = AdaptiveMethod(backend, Tolerance(0.2, 1000.0, 10.0, 10.0))
    second.resume(saved)
    run(second, 8.0, JUMPS)
    np.testing.assert_array_equal(backend.last.T, backend_of(whole).last.T)
    assert backend.last.sums == backend_of(whole).last.sums
    assert second.save() == whole.save()


@pytest.mark.parametrize("tried", [1, 2, 5])
def test_an_interrupted_step_leaves_no_trace(tried: int) -> None:
    whole = method_for(PULSED, 10.0, 0.2)
    run(whole, 2.0, JUMPS)
    method = method_for(PULSED, 10.0, 0.2)
    backend_of(method).interrupt = tried
    with pytest.raises(StepInterrupted):
        run(method, 2.0, JUMPS)
    saved = method.save()
    assert saved["work"]["steps"] == tried - 1
    assert method.last is None  # the field at t is the first end
    state = backend_of(method).first
    again = AdaptiveMethod(ReferenceSubsteps(PULSED, state.T), Tolerance(0.2, 1000.0, 10.0, 10.0))
    backend_of(again).first.sums = state.sums
    again.resume(saved)
    for continued in (method, again):
        run(continued, 2.0, JUMPS)
        np.testing.assert_array_equal(backend_of(continued).last.T, backend_of(whole).last.T)
        assert continued.save() == whole.save()


def test_states_outside_the_bounds_are_rejected() -> None:
    class Overshooting(ReferenceSubsteps):
        """Its first long step ends 5 K above what surroundings allow."""

        over = True

        def measure(self, weights: Weights, stages: int) -> Measure:
            size, low, high = super().measure(weights, stages)
            if weights.last and self.over:
                self.over = False
                return Measure(size, low, 85.0)
            return Measure(size, low, high)

    backend = Overshooting(CUBE, np.full(CUBE.shape, 80.0))
    method = AdaptiveMethod(backend, Tolerance(0.1, 80.0, 80.0, 80.0), bounds=(0.0, 80.0))
    step = method.step(30.0, False)
    assert step.rejected == 1
    assert method.work.rejected == 1
    assert method.work.stages > step.stages


class SomeDrives(NamedTuple):
    """Drives that allow steps of one length."""

    most: float

    def longest(self, time: float, h: float, tolerance: Tolerance) -> float:
        return min(h, self.most)

    def bent(self, time: float, h: float) -> float:
        return 0.0


def test_a_pulse_of_the_surroundings_is_seen_if_steps_are_not_longer() -> None:
    """For some 20 s of 700 s, while a single long step would take no face values."""
    block = Block(
        (8, 1, 1), edge=0.0125, coefficient=2000.0, ambient=lambda t, side: 50.0 * exp(-(((t - 525.0) / 5.0) ** 2))
    )
    exact = classical_runge_kutta(block, np.zeros(block.shape), 700.0)
    method = method_for(block, 0.0, 0.05)
    method.drives = SomeDrives(10.0)
    steps = run(method, 700.0)
    assert max(step.h for step in steps) <= 10.0
    assert np.abs(exact).max() > 0.2
    assert np.abs(backend_of(method).last.T - exact).max() <= 0.05


def test_the_default_tolerance_grows_with_the_range_of_the_field() -> None:
    backend = ReferenceSubsteps(PULSED, np.full(PULSED.shape, 20.0))
    method = AdaptiveMethod(backend, Tolerance(None, 0.0, 20.0, 20.0))
    steps = run(method, 2.0, JUMPS)
    span = method.tolerance.high - method.tolerance.low
    assert span > 5.0  # 1 mK is 0.02 % of 5 K
    assert steps[0].tolerance == 0.4 * 1e-3
    assert steps[-1].tolerance == pytest.approx(0.4 * 2e-4 * span)
    assert method.save()["tolerance"] == {"low": method.tolerance.low, "high": method.tolerance.high}


def test_a_field_that_is_not_finite_ends_the_run() -> None:
    method = method_for(CUBE, 80.0, 0.1)
    backend_of(method).first.T[3, 4, 5] = np.nan
    with pytest.raises(NotFiniteError, match=r"NaN or infinity in the field after t = 0\.0 s"):
        method.step(30.0, False)


def test_a_tolerance_below_rounding_is_refused_with_a_remedy() -> None:
    method = method_for(CUBE, 80.0, 1e-9, "f4")
    with pytest.raises(RunError, match=r"time.tolerance = 1e-09 K cannot be met .* raise time.tolerance"):
        run(method, 30.0)


def test_a_body_that_does_not_change_takes_one_step() -> None:
    method = method_for(CUBE, 0.0, 0.1)
    assert [step.h for step in run(method, 30.0)] == [30.0]
    single = method_for(Block((1, 1, 1)), 50.0, 0.1)
    run(single, 1e6)
    assert float(backend_of(single).last.T.max()) == 50.0
