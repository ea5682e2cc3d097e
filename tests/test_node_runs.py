"""Runs with nodes: exact exponentials, the same bits on ranks and after interruptions, and what is refused."""

import json
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from covering import mostly_slow

import heatsim
from heatsim import Simulation
from heatsim.errors import Interrupted, NotConvergedError, ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.run.error import coarser_run
from heatsim.run.error.values import read_values
from heatsim.scenario import load, parse
from heatsim.storage import folder

pytestmark = pytest.mark.usefixtures("one_thread")

METHODS = ("euler", "stabilized", "implicit", "steady")

# Two blocks in void beside a room of air, a wall without a heat capacity, and water that flows from one to the other.
TEXT = """
[domain]
size = [0.06, 0.05, 0.12]
cells = [6, 5, 12]
material = "void"
[materials.steel]
conductivity = 20.0
density = 2000.0
specific_heat = 500.0
[[regions]]
name = "low"
material = "steel"
box = { min = [0.0, 0.0, 0.0], max = [0.06, 0.05, 0.05] }
[[regions]]
name = "high"
material = "steel"
box = { min = [0.0, 0.01, 0.07], max = [0.05, 0.05, 0.12] }
[initial]
temperature = "320 + 100*z"
[boundaries]
z_min = { type = "convection", coefficient = 60.0, ambient = { node = "water" } }
[boundaries.z_max]
type = "convection"
coefficient = { times = [0.0, 5.0], values = [100.0, 300.0] }
ambient = { node = "out" }
[boundaries.void]
type = "convection"
coefficient = 20.0
ambient = { node = "air" }
emissivity = 0.8
surroundings = { node = "wall" }
[[surfaces]]
of = "high"
type = "convection"
coefficient = "5*abs(T - Tamb)^0.25"
ambient = { node = "air", at = 320.0 }
[[nodes]]
name = "air"
heat_capacity = 4.0
initial_temperature = 310.0
power = { times = [0.0, 2.0, 2.0, 6.0, 6.0, 10.0], values = [0.0, 0.0, 30.0, 30.0, 0.0, 0.0] }
links = [{ node = "wall", conductance = 0.3 }]
[[nodes]]
name = "wall"
links = [{ ambient = "280 + 2*t", conductance = 0.5 }]
[[nodes]]
name = "water"
heat_capacity = 40.0
initial_temperature = 330.0
flows = [{ inlet = 300.0, mass_flow = 1e-3, specific_heat = 4180.0 }]
[[nodes]]
name = "out"
flows = [{ node = "water", mass_flow = 5e-4, specific_heat = 4180.0 }]
[time]
end = 10.0
method = "stabilized"
[solver]
device = "cpu"
[output]
every = 5.0
probe_every = 1.25
figures = false
[[probes]]
name = "inside"
point = [0.031, 0.02, 0.01]
"""
FILES = (folder.NODES, folder.PROBES, folder.ENERGY, folder.FIELDS)


def options(method: str, *others: str) -> tuple[str, ...]:
    """Overrides; a steady state has no end."""
    return (f"time.method={method}", *others)


def text_of(method: str) -> str:
    return TEXT if method != "steady" else TEXT.replace("end = 10.0\n", "")


