"""Extremes of a surface at its edges and corners: second order, within temperatures around; staircases have none."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import runs
import scipy.sparse
import scipy.sparse.linalg

from heatsim import Simulation
from heatsim.observers.edges.surface_edges import SurfaceEdges
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.surface_cells import SurfaceCells
from heatsim.scenario import load
from heatsim.storage import run_tables

AMBIENT, FILM, CONDUCTIVITY = 280.0, 20.0, 2.0
KAPPA = FILM / CONDUCTIVITY  # 1/m; |∂T/∂n| = KAPPA·|T_s − T∞|
BODY = f"""
domain = {{ size = [0.2, 0.2, 0.2], cells = [CELLS, CELLS, CELLS], material = "stone" }}
materials.stone = {{ conductivity = {CONDUCTIVITY}, density = 1000.0, specific_heat = 1000.0 }}
materials.tile = {{ conductivity = {CONDUCTIVITY}, density = 1000.0, specific_heat = 1000.0 }}
initial.temperature = 300.0
boundaries.default = {{ type = "convection", coefficient = {FILM}, ambient = {AMBIENT} }}
time = {{ end = 1.0, method = "euler" }}
solver = {{ device = "cpu", precision = "float64" }}
"""
COOLED = f'boundaries.void = {{ type = "convection", coefficient = {FILM}, ambient = {AMBIENT} }}\n'
ROOM_IN_BODY = """
regions = [{ name = "room", material = "void", box = { min = [0.1, 0.1, 0.1], max = [0.2, 0.2, 0.2] } }]
"""
Field = Callable[..., np.ndarray]


def problem_of(tmp_path: Path, text: str, cells: int = 8) -> HeatProblem:
    return HeatProblem.from_scenario(load(runs.write(tmp_path, text.replace("CELLS", str(cells)))))


def at_edges(
    problem: HeatProblem, surface: str, field: Field, region: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The points of the edges in m, shape (points, 3), and their temperatures in K, if cells have those of a field."""
    edges = SurfaceEdges(problem, SurfaceCells(problem, surface, region), region)
    centres = [problem.grid.centres(axis)[of_axis] for axis, of_axis in enumerate(edges.own_places)]
    return edges.points, edges.mean(edges.of(field(*centres), 0))


