"""A study and the scenarios of its runs, all of them checked before the first run starts."""

import copy
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from heatsim.errors import InputError, Mistake, ScenarioError
from heatsim.limits import LIMITS, Limits
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import check_room
from heatsim.run.error.refinement import refuse_accuracy
from heatsim.scenario import Scenario, parse
from heatsim.scenario.documents.copies import with_copies
from heatsim.scenario.documents.key_paths import numbered, parts_of, path_of
from heatsim.scenario.documents.load import plain_tables, read_with_overrides
from heatsim.scenario.documents.overrides import Override
from heatsim.scenario.files import reading_once
from heatsim.scenario.messages import show, show_key
from heatsim.scenario.tables.couplings import coupling_columns
from heatsim.scenario.tables.model import with_temperature_unit
from heatsim.scenario.tables.probes import UNITS as PROBE_UNITS
from heatsim.scenario.tables.time import read_start
from heatsim.scenario.values.quantities import si_number
from heatsim.storage.study_hint import OF_DICTIONARY
from heatsim.study.checks import (
    limits_suit_their_responses,
    read_table,
    responses_name_free_columns,
    responses_name_known_probes,
    responses_suit_the_method,
    thresholds_are_temperatures,
)
from heatsim.study.model import GRID, MAX_RUNS, Range, StudyAxis, StudyTable, flatten
from heatsim.study.points import Point, count, describe, identity, points
from heatsim.temperature_units import KELVIN, TEMPERATURE_UNITS, TemperatureUnit


