"""A run that has ended releases its field with its last reference: nothing waits for the search for cycles."""

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import bodies
import pytest
import runs

from heatsim import Simulation


@pytest.fixture
def _no_search_for_cycles() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.each_value
@pytest.mark.usefixtures("_no_search_for_cycles")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit", "steady"])
@pytest.mark.parametrize("text", [runs.TEXT, bodies.WALL, bodies.VARYING], ids=["uniform", "composite", "varying"])
def test_a_field_is_released_with_its_simulation(method: str, text: str, tmp_path: Path) -> None:
    path = runs.write(tmp_path, text)
    overrides = [f"time.method={method}", "time.end=2.0", "output.figures=false", "solver.device=cpu"]
    simulation = Simulation.from_scenario(path, overrides, output=tmp_path / "out")
    simulation.run()
    field = weakref.ref(simulation.state.field)
    values = weakref.ref(simulation.state.field.deviation)
    del simulation
    assert field() is None
    assert values() is None
