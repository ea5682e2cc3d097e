"""Winding numbers: how often a surface of triangles goes around points.

A ray from a point along +x crosses the triangles of a surface. A crossing counts +1 if the normal of the triangle, from
the order of its corners, points along the ray, else −1. The sum is the winding number: 1 inside a closed surface whose
normals point out, 0 outside, 2 where two such surfaces overlap.

The projection of a triangle along x holds the ray if, in the ray's plane of constant z, the ray lies between the two
edges that cross this plane. The place of an edge in a plane is calculated in the same way for all of its triangles, and
all intervals are half open. So a ray through an edge or a corner crosses one triangle, and the sum is exact.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_AT_ONCE = 2**19  # pairs of a triangle and a ray
_MOST_BINS = 512  # along y and z
_MOST_ENTRIES = 2**22  # of triangles in bins, or 16 for each triangle


class _Bins(NamedTuple):
    """Triangles by their places along y and z.

    Attributes:
        low: where the first bin begins.
        scale: bins per length.
        edge: the number of bins along y, and along z.
        starts: where each bin begins in ``members``, and where the last one ends.
        members: the triangles of all bins, in each bin those that reach farthest along x first.
        ends: of each triangle along y, along z, and the upper one along x; shape (m, 5).
    """

    low: Array
    scale: Array
    edge: int
    starts: Indices
    members: Indices
    ends: Array


class Winding:
    """The triangles of a closed surface.

    Args:
        points: corners (x, y, z), shape (n, 3).
        triangles: indices of three corners each, shape (m, 3); each edge belongs to as many triangles in one direction
            as in the other.
    """

    def __init__(self, points: Array, triangles: Indices) -> None:
        self._points, self._triangles = points, triangles
        corners = points[triangles]
        self._low, self._high = corners.min(axis=1), corners.max(axis=1)
        self._bins: _Bins | None = None

    def in_cells(self, block: tuple[slice, slice, slice], centres: Sequence[Array] | None = None) -> NDArray[np.int16]:
        """The winding numbers around the centres of a block of cells (slices along z, y, x), in its shape.

        Args:
            block: the cells.
            centres: the coordinates of all cells' centres along x, y and z, ascending; None if they are whole numbers.
        """
        from heatsim.physics.geometry.ray_crossings import subtract_signs

        steps = np.zeros([along.stop - along.start for along in block], dtype=np.int16)
        numbers = (np.arange(along.start, along.stop, dtype=np.float64) for along in reversed(block))
        x, y, z = numbers if centres is None else (of[span] for of, span in zip(centres, reversed(block), strict=True))
        if not steps.size:
            return steps
        first, last = np.array([(along[0], along[-1]) for along in (x, y, z)]).T
        reached = (self._low <= last).all(axis=1)
        reached &= (self._high[:, 1:] >= first[1:]).all(axis=1)  # triangles before the block along x count
        subtract_signs(self._points, self._triangles[reached], x, y, z, steps)
        return np.cumsum(steps, axis=2, out=steps)

    def at(self, points: Array) -> Indices:
        """The winding numbers around points (x, y, z), shape (n, 3); shape (n,)."""
        from heatsim.physics.geometry.ray_crossings import add_signs_ahead

        found, bins = np.zeros(len(points), dtype=np.int64), self._in_bins()
        places = ((points[:, 1:] - bins.low) * bins.scale).astype(np.int64)
        within = ((points[:, 1:] >= bins.low) & (places < bins.edge)).all(axis=1)
        number, signs = places[within] @ (bins.edge, 1), np.zeros(int(within.sum()), dtype=np.int64)
        add_signs_ahead(
            self._points, self._triangles, bins.ends, points[within], number, bins.starts, bins.members, signs
        )
        found[within] = signs
        return found

    def _in_bins(self) -> _Bins:
        """The triangles by their places along y and z."""
        if self._bins is None:
            starts_at, ends_at = self._low[:, 1:], self._high[:, 1:]
            low, high, count = starts_at.min(axis=0), ends_at.max(axis=0), len(starts_at)
            edge = int(np.clip(np.sqrt(count), 1, _MOST_BINS))
            while True:
                scale = edge / np.maximum((high - low) * (1.0 + 1e-12), np.finfo(float).tiny)
                first = np.minimum(((starts_at - low) * scale).astype(np.int64), edge - 1)
                last = np.minimum(((ends_at - low) * scale).astype(np.int64), edge - 1)
                spans = last - first + 1
                entries = spans.prod(axis=1)
                if edge == 1 or entries.sum() <= max(_MOST_ENTRIES, 16 * count):
                    break
                edge = (edge + 1) // 2
            bins, members, farthest = [], [], np.argsort(-self._high[:, 0])
            for place, at in _spread(entries[farthest]):
                of = farthest[place]
                across, along = np.divmod(at, spans[of, 1])
                bins.append((first[of, 0] + across) * edge + first[of, 1] + along)
                members.append(of)
            number = np.concatenate(bins)
            order = np.argsort(number, kind="stable")
            starts = np.searchsorted(number[order], np.arange(edge * edge + 1))
            ends = np.stack((starts_at[:, 0], ends_at[:, 0], starts_at[:, 1], ends_at[:, 1], self._high[:, 0]), axis=1)
            self._bins = _Bins(low, scale, edge, starts, np.concatenate(members)[order], ends)
        return self._bins


def _spread(counts: Indices) -> Iterator[tuple[Indices, Indices]]:
    """All pairs of an index and a number below its count, some at a time."""
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts):
        begun = ends[first] - counts[first]
        last = max(int(np.searchsorted(ends, begun + _AT_ONCE, side="right")), first + 1)
        part = counts[first:last]
        of = np.repeat(np.arange(first, last), part)
        yield of, np.arange(len(of)) - np.repeat(ends[first:last] - part - begun, part)
        first = last
