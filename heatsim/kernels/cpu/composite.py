"""The fast CPU kernel for composite bodies: rows of x in parallel.

The compiler vectorises runs of interior cells of one type, nearly all cells; the others read their neighbours' types.
Arrays of cells are 1-d, and a cell is one index. Results have the same bits as the NumPy oracle: no fastmath, no fma.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from heatsim.kernels.cpu import composite_cells, composite_faces, rows
from heatsim.kernels.cpu.composite_cells import (
    CELL_TYPE,
    CONDUCTANCE,
    GAIN,
    CompiledBody,
    CompiledStep,
    CompiledTables,
    inlined,
    state,
)
from heatsim.kernels.cpu.composite_faces import add_face, pass_to_void, rank_of
from heatsim.kernels.cpu.rows import (
    INCREMENTS,
    SEVEN_TERM,
    STOCHASTIC,
    add_scaled,
    compiled,
    round_increments,
    sum_increments,
    sum_seven_term,
)
from heatsim.kernels.source_key import source_key
from heatsim.numba_cache import kept
from heatsim.physics import cell_types, mixed_cells, surface_balance
from heatsim.physics.cell_types import INTERIOR

_OTHER_SOURCES = source_key((rows, composite_cells, composite_faces, surface_balance, mixed_cells, cell_types))


@kept(parallel=True, nogil=True, error_model="numpy")
def advance(
    T: Any,
    driving: Any,
    base: Any,
    T_new: Any,
    body: CompiledBody,
    tables: CompiledTables,
    step: CompiledStep,
    maps: Any,
    beams: Any,
    sums: Any,
    beam_sums: Any,
    exposed: Any,
    parts: Any,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """One step of the whole field.

    Args:
        T: the field, a 1-d array.
        driving: T; if materials vary with temperature, memory for the potentials.
        base: T; or another field to which increments are added, or an empty array for 0.
        T_new: the new field, written.
        body: the cells.
        tables: the coefficients of each type.
        step: the data of this step.
        maps: for each face the number of each cell's condition, or an empty array.
        beams: for each face the flux of beams in W/m², or an empty array.
        sums: the ledger's heat through each face, without beams; empty if not recorded.
        beam_sums: the heat of beams, for each face.
        exposed: the heat through surfaces towards void, for each exposed cell.
        parts: the heat through each part of mixed cells, without beams.
        other_sources: part of numba's cache key; do not pass it.
    """
    if tables.bases.size:
        for row in prange(body.nz * body.ny):
            _look_up_row(T, driving, body, tables, row)
    for row in prange(body.nz * body.ny):
        z = row // body.ny
        y = row - z * body.ny
        _sum_row(T, driving, T_new, body, tables, step, exposed, z, y)
        # Faces in the order of composite/composite.cuh, so that edges and corners have the same bits.
        for face in range(6):
            of_face = (maps[face], beams[face], sums[face], beam_sums[face], parts)
            add_face(T, driving, T_new, body, tables, step, of_face, face, z, y)
        if step.scheme == INCREMENTS:
            add_scaled(base, row * body.nx, step.factor, T_new, row * body.nx, body.nx)
        elif step.scheme == STOCHASTIC:
            round_increments(T, row * body.nx, T_new, row * body.nx, body.nx, z, y, step.number)


@njit(inline="always")
def _neighbour(i: int, n: int, periodic: bool) -> int:
    if i < 0:
        return n - 1 if periodic else 0
    if i >= n:
        return 0 if periodic else n - 1
    return i


@inlined
def _look_up_row(T: Any, driving: Any, body: CompiledBody, tables: CompiledTables, row: int) -> None:
    """Look up the potentials of a row, one run of cells of one type after the other."""
    start, last = row * body.nx, (row + 1) * body.nx
    while start < last:
        cell_type, end = 0, last
        if body.cells.size:
            cell_type, end = body.cells[start] & CELL_TYPE, start + 1
            while end < last and body.cells[end] & CELL_TYPE == cell_type:
                end += 1
        base, per_kelvin = tables.bases[cell_type], tables.places[cell_type, 0]
        first_step, last_step = tables.places[cell_type, 1], tables.places[cell_type, 2]
        for i in range(np.uint64(start), np.uint64(end)):
            steps = T[i] * per_kelvin
            step = np.floor(steps)
            step = step if step > first_step else first_step  # also for NaN
            step = step if step < last_step else last_step
            entry = np.uint64(base + np.int64(step))
            driving[i] = tables.potentials[entry, 0] + tables.potentials[entry, 1] * (steps - step)
        start = end


@inlined
def _sum_row(
    T: Any,
    driving: Any,
    T_new: Any,
    body: CompiledBody,
    tables: CompiledTables,
    step: CompiledStep,
    exposed: Any,
    z: int,
    y: int,
) -> None:
    """Sum the heat of a row's cells from neighbours, from sources and through surfaces towards void."""
    nz, ny, nx = body.nz, body.ny, body.nx
    start = (z * ny + y) * nx
    south = (z * ny + _neighbour(y - 1, ny, body.periodic_y)) * nx
    north = (z * ny + _neighbour(y + 1, ny, body.periodic_y)) * nx
    below = (_neighbour(z - 1, nz, body.periodic_z) * ny + y) * nx
    above = (_neighbour(z + 1, nz, body.periodic_z) * ny + y) * nx
    if body.cells.size == 0:
        _sum_uniform_row(driving, T_new, body, tables.c, step, (below, south, start, north, above))
        return
    x = 0
    while x < nx:
        cell, end = body.cells[start + x], x + 1
        cell_type = cell & CELL_TYPE
        if 0 < x < nx - 1 and cell & INTERIOR:
            while end < nx - 1 and body.cells[start + end] == cell:
                end += 1
            cx, cy, cz = (
                tables.links[0, cell_type, cell_type],
                tables.links[1, cell_type, cell_type],
                tables.links[2, cell_type, cell_type],
            )
            c, around = (cx, cx, cx, cy, cy, cz, cz), (below + x, south + x, start + x, north + x, above + x)
            sum_increments(c, driving, around, nx, T_new, start + x, nx, (1, end - x))
            if cell_type >= body.first_heated:
                for i in range(start + x, start + end):
                    T_new[i] = step.heat[cell_type] + T_new[i]
        else:
            west = start + _neighbour(x - 1, nx, body.periodic_x)
            east = start + _neighbour(x + 1, nx, body.periodic_x)
            beside = (west, east, south + x, north + x, below + x, above + x)
            T_new[start + x] = _sum_cell(T, driving, body, tables, step, exposed, start + x, cell_type, beside)
        x = end


