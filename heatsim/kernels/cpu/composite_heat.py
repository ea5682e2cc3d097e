"""Heat that sources and gaps give to single cells of a composite body, and light on its surfaces towards void.

See composite/cell_heat.cu and the macro LIT in composite/composite.cuh; physics/conditions/gap_laws.py explains gaps.
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.composite_cells import (
    BEAM_FIELDS,
    FIRST_SPOT,
    NUMBER,
    TURNED,
    around,
    moved,
    row_number,
    state,
)
from heatsim.kernels.cpu.lines import compiled, whole_vectors
from heatsim.kernels.cpu.march import MarchTile, RowBlock
from heatsim.kernels.cpu.plan import behind, bytes_at, constant, doubles_at, get, ints_at, longs_at, put, reals_at
from heatsim.kernels.cpu.surface_rises import BEAM_AT, CONDUCTANCE_AT, LIGHT_AT, SURFACES
from heatsim.physics.cells.cell_heat import GAPS
from heatsim.physics.conditions.gap_laws import SETTLED, STEPS
from heatsim.physics.conditions.surface_balance import EMISSION, FILM, FLUX, NUMBERS, SURROUNDINGS

_FLOAT32, _FLOAT64 = (SETTLED[np.dtype(name)] for name in ("float32", "float64"))


@compiled
def add_cell_heat(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any) -> None:
    """Add the heat of sources to the sums of single cells in some rows."""
    first_row, starts = row_number(plan, rows), ints_at(plan.heated_rows)
    factor = np.float64(reals_at(plan.factors, T)[step * plan.factors_stride])
    first_owned, end_owned = tile.first_y - rows.y, tile.end_y - rows.y
    neighbours = around(plan, rows)
    if plan.heat_sums == 0 or not tile.first_z <= rows.z < tile.end_z:
        end_owned = first_owned
    for row in range(rows.size):
        begin, end = np.int64(starts[first_row + row]), np.int64(starts[first_row + row + 1])
        dark = not _any_on(plan, step, first_row + row)
        if dark and ints_at(plan.heated_by_beams)[first_row + row]:
            continue
        if dark and ints_at(plan.heated_alike)[first_row + row]:
            enters = first_owned <= row < end_owned
            for first in range(begin, end, SURFACES):
                count = end - first if end - first < SURFACES else SURFACES
                at = row * plan.stride + ints_at(plan.heated_x)[first]
                some = (first, count, begin, end - begin)
                _add_alike(plan, step, T, some, rows.here + at, plan.sums + at, enters)
            continue
        for cell in range(begin, end):
            at = row * plan.stride + ints_at(plan.heated_x)[cell]
            heat = _heat(plan, step, T, cell, T[rows.here + at])
            gained = heat
            if plan.heated_across != 0:
                gained += _heat_across(plan, step, T, cell, moved(neighbours, at))
            T[plan.sums + at] += gained
            if first_owned <= row < end_owned:
                doubles_at(plan.heat_sums)[cell] += factor * np.float64(heat)


@compiled
def _any_on(plan: Any, step: int, row: int) -> bool:
    """Whether a beam that is on in a step heats a cell of a row."""
    entry, end = longs_at(plan.heated_beam_first)[row], longs_at(plan.heated_beam_first)[row + 1]
    numbers, on = ints_at(plan.heated_beam_numbers), behind(longs_at(plan.beams_on), step * plan.beams_on_stride)
    while entry < end and on[0] >= 0:
        number = behind(longs_at(plan.beams), BEAM_FIELDS * on[0])[NUMBER]
        entry = _entry_from(numbers, entry, end, number)
        if entry < end and numbers[entry] == number:
            return True
        on = behind(on, 1)
    return False


@compiled
def _entry_from(numbers: Any, first: Any, end: Any, number: Any) -> Any:
    """The first of some entries whose number is at least ``number``, or their end; looked for near the first one."""
    stride, high = np.int64(1), np.int64(first)
    while high < end and numbers[high] < number:
        first, high, stride = high + 1, high + stride, 2 * stride
    high = high if high < end else end
    while first < high:
        middle = (first + high) // 2
        if numbers[middle] < number:
            first = middle + 1
        else:
            high = middle
    return first


@compiled
def _add_alike(plan: Any, step: int, T: Any, cells: Any, here: int, sums: int, enters: bool) -> None:
    """The same for neighbours along x with equal amounts, without gaps, where no beam shines.

    ``cells``: the first cell, the number of cells, the first cell of the row, and the number of cells of the row. A row
    has the weights of the first entries of all its cells, then those of their second entries, and so on.
    """
    first, n, of_row, row_count = cells
    count, cell = np.uint64(n), longs_at(plan.heated_first)[of_row]
    each = longs_at(plan.heated_first)[of_row + 1] - cell
    heat, zero, total = np.uint64(plan.surfaces), T[here] - T[here], np.uint64(sums)
    amounts = behind(reals_at(plan.amounts, T), step * plan.amounts_stride)
    whole_vectors()
    number, weights = np.int64(ints_at(plan.heated_numbers)[cell]), reals_at(plan.alike_weights, T)
    if each == 1 and np.int64(ints_at(plan.heated_table_of)[number]) < 0:
        amount, weights = amounts[number], behind(weights, cell + (first - of_row))
        for j in range(count):
            gained = zero + constant(weights, j) * amount
            put(T, heat + j, gained)
            put(T, total + j, get(T, total + j) + gained)
        if enters:
            _enter_ledger(plan, T, step, first, n)
        return
    for j in range(count):
        put(T, heat + j, zero)
    for entry in range(each):
        number = np.int64(ints_at(plan.heated_numbers)[cell + entry])
        amount, table = amounts[number], np.int64(ints_at(plan.heated_table_of)[number])
        weights = behind(reals_at(plan.alike_weights, T), cell + entry * row_count + (first - of_row))
        if table < 0:
            for j in range(count):
                put(T, heat + j, get(T, heat + j) + constant(weights, j) * amount)
            continue
        degrees = np.int64(here)
        if plan.potentials > 0:
            degrees = np.int64(plan.surfaces) + CONDUCTANCE_AT
            for j in range(n):
                T[degrees + j], _ = state(plan, T, np.int64(bytes_at(plan.heated_type)[first + j]), T[here + j])
        _add_densities(plan, T, table, degrees, weights, amount, n)
    for j in range(count):
        put(T, total + j, get(T, total + j) + get(T, heat + j))
    if enters:
        _enter_ledger(plan, T, step, first, n)


@compiled
def _add_densities(plan: Any, T: Any, number: int, here: int, weights: Any, amount: Any, n: int) -> None:
    """Add weight · amount · density of a table to the heat of n cells, whose T − T_ref begin at ``here``."""
    table, zero, one = behind(reals_at(plan.heated_tables, T), 4 * number), T[here] - T[here], type(T[here])(1.0)
    last, per_kelvin, low = table[1], table[2], table[3]
    entries, heat, degrees = (
        behind(reals_at(plan.heated_entries, T), 2 * np.int64(table[0])),
        np.uint64(plan.surfaces),
        np.uint64(here),
    )
    whole_vectors()
    for j in range(np.uint64(n)):
        steps = (get(T, degrees + j) - low) * per_kelvin
        steps = steps if steps > zero else zero  # also for NaN
        steps = steps if steps < last else last
        step = np.floor(steps)
        step = step if step < last - one else last - one
        entry = np.uint64(2 * np.int64(step))
        value, rise = constant(entries, entry), constant(entries, entry + np.uint64(1))
        put(T, heat + j, get(T, heat + j) + constant(weights, j) * amount * (value + rise * (steps - step)))


@compiled
def _enter_ledger(plan: Any, T: Any, step: int, first: int, n: int) -> None:
    """Add the heat of n cells to the ledger."""
    factor = np.float64(reals_at(plan.factors, T)[step * plan.factors_stride])
    ledger, heat = behind(doubles_at(plan.heat_sums), first), behind(T, plan.surfaces)
    whole_vectors()
    for j in range(n):
        ledger[j] += factor * np.float64(heat[j])


@compiled
def _heat(plan: Any, step: int, T: Any, cell: int, value: Any) -> Any:
    """The heat of the entries of a cell, in K; ``value`` is that of the field."""
    first, numbers, weights = (
        longs_at(plan.heated_first),
        ints_at(plan.heated_numbers),
        reals_at(plan.heated_weights, T),
    )
    amounts = behind(reals_at(plan.amounts, T), step * plan.amounts_stride)
    heat, entry, end = type(value)(0.0), first[cell], first[cell + 1]
    while entry < end:
        number = np.int64(numbers[entry])
        given, table = weights[entry] * amounts[number], np.int64(ints_at(plan.heated_table_of)[number])
        if table >= 0:
            degrees = value
            if plan.potentials > 0:
                degrees, _ = state(plan, T, np.int64(bytes_at(plan.heated_type)[cell]), value)
            given *= _density(plan, T, table, degrees)
        heat += given
        entry += 1
    entry, end = longs_at(plan.others_first)[cell], longs_at(plan.others_first)[cell + 1]
    numbers, weights = ints_at(plan.others_numbers), reals_at(plan.others_weights, T)
    on = behind(longs_at(plan.beams_on), step * plan.beams_on_stride)
    while entry < end and on[0] >= 0:
        number = behind(longs_at(plan.beams), BEAM_FIELDS * on[0])[NUMBER]
        entry = _entry_from(numbers, entry, end, number)
        if entry < end and numbers[entry] == number:
            flux = flux_of(plan, step, T, on[0], behind(ints_at(plan.others_spots), 2 * entry))
            heat += weights[entry] * (amounts[plan.amount_count] * flux)
        on = behind(on, 1)
    return heat


@compiled
def _density(plan: Any, T: Any, number: int, degrees: Any) -> Any:
    """The density of a table in W/m³ at T − T_ref in K."""
    table, zero, one = behind(reals_at(plan.heated_tables, T), 4 * number), type(degrees)(0.0), type(degrees)(1.0)
    steps, last = (degrees - table[3]) * table[2], table[1]
    steps = steps if steps > zero else zero  # also for NaN
    steps = steps if steps < last else last
    step = np.floor(steps)
    step = step if step < last - one else last - one
    entry = behind(reals_at(plan.heated_entries, T), 2 * np.int64(table[0] + step))
    return entry[0] + entry[1] * (steps - step)


@compiled
def flux_of(plan: Any, step: int, T: Any, number: int, spot: Any) -> Any:
    """The flux of a beam in W/m² at a cell (u, v) of its face; 0 beyond the windows of its spots in the step.

    ``number``: of the beam among those of the step inputs.
    """
    beam = behind(longs_at(plan.beams), BEAM_FIELDS * number)
    first = behind(longs_at(plan.beam_first), step * plan.beam_first_stride + 2 * beam[FIRST_SPOT])
    weights = behind(reals_at(plan.beam_weights, T), step * plan.beam_weights_stride)
    at_u, at_v = np.int64(spot[beam[TURNED]]), np.int64(spot[1 - beam[TURNED]])
    flux = type(weights[0])(0.0)
    for n in range(longs_at(plan.beam_spots)[step * plan.beam_spots_stride + number]):
        u, v = at_u - first[2 * n], at_v - first[2 * n + 1]
        if 0 <= u < beam[2] and 0 <= v < beam[4]:
            flux += weights[beam[1] + n * beam[2] + u] * weights[beam[3] + n * beam[4] + v]
    return flux


@compiled
def no_light(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any, first: int, count: int) -> None:
    """Do nothing: there are no beams."""


@compiled
def light(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any, first: int, count: int) -> None:
    """Gather the flux of beams on some void surfaces, and its heat in their cells."""
    surface, zero = behind(T, plan.surfaces), T[rows.here] - T[rows.here]
    for j in range(count):
        surface[BEAM_AT + j] = surface[LIGHT_AT + j] = zero
        if not bytes_at(plan.surface_lit)[first + j]:
            continue
        side, flux = np.int64(ints_at(plan.surface_side)[first + j]), zero
        spot = np.int64(ints_at(plan.surface_u)[first + j]), np.int64(ints_at(plan.surface_v)[first + j])
        on = behind(longs_at(plan.beams_on), step * plan.beams_on_stride)
        while on[0] >= 0:
            if behind(longs_at(plan.beams), BEAM_FIELDS * on[0])[0] == side:
                flux += flux_of(plan, step, T, on[0], spot)
            on = behind(on, 1)
        surface[BEAM_AT + j] = reals_at(plan.surface_weight, T)[first + j] * flux
        gain = reals_at(plan.surface_gain, T)[first + j]
        surface[LIGHT_AT + j] = reals_at(plan.surface_fraction, T)[first + j] * (gain * flux)


@compiled
def _heat_across(plan: Any, step: int, T: Any, cell: int, places: Any) -> Any:
    """The heat in K that a heated cell gets through gaps; ``places``: of it and its neighbours, see ``around``."""
    below, south, here, north, above = places
    first, numbers, heat = longs_at(plan.others_first), ints_at(plan.others_numbers), type(T[here])(0.0)
    for entry in range(_entry_from(numbers, first[cell], first[cell + 1], GAPS), first[cell + 1]):
        law = np.int64(numbers[entry]) - GAPS
        spot = behind(ints_at(plan.others_spots), 2 * entry)
        side, link = np.int64(spot[0]), behind(reals_at(plan.heated_across, T), 3 * np.int64(spot[1]))
        other = here - 1 if side == 0 else here + 1
        if side >= 2:
            other = south if side == 2 else north if side == 3 else below if side == 4 else above
        own, conducting = state(plan, T, np.int64(bytes_at(plan.heated_type)[cell]), T[here])
        there, conducting_there = state(plan, T, np.int64(bytes_at(plan.others_beside)[entry]), T[other])
        rows = behind(reals_at(plan.conditions, T), step * plan.conditions_stride + NUMBERS * law)
        reference = reals_at(plan.reference, T)[0]
        amount = behind(reals_at(plan.amounts, T), step * plan.amounts_stride)[plan.amount_count]
        if side % 2 == 1:
            flux = -_gap_flux(rows, reference, own, there, link[0] / conducting, link[1] / conducting_there, link[2])
        else:
            flux = _gap_flux(rows, reference, there, own, link[0] / conducting_there, link[1] / conducting, link[2])
        heat += reals_at(plan.others_weights, T)[entry] * (amount * flux)
    return heat


@compiled
def _gap_flux(law: Any, reference: Any, below: Any, above: Any, low_half: Any, high_half: Any, ratio: Any) -> Any:
    """The heat flux in W/m² of the voxel face from the lower cell to the upper one."""
    real = type(below)
    half, one, two, twelve = real(0.5), real(1.0), real(2.0), real(12.0)
    tolerance = real(_FLOAT32 if real(1.0) + real(1e-9) == real(1.0) else _FLOAT64)
    difference, whole = below - above, low_half + high_half
    start, bend = (below + above) * half, (high_half - low_half) / whole * half * difference
    factor, emission = ratio * whole, law[SURROUNDINGS]
    f, low, high = real(0.0), real(0.0), real(1.0)
    for _ in range(STEPS):
        apart = difference * (one - f)
        conductance, slope, middle = _gap_at(law, reference, start + bend * f, apart)
        b = factor * conductance
        g = b * (one - f) - f
        rise = (slope + emission * (twelve * middle * middle + apart * apart)) * bend
        rise = rise - emission * middle * two * apart * difference
        falls = b + one - factor * rise * (one - f)
        if g >= real(0.0):
            low = f
        else:
            high = f
        found = f + g / falls
        if not (found >= low and found <= high):
            found = (low + high) * half
        change = abs(found - f)
        f = found
        if change <= tolerance * found:
            break
    return f * difference / whole


@compiled
def _gap_at(law: Any, reference: Any, middle: Any, apart: Any) -> Any:
    """The conductance, dH/dT and T in K where the deviation of the middle temperature is ``middle``."""
    real = type(middle)
    count = np.int64(law[FILM])
    nodes, values = behind(law, np.int64(law[EMISSION])), behind(law, np.int64(law[FLUX]))
    at = middle if middle > nodes[0] else nodes[0]  # also for NaN
    at = at if at < nodes[count - 1] else nodes[count - 1]
    segment, end = np.int64(0), count - 1
    while end - segment > 1:
        tried = (segment + end) // 2
        if nodes[tried] <= at:
            segment = tried
        else:
            end = tried
    begin, value = nodes[segment], values[segment]
    slope = (values[segment + 1] - value) / (nodes[segment + 1] - begin)
    value = value + slope * (at - begin)
    slope = slope if at == middle else real(0.0)
    absolute = middle + reference
    absolute = absolute if absolute > real(0.0) else real(0.0)
    radiating = law[SURROUNDINGS] * absolute * (real(4.0) * absolute * absolute + apart * apart)
    return value + radiating, slope, absolute
