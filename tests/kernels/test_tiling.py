"""Tiles cover every plane once; blocks share the work evenly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatsim.kernels import tiling
from heatsim.kernels.tiling import Pipeline

FLOAT32, FLOAT64 = Pipeline(256, 4, 4, 4, 4), Pipeline(256, 2, 4, 4, 8)
AXIS = st.integers(1, 700)
PERIODIC = st.tuples(st.booleans(), st.booleans(), st.booleans())


@given(st.tuples(AXIS, AXIS, st.integers(1, 40)), PERIODIC, st.sampled_from([FLOAT32, FLOAT64]))
@settings(max_examples=150)
def test_each_cell_is_written_and_surrounded_by_halo_or_the_end_of_the_box(
    cells: tuple[int, int, int], periodic: tuple[bool, bool, bool], pipeline: Pipeline
) -> None:
    nx, ny, _ = cells
    written = np.zeros((ny, nx), dtype=int)
    tiles = tiling.tiles(cells, periodic, pipeline)
    for tile in tiles:
        written[tile.y_begin : tile.y_end, tile.x_begin : tile.x_end] += 1
        spans = (
            (
                tile.x,
                tile.lanes * pipeline.vector,
                tile.x_begin,
                tile.x_end,
                nx,
                periodic[0],
                tile.sides & 1,
                tile.sides & 2,
            ),
            (
                tile.y,
                pipeline.height(tile.lanes),
                tile.y_begin,
                tile.y_end,
                ny,
                periodic[1],
                tile.sides & 4,
                tile.sides & 8,
            ),
        )
        for start, side, begin, end, n, wraps, low, high in spans:
            assert bool(low) == (begin == 0 and not wraps)
            assert bool(high) == (end == n and not wraps)
            assert begin - start >= (0 if low else pipeline.steps)
            assert start + side - end >= (0 if high else pipeline.steps)
    if tiles:
        assert (written == 1).all()


@given(st.integers(32, 2000), st.integers(128, 2000), st.integers(5, 100), PERIODIC)
@settings(max_examples=100)
def test_every_grid_wider_than_a_tile_can_be_tiled(
    nx: int, ny: int, nz: int, periodic: tuple[bool, bool, bool]
) -> None:
    assert tiling.tiles((nx, ny, nz), periodic, FLOAT32)
    assert tiling.tiles((nx, ny, nz), periodic, FLOAT64)


@given(st.integers(32, 700), st.integers(128, 700), st.sampled_from([FLOAT32, FLOAT64]))
@settings(max_examples=100)
def test_no_patch_that_counts_lies_across_the_seam_of_a_periodic_axis(nx: int, ny: int, pipeline: Pipeline) -> None:
    """Patches hold neighbouring cells of memory, and where an axis closes there are none."""
    for tile in tiling.tiles((nx, ny, 5), (True, True, False), pipeline):
        for start, patch, begin, end, n in (
            (tile.x, pipeline.vector, tile.x_begin, tile.x_end, nx),
            (tile.y, pipeline.rows, tile.y_begin, tile.y_end, ny),
        ):
            for seam in (0, n):
                if begin - pipeline.steps < seam < end + pipeline.steps:
                    assert (seam - start) % patch == 0


@pytest.mark.parametrize("pipeline", [FLOAT32, FLOAT64], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "cells", [(512, 512, 512), (768, 768, 768), (1000, 1000, 100), (1500, 200, 300), (333, 477, 611), (64, 64, 64)]
)
@pytest.mark.parametrize(("multiprocessors", "recorded"), [(1, False), (46, True), (132, False), (132, True)])
@pytest.mark.parametrize("halo", [0, 4], ids=["all planes", "own planes"])
def test_segments_cover_the_planes_and_finish_together(
    cells: tuple[int, int, int], pipeline: Pipeline, multiprocessors: int, recorded: bool, halo: int
) -> None:
    periodic = (False, False, False)
    tiles = tiling.tiles(cells, periodic, pipeline)
    written = (halo, cells[2] - halo)
    segments = tiling.segments(cells, periodic, pipeline, multiprocessors, recorded, written=written)
    assert len(segments) <= multiprocessors
    planes = {(tile.x, tile.y): np.zeros(cells[2], dtype=int) for tile in tiles}
    for record in segments.reshape(-1):
        if record["z_end"] > record["z_begin"]:
            planes[int(record["x"]), int(record["y"])][record["z_begin"] : record["z_end"]] += 1
    for count in planes.values():
        assert (count[halo : cells[2] - halo] == 1).all()
        assert count.sum() == cells[2] - 2 * halo
    if cells[2] > 64:
        work = (segments["z_end"] - segments["z_begin"]).sum(axis=1)
        assert work.max() <= 1.9 * work.mean()  # tiles beside faces count for up to 1.8 times as much


@given(st.integers(4, 300), st.integers(128, 700), PERIODIC, st.sampled_from([FLOAT32, FLOAT64]))
@settings(max_examples=100)
def test_no_sector_of_memory_is_written_by_two_tiles(
    sectors: int, ny: int, periodic: tuple[bool, bool, bool], pipeline: Pipeline
) -> None:
    """Where rows consist of whole sectors, 32 bytes."""
    cells = 32 // pipeline.itemsize
    for tile in tiling.tiles((sectors * cells, ny, 5), periodic, pipeline):
        assert tile.x_begin % cells == 0
        assert tile.x_end % cells == 0