@inlined
def _sum_uniform_row(T: Any, T_new: Any, body: CompiledBody, c: Any, step: CompiledStep, around: Any) -> None:
    """The same if all cells are of one type; ``around`` are the starts of the rows below … above."""
    nx = body.nx
    below, south, start, north, above = around
    for x in (0, nx - 1):
        here = T[start + x]
        west = T[start + _neighbour(x - 1, nx, body.periodic_x)]
        east = T[start + _neighbour(x + 1, nx, body.periodic_x)]
        if step.scheme == SEVEN_TERM:
            total = c[5] * T[below + x] + c[0] * here + c[1] * west + c[2] * east
            T_new[start + x] = total + c[3] * T[south + x] + c[4] * T[north + x] + c[6] * T[above + x]
        else:
            total = c[1] * (west - here) + c[2] * (east - here)
            total += c[3] * (T[south + x] - here)
            total += c[4] * (T[north + x] - here)
            total += c[5] * (T[below + x] - here)
            T_new[start + x] = total + c[6] * (T[above + x] - here)
    if nx > 2:
        inside = (below + 1, south + 1, start + 1, north + 1, above + 1)
        if step.scheme == SEVEN_TERM:
            sum_seven_term(c, T, inside, nx, T_new, start + 1, nx, (1, nx - 2))
        else:
            sum_increments(c, T, inside, nx, T_new, start + 1, nx, (1, nx - 2))
    if body.first_heated == 0:
        for i in range(start, start + nx):
            T_new[i] = step.heat[0] + T_new[i]


