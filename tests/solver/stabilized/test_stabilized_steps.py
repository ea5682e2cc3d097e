"""One step of fixed length: its order, its rounding, its ledger."""

from dataclasses import replace
from math import cos, sin

import numpy as np
import pytest
from reference_substeps import Block, ReferenceSubsteps, classical_runge_kutta

from heatsim.physics.time.stage_times import Side
from heatsim.solver.stabilized.scheme import Stages, all_stages
from heatsim.solver.stabilized.substeps import End

LINEAR = Block((12, 1, 1), edge=0.01)
SWINGING = replace(LINEAR, coefficient=5000.0, ambient=lambda t, side: 10.0 * sin(t / 8.0))
HEATED = replace(
    LINEAR,
    power=lambda t0, t1, side: 4e6 * ((sin(t1 / 9.0) - sin(t0 / 9.0)) * 9.0 / (t1 - t0) if t1 > t0 else cos(t0 / 9.0)),
)
# k grows by half over the range; the surface radiates as much as 60 W/(m² K).
NONLINEAR = Block((12, 1, 1), 30.0, 5e-4, 4e6, 0.01, 0.0, 1.0, lambda t, side: 400.0, hottest=1000.0)
RADIATING = replace(NONLINEAR, ambient=lambda t, side: 700.0 + 300.0 * sin(t / 200.0))
BODIES = {"linear": LINEAR, "swinging face": SWINGING, "source": HEATED, "k(T)": NONLINEAR, "radiation": RADIATING}


def stages_with(count: int) -> Stages:
    return next(stages for stages in all_stages() if stages.count == count)


def fixed_steps(block: Block, T: np.ndarray, count: int, h: float, steps: int, start: float = 0.0) -> ReferenceSubsteps:
    """That many steps of the same length."""
    backend = ReferenceSubsteps(block, T)
    for step in range(steps):
        backend.advance(stages_with(count), start + step * h, h)
        backend.accept()
    return backend


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize(("count", "part"), [(6, 8), (14, 16), (38, 64)])
def test_the_order_is_two(name: str, count: int, part: int) -> None:
    """Also where conduction, surfaces and sources change on the way, as soon as a step resolves all modes."""
    block = BODIES[name]
    start = 40 * block.dt_limit  # until the field fits its surroundings
    end = start + 8 * stages_with(count).longest(block.dt_limit) / part
    T = classical_runge_kutta(block, np.full(block.shape, 900.0), start)
    exact = classical_runge_kutta(block, T, end, start)
    coarse, fine = (
        np.abs(fixed_steps(block, T, count, (end - start) / n, n, start).first.T - exact).max() for n in (8, 16)
    )
    assert 1.85 <= np.log2(coarse / fine) <= 2.25


@pytest.mark.parametrize("count", [6, 18, 66, 130, 258])
def test_rounding_of_float32_is_small_against_the_range(count: int) -> None:
    """A quench with the longest steps, whose stages go far beyond the range."""
    block = Block((16, 16, 16), 1.0, 0.0, 1.0, 1.0, 0.05, ambient=lambda t, side: -1.0)
    h = stages_with(count).longest(block.dt_limit)
    double, single = (
        fixed_steps(block, np.zeros(block.shape, precision), count, h, 3).first.T for precision in ("f8", "f4")
    )
    assert single.dtype == np.float32
    assert np.abs(double - single).max() <= 4e-5 * np.abs(double).max()


def test_no_step_creates_heat() -> None:
    """Stages of the longest steps go far beyond the range; the ledger closes to the rounding of those."""
    block = replace(HEATED, shape=(10, 6, 8), ambient=lambda t, side: 10.0 * sin(t / 8.0))
    backend = fixed_steps(block, np.full(block.shape, 50.0), 66, stages_with(66).longest(block.dt_limit), 5)
    sums = backend.first.sums
    stored = (float(backend.first.T.sum()) - backend.start) * block.capacity
    beyond = max(abs(extreme) for extreme in backend.seen) * block.capacity * backend.first.T.size
    assert abs(stored - sums.through - sums.given) <= 5 * 66 * 2**-53 * beyond
    assert abs(sums.through) > 1e4


def test_sources_bring_their_energy_however_short_their_pulses() -> None:
    """A pulse between two stages: intervals of stages tile the step, so nothing of it is lost or counted twice."""
    begin, end = 0.311, 0.317

    def power(t0: float, t1: float, side: Side) -> float:
        return 1e9 * max(0.0, min(t1, end) - max(t0, begin)) / (t1 - t0)

    block = replace(LINEAR, power=power)
    backend = fixed_steps(block, np.zeros(block.shape), 18, 1.0, 1)
    energy = 1e9 * (end - begin) * block.edge**3 * 12
    assert backend.first.sums.given == pytest.approx(energy, rel=1e-12)


@pytest.mark.parametrize("end", list(End))
def test_a_rate_enters_nothing_in_the_ledger(end: End) -> None:
    backend = ReferenceSubsteps(LINEAR, np.full(LINEAR.shape, 50.0))
    backend.rate(end, 0.0, Side.AFTER)
    assert backend.first.sums.through == backend.last.sums.through == 0.0
