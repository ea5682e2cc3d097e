"""Channels: fluids that take up heat from the walls of void regions."""

import csv
import tomllib
from collections.abc import Sequence
from math import exp, expm1, pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from void_bodies import with_void

from heatsim import Simulation
from heatsim.commands.geometry import geometry_of
from heatsim.errors import Interrupted, ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.report.number_tables import node_table
from heatsim.report.page import build
from heatsim.run.error.values import read_values
from heatsim.run.plan_model import describe_model
from heatsim.scenario import load, parse, write_resolved
from heatsim.storage import folder
from heatsim.storage.run_settings import read_settings
from heatsim.storage.run_tables import read_energy, read_nodes
from heatsim.storage.summary_file import read_summary

# A slot through a block whose outer sides are held. The block conducts so well that its walls have one temperature.
LENGTH, SIDE, WALL, INLET = 0.1, 1e-3, 350.0, 300.0
BLOCK = with_void(
    "0.1, 0.003, 0.003", "10, 3, 3", "metal", (1e7, 1e6, 1e6), slot="0.0, 0.001, 0.001 to 0.1, 0.002, 0.002"
)
BLOCK += """
[boundaries]
y_min = { type = "temperature", value = 350.0 }
y_max = { type = "temperature", value = 350.0 }
z_min = { type = "temperature", value = 350.0 }
z_max = { type = "temperature", value = 350.0 }
[initial]
temperature = 350.0
[time]
method = "steady"
tolerance = 1e-7
[solver]
precision = "float64"
device = "cpu"
[output]
figures = false
error = "none"
"""
WATER = """
[[channels]]
name = "water"
region = "slot"
from = "x_min"
inlet = 300.0
mass_flow = 1e-4
specific_heat = 4000.0
coefficient = 1500.0
"""
STEADY = 'method = "steady"\ntolerance = 1e-7'
IN_TIME = 'end = 0.1\ndt = 0.01\nmethod = "euler"'


def outlet(inlet: float, films: float, area: float = 4.0 * SIDE * LENGTH, rate: float = 0.4) -> float:
    """The temperature at the end of a wall of 350 K: Incropera eq. 8.41b."""
    return WALL + (inlet - WALL) * exp(-films * area / rate)


def finished(text: str) -> Simulation:
    simulation = Simulation.from_dict(tomllib.loads(text), in_memory=True)
    simulation.run()
    return simulation


def ends(simulation: Simulation) -> list[float]:
    """The temperatures at the outlets."""
    network = simulation.plan.problem.boundary.network
    assert network is not None
    return [float(network.temperatures[channel.last]) for channel in network.channels]


def refusals(text: str) -> dict[str, str]:
    with pytest.raises(ScenarioError) as caught:
        HeatProblem.from_scenario(parse(tomllib.loads(text), "channels.toml"))
    return {mistake.key: mistake.message for mistake in caught.value.mistakes}


def test_a_film_that_changes_too_often_is_refused_as_that_of_a_face_is(tmp_path: Path) -> None:
    text = (BLOCK + WATER).replace("coefficient = 1500.0", 'coefficient = "500 + 400*sin(1e6*t)"')
    text = text.replace('method = "steady"', 'method = "stabilized"\nend = 100.0').replace("tolerance = 1e-7\n", "")
    with pytest.raises(ScenarioError, match=r"channels\.0\.coefficient: jumps, has a kink or oscillates more than"):
        Simulation.from_model(parse(tomllib.loads(text), tmp_path / "channels.toml"), tmp_path / "out").run()


def turned(axis: int, side: str) -> str:
    """The block with its slot along an axis, and a fluid from one of the two sides."""

    def moved(values: Sequence[object]) -> list[object]:
        return [values[(i - axis) % 3] for i in range(3)]

    text = BLOCK + WATER.replace("x_min", f"{'xyz'[axis]}_{side}")
    for values in ([0.1, 0.003, 0.003], [10, 3, 3], [0.0, 0.001, 0.001], [0.1, 0.002, 0.002]):
        text = text.replace(str(values), str(moved(values)))
    for name in ("y", "z"):
        other = "xyz"[("xyz".index(name) + axis) % 3]
        for end in ("min", "max"):
            text = text.replace(f"\n{name}_{end}", f"\n@{other}_{end}")
    return text.replace("@", "")


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("side", ["min", "max"])
def test_from_each_side_the_fluid_approaches_the_wall_as_an_exponential(axis: int, side: str) -> None:
    found = finished(turned(axis, side))
    assert ends(found) == pytest.approx([outlet(INLET, 1500.0)], abs=1e-6 * 50.0)
    network = found.plan.problem.boundary.network
    assert network is not None
    ways = np.arange(1, 11) / 10
    known = [outlet(INLET, 1500.0, 4.0 * SIDE * LENGTH * way) for way in ways]
    assert network.temperatures == pytest.approx(known, abs=1e-6 * 50.0)


