"""The true area of surfaces made of voxels."""

from itertools import product
from math import pi

import numpy as np
import pytest
from covering import mostly_slow
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.cells.weighted_surfaces import find_weighted
from heatsim.physics.geometry import cell_faces, voxel_areas
from heatsim.physics.geometry.cell_faces import FaceAreas

NO = (False, False, False)


def centres(grid: Grid) -> tuple[NDArray[np.float64], ...]:
    x, y, z = (grid.centres(axis) for axis in range(3))
    return x[None, None, :], y[None, :, None], z[:, None, None]


VOID = 1  # among the materials; 0 conducts


def faces_of(grid: Grid, void: NDArray[np.bool_], periodic: tuple[bool, bool, bool] = NO) -> FaceAreas:
    """The faces towards void with their smooth areas."""
    material = void.astype(np.uint8)
    faces = cell_faces.between(grid, material, np.array([[False, True], [True, False]]), periodic)
    return FaceAreas(faces, voxel_areas.areas(grid, material, faces, VOID, periodic))


def areas(grid: Grid, void: NDArray[np.bool_]) -> tuple[float, float]:
    """The smooth area of all surfaces in m², and that of the voxels."""
    found = faces_of(grid, void)
    return float(found.areas.sum()), float(cell_faces.voxel_areas(grid, found.faces).sum())


@pytest.mark.parametrize(("cells", "radius"), [((32, 32, 32), 0.4), ((64, 64, 64), 0.4), ((64, 40, 48), 0.42)])
def test_a_sphere_has_its_area_and_not_that_of_its_voxels(cells: tuple[int, int, int], radius: float) -> None:
    grid = Grid(cells, (1.0, 1.0, 1.0))
    x, y, z = centres(grid)
    true, voxels = areas(grid, (x - 0.5) ** 2 + (y - 0.5) ** 2 + (z - 0.5) ** 2 > radius**2)
    assert voxels == pytest.approx(1.5 * 4.0 * pi * radius**2, rel=0.03)
    assert true == pytest.approx(4.0 * pi * radius**2, rel=0.02)


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("slope", "other", "layers"),
    # Cubes, and cells of half the height.
    [*product((0.0, 0.05, 0.125, 0.2, 0.25, 0.4, 0.6, 0.8, 1.0), (0.0, 0.3), (80,)), (0.4, 0.3, 160)],
)
def test_a_tilted_plane_has_its_area(slope: float, other: float, layers: int) -> None:
    """z = 0.3 + slope·x + other·y over the middle of a box."""
    grid = Grid((40, 40, layers), (1.0, 1.0, 2.0))
    x, y, z = centres(grid)
    found = faces_of(grid, z > 0.3 + slope * x + other * y)
    u, v = found.faces // 3 % 40, found.faces // 120 % 40
    middle = (u >= 5) & (u < 35) & (v >= 5) & (v < 35)
    assert found.areas[middle].sum() == pytest.approx((30 / 40) ** 2 * np.sqrt(1.0 + slope**2 + other**2), rel=0.02)


@pytest.mark.parametrize("shape", ["sphere", "cylinder"])
@pytest.mark.parametrize(
    ("radius", "tolerance"), mostly_slow([(12, 0.012), (24, 0.003), (48, 0.002)], (12, 0.012), (24, 0.003))
)
def test_errors_fall_with_the_spacing(shape: str, radius: int, tolerance: float) -> None:
    n, depth = 5 * radius // 2, 12
    cells = (n, n, n) if shape == "sphere" else (n, n, depth)
    grid = Grid(cells, tuple(float(n) for n in cells))  # type: ignore[arg-type]
    x, y, z = centres(grid)
    squared = (x - n / 2 - 0.31) ** 2 + (y - n / 2 - 0.12) ** 2
    squared = squared + (z - n / 2 + 0.2) ** 2 if shape == "sphere" else np.broadcast_to(squared, grid.shape)
    exact = 4.0 * pi * radius**2 if shape == "sphere" else 2.0 * pi * radius * depth
    found = faces_of(grid, squared > radius**2, (False, False, shape == "cylinder"))
    assert found.areas.sum() == pytest.approx(exact, rel=tolerance)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 9, 12, 20])
def test_boxes_keep_their_area_up_to_their_edges(n: int) -> None:
    grid = Grid((n + 16, n + 16, n + 16), (1.0, 1.0, 1.0))
    void = np.ones(grid.shape, dtype=bool)
    void[8:-8, 8:-8, 8:-8] = False
    true, voxels = areas(grid, void)
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
    true, voxels = areas(Grid((28, 28, 28), (1.0, 1.0, 1.0)), void)
    assert true == pytest.approx(voxels, rel=1e-12)


