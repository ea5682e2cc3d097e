"""Values that a program sets during a run, and the same run from a table of what was set."""

import csv
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from covering import mostly_slow

import heatsim
from heatsim import Simulation
from heatsim.errors import InputError, Interrupted, ScenarioError
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.estimates.temperature_range import Occurring
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import Table, load, parse_dict
from heatsim.scenario.documents.resolved import document as resolved
from heatsim.scenario.values.quantities import POWER
from heatsim.scenario.values.steered import Steered, multiples

METHODS = ["euler", "stabilized", "implicit"]
POWER_OF_HEATER = "sources.heater.power"
TEXT = """
title = "Bar with a heater"
[domain]
size = [0.1, 0.02, 0.02]
cells = [10, 3, 2]
[material]
conductivity = 50.0
density = 7800.0
specific_heat = 500.0
[initial]
temperature = "20 degC"
[boundaries]
default = { type = "convection", coefficient = 10.0, ambient = "20 degC", emissivity = 0.5 }
x_max = { type = "convection", coefficient = 200.0, ambient = "15 degC" }
[[sources]]
name = "heater"
power = 0.0
box = { min = [0, 0, 0], max = [0.02, 0.02, 0.02] }
[time]
end = 30.0
[solver]
device = "cpu"
kernel = "numpy"
[output]
every = 10
probe_every = 2
figures = false
error = "none"
[[probes]]
name = "tip"
point = [0.01, 0.01, 0.01]
[changes]
"sources.heater.power" = { range = [0, 100], every = "1 s" }
"""


def document(method: str = "euler", **tables: dict[str, Any]) -> dict[str, Any]:
    """The bar, with other keys in some tables."""
    found = tomllib.loads(TEXT)
    tables["time"] = {"method": method, **tables.get("time", {})}
    return {**found, **{name: {**found.get(name, {}), **keys} for name, keys in tables.items()}}


def recorded(at: Path, *names: str, unit: str = "W") -> dict[str, Any]:
    """The table [changes] that repeats what a run has set."""
    found = tomllib.loads(TEXT)["changes"]
    keys = {"file": str(at / "changes.csv"), "time": "time (s)"}
    return {
        name: {**found.get(name, {}), "recorded": {**keys, "column": f"{name} ({unit})"}}
        for name in names or [POWER_OF_HEATER]
    }


def control(simulation: Simulation, until: float) -> None:
    """A thermostat of 300 K, from now to a time in s."""
    while simulation.time < until:
        warm = simulation.probe("tip") > 300.0
        simulation.set(POWER_OF_HEATER, 0.0 if warm else "60 W")
        simulation.advance(simulation.time + 1.0)


def without_names(results: dict[str, Any]) -> dict[str, Any]:
    """Results of a run, without its scenario and the checksums of it."""
    values = {name: value for name, value in results["values"].items() if name not in ("scenario", "inputs")}
    return {**results, "values": values}


@pytest.mark.quick("euler", "implicit")
@pytest.mark.parametrize("method", METHODS)
def test_a_thermostat_and_its_record_have_the_same_bits(method: str, tmp_path: Path) -> None:
    live = Simulation.from_dict(document(method), tmp_path / "live")
    control(live, 30.0)
    assert live.finished
    memory = Simulation.from_dict(document(method), in_memory=True)
    control(memory, 30.0)
    np.testing.assert_array_equal(memory.temperature, live.temperature)

    again = document(method, changes=recorded(tmp_path / "live"))
    Simulation.from_dict(again, tmp_path / "again").run()
    assert without_names(runs.results(tmp_path / "again")) == without_names(runs.results(tmp_path / "live"))
    assert (tmp_path / "again/changes.csv").read_text() == (tmp_path / "live/changes.csv").read_text()
    paused = Simulation.from_dict(again, in_memory=True)
    for time in (0.0, 7.0, 8.0, 30.0):
        paused.advance(time)
    np.testing.assert_array_equal(paused.temperature, live.temperature)
    # The folder of the run is a scenario, with a copy of the record.
    Simulation.from_scenario(tmp_path / "again/scenario.toml", output=tmp_path / "copy").run()
    assert runs.results(tmp_path / "copy") == runs.results(tmp_path / "again")

    rows = list(csv.reader((tmp_path / "live/changes.csv").read_text().splitlines()))
    assert rows[0] == ["time (s)", "sources.heater.power (W)"]
    assert [float(row[0]) for row in rows[1:]] == list(range(30))
    powers = [float(row[1]) for row in rows[1:]]
    assert set(powers) == {0.0, 60.0}
    energy = heatsim.open(tmp_path / "live").energy
    assert energy["sources (J)"].iloc[-1] == pytest.approx(sum(powers), rel=1e-6)
    assert energy["residual (J)"].abs().max() < 1e-2


