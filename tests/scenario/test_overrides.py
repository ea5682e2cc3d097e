import copy

import pytest
from scenario_text import write

from heatsim.errors import ScenarioError
from heatsim.scenario import Constant, load
from heatsim.scenario.documents.key_paths import numbered, parts_of
from heatsim.scenario.documents.load import parse_dict
from heatsim.scenario.documents.overrides import Override, read_overrides

PROBES = """
[[probes]]
name = "a"
point = [0, 0, 0]
"""


@pytest.mark.parametrize(
    ("override", "read", "value"),
    [
        ("time.end=10", lambda scenario: scenario.time.end, 10.0),
        (" time . end = 10 ", lambda scenario: scenario.time.end, 10.0),
        ("time.end=2 min", lambda scenario: scenario.time.end, 120.0),
        ('time.end="2 min"', lambda scenario: scenario.time.end, 120.0),
        ("solver.kernel=naive", lambda scenario: scenario.solver.kernel, "naive"),
        ("output.energy=false", lambda scenario: scenario.output.energy, False),
        ("title=a = b", lambda scenario: scenario.title, "a = b"),
        ("title=a\nb=1", lambda scenario: scenario.title, None),
        ("domain.cells=[1, 2, 3]", lambda scenario: scenario.domain.cells, (1, 2, 3)),
        ("domain.cells.1=9", lambda scenario: scenario.domain.cells, (4, 9, 6)),
        ("probes.0.point=[0.1, 0.2, 0.3]", lambda scenario: scenario.probes[0].point, (0.1, 0.2, 0.3)),
        ("probes.a.point=[0.1, 0.2, 0.3]", lambda scenario: scenario.probes[0].point, (0.1, 0.2, 0.3)),
        ("probes.a.point.y=20 mm", lambda scenario: scenario.probes[0].point, (0.0, 0.02, 0.0)),
        ("domain.cells.y=9", lambda scenario: scenario.domain.cells, (4, 9, 6)),
        (
            'probes.1={ name = "b", point = [0, 0, 0] }',
            lambda scenario: [probe.name for probe in scenario.probes],
            ["a", "b"],
        ),
        (
            'boundaries.x_min={ type = "flux", value = 3 }',
            lambda scenario: scenario.boundaries.face("x_min").value,
            Constant(3.0),
        ),
    ],
)
def test_override_replaces_what_the_file_says(override, read, value, tmp_path):
    path = write(tmp_path, extra=PROBES)
    if value is None:
        with pytest.raises(ScenarioError, match="on one line"):
            load(path, [override])
    else:
        assert read(load(path, [override])) == value


def test_overrides_build_what_is_not_there(tmp_path):
    scenario = load(
        write(tmp_path),
        [
            "boundaries.x_min.type=temperature",
            "boundaries.x_min.value=20 degC",
            "probes.0.name=centre",
            "probes.0.point=[0.05, 0.1, 0.15]",
        ],
    )
    assert scenario.boundaries.face("x_min").value == Constant(293.15)
    assert scenario.probes[0].name == "centre"


@pytest.mark.parametrize(
    ("override", "key", "fragments"),
    [
        ("time.end", "--set", ['got "time.end"; write key.path=value']),
        ("=3", "--set", ["write key.path=value"]),
        ("'time.end=3'", "--set", ["leave out the quotes around it: time.end=3"]),
        ("time..end=3", "--set", ["write key.path=value"]),
        ("time.e nd=3", "--set", ["write key.path=value"]),
        ("title.sub=3", "title", ["got { sub = 3 }"]),
        ("time.end.x=3", "--set", ["got time.end.x; time.end is 60.0, which has no keys"]),
        ("probes.x.name=3", "--set", ['got probes.x.name; the names in probes are "a"']),
        ("probes.a.point=[0,0]", "probes.0.point", ["got [0, 0]", "(from --set)"]),
        ("patches.3.value=5", "--set", ["patches is an empty list: write 0 to add an entry"]),
        ("probes.5.name=3", "--set", ["got probes.5.name"]),
        ("time.ende=3", "time.ende", ["got 3; unknown key", 'did you mean "end"?', "(from --set)"]),
        ("time.end=-3", "time.end", ["got -3; a duration must be greater than 0 s (from --set)"]),
        ("output.energy=True", "output.energy", ['got "True"; true or false is expected, without quotes (from --set)']),
        ("domain.size=[0, 1, 1]", "domain.size.0", ["got 0", "(from --set)"]),
    ],
)
def test_wrong_override_is_told(override, key, fragments, tmp_path):
    with pytest.raises(ScenarioError) as caught:
        load(write(tmp_path, extra=PROBES), [override])
    (problem,) = caught.value.mistakes
    assert problem.key == key
    for fragment in fragments:
        assert fragment in problem.message


