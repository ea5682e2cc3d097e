"""Conductivities along three axes that change with temperature, and regions that turn the axes of their material."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import heatsim
from heatsim.errors import ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import load, parse, write_resolved
from heatsim.scenario.tables.materials import Material
from heatsim.verification.case import FOLDER
from heatsim.verification.materials import orthotropic_plate

TEXT = """
[domain]
size = [0.06, 0.04, 0.05]
cells = [6, 4, 5]
material = "base"

[materials.base]
conductivity = [30.0, 10.0, 5.0]
density = 2000.0
specific_heat = 500.0

[[regions]]
name = "block"
material = "base"
axes = ["y", "z", "x"]
box = { min = [0.0, 0.0, 0.0], max = [0.03, 0.04, 0.05] }

[initial]
temperature = "300 + 40*sin(50*x + 70*y + 30*z)"

[boundaries]
default = { type = "convection", coefficient = 50.0, ambient = 350.0 }

[time]
end = 20.0

[solver]
device = "cpu"
precision = "float64"

[output]
figures = false
"""
LINEAR = "(1 + 0.001*(T - 300))"


def material(conductivity: object) -> Material:
    return Material.model_validate({"conductivity": conductivity, "density": 1.0, "specific_heat": 1.0})


def test_three_forms_of_the_same_conductivities() -> None:
    expressions = material([f"30*{LINEAR}", f"10*{LINEAR}", f"5*{LINEAR}"])
    table = material({"temperatures": [200.0, 900.0], "values": [[27.0, 9.0, 4.5], [48.0, 16.0, 8.0]]})
    tables = material([{"temperatures": [200.0, 900.0], "values": [0.9 * k, 1.6 * k]} for k in (30.0, 10.0, 5.0)])
    for T in (250.0, 300.0, 512.5, 900.0):
        known = np.array([30.0, 10.0, 5.0]) * (1.0 + 0.001 * (T - 300.0))
        for one in (expressions, table, tables):
            np.testing.assert_allclose(one.conductivity_at(T), known, rtol=1e-12)
    assert expressions.varies
    assert [key for key, _, _ in expressions.formulas] == ["conductivity"]
    assert table.table_ends == (("conductivity", 200.0, 900.0),)
    assert not material(["30", "10", "5"]).varies


@pytest.mark.parametrize("method", ["euler", "implicit"])
def test_a_turned_region_is_a_material_with_other_conductivities(tmp_path: Path, method: str) -> None:
    """x, y and z of the material lie along y, z and x: 5 along x, 30 along y, 10 along z."""
    plain = TEXT.replace('axes = ["y", "z", "x"]\n', "").replace('material = "base"\nbox', 'material = "other"\nbox')
    plain += "[materials.other]\nconductivity = [5.0, 30.0, 10.0]\ndensity = 2000.0\nspecific_heat = 500.0\n"
    fields = []
    for name, text in (("turned", TEXT), ("plain", plain)):
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        simulation = heatsim.Simulation.from_scenario(path, [f'time.method="{method}"'], output=tmp_path / name)
        simulation.run()
        fields.append(simulation.temperature)
    assert fields[0].tobytes() == fields[1].tobytes()


def test_a_turned_material_that_varies(tmp_path: Path) -> None:
    """Rotation by 90° about z: the field is that of the same body with x and y exchanged."""
    varying = TEXT.replace("[30.0, 10.0, 5.0]", f'["30*{LINEAR}", "10*{LINEAR}", "5*{LINEAR}"]')
    varying = varying.replace("max = [0.03, 0.04, 0.05]", "max = [0.06, 0.06, 0.05]").replace('"z", "x"]', '"x", "z"]')
    other = varying.replace(
        "size = [0.06, 0.04, 0.05]\ncells = [6, 4, 5]", "size = [0.04, 0.06, 0.05]\ncells = [4, 6, 5]"
    )
    other = other.replace('axes = ["y", "x", "z"]\n', "").replace("50*x + 70*y", "70*x + 50*y")
    fields = []
    for name, text in (("one", varying), ("other", other)):
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        simulation = heatsim.Simulation.from_scenario(
            path, ["time.method=euler", "time.dt=0.5"], output=tmp_path / name
        )
        simulation.run()
        fields.append(simulation.temperature)
    np.testing.assert_allclose(fields[0], fields[1].swapaxes(1, 2), rtol=1e-12)


def test_the_order_of_a_body_that_varies_and_turns(tmp_path: Path) -> None:
    """Half the spacing, a quarter of the error."""
    case = FOLDER / "steady_orthotropic.toml"
    errors = []
    for n in (12, 24):
        overrides = [
            f"domain.cells=[{2 * n},{n},1]",
            "solver.device=cpu",
            "time.tolerance=1e-6",
            "output.figures=false",
        ]
        simulation = heatsim.Simulation.from_scenario(case, overrides, output=tmp_path / str(n))
        simulation.run()
        x, y = (simulation.plan.problem.grid.centres(axis) for axis in (0, 1))
        known = 300.0 + orthotropic_plate(x[None, None, :], y[None, :, None], np.zeros(1), 0.0)
        errors.append(np.sqrt(np.mean((simulation.temperature - known) ** 2)))
    assert np.log2(errors[0] / errors[1]) > 1.9


def test_the_resolved_scenario_has_all_three(tmp_path: Path) -> None:
    text = TEXT.replace("[30.0, 10.0, 5.0]", f'["30*{LINEAR}", "10*{LINEAR}", "5*{LINEAR}"]')
    scenario = parse(tomllib.loads(text), "block.toml")
    write_resolved(scenario, tmp_path)
    resolved = tomllib.loads((tmp_path / "scenario.toml").read_text(encoding="utf-8"))
    assert resolved["materials"]["base"]["conductivity"] == [f"30*{LINEAR}", f"10*{LINEAR}", f"5*{LINEAR}"]
    assert resolved["regions"][0]["axes"] == ["y", "z", "x"]
    assert load(tmp_path / "scenario.toml") == scenario


@pytest.mark.parametrize(
    ("change", "key", "fragment"),
    [
        (("[30.0, 10.0, 5.0]", '["30*T", "10*T", 5.0]'), "materials.base.conductivity", "the same at all temperatures"),
        (("[30.0, 10.0, 5.0]", '["30*T", "10*T"]'), "materials.base.conductivity", "three numbers"),
        (("[30.0, 10.0, 5.0]", '["30*T", "10*x", 5.0]'), "materials.base.conductivity.1", '"x" is not known'),
        (("[30.0, 10.0, 5.0]", '["30*T", -1.0, 5.0]'), "materials.base.conductivity.1", "greater than 0"),
        (('["y", "z", "x"]', '["y", "z", "z"]'), "regions.0.axes", "in any order"),
        (('["y", "z", "x"]', '"yzx"'), "regions.0.axes", "in any order"),
    ],
)
def test_mistakes_are_reported_at_their_keys(change: tuple[str, str], key: str, fragment: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        HeatProblem.from_scenario(parse(tomllib.loads(TEXT.replace(*change)), "block.toml"))
    found = {mistake.key: mistake.message for mistake in caught.value.mistakes}
    assert fragment in found[key], found
