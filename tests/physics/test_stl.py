"""STL files: what is inside, and how large its surface is, if there are several shells. Files that are refused."""

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from painted import area, body, box, region, sphere

from heatsim.grid import Grid
from heatsim.physics.geometry.painted_sizes import file_hints
from heatsim.physics.geometry.stl import Surface
from heatsim.physics.geometry.winding import Winding
from heatsim.physics.problem import HeatProblem
from heatsim.run.plan_model import describe_model
from heatsim.scenario import Stl

CELLS = 40
SIDES = ((0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5))


def block(low: Sequence[float], high: Sequence[float], other_diagonals: bool = False) -> np.ndarray:
    """The twelve triangles of a box, shape (12, 3, 3); their normals point out."""
    corners = np.array([[(low, high)[bit >> axis & 1][axis] for axis in range(3)] for bit in range(8)])
    sides = [(b, c, d, a) for a, b, c, d in SIDES] if other_diagonals else SIDES
    return np.array([corners[list(ends)] for a, b, c, d in sides for ends in ((a, b, c), (a, c, d))])


def ball(radius: float, centre: Sequence[float], parts: int = 12) -> np.ndarray:
    """Triangles of a sphere, of a cube whose sides are cut into squares; normals point out."""
    edges = np.tan(np.linspace(-np.pi / 4.0, np.pi / 4.0, parts + 1))
    squares = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            points = np.empty((parts + 1, parts + 1, 3))
            points[:, :, axis] = side
            points[:, :, axis - 2], points[:, :, axis - 1] = side * edges[:, None], edges[None, :]
            points *= radius / np.linalg.norm(points, axis=2, keepdims=True)
            a, b, c, d = points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]
            squares += [np.stack(corners, axis=2).reshape(-1, 3, 3) for corners in ((a, b, c), (a, c, d))]
    return np.concatenate(squares) + np.array(centre)


def inverted(triangles: np.ndarray) -> np.ndarray:
    return triangles[:, ::-1]


def write_binary(path: Path, *shells: np.ndarray, count: int | None = None) -> Path:
    """A binary STL file; ``count``: the number of triangles that its header names."""
    triangles = np.concatenate(shells)
    records = np.zeros(len(triangles), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])
    records["corners"] = triangles
    header = b"part".ljust(80) + struct.pack("<I", len(triangles) if count is None else count)
    path.write_bytes(header + records.tobytes())
    return path


def as_text(*shells: np.ndarray) -> str:
    lines = ["solid part"]
    for triangle in np.concatenate(shells):
        corners = ["vertex {!r} {!r} {!r}".format(*map(float, corner)) for corner in triangle]
        lines += ["facet normal 0 0 0", "outer loop", *corners, "endloop", "endfacet"]
    return "\n".join([*lines, "endsolid part", ""])


def read(path: Path) -> Surface:
    return Surface.from_stl(Stl.model_validate({"file": path.name}, context=path.parent))


def of_shells(folder: Path, *shells: np.ndarray) -> HeatProblem:
    write_binary(folder / "part.stl", *shells)
    return body(region('stl = "part.stl"'), CELLS, folder=folder)


def size(of: HeatProblem) -> tuple[int, float]:
    """The number of cells and the area of the body."""
    return of.materials.cells_of("one"), area(of, "one", "void")