@pytest.mark.parametrize(
    "time",
    [IN_TIME, 'end = 0.1\nmethod = "stabilized"\ntolerance = 1e-3', 'end = 0.1\nmethod = "implicit"\ntolerance = 1e-3'],
)
def test_every_method_finds_the_same(time: str) -> None:
    found = finished(BLOCK.replace(STEADY, time) + WATER)
    assert ends(found) == pytest.approx([outlet(INLET, 1500.0)], abs=1e-6 * 50.0)


def test_planes_of_different_widths() -> None:
    text = BLOCK.replace("size = [0.1, 0.003, 0.003]\ncells = [10, 3, 3]", "size = [0.003, 0.003]\ncells = [3, 3]")
    text += "[domain.x]\nintervals = [{ to = 0.1, cells = 12, growth = 1.3 }]\n" + WATER
    found = finished(text)
    network = found.plan.problem.boundary.network
    assert network is not None
    known = [outlet(INLET, 1500.0, 4.0 * SIDE * end) for end in found.plan.problem.grid.axes[0].borders[1:]]
    assert network.temperatures == pytest.approx(known, abs=1e-6 * 50.0)


SECOND = BLOCK.replace("0.003, 0.003]", "0.005, 0.003]").replace("3, 3]", "5, 3]") + (
    '[[regions]]\nname = "second"\nmaterial = "void"\nbox = { min = [0.0, 0.003, 0.001], max = [0.1, 0.004, 0.002] }\n'
)


def test_a_second_channel_takes_a_part_of_what_leaves_the_first() -> None:
    behind = WATER.replace('"water"', '"behind"').replace('"slot"', '"second"').replace("x_min", "x_max")
    behind = behind.replace("300.0", '{ channel = "water" }').replace("1e-4", "0.7e-4")
    first = outlet(INLET, 1500.0)
    for text in (SECOND + WATER + behind, SECOND + behind + WATER):  # in any order
        found = dict(zip(("second", "slot"), sorted(ends(finished(text)), reverse=True), strict=True))
        assert found["slot"] == pytest.approx(first, abs=1e-4)
        assert found["second"] == pytest.approx(outlet(first, 1500.0, rate=0.28), abs=1e-4)


def test_a_coefficient_may_change_in_time() -> None:
    """The mean of a ramp over each step; the water has no heat capacity."""
    ramp = '{ times = ["0 s", "0.1 s"], values = [500.0, 2500.0] }'
    text = BLOCK.replace(STEADY, IN_TIME) + WATER.replace("1500.0", ramp)
    assert ends(finished(text)) == pytest.approx([outlet(INLET, 2500.0)], abs=1e-6 * 50.0)
    jump = "{ times = [0.0, 0.05, 0.05, 1.0], values = [500.0, 500.0, 900.0, 900.0] }"
    text = BLOCK.replace(STEADY, IN_TIME) + WATER.replace("1500.0", jump)
    assert ends(finished(text)) == pytest.approx([outlet(INLET, 900.0)], abs=1e-6 * 50.0)


def test_without_a_film_the_fluid_leaves_as_it_enters() -> None:
    ramp = '{ times = ["0 s", "0.1 s"], values = [500.0, 0.0] }'
    text = BLOCK.replace(STEADY, IN_TIME) + WATER.replace("1500.0", ramp)
    assert ends(finished(text)) == pytest.approx([INLET], abs=1e-9)


def test_an_inlet_may_change_in_time() -> None:
    text = BLOCK.replace(STEADY, IN_TIME) + WATER.replace("300.0", '"300 + 100*t"')
    assert ends(finished(text)) == pytest.approx([outlet(310.0, 1500.0)], abs=1e-6 * 50.0)


