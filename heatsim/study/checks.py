"""The rules between the tables of a study, and between a study and its scenario.

Each function returns every mistake against one rule. Rules also run on tables with mistakes; see ``scenario.checks``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from heatsim.errors import Mistake
from heatsim.limits import AT_LEAST, AT_MOST
from heatsim.scenario.messages import did_you_mean, missing_key, show
from heatsim.scenario.rules.validation import entries, known, read_model
from heatsim.scenario.tables.limits import limit_mistakes, limit_quantity
from heatsim.study.columns import COLUMNS, probe_columns, rms_column
from heatsim.study.model import (
    FINAL,
    GRID,
    LATIN_HYPERCUBE,
    LIST_EXAMPLE,
    PARAMETERS_EXAMPLE,
    RANGE_EXAMPLE,
    TIME_ABOVE,
    TIME_BELOW,
    ZIP,
    Range,
    StudyFile,
    StudyTable,
)
from heatsim.temperature_units import TEMPERATURE_UNITS


def read_table(table: object) -> tuple[StudyTable | None, list[Mistake]]:
    """The table [study] from TOML, or None if there are mistakes; and all mistakes."""
    checks = CHECKS if isinstance(table, Mapping) else ()
    file, mistakes = read_model(StudyFile, {"study": table}, checks, Path())
    return None if file is None else file.study, mistakes


def something_varies(file: StudyFile) -> list[Mistake]:
    """A study has a parameter."""
    study = file.study
    if not known(study, study.parameters, study.linked) or study.parameters or study.linked:
        return []
    if "parameters" in study.model_fields_set:
        return [Mistake("study.parameters", f'empty; write for example "material.density" = {LIST_EXAMPLE}')]
    return [Mistake("study.parameters", missing_key(PARAMETERS_EXAMPLE))]


def keys_vary_once(file: StudyFile) -> list[Mistake]:
    """A key of the scenario belongs to one parameter."""
    mistakes = []
    seen: dict[str, str] = {}
    for axis in file.study.axes:
        for key in axis.keys:
            if key in seen:
                mistakes.append(Mistake(axis.location, f"varies {key}, which {seen[key]} already varies"))
            seen.setdefault(key, axis.location)
    return mistakes


def values_suit_the_method(file: StudyFile) -> list[Mistake]:
    """A Latin hypercube draws from ranges; a grid and a zip take lists."""
    method = file.study.method
    if not known(method):
        return []
    if method == LATIN_HYPERCUBE:
        message = f'got a list; method "{method}" draws from a range such as {RANGE_EXAMPLE}'
    else:
        message = f'got a range; method "{method}" takes a list of values such as {LIST_EXAMPLE}'
    return [
        Mistake(axis.location, message)
        for axis in file.study.axes
        if isinstance(axis.values, Range) != (method == LATIN_HYPERCUBE)
    ]


def zipped_lists_have_equal_lengths(file: StudyFile) -> list[Mistake]:
    """A zip takes one value from every list for each run."""
    lengths = {axis.location: len(axis.values) for axis in file.study.axes if not isinstance(axis.values, Range)}
    if file.study.method != ZIP or len(set(lengths.values())) < 2:
        return []
    counts = ", ".join(f"{location} has {length}" for location, length in lengths.items())
    return [Mistake("study.method", f'"zip" needs lists of equal lengths: {counts}')]


def grid_values_differ(file: StudyFile) -> list[Mistake]:
    """A value repeated in a list would repeat runs of a grid."""
    if file.study.method != GRID:
        return []
    mistakes = []
    for axis in file.study.axes:
        values = () if isinstance(axis.values, Range) else axis.values
        texts = [json.dumps(value, sort_keys=True, default=str) for value in values]
        mistakes += [
            Mistake(axis.location, f"has {show(value)} {texts.count(text)} times; write each value once")
            for text, value in dict(zip(texts, values, strict=True)).items()
            if texts.count(text) > 1
        ]
    return mistakes


def samples_suit_the_method(file: StudyFile) -> list[Mistake]:
    """A Latin hypercube needs the number of samples; the other methods have neither samples nor a seed."""
    study = file.study
    if study.method == LATIN_HYPERCUBE:
        given = "samples" in study.model_fields_set
        return [] if given else [Mistake("study.samples", missing_key("samples = 200"))]
    if study.method not in (GRID, ZIP):
        return []
    return [
        Mistake(f"study.{key}", f'got {show(value)}; method "{study.method}" draws no samples: remove this key')
        for key, value in (("samples", study.samples), ("seed", study.seed))
        if key in study.model_fields_set
    ]


def names_differ(file: StudyFile) -> list[Mistake]:
    """Responses have different names, and so have linked parameters."""
    mistakes = []
    for tables, named in (
        ("responses", entries(file.study.responses)),
        ("linked", entries(file.study.linked)),
    ):
        taken = set()
        for index, table in named:
            if known(table.name) and table.name in taken:
                message = f"got {show(table.name)} a second time; all {tables} need different names"
                mistakes.append(Mistake(f"study.{tables}.{index}.name", message))
            taken.add(table.name)
    return mistakes


CHECKS: tuple[Callable[[StudyFile], list[Mistake]], ...] = (
    something_varies,
    keys_vary_once,
    values_suit_the_method,
    zipped_lists_have_equal_lengths,
    grid_values_differ,
    samples_suit_the_method,
    names_differ,
)


def responses_name_known_probes(study: StudyTable, probes: Sequence[str]) -> list[Mistake]:
    """The probe of a response exists in the scenario; ``probes`` are the names of its probes."""
    listed = f"the probes are {', '.join(map(show, probes))}" if probes else "there are no [[probes]] in the file"
    return [
        Mistake(
            f"study.responses.{index}.probe",
            f"got {show(response.probe)}; {listed}{did_you_mean(response.probe, probes)}",
        )
        for index, response in enumerate(study.responses)
        if response.probe not in probes
    ]


def thresholds_are_temperatures(study: StudyTable, units: Mapping[str, str]) -> list[Mistake]:
    """A response with a threshold in K belongs to a probe of temperatures; ``units``: of the probes, by name."""
    return [
        Mistake(
            f"study.responses.{index}.statistic",
            f"got {show(response.statistic)}; probe {show(response.probe)} is no temperature, but a number in "
            f'{units[response.probe]}: use "{FINAL}", "max", "min" or "mean"',
        )
        for index, response in enumerate(study.responses)
        if response.is_time and units.get(response.probe, "K") not in TEMPERATURE_UNITS
    ]


def limits_suit_their_responses(study: StudyTable, units: Mapping[str, str]) -> list[Mistake]:
    """A limit has the unit of its response: a time, or that of its probe; ``units``: of the probes, by name."""
    mistakes = []
    for index, response in enumerate(study.responses):
        quantity = limit_quantity("s" if response.is_time else units.get(response.probe))
        found = limit_mistakes({AT_MOST: response.at_most, AT_LEAST: response.at_least}, quantity)
        mistakes += [Mistake(f"study.responses.{index}.{key}", message) for key, message in found.items()]
    return mistakes


def responses_suit_the_method(study: StudyTable, steady: bool) -> list[Mistake]:
    """A steady state has one time, so nothing is passed; ``steady``: whether a run is one."""
    return [
        Mistake(
            f"study.responses.{index}.statistic",
            f'got {show(response.statistic)}; with time.method = "steady" no time passes: use "{FINAL}"',
        )
        for index, response in enumerate(study.responses)
        if steady and response.statistic in (TIME_ABOVE, TIME_BELOW)
    ]


def responses_name_free_columns(study: StudyTable, probes: Sequence[str]) -> list[Mistake]:
    """The name of a response differs from all other columns of the results; ``probes`` are the names of the probes."""
    of_probes = (column for probe in probes for column in (*probe_columns(probe), rms_column(probe)))
    taken = {*COLUMNS, *study.keys, *of_probes}
    return [
        Mistake(
            f"study.responses.{index}.name",
            f"got {show(response.name)}; the results already have a column of this name: choose another name",
        )
        for index, response in enumerate(study.responses)
        if response.name in taken
    ]