@inlined
def _sum_cell(
    T: Any,
    driving: Any,
    body: CompiledBody,
    tables: CompiledTables,
    step: CompiledStep,
    exposed: Any,
    i: int,
    cell_type: int,
    beside: Any,
) -> Any:
    """The heat of one cell from its neighbours, from sources and through surfaces towards void."""
    cells, links, here, void = body.cells, tables.links, driving[i], body.void
    west, east, south, north, below, above = beside
    west_type, east_type = cells[west] & CELL_TYPE, cells[east] & CELL_TYPE
    south_type, north_type = cells[south] & CELL_TYPE, cells[north] & CELL_TYPE
    below_type, above_type = cells[below] & CELL_TYPE, cells[above] & CELL_TYPE
    weighted = body.contacts and (body.bits[i // 32] >> np.uint32(i % 32)) & np.uint32(1)
    if tables.bases.size:
        one = tables.one[0]
        w = (one, one, one, one, one, one)
        if weighted:
            w = _weights_of(body, i)
        total = (
            _pass_between(T, driving, tables, 0, cell_type, west_type, i, west, w[0])
            + _pass_between(T, driving, tables, 0, cell_type, east_type, i, east, w[1])
            + _pass_between(T, driving, tables, 1, cell_type, south_type, i, south, w[2])
            + _pass_between(T, driving, tables, 1, cell_type, north_type, i, north, w[3])
            + _pass_between(T, driving, tables, 2, cell_type, below_type, i, below, w[4])
            + _pass_between(T, driving, tables, 2, cell_type, above_type, i, above, w[5])
        )
    elif weighted:
        w = _weights_of(body, i)
        total = (
            links[0, cell_type, west_type] * w[0] * (driving[west] - here)
            + links[0, cell_type, east_type] * w[1] * (driving[east] - here)
            + links[1, cell_type, south_type] * w[2] * (driving[south] - here)
            + links[1, cell_type, north_type] * w[3] * (driving[north] - here)
            + links[2, cell_type, below_type] * w[4] * (driving[below] - here)
            + links[2, cell_type, above_type] * w[5] * (driving[above] - here)
        )
    else:
        total = (
            links[0, cell_type, west_type] * (driving[west] - here)
            + links[0, cell_type, east_type] * (driving[east] - here)
            + links[1, cell_type, south_type] * (driving[south] - here)
            + links[1, cell_type, north_type] * (driving[north] - here)
            + links[2, cell_type, below_type] * (driving[below] - here)
            + links[2, cell_type, above_type] * (driving[above] - here)
        )
    if cell_type >= body.first_heated:
        total = step.heat[cell_type] + total
    if body.void_condition >= 0 and cell_type != void:
        free = (
            *(west_type == void, east_type == void, south_type == void, north_type == void),
            *(below_type == void, above_type == void),
        )
        if free[0] or free[1] or free[2] or free[3] or free[4] or free[5]:
            total += pass_to_void(T[i], driving[i], body, tables, step, exposed, i, cell_type, free)
    return total


@inlined
def _weights_of(body: CompiledBody, i: int) -> Any:
    """The weights of a cell's links towards x−, x+, …, z+."""
    w = body.weights[rank_of(body.bits, body.before, i)]
    return w[0], w[1], w[2], w[3], w[4], w[5]


@inlined
def _pass_between(
    T: Any, driving: Any, tables: CompiledTables, axis: int, cell_type: int, other: int, i: int, there: int, weight: Any
) -> Any:
    """The heat from a neighbour into a cell, in K of the cell; see drop_between() in composite/varying.cuh."""
    if tables.bases[cell_type] == tables.bases[other]:
        return tables.links[axis, cell_type, other] * (driving[there] - driving[i])
    return _pass_between_materials(T, tables, axis, cell_type, other, i, there, weight)


@compiled
def _pass_between_materials(
    T: Any, tables: CompiledTables, axis: int, cell_type: int, other: int, i: int, there: int, weight: Any
) -> Any:
    half, further = tables.halves[cell_type, axis, CONDUCTANCE], tables.halves[other, axis, CONDUCTANCE]
    if half == 0 or further == 0:
        return half - half
    degrees, conducting = state(tables, cell_type, T[i])
    degrees_there, conducting_there = state(tables, other, T[there])
    one = tables.one[0]
    contact = tables.resistances[cell_type, other] * weight
    resistance = one / (half * conducting) + one / (further * conducting_there) + contact
    return tables.halves[cell_type, axis, GAIN] / resistance * (degrees_there - degrees)
