"""Conditions on surfaces of regions, contacts between regions, and powers of surfaces."""

import csv
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest

import heatsim
from heatsim.errors import ScenarioError
from heatsim.physics.geometry.division import Division
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import load, parse, write_resolved

# Two blocks of one material in void, a ball of another on the first; 8 cells of 1 cm along x.
TEXT = """
[domain]
size = [0.08, 0.04, 0.04]
cells = [8, 4, 4]
material = "void"

[materials.steel]
conductivity = 50.0
density = 8000.0
specific_heat = 500.0

[materials.copper]
conductivity = 400.0
density = 9000.0
specific_heat = 400.0

[[regions]]
name = "left"
material = "steel"
box = { min = [0.0, 0.0, 0.0], max = [0.02, 0.03, 0.03] }

[[regions]]
name = "right"
material = "steel"
box = { min = [0.02, 0.0, 0.0], max = [0.04, 0.03, 0.03] }

[[regions]]
name = "cap"
material = "copper"
box = { min = [0.06, 0.0, 0.0], max = [0.08, 0.04, 0.04] }

[initial]
temperature = 300.0

[time]
end = 10.0

[solver]
device = "cpu"
precision = "float64"

[output]
figures = false
"""
NO_SLOPE = 1e-12


def scenario(extra: str, text: str = TEXT) -> heatsim.scenario.Scenario:
    return parse(tomllib.loads(text + extra), "blocks.toml")


def run(extra: str, folder: Path, *overrides: str) -> heatsim.Simulation:
    path = folder / "blocks.toml"
    path.write_text(TEXT + extra, encoding="utf-8")
    simulation = heatsim.Simulation.from_scenario(path, overrides, output=folder / "out", overwrite=True)
    simulation.run()
    return simulation


def last_row(folder: Path) -> dict[str, float]:
    with open(folder / "out" / "energy.csv", newline="", encoding="utf-8") as file:
        row = list(csv.DictReader(file))[-1]
    return {name.removesuffix(" (J)"): float(value) for name, value in row.items() if name.endswith(" (J)")}


def test_a_contact_of_regions_prevails_over_one_of_materials() -> None:
    text = TEXT.replace("[0.06, 0.0, 0.0]", "[0.04, 0.0, 0.0]")
    contacts = '[[contacts]]\nbetween = ["steel", "copper"]\nresistance = 1e-4\n'
    more = '[[contacts]]\nbetween = ["cap", "right"]\nresistance = 2e-4\n'
    more += '[[contacts]]\nbetween = ["left", "right"]\nresistance = 3e-4\n'
    for order in (contacts + more, more + contacts):
        of = scenario(order, text)
        division, materials = Division.of(of), HeatProblem.from_scenario(of).materials
        named = {
            frozenset(division.kinds[place] for place in pair): division.resistances[pair] for pair in division.contacts
        }
        steel, copper = ("steel", ""), ("copper", "")
        left, right, cap = ("steel", "left"), ("steel", "right"), ("copper", "cap")
        assert named[frozenset((cap, right))] == 2e-4
        assert named[frozenset((cap, left))] == named[frozenset((steel, copper))] == 1e-4
        assert named[frozenset((left, right))] == 3e-4
        assert frozenset((steel, left)) not in named
        # 9 cells of 1 cm² touch in each plane.
        areas = {
            frozenset(division.kinds[place] for place in pair): area for pair, area in materials.surface_areas.items()
        }
        assert areas == pytest.approx({frozenset((cap, right)): 9e-4, frozenset((left, right)): 9e-4})


def test_a_region_and_the_material_around_it_touch() -> None:
    """A die of the plate's own material, with a resistance to the rest of the plate."""
    text = TEXT.replace('material = "void"', 'material = "steel"')
    of = scenario('[[contacts]]\nbetween = ["left", "steel"]\nresistance = 1e-4\n', text)
    materials = HeatProblem.from_scenario(of).materials
    # 9 cells beside "right", which is of the same material, and 6 above each of y and z.
    assert sum(materials.surface_areas.values()) == pytest.approx(21e-4)


def test_a_name_of_a_material_and_of_a_region_is_that_of_the_material() -> None:
    text = TEXT.replace('name = "left"', 'name = "steel"').replace("[0.06, 0.0, 0.0]", "[0.04, 0.0, 0.0]")
    division = Division.of(scenario('[[contacts]]\nbetween = ["steel", "cap"]\nresistance = 1e-4\n', text))
    assert [region for _, region in division.kinds] == ["", "", "cap", ""]


