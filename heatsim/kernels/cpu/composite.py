"""The fast CPU kernel for composite bodies: tiles that march along z, several steps at a time (march.py).

A step of some rows has five parts, each while the rows are in the first-level cache:

    1. sums over neighbours, as vectors: runs of cells with one stencil (composite_layout.py), and heat of sources
    2. the sums of odd cells
    3. heat through surfaces towards void
    4. heat through the faces of the box
    5. T_new = T + factor·sum

If materials vary with temperature, the ring holds the potentials of the cells too. Results have the same bits as the
NumPy oracle: no fastmath, no fma, and the terms of a cell are added in the same order.
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu import composite_cells, composite_faces, march, rows
from heatsim.kernels.cpu.composite_cells import CompositePlan, at_step, look_up, number_of, sum_odd
from heatsim.kernels.cpu.composite_faces import add_faces, add_void
from heatsim.kernels.cpu.march import Rows, Tile, inlined, set_end_rows, set_row_ends, sweeping
from heatsim.kernels.cpu.rows import (
    INCREMENTS,
    OPTIONS,
    SEVEN_TERM,
    STOCHASTIC,
    add_constant,
    add_scaled,
    copy_row,
    round_increments,
    sum_increments,
    sum_seven_term,
    wrap,
)
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import kept
from heatsim.physics import boundary, mixed_cells

_OTHER_SOURCES = source_key((rows, march, composite_cells, composite_faces, boundary, mixed_cells))


@inlined
def _advance_rows(plan: CompositePlan, tile: Tile, step: int, rows: Rows, T: Any, T_new: Any) -> None:
    """Do a step of some rows."""
    _sum_runs(plan, step, rows, T)
    _sum_odd_cells(plan, step, rows, T)
    if plan.layout.surface_x.size:
        add_void(plan, tile, step, rows, T)
    add_faces(plan, tile, step, rows, T)
    _finish(plan, step, rows, T, T_new)


@inlined
def _sum_runs(plan: CompositePlan, step: int, rows: Rows, T: Any) -> None:
    """Sum over neighbours and sources as if each cell had the stencil of its run."""
    layout, tables, stride, nx = plan.layout, plan.tables, plan.stride, plan.nx
    first_row, heat = number_of(plan, rows), plan.values.heat[at_step(plan.values.heat, step)]
    row = 0
    while row < rows.count:
        of_row = first_row + row
        x, run, last = 0, layout.run_first[of_row], layout.run_first[of_row + 1] - 1
        count = 1
        if run == last:
            # Rows of one stencil are one run; the padding between them is summed but not used.
            stencil = layout.run_stencil[run]
            while row + count < rows.count:
                other = layout.run_first[of_row + count]
                if layout.run_first[of_row + count + 1] != other + 1 or layout.run_stencil[other] != stencil:
                    break
                count += 1
        while run <= last:
            stencil, end = layout.run_stencil[run], layout.run_end[run]
            at, out, own = row * stride + x, plan.sums + row * stride + x, layout.own[stencil]
            # Whole vectors: what is written beyond the end of a run is overwritten by the next, or not used.
            n = ((count - 1) * stride + end - x + plan.margin - 1) // plan.margin * plan.margin
            here = rows.here + plan.potentials + at
            below, above = rows.below + plan.potentials + at, rows.above + plan.potentials + at
            around = (below, here - stride, here, here + stride, above)
            if plan.scheme == SEVEN_TERM:
                sum_seven_term(tables.c[stencil], T, around, stride, T, out, stride, (1, n))
            else:
                sum_increments(tables.c[stencil], T, around, stride, T, out, stride, (1, n))
            if own >= tables.first_heated:
                add_constant(heat[own], T, out, (count - 1) * stride + end - x)
            x, run = end, run + 1
        row += count


@inlined
def _sum_odd_cells(plan: CompositePlan, step: int, rows: Rows, T: Any) -> None:
    """The same for cells with other stencils."""
    layout, stride, heat = plan.layout, plan.stride, plan.values.heat[at_step(plan.values.heat, step)]
    first_row = number_of(plan, rows)
    for row in range(rows.count):
        of_row = first_row + row
        for odd in range(layout.odd_first[of_row], layout.odd_first[of_row + 1]):
            stencil, at = layout.odd_stencil[odd], row * stride + layout.odd_x[odd]
            here = rows.here + at
            around = (here - 1, here + 1, here - stride, here + stride, rows.below + at, rows.above + at)
            total, own = sum_odd(plan, T, stencil, here, around), layout.own[stencil]
            T[plan.sums + at] = heat[own] + total if own >= plan.tables.first_heated else total


@inlined
def _finish(plan: CompositePlan, step: int, rows: Rows, T: Any, T_new: Any) -> None:
    """Make new values from the sums."""
    z, y, count, _, here, _, new, new_stride = rows
    nx, stride, sums, factor = plan.nx, plan.stride, plan.sums, plan.values.factors[at_step(plan.values.factors, step)]
    if plan.scheme == STOCHASTIC:
        number = plan.first_step + step
        for row in range(count):
            at = row * stride
            round_increments(T, here + at, T, sums + at, nx, wrap(z, plan.nz), wrap(y, plan.ny) + row, number)
    runs, n = (1, (count - 1) * stride + nx) if new_stride == stride else (count, nx)
    for run in range(runs):
        at, out = run * stride, new + run * new_stride
        if plan.scheme != INCREMENTS:
            copy_row(T, sums + at, T_new, out, n)
        elif plan.has_base:
            add_scaled(plan.base, out, factor, T, sums + at, T_new, out, n)
        else:
            add_scaled(T, here + at, factor, T, sums + at, T_new, out, n)


@inlined
def _complete_plane(plan: CompositePlan, T: Any, start: int, z: int, from_y: int, to_y: int) -> None:
    """Look up the potentials of a plane."""
    if plan.potentials == 0:
        return
    layout, tables, stride = plan.layout, plan.tables, plan.stride
    for y in range(from_y, to_y):
        of_row, x = wrap(z, plan.nz) * plan.ny + wrap(y, plan.ny), 0
        for run in range(layout.run_first[of_row], layout.run_first[of_row + 1]):
            own, end = layout.own[layout.run_stencil[run]], layout.run_end[run]
            here = start + y * stride + x
            look_up(T, here, end - x, plan.potentials, tables.potentials, tables.places[own], tables.bases[own])
            x = end
    set_row_ends(plan, T, start + plan.potentials + from_y * stride, to_y - from_y)
    set_end_rows(plan, T, start + plan.potentials, from_y, to_y)


_sweep_tiles = sweeping(_advance_rows, _complete_plane)


@kept(**OPTIONS)
def advance(
    plan: CompositePlan,
    T: Any,
    T_new: Any,
    first_sweep: int,
    end_sweep: int,
    ring: Any,
    worker: int,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """Do one worker's share of some sweeps; see :func:`heatsim.kernels.cpu.march.sweeping`.

    ``other_sources`` is part of numba's cache key; do not pass it.
    """
    _sweep_tiles(plan, T, T_new, first_sweep, end_sweep, ring, worker)
