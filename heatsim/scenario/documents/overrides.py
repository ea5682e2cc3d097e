"""Overrides from the command line, ``key.path=value``, and their effect on a TOML document."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heatsim.errors import Mistake
from heatsim.scenario.messages import show, show_key

# Names of materials of the library have a colon and parentheses.
PART = re.compile(r"""[A-Za-z0-9_:()-]+|"[^"\\]*"|'[^']*'""")
KEY = re.compile(rf"""\s*(?:{PART.pattern})\s*(?:\.\s*(?:{PART.pattern})\s*)*""")
INDEX = re.compile(r"\d{1,6}")
_QUOTES = ("'", '"')
EXAMPLE = "write key.path=value, for example --set time.end=10 or --set probes.0.point=[0,0,0]"


@dataclass(frozen=True)
class Override:
    """A value and the path of its key; a number in a path counts the entries of a list from 0."""

    parts: tuple[str, ...]
    value: object

    def apply(self, document: dict[str, Any]) -> Mistake | None:
        """Set the value, and create missing tables; return a mistake if the document cannot have the key."""
        place: Any = document
        for depth, part in enumerate(self.parts):
            last = depth == len(self.parts) - 1
            if isinstance(place, list):
                if not INDEX.fullmatch(part) or int(part) > len(place):
                    reason = _which_entry(place, self.parts[:depth], part)
                    return Mistake("--set", f"got {show_key(self.parts)}; {reason}")
                index = int(part)
                if index == len(place):
                    place.append(self._empty(depth))
                if last:
                    place[index] = self.value
                place = place[index]
            elif isinstance(place, dict):
                if last:
                    place[part] = self.value
                elif part not in place:
                    place[part] = self._empty(depth)
                place = place[part]
            else:
                at = show_key(self.parts[:depth])
                return Mistake("--set", f"got {show_key(self.parts)}; {at} is {show(place)}, which has no keys")
        return None

    def sets(self, parts: Sequence[str]) -> bool:
        """Whether its value is a table or list that has the key at a path."""
        if tuple(parts[: len(self.parts)]) != self.parts:
            return False
        place: Any = self.value
        for part in parts[len(self.parts) :]:
            if isinstance(place, list) and INDEX.fullmatch(part) and int(part) < len(place):
                place = place[int(part)]
            elif isinstance(place, dict) and part in place:
                place = place[part]
            else:
                return False
        return True

    def _empty(self, depth: int) -> dict[str, Any] | list[Any]:
        """The container to create: a list if the next part of the path is a number, else a table."""
        following = self.parts[depth + 1 : depth + 2]
        return [] if following and INDEX.fullmatch(following[0]) else {}


def read_overrides(texts: Sequence[str]) -> tuple[list[Override], list[Mistake]]:
    """The overrides in texts of the command line, and the mistakes in those that cannot be read; one text is enough."""
    overrides, mistakes = [], []
    for text in [texts] if isinstance(texts, str) else texts:
        key = KEY.match(text)
        if key is not None and text[key.end() :].startswith("="):
            overrides.append(Override(parts_of(key[0]), _read_value(text[key.end() + 1 :].strip())))
        elif text[:1] in _QUOTES and text[-1:] == text[:1]:
            mistakes.append(Mistake("--set", f"got {show(text)}; leave out the quotes around it: {text[1:-1]}"))
        else:
            mistakes.append(Mistake("--set", f"got {show(text)}; {EXAMPLE}"))
    return overrides, mistakes


def parts_of(path: str) -> tuple[str, ...]:
    """The parts of a dotted key, without their quotes."""
    return tuple(_unquoted(part[0]) for part in PART.finditer(path))


def _unquoted(part: str) -> str:
    """A part of a key without quotes."""
    return part[1:-1] if part[0] in _QUOTES else part


def _read_value(text: str) -> object:
    """A TOML value; other text is a string, so a shell command needs no nested quotes."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return document["value"] if document.keys() == {"value"} else text


def _which_entry(entries: Sequence[Any], at: Sequence[str], part: str) -> str:
    """What to write instead of ``part`` for an entry of the list at a path."""
    named = [number for number, entry in enumerate(entries) if isinstance(entry, dict) and entry.get("name") == part]
    if len(named) == 1:
        return f"entries of a list have numbers: write {show_key([*at, named[0]])}"
    if not entries:
        return f"{show_key(at)} is an empty list: write 0 to add an entry"
    count = len(entries)
    has = "1 entry: write 0" if count == 1 else f"{count} entries: write a number from 0 to {count - 1}"
    return f"{show_key(at)} has {has}, or {count} to add an entry"