def cosines(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """A field in a cube of 0.2 m with k·∂T/∂n = h·(T∞ − T) on all faces: a·tan(0.1·a) = h/k with a = 8.6033/m."""
    a = 8.603335890193797
    return AMBIENT + 100.0 * np.prod([np.cos(a * (of_axis - 0.1)) for of_axis in (x, y, z)], axis=0)


def test_edges_and_corners_of_a_box_have_second_order(tmp_path: Path) -> None:
    """Half the cell has a quarter of the error; only the edges of the face are looked at, not its middle."""
    errors = []
    for cells in (8, 16, 32):
        points, found = at_edges(problem_of(tmp_path, BODY, cells), "z_max", cosines)
        assert len(points) == 4 * cells  # each once
        assert (np.isclose(points % 0.2, 0.0) | np.isclose(points % 0.2, 0.2)).sum(axis=1).min() == 2
        errors.append(abs(found - cosines(*points.T)).max())
    assert errors[1] < errors[0] / 3.5
    assert errors[2] < errors[1] / 3.5
    assert errors[2] < 1e-3 * 100.0  # of 100 K


def test_inner_edges_and_corners_are_exact_for_products_of_linear_fields(tmp_path: Path) -> None:
    """Film conditions hold on all three planes of the room: T = T∞ + 100·Π (1 − κ·(x − 0.1)), in any direction."""

    def linear(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return AMBIENT + 100.0 * np.prod([1.0 - KAPPA * (of_axis - 0.1) for of_axis in (x, y, z)], axis=0)

    points, found = at_edges(problem_of(tmp_path, BODY + COOLED + ROOM_IN_BODY, 16), "void", linear)
    inner = (points < 0.199).all(axis=1)  # the others lie on faces of the box, where another film acts
    assert inner.sum() == 3 * 7 + 1
    # The product has one more term at the corner, of third order: κ³·(d/2)³ of 100 K.
    assert found[inner] == pytest.approx(linear(*points[inner].T), abs=100.0 * (KAPPA * 0.00625) ** 3)
    edges = inner & (np.isclose(points, 0.1).sum(axis=1) == 2)
    assert found[edges] == pytest.approx(linear(*points[edges].T), abs=0.02)


ROOM = """
domain = {{ size = [0.3, 0.3, {depth}], cells = [{n}, {n}, {nz}], material = "wool" }}
materials.wool = {{ conductivity = 0.04, density = 50.0, specific_heat = 1000.0 }}
materials.brick = {{ conductivity = 0.6, density = 1500.0, specific_heat = 1000.0 }}
regions = [{{ name = "brick", material = "brick", box = {{ min = [0.05, 0.05, {low}], max = [0.3, 0.3, {depth}] }} }},
           {{ name = "room", material = "void", box = {{ min = [0.15, 0.15, {high}], max = [0.3, 0.3, {depth}] }} }}]
initial.temperature = 285.0
boundaries.x_min = {{ type = "convection", coefficient = 25.0, ambient = 268.15 }}
boundaries.y_min = {{ type = "convection", coefficient = 25.0, ambient = 268.15 }}
boundaries.z_min = {{ {below} }}
boundaries.void = {{ type = "convection", coefficient = 7.7, ambient = 293.15 }}
time.method = "steady"
solver = {{ device = "cpu", precision = "float64" }}
output = {{ figures = false, fields = false }}
probes = [{{ name = "coldest", surface = "void", statistic = "min" }}]
"""


def coldest(tmp_path: Path, n: int, corner: bool) -> float:
    """The coldest temperature in K of the surface of a room, which lies at its edge or corner."""
    flat = {"depth": 0.1, "nz": 1, "low": 0, "high": 0, "below": 'type = "insulated"'}
    cold = 'type = "convection", coefficient = 25.0, ambient = 268.15'
    solid = {"depth": 0.3, "nz": n, "low": 0.05, "high": 0.15, "below": cold}
    folder = tmp_path / str(n)
    text = ROOM.format(n=n, **(solid if corner else flat))
    Simulation.from_scenario(runs.write(tmp_path, text), output=folder).run()
    table = run_tables.read_probes(folder)
    assert table is not None
    place = json.loads((folder / "summary.json").read_text())["probe_extremes"]["coldest"]
    assert place["point"] == pytest.approx([0.15, 0.15, 0.15 if corner else 0.0])
    assert place["region"] == "brick"
    return float(table.columns["coldest", "K"][-1])


@pytest.mark.parametrize(("corner", "cells"), [(False, (30, 60, 120)), (True, (18, 36, 72))])
def test_the_coldest_place_of_a_room_is_its_edge_or_corner(
    corner: bool, cells: tuple[int, int, int], tmp_path: Path
) -> None:
    """An insulated wall of brick with cells of 10 and 5 mm, or 17 and 8 mm; the middles of faces are 0.3 K off."""
    coarse, fine, finest = (coldest(tmp_path, n, corner) for n in cells)
    assert abs(coarse - finest) < 0.02
    assert abs(fine - finest) < 0.01


WALL = """
domain = {{ size = [{size}, {size}, {depth}], cells = [{n}, {n}, {nz}], material = "layer0" }}
{materials}
regions = [{regions}]
initial.temperature = 285.0
boundaries.x_min = {{ type = "convection", coefficient = 25.0, ambient = 268.15 }}
boundaries.y_min = {{ type = "convection", coefficient = {film}, ambient = {other} }}
{below}
boundaries.void = {{ type = "convection", coefficient = {h}, ambient = 288.15 }}
time = {{ method = "steady", tolerance = "1e-5 K" }}
solver = {{ device = "cpu", precision = "float64" }}
output = {{ figures = false, fields = false }}
probes = [{{ name = "edge", surface = "void", statistic = "min" }}]
"""
BELOW = 'boundaries.z_min = { type = "convection", coefficient = 25.0, ambient = 268.15 }'
Layers = tuple[tuple[float, int], ...]  # conductivity and thickness in mm, from outside


def inner_edge(
    layers: Layers, h: float, n: int, folder: Path, other: float = 268.15, size: float = 0.3, corner: bool = False
) -> float:
    """The coldest temperature in K of the room behind a wall, in a run with n cells along x and y."""
    starts = np.cumsum([0, *(thickness for _, thickness in layers)]) / 1000.0
    materials = [
        f"materials.layer{i} = {{ conductivity = {k!r}, density = 50.0, specific_heat = 1000.0 }}"
        for i, (k, _) in enumerate(layers)
    ]
    names = [*(f"layer{i}" for i in range(1, len(layers))), "void"]
    regions = [
        f'{{ name = "part of {name}", material = "{name}", box = {{ min = [{low!r}, {low!r}, {low if corner else 0}], '
        f"max = [{size}, {size}, {size if corner else 0.1}] }} }}"
        for name, low in zip(names, starts[1:].tolist(), strict=True)
    ]
    text = WALL.format(
        materials="\n".join(materials),
        regions=", ".join(regions),
        size=size,
        n=n,
        depth=size if corner else 0.1,
        nz=n if corner else 1,
        h=h,
        film=25.0 if corner else 5.0,
        other=other,
        below=BELOW if corner else "",
    )
    folder = folder / str(n)
    Simulation.from_scenario(runs.write(folder.parent, text), output=folder).run()
    table = run_tables.read_probes(folder)
    assert table is not None
    return float(table.columns["edge", "K"][-1])


def own_edge(layers: Layers, h: float, other: float = 268.15) -> float:
    """The temperature in K of the inner edge of that wall: own computation with cells of 1 µm at the edge."""
    borders = np.cumsum([0, *(thickness for _, thickness in layers)]) / 1000.0
    edge = float(borders[-1])
    steps = np.minimum(1e-6 * 1.2 ** np.arange(90), 0.006)
    steps = steps[: np.searchsorted(np.cumsum(steps), 0.3)]
    nodes = np.concatenate([at + side * np.cumsum(steps) for at in borders[1:] for side in (-1, 1)])
    nearest = np.abs(nodes[:, None] - borders).argmin(axis=1) == np.repeat(np.arange(1, len(borders)), 2 * len(steps))
    nodes = np.unique(np.concatenate((nodes[nearest & (nodes > 0.0) & (nodes < 0.3)], borders, [0.3])))
    width, middle = np.diff(nodes), 0.5 * (nodes[1:] + nodes[:-1])
    layer = np.searchsorted(borders, np.minimum(middle[:, None], middle)) - 1
    conductivity, room = np.array([*(k for k, _ in layers), 1.0])[layer], layer == len(layers)
    n = len(middle)
    number = np.arange(n * n).reshape(n, n)
    diagonal, gains = room.reshape(-1).astype(float), np.zeros(n * n)
    places = list[tuple[np.ndarray, np.ndarray, np.ndarray]]()
    for film, ambient, turn in ((25.0, 268.15, lambda a: a), (5.0, other, np.transpose)):
        cells, void, half = turn(number), turn(room), width[:, None] / (2.0 * turn(conductivity))
        link = width / (half[1:] + half[:-1]) * ~(void[1:] | void[:-1])
        to_room = width / (half[:-1] + 1.0 / h) * (void[1:] & ~void[:-1])
        outside = width / (half[0] + 1.0 / film)
        for at, conductance, temperature in (
            (cells[1:], link, None),
            (cells[:-1], link, None),
            (cells[:-1], to_room, 288.15),
            (cells[0], outside, ambient),
        ):
            np.add.at(diagonal, at.reshape(-1), conductance.reshape(-1))
            if temperature is not None:
                np.add.at(gains, at.reshape(-1), (conductance * temperature).reshape(-1))
        places += [(cells[1:], cells[:-1], link), (cells[:-1], cells[1:], link)]
    rows, columns, links = (np.concatenate([each[part].reshape(-1) for each in places]) for part in range(3))
    matrix = scipy.sparse.csc_matrix((-links, (rows, columns)), shape=(n * n, n * n))
    found = scipy.sparse.linalg.spsolve(matrix + scipy.sparse.diags_array(diagonal, format="csc"), gains)
    at = int(np.argmin(np.abs(nodes - edge)))
    around = found.reshape(n, n)[at - 1 : at + 1, at - 1 : at + 1]
    return float(around.reshape(-1)[:3].mean())


@pytest.mark.parametrize(
    ("k", "layer", "h", "other"),
    [
        (0.04, 100, 7.7, 268.15),  # wool of 100 mm towards the room, h·d/(2k) = 0.96 at 10 mm
        (0.03, 10, 7.7, 268.15),  # of one cell, 1.3
        (0.04, 30, 25.0, 278.15),  # 3.1, and other conditions on the other wall
        (0.2, 20, 20.0, 268.15),  # 0.5
    ],
)
def test_the_edge_of_a_wall_is_right_for_any_biot_number(
    k: float, layer: int, h: float, other: float, tmp_path: Path
) -> None:
    """0.02 K of 20 K with cells of 10 mm. The mean of the three cells alone is wrong by up to 0.36 K."""
    layers = (0.6, 120 - layer), (k, layer)
    expected = own_edge(layers, h, other)
    errors = [inner_edge(layers, h, n, tmp_path, other) - expected for n in (30, 60)]
    assert max(map(abs, errors)) < 0.01


@pytest.mark.parametrize("seed", range(4))
def test_the_edge_of_a_wall_with_covered_insulation_of_one_cell(seed: int, tmp_path: Path) -> None:
    """Random walls with cells of 10, 5 and 2.5 mm. Without the local problem, errors are up to 0.1 K of 20 K.

    With cells of 2.5 mm the insulation lies up to 12 cells behind the edge: a block of 8 cells leaves 0.009 K.
    """
    random = np.random.default_rng(seed)
    insulation, cover = (random.uniform(0.03, 0.06), 10), (random.uniform(0.25, 1.0), 10 * int(random.integers(1, 3)))
    layers = (random.uniform(0.6, 2.5), 10 * int(random.integers(5, 13))), insulation, cover
    h = 1.0 / random.choice([0.13, 0.25])
    expected = own_edge(layers, h)
    coarse, fine, finest = (inner_edge(layers, h, n, tmp_path) - expected for n in (30, 60, 120))
    assert abs(coarse) < 0.015
    assert abs(fine) < 0.005
    assert abs(finest) < 0.005


@pytest.mark.parametrize(
    ("layers", "h"),
    [
        (((2.0, 50), (0.035, 10), (0.6, 20)), 4.0),  # covered; without the local problem it is wrong by 0.1 K of 20 K
        (((0.44, 60), (0.045, 10)), 10.0),  # towards the room: local cells that are too large give 0.1 K
    ],
)
def test_the_corner_of_a_wall_with_insulation_of_one_cell(layers: Layers, h: float, tmp_path: Path) -> None:
    """Cells of 10 mm, and a grid that is four times finer."""
    coarse, fine = (inner_edge(layers, h, n, tmp_path, size=0.14, corner=True) for n in (14, 56))
    assert abs(coarse - fine) < 0.015


def test_an_edge_stays_within_the_temperatures_around_it(tmp_path: Path) -> None:
    """A film that cools faster than half a cell conducts; a linear extrapolation would give 280 − 55 K."""
    strong = BODY.replace(f"coefficient = {FILM}", "coefficient = 2000.0")
    _, found = at_edges(problem_of(tmp_path, strong), "z_max", lambda x, y, z: np.full(x.shape, 380.0))
    assert found.min() > AMBIENT
    assert found.max() < 380.0


HELD = 'boundaries.z_max = { type = "temperature", value = 350.0 }\n'


@pytest.mark.parametrize(("value", "expected"), [("350.0", 350.0), ('"331.25 + 100*x"', 350.0)])
def test_an_edge_beside_a_held_surface_has_its_temperature(value: str, expected: float, tmp_path: Path) -> None:
    """That at the middles of the held faces at the edge, here at x = 0.1875 m."""
    held = HELD.replace("350.0", value)
    points, found = at_edges(problem_of(tmp_path, BODY + held), "x_max", lambda x, y, z: 300.0 + 100.0 * x)
    top = np.isclose(points[:, 2], 0.2)
    assert top.sum() == 9
    assert found[top] == pytest.approx(expected, abs=1e-9)
    assert found[~top].max() < expected


def test_no_edge_where_two_held_temperatures_meet(tmp_path: Path) -> None:
    both = BODY + HELD + 'boundaries.y_max = { type = "temperature", value = 400.0 }\n'
    points, found = at_edges(problem_of(tmp_path, both), "z_max", lambda x, y, z: 300.0 + 100.0 * x)
    assert not np.isclose(points[:, 1], 0.2).any()
    assert found == pytest.approx(350.0, abs=1e-9)


def test_a_wall_of_two_materials_has_the_temperature_of_their_interface(tmp_path: Path) -> None:
    """Only the surface of one region is wanted, so its border counts: (k_1·T_1 + k_2·T_2)/(k_1 + k_2)."""
    text = BODY.replace(f"tile = {{ conductivity = {CONDUCTIVITY}", "tile = { conductivity = 8.0")
    film = f'default = {{ type = "convection", coefficient = {FILM}, ambient = {AMBIENT} }}'
    text = text.replace(film, 'default.type = "insulated"')
    text += 'regions = [{ name = "half", material = "tile", box = { min = [0, 0, 0], max = [0.1, 0.2, 0.2] } }]\n'

    def field(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
        return 300.0 + np.where(x < 0.1, 100.0, 400.0) * (x - 0.1)

    points, found = at_edges(problem_of(tmp_path, text), "z_max", field, "half")
    border = np.isclose(points[:, 0], 0.1)
    assert border.sum() == 9
    assert found[border] == pytest.approx(300.0, abs=1e-9)


SPHERE = 'regions = [{ name = "hole", material = "void", sphere = { centre = [0.1, 0.1, 0.1], radius = 0.07 } }]\n'
CONTACT = """
regions = [{ name = "tile", material = "tile", box = { min = [0.1, 0, 0], max = [0.2, 0.2, 0.2] } }]
contacts = [{ between = ["stone", "tile"], resistance = 0.1 }]
"""
DIAGONAL = """
regions = [{ name = "a", material = "void", box = { min = [0.1, 0.1, 0], max = [0.2, 0.2, 0.2] } },
           { name = "b", material = "void", box = { min = [0, 0, 0], max = [0.1, 0.1, 0.2] } }]
"""


def test_what_has_no_edges(tmp_path: Path) -> None:
    """A sphere of voxels; edges at a contact, where the temperature jumps; where bodies touch with an edge."""
    points, found = at_edges(problem_of(tmp_path, BODY + COOLED + SPHERE), "void", cosines)
    assert len(points) == len(found) == 0
    points, _ = at_edges(problem_of(tmp_path, BODY + CONTACT), "z_max", cosines)
    assert 0 < len(points) < 32
    assert not np.isclose(points[:, 0], 0.1).any()
    points, _ = at_edges(problem_of(tmp_path, BODY + COOLED + DIAGONAL), "z_max", cosines)
    assert len(points) > 0
    assert not np.isclose(points[:, :2], 0.1).all(axis=1).any()


def test_the_edge_of_a_patch_is_no_extreme(tmp_path: Path) -> None:
    """A patch within a face ends between two cells, or in one; the surface does not bend there."""
    rectangle = "{ min = [0.05, 0.05], max = [0.11, 0.15] }"
    patch = f'patches = [{{ face = "z_max", rectangle = {rectangle}, type = "flux", value = 1e3 }}]\n'
    points, _ = at_edges(problem_of(tmp_path, BODY + patch), "z_max", cosines)
    assert len(points) == 32
