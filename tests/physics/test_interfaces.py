"""Probes near an interface follow the resistances on the way, and lie on the side that owns the point."""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from covering import pairwise
from exact import held
from painted import write_turned_box

from heatsim import Simulation
from heatsim.storage import folder

FRACTIONS = (0.0, 0.11, 0.26, 0.45, 0.4999, 0.5001, 0.57, 0.74, 0.91, 1.0)
SIZE = (0.3, 0.2, 0.4)
INTERFACE = 0.5  # of the size along the axis


def bodies(axis: int, k: tuple[float, float], contact: float, cells: int, initial: str, faces: str) -> str:
    """Two materials that meet in the middle of an axis; the second is a region, the first what is there before."""
    numbers = [3, 4, 2]
    numbers[axis] = cells
    low = [0.0, 0.0, 0.0]
    low[axis] = INTERFACE * SIZE[axis]
    text = f"""
domain = {{ size = {list(SIZE)}, cells = {numbers}, material = "one" }}
initial = {{ temperature = "{initial}" }}
time = {{ end = 1e-6 }}
solver = {{ device = "cpu", precision = "float64" }}
output = {{ figures = false, fields = false }}
[materials.one]
conductivity = {k[0]}
density = 1000.0
specific_heat = 1000.0
[materials.two]
conductivity = {k[1]}
density = 1000.0
specific_heat = 1000.0
[[regions]]
name = "two"
material = "two"
box = {{ min = {low}, max = {list(SIZE)} }}
[boundaries]
{faces}
"""
    if contact:
        text += f'[[contacts]]\nbetween = ["one", "two"]\nresistance = {contact}\n'
    return text


def first_row(tmp_path: Path, text: str, points: list[tuple[float, ...]]) -> list[float]:
    """What probes say of the start."""
    text += "".join(f'[[probes]]\nname = "{number}"\npoint = {list(point)!r}\n' for number, point in enumerate(points))
    path = tmp_path / "case.toml"
    path.write_text(text, encoding="utf-8")
    Simulation.from_scenario(path, output=tmp_path / "run", overwrite=True).run()
    return np.loadtxt(tmp_path / "run" / folder.PROBES, delimiter=",", skiprows=1, ndmin=2)[0, 1:].tolist()


@pytest.mark.parametrize(
    ("cells", "contact", "k", "axis"),
    pairwise((4, 18), (0.0, 0.02), [(1.0, 100.0), (100.0, 1.0), (7.0, 7.0)], range(3)),
)
def test_the_steady_field_of_two_layers_is_exact(
    tmp_path: Path, axis: int, k: tuple[float, float], contact: float, cells: int
) -> None:
    """Series resistances: T = 300 + 100·r(x)/r(L), everywhere, with the contact's jump at the interface."""
    length, at = SIZE[axis], "xyz"[axis]
    middle = INTERFACE * length
    whole = middle / k[0] + contact + (length - middle) / k[1]
    q = 100.0 / whole
    initial = f"where({at} < {middle!r}, 300 + {q / k[0]!r}*{at}, 400 - {q / k[1]!r}*({length!r} - {at}))"
    names = [f"{at}_min = {held(300.0)}", f"{at}_max = {held(400.0)}"]
    points = []
    for fraction in FRACTIONS:
        point = [0.4 * size for size in SIZE]
        point[axis] = fraction * length
        points.append(tuple(point))
    found = first_row(tmp_path, bodies(axis, k, contact, cells, initial, "\n".join(names)), points)
    for value, fraction in zip(found, FRACTIONS, strict=True):
        x = fraction * length
        exact = 300.0 + q * x / k[0] if fraction < INTERFACE else 400.0 - q * (length - x) / k[1]
        assert value == pytest.approx(exact, abs=1e-12 * 100.0 + 1e-13 * 400.0), fraction


