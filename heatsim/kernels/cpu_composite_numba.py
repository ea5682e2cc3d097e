"""The CPU's fast kernel for composite bodies: rows of x in parallel.

Runs of interior cells of one kind, nearly all, are vectorised by the compiler; the other cells look around themselves.
Results equal those of the NumPy oracle to the bit: neither fastmath nor fma.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from heatsim.kernels import cpu_cells, cpu_numba
from heatsim.kernels.cpu_cells import compiled
from heatsim.kernels.cpu_numba import (
    INCREMENTS,
    SEVEN_TERM,
    STOCHASTIC,
    _neighbour,
    _round_row,
    _sum_increments,
    _sum_seven_term,
)
from heatsim.kernels.source_key import source_key
from heatsim.physics import conditions as conditions_of_faces
from heatsim.physics import medium
from heatsim.physics.conditions import AMBIENT, EMISSION, FILM, FLUX, FREE, NEWTON_STEPS, SURROUNDINGS
from heatsim.physics.medium import INTERIOR

_OTHER_SOURCES = source_key((cpu_cells, cpu_numba, conditions_of_faces, medium))
_KIND = INTERIOR - 1
_CONDUCTANCE, _SHARE, _GAIN = 0, 1, 2
# Of the tables of heatsim.kernels.laws.Laws.
_PLACES, _BASES, _POTENTIALS, _STATES, _RESISTANCES, _ONE = 0, 1, 2, 3, 4, 5


@njit(parallel=True, cache=True, nogil=True, error_model="numpy")
def advance(
    T: Any,
    driving: Any,
    T_new: Any,
    periodic_x: bool,
    periodic_y: bool,
    periodic_z: bool,
    cells: Any,
    map_x_min: Any,
    map_x_max: Any,
    map_y_min: Any,
    map_y_max: Any,
    map_z_min: Any,
    map_z_max: Any,
    bits: Any,
    before: Any,
    area: Any,
    scale: Any,
    laws: Any,
    first_heated: int,
    void: int,
    void_condition: int,
    c: Any,
    links: Any,
    halves: Any,
    conditions: Any,
    heat: Any,
    beam_x_min: Any,
    beam_x_max: Any,
    beam_y_min: Any,
    beam_y_max: Any,
    beam_z_min: Any,
    beam_z_max: Any,
    step: int,
    scheme: int,
    x_min: Any,
    x_max: Any,
    y_min: Any,
    y_max: Any,
    z_min: Any,
    z_max: Any,
    from_beam_x_min: Any,
    from_beam_x_max: Any,
    from_beam_y_min: Any,
    from_beam_y_max: Any,
    from_beam_z_min: Any,
    from_beam_z_max: Any,
    exposed: Any,
    other_sources: str = _OTHER_SOURCES,
) -> None:
    """One step of the whole field; arguments as for :func:`heatsim.kernels.cpu_composite.advance_numpy`.

    ``driving`` is T, or where materials change with temperature the memory for what drives heat in place of it.
    """
    nz, ny, nx = T.shape
    uniform = cells.size == 0
    if laws[_BASES].size:
        for row in prange(nz * ny):
            z = row // ny
            y = row - z * ny
            start = 0
            while start < nx:
                end = nx
                kind = 0
                if not uniform:
                    kind, end = cells[z, y, start] & _KIND, start + 1
                    while end < nx and cells[z, y, end] & _KIND == kind:
                        end += 1
                _look_up(laws, kind, T, driving, z, y, start, end)
                start = end
    for row in prange(nz * ny):
        z = row // ny
        y = row - z * ny
        y_south, y_north = _neighbour(y - 1, ny, periodic_y), _neighbour(y + 1, ny, periodic_y)
        z_below, z_above = _neighbour(z - 1, nz, periodic_z), _neighbour(z + 1, nz, periodic_z)
        contents, centre, new = T[z, y], driving[z, y], T_new[z, y]
        south, north = driving[z, y_south], driving[z, y_north]
        below, above = driving[z_below, y], driving[z_above, y]
        if uniform:
            if scheme == SEVEN_TERM:
                _sum_seven_term(c, centre, south, north, below, above, periodic_x, new)
            else:
                _sum_increments(c, centre, south, north, below, above, periodic_x, new)
            if first_heated == 0:
                for x in range(nx):
                    new[x] = heat[0] + new[x]
        else:
            own = cells[z, y]
            x = 0
            while x < nx:
                end = x + 1
                if 0 < x < nx - 1 and own[x] & INTERIOR:
                    while end < nx - 1 and own[end] == own[x]:
                        end += 1
                    kind = own[x] & _KIND
                    _sum_interior(links, kind, centre, south, north, below, above, new, x, end)
                    if kind >= first_heated:
                        for i in range(x, end):
                            new[i] = heat[kind] + new[i]
                else:
                    kind = own[x] & _KIND
                    x_west, x_east = _neighbour(x - 1, nx, periodic_x), _neighbour(x + 1, nx, periodic_x)
                    west_kind, east_kind = own[x_west] & _KIND, own[x_east] & _KIND
                    south_kind, north_kind = cells[z, y_south, x] & _KIND, cells[z, y_north, x] & _KIND
                    below_kind, above_kind = cells[z_below, y, x] & _KIND, cells[z_above, y, x] & _KIND
                    here = centre[x]
                    if laws[_BASES].size:
                        own_content = contents[x]
                        total = _pass_between(
                            laws, links, halves, 0, kind, west_kind, own_content, contents[x_west], here, centre[x_west]
                        )
                        total += _pass_between(
                            laws, links, halves, 0, kind, east_kind, own_content, contents[x_east], here, centre[x_east]
                        )
                        total += _pass_between(
                            laws, links, halves, 1, kind, south_kind, own_content, T[z, y_south, x], here, south[x]
                        )
                        total += _pass_between(
                            laws, links, halves, 1, kind, north_kind, own_content, T[z, y_north, x], here, north[x]
                        )
                        total += _pass_between(
                            laws, links, halves, 2, kind, below_kind, own_content, T[z_below, y, x], here, below[x]
                        )
                        total += _pass_between(
                            laws, links, halves, 2, kind, above_kind, own_content, T[z_above, y, x], here, above[x]
                        )
                    else:
                        total = (
                            links[0, kind, west_kind] * (centre[x_west] - here)
                            + links[0, kind, east_kind] * (centre[x_east] - here)
                            + links[1, kind, south_kind] * (south[x] - here)
                            + links[1, kind, north_kind] * (north[x] - here)
                            + links[2, kind, below_kind] * (below[x] - here)
                            + links[2, kind, above_kind] * (above[x] - here)
                        )
                    if kind >= first_heated:
                        total = heat[kind] + total
                    if void_condition >= 0 and kind != void:
                        free_x = (west_kind == void) + (east_kind == void)
                        free_y = (south_kind == void) + (north_kind == void)
                        free_z = (below_kind == void) + (above_kind == void)
                        if free_x + free_y + free_z > 0:
                            rank = _rank(bits, before, (z * ny + y) * nx + x)
                            condition = conditions[void_condition]
                            degrees, conducting = _state(laws, kind, contents[x])
                            gained = here - here
                            gained = _add_exposed(
                                condition, halves[kind, 0], scale, degrees, conducting, free_x, area[rank, 0], gained
                            )
                            gained = _add_exposed(
                                condition, halves[kind, 1], scale, degrees, conducting, free_y, area[rank, 1], gained
                            )
                            gained = _add_exposed(
                                condition, halves[kind, 2], scale, degrees, conducting, free_z, area[rank, 2], gained
                            )
                            total += gained
                            if exposed.size:
                                exposed[rank] += gained
                    new[x] = total
                x = end

        # Faces in the order of composite.cuh, so that edges and corners add up alike.
        if not periodic_x:
            _add_face(
                contents,
                new,
                0,
                1,
                cells,
                z,
                y,
                0,
                0,
                z,
                y,
                False,
                map_x_min,
                halves,
                conditions,
                beam_x_min,
                scale,
                laws,
                x_min,
                from_beam_x_min,
            )
            _add_face(
                contents,
                new,
                nx - 1,
                nx,
                cells,
                z,
                y,
                1,
                0,
                z,
                y,
                False,
                map_x_max,
                halves,
                conditions,
                beam_x_max,
                scale,
                laws,
                x_max,
                from_beam_x_max,
            )
        if y == 0 and not periodic_y:
            _add_face(
                contents,
                new,
                0,
                nx,
                cells,
                z,
                y,
                2,
                1,
                z,
                0,
                True,
                map_y_min,
                halves,
                conditions,
                beam_y_min,
                scale,
                laws,
                y_min,
                from_beam_y_min,
            )
        if y == ny - 1 and not periodic_y:
            _add_face(
                contents,
                new,
                0,
                nx,
                cells,
                z,
                y,
                3,
                1,
                z,
                0,
                True,
                map_y_max,
                halves,
                conditions,
                beam_y_max,
                scale,
                laws,
                y_max,
                from_beam_y_max,
            )
        if z == 0 and not periodic_z:
            _add_face(
                contents,
                new,
                0,
                nx,
                cells,
                z,
                y,
                4,
                2,
                y,
                0,
                True,
                map_z_min,
                halves,
                conditions,
                beam_z_min,
                scale,
                laws,
                z_min,
                from_beam_z_min,
            )
        if z == nz - 1 and not periodic_z:
            _add_face(
                contents,
                new,
                0,
                nx,
                cells,
                z,
                y,
                5,
                2,
                y,
                0,
                True,
                map_z_max,
                halves,
                conditions,
                beam_z_max,
                scale,
                laws,
                z_max,
                from_beam_z_max,
            )

        if scheme == INCREMENTS:
            for x in range(nx):
                new[x] = contents[x] + new[x]
        elif scheme == STOCHASTIC:
            _round_row(contents, new, np.uint32(y * 0x85EBCA77 + z * 0xC2B2AE3D + step * 0x27D4EB2F))


@njit
def _sum_interior(
    links: Any, kind: int, T: Any, south: Any, north: Any, below: Any, above: Any, total: Any, start: int, end: int
) -> None:
    cx, cy, cz = links[0, kind, kind], links[1, kind, kind], links[2, kind, kind]
    # Slices: an index that might be negative would keep the loop from being vectorised.
    wests, centres, easts, totals = T[start - 1 : end - 1], T[start:end], T[start + 1 : end + 1], total[start:end]
    souths, norths, belows, aboves = south[start:end], north[start:end], below[start:end], above[start:end]
    for i in range(end - start):
        here = centres[i]
        totals[i] = (
            cx * (wests[i] - here)
            + cx * (easts[i] - here)
            + cy * (souths[i] - here)
            + cy * (norths[i] - here)
            + cz * (belows[i] - here)
            + cz * (aboves[i] - here)
        )


@compiled
def _look_up(laws: Any, kind: int, contents: Any, found: Any, z: int, y: int, start: int, end: int) -> None:
    """Potentials of cells of one kind."""
    places, base, potentials = laws[_PLACES], laws[_BASES][kind], laws[_POTENTIALS]
    per_kelvin, first, last = places[kind, 0], places[kind, 1], places[kind, 2]
    for x in range(start, end):
        steps = contents[z, y, x] * per_kelvin
        step = np.floor(steps)
        step = step if step > first else first  # NaN finds its place too
        step = step if step < last else last
        entry = np.uint64(base + np.int64(step))
        found[z, y, x] = potentials[entry, 0] + potentials[entry, 1] * (steps - step)


@compiled
def _state(laws: Any, kind: int, content: Any) -> Any:
    """Temperature as a deviation, and conductivity over that at the reference temperature."""
    if laws[_BASES].size == 0:
        return content, laws[_ONE][0]
    places, states = laws[_PLACES], laws[_STATES]
    steps = content * places[kind, 0]
    step = np.floor(steps)
    step = step if step > places[kind, 1] else places[kind, 1]
    step = step if step < places[kind, 2] else places[kind, 2]
    entry, into = laws[_BASES][kind] + np.int64(step), steps - step
    return states[entry, 0] + states[entry, 1] * into, states[entry, 2] + states[entry, 3] * into


@compiled
def _pass_between(
    laws: Any,
    links: Any,
    halves: Any,
    axis: int,
    kind: int,
    other: int,
    content: Any,
    content_there: Any,
    potential: Any,
    potential_there: Any,
) -> Any:
    """What a neighbour gives to a cell, in K of the cell; see drop_between() in varying.cuh."""
    if laws[_BASES][kind] == laws[_BASES][other]:
        return links[axis, kind, other] * (potential_there - potential)
    half, further = halves[kind, axis, _CONDUCTANCE], halves[other, axis, _CONDUCTANCE]
    if half == 0 or further == 0:
        return content - content
    degrees, conducting = _state(laws, kind, content)
    degrees_there, conducting_there = _state(laws, other, content_there)
    one = laws[_ONE][0]
    resistance = one / (half * conducting) + one / (further * conducting_there) + laws[_RESISTANCES][kind, other]
    return halves[kind, axis, _GAIN] / resistance * (degrees_there - degrees)


@njit
def _rank(bits: Any, before: Any, cell: int) -> Any:
    """How many exposed cells there are before one."""
    word = bits[cell // 32]
    earlier = np.uint32(word & np.uint32((1 << (cell % 32)) - 1))
    count = np.int64(before[cell // 32])
    while earlier:
        earlier = np.uint32(earlier & np.uint32(earlier - np.uint32(1)))
        count += 1
    return count


@njit
def _add_exposed(
    condition: Any, half: Any, scale: Any, T: Any, conducting: Any, surfaces: int, area: Any, gained: Any
) -> Any:
    if surfaces == 0:
        return gained
    weight = area if surfaces == 1 else area + area
    rise = _surface_rise(condition, half[_CONDUCTANCE] * conducting, scale, T, T - T)
    return gained + weight * (half[_SHARE] * conducting) * rise


@njit
def _add_face(
    T: Any,
    total: Any,
    start: int,
    end: int,
    cells: Any,
    z: int,
    y: int,
    face: int,
    axis: int,
    v: int,
    u_of_row: int,
    along_x: bool,
    numbers: Any,
    halves: Any,
    conditions: Any,
    beams: Any,
    scale: Any,
    laws: Any,
    ledger: Any,
    beam_ledger: Any,
) -> None:
    """Add the heat through a face to cells start … end of a row; (u, v) is the cell's place on the face."""
    for x in range(start, end):
        u = x if along_x else u_of_row
        kind = cells[z, y, x] & _KIND if cells.size else 0
        half = halves[kind, axis]
        if half[_CONDUCTANCE] == 0:
            continue
        number = numbers[v, u] if numbers.size else face
        beam = beams[v, u] if beams.size else T[x] - T[x]
        degrees, conducting = _state(laws, kind, T[x])
        rise = _surface_rise(conditions[number], half[_CONDUCTANCE] * conducting, scale, degrees, beam)
        heat = half[_SHARE] * conducting * rise
        from_beam = half[_GAIN] * beam
        total[x] += heat
        if ledger.size:
            ledger[v, u] += np.float64(heat) - np.float64(from_beam)
        if beam_ledger.size:
            beam_ledger[v, u] += from_beam


@njit(error_model="numpy")
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
