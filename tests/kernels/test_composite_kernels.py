"""Every kernel computes the same steps of a body of materials, contacts, patches, radiation, void and sources."""

from dataclasses import replace
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from composite_executor import (
    COMPOSITE,
    EXECUTIONS,
    NAIVE,
    STREAMED,
    TEMPORAL,
    VARIANTS,
    CompositeResult,
    CompositeSteps,
    Executor,
    builds,
    on_cpu,
    on_host,
)
from covering import SLOW, covering
from executor import CPU, Borders, room_of, source_of
from executor import VARIANTS as EVERY_VARIANT
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.kernels import launch
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.emulation.machine import compile_kernels
from heatsim.physics.cells import cell_type_map
from heatsim.physics.cells.cell_heat import Amount, DensityTable, HeatedCells
from heatsim.physics.cells.cell_types import INTERIOR, CellTypes
from heatsim.physics.cells.link_weights import types_around
from heatsim.physics.conditions.law_nodes import make_nodes
from heatsim.physics.conditions.mixed_cells import MIXED, NO_MIXED_CELLS, TOWARDS_VOID, MixedCells, place_of
from heatsim.physics.conditions.surface_laws import append_tables
from heatsim.physics.geometry.cell_faces import cells_beside
from heatsim.physics.layers.layering import NO_LAYERS, Layering
from heatsim.physics.matter.coefficients import Scheme
from heatsim.physics.matter.enthalpy import tabulate
from heatsim.physics.matter.material_numbers import VOID, MaterialNumbers
from heatsim.physics.operator.boundary_faces import towards_void
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.sources.beam_rows import BeamRows
from heatsim.scenario import Constant, Material

ORACLE = CPU[0]

# In float64 only the type of numbers differs: by default the host executes those kernels only where a test names them.
CHOSEN_EXECUTIONS = [
    pytest.param(*execution.values, variant, id=f"{execution.id}-{'-'.join(variant)}", marks=execution.marks)
    for execution in EXECUTIONS
    for variant in VARIANTS
    if execution.values[0] in CPU
    or (execution.values[0] in COMPOSITE and (SLOW or execution.marks or variant[0] == "float32"))
]
SIGMA = 5.670374419e-8
PALETTE = (
    MaterialNumbers("copper", (400.0, 380.0, 360.0), 3.4e6),
    MaterialNumbers("iron", (80.0, 80.0, 80.0), 3.5e6),
    MaterialNumbers("glass", (1.0, 1.0, 1.0), 2.0e6),
    VOID,
)
# What changes with temperature: conductivity, heat capacity, both and melting; all in steps of 1/64 K or more.
CHANGING = {
    "copper": Material(conductivity="400 - 0.06*(T - 300)", density=8900.0, specific_heat=385.0),  # type: ignore[arg-type]
    "iron": Material(
        conductivity={"temperatures": [250.0, 320.0, 500.0], "values": [60.0, 80.0, 50.0]},  # type: ignore[arg-type]
        density=7800.0,
        specific_heat={"temperatures": [200.0, 600.0], "values": [420.0, 600.0]},  # type: ignore[arg-type]
        latent_heat=2e4,
        solidus=310.0,
        liquidus=330.0,
    ),
}
# The first rung, whole vectors, and boxes that are stepped again.
MIXING = (*CPU, NAIVE, STREAMED, TEMPORAL)
SIZES = ((1, 1, 1), (5, 1, 3), (4, 4, 4), (36, 9, 11), (33, 6, 10), (130, 8, 9), (256, 4, 3))


