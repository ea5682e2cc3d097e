"""07 on composite bodies: what boxes are laid over, and that they set right what it gets wrong."""

from functools import cache

import numpy as np
import pytest
from composite_executor import CompositeSteps, Executor, builds, on_gpu, on_host
from executor import BLOCK_MEMORY, CUDA
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_composite_kernels import PALETTE, body

from heatsim.grid import Grid
from heatsim.kernels import launch, mending
from heatsim.kernels.mending_boxes import BRICK
from heatsim.physics import medium as media
from heatsim.physics.coefficients import Scheme
from heatsim.physics.medium import INTERIOR

NAIVE = CUDA[0]
PIPELINE = next(spec for spec in CUDA if spec.name == "temporal")
KIND = INTERIOR - 1
OPEN, CLOSED = (True,) * 6, (False,) * 6


def pipeline(precision: str, grid: Grid) -> launch.Build:
    return launch.build(PIPELINE, precision, "increments", grid, faces=True, materials=True)


def spheres(shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Two of them, off any lattice, one over an end of the box."""
    nz, ny, nx = shape
    z, y, x = np.indices(shape)
    one = (x - nx / 4) ** 2 + (y - ny / 2) ** 2 + (z - nz / 2) ** 2
    two = (x - nx * 0.8) ** 2 + (y - 3.3) ** 2 + (z - nz * 0.7) ** 2
    return np.select([one < 36.0, two < 20.0], [1, 2], 0).astype(np.uint8)


def wrong_cells(
    medium: media.Medium, periodic: tuple[bool, bool, bool], faces: tuple[bool, ...], build: launch.Build
) -> NDArray[np.bool_]:
    """What 07 gets wrong at the most, from what its stages do: shape (nz, ny, nx)."""
    kinds, steps = medium.cells & KIND, build.spec.steps
    nz, ny, nx = kinds.shape
    wild = medium.cells < INTERIOR
    for face in range(6):
        if faces[face] and not periodic[face // 2]:
            np.moveaxis(wild, 2 - face // 2, 0)[-(face % 2)] = True
    first = kinds[
        :, np.arange(ny)[:, None] // build.spec.rows * build.spec.rows, np.arange(nx) // build.vector * build.vector
    ]
    wrong = np.zeros_like(wild)
    for stage in range(steps):
        taken = np.roll(first, -stage, axis=0)
        beyond = np.zeros(nz, dtype=bool)
        if not periodic[2] and stage:
            beyond[-stage:] = True  # the planes above are the last one: they come after all that is written
        wrong = _spread(wrong, periodic) | wild | ((taken != kinds) & ~beyond[:, None, None])
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


@settings(max_examples=40, deadline=None)
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
    medium = media.build(grid, PALETTE[:2], material, periodic=periodic)
    if medium.uniform:
        return
    build, room = pipeline(precision, grid), 60_000
    table = mending.cover(build, medium, periodic, faces, room)
    made = np.zeros(grid.shape, dtype=int)
    for x, y, z, size_x, size_y, size_z, volume in table.tolist():
        made[z : z + size_z, y : y + size_y, x : x + size_x] += 1
        assert x % build.vector == 0
        assert size_x % build.vector == 0
        assert volume * (2 * build.itemsize + 1) <= room
    assert made.max(initial=0) <= 1
    assert made[wrong_cells(medium, periodic, faces, build)].all()


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
        medium = media.build(
            case.grid,
            PALETTE[:3] if number else (*PALETTE[:2], media.VOID),
            spheres(case.grid.shape),
            heated=[spheres(case.grid.shape) == 1] if number == 1 else [],
            periodic=periodic,
            exposed=not number,
        )
        heat = np.random.default_rng(number).uniform(0.0, 0.5, (6, len(medium.kinds)))
        rows = type(case.rows)(case.rows.conditions, heat, case.rows.beams)
        result.append(
            CompositeSteps(
                **{
                    **{name: getattr(case, name) for name in case.__dataclass_fields__},
                    "medium": medium,
                    "rows": rows,
                    "dt": 0.05 / float(medium.rates().max()),
                    "void_condition": 8 if not number else None,
                }
            )
        )
    return tuple(result)


def test_some_of_the_bodies_are_plain_for_the_most_part() -> None:
    for case in cases()[4:5]:
        table = mending.cover(pipeline("float32", case.grid), case.medium, case.periodic, CLOSED, BLOCK_MEMORY)
        assert 0 < table[:, 3:6].prod(axis=1).sum() < 0.3 * case.grid.cell_count


@pytest.mark.parametrize("execute", [on_host, pytest.param(on_gpu, marks=pytest.mark.gpu)])
@pytest.mark.parametrize(
    "variant", [("float32", "increments"), ("float32", "stochastic"), ("float64", "increments")], ids="-".join
)
def test_a_mended_sweep_gives_the_bits_of_single_steps(execute: Executor, variant: tuple[str, Scheme]) -> None:
    for case in cases():
        assert builds(PIPELINE, case, *variant, BLOCK_MEMORY)[0].pipeline is not None
        execute(PIPELINE, case, *variant).assert_same_bits(on_host(NAIVE, case, *variant))


def test_bodies_with_too_much_to_mend_are_left_to_single_steps() -> None:
    case = cases()[4]
    build = pipeline("float32", case.grid)
    needed = mending.cover(build, case.medium, case.periodic, OPEN, mending.mender(build, BLOCK_MEMORY).room)
    share = needed[:, 6].sum() / case.grid.cell_count
    assert mending.boxes(build, case.medium, case.periodic, OPEN, BLOCK_MEMORY, most=0.99 * share) is None
    found = mending.boxes(build, case.medium, case.periodic, OPEN, BLOCK_MEMORY, most=1.01 * share)
    assert found is not None
    assert found[0].blocks == (len(needed), 1, 1)


def test_the_table_takes_about_what_is_planned_for_it() -> None:
    case = cases()[6]
    found = mending.boxes(pipeline("float32", case.grid), case.medium, case.periodic, OPEN, BLOCK_MEMORY, most=np.inf)
    assert found is not None
    assert found[0].segments is not None
    assert 0.5 < found[0].segments.nbytes / mending.table_bytes(case.medium, OPEN) < 2.0
