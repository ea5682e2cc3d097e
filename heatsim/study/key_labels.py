"""Short labels of the keys that a study varies."""

from collections.abc import Mapping, Sequence
from typing import Any

from heatsim.grid import AXES

# Keys whose lists of three entries belong to x, y and z.
_VECTORS = frozenset({"size", "cells", "origin", "min", "max", "centre", "from", "to", "point", "translate"})


def key_label(key: str, others: Sequence[str], document: Mapping[str, Any]) -> str:
    """The shortest end of a key that is not the end of another key, such as "conductivity".

    Names replace the numbers of entries, and letters of axes the numbers of coordinates: `regions.1.box.max.1` becomes
    "fin.box.max.y" if the second region is the fin. A label does not begin with a number.

    Args:
        key: a path of keys.
        others: the other keys that vary.
        document: the tables of the scenario.
    """
    texts, entry = _texts(key, document)
    shown = [f".{'.'.join(_texts(other, document)[0])}" for other in others]
    for start in reversed(range(len(texts))):
        begins_with_number = key.split(".")[start].isdigit() and start != entry
        end = ".".join(texts[start:])
        if not begins_with_number and not any(other.endswith(f".{end}") for other in shown):
            return end if entry is None else ".".join(texts[min(start, entry) :])
    return key


def _texts(key: str, document: Mapping[str, Any]) -> tuple[list[str], int | None]:
    """The parts of a key as a reader knows them, and which of them is the name of an entry, if any."""
    texts: list[str] = []
    entry = None
    value: Any = document
    for place, part in enumerate(key.split(".")):
        inside, text = value, part
        if isinstance(inside, list):
            value = inside[int(part)] if part.isdigit() and int(part) < len(inside) else None
            if isinstance(value, Mapping) and "name" in value:
                text, entry = str(value["name"]), place
            elif texts and texts[-1] in _VECTORS and len(inside) == len(AXES) and value is not None:
                text = AXES[int(part)]
        else:
            value = inside.get(part) if isinstance(inside, Mapping) else None
        texts.append(text)
    return texts, entry
