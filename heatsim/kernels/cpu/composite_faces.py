"""Heat of a composite body through the faces of the box. Up to SURFACES cells are done together, as vectors.

Functions here build the kernels: without the code for beams, for radiation, or for cells whose surface has several
conditions, if a body has none, because numba then compiles less. numba cannot cache a function that takes functions as
arguments; so a kernel gets them as variables of the function that builds it.
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.composite_cells import (
    BEAM_FIELDS,
    CONDUCTANCES,
    FACE_FIELDS,
    FIRST_SPOT,
    GAINS,
    IS_OPEN,
    MAP,
    SHARES,
    SIDE,
    SUMS,
    TYPES,
)
from heatsim.kernels.cpu.composite_surfaces import condition_of, enter_state, held_potential
from heatsim.kernels.cpu.lines import compiled, larger, smaller, wrap
from heatsim.kernels.cpu.march import MarchTile, RowBlock
from heatsim.kernels.cpu.plan import behind, bytes_at, doubles_at, longs_at, reals_at
from heatsim.kernels.cpu.surface_rises import (
    BEAM_AT,
    CONDUCTANCE_AT,
    DEGREES_AT,
    RISE_AT,
    SHARE_AT,
    SURFACES,
    find_linear_rises,
    find_rises,
)
from heatsim.physics.conditions import mixed_cells
from heatsim.physics.conditions.mixed_cells import MIXED
from heatsim.physics.conditions.surface_balance import FREE

place_of: Any = compiled(mixed_cells.place_of)


def adding_faces(*, beams: bool, mixed: bool, radiating: bool) -> Any:
    """Build the compiled function that adds the heat through the faces of the box to the sums of some rows.

    Args:
        beams: whether the body has beams.
        mixed: whether it has cells whose surface has several conditions.
        radiating: whether a condition has radiation, or a table of fluxes.
    """
    add_cells = _adding_cells(pass_parts if mixed else pass_nothing, find_rises if radiating else find_linear_rises)
    add_line = _adding_lines(gather_beams if beams else gather_nothing, add_cells)

    @compiled
    def add_faces(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any) -> None:
        nz, ny, nx, stride, count = plan.nz, plan.ny, plan.nx, plan.stride, rows.size
        z, y = wrap(rows.z, nz), wrap(rows.y, ny)
        first_owned, end_owned = tile.first_y - rows.y, tile.end_y - rows.y
        if not tile.first_z <= rows.z < tile.end_z:
            first_owned, end_owned = 0, 0
        # Faces in the order of composite/composite.cuh, so that edges and corners have the same bits.
        for face in range(6):
            fields = behind(longs_at(plan.faces), len(FACE_FIELDS) * face)
            if not fields[IS_OPEN]:
                continue
            far, axis = fields[SIDE] % 2, fields[SIDE] // 2
            if (axis == 1 and (y + count != ny if far else y != 0)) or (axis == 2 and z != (nz - 1) * far):
                continue
            # Lines of cells of the face: a column of all rows across x, else rows.
            first, end = (0, count) if axis == 2 else ((count - 1) * far * axis, (count - 1) * far * axis + 1)
            for row in range(first, end):
                x, n, distance = ((nx - 1) * far, count, stride) if axis == 0 else (0, nx, 1)
                owned = (larger(first_owned, 0), end_owned)
                if axis > 0:
                    owned = (0, nx if first_owned <= row < end_owned else 0)
                at = row * stride + x
                place = (y + row if axis == 2 else z, y if axis == 0 else 0)
                line = rows.here + at, plan.sums + at, distance
                add_line(plan, step, T, face, place, n, line, owned)

    return add_faces


def _adding_lines(gather: Any, add_cells: Any) -> Any:
    """Build the compiled function that adds the heat through a face to a line of its cells.

    Its arguments: the plan; the step of the call; the ring; the face; the place (v, u) of the line's first cell on its
    face of the ring, where the line runs along u; the number of cells; where the first cell is in the ring, where its
    sum is, and the distance to the next cell; the first cell whose heat is added to the ledger, and one after the last.
    """

    @compiled
    def add_line(plan: Any, step: int, T: Any, face: int, place: Any, n: int, line: Any, owned: Any) -> None:
        fields = behind(longs_at(plan.faces), len(FACE_FIELDS) * face)
        width = plan.ny if fields[SIDE] < 2 else plan.nx
        first = place[0] * width + place[1]
        numbers = behind(bytes_at(fields[MAP]), first)
        k = 0
        while k < n:
            number, end = np.int64(face), smaller(k + SURFACES, n)
            if fields[MAP]:
                number, most = np.int64(numbers[k]), end
                end = k + 1
                while number != MIXED and end < most and numbers[end] == number:
                    end += 1
            here, sums = behind(T, line[0] + k * line[2]), behind(T, line[1] + k * line[2])
            some = (first + k, end - k, larger(owned[0] - k, 0), smaller(owned[1], end) - k)
            flux = behind(T, plan.surfaces + BEAM_AT)
            for j in range(end - k):
                flux[j] = type(flux[j])(0.0)
            gather(plan, step, T, face, (place[0], place[1] + k), end - k)
            add_cells(plan, step, T, face, number, some, (here, sums, line[2]))
            k = end

    return add_line


def _adding_cells(pass_mixed: Any, find: Any) -> Any:
    """Build the compiled function that adds the heat of one condition, or of the conditions that share a cell.

    ``some`` are the place of the first cell on the face, the number of cells, and which of them are recorded.
    """

    @compiled
    def add_cells(plan: Any, step: int, T: Any, face: int, number: int, some: Any, line: Any) -> None:
        surface, fields = behind(T, plan.surfaces), behind(longs_at(plan.faces), len(FACE_FIELDS) * face)
        place, count, first_recorded, end_recorded = some
        here, sums, distance = line
        condition = condition_of(plan, T, step, number if number != MIXED else 0)
        varies = plan.potentials > 0
        held = varies and condition[FREE] == 0 and number != MIXED
        conductance, share = (
            behind(reals_at(fields[CONDUCTANCES], T), place),
            behind(reals_at(fields[SHARES], T), place),
        )
        gain, degrees = behind(reals_at(fields[GAINS], T), place), here
        if varies or distance > 1:
            for j in range(count):
                surface[DEGREES_AT + j] = here[j * distance]
            degrees = behind(surface, DEGREES_AT)
        if varies:
            for j in range(count):
                cell_type = np.int64(bytes_at(fields[TYPES])[place + j]) if fields[TYPES] else 0
                if held:
                    surface[RISE_AT + j] = (
                        held_potential(plan, T, step, number, cell_type) - here[j * distance + plan.potentials]
                    )
                enter_state(plan, surface, j, cell_type, conductance[j], share[j], held)
            conductance, share = behind(surface, CONDUCTANCE_AT), behind(surface, SHARE_AT)
        if number == MIXED:
            cell = (degrees, conductance, share[0], gain[0] * surface[BEAM_AT])
            surface[RISE_AT] = pass_mixed(plan, step, T, face, place, here, cell, end_recorded > first_recorded)
            surface[SHARE_AT] = type(surface[RISE_AT])(1.0)
            share = behind(surface, SHARE_AT)
        elif not held:
            find(condition, reals_at(plan.scale, T), surface, degrees, conductance, count)
        for j in range(count):
            sums[j * distance] += share[j] * surface[RISE_AT + j]
        if not fields[SUMS] or number == MIXED:  # mixed cells have a sum for each part
            return
        factor = np.float64(reals_at(plan.factors, T)[step * plan.factors_stride])
        ledger = behind(doubles_at(fields[SUMS]), place)
        for j in range(first_recorded, end_recorded):
            heat, from_beam = share[j] * surface[RISE_AT + j], gain[j] * surface[BEAM_AT + j]
            ledger[j] += factor * (np.float64(heat) - np.float64(from_beam))
        if plan.to_beams:
            of_beams = behind(ledger, plan.to_beams)
            for j in range(first_recorded, end_recorded):
                of_beams[j] += factor * np.float64(gain[j] * surface[BEAM_AT + j])

    return add_cells


@compiled
def gather_nothing(plan: Any, step: int, T: Any, face: int, place: Any, count: int) -> None:
    """Do nothing: there are no beams."""


@compiled
def gather_beams(plan: Any, step: int, T: Any, face: int, place: Any, count: int) -> None:
    """Add the flux of beams in W/m² at a line of cells of a face; ``place``: (v, u) of the first cell in the ring."""
    flux, (v, u) = behind(T, plan.surfaces + BEAM_AT), place
    weights = behind(reals_at(plan.beam_weights, T), step * plan.beam_weights_stride)
    on = behind(longs_at(plan.beams_on), step * plan.beams_on_stride)
    while on[0] >= 0:
        number = on[0]
        on, beam = behind(on, 1), behind(longs_at(plan.beams), BEAM_FIELDS * number)
        if beam[0] != face:
            continue
        first = behind(longs_at(plan.beam_first), step * plan.beam_first_stride + 2 * beam[FIRST_SPOT])
        for spot in range(longs_at(plan.beam_spots)[step * plan.beam_spots_stride + number]):
            first_u, first_v = first[2 * spot], first[2 * spot + 1]
            if first_v <= v < first_v + beam[4]:
                along_v = weights[beam[3] + spot * beam[4] + v - first_v]
                along_u = beam[1] + spot * beam[2] - first_u
                for cell in range(larger(u, first_u), smaller(u + count, first_u + beam[2])):
                    flux[cell - u] += along_v * weights[along_u + cell]


@compiled
def pass_nothing(plan: Any, step: int, T: Any, face: int, place: int, here: Any, cell: Any, recorded: bool) -> Any:
    """Return 0: no cell has several conditions."""
    return cell[2] - cell[2]


@compiled
def pass_parts(plan: Any, step: int, T: Any, face: int, place: int, here: Any, cell: Any, recorded: bool) -> Any:
    """The heat into a cell of a face through the parts of its surface, also added to the ledger.

    ``cell`` holds arrays with its temperature and its half's conductance; the half's share, and the heat of beams.
    """
    degrees, conductance, share, from_beam = cell
    surface, fields = behind(T, plan.surfaces), behind(longs_at(plan.faces), len(FACE_FIELDS) * face)
    places, number_of_cell = longs_at(plan.mixed_places), place_of(face, place)
    factor = reals_at(plan.factors, T)[step * plan.factors_stride]
    cell_type = np.int64(bytes_at(fields[TYPES])[place]) if fields[TYPES] else 0
    whole_share = reals_at(fields[SHARES], T)[place]
    gained = -(factor - factor)
    low, high = 0, plan.mixed_cells - 1
    while low < high:
        middle = (low + high) // 2
        if places[middle] < number_of_cell:
            low = middle + 1
        else:
            high = middle
    for part in range(longs_at(plan.mixed_first)[low], longs_at(plan.mixed_first)[low + 1]):
        number, fraction = longs_at(plan.mixed_numbers)[part], reals_at(plan.mixed_fractions, T)[part]
        condition = condition_of(plan, T, step, number)
        if plan.potentials > 0 and condition[FREE] == 0:
            passing = (
                fraction * whole_share * (held_potential(plan, T, step, number, cell_type) - here[plan.potentials])
            )
        else:
            find_rises(condition, reals_at(plan.scale, T), surface, degrees, conductance, 1)
            passing = fraction * share * surface[RISE_AT]
        if recorded and fields[SUMS]:
            light, sums = np.float64(fraction * from_beam), behind(doubles_at(plan.listed_sums), part)
            sums[0] += np.float64(factor) * (np.float64(passing) - light)
            if plan.to_beams:
                sums[plan.to_beams] += np.float64(factor) * light
        gained = gained + passing
    return gained
