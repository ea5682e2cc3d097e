"""Sums over the neighbours of the cells of a composite body, and heat of its sources, for some rows."""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.composite_cells import around, moved, row_number, sum_constant, sum_dense
from heatsim.kernels.cpu.lines import add_constant, compiled, sum_increments, sum_seven_term
from heatsim.kernels.cpu.march import MarchTile, RowBlock
from heatsim.kernels.cpu.plan import behind, bytes_at, ints_at, reals_at


def summing_rows(*, seven_term: bool) -> Any:
    """Build the compiled function that sums over neighbours and sources of some rows.

    It leaves odd cells of materials that vary to varying_cells.py. ``seven_term``: the scheme of sums.
    """
    sum_run = sum_seven_term if seven_term else sum_increments

    @compiled
    def sum_runs(plan: Any, step: int, rows: RowBlock, T: Any) -> None:
        """Sum over neighbours and sources as if each cell had the stencil of its run."""
        stride, first, ends, stencils = (
            plan.stride,
            ints_at(plan.run_first),
            ints_at(plan.run_end),
            ints_at(plan.run_stencil),
        )
        heat, first_row = behind(reals_at(plan.heat, T), step * plan.heat_stride), row_number(plan, rows)
        neighbours = around(plan, rows)
        row = np.int64(0)
        while row < rows.size:
            dense = ints_at(plan.dense_of)[first_row + row]
            if dense >= 0:
                count = 1
                while row + count < rows.size and ints_at(plan.dense_of)[first_row + row + count] == dense:
                    count += 1
                _sum_dense_rows(plan, neighbours, row, count, dense, heat, T)
                row += count
                continue
            of_row, count, x = first_row + row, 1, np.int64(0)
            run, end_run = first[of_row], first[of_row + 1]
            if end_run == run + 1:
                # Rows of one stencil are one run; the padding between them is summed but not used.
                while row + count < rows.size:
                    other = first[of_row + count]
                    alike = first[of_row + count + 1] == other + 1 and stencils[other] == stencils[run]
                    if not alike or ints_at(plan.dense_of)[of_row + count] >= 0:
                        break
                    count += 1
            while run < end_run:
                stencil, end, at = np.int64(stencils[run]), np.int64(ends[run]), row * stride + x
                # Whole vectors: what is written beyond the end of a run is overwritten by the next, or not used.
                n = ((count - 1) * stride + end - x + plan.margin - 1) // plan.margin * plan.margin
                there, out = moved(neighbours, plan.potentials + at), plan.sums + at
                c = behind(reals_at(plan.c, T), 7 * stencil)
                sum_run(c, T, there, stride, T, out, stride, (1, n))
                own = bytes_at(plan.own)[stencil]
                if own >= plan.first_heated:
                    add_constant(heat[own], T, out, n)
                x, run = end, run + 1
            row += count

    @compiled
    def sum_rows(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any) -> None:
        sum_runs(plan, step, rows, T)
        if plan.potentials == 0:
            _sum_odd_cells(plan, step, rows, T)

    return sum_rows


@compiled
def _sum_dense_rows(plan: Any, neighbours: Any, row: int, count: int, dense: int, heat: Any, T: Any) -> None:
    """The same for some equal rows with the coefficients of their cells."""
    at, sums = row * plan.stride, plan.sums + row * plan.stride
    c = behind(reals_at(plan.dense_c, T), 6 * plan.dense_stride * dense)
    sum_dense(c, plan.dense_stride, T, moved(neighbours, at), plan.stride, sums, count)
    for stretch in range(ints_at(plan.dense_first)[dense], ints_at(plan.dense_first)[dense + 1]):
        begin, end = ints_at(plan.dense_begin)[stretch], ints_at(plan.dense_end)[stretch]
        for each in range(count):
            out = sums + each * plan.stride + begin
            add_constant(heat[ints_at(plan.dense_type)[stretch]], T, out, end - begin)


@compiled
def _sum_odd_cells(plan: Any, step: int, rows: RowBlock, T: Any) -> None:
    """The same for cells with other stencils."""
    stride, first, first_row = plan.stride, ints_at(plan.odd_first), row_number(plan, rows)
    heat, neighbours = behind(reals_at(plan.heat, T), step * plan.heat_stride), around(plan, rows)
    for row in range(rows.size):
        for odd in range(first[first_row + row], first[first_row + row + 1]):
            stencil, at = np.int64(ints_at(plan.odd_stencil)[odd]), row * stride + ints_at(plan.odd_x)[odd]
            below, south, here, north, above = moved(neighbours, at)
            total = sum_constant(behind(reals_at(plan.c, T), 7 * stencil), T, here, south, north, below, above)
            own = bytes_at(plan.own)[stencil]
            T[plan.sums + at] = heat[own] + total if own >= plan.first_heated else total
