"""The error in time that Euler's method is expected to have, from the scenario alone.

A step of dt multiplies a mode of the rate −λ by 1 − λ·dt instead of exp(−λ·dt). After a jump of R kelvins the mode is
off by ½·λ·dt·λ·t·exp(−λ·t)·R, at most

    0.18·λ·dt·R                    at t = 1/λ

Rows see the modes that live until the next one: λ ≤ 1/row, and no mode is faster than 1/limit. Heat of q K/s, or a
temperature whose slope changes by q K/s, excites modes with R = q/λ: 0.18·dt·q. In bodies of many cells few modes have
such a rate: in seven scenarios (walls in weather, a slab, a sheet, a power module, wax) the error was 0.07 to 0.5 of
this, mostly below 0.25, which is taken. With few cells it can be all of it.
"""

from math import e

import numpy as np

from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import NOTHING, time_functions
from heatsim.physics.drives.drives import Drives
from heatsim.physics.time.tolerance import Tolerance
from heatsim.scenario import TimeFunction

_MODE, _SHARE, _FEW_CELLS = 0.5 / e, 0.25, 64
# Nodes of a function closer than this part of the end are both sides of a jump.
_ONE = 1e-9


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
    end = scenario.time.end
    row = min(scenario.output.every, scenario.output.probe_every, end)
    dt = min(safety * limit, row)
    jump, slope = 0.0, 0.0
    for condition in boundary.conditions:
        film, ambient, _, emissivity, surroundings = time_functions(condition)
        for exchange, temperature in ((film, ambient), (emissivity, surroundings)):
            if exchange == NOTHING:
                continue
            first = float(temperature.at(np.zeros(1))[0])
            # A change of a film coefficient or an emissivity acts like a change of the temperature around the surface.
            scales = (temperature, 1.0), (exchange, tolerance.range / (max(map(abs, exchange.extremes(end))) or 1.0))
            found = [_changes(function, scale, end) for function, scale in scales if not function.constant]
            jump = max(jump, first - tolerance.high, tolerance.low - first, *(jumps for jumps, _ in found))
            slope = max(slope, *(slopes for _, slopes in found), 0.0)
    share = 1.0 if scenario.grid.cell_count <= _FEW_CELLS else _SHARE
    return float(share * _MODE * dt * (jump * min(1.0 / limit, 1.0 / row) + drives.heating + slope))


def _changes(function: TimeFunction, scale: float, end: float) -> tuple[float, float]:
    """The largest jump in K and the largest slope in K/s of a function times ``scale``."""
    nodes = function.nodes(end)
    changes, lengths = scale * np.abs(np.diff(function.at(nodes))), np.diff(nodes)
    at_once = lengths <= _ONE * end
    slopes = changes[~at_once] / lengths[~at_once]
    return float(changes[at_once].max(initial=0.0)), float(slopes.max(initial=0.0))
