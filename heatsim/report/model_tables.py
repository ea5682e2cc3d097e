"""The model of a run as tables: materials, powers, conditions, contacts and the rest, from the lines of its plan."""

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from heatsim.report.number_tables import NumberTable

_KIND = re.compile(r"(\w+) +(.*)")
# The tables, and the kinds of lines in each.
_TITLES = {
    "Materials": ("material", "void"),
    "Powers": ("source",),
    "Conditions": ("face", "patch", "surface"),
    "Contacts": ("contact",),
    "Layers": ("layer",),
    "Nodes and channels": ("node", "channel"),
    "Regions": ("region",),
    "Probes and couplings": ("probe", "coupling"),
    "Start": ("initial",),
}
_MATERIAL = re.compile(r"(.*), ρ = (\S+) kg/m³, cp = (\S+) J/\(kg K\)(.*)")


def model_tables(summary: Mapping[str, Any]) -> Iterator[NumberTable]:
    """A table for each kind of thing in the model; none if summary.json has no model."""
    found = [match.groups() for line in summary.get("model", []) if (match := _KIND.fullmatch(line))]
    lines = {kind: [text for _, text in of] for kind, of in groupby(sorted(found, key=lambda each: each[0]), _first)}
    for title, kinds in _TITLES.items():
        rows = [row for kind in kinds for text in lines.get(kind, []) if (row := _row(text, kind))]
        if title == "Materials" and rows:
            yield NumberTable(title, ("", "cells", "k (W/(m K))", "ρ (kg/m³)", "cp (J/(kg K))"), rows)
        elif rows:
            yield NumberTable(title, ("", ""), rows)


def _first(pair: tuple[str, ...]) -> str:
    return pair[0]


def _row(text: str, kind: str) -> tuple[str, ...]:
    """The name of a line and what it says; of a material its numbers."""
    name, colon, rest = text.partition(": ")
    if kind == "void":
        return (kind, text.split(" ")[0], "–", "–", "–")
    if kind != "material":
        return (name, rest) if colon else ("temperature", text)
    cells, _, numbers = rest.partition("; k = ")
    found = _MATERIAL.fullmatch(numbers)
    if found is None:
        return ()
    conductivity, density, heat, at = found.groups()
    count, _, noun = cells.partition(" ")
    cells = count if noun.startswith("cell") else "–"  # a material of layers alone has none
    return (f"{name}{at}", cells, conductivity.removesuffix(" W/(m K)"), density, heat)
