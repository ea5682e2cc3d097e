"""The plan of a call of the compiled CPU kernel for composite bodies."""

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.composite_body import Entries, Field, HostBody, LinkTables, StepRows
from heatsim.kernels.cpu.composite_cells import (
    CompiledBoundary,
    CompiledLayout,
    CompiledLedger,
    CompiledSteps,
    CompiledTables,
    CompositePlan,
)
from heatsim.kernels.cpu.composite_layout import coefficients_of, layout_of
from heatsim.kernels.cpu.tiling import Tiling
from heatsim.physics.boundary import TOLERANCES
from heatsim.physics.coefficients import SCHEMES, Scheme
from heatsim.physics.sources import BeamRows


def make_plan(
    T: Field,
    periodic: tuple[bool, bool, bool],
    body: HostBody,
    tables: LinkTables,
    steps: StepRows,
    first: int,
    ledger: Entries,
    scheme: Scheme,
    base: Field | None,
    chosen: Tiling,
    sums: int,
    surfaces: int,
) -> CompositePlan:
    """The plan; arguments as for the kernels, and the places of sums and surfaces in a worker's memory."""
    nz, ny, nx = T.shape
    layout = layout_of(body, (nz, ny, nx), periodic)
    enthalpies, stencils, mixed = body.enthalpies, layout.stencils, body.mixed
    return CompositePlan(
        *(nz, ny, nx, *periodic, steps.count, chosen.sweeps(steps.count), chosen.workers),
        *(chosen.tile_y, chosen.tile_z, chosen.rows, chosen.stride, chosen.margin),
        *(SCHEMES.index(scheme), first, chosen.ring if enthalpies.vary else 0, sums, surfaces),
        CompiledLayout(
            *(layout.run_first, layout.run_end, layout.run_stencil, layout.odd_first, layout.odd_x, layout.odd_stencil),
            *(layout.surface_first, layout.surface_x, layout.surface_axis, layout.surface_type),
            *(layout.surface_weight, layout.surface_rank, layout.surface_last),
            *(stencils.own, stencils.around, stencils.weights),
        ),
        CompiledTables(
            *(coefficients_of(layout, body, tables), tables.links, tables.halves),
            *(enthalpies.places, enthalpies.bases, enthalpies.potentials, enthalpies.states, enthalpies.resistances),
            *(np.ones(1, T.dtype), body.first_heated),
        ),
        CompiledSteps(steps.conditions, steps.held, steps.heat, steps.factors, *_beams(steps.beams, T.dtype)),
        CompiledBoundary(
            *(np.array(body.open_faces) & ~np.repeat(periodic, 2), layout.face_types, tuple(body.maps)),
            np.array([body.reference, TOLERANCES[T.dtype.name]], dtype=T.dtype),
            *(body.void_condition, mixed.places, mixed.first, mixed.numbers, mixed.fractions),
        ),
        CompiledLedger(tuple(ledger.faces), tuple(ledger.beams), ledger.exposed, ledger.parts),
        np.zeros(0, T.dtype) if base is None else base.reshape(-1),
        base is not None,
    )


def _beams(beams: "tuple[BeamRows, ...]", dtype: "np.dtype[np.floating]") -> tuple[NDArray[np.generic], ...]:
    """Faces and places of the weights, the cells where they start, and the weights of all beams side by side."""
    places, end = np.zeros((len(beams), 5), np.int64), 0
    for number, beam in enumerate(beams):
        places[number, 0] = beam.face
        for axis, weights in enumerate(beam.weights):
            places[number, 1 + axis * 2 : 3 + axis * 2] = end, weights.shape[1]
            end += weights.shape[1]
    if not beams:
        return places, np.zeros((1, 0, 2), np.int64), np.zeros((1, 0), dtype)
    rows = max(len(beam.first) for beam in beams)
    first = np.stack([np.broadcast_to(beam.first, (rows, 2)) for beam in beams], axis=1).astype(np.int64)
    weights = [np.broadcast_to(part, (rows, part.shape[1])) for beam in beams for part in beam.weights]
    return places, first, np.ascontiguousarray(np.hstack(weights))
