"""Paths of keys by names: `regions.fin.box.max.z` is `regions.1.box.max.2` if the second region is the fin.

In `--set` and in studies, the name of an entry of a list stands for its number, and the letter of an axis for that of a
coordinate. Digits alone are always a number, so names of digits are not found.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from heatsim.grid import AXES
from heatsim.scenario.messages import did_you_mean, show, show_key
from heatsim.scenario.tables.named import DEFAULT_NOUNS

# Names of materials of the library have a colon and parentheses, copies of a repeated part brackets.
PART = re.compile(r"""[A-Za-z0-9_:()-]+|"[^"\\]*"|'[^']*'""")
KEY = re.compile(rf"""\s*(?:{PART.pattern})\s*(?:\.\s*(?:{PART.pattern})\s*)*""")
INDEX = re.compile(r"\d{1,6}")
QUOTES = ("'", '"')
_MOST_NAMES = 8
# Keys whose lists of three entries belong to x, y and z; those of a rectangle to the two axes in its plane.
_VECTORS = frozenset(
    {"size", "cells", "origin", "min", "max", "centre", "from", "to", "point", "translate", "count", "step"}
)
_VECTORS_OF_MATERIALS = frozenset({"conductivity"})


def parts_of(path: str) -> tuple[str, ...]:
    """The parts of a dotted key, without their quotes."""
    return tuple(part[0][1:-1] if part[0][0] in QUOTES else part[0] for part in PART.finditer(path))


def numbered(parts: Sequence[str], document: object) -> tuple[str, ...]:
    """The parts of a path with numbers for names of entries and letters of axes.

    A part that names no entry, or several, stays as it is.
    """
    found: list[str] = []
    within: list[Any] = [document]
    for part in parts:
        number = part
        if isinstance(within[-1], list) and not INDEX.fullmatch(part):
            places = _names(found, within[-1]) if found else []
            axes = axes_of(found, within)
            if places.count(part) == 1:
                number = str(places.index(part))
            elif part in axes:
                number = str(axes.index(part))
        found.append(number)
        within.append(_below(within[-1], number))
    return tuple(found)


def path_of(key: str, document: object) -> str:
    """A dotted key with numbers for names, as messages about mistakes write it."""
    return show_key(numbered(parts_of(key), document))


def containers(parts: Sequence[str], document: object) -> list[Any]:
    """The document, then the value after each part of a path with numbers; None where there is nothing."""
    within: list[Any] = [document]
    for part in parts:
        within.append(_below(within[-1], part))
    return within


def axes_of(at: Sequence[str], within: Sequence[Any]) -> Sequence[str]:
    """The letters of the axes of a list of coordinates; empty for other values.

    Args:
        at: the path of the list.
        within: the values on this path, from the document to the list.
    """
    values = within[-1]
    if not at or not isinstance(values, list):
        return ()
    if len(values) == len(AXES) and at[-1] in _VECTORS | _VECTORS_OF_MATERIALS:
        return AXES
    if len(values) == len(AXES) - 1 and at[-1] in _VECTORS and "rectangle" in at:
        tables = [each for each in within[:-1] if isinstance(each, Mapping)]
        normals = [str(table[key])[:1] for table in tables for key in ("face", "axis") if key in table]
        return [axis for axis in AXES if axis != normals[-1]] if normals and normals[-1] in AXES else ()
    return ()


def which_entry(entries: Sequence[Any], at: Sequence[str], part: str) -> str:
    """What to write instead of ``part`` for an entry of the list at a path."""
    where, count = show_key(at), len(entries)
    if not entries:
        return f"{where} is an empty list: write 0 to add an entry"
    named = [name for name in (_names(at, entries) if at else []) if isinstance(name, str)]
    if named.count(part) > 1:
        numbers = " and ".join(str(n) for n, name in enumerate(_names(at, entries)) if name == part)
        return f"{named.count(part)} entries of {where} have this name: write one of the numbers {numbers}"
    if named and not INDEX.fullmatch(part):
        listed = ", ".join(map(show, named[:_MOST_NAMES])) + (", …" if len(named) > _MOST_NAMES else "")
        return f"the names in {where} are {listed}{did_you_mean(part, named)}"
    has = "1 entry: write 0" if count == 1 else f"{count} entries: write a number from 0 to {count - 1}"
    return f"{where} has {has}, or {count} to add an entry"


def _names(at: Sequence[str], entries: Sequence[Any]) -> list[str | None]:
    """The names of the entries of the list at a path, also those that entries without a name get; None without one."""
    noun = DEFAULT_NOUNS.get(".".join(at))
    defaults = (None if noun is None else f"{noun} {number}" for number in range(1, len(entries) + 1))
    pairs = zip(entries, defaults, strict=True)
    return [entry.get("name", default) if isinstance(entry, Mapping) else None for entry, default in pairs]


def _below(place: Any, part: str) -> Any:
    """The value at a part of a path below another value; None if there is none."""
    if isinstance(place, list):
        return place[int(part)] if INDEX.fullmatch(part) and int(part) < len(place) else None
    return place.get(part) if isinstance(place, Mapping) else None