@pytest.mark.quick("euler")
@pytest.mark.parametrize("method", mostly_slow(METHODS, "euler", "stabilized"))
def test_resume_keeps_the_values(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Simulation.from_dict(document(method), tmp_path / "whole")
    control(whole, 30.0)
    parts = Simulation.from_dict(document(method), tmp_path / "parts")
    control(parts, 13.0)
    parts.set(POWER_OF_HEATER, 33.0)  # the last thing that the first program does
    parts.close()
    resumed = Simulation.resume(tmp_path / "parts")
    assert resumed.plan.problem.scenario.steered[POWER_OF_HEATER].now == 33.0
    control(resumed, 30.0)
    assert runs.results(tmp_path / "parts") == runs.results(tmp_path / "whole")
    assert (tmp_path / "parts/changes.csv").read_text() == (tmp_path / "whole/changes.csv").read_text()

    again = Simulation.from_dict(document(method, changes=recorded(tmp_path / "whole")), tmp_path / "again")
    with monkeypatch.context() as patch:
        stop = runs.after_step if method == "euler" else runs.after_advance
        stop(patch, 9, runs.interrupt)
        with pytest.raises(Interrupted):
            again.run()
    Simulation.resume(tmp_path / "again").run()
    assert without_names(runs.results(tmp_path / "again")) == without_names(runs.results(tmp_path / "whole"))


@pytest.mark.quick("euler", "stabilized")
@pytest.mark.parametrize("method", METHODS)
def test_a_value_that_stays_changes_no_bit(method: str) -> None:
    fields = []
    for kept in (True, False):
        tables = document(method)
        if not kept:
            del tables["changes"]
        simulation = Simulation.from_dict(tables, in_memory=True)
        simulation.run()
        fields.append(simulation.temperature)
    np.testing.assert_array_equal(*fields)


@pytest.mark.parametrize(("seed", "method"), [(0, "stabilized"), (1, "implicit")])
def test_values_that_change_within_steps_are_followed(seed: int, method: str, tmp_path: Path) -> None:
    """A body that melts, one that does not, each with a node of air, against tables that are known before."""
    random = np.random.default_rng(seed)
    tables = document(method, solver={"precision": "float64"}, output={"probe_every": 0.5})
    tables["material"] |= {"latent_heat": 3e3, "solidus": 294.0, "liquidus": 295.0} if seed == 0 else {}
    tables["nodes"] = [{"name": "air", "heat_capacity": 20.0, "initial_temperature": 290.0}]
    tables["boundaries"]["y_min"] = {"type": "convection", "coefficient": 80.0, "ambient": {"node": "air"}}
    tables["changes"]["boundaries.x_max.coefficient"] = {"range": [5, 400], "every": "2 s"}
    heater, film = tables["sources"][0], tables["boundaries"]["x_max"]
    changes = {POWER_OF_HEATER: {0.0: 0.0}, "boundaries.x_max.coefficient": {0.0: 200.0}}
    for time in random.choice(np.arange(1.0, 30.0), 4, replace=False):
        changes[POWER_OF_HEATER][float(time)] = float(random.uniform(0.0, 100.0))
    for time in random.choice(np.arange(2.0, 30.0, 2.0), 2, replace=False):
        changes["boundaries.x_max.coefficient"][float(time)] = float(random.uniform(5.0, 400.0))
    steered = Simulation.from_dict(tables, tmp_path / "steered")
    for time, path in sorted((time, path) for path, values in changes.items() for time in values):
        steered.advance(time)
        steered.set(path, changes[path][time])
    steered.run()
    del tables["changes"]
    heater["power"], heater["scale"] = 1.0, steps_of(changes[POWER_OF_HEATER])
    film["coefficient"] = steps_of(changes["boundaries.x_max.coefficient"])
    tables["time"]["tolerance"] = "0.5 mK"
    Simulation.from_dict(tables, tmp_path / "exact").run()
    run, exact = (heatsim.open(tmp_path / name) for name in ("steered", "exact"))
    assert run.probes["tip (K)"].to_numpy() == pytest.approx(exact.probes["tip (K)"], abs=run.summary["tolerance"])
    assert np.abs(steered.temperature - exact.temperature[-1]).max() < run.summary["tolerance"]
    assert run.energy["residual (J)"].abs().max() < run.summary["energy_bound"]


def steps_of(values: dict[float, float]) -> dict[str, list[float]]:
    """A table with a jump at each time."""
    times = sorted(values)
    rows = [(time, values[at]) for at, until in zip(times, [*times[1:], 30.0], strict=True) for time in (at, until)]
    return {"times": [time for time, _ in rows], "values": [value for _, value in rows]}


# For each key that may be set: other tables of the scenario, the range, and the key that has a table in time instead.
KEYS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "boundaries.x_max.ambient": ({}, ["10 degC", "60 degC"]),
    "boundaries.x_max.coefficient": ({}, [0, 800]),
    "boundaries.default.ambient": ({}, [280, 400]),
    "boundaries.default.emissivity": ({}, [0, 1]),
    "boundaries.x_min.value": ({"boundaries": {"x_min": {"type": "temperature", "value": 290}}}, [290, 350]),
    "boundaries.y_min.value": ({"boundaries": {"y_min": {"type": "flux", "value": 0.0}}}, [-1e3, 4e4]),
    "sources.heater.scale": ({"sources": [{"name": "heater", "power": -20.0, "scale": 1}]}, [-1, 3]),
    "sources.warm.scale": (
        {"sources": [{"name": "warm", "power_density": "1e5*(1 + (T - 290)/50)", "scale": 0}]},
        [0, 3],
    ),
    "sources.light.scale": (
        {
            "sources": [
                {
                    "name": "light",
                    "scale": 0,
                    "beam": {
                        "face": "z_max",
                        "power": 30.0,
                        "radius": 5e-3,
                        "path": [[0.0, 0.01], [0.1, 0.01]],
                        "speed": 0.004,
                    },
                }
            ]
        },
        [0, 1],
    ),
    "patches.spot.power": (
        {
            "patches": [
                {
                    "name": "spot",
                    "face": "y_max",
                    "rectangle": {"min": [0.0, 0.0], "max": [0.05, 0.02]},
                    "type": "flux",
                    "power": 0.0,
                }
            ]
        },
        [0, 40],
    ),
    "nodes.air.power": (
        {
            "nodes": [{"name": "air", "power": 0.0, "heat_capacity": 20.0, "initial_temperature": 293}],
            "boundaries": {"x_min": {"type": "convection", "coefficient": 80, "ambient": {"node": "air"}}},
        },
        [0, 30],
    ),
    "nodes.air.links.0.ambient": (
        {
            "nodes": [{"name": "air", "links": [{"ambient": 293.0, "conductance": 0.1}]}],
            "boundaries": {"x_min": {"type": "convection", "coefficient": 80, "ambient": {"node": "air"}}},
        },
        [280, 350],
    ),
}


