"""`repeat` is short for the tables of all copies: equal distances, powers of all, mistakes at the keys of the file."""

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest

from heatsim.commands.geometry import geometry_of
from heatsim.errors import ScenarioError
from heatsim.physics.geometry.regions import paint
from heatsim.physics.problem import HeatProblem
from heatsim.run.plan_model import describe_model
from heatsim.scenario import Scenario
from heatsim.scenario.documents.load import parse_dict
from heatsim.scenario.documents.resolved import document
from heatsim.study.definition import Definition

SHORT = """
[domain]
size = [0.04, 0.02, 0.01]
cells = [16, 8, 4]
material = "board"
[materials.board]
conductivity = 0.5
density = 1900.0
specific_heat = 1100.0
[materials.copper]
conductivity = 390.0
density = 8960.0
specific_heat = 385.0
[initial]
temperature = 300.0
[boundaries]
void = { type = "convection", coefficient = 10.0, ambient = 300.0 }
[time]
end = 1.0
[[regions]]
name = "via"
material = "copper"
cylinder = { from = ["5 mm", 0.005, 0.0], to = ["5 mm", 0.005, "5 mm"], radius = 0.0024 }
initial_temperature = 310.0
repeat = { count = [3, 2, 1], step = [0.01, "10 mm", 0.0] }
[[regions]]
name = "air"
material = "void"
box = { min = [0.0, 0.0, 0.005], max = [0.04, 0.02, 0.01] }
[[regions]]
name = "last"
material = "copper"
box = { min = [0.035, 0.0, 0.0], max = [0.04, 0.02, 0.005] }
[[sources]]
region = "via"
power = "3 W"
[[sources]]
power = 1.0
box = { min = [0.0, 0.0, 0.0], max = [0.0025, 0.0025, 0.0025] }
repeat = { count = [1, 2, 1], step = [0.0, 0.01, 0.0] }
[[layers]]
name = "trace"
material = "copper"
thickness = "35 um"
plane = { axis = "z", at = 0.0025, rectangle = { min = [0.0, 0.0], max = [0.04, 0.001] } }
repeat = { count = [1, 3, 2], step = [0.0, 0.005, 0.0025] }
[[contacts]]
between = ["board", "via"]
resistance = 1e-5
[[surfaces]]
of = "via"
type = "flux"
power = 6.0
[[probes]]
name = "hottest"
region = "via"
statistic = "max"
"""


def read(changes: dict[str, Any] | None = None) -> Scenario:
    tables = tomllib.loads(SHORT)
    for path, value in (changes or {}).items():
        *parts, last = path.split(".")
        place: Any = tables
        for part in parts:
            place = place[int(part)] if part.isdecimal() else place[part]
        place[last] = value
    return parse_dict(tables)


def test_copies_lie_at_equal_distances_first_along_x() -> None:
    scenario = read()
    vias = [region for region in scenario.regions if region.name.startswith("via")]
    assert [region.name for region in vias] == [f"via[{n}]" for n in range(6)]
    ends = [region.cylinder.from_ for region in vias if region.cylinder is not None]
    assert ends == [(x, y, 0.0) for y in (0.005, 0.015) for x in (0.005, 0.005 + 0.01, 0.005 + 0.02)]
    assert {region.initial_temperature for region in vias} == {310.0}
    traces = [(layer.name, layer.plane.at, layer.plane.rectangle) for layer in scenario.layers]
    assert [at for _, at, _ in traces] == [0.0025] * 3 + [0.005] * 3
    assert [of.min for _, _, of in traces if of is not None] == [(0.0, 0.0), (0.0, 0.005), (0.0, 0.01)] * 2


def test_a_table_that_names_a_repeated_region_stands_for_one_for_each_copy() -> None:
    scenario = read()
    names = [f"via[{n}]" for n in range(6)]
    first, second = scenario.sources[:6], scenario.sources[6:]
    assert [(source.name, source.region) for source in first] == [
        (f"source 1[{n}]", via) for n, via in enumerate(names)
    ]
    assert [source.power for source in scenario.sources] == [0.5] * 6 + [0.5] * 2
    assert [source.name for source in second] == ["source 2[0]", "source 2[1]"]
    assert [contact.between for contact in scenario.contacts] == [("board", name) for name in names]
    assert [surface.of for surface in scenario.surfaces] == names
    assert {surface.condition.power.value for surface in scenario.surfaces} == {1.0}
    assert [(probe.name, probe.region) for probe in scenario.probes] == [
        (f"hottest[{n}]", via) for n, via in enumerate(names)
    ]


