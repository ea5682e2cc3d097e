"""Random scenarios with time.method = "stabilized": the range of temperatures, and the bound of the energy balance."""

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
import runs
from covering import SLOW
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from test_energy_bound import scenarios, watched
from test_maximum_principle import UNIT_ROUNDOFF, Case, cases

from heatsim import Simulation
from heatsim.errors import HeatsimError
from heatsim.storage import folder, tables
from heatsim.storage.field_reader import FieldReader

pytestmark = pytest.mark.usefixtures("one_thread", "each_row_at_once")


def stabilized(text: str) -> str:
    """A scenario with the other method, in TOML with a line or a table for [time]."""
    text = re.sub(r"(?m)^dt = .*(\n^safety = .*)?$", 'method = "stabilized"', text)
    return re.sub(r"safety = [0-9.]+", 'method = "stabilized"', text)


@settings(
    max_examples=20 if SLOW else 8, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(case=cases())
def test_temperatures_keep_within_their_range(case: Case) -> None:
    """Ends of steps leave it by the tolerance at most, and rows and fields between them by twice that."""
    assume(case.sound)
    with tempfile.TemporaryDirectory() as name:
        scenario, target = Path(name, "case.toml"), Path(name, "run")
        scenario.write_text(stabilized(case.text), encoding="utf-8")
        try:
            simulation = Simulation.from_scenario(scenario, output=target)
            simulation.run()
        except HeatsimError as error:
            raise AssertionError(f"{error}\n{case.text}") from error
        summary = json.loads((target / folder.SUMMARY).read_text())
        event(f"steps {min(10 ** len(str(summary['steps'])), 10**4)}")
        u, largest = UNIT_ROUNDOFF[case.precision], max(abs(case.highest), abs(case.lowest))
        allowed = summary["tolerance"] + 10.0 * u * largest * np.sqrt(summary["stages"])
        T = simulation.temperature
        assert case.lowest - allowed <= T.min() <= T.max() <= case.highest + allowed
        _, probes = tables.read(target / folder.PROBES)
        assert case.lowest - 2.0 * allowed <= probes[:, 1].min() <= probes[:, 1].max() <= case.highest + 2.0 * allowed
        with FieldReader(target / folder.FIELDS) as fields:
            for i in range(len(fields)):
                low, high = fields.range(i)
                assert case.lowest - 2.0 * allowed <= low <= high <= case.highest + 2.0 * allowed
        assert max(abs(row["residual"]) for row in runs.energy_rows(target)) <= summary["energy_bound"]


@settings(
    max_examples=6 if SLOW else 3, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(text=scenarios())
def test_every_row_of_the_energy_balance_closes(text: str) -> None:
    watched(stabilized(text))
