"""A line of probes is a row of points."""

from pathlib import Path

import numpy as np
import runs

from heatsim import Simulation
from heatsim.storage import tables

LINE = """
[[probes]]
name = "line"
line = { from = [0.0, 0.05, 0.06], to = [0.062, 0.0, 0.0], count = 3 }
[[probes]]
name = "from"
point = [0.0, 0.05, 0.06]
[[probes]]
name = "middle"
point = [0.031, 0.025, 0.03]
[[probes]]
name = "to"
point = [0.062, 0.0, 0.0]
"""


def test_a_line_has_the_temperatures_of_its_points(tmp_path: Path) -> None:
    Simulation.from_scenario(runs.write(tmp_path, runs.TEXT + LINE), output=tmp_path / "run").run()
    names, rows = tables.read(tmp_path / "run" / "probes.csv")
    assert names == [
        "time (s)",
        *(f"{name} (K)" for name in ("inside", "warm, side", "line[0]", "line[1]", "line[2]", "from", "middle", "to")),
    ]
    assert np.isfinite(rows).all()
    assert (rows[:, 3:6] == rows[:, 6:9]).all()
