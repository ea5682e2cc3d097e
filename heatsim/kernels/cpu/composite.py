"""The fast CPU kernel for composite bodies: tiles that march along z, several steps at a time (march.py).

A step of some rows has six parts, each while the rows are in the first-level cache:

    1. sums over neighbours, as vectors: runs of cells with one stencil (composite_layout.py), and heat of sources
    2. the sums of odd cells
    3. heat through surfaces towards void
    4. heat through the faces of the box
    5. heat of sources in single cells
    6. T_new = T + factor·sum

Parts 3 to 5, and part 2 of materials that vary with temperature, are compiled by themselves, for bodies that have them
(composite_parts.py). If materials vary, the ring holds the potentials of the cells too. Results have the same bits as
the NumPy oracle: no fastmath, no fma, and the terms of a cell are added in the same order.
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu import (
    called_parts,
    composite_cells,
    linked_functions,
    march,
    plan,
    rows,
    subnormals,
)
from heatsim.kernels.cpu.called_parts import call_part
from heatsim.kernels.cpu.composite_cells import PLAN, around, look_up, moved, row_number, sum_constant, sum_dense
from heatsim.kernels.cpu.march import MarchTile, RowBlock, set_end_rows, set_row_ends, sweeping
from heatsim.kernels.cpu.plan import behind, bytes_at, ints_at, reals_at
from heatsim.kernels.cpu.rows import (
    INCREMENTS,
    OPTIONS,
    SEVEN_TERM,
    STOCHASTIC,
    add_constant,
    add_scaled,
    compiled,
    copy_row,
    round_increments,
    scale,
    sum_increments,
    sum_seven_term,
    wrap,
)
from heatsim.kernels.cpu.subnormals import flush_subnormals, set_mode
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import kept

_OTHER_SOURCES = source_key((called_parts, composite_cells, linked_functions, march, plan, rows, subnormals))


@compiled
def _sum_runs(plan: Any, step: int, rows: RowBlock, T: Any) -> None:
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
            if plan.scheme == SEVEN_TERM:
                sum_seven_term(c, T, there, stride, T, out, stride, (1, n))
            else:
                sum_increments(c, T, there, stride, T, out, stride, (1, n))
            own = bytes_at(plan.own)[stencil]
            if own >= plan.first_heated:
                add_constant(heat[own], T, out, n)
            x, run = end, run + 1
        row += count


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


@compiled
def _finish(plan: Any, step: int, rows: RowBlock, T: Any, T_new: Any) -> None:
    """Make new values from the sums."""
    z, y, count, _, here, _, new, new_stride = rows
    nx, stride, sums = plan.nx, plan.stride, plan.sums
    factor = reals_at(plan.factors, T)[step * plan.factors_stride]
    runs, n = (1, (count - 1) * stride + nx) if new_stride == stride else (count, nx)
    for run in range(runs):
        at, out = run * stride, new + run * new_stride
        if plan.scheme == SEVEN_TERM:
            copy_row(T, sums + at, T_new, out, n)
        elif plan.has_base and plan.base:
            add_scaled(reals_at(plan.base, T), out, factor, T, sums + at, T_new, out, n)
        elif plan.has_base:
            scale(factor, T, sums + at, T_new, out, n)
        elif plan.scheme == INCREMENTS:
            add_scaled(T, here + at, factor, T, sums + at, T_new, out, n)
    if plan.scheme == STOCHASTIC:
        for row in range(count):
            at, out, number = row * stride, new + row * new_stride, plan.first_step + step
            copy_row(T, sums + at, T_new, out, nx)
            round_increments(T, here + at, T_new, out, nx, wrap(z, plan.nz), wrap(y, plan.ny) + row, number)


@compiled
def _complete_plane(plan: Any, T: Any, start: int, z: int, from_y: int, to_y: int) -> None:
    """Look up the potentials of a plane, if materials vary with temperature."""
    if plan.potentials == 0:
        return
    first, ends, stencils = ints_at(plan.run_first), ints_at(plan.run_end), ints_at(plan.run_stencil)
    for y in range(from_y, to_y):
        of_row, x = wrap(z, plan.nz) * plan.ny + wrap(y, plan.ny), np.int64(0)
        for run in range(first[of_row], first[of_row + 1]):
            end = np.int64(ends[run])
            look_up(plan, T, start + y * plan.stride + x, end - x, np.int64(bytes_at(plan.own)[stencils[run]]))
            x = end
    set_row_ends(plan, T, start + plan.potentials + from_y * plan.stride, to_y - from_y)
    set_end_rows(plan, T, start + plan.potentials, from_y, to_y)


@compiled
def _advance_rows(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any, T_new: Any) -> None:
    """Do a step of some rows."""
    _sum_runs(plan, step, rows, T)
    if plan.varying_part == 0:
        _sum_odd_cells(plan, step, rows, T)
    call_part(plan.varying_part, plan, tile, step, rows, T)
    call_part(plan.void_part, plan, tile, step, rows, T)
    call_part(plan.faces_part, plan, tile, step, rows, T)
    call_part(plan.heat_part, plan, tile, step, rows, T)
    _finish(plan, step, rows, T, T_new)


_sweep_tiles = sweeping(PLAN, _advance_rows, _complete_plane)


@kept(**OPTIONS)
def advance(
    numbers: Any,
    field: Any,
    other: Any,
    first_sweep: int,
    end_sweep: int,
    memory: Any,
    worker: int,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """Do one worker's share of some sweeps; see :func:`heatsim.kernels.cpu.march.sweeping`.

    ``other_sources`` is part of numba's cache key; do not pass it.
    """
    mode = flush_subnormals()
    _sweep_tiles(numbers, field, other, first_sweep, end_sweep, memory, worker)
    set_mode(mode)
