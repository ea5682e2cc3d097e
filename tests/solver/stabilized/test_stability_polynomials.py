"""Stability polynomials: bounded where they must be, of second order, and calm on the way."""

import json
from itertools import pairwise

import numpy as np
import pytest
from covering import SLOW

from heatsim.solver.stabilized.polynomials import (
    DAMPING,
    FILE,
    SUBSTEPS,
    VERSION,
    lebedev_order,
    optimal,
    pair,
    substeps_before_pair,
)
from heatsim.solver.stabilized.scheme import MOST_STAGES, Stages, all_stages

# Few stages are chosen one by one, many in steps of a few.
CHOSEN = [stages for stages in all_stages() if SLOW or stages.count % 3 == 0 or stages.count < 20]
EVERY = pytest.mark.parametrize("stages", CHOSEN, ids=lambda stages: f"s={stages.count}")
FLOAT32 = pytest.mark.parametrize(
    "stages",
    [stages for stages in CHOSEN if stages.count <= MOST_STAGES["float32"]],
    ids=lambda stages: f"s={stages.count}",
)


def spectrum(stages: Stages) -> np.ndarray:
    """z from −β to 0, dense at both ends."""
    return -stages.beta * (1 - np.cos(np.linspace(0, np.pi, 60 * stages.count))) / 2


def factors(stages: Stages, z: np.ndarray) -> np.ndarray:
    """By which each substep and the pair multiply a mode, in the order in which they are done; shape (s − 1, modes)."""
    rows = [1 + substep.delta * z for substep in stages.substeps]
    rows.insert(stages.pair.after, 1 + stages.pair.a * z + stages.pair.b * z * z)
    return np.array(rows)


@EVERY
def test_modes_are_halved_up_to_the_end_of_the_interval(stages: Stages) -> None:
    z = spectrum(stages)
    R = factors(stages, z).prod(axis=0)
    assert np.abs(R).max() <= 1
    # Slow modes, which the step resolves, decay like exp(z); at z = −1.2 they reach the damping.
    assert np.abs(R[z < -1.2]).max() <= DAMPING * (1 + 1e-9)
    slow = z > -0.1
    np.testing.assert_allclose(R[slow], np.exp(z[slow]), atol=0.12 * 0.1**3)


@EVERY
def test_the_interval_grows_with_the_square_of_the_stages(stages: Stages) -> None:
    assert 0.62 <= stages.beta / stages.count**2 <= 0.655


@EVERY
def test_the_order_is_two_to_rounding(stages: Stages) -> None:
    lengths = [(substep.start, substep.delta) for substep in stages.substeps]
    a, b = stages.pair.a, stages.pair.b
    assert sum(delta for _, delta in lengths) + a == pytest.approx(1.0, abs=1e-15)
    # ∫ τ dτ over the step, each stage with the time at which it takes its face values.
    moment = sum(start * delta for start, delta in lengths) + stages.pair.middle * a
    assert moment == pytest.approx(0.5, abs=1e-14)
    assert b == pytest.approx((a * a + sum(delta**2 for _, delta in lengths)) / 2, abs=1e-16)


@FLOAT32
def test_rounding_grows_slower_than_the_square_of_the_stages(stages: Stages) -> None:
    """With the pair last it would be 0.18·s⁴."""
    rows = factors(stages, spectrum(stages))
    after = np.abs(np.cumprod(rows[::-1], axis=0))[:-1]
    # Roundings of all stages in the same direction, and independent ones.
    assert 1 + after.max(axis=1).sum() <= max(160, 0.06 * stages.count**2)
    assert np.sqrt(1 + (after**2).mean(axis=1).sum()) <= max(62, 0.2 * stages.count)


@FLOAT32
def test_stages_stay_closer_to_the_range_than_with_the_pair_first(stages: Stages) -> None:
    rows = factors(stages, spectrum(stages))
    reached = np.abs(np.cumprod(rows, axis=0)).max()
    first = np.concatenate([rows[stages.pair.after][None], np.delete(rows, stages.pair.after, axis=0)])
    assert reached <= np.abs(np.cumprod(first, axis=0)).max() / 5
    assert reached <= 40 * stages.count**4


@pytest.mark.parametrize("count", [4, 20, 64])
def test_the_tables_are_those_that_the_module_calculates(count: int) -> None:
    content = json.loads(FILE.read_text())
    table = next(table for table in content["tables"] if table["substeps"] == count)
    polynomial = optimal(count + 2)
    assert content["version"] == VERSION
    assert table["beta"] == pytest.approx(polynomial.beta, rel=2e-9)
    np.testing.assert_allclose(np.sort(table["deltas"])[::-1], polynomial.deltas, rtol=1e-10)
    a, b = pair(polynomial.deltas)
    assert a > 0
    assert b > 0


def test_degrees_are_dense_and_fit_kernels_of_four_steps_a_sweep() -> None:
    assert [len(stages.substeps) for stages in all_stages()] == list(SUBSTEPS)
    assert (SUBSTEPS[0], SUBSTEPS[-1]) == (4, 512)
    assert all(count % 4 == 0 == substeps_before_pair(count) % 4 for count in SUBSTEPS)
    assert all(after <= max(before + 4, 1.126 * before) for before, after in pairwise(SUBSTEPS))


def test_lebedevs_order() -> None:
    assert lebedev_order(8) == [0, 7, 3, 4, 1, 6, 2, 5]
    for count in SUBSTEPS:
        assert sorted(lebedev_order(count)) == list(range(count))
