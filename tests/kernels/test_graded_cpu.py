"""CPU kernels on grids with several cell widths: the oracles against balances written from widths, numba to the bit."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from composite_executor import CompositeSteps, on_cpu
from covering import pairwise
from executor import CPU
from numpy.typing import NDArray
from test_composite_kernels import PALETTE, body, with_enthalpy
from test_composite_tiles import forced
from test_cpu_numba import made_tiling
from test_graded_kernels import borders
from test_kernels import random_steps

from heatsim import device
from heatsim.grid import Grid
from heatsim.kernels.cpu import tiling
from heatsim.kernels.cpu.composite_layout import layout_of
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.kernels.cpu.planes import Planes
from heatsim.kernels.cpu.ring_axes import RingAxes
from heatsim.physics.cells import cell_type_map
from heatsim.physics.geometry.cell_faces import FaceAreas, between, voxel_areas
from heatsim.physics.operator.step_inputs import StepInputs

ORACLE, NUMBA = CPU
CLOSED = (False, False, False)
ALONG_Y = (False, True, False)
Array = NDArray[np.float64]


def planes_of(cells: tuple[int, int, int], axes: str, precision: str, seed: int) -> Planes:
    """The factors of random widths along some axes."""
    grid = Grid(cells, (1.0, 1.0, 1.0), borders=borders(cells, seed, axes))
    x, y, z = (axis.kernel_factors(precision) for axis in grid.axes)
    return x, y, z


def increments(T: Array, links: list[Array], periodic: tuple[bool, bool, bool]) -> Array:
    """Σ link·(neighbour − T); ``links`` towards x−, x+, …, z+."""
    total = np.zeros_like(T)
    for side, link in enumerate(links):
        axis, step = 2 - side // 2, 1 - 2 * (side % 2)
        exchanged = link * (np.roll(T, step, axis) - T)
        if not periodic[side // 2]:
            np.moveaxis(exchanged, axis, 0)[-1 if side % 2 else 0] = 0.0
        total += exchanged
    return total


@pytest.mark.parametrize("periodic", [CLOSED, (True, False, True), (False, True, False)])
def test_links_of_one_material_follow_from_widths(periodic: tuple[bool, bool, bool]) -> None:
    """α·dt·2/(dᵢ·(dᵢ + dⱼ)) with α·dt = 1e-9 m²."""
    cells, rng = (5, 7, 4), np.random.default_rng(0)
    axes = Grid(cells, (1.0, 1.0, 1.0), borders=borders(cells, 0)).axes
    T, links, c = rng.uniform(-1.0, 1.0, cells[::-1]), [], [1.0]
    for number, axis in enumerate(axes):
        c += [1e-9 / axis.spacing**2] * 2
        d = axis.widths
        links += [Grid.along(number, 2e-9 / (d * (d + np.roll(d, step)))) for step in (1, -1)]
    x, y, z = (axis.kernel_factors("float64") for axis in axes)
    nothing, ledger = np.zeros(6), (np.zeros((0, 0)),) * 6
    for kernel in CPU_KERNELS.values():
        found, _ = kernel(T, T.copy(), periodic, np.array(c), nothing, nothing, ledger, "increments", (x, y, z))
        np.testing.assert_allclose(found, T + increments(T, links, periodic), rtol=1e-13, atol=1e-15)


OF_STEPS = pairwise(
    [(1, 1, 1), (3, 1, 2), (1, 7, 3), (17, 13, 11), (40, 31, 3)],
    [CLOSED, (True, False, True), (False, True, True)],
    ["xyz", "x", "yz"],
    ["float32", "float64"],
    [(3, 4, 5, 1), (7, 16, 3, 2), None],
)


def test_steps_of_one_material_have_the_bits_of_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed, (cells, periodic, axes, precision, tiles) in enumerate(OF_STEPS):
        steps = random_steps(cells, periodic, seed, steps=seed % 9 + 1)
        f, g = steps.f.astype(precision), steps.g.astype(precision)
        c = (steps.c / 64.0).astype(precision)
        if seed % 2:  # stages: each step has its own coefficients
            c = (c * np.linspace(0.5, 1.0, len(f))[:, None]).astype(precision)
        if tiles is not None:
            depth, tile_y, tile_z, workers = tiles
            made = made_tiling(steps, precision, depth, tile_y, tile_z, workers)
            monkeypatch.setattr(tiling, "choose", lambda *of_grid, made=made: made)
        results = []
        for kernel in CPU_KERNELS.values():
            T, ledger = steps.T.astype(precision), steps.empty_ledger()
            planes = planes_of(cells, axes, precision, seed)
            T, _ = kernel(T, np.full_like(T, np.nan), periodic, c, f, g, ledger, "increments", planes)
            results.append(b"".join(each.tobytes() for each in (T, *ledger)))
        assert results[0] == results[1], (cells, periodic, axes, precision, tiles)
        monkeypatch.undo()


BODIES: dict[str, dict[str, Any]] = {
    "one material": {"cells": (36, 6, 5), "periodic": CLOSED, "seed": 30, "several": False},
    "materials": {"cells": (36, 9, 7), "periodic": CLOSED, "seed": 20},
    "periodic": {"cells": (12, 8, 9), "periodic": (True, False, True), "seed": 21},
    "all": {"cells": (33, 6, 8), "periodic": CLOSED, "seed": 72, "mixed": True, "in_space": True, "cell_heat": True},
    "layers": {"cells": (36, 5, 6), "periodic": (False, True, False), "seed": 80, "layered": True},
    "slabs": {"cells": (40, 15, 3), "periodic": CLOSED, "seed": 400, "slabs": 0},
    "no x": {"cells": (1, 11, 9), "periodic": (False, True, False), "seed": 301},
    "no y": {"cells": (11, 1, 9), "periodic": CLOSED, "seed": 300},
    "only z": {"cells": (1, 1, 33), "periodic": CLOSED, "seed": 302},
    "laws": {"cells": (24, 6, 4), "periodic": CLOSED, "seed": 76, "laws": True, "in_space": True},
    "varying": {"cells": (33, 6, 8), "periodic": CLOSED, "seed": 72, "varying": True, "mixed": True},
    "varying slabs": {"cells": (40, 60, 3), "periodic": ALONG_Y, "seed": 400, "varying": True, "slabs": 0},
    "varying columns": {
        "cells": (3, 60, 12),
        "periodic": (False, True, False),
        "seed": 402,
        "varying": True,
        "slabs": 2,
    },
    "varying, no x": {"cells": (1, 11, 9), "periodic": (True, True, False), "seed": 301, "varying": True},
}
# The other precision takes time to compile; only the type of numbers differs.
IN_FLOAT64 = ("periodic", "slabs", "varying slabs")


@pytest.mark.parametrize("name", BODIES)
def test_steps_of_composite_bodies_have_the_bits_of_the_oracle(name: str) -> None:
    precision = "float64" if name in IN_FLOAT64 else "float32"
    for axes in ("xyz", "xz"[len(name) % 2]):
        of = BODIES[name]
        case = body(**of, borders=borders(of["cells"], of["seed"], axes))
        expected = on_cpu(ORACLE, case, precision, "increments")
        assert np.isfinite(expected.T).all()
        on_cpu(NUMBA, case, precision, "increments").assert_same_bits(expected)


@pytest.mark.parametrize("varying", [False, True])
def test_tiles_and_threads_do_not_show_in_rows_of_many_parts(varying: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    case = chequered((80, 14, 10), 1, varying=varying)
    expected = on_cpu(ORACLE, case, "float64", "increments")
    for depth, tile_y, tile_z, workers in ((3, 14, 10, 1), (2, 4, 5, 2)):
        forced(monkeypatch, depth, tile_y, tile_z, workers)
        on_cpu(NUMBA, case, "float64", "increments").assert_same_bits(expected)
    if not varying:  # dense rows, rows whose cells are all odd, and rows of runs and odd cells
        body_ = case.arrays_on(device.choose("cpu"), "float64").body
        layout = layout_of(body_, case.grid.shape, CLOSED, RingAxes(0, 1, 2))
        odd, dense = np.diff(layout.odd.first), layout.dense.of >= 0
        assert dense.any()
        assert (odd == 80).any()


def chequered(cells: tuple[int, int, int], seed: int, film: float = 0.0, *, varying: bool = False) -> CompositeSteps:
    """Boxes of 10 × 5 × 5 cells on a grid with random widths; ``film``: of all faces, in W/(m² K)."""
    rng = np.random.default_rng(seed)
    x, y, z = borders(cells, seed)
    grid = Grid(cells, (x[-1], y[-1], z[-1]), borders=(x, y, z))
    material = (np.indices(grid.shape) // np.reshape((5, 5, 10), (3, 1, 1, 1))).sum(axis=0).astype(np.uint8) % 3
    resistances = {frozenset((0, 2)): 1e-5}
    # No weights but those of widths.
    faces = between(grid, material, cell_type_map.weighted(PALETTE[:3], resistances, exposed=False), CLOSED)
    surfaces = FaceAreas(faces, voxel_areas(grid, faces))
    heated = [material == 1]
    materials = cell_type_map.build(grid, PALETTE[:3], material, contacts=resistances, heated=heated, surfaces=surfaces)
    if varying:
        materials = materials.with_palette([with_enthalpy(PALETTE[0]), *PALETTE[1:3]])
    conditions = np.array([[[film, 40.0, 0.0, 0.0, 0.0, 1.0]] * 6])
    dt = 1e-5  # s
    rows = StepInputs(
        conditions, materials.potentials_at(conditions[:, :, 1]), np.zeros((1, len(materials.types))), (), np.ones(3)
    )
    return CompositeSteps(
        materials=materials,
        maps=(np.zeros((0, 0), np.uint8),) * 6,
        rows=replace(rows, amounts=np.zeros((1, 1))),
        steps=3,
        dt=dt,
        periodic=CLOSED,
        T=rng.uniform(-50.0, 50.0, grid.shape).astype(np.float32),
    )


def test_links_of_materials_and_faces_follow_from_widths() -> None:
    """ΔT/(dᵢ/2kᵢ + R + dⱼ/2kⱼ) between cells, ΔT/(d/2k + 1/h) at the faces of the box, both over ρ·cp·d."""
    case = replace(chequered((11, 11, 7), 3, film=500.0), steps=1)
    expected = case.T + exchanged(case, film=500.0)
    result = on_cpu(ORACLE, case, "float64", "increments")
    np.testing.assert_allclose(result.T, expected, rtol=1e-13, atol=1e-13 * np.abs(expected).max())


def exchanged(case: CompositeSteps, film: float) -> Array:
    """What a step changes, from the widths and the materials of all cells."""
    T, total, grid, materials = case.T.astype(np.float64), np.zeros(case.T.shape), case.grid, case.materials
    types = materials.types_of((slice(None),) * 3)
    material = np.array([one.material for one in materials.types])[types]
    capacity = np.array([substance.heat_capacity for substance in PALETTE[:3]])[material]
    for axis in range(3):
        d = Grid.along(axis, grid.axes[axis].widths)
        half = d / (2.0 * np.array([substance.conductivity[axis] for substance in PALETTE[:3]])[material])  # type: ignore[index]
        for side, step in ((0, 1), (1, -1)):

            def beyond(values: Array, step: int = step, axis: int = axis) -> Array:
                return np.roll(values, step, 2 - axis)

            contact = (
                1e-5 * (np.minimum(material, beyond(material)) == 0) * (np.maximum(material, beyond(material)) == 2)
            )
            flux = (beyond(T) - T) / (half + contact + beyond(half))
            end = [slice(None)] * 3
            end[2 - axis] = slice(-1, None) if side else slice(0, 1)
            flux[tuple(end)] = (40.0 - T[tuple(end)]) / (half[tuple(end)] + (1.0 / film if film else np.inf))
            total += case.dt * flux / (capacity * d)
    return total


@pytest.mark.parametrize("varying", [False, True])
def test_cells_exchange_what_their_neighbours_lose(varying: bool) -> None:
    """The heat of an insulated body, ρ·cp·V·θ summed over all cells, stays the same."""
    case = chequered((21, 12, 11), 4, varying=varying)
    result = on_cpu(ORACLE, case, "float64", "increments")
    types = case.materials.types_of((slice(None),) * 3)
    capacity = case.materials.heat_capacity[types].reshape(-1)
    capacity *= case.grid.volume_factors(np.arange(case.grid.cell_count))
    gained = capacity * (result.T - case.T.astype(np.float64)).reshape(-1)
    assert np.abs(gained).sum() > 1e-4 * capacity.sum()
    assert abs(gained.sum()) < 1e-13 * np.abs(gained).sum() * len(gained) ** 0.5


def test_varying_materials_exchange_as_constant_ones_where_they_do_not_vary() -> None:
    """Beside copper conductivities vary; the other links are those of constant materials."""
    steps = [replace(chequered((21, 12, 11), 5, varying=varying), steps=1) for varying in (False, True)]
    constant, varying = (on_cpu(ORACLE, case, "float64", "increments").T for case in steps)
    types = steps[0].materials.types_of((slice(None),) * 3)
    fixed = np.array([one.material > 0 for one in steps[0].materials.types])[types]
    padded = np.pad(fixed, 1, mode="edge")
    for axis, step in product(range(3), (-1, 1)):
        fixed &= np.roll(padded, step, axis)[1:-1, 1:-1, 1:-1]
    assert fixed.any()
    np.testing.assert_allclose(varying[fixed], constant[fixed], rtol=1e-12)
