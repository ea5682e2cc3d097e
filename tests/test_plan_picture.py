"""The picture of a scenario before it runs: what is in it, and that nothing is run or written beside it."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import runs
from matplotlib.figure import Figure
from PIL import Image

from heatsim.cli import main
from heatsim.commands.geometry import geometry_of
from heatsim.render.geometry import part_sections
from heatsim.render.geometry import picture as geometry
from heatsim.render.geometry.parts import sign_of
from heatsim.render.page.labels import PlacedLabels
from heatsim.render.page.material_colours import material_colour
from heatsim.render.spatial import solids
from heatsim.scenario import load

PARTS = """
title = "Chip on a board"
[domain]
size = [0.04, 0.03, 0.01]
cells = [8, 6, 5]
material = "board"
[materials.board]
conductivity = 1.0
density = 1000.0
specific_heat = 1000.0
[materials.silicon]
conductivity = 100.0
density = 2000.0
specific_heat = 700.0
[[regions]]
name = "chip"
material = "silicon"
box = { min = [0.01, 0.01, 0.006], max = [0.02, 0.02, 0.01] }
[[contacts]]
between = ["silicon", "board"]
resistance = 2e-5
[[layers]]
material = "silicon"
thickness = "35 um"
plane = { axis = "z", at = 0.006 }
[[sources]]
name = "losses"
region = "chip"
power = 5.0
[[sources]]
name = "laser"
beam = { face = "z_max", power = 3.0, radius = 1e-3, path = [[0.005, 0.005], [0.035, 0.005]], speed = 0.01 }
[initial]
temperature = "20 degC"
[boundaries]
z_min = { type = "convection", coefficient = 50.0, ambient = "20 degC" }
[[patches]]
name = "heater"
face = "x_max"
rectangle = { min = [0.0, 0.002], max = [0.015, 0.008] }
type = "flux"
value = 1e4
[time]
end = 1.0
[[probes]]
name = "centre"
point = [0.015, 0.015, 0.008]
[[probes]]
name = "across"
line = { from = [0.0, 0.015, 0.01], to = [0.04, 0.015, 0.01], count = 5 }
[[probes]]
name = "hottest"
region = "chip"
statistic = "max"
"""


def test_the_geometry_has_everything_that_has_a_place(tmp_path: Path) -> None:
    described = geometry_of(load(runs.write(tmp_path, PARTS)))
    chip = np.zeros((5, 6, 8), dtype=bool)
    chip[3:, 2:4, 2:4] = True
    assert described.materials == ["board", "silicon"]
    np.testing.assert_array_equal(described.labels == 1, chip)
    (losses,) = described.sources
    assert losses.text == "source losses: 5 W"
    np.testing.assert_array_equal(losses.cells, chip)
    (contact,) = described.contacts
    np.testing.assert_array_equal(contact.one, chip)
    np.testing.assert_array_equal(contact.other, ~chip)
    (patch,), (layer,) = described.patches, described.layers
    assert (patch.normal, patch.low, patch.high) == (0, (0.04, 0.0, 0.002), (0.04, 0.015, 0.008))
    assert patch.text == "patch heater on x_max: flux 10000 W/m²"
    assert (layer.normal, layer.low, layer.high) == (2, (0.0, 0.0, 0.006), (0.04, 0.03, 0.006))
    assert (layer.material, layer.text) == ("silicon", "layer 1 (silicon, 35 µm, z = 6 mm)")
    assert described.regions == ["chip (silicon)"]
    np.testing.assert_array_equal(described.owners == 1, chip)
    (beam,) = described.beams
    np.testing.assert_array_equal(beam.points, [[0.005, 0.005, 0.01], [0.035, 0.005, 0.01]])
    assert (beam.text, beam.normal) == ("beam laser: 3 W, 100 % absorbed, radius 1 mm, 10 mm/s", 2)
    np.testing.assert_allclose(np.linalg.norm(beam.spot - beam.points[0], axis=1), 1e-3)
    np.testing.assert_allclose(beam.crossings(0, 0.02), [[0.02, 0.005, 0.01]])
    assert beam.crossings(1, 0.01).shape == (0, 3)
    assert [probe.text for probe in described.probes] == ["centre", "across"]
    assert described.remarks == [
        "x_min, x_max, y_min, y_max, z_max: insulated.",
        "z_min: convection 50 W/(m² K) to 20 °C.",
        "Probes of regions: hottest (max of chip).",
    ]


@pytest.mark.quick("False")
@pytest.mark.parametrize("with_view", [False, True])
def test_sections_have_the_colours_of_materials_sources_and_contacts(tmp_path: Path, with_view: bool) -> None:
    if with_view:
        pytest.importorskip("pyvista", reason="PyVista is not installed")
    described = geometry_of(load(runs.write(tmp_path, PARTS)))
    geometry.draw(tmp_path / "parts.png", described, with_view)
    with Image.open(tmp_path / "parts.png") as picture:
        assert picture.width == 1600
        found = np.asarray(picture.convert("RGB")).reshape(-1, 3)
    colours = (material_colour(0), solids.SOURCE_COLOUR, part_sections.CONTACT_COLOUR, part_sections.BEAM_COLOUR)
    for colour in colours:
        wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
        assert (found == wanted).all(axis=1).sum() > 200, colour


def test_surfaces_have_their_cells_and_conditions(tmp_path: Path) -> None:
    air = '[[regions]]\nname = "a"\nmaterial = "void"\nbox = { min = [0.01, 0.02, 0.006], max = [0.02, 0.03, 0.01] }\n'
    surface = '[[surfaces]]\nof = "chip"\ntype = "convection"\ncoefficient = 7.0\nambient = 300.0\nemissivity = 0.9\n'
    described = geometry_of(load(runs.write(tmp_path, PARTS + air + surface)))
    (shown,) = described.surfaces
    assert shown.text == "surface of chip: convection 7 W/(m² K) to 26.85 °C, emissivity 0.9"
    assert (shown.one.sum(), shown.other.sum()) == (8, 8)


def test_letters_of_regions_lie_inside_them_and_labels_apart() -> None:
    figure = Figure(figsize=(4.0, 3.0), dpi=254)
    axes = figure.add_axes((0.1, 0.1, 0.8, 0.8), xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    labels = PlacedLabels(axes)
    for number in range(6):
        labels.add_point((0.5, 0.5 + 1e-3 * number), str(number))
    labels.add_area(np.array([[0.5, 0.5], [0.52, 0.5], [0.9, 0.9]]), "A")
    boxes = [text.get_window_extent() for text in axes.texts]
    assert [text.get_text() for text in axes.texts] == [*"012345", "A"]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert axes.texts[-1].get_position() == pytest.approx((0.9, 0.9))
    inside = axes.get_window_extent()
    assert all(box.x0 >= inside.x0 and box.x1 <= inside.x1 and box.y1 <= inside.y1 for box in boxes)


def test_regions_are_lettered() -> None:
    assert [sign_of(number) for number in (0, 25, 26, 27, 51, 52, 701, 702)] == [
        "A",
        "Z",
        "AA",
        "AB",
        "AZ",
        "BA",
        "ZZ",
        "AAA",
    ]


@pytest.mark.parametrize("cells", ["[8, 6, 1]", "[8, 1, 1]"])
def test_flat_grids_are_drawn_without_opengl(tmp_path: Path, cells: str) -> None:
    text = runs.TEXT.replace("[7, 5, 6]", cells)
    scenario = runs.write(tmp_path, text)
    assert main(["plan", str(scenario), "--picture", str(tmp_path / "flat.svg")]) == 0
    assert b"<svg" in (tmp_path / "flat.svg").read_bytes()


def test_plan_draws_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    scenario = runs.write(tmp_path, PARTS)
    before = set(tmp_path.iterdir())
    assert main(["plan", str(scenario), "--picture", str(tmp_path / "parts.pdf")]) == 0
    assert "parts.pdf" in capsys.readouterr().out
    assert set(tmp_path.iterdir()) - before == {tmp_path / "parts.pdf"}
    assert main(["plan", str(scenario), "--picture", str(tmp_path / "parts.bmp")]) == 2
    assert "the name must end in .png or .pdf or .svg; nothing was written" in capsys.readouterr().err
    assert main(["plan", str(scenario), "--picture", str(tmp_path / "nowhere" / "parts.png")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_a_material_around_all_others_is_translucent() -> None:
    labels = np.zeros((4, 4, 4), dtype=np.uint8)
    labels[1:3, 1:3, 1:3] = 1
    assert solids.surrounding(labels, [0, 1]) == 0
    labels[:, :, 3] = 2
    labels[0] = 3
    # No box holds all others.
    assert solids.surrounding(labels, [1, 2, 3]) is None
    assert solids.surrounding(labels, [1]) is None


def test_contacts_have_rectangles_in_space(tmp_path: Path) -> None:
    """The faces between the chip and the board, one rectangle for each of its five sides in the board."""
    described = geometry_of(load(runs.write(tmp_path, PARTS)))
    (contact,) = described.contacts
    found = {(one.normal, one.low, one.high) for one in contact.rectangles(described.grid)}
    rounded = {(normal, *(tuple(round(1e3 * value) for value in corner) for corner in ends)) for normal, *ends in found}
    assert rounded == {
        (0, (10, 10, 6), (10, 20, 10)),
        (0, (20, 10, 6), (20, 20, 10)),
        (1, (10, 10, 6), (20, 10, 10)),
        (1, (10, 20, 6), (20, 20, 10)),
        (2, (10, 10, 6), (20, 20, 6)),
    }


def test_the_letter_of_a_board_in_space_stands_away_from_its_parts(tmp_path: Path) -> None:
    """Most of the free board lies to the right of the chip, which hides the middle of the board."""
    text = PARTS.replace("cells = [8, 6, 5]", "cells = [16, 12, 5]").partition("[[probes]]")[0]
    text = text.replace('material = "board"', 'material = "void"', 1).replace("[0.015, 0.008]", "[0.015, 0.006]")
    board = '[[regions]]\nname = "board"\nmaterial = "board"\nbox = { min = [0, 0, 0], max = [0.04, 0.03, 0.006] }\n'
    text = text.replace("[[regions]]", f"{board}[[regions]]", 1)
    described = geometry_of(load(runs.write(tmp_path, text)))
    places = dict(geometry._seen_from_above(described))
    x, y, z = places[0]
    assert z == pytest.approx(0.006)
    assert x > 0.025
    assert 0.005 < y < 0.025
