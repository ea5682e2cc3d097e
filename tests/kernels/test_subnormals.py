"""CPU kernels flush subnormal numbers to zero, and do not change the arithmetic of their caller."""

from dataclasses import replace

import numpy as np
import pytest
from composite_executor import VARIANTS as COMPOSITE_VARIANTS
from composite_executor import on_cpu
from executor import VARIANTS
from numpy.typing import NDArray
from test_composite_kernels import body
from test_cpu_numba import made_tiling
from test_kernels import random_steps

from heatsim.kernels.catalog import KERNELS
from heatsim.kernels.cpu import tiling
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.kernels.cpu.subnormals import FLUSHES
from heatsim.physics.matter.coefficients import Scheme

CPU = tuple(spec for spec in KERNELS if spec.backend == "cpu")
NOTHING = (np.zeros((0, 0)),) * 6


def tiny(shape: tuple[int, ...], precision: str, seed: int) -> NDArray[np.floating]:
    """Zeros, and numbers from subnormal ones to 10⁹ times the smallest normal one."""
    rng, least = np.random.default_rng(seed), float(np.finfo(precision).smallest_normal)
    values = rng.choice([-1.0, 1.0], shape) * least * 10.0 ** rng.uniform(-4.0, 9.0, shape)
    values[rng.random(shape) < 0.2] = 0.0
    return values.astype(precision)


@pytest.mark.parametrize(("precision", "scheme"), VARIANTS)
@pytest.mark.parametrize("workers", [1, 2])
def test_kernels_agree_to_the_bit(
    workers: int, precision: str, scheme: Scheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = random_steps((19, 13, 11), (False, True, False), 3, steps=7)
    made = made_tiling(steps, precision, 4, 5, 9, workers)
    monkeypatch.setattr(tiling, "choose", lambda *of_grid: made)
    T, none = tiny((11, 13, 19), precision, 1), np.zeros((7, 6), precision)
    found = [
        kernel(
            T.copy(), np.full_like(T, np.nan), steps.periodic, steps.c.astype(precision), none, none, NOTHING, scheme
        )[0]
        for kernel in CPU_KERNELS.values()
    ]
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize(("precision", "scheme"), COMPOSITE_VARIANTS)
@pytest.mark.parametrize("varying", [False, True])
def test_kernels_for_composite_bodies_agree_to_the_bit(varying: bool, precision: str, scheme: Scheme) -> None:
    case = body((20, 8, 9), (False, False, True), 7, steps=3, varying=varying)
    case = replace(case, T=tiny(case.T.shape, precision, 2))
    oracle, *others = (on_cpu(spec, case, precision, scheme) for spec in CPU)
    for other in others:
        other.assert_same_bits(oracle)


@pytest.mark.skipif(not FLUSHES, reason="heatsim does not know how to do this on this processor")
@pytest.mark.parametrize("kernel", CPU_KERNELS)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_front_of_heat_has_no_subnormal_numbers(kernel: str, precision: str) -> None:
    """A hot layer in a long rod: each step carries 10 % of the difference of neighbours to the next cell."""
    least, number = np.finfo(precision).smallest_normal, np.dtype(precision).type
    T = np.zeros((1, 1, 400), precision)
    T[..., 0] = 100.0
    c = np.array([0.8, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0], precision)
    none = np.zeros((380, 6), precision)
    T, _ = CPU_KERNELS[kernel](T, T.copy(), (False,) * 3, c, none, none, NOTHING, "increments")
    assert T.min() == 0.0
    assert T[T > 0.0].min() >= least
    assert T.sum() == pytest.approx(100.0, rel=1e-5)
    assert number(least) * number(0.5) > 0.0, "after a call subnormal numbers are not flushed"
