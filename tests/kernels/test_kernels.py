"""Every kernel of the catalog computes the same step, on any grid, with any faces, in both precisions.

The reference is the NumPy kernel in float64, and the reference of that is the formula, cell by cell.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from covering import SLOW
from executor import (
    CPU,
    CUDA,
    EXECUTIONS,
    ON_HOST,
    ROOM,
    VARIANTS,
    Executor,
    Result,
    Steps,
    on_cpu,
    on_gpu,
    on_host,
    sweeps_on_cuda,
)
from numpy.typing import NDArray

from heatsim import device
from heatsim.grid import Grid
from heatsim.kernels import compilation, fitting, launch, structs, tiling
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.cpu.oracle import FACE_SLICES, advance_numpy
from heatsim.kernels.emulation.machine import compile_kernel
from heatsim.physics.matter.coefficients import Scheme

ORACLE = next(spec for spec in CPU if spec.name == "numpy")
PERIODIC = tuple(product((False, True), repeat=3))
WARP = 32


def tiles(spec: KernelSpec, precision: str) -> set[tuple[int, int, int]]:
    """Cells along x, y, z that a block works on; along z, where the grid decides, two steps a sweep."""
    build = compilation.build(spec, precision, "seven_term", Grid((64, 64, 64), (1.0, 1.0, 1.0)))
    pipeline = build.pipeline
    if pipeline is None:
        return {build.tile}
    return {(lanes * pipeline.vector, pipeline.height(lanes), 2 * pipeline.steps) for lanes in tiling.LANES}


TILES = {
    tile
    for spec in CUDA
    if not spec.resident
    for precision in ("float32", "float64")
    for tile in tiles(spec, precision)
}
EVERY_VARIANT = pytest.mark.parametrize(("precision", "scheme"), VARIANTS, ids=["-".join(v) for v in VARIANTS])
EVERY_EXECUTION = pytest.mark.parametrize(("spec", "execute"), EXECUTIONS)
CASES = [
    pytest.param(*execution.values, *variant, id=f"{execution.id}-{'-'.join(variant)}", marks=execution.marks)
    for execution in EXECUTIONS
    for variant in VARIANTS
    if execution.values[1] is not on_host or (execution.values[0], *variant) in ON_HOST
]
EVERY_CASE = pytest.mark.parametrize(("spec", "execute", "precision", "scheme"), CASES)


def random_steps(cells: tuple[int, int, int], periodic: tuple[bool, bool, bool], seed: int, steps: int = 3) -> Steps:
    """A random field and random faces; six different coefficients, and never an own coefficient below 0.

    Coefficients are multiples of 2^-12, so that c0 = 1 − Σ is exact in float32.
    """
    rng = np.random.default_rng(seed)
    c = rng.integers(100, 450, 7) * 2.0**-12
    c[0] = 1.0 - c[1:].sum()
    exchanging = ~np.repeat(periodic, 2) & (rng.random(6) < 0.9)
    shape = (steps, 6)
    return Steps(
        cells=cells,
        periodic=periodic,
        T=rng.uniform(-100.0, 100.0, cells[::-1]).astype(np.float32),
        c=c.astype(np.float32),
        f=(rng.uniform(-20.0, 20.0, shape) * exchanging).astype(np.float32),
        g=(rng.uniform(0.0, 0.05, shape) * exchanging).astype(np.float32),
        recorded=tuple(bool(recorded) for recorded in exchanging & (rng.random(6) < 0.8)),
    )


def sizes(axis: int) -> list[int]:
    """One cell to a few, a warp and one more or less, and tiles and blocks and one more or less.

    And 2 and 4 more, which whole vectors and patches divide if they divide the tile.
    """
    edges = {tile[axis] for tile in TILES} | {spec.block[axis] for spec in CUDA if not spec.boxed and not spec.resident}
    around = {n + extra for n in edges if n > 1 for extra in (-1, 1, 2, 4)}
    return sorted({1, 2, 3, WARP - 1, WARP + 1} | {n for n in around if n > 0})


def grids() -> Iterator[tuple[int, int, int]]:
    """Each size along each axis, the other two axes one cell, a few, and a few that vectors and patches divide."""
    for first, second in ((1, 1), (3, 2), (8, 8)):
        yield from ((n, first, second) for n in sizes(0))
        yield from ((first, n, second) for n in sizes(1))
        yield from ((first, second, n) for n in sizes(2))


def longest_sweep(cells: tuple[int, int, int], periodic: tuple[bool, bool, bool]) -> int:
    """Steps that one sweep of a kernel does on a grid, at most."""
    grid = Grid(cells, (1.0, 1.0, 1.0))
    return max(
        build.spec.steps
        for spec, precision in product(CUDA, ("float32", "float64"))
        for build in fitting.builds(spec, precision, "seven_term", grid, periodic, ROOM)
    )


@cache
def cases(scheme: Scheme) -> tuple[Steps, ...]:
    """All grids, the axes that are periodic in turn; some with all of them; two that many blocks share.

    On every grid the longest sweep and a step more. Where cells lie does not depend on how they are summed: the other
    schemes do with every third grid, and with rows of whole vectors, for which each kernel has one build.
    """

    def case(cells: tuple[int, int, int], periodic: tuple[bool, bool, bool], seed: int) -> Steps:
        return random_steps(cells, periodic, seed, longest_sweep(cells, periodic) + 1)

    every_grid = list(dict.fromkeys(grids()))[:: 1 if scheme == "seven_term" else 3]
    small = ((4, 3, 2), (8, 8, 5), (WARP + 3, 13, 9), (WARP + 4, 12, 9))
    every_case = (
        *(case(cells, PERIODIC[i % 8], i) for i, cells in enumerate(every_grid)),
        *(case(cells, periodic, 1) for cells in small for periodic in PERIODIC),
        case((35, 34, 67), (False, True, False), 3),
        case((124, 28, 19), (True, False, False), 4),
        case((WARP + 5, WARP + 1, 9), (False, False, False), 5),
        case((2 * WARP + 2, WARP + 13, 11), (False, False, True), 6),
        case((WARP + 5, 4 * WARP + 5, 9), (True, True, False), 7),
        case((2 * WARP, 2 * WARP + 8, 5), (False, False, False), 8),  # the thinnest that several steps a sweep take
    )
    return tuple(each for each in every_case if scheme == "seven_term" or each.cells[0] % 4 == 0)


def test_the_cases_reach_every_kernel() -> None:
    """A kernel of several steps a sweep does all of a case that its sweeps divide, not just what is left to others."""
    for spec, precision in product(CUDA, ("float32", "float64")):
        reached = [
            case
            for case in cases("seven_term")
            if fitting.builds(spec, precision, "seven_term", case.grid, case.periodic, ROOM)[0].source == spec.source
        ]
        assert len(reached) >= 20
        assert all(len(case.f) > spec.steps for case in reached)


@cache
def first_steps(scheme: Scheme) -> tuple[Steps, ...]:
    """The cases with three steps: the number of the step overflows in the third."""
    return tuple(replace(case, f=case.f[:3], g=case.g[:3]) for case in cases(scheme))


def cases_of(spec: KernelSpec, scheme: Scheme) -> tuple[Steps, ...]:
    """The cases; for a kernel that is launched for each step, their first steps.

    Of a rung that "auto" does not choose, above the first, every fourth one.
    """
    chosen = cases(scheme) if spec.steps > 1 or spec.resident else first_steps(scheme)
    return chosen if SLOW or spec not in CUDA[1:5] else chosen[::4]


@cache
def results(
    spec: KernelSpec, execute: Executor, precision: str, scheme: Scheme, of: tuple[Steps, ...]
) -> tuple[Result, ...]:
    return tuple(execute(spec, case, precision, scheme) for case in of)


@cache
def exact_results(of: tuple[Steps, ...]) -> tuple[Result, ...]:
    """In float64 a seven-term sum and summed increments are the same but for rounding."""
    return tuple(on_cpu(ORACLE, case, "float64", "increments") for case in of)


def rounding_bound(steps: Steps, exact: Result, precision: str) -> float:
    """How far rounding can carry a field or its ledger from the exact result.

    On its way into the result no term is rounded more than 16 times in a step: difference, product, 6 sums over
    neighbours, 6 over faces and the last sum make 15. The own coefficient being
    positive, no error of earlier steps grows.
    """
    unit_roundoff = np.finfo(precision).eps / 2.0
    size = 2.0 * max(np.abs(steps.T).max(), np.abs(exact.T).max()) + 6.0 * np.abs(steps.f).max()
    return float(16.0 * len(steps.f) * unit_roundoff * size)


def assert_close(actual: NDArray[Any], exact: NDArray[Any], bound: float, what: str) -> None:
    assert actual.shape == exact.shape, what
    assert np.isfinite(actual).all(), f"{what}: cells that were not written"
    if exact.size:
        worst = np.abs(actual.astype(np.float64) - exact).max()
        assert worst <= bound, f"{what}: off by {worst}, rounding explains {bound}"


@EVERY_CASE
def test_a_kernel_equals_the_oracle(spec: KernelSpec, execute: Executor, precision: str, scheme: Scheme) -> None:
    of = cases_of(spec, scheme)
    computed, expected = results(spec, execute, precision, scheme, of), exact_results(of)
    for case, result, exact in zip(of, computed, expected, strict=True):
        bound = rounding_bound(case, exact, precision)
        where = f"{case.cells}, periodic {case.periodic}"
        assert result.T.dtype == precision
        assert_close(result.T, exact.T, bound, where)
        for face, sums in enumerate(result.ledger):
            assert_close(sums, exact.ledger[face], bound, f"{where}, ledger of face {face}")


def test_the_oracle_is_the_formula() -> None:
    """T' = c0·T + c1·T(x−) + c2·T(x+) + … + Σ over faces of f − g·T, written out for each cell."""
    for periodic, seed in product(PERIODIC, range(3)):
        case = random_steps(((4, 3, 2), (1, 5, 2), (3, 1, 1))[seed], periodic, seed, steps=1)
        result = on_cpu(ORACLE, case, "float64", "seven_term")
        T, c, f, g = (values.astype(np.float64) for values in (case.T, case.c, case.f[0], case.g[0]))
        for z, y, x in np.ndindex(T.shape):
            expected, here = c[0] * T[z, y, x], (x, y, z)
            for axis, side in product(range(3), (0, 1)):
                n, beyond = case.cells[axis], list(here)
                beyond[axis] += 2 * side - 1
                at_face = not 0 <= beyond[axis] < n
                if at_face:
                    beyond[axis] = beyond[axis] % n if periodic[axis] else here[axis]
                face = 2 * axis + side
                expected += c[1 + face] * T[beyond[2], beyond[1], beyond[0]]
                if at_face:
                    heat = f[face] - g[face] * T[z, y, x]
                    expected += heat
                    if case.recorded[face]:
                        place = tuple(here[other] for other in (2, 1, 0) if other != axis)
                        assert result.ledger[face][place] == pytest.approx(heat, abs=1e-12)
            assert result.T[z, y, x] == pytest.approx(expected, abs=1e-11)