def put(tables: dict[str, Any], path: str, value: object) -> None:
    """Replace a value in the tables of a scenario."""
    *parts, last = path.split(".")
    place: Any = tables
    for part in parts:
        named = [each for each in place if each.get("name") == part] if isinstance(place, list) else []
        place = named[0] if named else place[int(part) if isinstance(place, list) else part]
    place[last] = value


@pytest.mark.each_value
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("key", KEYS)
def test_every_key_acts_as_a_table_does(key: str, method: str) -> None:
    """A record of steps at multiples of 2 s against the same steps as a table in the place of the value."""
    tables, ends = KEYS[key]
    given = document(method, changes={}, output={"probe_every": 2.0}, solver={"precision": "float64"})
    given = {**given, **{name: table for name, table in tables.items() if name != "boundaries"}}
    given["boundaries"] = {**given["boundaries"], **tables.get("boundaries", {})}
    given["time"]["end"] = 12.0
    if method != "euler":
        given["time"]["tolerance"] = 1e-3
    scenario = parse_dict({**given, "changes": {key: {"range": ends, "every": 2.0}}})
    low, high = scenario.changes[key].range
    start = scenario.steered[key].start
    steps = {"times": [0, 4, 4, 8, 8, 12], "values": [start, start, high, high, low, low]}

    driven = Simulation.from_dict(
        {**given, "changes": {key: {"range": ends, "every": 2.0, "recorded": steps}}}, in_memory=True
    )
    live = Simulation.from_dict({**given, "changes": {key: {"range": ends, "every": 2.0}}}, in_memory=True)
    given = json.loads(json.dumps({name: table for name, table in given.items() if name != "changes"}))
    put(given, key, steps)
    table = Simulation.from_dict(given, in_memory=True)
    for time in range(2, 14, 2):
        live.set(key, {2: start, 6: high, 10: low}.get(time, live.plan.problem.scenario.steered[key].now))
        for simulation in (driven, live, table):
            simulation.advance(float(time))
    np.testing.assert_array_equal(live.temperature, driven.temperature)
    assert abs(driven.temperature - table.temperature).max() < (1e-9 if method == "euler" else 3e-3)
    assert np.ptp(driven.temperature) > 0.1


