"""Functions of time and place as sums of products of a function of time and a function of place, found from values.

It is for those whose trees do not show the products (:mod:`heatsim.scenario.values.products`).

With the values V at some times and places,

    v(x, t) = v(x, times)·V⁻¹·v(places, t)

for every function that is a sum of at most len(times) such products. The times and places are found by full pivoting in
a sample of values (adaptive cross approximation: Bebendorf, *Numer. Math.* 86 (2000) 565). A term may be 0 in the whole
sample, for example the heat of a single cell. So the sum is compared with the function in all cells, and at many times;
the time and the cell that it misses most join the sample.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.scenario.values.products import MOST_TERMS

Array = NDArray[np.float64]
Cells = NDArray[np.int64]
# Values at times in s in some cells, shape (times, cells).
Values = Callable[[Array, Cells], Array]

# Where values in space and time are looked at, in parts of the domain.
_PARTS = (0.0, 0.234, 0.5, 0.618, 1.0)
# The sample, and the part of the largest value that it may be missed by.
_TIMES, _PLACES, _SAME = 65, 4096, 1e-10
# The comparison: as many times for all cells as this number of values allows, within limits, and all times for a few
# cells; the part of the largest value by which a value may be missed.
_VALUES, _FEWEST_TIMES, _FEW_PLACES, _MISSED = 2**24, 4, 64, 1e-8


@dataclass(frozen=True, eq=False)
class Separated:
    """A function of time and place as a sum of products.

    Attributes:
        places: a cell for each product; the function of time at its centre is the factor in time.
        weights: the factor in space in all cells, shape (products, cells).
    """

    places: Cells
    weights: Array


def separate(values: Values, cells: Cells, moments: Array) -> Separated | None:
    """The products whose sum a function of time and place is.

    Args:
        values: the function.
        cells: the cells in which it is needed, by their indices in the grid.
        moments: times in s at which something happens.

    Returns:
        None if more than ``MOST_TERMS`` products are needed.
    """
    times, some = moments[_spread(len(moments), _TIMES)], cells[_spread(len(cells), _PLACES)]
    for _ in range(MOST_TERMS + 1):
        table = values(times, some)
        pivots = _skeleton(table)
        if pivots is None:
            return None
        at_times, at_places = pivots
        own = np.concatenate([np.zeros((0, len(cells))), *(values(times[[time]], cells) for time in at_times)])
        separated = Separated(some[at_places], np.linalg.solve(table[np.ix_(at_times, at_places)], own))
        missed = _missed(values, separated, cells, moments)
        if missed is None:
            return separated
        times, some = np.append(times, missed[0]), np.append(some, missed[1])
    return None


def some_points(grid: Grid) -> list[tuple[float, float, float]]:
    """Points of a domain in m: what a(t) + b(t)·f(x, y, z) does in time shows at some of them."""
    parts = [[origin + part * size for part in _PARTS] for origin, size in zip(grid.origin, grid.size, strict=True)]
    return [(x, y, z) for x, y, z in zip(*parts, strict=True)]


def _missed(values: Values, separated: Separated, cells: Cells, moments: Array) -> tuple[float, int] | None:
    """The time and the cell at which a sum of products differs most from its function; None if it agrees."""
    count = int(np.clip(_VALUES // len(cells), _FEWEST_TIMES, _TIMES))
    few = _spread(len(cells), _FEW_PLACES)
    largest, worst, found = 0.0, 0.0, None
    for times, places in (
        *((moments[[time]], np.arange(len(cells))) for time in _spread(len(moments), count).tolist()),
        (moments, few),
    ):
        exact = values(times, cells[places])
        errors = np.abs(values(times, separated.places) @ separated.weights[:, places] - exact)
        largest = max(largest, float(np.abs(exact).max()))
        time, place = np.unravel_index(int(np.argmax(errors)), errors.shape)
        if errors[time, place] > worst:
            worst, found = float(errors[time, place]), (float(times[time]), int(cells[places[place]]))
    return found if worst > _MISSED * largest else None


def _spread(count: int, most: int) -> NDArray[np.intp]:
    """At most ``most`` of ``count`` places, evenly spread."""
    return np.unique(np.linspace(0, count - 1, most).astype(np.intp))


def _skeleton(table: Array) -> tuple[list[int], list[int]] | None:
    """Times and places from which all values of a table follow.

    Args:
        table: values at times and places, shape (times, places).

    Returns:
        The numbers of times and places; None if more than ``MOST_TERMS`` are needed.
    """
    rest, largest, times, places = table.copy(), float(np.abs(table).max()), list[int](), list[int]()
    while True:
        time, place = (int(index) for index in np.unravel_index(int(np.argmax(np.abs(rest))), rest.shape))
        if abs(rest[time, place]) <= _SAME * largest:
            return times, places
        if len(times) == MOST_TERMS:
            return None
        times.append(time)
        places.append(place)
        rest -= np.outer(rest[:, place], rest[time] / rest[time, place])