A, B = ((0.21, 0.21, 0.21), (0.61, 0.61, 0.61)), ((0.43, 0.43, 0.43), (0.83, 0.83, 0.83))
BESIDE = ((0.61, 0.31, 0.21), (0.81, 0.51, 0.61))
WITHIN = ((0.31, 0.31, 0.31), (0.51, 0.51, 0.51))
FLUSH = ((0.43, 0.43, 0.21), (0.83, 0.83, 0.83))
AT_WALL = ((0.21, 0.31, 0.31), (0.51, 0.51, 0.51))
HOLE = region(box(*WITHIN), "void", "hole")
ASSEMBLIES = {
    "overlapping": ([block(*A), block(*B)], region(box(*A)) + region(box(*B), name="b"), "2 shells, joined"),
    "overlapping, two faces in one plane": (
        [block(*A), block(*FLUSH)],
        region(box(*A)) + region(box(*FLUSH), name="b"),
        "2 shells, joined",
    ),
    "touching": ([block(*A), block(*BESIDE)], region(box(*A)) + region(box(*BESIDE), name="b"), "2 shells, joined"),
    "touching with equal triangles": (
        [block((0.21, 0.21, 0.21), (0.41, 0.61, 0.61)), block((0.41, 0.21, 0.21), (0.61, 0.61, 0.61))],
        region(box(*A)),
        "2 shells, joined",
    ),
    "touching, one inside out": (
        [block(*A), inverted(block(*BESIDE))],
        region(box(*A)) + region(box(*BESIDE), name="b"),
        "2 shells, 1 shell inside out, read as solid, joined",
    ),
    "nested": ([block(*A), block(*WITHIN)], region(box(*A)), "2 shells, joined"),
    "twice": ([block(*A), block(*A)], region(box(*A)), "2 shells, joined"),
    "twice with other triangles": ([block(*A), block(*A, True)], region(box(*A)), "2 shells, joined"),
    "cavity": ([block(*A), inverted(block(*WITHIN))], region(box(*A)) + HOLE, "2 shells, 1 cavity"),
    "cavity, all inside out": ([inverted(block(*A)), block(*WITHIN)], region(box(*A)) + HOLE, "2 shells, 1 cavity"),
    "cavity in a cavity": (
        [
            block(*A),
            inverted(block(*WITHIN)),
            block((0.36,) * 3, (0.46,) * 3),
            inverted(block((0.385,) * 3, (0.435,) * 3)),
        ],
        region(box(*A))
        + HOLE
        + region(box((0.36,) * 3, (0.46,) * 3), name="core")
        + region(box((0.385,) * 3, (0.435,) * 3), "void", "pore"),
        "4 shells, 2 cavities",
    ),
    "cavity that opens through a wall": (
        [block(*A), inverted(block(*AT_WALL))],
        region(box(*A)) + region(box(*AT_WALL), "void", "hole"),
        "2 shells, 1 cavity, joined",
    ),
    "twice, and once inside out": (
        [block(*A), block(*A), inverted(block(*A))],
        region(box(*A)),
        "3 shells, 1 cavity, joined",
    ),
    "inside out": ([inverted(block(*A))], region(box(*A)), None),
    "apart, one inside out": (
        [block(*WITHIN), inverted(block((0.7,) * 3, (0.9,) * 3))],
        region(box(*WITHIN)) + region(box((0.7,) * 3, (0.9,) * 3), name="b"),
        "2 shells, 1 shell inside out, read as solid",
    ),
}


@pytest.mark.parametrize("name", ASSEMBLIES)
def test_shells_are_one_body_with_its_volume_and_area(name: str, tmp_path: Path) -> None:
    """The same cells as boxes of regions; areas to within the cuts of pieces at other regions. A plan tells them."""
    shells, regions, told = ASSEMBLIES[name]
    joined = of_shells(tmp_path, *shells)
    found, drawn = size(joined), size(body(regions, CELLS))
    assert found[0] == drawn[0]
    assert found[1] == pytest.approx(drawn[1], rel=5e-3)
    (line,) = (line for line in describe_model(joined) if line.startswith("region"))
    assert ("part.stl" not in line) if told is None else (f"; part.stl: {told}" in line)


def test_a_shell_that_paints_no_cell_is_named(tmp_path: Path) -> None:
    """A sheet of 0.8 cells between two planes of centres, and a ball outside of the domain."""
    sheet, ball_outside = block((0.1, 0.1, 0.34), (0.9, 0.9, 0.36)), ball(0.1, (1.5, 0.5, 0.5), 2)
    problem = of_shells(tmp_path, block(*A), sheet, ball_outside)
    assert file_hints(problem.scenario) == [
        'regions.0.stl: "part": 1 of its 3 shells contains no centre of a cell and paints none, the first from '
        "(0.1, 0.1, 0.34) to (0.9, 0.9, 0.36) m; use more cells"
    ]
    assert any("1 of its 3 shells" in line for line in describe_model(problem))
    assert not file_hints(of_shells(tmp_path, block(*A), ball_outside).scenario)


