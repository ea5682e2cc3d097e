"""A layer on a surface has the temperature that its own resistance and the condition on it give, and no half cell."""

from itertools import product
from math import cosh, sinh, sqrt
from pathlib import Path

import numpy as np
import pytest
from covering import mostly_slow
from problem_text import problem
from test_thin_layers import box, layer, run, text

from heatsim.physics.conditions.surface_balance import STEFAN_BOLTZMANN
from heatsim.physics.operator.stability import Stability
from heatsim.run.simulation import Simulation
from heatsim.verification.exact import root

HALF_SIZE = 0.0016  # of a board of 8 cells across, in m
FILM = 1e-4 / 0.02  # m² K/W of 0.1 mm of the material "film" along z
INTO = {
    "flux": ("value = 2e4", lambda T: 2e4),
    "convection": ("coefficient = 2e3, ambient = 400.0", lambda T: 2e3 * (400.0 - T)),
    "radiation": ("emissivity = 0.9, ambient = 900.0", lambda T: 0.9 * STEFAN_BOLTZMANN * (900.0**4 - T**4)),
    "law": ('coefficient = "900 + (T - Tamb)", ambient = 400.0', lambda T: (900.0 + (T - 400.0)) * (400.0 - T)),
}


def condition(kind: str) -> str:
    """A condition on the layer, as TOML."""
    return f'{{ type = "{"convection" if kind == "law" else kind}", {INTO[kind][0]} }}\n'


def column(kind: str, place: str, material: str, thickness: float, precision: str = "float64") -> str:
    """A board with a layer on one surface, and a film of 500 W/(m² K) at 300 K on the other one."""
    d = 2e-4
    low, high = {"z_min": (0, 8), "z_max": (0, 8), "void": (2, 10)}[place]
    planes = 8 if place != "void" else 12
    size = (0.003, 0.003, planes * d)
    side = low if place == "z_min" else high
    body = box("board", "board", (0.0, 0.0, low * d), (0.003, 0.003, high * d)) + layer(
        "z", side * d, None, None, thickness, material
    )
    film = '{ type = "convection", coefficient = 500.0, ambient = 300.0 }\n'
    if place == "void":
        # A body below carries the film: the board's other side touches a plate without resistance.
        body = body.replace(
            '[[regions]]\nname = "board"',
            box("plate", "copper", (0.0, 0.0, 0.0), (0.003, 0.003, low * d)) + '[[regions]]\nname = "board"',
        )
        body += "[boundaries]\nvoid = " + condition(kind) + "z_min = " + film
    else:
        body += f"[boundaries]\n{place} = {condition(kind)}" + ("z_min = " if place == "z_max" else "z_max = ") + film
    body += "".join(
        f'[[probes]]\nname = "{name}"\npoint = [0.0015, 0.0015, {at!r}]\n'
        for name, at in (("surface", side * d), ("middle", 0.5 * (low + high) * d))
    )
    return text(size, (3, 3, planes), body, "void").replace('"float64"', f'"{precision}"')


@pytest.mark.each_pair
@pytest.mark.parametrize(("material", "thickness"), [("copper", 35e-6), ("film", 1e-4)])
@pytest.mark.parametrize("place", ["z_min", "z_max", "void"])
@pytest.mark.parametrize("kind", INTO)
def test_only_the_layer_lies_between_its_node_and_the_surface(
    tmp_path: Path, kind: str, place: str, material: str, thickness: float
) -> None:
    """Surface, layer and board follow the resistances in series; the cell that holds the layer shows the layer."""
    covering = thickness / (390.0 if material == "copper" else 0.02)
    below = 2.0 * HALF_SIZE / 2.0 / 0.3 + 1.0 / 500.0 + (4e-4 / 390.0 if place == "void" else 0.0)

    surface = root(lambda T: (T - 300.0) / (covering + below) - INTO[kind][1](T), 250.0, 1e3)
    flux = (surface - 300.0) / (covering + below)
    simulation, _, probes = run(tmp_path, column(kind, place, material, thickness))
    cells = simulation.temperature[:, 1, 1]
    held = cells[0] if place == "z_min" else cells[7] if place == "z_max" else cells[9]
    tolerance = 2e-4 if kind == "law" else 1e-5  # a table of straight lines
    assert held == pytest.approx(surface - flux * covering, abs=tolerance)
    if place != "void":  # void has no temperature, so a probe there shows the cell
        assert probes[0] == pytest.approx(surface, abs=tolerance)
    middle = surface - flux * (covering + HALF_SIZE / 2.0 / 0.3)
    assert probes[1] == pytest.approx(middle, abs=tolerance)
    # 1/64 of a cell would be far outside the tolerance.
    assert flux * 2e-4 / 64.0 / 0.3 > 5.0 * tolerance


