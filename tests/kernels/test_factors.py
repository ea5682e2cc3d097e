"""Steps of different lengths of composite bodies, by a factor on their increments, and the rate of change alone."""

from dataclasses import replace
from functools import cache
from math import fsum

import numpy as np
import pytest
from composite_executor import (
    COMPOSITE,
    EXECUTIONS,
    NAIVE,
    ON_CUDA,
    STREAMED,
    TEMPORAL,
    CompositeResult,
    CompositeSteps,
    Executor,
    builds,
    on_cpu,
    on_host,
)
from covering import SLOW
from executor import CPU, room_of, source_of
from test_composite_kernels import body

from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.emulation.machine import compile_kernels
from heatsim.physics.operator.heat_sums import HeatSums

ORACLE = CPU[0]
PRECISIONS = ("float32", "float64")
OPEN = (False, False, False)
# The first rung, whole vectors, and boxes that are stepped again.
CHOSEN = (*CPU, NAIVE, STREAMED, TEMPORAL)
EVERY_EXECUTION = pytest.mark.parametrize(
    ("spec", "execute"), [each for each in EXECUTIONS if each.values[0] in CHOSEN]
)
EVERY_CUDA = pytest.mark.parametrize(("spec", "execute"), [each for each in ON_CUDA if each.values[0] in CHOSEN])


def in_float64(spec: KernelSpec, execute: Executor) -> bool:
    """Compiling takes time: on the host kernels are compiled in float64 if slow."""
    return SLOW or execute is not on_host


CASES = [
    pytest.param(*each.values, precision, id=f"{each.id}-{precision}", marks=each.marks)
    for each in EXECUTIONS
    for precision in PRECISIONS
    if each.values[0] in CHOSEN and (precision == "float32" or in_float64(*each.values))
]


@cache
def bodies() -> tuple[CompositeSteps, ...]:
    """Several materials, one material with general faces, materials that vary; last, several conditions on a cell."""
    return (
        body((36, 8, 9), (False, True, False), 200),
        body((33, 6, 10), OPEN, 201),
        body((36, 8, 9), OPEN, 202, several=False),
        body((36, 4, 6), OPEN, 203, varying=True),
        body((36, 8, 9), OPEN, 204, mixed=True),
    )


@cache
def cases() -> tuple[CompositeSteps, ...]:
    """With five steps of 0.1 to 1.4 times the length for which the tables are made: at most as long as is stable."""
    rng = np.random.default_rng(5)
    return tuple(replace(case, rows=replace(case.rows, factors=rng.uniform(0.1, 1.4, case.steps))) for case in bodies())


@cache
def rates() -> tuple[CompositeSteps, ...]:
    """One evaluation of three of the bodies, added to 0 and to another field."""
    rng = np.random.default_rng(6)
    some = [bodies()[number] for number in (0, 2, 3)]
    ones = [replace(case, steps=1, rows=replace(case.rows, factors=np.array([250.0])), rate=True) for case in some]
    fields = [rng.uniform(-100.0, 100.0, case.T.shape).astype(np.float32) for case in ones]
    return (*ones, *(replace(case, base=base) for case, base in zip(ones, fields, strict=True)))


@cache
def results(spec: KernelSpec, execute: Executor, precision: str) -> tuple[CompositeResult, ...]:
    if execute is on_host:
        compile_all()
    return tuple(execute(spec, case, precision, "increments") for case in cases_of(spec, precision))


def cases_of(spec: KernelSpec, precision: str) -> tuple[CompositeSteps, ...]:
    """Pipelines evaluate no rates. Compiling takes time: cells of several conditions in float32 alone."""
    steps = cases() if spec in CPU or precision == "float32" else cases()[:-1]
    return steps if spec == TEMPORAL else (*rates(), *steps)


@cache
def compile_all() -> None:
    """All kernels for the host machine at once, on all cores."""
    compile_kernels(
        source_of(build)
        for build in dict.fromkeys(
            build
            for spec in CHOSEN
            if spec in COMPOSITE
            for precision in PRECISIONS
            if precision == "float32" or in_float64(spec, on_host)
            for case in cases_of(spec, precision)
            for build in builds(spec, case, precision, "increments", room_of(spec))
        )
    )


@pytest.mark.parametrize(("spec", "execute", "precision"), CASES)
def test_a_kernel_equals_the_oracle(spec: KernelSpec, execute: Executor, precision: str) -> None:
    exact = dict(zip(cases_of(ORACLE, "float64"), results(ORACLE, on_cpu, "float64"), strict=True))
    for case, result in zip(cases_of(spec, precision), results(spec, execute, precision), strict=True):
        expected = exact[case]
        # No term of an increment is rounded more than 32 times, Newton's steps among them.
        factor = max(1.0, float(case.rows.factors.max()))
        heat = case.rows.heat.max() + max(np.abs(sums).max(initial=0.0) for sums in expected.sums) / factor
        size = max(np.abs(case.T).max(), np.abs(expected.T).max() / factor, 300.0) + heat
        bound = 32.0 * case.steps * factor * np.finfo(precision).eps / 2.0 * size
        for mine, others in zip((result.T, *result.sums), (expected.T, *expected.sums), strict=True):
            assert np.abs(mine - others).max(initial=0.0) <= bound, f"{case.grid.cells}, rate {case.rate}"


