"""Hints about materials: values that were probably meant in other units."""

from pathlib import Path

import pytest

from heatsim.scenario import Scenario, parse, parse_dict, read_document
from heatsim.scenario.tables.library import library_names

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def scenario(k: object, density: object, heat: object, initial: object = 300.0, **others: object) -> Scenario:
    return parse_dict(
        {
            "domain": {"size": [0.1] * 3, "cells": [2, 2, 2]},
            "material": {"conductivity": k, "density": density, "specific_heat": heat},
            "initial": {"temperature": initial},
            "time": {"end": 1.0},
            **others,
        }
    )


@pytest.mark.parametrize(
    ("k", "density", "heat", "expected"),
    [
        (50.0, 7.8, 500.0, 'material.density = 7.8 kg/m³: no material as light as this conducts 50 W/(m K); if the '
         'density is in g/cm³, write "7.8 g/cm^3"'),
        (237.0, 2.7, 900.0, "material.density = 2.7 kg/m³"),
        ([20.0, 20.0, 1.0], 1.85, 900.0, "material.density = 1.85 kg/m³"),
        (1.0, 2.5, 750.0, "material.density = 2.5 kg/m³"),  # glass
        (35.0, 16.0, 1210.0, "material.density = 16 kg/m³: no material as light as this conducts 35 W/(m K)"),
        (0.05, 7850.0, 434.0, "material.conductivity = 0.05 W/(m K): no material with 7850 kg/m³"),
        (237.0, 2700.0, 0.9, 'material.specific_heat = 0.9 J/(kg K): above 150 K no material has a specific heat as '
         'small as this; if it is in kJ/(kg K), write "0.9 kJ/(kg K)"'),
        (0.6, 1000.0, 4.18, "material.specific_heat = 4.18 J/(kg K)"),
        ("237 - 0.01*T", 2700.0, 0.9, "material.specific_heat = 0.9 J/(kg K)"),
    ],
)  # fmt: skip
def test_values_in_other_units_are_reported(k: object, density: float, heat: float, expected: str) -> None:
    (hint,) = scenario(k, density, heat).hints
    assert hint.startswith(expected)


@pytest.mark.parametrize(
    ("k", "density", "heat", "initial"),
    [
        (0.026, 1.2, 1005.0, 300.0),  # air
        (2.8, 1.2, 1005.0, 300.0),  # air in a cavity of 0.5 m, with its convection and radiation
        (0.18, 0.082, 14300.0, 300.0),  # hydrogen
        (0.2, 8.0, 14300.0, 300.0),  # hydrogen at 100 bar
        (0.016, 1.78, 520.0, 300.0),  # argon
        (0.02, 3.0, 1000.0, 300.0),  # silica aerogel
        (0.035, 15.0, 1400.0, 300.0),  # foam
        (2.0, 12.0, 710.0, 300.0),  # graphene foam
        (0.4, 24.0, 1100.0, 1300.0),  # ceramic blanket at 1000 °C
        (60.0, 7850.0, 434.0, 300.0),  # steel
        (10.0, 100.0, 900.0, 300.0),  # metal foam
        (0.39, 8000.0, 180.0, 300.0),  # a thermoelectric compound of thallium
        (20000.0, 8960.0, 0.9, 10.0),  # copper at 10 K
        (0.613, 997.0, 4179.0, 300.0),  # water
        (2000.0, 2200.0, 129.0, 300.0),
        (1.0, 1.0, 1.0, 300.0),  # no units
    ],
)
def test_real_materials_are_not_questioned(k: float, density: float, heat: float, initial: float) -> None:
    assert scenario(k, density, heat, initial).hints == ()


def test_materials_of_the_library_are_not_questioned() -> None:
    names = library_names()
    regions = [
        {"name": str(number), "material": name, "box": {"min": [0.0] * 3, "max": [0.1] * 3}}
        for number, name in enumerate(names)
    ]
    document = {
        "domain": {"size": [0.1] * 3, "cells": [2, 2, 2], "material": names[0]},
        "regions": regions,
        "initial": {"temperature": 300.0},
        "time": {"end": 1.0},
    }
    found = parse_dict(document)
    assert len(found.named_materials) == len(names)
    assert found.hints == ()


def test_a_material_with_a_name_is_told_by_its_name() -> None:
    document = {
        "domain": {"size": [0.1] * 3, "cells": [2, 2, 2], "material": "hot plate"},
        "materials": {"hot plate": {"conductivity": 50.0, "density": 7.8, "specific_heat": 0.5}},
        "initial": {"temperature": 300.0},
        "time": {"end": 1.0},
    }
    density, heat = parse_dict(document).hints
    assert density.startswith('materials."hot plate".density = 7.8 kg/m³')
    assert heat.startswith('materials."hot plate".specific_heat = 0.5 J/(kg K)')


def test_a_steady_state_has_no_density() -> None:
    time = {"method": "steady"}
    held = {"default": {"type": "temperature", "value": 300.0}}
    assert scenario(50.0, 7.8, 0.5, time=time, boundaries=held).hints == ()


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_no_bundled_scenario_has_such_a_hint(path: Path) -> None:
    document = {key: table for key, table in read_document(path).items() if key != "study"}
    assert parse(document, path).hints == ()
