"""Find the part of a body to enlarge: one that an option selects, or a small part in which the field varies."""

from collections.abc import Sequence
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import InputError
from heatsim.grid import AXES, Grid
from heatsim.render.choice import read_number
from heatsim.render.sections import Section
from heatsim.storage.field_reader import Cells

# A cell belongs to the part if its value differs from the median by more than this fraction of the range.
_DIFFERS = 0.1
# Margin around these cells, as a fraction of their extent, and at least in cells.
_MARGIN, _LEAST_MARGIN = 0.25, 2
# A part is enlarged if it covers at most this fraction of the largest section.
_SMALL = 0.2
_ROUNDING = 1e-6  # cells


def find_part(sections: Sequence[Section], grid: Grid) -> Cells | None:
    """The box of cells in which a field varies, with a margin; None if it is not a small part of the body.

    Args:
        sections: of the field, normal to x, y, z, where it varies most.
        grid: the cells.
    """
    everything = np.concatenate([section.values[np.isfinite(section.values)] for section in sections])
    if not everything.size or (low := float(everything.min())) == (high := float(everything.max())):
        return None
    usual = float(np.median(everything))
    first, last = list(grid.cells), [0, 0, 0]
    for normal, section in enumerate(sections):
        differs = np.nan_to_num(np.abs(section.values - usual), nan=0.0) > _DIFFERS * (high - low)
        level, upright = (axis for axis in range(3) if axis != normal)
        for axis, along in ((level, 0), (upright, 1)):
            there = np.flatnonzero(differs.any(axis=along))
            if there.size:
                first[axis], last[axis] = min(first[axis], int(there[0])), max(last[axis], int(there[-1]) + 1)
    cells = with_room(grid, first, last)
    fractions = np.array([(end - start) / n for (start, end), n in zip(cells, grid.cells, strict=True)])
    largest = int(np.argmax([np.prod(np.delete(grid.size, axis)) for axis in range(3)]))
    return cells if np.prod(np.delete(fractions, largest)) <= _SMALL else None


def part_around(inside: NDArray[np.bool_], grid: Grid) -> Cells:
    """The bounding box of the cells ``inside``, shape (nz, ny, nx), with a margin."""
    found = [np.flatnonzero(inside.any(axis=tuple(2 - other for other in range(3) if other != a))) for a in range(3)]
    return with_room(grid, [int(there[0]) for there in found], [int(there[-1]) + 1 for there in found])


def with_room(grid: Grid, first: Sequence[int], last: Sequence[int]) -> Cells:
    """A box of cells with a margin, clipped to the grid; ``last`` is exclusive."""
    ends = []
    for start, end, n in zip(first, last, grid.cells, strict=True):
        margin = max(_LEAST_MARGIN, ceil(_MARGIN * (end - start)))
        ends.append((max(start - margin, 0), min(end + margin, n)))
    x, y, z = ends
    return x, y, z


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
    first = max(floor((start - origin) / grid.spacing[axis] + _ROUNDING), 0)
    last = min(ceil((end - origin) / grid.spacing[axis] - _ROUNDING), grid.cells[axis])
    if start >= end or first >= last:
        raise InputError(
            f'--zoom: got "{entry}"; the first end must be below the second, and the domain reaches from {origin:g} to '
            f"{origin + size:g} m along {AXES[axis]}"
        )
    return first, last
