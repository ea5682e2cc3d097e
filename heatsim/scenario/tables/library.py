"""The library of materials: ``library:copper`` has constant properties, ``library:copper(T)`` tables in temperature.

A scenario may name a material of the library wherever it may name another one. The values then stand in the resolved
scenario, below ``[materials."library:copper"]``; the same table in a scenario replaces single values.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from heatsim.scenario.messages import show, suggest

PREFIX = "library:"
VARYING = "(T)"
FILE = Path(__file__).with_name("library.toml")
# The keys of a scenario whose value is the name of a material, or a list or table of such names.
_KEYS = ("material", "between", "materials")


@dataclass(frozen=True)
class LibraryMaterial:
    """A material of the library; SI units.

    Attributes:
        name: without "library:".
        title: its name in full.
        at: the temperature in K of the constant properties.
        conductivity: along x, y and z.
        density, specific_heat: at the same temperature.
        range: between which temperatures in K the constant properties hold to about 10 %.
        table: rows of temperature in K, conductivity and specific heat; empty if there is none.
        reference: the source of the values.
    """

    name: str
    title: str
    at: float
    conductivity: tuple[float, float, float]
    density: float
    specific_heat: float
    range: tuple[float, float]
    table: tuple[tuple[float, float, float], ...]
    reference: str

    def properties(self, varying: bool) -> dict[str, Any]:
        """The keys of a table [materials.NAME]: constant, or functions of temperature."""
        conductivity: Any = list(self.conductivity)
        specific_heat: Any = self.specific_heat
        if varying:
            temperatures, values, heats = (list(column) for column in zip(*self.table, strict=True))
            conductivity = {"temperatures": temperatures, "values": values}
            specific_heat = {"temperatures": temperatures, "values": heats}
        return {"conductivity": conductivity, "density": self.density, "specific_heat": specific_heat}


@cache
def library() -> dict[str, LibraryMaterial]:
    """All materials of the library by name, in the order of its file."""
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
    found = {}
    for name, table in tables["materials"].items():
        k = table["conductivity"]
        kx, ky, kz = k if isinstance(k, list) else (k, k, k)
        low, high = table["range"]
        found[name] = LibraryMaterial(
            name=name,
            title=table["title"],
            at=table["at"],
            conductivity=(kx, ky, kz),
            density=table["density"],
            specific_heat=table["specific_heat"],
            range=(low, high),
            table=tuple((float(T), float(k), float(cp)) for T, k, cp in table.get("table", ())),
            reference=tables["references"][table["reference"]],
        )
    return found


def library_names() -> list[str]:
    """All names that a scenario may write: ``library:NAME``, and ``library:NAME(T)`` of materials with tables."""
    return [
        f"{PREFIX}{name}{ending}"
        for name, material in library().items()
        for ending in (("", VARYING) if material.table else ("",))
    ]


def is_of_library(name: object) -> bool:
    """Whether a name is meant for a material of the library."""
    return isinstance(name, str) and name.startswith(PREFIX)


def bare_name(name: str) -> str:
    """A name without "library:" and "(T)"."""
    return name.removeprefix(PREFIX).removesuffix(VARYING)


def properties_of(name: str) -> dict[str, Any]:
    """The keys of a table [materials.NAME] for ``library:NAME`` or ``library:NAME(T)``.

    Raises:
        ValueError: the library has no such material, or no table for it; the message is for the user.
    """
    bare = bare_name(name)
    material = library().get(bare)
    if material is None:
        # Names without their common beginning, which makes all of them near.
        nearest = suggest(bare, library())
        near = f"; did you mean {show(PREFIX + nearest)}?" if nearest else ""
        raise ValueError(f"got {show(name)}; the library has no such material, `heatsim materials` lists all{near}")
    varying = name.endswith(VARYING)
    if varying and not material.table:
        raise ValueError(f"got {show(name)}; the library has only constant properties of it: {show(PREFIX + bare)}")
    return material.properties(varying)


def read_table(table: object) -> object:
    """The table of a material; a name of the library is replaced by its table.

    Raises:
        ValueError: the library does not have it; the message is for the user.
    """
    return properties_of(table) if isinstance(table, str) and is_of_library(table) else table


def with_library(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A scenario's document whose [materials] have all materials of the library that its other tables name.

    Values of ``[materials."library:NAME"]`` in the document replace those of the library. Names that the library does
    not have stay without a table.
    """
    own = document.get("materials", {})
    if not isinstance(own, Mapping):
        return document
    other = {key: value for key, value in document.items() if key not in ("material", "materials", "study")}
    added = {}
    for name in dict.fromkeys((*filter(is_of_library, own), *_names(other))):
        given = own.get(name, {})
        try:
            added[name] = {**properties_of(name), **given} if isinstance(given, Mapping) else given
        except ValueError:
            continue
    return {**document, "materials": {**own, **added}} if added else document


def _names(node: object, named: bool = False) -> Iterator[str]:
    """The names of the library in a part of a document; ``named``: below a key that names materials."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _names(value, named or key in _KEYS)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _names(value, named)
    elif named and isinstance(node, str) and is_of_library(node):
        yield node