def test_a_uniform_flux_raises_the_fluid_evenly() -> None:
    """T_w − T = q/h to the middle of a plane, and the rise P/(ṁc)."""
    fibres = "metal = { conductivity = [1e-9, 1e7, 1e7], density = 1e6, specific_heat = 1e6 }"
    text = BLOCK[: BLOCK.index("metal = {")] + fibres + BLOCK[BLOCK.index("\n[[regions]]") :]
    text = text[: text.index("[boundaries]")] + text[text.index("[initial]") :]
    found = finished(text + WATER.replace("1500.0", "700.0") + "[[sources]]\npower = 8.0\n")
    assert ends(found) == pytest.approx([INLET + 8.0 / 0.4], abs=1e-6 * 20.0)
    x = found.plan.problem.grid.centres(0)
    fluid = INLET + 8.0 / 0.4 * x / LENGTH
    over = found.temperature[0, 0] - fluid
    flux = 8.0 / (4.0 * SIDE * LENGTH)
    units = 700.0 * 4.0 * SIDE * LENGTH / 10 / 0.4
    assert over == pytest.approx(np.full(10, flux / 700.0), rel=1e-3)
    # To rounding it is g·(T_w − u) = q·A of a plane, with g = ṁc·(e^NTU − 1).
    assert found.temperature[0, 0] - INLET - 2.0 * np.arange(1, 11) == pytest.approx(
        np.full(10, 0.8 / (0.4 * expm1(units))), abs=1e-5
    )


BOX = "box = { min = [0.0, 0.001, 0.001], max = [0.1, 0.002, 0.002] }"


def test_the_ends_of_a_channel_inside_the_body_are_walls() -> None:
    inside = BLOCK.replace(BOX, "box = { min = [0.02, 0.001, 0.001], max = [0.08, 0.002, 0.002] }")
    found = finished(inside + WATER)
    network = found.plan.problem.boundary.network
    assert network is not None
    assert len(network) == 6
    area = 4.0 * SIDE * 0.06 + 2.0 * SIDE**2
    assert ends(found) == pytest.approx([outlet(INLET, 1500.0, area)], abs=1e-6 * 50.0)


def test_a_channel_is_cut_by_the_box() -> None:
    cut = BLOCK.replace(BOX, "box = { min = [0.05, 0.001, 0.001], max = [0.9, 0.002, 0.009] }")
    found = finished(cut + WATER)
    area = 0.05 * (SIDE + 2.0 * 2.0 * SIDE) + 2.0 * SIDE**2  # bottom, two sides of 2 mm, and the end
    assert ends(found) == pytest.approx([outlet(INLET, 1500.0, area)], abs=1e-6 * 50.0)


def test_what_later_regions_leave_of_a_channel() -> None:
    """A plug without fluid around it, painted over the first planes: these nodes have no wall."""
    found = finished(painted("plug", "[0, 0, 0]", "[0.03, 0.003, 0.003]") + WATER)
    network = found.plan.problem.boundary.network
    assert network is not None
    assert network.temperatures[:2] == pytest.approx([INLET, INLET], abs=1e-9)
    area = 4.0 * SIDE * 0.07 + SIDE**2
    assert ends(found) == pytest.approx([outlet(INLET, 1500.0, area)], abs=1e-6 * 50.0)


PIPE = """
[domain]
size = [0.01, 0.1]
cells = [10, 20]
symmetry = "axial"
material = "metal"
[materials]
metal = { conductivity = 1e7, density = 1e6, specific_heat = 1e6 }
[[regions]]
name = "slot"
material = "void"
box = { min = [0.0, -1.0, 0.0], max = [0.004, 1.0, 0.1] }
[boundaries]
x_max = { type = "temperature", value = 350.0 }
"""


@pytest.mark.parametrize("side", ["z_min", "z_max"])
def test_a_pipe_of_rings(side: str) -> None:
    text = PIPE + BLOCK[BLOCK.index("[initial]") :] + WATER.replace("x_min", side).replace("1500.0", "300.0")
    assert ends(finished(text)) == pytest.approx([outlet(INLET, 300.0, 2.0 * pi * 0.004 * 0.1)], abs=1e-6 * 50.0)


