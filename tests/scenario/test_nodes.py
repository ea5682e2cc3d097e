"""What is refused of nodes, with key and message."""

from typing import Any

import pytest

from heatsim.errors import ScenarioError
from heatsim.scenario import parse

AIR = {"name": "air", "links": [{"ambient": 300.0, "conductance": 1.0}]}
FLOW = {"mass_flow": 1.0, "specific_heat": 2.0}
TOWARDS_AIR = {"type": "convection", "coefficient": 5.0, "ambient": {"node": "air"}}
ITSELF = "got {}, the node itself; another node is expected"
UNTIED = (
    "got {0} exchanges heat with no surface, no given temperature and no node that does, so it has no temperature; "
    "give it a link, a flow, or a surface with ambient = {{ node = {0} }}"
).removeprefix("got ")


def mistakes(nodes: list[dict[str, Any]], face: dict[str, Any] | None = None, **time: Any) -> list[tuple[str, str]]:
    document = {
        "domain": {"size": [0.1, 0.1, 0.1], "cells": [2, 2, 2]},
        "material": {"conductivity": 1.0, "density": 1.0, "specific_heat": 1.0},
        "initial": {"temperature": 300.0},
        "time": {"end": 1.0, "method": "stabilized"} | time,
        "nodes": nodes,
        "boundaries": {} if face is None else {"x_min": face},
    }
    with pytest.raises(ScenarioError) as caught:
        parse(document, "case.toml")
    return [(found.key, found.message) for found in caught.value.mistakes]


@pytest.mark.parametrize(
    ("nodes", "face", "key", "message"),
    [
        ([AIR], {**TOWARDS_AIR, "ambient": {"node": "iar"}}, "boundaries.x_min.ambient",
         'got "iar"; one of "air" is expected'),
        ([], TOWARDS_AIR, "boundaries.x_min.ambient", 'got "air"; there are no [[nodes]]'),
        ([AIR], {**TOWARDS_AIR, "ambient": {"node": "air", "att": 3.0}}, "boundaries.x_min.ambient.att",
         "unknown key; did you mean \"at\"?; a node has the keys node and at here"),
        ([{**AIR, "links": [{"node": "air", "conductance": 1.0}]}], TOWARDS_AIR, "nodes.0.links.0.node",
         ITSELF.format('"air"')),
        ([{**AIR, "flows": [{"node": "air", **FLOW}]}], None, "nodes.0.flows.0.node", ITSELF.format('"air"')),
        ([{**AIR, "links": [{"node": "b", "ambient": 3.0, "conductance": 1.0}]}], None, "nodes.0.links.0.node",
         "got ambient and node; write one of them"),
        ([{**AIR, "links": [{"conductance": 1.0}]}], None, "nodes.0.links.0.ambient",
         'missing; write for example ambient = "-5 degC", or node = "attic"'),
        ([{**AIR, "flows": [FLOW]}], None, "nodes.0.flows.0.inlet",
         'missing; write for example inlet = "5 degC", or node = "attic"'),
        ([{**AIR, "heat_capacity": 5.0}], None, "nodes.0.initial_temperature",
         'missing; write for example initial_temperature = "20 degC"'),
        ([{**AIR, "initial_temperature": 300.0}], None, "nodes.0",
         "got initial_temperature = 300.0 without a heat_capacity; such a node follows its surroundings at once: "
         "remove the key, or give a heat_capacity"),
        ([{**AIR, "name": "time"}], None, "nodes.0.name",
         'got "time"; this is the name of the first column in nodes.csv: choose another'),
        ([AIR, {"name": "b", "flows": [{"node": "air", **FLOW}]}], None, "nodes.0.flows",
         'other nodes draw 2 W/K of fluid (mass flow · specific heat) from "air", and 0 W/K enters it; let at least as '
         "much enter it"),
        ([{"name": "air"}], None, "nodes.0", UNTIED.format('"air"')),
        ([{"name": "a", "links": [{"node": "b", "conductance": 1.0}]}, {"name": "b"}], None, "nodes.1",
         UNTIED.format('"b"')),
        ([AIR], {**TOWARDS_AIR, "coefficient": "abs(T - Tamb)"}, "boundaries.x_min.ambient",
         'got the node "air"; a coefficient in T or Tamb towards a node is taken at one ambient temperature, and '
         'shifted with the node; write ambient = { node = "air", at = "20 degC" }'),
        ([AIR], {**TOWARDS_AIR, "coefficient": "abs(T - Tamb)", "emissivity": 0.5}, "boundaries.x_min.ambient",
         'got the node "air"; a coefficient in T or Tamb towards a node stands alone; remove emissivity and flux'),
        ([AIR], {**TOWARDS_AIR, "emissivity": "0.1 + T/1e4"}, "boundaries.x_min.ambient",
         'got the node "air"; an emissivity that depends on the temperature radiates to given temperatures, not to a '
         "node"),
    ],
)  # fmt: skip
def test_refused(nodes: list[dict[str, Any]], face: dict[str, Any] | None, key: str, message: str) -> None:
    assert (key, message) in mistakes(nodes, face)


def test_names_differ() -> None:
    assert mistakes([AIR, AIR]) == [("nodes.1.name", 'got "air" a second time; all nodes need different names')]


def test_what_cannot_be_read_counts_as_a_tie() -> None:
    assert len(mistakes([{"name": "air", "links": [{"conductance": 1.0}]}])) == 1
