"""The compiled CPU kernel does many steps of a composite body a call, in tiles, on threads: bits do not show it."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from composite_executor import VARIANTS, CompositeResult, CompositeSteps, on_cpu
from covering import SLOW, pairwise
from executor import CPU
from test_composite_kernels import body, result_of

from heatsim import device
from heatsim.kernels.cpu import tiling
from heatsim.kernels.cpu.composite_layout import layout_of
from heatsim.kernels.cpu.ring_axes import RingAxes
from heatsim.kernels.cpu.tiling import Tiling
from heatsim.physics.cells.cell_types import CELL_TYPE
from heatsim.physics.matter.coefficients import Scheme
from heatsim.physics.operator.heat_sums import no_sums

ORACLE, NUMBA = CPU
# Compiling takes time: in the other precision, no cell is shared by several conditions.
WITH_MIXED_CELLS = "float32"
PERIODIC = tuple(product((False, True), repeat=3))
WRAPS = PERIODIC if SLOW else PERIODIC[:8:3]  # each axis in either way
EVERY_VARIANT = pytest.mark.parametrize(("precision", "scheme"), VARIANTS, ids=["-".join(v) for v in VARIANTS])


def forced(monkeypatch: pytest.MonkeyPatch, depth: int, tile_y: int, tile_z: int, workers: int = 1) -> None:
    """Tilings made by hand, without regard to what fits a cache."""

    def choose(shape: tuple[int, int, int], periodic: Any, itemsize: int, *others: Any) -> Tiling:
        stride, line = shape[2] + 2, tiling.LINE // itemsize
        ring = 3 * depth * (tile_y + 2 * depth + 2) * stride + 2 * line
        return Tiling(workers, depth, tile_y, tile_z, 3, stride, line, -(-ring // line) * line)

    monkeypatch.setattr(tiling, "choose", choose)


def bodies(
    wraps: tuple[bool, bool, bool],
    seed: int,
    steps: int = 5,
    cells: tuple[int, int, int] = (9, 11, 6),
    mixed: bool = True,
) -> tuple[CompositeSteps, ...]:
    """Several materials, materials that vary with temperature, one material with general faces; patches."""
    return (
        body(cells, wraps, 300 + seed, steps=steps, mixed=mixed),
        body(cells, wraps, 320 + seed, steps=steps, varying=True, mixed=mixed),
        body(cells, wraps, 340 + seed, several=False, steps=steps),
    )


@EVERY_VARIANT
@pytest.mark.parametrize(("depth", "tile_y", "tile_z"), [(1, 1, 1), (3, 4, 5), (4, 1, 16), (7, 16, 3)])
def test_tiles_do_not_show(
    depth: int, tile_y: int, tile_z: int, precision: str, scheme: Scheme, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halos wider than the tile, and than the box; sweeps of fewer steps than the tiling allows."""
    forced(monkeypatch, depth, tile_y, tile_z)
    for seed, wraps in enumerate(WRAPS):
        for case in bodies(wraps, seed, mixed=precision == WITH_MIXED_CELLS):
            expected = result_of(ORACLE, on_cpu, case, precision, scheme)
            on_cpu(NUMBA, case, precision, scheme).assert_same_bits(expected)


THIN = ((11, 1, 9), (1, 11, 9), (1, 1, 33), (1, 33, 1), (33, 1, 1), (1, 1, 1), (12, 10, 1))
OF_THIN = pairwise(THIN, WRAPS, VARIANTS)


@pytest.mark.quick("cells0", "cells2", "cells5")
@pytest.mark.parametrize("cells", THIN)
def test_axes_with_one_cell_do_not_show(cells: tuple[int, int, int]) -> None:
    """The ring has them as its last axes."""
    for of, wraps, (precision, scheme) in OF_THIN:
        if of != cells:
            continue
        for case in bodies(wraps, 20 * PERIODIC.index(wraps), cells=cells, mixed=precision == WITH_MIXED_CELLS):
            expected = on_cpu(ORACLE, case, precision, scheme)
            on_cpu(NUMBA, case, precision, scheme).assert_same_bits(expected)


