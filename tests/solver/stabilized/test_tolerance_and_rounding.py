"""A tolerance that rounding hides is refused."""

from pathlib import Path

import pytest
import runs

from heatsim import Simulation
from heatsim.errors import RunError

SCENARIO = """
[domain]
size = [0.01, 0.01, 0.01]
cells = [6, 5, 4]
[material]
conductivity = 20.0
density = 7000.0
specific_heat = 500.0
[initial]
temperature = 300.0
[boundaries]
x_max = { type = "temperature", value = 400.0 }
[time]
method = "stabilized"
end = 1.0
tolerance = 2e-6
[output]
figures = false
"""


def test_a_tolerance_below_the_rounding_of_float32_is_refused(tmp_path: Path) -> None:
    simulation = Simulation.from_scenario(runs.write(tmp_path, SCENARIO), output=tmp_path / "out")
    with pytest.raises(RunError, match=r"time\.tolerance = 2e-06 K cannot be met .*float64"):
        simulation.run()


def test_it_is_refused_from_a_uniform_start_too(tmp_path: Path) -> None:
    """Its first step tells that no step is short enough."""
    simulation = Simulation.from_scenario(runs.write(tmp_path, SCENARIO), output=tmp_path / "out")
    with pytest.raises(RunError, match=r"time\.tolerance = 2e-06 K cannot be met .*float64"):
        simulation.run()


def test_float64_resolves_it(tmp_path: Path) -> None:
    text = SCENARIO + '[solver]\nprecision = "float64"\n'
    simulation = Simulation.from_scenario(runs.write(tmp_path, text), output=tmp_path / "out")
    simulation.run()
    assert simulation.state.method is not None
    assert simulation.state.method.work.steps > 10
