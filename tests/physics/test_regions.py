"""Regions on the grid: which cells a shape takes, what is refused, what cells start from."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatsim.errors import ScenarioError
from heatsim.grid import Grid
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.geometry.painted_sizes import file_hints
from heatsim.physics.geometry.regions import Parts, paint, region_mask, source_mask
from heatsim.physics.geometry.shapes import Solid
from heatsim.scenario import Box, Cylinder, Scenario, Shape, Sphere, Stl, parse

GRID = Grid((20, 21, 22), (0.2, 0.21, 0.22), (-0.01, 0.0, 0.05))
TEXT = """
[domain]
size = [0.04, 0.03, 0.02]
cells = [8, 6, 4]
material = "copper"
[materials.copper]
conductivity = 400.0
density = 8960.0
specific_heat = 385.0
[materials.silicon]
conductivity = 148.0
density = 2330.0
specific_heat = 700.0
[initial]
temperature = "300 + 100*x"
[time]
end = 1.0
"""
DIE = """
[[regions]]
name = "die"
material = "silicon"
"""


def scenario(extra: str = "", folder: Path = Path()) -> Scenario:
    return parse(tomllib.loads(TEXT + extra), folder / "module.toml")


def mistakes_of(extra: str, folder: Path = Path()) -> list[tuple[str, str]]:
    with pytest.raises(ScenarioError) as caught:
        paint(scenario(extra, folder))
    return [(problem.key, problem.message) for problem in caught.value.mistakes]


def centres(grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y, z of all cells, each of shape (nz, ny, nx)."""
    z, y, x = np.meshgrid(*(grid.centres(axis) for axis in (2, 1, 0)), indexing="ij")
    return x, y, z


def shape_mask(shape: Shape, grid: Grid) -> np.ndarray:
    """The cells that belong to a shape, put together of its blocks."""
    mask = np.zeros(grid.shape, dtype=bool)
    for block, inside in Solid.of(shape).blocks(grid):
        mask[block] = inside
    return mask


def squared(distance: np.ndarray) -> np.ndarray:
    """Exact, in half-cells."""
    return np.rint(distance * 200) ** 2


def write_stl(path: Path, low=(0.0, 0.0, 0.0), high=(1.0, 1.0, 1.0), faces=6, jitter=0.0) -> Path:
    """A box, or with fewer faces an open one, of two triangles a face, as text."""
    corners = np.array([[(low, high)[bit >> axis & 1][axis] for axis in range(3)] for bit in range(8)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)][:faces]
    lines, rng = ["solid part"], np.random.default_rng(0)
    for a, b, c, d in quads:
        for triangle in ((a, b, c), (a, c, d)):
            lines += ["facet normal 0 0 0", "outer loop"]
            for corner in triangle:
                moved = corners[corner] + jitter * rng.uniform(-1.0, 1.0, 3)
                lines.append("vertex " + " ".join(repr(float(value)) for value in moved))
            lines += ["endloop", "endfacet"]
    path.write_text("\n".join([*lines, "endsolid part", ""]))
    return path


def read_stl(path: Path, **settings: object) -> Stl:
    return Stl.model_validate({"file": path.name, **settings}, context=path.parent)


@pytest.mark.parametrize(
    ("shape", "inside"),
    [
        # The corners of the box lie on centres of cells, in decimals that are not theirs to the last bit.
        (
            Box(min=(0.015, 0.035, 0.055), max=(0.155, 0.105, 0.195)),
            lambda x, y, z: (x > 0.014) & (x < 0.156) & (y > 0.034) & (y < 0.106) & (z > 0.054) & (z < 0.196),
        ),
        (Box(min=(-1.0, -1.0, -1.0), max=(1.0, 1.0, 1.0)), lambda x, y, z: x < 9.0),
        (Box(min=(-1e30, 0.1, -1.0), max=(1e30, 0.11, 1e30)), lambda x, y, z: abs(y - 0.105) < 0.001),
        (
            Sphere(centre=(0.085, 0.095, 0.155), radius=0.05),
            # In whole half-cells: the six poles lie on centres.
            lambda x, y, z: squared(x - 0.085) + squared(y - 0.095) + squared(z - 0.155) <= 100,
        ),
        (
            Cylinder(**{"from": (0.005, 0.085, 0.155), "to": (0.105, 0.085, 0.155), "radius": 0.04}),
            lambda x, y, z: (x > 0.004) & (x < 0.106) & (squared(y - 0.085) + squared(z - 0.155) <= 64),
        ),
    ],
)
def test_a_cell_belongs_to_a_shape_when_its_centre_does(shape, inside):
    assert (shape_mask(shape, GRID) == inside(*centres(GRID))).all()


