"""The NumPy oracle for composite bodies, which defines the result.

It does the operations of composite/composite.cuh in the same order and without fma.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.composite.tables import EnthalpyTables
from heatsim.kernels.cpu.composite_body import CompositeCall, Field, HostBody, StepRow
from heatsim.kernels.cpu.composite_layout import weighted_cells
from heatsim.kernels.cpu.oracle import choose_tiling, links_of_planes, neighbours, run_sweeps
from heatsim.kernels.cpu.planes import GAIN, HALF, across, factors_of, half_cells
from heatsim.physics.cells.cell_heat import GAPS
from heatsim.physics.cells.cell_types import INTERIOR
from heatsim.physics.conditions.gap_laws import GapLinks
from heatsim.physics.conditions.surface_balance import FREE, NUMBERS
from heatsim.physics.conditions.surface_laws import SurfaceConditions
from heatsim.physics.operator.boundary_faces import BoundaryFaces, of_map
from heatsim.physics.operator.gap_links import neighbours as neighbours_of


class Inside(NamedTuple):
    """Cells: type, T − T_ref in K, k(T)/k(T_ref), potential in K. Arrays of equal shapes."""

    cell_type: NDArray[np.uint8]
    T: Field
    conducting: Field
    potential: Field


def advance_numpy(T: Field, T_new: Field, call: CompositeCall, step: int) -> None:
    """One step of the whole field, T to T_new; ``step`` counts from 0 in the call."""
    periodic, body, tables, base = call.periodic, call.body, call.tables, call.base
    row = call.steps.row(step)
    cell_type = (body.cells if body.cells.size else np.zeros(T.shape, np.uint8)) & ~np.uint8(INTERIOR)
    around = [pair for axis in range(3) for pair in neighbours(T, 2 - axis, periodic[axis])]
    beside = [pair for axis in range(3) for pair in neighbours(cell_type, 2 - axis, periodic[axis])]

    cells = Inside(cell_type, T, np.ones_like(T), T)
    if body.enthalpies.vary:
        cells = Inside(
            cell_type, *temperatures(body.enthalpies, cell_type, T), _potentials(body.enthalpies, cell_type, T)
        )
        total = _conduct_by_enthalpy(cells, around, beside, call)
    elif call.scheme == "seven_term":
        *sides, below, above = around
        total = tables.c[5] * below
        for coefficient, value in zip((*tables.c[:5], tables.c[6]), (T, *sides, above), strict=True):
            total = total + coefficient * value
    else:
        total = np.full_like(T, -0.0)
        weights, factors = _link_weights(body, T), links_of_planes(body.planes, T)
        for n, neighbour in enumerate(around):
            plain = tables.links[n // 2, cell_type, beside[n]] if body.cells.size else tables.c[1 + n]
            total = total + plain * factors[n] * weights[n] * (neighbour - T)
    # Adding -0 changes no bit of any number.
    total = np.where(cell_type >= body.first_heated, row.heat[cell_type], T.dtype.type(-0.0)) + total

    heat = np.full_like(T, -0.0)
    for faces in body.surfaces_towards_void(periodic):
        _exchange(faces, cells, call, row, heat)
    total = total + heat
    for side in range(6):
        if not periodic[side // 2]:
            heat, faces = np.full_like(T, -0.0), of_map(body.maps[side], body.mixed, body.materials.grid, side)
            _exchange(faces.where(faces.types(body.materials) != body.void), cells, call, row, heat)
            total = total + heat

    if len(body.heated):
        heat = cell_heat(cells.T, body, row)
        total.reshape(-1)[body.heated.cells] += heat + _heat_across(cells, body, row)
        if call.ledger.cells.size:
            call.ledger.cells[...] += np.float64(row.factor) * heat.astype(np.float64)

    if call.scheme == "seven_term":
        T_new[...] = total
    else:
        T_new[...] = row.factor * total + (T if base is None else base if base.size else T.dtype.type(0.0))


def temperatures(enthalpies: EnthalpyTables, cell_type: NDArray[np.uint8], contents: Field) -> tuple[Field, Field]:
    """T − T_ref in K, and k(T)/k(T_ref)."""
    entry, into = _steps(enthalpies, cell_type, contents)
    temperature, warming, conductivity, change = np.moveaxis(enthalpies.states[entry], -1, 0)
    return temperature + warming * into, conductivity + change * into


def _potentials(enthalpies: EnthalpyTables, cell_type: NDArray[np.uint8], contents: Field) -> Field:
    entry, into = _steps(enthalpies, cell_type, contents)
    value, rise = np.moveaxis(enthalpies.potentials[entry], -1, 0)
    return np.asarray(value + rise * into)


def _steps(
    enthalpies: EnthalpyTables, cell_type: NDArray[np.uint8], contents: Field
) -> tuple[NDArray[np.int64], Field]:
    """The table entries for contents, and the distances from the start of their steps, in steps."""
    per_kelvin, first, last = np.moveaxis(enthalpies.places[cell_type], -1, 0)
    steps = contents * per_kelvin
    step = np.fmin(np.fmax(np.floor(steps), first), last)
    return enthalpies.bases[cell_type] + step.astype(np.int64), steps - step


def _link_weights(body: HostBody, T: Field) -> Field:
    """The weights of links towards x−, x+, …, z+, shape (6, nz, ny, nx), or (6, 1, 1, 1) if all are 1."""
    if not body.contacts:
        return np.ones((6, 1, 1, 1), dtype=T.dtype)
    weights = np.ones((6, T.size), dtype=T.dtype)
    weights[:, weighted_cells(body, T.size)] = body.weights.T
    return weights.reshape(6, *T.shape)


def _conduct_by_enthalpy(
    cells: Inside, around: Sequence[Field], beside: Sequence[NDArray[np.uint8]], call: CompositeCall
) -> Field:
    """The sum over neighbours if materials vary with temperature; see composite/varying.cuh."""
    body, tables = call.body, call.tables
    enthalpies, cell_type, one = body.enthalpies, cells.cell_type, cells.T.dtype.type(1.0)
    weights, links = _link_weights(body, cells.T), links_of_planes(body.planes, cells.T)
    planes = factors_of(body.planes, cells.T.shape, cells.T.dtype)
    total = np.full_like(cells.T, -0.0)
    for n, (contents, other) in enumerate(zip(around, beside, strict=True)):
        axis, side = divmod(n, 2)
        alike = enthalpies.bases[cell_type] == enthalpies.bases[other]
        inner = tables.links[axis, cell_type, other] * links[n]
        inner = inner * (_potentials(enthalpies, other, contents) - cells.potential)
        conductance, _, gain, _ = np.moveaxis(tables.halves[cell_type, axis], -1, 0)
        conductance, gain = (
            number * across(axis, planes[axis][row + side]) for number, row in ((conductance, HALF), (gain, GAIN))
        )
        facing = across(axis, planes[axis][HALF + 1 - side])
        further = tables.halves[other, axis, 0] * neighbours(facing, 2 - axis, call.periodic[axis])[side]
        conducts = (conductance > 0) & (further > 0)
        degrees_there, conducting_there = temperatures(enthalpies, other, contents)
        own, its = (
            np.where(conducts, half, one) for half in (conductance * cells.conducting, further * conducting_there)
        )
        share = gain / (one / own + one / its + enthalpies.resistances[cell_type, other] * weights[n])
        between = np.where(conducts, share * (degrees_there - cells.T), cells.T.dtype.type(0.0))
        total = total + np.where(alike, inner, between)
    return total


def _exchange(faces: BoundaryFaces, inside: Inside, call: CompositeCall, row: StepRow, heat: Field) -> None:
    """Add the heat through boundary faces to ``heat``, an array of the grid, and to the ledger."""
    body, tables, one = call.body, call.tables, inside.T.dtype.type(1.0)
    cells = Inside(*(values.reshape(-1)[faces.cells] for values in inside))
    weight = body.weights[faces.places, faces.side] if faces.towards_void else one
    fractions, lit = faces.fractions.astype(inside.T.dtype), faces.lit(body.materials)
    flux = np.zeros(len(faces), inside.T.dtype)
    if lit is not None and row.beams[faces.side].size:
        flux = np.where(lit >= 0, row.beams[faces.side].reshape(-1)[lit], flux)
    axis, planes = faces.axis, factors_of(body.planes, inside.T.shape, inside.T.dtype)
    plane = np.unravel_index(faces.cells, inside.T.shape)[2 - axis]
    conductance, share, gain = half_cells(tables.halves[cells.cell_type, axis], planes[axis], faces.side % 2, plane)
    conditions = SurfaceConditions(row.conditions, faces.conditions)
    half = conductance * cells.conducting * weight
    difference = conditions.rises(half, body.reference, cells.T, weight * flux)
    if body.enthalpies.vary:
        held = row.conditions[faces.conditions][..., FREE] == 0
        difference = np.where(held, row.held[faces.conditions, cells.cell_type] - cells.potential, difference)
        share = np.where(held, share, share * cells.conducting)
    passing = fractions * share * difference
    np.add.at(heat.reshape(-1), faces.cells, passing)
    if call.ledger.layout.records(faces):
        places, light = call.ledger.layout.places_of(faces), (fractions * (gain * flux)).astype(np.float64)
        np.add.at(call.ledger.values, places, np.float64(row.factor) * (passing.astype(np.float64) - light))
        if call.ledger.layout.has_beams:
            np.add.at(call.ledger.values, places + call.ledger.layout.to_beams, np.float64(row.factor) * light)


def cell_heat(T: Field, body: HostBody, row: StepRow) -> Field:
    """The heat in K that sources give to each heated cell in a step, from T − T_ref of all cells in K."""
    heated, count = body.heated, len(body.heated.table_of)
    warmth, dtype = T.reshape(-1)[heated.cells], heated.weights.dtype
    entries = np.zeros(len(heated.numbers), dtype)
    owners = np.repeat(np.arange(len(heated)), np.diff(heated.first))
    for number, table in enumerate(heated.table_of.tolist()):
        some = heated.numbers == number
        entries[some] = heated.weights[some] * row.amounts[number]
        if table >= 0:
            entries[some] *= _densities(heated.tables[table], heated.entries, warmth[owners[some]])
    for beam in row.spots:
        some = np.flatnonzero(heated.numbers == count + beam.number)
        entries[some] = heated.weights[some] * (row.amounts[count] * beam.fluxes(0, heated.spots[some]))
    heat = np.zeros(len(heated), dtype)
    counts = np.diff(heated.first)
    for nth in range(counts.max()):
        some = np.flatnonzero(counts > nth)
        heat[some] += entries[heated.first[some] + nth]
    return heat


def _heat_across(cells: Inside, body: HostBody, row: StepRow) -> Field:
    """The heat in K that each heated cell gets through gaps in a step."""
    heated, T = body.heated, cells.T.reshape(-1)
    entries = np.flatnonzero(heated.numbers >= GAPS)
    across, owners = np.zeros(len(heated.numbers), T.dtype), np.repeat(heated.cells, np.diff(heated.first))
    if len(entries):
        own, (sides, links) = owners[entries], heated.spots[entries].T
        beside, is_lower = neighbours_of(own, sides, cells.T.shape[::-1]), sides % 2 == 1
        low, high, ratio = heated.across[links].T
        conducting = cells.conducting.reshape(-1)
        below, above = np.where(is_lower, own, beside), np.where(is_lower, beside, own)
        first = NUMBERS * (heated.numbers[entries].astype(np.int64) - GAPS)
        halves = low / conducting[below], high / conducting[above]
        links_now = GapLinks(row.conditions.reshape(-1), first, body.reference, *halves, ratio)
        flux = links_now.flux(T[below], T[above])
        across[entries] = heated.weights[entries] * (row.amounts[-1] * np.where(is_lower, -flux, flux))
    found, counts = np.zeros(len(heated), T.dtype), np.diff(heated.first)
    for nth in range(counts.max() if len(entries) else 0):
        some = np.flatnonzero(counts > nth)
        found[some] += across[heated.first[some] + nth]
    return found


def _densities(table: Field, entries: Field, T: Field) -> Field:
    """Densities in W/m³ at T − T_ref in K, from a table that is constant beyond its ends."""
    start, last, per_kelvin, low = table
    steps = np.fmin(np.fmax((T - low) * per_kelvin, T.dtype.type(0.0)), last)
    step = np.fmin(np.floor(steps), last - T.dtype.type(1.0))
    value, rise = np.moveaxis(entries[(start + step).astype(np.int64)], -1, 0)
    return np.asarray(value + rise * (steps - step))


def _advance_numpy(T: Field, T_new: Field, call: CompositeCall) -> tuple[Field, Field]:
    from heatsim.kernels.cpu.subnormals import subnormals_flushed

    with subnormals_flushed():
        for step in range(call.steps.count):
            advance_numpy(T, T_new, call, step)
            T, T_new = T_new, T
    return T, T_new


def _advance_numba(T: Field, T_new: Field, call: CompositeCall) -> tuple[Field, Field]:
    # Imported here, because importing numba takes half a second.
    from heatsim.kernels.cpu.composite_parts import OptionalParts, kernel_for
    from heatsim.kernels.cpu.composite_plan import make_plan
    from heatsim.kernels.cpu.ring_axes import ring_axes
    from heatsim.kernels.cpu.surface_rises import ROOM

    body, steps, (nz, ny, nx) = call.body, call.steps, T.shape
    axes = ring_axes((nz, ny, nx))
    ring, wraps = axes.shape((nz, ny, nx)), axes.wraps(call.periodic, (nz, ny, nx))
    fields = 2 if body.enthalpies.vary else 1
    chosen = choose_tiling(ring, wraps, T.itemsize, steps.count, fields)
    # A worker's memory: the rings of its fields, sums of some rows, surfaces.
    sums = fields * chosen.ring
    surfaces = sums + chosen.rows * chosen.stride + chosen.margin
    plan = make_plan(T.shape, call, axes, chosen, sums, surfaces)
    has = OptionalParts.of(
        body,
        call.periodic,
        radiating=steps.radiates,
        seven_term=call.scheme == "seven_term",
    )
    advance = kernel_for(has, plan.numbers, T.dtype)
    return run_sweeps(partial(advance, plan.numbers), T, T_new, steps.count, chosen, surfaces + ROOM)


# kernel(T, T_new, call) does the steps of the call. It returns (result, other array); the other array has no useful
# contents. With one step the result is in T_new and T is unchanged.
COMPOSITE_KERNELS: dict[str, Callable[[Field, Field, CompositeCall], tuple[Field, Field]]] = {
    "numpy": _advance_numpy,
    "numba": _advance_numba,
}
