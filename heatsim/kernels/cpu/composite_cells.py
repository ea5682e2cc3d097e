"""Composite bodies as the CPU's compiled functions see them: arrays of cells are runs of cells."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from heatsim.kernels.cpu.rows import OPTIONS
from heatsim.physics.cell_types import INTERIOR

KIND = INTERIOR - 1
CONDUCTANCE, SHARE, GAIN = 0, 1, 2
# What takes tuples of arrays: a call would hand over every array's shape and strides, which takes longer than a cell.
inlined: Any = njit(forceinline=True, **OPTIONS)


class CompiledBody(NamedTuple):
    """What a body's steps have in common; see :class:`heatsim.kernels.cpu.composite_oracle.HostBody`.

    Attributes:
        nz, ny, nx: cells.
        periodic_x, periodic_y, periodic_z: which axes wrap.
        cells: the bytes, a run of cells, or an empty array where there is one kind.
        bits, before, weights: the cells with weighted surfaces.
        scale: the reference temperature and the tolerance of surface temperatures, in K.
        contacts: whether some of these surfaces are contacts.
        first_heated: the first kind with sources.
        void, void_condition: the kind of void, and the condition on surfaces towards it; −1 where there are none.
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
    """What cells pass on, by their kinds; see the classes LinkTables and EnthalpyTables beside the NumPy oracle.

    Attributes:
        c: c0…c6 of a body of one kind.
        links: c_ab, shape (3, kinds, kinds).
        halves: (conductance, share, gain, 0) of each kind and axis, shape (kinds, 3, 4).
        places, bases, potentials, states, resistances: of materials that change with temperature, or empty arrays.
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


class Step(NamedTuple):
    """What changes from step to step.

    Attributes:
        conditions: the six numbers of each condition.
        held: potential in K of each kind at the ambient of each condition; no kinds where nothing changes.
        heat: what sources give to the cells of each kind, in K.
        number: of the step.
        scheme: an index of :data:`heatsim.physics.coefficients.SCHEMES`.
    """

    conditions: Any
    held: Any
    heat: Any
    number: int
    scheme: int


@inlined
def state(tables: CompiledTables, kind: int, content: Any) -> Any:
    """Temperature as a deviation, and conductivity over that at the reference temperature."""
    if tables.bases.size == 0:
        return content, tables.one[0]
    places, states = tables.places, tables.states
    steps = content * places[kind, 0]
    step = np.floor(steps)
    step = step if step > places[kind, 1] else places[kind, 1]
    step = step if step < places[kind, 2] else places[kind, 2]
    entry, into = tables.bases[kind] + np.int64(step), steps - step
    return states[entry, 0] + states[entry, 1] * into, states[entry, 2] + states[entry, 3] * into
