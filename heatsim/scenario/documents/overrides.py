"""Overrides from the command line, ``key.path=value``, and their effect on a TOML document."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from heatsim.errors import Mistake
from heatsim.scenario.documents.key_paths import INDEX, KEY, QUOTES, numbered, parts_of, which_entry
from heatsim.scenario.messages import show, show_key

EXAMPLE = "write key.path=value, for example --set time.end=10 or --set probes.centre.point=[0,0,0]"


@dataclass(frozen=True)
class Override:
    """A value and the path of its key. Entries of lists have their name, or their number from 0."""

    parts: tuple[str, ...]
    value: object

    def numbered(self, document: Mapping[str, Any]) -> "Override":
        """The same with numbers for names of entries of a document."""
        return replace(self, parts=numbered(self.parts, document))

    def apply(self, document: dict[str, Any]) -> Mistake | None:
        """Set the value, and create missing tables; return a mistake if the document cannot have the key."""
        return self.numbered(document)._apply(document)

    def _apply(self, document: dict[str, Any]) -> Mistake | None:
        """As :meth:`apply`, with numbers for names."""
        place: Any = document
        for depth, part in enumerate(self.parts):
            last = depth == len(self.parts) - 1
            if isinstance(place, list):
                if not INDEX.fullmatch(part) or int(part) > len(place):
                    reason = which_entry(place, self.parts[:depth], part)
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
        elif text[:1] in QUOTES and text[-1:] == text[:1]:
            mistakes.append(Mistake("--set", f"got {show(text)}; leave out the quotes around it: {text[1:-1]}"))
        else:
            mistakes.append(Mistake("--set", f"got {show(text)}; {EXAMPLE}"))
    return overrides, mistakes


def _read_value(text: str) -> object:
    """A TOML value; other text is a string, so a shell command needs no nested quotes."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return document["value"] if document.keys() == {"value"} else text
