"""Sums over the neighbours of cells between materials that vary with temperature, many cells at a time as vectors."""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.composite_cells import PLACE, around, half_cell, moved, row_number
from heatsim.kernels.cpu.lines import add_constant, compiled, smaller, whole_vectors, wrap
from heatsim.kernels.cpu.march import MarchTile, RowBlock
from heatsim.kernels.cpu.plan import behind, bytes_at, constant, get, ints_at, longs_at, put, reals_at
from heatsim.kernels.cpu.planes import GAIN, HALF, LINK
from heatsim.kernels.cpu.surface_rises import ROOM

# A shorter run along x is done as columns across rows.
SHORTEST_RUN = 4
# Cells of a column that are done together: contents and potentials of them and their six neighbours, and the sums.
_ARRAYS = 15
_COLUMN = ROOM // _ARRAYS


@compiled
def sum_varying_cells(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any) -> None:
    """Sum the odd cells of some rows: many cells of a row at a time, or many of a column of equal rows."""
    first, first_row = ints_at(plan.odd_first), row_number(plan, rows)
    xs, stencils = ints_at(plan.odd_x), ints_at(plan.odd_stencil)
    heat, neighbours = behind(reals_at(plan.heat, T), step * plan.heat_stride), around(plan, rows)
    row, first_y, z = np.int64(0), wrap(rows.y, plan.ny), wrap(rows.z, plan.nz)
    while row < rows.size:
        odd, end = np.int64(first[first_row + row]), np.int64(first[first_row + row + 1])
        alike = _equal_rows(plan, first_row + row, rows.size - row)
        while odd < end:
            stencil, at, count = np.int64(stencils[odd]), row * plan.stride + xs[odd], np.int64(1)
            while odd + count < end and stencils[odd + count] == stencil and xs[odd + count] == xs[odd] + count:
                count += 1
            # A long run in each row, or a column of cells across the rows.
            columns = count if count < SHORTEST_RUN else np.int64(0)
            own = bytes_at(plan.own)[stencil]
            place = (np.int64(xs[odd]), first_y + row, z)
            for column in range(columns):
                cells = (stencil, (place[0] + column, place[1], place[2]))
                _sum_varying_column(plan, T, cells, moved(neighbours, at + column), plan.sums + at + column, alike)
            for each in range(alike):
                out = at + each * plan.stride
                if columns == 0:
                    cells = (stencil, (place[0], place[1] + each, place[2]))
                    _sum_varying_run(plan, T, plan.potentials, cells, moved(neighbours, out), plan.sums + out, count)
                if own >= plan.first_heated:
                    add_constant(heat[own], T, plan.sums + out, count)
            odd += count
        row += alike


@compiled
def _equal_rows(plan: Any, row: int, most: int) -> Any:
    """The number of rows, from ``row`` on, with the same odd cells; at most ``most``."""
    first, xs, stencils = ints_at(plan.odd_first), ints_at(plan.odd_x), ints_at(plan.odd_stencil)
    begin, count, alike = np.int64(first[row]), np.int64(first[row + 1] - first[row]), np.int64(1)
    while alike < most and first[row + alike + 1] - first[row + alike] == count:
        other = np.int64(first[row + alike])
        for odd in range(count):
            if xs[begin + odd] != xs[other + odd] or stencils[begin + odd] != stencils[other + odd]:
                return alike
        alike += 1
    return alike


@compiled
def _sum_varying_column(plan: Any, T: Any, cells: Any, neighbours: Any, sums: int, count: int) -> None:
    """The same as :func:`_sum_varying_run` for a column of ``count`` cells in successive rows."""
    stencil, (x, y, z) = cells
    below, south, here, north, above = neighbours
    around, room, shift = (here, here - 1, here + 1, south, north, below, above), plan.surfaces, 7 * _COLUMN
    for first in range(0, count, _COLUMN):
        n, out = smaller(count - first, _COLUMN), room + 14 * _COLUMN
        for number in range(7):
            at, to = around[number] + first * plan.stride, room + number * _COLUMN
            for j in range(n):
                T[to + j] = T[at + j * plan.stride]
                T[to + shift + j] = T[at + j * plan.stride + plan.potentials]
        side = (room + _COLUMN, room + 2 * _COLUMN, room + 3 * _COLUMN, room + 4 * _COLUMN)
        some = (stencil, (x, y + first, z), 1)
        _sum_run(plan, T, shift, some, room, (*side, room + 5 * _COLUMN, room + 6 * _COLUMN), out, n)
        for j in range(n):
            T[sums + (first + j) * plan.stride] = T[out + j]


