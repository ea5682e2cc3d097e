"""The table [study]: every mistake is reported with its key and what is expected."""

import inspect
import tomllib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heatsim.scenario.documents.overrides import Override
from heatsim.study import checks
from heatsim.study.checks import CHECKS, read_table
from heatsim.study.model import Range, Response
from heatsim.study.points import identity, points


def read(text: str) -> Any:
    table, problems = read_table(tomllib.loads(text))
    assert not problems
    return table


def mistakes(text: str) -> list[str]:
    table, problems = read_table(tomllib.loads(text))
    assert table is None
    return [str(problem) for problem in problems]


GRID = 'method = "grid"\n[parameters]\n"material.density" = [1.0, 2.0]\n'


def test_a_table_with_everything() -> None:
    table = read(
        """
        method = "latin-hypercube"
        samples = 7
        seed = 3
        [parameters]
        "boundaries.default.coefficient" = { min = 100.0, max = 2500, scale = "log" }
        "domain.size.0" = { min = "1 mm", max = "2 cm" }
        [[linked]]
        keys = ["boundaries.x_min.value", "boundaries.x_max.value"]
        values = { min = "20 degC", max = 400.0 }
        [[responses]]
        name = "time to 60 °C"
        probe = "centre"
        statistic = "time_below"
        threshold = "60 degC"
        """
    )
    assert (table.method, table.samples, table.seed) == ("latin-hypercube", 7, 3)
    assert table.keys == (
        "boundaries.default.coefficient",
        "domain.size.0",
        "boundaries.x_min.value",
        "boundaries.x_max.value",
    )
    assert [axis.values for axis in table.axes] == [
        Range(min=100.0, max=2500, scale="log"),
        Range(min="1 mm", max="2 cm"),
        Range(min="20 degC", max=400.0),
    ]
    assert [axis.values.ends for axis in table.axes] == [(100.0, 2500.0), (0.001, 0.02), (293.15, 400.0)]
    response = Response(name="time to 60 °C", probe="centre", statistic="time_below", threshold=333.15)
    assert table.responses == (response,)


def test_keys_without_quotes_mean_the_same() -> None:
    quoted = read('method = "grid"\n[parameters]\n"a.b" = [1]\n"a.c" = [2]\n')
    assert read('method = "grid"\n[parameters]\na.b = [1]\na.c = [2]\n').keys == quoted.keys == ("a.b", "a.c")