@dataclass(frozen=True)
class Definition:
    """A study: a scenario's document and the points of all runs.

    Attributes:
        path: the scenario's file.
        document: the tables of the file, with the overrides of the command line.
        points: the values of each run; the first run has the number 1.
        inputs: the checksums of the input files of all runs, by their paths from the folder of the scenario.
        precision: of all runs that leave it to "auto"; empty if it is not known yet, or if there are none.
    """

    path: Path
    document: Mapping[str, Any]
    points: tuple[Point, ...]
    inputs: Mapping[str, int] = field(default_factory=dict)
    precision: str = ""

    @cached_property
    def table(self) -> StudyTable:
        """The table [study].

        Raises:
            ScenarioError: it has mistakes; a study that heatsim wrote has none.
        """
        table, mistakes = read_table(self.document["study"])
        if table is None:
            raise ScenarioError(self.path, mistakes)
        return table

    def check(self) -> None:
        """Check what the results need; the file of a study may come from someone else.

        Raises:
            ScenarioError, ValueError, LookupError, TypeError, AttributeError: it has mistakes.
        """
        keys, title = set(self.table.keys), self.document.get("title", "")
        if not isinstance(title, str) or not self.points or any(point.keys() != keys for point in self.points):
            raise ValueError("its points do not give the values of its parameters")
        import tomli_w

        tomli_w.dumps(self.document).encode()
        json.dumps(self.points, allow_nan=False, ensure_ascii=False).encode()
        if any(isinstance(value, int) and abs(value) >= 1 << 63 for point in self.points for value in point.values()):
            raise ValueError("a value of a parameter has more than 63 bits")
        if not all(response.probe in self.probe_units for response in self.table.responses):
            raise ValueError("a response names a probe that is not there")

    @property
    def probes(self) -> list[str]:
        """The names of the probes of all runs."""
        return list(self.probe_units)

    @cached_property
    def _output(self) -> Mapping[str, Any]:
        """The table [output] of the first run, with the units of temperatures."""
        output = with_temperature_unit(self.document_of(1)).get("output")
        return output if isinstance(output, Mapping) else {}

    @property
    def temperature_unit(self) -> TemperatureUnit:
        """The unit in which pictures, the report and the terminal show temperatures: `output.temperature`."""
        return TEMPERATURE_UNITS.get(str(self._output.get("temperature")), KELVIN)

    @property
    def table_unit(self) -> TemperatureUnit:
        """The unit of temperatures in the results: `output.table_temperature`."""
        return TEMPERATURE_UNITS.get(str(self._output.get("table_temperature")), self.temperature_unit)

    @cached_property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """The path of each key that varies, with numbers for names of entries of the document."""
        return {key: numbered(parts_of(key), self.document) for key in self.table.keys}

    @cached_property
    def start(self) -> datetime | None:
        """The date of t = 0 on the clock of its time zone: `time.start`; None if it has none, or if it varies."""
        starts = {_start(self.document_of(number)) for number in (self.numbers if self._vary("time") else (1,))}
        return starts.pop() if len(starts) == 1 else None

    @cached_property
    def probe_limits(self) -> dict[str, Limits]:
        """The limits of probes by name, in SI units; those that vary are left out."""
        found: dict[str, set[Limits]] = {}
        for probe in self._entries("probes"):
            limits = Limits(**{key: si_number(probe[key]) for key in LIMITS if key in probe})
            found.setdefault(str(probe["name"]), set()).add(limits)
        return {name: limits.pop() for name, limits in found.items() if len(limits) == 1}

    @cached_property
    def probe_units(self) -> dict[str, str]:
        """The unit of each probe in the results, and of each column of a coupling, by name: those of all runs."""
        temperature = self.table_unit.name
        units = {
            str(probe["name"]): PROBE_UNITS.get(str(probe.get("statistic")), temperature)
            for probe in self._entries("probes")
        }
        tables = self._entries("couplings")
        return units | {name: unit for table in tables for name, unit in coupling_columns(table).items()}

    @cached_property
    def measured_probes(self) -> list[str]:
        """The names of the probes with measured values in any run."""
        return list(dict.fromkeys(str(probe["name"]) for probe in self._entries("probes") if "measured" in probe))

    @cached_property
    def limited(self) -> bool:
        """Whether a response or a probe has a limit."""
        of_probes = any(probe.keys() & {*LIMITS} for probe in self._entries("probes"))
        return of_probes or any(response.limits.given for response in self.table.responses)

    def _entries(self, key: str) -> list[dict[str, Any]]:
        """The entries of a list of tables in the file, and in all runs if their keys vary."""
        documents = [self.document]
        if self._vary(key) or (self._vary("regions") and with_copies(self.document).origins):
            documents = [self.document_of(number) for number in self.numbers]
        return [table for document in documents for table in with_copies(document).document.get(key, [])]

    def _vary(self, key: str) -> bool:
        """Whether something in a table of the scenario differs between runs."""
        return any(varied.partition(".")[0] == key for varied in self.table.keys)

    @property
    def numbers(self) -> range:
        """The numbers of all runs."""
        return range(1, len(self.points) + 1)

    def document_of(self, number: int) -> dict[str, Any]:
        """The document of a run's scenario."""
        document = copy.deepcopy({key: value for key, value in self.document.items() if key != "study"})
        for key, value in self.points[number - 1].items():
            Override(self.paths[key], value).apply(document)
        # A run draws no pictures, and writes fields only if the file has output.every.
        output = document.setdefault("output", {})
        if isinstance(output, dict):
            output.setdefault("fields", "every" in output)
            output["figures"] = False
        return document

    def scenario(self, number: int) -> Scenario:
        """The scenario of a run.

        Raises:
            ScenarioError: lists every mistake.
            InputError: an input file has another content than when the study began.
        """
        scenario = parse(self.document_of(number), self.path)
        refuse_accuracy(scenario, "the cells of a study are known before its runs")
        for name, checksum in self._inputs_of(scenario).items():
            if self.inputs.get(name, checksum) != checksum:
                raise InputError(
                    f"{name}: was changed since the study began; put its old content back and give the same command "
                    "again, or start a new study with another --output"
                )
        chosen = self.precision and scenario.solver.precision == "auto"
        return scenario.with_precision(self.precision) if chosen else scenario

    def with_inputs(self, scenarios: Iterable[Scenario]) -> "Definition":
        """The same study with the checksums of the input files that some scenarios have read."""
        inputs = {name: checksum for each in scenarios for name, checksum in self._inputs_of(each).items()}
        return replace(self, inputs=inputs)

    def _inputs_of(self, scenario: Scenario) -> dict[str, int]:
        folder, found = Path(os.path.abspath(self.path.parent)), {}
        for file in scenario.inputs:
            path = Path(os.path.abspath(file.path))
            name = path.relative_to(folder) if path.is_relative_to(folder) else path
            found[name.as_posix()] = file.checksum
        return found


