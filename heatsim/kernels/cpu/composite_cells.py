"""Arguments of the compiled CPU functions for composite bodies, and what they need of a single cell."""

from typing import Any, NamedTuple

import numpy as np

from heatsim.kernels.cpu.march import Rows, inlined
from heatsim.kernels.cpu.rows import compiled, wrap

CONDUCTANCE, SHARE, GAIN = 0, 1, 2


class CompositePlan(NamedTuple):
    """Data that all sweeps of a call share.

    Attributes:
        nz … margin: see march.py.
        scheme: an index of :data:`heatsim.physics.coefficients.SCHEMES`.
        first_step: the number of the call's first step.
        potentials: cells from a temperature in the ring to its potential; 0 if no material varies with temperature.
        sums: where the sums of some rows begin in the ring.
        surfaces: where the numbers of some surfaces begin in the ring.
        layout: see :class:`heatsim.kernels.cpu.composite_layout.Layout`; so the next two.
        own, around, weights: the stencils.
        tables: the coefficients.
        steps_of: what changes from step to step.
        boundary: conditions at the faces.
        ledger: the sums of the heat that passes surfaces.
        base: another field to which the increments of a single step are added, or an empty array for 0.
        has_base: whether ``base`` counts.
    """

    nz: int
    ny: int
    nx: int
    periodic_x: bool
    periodic_y: bool
    periodic_z: bool
    steps: int
    sweeps: int
    workers: int
    tile_y: int
    tile_z: int
    rows: int
    stride: int
    margin: int
    scheme: int
    first_step: int
    potentials: int
    sums: int
    surfaces: int
    layout: "CompiledLayout"
    tables: "CompiledTables"
    values: "CompiledSteps"
    boundary: "CompiledBoundary"
    ledger: "CompiledLedger"
    base: Any
    has_base: bool


class CompiledLayout(NamedTuple):
    """Runs, odd cells, void surfaces and stencils; see :mod:`heatsim.kernels.cpu.composite_layout`."""

    run_first: Any
    run_end: Any
    run_stencil: Any
    odd_first: Any
    odd_x: Any
    odd_stencil: Any
    surface_first: Any
    surface_x: Any
    surface_axis: Any
    surface_type: Any
    surface_weight: Any
    surface_rank: Any
    surface_last: Any
    own: Any
    around: Any
    weights: Any


