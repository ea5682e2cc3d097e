"""Repeated parts: `repeat` is short for the tables of all copies.

The copies of the region `via` are `via[0]`, `via[1]`, …, first along x, then along y and z. A source, probe, surface or
contact that names `via` stands for one table for each copy; each gets the same part of its power.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from pydantic import ValidationError

from heatsim.errors import Mistake
from heatsim.grid import AXES
from heatsim.scenario.messages import show, show_key, split_key
from heatsim.scenario.tables.named import DEFAULT_NOUNS
from heatsim.scenario.tables.repeat import MOST_COPIES, Repeat
from heatsim.scenario.values.quantities import si_number

REPEAT = "repeat"
_REPEATED = ("regions", "layers", "sources")
# Keys of tables with names of regions; those of pairs of them.
_ONE, _PAIR = ("region", "surface", "of"), "between"
_COPY = re.compile(r"\[\d+\]$")
_NAMING = ("sources", "probes", "surfaces", "contacts")

Table = Mapping[str, Any]


@dataclass
class Copies:
    """A document in which the copies of repeated parts are written out.

    Attributes:
        document: its tables.
        origins: by the key of a list of tables that was extended, the number in the file of each of its entries.
        mistakes: in what is repeated.
    """

    document: Table
    origins: dict[str, list[int]] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)


def in_file(mistakes: Sequence[Mistake], origins: Mapping[str, Sequence[int]]) -> list[Mistake]:
    """Mistakes with the keys of the file; of those that several copies have, that of the first.

    Args:
        mistakes: with the numbers of entries in the document with all copies.
        origins: see :class:`Copies`.
    """
    first: dict[str, str] = {}
    found = []
    for mistake in mistakes:
        key = _key_in_file(mistake.key, origins)
        if first.setdefault(key, mistake.key) == mistake.key:
            found.append(Mistake(key, mistake.message))
    return found


def _key_in_file(key: str, origins: Mapping[str, Sequence[int]]) -> str:
    top, *rest = split_key(key) or [""]
    if top not in origins or not rest or not rest[0].isdecimal():
        return key
    return show_key([top, origins[top][int(rest[0])], *rest[1:]])


def with_copies(document: Table) -> Copies:
    """A document with all copies of repeated parts; the same if nothing is repeated. Tables with mistakes stay."""
    lists = {key: document.get(key) for key in {*_REPEATED, *_NAMING}}
    if not any(_repeats(table) for key in _REPEATED for table in _tables(lists[key])):
        return Copies(document)
    found = Copies({**document})
    regions: dict[str, list[str]] = {}
    for key in dict.fromkeys((*_REPEATED, *_NAMING)):
        tables = lists[key]
        if isinstance(tables, list):
            entries = list(_named(key, tables))
            written = [list(_copies(key, number, table, regions, found)) for number, table in enumerate(entries)]
            found.document = {**found.document, key: [table for group in written for table in group]}
            found.origins[key] = [number for number, group in enumerate(written) for _ in group]
    return found


def base_of(name: str) -> str:
    """The name of the repeated part whose copy has a name; that name itself if it is no copy's."""
    return _COPY.sub("", name)


def _tables(value: object) -> Iterator[Table]:
    yield from (table for table in value if isinstance(table, Mapping)) if isinstance(value, list) else ()


def _repeats(table: Table) -> bool:
    return REPEAT in table


def _named(key: str, tables: Sequence[Any]) -> Iterator[Any]:
    """The tables with the names that they get by their numbers in the file."""
    noun = DEFAULT_NOUNS.get(key)
    for number, table in enumerate(tables, 1):
        yield {"name": f"{noun} {number}", **table} if noun is not None and isinstance(table, Mapping) else table


def _copies(key: str, number: int, table: Any, regions: dict[str, list[str]], found: Copies) -> Iterator[Any]:
    """The tables for an entry of a list; ``regions`` has the names of copies by the name of the region."""
    if not isinstance(table, Mapping):
        yield table
        return
    if key in _REPEATED and _repeats(table):
        yield from _shifted_copies(key, number, table, regions, found)
        return
    choices: dict[str, list[Any]] = {
        each: [*regions[table[each]]] for each in _ONE if _names_one(table.get(each), regions)
    }
    pair = table.get(_PAIR)
    if isinstance(pair, list | tuple) and any(_names_one(name, regions) for name in pair):
        sides = [regions[name] if _names_one(name, regions) else [name] for name in pair]
        choices[_PAIR] = [list(each) for each in product(*sides) if len({*map(str, each)}) == len(each)]
    if key not in _NAMING or not choices:
        yield table
        return
    chosen = list(product(*choices.values()))
    if len(chosen) > MOST_COPIES:
        message = f"stands for {len(chosen):,} tables, one for each copy; at most {MOST_COPIES:,} are allowed"
        found.mistakes.append(Mistake(show_key([key, number]), message))
        return
    for index, names in enumerate(chosen):
        yield _share(key, number, {**table, **dict(zip(choices, names, strict=True))}, index, len(chosen), found)