Checked = tuple["Definition", dict[int, HeatProblem]]  # a study, and the heat problems by the number of the run


def read(path: str | Path, overrides: Sequence[str] = (), elsewhere: bool = False) -> Checked:
    """A study from a file, and the heat problem of every run.

    Args:
        path: the TOML file; paths inside it are relative to its folder.
        overrides: ``key.path=value`` settings that replace keys of the file or add keys.
        elsewhere: whether other machines do the runs.

    Raises:
        ScenarioError: lists every mistake in the file, and every refused run with its reasons.
        CapacityError: a run needs more memory than the machine has; this is checked before work on the run.
    """
    document, settings, mistakes = read_with_overrides(Path(path), overrides)
    advice = "write a table [study] with its method and parameters, or use `heatsim run`"
    return _of_document(Path(path), document, settings, mistakes, elsewhere, advice)


def read_dict(document: Mapping[str, Any], folder: str | Path, elsewhere: bool = False) -> Checked:
    """A study from a dictionary with the tables of a TOML file, and the heat problem of every run.

    Args:
        document: numbers and arrays of NumPy and paths are allowed.
        folder: where the paths of input files start.
        elsewhere: as for :func:`read`.

    Raises:
        ScenarioError, CapacityError: as for :func:`read`.
    """
    tables = plain_tables(document, OF_DICTIONARY, "Study.from_scenario")
    advice = "write a table study with its method and parameters, or use Simulation.from_dict"
    return _of_document(Path(folder) / OF_DICTIONARY, tables, (), [], elsewhere, advice)


def _of_document(
    path: Path,
    document: dict[str, Any],
    settings: Sequence[Override],
    mistakes: list[Mistake],
    elsewhere: bool,
    advice: str,
) -> Checked:
    """As :func:`read`, with the mistakes so far; ``advice`` for a document without a study."""
    if "study" not in document:
        raise ScenarioError(path, [*mistakes, Mistake("study", f"missing; {advice}")])
    table, mistakes_in_table = read_table(document["study"])
    mistakes += mistakes_in_table + _settings_of_varied_keys(settings, table, document)
    if table is None:
        raise ScenarioError(path, mistakes + _mistakes_beside_the_study(document, path))
    if count(table) > MAX_RUNS:
        message = f"makes {count(table):,} runs; at most {MAX_RUNS:,} are allowed: use fewer values"
        raise ScenarioError(path, [*mistakes, Mistake("study.parameters", message)])
    definition = Definition(path, document, tuple(points(table)))
    impossible = _impossible_keys(definition)
    if impossible:
        raise ScenarioError(path, [*mistakes, *impossible, *_mistakes_beside_the_study(document, path)])
    ends, known = _refused_ends(definition)
    whole, of_whole_numbers = _ranges_of_whole_numbers(definition, known)
    known |= of_whole_numbers
    mistakes += [*ends, *whole, *_repeated_points(definition.points)]
    return derive(definition, elsewhere, mistakes, known)


def derive(
    definition: Definition, elsewhere: bool, mistakes: Sequence[Mistake] = (), known: Collection[str] = ()
) -> Checked:
    """A study with the checksums of its input files, and the heat problem of every run.

    Args:
        definition: the study.
        elsewhere: whether other machines do the runs.
        mistakes: those that are known.
        known: keys whose mistakes are among them.

    Raises:
        ScenarioError, CapacityError: as for :func:`read`.
    """
    with reading_once():
        problems, refused = _derive(definition, elsewhere, known)
        definition = definition if refused else _with_one_precision(definition, problems)
    found = [*mistakes, *([] if refused else responses_name_free_columns(definition.table, definition.probes))]
    if refused or found:
        raise ScenarioError(definition.path, [*found, *_without_repetition(definition, refused)])
    return definition.with_inputs(problem.scenario for problem in problems.values()), problems


def _start(document: Mapping[str, Any]) -> datetime | None:
    time = document.get("time")
    start = time.get("start") if isinstance(time, Mapping) else None
    return None if start is None else datetime.fromisoformat(read_start(start)).replace(tzinfo=None)


