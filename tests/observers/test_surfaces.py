"""Statistics of surfaces: the temperature of the surface itself, with its time and place."""

import json
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.errors import ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.run.plan import Plan
from heatsim.run.plan_model import describe_model
from heatsim.scenario import load
from heatsim.storage import run_tables

SOLVER = 'solver = { device = "cpu", precision = "float64" }\noutput = { figures = false, fields = false }\n'
# On one face a film coefficient that depends on T, radiation, a held patch and a beam; the conductivity varies.
FACE = """
domain = { size = [0.04, 0.03, 0.02], cells = [4, 3, 4] }
material = { conductivity = "10 + 0.05*(T - 300)", density = 2000.0, specific_heat = 500.0 }
initial.temperature = "300 + 2000*x + 1000*y + 500*z"
boundaries.x_min = { type = "flux", value = "1e4 + 1e5*y" }
boundaries.z_max.type = "convection"
boundaries.z_max.coefficient = "5*(abs(T - Tamb)/0.05)^0.25"
boundaries.z_max.ambient = 290.0
boundaries.z_max.emissivity = 0.8
patches = [{ face = "z_max", rectangle = { min = [0, 0], max = [0.02, 0.01] }, type = "temperature", value = 250.0 }]
sources = [{ beam = { face = "z_max", power = 30.0, radius = 4e-3, path = [[0.03, 0.02]] } }]
time = { end = 0.2, method = "euler" }
"""


def at_end(folder: Path) -> dict[str, float]:
    table = run_tables.read_probes(folder)
    assert table is not None
    return {name: float(values[-1]) for (name, _), values in table.columns.items()}


@pytest.mark.parametrize("face", ["z_max", "x_min", "y_min"])
def test_a_face_has_the_temperatures_of_probes_on_it(face: str, tmp_path: Path) -> None:
    """The surface temperatures at the middles of all cells, and for extremes at its edges; y_min is insulated."""
    sizes, cells, axis = (0.04, 0.03, 0.02), (4, 3, 4), "xyz".index(face[0])
    centres = [[(n + 0.5) * size / count for n in range(count)] for size, count in zip(sizes, cells, strict=True)]
    centres[axis] = [sizes[axis] if face.endswith("max") else 0.0]
    points = [[x, y, z] for x in centres[0] for y in centres[1] for z in centres[2]]
    middles = len(points)
    nodes = [np.linspace(0.0, size, count + 1) for size, count in zip(sizes, cells, strict=True)]
    nodes[axis] = np.array(centres[axis])
    ends = [(0.0, size) for size in sizes]
    points += [
        at
        for at in np.stack(np.meshgrid(*nodes), axis=-1).reshape(-1, 3).tolist()
        if sum(place in end for place, end in zip(at, ends, strict=True)) > 1
    ]
    probes = "".join(f'[[probes]]\nname = "p{n}"\npoint = {point}\n' for n, point in enumerate(points))
    for statistic in ("min", "max", "mean"):
        probes += f'[[probes]]\nname = "{statistic}"\nsurface = "{face}"\nstatistic = "{statistic}"\n'
    simulation = Simulation.from_scenario(runs.write(tmp_path, FACE + SOLVER + probes), output=tmp_path / "out")
    simulation.run()
    found = at_end(tmp_path / "out")
    of_points = np.array([found[f"p{n}"] for n in range(len(points))])
    expected = {"min": of_points.min(), "max": of_points.max(), "mean": of_points[:middles].mean()}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-12)
    places = json.loads((tmp_path / "out" / "summary.json").read_text())["probe_extremes"]
    assert places["max"]["temperature"] >= found["max"]
    assert places["max"]["point"][axis] == centres[axis][0]


# A plate that ends in void at z = 0.08, held at 400 K at z = 0, half of it made of a better conductor.
PLATE = """
domain = { size = [0.1, 0.1, 0.1], cells = [4, 2, 10], material = "poor" }
materials.poor = { conductivity = 2.0, density = 1000.0, specific_heat = 1000.0 }
materials.good = { conductivity = 20.0, density = 1000.0, specific_heat = 1000.0 }
regions = [
    { name = "right", material = "good", box = { min = [0.05, 0, 0], max = [0.1, 0.1, 0.1] } },
    { name = "room", material = "void", box = { min = [0, 0, 0.08], max = [0.1, 0.1, 0.1] } },
]
contacts = [{ between = ["poor", "good"], resistance = 1e9 }]
boundaries.z_min = { type = "temperature", value = 400.0 }
boundaries.void = { type = "convection", coefficient = 10.0, ambient = 300.0 }
time.method = "steady"
"""


def test_a_surface_towards_void_has_its_own_temperature(tmp_path: Path) -> None:
    """One-dimensional conduction: T_s = T∞ + (T_held − T∞)/(1 + h·L/k), exact on any grid."""
    probes = """
probes = [{ name = "coldest", surface = "void", statistic = "min" },
          { name = "hottest", surface = "void", statistic = "max" },
          { name = "mean", surface = "void", statistic = "mean" },
          { name = "left", surface = "z_min", statistic = "min" },
          { name = "of right", surface = "void", region = "right", statistic = "min" }]
"""
    Simulation.from_scenario(runs.write(tmp_path, PLATE + SOLVER + probes), output=tmp_path / "out").run()
    found = at_end(tmp_path / "out")
    poor, good = (300.0 + 100.0 / (1.0 + 10.0 * 0.08 / k) for k in (2.0, 20.0))
    expected = {"coldest": poor, "hottest": good, "mean": 0.5 * (poor + good), "left": 400.0, "of right": good}
    assert found == pytest.approx(expected, abs=2e-3)