vectors = st.tuples(*[st.floats(-0.05, 0.3)] * 3)


@settings(max_examples=60)
@given(start=vectors, end=vectors, radius=st.floats(1e-4, 0.2))
def test_a_tilted_cylinder_is_what_is_near_its_axis(start, end, radius):
    length = float(np.linalg.norm(np.subtract(end, start)))
    if length < 1e-6:
        return
    points = np.stack(centres(GRID), axis=-1)
    axis = np.subtract(end, start) / length
    along = (points - start) @ axis
    distance = np.linalg.norm(points - start - along[..., None] * axis, axis=-1)
    inside = (along > 1e-9) & (along < length - 1e-9) & (distance < radius - 1e-9)
    outside = (along < -1e-9) | (along > length + 1e-9) | (distance > radius + 1e-9)
    mask = shape_mask(Cylinder(**{"from": start, "to": end, "radius": radius}), GRID)
    assert mask[inside].all()
    assert not mask[outside].any()


def test_shapes_of_a_large_grid_are_put_together_of_slabs(monkeypatch):
    whole = shape_mask(Sphere(centre=(0.09, 0.1, 0.15), radius=0.07), GRID)
    monkeypatch.setattr("heatsim.physics.geometry.shapes._CELLS_PER_SLAB", 500)
    assert (shape_mask(Sphere(centre=(0.09, 0.1, 0.15), radius=0.07), GRID) == whole).all()


def test_regions_are_painted_in_order_and_later_ones_win():
    model = scenario(
        f"""
{DIE}box = {{ min = [0.0, 0.0, 0.0], max = [0.02, 0.03, 0.02] }}
[[regions]]
name = "hole"
material = "void"
box = {{ min = [0.015, 0.0, 0.0], max = [0.025, 0.03, 0.02] }}
[[regions]]
name = "plug"
material = "copper"
box = {{ min = [0.02, 0.0, 0.0], max = [0.025, 0.03, 0.005] }}
"""
    )
    parts = paint(model)
    assert [name for name, _ in model.palette] == ["copper", "silicon", "void"]
    assert parts.material.dtype == parts.owner.dtype == np.uint8
    assert parts.material[0, 0].tolist() == [1, 1, 1, 2, 0, 0, 0, 0]
    assert parts.material[3, 5].tolist() == [1, 1, 1, 2, 2, 0, 0, 0]
    assert parts.owner[0, 0].tolist() == [1, 1, 1, 2, 3, 0, 0, 0]
    assert parts.region_cells == (72, 24 + 18, 6)
    assert parts.material_cells == (3 * 24 + 6, 72, 24 + 18)


def test_a_void_domain_holds_the_parts_painted_into_it():
    text = (
        TEXT.replace('material = "copper"', 'material = "void"')
        + f"{DIE}sphere = {{ centre = [0.02, 0.015, 0.01], radius = 0.008 }}"
    )
    model = parse(tomllib.loads(text), "module.toml")
    parts = paint(model)
    assert set(np.unique(parts.material)) == {1, 2}
    assert parts.material_cells[0] == 0
    assert parts.region_cells[0] == parts.material_cells[1] > 0


