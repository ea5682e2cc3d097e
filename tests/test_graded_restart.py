"""Random bodies on graded and axial grids, by methods with a tolerance: interrupted, and within their range."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from covering import mostly_slow
from graded_bodies import GradedBody

from heatsim import Simulation
from heatsim.errors import Interrupted
from heatsim.opened.run import Run
from heatsim.storage.field_reader import FieldReader

CASES = mostly_slow(
    product(range(20), (False, True), ("implicit", "stabilized")),
    *((3, False, "implicit"), (5, True, "implicit"), (2, False, "stabilized"), (7, True, "stabilized")),
)


def document_of(seed: int, axial: bool, method: str) -> tuple[dict[str, Any], list[float]]:
    """A random body without fluxes and powers, and all temperatures that it is given: they bound its own."""
    body = GradedBody(seed, axial)
    document = body.document
    document.pop("sources", None)
    faces = document["boundaries"]
    given = [300.0]
    for name, condition in list(faces.items()):
        if condition["type"] == "flux":
            faces[name] = {"type": "convection", "coefficient": 1e3, "ambient": 390.0 if seed % 2 else 250.0}
        given += [faces[name][key] for key in ("value", "ambient") if key in faces[name]]
    document["time"] = {"method": method, "end": 40.0, "tolerance": 0.5}
    document["output"] = {"every": 10.0, "probe_every": 0.7 if seed % 3 else 20.0, "figures": False, "error": "none"}
    document["probes"] = [{"name": "mean", "statistic": "mean"}, {"name": "hottest", "statistic": "max"}]
    return document, given


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("seed", "axial", "method"), CASES)
def test_interrupted_runs_have_the_same_bits_and_keep_within_their_range(
    tmp_path: Path, seed: int, axial: bool, method: str
) -> None:
    document, given = document_of(seed, axial, method)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    Simulation.from_dict(document, whole).run()
    simulation, stops = Simulation.from_dict(document, parts), 0
    for number in (1, 2, 9):
        with pytest.MonkeyPatch.context() as monkeypatch:
            runs.after_advance(monkeypatch, number, runs.interrupt)
            try:
                simulation.run()
                break
            except Interrupted:
                stops += 1
        simulation = Simulation.resume(parts)
    else:
        simulation.run()
    assert stops > 1
    assert runs.results(parts) == runs.results(whole)
    state = simulation.state
    assert state.method is not None
    with FieldReader(parts / "fields.vtkhdf") as fields:
        found = np.array([fields.range(number) for number in range(len(fields))])
    # The error of steps is not within the range; that of rounding is far below it.
    assert found.min() >= min(given) - state.method.tolerance
    assert found.max() <= max(given) + state.method.tolerance
    energy = Run(parts).energy
    heats = np.abs(energy.filter(like="(J)").to_numpy())
    assert (energy["residual (J)"].abs().to_numpy() <= 1e-9 * (heats.sum(axis=1) + 1e-12)).all()
