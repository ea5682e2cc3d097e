"""A start that alternates from cell to cell, which the norm of errors averages away."""

from pathlib import Path

import numpy as np
import pytest

from heatsim import Simulation
from heatsim.storage import folder
from heatsim.storage.field_reader import FieldReader

N, END = 4, 4e-4  # cells along an axis; s
SCENARIO = f"""
[domain]
size = [0.004, 0.004, 0.004]
cells = [{N}, {N}, {N}]
[material]
conductivity = 100.0
density = 1000.0
specific_heat = 100.0
[initial]
temperature = "900 + 400*sin({np.pi / 1e-3}*x)*sin({np.pi / 1e-3}*y)*sin({np.pi / 1e-3}*z)"
[boundaries]
default = {{ type = "periodic" }}
[time]
end = {END}
[solver]
device = "cpu"
[output]
every = {END / 8}
figures = false
"""


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("method", ["stabilized", "implicit"])
def test_an_alternating_start_decays_within_the_tolerance(tmp_path: Path, method: str, precision: str) -> None:
    """The exact solution of the cells is one mode: exp(−λ·t) with λ = 12·α/d²."""
    scenario = tmp_path / "case.toml"
    scenario.write_text(SCENARIO)
    overrides = [f"time.method={method}", f"solver.precision={precision}", "time.tolerance=0.1"]
    Simulation.from_scenario(scenario, overrides, output=tmp_path / "run").run()
    with FieldReader(tmp_path / "run" / folder.FIELDS) as fields:
        assert len(fields) == 9
        for i in range(len(fields)):
            low, high = fields.range(i)
            amplitude = 400.0 * np.exp(-12.0 * 1e3 * END * i / 8)
            assert (low, high) == pytest.approx((900.0 - amplitude, 900.0 + amplitude), abs=1.0)