def test_steps_hold_for_the_range() -> None:
    """A film that may become 50 times as strong needs the steps of the strong one from the start."""
    weak = document(boundaries={"default": {"type": "convection", "coefficient": 100.0, "ambient": 290.0}})
    strong = document(boundaries={"default": {"type": "convection", "coefficient": 5e4, "ambient": 290.0}})
    changes = {"boundaries.default.coefficient": {"range": [0, 5e4], "every": 1.0}}
    limits = [HeatProblem.from_scenario(parse_dict(each)).limit.dt for each in (weak, strong)]
    ready = HeatProblem.from_scenario(parse_dict({**weak, "changes": changes}))
    assert ready.limit.dt == limits[1] < limits[0]
    assert ready.timeline.change_steps[:2] == [0, ready.timeline.step_at(1.0)]


def test_tables_hold_for_the_range() -> None:
    """A heater and a cooler, both 0 at t = 0: as hot as with the heater alone, as cold as with the cooler."""
    found = document(material={"specific_heat": {"temperatures": [273, 1000], "values": [400.0, 900.0]}})
    found["sources"].append({**found["sources"][0], "name": "cooler"})
    powers = {"sources.heater.power": (0.0, 80.0), "sources.cooler.power": (-30.0, 0.0)}
    changes = {key: {"range": ends, "every": 1.0} for key, ends in powers.items()}
    both = _occurring({**found, "changes": changes})
    found["changes"] = {}
    hot, cold = (_occurring(found, heater=heater, cooler=cooler) for heater, cooler in ((80.0, 0.0), (0.0, -30.0)))
    assert (both.low, both.high) == (cold.low, hot.high)
    assert both.high > hot.low + 50.0 > cold.low + 50.0
    assert both.heated
    assert both.cooled