@pytest.mark.parametrize(
    ("shape", "area"),
    [
        ("cylinder = { from = [0, 0.015, 0.015], to = [0.1, 0.015, 0.015], radius = 0.01 }", 2.0 * pi * 0.01 * 0.1),
        ("sphere = { centre = [0.05, 0.015, 0.015], radius = 0.0125 }", 4.0 * pi * 0.0125**2),
    ],
    ids=["cylinder", "sphere"],
)
def test_round_channels_have_their_smooth_area(shape: str, area: float) -> None:
    text = BLOCK.replace(BOX, shape).replace("0.003, 0.003]", "0.03, 0.03]").replace("[10, 3, 3]", "[40, 24, 24]")
    found = finished(text + WATER.replace("1500.0", "200.0"))
    assert ends(found) == pytest.approx([outlet(INLET, 200.0, area)], abs=1e-5 * 50.0)


EXCHANGER = with_void(
    "0.5, 0.003, 0.01",
    "N, 3, 1",
    "wall",
    ([1e-9, 0.5, 0.5], 2000.0, 800.0),
    second="0.0, 0.0, 0.0 to 0.5, 0.001, 0.01",
    slot="0.0, 0.002, 0.0 to 0.5, 0.003, 0.01",
)


@pytest.mark.parametrize("ratio", [1.0, 0.25])
@pytest.mark.parametrize("side", ["x_max", "x_min"])
def test_heat_exchangers_of_two_channels(ratio: float, side: str) -> None:
    """ε of NTU in counterflow and parallel flow (Incropera eq. 11.28 to 11.30); of second order in the planes."""
    units, errors = 0.5 * 0.01 / (1.0 / 1000.0 + 0.001 / 0.5 + 1.0 / 500.0) / 0.5, []
    left = exp(-units * (1.0 - ratio))
    effectiveness = units / (1.0 + units) if ratio == 1.0 else (1.0 - left) / (1.0 - ratio * left)
    if side == "x_min":
        effectiveness = (1.0 - exp(-units * (1.0 + ratio))) / (1.0 + ratio)
    hot = WATER.replace("300.0", "360.0").replace("1500.0", "1000.0").replace("1e-4", f"{0.5 / ratio / 4000.0!r}")
    cold = WATER.replace('"water"', '"cold"').replace('"slot"', '"second"').replace("x_min", side)
    cold = cold.replace("300.0", "290.0").replace("1500.0", "500.0").replace("1e-4", f"{0.5 / 4000.0!r}")
    rest = BLOCK[BLOCK.index("[initial]") :].replace("1e-7", "1e-6")
    for n in (12, 24):
        hot_end, cold_end = ends(finished(EXCHANGER.replace("N", str(n)) + rest + hot + cold))
        assert (360.0 - hot_end) / ratio == pytest.approx(cold_end - 290.0, rel=1e-6)
        errors.append((cold_end - 290.0) / 70.0 - effectiveness)
    assert abs(errors[0]) < 0.01
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


LOOSE = with_void(
    "0.1, 0.006, 0.006", "8, 6, 6", "clay", (1.5, 2000.0, 800.0), slot="0.0, 0.002, 0.002 to 0.1, 0.004, 0.005"
)
LOOSE += """
[boundaries]
y_min = { type = "convection", coefficient = 30.0, ambient = 350.0 }
[[sources]]
power = 3.0
[initial]
temperature = "320 + 200*x"
[time]
end = 4.0
dt = 0.1
method = "euler"
[solver]
precision = "float64"
device = "cpu"
[[probes]]
name = "wall"
surface = "slot"
statistic = "max"
[output]
every = 1.0
probe_every = 0.5
figures = false
error = "none"
"""


