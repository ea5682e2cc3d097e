"""Rules between tables: reported together with the mistakes within tables, and silent about unreadable values."""

import inspect
import tomllib
from pathlib import Path

import numpy as np
import pytest
from covering import SLOW
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import anything, assert_is_read_or_refused, mistakes_of
from scenario_text import COMPOSITE, TEXT, write

from heatsim.scenario import parse
from heatsim.scenario.documents.overrides import Override
from heatsim.scenario.rules import axial, checks, couplings, interfaces, material_names, nodes, placement
from heatsim.scenario.rules.checks import CHECKS


def test_every_rule_is_in_the_list_and_says_what_it_requires():
    rules = [
        function
        for module in (checks, axial, couplings, interfaces, material_names, nodes, placement)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        if not name.startswith("_") and list(inspect.signature(function).parameters) == ["scenario"]
    ]
    assert set(rules) == set(CHECKS)
    assert len(set(CHECKS)) == len(CHECKS)
    assert all(rule.__doc__ for rule in CHECKS)


# Mistakes inside one table of COMPOSITE; the rest of the table is still compared with other tables.
WITHIN = {
    "domain": ("cells = [8, 6, 4]", "cells = [8, 6, 4]\ncolour = 1", "domain.colour"),
    "a material": ("density = 8960.0", "density = -1", "materials.copper.density"),
    "a region": ('"60 degC"', "-60", "regions.0.initial_temperature"),
    "a face": ("emissivity = 0.9", "emissivity = 2", "boundaries.x_max.emissivity"),
    "a patch": ("value = 2e4", "value = true", "patches.0.value"),
    "a source": ("power = 120.0\n", "power = false\n", "sources.0.power"),
    "time": ("stop_below = 1e-4", "stop_below = -1", "time.stop_below"),
}
# Mistakes between two tables of COMPOSITE.
BETWEEN = {
    "unknown material": (
        'name = "die"\nmaterial = "silicon"',
        'name = "die"\nmaterial = "slicon"',
        "regions.0.material",
    ),
    "unknown region": ('region = "die"\npower', 'region = "dye"\npower', "sources.0.region"),
    "patch off the face": ("max = [0.01, 0.01] }", "max = [0.01, 0.031] }", "patches.0.rectangle.max.1"),
    "probe outside": ("to = [0.04, 0.015, 0.01], count", "to = [0.05, 0.015, 0.01], count", "probes.1.line.to.0"),
    "expression out of range": ('"sin(t)"', '"1/t"', "sources.1.scale"),
}


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("between", BETWEEN)
def test_mistakes_within_and_between_tables_are_reported_together(within, between, tmp_path):
    changes = [WITHIN[within], BETWEEN[between]]
    path = write(tmp_path, *((old, new) for old, new, _ in changes), text=COMPOSITE)
    assert {key for key, _ in mistakes_of(path)} == {key for _, _, key in changes}


def test_a_value_that_could_not_be_read_causes_no_further_mistakes(tmp_path):
    outside = '[[probes]]\nname = "far"\npoint = [9, 0, 0]'
    assert [key for key, _ in mistakes_of(write(tmp_path, ("[0.1, 0.2, 0.3]", "5"), extra=outside))] == ["domain.size"]
    path = write(tmp_path, ('material = "copper"\n\n', "material = 5\n\n"), text=COMPOSITE)
    assert [key for key, _ in mistakes_of(path)] == ["domain.material"]
    path = write(tmp_path, ('material = "void"\ncyl', "material = 5\ncyl"), text=COMPOSITE)
    assert [key for key, _ in mistakes_of(path)] == ["regions.2.material"]


# All kinds of tables that COMPOSITE does not have.
LAYERED = """
[domain]
size = [0.1, 0.08, 0.0016]
cells = [10, 8, 8]
material = "laminate"
[materials.laminate]
conductivity = 0.8
density = 1850.0
specific_heat = 1100.0
[materials.copper]
conductivity = 390.0
density = 8960.0
specific_heat = 385.0
[[layers]]
material = "copper"
thickness = "35 um"
plane = { axis = "z", at = 0.0016 }
[[regions]]
name = "hole"
material = "void"
box = { min = [0.05, 0.04, 0.0], max = [0.06, 0.05, 0.0016] }
[[regions]]
name = "pin"
material = "copper"
labels = { file = "labels.npy", materials = { "0" = "copper" } }
[[surfaces]]
of = "pin"
type = "insulated"
[boundaries]
default = { type = "convection", coefficient = 8.0, ambient = 300.0 }
[initial]
temperature = 300.0
[time]
end = 10.0
[[probes]]
name = "hottest surface"
surface = "void"
statistic = "max"
"""


