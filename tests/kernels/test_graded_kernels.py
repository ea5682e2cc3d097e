"""Cells of different widths: the kernels that step them do so alike, on the host machine and on a GPU."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from composite_executor import EXECUTIONS as COMPOSITE_EXECUTIONS
from composite_executor import CompositeResult, CompositeSteps
from composite_executor import Executor as CompositeExecutor
from composite_executor import builds as composite_builds
from composite_executor import on_cpu as composite_on_cpu
from composite_executor import on_host as composite_on_host
from covering import SLOW
from cuda_host.host_cupy import host_device
from executor import (
    CPU,
    CUDA,
    EXECUTIONS,
    ROOM,
    Borders,
    Executor,
    Result,
    Steps,
    on_host,
    room_of,
    source_of,
    sweeps_on_cuda,
)
from numpy.typing import NDArray
from test_composite_kernels import body
from test_kernels import PERIODIC, random_steps

from heatsim.grid import Grid
from heatsim.kernels import fitting
from heatsim.kernels.catalog import KERNELS, SINGLE_STEP, KernelSpec, choose
from heatsim.kernels.emulation.machine import compile_kernels
from heatsim.kernels.launch_shapes import Task, candidates

ORACLE, NAIVE = CPU[0], CUDA[0]
CHOSEN = [each for each in EXECUTIONS if each.values[0].graded and each.values[0] not in CPU]
# In float64 only the type of numbers differs, but for 06, which keeps coefficients in shared memory.
CASES = [
    pytest.param(*each.values, precision, id=f"{each.id}-{precision}", marks=each.marks)
    for each in CHOSEN
    for precision in ("float32", "float64")
    if SLOW or each.marks or precision == "float32" or each.values[0] == SINGLE_STEP
]
EVERY_CASE = pytest.mark.parametrize(("spec", "execute", "precision"), CASES)
OPEN = (False, False, False)
FLOAT = {"float32": np.float32, "float64": np.float64}


def borders(cells: tuple[int, int, int], seed: int, axes: str = "xyz", spread: float = 3.0) -> Borders:
    """Random planes: widths differ by factors of up to ``spread``² along some axes, and are equal along the others."""
    rng = np.random.default_rng(seed)
    found = [np.cumsum([0.0, *(spread ** rng.uniform(-1.0, 1.0, n))]) * 1e-3 for n in cells]
    x, y, z = (tuple(of.tolist()) if name in axes else () for name, of in zip("xyz", found, strict=True))
    return x, y, z


def graded(cells: tuple[int, int, int], axes: str, seed: int, spread: float = 3.0) -> Steps:
    """Five random steps, whose coefficients suit the narrowest cells."""
    case = random_steps(cells, PERIODIC[3 * seed % 8], seed, steps=5)
    case = replace(case, borders=borders(cells, seed, axes, spread))
    largest = np.repeat([axis.link_factors.max() for axis in case.grid.axes], 2)
    return replace(case, c=np.concatenate((case.c[:1], case.c[1:] / largest)).astype(np.float32))


# Thin grids, whole and broken vectors, several tiles and bricks.
SHAPES = (((1, 1, 1), "xyz"), ((5, 3, 4), "xyz"), ((8, 8, 8), "y"), ((35, 6, 9), "xz"), ((36, 40, 13), "xyz"))


@cache
def cases() -> tuple[Steps, ...]:
    """The last one has stages of different lengths."""
    plain = [graded(cells, axes, number) for number, (cells, axes) in enumerate(SHAPES)]
    lengths = np.random.default_rng(9).integers(1, 5, (5, 1)) / 4.0
    stages = np.hstack((np.zeros((5, 1)), lengths * plain[-1].c[1::2])).astype(np.float32)
    return *plain, replace(plain[-1], stages=stages)


def cases_of(spec: KernelSpec) -> tuple[Steps, ...]:
    """All cases; for resident kernels, which have a build for each size of blocks, the large ones."""
    return cases()[-2:] if spec.resident and not SLOW else cases()


@cache
def compile_all() -> None:
    compile_kernels(
        source_of(build)
        for build in dict.fromkeys(
            build
            for spec, execute, precision in (each.values for each in CASES)
            if execute is on_host
            for case in cases_of(spec)
            for _, _, build, _ in sweeps_on_cuda(spec, case, precision, "increments")
        )
    )


@cache
def results(spec: KernelSpec, execute: Executor, precision: str) -> tuple[Result, ...]:
    if execute is on_host:
        compile_all()
    return tuple(execute(spec, case, precision, "increments") for case in cases_of(spec))


def by_widths(case: Steps) -> NDArray[np.float64]:
    """The field after the steps, from α/d² of cells of the mean widths and from the widths alone."""
    T, nodes = case.T.astype(np.float64), case.grid.axes
    for step, (f, g) in enumerate(zip(case.f.astype(np.float64), case.g.astype(np.float64), strict=True)):
        c, total = case.coefficients(step).astype(np.float64), np.zeros(T.shape)
        for n in range(6):
            axis, forward = n // 2, n % 2
            d, values = nodes[axis].widths, np.moveaxis(T, 2 - axis, -1)
            places = np.arange(len(d)) + (1 if forward else -1)
            inside = (places >= 0) & (places < len(d))
            places = places % len(d)
            flux = (values[..., places] - values) * 2.0 / (d + d[places])
            kappa = c[1 + n] * nodes[axis].spacing ** 2
            conducted = kappa * flux / d * (inside | case.periodic[axis])
            end = -1 if forward else 0
            conducted[..., end] += f[n] - g[n] * values[..., end]
            total += np.moveaxis(conducted, -1, 2 - axis)
        T = T + total
    return T


@EVERY_CASE
def test_kernels_equal_the_formula(spec: KernelSpec, execute: Executor, precision: str) -> None:
    for case, result in zip(cases_of(spec), results(spec, execute, precision), strict=True):
        exact = by_widths(case)
        bound = 32.0 * len(case.f) * np.finfo(precision).eps * (2.0 * np.abs(exact).max() + 6.0 * np.abs(case.f).max())
        assert np.abs(result.T - exact).max() <= bound, case.cells


@pytest.mark.parametrize(("spec", "execute"), CHOSEN)
def test_cuda_kernels_give_the_same_bits(spec: KernelSpec, execute: Executor) -> None:
    first = dict(zip(cases(), results(NAIVE, on_host, "float32"), strict=True))
    for case, result in zip(cases_of(spec), results(spec, execute, "float32"), strict=True):
        result.assert_same_bits(first[case])


def test_widths_that_hardly_differ_give_the_steps_of_equal_cells() -> None:
    case = graded((36, 9, 7), "xyz", 3, spread=1.0 + 1e-9)
    hardly = on_host(SINGLE_STEP, case, "float64", "increments")
    equal = on_host(SINGLE_STEP, replace(case, borders=((), (), ())), "float64", "increments")
    assert 0.0 < np.abs(hardly.T - equal.T).max() <= 1e-6


COMPOSITE_CASES = [
    each for each in COMPOSITE_EXECUTIONS if each.values[0].graded and each.values[1] is not composite_on_cpu
]


@cache
def bodies() -> tuple[CompositeSteps, ...]:
    """Everything that a body may have, on graded grids; many cells are beside others of their type."""

    def of(
        cells: tuple[int, int, int], periodic: tuple[bool, bool, bool], seed: int, axes: str, **has: bool
    ) -> CompositeSteps:
        return body(cells, periodic, seed, steps=3, borders=borders(cells, seed, axes), **has)  # type: ignore[arg-type]

    return (
        of((36, 9, 11), OPEN, 300, "xyz", mixed=True, in_space=True),
        of((12, 8, 9), (True, False, True), 302, "xy", cell_heat=True, laws=True),
        of((36, 8, 9), OPEN, 303, "xyz", several=False),
        of((33, 6, 10), (False, True, False), 304, "xyz", varying=True, cell_heat=True),
        of((36, 6, 9), OPEN, 305, "xyz", several=False, varying=True),
        # The half cells of rings differ inwards and outwards.
        of((33, 1, 10), OPEN, 306, "xz", varying=True, cell_heat=True, radial=True),
    )


def bodies_of(spec: KernelSpec) -> tuple[CompositeSteps, ...]:
    """All bodies for 06; two for 01 and 09, which do the same with cells in other places, one for 10."""
    return bodies() if SLOW or spec in (*CPU, SINGLE_STEP) else bodies()[:1] if spec.boxed else bodies()[::3]


@cache
def compile_bodies() -> None:
    compile_kernels(
        source_of(build)
        for build in dict.fromkeys(
            build
            for spec, execute in (each.values for each in COMPOSITE_CASES)
            if execute is composite_on_host
            for case in bodies_of(spec)
            for build in composite_builds(spec, case, "float32", "increments", room_of(spec))
        )
    )


@cache
def composite_results(spec: KernelSpec, execute: CompositeExecutor, precision: str) -> tuple[CompositeResult, ...]:
    if execute is composite_on_host:
        compile_bodies()
    return tuple(execute(spec, case, precision, "increments") for case in bodies_of(spec))


@pytest.mark.parametrize(("spec", "execute"), COMPOSITE_CASES)
def test_composite_bodies_equal_the_oracle(spec: KernelSpec, execute: CompositeExecutor) -> None:
    expected = dict(zip(bodies(), composite_results(ORACLE, composite_on_cpu, "float64"), strict=True))
    for case, result in zip(bodies_of(spec), composite_results(spec, execute, "float32"), strict=True):
        exact = expected[case]
        heat = case.rows.heat.max() + max(np.abs(sums).max(initial=0.0) for sums in exact.sums)
        size = max(np.abs(case.T).max(), np.abs(exact.T).max(), 300.0) + heat
        bound = 32.0 * case.steps * np.finfo(np.float32).eps * size
        for mine, others in zip((result.T, *result.sums), (exact.T, *exact.sums), strict=True):
            assert np.isfinite(mine).all()
            if others.size:
                assert np.abs(mine - others).max() <= bound, f"{case.grid.cells}, periodic {case.periodic}"


@pytest.mark.parametrize(("spec", "execute"), COMPOSITE_CASES)
def test_composite_bodies_have_the_same_bits(spec: KernelSpec, execute: CompositeExecutor) -> None:
    first = dict(zip(bodies_of(NAIVE), composite_results(NAIVE, composite_on_host, "float32"), strict=True))
    for case, result in zip(bodies_of(spec), composite_results(spec, execute, "float32"), strict=True):
        assert case not in first or result.T.tobytes() == first[case].T.tobytes()


def test_kernels_for_equal_cells_leave_graded_grids_to_others() -> None:
    grid = Grid((64, 64, 64), (1.0, 1.0, 1.0), borders=borders((64, 64, 64), 1))
    for spec in (each for each in KERNELS if each.backend == "cuda" and not each.graded):
        (build,) = fitting.builds(spec, "float32", "increments", grid, OPEN, ROOM)
        assert build.spec == SINGLE_STEP
        assert "-DGRADED=1" in build.options
    task = Task(host_device(), grid, OPEN, "float32", "increments")
    assert all(shape.spec.graded for shape in candidates(task))
    assert choose("auto", "cuda", graded=True) == SINGLE_STEP
    assert choose("auto", "cuda").name == "temporal"
