"""The correction of 07 on composite bodies: its boxes cover all wrong cells and correct them."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from composite_executor import CompositeSteps, Executor, builds, corrected, on_gpu, on_host
from executor import BLOCK_MEMORY, CUDA, ROOM, grid_on_host, source_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_composite_kernels import PALETTE, body
from test_races import BARRIER, ORDERS

from heatsim import device
from heatsim.grid import Grid
from heatsim.kernels import compilation, launch, structs
from heatsim.kernels.composite.arrays import ledger_struct, make_tables
from heatsim.kernels.emulation.machine import HostKernel, KernelError, Order, compile_kernel
from heatsim.kernels.temporal_composite import box_contents, boxes, correction
from heatsim.kernels.temporal_composite.box_contents import LISTED
from heatsim.kernels.temporal_composite.boxes import BRICK
from heatsim.physics.cells import cell_type_map, cell_types
from heatsim.physics.cells.cell_types import INTERIOR
from heatsim.physics.matter.coefficients import Scheme
from heatsim.physics.matter.material_numbers import VOID, MaterialNumbers
from heatsim.physics.operator.heat_sums import HeatSums
from heatsim.physics.operator.step_inputs import StepInputs

NAIVE = CUDA[0]
PIPELINE = next(spec for spec in CUDA if spec.name == "temporal")
CELL_TYPE = INTERIOR - 1
OPEN, CLOSED = (True,) * 6, (False,) * 6


def pipeline(precision: str, grid: Grid) -> compilation.Build:
    return compilation.build(PIPELINE, precision, "increments", grid, compilation.Variant(faces=True, materials=True))


def spheres(shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Two of them, off any lattice, one over an end of the box."""
    nz, ny, nx = shape
    z, y, x = np.indices(shape)
    one = (x - nx / 4) ** 2 + (y - ny / 2) ** 2 + (z - nz / 2) ** 2
    two = (x - nx * 0.8) ** 2 + (y - 3.3) ** 2 + (z - nz * 0.7) ** 2
    return np.select([one < 36.0, two < 20.0], [1, 2], 0).astype(np.uint8)


