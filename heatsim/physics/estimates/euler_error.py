"""The error in time that Euler's method is expected to have, from the scenario alone.

A step of dt multiplies a mode of the rate −λ by 1 − λ·dt instead of exp(−λ·dt). At a time t after a jump of R kelvins
the mode is off by ½·λ·dt·λ·t·exp(−λ·t)·R. The mode with λ = 1/t has

    0.18·dt·R/t

No mode is faster than 1/limit, so t counts as at least the limit. It is the time from the jump to the next row. An
uneven initial field, and one that differs from the temperatures around it, is such a jump at t = 0. Heat of q K/s, or a
temperature whose slope changes by q K/s, excites modes with R = q/λ: 0.18·dt·q at any time. Where some cells are heated
and others are cooled, q is the difference.

In bodies of many cells few modes have such a rate. In a row of cells a heated half has 0.33 of this, and what lies
behind a held face that jumps 0.75. In seven scenarios (walls in weather, a slab, a sheet, a power module, wax) it was
0.07 to 0.5. So 0.4 is taken. With few cells it can be all of it.
"""

from math import e

import numpy as np

from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import time_functions
from heatsim.physics.drives.drives import Drives
from heatsim.physics.time.tolerance import Tolerance
from heatsim.scenario import TimeFunction
from heatsim.scenario.values.course import refined

_MODE, _SHARE, _FEW_CELLS = 0.5 / e, 0.4, 64
# Nodes of a function closer than this part of the end are both sides of a jump.
_ONE = 1e-9
_BETWEEN = 4  # parts of the time between two nodes, in which a value rises or falls


def euler_error(boundary: Boundary, drives: Drives, tolerance: Tolerance, limit: float, safety: float) -> float:
    """The expected error in K of the rows of a run by Euler's method.

    Args:
        boundary: the conditions.
        drives: what drives the body.
        tolerance: of the first step, with the extremes of the initial field.
        limit: the stability limit in s.
        safety: the part of it that steps take.
    """
    scenario = boundary.scenario
    end, every = scenario.time.end, (scenario.output.every, scenario.output.probe_every)
    low, high, fastest = tolerance.low, tolerance.high, 0.0
    for condition in boundary.conditions:
        for exchange, temperature in time_functions(condition).exchanges:
            first = float(temperature.at(np.zeros(1))[0])
            low, high = min(low, first), max(high, first)
            # A change of a film coefficient or an emissivity acts like a change of the temperature around the surface.
            scales = (temperature, 1.0), (exchange, tolerance.range / (max(map(abs, exchange.extremes(end))) or 1.0))
            found = [_fastest(function, scale, end, every, limit) for function, scale in scales]
            fastest = max(fastest, *found)
    row = min(*every, end)
    fastest = max(fastest, (high - low) / max(row, limit))
    share = 1.0 if scenario.grid.cell_count <= _FEW_CELLS else _SHARE
    return float(share * _MODE * min(safety * limit, row) * (fastest + drives.heating))


def _fastest(function: TimeFunction, scale: float, end: float, every: tuple[float, float], limit: float) -> float:
    """The largest change of a function times ``scale`` in K/s: from a jump to the next row, or within the limit."""
    if function.constant:
        return 0.0
    nodes = refined(function.nodes(end), _BETWEEN)
    changes, times = scale * np.abs(np.diff(function.at(nodes))), nodes[1:]
    jumps = np.diff(nodes) <= _ONE * end
    rows = np.min([(np.floor(times / each) + 1.0) * each for each in every], axis=0)
    between = np.minimum(rows, end) - times
    # All that happens within the limit acts like one jump.
    variation = np.concatenate(([0.0], np.cumsum(np.where(jumps, 0.0, changes))))
    smooth = (np.interp(nodes + limit, nodes, variation) - variation) / limit
    return float(max((changes / np.maximum(between, limit))[jumps].max(initial=0.0), smooth.max()))