@EVERY_VARIANT
@pytest.mark.parametrize("spec", CPU[1:], ids=lambda spec: spec.name)
def test_cpu_kernels_give_the_same_bits(spec: KernelSpec, precision: str, scheme: Scheme) -> None:
    of = cases_of(spec, scheme)
    for first, other in zip(
        results(CPU[0], on_cpu, precision, scheme, of), results(spec, on_cpu, precision, scheme, of), strict=True
    ):
        other.assert_same_bits(first)


@pytest.mark.parametrize(
    ("spec", "execute", "precision", "scheme"),
    [case for case in CASES if case.values[0] in CUDA and case.values[:2] != (CUDA[0], on_host)],
)
def test_cuda_kernels_give_the_same_bits(spec: KernelSpec, execute: Executor, precision: str, scheme: Scheme) -> None:
    """As the first rung, executed on the host: fma is exact everywhere."""
    of = cases_of(spec, scheme)
    for first, other in zip(
        results(CUDA[0], on_host, precision, scheme, of), results(spec, execute, precision, scheme, of), strict=True
    ):
        other.assert_same_bits(first)


@EVERY_CASE
def test_the_ledger_changes_no_bit_of_the_field(
    spec: KernelSpec, execute: Executor, precision: str, scheme: Scheme
) -> None:
    case = random_steps((12, 8, 5), (False, False, False), seed=4, steps=5)
    on, off = (execute(spec, replace(case, recorded=(recorded,) * 6), precision, scheme) for recorded in (True, False))
    assert on.T.tobytes() == off.T.tobytes()
    assert all(sums.size and sums.any() for sums in on.ledger)


