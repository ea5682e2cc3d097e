"""The CPU kernel of :mod:`heatsim.kernels.reductions.fused`.

Values of a part are added in LANES separate sums: in a run of equal labels, value n goes to sum n mod LANES. So loops
can be vectorised on every processor, and the order of additions does not depend on the width of its vectors. With
weights a run also ends where a plane ends.
"""

from typing import Any

import numpy as np
from numba import from_dtype, types

from heatsim.kernels.cpu.compiling import Code
from heatsim.kernels.cpu.linked_functions import linked
from heatsim.kernels.reductions.statistics import (
    CHANGE,
    DEGREES,
    HIGHEST,
    LIQUID,
    LOWEST,
    MAGNITUDE,
    NOT_FINITE,
    NUMBERS,
)
from heatsim.numba_cache import kept

LANES = 16
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
inlined: Any = linked(forceinline=True, **_OPTIONS)

# Columns of ``tables``: struct Part of fused.cu.
PER_KELVIN, FIRST, LAST, BASE, SOLIDUS, MELTING = range(6)


@inlined
def _add(value: Any, weight: float, room: Any, part: Any, lane: Any) -> None:
    """Add a value to a lane of its part; its weight is for sums."""
    exact = np.float64(value)
    room[part, 0, lane] += weight * exact
    room[part, 1, lane] += weight * abs(exact)
    lowest, highest = room[part, 2, lane], room[part, 3, lane]
    room[part, 2, lane] = exact if exact < lowest else lowest  # a number and NaN: keep the number
    room[part, 3, lane] = exact if exact > highest else highest


@inlined
def _fold(room: Any, seen: Any, part: Any, found: Any) -> None:
    """Combine the lanes of a part, if it has values."""
    for column in range(NUMBERS):
        found[column] = 0.0
    found[LOWEST], found[HIGHEST] = np.inf, -np.inf
    if seen:
        for column in range(2):
            half = LANES // 2
            while half:
                for lane in range(half):
                    room[part, column, lane] += room[part, column, lane + half]
                half //= 2
            found[column] = room[part, column, 0]
        for lane in range(LANES):
            found[LOWEST] = min(found[LOWEST], room[part, 2, lane])
            found[HIGHEST] = max(found[HIGHEST], room[part, 3, lane])


@kept(**_OPTIONS)
def look(
    values: Any,
    labels: Any,
    mask: Any,
    bounds: Any,
    across: Any,
    along: Any,
    room: Any,
    seen: Any,
    found: Any,
    first: int,
    end: int,
) -> None:
    """Calculate the statistics of sections ``first`` … ``end`` − 1.

    Args:
        values: a 1-d array.
        labels: for each value a number; ``number & mask`` is its part. Empty if there is one part.
        mask: the bits of a label that are its part; of the type of the labels.
        bounds: the first value of each section, and the end of the last one.
        across: weights of the values of a plane; None to count all values alike.
        along: weights of planes; None as ``across``. numba compiles this function for each of both cases.
        room: work array, float64, shape (parts, 4, LANES).
        seen: work array, one byte for each part.
        found: receives STATISTICS as numbers, shape (sections, parts, NUMBERS).
        first: the first section.
        end: one after the last section.
    """
    one = np.uint64(1)
    for section in range(first, end):
        seen[:] = 0
        start, stop = np.uint64(bounds[section]), np.uint64(bounds[section + 1])
        while start < stop:
            part, run_end, plane, before = np.uint64(0), stop, np.uint64(0), np.uint64(0)
            if across is not None:
                size = np.uint64(across.size)
                plane = start // size
                before = plane * size
                run_end = min(stop, before + size)
            if labels.size:
                limit, label = run_end, labels[start] & mask
                part, run_end = np.uint64(label), start + one
                while run_end < limit and labels[run_end] & mask == label:
                    run_end += one
            if not seen[part]:
                seen[part] = 1
                for lane in range(LANES):
                    room[part, 0, lane] = room[part, 1, lane] = 0.0
                    room[part, 2, lane], room[part, 3, lane] = np.inf, -np.inf
            while start + LANES <= run_end:
                for lane in range(np.uint64(LANES)):
                    weight = 1.0
                    if across is not None:
                        weight = along[plane] * across[start + lane - before]
                    _add(values[start + lane], weight, room, part, lane)
                start += np.uint64(LANES)
            for lane in range(run_end - start):
                weight = 1.0
                if across is not None:
                    weight = along[plane] * across[start + lane - before]
                _add(values[start + lane], weight, room, part, lane)
            start = run_end
        for number in range(found.shape[1]):
            _fold(room, seen[number], number, found[section, number])
            if not np.isfinite(found[section, number, MAGNITUDE]):
                for i in range(np.uint64(bounds[section]), stop):
                    if (labels.size == 0 or labels[i] & mask == number) and not np.isfinite(values[i]):
                        found[section, number, NOT_FINITE] += 1.0