@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit", "steady"])
def test_the_water_takes_what_the_wall_gives(method: str, tmp_path: Path) -> None:
    """In energy.csv and nodes.csv; the water has no heat capacity, so all of it leaves with the water."""
    time = {"euler": 'method = "euler"', "steady": 'method = "steady"\ntolerance = 1e-8'}
    text = LOOSE.replace('dt = 0.1\nmethod = "euler"', time.get(method, f'method = "{method}"\ntolerance = 0.01'))
    text = text.replace("end = 4.0\n", "") if method == "steady" else text
    Simulation.from_scenario(runs.write(tmp_path, text + WATER), output=tmp_path / "out").run()
    tables = [
        [*csv.DictReader((tmp_path / "out" / name).read_text(encoding="utf-8").splitlines())]
        for name in (folder.ENERGY, folder.NODES)
    ]
    unit = "W" if method == "steady" else "J"
    assert len(tables[0]) == len(tables[1])
    for energy, nodes in zip(*tables, strict=True):
        through, taken = float(energy[f"surface slot ({unit})"]), float(nodes[f"water surfaces ({unit})"])
        assert taken == pytest.approx(-through, rel=1e-9, abs=1e-9)
        assert float(nodes[f"water flows ({unit})"]) == pytest.approx(-taken, rel=1e-9, abs=1e-9)
    assert taken > 1.0
    along = read_summary(tmp_path / "out")["channels"]["water"]
    assert along["temperature"][-1] == pytest.approx(float(nodes["water (K)"]), abs=1e-3)
    nodes_table = read_nodes(tmp_path / "out")
    assert nodes_table is not None
    shown = node_table(nodes_table, read_settings(tmp_path / "out"))
    assert shown.headers == ("", "K", "surfaces", "fluids")
    (name, kelvins, *heats), *_ = shown.rows
    assert (name, float(kelvins)) == ("water", pytest.approx(float(nodes["water (K)"]), abs=0.01))
    assert [float(heat.replace("−", "-")) for heat in heats] == [
        pytest.approx(taken, rel=1e-3),
        pytest.approx(-taken, rel=1e-3),
    ]
    assert shown.title.endswith(f"({unit})")
    page = build(tmp_path / "out")
    assert shown.title in page
    assert (">Nodes</figcaption>" in page) == (method != "steady")


@pytest.mark.parametrize(("side", "ends"), [("x_min", [0.01, 0.02, 0.1]), ("x_max", [0.09, 0.08, 0.0])])
def test_the_summary_has_the_temperatures_along_a_channel(side: str, ends: list[float], tmp_path: Path) -> None:
    path = runs.write(tmp_path, BLOCK + WATER.replace("x_min", side))
    Simulation.from_scenario(path, output=tmp_path / "out").run()
    along = read_summary(tmp_path / "out")["channels"]["water"]
    position, temperature = along["position"], along["temperature"]
    assert [*position[:2], position[-1]] == pytest.approx(ends, abs=1e-12)
    known = [outlet(INLET, 1500.0, 4.0 * SIDE * LENGTH * way) for way in np.arange(1, 11) / 10]
    assert temperature == pytest.approx(known, abs=1e-6 * 50.0)


def _value_of(at: Path, text: str) -> float:
    """The temperature of the cold fluid at its outlet, as errors in space are found of."""
    at.mkdir()
    Simulation.from_scenario(runs.write(at, text), output=at / "out").run()
    return read_values(at / "out")["node cold", "K"]


def test_the_errors_of_outlets_follow_from_a_coarser_grid(tmp_path: Path) -> None:
    """In counterflow of equal capacity rates: ε = NTU/(1 + NTU)."""
    cold = WATER.replace('"water"', '"cold"').replace('"slot"', '"second"').replace("x_min", "x_max")
    rest = BLOCK[BLOCK.index("[initial]") :].replace("1e-7", "1e-8") + WATER + cold.replace("300.0", "290.0")
    fine, coarse = (_value_of(tmp_path / n, EXCHANGER.replace("N", n) + rest) for n in ("48", "24"))
    units = 0.5 * 0.01 / (2.0 / 1500.0 + 0.001 / 0.5) / 0.4
    assert (fine - coarse) / 3.0 == pytest.approx(290.0 + 10.0 * units / (1.0 + units) - fine, rel=0.03)


