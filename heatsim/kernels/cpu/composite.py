"""The fast CPU kernel for composite bodies: tiles that march along z, several steps at a time (march.py).

A step of some rows has six parts, each while the rows are in the first-level cache:

    1. sums over neighbours, as vectors: runs of cells with one stencil, and heat of sources (composite_sums.py)
    2. the sums of odd cells (varying_cells.py, if materials vary with temperature)
    3. heat through surfaces towards void (composite_void.py)
    4. heat through the faces of the box (composite_faces.py)
    5. heat of sources in single cells (composite_heat.py)
    6. T_new = T + factor·sum

Parts 1 to 5 are compiled separately, and only if a body needs them (composite_parts.py). If materials vary, the ring
holds the potentials of the cells too. Results have the same bits as the NumPy oracle: no fastmath, no fma, and the
terms of a cell are added in the same order.
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu import (
    called_parts,
    composite_cells,
    graded_lines,
    lines,
    linked_functions,
    march,
    plan,
    subnormals,
)
from heatsim.kernels.cpu.called_parts import call_part
from heatsim.kernels.cpu.composite_cells import PLAN, look_up
from heatsim.kernels.cpu.lines import (
    OPTIONS,
    SEVEN_TERM,
    add_scaled,
    compiled,
    copy_row,
    scale,
    wrap,
)
from heatsim.kernels.cpu.march import MarchTile, RowBlock, set_end_rows, set_row_ends, sweeping
from heatsim.kernels.cpu.plan import bytes_at, ints_at, reals_at
from heatsim.kernels.cpu.subnormals import flush_subnormals, set_mode
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import kept

_OTHER_SOURCES = source_key(
    (called_parts, composite_cells, graded_lines, linked_functions, march, plan, lines, subnormals)
)


@compiled
def _finish(plan: Any, step: int, rows: RowBlock, T: Any, T_new: Any) -> None:
    """Make new values from the sums."""
    _, _, count, _, here, _, new, new_stride = rows
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
        else:
            add_scaled(T, here + at, factor, T, sums + at, T_new, out, n)


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
    call_part(plan.sums_part, plan, tile, step, rows, T)
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