@pytest.mark.parametrize(("spec", "execute", "precision"), [case for case in CASES if case.values[0] in COMPOSITE])
def test_cuda_kernels_give_the_same_bits(spec: KernelSpec, execute: Executor, precision: str) -> None:
    first = dict(zip(cases_of(NAIVE, precision), results(NAIVE, on_host, precision), strict=True))
    for case, result in zip(cases_of(spec, precision), results(spec, execute, precision), strict=True):
        result.assert_same_bits(first[case])


@pytest.mark.parametrize("precision", PRECISIONS)
def test_cpu_kernels_give_the_same_bits(precision: str) -> None:
    for first, other in zip(results(ORACLE, on_cpu, precision), results(CPU[1], on_cpu, precision), strict=True):
        other.assert_same_bits(first)


@pytest.mark.quick("numpy", "numba", "naive-host", "streamed-host")
@EVERY_EXECUTION
def test_a_factor_is_the_length_of_the_step(spec: KernelSpec, execute: Executor) -> None:
    """Tables for another step and a factor that makes up for it: the same steps but for rounding.

    Powers of two are exact, so the bits are the same. The heat of sources is counted in a step of the tables.
    """
    for case in bodies()[:3]:
        other = replace(
            case,
            dt=case.dt / 4.0,
            c=tuple(c / 4.0 for c in case.c),
            rows=replace(case.rows, heat=case.rows.heat / 4.0, factors=np.full(case.steps, 4.0)),
        )
        precision = "float64" if in_float64(spec, execute) else "float32"
        scaled, plain = (execute(spec, each, precision, "increments") for each in (other, case))
        for mine, others in zip((scaled.T, *scaled.sums), (plain.T, *plain.sums), strict=True):
            assert mine.tobytes() == others.tobytes()


@EVERY_CUDA
def test_kernels_for_steps_of_equal_length_read_no_factor(spec: KernelSpec, execute: Executor) -> None:
    for case in bodies()[:2]:
        unread = replace(case, equal=True, rows=replace(case.rows, factors=np.full(case.steps, np.nan)))
        execute(spec, unread, "float32", "increments").assert_same_bits(execute(spec, case, "float32", "increments"))


@EVERY_EXECUTION
def test_the_ledger_holds_the_heat_of_steps_with_factors(spec: KernelSpec, execute: Executor) -> None:
    """Σ C·(T − T_before) = Σ of the ledger's entries and sources, to the rounding of the terms."""
    precision = "float64" if in_float64(spec, execute) else "float32"
    for case in cases()[:3]:
        result = execute(spec, case, precision, "increments")
        capacity = case.materials.cell_heat_capacity
        cell_types = case.materials.cells & 0x7F if case.materials.cells.size else np.zeros(case.T.shape, np.uint8)
        stored = fsum((capacity[cell_types] * (result.T - case.T.astype(float))).reshape(-1))
        terms = []
        surfaces = case.materials.weighted_surfaces
        for first in {0, result.ledger.layout.to_beams}:
            of = HeatSums(result.ledger.layout, result.ledger.values[first:]).heats
            for face, sums in enumerate(of.faces):
                of_face = capacity[case.materials.types_on_face(face)] if not case.materials.uniform else capacity[0]
                terms += [(of_face * sums).sum()] if sums.size else []
            if of.towards_void.size:
                of_cells = capacity[cell_types.reshape(-1)[surfaces.cells]]
                terms.append((of.towards_void * of_cells).sum())
        counts = np.bincount(cell_types.reshape(-1), minlength=len(capacity))
        terms.append(fsum(case.rows.factors * (case.rows.heat @ (counts * capacity))))
        magnitude = float((capacity[cell_types] * np.abs(result.T)).sum()) + sum(map(abs, terms))
        assert stored == pytest.approx(fsum(terms), abs=32.0 * case.steps * np.finfo(precision).eps * magnitude)


def test_a_rate_keeps_the_digits_of_small_increments() -> None:
    """In float32 near a large deviation: the increments come from differences of neighbours."""
    case = replace(rates()[0], T=(1000.0 + np.float32(2.0**-8) * rates()[0].T.round()).astype(np.float32))
    exact = on_cpu(ORACLE, case, "float64", "increments")
    result = on_host(STREAMED, case, "float32", "increments")
    # Relative to the terms that are summed, not to T.
    inside = np.zeros(case.T.shape, bool)
    inside[2:-2, 2:-2, 2:-2] = True
    inside &= (case.materials.cells & 0x80) > 0
    assert inside.sum() > 20
    assert np.abs(result.T - exact.T)[inside].max() <= 32.0 * 2.0**-24 * 250.0 * 2.0
