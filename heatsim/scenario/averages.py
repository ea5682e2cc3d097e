"""Means of functions of time over time steps.

The mean over a step transfers the same heat as the function itself, for any length of the step. The mean of a step does
not depend on the other steps in the same call.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Length = float | Array  # of steps in s: one for all, or one for each

# Gauss–Legendre points of [0, 1] and their weights: exact for polynomials of degree 5.
_POINTS = (0.5 - sqrt(0.15), 0.5, 0.5 + sqrt(0.15))
_WEIGHTS = (5.0 / 18.0, 8.0 / 18.0, 5.0 / 18.0)
# A function with unknown jumps is sampled: samples per run, fewest and most samples per step. The samples lie at
# irrational fractions of the step, so that no oscillation has the same phase at all of them.
_LOOKS, _FEWEST, _MOST = 2**22, 32, 4096
_GOLDEN, _SHIFT = 0.6180339887498949, 0.7548776662466927


def mean_of_samples(at: Callable[[Array], Array], times: Array, dt: Length, end: float | None) -> Array:
    """The mean of many values within each step, for functions whose jumps are unknown.

    Args:
        at: returns the function's values at times in s.
        times: start times of the steps in s.
        dt: length of a step in s, or of each step.
        end: end of the run in s; None if it is unknown.
    """
    lengths = np.broadcast_to(np.asarray(dt, dtype=np.float64), times.shape)
    wanted = _LOOKS * lengths / end if end is not None else np.zeros(len(times))
    counts = np.clip(wanted, _FEWEST, _MOST).astype(np.intp)
    means = np.empty(len(times))
    for count in np.unique(counts):
        steps = counts == count
        spread = np.mod(np.arange(1, count + 1) * _GOLDEN, 1.0)
        start, length = times[steps, None], lengths[steps, None]
        # Shifted from step to step, so that errors of a fast oscillation in one step cancel in the next ones.
        places = np.mod(start / length * _SHIFT + spread, 1.0)
        means[steps] = at(start + length * places).mean(axis=1)
    return means


def mean_between(at: Callable[[Array], Array], jumps: Array, times: Array, dt: Length) -> Array:
    """The mean of a function over steps of ``dt`` seconds from ``times``, by Gauss–Legendre between its jumps.

    Args:
        at: returns the function's values at times in s.
        jumps: times of its jumps in s, ascending.
        times: start times of the steps in s.
        dt: length of a step in s, or of each step.
    """
    means = _gauss(at, times, dt)
    first, last = np.searchsorted(jumps, times, "right"), np.searchsorted(jumps, times + dt, "left")
    cut = np.flatnonzero(last > first)
    if not len(cut):
        return means
    counts = last[cut] - first[cut]
    # The pieces of all steps that contain jumps, in order; a piece begins with its step or at a jump.
    pieces = counts + 1
    step = np.repeat(np.arange(len(cut)), pieces)
    number = np.arange(len(step)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    inside = jumps[np.minimum(first[cut][step] + number, len(jumps) - 1)]
    before = jumps[np.maximum(first[cut][step] + number - 1, 0)]
    start = np.where(number == 0, times[cut][step], before)
    stop = np.where(number == counts[step], (times + dt)[cut][step], inside)
    heat = np.bincount(step, _gauss(at, start, stop - start) * (stop - start), len(cut))
    means[cut] = heat / np.bincount(step, stop - start, len(cut))
    return means


def _gauss(at: Callable[[Array], Array], start: Array, length: Array | float) -> Array:
    # One call of ``at``: for a few steps, calls take longer than numbers.
    values = at(np.array([start + point * length for point in _POINTS]))
    return np.asarray(sum(weight * of_point for weight, of_point in zip(_WEIGHTS, values, strict=True)))


def mean_of_table(nodes: Array, values: Array, repeat: bool, times: Array, dt: Length) -> Array:
    """The exact mean over steps of a table: linear between its nodes, constant or repeated beyond them.

    Two nodes at the same time are a jump.

    Args:
        nodes: times in s, ascending.
        values: one for each node.
        repeat: whether the function starts again at the last node; then the first node is at 0.
        times: start times of the steps in s.
        dt: length of a step in s, or of each step.
    """
    period = float(nodes[-1])
    laps_before = np.floor(times / period) if repeat else np.zeros(len(times))
    start = times - laps_before * period
    stop = start + dt
    # A step that ends with a period does not enter the next one.
    cycles = np.maximum(np.ceil(stop / period) - 1.0, 0.0) if repeat else np.zeros(len(times))
    stop = stop - cycles * period
    after = np.searchsorted(nodes, start, "right")  # the first node after the start
    before = np.searchsorted(nodes, stop, "left") - 1  # the last node before the end
    whole = np.concatenate(([0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(nodes))))
    length, slopes = np.diff(nodes), np.diff(values)
    slopes = np.divide(slopes, length, out=np.zeros_like(slopes), where=length > 0.0)
    slopes = np.concatenate(([0.0], slopes, [0.0]))  # constant beyond the ends

    last = len(nodes) - 1
    value_at_start = values[np.maximum(after - 1, 0)] + slopes[after] * (start - nodes[np.maximum(after - 1, 0)])
    # Within one piece the mean is the value at the middle.
    within = value_at_start + slopes[after] * dt / 2.0
    to_node = nodes[np.minimum(after, last)] - start
    from_node = stop - nodes[np.maximum(before, 0)]
    heat = to_node * (value_at_start + values[np.minimum(after, last)]) / 2.0
    heat = heat + from_node * (values[np.maximum(before, 0)] + slopes[before + 1] * from_node / 2.0)
    heat = heat + (whole[np.maximum(before, 0)] - whole[np.minimum(after, last)]) + cycles * whole[-1]
    return np.asarray(np.where((before < after) & (cycles == 0.0), within, heat / dt))
