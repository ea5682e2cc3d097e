"""Surfaces of shapes have their own area, not that of the voxels that they are made of."""

from itertools import product
from math import hypot, pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from covering import mostly_slow
from painted import area, body, box, cylinder, region, sphere, write_turned_box

from heatsim.physics.cells.link_weights import types_around
from heatsim.physics.geometry import cell_faces
from heatsim.physics.problem import HeatProblem

# Coordinates that no cell's border or centre has.
OFF = (0.5123, 0.4871, 0.5057)


def voxels(of: HeatProblem, *between: str) -> float:
    """The area in m² of the cells' faces between two materials."""
    materials = of.materials
    names = [substance.name for substance in materials.palette]
    wanted = np.zeros((len(names), len(names)), dtype=bool)
    one, other = (names.index(name) for name in between)
    wanted[one, other] = wanted[other, one] = True
    assert of.parts is not None
    faces = cell_faces.between(materials.grid, of.parts.material, wanted, of.periodic)
    return float(cell_faces.voxel_areas(materials.grid, faces).sum())


@pytest.mark.each_value
@pytest.mark.parametrize("centre", [(0.5, 0.5, 0.5), OFF])
@pytest.mark.parametrize("cells", [3, 15, 60])
def test_a_sphere_has_its_area(cells: int, centre: tuple[float, ...]) -> None:
    found = body(region(sphere(0.4, centre)), cells)
    assert area(found, "one", "void") == pytest.approx(4.0 * pi * 0.4**2, rel=1e-9)
    if cells > 10:
        assert voxels(found, "one", "void") == pytest.approx(1.5 * 4.0 * pi * 0.4**2, rel=0.1)


@pytest.mark.parametrize("end", [(0.5, 0.5, 0.8), (0.6, 0.7, 0.75)])
@pytest.mark.parametrize("cells", [6, 24, 48])
def test_a_cylinder_has_the_area_of_its_side_and_its_ends(cells: int, end: tuple[float, ...]) -> None:
    start, radius = (0.5, 0.5, 0.25), 0.25
    length = sqrt(sum((b - a) ** 2 for a, b in zip(start, end, strict=True)))
    found = body(region(cylinder(radius, start, end)), cells)
    assert area(found, "one", "void") == pytest.approx(2.0 * pi * radius * (length + radius), rel=1e-9)


@pytest.mark.parametrize("cells", [(10, 10, 10), (7, 20, 33)])
@pytest.mark.parametrize("thickness", [0.1, 0.2, 0.5])
def test_a_box_has_its_area_at_any_thickness(thickness: float, cells: tuple[int, int, int]) -> None:
    found = body(region(box((0.2, 0.13, 0.3), (0.9, 0.71, 0.3 + thickness))), cells)
    assert area(found, "one", "void") == pytest.approx(2 * (0.7 * 0.58 + (0.7 + 0.58) * thickness), rel=1e-9)


def test_faces_of_a_box_on_the_grid_weigh_as_much_as_they_are() -> None:
    found = body(region(box((0.25, 0.25, 0.25), (0.75, 0.5, 0.875))), 16).materials.weighted_surfaces
    assert len(found.cells)
    assert (found.area == 1.0).all()


@pytest.mark.parametrize("thickness", [0.05, 0.2])
@pytest.mark.parametrize("degrees", [(0.0, 8.0), (0.0, 45.0), (17.0, 30.0)])
def test_turned_boxes_have_their_area(degrees: tuple[float, float], thickness: float, tmp_path: Path) -> None:
    """As thick as 2.5 and as 10 cells."""
    write_turned_box(tmp_path / "part.stl", (0.6, 0.4, thickness), degrees)
    found = body(region('stl = "part.stl"'), 50, folder=tmp_path)
    assert area(found, "one", "void") == pytest.approx(2 * (0.6 * 0.4 + (0.6 + 0.4) * thickness), rel=1e-5)