TURNED = np.array([[2.0, -2.0, 1.0], [2.0, 1.0, -2.0], [1.0, 2.0, 2.0]]) / 3.0


@pytest.mark.parametrize(
    "shell",
    [
        block((0.64, 0.1, 0.1), (0.66, 0.7, 0.7)),
        block((0.61, 0.25, 0.25), (0.612, 0.55, 0.55)),
        0.5 + block((0.2, -0.002, -0.001), (0.32, 0.002, 0.003)) @ TURNED.T,
    ],
    ids=["sheet beside it", "lip on it", "oblique rod"],
)
def test_a_shell_that_paints_no_cell_adds_no_area(shell: np.ndarray, tmp_path: Path) -> None:
    alone, beside = size(of_shells(tmp_path, block(*A))), of_shells(tmp_path, block(*A), shell)
    assert len(file_hints(beside.scenario)) == 1
    assert size(beside) == pytest.approx(alone, rel=1e-12)


def test_two_balls_are_their_union(tmp_path: Path) -> None:
    """Two caps of 2 π r (r + d) with d = 0.1 m from the centres to the plane of their circle."""
    centres, radius = ((0.41, 0.5, 0.5), (0.61, 0.5, 0.5)), 0.25
    cells, found = size(of_shells(tmp_path, *(ball(radius, centre) for centre in centres)))
    drawn, _ = size(body(region(sphere(radius, centres[0])) + region(sphere(radius, centres[1]), name="b"), CELLS))
    assert cells == pytest.approx(drawn, rel=0.01)
    assert found == pytest.approx(2.0 * 2.0 * np.pi * radius * (radius + 0.1), rel=0.01)


REFUSED = {
    "cavity that leaves the body": (
        [block(*A), inverted(block(*B))],
        r"has a shell that is inside out and crosses, at \(",
    ),
    "bars that cross, one inside out": (
        [block((0.1, 0.3, 0.3), (0.9, 0.6, 0.6)), inverted(block((0.35, 0.1, 0.35), (0.55, 0.9, 0.55)))],
        "crosses",
    ),
    "cavities that overlap": (
        [block((0.1,) * 3, (0.9,) * 3), inverted(block(*A)), inverted(block(*B))],
        r"has two cavities that overlap at \(0\.\d+, 0\.\d+, 0\.\d+\) in the file",
    ),
    "a shell and its inverse": ([block(*A), inverted(block(*A))], "shells that cancel each other: nothing is inside"),
    "one triangle inside out": (
        [np.concatenate((block(*A)[:3], inverted(block(*A)[3:4]), block(*A)[4:]))],
        r"no clear inside: 3 edges belong to two triangles whose normals disagree, one of them at \(0\.21, ",
    ),
    "one triangle missing": (
        [block(*A)[1:]],
        r"is open: 3 edges belong to one triangle only, one of them at \(0\.21, 0\.41, 0\.21\) in the file",
    ),
    "lines": ([block(*A)[:, [0, 1, 1]]], "has no triangle that is more than a line"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_surface_without_a_clear_inside_is_refused_with_the_place(name: str, tmp_path: Path) -> None:
    shells, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        read(write_binary(tmp_path / "part.stl", *shells))


@pytest.mark.parametrize(("count", "held"), [(13, "13 triangles"), (11, "11 triangles"), (0, "0 triangles")])
def test_a_header_that_names_another_number_of_triangles_is_refused(count: int, held: str, tmp_path: Path) -> None:
    path = write_binary(tmp_path / "part.stl", block(*A), count=count)
    with pytest.raises(ValueError, match=f"its header names {held}, and it holds 12"):
        read(path)


@pytest.mark.parametrize(
    "change",
    [
        str,
        str.upper,
        lambda text: text.replace("\n", "\r\n  "),
        lambda text: text.replace("outer loop\n", "outer loop "),
    ],
)
def test_text_is_read_in_any_case_and_with_any_blanks(change, tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_text(change(as_text(block(*A))))
    assert read(tmp_path / "part.stl").bounds == A


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("endfacet", "endfacet\nfacet normal 0 0 0", "has 24 facets and 36 corners"),
        ("vertex 0.21 0.21 0.21", "vertex 0,21 0.21 0.21", "coordinates are not numbers"),
        ("vertex 0.21 0.21 0.21", "vertex nan 0.21 0.21", "not finite"),
    ],
)
def test_a_text_with_a_fault_is_refused(old: str, new: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "part.stl").write_text(as_text(block(*A)).replace(old, new))
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "part.stl")