def _settings_of_varied_keys(
    settings: Iterable[Override], table: StudyTable | None, document: Mapping[str, Any]
) -> list[Mistake]:
    """The settings of the command line that the values of the study would replace in each run."""
    mistakes = []
    for axis in () if table is None else table.axes:
        for key in axis.keys:
            parts = numbered(parts_of(key), document)
            for setting in settings:
                if setting.parts[: len(parts)] == parts or setting.sets(parts):
                    message = f"got {show_key(setting.parts)}; {axis.location} varies {key}: leave out one of them"
                    mistakes.append(Mistake("--set", message))
    return mistakes


def _mistakes_beside_the_study(document: Mapping[str, Any], file: Path) -> list[Mistake]:
    """The mistakes in the scenario, except in keys that the study's values would replace."""
    given = _given_keys(document)
    try:
        parse({key: value for key, value in document.items() if key != "study"}, file)
    except ScenarioError as error:
        return [
            mistake
            for mistake in error.mistakes
            if not _is_below(mistake.key, given) and not any(_is_below(key, [mistake.key]) for key in given)
        ]
    return []


def _given_keys(document: Mapping[str, Any]) -> list[str]:
    """The paths of keys of the scenario that get values from its table [study], as far as it can be read."""
    found: list[object] = []
    table = document["study"]
    if isinstance(table, Mapping):
        with suppress(ValueError):
            found += flatten(table.get("parameters"))
        linked = table.get("linked")
        for each in linked if isinstance(linked, list) else ():
            keys = each.get("keys") if isinstance(each, Mapping) else None
            found += keys if isinstance(keys, list) else ()
    return [path_of(key, document) for key in found if isinstance(key, str)]


def _impossible_keys(definition: Definition) -> list[Mistake]:
    """The keys that the scenario's tables cannot have, or that stand for the same value."""
    mistakes = []
    seen: dict[tuple[str, ...], str] = {}
    for axis in definition.table.axes:
        for key in axis.keys:
            path = definition.paths[key]
            mistake = Override(path, definition.points[0][key]).apply(copy.deepcopy(dict(definition.document)))
            if mistake:
                mistakes.append(Mistake(axis.location, mistake.message))
            elif path in seen:
                mistakes.append(Mistake(axis.location, f"varies {key}, which is {seen[path]}: leave out one of them"))
            seen.setdefault(path, key)
    return mistakes


def _refused_ends(definition: Definition) -> tuple[list[Mistake], set[str]]:
    """The ends of ranges that the scenario refuses, tested as the file writes them, with units; and their keys."""
    mistakes, keys = [], set()
    for axis in definition.table.axes:
        if not isinstance(axis.values, Range):
            continue
        for name, end in (("min", axis.values.min), ("max", axis.values.max)):
            at_end = _mistakes_with(definition, axis, end)
            mistakes += [Mistake(f"{axis.location}.{name}", mistake.message) for mistake in at_end]
            keys |= {mistake.key for mistake in at_end}
    return list(dict.fromkeys(mistakes)), keys


def _ranges_of_whole_numbers(definition: Definition, known: Collection[str]) -> tuple[list[Mistake], set[str]]:
    """The ranges of keys that take whole numbers only, which a draw never gives; and these keys.

    Mistakes at the keys ``known`` have been reported before.
    """
    mistakes, keys = [], set()
    for axis in definition.table.axes:
        if not isinstance(axis.values, Range) or _is_below(show_key(definition.paths[axis.keys[0]]), known):
            continue
        drawn = definition.points[0][axis.keys[0]]
        assert isinstance(drawn, float), "values from a range"
        refused = _mistakes_with(definition, axis, drawn)
        if refused and not _mistakes_with(definition, axis, round(drawn)):
            message = (
                f'draws values such as {drawn:.6g}, but {" and ".join(axis.keys)} must be whole: use method = "{GRID}" '
                "with a list of values"
            )
            mistakes.append(Mistake(axis.location, message))
            keys |= {mistake.key for mistake in refused}
    return mistakes, keys