@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_powers_of_surfaces_enter_exactly(tmp_path: Path, method: str) -> None:
    """5 W on a patch over parts of cells and void, 3 W/s·t into a region through void surfaces: 50 J and 150 J."""
    simulation = run(
        '[[patches]]\nface = "z_min"\nrectangle = { min = [0.013, 0.0], max = [0.057, 0.0123] }\ntype = "flux"\n'
        'power = 5.0\n[[surfaces]]\nof = "cap"\ntype = "flux"\npower = "3*t"\n',
        tmp_path,
        f'time.method="{method}"',
    )
    row = last_row(tmp_path)
    assert row["patch 1"] == pytest.approx(50.0, rel=1e-12)
    assert row["void"] == pytest.approx(150.0, rel=1e-12)
    # The solver of implicit steps leaves an imbalance of about 1e-8.
    assert row["stored"] == pytest.approx(200.0, rel=1e-6)
    field = simulation.temperature
    assert (field[:, :, 6:] > 300.0).all()
    warm = field[:3, :3, :4]
    assert 2.0 * 18e-6 * 4e6 * (warm.mean() - 300.0) == pytest.approx(50.0, rel=1e-6)


def test_a_power_in_a_steady_state(tmp_path: Path) -> None:
    """20 W through 16 cm² and 2 cm of copper to a held face: a straight line of 0.625 K."""
    simulation = run(
        '[boundaries]\nx_max = { type = "temperature", value = 300.0 }\n'
        '[[surfaces]]\nof = "cap"\ntype = "flux"\npower = 20.0\n'
        '[[regions]]\nname = "gap"\nmaterial = "void"\nbox = { min = [0.0, 0.0, 0.0], max = [0.06, 0.04, 0.04] }\n',
        tmp_path,
        'time={ method = "steady", tolerance = 1e-8 }',
    )
    np.testing.assert_allclose(
        simulation.temperature[:, :, 6:] - 300.0, np.broadcast_to([0.46875, 0.15625], (4, 4, 2)), rtol=1e-7
    )


def test_conditions_of_regions_differ(tmp_path: Path) -> None:
    """Lumped: copper cools by its own film towards its own air; the steel is insulated."""
    simulation = run(
        '[[surfaces]]\nof = "cap"\ntype = "convection"\ncoefficient = 50.0\nambient = 400.0\n',
        tmp_path,
        "time.end=1000",
    )
    field = simulation.temperature
    np.testing.assert_allclose(field[:3, :3, :4], 300.0, rtol=NO_SLOPE)
    # One side of 16 cells towards void: C·V = 3.6e6·32e-6, h·A = 50·16e-4; Bi = 2.5e-3.
    rate = 50.0 * 16e-4 / (3.6e6 * 32e-6) / (1.0 + 2.5e-3 / 3.0)
    np.testing.assert_allclose(field[:, :, 6:].mean(), 400.0 - 100.0 * math.exp(-rate * 1000.0), rtol=5e-5)


def test_materials_that_vary_have_contacts_between_regions(tmp_path: Path) -> None:
    """Two regions of a material whose conductivity falls to a half: the resistance does not change with it."""
    text = TEXT.replace(
        "conductivity = 50.0", "conductivity = { temperatures = [300.0, 400.0], values = [50.0, 25.0] }"
    )
    text = text.replace("0.03, 0.03]", "0.04, 0.04]")
    path = tmp_path / "blocks.toml"
    path.write_text(
        text + '[[contacts]]\nbetween = ["left", "right"]\nresistance = 5e-4\n'
        '[boundaries]\nx_min = { type = "temperature", value = 400.0 }\n'
        '[[surfaces]]\nof = "right"\ntype = "temperature"\nvalue = 300.0\n'
        '[[surfaces]]\nof = "cap"\ntype = "temperature"\nvalue = 300.0\n',
        encoding="utf-8",
    )
    overrides = ['time={ method = "steady", tolerance = 1e-6 }', "domain.cells=[64, 1, 1]"]
    simulation = heatsim.Simulation.from_scenario(path, overrides, output=tmp_path / "out")
    simulation.run()
    T = simulation.temperature[0, 0, :32]

    def rise(integral: float) -> float:
        """The temperature above 300 K up to which the conductivity has this integral."""
        return (50.0 - math.sqrt(2500.0 - 0.5 * integral)) / 0.25

    def surplus(q: float) -> float:
        return rise(3750.0 - 0.02 * q) - rise(0.02 * q) - 5e-4 * q

    low, high = 0.0, 3750.0 / 0.04
    for _ in range(100):
        low, high = ((low + high) / 2.0, high) if surplus((low + high) / 2.0) > 0.0 else (low, (low + high) / 2.0)
    x = (np.arange(32) + 0.5) * 0.00125
    known = [rise(3750.0 - low * at) if at < 0.02 else rise(low * (0.04 - at)) for at in x]
    np.testing.assert_allclose(T - 300.0, known, atol=1e-3)


