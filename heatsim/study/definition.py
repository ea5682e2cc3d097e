"""A study read from its file: the scenario of every run, checked before anything starts."""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heatsim.errors import Problem, ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import check_room
from heatsim.scenario import Scenario, parse, read_document
from heatsim.scenario.overrides import Override, read_overrides
from heatsim.scenario.problems import did_you_mean, show
from heatsim.study.points import Point, count, describe, identity, points
from heatsim.study.reading import read_table
from heatsim.study.table import MAXIMUM_RUNS, Range, StudyTable


@dataclass(frozen=True)
class Definition:
    """What a study is made of.

    Attributes:
        path: the scenario's file.
        document: its tables, settings of the command line put in.
        points: one for each run; the first run has the number 1.
    """

    path: Path
    document: Mapping[str, Any]
    points: tuple[Point, ...]

    @property
    def table(self) -> StudyTable:
        """The table [study], which has been checked."""
        table, _ = read_table(self.document["study"])
        assert table is not None
        return table

    @property
    def numbers(self) -> range:
        """The numbers of all runs."""
        return range(1, len(self.points) + 1)

    def scenario(self, number: int) -> Scenario:
        """The scenario of a run.

        Raises:
            ScenarioError: carries every mistake.
        """
        document = copy.deepcopy({key: value for key, value in self.document.items() if key != "study"})
        for key, value in self.points[number - 1].items():
            _override(key, value).apply(document)
        # No pictures of its own, and fields only if the file says when to write them.
        output = document.setdefault("output", {})
        if isinstance(output, dict):
            output.setdefault("fields", "every" in output)
            output["figures"] = False
        return parse(document, self.path)


def read(
    path: str | Path, overrides: Sequence[str] = (), elsewhere: bool = False
) -> tuple[Definition, dict[int, HeatProblem]]:
    """Read a study's file and derive the problem of each of its runs, by number.

    Args:
        path: the TOML file; paths inside it are relative to its folder.
        overrides: "key.path=value" texts that replace or add to what the file says.
        elsewhere: whether other machines do the runs.

    Raises:
        ScenarioError: carries every mistake of the file, and every run that is refused with its reasons.
        CapacityError: a run is larger than the machine, seen before work is done on it.
    """
    file = Path(path)
    document = read_document(file)
    settings, problems = read_overrides(overrides)
    problems += [refusal for setting in settings if (refusal := setting.apply(document))]
    if "study" not in document:
        message = "missing; write a table [study] with its method and parameters, or use `heatsim run`"
        raise ScenarioError(path, [*problems, Problem("study", message)])
    table, mistakes = read_table(document["study"])
    problems += mistakes
    if table is None:
        raise ScenarioError(path, problems + _problems_beside_the_study(document, file))
    if count(table) > MAXIMUM_RUNS:
        message = f"makes {count(table):,} runs; at most {MAXIMUM_RUNS:,} are allowed: use fewer values"
        raise ScenarioError(path, [*problems, Problem("study.parameters", message)])
    definition = Definition(file, document, tuple(points(table)))
    problems += _places(definition, table)
    if not problems:
        problems += _ends(definition, table) + _repeated(definition.points)
    if problems:
        raise ScenarioError(path, problems)
    found, refused = _derive(definition, table, elsewhere)
    if refused:
        raise ScenarioError(path, _told_once(definition, refused))
    return definition, found


def _override(key: str, value: object) -> Override:
    return Override(tuple(key.split(".")), value)


def _problems_beside_the_study(document: Mapping[str, Any], file: Path) -> list[Problem]:
    """Mistakes of the scenario itself, apart from keys that the study's values would replace."""
    study = json.dumps(document["study"], default=str)
    try:
        parse({key: value for key, value in document.items() if key != "study"}, file)
    except ScenarioError as error:
        return [problem for problem in error.problems if f'"{problem.key}' not in study]
    return []


def _places(definition: Definition, table: StudyTable) -> list[Problem]:
    """Keys whose place cannot be in the scenario's tables."""
    problems = []
    for axis in table.axes:
        for key in axis.keys:
            trial = copy.deepcopy(dict(definition.document))
            refusal = _override(key, definition.points[0][key]).apply(trial)
            if refusal:
                problems.append(Problem(axis.place, refusal.message))
    return problems


def _ends(definition: Definition, table: StudyTable) -> list[Problem]:
    """Ends of ranges that the scenario refuses, in the file's own words: their units are checked here."""
    problems = []
    for axis in table.axes:
        if not isinstance(axis.values, Range):
            continue
        for name, end in zip(("min", "max"), axis.values.ends, strict=True):
            point = {**definition.points[0], **dict.fromkeys(axis.keys, end)}
            try:
                Definition(definition.path, definition.document, (point,)).scenario(1)
            except ScenarioError as error:
                problems += [
                    Problem(f"{axis.place}.{name}", problem.message)
                    for problem in error.problems
                    if any(problem.key == key or problem.key.startswith(f"{key}.") for key in axis.keys)
                ]
    return list(dict.fromkeys(problems))


def _repeated(given: Iterable[Point]) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for number, point in enumerate(given, 1):
        text = identity(point)
        if text in first:
            message = f"runs {first[text]} and {number} are the same: {describe(point)}; each point once"
            problems.append(Problem("study", message))
        first.setdefault(text, number)
    return problems


def _derive(
    definition: Definition, table: StudyTable, elsewhere: bool
) -> tuple[dict[int, HeatProblem], dict[int, list[Problem]]]:
    found: dict[int, HeatProblem] = {}
    refused: dict[int, list[Problem]] = {}
    for number in definition.numbers:
        try:
            scenario = definition.scenario(number)
            problems = _missing_probes(scenario, table)
            check_room(scenario, elsewhere)
            found[number] = HeatProblem.from_scenario(scenario)
        except ScenarioError as error:
            problems = list(error.problems)
        if problems:
            refused[number] = problems
    return found, refused


def _missing_probes(scenario: Scenario, table: StudyTable) -> list[Problem]:
    names = [probe.name for probe in scenario.probes]
    listed = f"the probes are {', '.join(map(show, names))}" if names else "there are no [[probes]] in the file"
    return [
        Problem(
            f"study.responses.{index}.probe",
            f"got {show(response.probe)}; {listed}{did_you_mean(response.probe, names)}",
        )
        for index, response in enumerate(table.responses)
        if response.probe not in names
    ]


def _told_once(definition: Definition, refused: Mapping[int, Sequence[Problem]]) -> list[Problem]:
    """Mistakes that all runs share are the file's own; the others are told run by run."""
    everywhere = [
        problem
        for problem in next(iter(refused.values()))
        if len(refused) == len(definition.points) and all(problem in problems for problems in refused.values())
    ]
    told = list(everywhere)
    for number, problems in refused.items():
        own = "; ".join(str(problem) for problem in problems if problem not in everywhere)
        if own:
            told.append(Problem(f"run {number} ({describe(definition.points[number - 1])})", own))
    return told
