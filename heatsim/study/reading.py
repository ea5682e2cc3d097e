"""The table [study] read from a file, with all of its mistakes told at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from heatsim.errors import Mistake
from heatsim.scenario import units
from heatsim.scenario.messages import did_you_mean, has_control_characters, missing_key, show, show_key, unknown_key
from heatsim.scenario.overrides import PART
from heatsim.scenario.quantities import TEMPERATURE
from heatsim.study.table import (
    GRID,
    LATIN_HYPERCUBE,
    MAXIMUM_RUNS,
    METHODS,
    SCALES,
    STATISTICS,
    TIME_ABOVE,
    TIME_BELOW,
    ZIP,
    Axis,
    Range,
    Response,
    StudyTable,
)

_LIST_EXAMPLE = "[100.0, 500.0]"
_RANGE_EXAMPLE = "{ min = 100.0, max = 2500.0 }"
_LINKED_EXAMPLE = 'keys = ["boundaries.x_min.value", "boundaries.x_max.value"] and values = [300.0, 350.0]'
_RESPONSE_EXAMPLE = (
    'each response under its own heading [[study.responses]], with name = "hottest", probe = "centre" and statistic = '
    '"max"'
)


def read_table(table: object) -> tuple[StudyTable | None, list[Mistake]]:
    """The settings in the value of ``study``, and all mistakes; None where there are too many of them to go on."""
    problems: list[Mistake] = []
    if not isinstance(table, Mapping):
        return None, [Mistake("study", f"got {show(table)}; write a table, with the heading [study] and its keys")]
    known = ("method", "samples", "seed", "parameters", "linked", "responses")
    problems += _unknown("study", table, known)
    method = _choice("study", table, "method", METHODS, problems)
    axes = [*_read_parameters(table.get("parameters", {}), problems), *_read_linked(table.get("linked", []), problems)]
    if "parameters" not in table and "linked" not in table:
        example = f'{missing_key(f"""[study.parameters] with "material.density" = {_LIST_EXAMPLE} below it""")}'
        problems.append(Mistake("study.parameters", example))
    elif not axes and not problems:
        problems.append(Mistake("study.parameters", f'empty; write for example "material.density" = {_LIST_EXAMPLE}'))
    _refuse_repeated_keys(axes, problems)
    if method is not None:
        _check_values(method, axes, problems)
    samples, seed = _read_sampling(method, table, problems)
    responses = _read_responses(table.get("responses", []), problems)
    if problems or method is None:
        return None, problems
    return StudyTable(method, tuple(axes), tuple(responses), samples, seed), []


def _unknown(place: str, table: Mapping[str, object], known: Sequence[str]) -> list[Mistake]:
    return [
        Mistake(f"{place}.{show_key([key])}", unknown_key(key, value, known))
        for key, value in table.items()
        if key not in known
    ]


def _choice(
    place: str, table: Mapping[str, object], key: str, names: Sequence[str], problems: list[Mistake]
) -> str | None:
    allowed = ", ".join(f'"{name}"' for name in names)
    if key not in table:
        problems.append(Mistake(f"{place}.{key}", f'{missing_key(f"""{key} = "{names[0]}" """.strip())}; of {allowed}'))
        return None
    value = table[key]
    if value not in names:
        message = f"got {show(value)}; one of {allowed} is wanted{did_you_mean(value, names)}"
        problems.append(Mistake(f"{place}.{key}", message))
        return None
    return str(value)


def _read_parameters(table: object, problems: list[Mistake]) -> list[Axis]:
    if not isinstance(table, Mapping):
        message = (
            f'got {show(table)}; write a table, for example "material.density" = {_LIST_EXAMPLE} below its heading'
        )
        problems.append(Mistake("study.parameters", message))
        return []
    axes = []
    for key, value in _flat(table):
        place = f"study.parameters.{show_key([key])}"
        values = _read_values(value, place, problems) if _check_key(key, place, problems) else None
        if values is not None:
            axes.append(Axis((key,), values, place))
    return axes


def _flat(table: Mapping[str, object], above: str = "") -> list[tuple[str, object]]:
    """Keys and values; TOML makes nested tables of dotted keys that stand without quotes."""
    found: list[tuple[str, object]] = []
    for key, value in table.items():
        if isinstance(value, Mapping) and value and not {"min", "max"} & value.keys():
            found += _flat(value, f"{above}{key}.")
        else:
            found.append((f"{above}{key}", value))
    return found


def _check_key(key: object, place: str, problems: list[Mistake]) -> bool:
    wanted = 'the path of a key of the scenario is wanted, such as "boundaries.default.coefficient"'
    if not isinstance(key, str) or not all(PART.fullmatch(part) for part in key.split(".")):
        problems.append(Mistake(place, f"got {show(key)}; {wanted}"))
        return False
    if key.split(".")[0] == "study":
        problems.append(Mistake(place, f"got {show(key)}; {wanted}, not one of the study itself"))
        return False
    return True


def _read_values(value: object, place: str, problems: list[Mistake]) -> tuple[object, ...] | Range | None:
    if isinstance(value, list):
        if not value:
            problems.append(Mistake(place, f"got []; write at least one value, for example {_LIST_EXAMPLE}"))
            return None
        return tuple(value)
    if isinstance(value, Mapping):
        return _read_range(value, place, problems)
    message = (
        f"got {show(value)}; a list of values such as {_LIST_EXAMPLE} or a range such as {_RANGE_EXAMPLE} is wanted"
    )
    problems.append(Mistake(place, message))
    return None


def _read_range(table: Mapping[str, object], place: str, problems: list[Mistake]) -> Range | None:
    faults = _unknown(place, table, ("min", "max", "scale"))
    scale = "linear"
    if "scale" in table:
        scale = _choice(place, table, "scale", SCALES, faults) or scale
    ends = []
    for key in ("min", "max"):
        if key not in table:
            faults.append(Mistake(f"{place}.{key}", missing_key(_RANGE_EXAMPLE)))
        elif (number := si_number(table[key])) is None:
            message = f"got {show(table[key])}; a number or a text with a unit is wanted"
            faults.append(Mistake(f"{place}.{key}", message))
        else:
            ends.append(number)
    if len(ends) == 2:
        low, high = ends
        if not low < high:
            message = f"min = {show(table['min'])} is not below max = {show(table['max'])}"
            faults.append(Mistake(place, message))
        elif scale == "log" and low <= 0.0:
            faults.append(Mistake(place, f'min = {show(table["min"])}; scale "log" needs a min above 0'))
    problems += faults
    return None if faults else Range(ends[0], ends[1], (table["min"], table["max"]), scale)


def si_number(value: object) -> float | None:
    """A number as it is, a text with a unit in SI; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return None
    parts = units.split(value) if isinstance(value, str) else None
    if parts is None:
        return None
    try:
        return units.to_si(*parts)
    except ValueError:
        return None