def _names_one(name: object, regions: Mapping[str, Sequence[str]]) -> bool:
    return isinstance(name, str) and name in regions


def _shifted_copies(
    key: str, number: int, table: Table, regions: dict[str, list[str]], found: Copies
) -> Iterator[Table]:
    shape = next((each for each in _MOVES if each in table), None)
    try:
        repeat = Repeat.model_validate(table[REPEAT])
    except ValidationError:
        yield table  # its model says what is wrong
        return
    rest = {each: value for each, value in table.items() if each != REPEAT}
    if shape is None:
        allowed = ", ".join(_MOVES)
        found.mistakes.append(Mistake(show_key([key, number, REPEAT]), f"needs one of {allowed}, which it can move"))
        yield rest
        return
    nx, ny, nz = repeat.count
    places = [(i, j, k) for k in range(nz) for j in range(ny) for i in range(nx)]
    for index, place in enumerate(places):
        shift = tuple(count * step for count, step in zip(place, repeat.step, strict=True))
        moved = {**rest, shape: _MOVES[shape](rest[shape], shift)} if any(shift) else rest
        copy = _share(key, number, moved, index, len(places), found)
        if key == "regions" and isinstance(table.get("name"), str):
            regions.setdefault(table["name"], []).append(copy["name"])
        yield copy


def _share(key: str, number: int, table: Table, index: int, count: int, found: Copies) -> dict[str, Any]:
    """A copy with its name and its part of the power."""
    copy = {**table}
    if isinstance(copy.get("name"), str):
        copy["name"] = f"{copy['name']}[{index}]"
    if "power" in copy and count > 1:
        power = si_number(copy["power"])
        if power is not None:
            copy["power"] = power / count
        elif index == 0 and key == "surfaces":
            message = f"got {show(copy['power'])}; write a number, which {count} copies share, or a value in W/m²"
            found.mistakes.append(Mistake(show_key([key, number, "power"]), message))
    return copy


def _moved_point(point: Any, shift: Sequence[float]) -> Any:
    """A point in m moved; one that is not a list of as many numbers stays."""
    numbers = [si_number(each) for each in point] if isinstance(point, list | tuple) else []
    if len(numbers) != len(shift):
        return point
    return [
        each if by == 0.0 or number is None else number + by
        for each, number, by in zip(point, numbers, shift, strict=True)
    ]


def _points_of(*keys: str) -> Callable[[Any, Sequence[float]], Any]:
    """Moves the points at some keys of a table."""

    def move(table: Any, shift: Sequence[float]) -> Any:
        if not isinstance(table, Mapping):
            return table
        return {key: _moved_point(value, shift) if key in keys else value for key, value in table.items()}

    return move


def _moved_stl(stl: Any, shift: Sequence[float]) -> Any:
    table = {"file": stl} if isinstance(stl, str) else stl
    return (
        _points_of("translate")({"translate": [0.0, 0.0, 0.0], **table}, shift) if isinstance(table, Mapping) else stl
    )


def _moved_plane(plane: Any, shift: Sequence[float]) -> Any:
    """A plane moved along its axis, and its rectangle along the two others."""
    if not isinstance(plane, Mapping) or plane.get("axis") not in AXES:
        return plane
    across = AXES.index(plane["axis"])
    along = [by for axis, by in enumerate(shift) if axis != across]
    moved = {**plane}
    if "at" in plane:
        (moved["at"],) = _moved_point([plane["at"]], [shift[across]])
    if "rectangle" in plane:
        moved["rectangle"] = _points_of("min", "max")(plane["rectangle"], along)
    return moved


_MOVES: Mapping[str, Callable[[Any, Sequence[float]], Any]] = {
    "box": _points_of("min", "max"),
    "sphere": _points_of("centre"),
    "cylinder": _points_of("from", "to"),
    "stl": _moved_stl,
    "plane": _moved_plane,
}
