"""The CPU kernel of :mod:`heatsim.kernels.reductions.fused`.

Values of a part are added in LANES sums: the n-th value of a run of equal labels goes to sum n mod LANES. So loops are
vectors on every processor, and the order does not depend on how wide these are.
"""

from typing import Any

import numpy as np
from numba import njit

from heatsim.numba_cache import kept

LANES = 16
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
inlined: Any = njit(forceinline=True, **_OPTIONS)

# Columns of ``found``: the fields of STATISTICS.
TOTAL, MAGNITUDE, LOWEST, HIGHEST, CHANGE, NOT_FINITE, DEGREES, LIQUID = range(8)
# Columns of ``tables``: struct Part of fused.cu.
PER_KELVIN, FIRST, LAST, BASE, SOLIDUS, MELTING = range(6)


@inlined
def _add(values: Any, start: Any, stop: Any, sums: Any, extremes: Any) -> None:
    """Add a run of values of one part to its lanes."""
    one = np.uint64(1)
    while start < stop:
        lanes = min(stop - start, np.uint64(LANES))
        if lanes == LANES:  # a loop of known length
            for lane in range(np.uint64(LANES)):
                _add_value(values[start + lane], sums, extremes, lane)
        else:
            for lane in range(lanes):
                _add_value(values[start + lane], sums, extremes, lane)
        start += lanes * one


@inlined
def _add_value(value: Any, sums: Any, extremes: Any, lane: Any) -> None:
    exact = np.float64(value)
    sums[0, lane] += exact
    sums[1, lane] += abs(exact)
    lowest, highest = extremes[0, lane], extremes[1, lane]
    extremes[0, lane] = value if value < lowest else lowest  # of a number and NaN the number
    extremes[1, lane] = value if value > highest else highest


@inlined
def _fold(sums: Any, extremes: Any, found: Any) -> None:
    """Combine the lanes of a part."""
    lowest, highest = extremes[0, 0], extremes[1, 0]
    for lane in range(1, LANES):
        lowest, highest = min(lowest, extremes[0, lane]), max(highest, extremes[1, lane])
    half = LANES // 2
    while half:
        for lane in range(half):
            sums[0, lane] += sums[0, lane + half]
            sums[1, lane] += sums[1, lane + half]
        half //= 2
    found[TOTAL], found[MAGNITUDE], found[LOWEST], found[HIGHEST] = sums[0, 0], sums[1, 0], lowest, highest


@inlined
def _add_degrees(values: Any, start: Any, stop: Any, table: Any, temperatures: Any, rises: Any, found: Any) -> None:
    """Add the temperatures of a run of contents of one part, and its liquid parts."""
    per_kelvin, first, last, base = table[PER_KELVIN], table[FIRST], table[LAST], table[BASE]
    solidus, melting = table[SOLIDUS], table[MELTING]
    degrees, liquid = found[DEGREES], found[LIQUID]
    for i in range(start, stop):
        steps = np.float64(values[i]) * per_kelvin
        node = min(max(np.floor(steps), first), last) if np.isfinite(steps) else first
        entry = np.int64(base + node)
        T = temperatures[entry] + rises[entry] * (steps - node)
        degrees += T
        if melting > 0.0:
            liquid += min(max((T - solidus) / melting, 0.0), 1.0)
    found[DEGREES], found[LIQUID] = degrees, liquid


@inlined
def _not_finite(values: Any, labels: Any, mask: Any, part: int, start: Any, stop: Any) -> float:
    """The number of values of a part that are not finite."""
    count = 0.0
    for i in range(start, stop):
        if (labels.size == 0 or labels[i] & mask == part) and not np.isfinite(values[i]):
            count += 1.0
    return count


@inlined
def _change(values: Any, before: Any, start: Any, stop: Any) -> float:
    """The largest magnitude of the differences, without NaN."""
    largest = values[0] - values[0]
    largest = largest if largest == largest else values.dtype.type(0)
    for i in range(start, stop):
        change = abs(values[i] - before[i])
        largest = change if change > largest else largest
    return np.float64(largest)


@kept(**_OPTIONS)
def look(
    values: Any,
    before: Any,
    labels: Any,
    mask: Any,
    bounds: Any,
    tables: Any,
    temperatures: Any,
    rises: Any,
    sums: Any,
    extremes: Any,
    seen: Any,
    found: Any,
    first: int,
    end: int,
) -> None:
    """Look at sections ``first`` … ``end`` − 1.

    Args:
        values: a 1-d array.
        before: a second one for the largest change, or an empty one.
        labels: numbers whose bits ``mask`` are the part of each value; empty if there is one part.
        mask: see there; of the type of the labels.
        bounds: the first value of each section, and the end of the last one.
        tables: the thermometer of each part, shape (parts, 6); empty if temperatures are not asked for.
        temperatures: T − T_ref in K at the nodes of all thermometers.
        rises: their differences to the next node.
        sums: room, float64, shape (parts, 2, LANES).
        extremes: room of the type of the values, of the same shape.
        seen: room, one byte for each part.
        found: gets STATISTICS as numbers, shape (sections, parts, 8).
        first: the first section.
        end: one after the last section.
    """
    parts = found.shape[1]
    for section in range(first, end):
        for part in range(parts):
            found[section, part] = 0.0
            found[section, part, LOWEST], found[section, part, HIGHEST] = np.inf, -np.inf
            seen[part] = 0
        start, stop = np.uint64(bounds[section]), np.uint64(bounds[section + 1])
        while start < stop:
            own, run_end = np.uint64(0), stop
            if labels.size:
                label = labels[start] & mask
                own, run_end = np.uint64(label), start + np.uint64(1)
                while run_end < stop and labels[run_end] & mask == label:
                    run_end += np.uint64(1)
            if not seen[own]:
                seen[own] = 1
                sums[own] = 0.0
                extremes[own, 0], extremes[own, 1] = np.inf, -np.inf
            _add(values, start, run_end, sums[own], extremes[own])
            if tables.size:
                _add_degrees(values, start, run_end, tables[own], temperatures, rises, found[section, own])
            start = run_end
        start = np.uint64(bounds[section])
        for part in range(parts):
            if not seen[part]:
                continue
            _fold(sums[part], extremes[part], found[section, part])
            if not np.isfinite(found[section, part, MAGNITUDE]):
                found[section, part, NOT_FINITE] = _not_finite(values, labels, mask, part, start, stop)
        if before.size:
            found[section, 0, CHANGE] = _change(values, before, start, stop)
