"""Find the part of a body to enlarge: one that an option selects, or a small part in which the field varies."""

from collections.abc import Mapping, Sequence
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import InputError
from heatsim.grid import AXES, Axis, Grid
from heatsim.render.choice import read_number
from heatsim.storage.field_reader import Cells

# A cell belongs to the part if its value differs from the median by more than this fraction of the range. Fractions are
# tried in this order until the part is small enough: it covers at most these fractions of the largest section and of
# each of its sides.
_SMALL_ENOUGH = {0.1: (0.2, 1.0), 0.3: (0.1, 0.4), 0.5: (0.1, 0.4)}
# Margin around these cells, as a fraction of their extent, and at least in cells of their mean width.
_MARGIN, _LEAST_MARGIN = 0.25, 2
_ROUNDING = 1e-6  # cells


def find_part(sections: Mapping[int, NDArray[np.float64]], grid: Grid) -> Cells | None:
    """The box of cells in which a field varies, with a margin; None if it is not a small part of the body.

    If the field varies almost everywhere, such as behind a moving beam, the part is that of its peak.

    Args:
        sections: values of the field by the axis normal to each section, NaN in void, where the field varies most; one
            section for a grid of one plane.
        grid: the cells.
    """
    everything = np.concatenate([values[np.isfinite(values)] for values in sections.values()])
    if not everything.size or (low := float(everything.min())) == (high := float(everything.max())):
        return None
    usual = _usual(sections, grid)
    areas = {axis: np.prod(np.delete(grid.size, axis)) for axis in sections}
    largest = max(areas, key=areas.__getitem__)
    for fraction, (most_area, most_side) in _SMALL_ENOUGH.items():
        cells = _varying({axis: np.abs(values - usual) for axis, values in sections.items()}, fraction * (high - low))
        if cells is None:
            return None
        first, last = cells
        box = with_room(grid, first, last)
        ends = (axis.fractions(np.array(cells)) for axis, cells in zip(grid.axes, box, strict=True))
        sides = np.delete([end - start for start, end in ends], largest)
        if sides.prod() <= most_area and sides.max() <= most_side:
            return box
    return None


def _usual(sections: Mapping[int, NDArray[np.float64]], grid: Grid) -> float:
    """The median of values, each as often as its cell is large."""
    values, weights = [], []
    for normal, section in sections.items():
        there = np.isfinite(section)
        across, up = (grid.axes[axis].widths for axis in range(3) if axis != normal)
        values.append(section[there])
        weights.append(np.outer(up, across)[there])
    everything = np.concatenate(values)
    if grid.uniform:
        return float(np.median(everything))
    order = np.argsort(everything)
    sums = np.cumsum(np.concatenate(weights)[order])
    return float(everything[order[np.searchsorted(sums, 0.5 * sums[-1])]])


def _varying(deviations: Mapping[int, NDArray[np.float64]], least: float) -> tuple[list[int], list[int]] | None:
    """The first and last cells, exclusive, of the box around all values above ``least``; None if there are none."""
    first, last = [2**62] * 3, [0] * 3
    for normal, values in deviations.items():
        there = np.nan_to_num(values, nan=0.0) > least
        level, upright = (axis for axis in range(3) if axis != normal)
        for axis, along in ((level, 0), (upright, 1)):
            places = np.flatnonzero(there.any(axis=along))
            if places.size:
                first[axis], last[axis] = min(first[axis], int(places[0])), max(last[axis], int(places[-1]) + 1)
    if max(last) == 0:
        return None
    # A grid of one plane has one section, which says nothing of the axis normal to it.
    return [0 if end == 0 else start for start, end in zip(first, last, strict=True)], [max(end, 1) for end in last]


def moved_to(size: Sequence[int], centre: Sequence[float], grid: Grid) -> Cells:
    """A box of ``size`` cells around a place, moved into the grid; ``centre`` are fractions of the grid."""
    starts = []
    for place, count, axis in zip(centre, size, grid.axes, strict=True):
        starts.append(min(max(round(axis.at_fraction(place) - 0.5 * count), 0), len(axis) - count))
    x, y, z = ((start, start + count) for start, count in zip(starts, size, strict=True))
    return x, y, z


def part_around(inside: NDArray[np.bool_], grid: Grid) -> Cells:
    """The bounding box of the cells ``inside``, shape (nz, ny, nx), with a margin."""
    found = [np.flatnonzero(inside.any(axis=tuple(2 - other for other in range(3) if other != a))) for a in range(3)]
    return with_room(grid, [int(there[0]) for there in found], [int(there[-1]) + 1 for there in found])


def with_room(grid: Grid, first: Sequence[int], last: Sequence[int]) -> Cells:
    """A box of cells with a margin, clipped to the grid; ``last`` is exclusive."""
    ends = []
    for start, end, axis in zip(first, last, grid.axes, strict=True):
        low, high = axis.borders[start], axis.borders[end]
        margin = max(_MARGIN, _LEAST_MARGIN / (end - start)) * (high - low)
        ends.append(_around(axis, low - margin, high + margin))
    x, y, z = ends
    return x, y, z


def _around(axis: Axis, low: float, high: float) -> tuple[int, int]:
    """The first cell and the one after the last that lie between two coordinates in m, at least in part."""
    first, last = floor(axis.places(low) + _ROUNDING), ceil(axis.places(high) - _ROUNDING)
    return max(first, 0), min(last, len(axis))


def read_box(text: str, grid: Grid) -> Cells:
    """A box of cells from a text such as ``"x = 30 to 38 mm, y = 0 to 5 mm"``; on other axes it spans the domain.

    Raises:
        InputError: an entry is no range in the domain; the message names it.
    """
    ends = [(0, n) for n in grid.cells]
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, equals, span = entry.partition("=")
        low, to, high = span.partition(" to ")
        if not equals or not to or name.strip() not in AXES:
            raise InputError(f'--zoom: got "{entry}"; write for example --zoom "x = 30 to 38 mm, y = 0 to 5 mm"')
        axis = AXES.index(name.strip())
        ends[axis] = _cells_between(low.strip(), high.strip(), axis, grid, entry)
    x, y, z = ends
    return x, y, z


def _cells_between(low: str, high: str, axis: int, grid: Grid, entry: str) -> tuple[int, int]:
    end = read_number(high, "m", "--zoom")
    if " " in high and " " not in low:
        low = f"{low} {high.split(maxsplit=1)[1]}"
    start = read_number(low, "m", "--zoom")
    origin, size = grid.origin[axis], grid.size[axis]
    first, last = _around(grid.axes[axis], start, end)
    if start >= end or first >= last:
        raise InputError(
            f'--zoom: got "{entry}"; the first end must be below the second, and the domain reaches from {origin:g} to '
            f"{origin + size:g} m along {AXES[axis]}"
        )
    return first, last