def wrong_cells(
    materials: cell_types.CellTypes,
    periodic: tuple[bool, bool, bool],
    faces: tuple[bool, ...],
    build: compilation.Build,
) -> NDArray[np.bool_]:
    """Upper bound of the cells that 07 gets wrong, from the definition of its stages: shape (nz, ny, nx)."""
    cell_types, steps = materials.cells & CELL_TYPE, build.spec.steps
    nz, ny, nx = cell_types.shape
    wild = materials.cells < INTERIOR
    for face in range(6):
        if faces[face] and not periodic[face // 2]:
            np.moveaxis(wild, 2 - face // 2, 0)[-(face % 2)] = True
    first = cell_types[
        :, np.arange(ny)[:, None] // build.spec.rows * build.spec.rows, np.arange(nx) // build.vector * build.vector
    ]
    wrong = np.zeros_like(wild)
    for stage in range(steps):
        taken = np.roll(first, -stage, axis=0)
        beyond = np.zeros(nz, dtype=bool)
        if not periodic[2] and stage:
            beyond[-stage:] = True  # the planes above are the last one: they come after all that is written
        wrong = _spread(wrong, periodic) | wild | ((taken != cell_types) & ~beyond[:, None, None])
    return wrong


def _spread(wrong: NDArray[np.bool_], periodic: tuple[bool, bool, bool]) -> NDArray[np.bool_]:
    spread = wrong.copy()
    for axis, wraps in zip((2, 1, 0), periodic, strict=True):
        for step in (-1, 1):
            moved = np.roll(wrong, step, axis=axis)
            if not wraps:
                np.moveaxis(moved, axis, 0)[0 if step > 0 else -1] = False
            spread |= moved
    return spread


@settings(max_examples=40)
@given(
    bricks=st.tuples(st.integers(2, 9), st.integers(2, 5), st.integers(2, 5)),
    periodic=st.tuples(*[st.booleans()] * 3),
    faces=st.tuples(*[st.booleans()] * 6),
    precision=st.sampled_from(("float32", "float64")),
    seed=st.integers(0, 2**31),
)
def test_boxes_lie_side_by_side_over_all_cells_that_are_wrong(
    bricks: tuple[int, int, int],
    periodic: tuple[bool, bool, bool],
    faces: tuple[bool, ...],
    precision: str,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    nx, ny, nz = (BRICK * n for n in bricks)
    grid = Grid((nx, ny, nz if periodic[2] else nz - int(rng.integers(0, 3))), (1.0, 1.0, 1.0))
    material = np.zeros(grid.shape, dtype=np.uint8)
    corner = rng.integers(0, grid.shape)
    material[tuple(slice(low, low + int(size)) for low, size in zip(corner, rng.integers(1, 12, 3), strict=True))] = 1
    materials = cell_type_map.build(grid, PALETTE[:2], material, periodic=periodic)
    if materials.uniform:
        return
    build, room = pipeline(precision, grid), 60_000
    table = correction.cover(build, materials, periodic, faces, room)
    made = np.zeros(grid.shape, dtype=int)
    for x, y, z, size_x, size_y, size_z, volume in table.tolist():
        made[z : z + size_z, y : y + size_y, x : x + size_x] += 1
        assert x % build.vector == 0
        assert size_x % build.vector == 0
        assert volume * (2 * build.itemsize + 2 / build.vector) <= room
    assert made.max(initial=0) <= 1
    assert made[wrong_cells(materials, periodic, faces, build)].all()


@cache
def cases() -> tuple[CompositeSteps, ...]:
    """Bodies in which some cells are plain for a whole sweep, and bodies in which hardly any are."""
    result = [
        body((40, 12, 11), (False, False, False), 50, steps=9),
        body((64, 64, 20), (True, True, True), 51, steps=6),
        body((40, 12, 12), (True, False, True), 52, steps=5),
        body((72, 40, 22), (False, False, False), 53, several=False, steps=6),
    ]
    for number, periodic in enumerate(((True, True, True), (False, True, False), (False, False, False))):
        case = body((144, 48, 44), periodic, 60 + number, steps=6)
        materials = cell_type_map.build(
            case.grid,
            PALETTE[:3] if number else (*PALETTE[:2], VOID),
            spheres(case.grid.shape),
            heated=[spheres(case.grid.shape) == 1] if number == 1 else [],
            periodic=periodic,
            void_conditions=None if number else [8, 6, 8],
        )
        heat = np.random.default_rng(number).uniform(0.0, 0.5, (6, len(materials.types)))
        rows = type(case.rows)(case.rows.conditions, case.rows.held, heat, case.rows.beams)
        result.append(
            CompositeSteps(
                **{
                    **{name: getattr(case, name) for name in case.__dataclass_fields__},
                    "materials": materials,
                    "rows": rows,
                    "dt": 0.05 / float(materials.rates().max()),
                }
            )
        )
    return tuple(result)


def test_some_of_the_bodies_are_plain_for_the_most_part() -> None:
    for case in cases()[4:5]:
        table = correction.cover(pipeline("float32", case.grid), case.materials, case.periodic, CLOSED, BLOCK_MEMORY)
        assert 0 < table[:, 3:6].prod(axis=1).sum() < 0.3 * case.grid.cell_count


# Increments are among the bodies of test_composite_kernels.py.
@pytest.mark.parametrize(
    ("execute", "variant"),
    [
        (on_host, ("float64", "increments")),
        pytest.param(on_gpu, ("float64", "increments"), marks=pytest.mark.gpu),
    ],
)
def test_a_corrected_sweep_gives_the_bits_of_single_steps(execute: Executor, variant: tuple[str, Scheme]) -> None:
    for case in cases()[:: 1 if execute is on_gpu else 2]:
        assert builds(PIPELINE, case, *variant, ROOM)[0].pipeline is not None
        execute(PIPELINE, case, *variant).assert_same_bits(on_host(NAIVE, case, *variant))


def test_boxes_of_more_types_than_they_list_are_corrected_too() -> None:
    one = {name: getattr(cases()[0], name) for name in CompositeSteps.__dataclass_fields__}
    count = LISTED + 4
    palette = tuple(MaterialNumbers(str(n), (1.0 + n, 2.0, 3.0), 1.0e6 * (2 + n % 3)) for n in range(count))
    material = np.random.default_rng(8).integers(0, count, one["materials"].grid.shape).astype(np.uint8)
    material[:, :, 20:] = 1  # so that there are plain cells, pairs and vectors that are alike
    material[:6, :, 28:] = 2
    materials = cell_type_map.build(one["materials"].grid, palette, material)
    rows = StepInputs(one["rows"].conditions, one["rows"].held, np.zeros((1, count)), one["rows"].beams)
    case = CompositeSteps(**{**one, "materials": materials, "rows": rows, "dt": 0.05 / float(materials.rates().max())})
    on_host(PIPELINE, case, "float32", "increments").assert_same_bits(on_host(NAIVE, case, "float32", "increments"))


def test_bodies_with_too_much_to_mend_are_left_to_single_steps() -> None:
    case = cases()[4]
    build = pipeline("float32", case.grid)
    needed = correction.cover(
        build, case.materials, case.periodic, OPEN, correction.correction_build(build, BLOCK_MEMORY).room
    )
    share = needed[:, 6].sum() / case.grid.cell_count
    assert correction.boxes(build, case.materials, case.periodic, OPEN, BLOCK_MEMORY, 1, most=0.99 * share) is None
    found = correction.boxes(build, case.materials, case.periodic, OPEN, BLOCK_MEMORY, 1, most=1.01 * share)
    assert found is not None
    assert found[0].blocks == (min(len(needed), 2), 1, 1)


def test_the_table_takes_about_what_is_planned_for_it() -> None:
    case = cases()[6]
    build = pipeline("float32", case.grid)
    found = correction.boxes(build, case.materials, case.periodic, OPEN, BLOCK_MEMORY, 1, most=np.inf)
    assert found is not None
    assert found[0].segments is not None
    assert 0.5 < found[0].segments.nbytes / correction.table_bytes(case.materials, OPEN) < 2.0


def test_boxes_have_the_same_layout_in_python_and_cuda() -> None:
    text = (compilation.FOLDER / correction.CORRECTION.source).read_text(encoding="utf-8")
    for name, values in (("BLOCKS", correction._BLOCKS), ("KEPT", correction._KEPT)):
        found = re.search(rf"#define {name} \(sizeof\(Real\) == 4 \? (\d+) : (\d+)\)", text)
        assert found is not None
        assert [int(number) for number in found.groups()] == [values["float32"], values["float64"]]
    for module in (boxes, box_contents):
        assert (module._INTERIOR, module._CELL_TYPE) == (INTERIOR, CELL_TYPE)


@pytest.mark.parametrize("end", [0, -1])
def test_a_brick_of_one_cell_at_an_end_of_the_grid_is_marked(end: int) -> None:
    cells, needed = np.full((9, 5, 13), INTERIOR, np.uint8), np.zeros((3, 2, 4), np.bool_)
    cells[end, end, end] = 0
    boxes.mark(cells, 4, 4, 2, (False, False, False), needed)
    assert needed[end, end, end]
    assert needed.sum() == (1 if end == 0 else 8)


def test_no_memory_is_planned_for_boxes_that_are_not_laid() -> None:
    grid = Grid((32, 32, 32), (1e-3, 1e-3, 1e-3))
    foam = cell_type_map.build(
        grid, PALETTE, np.random.default_rng(1).integers(0, len(PALETTE), grid.shape).astype(np.uint8)
    )
    assert correction.boxes(pipeline("float32", grid), foam, (False,) * 3, CLOSED, BLOCK_MEMORY, 1) is None
    assert correction.table_bytes(foam, CLOSED) == 0


def one_sweep(
    case: CompositeSteps, second_kernel: HostKernel | None, order: Order = "forward", streamed: HostKernel | None = None
) -> tuple[NDArray[Any], ...]:
    """The field and the ledger after a sweep in float32; by single steps of 06 if ``second_kernel`` is None."""
    arrays = case.arrays_on(device.choose("cpu"), "float32")
    tables = make_tables(case.materials, case.c, case.dt, "float32")
    coefficients, keep = arrays.coefficients(tables, *case.counts)
    sweeps = arrays.sweeps(case.rows, case.steps)
    table = sweeps.table.view(structs.general_sweep_dtype("float32"))
    sums = HeatSums.zeros(np, case.layout)
    ledger = ledger_struct(sums)
    T, T_new = case.T.copy(), np.full_like(case.T, np.nan)
    several, single = builds(PIPELINE, case, "float32", "increments", ROOM)
    if second_kernel is None:
        one = streamed or compile_kernel(*source_of(single))
        for step in range(several.spec.steps):
            for part in launch.launches(single, case.grid, case.periodic):
                arguments = (T, T_new, grid_on_host(part), coefficients, table[step:], ledger)
                one.launch(part.blocks, single.spec.block, *arguments, order=order)
            T, T_new = T_new, T
        return (T, sums.values)
    second = correction.correction_build(several, BLOCK_MEMORY)
    for kernel, build, parts in (
        (compile_kernel(*source_of(several)), several, launch.launches(several, case.grid, case.periodic)),
        (second_kernel, second, corrected(several, case)),
    ):
        for part in parts:
            arguments = (T, T_new, grid_on_host(part), coefficients, table, ledger)
            kernel.launch(part.blocks, build.spec.block, *arguments, order=order, shared_bytes=build.shared_bytes)
    assert len(keep) == 3
    return (T_new, sums.values)


@pytest.mark.quick("None")
@pytest.mark.parametrize(
    "number", [None, *range(len(BARRIER.findall((compilation.FOLDER / correction.CORRECTION.source).read_text())))]
)
def test_the_mender_has_no_races_and_no_barrier_that_it_could_do_without(number: int | None, tmp_path: Path) -> None:
    case = cases()[0]
    source = (compilation.FOLDER / correction.CORRECTION.source).read_text(encoding="utf-8")
    if number is not None:
        barrier = list(BARRIER.finditer(source))[number]
        source = source[: barrier.start()] + source[barrier.end() :]
    mutant = tmp_path / Path(correction.CORRECTION.source).name
    mutant.write_text(source, encoding="utf-8")
    several = builds(PIPELINE, case, "float32", "increments", ROOM)[0]
    macros = [
        option for option in correction.correction_build(several, BLOCK_MEMORY).options if option.startswith("-D")
    ]
    kernel = compile_kernel(mutant, macros)
    expected = one_sweep(case, None)

    def right(order: Order) -> bool:
        try:
            found = one_sweep(case, kernel, order)
        except KernelError:  # a box that has not arrived says anything
            return False
        return all(mine.tobytes() == others.tobytes() for mine, others in zip(found, expected, strict=True))

    assert all(right(order) for order in ORDERS) == (number is None)


@pytest.mark.quick("before the list is read")
@pytest.mark.parametrize("number", [0, 1], ids=["before anything is listed", "before the list is read"])
def test_deferred_cells_have_no_races_and_wait(tmp_path: Path, number: int) -> None:
    case = cases()[0]
    single = builds(PIPELINE, case, "float32", "increments", ROOM)[1]
    text = (compilation.FOLDER / "composite/deferred_cells.cuh").read_text(encoding="utf-8")
    barriers = list(BARRIER.finditer(text))
    assert len(barriers) == 2
    without = text[: barriers[number].start()] + text[barriers[number].end() :]
    (tmp_path / "composite").mkdir()
    (tmp_path / "composite/deferred_cells.cuh").write_text(without, encoding="utf-8")
    copy = tmp_path / Path(single.source).name
    copy.write_text((compilation.FOLDER / single.source).read_text(encoding="utf-8"), encoding="utf-8")
    mutant = compile_kernel(copy, source_of(single)[1])
    right = one_sweep(case, None)

    def is_right(order: Order, kernel: HostKernel | None = None) -> bool:
        try:
            found = one_sweep(case, None, order, *([kernel] if kernel else []))
        except KernelError:  # memory that was not written may hold anything
            return False
        return all(mine.tobytes() == others.tobytes() for mine, others in zip(found, right, strict=True))

    assert is_right("reverse")
    assert not all(is_right(order, mutant) for order in ORDERS)


@pytest.mark.slow
def test_a_body_of_one_material_is_corrected_in_sums_of_seven_terms_too() -> None:
    one = {name: getattr(cases()[3], name) for name in CompositeSteps.__dataclass_fields__}
    case = CompositeSteps(**{**one, "c": (0.25, *[0.125] * 6)})
    seven = on_host(PIPELINE, case, "float32", "seven_term")
    seven.assert_same_bits(on_host(NAIVE, case, "float32", "seven_term"))
