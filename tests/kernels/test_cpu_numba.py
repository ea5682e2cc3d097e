"""The compiled CPU kernel does many steps a call, in tiles, on threads: to the same bits as one step after another."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from executor import VARIANTS, Result, Steps
from numpy.typing import NDArray
from test_kernels import random_steps

from heatsim.kernels.cpu import oracle, tiling
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.kernels.cpu.tiling import Tiling
from heatsim.physics.matter.coefficients import Scheme

PERIODIC = tuple(product((False, True), repeat=3))
EVERY_VARIANT = pytest.mark.parametrize(("precision", "scheme"), VARIANTS, ids=["-".join(v) for v in VARIANTS])
# Along x, y, z: single cells, fewer cells than a halo, and sizes that neither tiles nor vectors divide.
GRIDS = ((1, 1, 1), (3, 1, 2), (1, 7, 3), (2, 3, 1), (5, 4, 9), (17, 13, 11), (33, 2, 40), (40, 31, 3))


def made_tiling(steps: Steps, precision: str, depth: int, tile_y: int, tile_z: int, workers: int = 1) -> Tiling:
    """A tiling made by hand, without regard to what fits a cache."""
    nx = steps.cells[0]
    line = tiling.LINE // np.dtype(precision).itemsize
    stride = nx + 2
    ring = 3 * depth * (tile_y + 2 * depth + 2) * stride + 2 * line
    return Tiling(workers, depth, tile_y, tile_z, 3, stride, line, -(-ring // line) * line)


def advance(name: str, steps: Steps, precision: str, scheme: Scheme, calls: int = 1) -> Result:
    """All steps, divided into several calls of the kernel; the second buffer initially holds NaN."""
    T: NDArray[Any] = steps.T.astype(precision)
    spare = np.full_like(T, np.nan)
    c, f, g = (values.astype(precision) for values in (steps.c, steps.f, steps.g))
    ledger = tuple(steps.empty_ledger())
    for part in np.array_split(np.arange(len(f)), calls):
        if part.size:
            T, spare = CPU_KERNELS[name](T, spare, steps.periodic, c, f[part], g[part], ledger, scheme)
    return Result(T, ledger)


@EVERY_VARIANT
def test_many_steps_equal_single_steps_of_the_oracle(precision: str, scheme: Scheme) -> None:
    for seed, (cells, periodic) in enumerate(product(GRIDS, PERIODIC)):
        steps = random_steps(cells, periodic, seed, steps=seed % 9 + 1)
        advance("numba", steps, precision, scheme).assert_same_bits(advance("numpy", steps, precision, scheme))


@EVERY_VARIANT
@pytest.mark.parametrize(("depth", "tile_y", "tile_z"), [(1, 1, 1), (3, 4, 5), (4, 1, 16), (7, 16, 3), (16, 5, 4)])
def test_tiles_do_not_show(
    depth: int, tile_y: int, tile_z: int, precision: str, scheme: Scheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halos wider than the tile, and than the box; sweeps of fewer steps than the tiling allows."""
    for seed, periodic in enumerate(PERIODIC):
        steps = random_steps((9, 11, 6), periodic, seed, steps=9)
        made = made_tiling(steps, precision, depth, tile_y, tile_z)
        monkeypatch.setattr(tiling, "choose", lambda *of_grid, made=made: made)
        advance("numba", steps, precision, scheme).assert_same_bits(advance("numpy", steps, precision, scheme))


def test_threads_and_calls_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    for periodic in PERIODIC:
        steps = replace(random_steps((19, 23, 17), periodic, seed=5, steps=9), recorded=(True,) * 6)
        alone = advance("numba", steps, "float32", "increments")
        for workers, calls in ((1, 9), (2, 1), (2, 4), (3, 2)):
            made = made_tiling(steps, "float32", 4, 5, 9, workers)
            monkeypatch.setattr(tiling, "choose", lambda *of_grid, made=made: made)
            advance("numba", steps, "float32", "increments", calls).assert_same_bits(alone)
            monkeypatch.undo()


def test_a_single_step_leaves_its_input_as_it_is() -> None:
    steps = random_steps((8, 9, 10), (False,) * 3, seed=1, steps=1)
    for name in CPU_KERNELS:
        T, T_new = steps.T.copy(), np.full_like(steps.T, np.nan)
        arguments = (steps.periodic, steps.c, steps.f[0], steps.g[0], steps.empty_ledger(), "seven_term")
        result, spare = CPU_KERNELS[name](T, T_new, *arguments)
        assert result is T_new
        assert spare is T
        np.testing.assert_array_equal(T, steps.T)


@pytest.mark.parametrize("threads", [1, 2, 7, 64])
@pytest.mark.parametrize("itemsize", [4, 8])
def test_every_grid_has_a_tiling_with_work_for_its_workers(threads: int, itemsize: int) -> None:
    shapes = ((1, 1, 1), (1, 1, 10**6), (10**6, 1, 1), (1, 4000, 3000), (64, 64, 64), (320, 320, 320), (7, 900, 50))
    for shape, periodic, steps in product(shapes, ((False,) * 3, (True,) * 3), (1, 5, 1000)):
        found = tiling.choose(shape, periodic, itemsize, steps, threads)
        nz, ny, nx = shape
        assert 1 <= found.depth <= steps
        assert 1 <= found.tile_y <= ny
        assert 1 <= found.tile_z <= nz
        assert 1 <= found.workers <= threads
        assert found.stride >= nx + 2
        assert found.rows >= 1
        rows = found.tile_y + 2 * found.depth + 2
        assert found.ring >= 3 * found.depth * rows * found.stride + found.margin + 1
        tiles = -(-ny // found.tile_y) * -(-nz // found.tile_z)
        assert found.workers <= tiles
        if shape == (320, 320, 320) and steps > 1:
            assert 0.8 * threads <= found.workers <= threads


def test_small_grids_stay_on_the_calling_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "_threads", lambda: pytest.fail("a thread was asked for"))
    steps = random_steps((20, 20, 20), (False,) * 3, seed=2, steps=9)
    advance("numba", steps, "float32", "seven_term")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_memory_of_vectors_begins_at_a_cache_line(dtype: str) -> None:
    kept = [tiling.zeros_on_lines((size, 3), np.dtype(dtype)) for size in (1, 5, 16, 1000)]
    assert all(array.ctypes.data % tiling.LINE == 0 and array.dtype == dtype for array in kept)
    assert [array.shape for array in kept] == [(1, 3), (5, 3), (16, 3), (1000, 3)]
    assert all(array.flags.c_contiguous and not array.any() for array in kept)