def test_all_mistakes_are_told_together_with_their_places() -> None:
    told = mistakes(
        """
        method = "gird"
        sample = 4
        [parameters]
        "a.b c" = [1.0]
        "study.seed" = [1, 2]
        empty = []
        number = 5.0
        [[linked]]
        keys = "boundaries.x_min.value"
        [[responses]]
        name = "hot"
        statistic = "maximum"
        thresold = 3
        """
    )
    assert told == [
        'study.method: got "gird"; one of "grid", "zip", "latin-hypercube" is expected; did you mean "grid"?',
        'study.parameters."a.b c": got "a.b c"; the path of a key of the scenario is expected, such as '
        '"boundaries.default.coefficient"',
        'study.parameters."study.seed": got "study.seed"; the path of a key of the scenario is expected, such as '
        '"boundaries.default.coefficient", not one of the study itself',
        "study.parameters.empty: got []; write at least one value, for example [100.0, 500.0]",
        "study.parameters.number: got 5.0; a list of values such as [100.0, 500.0] or a range such as "
        "{ min = 100.0, max = 2500.0 } is expected",
        'study.linked.0.keys: got "boundaries.x_min.value"; write for example keys = ["boundaries.x_min.value", '
        '"boundaries.x_max.value"] and values = [300.0, 350.0]',
        'study.linked.0.values: missing; write for example keys = ["boundaries.x_min.value", '
        '"boundaries.x_max.value"] and values = [300.0, 350.0]',
        'study.responses.0.probe: missing; write for example probe = "centre"',
        'study.responses.0.statistic: got "maximum"; one of "final", "max", "min", "mean", "time_above", "time_below" '
        'is expected; did you mean "max"?',
        "study.responses.0.thresold: got 3; unknown key: the keys allowed here are name, probe, statistic, threshold, "
        'at_most, at_least; did you mean "threshold"?',
        "study.sample: got 4; unknown key: the keys allowed here are method, samples, seed, parameters, linked, "
        'responses; did you mean "samples"?',
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "study.method: missing"),
        ('method = "grid"', "study.parameters: missing; write for example [study.parameters] with"),
        ('method = "grid"\nparameters = 3', "study.parameters: got 3; write a table"),
        ('method = "grid"\n[parameters]', "study.parameters: empty"),
        (
            'method = "grid"\nlinked = [3]',
            "study.linked.0: got 3; write each list of keys under its own heading [[study.linked]]",
        ),
        (GRID.replace("[1.0, 2.0]", "[1.0, 2.0, 1.0]"), "has 1.0 2 times; write each value once"),
        (GRID.replace("[1.0, 2.0]", "{ min = 1, max = 2 }"), 'got a range; method "grid" takes a list'),
        ("samples = 3\n" + GRID, 'study.samples: got 3; method "grid" draws no samples'),
        (
            GRID + '[[linked]]\nkeys = ["material.density"]\nvalues = [3]',
            'study.linked.0.values: varies material.density, which study.parameters."material.density" already varies',
        ),
        (
            'method = "zip"\n[parameters]\na = [1, 2]\nb = [1, 2, 3]',
            'study.method: "zip" needs lists of equal lengths: study.parameters.a has 2, study.parameters.b has 3',
        ),
        ('method = "latin-hypercube"\nsamples = 3\n[parameters]\na = [1]', "study.parameters.a: got a list; method"),
        ('method = "latin-hypercube"\n[parameters]\na = { min = 1, max = 2 }', "study.samples: missing; write"),
        ('method = "latin-hypercube"\nsamples = 0\nparameters.a = { min = 1, max = 2 }', "study.samples: got 0;"),
        (
            'method = "latin-hypercube"\nsamples = 2\nseed = -1\nparameters.a = { min = 1, max = 2 }',
            "study.seed: got -1",
        ),
        (
            'method = "latin-hypercube"\nsamples = 2\nparameters.a = { min = 2, max = 2 }',
            "min = 2 is not below max = 2",
        ),
        ('method = "latin-hypercube"\nsamples = 2\nparameters.a = { min = 2 }', "study.parameters.a.max: missing"),
        (
            'method = "latin-hypercube"\nsamples = 2\nparameters.a = { min = 0, max = 2, scale = "log" }',
            'study.parameters.a: min = 0; scale "log" needs a min above 0',
        ),
        (
            'method = "latin-hypercube"\nsamples = 2\nparameters.a = { min = "x", max = 2, scale = "lin" }',
            'study.parameters.a.min: got "x"; a number or a text with a unit is expected',
        ),
        (
            GRID + '[[responses]]\nname = "a"\nprobe = "b"\nstatistic = "time_above"',
            "study.responses.0.threshold: missing",
        ),
        (
            GRID + '[[responses]]\nname = "a"\nprobe = "b"\nstatistic = "time_above"\nthreshold = "5 kg"',
            'study.responses.0.threshold: got "5 kg"',
        ),
        (
            GRID + '[[responses]]\nname = "a"\nprobe = "b"\nstatistic = "max"\nthreshold = 5',
            'study.responses.0.threshold: got 5; statistic "max" has no threshold',
        ),
        (
            GRID + 2 * '[[responses]]\nname = "a"\nprobe = "b"\nstatistic = "max"\n',
            'study.responses.1.name: got "a" a second time',
        ),
    ],
)
def test_mistake_is_told(text: str, message: str) -> None:
    assert any(message in told for told in mistakes(text)), mistakes(text)