def _occurring(found: dict[str, Any], **powers: float) -> Occurring:
    """The temperatures that can occur with other powers of sources."""
    sources = [{**source, "power": powers.get(source["name"], source["power"])} for source in found["sources"]]
    scenario = parse_dict({**found, "sources": sources})
    problem = HeatProblem.from_scenario(scenario)
    start = InitialField.from_scenario(scenario, problem.parts, held=problem.held)
    return Occurring.in_run(scenario, start, problem.boundary, problem.materials)


def test_a_history_has_exact_means() -> None:
    steered = Steered(("sources", "0", "power"), 1.0, 0.0, 9.0, 0.1, POWER)
    for time, value in ((0.0, 2.0), (0.3, 5.0), (0.4, 5.0), (0.7, 1.0)):
        steered.set(time, value)
    assert steered.history == ([0.0, 0.3, 0.7], [2.0, 5.0, 1.0])
    table = Table((0.0, 0.3, 0.3, 0.7, 0.7, 1.0), (2.0, 2.0, 5.0, 5.0, 1.0, 1.0))
    starts = np.array([0.0, 0.1, 0.3, 0.25, 0.0, 0.69999, 0.7])
    lengths = np.array([0.3, 0.2, 0.4, 0.1, 1.0, 0.2, 0.3])
    np.testing.assert_allclose(steered.mean(starts, lengths), table.mean(starts, lengths), rtol=1e-14)
    assert steered.mean(starts, lengths)[[0, 1, 2, 6]].tolist() == [2.0, 2.0, 5.0, 1.0]
    assert steered.at(np.array([0.0, 0.2999, 0.3, 5.0])).tolist() == [2.0, 2.0, 5.0, 1.0]
    timeline = HeatProblem.from_scenario(
        parse_dict(document(changes={POWER_OF_HEATER: {"range": [0, 100], "every": 0.3}}))
    ).timeline
    assert [timeline.time(step) for step in timeline.change_steps[1:-1]] == multiples(0.3, 30.0).tolist()


def test_the_resolved_scenario_is_the_same() -> None:
    """Faces that have no condition in the scenario share the default, and surroundings are the ambient."""
    changes = {
        POWER_OF_HEATER: {"range": [0, "0.1 kW"], "every": "0.5 s", "recorded": "50 + 50*sin(t)"},
        "boundaries.default.ambient": {"range": ["10 degC", "40 degC"], "every": 3},
    }
    scenario = parse_dict(document(changes=changes))
    again = parse_dict(resolved(scenario))
    assert again == scenario
    for each in (scenario, again):
        assert each.changes[POWER_OF_HEATER].range == (0.0, 100.0)
        ambient = each.steered["boundaries.default.ambient"]
        for face in (each.boundaries.default, each.boundaries.z_min):
            assert face.type == "convection"
            assert face.ambient is face.surroundings is ambient
        assert each.intervals_of_changes == (0.5, 3.0)
        assert each.output.temperature == "degC"
    assert "set during the run" in str(Simulation.from_dict(document(), in_memory=True).plan)


