"""Winding numbers: how often a surface of triangles goes around points.

A ray from a point along +x crosses the triangles of a surface. A crossing counts +1 if the normal of the triangle, from
the order of its corners, points along the ray, else −1. The sum is the winding number: 1 inside a closed surface whose
normals point out, 0 outside, 2 where two such surfaces overlap.

The projection of a triangle along x holds the ray if, in the ray's plane of constant z, the ray lies between the two
edges that cross this plane. The place of an edge in a plane is calculated in the same way for all of its triangles, and
all intervals are half open. So a ray through an edge or a corner crosses one triangle, and the sum is exact.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_AT_ONCE = 2**19  # pairs of a triangle and a ray
_MOST_BINS = 512  # along y and z
_MOST_ENTRIES = 2**22  # of triangles in bins, or 16 for each triangle


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
        self._low, self._high = (np.ascontiguousarray(end.T) for end in (corners.min(axis=1), corners.max(axis=1)))
        self._bins: tuple[Array, Array, Indices, Indices] | None = None

    def in_cells(self, block: tuple[slice, slice, slice]) -> NDArray[np.int16]:
        """The winding numbers around all points with whole coordinates in a block (slices along z, y, x)."""
        z, y, x = block
        steps = np.zeros((z.stop - z.start, y.stop - y.start, x.stop - x.start), dtype=np.int16)
        across, begin_z, end_z = (
            np.ceil(self._low[1]) < np.minimum(np.ceil(self._high[1]), y.stop),
            np.maximum(np.ceil(self._low[2]), z.start),
            np.minimum(np.ceil(self._high[2]), z.stop),
        )
        near = np.flatnonzero(across & (self._high[1] > y.start) & (begin_z < end_z) & (self._low[0] <= x.stop - 1))
        for of, at in _spread((end_z - begin_z)[near].astype(np.int64)):
            chosen = near[of]
            row = begin_z[chosen] + at
            chords = self._chords(chosen, row)
            begin = np.maximum(np.ceil(np.minimum(chords[0], chords[2])), y.start)
            end = np.minimum(np.ceil(np.maximum(chords[0], chords[2])), y.stop)
            for one, step in _spread(np.maximum(end - begin, 0.0).astype(np.int64)):
                column = begin[one] + step
                place, sign = _crossing(chords[:, one], column)
                cell = np.maximum(np.ceil(place), x.start)
                inside = cell < x.stop
                index = [(row[one] - z.start), (column - y.start), (cell - x.start)]
                np.subtract.at(steps, tuple(each[inside].astype(np.int64) for each in index), sign[inside])
        return np.cumsum(steps, axis=2, out=steps)

    def at(self, points: Array) -> Indices:
        """The winding numbers around points (x, y, z), shape (n, 3); shape (n,)."""
        found = np.zeros(len(points), dtype=np.int64)
        low, scale, starts, members = self._in_bins()
        bins = ((points[:, 1:] - low) * scale).astype(np.int64)
        edge = round((len(starts) - 1) ** 0.5)
        within = np.flatnonzero(((points[:, 1:] >= low) & (bins < edge)).all(axis=1))
        number = bins[within, 0] * edge + bins[within, 1]
        order = np.argsort(number)  # so that neighbouring points use the same triangles
        within, number = within[order], number[order]
        x, y, z = np.ascontiguousarray(points[within].T)
        for point, at in _spread(starts[number + 1] - starts[number]):
            triangle = members[starts[number[point]] + at]
            for along, first, last in ((z, self._low[2], self._high[2]), (y, self._low[1], self._high[1])):
                place = along[point]
                near = (first[triangle] <= place) & (place <= last[triangle])
                point, triangle = point[near], triangle[near]
            near = x[point] <= self._high[0][triangle]
            point, triangle = point[near], triangle[near]
            chords, place = self._chords(triangle, z[point]), y[point]
            holds = (np.minimum(chords[0], chords[2]) <= place) & (place < np.maximum(chords[0], chords[2]))
            at_x, sign = _crossing(chords[:, holds], place[holds])
            ahead = at_x > x[point[holds]]
            np.add.at(found, within[point[holds][ahead]], sign[ahead])
        return found

    def _chords(self, triangles: Indices, z: Array) -> Array:
        """Where planes of constant z cut triangles: y and x at the edge that goes up, then at the one that goes down.

        Both ends are 0 if a plane misses its triangle.
        """
        corners = self._triangles[triangles]
        ends = np.zeros((4, len(corners)))
        for side in range(3):
            first, second = corners[:, side], corners[:, side - 2]
            one, other = self._points[np.minimum(first, second)], self._points[np.maximum(first, second)]
            low = self._points[first, 2] <= z
            crosses = low != (self._points[second, 2] <= z)
            height = np.where(crosses, other[:, 2] - one[:, 2], 1.0)
            for axis, row in ((1, 0), (0, 1)):
                place = one[:, axis] + (z - one[:, 2]) * ((other[:, axis] - one[:, axis]) / height)
                ends[row] += np.where(crosses & low, place, 0.0)
                ends[row + 2] += np.where(crosses & ~low, place, 0.0)
        return ends

    def _in_bins(self) -> tuple[Array, Array, Indices, Indices]:
        """Lower corner and bins per length along y and z; where each bin starts in a list of triangles; this list."""
        if self._bins is None:
            starts_at, ends_at = self._low[1:].T, self._high[1:].T
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
            bins, members = [], []
            for of, at in _spread(entries):
                across, along = np.divmod(at, spans[of, 1])
                bins.append((first[of, 0] + across) * edge + first[of, 1] + along)
                members.append(of)
            number = np.concatenate(bins)
            order = np.argsort(number, kind="stable")
            starts = np.searchsorted(number[order], np.arange(edge * edge + 1))
            self._bins = low, scale, starts, np.concatenate(members)[order]
        return self._bins


def _crossing(chords: Array, y: Array) -> tuple[Array, Indices]:
    """The coordinate x at which rays at ``y`` cross triangles, and the sign of these crossings."""
    up, x_up, down, x_down = chords
    return x_up + (y - up) * ((x_down - x_up) / (down - up)), np.where(up > down, 1, -1)


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