@pytest.mark.parametrize("axis", range(3))
def test_on_a_contact_a_point_belongs_to_the_region_that_was_painted_last(tmp_path: Path, axis: int) -> None:
    """The regions touch; each holds the points of its surface. Painted in the other order the point changes sides."""
    q, contact, k = 1000.0, 0.02, (2.0, 50.0)
    middle, at = INTERFACE * SIZE[axis], "xyz"[axis]
    initial = f"where({at} < {middle!r}, 300 + {q / k[0]!r}*({at} - {middle!r}), "
    initial += f"300 + {q * contact!r} + {q / k[1]!r}*({at} - {middle!r}))"
    point = [0.4 * size for size in SIZE]
    point[axis] = middle
    text = bodies(axis, k, contact, 6, initial, "")
    assert first_row(tmp_path, text, [tuple(point)]) == pytest.approx([300.0 + q * contact], abs=1e-10)
    end = list(SIZE)
    end[axis] = middle
    first = f'[[regions]]\nname = "one"\nmaterial = "one"\nbox = {{ min = [0.0, 0.0, 0.0], max = {end} }}\n'
    text = text.replace("[boundaries]", first + "[boundaries]")
    assert first_row(tmp_path, text, [tuple(point)]) == pytest.approx([300.0], abs=1e-10)


def test_a_point_on_a_staircase_belongs_to_the_region_whose_shape_holds_it(tmp_path: Path) -> None:
    """Cells of 0.1; the box ends at 0.56 and owns the cell up to 0.6, the point there lies in the base."""
    text = """
domain = { size = [1.0, 1.0, 1.0], cells = [10, 1, 1], material = "base" }
initial = { temperature = "where(x < 0.6, 300, 400)" }
time = { end = 1e-6 }
solver = { device = "cpu", precision = "float64" }
output = { figures = false, fields = false }
[materials.base]
conductivity = 5.0
density = 1000.0
specific_heat = 1000.0
[materials.other]
conductivity = 5.0
density = 1000.0
specific_heat = 1000.0
[[regions]]
name = "part"
material = "other"
SHAPE
[[contacts]]
between = ["base", "other"]
resistance = 1.0
"""
    box = "box = { min = [0.0, 0.0, 0.0], max = [0.56, 1.0, 1.0] }"
    ball = "cylinder = { from = [0.0, 0.5, 0.5], to = [0.56, 0.5, 0.5], radius = 2.0 }"
    longer = "cylinder = { from = [0.0, 0.5, 0.5], to = [0.6, 0.5, 0.5], radius = 2.0 }"
    jump = 100.0 * 1.0 / (1.0 + 0.1 / 5.0)  # across the contact; half of the rest lies in each half cell
    rest = (100.0 - jump) / 2.0
    for shape, exact in ((box, 400.0 - rest), (ball, 400.0 - rest), (longer, 300.0 + rest)):
        (value,) = first_row(tmp_path, text.replace("SHAPE", shape), [(0.6, 0.5, 0.5)])
        assert value == pytest.approx(exact, abs=1e-9)


def test_a_gradient_along_the_interface_is_exact_beside_the_jump_across_it(tmp_path: Path) -> None:
    """T = f(x) + 80·y + 30·z on both sides; at the corner cells too, where x, y and z are all between centres."""
    k, q = (1.0, 100.0), 60.0
    middle = INTERFACE * SIZE[0]
    initial = f"400 + where(x < {middle!r}, {q / k[0]!r}, {q / k[1]!r})*(x - {middle!r}) + 80*y + 30*z"
    points = [(x, y, z) for x in (0.11, 0.14, 0.1501, 0.19) for y in (0.06, 0.1, 0.13) for z in (0.13, 0.2, 0.28)]
    found = first_row(tmp_path, bodies(0, k, 0.0, 6, initial, ""), points)
    for value, (x, y, z) in zip(found, points, strict=True):
        exact = 400.0 + q / (k[0] if x < middle else k[1]) * (x - middle) + 80.0 * y + 30.0 * z
        assert value == pytest.approx(exact, abs=1e-10)