@pytest.mark.quick("implicit-x", "euler-y", "steady-z")
@pytest.mark.parametrize(
    ("method", "axis"),
    mostly_slow(
        product(("euler", "stabilized", "implicit", "steady"), "xyz"),
        *(("euler", "y"), ("stabilized", "z"), ("implicit", "x"), ("steady", "y"), ("steady", "z")),
    ),
)
def test_a_fin_of_copper_on_foam(tmp_path: Path, axis: str, method: str) -> None:
    """Film and flux act on the copper itself: the profile of a fin (Incropera, §3.6.2), heated at one end.

    1/64 of a cell of foam would add 4 % to the resistance of the film.
    """
    along, across = {"x": (1, 0), "y": (2, 1), "z": (0, 2)}[axis]
    size, cells, h, length, sheet = [0.02, 0.02, 0.02], [1, 1, 1], 500.0, 0.02, 390.0 * 35e-6
    cells[along], cells[across] = 20, 4
    foam = "[materials.foam]\nconductivity = 1e-3\ndensity = 0.1\nspecific_heat = 1000.0\n"
    size[across] = 4e-4
    head = f'time = {{ end = 10.0, method = "{method}", tolerance = "1 mK" }}\n'
    if method == "euler":
        head = 'time = { end = 10.0, method = "euler" }\n'
    body = (
        foam
        + layer(axis, size[across])
        + (
            "[initial]\ntemperature = 300.0\n[boundaries]\n"
            f'{axis}_max = {{ type = "convection", coefficient = {h}, ambient = 300.0 }}\n'
            f'{"xyz"[along]}_min = {{ type = "temperature", value = 350.0 }}\n'
        )
    )
    simulation, energy, _ = run(tmp_path, text(tuple(size), tuple(cells), body, "foam", head))
    m = sqrt(h / sheet)
    x = simulation.plan.problem.grid.centres(along)
    exact = 300.0 + 50.0 * np.cosh(m * (length - x)) / cosh(m * length)
    profile = np.moveaxis(simulation.temperature, (2 - along, 2 - across), (0, 1))[:, -1, 0]
    assert np.abs(profile - exact).max() <= 50.0 * (m * length / 20.0) ** 2 / 8.0
    taken = 50.0 * sqrt(h * sheet) * 0.02 * sinh(m * length) / cosh(m * length)
    if method == "steady":
        assert energy[f"{'xyz'[along]}_min (W)"] == pytest.approx(taken, rel=5e-3)


def patch(low: float, high: float, of: str) -> str:
    return f'[[patches]]\nface = "z_max"\nrectangle = {{ min = [{low}, 0.0], max = [{high}, 0.001] }}\n{of}\n'


@pytest.mark.parametrize("edge", [0.01, 0.01025, 0.0105, 0.01075])
@pytest.mark.parametrize("per_cell", [1, 2, 4])
def test_a_layer_is_held_from_the_edge_of_a_held_patch_on(tmp_path: Path, edge: float, per_cell: int) -> None:
    """A flux at one end of a layer on foam flows along it to a held patch: the error is of first order."""
    foam = "[materials.foam]\nconductivity = 1e-4\ndensity = 10.0\nspecific_heat = 1000.0\n"
    body = foam + layer("z", 0.0008)
    body += patch(0.0, edge, 'type = "temperature"\nvalue = 300.0') + patch(0.018, 0.02, 'type = "flux"\nvalue = 1e4')
    simulation, _, _ = run(tmp_path, text((0.02, 0.001, 0.0008), (20 * per_cell, 1, 4 * per_cell), body, "foam"))
    x, T = simulation.plan.problem.grid.centres(0), simulation.temperature[-1, 0]
    slope = 1e4 * 0.002 / (390.0 * 35e-6)
    free = (x > edge + 0.001) & (x < 0.017)
    # The held nodes have a conductance to the surface that adds 0.37 of a cell.
    assert np.abs(T[free] - 300.0 - slope * (x[free] - edge)).max() <= 0.6 * slope * 0.001 / per_cell