@pytest.mark.parametrize("height", [3, 4, 6])
def test_a_chip_on_a_board_keeps_its_area(height: int) -> None:
    void = np.ones((24, 24, 24), dtype=bool)
    void[:6] = void[6 : 6 + height, 8:16, 8:16] = False
    true, voxels = areas(Grid((24, 24, 24), (1.0, 1.0, 1.0)), void)
    assert true == pytest.approx(voxels, rel=1e-12)


def test_sheets_of_one_cell_keep_their_area() -> None:
    grid = Grid((24, 24, 24), (1.0, 1.0, 1.0))
    void = np.ones(grid.shape, dtype=bool)
    void[12] = False
    true, voxels = areas(grid, void)
    assert true == pytest.approx(voxels, rel=1e-12)


def test_three_materials_see_each_other_and_void_apart() -> None:
    """A ball of two halves in void: a flat contact, and the surface of the ball."""
    grid = Grid((40, 40, 40), (40.0, 40.0, 40.0))
    x, y, z = centres(grid)
    inside = (x - 20) ** 2 + (y - 20) ** 2 + (z - 20) ** 2 < 15**2
    material = np.where(inside, np.where(z + 0.0 * x > 20, 1, 0), 2).astype(np.uint8)
    for pair, exact in (((0, 1), pi * 15**2), ((0, 2), 2 * pi * 15**2), ((1, 2), 2 * pi * 15**2)):
        wanted = np.zeros((3, 3), dtype=bool)
        wanted[pair] = wanted[pair[::-1]] = True
        faces = cell_faces.between(grid, material, wanted, NO)
        found = voxel_areas.areas(grid, material, faces, 2, NO)
        assert found.sum() == pytest.approx(exact, rel=0.02)


@pytest.mark.quick("1")
@pytest.mark.parametrize("axis", range(3))
def test_a_mirrored_body_has_the_mirrored_areas(axis: int) -> None:
    """Of two materials in void, whose surfaces are always seen from the material."""
    n, void = 14, 2
    grid = Grid((n, n, n), (1.0, 1.0, 1.0))
    x, y, z = centres(grid)
    material = np.full(grid.shape, void, np.uint8)
    material[(x - 0.5) ** 2 + (y - 0.5) ** 2 + (z - 0.5) ** 2 < 0.13] = 0
    material[((x - 0.57) ** 2 + (y - 0.43) ** 2 + (z - 0.54) ** 2 < 0.082) & (z > 0.5)] = 1

    def of(material: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The areas of the upper faces of the cells, shape (3, nz, ny, nx)."""
        faces = cell_faces.between(grid, material, ~np.eye(3, dtype=bool), NO)
        found = np.zeros((*grid.shape, 3))
        found.reshape(-1)[faces] = voxel_areas.areas(grid, material, faces, void, NO)
        return np.moveaxis(found, 3, 0)

    mirrored = np.flip(of(np.flip(material, 2 - axis)), 3 - axis).copy()
    mirrored[axis] = np.roll(mirrored[axis], -1, 2 - axis)  # an upper face becomes a lower one
    np.testing.assert_array_equal(of(material), mirrored)


def test_cells_are_found_by_their_bits() -> None:
    """The place of a cell in the list is the number of exposed cells before it."""
    rng = np.random.default_rng(0)
    grid = Grid((7, 5, 6), (1.0, 1.0, 1.0))
    void = rng.random(grid.shape) < 0.4
    for periodic in (NO, (True, True, True)):
        surfaces = faces_of(grid, void, periodic)
        found = find_weighted(grid, surfaces, void.astype(np.uint8), VOID)
        assert found.void
        assert not found.contacts
        mode = "wrap" if periodic[0] else "edge"
        padded = np.pad(void, 1, mode=mode)
        beside = np.zeros_like(void)
        total = 0.0
        face = np.repeat(cell_faces.voxel_areas(grid, np.arange(3)), 2)
        for axis in range(3):
            for side in (-1, 1):
                there = np.roll(padded, -side, 2 - axis)[1:-1, 1:-1, 1:-1]
                beside |= there
                towards = there.reshape(-1)[found.cells]
                direction = 2 * axis + (side > 0)
                assert (found.area[~towards, direction] == 1.0).all()
                total += float(found.area[towards, direction].sum()) * face[direction]
        assert total == pytest.approx(surfaces.areas.sum(), rel=1e-12)
        assert found.cells.tolist() == np.flatnonzero(beside & ~void).tolist()
        for rank, cell in enumerate(found.cells.tolist()):
            word = int(found.bits[cell // 32])
            assert word >> cell % 32 & 1
            assert int(found.before[cell // 32]) + (word & ((1 << cell % 32) - 1)).bit_count() == rank
