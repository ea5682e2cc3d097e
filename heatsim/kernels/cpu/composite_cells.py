"""Arguments of the compiled CPU functions for composite bodies. Arrays of cells are 1-d."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from heatsim.kernels.cpu.rows import OPTIONS
from heatsim.physics.cell_types import INTERIOR

CELL_TYPE = INTERIOR - 1
CONDUCTANCE, SHARE, GAIN = 0, 1, 2
# For functions that take tuples of arrays: a call would pass the shape and strides of every array, which takes longer
# than updating a cell.
inlined: Any = njit(forceinline=True, **OPTIONS)


class CompiledBody(NamedTuple):
    """Data that all steps of a body share; see :class:`heatsim.kernels.cpu.composite_body.HostBody`.

    Attributes:
        nz, ny, nx: number of cells.
        periodic_x, periodic_y, periodic_z: which axes wrap.
        cells: the bytes, a 1-d array; empty if there is one type.
        bits, before, weights: the cells with weighted surfaces.
        scale: the reference temperature and the tolerance of surface temperatures, in K.
        contacts: whether some of these surfaces are contacts.
        first_heated: the first type with sources.
        void, void_condition: the type of void, and the condition on surfaces towards it; −1 if there is none.
        places, first, numbers, fractions: mixed cells; see :class:`heatsim.physics.mixed_cells.MixedCells`.
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
    weights: Any
    scale: Any
    contacts: bool
    first_heated: int
    void: int
    void_condition: int
    places: Any
    first: Any
    numbers: Any
    fractions: Any


class CompiledTables(NamedTuple):
    """The coefficients of each type; see the classes LinkTables and EnthalpyTables of the NumPy oracle.

    Attributes:
        c: c0…c6 of a body of one type.
        links: c_ab, shape (3, types, types).
        halves: (conductance, share, gain, 0) of each type and axis, shape (types, 3, 4).
        places, bases, potentials, states, resistances: tables of materials that vary with temperature, or empty arrays.
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


class CompiledStep(NamedTuple):
    """Data that change from step to step.

    Attributes:
        conditions: the six numbers of each condition.
        held: potential in K of each type at the ambient of each condition; no types if no material varies.
        heat: heat of the sources in a cell of each type, in K.
        number: number of the step.
        scheme: an index of :data:`heatsim.physics.coefficients.SCHEMES`.
        factor: length of the step / that for which the tables are made.
    """

    conditions: Any
    held: Any
    heat: Any
    number: int
    scheme: int
    factor: Any


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