def test_the_resolved_scenario_has_surfaces(tmp_path: Path) -> None:
    of = scenario('[[surfaces]]\nof = "cap"\ntype = "flux"\npower = "3 W"\n')
    write_resolved(of, tmp_path)
    resolved = tomllib.loads((tmp_path / "scenario.toml").read_text(encoding="utf-8"))
    assert resolved["surfaces"] == [{"of": "cap", "type": "flux", "power": 3.0}]
    assert load(tmp_path / "scenario.toml") == of


@pytest.mark.parametrize(
    ("extra", "key", "fragment"),
    [
        ('[[surfaces]]\nof = "lefd"\ntype = "insulated"', "surfaces.0.of", 'did you mean "left"?'),
        ('[[surfaces]]\ntype = "insulated"', "surfaces.0.of", "missing"),
        ('[[surfaces]]\nof = "cap"\ntype = "periodic"', "surfaces.0.type", "one of"),
        ('[[surfaces]]\nof = "cap"\ntype = "flux"\nvalu = 3', "surfaces.0.valu", 'did you mean "value"?'),
        ('[[surfaces]]\nof = "cap"\ntype = "flux"\nvalue = 3\npower = 4', "surfaces.0", "write one of them"),
        ('[[surfaces]]\nof = "cap"\ntype = "insulated"\n' * 2, "surfaces.1.of", "a second time"),
        ('[[surfaces]]\nof = "cap"\ntype = "flux"\nvalue = "log(t - 1)"', "surfaces.0.value", "nan"),
        ('[[contacts]]\nbetween = ["cap", "lef"]\nresistance = 1', "contacts.0.between.1", 'did you mean "left"?'),
        ('[[contacts]]\nbetween = ["cap", "void"]\nresistance = 1', "contacts.0.between.1", "does not conduct"),
        (
            '[[contacts]]\nbetween = ["left", "copper"]\nresistance = 1\n'
            '[[contacts]]\nbetween = ["cap", "steel"]\nresistance = 2',
            "contacts.1.between",
            'where "left" touches "cap"',
        ),
    ],
)
def test_mistakes_are_reported_at_their_keys(extra: str, key: str, fragment: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(extra)
    found = {mistake.key: mistake.message for mistake in caught.value.mistakes}
    assert fragment in found[key], found


def test_a_power_needs_cells_and_a_surface_needs_void() -> None:
    patch = (
        '[[patches]]\nface = "x_min"\nrectangle = { min = [0.03, 0.0], max = [0.04, 0.04] }\ntype = "flux"\npower = 1.0'
    )
    with pytest.raises(ScenarioError, match=r"patches\.0\.power: no cell that conducts"):
        HeatProblem.from_scenario(scenario(patch))
    solid = TEXT.replace('material = "void"', 'material = "steel"')
    with pytest.raises(ScenarioError, match=r'surfaces\.0: got type "flux" while no region has the material "void"'):
        scenario('[[surfaces]]\nof = "cap"\ntype = "flux"\nvalue = 1.0', solid)


BOTH_SIDES = (
    '[boundaries]\nvoid = { type = "convection", coefficient = 5.0, ambient = 310.0 }\n'
    '[[surfaces]]\nof = "cap"\ntype = "flux"\npower = "3*t"\n'
    '[[surfaces]]\nof = "left"\ntype = "convection"\ncoefficient = 20.0\nambient = 280.0\n'
)


@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_each_surface_of_a_region_has_a_column(tmp_path: Path, method: str) -> None:
    """150 J into the cap; what is left of `void` passes the rest of the surfaces, those of the region "right"."""
    run(BOTH_SIDES, tmp_path, f'time.method="{method}"')
    row = last_row(tmp_path)
    assert row["surface cap"] == pytest.approx(150.0, rel=1e-12)
    assert row["surface left"] < 0.0
    assert row["void"] - row["surface cap"] - row["surface left"] > 0.0
    assert abs(row["residual"]) < 1e-9


def test_the_surfaces_of_a_steady_state_have_columns(tmp_path: Path) -> None:
    text = BOTH_SIDES.replace('type = "flux"\npower = "3*t"', 'type = "convection"\ncoefficient = 9.0\nambient = 290.0')
    run(text, tmp_path, 'time.method="steady"')
    with open(tmp_path / "out" / "energy.csv", newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert float(row["surface cap (W)"]) == pytest.approx(0.0, abs=1e-6)  # the cap touches nothing else
    assert float(row["surface left (W)"]) < -1e-3
    assert float(row["void (W)"]) == pytest.approx(0.0, abs=1e-6)
