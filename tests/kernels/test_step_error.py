"""The error of a step, and fields between its ends: on the CPU, on the host in the part of a GPU and on a GPU."""

from math import inf, nan
from typing import Any

import numpy as np
import pytest
from cuda_host.gpu import function_on_host, host_device
from numpy.typing import NDArray

from heatsim import device
from heatsim.device import Device
from heatsim.kernels import compiled
from heatsim.kernels.reductions.step_error import Fields, StepEnds, StepError, combine, step_errors
from heatsim.physics.cells.cell_types import INTERIOR

PRECISIONS = ("float32", "float64")
SHAPES = ((1, 1, 1), (2, 2, 2), (3, 5, 7), (1, 6, 4), (5, 1, 8), (4, 3, 1), (17, 18, 70))
VOID = 3
WEIGHTS = (0.8, 0.2, -0.8, 0.2)


def fields(shape: tuple[int, int, int], precision: str) -> list[NDArray[Any]]:
    """T0, F0, T1, F1."""
    return list(np.random.default_rng(sum(shape)).uniform(-50.0, 300.0, (4, *shape)).astype(precision))


def step_error(where: Device, fields: Fields, *void: Any) -> StepError:
    """The error of a step; ``void``: the cells and the type of void, if there is any."""
    (found,) = step_errors(where, [StepEnds(fields, WEIGHTS, *void)])
    return found


def largest_mean(e: NDArray[np.float64], counts: NDArray[np.bool_]) -> float:
    """By the definition, block by block."""
    largest = 0.0
    for corner in np.ndindex(*(-(-n // 2) for n in e.shape)):
        block = tuple(slice(2 * i, 2 * i + 2) for i in corner)
        if counts[block].any():
            largest = max(largest, abs(float(e[block][counts[block]].mean())))
    return largest


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("with_void", [False, True], ids=["solid", "void"])
def test_the_largest_mean_of_a_block_and_the_largest_cell_are_found(
    where: Device, precision: str, with_void: bool
) -> None:
    for shape in SHAPES:
        T0, F0, T1, F1 = fields(shape, precision)
        cells = np.random.default_rng(1).choice(np.array([0, VOID], np.uint8), shape)
        cells |= np.random.default_rng(2).choice(np.array([0, INTERIOR], np.uint8), shape)
        counts = (cells & (INTERIOR - 1)) != VOID if with_void else np.ones(shape, dtype=bool)
        e = 0.8 * (T0.astype(float) - T1) + 0.2 * (F0.astype(float) + F1)
        if with_void:
            T1[~counts] = nan  # whatever void holds
        given = [where.xp.asarray(field) for field in (T0, F0, T1, F1)]
        found = step_error(where, tuple(given), where.xp.asarray(cells), VOID if with_void else -1)
        assert found.mean == pytest.approx(largest_mean(e, counts), rel=1e-13)
        assert found.cell == pytest.approx(np.abs(e[counts]).max(initial=0.0), rel=1e-13)
        kept = T1[counts]
        assert (found.lowest, found.highest) == (kept.min(initial=inf), kept.max(initial=-inf))
        assert found.finite


def test_noise_of_a_cell_counts_for_an_eighth_in_the_mean(where: Device) -> None:
    still = where.xp.asarray(np.zeros((8, 8, 8)))
    noise = np.zeros((8, 8, 8))
    noise[3, 4, 5] = 1.0
    found = step_error(where, (still, still, where.xp.asarray(noise), still))
    assert found.mean == pytest.approx(0.1, rel=1e-15)
    assert found.cell == pytest.approx(0.8, rel=1e-15)


@pytest.mark.parametrize("value", [nan, inf, -inf])
@pytest.mark.parametrize("number", range(4))
def test_a_value_that_is_not_finite_is_found(where: Device, number: int, value: float) -> None:
    given = fields((5, 4, 6), "float32")
    given[number][4, 3, 5] = value
    assert not step_error(where, tuple(where.xp.asarray(field) for field in given)).finite


def test_all_devices_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "function", function_on_host)
    for shape in SHAPES:
        given = fields(shape, "float32")
        on_cpu = step_error(device.choose("cpu"), tuple(given))
        host = host_device()
        assert step_error(host, tuple(host.xp.asarray(field) for field in given)) == on_cpu


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_combination_is_rounded_once(where: Device, precision: str) -> None:
    weights = (0.3, -0.125, 0.7, 0.41)
    for shape in (*SHAPES, (33, 40, 50)):
        T0, F0, T1, F1 = fields(shape, precision)
        exact = sum(weight * field.astype(float) for weight, field in zip(weights, (T0, F0, T1, F1), strict=True))
        given = tuple(where.xp.asarray(field) for field in (T0, F0, T1, F1))
        out = where.xp.empty(shape, dtype=precision)
        combine(where, out, weights, given)  # type: ignore[arg-type]
        np.testing.assert_array_equal(where.to_host(out), exact.astype(precision))
        combine(where, given[3], weights, given)  # type: ignore[arg-type]
        np.testing.assert_array_equal(where.to_host(given[3]), exact.astype(precision))