@pytest.mark.parametrize("degrees", [8.0, 17.0, 30.0, 45.0])
def test_faces_of_a_plane_weigh_the_part_of_its_normal_along_their_axis(degrees: float, tmp_path: Path) -> None:
    write_turned_box(tmp_path / "part.stl", (0.8, 0.8, 0.5), (degrees, 0.0))
    found = body(region('stl = "part.stl"'), 40, folder=tmp_path)
    surfaces = found.materials.weighted_surfaces
    y, z = ((surfaces.cells // stride % 40 + 0.5) / 40 - 0.5 for stride in (40, 1600))
    x = (surfaces.cells % 40 + 0.5) / 40 - 0.5
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    # In the middle of the upper side, where no edge is near.
    middle = (np.abs(x) < 0.25) & (np.abs(c * y + s * z) < 0.2) & (c * z - s * y > 0.0)
    materials = found.materials
    _, around = types_around(materials, surfaces.cells[middle])
    for direction, part in ((2, s), (5, c)):
        weights = surfaces.area[middle, direction][around[:, direction] == materials.void]
        assert len(weights) >= 20
        np.testing.assert_allclose(weights, part, rtol=1e-6)


@pytest.mark.parametrize("cells", [20, 40])
def test_what_stands_nearby_changes_nothing(cells: int) -> None:
    """A gap of one cell, and a wall of the same material that the sphere does not touch."""
    wall = region(box((0.0, 0.0, 0.0), (1.0, 1.0, 0.1)), name="wall")
    found = body(wall + region(sphere(0.3, (0.5, 0.5, 0.42))), cells)
    assert area(found, "one", "void") == pytest.approx(1.0 + 4.0 * pi * 0.3**2, rel=1e-9)


@pytest.mark.parametrize(("cells", "tolerance"), mostly_slow([(12, 3e-3), (24, 1e-3)], (24, 1e-3)))
def test_what_another_region_covers_counts_for_nothing(cells: int, tolerance: float) -> None:
    """Half a sphere on a slab, painted before or after it; a disc between two materials; two spheres in one another."""
    slab, dome = box((0.0, 0.0, 0.0), (1.0, 1.0, 0.25)), sphere(0.3, (0.5, 0.5, 0.25))
    outer, disc = 1.0 + pi * 0.3**2, pi * 0.3**2
    for regions in (
        region(slab) + region(dome, name="dome"),
        region(dome) + region(slab, name="slab"),
        region("everywhere = true", "void") + region(slab, name="slab") + region(dome, name="dome"),
    ):
        assert area(body(regions, cells), "one", "void") == pytest.approx(outer, rel=tolerance)
    two = body(region(dome) + region(slab, "two", "slab"), cells, resistance=1.0)
    assert area(two, "one", "two") == pytest.approx(disc, rel=tolerance)
    assert area(two, "one", "void") + area(two, "two", "void") == pytest.approx(outer, rel=tolerance)
    spheres = region(sphere(0.3, (0.5, 0.5, 0.4))) + region(sphere(0.3, (0.5, 0.5, 0.6)), name="other")
    each = 2.0 * pi * 0.3 * (0.3 + 0.1)
    assert area(body(spheres, cells), "one", "void") == pytest.approx(2.0 * each, rel=tolerance)


def test_a_covered_stl_surface_counts_for_nothing(tmp_path: Path) -> None:
    write_turned_box(tmp_path / "part.stl", (0.5, 0.5, 0.5), (0.0, 0.0))
    inner = region(cylinder(0.1, (0.5, 0.5, 0.5), (0.5, 0.5, 0.9)), name="pin")
    for regions in (inner + region('stl = "part.stl"'), region('stl = "part.stl"') + inner):
        found = body(regions, 30, folder=tmp_path)
        assert area(found, "one", "void") == pytest.approx(6 * 0.25 + 2.0 * pi * 0.1 * 0.15, rel=1e-3)


def test_a_cavity_has_its_area() -> None:
    found = body(region(sphere(0.4)) + region(sphere(0.2, OFF), "void", "cavity"), 30)
    assert area(found, "one", "void") == pytest.approx(4.0 * pi * (0.4**2 + 0.2**2), rel=1e-9)


def test_the_domain_cuts_shapes_off() -> None:
    """A quarter of a cylinder that is much longer than the domain, and a slope that is part of a huge sphere."""
    found = body(region(cylinder(0.6, (0.0, 0.0, -1e3), (0.0, 0.0, 1e3))), 20)
    assert area(found, "one", "void") == pytest.approx(0.5 * pi * 0.6, rel=1e-6)
    found = body(region(sphere(1e5, (0.5, 0.5 - 0.6e5, 0.5 - 0.8e5))), 20)
    assert area(found, "one", "void") == pytest.approx(hypot(1.0, 0.75), rel=1e-4)


def test_shapes_wrap_with_the_domain() -> None:
    """A bar across a periodic axis has no ends; one that stops at the end of the domain has one there."""
    wraps = 'y_min = { type = "periodic" }\ny_max = { type = "periodic" }\n'
    void = 'void = { type = "convection", coefficient = 1.0, ambient = 300.0 }'
    bar = body(region(box((0.2, -1.0, 0.2), (0.5, 2.0, 0.5))), 20, boundaries=wraps + void)
    assert area(bar, "one", "void") == pytest.approx(4 * 0.3, rel=1e-9)
    for low in (0.5, 0.45):
        block = body(region(box((0.2, low, 0.2), (0.5, 1.0 + low, 0.5))), 20, boundaries=wraps + void)
        ends = 2 * 0.09
        assert area(block, "one", "void") == pytest.approx(4 * 0.3 * (1.0 - low) + ends, rel=1e-9)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 1.0 + 2e-16), (1e-12, 1.0 - 1e-12), (-1.0, 1.0)])