@EVERY_CASE
def test_a_uniform_field_without_heat_stays_to_the_bit(
    spec: KernelSpec, execute: Executor, precision: str, scheme: Scheme
) -> None:
    """Summed increments keep any value; seven terms keep 0, which a uniform start is stored as, and round others."""
    case = random_steps((12, 4, 3), (True, False, False), seed=5, steps=9)
    nothing = np.zeros_like(case.f)
    for value in (0.0,) if scheme == "seven_term" else (0.0, 99.7, -33.3, 1e-30):
        uniform = replace(case, T=np.full_like(case.T, value), f=nothing, g=nothing)
        result = execute(spec, uniform, precision, scheme)
        np.testing.assert_array_equal(result.T, np.full_like(result.T, np.float32(value)))


TILED = [spec for spec in CUDA if not spec.resident and spec.name != "temporal"]
OF_TILES = pytest.mark.parametrize("spec", TILED, ids=[spec.name for spec in TILED])


@OF_TILES
def test_launches_cover_a_grid_within_the_limits_of_the_hardware(spec: KernelSpec) -> None:
    """65,535 blocks along y and z (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""
    for cells in ((1, 2**24, 1), (1, 1, 2**20), (2000, 2000, 1000), (1, 1, 1), (3, 1_000_000, 1_000_000)):
        grid, covered = Grid(cells, (1.0, 1.0, 1.0)), 0
        build = compilation.build(spec, "float32", "seven_term", grid)
        for part in launch.launches(build, grid, (False, False, False)):
            x, y, z = part.blocks
            assert x * build.tile[0] >= cells[0]
            assert 1 <= y <= 65_535
            assert 1 <= z <= 65_535
            first_y, first_z = part.grid["first_yz"].tolist()
            reach_y, reach_z = y * build.tile[1], z * int(part.grid["planes"])
            covered += min(reach_y, cells[1] - first_y) * min(reach_z, cells[2] - first_z)
        assert covered == cells[1] * cells[2]


@pytest.mark.parametrize("spec", CUDA, ids=lambda spec: spec.name)
def test_a_block_is_of_whole_warps(spec: KernelSpec) -> None:
    threads = int(np.prod(spec.block))
    assert threads % WARP == 0
    assert threads <= 1024


def test_slabs_too_large_for_l2_are_cut_in_y(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plane that two slabs need is still in L2 when the second comes; a grid of one slab needs nothing twice."""
    spec = next(spec for spec in CUDA if spec.name == "streamed")
    case = random_steps((36, 37, 11), (False, True, False), seed=8, steps=1)
    build = compilation.build(spec, "float32", "increments", case.grid)
    _, tile_y, tile_z = build.tile
    assert len(launch.launches(build, case.grid, case.periodic)) == 1
    monkeypatch.setattr(launch, "_SLAB", 2 * 36 * 37 * tile_z * build.itemsize - 1)
    parts = launch.launches(build, case.grid, case.periodic)
    rows = -(-37 // tile_y // 2) * tile_y
    assert [tuple(part.grid["first_yz"]) for part in parts] == [(0, 0), (rows, 0)]
    assert len(launch.launches(build, Grid((36, 37, tile_z), (1.0, 1.0, 1.0)), case.periodic)) == 1
    on_host(spec, case, "float32", "increments").assert_same_bits(on_host(CUDA[0], case, "float32", "increments"))


@OF_TILES
def test_several_launches_are_one_step(spec: KernelSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "LARGEST_GRID_YZ", 2)
    build = compilation.build(spec, "float32", "increments", Grid((4, 4, 4), (1.0, 1.0, 1.0)))
    _, ty, tz = build.tile
    for cells in ((4, 4 * ty + 4, 3), (4, 4, 6 * tz + 1), (4, 4 * ty + 4, 3 * tz + 1)):
        for periodic in ((False, False, False), (False, True, True)):
            case = random_steps(cells, periodic, seed=6, steps=spec.steps)
            ((_, _, swept, launches),) = sweeps_on_cuda(spec, case, "float32", "increments")
            assert swept.spec is spec
            assert len(launches) > 1
            exact = on_cpu(ORACLE, case, "float64", "increments")
            result = on_host(spec, case, "float32", "increments")
            assert_close(result.T, exact.T, rounding_bound(case, exact, "float32"), str(cells))


@pytest.mark.gpu
@pytest.mark.parametrize("axis", [1, 2], ids=["y", "z"])
@pytest.mark.parametrize("spec", [spec for spec in CUDA if spec.name != "temporal"], ids=lambda spec: spec.name)
def test_grids_longer_than_the_hardware_has_blocks(spec: KernelSpec, axis: int) -> None:
    """All but 07, whose blocks are no more than the device has multiprocessors."""
    cells = [4, 3, 3]
    cells[axis] = 65_535 * max(tile[axis] for tile in tiles(spec, "float32")) + 5
    cells[axis] -= cells[axis] % 4
    for periodic in ((False, False, False), (True, True, True)):
        case = random_steps((cells[0], cells[1], cells[2]), periodic, seed=8, steps=spec.steps)
        exact = on_cpu(ORACLE, case, "float64", "increments")
        result = on_gpu(spec, case, "float32", "seven_term")
        assert_close(result.T, exact.T, rounding_bound(case, exact, "float32"), str(cells))


def test_cells_are_counted_in_64_bits() -> None:
    nx, ny, nz = 2000, 2000, 1000
    rng = np.random.default_rng(9)
    x, y, z = (np.append(rng.integers(0, n, 63), n - 1).astype(np.int32) for n in (nx, ny, nz))
    index = np.zeros(64, np.uint64)
    grid = Grid((nx, ny, nz), (1.0, 1.0, 1.0))
    build = compilation.build(CUDA[0], "float32", "seven_term", grid)
    macros = [option for option in build.options if option.startswith("-D")]
    kernel = compile_kernel(Path(__file__).parent / "cell_index.cu", macros, "index_of")
    part, *_ = launch.launches(build, grid, (False, False, False))
    kernel.launch((1, 1, 1), (64, 1, 1), part.grid, x, y, z, index)
    expected = [(int(k) * ny + int(j)) * nx + int(i) for i, j, k in zip(x, y, z, strict=True)]
    assert index.tolist() == expected
    assert max(expected) == nx * ny * nz - 1 > 2**31


@pytest.mark.gpu
@pytest.mark.parametrize("spec", [spec for spec in CUDA if not spec.resident], ids=lambda spec: spec.name)
def test_a_grid_beyond_31_bits(spec: KernelSpec) -> None:
    """One sweep of 1,300³ cells in float32, compared plane by plane where the index passes 2³¹ and at the ends."""
    import cupy

    n = 1300
    cupy.get_default_memory_pool().free_all_blocks()
    free = cupy.cuda.runtime.memGetInfo()[0]
    if free < 2.2 * 4 * n**3:
        needed, there = 8 * n**3 / 2**30, free / 2**30
        pytest.skip(f"two fields of {n}³ cells need {needed:.1f} GiB of GPU memory, {there:.1f} are free")
    case = random_steps((1, 1, 1), (True, False, False), seed=10, steps=spec.steps)
    grid = Grid((n, n, n), (1.0, 1.0, 1.0))
    build = fitting.builds(spec, "float32", "seven_term", grid, case.periodic, device.choose("cuda").room())[0]
    assert build.spec is spec
    T = cupy.random.default_rng(11).random((n, n, n), dtype=cupy.float32)
    T_new = cupy.full_like(T, cupy.nan)
    table = cupy.asarray(case.sweeps("float32").view(np.uint8))
    coefficients = np.array((case.c,), structs.coefficients_dtype("float32"))
    launches = launch.launches(build, grid, case.periodic)
    launch.compile_kernel(build)(launches, T, T_new, coefficients, table.data.ptr, np.zeros((), structs.LEDGER))

    passing = 2**31 // n**2
    assert 0 < passing < n - 1
    no_ledger = [np.empty((0, 0))] * 6
    for z in (0, 1, passing, passing + 1, n - 1):
        # As many planes on either side as the steps reach; what is wrong at the ends of the cut does not arrive.
        low, high = max(z - spec.steps, 0), min(z + spec.steps, n - 1)
        planes = cupy.asnumpy(T[low : high + 1]).astype(np.float64)
        at_ends = (1.0, 1.0, 1.0, 1.0, float(low == 0), float(high == n - 1))
        for f, g in zip(case.f * np.float64(at_ends), case.g * np.float64(at_ends), strict=True):
            stepped = np.empty_like(planes)
            advance_numpy(planes, stepped, case.periodic, case.c.astype(np.float64), f, g, no_ledger, "seven_term")
            planes = stepped
        bound = 16.0 * spec.steps * 2.0**-24 * (2.0 * np.abs(planes).max() + 6.0 * np.abs(case.f).max())
        assert_close(cupy.asnumpy(T_new[z]), planes[z - low], float(bound), f"plane {z}")


def test_every_face_has_its_own_slice() -> None:
    """The ledger's arrays are [z, y] for x, [z, x] for y, [y, x] for z: the places where the cells of a face lie."""
    x, y, z = np.meshgrid(np.arange(4), np.arange(3), np.arange(2), indexing="ij")
    index = (x + 10 * y + 100 * z).transpose(2, 1, 0)
    for face, expected in enumerate((index[:, :, 0], index[:, :, 3], index[:, 0], index[:, 2], index[0], index[1])):
        cells = index[FACE_SLICES[face]]
        assert cells.size == expected.size
        assert (cells.reshape(expected.shape) == expected).all()