def test_plans_and_pictures_show_channels_and_nodes() -> None:
    air = '[[nodes]]\nname = "air"\nheat_capacity = 5.0\ninitial_temperature = 290.0\npower = 2.0\n'
    air += 'links = [{ ambient = 280.0, conductance = 3.0 }, { node = "duct", conductance = 1.0 }]\n'
    air += '[[nodes]]\nname = "duct"\nflows = [{ inlet = 281.0, mass_flow = 0.5, specific_heat = 8.0 }]\n'
    of = parse(tomllib.loads(SECOND.replace(STEADY, IN_TIME) + BEHIND + WATER + air), "channels.toml")
    lines = describe_model(HeatProblem.from_scenario(of))
    assert 'node         air: 5 J/K at 290 K, 2 W, 3 W/K to 280 K, 1 W/K to node "duct"' in lines
    assert "node         duct: without heat capacity, fluid with 4 W/K from 281 K" in lines
    way = '0.0001 kg/s (0.4 W/K), 1500 W/(m² K), through "{}"; 4 cm² of walls'
    assert f"channel      water: from x_min at 300 K, {way.format('slot')}" in lines
    assert f'channel      behind: from x_min after channel "water", {way.format("second")}' in lines
    assert "surface      other surfaces towards void: insulated" in lines
    behind, water = geometry_of(of).surfaces
    assert water.text.startswith("channel water: from x_min at 300 K")
    assert behind.text.startswith("channel behind: from x_min after")
    assert len([*water.rectangles(of.grid)]) == 4


HARD = """
[[nodes]]
name = "air"
heat_capacity = 0.05
initial_temperature = 300.0
flows = [{ node = "duct", mass_flow = 1e-5, specific_heat = 1000.0 }]
[[nodes]]
name = "duct"
flows = [{ inlet = 280.0, mass_flow = 2e-5, specific_heat = 1000.0 }]
"""


@pytest.mark.quick("implicit-float32", "stabilized-float64", "euler-float32")
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_strong_films_beside_radiation_and_changing_materials(method: str, precision: str, tmp_path: Path) -> None:
    """A film that jumps to 5,000 W/(m² K) and grows to 1e6, an inlet that swings, and air that flows and radiates."""
    films = "{ times = [0.0, 0.5, 0.5, 1.0], values = [100.0, 5000.0, 10.0, 1e6] }"
    text = LOOSE.replace("conductivity = 1.5", 'conductivity = "1.5*(1 + 0.01*(T - 320))"').replace(
        "end = 4.0", "end = 1.0"
    )
    time = 'dt = 0.02\nmethod = "euler"' if method == "euler" else f'method = "{method}"\ntolerance = 0.02'
    text = text.replace('dt = 0.1\nmethod = "euler"', time).replace("float64", precision)
    walls = 'x_max = { type = "convection", coefficient = 50.0, ambient = { node = "air" }, emissivity = 0.8, '
    text = text.replace("[boundaries]\n", f"[boundaries]\n{walls}surroundings = 800.0 }}\n")
    text += HARD + WATER.replace("1500.0", films).replace("300.0", '"300 + 20*sin(3*t)"')
    Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "out").run()
    energy, nodes = read_energy(tmp_path / "out"), read_nodes(tmp_path / "out")
    assert energy is not None
    assert nodes is not None
    through, taken = energy.of_parts("J")["surface slot"], nodes.columns["water surfaces", "J"]
    assert taken == pytest.approx(-through, abs=1e-9 if precision == "float64" else 1e-6)
    assert abs(taken[-1]) > 0.1
    stored = 0.05 * (nodes.in_unit("K")["air"] - 300.0)
    gained = sum(nodes.columns[f"air {kind}", "J"] for kind in ("surfaces", "flows"))
    assert gained == pytest.approx(stored, abs=1e-9)


