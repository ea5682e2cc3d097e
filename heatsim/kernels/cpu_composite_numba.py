"""The CPU's fast kernel for composite bodies: rows of x in parallel.

Runs of interior cells of one kind, nearly all, are vectorised by the compiler; the other cells look around themselves.
Arrays of cells are runs of cells, and a cell's place in them is one number. Results equal those of the NumPy oracle to
the bit: neither fastmath nor fma.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from heatsim.kernels import cpu_cells
from heatsim.kernels.cpu_cells import (
    INCREMENTS,
    OPTIONS,
    SEVEN_TERM,
    STOCHASTIC,
    add_increments,
    compiled,
    round_increments,
    sum_increments,
    sum_seven_term,
)
from heatsim.kernels.source_key import source_key
from heatsim.physics import conditions as conditions_of_faces
from heatsim.physics import medium
from heatsim.physics.conditions import AMBIENT, EMISSION, FILM, FLUX, FREE, NEWTON_STEPS, SURROUNDINGS
from heatsim.physics.medium import INTERIOR

_OTHER_SOURCES = source_key((cpu_cells, conditions_of_faces, medium))
_KIND = INTERIOR - 1
_CONDUCTANCE, _SHARE, _GAIN = 0, 1, 2
# What takes tuples of arrays: a call would hand over every array's shape and strides, which takes longer than a cell.
inlined: Any = njit(forceinline=True, **OPTIONS)


class Body(NamedTuple):
    """What a body's steps have in common; see :class:`heatsim.kernels.cpu_composite.Body`.

    Attributes:
        nz, ny, nx: cells.
        periodic_x, periodic_y, periodic_z: which axes wrap.
        cells: the bytes, a run of cells, or an empty array where there is one kind.
        bits, before, area: the exposed cells.
        scale: the reference temperature and the tolerance of surface temperatures, in K.
        first_heated: the first kind with sources.
        void, void_condition: the kind of void, and the condition on surfaces towards it; −1 where there are none.
    """

    nz: int
    ny: int
    nx: int
    periodic_x: bool
    periodic_y: bool
    periodic_z: bool
    cells: Any
    bits: Any
    before: Any
    area: Any
    scale: Any
    first_heated: int
    void: int
    void_condition: int


class Tables(NamedTuple):
    """What cells pass on, by their kinds; see the classes Tables and Laws beside the NumPy oracle.

    Attributes:
        c: c0…c6 of a body of one kind.
        links: c_ab, shape (3, kinds, kinds).
        halves: (conductance, share, gain, 0) of each kind and axis, shape (kinds, 3, 4).
        places, bases, potentials, states, resistances: of materials that change with temperature, or empty arrays.
        one: 1 in the field's precision.
    """

    c: Any
    links: Any
    halves: Any
    places: Any
    bases: Any
    potentials: Any
    states: Any
    resistances: Any
    one: Any


class Step(NamedTuple):
    """What changes from step to step.

    Attributes:
        conditions: the six numbers of each condition.
        heat: what sources give to the cells of each kind, in K.
        number: of the step.
        scheme: an index of :data:`heatsim.physics.coefficients.SCHEMES`.
    """

    conditions: Any
    heat: Any
    number: int
    scheme: int


@njit(parallel=True, cache=True, nogil=True, error_model="numpy")
def advance(
    T: Any,
    driving: Any,
    T_new: Any,
    body: Body,
    tables: Tables,
    step: Step,
    maps: Any,
    beams: Any,
    sums: Any,
    beam_sums: Any,
    exposed: Any,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """One step of the whole field.

    Args:
        T: the field, a run of cells.
        driving: T, or where materials change with temperature the memory for what drives heat in place of it.
        T_new: gets the new field.
        body: the cells.
        tables: what they pass on.
        step: what holds in this step.
        maps: for each face the number of each cell's condition, or an empty array.
        beams: for each face the flux of beams in W/m², or an empty array.
        sums: the ledger's sums over time for each face, those of beams left out; empty where nobody asked.
        beam_sums: the same of what beams gave.
        exposed: the same of each exposed cell.
        other_sources: not to be given.
    """
    if tables.bases.size:
        for row in prange(body.nz * body.ny):
            _look_up_row(T, driving, body, tables, row)
    for row in prange(body.nz * body.ny):
        z = row // body.ny
        y = row - z * body.ny
        _sum_row(T, driving, T_new, body, tables, step, exposed, z, y)
        # Faces in the order of composite.cuh, so that edges and corners add up alike.
        for face in range(6):
            _add_face(T, T_new, body, tables, step, maps[face], beams[face], sums[face], beam_sums[face], face, z, y)
        if step.scheme == INCREMENTS:
            add_increments(T, row * body.nx, T_new, row * body.nx, body.nx)
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
def _look_up_row(T: Any, driving: Any, body: Body, tables: Tables, row: int) -> None:
    """Potentials of a row, one run of cells of one kind after the other."""
    start, last = row * body.nx, (row + 1) * body.nx
    while start < last:
        kind, end = 0, last
        if body.cells.size:
            kind, end = body.cells[start] & _KIND, start + 1
            while end < last and body.cells[end] & _KIND == kind:
                end += 1
        base, per_kelvin = tables.bases[kind], tables.places[kind, 0]
        first_step, last_step = tables.places[kind, 1], tables.places[kind, 2]
        for i in range(np.uint64(start), np.uint64(end)):
            steps = T[i] * per_kelvin
            step = np.floor(steps)
            step = step if step > first_step else first_step  # NaN finds its place too
            step = step if step < last_step else last_step
            entry = np.uint64(base + np.int64(step))
            driving[i] = tables.potentials[entry, 0] + tables.potentials[entry, 1] * (steps - step)
        start = end


@inlined
def _sum_row(
    T: Any, driving: Any, T_new: Any, body: Body, tables: Tables, step: Step, exposed: Any, z: int, y: int
) -> None:
    """What the cells of a row get from their neighbours, from sources and through surfaces towards void."""
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
        kind = cell & _KIND
        if 0 < x < nx - 1 and cell & INTERIOR:
            while end < nx - 1 and body.cells[start + end] == cell:
                end += 1
            cx, cy, cz = tables.links[0, kind, kind], tables.links[1, kind, kind], tables.links[2, kind, kind]
            c, around = (cx, cx, cx, cy, cy, cz, cz), (below + x, south + x, start + x, north + x, above + x)
            sum_increments(c, driving, around, nx, T_new, start + x, nx, (1, end - x))
            if kind >= body.first_heated:
                for i in range(start + x, start + end):
                    T_new[i] = step.heat[kind] + T_new[i]
        else:
            west = start + _neighbour(x - 1, nx, body.periodic_x)
            east = start + _neighbour(x + 1, nx, body.periodic_x)
            beside = (west, east, south + x, north + x, below + x, above + x)
            T_new[start + x] = _sum_cell(T, driving, body, tables, step, exposed, start + x, kind, beside)
        x = end


@inlined
def _sum_uniform_row(T: Any, T_new: Any, body: Body, c: Any, step: Step, around: Any) -> None:
    """The same where all cells are of one kind; ``around`` is where the rows below to above begin."""
    nx = body.nx
    below, south, start, north, above = around
    for x in (0, nx - 1):
        here = T[start + x]
        west = T[start + _neighbour(x - 1, nx, body.periodic_x)]
        east = T[start + _neighbour(x + 1, nx, body.periodic_x)]
        if step.scheme == SEVEN_TERM:
            total = c[0] * here + c[1] * west + c[2] * east + c[3] * T[south + x] + c[4] * T[north + x]
            T_new[start + x] = total + c[5] * T[below + x] + c[6] * T[above + x]
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
    T: Any, driving: Any, body: Body, tables: Tables, step: Step, exposed: Any, i: int, kind: int, beside: Any
) -> Any:
    """What a cell gets that looks around itself."""
    cells, links, here, void = body.cells, tables.links, driving[i], body.void
    west, east, south, north, below, above = beside
    west_kind, east_kind = cells[west] & _KIND, cells[east] & _KIND
    south_kind, north_kind = cells[south] & _KIND, cells[north] & _KIND
    below_kind, above_kind = cells[below] & _KIND, cells[above] & _KIND
    if tables.bases.size:
        total = (
            _pass_between(T, driving, tables, 0, kind, west_kind, i, west)
            + _pass_between(T, driving, tables, 0, kind, east_kind, i, east)
            + _pass_between(T, driving, tables, 1, kind, south_kind, i, south)
            + _pass_between(T, driving, tables, 1, kind, north_kind, i, north)
            + _pass_between(T, driving, tables, 2, kind, below_kind, i, below)
            + _pass_between(T, driving, tables, 2, kind, above_kind, i, above)
        )
    else:
        total = (
            links[0, kind, west_kind] * (driving[west] - here)
            + links[0, kind, east_kind] * (driving[east] - here)
            + links[1, kind, south_kind] * (driving[south] - here)
            + links[1, kind, north_kind] * (driving[north] - here)
            + links[2, kind, below_kind] * (driving[below] - here)
            + links[2, kind, above_kind] * (driving[above] - here)
        )
    if kind >= body.first_heated:
        total = step.heat[kind] + total
    if body.void_condition >= 0 and kind != void:
        free_x = (west_kind == void) + (east_kind == void)
        free_y = (south_kind == void) + (north_kind == void)
        free_z = (below_kind == void) + (above_kind == void)
        if free_x + free_y + free_z > 0:
            total += _pass_to_void(T[i], body, tables, step, exposed, i, kind, (free_x, free_y, free_z))
    return total


@inlined
def _pass_between(T: Any, driving: Any, tables: Tables, axis: int, kind: int, other: int, i: int, there: int) -> Any:
    """What a neighbour gives to a cell, in K of the cell; see drop_between() in varying.cuh."""
    if tables.bases[kind] == tables.bases[other]:
        return tables.links[axis, kind, other] * (driving[there] - driving[i])
    return _pass_between_materials(T, tables, axis, kind, other, i, there)


@compiled
def _pass_between_materials(T: Any, tables: Tables, axis: int, kind: int, other: int, i: int, there: int) -> Any:
    half, further = tables.halves[kind, axis, _CONDUCTANCE], tables.halves[other, axis, _CONDUCTANCE]
    if half == 0 or further == 0:
        return half - half
    degrees, conducting = _state(tables, kind, T[i])
    degrees_there, conducting_there = _state(tables, other, T[there])
    one = tables.one[0]
    resistance = one / (half * conducting) + one / (further * conducting_there) + tables.resistances[kind, other]
    return tables.halves[kind, axis, _GAIN] / resistance * (degrees_there - degrees)


@inlined
def _state(tables: Tables, kind: int, content: Any) -> Any:
    """Temperature as a deviation, and conductivity over that at the reference temperature."""
    if tables.bases.size == 0:
        return content, tables.one[0]
    places, states = tables.places, tables.states
    steps = content * places[kind, 0]
    step = np.floor(steps)
    step = step if step > places[kind, 1] else places[kind, 1]
    step = step if step < places[kind, 2] else places[kind, 2]
    entry, into = tables.bases[kind] + np.int64(step), steps - step
    return states[entry, 0] + states[entry, 1] * into, states[entry, 2] + states[entry, 3] * into


@inlined
def _pass_to_void(
    content: Any, body: Body, tables: Tables, step: Step, exposed: Any, i: int, kind: int, surfaces: Any
) -> Any:
    """What a cell gets through so many surfaces towards void along x, y, z; it is entered in the ledger."""
    rank, condition = _rank(body.bits, body.before, i), step.conditions[body.void_condition]
    degrees, conducting = _state(tables, kind, content)
    gained = content - content
    for axis in range(3):
        if surfaces[axis]:
            half, area = tables.halves[kind, axis], body.area[rank, axis]
            weight = area if surfaces[axis] == 1 else area + area
            rise = _surface_rise(condition, half[_CONDUCTANCE] * conducting, body.scale, degrees, degrees - degrees)
            gained = gained + weight * (half[_SHARE] * conducting) * rise
    if exposed.size:
        exposed[rank] += gained
    return gained


@inlined
def _rank(bits: Any, before: Any, cell: int) -> Any:
    """How many exposed cells there are before one."""
    word = bits[cell // 32]
    earlier = np.uint32(word & np.uint32((1 << (cell % 32)) - 1))
    count = np.int64(before[cell // 32])
    while earlier:
        earlier = np.uint32(earlier & np.uint32(earlier - np.uint32(1)))
        count += 1
    return count


@inlined
def _add_face(
    T: Any,
    T_new: Any,
    body: Body,
    tables: Tables,
    step: Step,
    numbers: Any,
    beams: Any,
    sums: Any,
    beam_sums: Any,
    face: int,
    z: int,
    y: int,
) -> None:
    """Add the heat through a face to the cells of a row that are a part of it."""
    axis, far, first, end = face // 2, face % 2, 0, body.nx
    if axis == 0:
        first, end = (body.nx - 1, body.nx) if far else (0, 1)
    place, n, periodic = first, body.nx, body.periodic_x
    if axis == 1:
        place, n, periodic = y, body.ny, body.periodic_y
    elif axis == 2:
        place, n, periodic = z, body.nz, body.periodic_z
    if periodic or place != (n - 1 if far else 0):
        return
    start = (z * body.ny + y) * body.nx
    v = y if axis == 2 else z
    for x in range(first, end):
        i, u = start + x, y if axis == 0 else x
        kind = body.cells[i] & _KIND if body.cells.size else 0
        half = tables.halves[kind, axis]
        if half[_CONDUCTANCE] == 0:
            continue
        number = numbers[v, u] if numbers.size else face
        beam = beams[v, u] if beams.size else T[i] - T[i]
        degrees, conducting = _state(tables, kind, T[i])
        rise = _surface_rise(step.conditions[number], half[_CONDUCTANCE] * conducting, body.scale, degrees, beam)
        heat = half[_SHARE] * conducting * rise
        from_beam = half[_GAIN] * beam
        T_new[i] += heat
        if sums.size:
            sums[v, u] += np.float64(heat) - np.float64(from_beam)
        if beam_sums.size:
            beam_sums[v, u] += from_beam


@compiled
def _surface_rise(condition: Any, conductance: Any, scale: Any, T: Any, beam: Any) -> Any:
    """As :func:`heatsim.physics.conditions.surface_rise`, for one cell; ``scale`` is (reference, tolerance)."""
    reference, tolerance = scale[0], scale[1]
    film, emission, free = condition[FILM], condition[EMISSION], condition[FREE]
    zero = T - T
    to_ambient = condition[AMBIENT] - T
    flux = free * (condition[FLUX] + beam)
    linear = film * to_ambient + flux
    losses = free * conductance + film
    if not emission > zero:
        return linear / losses

    to_surroundings, b = condition[SURROUNDINGS] - T, condition[SURROUNDINGS] + reference
    hottest = np.sqrt(np.sqrt((b * b) * (b * b) + max(flux, zero) / emission)) - reference
    most = max(max(to_ambient, zero), hottest - T)
    a = T + reference
    exchange = emission * ((a + b) * (a * a + b * b))
    rise = min((exchange * to_surroundings + linear) / (losses + exchange), most)
    twice = emission + emission
    for _ in range(NEWTON_STEPS):
        a = max(T + rise + reference, zero)
        exchange = emission * ((a + b) * (a * a + b * b))
        excess = exchange * (to_surroundings - rise) + (linear - losses * rise)
        change = excess / ((twice + twice) * (a * a * a) + losses)
        rise = min(rise + change, most)
        if abs(change) <= tolerance * abs(rise):
            break
    return rise
