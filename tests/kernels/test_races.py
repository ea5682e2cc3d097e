"""The kernels of the ladder have no races, and no barrier that they could do without.

Executed on the host with blocks and threads in opposite orders.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from executor import grid_on_host, of_steps, room_of
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.kernels import compilation, fitting, launch, structs
from heatsim.kernels.catalog import KERNELS, KernelSpec
from heatsim.kernels.emulation.machine import Guarded, HostKernel, KernelError, Order, compile_kernel, guarded

ORDERS: tuple[Order, ...] = ("forward", "reverse")
LADDER = [spec for spec in KERNELS if spec.backend == "cuda"]
GRID = Grid((36, 64, 37), (1.0, 1.0, 1.0))  # two tiles of a kernel that does several steps a sweep
FEW_CELLS = Grid((12, 10, 11), (1.0, 1.0, 1.0))  # for blocks that run at the same time
STEPS = 4  # a multiple of every kernel's
SEEDS = (3, 4)
BARRIER = re.compile(r"__sync(threads|warp)\([^)]*\);")


def text(spec: KernelSpec) -> str:
    return (compilation.FOLDER / spec.source).read_text(encoding="utf-8")


def grid_of(spec: KernelSpec) -> Grid:
    return FEW_CELLS if spec.resident else GRID


def build(spec: KernelSpec, members: bool = False) -> compilation.Build:
    if spec.resident:
        return fitting.builds(spec, "float32", "increments", FEW_CELLS, (False, True, False), room_of(spec))[0]
    return compilation.build(spec, "float32", "increments", GRID, members=members)


def host_kernel(spec: KernelSpec, source: Path, members: bool = False, mutant: bool = False) -> HostKernel:
    macros = [option for option in build(spec, members).options if option.startswith("-D")]
    return compile_kernel(source, macros, once=mutant)


def some_steps(
    kernel: HostKernel, spec: KernelSpec, order: Order, grid: Grid = GRID, seed: int = 3
) -> tuple[NDArray[Any], ...]:
    """The new field and the ledger's faces after steps from a random field, all faces conducting but y periodic."""
    T, T_new, faces, sweeps, coefficients = some_field(grid, seed)
    ledger = np.array(([face.array.ctypes.data for face in faces],), structs.LEDGER)
    its_build, a_launch = build(spec), STEPS // 2 if spec.resident else spec.steps
    launches = launch.launches(its_build, grid, (False, True, False), multiprocessors=1)
    for step in range(0, STEPS, a_launch):
        for part in launches:
            taken = of_steps(grid_on_host(part), a_launch // spec.steps)
            arguments = (T.array, T_new.array, taken, coefficients, sweeps[step:], ledger)
            kernel.launch(
                part.blocks, its_build.spec.block, *arguments, order=order, shared_bytes=its_build.shared_bytes
            )
            if spec.resident:  # its blocks go on from the counts of the launch before
                assert part.segments is not None
                assert (part.segments[:, 0] == step + a_launch).all()
        if not spec.resident or a_launch % 2:
            T, T_new = T_new, T
    for array in (T, T_new, *faces):
        array.assert_guards_untouched()
    return (T.array, *(face.array for face in faces))


def some_members(kernel: HostKernel, spec: KernelSpec, order: Order) -> tuple[NDArray[Any], ...]:
    """The same of two members, which the same blocks step one after the other."""
    fields, its_build = [some_field(GRID, seed) for seed in SEEDS], build(spec, members=True)
    table = np.zeros(len(SEEDS), structs.member_dtype("float32"))
    for row, (T, T_new, faces, sweeps, coefficients) in zip(table, fields, strict=True):
        row["field"], row["sweeps"] = (T.array.ctypes.data, T_new.array.ctypes.data), sweeps.ctypes.data
        row["ledger"]["face"], row["c"] = [face.array.ctypes.data for face in faces], coefficients["c"]
        row["count"], row["stride"] = STEPS // spec.steps, spec.steps
    launches = launch.launches(its_build, GRID, (False, True, False), multiprocessors=1, members=len(SEEDS))
    for number in range(STEPS // spec.steps):
        for part in launches:
            arguments = (table, np.zeros(1, np.uint32), np.uint32(number), grid_on_host(part))
            kernel.launch(part.blocks, spec.block, *arguments, order=order, shared_bytes=its_build.shared_bytes)
    results: list[NDArray[Any]] = []
    for T, T_new, faces, *_ in fields:
        for array in (T, T_new, *faces):
            array.assert_guards_untouched()
        results += [(T, T_new)[STEPS // spec.steps % 2].array, *(face.array for face in faces)]
    return tuple(results)


def some_field(grid: Grid, seed: int) -> tuple[Guarded, Guarded, list[Guarded], NDArray[Any], NDArray[Any]]:
    """Two buffers, the ledger's faces, struct StepData of all steps, struct Coefficients."""
    rng = np.random.default_rng(seed)
    T = guarded(rng.standard_normal(grid.shape).astype(np.float32))
    T_new = guarded(np.full(grid.shape, np.nan, np.float32))
    faces = [guarded(np.zeros(64 * 64)) for _ in range(6)]
    sweeps = np.zeros(STEPS, structs.sweep_dtype("float32"))
    sweeps["f"], sweeps["g"] = 0.1 * rng.random((2, STEPS, 6))
    sweeps["f"][:, 2:4] = sweeps["g"][:, 2:4] = 0.0  # nothing passes the faces of a periodic axis
    coefficients = np.array((0.1 * rng.random(7),), structs.coefficients_dtype("float32"))
    return T, T_new, faces, sweeps, coefficients


@cache
def right_result(grid: Grid = GRID, members: bool = False) -> tuple[NDArray[Any], ...]:
    """What the first rung computes, which has no shared memory."""
    kernel = host_kernel(LADDER[0], compilation.FOLDER / LADDER[0].source)
    seeds = SEEDS if members else SEEDS[:1]
    return tuple(array for seed in seeds for array in some_steps(kernel, LADDER[0], "forward", grid, seed))


def is_right(result: tuple[NDArray[Any], ...], grid: Grid = GRID, members: bool = False) -> bool:
    expected = right_result(grid, members)
    return all(np.array_equal(array, wanted) for array, wanted in zip(result, expected, strict=True))


@pytest.mark.quick(
    "temporal-forward",
    "temporal-reverse",
    "streamed-forward",
    "streamed-reverse",
    "bricked-forward",
    "resident-forward",
    "boxed-reverse",
)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("spec", LADDER, ids=lambda spec: spec.name)
def test_the_bits_do_not_depend_on_who_runs_first(spec: KernelSpec, order: Order) -> None:
    grid = grid_of(spec)
    assert np.isfinite(right_result(grid)[0]).all()
    assert is_right(some_steps(host_kernel(spec, compilation.FOLDER / spec.source), spec, order, grid), grid)
    if spec.resident:
        return  # it steps no members
    together = some_members(host_kernel(spec, compilation.FOLDER / spec.source, members=True), spec, order)
    assert is_right(together, members=True)


@pytest.mark.quick("temporal-0", "bricked-0", "boxed-0", "resident-0")
@pytest.mark.parametrize(
    ("spec", "number"),
    # Those that "auto" does not choose are slow.
    [
        pytest.param(s, n, id=f"{s.name}-{n}", marks=pytest.mark.slow if s in LADDER[1:5] else ())
        for s in LADDER
        for n in range(len(BARRIER.findall(text(s))))
    ],
)
def test_no_barrier_can_be_left_out(spec: KernelSpec, number: int, tmp_path: Path) -> None:
    barrier = list(BARRIER.finditer(text(spec)))[number]
    mutant = tmp_path / spec.source
    mutant.write_text(text(spec)[: barrier.start()] + text(spec)[barrier.end() :], encoding="utf-8")
    kernel, grid = host_kernel(spec, mutant, mutant=True), grid_of(spec)

    def is_found_out(order: Order) -> bool:
        try:
            return not is_right(some_steps(kernel, spec, order, grid), grid)
        except KernelError:  # who comes too soon may find no address
            return True

    assert any(is_found_out(order) for order in ORDERS)
