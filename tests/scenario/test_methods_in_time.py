"""The key time.method, and the keys that belong to each method."""

import tomllib

import pytest
from refusals import mistakes_of
from scenario_text import write

from heatsim.scenario import load, write_resolved

STABILIZED = ("end = 60.0", 'end = 60.0\nmethod = "stabilized"')


def test_a_tolerance_is_a_temperature_difference(tmp_path):
    path = write(tmp_path, STABILIZED)
    assert load(path).time.tolerance is None
    assert load(path, ["time.tolerance=0.1 K"]).time.tolerance == 0.1
    assert load(path, ["time.tolerance=5 mK"]).time.tolerance == pytest.approx(0.005, rel=1e-15)
    for wrong in ("0", "-0.1", '"0.1 degC"', "true", "inf"):
        ((key, message),) = mistakes_of(path, [f"time.tolerance={wrong}"])
        assert key == "time.tolerance"
        assert "temperature difference" in message


@pytest.mark.parametrize("method", ["auto", "euler", "stabilized", "implicit", "steady"])
def test_the_resolved_scenario_has_what_the_method_uses(method, tmp_path):
    """It is read as an equal scenario, and so is its own resolved scenario."""
    scenario = load(write(tmp_path), [f"time.method={method}"])
    write_resolved(scenario, tmp_path / "out")
    text = (tmp_path / "out" / "scenario.toml").read_text(encoding="utf-8")
    assert (
        tomllib.loads(text)["time"]
        == {
            "auto": {"method": "auto", "end": 60.0},
            "euler": {"method": "euler", "end": 60.0, "dt": "auto", "safety": 0.9},
            "stabilized": {"method": "stabilized", "end": 60.0},
            "implicit": {"method": "implicit", "end": 60.0},
            "steady": {"method": "steady"},
        }[method]
    )
    again = load(tmp_path / "out" / "scenario.toml")
    write_resolved(again, tmp_path / "again")
    assert (tmp_path / "again" / "scenario.toml").read_text(encoding="utf-8") == text
    assert again.time == scenario.time


def test_the_resolved_scenario_keeps_a_tolerance(tmp_path):
    scenario = load(write(tmp_path, STABILIZED), ["time.tolerance=0.25 K", "time.stop_below=1 mK/s"])
    write_resolved(scenario, tmp_path / "out")
    assert load(tmp_path / "out" / "scenario.toml") == scenario
    document = tomllib.loads((tmp_path / "out" / "scenario.toml").read_text(encoding="utf-8"))
    assert document["time"] == {"method": "stabilized", "end": 60.0, "tolerance": 0.25, "stop_below": 1e-3}


@pytest.mark.parametrize(
    ("override", "key", "words"),
    [
        ("time.dt=0.1", "time.dt", ["got 0.1", 'method = "stabilized"', "time.tolerance", "leave dt out", '"euler"']),
        ("time.safety=0.5", "time.safety", ["got 0.5", "time.tolerance", "leave safety out", '"euler"']),
    ],
)
@pytest.mark.parametrize("method", ["auto", "stabilized", "implicit"])
def test_lengths_of_steps_are_refused_by_other_methods(method, override, key, words, tmp_path):
    refused_with(method, override, key, words, tmp_path)


def refused_with(method, override, key, words, tmp_path):
    path = write(tmp_path, ("end = 60.0", f'end = 60.0\nmethod = "{method}"'))
    ((found, message),) = mistakes_of(path, [override])
    assert found == key
    for word in words:
        assert word.replace("stabilized", method) in message


def test_mistakes_of_both_kinds_are_reported_together(tmp_path):
    path = write(tmp_path, STABILIZED)
    wrong = [
        "time.dt=0.1",
        "time.safety=7",
        "time.tolerance=-1",
        "domain.cells=[0, 1, 1]",
    ]
    keys = [key for key, _ in mistakes_of(path, wrong)]
    assert {"time.dt", "time.safety", "time.tolerance", "domain.cells.0"} <= set(keys)


def test_euler_has_no_tolerance(tmp_path):
    for euler in ("time.method=euler", "time.safety=0.8"):
        ((key, message),) = mistakes_of(write(tmp_path), [euler, "time.tolerance=0.1"])
        assert key == "time.tolerance"
        assert 'write method = "auto", "stabilized", "implicit" or "steady", without dt and safety' in message


def test_an_unknown_method_is_refused_with_the_nearest_name(tmp_path):
    ((key, message),) = mistakes_of(write(tmp_path), ["time.method=stabilised"])
    assert key == "time.method"
    assert '"euler", "stabilized", "implicit", "steady"' in message
    assert 'did you mean "stabilized"' in message


def test_a_stabilized_run_needs_an_end(tmp_path):
    ((key, message),) = mistakes_of(write(tmp_path, ("end = 60.0", 'method = "stabilized"')))
    assert key == "time.end"
    assert "missing" in message
