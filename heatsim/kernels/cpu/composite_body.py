"""Arguments of the CPU kernels for composite bodies: the body, tables, data of a step, the ledger's sums."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.composite.heat_tables import HeatTables
from heatsim.kernels.composite.tables import EnthalpyTables
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.mixed_cells import MixedCells
from heatsim.physics.conditions.surface_balance import EMISSION, FREE, LAW
from heatsim.physics.matter.coefficients import Scheme
from heatsim.physics.operator.boundary_faces import BoundaryFaces, towards_void
from heatsim.physics.operator.heat_sums import HeatSums
from heatsim.physics.sources.beam_rows import BeamRows

Field = NDArray[Any]


@dataclass(frozen=True, eq=False)
class HostBody:
    """Data that all steps of a body share: struct CellTypes of composite/materials.cuh, in the field's precision.

    Attributes:
        materials: the cell types, on the host.
        cells: the bytes; empty if there is one type.
        maps: for each face the number of each cell's condition, or an empty array.
        mixed: the cells at faces that several conditions share.
        bits, before, weights: the cells with weighted surfaces; see composite.cuh.
        contacts: whether some of these are contacts.
        reference: the absolute temperature of a deviation of 0, in K.
        first_heated: the first type with sources.
        void: the type of void; −1 if there is none.
        exposed: whether surfaces towards void let heat through.
        enthalpies: tables of materials that vary with temperature; if there are any, the field holds contents.
        open_faces: which faces of the box let heat through.
        heated: the cells that sources heat individually.
        lit: for each weighted cell a bit for each side that beams fall on; empty if there are none.
        planes: :meth:`heatsim.grid.Axis.kernel_factors` of the axes x, y, z.
        beams: number of beams of the scenario; 0 if none can bring something to these cells.
    """

    materials: CellTypes
    cells: NDArray[np.uint8]
    maps: Sequence[NDArray[np.uint8]]
    mixed: MixedCells
    bits: NDArray[np.uint32]
    before: NDArray[np.uint32]
    weights: Field
    contacts: bool
    reference: Any
    first_heated: int
    void: int
    exposed: bool
    enthalpies: EnthalpyTables
    open_faces: tuple[bool, ...]
    heated: HeatTables
    lit: NDArray[np.uint8]
    planes: tuple[Field, Field, Field]
    beams: int

    def surfaces_towards_void(self, periodic: tuple[bool, bool, bool]) -> Iterator[BoundaryFaces]:
        """The boundary faces towards void, side by side; none if they let nothing through."""
        yield from towards_void(self.materials, periodic, self.mixed) if self.exposed else ()


@dataclass(frozen=True, eq=False)
class LinkTables:
    """Data that depend on the time step; see composite/materials.cuh. Numbers are in the field's precision.

    Attributes:
        c: c0…c6 of a body of one type.
        inner: (cx, cy, cz, 0) of each type's interior cells, shape (types, 4).
        links: c_ab, shape (3, types, types).
        halves: (conductance, share, gain, condition towards void) of each type and axis, shape (types, 3, 4).
    """

    c: Field
    inner: Field
    links: Field
    halves: Field


@dataclass(frozen=True, eq=False)
class StepRow:
    """Data of one step. Numbers are in the field's precision.

    Attributes:
        conditions: the six numbers of each condition, shape (conditions, 6).
        held: potential in K of each type at the ambient of each condition, shape (conditions, types); (conditions, 0)
            if no material varies with temperature.
        heat: heat of the sources in a cell of each type in K, shape (types,).
        beams: for each face the flux of beams on its cells in W/m², of its shape, or an empty array.
        factor: length of the step / that for which the tables are made; 1 except with increments.
        amounts: what sources give to single cells, shape (amounts + 1,).
        spots: the spots of beams in this step.
    """

    conditions: Field
    held: Field
    heat: Field
    beams: Sequence[Field]
    factor: Any
    amounts: Field
    spots: Sequence[BeamRows]


@dataclass(frozen=True, eq=False)
class StepRows:
    """Data of several steps. Numbers are in the field's precision; arrays of one row hold for all steps.

    Attributes:
        count: number of steps.
        conditions, held, heat: as in :class:`StepRow`, with an axis for the steps in front.
        factors: those of the steps, shape (count or 1,).
        beams: what beams bring; those that are off in all steps may be missing.
        face_shapes: the cells of each face.
        amounts: as in :class:`StepRow`, with an axis for the steps in front.
        part_of: the longer rows that these are a slice of, and the slice; None for rows that are no slice.
    """

    count: int
    conditions: Field
    held: Field
    heat: Field
    factors: Field
    beams: Sequence[BeamRows]
    face_shapes: Sequence[tuple[int, int]]
    amounts: Field
    part_of: "tuple[StepRows, slice] | None" = None

    def __getitem__(self, some: slice) -> "StepRows":
        """The data of some of the steps."""

        def of(part: Field) -> Field:
            return part[some] if len(part) > 1 else part

        return StepRows(
            count=len(range(self.count)[some]),
            conditions=of(self.conditions),
            held=of(self.held),
            heat=of(self.heat),
            factors=of(self.factors),
            beams=[beam[some] for beam in self.beams],
            face_shapes=self.face_shapes,
            amounts=of(self.amounts),
            part_of=(self, some),
        )

    @cached_property
    def radiates(self) -> bool:
        """Whether a condition has radiation, or a table of fluxes; of a slice, whether one in the longer rows has."""
        if self.part_of is not None:
            return self.part_of[0].radiates
        return bool(np.any((self.conditions[..., EMISSION] > 0) | (self.conditions[..., FREE] == LAW)))

    def row(self, step: int) -> StepRow:
        """The data of one step."""
        beams = [np.zeros((0, 0), dtype=self.factors.dtype) for _ in range(6)]
        for beam in self.beams:
            if beam.at_face and not beams[beam.face].size:
                beams[beam.face] = np.zeros(self.face_shapes[beam.face], dtype=self.factors.dtype)
            if beam.at_face:
                beam.add_to(beams[beam.face], step)
        conditions, held, heat, amounts = (
            _of(part, step) for part in (self.conditions, self.held, self.heat, self.amounts)
        )
        own = [beam[step : step + 1] for beam in self.beams]
        return StepRow(conditions, held, heat, beams, _of(self.factors, step), amounts, own)


def _of(rows: Field, step: int) -> Any:
    return rows[min(step, len(rows) - 1)]


class CompositeCall(NamedTuple):
    """The arguments of a CPU kernel for composite bodies, besides the field.

    Attributes:
        periodic: which of the axes x, y and z wrap.
        body: the body.
        tables: what depends on the length of the steps.
        steps: what changes from step to step.
        ledger: the sums to which heat is added.
        scheme: how a step is summed.
        base: with it, one step sets T_new = base + factor·increments; an empty array stands for 0. It needs the scheme
            "increments".
    """

    periodic: tuple[bool, bool, bool]
    body: HostBody
    tables: LinkTables
    steps: StepRows
    ledger: HeatSums
    scheme: Scheme
    base: Field | None = None