def test_a_void_region_in_the_only_material_without_a_name():
    plain = (
        TEXT.replace('material = "copper"', "")
        .replace("[materials.copper]", "[material]")
        .split("[materials.silicon]")[0]
    )
    text = f"""{plain}
[initial]
temperature = 300.0
[time]
end = 1.0
[[regions]]
name = "hole"
material = "void"
box = {{ min = [0.0, 0.0, 0.0], max = [0.02, 0.03, 0.02] }}
"""
    assert paint(parse(tomllib.loads(text), "plate.toml")).material[0, 0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_labels_paint_their_materials_and_leave_the_rest(tmp_path):
    labels = np.random.default_rng(2).integers(0, 4, (4, 6, 8)).astype(np.int16)
    np.save(tmp_path / "ct.npy", labels)
    model = scenario(
        '[[regions]]\nname = "ct"\nlabels = { file = "ct.npy", materials = { "1" = "silicon", "3" = "void" } }',
        tmp_path,
    )
    parts = paint(model)
    assert (parts.material == np.array([0, 1, 0, 2])[labels]).all()
    assert (parts.owner == (labels % 2)).all()


def test_regions_start_from_their_own_temperature():
    model = scenario(
        f"""
{DIE}initial_temperature = 350.0
box = {{ min = [0.0, 0.0, 0.0], max = [0.02, 0.03, 0.02] }}
[[regions]]
name = "plug"
material = "copper"
box = {{ min = [0.0, 0.0, 0.0], max = [0.01, 0.03, 0.02] }}
"""
    )
    field = InitialField.from_scenario(model)
    ((first, slab),) = field.slabs()
    x = model.grid.centres(0)
    assert first == 0
    assert slab[2, 3] == pytest.approx(np.where((x > 0.01) & (x < 0.02), 350.0, 300.0 + 100.0 * x), rel=1e-15)
    assert (field.lowest, field.highest) == (slab.min(), 350.0)
    assert (next(InitialField.from_scenario(model, paint(model)).slabs())[1] == slab).all()


def test_sources_heat_what_conducts_in_their_place():
    model = scenario(
        f"""
{DIE}box = {{ min = [0.0, 0.0, 0.0], max = [0.02, 0.03, 0.02] }}
[[regions]]
name = "hole"
material = "void"
box = {{ min = [0.015, 0.0, 0.0], max = [0.025, 0.03, 0.02] }}
[[sources]]
region = "die"
power = 1.0
[[sources]]
box = {{ min = [0.01, 0.0, 0.0], max = [0.03, 0.005, 0.005] }}
power = 1.0
[[sources]]
power_density = 1.0
"""
    )
    parts = paint(model)
    region, box, everywhere = (source_mask(source, model, parts) for source in model.sources)
    assert region[1, 2].tolist() == [True, True, True, False, False, False, False, False]
    assert (region == region_mask("die", model, parts)).all()
    assert box[0, 0].tolist() == [False, False, True, False, False, True, False, False]
    assert box.sum() == 2
    assert everywhere[3, 3].tolist() == [True, True, True, False, False, True, True, True]


HOLE = '[[regions]]\nname = "hole"\nmaterial = "void"\nbox = { min = [0, 0, 0], max = [0.01, 0.01, 0.01] }\n'
HIDE = '\n[[regions]]\nname = "lid"\nmaterial = "void"\neverywhere = true\n'
REFUSED = {
    "outside": (
        f"{DIE}box = {{ min = [0.05, 0.0, 0.0], max = [0.06, 0.01, 0.01] }}",
        "regions.0.box",
        [
            '"die" reaches from (0.05, 0, 0) to (0.06, 0.01, 0.01) m',
            "outside the domain",
            "(0, 0, 0) to (0.04, 0.03, 0.02) m",
        ],
    ),
    "below": (
        f"{DIE}sphere = {{ centre = [0.0, 0.0, -1.0], radius = 0.5 }}",
        "regions.0.sphere",
        ["outside the domain"],
    ),
    "no cell": (
        f"{DIE}cylinder = {{ from = [0, 0, 0], to = [0.04, 0, 0], radius = 0.001 }}",
        "regions.0.cylinder",
        ["contains no centre of a cell", "cells of (0.005, 0.005, 0.005) m"],
    ),
    "source outside": (
        "[[sources]]\npower = 1.0\nbox = { min = [1, 1, 1], max = [2, 2, 2] }",
        "sources.0.box",
        ['"source 1"', "outside the domain"],
    ),
    "source painted over": (
        f'{DIE}everywhere = true{HIDE}[[regions]]\nname = "rest"\nmaterial = "copper"\n'
        'box = { min = [0, 0, 0], max = [0.01, 0.01, 0.01] }\n[[sources]]\nregion = "die"\npower = 1.0',
        "sources.0.region",
        ["no cell that conducts", "later regions cover all of it"],
    ),
    "all void": (f"{HIDE}[[sources]]\npower = 1.0", "sources.0", ["all its cells are void"]),
    "probe painted over": (
        f'{DIE}everywhere = true{HIDE}[[probes]]\nname = "a"\nregion = "die"\nstatistic = "mean"',
        "probes.0.region",
        ['got "die"', "no cell that conducts"],
    ),
    "probe in void": (
        f'{HOLE}[[probes]]\nname = "a"\npoint = [0.002, 0.002, 0.002]',
        "probes.0.point",
        ["got (0.002, 0.002, 0.002)", "lies in void"],
    ),
    "line into void": (
        f'{HOLE}[[probes]]\nname = "a"\nline = {{ from = [0.03, 0, 0], to = [0.0, 0, 0], count = 7 }}',
        "probes.0.line",
        ["got (0.005, 0, 0)", "lies in void"],
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_what_has_no_cells_is_refused(mistake):
    extra, key, fragments = REFUSED[mistake]
    ((at, message),) = mistakes_of(extra)
    assert at == key
    for fragment in fragments:
        assert fragment in message


def test_all_regions_without_cells_are_told_together():
    box = "box = { min = [1, 1, 1], max = [2, 2, 2] }"
    assert [key for key, _ in mistakes_of(f"{DIE}{box}{DIE.replace('die', 'chip')}{box}")] == [
        "regions.0.box",
        "regions.1.box",
    ]


class TestStl:
    """Closed surfaces."""

    def test_a_box_is_the_box(self, tmp_path):
        """Its faces lie between centres; its size in mm, moved."""
        path = write_stl(tmp_path / "part.stl", high=(100.0, 80.0, 60.0))
        stl = read_stl(path, scale=1e-3, translate=(0.02, 0.03, 0.08))
        box = Box(min=(0.02, 0.03, 0.08), max=(0.12, 0.11, 0.14))
        assert (shape_mask(stl, GRID) == shape_mask(box, GRID)).all()

    def test_it_may_reach_out_of_the_domain(self, tmp_path):
        stl = read_stl(write_stl(tmp_path / "part.stl", low=(-1.0, -1.0, -1.0), high=(1.0, 0.1, 1.0)))
        assert (shape_mask(stl, GRID) == (centres(GRID)[1] < 0.1)).all()

    def test_parts_that_touch_share_no_cell_where_their_faces_lie_on_centres(self, tmp_path):
        left = read_stl(write_stl(tmp_path / "a.stl", low=(0.0, 0.0, 0.0), high=(0.0625, 0.1, 0.2)))
        right = read_stl(write_stl(tmp_path / "b.stl", low=(0.0625, 0.0, 0.0), high=(0.2, 0.1, 0.2)))
        both = read_stl(write_stl(tmp_path / "c.stl", low=(0.0, 0.0, 0.0), high=(0.2, 0.1, 0.2)))
        grid = Grid((4, 3, 5), (0.5, 0.1, 0.2))  # the first centre lies at 0.0625
        masks = [shape_mask(stl, grid).astype(int) for stl in (left, right, both)]
        assert (masks[0] + masks[1] == masks[2]).all()
        assert masks[2].any()

    @pytest.mark.parametrize("cells", [(20, 24, 28), (28, 7, 31)])
    def test_a_sphere_of_triangles_is_a_sphere_to_within_their_size(self, cells, tmp_path):
        pyvista = pytest.importorskip("pyvista")
        pyvista.Sphere(radius=0.4, center=(0.5, 0.5, 0.5), theta_resolution=60, phi_resolution=60).save(
            tmp_path / "ball.stl"
        )
        grid = Grid(cells, (1.0, 1.0, 1.0))
        mask = shape_mask(read_stl(tmp_path / "ball.stl"), grid)
        x, y, z = centres(grid)
        distance = np.sqrt((x - 0.5) ** 2 + (y - 0.5) ** 2 + (z - 0.5) ** 2)
        sag = 0.4 * (1.0 - np.cos(np.pi / 59) ** 2)  # of a chord along and across
        assert mask[distance < 0.4 - sag].all()
        assert not mask[distance > 0.4].any()

    def test_corners_that_differ_by_rounding_are_one(self, tmp_path):
        exact = read_stl(write_stl(tmp_path / "a.stl", high=(0.1, 0.1, 0.1)))
        rough = read_stl(write_stl(tmp_path / "b.stl", high=(0.1, 0.1, 0.1), jitter=1e-9))
        assert (shape_mask(rough, GRID) == shape_mask(exact, GRID)).all()

    @pytest.mark.parametrize(("faces", "edges"), [(5, 4), (4, 8)])
    def test_an_open_surface_is_refused_with_its_open_edges(self, faces, edges, tmp_path):
        write_stl(tmp_path / "part.stl", high=(0.02, 0.02, 0.02), faces=faces)
        ((key, message),) = mistakes_of(f'{DIE}stl = "part.stl"', tmp_path)
        assert key == "regions.0.stl"
        assert f'"part.stl" is open: {edges} edges' in message

    @pytest.mark.parametrize("content", [b"", b"nonsense", b"\0" * 200, b"solid x\nendsolid x\n", b"\xff" * 500])
    def test_a_file_without_triangles_is_refused(self, content, tmp_path, capfd):
        (tmp_path / "part.stl").write_bytes(content)
        ((key, message),) = mistakes_of(f'{DIE}stl = "part.stl"', tmp_path)
        assert key == "regions.0.stl"
        assert "part.stl" in message
        assert capfd.readouterr().err == ""

    def test_a_part_in_other_units_is_outside_and_says_where(self, tmp_path):
        write_stl(tmp_path / "part.stl", low=(100.0, 100.0, 100.0), high=(200.0, 200.0, 200.0))
        ((key, message),) = mistakes_of(f'{DIE}stl = "part.stl"', tmp_path)
        assert key == "regions.0.stl"
        assert "reaches from (100, 100, 100) to (200, 200, 200) m and lies outside the domain" in message
        assert message.endswith(": if the file is in mm, write scale = 0.001")

    @pytest.mark.parametrize(("scale", "count"), [(1.0, 1), (0.001, 0)])
    def test_a_part_that_is_much_larger_than_the_domain_gets_a_hint(self, scale, count, tmp_path):
        write_stl(tmp_path / "part.stl", low=(-100.0, -100.0, -100.0), high=(200.0, 200.0, 200.0))
        found = scenario(f'{DIE}stl = {{ file = "part.stl", scale = {scale} }}', tmp_path)
        hints = file_hints(found)
        assert len(hints) == count
        for hint in hints:
            assert 'regions.0.stl: "die" is 300 × 300 × 300 m large' in hint
            assert hint.endswith(": if the file is in mm, write scale = 0.001")


@settings(max_examples=60)
@given(data=st.data())
def test_any_boxes_and_spheres_are_painted_or_refused(data):
    numbers = st.floats(-0.01, 0.05)
    lines = []
    for index in range(data.draw(st.integers(1, 4))):
        material = data.draw(st.sampled_from(["copper", "silicon", "void"]))
        if data.draw(st.booleans()):
            low = data.draw(st.tuples(numbers, numbers, numbers))
            high = [start + data.draw(st.floats(1e-6, 0.05)) for start in low]
            shape = f"box = {{ min = {list(low)}, max = {high} }}"
        else:
            centre, radius = data.draw(st.tuples(numbers, numbers, numbers)), data.draw(st.floats(1e-6, 0.05))
            shape = f"sphere = {{ centre = {list(centre)}, radius = {radius} }}"
        lines.append(f'[[regions]]\nname = "part {index}"\nmaterial = "{material}"\n{shape}\n')
    model = scenario("\n".join(lines))
    try:
        parts = paint(model)
    except ScenarioError as error:
        reasons = ("domain", "centre", "nothing conducts")
        assert all(any(reason in str(mistake) for reason in reasons) for mistake in error.mistakes)  # noqa: PT017
        return
    assert isinstance(parts, Parts)
    assert sum(parts.material_cells) == model.grid.cell_count
    names = [name for name, _ in model.palette]
    for index, region in enumerate(model.regions):
        owned = parts.owner == index + 1
        assert owned.sum() == parts.region_cells[index]
        assert (parts.material[owned] == names.index(region.material)).all()
    assert (parts.material[parts.owner == 0] == 0).all()
