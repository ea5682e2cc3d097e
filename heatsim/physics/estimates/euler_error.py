"""The error in time that Euler's method is expected to have, from the scenario alone.

A step of dt multiplies a mode of the rate −λ by 1 − λ·dt instead of exp(−λ·dt). At a time t after a jump of R kelvins
the mode is off by ½·λ·dt·λ·t·exp(−λ·t)·R. The mode with λ = 1/t has

    0.18·dt·R/t

No mode is faster than 1/limit, so t counts as at least the limit. It is the time from the jump to the next row. Heat of
q K/s, or a temperature whose slope changes by q K/s, excites modes with R = q/λ: 0.18·dt·q at any time. Where some
cells are heated and others are cooled, q is the difference.

A node is a lumped body: what ties it to given temperatures, and its power, excite it alike.

The start is a jump at t = 0, see :mod:`heatsim.physics.estimates.start`. It is forgotten as 1/t. Heat that comes later,
such as that of the sun, has its error later: the largest sum of both counts.

In bodies of many cells few modes have the rate 1/t. In a row of cells a heated half has 0.33 of this error, a kink
0.39, what lies behind a held face that jumps 0.75. So 0.4 is taken, 0.75 of what held faces cause; in few cells, and
where a body is thin beside ℓ, all of it.
"""

from math import e, inf

import numpy as np

from heatsim.physics.conditions.condition_terms import time_functions
from heatsim.physics.drives.drives import Driven, heating
from heatsim.physics.estimates.start import OF_FEW_CELLS, OF_HELD_FACE, Start
from heatsim.physics.time.tolerance import Tolerance
from heatsim.scenario import Scenario, Temperature, TimeFunction
from heatsim.scenario.values.course import refined

_MODE, _SHARE = 0.5 / e, 0.4
# Nodes of a function closer than this part of the end are both sides of a jump.
_ONE = 1e-9
_BETWEEN = 4  # parts of the time between two nodes, in which a value rises or falls


def euler_error(problem: Driven, start: Start, tolerance: Tolerance, limit: float, safety: float) -> float:
    """The expected error in K of the rows of a run by Euler's method.

    Args:
        problem: its conditions and sources.
        start: of the run.
        tolerance: of the first step.
        limit: the stability limit in s.
        safety: the part of it that steps take.
    """
    scenario = problem.boundary.scenario
    end, every = scenario.time.end, (scenario.output.every, scenario.output.probe_every)
    changes = 0.0
    for condition in problem.boundary.conditions:
        multiple = max(start.multiple, OF_HELD_FACE if isinstance(condition, Temperature) else 1.0)
        for exchange, temperature in time_functions(condition).exchanges:
            # A change of a film coefficient or an emissivity acts like a change of the temperature around the surface.
            scales = (temperature, 1.0), (exchange, tolerance.range / (max(map(abs, exchange.extremes(end))) or 1.0))
            fastest = max(_fastest(function, scale, end, every, limit) for function, scale in scales)
            changes = max(changes, fastest * multiple)
    row = min(*every, end)
    nodes = _of_nodes(scenario, every, limit, max(row, limit))
    largest, time = 0.0, min(max(row, limit), end)
    while True:
        of_body = max(start.jump(time) / time, changes) + start.multiple * heating(problem, 2.0 * time)
        largest = max(largest, of_body + OF_FEW_CELLS * nodes)
        time *= 2.0
        if time >= end:
            break
    return float(_SHARE * _MODE * min(safety * limit, row) * largest)


def _of_nodes(scenario: Scenario, every: tuple[float, float], limit: float, row: float) -> float:
    """What nodes are driven with, in K/s: the largest sum of what one of them has at the start and later.

    A node with a heat capacity C is a lumped body. Of a difference R to what a conductance G ties it to it follows
    2·G·t/C at most, and all of it after that; heat P changes it by P/C.
    """
    largest, end = 0.0, scenario.time.end
    for node in scenario.nodes:
        ties = [(link.conductance, link.ambient) for link in node.links if link.ambient is not None]
        ties += [(flow.capacity_rate, flow.inlet) for flow in node.flows if flow.inlet is not None]
        C, total = node.heat_capacity, sum(G for G, _ in ties)
        low, high = node.power.extremes(end)
        found = (high - low) / C if C > 0.0 else 0.0
        if C == 0.0 and total > 0.0:
            found = _fastest(node.power, 1.0 / total, end, every, limit)
        for G, function in ties:
            coldest, hottest = function.extremes(end)
            follows = 2.0 * G / C if C > 0.0 else inf  # 1/s
            found += min(_fastest(function, 1.0, end, every, limit), follows * (hottest - coldest))
            if node.initial_temperature is not None and C > 0.0:
                jump = abs(float(function.at(np.zeros(1))[0]) - node.initial_temperature)
                found += jump * min(1.0 / row, follows)
        largest = max(largest, found)
    return largest


def _fastest(function: TimeFunction, scale: float, end: float, every: tuple[float, float], limit: float) -> float:
    """The largest change of a function times ``scale`` in K/s: from a jump to the next row, or within the limit."""
    if function.constant:
        return 0.0
    nodes = refined(function.nodes(end), _BETWEEN)
    changes, times = scale * np.abs(np.diff(function.at(nodes))), nodes[1:]
    jumps = np.diff(nodes) <= _ONE * end
    if not function.foreseen:  # it may jump at each node but the end
        jumps = np.isin(times, function.nodes(end)[1:-1])
        changes = np.where(jumps, scale * np.ptp(function.extremes(end)), 0.0)
    rows = np.min([(np.floor(times / each) + 1.0) * each for each in every], axis=0)
    between = np.minimum(rows, end) - times
    # All that happens within the limit acts like one jump.
    variation = np.concatenate(([0.0], np.cumsum(np.where(jumps, 0.0, changes))))
    smooth = (np.interp(nodes + limit, nodes, variation) - variation) / limit
    return float(max((changes / np.maximum(between, limit))[jumps].max(initial=0.0), smooth.max()))