@pytest.mark.parametrize("cells", [3, 6, 12])
def test_layers_of_two_faces_meet_in_their_edge(tmp_path: Path, cells: int) -> None:
    """Heat flows along both to the ends: the conductance of their whole length, on any grid."""
    foam = "[materials.foam]\nconductivity = 1e-6\ndensity = 10.0\nspecific_heat = 1000.0\n"
    body = (
        foam
        + layer("z", 0.008)
        + layer("x", 0.012)
        + (
            '[boundaries]\nx_min = { type = "temperature", value = 310.0 }\n'
            'z_min = { type = "temperature", value = 300.0 }\n'
        )
    )
    _, energy, _ = run(tmp_path, text((0.012, 0.004, 0.008), (cells, 1, 2 * cells // 3), body, "foam"))
    assert energy["x_min (W)"] == pytest.approx(10.0 * 390.0 * 35e-6 * 0.004 / 0.02, rel=1e-4)


@pytest.mark.parametrize("cells", [3, 6])
def test_a_layer_that_crosses_another_one_conducts_up_to_the_end(tmp_path: Path, cells: int) -> None:
    """With 3 cells the node of the first one lies on the crossing layer, a whole cell away from the held end."""
    foam = "[materials.foam]\nconductivity = 1e-6\ndensity = 10.0\nspecific_heat = 1000.0\n"
    body = (
        foam
        + layer("z", 0.004)
        + layer("x", 0.001)
        + (
            '[boundaries]\nx_min = { type = "temperature", value = 310.0 }\n'
            'x_max = { type = "temperature", value = 300.0 }\n'
        )
    )
    _, energy, _ = run(tmp_path, text((0.003, 0.002, 0.004), (cells, 1, 4), body, "foam"))
    assert energy["x_min (W)"] == pytest.approx(10.0 * 390.0 * 35e-6 * 0.002 / 0.003, rel=1e-4)


@pytest.mark.parametrize("place", [0.0, 1.0])
@pytest.mark.parametrize("cells", [1, 2, 3])
def test_the_resistance_of_a_layer_counts_once(tmp_path: Path, cells: int, place: float) -> None:
    """Also in a body of one cell across, whose node has a surface on both sides."""
    body = layer("z", place * 0.001, None, None, 1e-4, "film") + (
        '[boundaries]\nz_max = { type = "temperature", value = 350.0 }\n'
        'z_min = { type = "temperature", value = 300.0 }\n'
    )
    _, energy, _ = run(tmp_path, text((0.003, 0.003, 0.001), (3, 3, cells), body))
    assert energy["z_max (W)"] == pytest.approx(9e-6 * 50.0 / (0.001 / 0.3 + FILM), rel=1e-9)


@pytest.mark.parametrize("origin", [0.0, 0.1])
def test_a_point_on_a_face_has_the_temperature_of_the_face(tmp_path: Path, origin: float) -> None:
    """Although (0.3 − 0.1)/0.2 is less than 1 by rounding, and the node lies on the face."""
    body = layer("z", origin + 0.2, None, None, 1e-4, "film") + (
        '[boundaries]\nz_max = { type = "flux", value = 200.0 }\n'
        'z_min = { type = "temperature", value = 300.0 }\n'
        f'[[probes]]\nname = "face"\npoint = [0.001, 0.001, {round(origin + 0.2, 12)!r}]\n'
    )
    scenario = text((0.003, 0.003, 0.2), (3, 3, 6), body).replace("size =", f"origin = [0.0, 0.0, {origin}], size =")
    _, _, (face,) = run(tmp_path, scenario)
    assert face == pytest.approx(300.0 + 200.0 * (0.2 / 0.3 + FILM), abs=1e-6)


def on_board(top: str, layers: str) -> Stability:
    """The limits of a board of laminate in cells of 1 × 1 × 0.2 mm."""
    body = layers + f"[initial]\ntemperature = 300.0\n[boundaries]\nz_max = {top}\n"
    return problem(text((0.008, 0.008, 0.0016), (8, 8, 8), body, head="time = { end = 1.0 }\n")).stability


def test_conditions_on_a_layer_shorten_explicit_steps_by_little() -> None:
    """A half cell of 35 µm of copper would shorten them 200 times where the surface is held."""
    copper = layer("z", 0.0016)
    free = on_board('{ type = "insulated" }', copper).limit.dt
    held = on_board('{ type = "temperature", value = 300.0 }', copper).limit.dt
    assert held > free / 3.0
    for kind in ("convection", "radiation", "law"):
        assert on_board(condition(kind), copper).limit.dt > free / 3.0


def test_a_layer_that_glows_counts_with_its_radiation() -> None:
    """At 3000 K radiation takes more from foam than a half cell of 1/64 of a cell: the limit counts its slope."""
    foam = "[materials.foam]\nconductivity = 0.03\ndensity = 30.0\nspecific_heat = 1400.0\n"
    found = problem(
        text(
            (0.1, 0.1, 0.08),
            (2, 2, 4),
            foam
            + layer("z", 0.08)
            + "[initial]\ntemperature = 3000.0\n[boundaries]\n"
            + 'z_max = { type = "radiation", emissivity = 1.0, ambient = 300.0 }\n',
            "foam",
            "time = { end = 1.0 }\n",
        )
    )
    slope = 4.0 * STEFAN_BOLTZMANN * 3000.0**3
    capacity = 8960.0 * 385.0 * 35e-6 + 2.0 / 3.0 * 30.0 * 1400.0 * 0.02
    assert 0.5 * capacity / slope < found.limit.dt < capacity / slope


MIXED = (
    patch(0.001, 0.0033, 'type = "temperature"\nvalue = "320 + 10*t"').replace("0.001] }", "0.0033] }")
    + patch(0.0033, 0.0052, 'type = "flux"\nvalue = 2e4').replace("0.001] }", "0.0045] }")
    + '[boundaries]\nvoid = { type = "convection", coefficient = "10 + 0.1*abs(T - Tamb)", ambient = 310.0 }\n'
    'z_max = { type = "convection", coefficient = "20 + 1000*x", ambient = 290.0 }\n'
    'x_max = { type = "radiation", emissivity = 0.9, ambient = 600.0 }\n'
    'x_min = { type = "temperature", value = 305.0 }\n'
)


@pytest.mark.each_value
@pytest.mark.parametrize(
    ("method", "precision"),
    mostly_slow(
        product(("euler", "stabilized", "implicit"), ("float32", "float64")),
        *(("euler", "float64"), ("stabilized", "float32"), ("implicit", "float64")),
    ),
)
def test_energy_closes_with_every_condition_on_layers(tmp_path: Path, method: str, precision: str) -> None:
    """Held and heated patches, convection that varies in space, radiation, void surfaces, layers in corners."""
    body = box("hole", "void", (0.002, 0.002, 0.0), (0.004, 0.004, 0.002)) + layer("z", 0.004) + layer("x", 0.006)
    body += layer("x", 0.0) + layer("z", 0.002, (0.001, 0.001), (0.0045, 0.0045)) + MIXED
    head = f'time = {{ end = 0.5, method = "{method}" }}\ninitial = {{ temperature = 300.0 }}\n'
    scenario = text((0.006, 0.006, 0.004), (6, 6, 4), body, head=head)
    simulation, energy, _ = run(tmp_path, scenario.replace('"float64"', f'"{precision}"'))
    assert (
        abs(energy["residual (J)"]) <= (1e-12 if precision == "float64" else 2e-6) * abs(energy["stored (J)"]) + 1e-12
    )
    T = simulation.temperature
    assert 290.0 < np.nanmin(T) <= np.nanmax(T) < 600.0


def test_a_held_layer_keeps_the_resistance_of_the_board(tmp_path: Path) -> None:
    for material, covering in (("copper", 35e-6 / 390.0), ("film", FILM)):
        body = layer("z", 0.0016, None, None, 35e-6 if material == "copper" else 1e-4, material) + (
            '[boundaries]\nz_max = { type = "temperature", value = 350.0 }\n'
            'z_min = { type = "temperature", value = 300.0 }\n'
        )
        simulation, energy, _ = run(tmp_path, text((0.003, 0.003, 0.0016), (3, 3, 8), body))
        flux = 50.0 / (0.0016 / 0.3 + covering)
        assert energy["z_max (W)"] == pytest.approx(flux * 9e-6, rel=1e-9)
        # The node lies at most 1/64 of a cell below the surface; below a poor conductor at its lower side.
        error = simulation.temperature[-1, 1, 1] - (350.0 - flux * covering)
        assert -flux * 2e-4 / 64.0 / 0.3 * (material == "copper") - 1e-5 < error < 1e-5


def test_float32_and_float64_agree_on_layers(tmp_path: Path) -> None:
    fields = []
    for precision in ("float32", "float64"):
        simulation: Simulation = run(tmp_path, column("radiation", "z_max", "copper", 35e-6, precision))[0]
        fields.append(simulation.temperature.copy())
    np.testing.assert_allclose(fields[0], fields[1], rtol=2e-6)
