"""Bricks cover a grid, fit a GPU, and are chosen where the blocks of 09 are too small."""

from math import ceil, prod

import pytest
from executor import ROOM

from heatsim.grid import Grid
from heatsim.kernels import fitting, launch
from heatsim.kernels.bricks import Bricks, fitting_bricks
from heatsim.kernels.catalog import KERNELS
from heatsim.kernels.compilation import Variant

BRICKED = next(spec for spec in KERNELS if spec.name == "bricked")
NOT_PERIODIC = (False, False, False)


def bricks_of(cells: tuple[int, int, int], itemsize: int = 4, tables: int = 0) -> Bricks | None:
    vector = next(width for width in (16 // itemsize, 2, 1) if cells[0] % width == 0)
    return fitting_bricks(cells, vector, itemsize, tables, ROOM.block_memory, ROOM.multiprocessors, 768)


@pytest.mark.parametrize("itemsize", [4, 8])
@pytest.mark.parametrize("tables", [0, 16384])
@pytest.mark.parametrize(
    "cells",
    [(1, 1, 1), (4, 1, 1), (1, 1, 999), (40, 30, 20), (64, 64, 64), (97, 31, 53), (400, 300, 4), (6, 500, 90)],
)
def test_bricks_cover_a_grid_and_fit(cells: tuple[int, int, int], tables: int, itemsize: int) -> None:
    bricks = bricks_of(cells, itemsize, tables)
    assert bricks is not None
    x, y, layers = bricks.threads
    blocks = [ceil(n / brick) for n, brick in zip(cells, bricks.cells, strict=True)]
    assert prod(blocks) <= ROOM.multiprocessors
    assert 64 <= x * y * layers <= 768
    assert layers <= 64
    assert bricks.cells[0] % x == 0
    assert bricks.cells[1] == y
    assert bricks.shared_bytes <= ROOM.block_memory
    assert bricks.shared_bytes >= 2 * itemsize * prod(n + 2 for n in bricks.cells)
    # The largest cell of a brick in the 16 bits of an entry of the list.
    x_bits, y_bits = ((n - 1).bit_length() for n in bricks.cells[:2])
    last = [n - 1 for n in bricks.cells]
    assert last[0] | (last[1] | last[2] << y_bits) << x_bits < 1 << 16


def test_no_bricks_hold_a_large_grid() -> None:
    assert bricks_of((256, 256, 256)) is None
    # 132 multiprocessors with 227 KiB hold two buffers of 3.8 million cells in float32, less the halos.
    assert bricks_of((128, 128, 128)) is not None
    assert bricks_of((160, 160, 160)) is None


def test_bricks_of_a_grid_that_they_divide() -> None:
    """128 bricks of 2,048 cells: each of 512 threads has one vector."""
    bricks = fitting_bricks((64, 64, 64), 4, 4, 0, 1 << 20, 128, 512)
    assert bricks is not None
    assert prod(bricks.cells) == 2048
    assert prod(bricks.threads) == 512


@pytest.mark.parametrize(
    ("variant", "precision", "name"),
    [
        (Variant(), "float32", "bricked"),
        (Variant(faces=True, materials=True), "float32", "bricked"),
        (Variant(faces=True, materials=True), "float64", "bricked"),
        (Variant(faces=True, materials=True, varying=True), "float32", "streamed"),
        (Variant(faces=True, materials=True, cell_heat=True), "float32", "streamed"),
    ],
)
def test_bodies_that_bricks_suit(variant: Variant, precision: str, name: str) -> None:
    grid = Grid((96, 96, 80), (1.0, 1.0, 1.0))
    (build,) = fitting.builds(BRICKED, precision, "increments", grid, NOT_PERIODIC, ROOM, variant)
    assert build.spec.name == name
    if name == "bricked":
        (part,) = launch.launches(build, grid, NOT_PERIODIC)
        assert tuple(part.grid["brick"]) == build.spec.tile
        assert part.segments is not None
        assert len(part.segments) == prod(part.blocks)


def test_room_for_the_tables_of_a_body() -> None:
    assert fitting.tables_fit(BRICKED, types=6, numbers=60, itemsize=4)
    assert not fitting.tables_fit(BRICKED, types=64, numbers=60, itemsize=4)
    assert not fitting.tables_fit(BRICKED, types=6, numbers=3000, itemsize=4)