def test_mistakes_of_file_and_overrides_are_told_together(tmp_path):
    with pytest.raises(ScenarioError) as caught:
        load(write(tmp_path, ("end = 60.0", "end = -1")), ["nonsense", "solver.device=tpu"])
    problems = {problem.key: problem.message for problem in caught.value.mistakes}
    assert set(problems) == {"--set", "time.end", "solver.device"}
    assert "(from --set)" not in problems["time.end"]


@pytest.mark.parametrize("key", ['materials."my alloy".density', "materials.'my alloy'.density"])
def test_names_with_blanks_are_written_in_quotes(key):
    (override,), mistakes = read_overrides(f"{key} = 3.0")
    assert (override.parts, override.value, mistakes) == (("materials", "my alloy", "density"), 3.0, [])


@pytest.mark.parametrize(
    "setting", [".".join("a" * 2000) + "=1", "time={" + ".".join("a" * 2000) + "=1}", "a=" + "[" * 400 + "]" * 400]
)
def test_keys_and_values_of_too_many_levels_are_refused(setting, tmp_path):
    with pytest.raises(ScenarioError, match="more than 50 parts, or lists within lists"):
        load(write(tmp_path), [setting])


def test_a_dictionary_of_too_many_levels_is_refused():
    document = {}
    for _ in range(3000):
        document = {"a": document}
    with pytest.raises(ScenarioError, match="more than 50 parts"):
        parse_dict(document)


DOCUMENT = {
    "regions": [{"name": "sink", "box": {"min": [0, 0, 0], "max": [1, 1, 1]}}, {"name": "x"}, {"name": "2"}, {"a": 1}],
    "sources": [{"power": 1.0}, {"name": "power stage"}, {"name": "twice"}, {"name": "twice"}],
    "patches": [{"name": "pad", "face": "y_max", "rectangle": {"min": [0, 0], "max": [1, 2]}}],
    "layers": [{"plane": {"axis": "z", "rectangle": {"max": [1, 2]}}}],
    "material": {"conductivity": [1.0, 2.0, 3.0], "table": {"values": [1.0, 2.0, 3.0]}},
}


@pytest.mark.parametrize(
    ("path", "numbers"),
    [
        ("regions.sink.box.max.z", "regions.0.box.max.2"),
        ("regions.x.material", "regions.1.material"),
        ("regions.2.material", "regions.2.material"),  # a number counts, whatever names there are
        ("sources.source 1.power", "sources.0.power"),  # the name that it gets
        ("sources.power stage.power", "sources.1.power"),
        ("sources.twice.power", "sources.twice.power"),
        ("regions.fin.box", "regions.fin.box"),
        ("patches.pad.rectangle.max.z", "patches.0.rectangle.max.1"),
        ("patches.pad.rectangle.max.y", "patches.0.rectangle.max.y"),  # normal to it
        ("layers.layer 1.plane.rectangle.max.y", "layers.0.plane.rectangle.max.1"),
        ("material.conductivity.y", "material.conductivity.1"),
        ("material.table.values.y", "material.table.values.y"),
        ("x.y.z", "x.y.z"),
    ],
)
def test_names_and_axes_stand_for_numbers(path, numbers):
    assert ".".join(numbered(path.split("."), DOCUMENT)) == numbers


def test_a_name_of_two_entries_is_refused_with_their_numbers():
    mistake = Override(("sources", "twice", "power"), 1.0).apply(copy.deepcopy(DOCUMENT))
    assert mistake.message.endswith("2 entries of sources have this name: write one of the numbers 2 and 3")
    mistake = Override(("regions", "sinc", "material"), 1.0).apply(copy.deepcopy(DOCUMENT))
    assert mistake.message.endswith('the names in regions are "sink", "x", "2"; did you mean "sink"?')


def test_digits_are_a_number_also_where_a_part_has_them_as_its_name() -> None:
    document = {"regions": [{"name": "1"}, {"name": "0"}]}
    assert numbered(parts_of("regions.'0'.material"), document) == ("regions", "0", "material")
    assert numbered(parts_of("regions.1.material"), document) == ("regions", "1", "material")
