"""Steps of different lengths: every kernel takes the coefficients of each step from struct StepData."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from covering import SLOW
from executor import CPU, CUDA, EXECUTIONS, Executor, Result, Steps, on_cpu, on_host, source_of, sweeps_on_cuda
from test_kernels import PERIODIC, random_steps

from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.kernels.emulation.machine import compile_kernels
from heatsim.physics.matter.coefficients import Scheme

ORACLE = CPU[0]
VARIANTS: tuple[tuple[str, Scheme], ...] = tuple(
    (precision, scheme) for precision in ("float32", "float64") for scheme in ("seven_term", "increments")
)


def variants_of(spec: KernelSpec) -> tuple[tuple[str, Scheme], ...]:
    """On the host only kernels that sum differently run with every scheme: compiling takes time."""
    if spec in CPU or (SLOW and spec == CUDA[0]):
        return VARIANTS
    if spec == CUDA[0] or spec.name == "temporal":
        return VARIANTS[::2]
    return VARIANTS[::4] if spec in CUDA[5:] else VARIANTS[:1]


EVERY_VARIANT = pytest.mark.parametrize(("precision", "scheme"), VARIANTS, ids=["-".join(v) for v in VARIANTS])
# The first rung, and those that long steps take; the others are slow on the host.
FEW = (*CPU, *CUDA) if SLOW else (*CPU, CUDA[0], *CUDA[5:])
CHOSEN = [
    pytest.param(*execution.values, *variant, id=f"{execution.id}-{'-'.join(variant)}", marks=execution.marks)
    for execution in EXECUTIONS
    if execution.values[0] in FEW or execution.values[1] is not on_host
    for variant in variants_of(execution.values[0])
]
EVERY_EXECUTION = pytest.mark.parametrize(("spec", "execute", "precision", "scheme"), CHOSEN)
ON_CUDA = [each for each in CHOSEN if each.values[0] in CUDA]
# Thin grids, whole and broken vectors and tiles, grids that four steps a sweep take, several tiles.
GRIDS = ((1, 1, 1), (3, 2, 5), (8, 8, 8), (35, 6, 9), (32, 32, 8), (36, 40, 13), (68, 40, 9))


@cache
def cases() -> tuple[Steps, ...]:
    """Nine steps: two sweeps of four and one more. Some are far beyond the stability limit."""
    return tuple(staged(cells, PERIODIC[3 * number % 8], number) for number, cells in enumerate(GRIDS))


def staged(cells: tuple[int, int, int], periodic: tuple[bool, bool, bool], seed: int) -> Steps:
    steps = random_steps(cells, periodic, seed, steps=9)
    rng = np.random.default_rng(seed + 1000)
    lengths = rng.integers(1, 5, (9, 1)) / 2.0
    others = rng.integers(100, 450, (9, 3)) * 2.0**-12 * lengths
    stages = np.hstack((1.0 - 2.0 * others.sum(axis=1, keepdims=True), others)).astype(np.float32)
    return replace(steps, stages=stages)


@cache
def results(spec: KernelSpec, execute: Executor, precision: str, scheme: Scheme) -> tuple[Result, ...]:
    if execute is on_host:
        compile_all()
    return tuple(execute(spec, case, precision, scheme) for case in cases())


@cache
def compile_all() -> None:
    """All kernels for the host machine at once, on all cores."""
    compile_kernels(
        source_of(build)
        for build in dict.fromkeys(
            build
            for case in cases()
            for spec in CUDA
            if spec in FEW
            for variant in variants_of(spec)
            for _, _, build, _ in sweeps_on_cuda(spec, case, *variant)
        )
    )


def by_single_steps(case: Steps, precision: str, scheme: Scheme) -> Result:
    """By the first rung without stages: one launch for each step, with the coefficients of the step as its argument."""
    T, ledger = case.T.astype(precision), case.empty_ledger()
    for step in range(len(case.f)):
        only = slice(step, step + 1)
        one = replace(case, T=T, c=case.coefficients(step), f=case.f[only], g=case.g[only], stages=None)
        result = on_host(CUDA[0], one, precision, scheme)
        T = result.T
        for sums, entries in zip(ledger, result.ledger, strict=True):
            sums += entries
    return Result(T, tuple(ledger))


@pytest.mark.parametrize(("precision", "scheme"), variants_of(CUDA[0]))
def test_each_step_has_its_own_coefficients(precision: str, scheme: Scheme) -> None:
    for case, result in zip(cases(), results(CUDA[0], on_host, precision, scheme), strict=True):
        expected = by_single_steps(case, precision, scheme)
        assert result.T.tobytes() == expected.T.tobytes()
        for sums, entries in zip(result.ledger, expected.ledger, strict=True):
            np.testing.assert_allclose(sums, entries, rtol=0.0, atol=9e-16 * np.abs(case.f).max() * 1e3)


@pytest.mark.parametrize(("spec", "execute", "precision", "scheme"), ON_CUDA)
def test_cuda_kernels_give_the_same_bits(spec: KernelSpec, execute: Executor, precision: str, scheme: Scheme) -> None:
    for result, first in zip(
        results(spec, execute, precision, scheme), results(CUDA[0], on_host, precision, scheme), strict=True
    ):
        result.assert_same_bits(first)


@EVERY_EXECUTION
def test_every_kernel_equals_the_oracle(spec: KernelSpec, execute: Executor, precision: str, scheme: Scheme) -> None:
    """Each step multiplies errors by at most Σ|c|, and adds at most 32 roundings of its largest term."""
    exact = results(ORACLE, on_cpu, "float64", "increments")
    for case, result, expected in zip(cases(), results(spec, execute, precision, scheme), exact, strict=True):
        bound, size = 0.0, float(np.abs(case.T).max())
        ledger_bound = 0.0
        for step in range(len(case.f)):
            growth = float(np.abs(case.coefficients(step)).sum()) + 6.0 * float(case.g[step].max())
            heat = float(np.abs(case.f[step]).max())
            terms = growth * size + 6.0 * heat
            ledger_bound += bound + np.finfo(precision).eps * (size + heat)
            bound = growth * bound + 16.0 * np.finfo(precision).eps * terms
            size = terms
        assert np.abs(result.T - expected.T).max() <= bound
        for mine, others in zip(result.ledger, expected.ledger, strict=True):
            assert np.abs(mine - others).max(initial=0.0) <= ledger_bound


@EVERY_VARIANT
def test_the_cpu_kernel_does_stages_of_one_call_to_the_same_bits(precision: str, scheme: Scheme) -> None:
    for case, expected in zip(cases(), results(ORACLE, on_cpu, precision, scheme), strict=True):
        sweeps = case.sweeps(precision)
        c = np.array([case.coefficients(step) for step in range(len(case.f))], precision)
        for kernel in CPU_KERNELS.values():
            ledger, T = case.empty_ledger(), case.T.astype(precision)
            T, _ = kernel(T, T.copy(), case.periodic, c, sweeps["f"], sweeps["g"], ledger, scheme)
            Result(T, tuple(ledger)).assert_same_bits(expected)