@pytest.mark.parametrize(
    ("cells", "across", "variant"), pairwise([(40, 150, 3), (60, 3, 12), (3, 60, 40)], (0, 1, 2), VARIANTS)
)
def test_slabs_that_vary_with_temperature(
    cells: tuple[int, int, int], across: int, variant: tuple[str, Scheme]
) -> None:
    """Long rows and columns of cells beside another material, longer than what is done together."""
    case = body(cells, (False, True, False), 400 + across, varying=True, slabs=across)
    on_cpu(NUMBA, case, *variant).assert_same_bits(on_cpu(ORACLE, case, *variant))


def test_threads_and_calls_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    for case in bodies((False, True, False), 50, steps=9):
        alone = on_cpu(NUMBA, case, "float32", "increments")
        for workers, depth in ((2, 1), (2, 4), (3, 2)):
            forced(monkeypatch, depth, 3, 4, workers)
            on_cpu(NUMBA, case, "float32", "increments").assert_same_bits(alone)
            monkeypatch.undo()
        one_by_one = [step_of(case, number) for number in range(case.steps)]
        T, sums = case.T, [np.zeros_like(each) for each in alone.sums]
        for one in one_by_one:
            result = on_cpu(NUMBA, replace(one, T=T), "float32", "increments")
            T, sums = result.T, [mine + more for mine, more in zip(sums, result.sums, strict=True)]
        CompositeResult(T, no_sums()).assert_same_bits(CompositeResult(alone.T, no_sums()))
        for mine, others in zip(sums, alone.sums, strict=True):
            np.testing.assert_allclose(mine, others, rtol=1e-13, atol=1e-13 * np.abs(others).max(initial=0.0))


def step_of(case: CompositeSteps, number: int) -> CompositeSteps:
    """One step of a case."""
    rows = replace(case.rows, factors=np.ones(case.steps))[number : number + 1]
    return replace(case, steps=1, rows=rows)


@pytest.mark.parametrize("varying", [False, True])
def test_every_cell_is_in_one_run_and_has_its_own_stencil(varying: bool) -> None:
    """Runs, odd cells and dense rows together give each cell the types of its neighbours."""
    case = body((40, 9, 11), (False, True, False), 400, varying=varying)
    body_ = case.arrays_on(device.choose("cpu"), "float64").body
    shape = case.grid.shape
    layout = layout_of(body_, shape, case.periodic, RingAxes(0, 1, 2))
    stencil = np.full(shape, -1).reshape(-1, shape[2])
    for row in range(len(stencil)):
        x = 0
        for run in range(layout.run.first[row], layout.run.first[row + 1]):
            stencil[row, x : layout.run.end[run]] = layout.run.stencil[run]
            x = layout.run.end[run]
        assert x == shape[2]
        odd = slice(layout.odd.first[row], layout.odd.first[row + 1])
        stencil[row, layout.odd.x[odd]] = layout.odd.stencil[odd]
        if layout.dense.of[row] >= 0:
            assert odd.start == odd.stop
            stencil[row] = layout.dense.stencils[layout.dense.of[row]]
    assert (layout.dense.of >= 0).any() != varying
    stencil = stencil.reshape(shape)
    types = case.materials.cells & CELL_TYPE
    np.testing.assert_array_equal(layout.stencils.own[stencil], types)
    solid = types != body_.void
    for side in range(6):
        axis, step = 2 - side // 2, 2 * (side % 2) - 1
        there = np.arange(shape[axis]) + step
        n = shape[axis]
        there = there % n if case.periodic[side // 2] else np.clip(there, 0, n - 1)
        np.testing.assert_array_equal(layout.stencils.around[stencil, side][solid], types.take(there, axis)[solid])
