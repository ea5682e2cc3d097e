"""Heat of a composite body through the faces of the box and through surfaces towards void."""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.composite_cells import (
    CELL_TYPE,
    CONDUCTANCE,
    GAIN,
    SHARE,
    CompiledBody,
    CompiledStep,
    CompiledTables,
    inlined,
    state,
)
from heatsim.kernels.cpu.rows import compiled
from heatsim.physics import mixed_cells
from heatsim.physics.mixed_cells import MIXED
from heatsim.physics.surface_balance import AMBIENT, EMISSION, FILM, FLUX, FREE, NEWTON_STEPS, SURROUNDINGS

place_of: Any = inlined(mixed_cells.place_of)


@inlined
def pass_to_void(
    content: Any,
    driving: Any,
    body: CompiledBody,
    tables: CompiledTables,
    step: CompiledStep,
    exposed: Any,
    i: int,
    cell_type: int,
    surfaces: Any,
) -> Any:
    """The heat into a cell through surfaces towards void, also added to the ledger.

    ``surfaces`` has six flags, x−, x+, …, z+.
    """
    rank, number = rank_of(body.bits, body.before, i), body.void_condition
    degrees, conducting = state(tables, cell_type, content)
    gained = content - content
    for side in range(6):
        weight = body.weights[rank, side]
        if surfaces[side] and weight != 0:
            half, nothing = tables.halves[cell_type, side // 2], degrees - degrees
            conductance = half[CONDUCTANCE] * conducting * weight
            share, difference = _from_surface(
                half, conductance, body, step, number, cell_type, degrees, conducting, driving, nothing
            )
            gained = gained + share * difference
    if exposed.size:
        exposed[rank] += np.float64(step.factor) * np.float64(gained)
    return gained


@inlined
def _from_surface(
    half: Any,
    conductance: Any,
    body: CompiledBody,
    step: CompiledStep,
    number: int,
    cell_type: int,
    degrees: Any,
    conducting: Any,
    driving: Any,
    beam: Any,
) -> Any:
    """The heat from a surface with condition ``number`` into its cell, as (share, difference in K).

    ``conductance`` is that of the half cell, divided by the area of the smooth surface.
    """
    condition = step.conditions[number]
    if step.held.size and condition[FREE] == 0:
        return half[SHARE], step.held[number, cell_type] - driving
    return half[SHARE] * conducting, _surface_rise(condition, conductance, body.scale, degrees, beam)


@inlined
def rank_of(bits: Any, before: Any, cell: int) -> Any:
    """Number of cells with weights before a cell."""
    word = bits[cell // 32]
    earlier = np.uint32(word & np.uint32((1 << (cell % 32)) - 1))
    count = np.int64(before[cell // 32])
    while earlier:
        earlier = np.uint32(earlier & np.uint32(earlier - np.uint32(1)))
        count += 1
    return count


@inlined
def add_face(
    T: Any,
    driving: Any,
    T_new: Any,
    body: CompiledBody,
    tables: CompiledTables,
    step: CompiledStep,
    of_face: Any,
    face: int,
    z: int,
    y: int,
) -> None:
    """Add the heat through a face to the cells of a row that lie at it.

    ``of_face``: the numbers of the cells' conditions, the flux of beams, and the ledger's sums of the face, of beams,
    and of all parts of mixed cells.
    """
    numbers, beams, sums, beam_sums, parts = of_face
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
        cell_type = body.cells[i] & CELL_TYPE if body.cells.size else 0
        half = tables.halves[cell_type, axis]
        if half[CONDUCTANCE] == 0:
            continue
        number = numbers[v, u] if numbers.size else face
        beam = beams[v, u] if beams.size else T[i] - T[i]
        degrees, conducting = state(tables, cell_type, T[i])
        from_beam = half[GAIN] * beam
        if number == MIXED:
            place = place_of(face, v * numbers.shape[1] + u)
            cell = (half, cell_type, degrees, conducting, driving[i], beam, from_beam)
            heat = _pass_parts(body, step, place, cell, parts)
        else:
            conductance = half[CONDUCTANCE] * conducting
            share, difference = _from_surface(
                half, conductance, body, step, number, cell_type, degrees, conducting, driving[i], beam
            )
            heat = share * difference
        T_new[i] += heat
        if sums.size:
            sums[v, u] += np.float64(step.factor) * (np.float64(heat) - np.float64(from_beam))
        if beam_sums.size:
            beam_sums[v, u] += np.float64(step.factor) * np.float64(from_beam)


@compiled
def _pass_parts(body: CompiledBody, step: CompiledStep, place: int, cell: Any, parts: Any) -> Any:
    """The heat into a cell through the parts of its face, also added to the ledger."""
    half, cell_type, degrees, conducting, driving, beam, from_beam = cell
    low, high = 0, len(body.places) - 1
    while low < high:
        middle = (low + high) // 2
        if body.places[middle] < place:
            low = middle + 1
        else:
            high = middle
    gained = -(degrees - degrees)
    for part in range(body.first[low], body.first[low + 1]):
        number, fraction = body.numbers[part], body.fractions[part]
        share, difference = _from_surface(
            half, half[CONDUCTANCE] * conducting, body, step, number, cell_type, degrees, conducting, driving, beam
        )
        passing = fraction * (share * difference)
        if parts.size:
            parts[part] += np.float64(step.factor) * (np.float64(passing) - np.float64(fraction * from_beam))
        gained = gained + passing
    return gained


@compiled
def _surface_rise(condition: Any, conductance: Any, scale: Any, T: Any, beam: Any) -> Any:
    """As :func:`heatsim.physics.surface_balance.surface_rise`, for one cell; ``scale`` is (reference, tolerance)."""
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
