"""Shapes on cells of several widths: what is painted, and the areas of surfaces."""

import tomllib
from math import pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from painted import MATERIAL, box, cylinder, region, sphere, write_turned_box

from heatsim.grid import Axis, Grid
from heatsim.physics.geometry import counted, surface_areas
from heatsim.physics.geometry.cell_faces import FaceAreas, face_centres, total_areas, voxel_areas
from heatsim.physics.geometry.division import Division
from heatsim.physics.geometry.painted_sizes import painted_sizes
from heatsim.physics.geometry.regions import Parts, paint
from heatsim.scenario import Scenario, parse
from heatsim.scenario.tables.patches import Patch

N = 20
RANDOM = np.random.default_rng(3)
WIDTHS = {
    "growing": 1.2 ** np.arange(N),
    "falling": 1.5 ** -np.minimum(np.arange(N), 9.0),
    "random": 10.0 ** RANDOM.uniform(-1.0, 1.0, N),
    "a jump": np.where(np.arange(N) < N // 2, 1.0, 0.02),
    "fine in the middle": 0.05 + np.linspace(-1.0, 1.0, N) ** 2,
}


def scenario(regions: str, kinds: tuple[str, str, str] | None, folder: Path = Path(), **more: object) -> Scenario:
    """A cube of 1 m with regions in void; ``kinds``: of the widths along x, y and z."""
    axes = ""
    for name, kind in zip("xyz", kinds or (), strict=False):
        widths = WIDTHS[kind] / WIDTHS[kind].sum()
        axes += f"[domain.{name}]\nwidths = {widths.tolist()!r}\n"
    text = f"""title = "Graded"
[domain]
size = [1.0, 1.0, 1.0]
cells = [{N}, {N}, {N}]
material = "{more.get("outside", "void")}"
{axes}
{MATERIAL.format(name="one", conductivity=1.0)}
{MATERIAL.format(name="two", conductivity=1.0)}
[initial]
temperature = 300.0
[time]
end = 1.0
[boundaries]
{more.get("boundaries", "")}
{regions}
"""
    return parse(tomllib.loads(text), folder / "case.toml")


def surfaces(of: Scenario, centres: bool = False) -> tuple[FaceAreas, Parts, dict[frozenset[str], float]]:
    """The areas of all faces between materials, the cells, and the total areas."""
    parts, division = paint(of), Division.of(of)
    periodic = tuple(type(of.boundaries.face(f"{axis}_min")).__name__ == "Periodic" for axis in "xyz")
    wanted = ~np.eye(len(division.kinds), dtype=bool)
    found = surface_areas.find(division, parts, parts.material, wanted, periodic, centres)  # type: ignore[arg-type]
    totals = total_areas(of.grid, found, parts.material)
    return found, parts, {frozenset(division.kinds[n][0] for n in pair): area for pair, area in totals.items()}


ALIKE = [(kind, kind, kind) for kind in WIDTHS]


@pytest.mark.quick("kinds1")
@pytest.mark.parametrize("kinds", [("falling", "fine in the middle", "random"), ("random", "a jump", "growing")])
def test_boxes_have_their_area(kinds: tuple[str, str, str]) -> None:
    """Sides within cells; a small box on a large one; a side between two materials."""
    low, high = np.array((0.213, 0.131, 0.307)), np.array((0.871, 0.709, 0.811))
    dx, dy, dz = high - low
    _, _, areas = surfaces(scenario(region(box(low.tolist(), high.tolist())), kinds))
    assert areas[frozenset(("one", "void"))] == pytest.approx(2 * (dx * dy + dy * dz + dx * dz), rel=1e-12)
    lower, upper = box((0.0, 0.0, 0.0), (1.0, 1.0, 0.5)), box((0.33, 0.21, 0.5), (0.77, 0.66, 0.81))
    _, _, areas = surfaces(scenario(region(lower) + region(upper, "two", "upper"), kinds))
    assert areas[frozenset(("one", "two"))] == pytest.approx(0.44 * 0.45, rel=1e-12)
    assert areas[frozenset(("one", "void"))] == pytest.approx(1.0 - 0.44 * 0.45, rel=1e-12)
    assert areas[frozenset(("two", "void"))] == pytest.approx(0.44 * 0.45 + 2 * (0.44 + 0.45) * 0.31, rel=1e-12)


@pytest.mark.quick("kinds1")
@pytest.mark.parametrize("kinds", [ALIKE[1], ("fine in the middle", "random", "a jump")])
def test_curved_and_turned_surfaces_have_their_area(kinds: tuple[str, str, str], tmp_path: Path) -> None:
    write_turned_box(tmp_path / "part.stl", (0.6, 0.4, 0.2), (17.0, 30.0))
    for shape, exact in (
        (sphere(0.4, (0.51, 0.49, 0.505)), 4.0 * pi * 0.4**2),
        (cylinder(0.25, (0.5, 0.5, 0.25), (0.6, 0.7, 0.75)), 2.0 * pi * 0.25 * (sqrt(0.3) + 0.25)),
        ('stl = "part.stl"', 2 * (0.6 * 0.4 + (0.6 + 0.4) * 0.2)),
    ):
        _, _, areas = surfaces(scenario(region(shape), kinds, tmp_path))
        assert areas[frozenset(("one", "void"))] == pytest.approx(exact, rel=1e-3)


def test_faces_of_a_plane_weigh_the_part_of_its_normal_along_their_axis(tmp_path: Path) -> None:
    write_turned_box(tmp_path / "part.stl", (0.9, 0.9, 0.5), (30.0, 0.0))
    of = scenario(region('stl = "part.stl"'), ("growing", "fine in the middle", "fine in the middle"), tmp_path)
    found, _, _ = surfaces(of, centres=True)
    weights, places = found.areas / voxel_areas(of.grid, found.faces), face_centres(of.grid, found.faces) - 0.5
    c, s = sqrt(0.75), 0.5
    along, up = c * places[:, 1] + s * places[:, 2], c * places[:, 2] - s * places[:, 1]
    middle = (np.abs(places[:, 0]) < 0.2) & (np.abs(along) < 0.1) & (up > 0.1) & (up < 0.4)
    for axis, part in ((1, s), (2, c)):
        these = middle & (found.faces % 3 == axis)
        assert these.sum() >= 8
        np.testing.assert_allclose(weights[these], part, rtol=1e-9)
    # The surface that each face stands for lies on the plane.
    at = found.centres[middle] - 0.5
    np.testing.assert_allclose(c * at[:, 2] - s * at[:, 1], 0.25, atol=1e-12)


def test_nearly_equal_cells_have_the_areas_of_equal_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boxes, a sphere and a cylinder that cover parts of each other, across a periodic axis too."""
    monkeypatch.setitem(WIDTHS, "nearly equal", 1.0 + 1e-9 * RANDOM.uniform(-1.0, 1.0, N))
    wraps = 'y_min = { type = "periodic" }\ny_max = { type = "periodic" }'
    bodies = (
        region(box((0.113, -0.2, 0.217), (0.537, 0.831, 0.719)))
        + region(sphere(0.331, (0.571, 0.913, 0.477)), "two", "ball")
        + region(cylinder(0.173, (0.413, 0.217, 0.119), (0.719, 0.417, 0.877)), "one", "pin")
        + region(box((0.613, 0.117, 0.0), (1.2, 0.411, 0.333)), "two", "block")
    )
    for outside in ("void", "one"):
        one, other = (
            surfaces(scenario(bodies, kinds, boundaries=wraps, outside=outside), centres=True)
            for kinds in (None, ("nearly equal",) * 3)
        )
        np.testing.assert_array_equal(other[1].material, one[1].material)
        np.testing.assert_array_equal(other[0].faces, one[0].faces)
        np.testing.assert_allclose(other[0].areas, one[0].areas, atol=1e-7 * one[0].areas.max())
        np.testing.assert_allclose(other[0].centres, one[0].centres, atol=1e-7)


@pytest.mark.parametrize("kinds", ALIKE[2:4])
def test_cells_belong_to_shapes_that_hold_their_centres(kinds: tuple[str, str, str], tmp_path: Path) -> None:
    write_turned_box(tmp_path / "part.stl", (0.6, 0.5, 0.4), (17.0, 30.0))
    of = scenario(region('stl = "part.stl"'), kinds, tmp_path)
    x, y, z = np.meshgrid(*(axis.centres for axis in of.grid.axes), indexing="ij")
    points = np.stack((x, y, z), axis=-1) - 0.5
    a, b = np.radians((17.0, 30.0))
    around_x = np.array([[1.0, 0.0, 0.0], [0.0, np.cos(a), -np.sin(a)], [0.0, np.sin(a), np.cos(a)]])
    around_z = np.array([[np.cos(b), -np.sin(b), 0.0], [np.sin(b), np.cos(b), 0.0], [0.0, 0.0, 1.0]])
    inside = (np.abs(points @ (around_z @ around_x)) < np.array((0.3, 0.25, 0.2))).all(axis=-1)
    np.testing.assert_array_equal(paint(of).owner == 1, inside.transpose(2, 1, 0))


def test_the_painted_size_is_that_of_the_cells() -> None:
    of = scenario(region(box((0.1, 0.2, 0.3), (0.6, 0.7, 0.9))), ("growing", "random", "a jump"))
    (size,) = painted_sizes(of)
    for axis, (low, high), painted in zip(
        of.grid.axes, ((0.1, 0.6), (0.2, 0.7), (0.3, 0.9)), size.painted, strict=True
    ):
        within = (axis.centres >= low) & (axis.centres <= high)
        assert painted == pytest.approx(axis.widths[within].sum(), rel=1e-12)


def test_a_patch_covers_parts_of_cells() -> None:
    grid = Grid((3, 1, 4), (1.0, 1.0, 1.0), borders=((0.0, 0.1, 0.4, 1.0), (), (0.0, 0.5, 0.6, 0.7, 1.0)))
    rectangle = {"min": [0.05, 0.55], "max": [0.7, 0.7]}
    condition = {"type": "convection", "coefficient": 1.0, "ambient": 300.0}
    patch = Patch.model_validate({"name": "a", "face": "y_min", "rectangle": rectangle, "condition": condition})
    x, z = patch.coverage(grid)
    np.testing.assert_allclose(x, [0.5, 1.0, 0.5], rtol=1e-12)
    np.testing.assert_allclose(z, [0.0, 0.5, 1.0, 0.0], rtol=1e-12)
    assert patch.area_on_grid(grid) == pytest.approx(0.65 * 0.15, rel=1e-12)


def test_extreme_widths_are_those_of_all_cells_of_a_range() -> None:
    axis = Axis.between(np.append(0.0, np.cumsum(WIDTHS["random"])).tolist())
    low = RANDOM.uniform(-3.0, N + 3.0, 200)
    high = low + RANDOM.exponential(4.0, 200)
    least, most = counted.extreme_widths(axis, low, high)
    for start, end, smallest, largest in zip(low, high, least, most, strict=True):
        first, last = (int(np.clip(np.floor(place), 0, N - 1)) for place in (start, end))
        assert (smallest, largest) == (axis.widths[first : last + 1].min(), axis.widths[first : last + 1].max())
