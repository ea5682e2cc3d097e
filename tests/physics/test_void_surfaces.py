"""The true area of surfaces made of voxels."""

from math import pi

import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics import void_surfaces

NO = (False, False, False)


def centres(grid: Grid) -> tuple[NDArray[np.float64], ...]:
    x, y, z = (grid.centres(axis) for axis in range(3))
    return x[None, None, :], y[None, :, None], z[:, None, None]


def areas(
    grid: Grid, void: NDArray[np.bool_], periodic: tuple[bool, bool, bool] = NO
) -> tuple[float, float, NDArray[np.float64]]:
    """The true area of all surfaces in m², that of the voxels, and the true one of each exposed cell."""
    found = void_surfaces.find(grid, void, periodic)
    dx, dy, dz = grid.spacing
    face = (dy * dz, dx * dz, dx * dy)
    _, ny, nx = void.shape
    padded = np.stack([np.pad(void, 1, mode="wrap" if all(periodic) else "edge")] * 3)
    surfaces = np.zeros((len(found.cells), 3))
    z, y, x = found.cells // (nx * ny), found.cells // nx % ny, found.cells % nx
    for axis, step in enumerate(np.eye(3, dtype=int)):
        for side in (-1, 1):
            at = (z + 1 + side * step[2], y + 1 + side * step[1], x + 1 + side * step[0])
            surfaces[:, axis] += padded[axis][at]
    each = (surfaces * face * found.area).sum(axis=1)
    return float(each.sum()), float((surfaces * face).sum()), each


@pytest.mark.parametrize(("cells", "radius"), [((32, 32, 32), 0.4), ((64, 64, 64), 0.4), ((64, 40, 48), 0.42)])
def test_a_sphere_has_its_area_and_not_that_of_its_voxels(cells: tuple[int, int, int], radius: float) -> None:
    grid = Grid(cells, (1.0, 1.0, 1.0))
    x, y, z = centres(grid)
    true, voxels, _ = areas(grid, (x - 0.5) ** 2 + (y - 0.5) ** 2 + (z - 0.5) ** 2 > radius**2)
    assert voxels == pytest.approx(1.5 * 4.0 * pi * radius**2, rel=0.03)
    assert true == pytest.approx(4.0 * pi * radius**2, rel=0.02)


@pytest.mark.parametrize("slope", [0.0, 0.05, 0.125, 0.2, 0.25, 0.4, 0.6, 0.8, 1.0])
@pytest.mark.parametrize("other", [0.0, 0.3])
def test_a_tilted_plane_has_its_area(slope: float, other: float) -> None:
    """z = 0.3 + slope·x + other·y over the middle of a box."""
    grid = Grid((40, 40, 80), (1.0, 1.0, 2.0))
    x, y, z = centres(grid)
    found = void_surfaces.find(grid, z > 0.3 + slope * x + other * y, NO)
    _, _, each = areas(grid, z > 0.3 + slope * x + other * y)
    u, v = found.cells % 40, found.cells // 40 % 40
    middle = (u >= 5) & (u < 35) & (v >= 5) & (v < 35)
    assert each[middle].sum() == pytest.approx((30 / 40) ** 2 * np.sqrt(1.0 + slope**2 + other**2), rel=0.025)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 9, 12, 20])
def test_boxes_keep_their_area_up_to_their_edges(n: int) -> None:
    grid = Grid((n + 16, n + 16, n + 16), (1.0, 1.0, 1.0))
    void = np.ones(grid.shape, dtype=bool)
    void[8:-8, 8:-8, 8:-8] = False
    true, voxels, _ = areas(grid, void)
    assert true == pytest.approx(voxels, rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 4, 7])
@pytest.mark.parametrize("shape", ["channel", "fin", "plate"])
def test_shapes_made_of_boxes_keep_their_area(shape: str, n: int) -> None:
    """n cells across, in void or cut into a block."""
    void = np.ones((28, 28, 28), dtype=bool)
    if shape == "channel":
        void[:, :10] = void[:, 10 + n :] = void[:, :, :10] = void[:, :, 10 + n :] = False
    elif shape == "fin":
        void[:6] = void[6:20, :, 10 : 10 + n] = False
    else:
        void[10 : 10 + n, 5:23, 5:23] = False
    true, voxels, _ = areas(Grid((28, 28, 28), (1.0, 1.0, 1.0)), void)
    assert true == pytest.approx(voxels, rel=1e-12)


@pytest.mark.parametrize("height", [3, 4, 6])
def test_a_chip_on_a_board_keeps_its_area(height: int) -> None:
    void = np.ones((24, 24, 24), dtype=bool)
    void[:6] = void[6 : 6 + height, 8:16, 8:16] = False
    true, voxels, _ = areas(Grid((24, 24, 24), (1.0, 1.0, 1.0)), void)
    assert true == pytest.approx(voxels, rel=1e-12)


def test_sheets_of_one_cell_keep_their_area() -> None:
    grid = Grid((24, 24, 24), (1.0, 1.0, 1.0))
    void = np.ones(grid.shape, dtype=bool)
    void[12] = False
    true, voxels, _ = areas(grid, void)
    assert true == pytest.approx(voxels, rel=1e-12)


def test_cells_are_found_by_their_bits() -> None:
    """The place of a cell in the list is the number of exposed cells before it."""
    rng = np.random.default_rng(0)
    grid = Grid((7, 5, 6), (1.0, 1.0, 1.0))
    void = rng.random(grid.shape) < 0.4
    for periodic in (NO, (True, True, True)):
        found = void_surfaces.find(grid, void, periodic)
        mode = "wrap" if periodic[0] else "edge"
        padded = np.pad(void, 1, mode=mode)
        beside = np.zeros_like(void)
        for axis in range(3):
            for side in (-1, 1):
                beside |= np.roll(padded, side, axis)[1:-1, 1:-1, 1:-1]
        assert found.cells.tolist() == np.flatnonzero(beside & ~void).tolist()
        for rank, cell in enumerate(found.cells.tolist()):
            word = int(found.bits[cell // 32])
            assert word >> cell % 32 & 1
            assert int(found.before[cell // 32]) + (word & ((1 << cell % 32) - 1)).bit_count() == rank
        assert (found.area >= 0.0).all()
        assert (found.area <= 1.0).all()