def _mistakes_with(definition: Definition, axis: StudyAxis, value: object) -> list[Mistake]:
    """The mistakes at the keys of an axis in the first run if they have this value."""
    point = {**definition.points[0], **dict.fromkeys(axis.keys, value)}
    try:
        Definition(definition.path, definition.document, (point,)).scenario(1)
    except ScenarioError as error:
        paths = [show_key(definition.paths[key]) for key in axis.keys]
        return [mistake for mistake in error.mistakes if _is_below(mistake.key, paths)]
    return []


def _is_below(key: str, keys: Iterable[str]) -> bool:
    return any(key == each or key.startswith(f"{each}.") for each in keys)


def _repeated_points(given: Iterable[Point]) -> list[Mistake]:
    first: dict[str, int] = {}
    mistakes = []
    for number, point in enumerate(given, 1):
        text = identity(point)
        if text in first:
            message = f"runs {first[text]} and {number} are the same: {describe(point)}; write each point once"
            mistakes.append(Mistake("study", message))
        first.setdefault(text, number)
    return mistakes


def _derive(
    definition: Definition, elsewhere: bool, known: Collection[str]
) -> tuple[dict[int, HeatProblem], dict[int, list[Mistake]]]:
    """The heat problems of the runs, and the mistakes of the runs that are refused, by number.

    Mistakes at the keys ``known`` have been reported before.
    """
    problems: dict[int, HeatProblem] = {}
    last: HeatProblem | None = None
    refused: dict[int, list[Mistake]] = {}
    for number in definition.numbers:
        mistakes: list[Mistake] = []
        try:
            scenario = definition.scenario(number)
            named = [probe.name for probe in scenario.probes]
            named += [column for coupling in scenario.couplings for column in coupling.columns]
            mistakes += responses_name_known_probes(definition.table, named)
            mistakes += responses_suit_the_method(definition.table, scenario.steady)
            mistakes += thresholds_are_temperatures(definition.table, definition.probe_units)
            mistakes += limits_suit_their_responses(definition.table, definition.probe_units)
            check_room(scenario, elsewhere)
            last = problems[number] = HeatProblem.from_scenario(scenario, like=last)
        except ScenarioError as error:
            mistakes += [mistake for mistake in error.mistakes if mistake.key not in known]
        if mistakes:
            refused[number] = mistakes
    return problems, refused


def _with_one_precision(definition: Definition, problems: dict[int, HeatProblem]) -> Definition:
    """The study with one precision for all runs that leave it to "auto", float64 if any needs it; updates problems."""
    chosen = {each.precision for each in problems.values() if each.precision_choice is not None}
    if not chosen:
        return definition
    definition = replace(definition, precision=max(chosen))
    for number, problem in problems.items():
        if problem.precision_choice is not None and problem.precision != definition.precision:
            problems[number] = HeatProblem.from_scenario(definition.scenario(number), like=problem)
    return definition


def _without_repetition(definition: Definition, refused: Mapping[int, Sequence[Mistake]]) -> list[Mistake]:
    """The mistakes: first those that all runs share, once; then the others, run by run."""
    if not refused:
        return []
    general = {
        number: [_without_value(mistake, definition, number) for mistake in mistakes]
        for number, mistakes in refused.items()
    }
    shared = [
        mistake
        for mistake in next(iter(general.values()))
        if len(refused) == len(definition.points) and all(mistake in mistakes for mistakes in general.values())
    ]
    reported = list(shared)
    for number, mistakes in refused.items():
        pairs = zip(mistakes, general[number], strict=True)
        others = "; ".join(str(mistake) for mistake, rest in pairs if rest not in shared)
        if others:
            reported.append(Mistake(f"run {number} ({describe(definition.points[number - 1])})", others))
    return reported


def _without_value(mistake: Mistake, definition: Definition, number: int) -> Mistake:
    """A mistake without the value of the run's point: an unknown key is one mistake, not one for each value."""
    point = definition.points[number - 1]
    for key, path in definition.paths.items():
        if show_key(path) == mistake.key:
            return Mistake(mistake.key, mistake.message.removeprefix(f"got {show(point[key])}; "))
    return mistake
