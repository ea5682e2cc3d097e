"""The kernels of the ladder have no races, and no barrier that they could do without.

Executed on the host with blocks and threads in opposite orders.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_host.machine import HostKernel, Order, compile_kernel, guarded
from executor import grid_on_host
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.kernels import launch
from heatsim.kernels.catalog import KERNELS, KernelSpec

ORDERS: tuple[Order, ...] = ("forward", "reverse")
LADDER = [spec for spec in KERNELS if spec.backend == "cuda"]
GRID = Grid((36, 64, 37), (1.0, 1.0, 1.0))  # two tiles of a kernel that does several steps a sweep
STEPS = 4  # a multiple of every kernel's
BARRIER = re.compile(r"__sync(threads|warp)\([^)]*\);")


def text(spec: KernelSpec) -> str:
    return (launch.FOLDER / spec.source).read_text(encoding="utf-8")


def build(spec: KernelSpec) -> launch.Build:
    return launch.build(spec, "float32", "increments", GRID)


def host_kernel(spec: KernelSpec, source: Path) -> HostKernel:
    macros = [option for option in build(spec).options if option.startswith("-D")]
    return compile_kernel(source, macros, include=(launch.FOLDER,))


def some_steps(kernel: HostKernel, spec: KernelSpec, order: Order) -> tuple[NDArray[Any], ...]:
    """The new field and the ledger's faces after steps from a random field, all faces conducting but y periodic."""
    rng = np.random.default_rng(3)
    T = guarded(rng.standard_normal(GRID.shape).astype(np.float32))
    T_new = guarded(np.full(GRID.shape, np.nan, np.float32))
    faces = [guarded(np.zeros(64 * 64)) for _ in range(6)]
    sweeps = np.zeros(STEPS, launch.sweep_dtype("float32"))
    sweeps["f"], sweeps["g"] = 0.1 * rng.random((2, STEPS, 6))
    sweeps["f"][:, 2:4] = sweeps["g"][:, 2:4] = 0.0  # nothing passes the faces of a periodic axis
    coefficients = np.array((0.1 * rng.random(7),), launch.coefficients_dtype("float32"))
    ledger = np.array(([face.array.ctypes.data for face in faces],), launch.LEDGER)
    for step in range(0, STEPS, spec.steps):
        for part in launch.launches(build(spec), GRID, (False, True, False), multiprocessors=1):
            arguments = (T.array, T_new.array, grid_on_host(part), coefficients, sweeps[step:], ledger)
            kernel.launch(part.blocks, spec.block, *arguments, order=order, shared_bytes=build(spec).shared_bytes)
        T, T_new = T_new, T
    for array in (T, T_new, *faces):
        array.assert_guards_untouched()
    return (T.array, *(face.array for face in faces))


@cache
def right_result() -> tuple[NDArray[Any], ...]:
    """What the first rung computes, which has no shared memory."""
    return some_steps(host_kernel(LADDER[0], launch.FOLDER / LADDER[0].source), LADDER[0], "forward")


def is_right(result: tuple[NDArray[Any], ...]) -> bool:
    return all(np.array_equal(array, expected) for array, expected in zip(result, right_result(), strict=True))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("spec", LADDER, ids=lambda spec: spec.name)
def test_the_bits_do_not_depend_on_who_runs_first(spec: KernelSpec, order: Order) -> None:
    assert np.isfinite(right_result()[0]).all()
    assert is_right(some_steps(host_kernel(spec, launch.FOLDER / spec.source), spec, order))


@pytest.mark.parametrize(
    ("spec", "number"),
    [pytest.param(s, n, id=f"{s.name}-{n}") for s in LADDER for n in range(len(BARRIER.findall(text(s))))],
)
def test_no_barrier_can_be_left_out(spec: KernelSpec, number: int, tmp_path: Path) -> None:
    barrier = list(BARRIER.finditer(text(spec)))[number]
    mutant = tmp_path / spec.source
    mutant.write_text(text(spec)[: barrier.start()] + text(spec)[barrier.end() :], encoding="utf-8")
    kernel = host_kernel(spec, mutant)
    assert not all(is_right(some_steps(kernel, spec, order)) for order in ORDERS)
