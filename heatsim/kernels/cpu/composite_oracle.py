"""The NumPy oracle for composite bodies, which defines the result.

It does the operations of composite/composite.cuh in the same order and without fma.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.composite.tables import EnthalpyTables
from heatsim.kernels.cpu.cell_heat_oracle import cell_heat, flux_on_lit
from heatsim.kernels.cpu.composite_body import CompositeCall, HostBody, LinkTables, StepRow
from heatsim.kernels.cpu.oracle import FACE_SLICES, neighbours, rounded_sum
from heatsim.kernels.cpu.void_layout import weighted_cells
from heatsim.physics.cells.cell_types import INTERIOR
from heatsim.physics.conditions.mixed_cells import MIXED, TOWARDS_VOID
from heatsim.physics.conditions.surface_balance import FREE
from heatsim.physics.conditions.surface_laws import SurfaceConditions
from heatsim.physics.operator.heat_sums import HeatSums, SurfaceHeats

Field = NDArray[Any]


class Inside(NamedTuple):
    """Cells: type, T − T_ref in K, k(T)/k(T_ref), potential in K. Arrays of equal shapes."""

    cell_type: NDArray[np.uint8]
    T: Field
    conducting: Field
    potential: Field


def advance_numpy(T: Field, T_new: Field, call: CompositeCall, step: int) -> None:
    """One step of the whole field, T to T_new; ``step`` counts from 0 in the call."""
    periodic, body, tables, ledger, base = call.periodic, call.body, call.tables, call.ledger, call.base
    row = call.steps.row(step)
    cell_type = (body.cells if body.cells.size else np.zeros(T.shape, np.uint8)) & ~np.uint8(INTERIOR)
    around = [pair for axis in range(3) for pair in neighbours(T, 2 - axis, periodic[axis])]
    beside = [pair for axis in range(3) for pair in neighbours(cell_type, 2 - axis, periodic[axis])]

    cells = Inside(cell_type, T, np.ones_like(T), T)
    if body.enthalpies.vary:
        cells = Inside(
            cell_type, *temperatures(body.enthalpies, cell_type, T), _potentials(body.enthalpies, cell_type, T)
        )
        total = _conduct_by_enthalpy(cells, around, beside, _link_weights(body, T), body, tables)
    elif call.scheme == "seven_term":
        *sides, below, above = around
        total = tables.c[5] * below
        for coefficient, value in zip((*tables.c[:5], tables.c[6]), (T, *sides, above), strict=True):
            total = total + coefficient * value
    else:
        total = np.full_like(T, -0.0)
        weights = _link_weights(body, T)
        for n, neighbour in enumerate(around):
            link = tables.links[n // 2, cell_type, beside[n]] * weights[n] if body.cells.size else tables.c[1 + n]
            total = total + link * (neighbour - T)
    # Adding -0 changes no bit of any number.
    total = np.where(cell_type >= body.first_heated, row.heat[cell_type], T.dtype.type(-0.0)) + total

    if len(body.void_conditions):
        _add_exposed(cells, beside, call, row, total)
    for face in range(6):
        if not periodic[face // 2]:
            _add_face(face, cells, call, row, total)

    if len(body.heated):
        heat = cell_heat(cells.T, body, row)
        total.reshape(-1)[body.heated.cells] += heat
        if ledger.cells.size:
            ledger.cells[...] += np.float64(row.factor) * heat.astype(np.float64)

    if call.scheme == "seven_term":
        T_new[...] = total
    elif call.scheme == "increments":
        T_new[...] = row.factor * total + (T if base is None else base if base.size else T.dtype.type(0.0))
    else:
        T_new[...] = rounded_sum(T, total, call.first + step & 0xFFFFFFFF)


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
    cells: Inside,
    around: Sequence[Field],
    beside: Sequence[NDArray[np.uint8]],
    weights: Field,
    body: HostBody,
    tables: LinkTables,
) -> Field:
    """The sum over neighbours if materials vary with temperature; see composite/varying.cuh."""
    enthalpies, cell_type, one = body.enthalpies, cells.cell_type, cells.T.dtype.type(1.0)
    total = np.full_like(cells.T, -0.0)
    for n, (contents, other) in enumerate(zip(around, beside, strict=True)):
        alike = enthalpies.bases[cell_type] == enthalpies.bases[other]
        inner = tables.links[n // 2, cell_type, other] * (_potentials(enthalpies, other, contents) - cells.potential)
        conductance, _, gain, _ = np.moveaxis(tables.halves[cell_type, n // 2], -1, 0)
        further = tables.halves[other, n // 2, 0]
        conducts = (conductance > 0) & (further > 0)
        degrees_there, conducting_there = temperatures(enthalpies, other, contents)
        own, its = (
            np.where(conducts, half, one) for half in (conductance * cells.conducting, further * conducting_there)
        )
        share = gain / (one / own + one / its + enthalpies.resistances[cell_type, other] * weights[n])
        between = np.where(conducts, share * (degrees_there - cells.T), cells.T.dtype.type(0.0))
        total = total + np.where(alike, inner, between)
    return total


def _from_surface(
    body: HostBody,
    tables: LinkTables,
    row: StepRow,
    number: Any,
    axis: int,
    cells: Inside,
    beam: Any = 0.0,
    weight: Any = 1.0,
    fraction: Field | None = None,
) -> tuple[Field, Field]:
    """The heat from surfaces with condition ``number`` into their cells, as (share, difference in K).

    ``weight`` = area of the voxel surface / area of the smooth surface; ``fraction``: the part with the condition.
    """
    conductance, share, _, _ = np.moveaxis(tables.halves[cells.cell_type, axis], -1, 0)
    if fraction is not None:
        share = share * fraction
    free = row.conditions[number][..., FREE]
    conductance = np.where(conductance > 0, conductance * cells.conducting * weight, conductance.dtype.type(1.0))
    difference = SurfaceConditions(row.conditions, number).rises(conductance, body.reference, cells.T, beam)
    if not body.enthalpies.vary:
        return share, difference
    held = free == 0
    difference = np.where(held, row.held[number, cells.cell_type] - cells.potential, difference)
    return np.where(held, share, share * cells.conducting), difference


def _add_exposed(
    inside: Inside,
    beside: Sequence[NDArray[np.uint8]],
    call: CompositeCall,
    row: StepRow,
    total: Field,
) -> None:
    """Add the heat through surfaces towards void."""
    body, tables = call.body, call.tables
    places = weighted_cells(body, total.size)
    cells = Inside(*(values.reshape(-1)[places] for values in inside))
    heat = np.zeros_like(cells.T)
    for side in range(6):
        weight = body.weights[: len(places), side]
        passes = (beside[side].reshape(-1)[places] == body.void) & (weight > 0)
        flux = np.broadcast_to(flux_on_lit(side, places, total.shape, body, row), weight.shape)
        for some, numbers, fractions, parts in _conditions_towards_void(body, side, places, cells, passes):
            own = Inside(*(values[some] for values in cells))
            beam = weight[some] * flux[some]
            share, difference = _from_surface(body, tables, row, numbers, side // 2, own, beam, weight[some], fractions)
            passing = share * difference
            heat[some] += passing
            from_beam = fractions * (tables.halves[own.cell_type, side // 2, 2] * flux[some])
            if parts is None:
                _enter(call.ledger, lambda of: of.towards_void, (some, side), passing, from_beam, row)
            else:
                _enter(call.ledger, lambda of: of.parts, parts, passing, from_beam, row)
    total.reshape(-1)[places] += heat


def _conditions_towards_void(
    body: HostBody, side: int, places: NDArray[np.int64], cells: Inside, passes: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.integer], Field, NDArray[np.intp] | None]]:
    """Weighted cells that exchange heat towards void on one side, conditions, fractions and, of mixed cells, parts.

    A mixed cell comes once for each part, in the order of its parts; none comes twice at a time.
    """
    conditions = body.void_conditions[cells.cell_type]
    whole = np.flatnonzero(passes & (conditions != MIXED))
    yield whole, conditions[whole], np.ones(len(whole), body.weights.dtype), None
    parts, owners = body.mixed.on_face(TOWARDS_VOID + side)
    at, nth = np.searchsorted(places, owners), np.arange(len(owners)) - np.searchsorted(owners, owners)
    for n in range(int(nth.max(initial=-1)) + 1):
        some = np.flatnonzero((nth == n) & passes[at])
        of_some = parts.start + some
        yield at[some], body.mixed.numbers[of_some], body.mixed.fractions[of_some], of_some


def _add_face(face: int, inside: Inside, call: CompositeCall, row: StepRow, total: Field) -> None:
    """Add the heat through a face of the box."""
    body, tables, place = call.body, call.tables, FACE_SLICES[face]
    cells = Inside(*(values[place] for values in inside))
    numbers = body.maps[face] if body.maps[face].size else np.full(cells.T.shape, face)
    parts, owners = body.mixed.on_face(face)
    numbers = np.where(numbers == MIXED, face, numbers)  # their heat is replaced below
    beam = row.beams[face] if row.beams[face].size else np.zeros_like(cells.T)
    share, difference = _from_surface(body, tables, row, numbers, face // 2, cells, beam)
    heat = np.where(share > 0, share * difference, share)
    alone, from_beam = heat.copy(), tables.halves[cells.cell_type, face // 2, 2] * beam
    if len(owners):
        divided = Inside(*(values.reshape(-1)[owners] for values in cells))
        numbers, fractions = body.mixed.numbers[parts], body.mixed.fractions[parts]
        share, difference = _from_surface(body, tables, row, numbers, face // 2, divided, beam.reshape(-1)[owners])
        passing = np.where(share > 0, fractions * (share * difference), share)
        heat.reshape(-1)[owners] = -0.0
        np.add.at(heat.reshape(-1), owners, passing)
        _enter(call.ledger, lambda of: of.parts, parts, passing, fractions * from_beam.reshape(-1)[owners], row)
        alone.reshape(-1)[owners] = from_beam.reshape(-1)[owners] = 0.0
    total[place] += heat
    _enter(call.ledger, lambda of: of.faces[face], ..., alone, from_beam, row)


def _enter(
    ledger: HeatSums, run: Callable[[SurfaceHeats], Any], place: Any, heat: Field, from_beam: Field, row: StepRow
) -> None:
    """Add the heat through boundary faces to the sums at a place of a run, if these are recorded.

    ``from_beam``: the light of beams, which ``heat`` contains; it has another sum.
    """
    if run(ledger.heats).size:
        light = from_beam.astype(np.float64)
        run(ledger.heats)[place] += np.float64(row.factor) * (heat.astype(np.float64) - light)
        if ledger.beams is not None:
            run(ledger.beams)[place] += np.float64(row.factor) * light
