"""The JSON Schema: it accepts what heatsim accepts, and refuses unknown keys and wrong kinds of values."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from heatsim.cli import main
from heatsim.scenario import parse
from heatsim.scenario.documents.load import read_document
from heatsim.scenario.documents.reference import SECTIONS
from heatsim.scenario.tables.library import library
from heatsim.study.schema import NAME, scenario_schema, scenario_schema_text

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("scenarios/*.toml"), *ROOT.glob("heatsim/verification/cases/*.toml")])
SCHEMA = jsonschema.Draft7Validator(scenario_schema())
PLATE = """
domain = { size = ["10 cm", 0.1, 0.01], cells = [4, 4, 1] }
material = { conductivity = 40.0, density = "2 g/cm^3", specific_heat = 500.0 }
initial.temperature = "20 degC"
time.end = "1 min"
"""


def errors(text: str) -> list[str]:
    return [error.message for error in SCHEMA.iter_errors(tomllib.loads(PLATE + text))]


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(scenario_schema())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_accepts_every_bundled_scenario(path: Path) -> None:
    assert not list(SCHEMA.iter_errors(read_document(path)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        'boundaries.default = { type = "convection", coefficient = "5 + t", ambient = "20 degC", emissivity = 0.5 }',
        "boundaries.void = { type = 'radiation', emissivity={ temperatures = [3, 4], values = [1, 0] }, ambient = 1 }",
        "boundaries.x_min = { type = 'temperature', value = { times = [0, '1 h'], values = [300, '30 degC'] } }",
        "boundaries.z_max = { type = 'flux', value = { file = 'a.csv', time = 'h', column = 'q', time_unit = 'h' } }",
        "initial.temperature_file = 1",  # a key that does not exist; see below
        "patches = [{ face = 'z_max', rectangle = { min = [0, 0], max = ['5 cm', 0.1] }, type = 'flux', value = 1e4 }]",
        "regions = [{ name = 'a', material = 'void', stl = 'part.stl' }]",
        "regions = [{ name = 'a', material = 'x', cylinder = { from = [0, 0, 0], to = [0, 0, 1], radius = '5 mm' } }]",
        "sources = [{ power = 5.0, during = [0, '5 s'], scale = '1 + sin(t)' }]",
        "materials.copper = 'library:copper'",
        "materials.'library:copper' = { conductivity = 390.0 }",
        "study = { method = 'grid', parameters.material.density = [1, 2] }",
        "study = { method = 'grid', parameters.'material.density' = [1, 2] }",
        "study = { method = 'latin-hypercube', samples = 4, parameters.'time.end' = { min = 1.0, max = '5 s' } }",
    ],
)
def test_it_accepts_every_way_to_write_a_value(text: str) -> None:
    assert bool(errors(text)) == ("temperature_file" in text)


@pytest.mark.parametrize(
    "text",
    [
        "domian = 3",
        "time.ends = 3.0",
        "output.evry = 3.0",
        "boundaries.x_mid = { type = 'insulated' }",
        "boundaries.x_min = { type = 'isolated' }",
        "boundaries.x_min = { type = 'flux', value = 3.0, ambient = 300.0 }",
        "boundaries.x_min = { coefficient = 3.0, ambient = 300.0 }",
        "boundaries.x_min = { type = 'convection', coefficient = -3.0, ambient = 300.0 }",
        "patches = [{ face = 'z_max', type = 'flux', value = 1e4 }]",
        "patches = [{ face = 'top', rectangle = { min = [0, 0], max = [1, 1] }, type = 'flux', value = 1e4 }]",
        "probes = [{ name = 'a', point = [0.0, 0.0] }]",
        "probes = [{ name = 'a', line = { from = [0, 0, 0], to = [1, 0, 0], count = 1 } }]",
        "study = { method = 'latin-hypercube', samples = 0 }",
        "solver.precision = 'float16'",
        "output.figures = 'yes'",
        "solver.kernel = 3",
        "materials.copper = { density = 3.0 }",
        "study = { method = 'gird', parameters = {} }",
    ],
)
def test_it_refuses_what_is_wrong(text: str) -> None:
    assert errors(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "boundaries.x_min = { type = 'convection', coeficient = 3.0, ambient = 300.0 }",
            "Additional properties are not allowed ('coeficient' was unexpected)",
        ),
        ("boundaries.x_min = { type = 'convection', ambient = 300.0 }", "'coefficient' is a required property"),
        ("boundaries.x_min = { type = 'flux', value = 3.0, ambient = 300.0 }", "('ambient' was unexpected)"),
        ("boundaries.void = { type = 'periodic' }", "'periodic' is not one of ['temperature', 'flux', "),
        ("boundaries.x_min = { value = 3.0 }", "'type' is a required property"),
        (
            "patches = [{ face = 'z_max', rectangle = { min = [0, 0], max = [1, 1] }, type = 'flux', valu = 1e4 }]",
            "('valu' was unexpected)",
        ),
        (
            "surfaces = [{ of = 'a', type = 'radiation', emisivity = 0.5, ambient = 300 }]",
            "('emisivity' was unexpected)",
        ),
    ],
)
def test_a_message_names_the_wrong_key_of_a_condition(text: str, message: str) -> None:
    assert any(message in error for error in errors(text)), errors(text)


def test_a_grid_has_cells_along_each_axis() -> None:
    plate = tomllib.loads(PLATE)
    plate["domain"]["cells"] = [4, 0, 1]
    assert [error.message for error in SCHEMA.iter_errors(plate)] == ["0 is less than the minimum of 1"]


def test_names_of_the_library_are_proposed_and_checked() -> None:
    definitions = scenario_schema()["definitions"]
    names = definitions["MaterialOfTheLibrary"]["enum"]
    assert set(names) >= {"library:copper", "library:copper(T)"}
    assert len(names) >= len(library())
    for name in ("'library:copper'", "'void'", "'my own'"):
        assert not errors(f"regions = [{{ name = 'a', everywhere = true, material = {name} }}]")
    for text in (
        "regions = [{ name = 'a', everywhere = true, material = 'library:coper' }]",
        "materials.a = 'library:coper'",
        "layers = [{ material = 'library:coper', thickness = 1e-5, plane = { axis = 'z', at = 0.0 } }]",
    ):
        assert errors(text)


def test_an_editor_knows_the_keys_before_the_type() -> None:
    """Completion before the type is written: the keys of all types stand in the table itself."""
    face = scenario_schema()["definitions"]["Condition6"]
    assert set(face["properties"]) == {
        "type", "value", "power", "coefficient", "ambient", "emissivity", "surroundings", "flux"
    }  # fmt: skip
    assert all(schema["description"] for schema in face["properties"].values())


def test_every_key_has_its_description() -> None:
    schema = scenario_schema()
    for _, model in SECTIONS:
        found = _object(schema, model.__name__)
        for name, info in model.model_fields.items():
            if name != "condition":
                assert str(info.description) in found["properties"][info.alias or name]["description"]


def _object(schema: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = schema if name == "Scenario" else schema["definitions"][name]
    return found


def test_the_file_beside_the_scenarios_is_current_and_they_refer_to_it() -> None:
    current = (ROOT / "scenarios" / NAME).read_text(encoding="utf-8") == scenario_schema_text()
    assert current, "run python -m heatsim.study.schema"
    for path in ROOT.glob("scenarios/*.toml"):
        assert path.read_text(encoding="utf-8").startswith(f"#:schema {NAME}\n"), path.name


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == scenario_schema_text()
    assert json.loads(scenario_schema_text()).items() >= scenario_schema().items()
    assert main(["schema", str(tmp_path / "a.json")]) == 0
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == scenario_schema_text()
    assert main(["schema", str(tmp_path / "no" / "a.json")]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_the_command_does_not_replace_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "plate.toml"
    scenario.write_text(PLATE, encoding="utf-8")
    assert main(["schema", str(scenario)]) == 2
    assert "the name must end in .json; nothing was written" in capsys.readouterr().err
    assert scenario.read_text(encoding="utf-8") == PLATE


def test_what_heatsim_accepts_is_what_the_plate_is() -> None:
    assert parse(tomllib.loads(PLATE), ROOT / "plate.toml").domain.size == (0.1, 0.1, 0.01)