def test_the_resolved_scenario_has_all_copies_and_gives_the_same() -> None:
    scenario = read()
    tables = document(scenario)
    assert "repeat" not in str(tables)
    assert document(parse_dict(copy.deepcopy(tables))) == tables


@pytest.mark.parametrize(
    ("changes", "mistakes"),
    [
        ({"regions.0.repeat": {"count": [2, 0, 1], "step": [1, 1, 1]}}, ["regions.0.repeat.count: got [2, 0, 1]"]),
        (
            {"regions.0.repeat": {"count": [2, 1, 1], "step": [0.0, 1.0, 0.0]}},
            ["regions.0.repeat.step.0: got 0.0, but there are 2 copies along x"],
        ),
        ({"regions.0.repeat": {"count": [70, 70, 1], "step": [1, 1, 1]}}, ["at most 4,096 copies"]),
        ({"regions.0.repeat": {"count": [20, 20, 1], "step": [1, 1, 1]}}, ["got 402 regions; at most 255"]),
        ({"regions.0.cylinder.radius": -1}, ["regions.0.cylinder.radius: got -1"]),
        ({"regions.2.material": "gold"}, ['regions.2.material: got "gold"']),
        ({"sources.0.repeat": {"count": [2, 1, 1], "step": [1, 0, 0]}}, ["sources.0.repeat: needs one of box, sphere"]),
        ({"sources.1.box.max": [0, 1, 1]}, ["sources.1.box.max.0: got 0.0; it must be greater"]),
        ({"surfaces.0.power": "3*t"}, ['surfaces.0.power: got "3*t"; write a number, which 6 copies share']),
        ({"probes.0.region": "vias"}, ['probes.0.region: got "vias"']),
    ],
)
def test_mistakes_have_the_keys_of_the_file_once(changes: dict[str, Any], mistakes: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(changes)
    told = [str(mistake) for mistake in caught.value.mistakes]
    assert len({text.partition(": ")[0] for text in told}) == len(told)
    for mistake in mistakes:
        assert any(mistake in text for text in told), told


def test_copies_that_cannot_be_painted_are_told_once_at_the_key_of_the_file() -> None:
    far = read({"regions.0.repeat": {"count": [3, 5, 1], "step": [0.01, 0.01, 0.0]}})
    with pytest.raises(ScenarioError) as caught:
        HeatProblem.from_scenario(far)
    (mistake,) = caught.value.mistakes
    assert mistake.key == "regions.0.cylinder"
    assert mistake.message.startswith('"via[6]" reaches from')


def test_studies_vary_what_is_repeated_and_have_its_probes() -> None:
    tables = tomllib.loads(SHORT)
    tables["study"] = {"method": "grid", "parameters": {"regions.via.repeat.count.x": [1, 2]}}
    definition = Definition(
        Path("x.toml"), tables, ({"regions.via.repeat.count.x": 1}, {"regions.via.repeat.count.x": 2})
    )
    assert [len(definition.scenario(number).regions) for number in (1, 2)] == [4, 6]
    assert set(definition.probes) == {f"hottest[{n}]" for n in range(4)}


def test_plans_and_pictures_tell_copies_together() -> None:
    scenario = read()
    lines = describe_model(HeatProblem.from_scenario(scenario))
    told = [line for line in lines if line.startswith(("region", "source", "contact", "probe"))]
    starts = (
        "region       via[0…5]: ",
        "source       source 1[0…5]: 0.5 W in region",
        "probe        hottest[0…5]: max of region",
    )
    for start in starts:
        assert sum(line.startswith(start) for line in told) == 1
    geometry = geometry_of(scenario)
    assert geometry.regions == ["via ×6 (copper)", "air (void)", "last (copper)"]
    assert set(geometry.owners.flat) == {0, 1, 2, 3}
    parts = paint(scenario)
    assert ((geometry.owners == 1) == ((parts.owner >= 1) & (parts.owner <= 6))).all()
