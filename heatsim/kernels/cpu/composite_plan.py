"""The plan of a call of the compiled CPU kernel for composite bodies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.composite.heat_tables import HeatTables
from heatsim.kernels.cpu.composite_body import Entries, Field, HostBody, LinkTables, StepRows
from heatsim.kernels.cpu.composite_cells import (
    BEAM_FIELDS,
    BEAM_SUMS,
    CONDUCTANCE,
    FACE_FIELDS,
    IS_OPEN,
    PLAN,
    SHARE,
    SIDE,
    SUMS,
    TURNED,
)
from heatsim.kernels.cpu.composite_layout import CompositeLayout, layout_of
from heatsim.kernels.cpu.plan import KernelPlan, address_of
from heatsim.kernels.cpu.ring_axes import RingAxes, Shape, Wraps
from heatsim.kernels.cpu.tiling import LINE, Tiling, zeros_on_lines
from heatsim.physics.cell_types import CELL_TYPE
from heatsim.physics.coefficients import SCHEMES, Scheme
from heatsim.physics.sources import BeamRows
from heatsim.physics.surface_balance import TOLERANCES


@dataclass(frozen=True, eq=False)
class _Numbers:
    """What a body and a length of step determine.

    Attributes:
        layout: that of the body.
        plan: with the fields that they determine.
        faces: fields of each face; sums are missing.
        ledgers: the plan with the sums of each ledger that was used so far.
    """

    layout: CompositeLayout
    plan: KernelPlan
    faces: NDArray[np.int64]
    ledgers: WeakKeyDictionary[Entries, KernelPlan] = field(default_factory=WeakKeyDictionary)

    def with_ledger(self, ledger: Entries) -> KernelPlan:
        """The plan with the sums of a ledger."""
        if ledger not in self.ledgers:
            faces = self.faces.copy()
            faces[:, SUMS] = [address_of(array) for array in ledger.faces]
            faces[:, BEAM_SUMS] = [address_of(array) for array in ledger.beams]
            values = {"faces": faces, "exposed": ledger.exposed, "parts": ledger.parts}
            values |= {"heat_sums": ledger.cells, "lit_sums": ledger.lit}
            self.ledgers[ledger] = KernelPlan(PLAN, values, self.plan)
        return self.ledgers[ledger]


_numbers: WeakKeyDictionary[LinkTables, _Numbers] = WeakKeyDictionary()


def make_plan(
    T: Field,
    periodic: Wraps,
    body: HostBody,
    tables: LinkTables,
    steps: StepRows,
    first: int,
    ledger: Entries,
    scheme: Scheme,
    base: Field | None,
    axes: RingAxes,
    chosen: Tiling,
    sums: int,
    surfaces: int,
) -> KernelPlan:
    """The plan; arguments as for the kernels, and the places of sums and surfaces in a worker's memory."""
    nz, ny, nx = T.shape
    layout = layout_of(body, (nz, ny, nx), periodic, axes)
    numbers = _numbers.get(tables)
    if numbers is None or numbers.layout is not layout:
        numbers = _numbers[tables] = _numbers_of(layout, body, tables, (nz, ny, nx), periodic, axes)
    ring, wraps = axes.shape((nz, ny, nx)), axes.wraps(periodic, (nz, ny, nx))
    values = chosen.plan(ring, wraps, steps.count) | _changing(steps, axes)
    values |= {"scheme": SCHEMES.index(scheme), "first_step": first, "sums": sums, "surfaces": surfaces}
    values |= {"potentials": chosen.ring if body.enthalpies.vary else 0}
    values |= {"has_base": base is not None, "base": 0 if base is None else base}
    return KernelPlan(PLAN, values, numbers.with_ledger(ledger))


