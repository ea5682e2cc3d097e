"""Heat of a composite body through the faces of the box and through surfaces towards void.

Up to SURFACES of them are done together, as vectors: their cells' numbers are gathered in the ring from
``plan.surfaces`` on, one array after the other.
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.composite_cells import CONDUCTANCE, GAIN, SHARE, CompositePlan, at_step, number_of, state
from heatsim.kernels.cpu.march import Rows, Tile, inlined
from heatsim.kernels.cpu.rows import compiled, whole_vectors, wrap
from heatsim.physics import mixed_cells
from heatsim.physics.boundary import AMBIENT, EMISSION, FILM, FLUX, FREE, NEWTON_STEPS, SURROUNDINGS
from heatsim.physics.mixed_cells import MIXED

SURFACES = 256
# The arrays of these surfaces: T − T_ref, the half cell's conductance and share, the flux of beams and their heat; then
# the temperature of the surface minus that of the cell, and whether it is found. The last is as long as both.
_DEGREES, _CONDUCTANCE, _SHARE, _BEAM, _FROM_BEAM, _RISE, _FOUND = range(0, 7 * SURFACES, SURFACES)
ROOM = 7 * SURFACES

place_of: Any = inlined(mixed_cells.place_of)


@inlined
def add_void(plan: CompositePlan, tile: Tile, step: int, rows: Rows, T: Any) -> None:
    """Add the heat through surfaces towards void to the sums of some rows."""
    layout, boundary, tables, at = plan.layout, plan.boundary, plan.tables, plan.surfaces
    number, factor, exposed = boundary.void_condition, plan.values.factors[at_step(plan.values.factors, step)], plan.ledger.exposed
    condition = plan.values.conditions[at_step(plan.values.conditions, step)][number]
    held = plan.values.held.size > 0 and condition[FREE] == 0
    zero = factor - factor
    gained = zero
    first_row = number_of(plan, rows)
    for row in range(rows.count):
        of_row = first_row + row
        owned = tile.first_y <= rows.y + row < tile.end_y and tile.first_z <= rows.z < tile.end_z
        in_ring, in_sums = rows.here + row * plan.stride, plan.sums + row * plan.stride
        for first in range(layout.surface_first[of_row], layout.surface_first[of_row + 1], SURFACES):
            count = min(layout.surface_first[of_row + 1] - first, SURFACES)
            for j in range(count):
                i, cell_type = in_ring + layout.surface_x[first + j], layout.surface_type[first + j]
                half = tables.halves[cell_type, layout.surface_axis[first + j]]
                degrees, conducting = state(tables, cell_type, T[i])
                T[at + _DEGREES + j] = degrees
                T[at + _CONDUCTANCE + j] = half[CONDUCTANCE] * conducting * layout.surface_weight[first + j]
                T[at + _SHARE + j] = half[SHARE] if held else half[SHARE] * conducting
                T[at + _BEAM + j] = zero
            if held:
                of_types = plan.values.held[at_step(plan.values.held, step)][number]
                for j in range(count):
                    potential = T[in_ring + layout.surface_x[first + j] + plan.potentials]
                    T[at + _RISE + j] = of_types[layout.surface_type[first + j]] - potential
            else:
                find_rises(condition, boundary.scale, T, at, count)
            for j in range(count):
                gained = gained + T[at + _SHARE + j] * T[at + _RISE + j]
                if layout.surface_last[first + j]:
                    T[in_sums + layout.surface_x[first + j]] += gained
                    if owned and exposed.size:
                        exposed[layout.surface_rank[first + j]] += np.float64(factor) * np.float64(gained)
                    gained = zero


@inlined
def add_faces(plan: CompositePlan, tile: Tile, step: int, rows: Rows, T: Any) -> None:
    """Add the heat through the faces of the box to the sums of some rows."""
    nz, ny, nx, stride, count = plan.nz, plan.ny, plan.nx, plan.stride, rows.count
    z, y = wrap(rows.z, nz), wrap(rows.y, ny)
    first_owned, end_owned = tile.first_y - rows.y, tile.end_y - rows.y
    if not tile.first_z <= rows.z < tile.end_z:
        first_owned, end_owned = 0, 0
    # Faces in the order of composite/composite.cuh, so that edges and corners have the same bits.
    for face in range(6):
        if not plan.boundary.open[face]:
            continue
        far = face % 2
        if face < 2:
            x, owned = (nx - 1) * far, (first_owned, end_owned)
            _add_line(plan, step, T, face, (z, y), count, (rows.here + x, plan.sums + x, stride), owned)
        elif face >= 4 or (y + count == ny if far else y == 0):
            if face >= 4 and z != (nz - 1) * far:
                continue
            first, end = (0, count) if face >= 4 else ((count - 1) * far, (count - 1) * far + 1)
            for row in range(first, end):
                owned = (0, nx) if first_owned <= row < end_owned else (0, 0)
                line = (rows.here + row * stride, plan.sums + row * stride, 1)
                _add_line(plan, step, T, face, (y + row if face >= 4 else z, 0), nx, line, owned)


@inlined
def _add_line(
    plan: CompositePlan, step: int, T: Any, face: int, first: Any, count: int, line: Any, owned: Any
) -> None:
    """Add the heat through a face to a line of its cells.

    Args:
        plan: the data of the call.
        step: the step of the call.
        T: the ring.
        face: the face.
        first: the place (v, u) on it of the line's first cell; the line runs along u.
        count: number of cells.
        line: where the first cell is in the ring, where its sum is, and the distance to the next cell.
        owned: the first cell whose heat is added to the ledger, and one after the last.
    """
    v, first_u = first
    numbers = plan.boundary.maps[face]
    k = 0
    while k < count:
        number, end = face, min(k + SURFACES, count)
        if numbers.size:
            number, most = np.int64(numbers[v, first_u + k]), end
            end = k + 1
            while number != MIXED and end < most and numbers[v, first_u + end] == number:
                end += 1
        _add_cells(plan, step, T, face, number, (v, first_u + k), end - k, line, (k, owned[0], owned[1]))
        k = end


@inlined
def _add_cells(
    plan: CompositePlan, step: int, T: Any, face: int, number: int, first: Any, count: int, line: Any, owned: Any
) -> None:
    """Add the heat of one condition, or of the conditions that share a cell; ``owned`` begins with the first cell."""
    boundary, tables, ledger, at = plan.boundary, plan.tables, plan.ledger, plan.surfaces
    axis, factor = face // 2, np.float64(plan.values.factors[at_step(plan.values.factors, step)])
    v, u = first
    types, distance = boundary.types[face], line[2]
    in_ring, in_sums = line[0] + owned[0] * distance, line[1] + owned[0] * distance
    condition = plan.values.conditions[at_step(plan.values.conditions, step)][number if number != MIXED else 0]
    held = plan.values.held.size > 0 and condition[FREE] == 0 and number != MIXED
    _gather_beams(plan, step, T, face, v, u, count)
    for j in range(count):
        cell_type = np.int64(types[v, u + j]) if types.size else 0
        half = tables.halves[cell_type, axis]
        degrees, conducting = state(tables, cell_type, T[in_ring + j * distance])
        conducts = half[CONDUCTANCE] != 0
        # Void gains nothing: its share and gain are 0. Any other conductance avoids a division by 0.
        T[at + _DEGREES + j] = degrees
        T[at + _CONDUCTANCE + j] = half[CONDUCTANCE] * conducting if conducts else tables.one[0]
        T[at + _SHARE + j] = half[SHARE] if held else half[SHARE] * conducting
        T[at + _FROM_BEAM + j] = half[GAIN] * T[at + _BEAM + j]
    if held:
        of_types = plan.values.held[at_step(plan.values.held, step)][number]
        for j in range(count):
            cell_type = np.int64(types[v, u + j]) if types.size else 0
            T[at + _RISE + j] = of_types[cell_type] - T[in_ring + j * distance + plan.potentials]
    elif number != MIXED:
        find_rises(condition, boundary.scale, T, at, count)
    else:
        owns = owned[1] <= owned[0] < owned[2]
        T[at + _RISE] = _pass_parts(plan, step, T, face, v, u, in_ring, owns)
        T[at + _SHARE] = tables.one[0]
    for j in range(count):
        T[in_sums + j * distance] += T[at + _SHARE + j] * T[at + _RISE + j]
    sums, beam_sums = ledger.faces[face], ledger.beams[face]
    for j in range(max(owned[1] - owned[0], 0), min(owned[2] - owned[0], count)):
        if sums.size:
            heat = T[at + _SHARE + j] * T[at + _RISE + j]
            sums[v, u + j] += factor * (np.float64(heat) - np.float64(T[at + _FROM_BEAM + j]))
        if beam_sums.size:
            beam_sums[v, u + j] += factor * np.float64(T[at + _FROM_BEAM + j])


@inlined
def _gather_beams(plan: CompositePlan, step: int, T: Any, face: int, v: int, u: int, count: int) -> None:
    """The flux of beams at cells of a face, in W/m²."""
    beams, weights, at = plan.values.beams, plan.values.beam_weights[at_step(plan.values.beam_weights, step)], plan.surfaces + _BEAM
    zero = plan.tables.one[0] - plan.tables.one[0]
    for j in range(count):
        T[at + j] = zero
    for beam in range(len(beams)):
        start = plan.values.beam_first[at_step(plan.values.beam_first, step)][beam]
        in_v = v - start[1]
        if beams[beam, 0] == face and 0 <= in_v < beams[beam, 4]:
            along_v, along_u = weights[beams[beam, 3] + in_v], beams[beam, 1] - start[0]
            for cell in range(max(u, start[0]), min(u + count, start[0] + beams[beam, 2])):
                T[at + cell - u] += along_v * weights[along_u + cell]


@inlined
def _pass_parts(
    plan: CompositePlan, step: int, T: Any, face: int, v: int, u: int, in_ring: int, owned: bool
) -> Any:
    """The heat into a cell through the parts of its face, also added to the ledger."""
    boundary, tables, at, parts = plan.boundary, plan.tables, plan.surfaces, plan.ledger.parts
    factor, place = plan.values.factors[at_step(plan.values.factors, step)], place_of(face, v * boundary.maps[face].shape[1] + u)
    cell_type = np.int64(boundary.types[face][v, u]) if boundary.types[face].size else 0
    half, degrees = tables.halves[cell_type, face // 2], T[at + _DEGREES]
    gained = -(degrees - degrees)
    if half[CONDUCTANCE] == 0:
        return gained
    low, high = 0, len(boundary.places) - 1
    while low < high:
        middle = (low + high) // 2
        if boundary.places[middle] < place:
            low = middle + 1
        else:
            high = middle
    for part in range(boundary.first[low], boundary.first[low + 1]):
        number, fraction = boundary.numbers[part], boundary.fractions[part]
        condition = plan.values.conditions[at_step(plan.values.conditions, step)][number]
        if plan.values.held.size and condition[FREE] == 0:
            of_types = plan.values.held[at_step(plan.values.held, step)][number]
            passing = half[SHARE] * (of_types[cell_type] - T[in_ring + plan.potentials])
        else:
            passing = T[at + _SHARE] * surface_rise(
                condition, T[at + _CONDUCTANCE], boundary.scale, degrees, T[at + _BEAM]
            )
        passing = fraction * passing
        if owned and parts.size:
            of_part = np.float64(passing) - np.float64(fraction * T[at + _FROM_BEAM])
            parts[part] += np.float64(factor) * of_part
        gained = gained + passing
    return gained


@compiled
def find_rises(condition: Any, scale: Any, T: Any, at: int, count: int) -> None:
    """The temperature of each surface minus that of its cell."""
    film, emission, free = condition[FILM], condition[EMISSION], condition[FREE]
    zero = film - film
    i, n = np.uint64(at), np.uint64(count)
    if not emission > zero:
        _find_linear_rises(condition, T, i, n)
        return
    if _find_weak_rises(condition, scale, T, i, n) == count:
        return
    for j in range(n):
        if T[i + np.uint64(_FOUND) + j] == zero:
            T[i + np.uint64(_RISE) + j] = surface_rise(
                condition,
                *(T[i + np.uint64(_CONDUCTANCE) + j], scale, T[i + np.uint64(_DEGREES) + j]),
                T[i + np.uint64(_BEAM) + j],
            )


@compiled
def _find_linear_rises(condition: Any, T: Any, i: Any, n: Any) -> None:
    """Without radiation."""
    whole_vectors()
    film, free, ambient, flux = condition[FILM], condition[FREE], condition[AMBIENT], condition[FLUX]
    for j in range(n):
        linear = film * (ambient - T[i + np.uint64(_DEGREES) + j]) + free * (flux + T[i + np.uint64(_BEAM) + j])
        T[i + np.uint64(_RISE) + j] = linear / (free * T[i + np.uint64(_CONDUCTANCE) + j] + film)


@compiled
def _find_weak_rises(condition: Any, scale: Any, T: Any, i: Any, n: Any) -> Any:
    """The second-order step of :func:`surface_rise`; the number of surfaces for which it is accurate enough."""
    whole_vectors()
    film, ambient, flux_in, free = condition[FILM], condition[AMBIENT], condition[FLUX], condition[FREE]
    emission, surroundings, reference, tolerance = condition[EMISSION], condition[SURROUNDINGS], scale[0], scale[1]
    zero = film - film
    b, twice, found = surroundings + reference, emission + emission, 0
    for j in range(n):
        T_here = T[i + np.uint64(_DEGREES) + j]
        linear = film * (ambient - T_here) + free * (flux_in + T[i + np.uint64(_BEAM) + j])
        losses = free * T[i + np.uint64(_CONDUCTANCE) + j] + film
        a = T_here + reference
        exchange = emission * ((a + b) * (a * a + b * b))
        driving = exchange * (surroundings - T_here) + linear
        double, slope = a + a, (twice + twice) * (a * a * a) + losses
        step = driving / slope
        second = emission * step * (step * (double + double + step) + (double + a) * double) / slope
        T[i + np.uint64(_RISE) + j] = step - step * second
        settled = (abs(second) <= tolerance) & (a > zero) & (a + step > zero)
        T[i + np.uint64(_FOUND) + j] = settled
        found += np.int64(settled)
    return found


@compiled
def surface_rise(condition: Any, conductance: Any, scale: Any, T: Any, beam: Any) -> Any:
    """As :func:`heatsim.physics.boundary.surface_rise`, for one cell; ``scale`` is (reference, tolerance)."""
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
    a = T + reference
    exchange = emission * ((a + b) * (a * a + b * b))
    driving = exchange * to_surroundings + linear
    twice, double = emission + emission, a + a
    slope = (twice + twice) * (a * a * a) + losses
    step = driving / slope
    second = emission * step * (step * (double + double + step) + (double + a) * double) / slope
    if abs(second) <= tolerance and min(a, a + step) > zero:
        return step - step * second

    hottest = np.sqrt(np.sqrt((b * b) * (b * b) + max(flux, zero) / emission)) - reference
    most = max(max(to_ambient, zero), hottest - T)
    rise = min(driving / (losses + exchange), most)
    for _ in range(NEWTON_STEPS):
        a = max(T + rise + reference, zero)
        exchange = emission * ((a + b) * (a * a + b * b))
        excess = exchange * (to_surroundings - rise) + (linear - losses * rise)
        change = excess / ((twice + twice) * (a * a * a) + losses)
        rise = min(rise + change, most)
        if abs(change) <= tolerance * abs(rise):
            break
    return rise