class CompiledTables(NamedTuple):
    """The coefficients; see the classes LinkTables and EnthalpyTables of the NumPy oracle.

    Attributes:
        c: c0…c6 of each stencil, shape (stencils, 7).
        links: c_ab, shape (3, types, types).
        halves: (conductance, share, gain, 0) of each type and axis, shape (types, 3, 4).
        places, bases, potentials, states, resistances: tables of materials that vary with temperature, or empty arrays.
        one: 1 in the field's precision.
        first_heated: the first type with sources.
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
    first_heated: int


class CompiledSteps(NamedTuple):
    """What changes from step to step; arrays of one row hold for all steps.

    Attributes:
        conditions: the six numbers of each condition, shape (steps or 1, conditions, 6).
        held: potential in K of each type at the ambient of each condition, shape (steps or 1, conditions, types).
        heat: heat of the sources in a cell of each type in K, shape (steps or 1, types).
        factors: length of the step / that for which the tables are made, shape (steps or 1,).
        beams: face, and the place and number of weights along u and v of each beam, shape (beams, 5).
        beam_first: the cell where the weights of each beam start, shape (steps or 1, beams, 2).
        beam_weights: weights of all beams, shape (steps or 1, weights).
    """

    conditions: Any
    held: Any
    heat: Any
    factors: Any
    beams: Any
    beam_first: Any
    beam_weights: Any


class CompiledBoundary(NamedTuple):
    """Conditions at the faces.

    Attributes:
        open: which faces let heat through.
        types: for each face the types of its cells, or an empty array if there is one type.
        maps: for each face the number of each cell's condition, or an empty array.
        scale: the reference temperature and the tolerance of surface temperatures, in K.
        void_condition: the number of the condition on surfaces towards void.
        places, first, numbers, fractions: mixed cells; see :class:`heatsim.physics.mixed_cells.MixedCells`.
    """

    open: Any
    types: Any
    maps: Any
    scale: Any
    void_condition: int
    places: Any
    first: Any
    numbers: Any
    fractions: Any


class CompiledLedger(NamedTuple):
    """Sums of heat; see :class:`heatsim.kernels.cpu.composite_body.Entries`."""

    faces: Any
    beams: Any
    exposed: Any
    parts: Any


@inlined
def at_step(rows: Any, step: int) -> int:
    """The row of numbers that holds for a step."""
    return step if len(rows) > 1 else 0


@inlined
def number_of(plan: CompositePlan, rows: Rows) -> int:
    """The number of the first of some rows among all rows of the grid."""
    return wrap(rows.z, plan.nz) * plan.ny + wrap(rows.y, plan.ny)


@inlined
def state(tables: CompiledTables, cell_type: int, content: Any) -> Any:
    """(T − T_ref, k(T)/k(T_ref)) of a cell."""
    if tables.bases.size == 0:
        return content, tables.one[0]
    places, states = tables.places, tables.states
    steps = content * places[cell_type, 0]
    step = np.floor(steps)
    step = step if step > places[cell_type, 1] else places[cell_type, 1]
    step = step if step < places[cell_type, 2] else places[cell_type, 2]
    entry, into = tables.bases[cell_type] + np.int64(step), steps - step
    return states[entry, 0] + states[entry, 1] * into, states[entry, 2] + states[entry, 3] * into


@inlined
def sum_odd(plan: CompositePlan, T: Any, stencil: int, here: int, around: Any) -> Any:
    """The heat of one cell from its neighbours, with the coefficients of its own stencil.

    ``here`` and ``around`` are the places in the ring of the cell and of its neighbours towards x−, x+, …, z+.
    """
    tables, layout, shift = plan.tables, plan.layout, plan.potentials
    centre, c = T[here + shift], tables.c[stencil]
    if shift == 0:
        return (
            c[1] * (T[around[0]] - centre)
            + c[2] * (T[around[1]] - centre)
            + c[3] * (T[around[2]] - centre)
            + c[4] * (T[around[3]] - centre)
            + c[5] * (T[around[4]] - centre)
            + c[6] * (T[around[5]] - centre)
        )
    own = layout.own[stencil]
    total = -(centre - centre)
    for side in range(6):
        there, other = around[side], layout.around[stencil, side]
        if tables.bases[own] == tables.bases[other]:
            total += tables.links[side // 2, own, other] * (T[there + shift] - centre)
            continue
        half, further = tables.halves[own, side // 2, CONDUCTANCE], tables.halves[other, side // 2, CONDUCTANCE]
        if half == 0 or further == 0:
            total += half - half
            continue
        degrees, conducting = state(tables, own, T[here])
        degrees_there, conducting_there = state(tables, other, T[there])
        contact = tables.resistances[own, other] * layout.weights[stencil, side]
        one = tables.one[0]
        resistance = one / (half * conducting) + one / (further * conducting_there) + contact
        total += tables.halves[own, side // 2, GAIN] / resistance * (degrees_there - degrees)
    return total


@compiled
def look_up(T: Any, here: int, n: int, shift: int, table: Any, place: Any, base: int) -> None:
    """Look up the potentials of n cells of one material, ``shift`` cells further in the array.

    Args:
        T: the ring.
        here: the first cell.
        n: number of cells.
        shift: from a cell to its potential.
        table: value and rise at each step.
        place: (steps per kelvin, first step, last step).
        base: the entry of step 0.
    """
    per_kelvin, first_step, last_step = place[0], place[1], place[2]
    i, out = np.uint64(here), np.uint64(here + shift)
    for x in range(np.uint64(n)):
        steps = T[i + x] * per_kelvin
        step = np.floor(steps)
        step = step if step > first_step else first_step  # also for NaN
        step = step if step < last_step else last_step
        entry = np.uint64(base + np.int64(step))
        T[out + x] = table[entry, 0] + table[entry, 1] * (steps - step)