def _read_linked(tables: object, problems: list[Mistake]) -> list[Axis]:
    axes = []
    for place, table in _entries("linked", tables, f"write {_LINKED_EXAMPLE} below [[study.linked]]", problems):
        problems += _unknown(place, table, ("keys", "values"))
        keys, values = table.get("keys"), None
        if not isinstance(keys, list) or not keys:
            got = f"got {show(keys)}" if "keys" in table else "missing"
            problems.append(Mistake(f"{place}.keys", f"{got}; write for example {_LINKED_EXAMPLE}"))
            keys = []
        good = [_check_key(key, f"{place}.keys.{index}", problems) for index, key in enumerate(keys)]
        if "values" in table:
            values = _read_values(table["values"], f"{place}.values", problems)
        else:
            problems.append(Mistake(f"{place}.values", missing_key(_LINKED_EXAMPLE)))
        if values is not None and good and all(good):
            axes.append(Axis(tuple(keys), values, f"{place}.values"))
    return axes


def _entries(key: str, tables: object, wanted: str, problems: list[Mistake]) -> list[tuple[str, Mapping[str, Any]]]:
    """The tables of a list with their places in the file."""
    if not isinstance(tables, list):
        problems.append(Mistake(f"study.{key}", f"got {show(tables)}; {wanted}"))
        return []
    found = []
    for index, table in enumerate(tables):
        place = f"study.{key}.{index}"
        if isinstance(table, Mapping):
            found.append((place, table))
        else:
            problems.append(Mistake(place, f"got {show(table)}; {wanted}"))
    return found


def _refuse_repeated_keys(axes: Sequence[Axis], problems: list[Mistake]) -> None:
    seen: dict[str, str] = {}
    for axis in axes:
        for key in axis.keys:
            if key in seen:
                problems.append(Mistake(axis.place, f"varies {key}, which {seen[key]} does already"))
            else:
                seen[key] = axis.place