@pytest.mark.parametrize("shape", ["box", "cylinder"])
def test_a_bar_that_ends_where_a_periodic_axis_ends_has_no_ends(shape: str, low: float, high: float) -> None:
    """It meets itself there."""
    wraps = 'y_min = { type = "periodic" }\ny_max = { type = "periodic" }\n'
    void = 'void = { type = "convection", coefficient = 1.0, ambient = 300.0 }'
    bar, around = {
        "box": (box((0.25, low, 0.25), (0.5, high, 0.75)), 1.5),
        "cylinder": (cylinder(0.3, (0.5, low, 0.5), (0.5, high, 0.5)), 2.0 * pi * 0.3),
    }[shape]
    found = body(region(bar), (16, 4, 16), boundaries=wraps + void)
    assert area(found, "one", "void") == pytest.approx(around, rel=1e-5)


def test_regions_that_meet_across_a_periodic_axis_have_the_area_of_their_contact() -> None:
    wraps = 'y_min = { type = "periodic" }\ny_max = { type = "periodic" }\n'
    void = 'void = { type = "convection", coefficient = 1.0, ambient = 300.0 }'
    first = region(box((0.25, 0.0, 0.25), (0.75, 0.25, 0.75)), "two", "first")
    second = region(box((0.25, 0.75, 0.25), (0.75, 1.0, 0.75)), "one", "second")
    found = body(first + second, 8, boundaries=wraps + void, resistance=1.0)
    assert area(found, "one", "two") == pytest.approx(0.25, rel=1e-9)
    assert area(found, "one", "void") == pytest.approx(4 * 0.125 + 0.25, rel=1e-9)


def test_a_label_image_has_the_area_of_its_voxels_normals(tmp_path: Path) -> None:
    """What images paint has its area from voxels, what shapes paint beside it from the shapes."""
    n = 60
    x = (np.arange(n) + 0.5) / n
    ball = (x - 0.3) ** 2 + (x[:, None] - 0.3) ** 2 + (x[:, None, None] - 0.3) ** 2 < 0.2**2
    np.save(tmp_path / "ct.npy", ball.astype(np.uint8))
    labels = '[[regions]]\nname = "ct"\nlabels = { file = "ct.npy", materials = { "1" = "one" } }\n'
    found = body(labels + region(sphere(0.2, (0.7, 0.7, 0.7)), "two"), n, folder=tmp_path)
    assert area(found, "one", "void") == pytest.approx(4.0 * pi * 0.2**2, rel=5e-3)
    assert area(found, "two", "void") == pytest.approx(4.0 * pi * 0.2**2, rel=1e-9)


def test_equal_bodies_share_their_areas_and_others_have_their_own() -> None:
    """Boxes that differ by less than a cell paint the same cells."""
    boxes = [box((0.2, 0.2, 0.2), (0.7, 0.7, end)) for end in (0.7, 0.7, 0.72)]
    first, same, longer = (body(region(shape), 10) for shape in boxes)
    assert np.array_equal(first.materials.cells, longer.materials.cells)
    for name in ("area", "cells"):
        arrays = [getattr(of.materials.weighted_surfaces, name) for of in (first, same)]
        assert arrays[0].tobytes() == arrays[1].tobytes()
    assert area(first, "one", "void") == area(same, "one", "void") == pytest.approx(6 * 0.25, rel=1e-9)
    assert area(longer, "one", "void") == pytest.approx(2 * 0.25 + 4 * 0.5 * 0.52, rel=1e-9)


# In cells of (5, 8, 7). The first box contains the centres of the lowest plane of cells: its lower side has no face.
# The second is also one cell wide: two faces are equally near to that side. The third touches two ends of the domain.
OFF_THE_GRID = [
    ((0.2445, 0.2394, 0.0127), (0.5253, 0.5897, 0.4418)),
    ((0.45, 0.21, 0.02), (0.55, 0.79, 0.6)),
    ((0.05, 0.404, 0.4817), (0.6644, 1.0, 1.0)),
]


