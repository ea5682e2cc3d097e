"""The plan of a call of the compiled CPU kernel for composite bodies."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.composite.heat_tables import HeatTables
from heatsim.kernels.cpu.composite_body import CompositeCall, HostBody, LinkTables, StepRows
from heatsim.kernels.cpu.composite_cells import (
    BEAM_FIELDS,
    CONDUCTANCES,
    FACE_FIELDS,
    FIRST_SPOT,
    GAINS,
    IS_OPEN,
    MAP,
    NUMBER,
    PLAN,
    SHARES,
    SIDE,
    SUMS,
    TURNED,
    TYPES,
)
from heatsim.kernels.cpu.composite_layout import CompositeLayout, VoidSurfaces, layout_of
from heatsim.kernels.cpu.graded_plan import graded_fields
from heatsim.kernels.cpu.plan import KernelPlan, address_of
from heatsim.kernels.cpu.planes import Planes, factors_of, graded, half_cells
from heatsim.kernels.cpu.ring_axes import RingAxes, Shape
from heatsim.kernels.cpu.tiling import LINE, Tiling, zeros_on_lines
from heatsim.physics.cells.cell_heat import GAPS
from heatsim.physics.cells.cell_types import CELL_TYPE
from heatsim.physics.conditions.surface_balance import TOLERANCES
from heatsim.physics.matter.coefficients import SCHEMES
from heatsim.physics.operator.gap_links import neighbours
from heatsim.physics.operator.heat_sums import HeatSums
from heatsim.physics.sources.beam_rows import BeamRows


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
    ledgers: WeakKeyDictionary[HeatSums, KernelPlan] = field(default_factory=WeakKeyDictionary)

    def with_ledger(self, ledger: HeatSums) -> KernelPlan:
        """The plan with the sums of a ledger."""
        if ledger not in self.ledgers:
            faces = self.faces.copy()
            faces[:, SUMS] = [address_of(array) for array in ledger.heats.faces]
            values = {"faces": faces, "listed_sums": ledger.values[ledger.layout.listed], "heat_sums": ledger.cells}
            values["to_beams"] = ledger.layout.to_beams
            self.ledgers[ledger] = KernelPlan(PLAN, values, self.plan)
        return self.ledgers[ledger]


_numbers: WeakKeyDictionary[LinkTables, _Numbers] = WeakKeyDictionary()


def make_plan(
    shape: Shape, call: CompositeCall, axes: RingAxes, chosen: Tiling, sums: int, surfaces: int
) -> KernelPlan:
    """The plan of a call.

    Args:
        shape: of the field.
        call: the arguments of the kernel.
        axes: which axis of the grid lies along each axis of the ring.
        chosen: the tiling of the ring.
        sums: the place of the sums in a worker's memory.
        surfaces: the place of the data of surfaces there.
    """
    layout = layout_of(call.body, shape, call.periodic, axes)
    numbers = _numbers.get(call.tables)
    if numbers is None or numbers.layout is not layout:
        numbers = _numbers[call.tables] = _numbers_of(layout, call, shape, axes)
    values: dict[str, Any] = chosen.plan(axes.shape(shape), axes.wraps(call.periodic, shape), call.steps.count)
    values |= _changing(call.steps, axes, len(call.body.heated.table_of))
    values |= {
        "scheme": SCHEMES.index(call.scheme),
        "sums": sums,
        "surfaces": surfaces,
        "potentials": chosen.ring if call.body.enthalpies.vary else 0,
        "has_base": call.base is not None,
        "base": 0 if call.base is None else call.base,
    }
    return KernelPlan(PLAN, values, numbers.with_ledger(call.ledger))


def _numbers_of(layout: CompositeLayout, call: CompositeCall, shape: Shape, axes: RingAxes) -> _Numbers:
    body, tables = call.body, call.tables
    enthalpies, mixed, halves = body.enthalpies, body.mixed, tables.halves
    surface, links = layout.surface, _links(layout, body, tables, shape)
    c = _coefficients(layout, links, tables)
    planes = factors_of(body.planes, shape, halves.dtype)
    conductance, share, gain = _behind_surfaces(surface, halves, planes, shape, axes)
    # The factors of a varying conductance are multiplied in the order of the oracle.
    weight = 1 if enthalpies.vary else surface.weight
    faces, arrays = _face_fields(layout, call, shape, axes)
    values: dict[str, Any] = {
        "types": tables.links.shape[1],
        "first_heated": body.first_heated,
        "c": c,
        "halves": halves,
        "along_y": axes.index(1),
        "along_z": axes.index(2),
        "open_faces": np.count_nonzero(faces[:, IS_OPEN]),
        "surface_conductance": conductance * weight,
        "surface_share": share,
        "surface_gain": gain,
        "void_conditions": len(np.unique(surface.condition)),
        "places": enthalpies.places,
        "bases": enthalpies.bases,
        "potential_table": enthalpies.potentials,
        "states": enthalpies.states,
        "resistances": enthalpies.resistances,
        "scale": np.array([body.reference, TOLERANCES[halves.dtype.name]], dtype=halves.dtype),
        "mixed_cells": len(mixed.places),
        "mixed_places": mixed.places,
        "mixed_first": mixed.first,
        "mixed_numbers": mixed.numbers,
        "mixed_fractions": mixed.fractions,
        "lit": bool(body.lit.size),
        **layout.arrays,
        **_dense_coefficients(layout, c),
        **_heated_of(layout, body, axes.shape(shape)),
        **(graded_fields(layout, body, links, shape, axes) if graded(body.planes) else {}),
    }
    plan = KernelPlan(PLAN, values)
    plan.keep(arrays)
    return _Numbers(layout, plan, faces)


def _face_fields(
    layout: CompositeLayout, call: CompositeCall, shape: Shape, axes: RingAxes
) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
    """FACE_FIELDS of each face without the sums, shape (6, fields), and the arrays whose addresses these are."""
    faces, kept = np.zeros((6, len(FACE_FIELDS)), np.int64), list[NDArray[Any]]()
    halves, planes = call.tables.halves, factors_of(call.body.planes, shape, call.tables.halves.dtype)
    for face, (types, numbers) in enumerate(zip(layout.face_types, call.body.maps, strict=True)):
        faces[face, SIDE] = axes.side(face)
        faces[face, IS_OPEN] = call.body.open_faces[face] and not call.periodic[face // 2]
        if not faces[face, IS_OPEN]:
            continue
        cells = types if types.size else np.zeros(_face_shape(shape, face), np.uint8)
        conductance, share, gain = half_cells(halves[cells, face // 2], planes[face // 2], face % 2, -(face % 2))
        # Void gains nothing: its share and gain are 0. Any other conductance avoids a division by 0.
        arrays = [types, numbers, np.where(conductance == 0, halves.dtype.type(1), conductance), share, gain]
        arrays = [np.ascontiguousarray(array) for array in arrays]
        faces[face, [TYPES, MAP, CONDUCTANCES, SHARES, GAINS]] = [address_of(array) for array in arrays]
        kept += arrays
    return faces, kept


def _heated_of(layout: CompositeLayout, body: HostBody, ring: Shape) -> dict[str, Any]:
    """The same as :func:`_heated`; made once for a layout."""
    if layout not in _made_heated:
        _made_heated[layout] = _heated(body, ring)
    return _made_heated[layout]


_made_heated: WeakKeyDictionary[CompositeLayout, dict[str, Any]] = WeakKeyDictionary()


def _heated(body: HostBody, ring: Shape) -> dict[str, Any]:
    """The cells that sources heat individually, by rows of the ring."""
    heated, (nz, ny, nx) = body.heated, ring
    if not len(heated):
        return {}
    counts, with_amount = np.bincount(heated.cells // nx, minlength=nz * ny), heated.numbers < len(heated.table_of)
    amounts, others = _some_entries(heated, with_amount), _some_entries(heated, ~with_amount)
    rows, alike = np.concatenate(([0], np.cumsum(counts))).astype(np.int32), _alike(amounts, counts, nx)
    types = body.cells.reshape(-1)[heated.cells] & CELL_TYPE if body.cells.size else np.zeros(len(heated), np.uint8)
    beams, row_of = others.numbers < GAPS, np.repeat(heated.cells // nx, np.diff(others.first))
    gaps = np.bincount(row_of[~beams], minlength=nz * ny)
    pairs = np.unique(row_of[beams] * GAPS + others.numbers[beams])
    nothing = np.bincount(heated.cells // nx, np.diff(amounts.first), nz * ny) + gaps == 0
    return {
        **{f"heated_{name}": value for name, value in vars(amounts).items() if name not in ("cells", "spots")},
        **{f"others_{name}": vars(others)[name] for name in ("first", "numbers", "weights", "spots")},
        "heated_rows": rows,
        "heated_alike": np.where(gaps > 0, 0, alike).astype(np.int32),
        "heated_by_beams": nothing.astype(np.int32),
        "heated_beam_first": np.searchsorted(pairs, np.arange(nz * ny + 1) * GAPS),
        "heated_beam_numbers": (pairs % GAPS).astype(np.int32),
        "heated_x": (heated.cells % nx).astype(np.int32),
        "heated_type": np.ascontiguousarray(types),
        "alike_weights": _by_entries(amounts, rows, alike),
        "amount_count": len(heated.table_of),
        "others_beside": _types_beside(body, others),
        "reference": np.array([body.reference]),
    }


def _some_entries(heated: HeatTables, chosen: NDArray[np.bool_]) -> HeatTables:
    """The same cells with some of their entries."""
    return replace(
        heated,
        first=np.concatenate(([0], np.cumsum(chosen)))[heated.first],
        numbers=heated.numbers[chosen],
        weights=heated.weights[chosen],
        spots=heated.spots[chosen] if len(heated.spots) else heated.spots,
    )


def _types_beside(body: HostBody, heated: HeatTables) -> NDArray[np.uint8]:
    """The type of the neighbour for each entry of a gap; 0 for other entries."""
    found = np.zeros(len(heated.numbers), np.uint8)
    entries = np.flatnonzero(heated.numbers >= GAPS)
    if len(entries):
        cells = np.repeat(heated.cells, np.diff(heated.first))[entries]
        beside = neighbours(cells, heated.spots[entries, 0], body.cells.shape[::-1])
        found[entries] = body.cells.reshape(-1)[beside] & CELL_TYPE
    return found


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
    """For each row 1 if its heated cells are neighbours that have the same amounts, else 0."""
    row, counts = heated.cells // nx, np.diff(heated.first)
    differs = np.append(np.diff(heated.cells) != 1, False) | np.append(counts[1:] != counts[:-1], False)
    # Entry n of a cell against entry n of the next one, which has as many.
    owners = np.repeat(np.arange(len(counts)), counts)
    following = np.minimum(np.arange(len(heated.numbers)) + counts[owners], len(heated.numbers) - 1)
    others = (heated.numbers != heated.numbers[following]) & ~differs[owners]
    differs[owners[others]] = True
    # The last cell of a row has no next one.
    differs &= np.append(row[1:] == row[:-1], False)
    return np.where((np.bincount(row, differs, len(rows)) == 0.0) & (rows > 0), 1, 0).astype(np.int32)


def _face_shape(shape: Shape, face: int) -> tuple[int, int]:
    v, u = (n for axis, n in enumerate(shape) if axis != 2 - face // 2)
    return v, u


def _behind_surfaces(
    surface: VoidSurfaces, halves: NDArray[Any], planes: Planes, shape: Shape, axes: RingAxes
) -> NDArray[Any]:
    """Conductance, share and gain of the half cells behind void surfaces, shape (3, surfaces)."""
    cells = surface.row.astype(np.int64) * axes.shape(shape)[2] + surface.x
    found = np.empty((3, len(cells)), halves.dtype)
    for axis in range(3):
        some = np.flatnonzero(surface.axis == axis)
        plane = np.unravel_index(cells[some], shape)[2 - axis]
        found[:, some] = half_cells(halves[surface.type[some], axis], planes[axis], surface.side[some] % 2, plane)
    return found


def _links(layout: CompositeLayout, body: HostBody, tables: LinkTables, shape: Shape) -> NDArray[Any]:
    """c1…c6 of every stencil without weights, in cells of the mean widths; shape (stencils, 6)."""
    if not body.cells.size and not body.enthalpies.vary:
        return tables.c[None, 1:].copy()
    stencils = layout.stencils
    links = tables.links[np.arange(6) // 2, stencils.own[:, None], stencils.around]
    # Along an axis with one cell a cell is its own neighbour; in the ring another cell may be there.
    links[:, np.repeat(np.array(shape[::-1]) == 1, 2)] = 0.0
    return links


def _coefficients(layout: CompositeLayout, links: NDArray[Any], tables: LinkTables) -> NDArray[Any]:
    """c0…c6 of every stencil, shape (stencils, 7); c0 is used for bodies of one type only."""
    return np.hstack((np.broadcast_to(tables.c[:1], (len(links), 1)), links * layout.stencils.weights))


def _dense_coefficients(layout: CompositeLayout, c: NDArray[Any]) -> dict[str, Any]:
    """c1…c6 of all cells of dense rows, shape (dense rows, 6, stride): whole cache lines, filled with 0."""
    rows, nx = layout.dense.stencils.shape
    line = LINE // c.itemsize
    stride = -(-nx // line) * line
    dense = zeros_on_lines((rows, 6, stride), c.dtype)
    dense[:, :, :nx] = np.moveaxis(c[layout.dense.stencils, 1:], -1, 1)
    return {"dense_c": dense, "dense_stride": stride}


def _changing(steps: StepRows, axes: RingAxes, amounts: int) -> dict[str, Any]:
    """What changes from step to step, with strides; ``amounts``: how many factors of entries there are."""
    beams, on, spots, first, weights = _beams_of(steps, axes, amounts)
    changing = {
        "conditions": steps.conditions,
        "held": steps.held,
        "heat": steps.heat,
        "factors": steps.factors,
        "amounts": steps.amounts,
        "beams_on": on,
        "beam_spots": spots,
        "beam_first": first,
        "beam_weights": weights,
    }
    strides = {f"{name}_stride": array[0].size if len(array) > 1 else 0 for name, array in changing.items()}
    return changing | strides | {"beams": beams}


def _beams_of(steps: StepRows, axes: RingAxes, amounts: int) -> tuple[NDArray[Any], ...]:
    """The same as :func:`_beams`; made once for the rows that these are a slice of."""
    whole, some = (steps, slice(None)) if steps.part_of is None else steps.part_of
    made = _made_beams.setdefault(whole, {})
    if axes not in made:
        made[axes] = _beams(whole.beams, whole.factors.dtype, axes, amounts)
    fields, *tables = made[axes]
    return fields, *(table[some] if len(table) > 1 else table for table in tables)


_made_beams: WeakKeyDictionary[StepRows, dict[RingAxes, tuple[NDArray[Any], ...]]] = WeakKeyDictionary()


def _beams(beams: Sequence[BeamRows], dtype: np.dtype[Any], axes: RingAxes, amounts: int) -> tuple[NDArray[Any], ...]:
    """BEAM_FIELDS; of the steps the beams that are on, the numbers of spots, their first cells, and all weights."""
    fields, end, slots = np.zeros((len(beams), BEAM_FIELDS), np.int64), 0, 0
    if not beams:
        none = np.full((1, 1), -1), np.zeros((1, 0), np.int64), np.zeros((1, 0, 2), np.int64)
        return fields, *none, np.zeros((1, 0), dtype)
    rows, first = max(len(beam.first) for beam in beams), []
    for place, beam in enumerate(beams):
        fields[place, 0], fields[place, FIRST_SPOT] = beam.face if beam.at_face else -1, slots
        fields[place, NUMBER] = amounts + beam.number
        for axis, weights in enumerate(beam.weights):
            fields[place, 1 + axis * 2 : 3 + axis * 2] = end, weights.shape[2]
            end += weights[0].size
        turned = axes.turned(beam.face)
        if turned:
            fields[place, 1:5], fields[place, TURNED] = fields[place, [3, 4, 1, 2]], 1
        slots += beam.first.shape[1]
        first.append(np.broadcast_to(beam.first[..., ::-1] if turned else beam.first, (rows, *beam.first.shape[1:])))
    spots = np.stack([np.broadcast_to(beam.spots, rows) for beam in beams], axis=1)
    on = np.sort(np.where(spots > 0, np.arange(len(beams)), len(beams)), axis=1)
    on = np.append(np.where(on < len(beams), on, -1), np.full((rows, 1), -1), axis=1)
    all_weights = [
        np.broadcast_to(part.reshape(len(part), -1), (rows, part[0].size)) for beam in beams for part in beam.weights
    ]
    return (
        fields,
        on,
        spots.astype(np.int64, order="C"),
        np.concatenate(first, axis=1, dtype=np.int64),
        np.ascontiguousarray(np.hstack(all_weights)),
    )