# A body that warms evenly by 10 K/s, faster in its left half; from 300 K on.
WARMING = """
domain = { size = [0.1, 0.1, 0.1], cells = [2, 1, 1], material = "a" }
materials.a = { conductivity = 1e-12, density = 1000.0, specific_heat = 1000.0 }
regions = [{ name = "left", material = "a", box = { min = [0, 0, 0], max = [0.05, 0.1, 0.1] } }]
initial.temperature = 300.0
sources = [{ power_density = 1e7 }, { region = "left", power_density = 1e7 }]
time = { end = 4.0, method = "euler", dt = 0.5 }
solver = { device = "cpu", precision = "float64" }
output = { figures = false, probe_every = 1.0 }
"""


@pytest.mark.parametrize("place", ["", 'surface = "y_min"\n', "point = [0.08, 0.1, 0.0]\n"])
def test_the_time_below_a_threshold_is_exact_for_a_straight_line(place: str, tmp_path: Path) -> None:
    """The right half is colder and passes 325 K after 2.5 s, between two rows."""
    probe = f'[[probes]]\nname = "cold"\nstatistic = "time_below"\nthreshold = 325.0\n{place}'
    Simulation.from_scenario(runs.write(tmp_path, WARMING + probe), output=tmp_path / "out").run()
    table = run_tables.read_probes(tmp_path / "out")
    assert table is not None
    assert table.columns["cold", "s"].tolist() == pytest.approx([0.0, 1.0, 2.0, 2.5, 2.5], abs=1e-9)


EXTREMES = """
probes = [{ name = "hottest", region = "left", statistic = "max" },
          { name = "of left", region = "left", statistic = "min" },
          { name = "wall", surface = "x_max", statistic = "max" }]
"""


def test_extremes_have_a_time_and_a_place(tmp_path: Path) -> None:
    Simulation.from_scenario(runs.write(tmp_path, WARMING + EXTREMES), output=tmp_path / "out").run()
    found = json.loads((tmp_path / "out" / "summary.json").read_text())["probe_extremes"]
    expected = {
        "hottest": (380.0, 4.0, [0.025, 0.05, 0.05], "left"),
        "of left": (300.0, 0.0, [0.025, 0.05, 0.05], "left"),
        "wall": (340.0, 4.0, [0.1, 0.05, 0.05], None),
    }
    for name, (temperature, time, point, region) in expected.items():
        assert found[name]["temperature"] == pytest.approx(temperature, abs=1e-9)
        assert found[name]["time"] == time
        assert found[name]["point"] == pytest.approx(point)
        assert found[name]["region"] == region


def test_surfaces_resume_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = '{ name = "cold", surface = "x_max", statistic = "time_below", threshold = 325.0 }'
    scenario = runs.write(tmp_path, WARMING + EXTREMES.replace("]\n", f",\n{below}]\n"))
    Simulation.from_scenario(scenario, output=tmp_path / "whole").run()
    with monkeypatch.context() as patch:
        runs.after_step(patch, 5, runs.interrupt)
        with pytest.raises(BaseException, match="interrupted"):
            Simulation.from_scenario(scenario, output=tmp_path / "half").run()
    Simulation.resume(tmp_path / "half").run()
    assert runs.results(tmp_path / "half") == runs.results(tmp_path / "whole")


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        ('surface = "z_max"', "probes.0.statistic: missing; a surface needs a statistic"),
        ('surface = "top", statistic = "max"', 'probes.0.surface: got "top"'),
        (
            'surface = "z_max", statistic = "extent_x", threshold = 300.0',
            'probes.0.statistic: got "extent_x" of a surface',
        ),
        ('surface = "z_max", point = [0, 0, 0]', "probes.0.surface: got a surface beside a point"),
        ('surface = "void", statistic = "max"', 'probes.0.surface: got "void"; the scenario has no void'),
        ('surface = "y_max", statistic = "max"', 'probes.0.surface: got "y_max"; this face is periodic'),
        ('surface = "x_max", region = "left", statistic = "max"', 'where region "left" has no cell'),
    ],
)
def test_surfaces_that_do_not_exist_are_refused(probe: str, expected: str, tmp_path: Path) -> None:
    text = (
        WARMING
        + f'boundaries = {{ y_min.type = "periodic", y_max.type = "periodic" }}\nprobes = [{{ name = "a", {probe} }}]\n'
    )
    with pytest.raises(ScenarioError) as raised:
        Plan.of(HeatProblem.from_scenario(load(runs.write(tmp_path, text))))
    assert expected in str(raised.value)


def test_insulated_void_has_no_surface_temperature(tmp_path: Path) -> None:
    text = PLATE.replace(
        'void = { type = "convection", coefficient = 10.0, ambient = 300.0 }', 'void.type = "insulated"'
    )
    text = text.replace(
        "boundaries.z_min", 'probes = [{ name = "a", surface = "void", statistic = "max" }]\nboundaries.z_min'
    )
    with pytest.raises(ScenarioError, match="surfaces towards void are insulated"):
        load(runs.write(tmp_path, text))


def test_a_plan_names_the_surface(tmp_path: Path) -> None:
    lines = describe_model(HeatProblem.from_scenario(load(runs.write(tmp_path, WARMING + EXTREMES))))
    assert "probe        wall: max of the surface at x_max" in lines
