"""The same as composite_sums.py for cells of several widths: links have the factors of their planes too.

Axes are those of the ring (ring_axes.py). Odd cells that lie beside each other along x are a stretch, with coefficients
of their own. Dense rows have no weights but those of links along x, which their coefficients contain.

Sums are written beside the ring. So the values that they are made of count as constants here.
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.composite_cells import row_number
from heatsim.kernels.cpu.graded_lines import links_along
from heatsim.kernels.cpu.lines import add_constant, compiled, whole_vectors, wrap
from heatsim.kernels.cpu.march import MarchTile, RowBlock
from heatsim.kernels.cpu.plan import behind, bytes_at, constant, ints_at, longs_at, put, reals_at


@compiled
def sum_graded_rows(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any) -> None:
    """Sum over neighbours and sources of some rows, without odd cells of materials that vary."""
    stride, of_first, dense_of = plan.stride, row_number(plan, rows), ints_at(plan.dense_of)
    y, z, heat = wrap(rows.y, plan.ny), wrap(rows.z, plan.nz), behind(reals_at(plan.heat, T), step * plan.heat_stride)
    row = np.int64(0)
    while row < rows.size:
        dense, count = np.int64(dense_of[of_first + row]), np.int64(1)
        while row + count < rows.size and _alike(plan, of_first + row, of_first + row + count):
            count += 1
        here, sums = rows.here + row * stride, plan.sums + row * stride
        around = rows.below + row * stride, here - stride, here, here + stride, rows.above + row * stride
        if dense >= 0:
            _sum_dense_rows(plan, dense, (y + row, z, count), T, around, sums, heat)
        else:
            if not _all_odd(plan, of_first + row):
                _sum_runs(plan, of_first + row, (y + row, z, count), T, around, sums, heat)
            if plan.potentials == 0:
                _sum_stretches(plan, of_first + row, T, around, sums, heat)
        row += count


@compiled
def _alike(plan: Any, one: int, other: int) -> Any:
    """Whether two rows are the same dense row, or one run each, with one stencil."""
    dense_of, first, stencils = ints_at(plan.dense_of), ints_at(plan.run_first), ints_at(plan.run_stencil)
    if dense_of[one] >= 0 or dense_of[other] >= 0:
        return dense_of[one] == dense_of[other]
    if first[one + 1] - first[one] != 1 or first[other + 1] - first[other] != 1:
        return False
    odd = ints_at(plan.stretch_first)
    has_odd = plan.potentials == 0 and (odd[one] != odd[one + 1] or odd[other] != odd[other + 1])
    return not has_odd and stencils[first[one]] == stencils[first[other]]


@compiled
def _all_odd(plan: Any, row: int) -> Any:
    """Whether all cells of a row are one stretch."""
    if plan.potentials != 0:
        return False
    first, counts = ints_at(plan.stretch_first), ints_at(plan.stretch_count)
    return first[row] < first[row + 1] and counts[first[row]] == plan.nx


@compiled
def _shifted(around: Any, by: int) -> Any:
    """The neighbours of the cell that lies ``by`` values further on in memory."""
    below, south, here, north, above = around
    return below + by, south + by, here + by, north + by, above + by


@compiled
def _sum_runs(plan: Any, of_row: int, place: Any, T: Any, around: Any, sums: int, heat: Any) -> None:
    """Sum the cells of equal rows as if each had the stencil of its run.

    ``place``: of the first row along y and z, and the number of rows: 1 if a row has several runs.
    """
    first, ends, stencils = ints_at(plan.run_first), ints_at(plan.run_end), ints_at(plan.run_stencil)
    x, (_, _, count) = np.int64(0), place
    for run in range(first[of_row], first[of_row + 1]):
        stencil, end = np.int64(stencils[run]), np.int64(ends[run])
        # Whole vectors: what is written beyond the end of a run is overwritten by the next, or not used.
        n = (end - x + plan.margin - 1) // plan.margin * plan.margin
        own = np.int64(bytes_at(plan.own)[stencil])
        there, out = _shifted(around, plan.potentials + x), sums + x
        _sum_run(plan, stencil, links_along(plan, own, x, T), place, T, there, out, n)
        if own >= plan.first_heated:
            add_constant(heat[own], T, out, (count - 1) * plan.stride + n)
        x = end


@compiled
def _sum_run(plan: Any, stencil: int, along: Any, place: Any, T: Any, around: Any, sums: int, n: int) -> None:
    """Sum n cells with one stencil in each of some rows."""
    whole_vectors()
    c, weights = behind(reals_at(plan.c, T), 7 * stencil), behind(reals_at(plan.ring_weights, T), 6 * stencil)
    (c1, c2), (y, z, count), stride = along, place, plan.stride
    along_y, along_z = behind(reals_at(plan.planes_y, T), y), behind(reals_at(plan.planes_z, T), z)
    c5, c6 = c[5] * along_z[0] * weights[4], c[6] * along_z[plan.nz] * weights[5]
    below, south_of, here, north_of, above = around
    for row in range(count):
        at = row * stride
        c3, c4 = c[3] * along_y[row] * weights[2], c[4] * along_y[plan.ny + row] * weights[3]
        i, out = np.uint64(here + at), np.uint64(sums + at)
        west, east = np.uint64(here + at - 1), np.uint64(here + at + 1)
        south, north = np.uint64(south_of + at), np.uint64(north_of + at)
        down, up = np.uint64(below + at), np.uint64(above + at)
        for x in range(np.uint64(n)):
            centre = constant(T, i + x)
            total = constant(c1, x) * (constant(T, west + x) - centre)
            total += constant(c2, x) * (constant(T, east + x) - centre)
            total += c3 * (constant(T, south + x) - centre)
            total += c4 * (constant(T, north + x) - centre)
            total += c5 * (constant(T, down + x) - centre)
            total += c6 * (constant(T, up + x) - centre)
            put(T, out + x, total)


@compiled
def _sum_dense_rows(plan: Any, dense: int, place: Any, T: Any, around: Any, sums: int, heat: Any) -> None:
    """The same for equal rows with the coefficients of their cells."""
    n, (y, z, count) = plan.dense_stride, place
    along_y, along_z = behind(reals_at(plan.planes_y, T), y), behind(reals_at(plan.planes_z, T), z)
    c = behind(reals_at(plan.dense_c, T), 6 * n * dense)
    for row in range(count):
        at, across = row * plan.stride, (along_y[row], along_y[plan.ny + row], along_z[0], along_z[plan.nz])
        _sum_cells(c, across, T, _shifted(around, at), sums + at, n)
        for stretch in range(ints_at(plan.dense_first)[dense], ints_at(plan.dense_first)[dense + 1]):
            begin, end = ints_at(plan.dense_begin)[stretch], ints_at(plan.dense_end)[stretch]
            add_constant(heat[ints_at(plan.dense_type)[stretch]], T, sums + at + begin, end - begin)


@compiled
def _sum_cells(c: Any, across: Any, T: Any, around: Any, sums: int, n: int) -> None:
    """Sum n cells of a row with c1 … c6 in n numbers each; ``across``: the factors of c3 … c6."""
    whole_vectors()
    c2, c3, c4, c5, c6 = behind(c, n), behind(c, 2 * n), behind(c, 3 * n), behind(c, 4 * n), behind(c, 5 * n)
    to_south, to_north, to_below, to_above = across
    below, south_of, here, north_of, above = around
    i, west, east, out = np.uint64(here), np.uint64(here - 1), np.uint64(here + 1), np.uint64(sums)
    south, north, down, up = np.uint64(south_of), np.uint64(north_of), np.uint64(below), np.uint64(above)
    for x in range(np.uint64(n)):
        centre = constant(T, i + x)
        total = constant(c, x) * (constant(T, west + x) - centre)
        total += constant(c2, x) * (constant(T, east + x) - centre)
        total += constant(c3, x) * to_south * (constant(T, south + x) - centre)
        total += constant(c4, x) * to_north * (constant(T, north + x) - centre)
        total += constant(c5, x) * to_below * (constant(T, down + x) - centre)
        total += constant(c6, x) * to_above * (constant(T, up + x) - centre)
        put(T, out + x, total)


@compiled
def _sum_stretches(plan: Any, of_row: int, T: Any, around: Any, sums: int, heat: Any) -> None:
    """The same for the odd cells of a row."""
    first, places, counts = ints_at(plan.stretch_first), ints_at(plan.stretch_x), ints_at(plan.stretch_count)
    one = type(T[sums])(1.0)
    for stretch in range(first[of_row], first[of_row + 1]):
        x, n, odd = np.int64(places[stretch]), np.int64(counts[stretch]), longs_at(plan.stretch_odd)[stretch]
        _sum_cells(behind(reals_at(plan.odd_c, T), 6 * odd), (one, one, one, one), T, _shifted(around, x), sums + x, n)
        types = behind(bytes_at(plan.odd_type), odd)
        for cell in range(n):
            own = types[cell]
            if own >= plan.first_heated:
                T[sums + x + cell] = heat[own] + T[sums + x + cell]