@compiled
def _sum_varying_run(plan: Any, T: Any, shift: int, cells: Any, neighbours: Any, sums: int, n: int) -> None:
    """c1·(φ(x−) − φ) + … + c6·(φ(z+) − φ) of n cells in a row with one stencil, beside other materials too.

    Args:
        plan: the plan.
        T: contents of cells, and their potentials φ ``shift`` further on.
        shift: see above.
        cells: the stencil of all cells, and the place of the first along x, y and z of the ring.
        neighbours: those of the first cell, from :func:`heatsim.kernels.cpu.composite_cells.around`.
        sums: the place of the first sum.
        n: the number of cells.
    """
    (stencil, place), (below, south, here, north, above) = cells, neighbours
    _sum_run(plan, T, shift, (stencil, place, 0), here, (here - 1, here + 1, south, north, below, above), sums, n)


@compiled
def _sum_run(plan: Any, T: Any, shift: int, cells: Any, here: int, around: Any, sums: int, n: int) -> None:
    """The same; ``around`` are the first neighbours in x−, x+, …, z+.

    ``cells``: the stencil, the place of the first cell, and the axis of the ring along which the cells lie.
    """
    stencil, _, _ = cells
    between, own = bytes_at(plan.between)[stencil], np.int64(bytes_at(plan.own)[stencil])
    c = behind(reals_at(plan.c, T), 7 * stencil)
    _clear(T, here + shift, sums, n)
    for side in range(6):
        there = around[side]
        if plan.links_x:
            _add_side_graded(plan, T, shift, cells, side, here, there, (sums, n))
        elif between >> side & 1:
            other = np.int64(bytes_at(plan.around)[6 * stencil + side])
            half, _, gain = half_cell(plan, T, own, side // 2)
            further, _, _ = half_cell(plan, T, other, side // 2)
            if half != 0 and further != 0:
                contact = _contact(plan, T, stencil, side, own, other)
                _add_between(plan, T, (own, half, gain, here), (other, further, there), contact, (sums, n))
        else:
            _add_within(c[1 + side], T, here + shift, there + shift, (sums, n))


@compiled
def _contact(plan: Any, T: Any, stencil: int, side: int, own: int, other: int) -> Any:
    """The resistance of the contact towards a side."""
    return reals_at(plan.resistances, T)[own * plan.types + other] * reals_at(plan.weights, T)[6 * stencil + side]


@compiled
def _add_side_graded(plan: Any, T: Any, shift: int, cells: Any, side: int, here: int, there: int, some: Any) -> None:
    """Add what the neighbours towards one side give to cells of several widths; arguments as for :func:`_sum_run`."""
    (stencil, place, along), axis = cells, _axis_of(plan, side // 2)
    own, link = np.int64(bytes_at(plan.own)[stencil]), _of_plane(plan, LINK + side % 2, axis, place, T)
    if bytes_at(plan.between)[stencil] >> side & 1:
        other = np.int64(bytes_at(plan.around)[6 * stencil + side])
        conductance, gains, facing = _half_factors(plan, side, axis, place, T)
        half, _, gain = half_cell(plan, T, own, side // 2)
        further, _, _ = half_cell(plan, T, other, side // 2)
        half, further, gain = half * conductance, further * facing, gain * gains
        if half != 0 and further != 0:
            contact = _contact(plan, T, stencil, side, own, other)
            _add_between(plan, T, (own, half, gain, here), (other, further, there), contact, some)
        return
    c = reals_at(plan.c, T)[7 * stencil + 1 + 2 * axis + side % 2]
    if axis == along:
        _add_within_graded(c, link, T, here + shift, there + shift, some)
    else:
        _add_within(c * link[0], T, here + shift, there + shift, some)


@compiled
def _axis_of(plan: Any, axis: int) -> Any:
    """The axis of the ring that lies along an axis of the grid."""
    return plan.along_y if axis == 1 else plan.along_z if axis == 2 else 3 - plan.along_y - plan.along_z


@compiled
def _of_plane(plan: Any, factor: int, axis: int, place: Any, T: Any) -> Any:
    """A factor of the plane of a cell across an axis of the ring, and behind it those of the next planes."""
    x, y, z = place
    if axis == 0:
        return behind(reals_at(plan.planes_x, T), factor * plan.nx + x)
    if axis == 1:
        return behind(reals_at(plan.planes_y, T), factor * plan.ny + y)
    return behind(reals_at(plan.planes_z, T), factor * plan.nz + z)


@compiled
def _half_factors(plan: Any, side: int, axis: int, place: Any, T: Any) -> Any:
    """Factors of a half cell's conductance and gain, and of the facing half cell's conductance.

    ``side`` counts in the grid's axes, ``axis`` in the ring's. Beyond an end is the cell at the opposite end.
    """
    (x, y, z), far = place, side % 2
    step = 2 * far - 1
    beyond = wrap(x + step, plan.nx), wrap(y + step, plan.ny), wrap(z + step, plan.nz)
    facing = _of_plane(plan, HALF + 1 - far, axis, beyond, T)[0]
    return _of_plane(plan, HALF + far, axis, place, T)[0], _of_plane(plan, GAIN + far, axis, place, T)[0], facing


@compiled
def _clear(T: Any, here: int, sums: int, n: int) -> None:
    """Set sums to −0, or NaN where the potential is not finite."""
    whole_vectors()
    i, out = np.uint64(here), np.uint64(sums)
    for x in range(np.uint64(n)):
        T[out + x] = -(T[i + x] - T[i + x])


@compiled
def _add_within(c: Any, T: Any, here: int, there: int, some: Any) -> None:
    """Add what neighbours of the same material give; ``some`` is the first sum and how many there are."""
    whole_vectors()
    i, j, out = np.uint64(here), np.uint64(there), np.uint64(some[0])
    for x in range(np.uint64(some[1])):
        T[out + x] += c * (T[j + x] - T[i + x])


@compiled
def _add_within_graded(c: Any, factors: Any, T: Any, here: int, there: int, some: Any) -> None:
    """The same on axes of several widths: each link has the factor of its plane."""
    whole_vectors()
    i, j, out = np.uint64(here), np.uint64(there), np.uint64(some[0])
    for x in range(np.uint64(some[1])):
        gained = c * constant(factors, x) * (get(T, j + x) - get(T, i + x))
        put(T, out + x, get(T, out + x) + gained)


@compiled
def _add_between(plan: Any, T: Any, cells: Any, neighbours: Any, contact: Any, some: Any) -> None:
    """Add what neighbours of another material give, in K of the cells; see composite/varying.cuh.

    Args:
        plan: the plan.
        T: the ring.
        cells: their type, conductance and gain of their halves, and the place of the first.
        neighbours: their type, conductance, and the place of the first.
        contact: resistance of the contact.
        some: the first sum, and how many there are.
    """
    whole_vectors()
    (own, half, gain, here), (other, further, there), (sums, n) = cells, neighbours, some
    table, one = reals_at(plan.states, T), type(half)(1.0)
    places, bases = reals_at(plan.places, T), longs_at(plan.bases)
    mine, its, base, its_base = behind(places, PLACE * own), behind(places, PLACE * other), bases[own], bases[other]
    per_kelvin, first_step, last_step = mine[0], mine[1], mine[2]
    its_per_kelvin, its_first_step, its_last_step = its[0], its[1], its[2]
    i, j, out = np.uint64(here), np.uint64(there), np.uint64(sums)
    for x in range(np.uint64(n)):
        steps, its_steps = get(T, i + x) * per_kelvin, get(T, j + x) * its_per_kelvin
        step, its_step = np.floor(steps), np.floor(its_steps)
        step = step if step > first_step else first_step
        step = step if step < last_step else last_step
        its_step = its_step if its_step > its_first_step else its_first_step
        its_step = its_step if its_step < its_last_step else its_last_step
        entry, its_entry = np.uint64(4 * (base + np.int64(step))), np.uint64(4 * (its_base + np.int64(its_step)))
        into, its_into = steps - step, its_steps - its_step
        degrees = constant(table, entry) + constant(table, entry + np.uint64(1)) * into
        conducting = constant(table, entry + np.uint64(2)) + constant(table, entry + np.uint64(3)) * into
        degrees_there = constant(table, its_entry) + constant(table, its_entry + np.uint64(1)) * its_into
        conducting_there = constant(table, its_entry + np.uint64(2))
        conducting_there += constant(table, its_entry + np.uint64(3)) * its_into
        resistance = one / (half * conducting) + one / (further * conducting_there) + contact
        put(T, out + x, get(T, out + x) + gain / resistance * (degrees_there - degrees))