@pytest.mark.each_value
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("low", "high"), OFF_THE_GRID)
def test_mirrored_boxes_have_mirrored_areas(low: tuple[float, ...], high: tuple[float, ...], axis: int) -> None:
    def ratios(low: tuple[float, ...], high: tuple[float, ...]) -> np.ndarray:
        found = body(region(box(low, high), "void"), (5, 8, 7), outside="one").materials.weighted_surfaces
        areas = np.ones((7 * 8 * 5, 6))
        areas[found.cells] = found.area
        return areas.reshape(7, 8, 5, 3, 2)

    mirrored_low, mirrored_high = list(low), list(high)
    mirrored_low[axis], mirrored_high[axis] = 1.0 - high[axis], 1.0 - low[axis]
    expected = np.flip(ratios(low, high), 2 - axis).copy()
    expected[..., axis, :] = expected[..., axis, ::-1]
    found = ratios(tuple(mirrored_low), tuple(mirrored_high))
    assert not np.all(found == 1.0)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def areas_between(boxes: list[tuple[np.ndarray, np.ndarray]], materials: list[str]) -> dict[frozenset[str], float]:
    """The areas between the materials of boxes in void, later boxes over earlier ones.

    They are summed over the cells of the grid that all planes make.
    """
    planes = [np.unique([0.0, 1.0, *(end[axis] for box in boxes for end in box)]) for axis in range(3)]
    middles = np.meshgrid(*((each[1:] + each[:-1]) / 2.0 for each in planes), indexing="ij")
    names = ["void", *dict.fromkeys(name for name in materials if name != "void")]
    painted = np.zeros(middles[0].shape, dtype=int)
    for (low, high), name in zip(boxes, materials, strict=True):
        inside = [(low[axis] < middles[axis]) & (middles[axis] < high[axis]) for axis in range(3)]
        painted[np.all(inside, axis=0)] = names.index(name)
    found: dict[frozenset[str], float] = {}
    for axis in range(3):
        one, other = (np.diff(planes[along]) for along in range(3) if along != axis)
        lined = np.moveaxis(painted, axis, 0)
        for place in np.argwhere(lined[1:] != lined[:-1]):
            pair = frozenset(names[lined[place[0] + step, place[1], place[2]]] for step in (0, 1))
            found[pair] = found.get(pair, 0.0) + one[place[1]] * other[place[2]]
    return found


@pytest.mark.quick("0-one", "1-two")
@pytest.mark.parametrize(
    ("seed", "material"),
    mostly_slow(product(range(6), ("one", "two")), *zip(range(6), ("one", "two") * 3, strict=True)),
)
def test_boxes_that_stand_out_by_less_than_a_cell_keep_their_area(seed: int, material: str) -> None:
    """Where the first box is less than a cell higher than the second, the cells are all of the second one."""
    random = np.random.default_rng(seed)
    cells = int(random.integers(9, 20))
    low, high = random.uniform(0.2, 0.3, 3), random.uniform(0.6, 0.8, 3)
    boxes = [(low, high), (low + random.uniform(-0.45, 0.45, 3) / cells, high + random.uniform(-0.45, 0.45, 3) / cells)]
    shapes = [box(each[0].tolist(), each[1].tolist()) for each in boxes]
    found = body(region(shapes[0]) + region(shapes[1], material, "later"), cells)
    total = sum(area(found, each, "void") for each in {"one", material})
    expected = areas_between(boxes, ["one", "one"])[frozenset(("one", "void"))]
    assert total == pytest.approx(expected, rel=1e-12)


@pytest.mark.quick("1")
@pytest.mark.parametrize("seed", range(3))
def test_random_boxes_have_the_areas_between_them(seed: int) -> None:
    """Five boxes whose sides lie within cells, at least two cells apart, some of void; then with a sphere too."""
    random = np.random.default_rng(seed)
    cells = tuple(int(n) for n in random.integers(24, 30, 3))
    planes = np.linspace(0.05, 0.85, 10) + random.uniform(-0.004, 0.004, (3, 10))
    boxes = [(np.minimum(*ends), np.maximum(*ends)) for ends in random.permuted(planes, axis=1).T.reshape(5, 2, 3)]
    materials = ["one", "two", *random.choice(["one", "two", "void"], 3).tolist()]
    shapes = [box(low.tolist(), high.tolist()) for low, high in boxes]
    regions = [region(shape, name, f"part {n}") for n, (shape, name) in enumerate(zip(shapes, materials, strict=True))]
    ball = region(sphere(0.05, (0.93, 0.93, 0.93)), "one", "ball")
    for text, more in (("".join(regions), 0.0), (ball + "".join(regions), 4.0 * pi * 0.05**2)):
        found = body(text, cells, resistance=1.0)
        for pair, expected in areas_between(boxes, materials).items():
            expected += more * (pair == {"one", "void"})
            assert area(found, *pair) == pytest.approx(expected, rel=1e-9), pair