def _check_values(method: str, axes: Sequence[Axis], problems: list[Mistake]) -> None:
    lists = [axis for axis in axes if not isinstance(axis.values, Range)]
    if method == LATIN_HYPERCUBE:
        problems += [
            Mistake(axis.place, f'got a list; method "{method}" draws from a range such as {_RANGE_EXAMPLE}')
            for axis in lists
        ]
        return
    problems += [
        Mistake(axis.place, f'got a range; method "{method}" takes a list of values such as {_LIST_EXAMPLE}')
        for axis in axes
        if isinstance(axis.values, Range)
    ]
    if method == ZIP:
        lengths = {axis.place: len(axis.values) for axis in lists if isinstance(axis.values, tuple)}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{place} has {length}" for place, length in lengths.items())
            problems.append(Mistake("study.method", f'"zip" needs lists of equal lengths: {counts}'))
        return
    for axis in lists:
        if isinstance(axis.values, tuple):
            texts = [show(value) for value in axis.values]
            problems += [
                Mistake(axis.place, f"has {text} {texts.count(text)} times; each value once")
                for text in dict.fromkeys(texts)
                if texts.count(text) > 1
            ]


def _read_sampling(method: str | None, table: Mapping[str, object], problems: list[Mistake]) -> tuple[int, int]:
    if method in (GRID, ZIP):
        for key in ("samples", "seed"):
            if key in table:
                message = f'got {show(table[key])}; method "{method}" draws no samples: leave it out'
                problems.append(Mistake(f"study.{key}", message))
        return 0, 0
    samples: Any = table.get("samples")
    seed: Any = table.get("seed", 0)
    if "samples" not in table and method == LATIN_HYPERCUBE:
        problems.append(Mistake("study.samples", missing_key("samples = 200")))
    elif "samples" in table and not (_is_whole(samples) and 1 <= samples <= MAXIMUM_RUNS):
        message = f"got {show(samples)}; a whole number of runs from 1 to {MAXIMUM_RUNS:,} is wanted"
        problems.append(Mistake("study.samples", message))
    if not (_is_whole(seed) and 0 <= seed < 2**63):
        problems.append(Mistake("study.seed", f"got {show(seed)}; a whole number from 0 is wanted"))
    return (samples if _is_whole(samples) else 0), (seed if _is_whole(seed) else 0)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read_responses(tables: object, problems: list[Mistake]) -> list[Response]:
    responses: list[Response] = []
    for place, table in _entries("responses", tables, f"write {_RESPONSE_EXAMPLE}", problems):
        before = len(problems)
        problems += _unknown(place, table, ("name", "probe", "statistic", "threshold"))
        name, probe = (_read_text(place, table, key, problems) for key in ("name", "probe"))
        if name in [response.name for response in responses]:
            problems.append(
                Mistake(f"{place}.name", f"got {show(name)} a second time; each response needs its own name")
            )
        statistic = _choice(place, table, "statistic", STATISTICS, problems)
        threshold = None
        if statistic in (TIME_ABOVE, TIME_BELOW):
            if "threshold" in table:
                try:
                    threshold = TEMPERATURE.read(table["threshold"])
                except ValueError as error:
                    problems.append(Mistake(f"{place}.threshold", str(error)))
            else:
                problems.append(Mistake(f"{place}.threshold", missing_key('threshold = "60 degC"')))
        elif statistic is not None and "threshold" in table:
            message = f'got {show(table["threshold"])}; statistic "{statistic}" has no threshold: leave it out'
            problems.append(Mistake(f"{place}.threshold", message))
        if len(problems) == before and statistic is not None:
            responses.append(Response(name, probe, statistic, threshold))
    return responses


def _read_text(place: str, table: Mapping[str, object], key: str, problems: list[Mistake]) -> str:
    value = table.get(key)
    if key not in table:
        problems.append(Mistake(f"{place}.{key}", missing_key(f'{key} = "centre"')))
    elif not isinstance(value, str) or not value.strip() or has_control_characters(value):
        message = f"got {show(value)}; a text in quotes is wanted, on one line and not empty"
        problems.append(Mistake(f"{place}.{key}", message))
    return value if isinstance(value, str) else ""