def _numbers_of(
    layout: CompositeLayout, body: HostBody, tables: LinkTables, shape: Shape, periodic: Wraps, axes: RingAxes
) -> _Numbers:
    enthalpies, mixed, halves = body.enthalpies, body.mixed, tables.halves
    behind_surfaces = halves[layout.surface.type, layout.surface.axis]
    values: dict[str, Any] = {"types": tables.links.shape[1], "c": _coefficients(layout, body, tables, shape)}
    values |= {"along_y": axes.index(1), "along_z": axes.index(2)}
    # The factors of a varying conductance are multiplied in the order of the oracle.
    weight = 1 if enthalpies.vary else layout.surface.weight
    values |= {"surface_conductance": np.ascontiguousarray(behind_surfaces[:, CONDUCTANCE] * weight)}
    values |= _dense_coefficients(layout, values["c"])
    values |= {"surface_share": behind_surfaces[:, SHARE] * layout.surface.fraction} | layout.arrays
    values |= {"links": tables.links, "halves": halves, "places": enthalpies.places, "bases": enthalpies.bases}
    values |= {"potential_table": enthalpies.potentials, "states": enthalpies.states}
    values |= {"resistances": enthalpies.resistances, "first_heated": body.first_heated}
    values |= {"scale": np.array([body.reference, TOLERANCES[halves.dtype.name]], dtype=halves.dtype)}
    values |= {"void_conditions": len(np.unique(layout.surface.condition))}
    values |= {"mixed_cells": len(mixed.places), "mixed_places": mixed.places}
    values |= {"mixed_first": mixed.first, "mixed_numbers": mixed.numbers, "mixed_fractions": mixed.fractions}
    values |= _heated(body, axes.shape(shape)) | {"lit": bool(body.lit.size)}
    plan = KernelPlan(PLAN, values)
    faces = np.zeros((6, len(FACE_FIELDS)), np.int64)
    for face, (types, numbers) in enumerate(zip(layout.face_types, body.maps, strict=True)):
        faces[face, SIDE] = axes.side(face)
        faces[face, 0] = body.open_faces[face] and not periodic[face // 2]
        if not faces[face, 0]:
            continue
        cells = types if types.size else np.zeros(_face_shape(shape, face), np.uint8)
        conductance, share, gain, _ = np.moveaxis(halves[cells, face // 2], -1, 0)
        # Void gains nothing: its share and gain are 0. Any other conductance avoids a division by 0.
        arrays = [types, numbers, np.where(conductance == 0, halves.dtype.type(1), conductance), share, gain]
        arrays = [np.ascontiguousarray(array) for array in arrays]
        faces[face, [1, 2, 5, 6, 7]] = [address_of(array) for array in arrays]
        plan.keep(arrays)
    plan.numbers[PLAN.index("open_faces")] = np.count_nonzero(faces[:, IS_OPEN])
    return _Numbers(layout, plan, faces)


def _heated(body: HostBody, ring: Shape) -> dict[str, Any]:
    """The cells that sources heat individually, by rows of the ring."""
    heated, (nz, ny, nx) = body.heated, ring
    if not len(heated):
        return {}
    rows = np.bincount(heated.cells // nx, minlength=nz * ny)
    types = body.cells.reshape(-1)[heated.cells] & CELL_TYPE if body.cells.size else np.zeros(len(heated), np.uint8)
    values = {"heated_rows": np.concatenate(([0], np.cumsum(rows))).astype(np.int32)}
    values |= {"heated_alike": _alike(heated, rows, nx)}
    values |= {"heated_x": (heated.cells % nx).astype(np.int32), "heated_type": np.ascontiguousarray(types)}
    values |= {f"heated_{name}": array for name, array in vars(heated).items() if name != "cells"}
    values["heated_weights"] = _by_entries(heated, values["heated_rows"], values["heated_alike"])
    return values | {"amount_count": len(heated.table_of)}


def _by_entries(heated: HeatTables, rows: NDArray[np.int32], alike: NDArray[np.int32]) -> NDArray[Any]:
    """The weights of all entries; rows of cells that are alike begin with the first entries of all these cells."""
    weights, counts = heated.weights.copy(), np.diff(heated.first)
    for row in np.flatnonzero(alike).tolist():
        begin, end = int(rows[row]), int(rows[row + 1])
        if counts[begin] > 1:
            own = slice(int(heated.first[begin]), int(heated.first[end]))
            weights[own] = heated.weights[own].reshape(end - begin, -1).T.reshape(-1)
    return weights


def _alike(heated: HeatTables, rows: NDArray[np.intp], nx: int) -> NDArray[np.int32]:
    """For each row 1 if its heated cells are neighbours that have the same amounts and no beams, else 0."""
    row, counts = heated.cells // nx, np.diff(heated.first)
    beams = heated.numbers >= len(heated.table_of)
    differs = np.append(np.diff(heated.cells) != 1, False) | np.append(counts[1:] != counts[:-1], False)
    # Entry n of a cell against entry n of the next one, which has as many.
    owners = np.repeat(np.arange(len(counts)), counts)
    following = np.minimum(np.arange(len(heated.numbers)) + counts[owners], len(heated.numbers) - 1)
    others = (heated.numbers != heated.numbers[following]) & ~differs[owners]
    differs[owners[others]] = True
    # The last cell of a row has no next one.
    differs &= np.append(row[1:] == row[:-1], False)
    differs[owners[beams]] = True
    return np.where((np.bincount(row, differs, len(rows)) == 0.0) & (rows > 0), 1, 0).astype(np.int32)


def _face_shape(shape: Shape, face: int) -> tuple[int, int]:
    v, u = (n for axis, n in enumerate(shape) if axis != 2 - face // 2)
    return v, u


def _coefficients(layout: CompositeLayout, body: HostBody, tables: LinkTables, shape: Shape) -> NDArray[Any]:
    """c0…c6 of every stencil, shape (stencils, 7); c0 is used for bodies of one type only."""
    if not body.cells.size and not body.enthalpies.vary:
        return tables.c[None, :].copy()
    stencils = layout.stencils
    links = tables.links[np.arange(6) // 2, stencils.own[:, None], stencils.around] * stencils.weights
    # Along an axis with one cell a cell is its own neighbour; in the ring another cell may be there.
    links[:, np.repeat(np.array(shape[::-1]) == 1, 2)] = 0.0
    return np.hstack((np.broadcast_to(tables.c[:1], (len(links), 1)), links))


def _dense_coefficients(layout: CompositeLayout, c: NDArray[Any]) -> dict[str, Any]:
    """c1…c6 of all cells of dense rows, shape (dense rows, 6, stride): whole cache lines, filled with 0."""
    rows, nx = layout.dense.stencils.shape
    line = LINE // c.itemsize
    stride = -(-nx // line) * line
    dense = zeros_on_lines((rows, 6, stride), c.dtype)
    dense[:, :, :nx] = np.moveaxis(c[layout.dense.stencils, 1:], -1, 1)
    return {"dense_c": dense, "dense_stride": stride}


def _changing(steps: StepRows, axes: RingAxes) -> dict[str, Any]:
    """What changes from step to step, with strides."""
    beams, first, weights = _beams_of(steps, axes)
    changing = {"conditions": steps.conditions, "held": steps.held, "heat": steps.heat, "factors": steps.factors}
    changing |= {"amounts": steps.amounts}
    changing |= {"beam_first": first, "beam_weights": weights}
    strides = {f"{name}_stride": array[0].size if len(array) > 1 else 0 for name, array in changing.items()}
    return changing | strides | {"beams": beams, "beam_count": len(beams)}


def _beams_of(steps: StepRows, axes: RingAxes) -> tuple[NDArray[Any], ...]:
    """The same as :func:`_beams`; made once for the rows that these are a slice of."""
    whole, some = (steps, slice(None)) if steps.part_of is None else steps.part_of
    made = _made_beams.setdefault(whole, {})
    if axes not in made:
        made[axes] = _beams(whole.beams, whole.factors.dtype, axes)
    places, *tables = made[axes]
    return places, *(table[some] if len(table) > 1 else table for table in tables)


_made_beams: WeakKeyDictionary[StepRows, dict[RingAxes, tuple[NDArray[Any], ...]]] = WeakKeyDictionary()


def _beams(beams: Sequence[BeamRows], dtype: np.dtype[Any], axes: RingAxes) -> tuple[NDArray[Any], ...]:
    """Faces and places of the weights, the cells where they start, and the weights of all beams side by side."""
    places, end = np.zeros((len(beams), BEAM_FIELDS), np.int64), 0
    for number, beam in enumerate(beams):
        places[number, 0] = beam.face if beam.at_face else -1
        for axis, weights in enumerate(beam.weights):
            places[number, 1 + axis * 2 : 3 + axis * 2] = end, weights.shape[1]
            end += weights.shape[1]
    if not beams:
        return places, np.zeros((1, 0, 2), np.int64), np.zeros((1, 0), dtype)
    rows = max(len(beam.first) for beam in beams)
    first = np.stack([np.broadcast_to(beam.first, (rows, 2)) for beam in beams], axis=1).astype(np.int64)
    for number, beam in enumerate(beams):
        if axes.turned(beam.face):
            places[number, 1:5], places[number, TURNED] = places[number, [3, 4, 1, 2]], 1
            first[:, number] = first[:, number, ::-1]
    all_weights = [np.broadcast_to(part, (rows, part.shape[1])) for beam in beams for part in beam.weights]
    return places, first, np.ascontiguousarray(np.hstack(all_weights))
