"""The error that Euler's method is expected to have, against the one that it has in a bar of 80 cells."""

import numpy as np
import pytest
from adversary.judge import run
from adversary.semi_discrete import Body, solve
from numpy.typing import NDArray

from heatsim.physics.estimates.method_work import count_work, first_tolerance
from heatsim.physics.problem import HeatProblem
from heatsim.scenario.documents.load import parse_dict

pytestmark = pytest.mark.usefixtures("one_thread")

BAR = {
    "domain": {"size": [0.8, 0.01, 0.01], "cells": [80, 1, 1], "material": "a"},
    "materials": {"a": {"conductivity": 50.0, "density": 8000.0, "specific_heat": 500.0}},
    "initial": {"temperature": 300.0},
    "boundaries": {},
    "sources": [],
    "time": {"end": 400.0},
    "solver": {"device": "cpu", "precision": "float64"},
    "output": {"figures": False, "fields": False, "probe_every": 50.0},
    "probes": [{"name": "hottest", "statistic": "max"}],
}
# Between a row at 150 s and the stability limit, 4 s, before it.
JUST_BEFORE_A_ROW = 147.0


def source(power: float, first: float, last: float) -> dict[str, object]:
    """A source that is switched on at 170 s."""
    box = {"min": [first, 0.0, 0.0], "max": [last, 0.01, 0.01]}
    return {"power": power, "box": box, "during": [170.0, 500.0]}


def held(value: str) -> dict[str, object]:
    return {"boundaries": {"x_min": {"type": "temperature", "value": value}}}


# Both together lead to 288 K.
SKY = {"type": "convection", "coefficient": 4000.0, "ambient": 288.0, "emissivity": 1.0, "surroundings": 240.0}
CASES = {
    "an uneven start": {"initial": {"temperature": "300 + 20*cos(39.27*x)"}},
    "a start beside a held face": held("330"),
    "a jump before a row": held(f"where(t < {JUST_BEFORE_A_ROW}, 300, 350)"),
    "a fast change before a row": held(f"325 + 25*tanh((t - {JUST_BEFORE_A_ROW})/2)"),
    "a slope": held("300 + max(t - 100, 0)"),
    "opposite heats": {"sources": [source(40.0, 0.0, 0.4), source(-40.0, 0.4, 0.8)]},
    "heats in the same cells": {"sources": [source(20.0, 0.0, 0.4)] * 3},
    "one cell": {"sources": [source(1.0, 0.4, 0.41)]},
    "a start near the end of a slope": {"initial": {"temperature": "300 + 100*x"}, **held("310")},
    "a weak film": {"boundaries": {"x_min": {"type": "convection", "coefficient": 20.0, "ambient": 400.0}}},
    "a film and a colder sky": {"initial": {"temperature": 280.0}, "boundaries": {"x_min": SKY}},
    "heat after the start": {**held("303"), "sources": [source(4.0, 0.4, 0.8)]},
}


@pytest.mark.parametrize("changed", CASES.values(), ids=CASES.keys())
def test_the_error_is_expected_within_a_small_factor(changed: dict[str, object]) -> None:
    """From a third of the real error, which is within the limits of a tolerance, to five times."""
    document = {**BAR, **changed}
    euler, adaptive = ({**document, "time": {"end": 400.0, "method": method}} for method in ("euler", "stabilized"))
    problem = HeatProblem.from_scenario(parse_dict(adaptive))
    expected = count_work(problem, first_tolerance(problem)).euler_error
    found = run(euler)
    marks = [(JUST_BEFORE_A_ROW, 2.0), (170.0, 1.0), (100.0, 1.0)]
    real = float(np.abs(found.T - solve(Body(euler), found.times, marks).T).max())
    assert real / 3.0 <= expected <= 5.0 * real


def test_steps_are_no_longer_than_rows_are_apart() -> None:
    """The limit is 4 s."""
    expected = []
    for every in (2.0, 1.0):
        changed = {
            "output": {**BAR["output"], "probe_every": every},
            "initial": {"temperature": "300 + 20*cos(39.27*x)"},
        }
        problem = HeatProblem.from_scenario(parse_dict({**BAR, **changed}))
        expected.append(count_work(problem, first_tolerance(problem)).euler_error)
    assert expected[0] == pytest.approx(2.0 * expected[1])


@pytest.mark.parametrize("capacity", [1.0, 10.0, 1e6])
def test_what_nodes_do_counts(capacity: float) -> None:
    """A cell of 2 J/K beside a node that is tied to a temperature, against the two equations."""
    tie = {"ambient": {"times": [0.0, 33.0, 33.0, 100.0], "values": [280.0, 280.0, 260.0, 260.0]}, "conductance": 0.5}
    film = {"type": "convection", "coefficient": 50.0, "ambient": {"node": "n"}}
    document = {
        **BAR,
        "domain": {"size": [0.02, 0.01, 0.01], "cells": [1, 1, 1], "material": "a"},
        "materials": {"a": {"conductivity": 20.0, "density": 2000.0, "specific_heat": 500.0}},
        "boundaries": {"x_min": film, "x_max": film},
        "nodes": [{"name": "n", "heat_capacity": capacity, "initial_temperature": 350.0, "links": [tie]}],
        "output": {**BAR["output"], "probe_every": 11.0},
    }
    euler, adaptive = ({**document, "time": {"end": 99.0, "method": method}} for method in ("euler", "stabilized"))
    problem = HeatProblem.from_scenario(parse_dict(adaptive))
    expected = count_work(problem, first_tolerance(problem)).euler_error
    found, G = run(euler), 2e-4 / (1.0 / 50.0 + 0.01 / 20.0)
    values, vectors = np.linalg.eig(np.array([[-G / 2.0, G / 2.0], [G / capacity, -(G + 0.5) / capacity]]))

    def after(time: float, start: NDArray[np.float64], ambient: float) -> NDArray[np.float64]:
        return np.asarray(ambient + vectors @ (np.exp(values * time) * np.linalg.solve(vectors, start - ambient)))

    start = np.array([300.0, 350.0])
    middle = after(33.0, start, 280.0)
    exact = [after(t, start, 280.0)[0] if t < 33.0 else after(t - 33.0, middle, 260.0)[0] for t in found.times]
    assert np.abs(found.hottest - exact).max() < 3.0 * expected