def test_fine_triangles_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triangles far below the size of a cell are not divided: their number, not where they cross, decides the time."""
    shells, asked, at = [ball(0.25, (x, 0.5, 0.5), 30) for x in (0.41, 0.61)], [], Winding.at
    monkeypatch.setattr(Winding, "at", lambda winding, points: asked.append(len(points)) or at(winding, points))
    write_binary(tmp_path / "part.stl", *shells)
    problem = body(region('stl = "part.stl"'), 5, folder=tmp_path)
    # Two samples for the shells, then each piece in front and behind. A fifth of the triangles lie in several cells.
    assert sum(asked) < 6 * sum(map(len, shells))
    exact = 4.0 * np.pi * 0.25 * (0.25 + 0.1)
    assert area(problem, "one", "void") == pytest.approx(exact, rel=5e-3)


def test_winding_numbers_of_points_and_cells_agree_with_the_solid_angle() -> None:
    """Σ Ω/(4 π) over triangles, with the formula of Van Oosterom & Strackee (1983)."""
    shells = np.concatenate(
        (ball(3.9, (5.3, 5.1, 4.7), 3), ball(3.1, (7.2, 5.5, 5.9), 2), inverted(ball(1.3, (5.2, 5.1, 4.8), 2)))
    )
    winding = Winding(shells.reshape(-1, 3), np.arange(len(shells) * 3).reshape(-1, 3))
    z, y, x = np.indices((12, 11, 13))
    places = np.stack((x, y, z), axis=-1).reshape(-1, 3).astype(float)
    a, b, c = np.moveaxis(shells[None] - places[:, None, None], 2, 0)
    la, lb, lc = (np.linalg.norm(arm, axis=-1) for arm in (a, b, c))
    below = la * lb * lc + (a * b).sum(-1) * lc + (b * c).sum(-1) * la + (c * a).sum(-1) * lb
    exact = 2.0 * np.arctan2((a * np.cross(b, c)).sum(-1), below).sum(axis=1) / (4.0 * np.pi)
    assert set(np.rint(exact)) == {0.0, 1.0, 2.0}
    assert abs(exact - np.rint(exact)).max() < 1e-9
    np.testing.assert_array_equal(winding.at(places), np.rint(exact))
    cells = winding.in_cells((slice(0, 12), slice(0, 11), slice(0, 13)))
    np.testing.assert_array_equal(cells.reshape(-1), np.rint(exact))
    part = winding.in_cells((slice(3, 7), slice(2, 9), slice(4, 8)))
    np.testing.assert_array_equal(part, cells[3:7, 2:9, 4:8])


def test_rays_through_edges_and_corners_count_once() -> None:
    """The corners of the blocks lie on centres of cells, and rays run along their faces: the lower side is inside."""
    shells = np.concatenate((block((1.0, 1.0, 1.0), (3.0, 4.0, 5.0)), block((3.0, 1.0, 1.0), (6.0, 4.0, 5.0), True)))
    points, index = np.unique(shells.reshape(-1, 3), axis=0, return_inverse=True)
    found = Winding(points, index.reshape(-1, 3)).in_cells((slice(0, 7),) * 3)
    expected = np.zeros((7, 7, 7))
    expected[1:5, 1:4, 1:6] = 1
    np.testing.assert_array_equal(found, expected)


def test_a_part_on_blocks_of_planes_is_the_part(tmp_path: Path) -> None:
    surface, grid = read(write_binary(tmp_path / "part.stl", ball(0.4, (0.5, 0.5, 0.5)))), Grid((9, 8, 7), (1.0,) * 3)
    everywhere = surface.inside(grid, (slice(0, 7), slice(0, 8), slice(0, 9)))
    assert everywhere.any()
    np.testing.assert_array_equal(surface.inside(grid, (slice(2, 5), slice(0, 8), slice(3, 9))), everywhere[2:5, :, 3:])
