"""The plan of a call of the compiled CPU kernel for composite bodies."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.composite_body import Entries, Field, HostBody, LinkTables, StepRows
from heatsim.kernels.cpu.composite_cells import PLAN
from heatsim.kernels.cpu.composite_layout import Layout, coefficients_of, layout_of
from heatsim.kernels.cpu.plan import Plan, address_of
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
) -> Plan:
    """The plan; arguments as for the kernels, and the places of sums and surfaces in a worker's memory."""
    nz, ny, nx = T.shape
    layout = layout_of(body, (nz, ny, nx), periodic)
    enthalpies, mixed = body.enthalpies, body.mixed
    values: dict[str, Any] = chosen.plan(T.shape, periodic, steps.count)
    values |= {"scheme": SCHEMES.index(scheme), "first_step": first, "first_heated": body.first_heated}
    values |= {"potentials": chosen.ring if enthalpies.vary else 0, "sums": sums, "surfaces": surfaces}
    values |= layout.arrays | {"types": tables.links.shape[1], "c": coefficients_of(layout, body, tables)}
    values |= {"links": tables.links, "halves": tables.halves, "places": enthalpies.places, "bases": enthalpies.bases}
    values |= {"potential_table": enthalpies.potentials, "states": enthalpies.states}
    values |= {"resistances": enthalpies.resistances} | _changing(steps)
    faces, kept = _faces(body, periodic, layout, ledger)
    values |= {"faces": faces, "scale": np.array([body.reference, TOLERANCES[T.dtype.name]], dtype=T.dtype)}
    values |= {"void_condition": body.void_condition, "mixed_cells": len(mixed.places), "mixed_places": mixed.places}
    values |= {"mixed_first": mixed.first, "mixed_numbers": mixed.numbers, "mixed_fractions": mixed.fractions}
    values |= {"exposed": ledger.exposed, "parts": ledger.parts}
    values |= {"has_base": base is not None, "base": 0 if base is None else base}
    return Plan(PLAN, values, kept)


def _faces(
    body: HostBody, periodic: tuple[bool, bool, bool], layout: Layout, ledger: Entries
) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
    """The fields of each face, and the arrays that they point to."""
    faces, kept = np.zeros((6, 5), np.int64), []
    for face in range(6):
        arrays = (layout.face_types[face], body.maps[face], ledger.faces[face], ledger.beams[face])
        faces[face, 0] = body.open_faces[face] and not periodic[face // 2]
        faces[face, 1:] = [address_of(array) for array in arrays]
        kept += arrays
    return faces, kept


def _changing(steps: StepRows) -> dict[str, Any]:
    """What changes from step to step, with strides."""
    beams, first, weights = _beams(steps.beams, steps.factors.dtype)
    changing = {"conditions": steps.conditions, "held": steps.held, "heat": steps.heat, "factors": steps.factors}
    changing |= {"beam_first": first, "beam_weights": weights}
    strides = {f"{name}_stride": array[0].size if len(array) > 1 else 0 for name, array in changing.items()}
    return changing | strides | {"beams": beams, "beam_count": len(beams)}


def _beams(beams: Sequence[BeamRows], dtype: np.dtype[Any]) -> tuple[NDArray[Any], ...]:
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
