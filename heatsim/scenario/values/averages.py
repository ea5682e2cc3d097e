"""Means of functions of time over time steps.

The mean over a step transfers the same heat as the function itself, for any length of the step. The mean of a step does
not depend on the other steps in the same call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.function_of_time import Length, TimeFunction

Array = NDArray[np.float64]

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


@dataclass(frozen=True, eq=False)
class Integral:
    """The integral of a function over its panels, by Gauss–Legendre quadrature.

    Attributes:
        at: returns the function's values at times in s.
        edges: of the panels in s, ascending; the function is smooth between them.
        points: of the quadrature in a panel: exact for polynomials of degree 2·points − 1.
    """

    at: Callable[[Array], Array]
    edges: Array
    points: int = 3

    @cached_property
    def _whole(self) -> Array:
        """The integral from the first edge to each edge."""
        lengths = np.diff(self.edges)
        return np.concatenate(([0.0], np.cumsum(self._gauss(self.edges[:-1], lengths) * lengths)))

    @cached_property
    def _rule(self) -> tuple[list[float], list[float]]:
        """Points of [0, 1] and their weights."""
        places, weights = np.polynomial.legendre.leggauss(self.points)
        return (0.5 + 0.5 * places).tolist(), (0.5 * weights).tolist()

    def mean(self, times: Array, dt: Length) -> Array:
        """Means over steps of ``dt`` seconds from ``times`` (s)."""
        stops = times + dt
        first, last = np.searchsorted(self.edges, times, "right"), np.searchsorted(self.edges, stops, "left") - 1
        means = self._gauss(times, dt)
        cut = np.flatnonzero(last >= first)
        if len(cut):
            first, last = first[cut], last[cut]
            before, after = self.edges[first] - times[cut], stops[cut] - self.edges[last]
            heat = self._gauss(times[cut], before) * before + self._gauss(self.edges[last], after) * after
            means[cut] = (heat + (self._whole[last] - self._whole[first])) / (stops - times)[cut]
        return means

    def _gauss(self, start: Array, length: Length) -> Array:
        # One call of ``at``: for a few steps, calls take longer than numbers.
        places, weights = self._rule
        values = self.at(np.array([start + place * length for place in places]))
        return np.asarray(sum(weight * value for weight, value in zip(weights, values, strict=True)))


def mean_of_product(functions: Sequence[TimeFunction], times: Array, dt: Length) -> Array:
    """Means of the product of several functions over steps of ``dt`` seconds from ``times`` (s).

    What is set during the run is constant in each step, so that its mean is a factor.

    Args:
        functions: of time.
        times: start times of the steps in s.
        dt: length of a step in s, or of each step.
    """
    varying = tuple(function for function in functions if not function.constant and function.foreseen)
    means = [function.at(times) for function in functions if function.constant]
    means += [function.mean(times, dt) for function in functions if not function.foreseen]
    if len(varying) == 1:
        means.append(varying[0].mean(times, dt))
    elif varying:
        # Tables know no end of the run; a power of 2 lets calls share an integral.
        ends = [function.end for function in varying if function.end is not None]
        end = max(ends, default=2.0 ** ceil(log2(float(np.max(times + dt, initial=1e-300)))))
        integral = _product(varying, end)
        means.append(integral.mean(times, dt) if len(integral.edges) else mean_of_samples(integral.at, times, dt, end))
    return np.asarray(reduce(np.multiply, means, np.ones(len(times))))


def magnitudes(functions: Sequence[TimeFunction], edges: Array, during: tuple[float, float], end: float) -> Array:
    """∫ |f| dt between neighbouring edges, or more where f passes 0; f is the product of functions.

    Args:
        functions: of time.
        edges: times in s, ascending, shape (n + 1,).
        during: the times in s between which f acts.
        end: of the run in s.
    """
    if all(function.resolved(end) for function in functions):
        nodes = np.concatenate([edges, during, *(function.nodes(end) for function in functions)])
        times = np.unique(nodes[(nodes >= edges[0]) & (nodes <= edges[-1])])
        starts, lengths = times[:-1], np.diff(times)
        known = [function for function in functions if function.foreseen]
        largest = np.abs(reduce(np.multiply, (function.at(times) for function in known), np.ones(len(times))))
        largest = np.maximum(np.abs(mean_of_product(known, starts, lengths)), 0.5 * (largest[:-1] + largest[1:]))
        for function in functions:  # at a node itself, what is set then may not be set yet
            largest = largest if function.foreseen else largest * np.abs(function.mean(starts, lengths))
    else:
        times = np.unique(np.concatenate((edges, np.clip(during, edges[0], edges[-1]))))
        starts, lengths = times[:-1], np.diff(times)
        largest = np.full(len(starts), np.prod([np.abs(function.extremes(end)).max() for function in functions]))
    heats = np.where((starts >= during[0]) & (starts < during[1]), largest * lengths, 0.0)
    return np.asarray(np.bincount(np.searchsorted(edges, starts, "right") - 1, heats, len(edges) - 1), np.float64)


@lru_cache(maxsize=64)
def _product(functions: tuple[TimeFunction, ...], end: float) -> Integral:
    """The integral of a product; without edges if there are too many."""

    def at(times: Array) -> Array:
        return np.asarray(reduce(np.multiply, (function.at(times) for function in functions)))

    # Between its nodes each function is a polynomial of degree 5 as precisely as its mean.
    points = 3 * len(functions)
    if not all(function.resolved(end) for function in functions):
        return Integral(at, np.zeros(0), points)
    return Integral(at, reduce(np.union1d, (function.nodes(end) for function in functions)), points)


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
