"""The library of materials: its numbers, and the places of a scenario that may name it."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from refusals import mistakes_of
from scenario_text import COMPOSITE, write

from heatsim.cli import main
from heatsim.errors import ScenarioError
from heatsim.scenario import load, parse, write_resolved
from heatsim.scenario.tables.library import library, properties_of
from heatsim.scenario.tables.materials import Material

# Diffusivities in 1e-6 m²/s that Tables A.1, A.2 and A.3 of Incropera print beside the other columns.
DIFFUSIVITIES = {
    **{"aluminium": 97.1, "aluminium-2024": 73.0, "brass": 33.9, "bronze": 14.0, "copper": 117.0, "gold": 127.0},
    **{"iron": 23.1, "lead": 24.1, "magnesium": 87.6, "molybdenum": 53.7, "nickel": 23.0, "platinum": 25.1},
    **{"silver": 174.0, "carbon-steel": 17.7, "steel-304": 3.95, "steel-316": 3.48, "tin": 40.1, "titanium": 9.32},
    **{"tungsten": 68.3, "zinc": 41.8, "germanium": 34.7, "silicon": 89.2, "silicon-carbide": 230.0, "alumina": 11.9},
    **{"fused-silica": 0.834, "air": 22.5, "water": 0.147},
}
NAMES = [name + suffix for name in library() for suffix in ("", "(T)")[: 2 if library()[name].table else 1]]


@pytest.mark.parametrize("name", NAMES)
def test_every_material_is_one_of_a_scenario(name: str) -> None:
    Material.model_validate(properties_of(f"library:{name}"))


def test_constant_values_are_those_of_the_tables_within_their_range() -> None:
    """Exactly at the stated temperature; to 10 % within the range, as far as the table reaches."""
    for name, material in library().items():
        low, high = material.range
        assert low <= material.at <= high
        if material.table:
            T, k, cp = np.array(material.table).T
            assert (np.diff(T) > 0.0).all()
            constant = np.array([material.conductivity[0], material.specific_heat])
            at = [np.interp(material.at, T, values) for values in (k, cp)]
            assert at == constant.tolist(), name
            within = np.linspace(max(low, T[0]), min(high, T[-1]), 101)
            for values, number in zip((k, cp), constant, strict=True):
                assert np.abs(np.interp(within, T, values) / number - 1.0).max() <= 0.1, name


@pytest.mark.parametrize(("name", "diffusivity"), DIFFUSIVITIES.items())
def test_diffusivities_are_those_that_the_source_prints(name: str, diffusivity: float) -> None:
    material = library()[name]
    found = material.conductivity[0] / (material.density * material.specific_heat)
    assert found == pytest.approx(1e-6 * diffusivity, rel=0.02)


def test_the_library_can_be_named_wherever_a_material_can(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.full((4, 6, 8), 3, dtype=np.uint8))
    scenario = load(
        write(
            tmp_path,
            ('material = "copper"', 'material = "library:copper"'),
            ('material = "silicon"', 'material = "library:silicon(T)"'),
            ('between = ["copper", "silicon"]', 'between = ["library:copper", "library:silicon(T)"]'),
            ("[materials.copper]", '[materials]\nboard = "library:fr4"\n[materials.copper]'),
            extra='[[regions]]\nname = "scan"\nlabels = { file = "labels.npy", materials = { "3" = "library:ice" } }\n',
            text=COMPOSITE,
        )
    )
    assert list(scenario.materials) == [
        *("board", "copper", "silicon", "wax", "library:copper", "library:silicon(T)", "library:ice")
    ]
    assert scenario.materials["library:copper"].conductivity == (401.0, 401.0, 401.0)
    assert scenario.materials["library:silicon(T)"].conductivity_at(350.0) == pytest.approx((123.45,) * 3)
    assert scenario.materials["board"].conductivity == (0.81, 0.81, 0.29)
    assert [region.material for region in scenario.regions][:2] == ["library:silicon(T)", "wax"]
    assert scenario.contacts[0].between == ("library:copper", "library:silicon(T)")
    # The resolved scenario has the values; the library is no longer needed.
    write_resolved(scenario, tmp_path / "out")
    resolved = tomllib.loads((tmp_path / "out" / "scenario.toml").read_text())
    assert resolved["materials"]["library:copper"]["density"] == 8933.0
    assert load(tmp_path / "out" / "scenario.toml") == scenario


def test_one_material_of_the_library_is_enough(tmp_path: Path) -> None:
    table = "[material]\nconductivity = 237.0\ndensity = 2700.0\nspecific_heat = 900.0\n"
    text = write(tmp_path).read_text()
    alone = parse(tomllib.loads('material = "library:brick"\n' + text.replace(table, "")), tmp_path / "rod.toml")
    assert alone.palette[0][1].conductivity == (0.72, 0.72, 0.72)
    named = write(tmp_path, (table, ""), ("[domain]", '[domain]\nmaterial = "library:brick"'))
    assert load(named).palette[0][1] == alone.palette[0][1]
    # Single values can be replaced, from the command line too.
    changed = load(named, ["materials.library:brick.conductivity=0.8"])
    assert changed.palette[0][1].conductivity == (0.8, 0.8, 0.8)
    assert changed.palette[0][1].density == 1920.0


def test_a_wrong_name_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    path = write(tmp_path, text=COMPOSITE)
    for override, key, fragments in (
        ("domain.material=library:coper", "domain.material", ['did you mean "library:copper"?', "heatsim materials"]),
        ("regions.1.material=library:fr4(T)", "regions.1.material", ["only constant properties"]),
        ("regions.1.material=brick", "regions.1.material", ['for the material of the library write "library:brick"']),
        ("materials.wax=library:parafin", "materials.wax", ['did you mean "library:paraffin"?']),
        ("materials.wax=paraffin", "materials.wax", ['got "paraffin"']),
    ):
        found = dict(mistakes_of(path, [override]))
        for fragment in fragments:
            assert fragment in found[key]


def test_a_missing_material_is_one_mistake_without_a_far_proposal(tmp_path: Path) -> None:
    """Most letters of "library:oak" and "library:air" are equal, but those of the names "oak" and "air" are not."""
    table = "[material]\nconductivity = 237.0\ndensity = 2700.0\nspecific_heat = 900.0\n"
    named = write(tmp_path, (table, ""), ("[domain]", '[domain]\nmaterial = "library:oak"'))
    assert mistakes_of(named) == [
        ("domain.material", 'got "library:oak"; the library has no such material, `heatsim materials` lists all')
    ]


def test_the_command_lists_values_ranges_and_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["materials"]) == 0
    listed = capsys.readouterr().out
    for material in library().values():
        assert f"\n{material.name} " in listed
        assert material.reference in listed
    assert main(["materials", "brass"]) == 0
    shown = capsys.readouterr().out
    assert tomllib.loads(shown)["materials"]["library:brass"]["density"] == 8530.0
    assert "Table A.1" in shown
    assert main(["materials", "bras"]) == 2
    assert 'did you mean "brass"?' in capsys.readouterr().err


def test_a_mistake_elsewhere_does_not_hide_materials_of_the_library() -> None:
    """All that could be read is checked, also with materials of the library."""
    text = """
[domain]
size = [1.0, 1.0, 1.0]
cells = [4, 4, 4]
material = "void"
[[regions]]
name = "bar"
material = "library:copper"
box = { min = [0, 0, 0], max = [1, 1, 0.5] }
[[surfaces]]
of = "bar"
type = "convection"
coefficient = -3.0
ambient = 300.0
[time]
method = "steady"
"""
    with pytest.raises(ScenarioError) as caught:
        parse(tomllib.loads(text), "bar.toml")
    assert [mistake.key for mistake in caught.value.mistakes] == ["surfaces.0.coefficient"]
