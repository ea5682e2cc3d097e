"""Means over time steps of what varies in time."""

from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario import Table, TimeFunction

Array = NDArray[np.float64]

# Gauss–Legendre points of [0, 1] and their weights: exact for polynomials of degree 5.
_POINTS = (0.5 - sqrt(0.15), 0.5, 0.5 + sqrt(0.15))
_WEIGHTS = (5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0)


def mean(function: TimeFunction, times: Array, dt: float) -> Array:
    """The mean of a function over steps of ``dt`` seconds from ``times``: exact for tables and smooth expressions.

    For dt = 0 it is the value at the times.
    """
    if function.constant or dt == 0.0:
        return function.at(times)
    if isinstance(function, Table):
        return _table_mean(function, times, dt)
    return np.asarray(
        sum(weight * function.at(times + point * dt) for point, weight in zip(_POINTS, _WEIGHTS, strict=True))
    )


def _table_mean(table: Table, times: Array, dt: float) -> Array:
    """Where no node lies within a step the value in its middle, else the integral from node to node."""
    nodes, values = np.array(table.times), np.array(table.values)
    means = table.at(times + dt / 2.0)
    period = nodes[-1] if table.repeat else np.inf
    local = np.mod(times, period) if table.repeat else times
    bent = np.searchsorted(nodes, local, "right") != np.searchsorted(nodes, local + dt, "left")
    for index in np.flatnonzero(bent):
        start, stop = float(local[index]), float(local[index]) + dt
        cuts = [nodes]
        if table.repeat:
            # A table may start again, more than once in a long step; its value jumps there.
            cuts = [nodes + period * lap for lap in range(int(stop // period) + 1)]
        total = 0.0
        inside = np.concatenate(cuts)
        ends = np.unique(np.concatenate(([start], inside[(inside > start) & (inside < stop)], [stop])))
        for left, right in pairwise(ends.tolist()):
            # Between nodes the table is a line: its middle is its mean.
            middle = (left + right) / 2.0
            total += (right - left) * float(np.interp(middle % period if table.repeat else middle, nodes, values))
        means[index] = total / dt
    return means
