"""time.tolerance is the error of a run: it falls in proportion to it, and stays below twice of it.

The bodies are those of smooth_bodies.py. The error of a run is the largest difference of any cell in any row from a run
whose tolerance is thirty times smaller than the smallest one. The range of temperatures is the one that the default
tolerance is a part of.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from smooth_bodies import Document, smooth_bodies

from heatsim import Simulation
from heatsim.observers.observer import Observer
from heatsim.observers.state import RunState
from heatsim.physics.time.tolerance import DEFAULT_PART
from heatsim.scenario import ADAPTIVE

pytestmark = pytest.mark.usefixtures("one_thread")

Array = NDArray[np.float64]

PARTS = (1e-2, 1e-3, 1e-4, 1e-5)  # tolerances, of the range
FEW = ("two materials", "thin layer")


class Fields(Observer):
    """Keeps the temperatures of all cells in all rows."""

    def __init__(self) -> None:
        self.rows = list[Array]()

    def due(self, state: RunState) -> NDArray[np.int64]:
        return state.problem.timeline.steps_at(state.problem.scenario.output.probe_every)

    def handle(self, state: RunState) -> None:
        self.rows.append(state.field.temperature().ravel())


class Run(NamedTuple):
    """The rows of a run in K, and its tolerance in K."""

    rows: Array
    tolerance: float


def run(document: Document, method: str, **time: float) -> Run:
    fields = Fields()
    with TemporaryDirectory() as name:
        timed = {**document, "time": {**document["time"], "method": method, **time}}
        simulation = Simulation.from_dict(timed, Path(name, "run"))
        simulation.run(watchers=[fields])
    assert simulation.state.method is not None
    return Run(np.array(fields.rows), simulation.state.method.tolerance)


def errors(document: Document, parts: tuple[float, ...]) -> Array:
    """The errors of runs in parts of their tolerances: a row for each method, a column for each tolerance."""
    span = run(document, "implicit").tolerance / DEFAULT_PART
    exact = run(document, "implicit", tolerance=min(parts) * span / 30.0).rows
    found = [[run(document, method, tolerance=part * span) for part in parts] for method in ADAPTIVE]
    return np.array([[np.nanmax(np.abs(one.rows - exact)) / one.tolerance for one in row] for row in found])


def slopes(ratios: Array, parts: tuple[float, ...]) -> Array:
    """The slopes of the logarithms of errors against those of tolerances: one for each body and method."""
    logarithms = np.log(ratios.reshape(-1, len(parts)))
    return np.polyfit(np.log(parts), logarithms.T, 1)[0] + 1.0


def test_the_error_of_a_run_follows_its_tolerance(tmp_path: Path) -> None:
    """A few bodies with two tolerances; most of the time goes to the references."""
    bodies, parts = smooth_bodies(tmp_path), PARTS[1:3]
    ratios = np.array([errors(bodies[name], parts) for name in FEW])
    assert ratios.max() <= 2.0
    assert 0.3 <= np.median(ratios) <= 1.0
    found = slopes(ratios, parts)
    assert 0.9 <= found.min() <= found.max() <= 1.1, found


@pytest.mark.slow
def test_the_errors_of_twenty_smooth_bodies_follow_their_tolerances(tmp_path: Path) -> None:
    ratios = np.array([errors(document, PARTS) for document in smooth_bodies(tmp_path).values()])
    assert np.quantile(ratios, 0.99) <= 2.0
    assert 0.3 <= np.median(ratios) <= 1.0
    found = slopes(ratios, PARTS)
    assert 0.9 <= found.mean() <= 1.1
    assert found.min() >= 0.75, found
    assert found.max() <= 1.25, found