def content(at: Path) -> dict[str, bytes]:
    return {name: (at / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder of a run without interruption, by its method."""
    at = tmp_path_factory.mktemp("whole")

    def run(method: str) -> Path:
        if not (at / method).exists():
            path = runs.write(at, text_of(method), f"{method}.toml")
            Simulation.from_scenario(path, options(method), output=at / method).run()
        return at / method

    return run


@pytest.mark.parametrize(
    ("method", "ranks"),
    mostly_slow([(m, r) for m in METHODS for r in (2, 3)], ("steady", 2)),
)
def test_ranks_give_the_same_bytes(tmp_path: Path, whole: Any, method: str, ranks: int) -> None:
    path, parts = runs.write(tmp_path, text_of(method)), tmp_path / "parts"
    overrides = [option for override in options(method) for option in ("--set", override)]
    code, _, err = runs.process("run", path, "--output", parts, *overrides, "--ranks", str(ranks), "--quiet")
    assert code == 0, err
    assert content(parts) == content(whole(method))


def interrupted(simulation: Simulation, method: str, number: int) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        if method == "euler":
            runs.after_step(patch, number, runs.interrupt)
        else:
            runs.after_advance(patch, number, runs.interrupt)
        try:
            simulation.run()
        except Interrupted:
            return True
    return False


@pytest.mark.quick("stabilized")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_interrupted_runs_go_on_to_the_same_bytes(tmp_path: Path, whole: Any, method: str) -> None:
    """At the start, within steps, between rows and after the last one."""
    simulation, parts = (
        Simulation.from_scenario(runs.write(tmp_path, TEXT), options(method), output=tmp_path / "parts"),
        0,
    )
    last = simulation.plan.problem.timeline.last_step
    points = [0, 7, last // 2, last - 1] if method == "euler" else [1, 2, 3, 11]
    while interrupted(simulation, method, points[parts % len(points)]):
        parts += 1
        simulation = Simulation.resume(tmp_path / "parts")
    assert parts >= 3
    assert content(tmp_path / "parts") == content(whole(method))


def test_commands_know_nodes(tmp_path: Path, whole: Any) -> None:
    at = whole("stabilized")
    table = heatsim.open(at).nodes
    assert list(table)[:5] == ["air (K)", "wall (K)", "water (K)", "out (K)", "air surfaces (J)"]
    assert table.index[-1] == 10.0
    path = runs.write(tmp_path, TEXT)
    for method in METHODS:
        code, _, err = runs.command("plan", path, "--set", f"time.method={method}")
        assert code == 0, err
    assert 'node "air"' in runs.command("plan", path)[1]


@pytest.mark.quick("steady")
@pytest.mark.parametrize("method", METHODS)
def test_errors_of_runs_with_nodes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """The errors in space: the differences of the nodes to those of a run on a coarser grid."""
    monkeypatch.setattr(coarser_run, "PART", 1e9)  # the run is too short for the clock to decide
    path, fine, coarse = runs.write(tmp_path, text_of(method)), tmp_path / "fine", tmp_path / "coarse"
    Simulation.from_scenario(path, options(method, "domain.cells=[12, 10, 24]"), output=fine).run()
    Simulation.from_scenario(path, options(method, "output.error=none"), output=coarse).run()
    summary = json.loads((fine / folder.SUMMARY).read_text())
    stated = {value["name"]: value for value in summary["error_in_space"]["values"]}
    nodes = {key: value for key, value in read_values(fine).items() if key[0].startswith("node ")}
    assert len(nodes) == 4
    for key, value in nodes.items():
        other = read_values(coarse)[key]
        assert stated[key[0]]["coarser"] == other
        assert stated[key[0]]["error"] == abs(value - other) > 0.0


@pytest.mark.slow
def test_runs_with_nodes_converge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = runs.command("converge", runs.write(tmp_path, TEXT))
    assert code == 0
    assert all(f"node {name} (K)" in out for name in ("air", "wall", "water", "out"))


def test_a_step_beyond_the_limit_of_a_node_names_it(tmp_path: Path) -> None:
    path = runs.write(tmp_path, TEXT.replace("heat_capacity = 4.0", "heat_capacity = 1e-3"))
    with pytest.raises(ScenarioError, match=r'set by node "air"\); use at most that, "auto", or a larger heat_capa'):
        HeatProblem.from_scenario(load(path, ["time.method=euler", "time.dt=1.0"]))


# Two blocks of one cell exchange heat with a node: capacities in J/K, conductances in W/K through half cell and film.
LUMPED = {
    "domain": {"size": [0.03, 0.01, 0.01], "cells": [3, 1, 1], "material": "void"},
    "materials": {"m": {"conductivity": 1e3, "density": 1e3, "specific_heat": 1e3}},
    "regions": [
        {"name": "a", "material": "m", "initial_temperature": 400.0, "box": {"min": [0, 0, 0], "max": [0.01] * 3}},
        {"name": "b", "material": "m", "box": {"min": [0.02, 0, 0], "max": [0.03, 0.01, 0.01]}},
    ],
    "boundaries": {"void": {"type": "convection", "coefficient": 100.0, "ambient": {"node": "air"}}},
    "nodes": [{"name": "air"}],
    "initial": {"temperature": 300.0},
    "solver": {"device": "cpu", "precision": "float64"},
    "output": {"figures": False},
}  # fmt: skip


@pytest.mark.parametrize("capacity", [0.0, 0.5])
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_two_lumped_bodies_beside_a_node(method: str, capacity: float) -> None:
    C, G, end = 1.0, 1e-4 / (1.0 / 100.0 + 0.005 / 1e3), 60.0
    node = {"name": "air", "heat_capacity": capacity, "initial_temperature": 350.0} if capacity else {"name": "air"}
    time: dict[str, Any] = {"end": end, "method": method}
    if method != "euler":
        time["tolerance"] = 1e-3
    errors = []
    for dt in (0.2, 0.1) if method == "euler" else (0.0,):
        simulation = Simulation.from_dict(
            {**LUMPED, "nodes": [node], "time": time | ({"dt": dt} if dt else {})}, in_memory=True
        )
        simulation.run()
        found = simulation.temperature.reshape(-1)[[0, 2]]
        # By symmetry the node stays at 350 K, and each block approaches it.
        difference = 50.0 * exp(-G / C * end)
        errors.append(np.abs(found - [350.0 + difference, 350.0 - difference]).max())
    if method == "euler":
        assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.01)
        assert errors[0] < 50.0 * 0.5 * 0.2 * end * (G / C) ** 2
    else:
        assert errors[0] < 1e-3


def test_floating_parts_are_refused_in_steady_states() -> None:
    def floats(nodes: list[dict[str, Any]], **boundaries: Any) -> str:
        document = {**LUMPED, "nodes": nodes, "time": {"method": "steady"}}
        document["boundaries"] = {**LUMPED["boundaries"], **boundaries}  # type: ignore[dict-item]
        with pytest.raises(ScenarioError) as caught:
            HeatProblem.from_scenario(parse(document, "case.toml"))
        return str(caught.value)

    message = (
        'the body (region "a", region "b") is insulated, has a given flux, or exchanges heat only with nodes that '
        "nothing ties to a given temperature, on all sides at t = 0, so it has no steady temperature; give a node a "
        "link to an ambient, or a part of the surface a temperature or an ambient"
    )
    assert floats([{"name": "air"}]).endswith(f"boundaries: {message}")
    assert message in floats([{"name": "air", "links": [{"node": "b", "conductance": 1.0}]}, {"name": "b"}])
    # Tied through the other block; through a node beside it; downstream of an inlet, but not upstream.
    held = {"type": "convection", "coefficient": 9.0, "ambient": 300.0}
    tied = {"name": "b", "links": [{"ambient": 300.0, "conductance": 1.0}]}
    for nodes, faces in (
        ([{"name": "air"}], {"x_max": held}),
        ([{"name": "air", "links": [{"node": "b", "conductance": 1.0}]}, tied], {}),
        ([{"name": "air", "flows": [{"inlet": 300.0, "mass_flow": 1.0, "specific_heat": 1.0}]}], {}),
    ):
        document = {**LUMPED, "nodes": nodes, "time": {"method": "steady"}}
        document["boundaries"] = {**LUMPED["boundaries"], **faces}  # type: ignore[dict-item]
        HeatProblem.from_scenario(parse(document, "case.toml"))
    upstream = [
        {"name": "air", "flows": [{"node": "out", "mass_flow": 1.0, "specific_heat": 1.0}]},
        {"name": "out", "flows": [{"node": "air", "mass_flow": 1.0, "specific_heat": 1.0}]},
    ]
    assert "no steady temperature" in floats(upstream)


def test_a_node_that_exchanges_nothing_is_told() -> None:
    """A film of 0 ties the node to nothing."""
    document = {**LUMPED, "time": {"end": 1.0, "method": "euler"}}
    document["boundaries"] = {"void": {"type": "convection", "coefficient": "0*t", "ambient": {"node": "air"}}}
    with pytest.raises(NotConvergedError, match="nodes that exchange no heat"):
        Simulation.from_dict(document, in_memory=True).run()


def test_notes_name_given_values_but_no_temperatures_of_nodes(whole: Any) -> None:
    warnings = json.loads((whole("steady") / folder.SUMMARY).read_text())["warnings"]
    assert (
        "values that change in time are taken at t = 0: boundaries.z_max.coefficient, nodes.0.power, "
        "nodes.1.links.0.ambient"
    ) in warnings


def test_a_run_goes_on_until_nodes_are_slow_too() -> None:
    """The block is at rest from the start; the node approaches 400 K as exp(−t/100 s), so by 0.01 K/s from 460 s on."""
    document = {
        "title": "slow node",
        "domain": {"size": [0.01, 0.01, 0.01], "cells": [2, 2, 2]},
        "material": {"conductivity": 20.0, "density": 2000.0, "specific_heat": 500.0},
        "initial": {"temperature": 300.0},
        "boundaries": {"default": {"type": "temperature", "value": 300.0}},
        "nodes": [
            {
                "name": "tank",
                "heat_capacity": 1000.0,
                "initial_temperature": 300.0,
                "links": [{"ambient": 400.0, "conductance": 10.0}],
            }
        ],
        "time": {"end": 2000.0, "method": "stabilized", "stop_below": 0.01, "tolerance": 1e-3},
        "output": {"probe_every": 10.0, "fields": False},
    }
    simulation = Simulation.from_dict(document, in_memory=True)
    simulation.run()
    assert simulation.time in (470.0, 480.0)