def test_names_and_nested_tables_find_keys() -> None:
    found = document(changes={})
    found["changes"] = {"sources": {"0": {"power": {"range": [0, 10], "every": 1}}}}
    assert parse_dict(found).steered["sources.0.power"].key == ("sources", "0", "power")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources.heater.powr": {"range": [0, 1], "every": 1}}, r'did you mean "sources.heater.power"'),
        ({"domain.size": {"range": [0, 1], "every": 1}}, "cannot be set during the run: a number that may change"),
        ({"probes.tip.point": {"range": [0, 1], "every": 1}}, "cannot be set during the run"),
        ({POWER_OF_HEATER: {"range": [5, 100], "every": 1}}, "is 5.0 to 100.0 W, and sources.0.power begins with 0.0"),
        ({POWER_OF_HEATER: {"range": [0, 0], "every": 1}}, r"got \[0, 0\]; the second value must be the larger one"),
        ({POWER_OF_HEATER: {"range": 3, "every": 1}}, "got 3; two values are expected, the lower one first"),
        ({POWER_OF_HEATER: {"range": [0, "1 K"], "every": 1}}, r'range.1: got "1 K"; "K" cannot be converted to W'),
        ({POWER_OF_HEATER: {"range": [0, 1], "every": 1e-6}}, "30,000,000 times until 30.0 s; at most 100,000"),
        ({POWER_OF_HEATER: {"range": [0, 1]}}, 'every: missing; write for example every = "1 s"'),
        ({POWER_OF_HEATER: {"range": [0, 1], "evry": 1, "every": 1}}, 'unknown key.*did you mean "every"'),
        ({POWER_OF_HEATER: {"range": [0, 1], "every": 1, "recorded": "t"}}, r"is 2.0 W at t = 2.0 s; the range"),
        ({POWER_OF_HEATER: {"range": [0, 1], "every": 1, "recorded": "u"}}, 'recorded: got "u"'),
        ({POWER_OF_HEATER: {"range": [0, 1], "every": 1, "recorded": {"times": [0]}}}, "recorded"),
        ({POWER_OF_HEATER: 3}, "got 3; write"),
        ({"boundaries.x_max.ambient": {"range": [280, 300], "every": 1}}, "write its value at t = 0 there"),
    ],
)
def test_what_cannot_be_read_is_refused(changes: dict[str, Any], message: str) -> None:
    found = document()
    found["changes"] = changes
    found["boundaries"]["x_max"]["ambient"] = "280 + t"
    with pytest.raises(ScenarioError, match=message):
        parse_dict(found)


def test_a_power_with_a_scale_and_a_steady_state_are_refused() -> None:
    found = document()
    found["sources"][0]["scale"] = 0.5
    with pytest.raises(ScenarioError, match=r"the source has a scale: remove it, or set sources.heater.scale instead"):
        parse_dict(found)
    with pytest.raises(ScenarioError, match="changes: no time passes in a steady state"):
        parse_dict(document("steady"))


def test_what_cannot_be_set_is_refused(tmp_path: Path) -> None:
    simulation = Simulation.from_dict(document("stabilized"), in_memory=True)
    for path, value, message in (
        ("sources.heater.powr", 1, r'not name this key; it allows "sources.heater.power"; did'),
        (POWER_OF_HEATER, "40 K", r'set: sources.heater.power: got "40 K"; "K" cannot be converted to W'),
        (POWER_OF_HEATER, 140, r"got 140; changes.\"sources.heater.power\".range is 0.0 to 100.0 W"),
    ):
        with pytest.raises(InputError, match=message):
            simulation.set(path, value)
    fine = Simulation.from_dict(document(output={"probe_every": 0.5}), in_memory=True)
    fine.advance(1.5)
    with pytest.raises(InputError, match=r"multiples of 1.0 s before 30.0 s, and the simulation is at 1.5 s: advance"):
        fine.set(POWER_OF_HEATER, 1)
    fine.run()
    with pytest.raises(InputError, match=r"the simulation is at 30.0 s"):
        fine.set(POWER_OF_HEATER, 1)
    follows = document(changes={POWER_OF_HEATER: {"range": [0, 100], "every": 1, "recorded": 5.0}})
    with pytest.raises(InputError, match=r'follows changes."sources.heater.power".recorded; remove this key'):
        Simulation.from_dict(follows, in_memory=True).set(POWER_OF_HEATER, 1)
    none = Simulation.from_dict({**document(), "changes": {}}, in_memory=True)
    with pytest.raises(InputError, match="it allows none; write changes = "):
        none.set(POWER_OF_HEATER, 1)


def test_two_runs_of_one_scenario_have_their_own_values(tmp_path: Path) -> None:
    path = runs.write(tmp_path, TEXT)
    scenario = load(path)
    one, two = (Simulation.from_model(scenario, tmp_path / name) for name in ("one", "two"))
    one.set(POWER_OF_HEATER, 50.0)
    one.advance(2.0)
    two.advance(2.0)
    assert one.probe("tip") > two.probe("tip") + 0.1
    assert scenario.steered[POWER_OF_HEATER].history == ([0.0], [0.0])