def test_beside_a_material_that_changes_half_cells_conduct_as_at_their_centres(tmp_path: Path) -> None:
    """k = 1 + 0.01·(T − 300) up to the interface, 100 behind it."""
    text = bodies(0, (1.0, 100.0), 0.0, 4, "where(x < 0.15, 300 + 800*x, 420 + 3*x)", "")
    text = text.replace(
        "conductivity = 1.0", "conductivity = { temperatures = [200.0, 600.0], values = [0.0001, 4.0] }"
    )
    d, T_one, T_two = 0.3 / 4.0, 300.0 + 800.0 * 0.1125, 420.0 + 3.0 * 0.1875
    slope = (4.0 - 0.0001) / 400.0
    own, other = d / 2.0 / (0.0001 + slope * (T_one - 200.0)), d / 2.0 / 100.0
    (interface, near) = first_row(tmp_path, text, [(0.15, 0.1, 0.2), (0.13, 0.1, 0.2)])
    assert interface == pytest.approx(T_one + (T_two - T_one) * own / (own + other), rel=1e-5)
    assert near == pytest.approx(T_one + (T_two - T_one) * (0.13 - 0.1125) / (d / 2.0) * own / (own + other), rel=1e-5)


def test_a_line_goes_through_an_interface_as_points_do(tmp_path: Path) -> None:
    initial = "where(x < 0.15, 300 + 600*x, 389.1 + 6*x)"
    text = bodies(0, (1.0, 100.0), 0.0, 6, initial, "")
    text += '[[probes]]\nname = "line"\nline = { from = [0.0, 0.1, 0.2], to = [0.3, 0.1, 0.2], count = 13 }\n'
    points = [(0.3 * i / 12.0, 0.1, 0.2) for i in range(13)]
    found = first_row(tmp_path, text, points)
    assert found[:13] == found[13:]
    inner = [(x, value) for (x, _, _), value in zip(points, found[:13], strict=True) if 0.025 <= x <= 0.275]
    for x, value in inner:
        assert value == pytest.approx(300.0 + 600.0 * x if x < 0.15 else 389.1 + 6.0 * x, abs=1e-10)


@pytest.mark.parametrize("cells", [16, 32])
def test_beside_a_sloping_contact_the_jump_has_its_size(tmp_path: Path, cells: int) -> None:
    """A plate at 30°, heat flows normal to it; across a face of its staircase T jumps by R·q as across the plane."""
    write_turned_box(tmp_path / "part.stl", (6.0, 6.0, 0.25), (30.0, 0.0))
    slope, jump, d = (-0.5, sqrt(0.75)), 0.7, 1.0 / cells
    along = f"({slope[0]!r}*(y - 0.5) + {slope[1]!r}*(z - 0.5))"
    field = f"400 - {along} - {jump}*where({along} > -0.125, 1, 0) - {jump}*where({along} > 0.125, 1, 0)"
    text = bodies(0, (1.0, 1.0), jump, 3, field, "").replace(
        f"{list(SIZE)}, cells = [3, 4, 2]", "[1, 1, 1], cells = CELLS"
    )
    text = text.replace("CELLS", f"[3, {cells}, {cells}]")
    start = text.index("box = ")
    text = text[:start] + 'stl = "part.stl"' + text[text.index("\n", start) :]

    def plates_below(y: float, z: float) -> int:
        height = slope[0] * (y - 0.5) + slope[1] * (z - 0.5)
        return (height > -0.125) + (height > 0.125)

    centres = (np.arange(cells) + 0.5) * d
    points, expected = [], []
    for y in centres[cells // 2 - 3 : cells // 2 + 3].tolist():
        for z in centres[:-1].tolist():
            below, above = plates_below(y, z), plates_below(y, z + d)
            if below != above:
                for share, plates in ((0.25, below), (0.75, above)):
                    points.append((0.5, y, z + share * d))
                    expected.append(400.0 - slope[0] * (y - 0.5) - slope[1] * (z + share * d - 0.5) - jump * plates)
    assert len(points) == 24
    np.testing.assert_allclose(first_row(tmp_path, text, points), expected, rtol=0.0, atol=1e-5)