def blobs(cells: tuple[int, int, int], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Boxes of materials, larger and smaller ones."""
    shape = cells[::-1]
    material = np.zeros(shape, dtype=np.uint8)
    for number in range(12):
        corners = [(low, low + rng.integers(1, n // 2 + 2)) for n in shape for low in rng.integers(0, n, 1)]
        material[tuple(slice(low, high) for low, high in corners)] = number % len(PALETTE)
    return material


def with_enthalpy(substance: MaterialNumbers) -> MaterialNumbers:
    """A material of CHANGING in place of a constant one of its name, at 300 K."""
    if substance.name not in CHANGING:
        return substance
    enthalpy = tabulate(CHANGING[substance.name], 300.0, 150.0, 900.0)
    return MaterialNumbers(substance.name, enthalpy.conductivity, enthalpy.heat_capacity, enthalpy)


def divide(maps: list[NDArray[np.uint8]], rng: np.random.Generator) -> MixedCells:
    """A third of the cells of faces with patches, shared by two or three conditions; they are entered in the maps."""
    places, numbers, fractions = [], [], []
    for face in range(6):
        for cell in np.flatnonzero(rng.random(maps[face].size) < 0.3).tolist():
            parts = 2 + cell % 2
            maps[face].reshape(-1)[cell] = MIXED
            places.append(place_of(face, cell))
            numbers.append(rng.choice([face, 6, 7], parts, replace=False))
            fractions.append(rng.dirichlet(np.ones(parts)))
    first = np.cumsum([0, *(len(parts) for parts in numbers)])
    joined = (np.concatenate([np.zeros(0), *parts]) for parts in (numbers, fractions))
    return MixedCells(np.array(places, np.int64), first, next(joined).astype(np.int64), next(joined))


def divide_towards_void(
    materials: CellTypes, mixed: MixedCells, periodic: tuple[bool, bool, bool], rng: np.random.Generator
) -> tuple[CellTypes, MixedCells]:
    """All surfaces of the first material towards void, shared by one to three conditions, among them a held one."""
    weighted, towards = materials.weighted_surfaces, [cell_type.material == 0 for cell_type in materials.types]
    own, _ = types_around(materials, weighted.cells)
    places, parts = [mixed.places], [np.arange(len(mixed.numbers))[a:b] for a, b in pairwise(mixed.first)]
    numbers, fractions = [mixed.numbers], [mixed.fractions]
    for faces in towards_void(materials, periodic, NO_MIXED_CELLS):
        side = faces.side
        for cell in np.sort(faces.cells[np.array(towards)[own[faces.places]]]).tolist():
            count = 1 + cell % 3
            start = sum(map(len, numbers))
            places.append(np.array([place_of(TOWARDS_VOID + side, cell)]))
            parts.append(np.arange(start, start + count))
            numbers.append(rng.choice([3, 4, 6, 7, 8], count, replace=False))
            fractions.append(rng.dirichlet(np.ones(count)))
    first = np.cumsum([0, *map(len, parts)])
    marked = np.where(towards, MIXED, materials.void_conditions).astype(np.int32)
    joined = np.concatenate(numbers).astype(np.int64), np.concatenate(fractions)
    return replace(materials, void_conditions=marked), MixedCells(np.concatenate(places), first, *joined)


def layers(
    grid: Grid, material: NDArray[np.uint8], periodic: tuple[bool, bool, bool], rng: np.random.Generator
) -> Layering:
    """Random changes of a third of the cells that conduct, and of a third of the links between such cells."""
    conducts = np.array([substance.conductivity is not None for substance in PALETTE])
    index = np.indices(grid.shape)[::-1].reshape(3, -1)
    faces = np.concatenate(
        [
            3 * np.flatnonzero((index[axis] < n - 1) | (periodic[axis] and n > 1)) + axis
            for axis, n in enumerate(grid.cells)
        ]
    )
    faces.sort()
    low, high = cells_beside(grid, faces)
    some = conducts[material.reshape(-1)[low]] & conducts[material.reshape(-1)[high]] & (rng.random(len(faces)) < 0.3)
    faces = faces[some]
    cells = np.flatnonzero(conducts[material.reshape(-1)] & (rng.random(grid.cell_count) < 0.3))
    kinds = rng.integers(0, 3, len(cells))
    return Layering(
        cells,
        np.array([0.0, 1e5, 1e6])[kinds],
        np.array([1e-8, 1e-5, 1e-4])[kinds][:, None] * np.array([1.0, 2.0, 3.0]),
        np.zeros((len(cells), 3)),
        faces,
        rng.uniform(1e3, 1e6, len(faces)),
        {},
    )


def with_laws(conditions: NDArray[np.float64]) -> NDArray[np.float64]:
    """The conditions with tables of the temperature of the surface in place of two of them."""
    nodes = make_nodes(300.0)
    natural = -3.0 * np.sign(nodes) * np.abs(nodes) ** 1.25
    # With corners, one straight part that is level, and one that rises as in boiling.
    clipped = np.clip(-500.0 * nodes, -2e4, 1e3) - 5.0 * np.maximum(nodes - 200.0, 0.0)
    clipped += np.clip(40.0 * (nodes - 60.0), 0.0, 4e3)
    fluxes = [np.linspace(1.0, 2.0, len(conditions))[:, None] * flux for flux in (natural, clipped)]
    return append_tables(conditions, (0, 8), nodes, fluxes)


def heated_cells(materials: CellTypes, rng: np.random.Generator, beams: int) -> HeatedCells:
    """Cells with one to three random entries: of a plain amount, two that depend on temperature, and beams.

    The tables lie one behind the other, so that an entry behind the end of the first is one of the second.
    """
    grid = materials.grid
    types = materials.types_of((slice(None),) * 3).reshape(-1)
    cells = np.flatnonzero(
        (types != (-1 if materials.void is None else materials.void)) & (rng.random(len(types)) < 0.4)
    )
    counts = rng.integers(1, 4, len(cells))
    chosen = [np.sort(rng.choice(3 + beams, count, replace=False)) for count in counts]
    numbers = np.concatenate([np.zeros(0, np.int32), *chosen], dtype=np.int32)
    spots = np.stack([rng.integers(0, n, len(numbers)) for n in grid.cells[:2]], axis=1).astype(np.int32)
    capacity = materials.heat_capacity[types[cells]]
    nodes = np.cumsum(rng.uniform(0.1, 1.0, (2, 9)), axis=1)
    return HeatedCells(
        cells,
        np.concatenate(([0], np.cumsum(counts))),
        numbers,
        rng.uniform(0.1, 1.0, len(numbers)),
        spots,
        capacity,
        amounts=tuple(Amount(0, Constant(1.0), table=table) for table in (-1, 1, 0)),
        tables=(DensityTable(250.0, 0.1, nodes[0]), DensityTable(290.0, 0.2, nodes[1, ::-1])),
        volume=grid.mean_volume,
        lit=rng.integers(0, 64, len(materials.weighted_surfaces.cells)).astype(np.uint8)
        if materials.exposed_cells
        else np.zeros(0, np.uint8),
    )


@cache
def body(
    cells: tuple[int, int, int],
    periodic: tuple[bool, bool, bool],
    seed: int,
    several: bool = True,
    steps: int = 5,
    varying: bool = False,
    mixed: bool = False,
    layered: bool = False,
    slabs: int | None = None,
    laws: bool = False,
    cell_heat: bool = False,
    in_space: bool = False,
    borders: Borders = ((), (), ()),
    radial: bool = False,
) -> CompositeSteps:
    """A random body with everything that there is; ``slabs`` is an axis across which it has slabs instead of boxes.

    ``borders`` give its cells other widths afterwards: kernels take any weights of links beside those of widths. With
    ``radial`` they are rings.

    It takes longer to make than to step.
    """
    rng = np.random.default_rng(seed)
    grid = Grid(cells, tuple(n * d for n, d in zip(cells, (1e-3, 2e-3, 1.5e-3), strict=True)))  # type: ignore[arg-type]
    masks = [rng.random(grid.shape) < 0.3, None]
    material = blobs(cells, rng) if several else None
    if slabs is not None:
        material = (np.indices(grid.shape)[2 - slabs] // 2 % len(PALETTE)).astype(np.uint8)
        masks = [material == 1, None]
    materials = cell_type_map.build(
        grid,
        PALETTE if several else PALETTE[:1],
        material,
        contacts={frozenset((0, 1)): 1e-4},
        heated=masks if several else [None],
        periodic=periodic,
        # Conditions towards void differ from material to material: radiation, convection, held.
        void_conditions=[(8, 6, 3)[place % 3] for place in range(len(PALETTE))] if several else None,
        layering=layers(grid, material, periodic, rng) if layered and material is not None else NO_LAYERS,
    )
    materials = replace(materials, grid=replace(grid, borders=borders, radial=radial))
    if varying:
        materials = materials.with_palette([with_enthalpy(substance) for substance in materials.palette])
    nx, ny, _ = grid.cells
    maps = [np.zeros((0, 0), dtype=np.uint8)] * 6
    for face in (1, 5):
        if not periodic[face // 2]:
            maps[face] = rng.choice(np.array([face, 6, 7], dtype=np.uint8), grid.face_shape(face))
    divided = divide(maps, rng) if mixed else NO_MIXED_CELLS
    if in_space:
        materials, divided = divide_towards_void(materials, divided, periodic, rng)
    # Film, ambient, flux, emission, surroundings, free: convection, flux, radiation, held, all, and towards void.
    different = np.array(
        [
            (500.0, 40.0, 0.0, 0.0, 40.0, 1.0),
            (0.0, 0.0, 3e4, 0.0, 0.0, 1.0),
            (0.0, 900.0, 0.0, 0.8 * SIGMA, 900.0, 1.0),
            (1.0, -50.0, 0.0, 0.0, 0.0, 0.0),
            (20.0, 300.0, -1e3, SIGMA, 1500.0, 1.0),
            (0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
            (1e4, 10.0, 0.0, 0.0, 10.0, 1.0),
            (0.0, -200.0, 0.0, 0.3 * SIGMA, -200.0, 1.0),
            (50.0, 20.0, 0.0, 0.5 * SIGMA, 500.0, 1.0),
        ]
    )
    conditions = np.repeat(different[None], steps, axis=0)
    conditions[:, :, 1] += np.arange(steps)[:, None]
    if laws:
        conditions = with_laws(conditions)
    heat = rng.uniform(0.0, 0.5, (steps, len(materials.types)))
    amounts = np.zeros((1, 1))
    if cell_heat:
        materials = replace(materials, heated=heated_cells(materials, rng, 0 if periodic[2] else 2))
    beams = []
    if not periodic[2]:
        n_u, n_v = min(nx, 5), min(ny, 3)
        # Up to three spots a step; the weights of the others are 0.
        spots = rng.integers(0, 4, steps).astype(np.int32)
        starts = [rng.integers(0, n - width + 1, (steps, 3)) for n, width in ((nx, n_u), (ny, n_v))]
        there = np.arange(3)[:, None] < spots[:, None, None]
        weights = (1e6 * rng.random((steps, 3, n_u)) * there, rng.random((steps, 3, n_v)) * there)
        beams = [BeamRows(5, np.stack(starts, axis=2).astype(np.int32), weights, spots)]
    # Two thirds of what the worst cell can bear: three pairs of neighbours, each as a held face of the best conductor.
    factors = [(of.gain_factors / np.minimum(of.half_factors, of.beyond_factors)).max() for of in materials.grid.axes]
    dt = 1.0 / 1.5 / float(sum(4.0 * materials.rates()[axis].max() * factors[axis] for axis in range(3)) * 2.0 + 1e-9)
    if cell_heat:
        amounts = np.hstack((rng.uniform(-1e6, 1e6, (steps, 3)) * dt, np.full((steps, 1), dt)))
        # The second beam reaches no face, only cells.
        beams += [replace(beam, number=1, at_face=False) for beam in beams]
    share = np.array([rate[0, 0] * (n > 1) for rate, n in zip(materials.rates(), cells, strict=True)]) * dt
    return CompositeSteps(
        materials=materials,
        maps=tuple(maps),
        rows=StepInputs(conditions, materials.potentials_at(conditions[:, :, 1]), heat, tuple(beams), amounts=amounts),
        steps=steps,
        dt=dt,
        periodic=periodic,
        T=rng.uniform(-100.0, 100.0, grid.shape).astype(np.float32),
        c=(1.0 - 2.0 * float(share.sum()), *np.repeat(share, 2).tolist()),
        mixed=divided,
        beams=len(beams),
    )


@cache
def heated_cases() -> tuple[CompositeSteps, ...]:
    return (
        body((36, 8, 9), (False, False, False), 60, cell_heat=True),
        body((9, 5, 7), (True, False, False), 61, cell_heat=True, mixed=True),
        body((12, 6, 5), (False, True, False), 62, several=False, cell_heat=True),
        body((1, 6, 9), (False, False, False), 63, cell_heat=True),
        body((10, 6, 9), (False, False, False), 64, varying=True, cell_heat=True),
        body((8, 6, 9), (False, False, True), 65, several=False, varying=True, cell_heat=True),
    )


@cache
def cases() -> tuple[CompositeSteps, ...]:
    periodic = tuple(product((False, True), repeat=3))
    return (
        *(body(cells, periodic[(3 * number) % 8], number) for number, cells in enumerate(SIZES)),
        *(body((12, 8, 9), wraps, 20 + number) for number, wraps in enumerate(periodic[:8:3])),
        *(body(cells, (False, False, False), 30, several=False) for cells in ((5, 4, 3), (36, 8, 9))),
        *(
            body(cells, periodic[(3 * number) % 8], 40 + number, varying=True)
            for number, cells in enumerate(SIZES)
            if number in (1, 3, 4, 6)
        ),
        *(body((36, 6, 9), wraps, 50, several=False, varying=True) for wraps in periodic[:4:3]),
    )


@cache
def mixed_cases() -> tuple[CompositeSteps, ...]:
    closed = (False, False, False)
    return (
        body((256, 4, 3), closed, 70, mixed=True),
        body((36, 8, 9), closed, 71, several=False, mixed=True),
        body((33, 6, 10), closed, 72, varying=True, mixed=True),
    )


@cache
def cases_in_space() -> tuple[CompositeSteps, ...]:
    closed = (False, False, False)
    return (
        body((36, 9, 11), closed, 73, mixed=True, in_space=True),
        body((12, 8, 9), (True, False, False), 74, in_space=True, cell_heat=True),
        body((33, 6, 10), closed, 75, varying=True, in_space=True, cell_heat=True),
        body((24, 6, 8), closed, 76, laws=True, in_space=True),
    )


@cache
def layered_cases() -> tuple[CompositeSteps, ...]:
    return (
        body((36, 9, 11), (False, True, False), 80, layered=True),
        body((4, 4, 4), (False, False, False), 81, layered=True),
    )


@cache
def law_cases() -> tuple[CompositeSteps, ...]:
    closed = (False, False, False)
    return (
        body((36, 9, 11), closed, 90, laws=True),
        body((36, 8, 9), closed, 91, several=False, laws=True, mixed=True),
        body((33, 6, 10), closed, 92, varying=True, laws=True),
    )


@cache
def few_cases() -> tuple[CompositeSteps, ...]:
    """Some of them: any two features that a body has, one of these has too. Of equal bodies the largest does."""
    of = {}
    for case in sorted(cases(), key=lambda case: case.grid.cell_count):
        body = case.materials
        contacts, heated = body.weighted_surfaces.contacts, body.first_heated < len(body.types)
        of[body.uniform, body.varies, contacts, heated, body.exposed_cells > 0, any(case.periodic)] = case
    return tuple(of[features] for features in covering(of))


def cases_of(spec: KernelSpec, precision: str, scheme: Scheme) -> tuple[CompositeSteps, ...]:
    """All cases; a few for CUDA in float64, where only the type of numbers differs, because compiling takes time.

    Kernels that do what 06 does with cells in other places have a few too, as 01, and 07, whose boxes are tested on
    bodies of test_correction.py.
    """
    return cases() if spec in CPU or SLOW or (spec == STREAMED and precision == "float32") else few_cases()


@cache
def result_of(
    spec: KernelSpec, execute: Executor, case: CompositeSteps, precision: str, scheme: Scheme
) -> CompositeResult:
    """For results with which several others are compared."""
    return execute(spec, case, precision, scheme)


@cache
def results(spec: KernelSpec, execute: Executor, precision: str, scheme: Scheme) -> tuple[CompositeResult, ...]:
    if execute is on_host:
        compile_all()
    return tuple(execute(spec, case, precision, scheme) for case in cases_of(spec, precision, scheme))


@cache
def compile_all() -> None:
    """All kernels that the host machine executes at once, on all cores."""
    compile_kernels(
        source_of(build)
        for spec, execute, (precision, scheme) in (each.values for each in CHOSEN_EXECUTIONS)
        if execute is on_host
        for build in dict.fromkeys(
            build
            for case in cases_of(spec, precision, scheme)
            for build in builds(spec, case, precision, scheme, room_of(spec))
        )
    )


def test_the_cases_have_everything() -> None:
    of_cases = [case.materials for case in cases()]
    assert any((materials.cells & INTERIOR).any() for materials in of_cases)
    assert all(len(materials.types) > 4 for materials in of_cases[3:7])
    assert any(materials.exposed_cells for materials in of_cases)
    assert any(materials.weighted_surfaces.contacts and materials.varies for materials in of_cases)
    assert any(materials.weighted_surfaces.contacts and not materials.varies for materials in of_cases)
    assert sum(materials.uniform for materials in of_cases) > 2
    assert sum(materials.varies for materials in of_cases) == 6


@pytest.mark.parametrize(("spec", "execute", "variant"), CHOSEN_EXECUTIONS)
def test_a_kernel_equals_the_oracle(spec: KernelSpec, execute: Executor, variant: tuple[str, Scheme]) -> None:
    precision, scheme = variant
    exact = dict(zip(cases(), results(ORACLE, on_cpu, "float64", "increments"), strict=True))
    for case, result in zip(cases_of(spec, precision, scheme), results(spec, execute, *variant), strict=True):
        expected = exact[case]
        assert np.isfinite(result.T).all(), "cells that were not written"
        # No term is rounded more than 32 times in a step, Newton's steps among them.
        heat = case.rows.heat.max() + max(np.abs(sums).max(initial=0.0) for sums in expected.sums)
        size = max(np.abs(case.T).max(), np.abs(expected.T).max(), 300.0) + heat
        bound = 32.0 * case.steps * np.finfo(precision).eps / 2.0 * size
        for mine, others in zip((result.T, *result.sums), (expected.T, *expected.sums), strict=True):
            if others.size:
                assert np.abs(mine - others).max() <= bound, f"{case.grid.cells}, periodic {case.periodic}"


@pytest.mark.parametrize("variant", VARIANTS, ids="-".join)
def test_cpu_kernels_give_the_same_bits(variant: tuple[str, Scheme]) -> None:
    for spec in CPU[1:]:
        for first, other in zip(results(ORACLE, on_cpu, *variant), results(spec, on_cpu, *variant), strict=True):
            other.assert_same_bits(first)


@pytest.mark.quick("float32-increments", "float64-seven_term")
@pytest.mark.parametrize(("precision", "scheme"), EVERY_VARIANT)
def test_cpu_kernels_give_the_same_bits_on_random_bodies(precision: str, scheme: Scheme) -> None:
    """Axes of 1 to 20 cells, so that vectors end in every way; every third body is of one material.

    Compiling takes time: in float64 only bodies that vary with temperature have cells that several conditions share.
    """
    for seed in range(36 if SLOW else 12):
        rng = np.random.default_rng(seed)
        cells = tuple(rng.choice((1, 2, 3, *range(4, 21)), 3, p=(0.12, 0.12, *(0.76 / 18,) * 18)).tolist())
        wraps = tuple((rng.random(3) < 0.3).tolist())
        several, varying = seed % 3 > 0, seed % 2 > 0
        if scheme == "seven_term" and (several or varying):
            continue
        mixed = seed % 4 > 0 and (varying or precision == "float32")
        case = body(cells, wraps, 100 + seed, several, steps=3, varying=varying, mixed=mixed)
        oracle, *others = (on_cpu(spec, case, precision, scheme) for spec in CPU)
        for other in others:
            other.assert_same_bits(oracle)


@pytest.mark.parametrize(
    ("spec", "execute", "variant"), [each for each in CHOSEN_EXECUTIONS if each.values[0] in COMPOSITE]
)
def test_cuda_kernels_give_the_same_bits(spec: KernelSpec, execute: Executor, variant: tuple[str, Scheme]) -> None:
    first = dict(zip(cases_of(NAIVE, *variant), results(NAIVE, on_host, *variant), strict=True))
    for case, other in zip(cases_of(spec, *variant), results(spec, execute, *variant), strict=True):
        if case in first:
            other.assert_same_bits(first[case])


@pytest.mark.parametrize(("spec", "execute"), [each for each in EXECUTIONS if each.values[0] in MIXING])
def test_conditions_that_share_cells_are_the_same_in_every_kernel(spec: KernelSpec, execute: Executor) -> None:
    """Bits of CUDA kernels, and the oracle to rounding, as above."""
    for case in mixed_cases():
        exact = result_of(ORACLE, on_cpu, case, "float64", "increments")
        result = result_of(spec, execute, case, "float32", "increments")
        size = max(np.abs(exact.T).max(), np.abs(case.T).max(), 300.0) + max(
            np.abs(sums).max(initial=0.0) for sums in exact.sums
        )
        bound = 32.0 * case.steps * np.finfo(np.float32).eps / 2.0 * size
        for mine, others in zip((result.T, *result.sums), (exact.T, *exact.sums), strict=True):
            assert np.abs(mine - others).max(initial=0.0) <= bound
        parts, owners = case.mixed.on_face(5)
        assert result.ledger.heats.parts[parts].any(), "each part has a sum"
        assert not result.ledger.heats.faces[5].reshape(-1)[owners].any(), "the cell has none beside them"
        if spec in COMPOSITE:
            result.assert_same_bits(result_of(NAIVE, on_host, case, "float32", "increments"))


KINDS = ("layered_cases", "law_cases", "heated_cases", "cases_in_space")


@pytest.mark.quick(
    *(f"{name}-{kind}" for name in ("numba", "naive-host", "temporal-host") for kind in KINDS),
    *(f"streamed-host-{kind}" for kind in KINDS[::2]),
)
@pytest.mark.parametrize("cases_of_kind", KINDS)
@pytest.mark.parametrize(("spec", "execute"), [each for each in EXECUTIONS if each.values[0] in MIXING])
def test_layers_laws_and_heated_cells_are_the_same_in_every_kernel(
    spec: KernelSpec, execute: Executor, cases_of_kind: str
) -> None:
    """Bits of CUDA kernels and of CPU kernels, and the oracle to rounding, as above.

    Neighbours of one type may have separate links; a heat flux may be a table in the surface's temperature; sources may
    heat single cells; several conditions may share a surface towards void.
    """
    for case in globals()[cases_of_kind]():
        exact = result_of(ORACLE, on_cpu, case, "float64", "increments")
        result = result_of(spec, execute, case, "float32", "increments")
        size = max(np.abs(exact.T).max(), np.abs(case.T).max(), 300.0) + max(
            np.abs(sums).max(initial=0.0) for sums in exact.sums
        )
        bound = 32.0 * case.steps * np.finfo(np.float32).eps / 2.0 * size
        for mine, others in zip((result.T, *result.sums), (exact.T, *exact.sums), strict=True):
            assert np.abs(mine - others).max(initial=0.0) <= bound
        if spec in COMPOSITE:
            result.assert_same_bits(result_of(NAIVE, on_host, case, "float32", "increments"))
        elif spec is not ORACLE:
            result.assert_same_bits(result_of(ORACLE, on_cpu, case, "float32", "increments"))


def test_faces_let_heat_through_on_either_side_alone() -> None:
    case = cases()[3]
    conditions = case.rows.conditions.copy()
    conditions[:, (0, 3, 4)] = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    rows = replace(case.rows, conditions=conditions)
    case = replace(case, rows=rows, open_faces=(False, True, True, False, False, True))
    exact = on_cpu(ORACLE, case, "float64", "increments")
    first = on_host(NAIVE, case, "float32", "increments")
    on_host(STREAMED, case, "float32", "increments").assert_same_bits(first)
    np.testing.assert_allclose(first.T, exact.T, rtol=1e-5, atol=1e-5 * np.abs(exact.T).max())
    assert [sums.any() for sums in first.ledger.heats.faces[:4]] == [False, True, True, False]


def test_beams_on_surfaces_towards_void_are_those_of_the_oracle_in_float64() -> None:
    """By the first rung, on a body with curved surfaces that a beam reaches. Compiling takes time."""
    case = heated_cases()[4]
    exact = result_of(ORACLE, on_cpu, case, "float64", "increments")
    result = on_host(NAIVE, case, "float64", "increments")
    size = max(np.abs(exact.T).max(), np.abs(case.T).max(), 300.0) + max(
        np.abs(sums).max(initial=0.0) for sums in exact.sums
    )
    bound = 32.0 * case.steps * np.finfo(np.float64).eps / 2.0 * size
    assert case.rows.beams
    assert case.materials.heated.lit.any()
    for mine, others in zip((result.T, *result.sums), (exact.T, *exact.sums), strict=True):
        assert np.abs(mine - others).max(initial=0.0) <= bound


def test_the_first_guess_of_a_surface_under_any_light_is_finite_in_float32() -> None:
    """Flux/(2k/d) is 1e13 K and more, whose fourth power is infinite; the surface radiates and has less than 1e7 K."""
    case = body((9, 5, 7), (False, False, False), 93, steps=1)
    conditions, (beam,) = case.rows.conditions.copy(), case.rows.beams
    conditions[:] = (5.0, 20.0, 0.0, 0.8 * SIGMA, 20.0, 1.0)
    strong = replace(beam, weights=(1e14 * beam.weights[0], beam.weights[1]))
    case = replace(case, rows=replace(case.rows, conditions=conditions, beams=(strong,)))
    exact = on_cpu(ORACLE, case, "float64", "increments")
    assert np.abs(exact.T).max() > 1e4
    for spec, execute in ((ORACLE, on_cpu), (CPU[1], on_cpu), (NAIVE, on_host)):
        result = execute(spec, case, "float32", "increments")
        np.testing.assert_allclose(result.T, exact.T, rtol=1e-5, atol=1e-5 * np.abs(exact.T).max())


def test_faces_across_x_are_right_in_each_of_several_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    case, streamed = body((4, 70, 5), (False, False, False), 60), STREAMED
    (build,) = builds(streamed, case, "float32", "increments", room_of(streamed))
    first = on_host(NAIVE, case, "float32", "increments")
    on_host(streamed, case, "float32", "increments").assert_same_bits(first)
    monkeypatch.setattr(launch, "LARGEST_GRID_YZ", 7)
    assert len(launch.launches(build, case.grid, case.periodic)) > 1
    on_host(streamed, case, "float32", "increments").assert_same_bits(first)