def test_a_run_without_its_program_states_no_error_in_space(tmp_path: Path) -> None:
    for name, change in (("live", {}), ("recorded", {"recorded": 60.0})):
        keys = {POWER_OF_HEATER: {"range": [0, 100], "every": 10, **change}}
        found = document(changes=keys, output={"error": "auto"}, domain={"cells": [20, 6, 4]})
        Simulation.from_dict(found, tmp_path / name).run()
        why = json.loads((tmp_path / name / "summary.json").read_text())["error_in_space"].get("missing", "")
        assert ("a program sets values during the run" in why) == (name == "live")


def test_ranks_set_the_same_values(tmp_path: Path) -> None:
    keys = {POWER_OF_HEATER: {"range": [0, 80], "every": 1, "recorded": {"times": [0, 30], "values": [80, 0]}}}
    Simulation.from_dict(document(domain={"cells": [10, 3, 16]}, changes=keys), tmp_path / "alone").run()
    scenario = tmp_path / "alone/scenario.toml"
    code, _, err = runs.process("run", scenario, "--output", tmp_path / "both", "--ranks", "2", "--quiet")
    assert (code, err) == (0, "")
    assert runs.results(tmp_path / "both") == runs.results(tmp_path / "alone")
    for at in ("alone", "both"):
        assert (tmp_path / at / "changes.csv").read_text().splitlines()[2] == f"1.0,{80.0 - 80.0 / 30.0!r}"


def test_a_function_is_a_table_of_its_values(tmp_path: Path) -> None:
    """It is called once for each time at which the value may change."""
    asked = list[float]()

    def power(time: float) -> Any:
        asked.append(time)
        return np.float64(3.0 * time) if time < 20.0 else "10 W"

    keys = {POWER_OF_HEATER: {"range": [0, 100], "every": 4, "recorded": power}}
    simulation = Simulation.from_dict(document(changes=keys), tmp_path / "out")
    assert asked == [0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0]
    simulation.run()
    rows = list(csv.reader((tmp_path / "out/changes.csv").read_text().splitlines()))[1:]
    assert [[float(number) for number in row] for row in rows] == [
        [time, 3.0 * time if time < 20.0 else 10.0] for time in asked
    ]
    assert len(asked) == 8
    Simulation.from_scenario(tmp_path / "out/scenario.toml", output=tmp_path / "again").run()
    assert runs.results(tmp_path / "again") == runs.results(tmp_path / "out")
    for recorded_value, message in (("5 K", 'at t = 0.0 s: got "5 K"'), (400.0, r"is 400.0 W at t = 0.0 s; the range")):
        keys[POWER_OF_HEATER]["recorded"] = lambda time, value=recorded_value: value
        with pytest.raises(ScenarioError, match=message):
            parse_dict(document(changes=keys))


def test_calls_at_times_are_a_loop_of_advances(tmp_path: Path) -> None:
    times = list[float]()

    def thermostat(simulation: Simulation) -> None:
        times.append(simulation.time)
        if not simulation.finished:
            simulation.set(POWER_OF_HEATER, 0.0 if simulation.probe("tip") > 300.0 else "60 W")

    called = Simulation.from_dict(document(), tmp_path / "called")
    called.run_with(thermostat, "1 s")
    assert times == [float(time) for time in range(31)]
    looped = Simulation.from_dict(document(), tmp_path / "looped")
    control(looped, 30.0)
    assert runs.results(tmp_path / "called") == runs.results(tmp_path / "looped")
    uneven = Simulation.from_dict(document(), in_memory=True)
    uneven.advance(8.0)
    times.clear()
    uneven.run_with(lambda simulation: times.append(simulation.time), 8)
    assert times == [8.0, 16.0, 24.0, 30.0]
    with pytest.raises(InputError, match='run_with: every: got "8 K"'):
        called.run_with(thermostat, "8 K")
