"""Probes between cell centres, on faces, edges and corners: linear fields come out as they went in."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from exact import INSULATED, PERIODIC, convection, flux, held, scenario
from hypothesis import given, settings
from hypothesis import strategies as st

from heatsim.grid import FACES
from heatsim.run.simulation import Simulation
from heatsim.storage import folder

SIZE = (1.0, 2.0, 3.0)
K = 5.0
GRADIENT = (40.0, -30.0, 20.0)
FRACTIONS = (0.0, 0.04, 0.3, 0.5, 0.77, 0.97, 1.0)


def probe(
    tmp_path: Path,
    boundaries: str,
    initial: float | str,
    points: list[tuple[float, float, float]],
    cells: tuple[int, int, int] = (4, 5, 3),
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> list[float]:
    """What probes say of the start."""
    text = scenario(SIZE, cells, initial=initial, end=1e-6, boundaries=boundaries, k=K, probes=points)
    text = text.replace(f"cells = {list(cells)!r}", f"cells = {list(cells)!r}, origin = {list(origin)!r}")
    path = tmp_path / "case.toml"
    path.write_text(text, encoding="utf-8")
    Simulation.from_scenario(path, output=tmp_path / "run", overwrite=True).run()
    rows = np.loadtxt(tmp_path / "run" / folder.PROBES, delimiter=",", skiprows=1)
    assert rows[0, 0] == 0.0
    return rows[0, 1:].tolist()


def grid_of_points(axes: tuple[int, ...] = (0, 1, 2)) -> list[tuple[float, float, float]]:
    chosen = [tuple(f * SIZE[axis] for f in FRACTIONS) if axis in axes else (0.4 * SIZE[axis],) for axis in range(3)]
    return [(x, y, z) for x, y, z in product(*chosen)]


def linear_in(axis: int) -> tuple[float, float]:
    """The temperature at the two ends of an axis along which the gradient lies."""
    return 400.0, 400.0 + GRADIENT[axis] * SIZE[axis]


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["held", "flux", "convection"])
@pytest.mark.parametrize("axis", range(3))
def test_a_linear_field_is_reproduced_up_to_its_faces(tmp_path: Path, axis: int, kind: str) -> None:
    """Conditions that agree with the field: the value, the flux k·grad, or the ambient that drives it."""
    low, high = linear_in(axis)
    into_low, into_high = -K * GRADIENT[axis], K * GRADIENT[axis]
    h = 25.0
    pair = {
        "held": (held(low), held(high)),
        "flux": (flux(into_low), flux(into_high)),
        "convection": (convection(h, low + into_low / h), convection(h, high + into_high / h)),
    }[kind]
    boundaries = f"{FACES[2 * axis]} = {pair[0]}\n{FACES[2 * axis + 1]} = {pair[1]}"
    points = grid_of_points()
    values = probe(tmp_path, boundaries, f"400 + {GRADIENT[axis]!r}*{'xyz'[axis]}", points)
    expected = [400.0 + GRADIENT[axis] * point[axis] for point in points]
    np.testing.assert_allclose(values, expected, rtol=1e-13)


def test_a_field_linear_along_all_axes_is_reproduced_in_corners(tmp_path: Path) -> None:
    boundaries = "\n".join(
        f"{FACES[2 * axis + side]} = {flux((-K, K)[side] * GRADIENT[axis])}" for axis in range(3) for side in (0, 1)
    )
    points = grid_of_points()
    values = probe(tmp_path, boundaries, "500 + 40*x - 30*y + 20*z", points)
    np.testing.assert_allclose(values, [500.0 + np.dot(GRADIENT, point) for point in points], rtol=1e-13)


def test_an_origin_moves_the_points_with_the_box(tmp_path: Path) -> None:
    origin = (-3.0, 10.0, 0.125)
    boundaries = "\n".join(
        f"{FACES[2 * axis + side]} = {flux((-K, K)[side] * GRADIENT[axis])}" for axis in range(3) for side in (0, 1)
    )
    points = [tuple(o + p for o, p in zip(origin, point, strict=True)) for point in grid_of_points()]
    values = probe(tmp_path, boundaries, "900 + 40*x - 30*y + 20*z", points, origin=origin)
    np.testing.assert_allclose(values, [900.0 + np.dot(GRADIENT, point) for point in points], rtol=1e-13)


def test_an_insulated_surface_has_its_cells_temperature(tmp_path: Path) -> None:
    values = probe(tmp_path, "", "400 + 40*x", [(0.0, 1.0, 1.0), (0.125, 1.0, 1.0), (1.0, 1.0, 1.0), (1.0, 2.0, 3.0)])
    np.testing.assert_allclose(values, [405.0, 405.0, 435.0, 435.0], rtol=1e-14)


@pytest.mark.parametrize(("held_axis", "heated_axis"), [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)])
def test_an_edge_has_the_temperature_that_its_face_holds(tmp_path: Path, held_axis: int, heated_axis: int) -> None:
    """A held face at 300 K and a heated one, half a cell of which adds 20 K to the 350 K of the cells."""
    cells = (4, 5, 3)
    half = SIZE[heated_axis] / cells[heated_axis] / 2.0
    boundaries = f"{FACES[2 * held_axis]} = {held(300.0)}\n{FACES[2 * heated_axis]} = {flux(20.0 * K / half)}"
    centre = [0.5 * size / n for size, n in zip(SIZE, cells, strict=True)]
    parts = (0.0, 0.25, 1.0)  # of the half cells before both faces
    points = []
    for of_held, of_heated in product(parts, parts):
        point = list(centre)
        point[held_axis] *= of_held
        point[heated_axis] *= of_heated
        points.append((point[0], point[1], point[2]))
    expected = [300.0 + a * (50.0 + (1.0 - b) * 20.0) for a, b in product(parts, parts)]
    np.testing.assert_allclose(probe(tmp_path, boundaries, 350.0, points, cells), expected, rtol=1e-13)


def test_one_cell_between_two_surfaces(tmp_path: Path) -> None:
    """Straight from one surface to the centre and on to the other."""
    boundaries = f"z_min = {held(300.0)}\nz_max = {held(500.0)}"
    points = [(0.5, 1.0, z) for z in (0.0, 0.75, 1.5, 2.25, 3.0)]
    values = probe(tmp_path, boundaries, 450.0, points, cells=(4, 5, 1))
    np.testing.assert_allclose(values, [300.0, 375.0, 450.0, 475.0, 500.0], rtol=1e-14)


def test_across_a_periodic_seam_it_goes_on_to_the_other_end(tmp_path: Path) -> None:
    boundaries = f"x_min = {PERIODIC}\nx_max = {PERIODIC}"
    points = [(x, 1.0, 1.0) for x in (0.0, 0.0625, 0.125, 0.9375, 1.0)]
    values = probe(tmp_path, boundaries, "400 + 80*x", points)
    # centres at 1/8 (410 K) and 7/8 (470 K), a quarter of the length apart over the seam
    np.testing.assert_allclose(values, [440.0, 425.0, 410.0, 455.0, 440.0], rtol=1e-14)
    alone = probe(tmp_path, boundaries, 333.0, points, cells=(1, 5, 3))
    assert alone == [333.0] * 5


@settings(max_examples=25)
@given(point=st.tuples(*[st.floats(0.0, 1.0)] * 3), cells=st.tuples(*[st.integers(1, 6)] * 3))
def test_no_probe_leaves_the_range_of_cells_and_surfaces(
    tmp_path_factory: pytest.TempPathFactory, point: tuple[float, float, float], cells: tuple[int, int, int]
) -> None:
    boundaries = f"x_min = {held(300.0)}\ny_max = {convection(3.0, 350.0)}\nz_min = {INSULATED}"
    place = tuple(f * length for f, length in zip(point, SIZE, strict=True))
    (value,) = probe(tmp_path_factory.mktemp("probe"), boundaries, "400 + 80*x*y", [place], cells)
    assert 300.0 - 1e-9 <= value <= 560.0 + 1e-9
