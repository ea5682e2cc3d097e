"""Heat of a composite body through surfaces towards void. Up to SURFACES of them are done together, as vectors."""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.composite_cells import row_number
from heatsim.kernels.cpu.composite_heat import light, no_light
from heatsim.kernels.cpu.composite_surfaces import condition_of, enter_state, held_potential
from heatsim.kernels.cpu.lines import compiled
from heatsim.kernels.cpu.march import MarchTile, RowBlock
from heatsim.kernels.cpu.plan import behind, bytes_at, doubles_at, ints_at, reals_at
from heatsim.kernels.cpu.surface_rises import (
    BEAM_AT,
    CONDUCTANCE_AT,
    DEGREES_AT,
    LIGHT_AT,
    RISE_AT,
    SHARE_AT,
    SURFACES,
    find_linear_rises,
    find_rises,
)
from heatsim.physics.conditions.surface_balance import FREE


def adding_void(*, radiating: bool, beams: bool) -> Any:
    """Build the compiled function that adds the heat through surfaces towards void to the sums of some rows.

    Args:
        radiating: whether a condition has radiation, or a table of fluxes.
        beams: whether the body has beams.
    """
    add_alike = _adding_alike(find_rises if radiating else find_linear_rises, light if beams else no_light)

    @compiled
    def add_void(plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any) -> None:
        first_row, starts, numbers = (
            row_number(plan, rows),
            ints_at(plan.surface_first),
            ints_at(plan.surface_condition),
        )
        begin, end = np.int64(starts[first_row]), np.int64(starts[first_row + rows.size])
        surface, gained = behind(T, plan.surfaces), T[rows.here] - T[rows.here]
        for j in range(SURFACES):
            surface[BEAM_AT + j] = surface[LIGHT_AT + j] = gained
        while begin < end:
            # Up to the next surface with another condition.
            number, last = np.int64(numbers[begin]), end
            if plan.void_conditions > 1:
                last = begin + 1
                while last < end and numbers[last] == number:
                    last += 1
            gained = add_alike(plan, tile, step, rows, T, number, begin, last, gained)
            begin = last

    return add_void


def _adding_alike(find: Any, gather: Any) -> Any:
    """Build the compiled function that adds the heat through surfaces towards void with one condition."""

    @compiled
    def add_alike(
        plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any, number: int, begin: int, end: int, gained: Any
    ) -> Any:
        """Add the heat through the surfaces from ``begin`` to before ``end``, which have condition ``number``.

        ``gained`` is the heat so far of the cell with the first surface. Returns the heat so far of the cell with the
        last surface, 0 if it is complete.
        """
        first_row, varies, surface = row_number(plan, rows), plan.potentials > 0, behind(T, plan.surfaces)
        condition = condition_of(plan, T, step, number)
        held = varies and condition[FREE] == 0
        for first in range(begin, end, SURFACES):
            count = end - first if end - first < SURFACES else SURFACES
            conductance = behind(reals_at(plan.surface_conductance, T), first)
            share = behind(reals_at(plan.surface_share, T), first)
            row, x = behind(ints_at(plan.surface_row), first), behind(ints_at(plan.surface_x), first)
            for j in range(count):
                surface[DEGREES_AT + j] = T[rows.here + (row[j] - first_row) * plan.stride + x[j]]
            if varies:
                cell_types = behind(bytes_at(plan.surface_type), first)
                for j in range(count):
                    cell_type, at = np.int64(cell_types[j]), (row[j] - first_row) * plan.stride + x[j]
                    if held:
                        at_ambient = held_potential(plan, T, step, number, cell_type)
                        surface[RISE_AT + j] = at_ambient - T[rows.here + at + plan.potentials]
                    enter_state(plan, surface, j, cell_type, conductance[j], share[j], held)
                    surface[CONDUCTANCE_AT + j] *= reals_at(plan.surface_weight, T)[first + j]
                conductance, share = behind(surface, CONDUCTANCE_AT), behind(surface, SHARE_AT)
            if plan.lit:
                gather(plan, tile, step, rows, T, first, count)
            if not held:
                find(condition, reals_at(plan.scale, T), surface, surface, conductance, count)
            gained = _enter_void(plan, tile, step, rows, T, (first, count), share, gained)
        return gained

    return add_alike


@compiled
def _enter_void(
    plan: Any, tile: MarchTile, step: int, rows: RowBlock, T: Any, some: Any, share: Any, gained: Any
) -> Any:
    """Add the heat of some void surfaces to the sums and to the ledger.

    ``some`` has the first surface and their number. ``gained`` is the heat so far of the cell with the first surface.
    Returns the heat so far of the cell with the last surface, 0 if it is complete.
    """
    first, count = some
    row, x = behind(ints_at(plan.surface_row), first), behind(ints_at(plan.surface_x), first)
    places, fraction = behind(ints_at(plan.surface_sum), first), behind(reals_at(plan.surface_fraction, T), first)
    is_last, sums, rise = (
        behind(bytes_at(plan.surface_last), first),
        doubles_at(plan.listed_sums),
        plan.surfaces + RISE_AT,
    )
    factor = np.float64(reals_at(plan.factors, T)[step * plan.factors_stride])
    # Rows are counted from the first one on.
    first_row, first_owned, end_owned = row_number(plan, rows), tile.first_y - rows.y, tile.end_y - rows.y
    if plan.listed_sums == 0 or not tile.first_z <= rows.z < tile.end_z:
        end_owned = first_owned
    for j in range(count):
        passing = fraction[j] * share[j] * T[rise + j]
        gained = gained + passing
        if is_last[j]:
            T[plan.sums + (row[j] - first_row) * plan.stride + x[j]] += gained
            gained = gained - gained
        if first_owned <= row[j] - first_row < end_owned:
            light = np.float64(T[plan.surfaces + LIGHT_AT + j])
            sums[places[j]] += factor * (np.float64(passing) - light)
            if plan.to_beams:
                sums[places[j] + plan.to_beams] += factor * light
    return gained
