"""How far probes are from their measured values."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario import Probe, Scenario
from heatsim.storage.run_tables import RunTable

_MOST_POINTS = 2000  # of a probe that summary.json keeps for pictures


def compare(scenario: Scenario, probes: RunTable | None) -> list[dict[str, Any]]:
    """The deviations, computed less measured, of each probe with measured values; all numbers are in SI units.

    They count at the measured times between the first and the last row, each of them as much as any other. Between rows
    the probe is linear. A probe without such a time is left out.

    Args:
        scenario: of the run.
        probes: its table.
    """
    measured = [probe for probe in scenario.probes if probe.measured is not None]
    return [] if probes is None else [found for probe in measured for found in _of_probe(probe, scenario, probes)]


def _of_probe(probe: Probe, scenario: Scenario, probes: RunTable) -> Iterator[dict[str, Any]]:
    assert probe.measured is not None
    times, values = probe.measured.since(scenario.time.start_date), probe.measured.values.array
    for unit, column in ((unit, column) for (name, unit), column in probes.columns.items() if name == probe.name):
        rows = np.isfinite(column)
        within = (times >= probes.times[rows].min(initial=np.inf)) & (times <= probes.times[rows].max(initial=-np.inf))
        if within.any():
            differences = np.interp(times[within], probes.times[rows], column[rows]) - values[within]
            farthest = int(np.abs(differences).argmax())
            shown = np.unique(np.linspace(0, within.sum() - 1, _MOST_POINTS).round().astype(np.intp))
            yield {
                "probe": probe.name,
                "unit": unit,
                "rms": float(np.sqrt(np.mean(differences**2))),
                "lines": _error_of_lines(probes.times[rows], column[rows], times[within]),
                "mean": float(differences.mean()),
                "largest": float(differences[farthest]),
                "time": float(times[within][farthest]),
                "compared": int(within.sum()),
                "measured": len(times),
                "times": times[within][shown].tolist(),
                "values": values[within][shown].tolist(),
            }


def _error_of_lines(rows: NDArray[np.float64], values: NDArray[np.float64], times: NDArray[np.float64]) -> float:
    """About how far straight lines between rows are off at some times: a quarter of that of lines twice as long."""
    if len(rows) < 3 or np.isin(times, rows).all():
        return 0.0  # at rows themselves; with two rows no other times are allowed
    part = (rows[1:-1] - rows[:-2]) / (rows[2:] - rows[:-2])
    missed = np.abs(values[1:-1] - (1.0 - part) * values[:-2] - part * values[2:])
    interval = np.clip(np.searchsorted(rows, times[~np.isin(times, rows)], "right") - 1, 0, len(rows) - 2)
    around = np.maximum(np.append(missed, 0.0), np.insert(missed, 0, 0.0))  # of the rows at both ends of an interval
    return 0.25 * float(around[interval].max())