def test_not_a_table() -> None:
    table, problems = read_table(3)
    assert table is None
    assert [problem.key for problem in problems] == ["study"]


def test_a_table_that_is_empty_is_no_range_and_no_list() -> None:
    told = mistakes('method = "grid"\n[parameters]\n"material.density" = {}\n"time.end" = [1.0, 2.0]\n')
    wanted = "missing; write for example { min = 100.0, max = 2500.0 }"
    assert told == [f'study.parameters."material.density".{end}: {wanted}' for end in ("min", "max")]


def test_integers_beyond_floating_point_are_no_numbers() -> None:
    huge = "1" + 400 * "0"
    told = mistakes(
        f'method = "latin-hypercube"\nsamples = 2\n[parameters]\n"time.end" = {{ min = 1.0, max = {huge} }}\n'
    )
    assert len(told) == 1
    assert "max: got an integer of more than 150 digits" in told[0]
    table = read(f'method = "grid"\n[parameters]\n"time.end" = [1.0, {huge}]\n')
    first, second = points(table)
    assert identity(first) != identity(second)


def test_every_rule_is_in_the_list() -> None:
    rules = [
        function
        for _, function in inspect.getmembers(checks, inspect.isfunction)
        if list(inspect.signature(function).parameters) == ["file"]
    ]
    assert set(rules) == set(CHECKS)


def test_mistakes_within_and_between_tables_are_reported_together() -> None:
    told = mistakes(
        """
        method = "zip"
        seed = -1
        [parameters]
        a = [1, 2]
        b = [1, 2, 3]
        c = 5
        [[linked]]
        keys = ["a", "d"]
        values = { min = 1, max = 2 }
        [[responses]]
        name = "hot"
        probe = 5
        statistic = "max"
        [[responses]]
        name = "hot"
        probe = "centre"
        statistic = "mean"
        """
    )
    assert [line.split(": ")[0] for line in told] == [
        "study.method",
        "study.seed",
        "study.parameters.c",
        "study.linked.0.values",
        "study.linked.0.values",
        "study.responses.0.probe",
        "study.responses.1.name",
    ]


EVERYTHING = """
method = "latin-hypercube"
samples = 7
seed = 3
[parameters]
"domain.size.0" = { min = "1 mm", max = "2 cm", scale = "log" }
[[linked]]
keys = ["boundaries.x_min.value", "boundaries.x_max.value"]
values = [1.0, 2.0]
[[responses]]
name = "time"
probe = "centre"
statistic = "time_below"
threshold = "60 degC"
"""
PLACES = ["method", "samples", "seed", "parameters", "parameters.a", "linked", "linked.0", "linked.0.keys"]
PLACES += [
    "linked.0.keys.0",
    "linked.0.values",
    "responses",
    "responses.0",
    "responses.0.statistic",
    "responses.0.name",
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
WORDS = st.sampled_from(["min", "max", "scale", "keys", "values", "name", "statistic", "grid", "zip", "log", "5 mm"])
ANYTHING = st.recursive(
    SCALARS | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)


@settings(max_examples=150)
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), ANYTHING), min_size=1, max_size=4))
@example(changes=[("parameters", [{"min": None, "max": None, "name": []}]), ("parameters.a", None)])
def test_anything_anywhere_gives_a_table_or_mistakes_of_one_line(changes: list[tuple[str, Any]]) -> None:
    document = {"study": tomllib.loads(EVERYTHING)}
    for place, value in changes:
        Override(("study", *place.split(".")), value).apply(document)
    table, told = read_table(document["study"])
    assert (table is None) == bool(told)
    for mistake in told:
        assert mistake.key.startswith("study")
        assert len(str(mistake).splitlines()) == 1
        assert "should be" not in str(mistake)
        assert "pydantic" not in str(mistake)