@pytest.mark.parametrize("text", [COMPOSITE, LAYERED], ids=["composite", "layered"])
def test_a_table_that_cannot_be_read_does_not_stop_the_rules(text):
    document = tomllib.loads(text)
    lists = [
        (key, index) for key, tables in document.items() if isinstance(tables, list) for index in range(len(tables))
    ]
    for parts in [(key,) for key in document] + lists:
        changed = tomllib.loads(text)
        Override(tuple(map(str, parts)), 0).apply(changed)
        assert_is_read_or_refused(changed, "scenario.toml")
        if len(parts) == 1:
            assert_is_read_or_refused(
                {key: table for key, table in document.items() if key != parts[0]}, "scenario.toml"
            )


def test_a_mistake_in_the_default_condition_is_reported_once(tmp_path):
    path = write(tmp_path, extra='[boundaries]\ndefault = { type = "flux", value = "1/t" }')
    assert [key for key, _ in mistakes_of(path)] == ["boundaries.default.value"]


def test_an_array_has_the_shape_of_the_grid(tmp_path):
    """Its values, which are wrong too, are not read: they may be more than the memory holds."""
    np.save(tmp_path / "start.npy", np.full((4, 5, 6), -1.0))
    path = write(tmp_path, ("temperature = 300.0", 'temperature = { file = "start.npy" }'))
    message = 'got "start.npy", which has shape (4, 5, 6); domain.cells needs (nz, ny, nx) = (6, 5, 4)'
    assert mistakes_of(path) == [("initial.temperature.file", message)]


def test_the_order_of_mistakes_is_that_of_the_keys(tmp_path):
    path = write(
        tmp_path,
        ("cells = [4, 5, 6]", "cells = 3"),
        ("end = 60.0", "colour = 1\nend = true"),
        extra='[[probes]]\nname = "a"\n[[probes]]\nname = "a"\npoint = [0, 0, 0]\n[boundary]',
    )
    assert [key for key, _ in mistakes_of(path)] == [
        "domain.cells",
        "time.end",
        "time.colour",
        "probes.0.point",
        "probes.1.name",
        "boundary",
    ]


KEYS = [
    "name",
    "material",
    "size",
    "cells",
    "end",
    "type",
    "value",
    "face",
    "rectangle",
    "min",
    "max",
    "region",
    "line",
]
ANYTHING = anything(KEYS, ["copper", "void", "die", "z_max", "periodic", "1/t", "300 - 900*x", "5 mm"])


def leaves(value, path=()):
    """The paths of all values in a document, including tables and lists."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from leaves(item, (*path, str(key)))


@settings(max_examples=150 if SLOW else 80)
@given(data=st.data(), text=st.sampled_from([TEXT, COMPOSITE]))
def test_several_wrong_values_give_a_scenario_or_mistakes(data, text):
    document = tomllib.loads(text)
    for path in data.draw(st.lists(st.sampled_from(sorted(leaves(document))), min_size=1, max_size=4)):
        Override(path, data.draw(ANYTHING)).apply(document)
    assert_is_read_or_refused(document, "module.toml")


def test_one_material_with_a_name_is_the_domains():
    document = tomllib.loads(TEXT.replace("[material]", "[materials.steel]"))
    assert parse(document, "rod.toml").domain.material == "steel"
    assert "material" not in document["domain"]


def test_expressions_in_time_know_the_end_of_the_run():
    scenario = parse(tomllib.loads(COMPOSITE), "module.toml")
    assert scenario.sources[1].scale.end == scenario.patches[1].condition.ambient.end == 60.0


def test_an_initial_temperature_that_is_too_low_is_told_with_other_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(
        "domain = { size = [0.1, 0.1, 0.1], cells = [4, 4, 4] }\n"
        "material = { conductivity = 1.0, density = -1000.0, specific_heat = 500.0 }\n"
        'initial.temperature = "100*x - 3"\ntime.end = 1.0\n',
        encoding="utf-8",
    )
    assert [key for key, _ in mistakes_of(path)] == ["material.density", "initial.temperature"]
