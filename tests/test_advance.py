"""A simulation that a program advances from time to time, on disk and in memory."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from covering import mostly_slow

import heatsim
from heatsim import Simulation
from heatsim.errors import InputError, Interrupted, NotFiniteError, RunError
from heatsim.physics.time.time_steps import Timeline, build
from heatsim.solver.euler.stepper import Stepper

METHODS = ["euler", "stabilized", "implicit"]
PROBES = """
[[probes]]
name = "centre"
point = [0.03, 0.02, 0.03]
[[probes]]
name = "line"
line = { from = [0.0, 0.02, 0.03], to = [0.07, 0.02, 0.03], count = 3 }
[[probes]]
name = "hottest"
statistic = "max"
[[probes]]
name = "face"
surface = "y_min"
statistic = "mean"
[[probes]]
name = "warm"
point = [0.03, 0.02, 0.03]
statistic = "time_above"
threshold = 310.0
"""


def document(method: str = "euler", **changes: dict[str, Any]) -> dict[str, Any]:
    """A small body with all types of faces, and probes; ``changes`` of its tables."""
    found = tomllib.loads(runs.TEXT + PROBES)
    changes["time"] = {"method": method, **changes.get("time", {})}
    changes["solver"] = {"kernel": "numpy"}
    return {**found, **{table: {**found[table], **keys} for table, keys in changes.items()}}


@pytest.mark.quick("stabilized", "euler")
@pytest.mark.parametrize("method", METHODS)
def test_pauses_change_no_bit(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Simulation.from_dict(document(method), tmp_path / "whole")
    whole.run()
    rows = heatsim.open(whole.folder).probes
    paused = Simulation.from_dict(document(method), tmp_path / "paused")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    memory = Simulation.from_dict(document(method), in_memory=True)
    for number in range(9):
        for each in (paused, memory):
            each.advance(1.25 * number)
            assert each.time == rows.index[number] == 1.25 * number
            for name in ("centre (K)", "hottest (K)", "face (K)"):
                assert each.probe(name.split()[0]) == rows[name].iloc[number], name
            np.testing.assert_array_equal(each.probe("line"), rows.filter(like="line[").iloc[number])
        np.testing.assert_array_equal(paused.temperature, memory.temperature)
        assert not memory.temperature.flags.writeable
    assert paused.finished
    assert memory.finished
    np.testing.assert_array_equal(memory.temperature, whole.temperature)
    assert memory.warnings == whole.warnings
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "paused"])
    assert runs.results(tmp_path / "paused") == runs.results(tmp_path / "whole")
    paused.run()  # nothing is left to do
    assert "t = 10 of 10 s, in memory" in repr(memory)


def test_euler_stops_after_any_step_and_run_does_the_rest(tmp_path: Path) -> None:
    whole = Simulation.from_dict(document(), tmp_path / "whole")
    whole.run()
    simulation = Simulation.from_dict(document(), tmp_path / "out")
    simulation.advance("1.875 s")  # between two rows
    assert (simulation.step, simulation.time) == (3, 1.875)
    simulation.advance(1.875)
    simulation.run()
    assert runs.results(tmp_path / "out") == runs.results(tmp_path / "whole")


@pytest.mark.quick("euler")
@pytest.mark.parametrize("method", mostly_slow(METHODS, "euler", "implicit"))
def test_a_closed_run_can_be_resumed(method: str, tmp_path: Path) -> None:
    whole = Simulation.from_dict(document(method), tmp_path / "whole")
    whole.run()
    simulation = Simulation.from_dict(document(method), tmp_path / "out")
    simulation.advance(3.75)
    simulation.close()
    other = Simulation.resume(tmp_path / "out")
    assert other.time == 3.75
    other.advance(7.5)
    other.close()
    Simulation.resume(tmp_path / "out").run()
    assert runs.results(tmp_path / "out") == runs.results(tmp_path / "whole")


def test_a_run_in_memory_ends_as_on_disk(tmp_path: Path) -> None:
    for method, time in (("steady", {}), ("euler", {"stop_below": 2.0})):
        held = {"x_min": {"type": "temperature", "value": 300.0}, "x_max": {"type": "insulated"}}
        still = document(method, time=time, boundaries=held)
        del still["probes"][-1]  # counts time, which a steady state has not
        disk, memory = Simulation.from_dict(still, tmp_path / method), Simulation.from_dict(still, in_memory=True)
        assert not memory.finished
        disk.run()
        memory.run()
        assert memory.finished
        assert memory.time == disk.time < 10.0
        np.testing.assert_array_equal(memory.temperature, disk.temperature)
        if method == "steady":
            with pytest.raises(InputError, match="no time passes in a steady state"):
                memory.advance(1.0)


def test_an_interrupted_run_in_memory_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Simulation.from_dict(document(), in_memory=True)
    whole.run()
    simulation = Simulation.from_dict(document(), in_memory=True)
    with monkeypatch.context() as patch:
        runs.after_step(patch, 5, runs.interrupt)
        with pytest.raises(Interrupted, match=r"interrupted at t = 3\.\d+ s; call it again to continue"):
            simulation.advance(10.0)
    assert simulation.step == 5
    simulation.advance(10.0)
    np.testing.assert_array_equal(simulation.temperature, whole.temperature)


def test_a_failed_run_in_memory_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(stepper: Stepper) -> None:
        stepper.field.deviation[0, 0, 0] = np.nan

    simulation = Simulation.from_dict(document(), in_memory=True)
    runs.after_step(monkeypatch, 5, spoil)
    with pytest.raises(NotFiniteError):
        simulation.run()
    with pytest.raises(RunError, match="the run failed at step 6; make the simulation again"):
        simulation.advance(10.0)


def test_what_cannot_be_done_is_refused() -> None:
    simulation = Simulation.from_dict(document("stabilized"), in_memory=True)
    simulation.advance(2.5)
    for refused, message in {
        lambda: simulation.advance(3.0): r"until = 3.0 s: no step ends then; .* due times are 2.5 s and 3.75 s",
        lambda: simulation.advance(1.25): r"until = 1.25 s has passed; the simulation is at 2.5 s",
        lambda: simulation.advance(11.0): r"until = 11.0 s: no step ends then; the nearest due times are 10.0 s",
        lambda: simulation.advance("5 K"): r"advance: until: got \"5 K\"",
        lambda: simulation.probe("center"): r"no such probe; it has .*\"centre\", .*; did you mean \"centre\"",
        lambda: simulation.probe("warm"): r"\"warm\" counts the seconds of a whole run; read it from probes.csv",
        lambda: simulation.folder: "in memory has no folder",
        lambda: simulation.run(pictures=True): "a simulation in memory writes nothing",
        lambda: Simulation.from_dict(document()): "give either output=… for results on disk, or in_memory=True",
        lambda: Simulation.from_dict(document(), "out", in_memory=True): "give either output=…",
    }.items():
        with pytest.raises(InputError, match=message):
            refused()
    assert simulation.time == 2.5


def test_the_step_at_a_time() -> None:
    timeline = build(1.0, [0.3, 0.25], "auto", 1.0, 0.07)
    for step in range(timeline.last_step + 1):
        time = timeline.time(step)
        assert timeline.step_at(time) == timeline.step_at(np.nextafter(time, -1.0)) == step
        assert timeline.step_at(time + 0.4 * timeline.dt(step)) is None
    adaptive = Timeline.adaptive_to(1.0, [0.3])
    assert [adaptive.step_at(time) for time in (0.0, 0.3, 0.45, 0.9, 1.0, 1.3)] == [0, 1, None, 3, 4, None]