@kept(**_OPTIONS)
def add_degrees(
    values: Any,
    labels: Any,
    mask: Any,
    bounds: Any,
    across: Any,
    along: Any,
    tables: Any,
    temperatures: Any,
    rises: Any,
    found: Any,
    first: int,
    end: int,
) -> None:
    """Add temperatures and liquid parts of the contents in some sections; the arguments are those of :func:`look`.

    Args:
        values: as for :func:`look`.
        labels: as for :func:`look`.
        mask: as for :func:`look`.
        bounds: as for :func:`look`.
        across: as for :func:`look`.
        along: as for :func:`look`.
        tables: the thermometer of each part, shape (parts, 6).
        temperatures: T − T_ref in K at the nodes of all thermometers.
        rises: their differences to the next node.
        found: as for :func:`look`.
        first: as for :func:`look`.
        end: as for :func:`look`.
    """
    for section in range(first, end):
        for i in range(np.uint64(bounds[section]), np.uint64(bounds[section + 1])):
            part = np.uint64(labels[i] & mask) if labels.size else np.uint64(0)
            steps = np.float64(values[i]) * tables[part, PER_KELVIN]
            lowest = tables[part, FIRST]
            node = min(max(np.floor(steps), lowest), tables[part, LAST]) if np.isfinite(steps) else lowest
            entry = np.int64(tables[part, BASE] + node)
            T = temperatures[entry] + rises[entry] * (steps - node)
            weight = 1.0
            if across is not None:
                size = np.uint64(across.size)
                weight = along[i // size] * across[i % size]
            found[section, part, DEGREES] += weight * T
            if tables[part, MELTING] > 0.0:
                liquid = (T - tables[part, SOLIDUS]) / tables[part, MELTING]
                found[section, part, LIQUID] += weight * min(max(liquid, 0.0), 1.0)


@kept(**_OPTIONS)
def find_changes(values: Any, before: Any, bounds: Any, found: Any, first: int, end: int) -> None:
    """Find the largest magnitude of the differences in some sections, without NaN, and store it in the first part."""
    for section in range(first, end):
        largest = 0.0
        for i in range(np.uint64(bounds[section]), np.uint64(bounds[section + 1])):
            change = np.float64(abs(values[i] - before[i]))
            largest = change if change > largest else largest
        found[section, 0, CHANGE] = largest


def codes(dtype: np.dtype[Any], label: np.dtype[Any], thermometers: bool, weighted: bool = False) -> list[Code]:
    """The code of :func:`look` for values of a type, and of :func:`add_degrees` if there are thermometers.

    Args:
        dtype: of the values.
        label: of the labels; uint8 if there are none.
        thermometers: whether temperatures and liquid parts are asked for.
        weighted: whether values have weights.
    """
    exact, long, one = types.float64, types.int64, from_dtype(label)
    values, labels, bounds = types.Array(from_dtype(dtype), 1, "C"), types.Array(one, 1, "C"), types.Array(long, 1, "C")
    found, seen, run = types.Array(exact, 3, "C"), types.Array(types.uint8, 1, "C"), types.Array(exact, 1, "C")
    weight = run if weighted else types.none
    given, some = (values, labels, one, bounds, weight, weight), (found, long, long)
    look_at = Code(look, (*given, found, seen, *some))
    if not thermometers:
        return [look_at]
    return [look_at, Code(add_degrees, (*given, types.Array(exact, 2, "C"), run, run, *some))]