def test_an_interrupted_run_goes_on_to_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, whole, parts = runs.write(tmp_path, LOOSE + WATER), tmp_path / "whole", tmp_path / "parts"
    Simulation.from_scenario(path, output=whole).run()
    with monkeypatch.context() as patch:
        runs.after_step(patch, 17, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(path, output=parts).run()
    Simulation.resume(parts).run()
    assert runs.results(parts) == runs.results(whole)
    assert (parts / folder.NODES).read_bytes() == (whole / folder.NODES).read_bytes()


def test_the_resolved_scenario_has_channels(tmp_path: Path) -> None:
    behind = (
        WATER.replace('"water"', '"behind"').replace('"slot"', '"second"').replace("300.0", '{ channel = "water" }')
    )
    of = parse(tomllib.loads(SECOND + WATER + behind), "channels.toml")
    write_resolved(of, tmp_path)
    assert load(tmp_path / "scenario.toml") == of
    resolved: dict[str, Any] = tomllib.loads((tmp_path / "scenario.toml").read_text(encoding="utf-8"))
    assert resolved["channels"][1]["inlet"] == {"channel": "water"}
    assert resolved["channels"][0]["from"] == "x_min"


BEHIND = WATER.replace('"water"', '"behind"').replace('"slot"', '"second"').replace("300.0", '{ channel = "water" }')
REST = BLOCK[BLOCK.index("[initial]") :]
FLOOR = "box = { min = [0, 0, 0], max = [0.1, 0.003, 0.001] }"
HELD = 'type = "temperature"\nvalue = 300.0\n'


def painted(name: str, low: str, high: str, material: str = "metal", text: str = BLOCK) -> str:
    """The block with one more region."""
    region = f'[[regions]]\nname = "{name}"\nmaterial = "{material}"\nbox = {{ min = {low}, max = {high} }}\n'
    return text.replace("[boundaries]", region + "[boundaries]")


@pytest.mark.parametrize(
    ("text", "key", "fragment"),
    [
        (BLOCK + WATER.replace('"slot"', '"slit"'), "channels.0.region", 'did you mean "slot"?'),
        (BLOCK.replace('"void"', '"metal"') + WATER, "channels.0.region", "no region is void"),
        (
            BLOCK.replace('"slot"', '"x_min"') + WATER.replace('"slot"', '"x_min"'),
            "channels.0.region",
            "rename the region",
        ),
        (SECOND + WATER + WATER.replace('"slot"', '"second"'), "channels.1.name", '"water" a second time'),
        (BLOCK + WATER + '[[nodes]]\nname = "water"\npower = 1.0\n', "channels.0.name", '"water" a second time'),
        (BLOCK + WATER + '[[nodes]]\nname = "water[3]"\npower = 1.0\n', "nodes.0.name", 'channel "water" has nodes'),
        (BLOCK + WATER.replace('"water"', '"time"'), "channels.0.name", "first column in nodes.csv"),
        (SECOND + WATER + BEHIND.replace('"second"', '"slot"'), "channels.1.region", "channels.0 flows through it"),
        (BLOCK + WATER + f'[[surfaces]]\nof = "slot"\n{HELD}', "surfaces.0.of", 'the channel "water" flows through it'),
        (
            painted("sleeve", "[0, 0, 0]", "[0.1, 0.001, 0.003]") + WATER + f'[[surfaces]]\nof = "sleeve"\n{HELD}',
            "channels.0.region",
            "has a condition of [[surfaces]] too",
        ),
        (painted("plug", "[0, 0, 0]", "[0.1, 0.003, 0.003]") + WATER, "channels.0.region", "painted over all of it"),
        (
            painted("more", "[0, 0, 0.001]", "[0.1, 0.003, 0.002]", "void", BLOCK.replace(BOX, FLOOR)) + WATER,
            "channels.0.region",
            "no cell that conducts borders on it",
        ),
        (SECOND + WATER + BEHIND.replace('= "water"', '= "watr"'), "channels.1.inlet.channel", 'did you mean "water"?'),
        (SECOND + WATER.replace("300.0", '{ channel = "behind" }') + BEHIND, "channels.0.inlet.channel", "lies behind"),
        (
            BLOCK + WATER.replace("300.0", '{ channel = "water" }'),
            "channels.0.inlet.channel",
            "lies behind this channel",
        ),
        (SECOND + WATER + BEHIND.replace("1e-4", "2e-4"), "channels.1.mass_flow", "draw 0.8 W/K of fluid"),
        (BLOCK + WATER.replace("300.0", '{ chanel = "water" }'), "channels.0.inlet.chanel", 'did you mean "channel"?'),
        (BLOCK + WATER.replace("300.0", "{ channel = 3 }"), "channels.0.inlet.channel", "text"),
        (BLOCK + WATER.replace("1e-4", "0.0"), "channels.0.mass_flow", "must be greater than 0"),
        (BLOCK + WATER.replace("1500.0", "-1.0"), "channels.0.coefficient", "must be at least 0"),
        (BLOCK + WATER.replace('"x_min"', '"left"'), "channels.0.from", "x_min"),
        (
            PIPE + BLOCK[BLOCK.index("[initial]") :] + WATER.replace("x_min", "y_max"),
            "channels.0.from",
            "no fluid passes",
        ),
    ],
)
def test_misuse_is_refused_at_its_key(text: str, key: str, fragment: str) -> None:
    found = refusals(text)
    assert fragment in found.get(key, ""), found
