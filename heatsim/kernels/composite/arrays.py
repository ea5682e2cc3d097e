"""The arrays of a composite body that kernels read (composite/composite.cuh), on the host and on a device."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import structs
from heatsim.kernels.composite.tables import EnthalpyTables, make_enthalpy_tables
from heatsim.kernels.cpu.composite_oracle import Entries, HostBody, LinkTables, StepRow
from heatsim.physics.body import Rows
from heatsim.physics.cell_types import INTERIOR, Medium
from heatsim.physics.enthalpy import Thermometer
from heatsim.physics.link_weights import surface_weights
from heatsim.physics.mixed_cells import NO_MIXED_CELLS, MixedCells

KIND = np.uint8(INTERIOR - 1)
_CELLS_AT_ONCE = 2**22


def make_tables(medium: Medium, c: tuple[float, ...], dt: float, precision: str) -> LinkTables:
    """The tables that depend on the time step.

    Args:
        medium: the types of cells.
        c: c0…c6, for a body of one kind.
        dt: the time step in s.
        precision: the precision of the tables.
    """
    links = medium.coefficients(dt).astype(precision, order="C")
    inner = np.zeros((len(medium.kinds), 4), dtype=precision)
    inner[:, :3] = links.diagonal(axis1=1, axis2=2).T
    halves = np.zeros((len(medium.kinds), 3, 4), dtype=precision)
    halves[:, :, :3] = medium.half_cells(dt)
    return LinkTables(np.array(c, dtype=precision), inner, links, halves)


@dataclass(frozen=True, eq=False)
class SweepTable:
    """The data of several steps on a device.

    Attributes:
        table: struct Sweep of each step, an array of bytes on the device.
        itemsize: bytes of a struct.
        arrays: the arrays that the structs point to.
    """

    table: Any
    itemsize: int
    arrays: tuple[Any, ...] = ()

    def address(self, step: int) -> int:
        """The device address of a step's struct."""
        return int(self.table.data.ptr) + step * self.itemsize

    def part(self, first: int, count: int) -> Any:
        """The bytes of ``count`` steps from ``first`` on."""
        return self.table[first * self.itemsize : (first + count) * self.itemsize]


class CompositeArrays:
    """The arrays of a body on a device.

    Attributes:
        device: the device.
        body: the arrays in the form that CPU kernels take; on a GPU they are device arrays.
        open_faces: which faces of the box let heat through.
        mixed: whether several conditions share cells at faces.
    """

    def __init__(
        self,
        device: Device,
        medium: Medium,
        maps: tuple[NDArray[np.uint8], ...],
        void_condition: int | None,
        reference: float,
        precision: str,
        open_faces: tuple[bool, ...] = (True,) * 6,
        mixed: MixedCells = NO_MIXED_CELLS,
    ) -> None:
        xp, exposure = device.xp, medium.exposure
        nothing = np.zeros(0, dtype=np.uint32)
        enthalpies = make_enthalpy_tables(medium, precision)
        self.device = device
        self.precision = precision
        self.medium = medium
        self.open_faces = open_faces
        self.mixed = bool(len(mixed.places))
        self.body = HostBody(
            cells=xp.ascontiguousarray(xp.asarray(medium.cells)),
            maps=tuple(xp.ascontiguousarray(xp.asarray(numbers)) for numbers in maps),
            mixed=replace(mixed, fractions=mixed.fractions.astype(precision)),
            bits=xp.asarray(nothing if exposure is None else exposure.bits),
            before=xp.asarray(nothing if exposure is None else exposure.before),
            weights=xp.asarray(
                (np.zeros((0, 6)) if exposure is None else surface_weights(medium)).astype(precision, order="C")
            ),
            contacts=exposure is not None and exposure.contacts,
            reference=np.dtype(precision).type(reference),
            first_heated=medium.first_heated,
            void=-1 if medium.void is None else medium.void,
            void_condition=-1 if void_condition is None or not medium.exposed_cells else void_condition,
            enthalpies=EnthalpyTables(
                *(
                    xp.ascontiguousarray(xp.asarray(table))
                    for table in (
                        enthalpies.places,
                        enthalpies.bases,
                        enthalpies.potentials,
                        enthalpies.states,
                        enthalpies.resistances,
                    )
                )
            ),
        )

    @cached_property
    def capacities(self) -> Any:
        """ρ·cp·V of a cell of each kind in J/K, on the device."""
        return self.device.xp.asarray(self.medium.cell_heat_capacity)

    @cached_property
    def thermometer(self) -> Thermometer | None:
        """Converts the field's contents to temperatures; None if the field holds temperatures."""
        if not self.medium.varies:
            return None
        cells = self.body.cells
        return Thermometer(
            self.device.xp, self.medium.enthalpies, lambda place: cells[place] & KIND if cells.size else 0
        )

    def content(self, deviation: Any, *, absolute: bool = False) -> float:
        """Σ ρ·cp·V·T over the cells in J, in a fixed order; Σ ρ·cp·V·|T| if ``absolute``.

        If materials vary with temperature, the field holds contents, in kelvins of these same heat capacities. So the
        sum is the heat in this case too.
        """
        total = 0.0
        for planes in _slabs(deviation):
            slab = abs(deviation[planes]) if absolute else deviation[planes]
            weights = self.capacities[self.body.cells[planes] & KIND] if self.body.cells.size else self.capacities[0]
            total += (slab * weights).sum(dtype=np.float64)
        return float(total)

    def extremes(self, deviation: Any) -> tuple[float, float]:
        """The lowest and highest deviation in temperature of cells that are not void."""
        lowest, highest = np.inf, -np.inf
        for planes in _slabs(deviation):
            slab = deviation[planes] if self.thermometer is None else self.thermometer(deviation[planes], planes)
            if self.body.void >= 0:
                slab = slab[(self.body.cells[planes] & KIND) != self.body.void]
            if slab.size:
                lowest, highest = min(lowest, float(slab.min())), max(highest, float(slab.max()))
        return lowest, highest

    def extremes_of_kinds(self, deviation: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The lowest and highest value in the field for each kind; inf and −inf for void."""
        kinds = len(self.medium.kinds)
        lowest, highest = np.full(kinds, np.inf), np.full(kinds, -np.inf)
        for planes in _slabs(deviation):
            for kind in range(kinds):
                if kind != self.body.void:
                    low, high = (self._of_kind(deviation, planes, kind, fill) for fill in (np.inf, -np.inf))
                    lowest[kind] = min(lowest[kind], float(low.min()))
                    highest[kind] = max(highest[kind], float(high.max()))
        return lowest, highest

    def lowest_cell(self, deviation: Any, kind: int) -> int:
        """The flat index of the first cell of a kind that has the lowest value of this kind in the field."""
        best, cell = np.inf, 0
        for planes in _slabs(deviation):
            slab = self._of_kind(deviation, planes, kind, np.inf).reshape(-1)
            place = int(slab.argmin())
            if float(slab[place]) < best:
                best, cell = float(slab[place]), planes.start * deviation[0].size + place
        return cell

    def _of_kind(self, deviation: Any, planes: slice, kind: int, fill: float) -> Any:
        """Some planes, with ``fill`` in the cells of other kinds."""
        slab = deviation[planes]
        if not self.body.cells.size:
            return slab
        return self.device.xp.where((self.body.cells[planes] & KIND) == kind, slab, slab.dtype.type(fill))

    def mean(self, deviation: Any) -> float:
        """The mean deviation in temperature of cells that are not void."""
        total, count = 0.0, 0
        for planes in _slabs(deviation):
            slab = deviation[planes] if self.thermometer is None else self.thermometer(deviation[planes], planes)
            if self.body.void >= 0:
                slab = slab[(self.body.cells[planes] & KIND) != self.body.void]
            total += float(slab.sum(dtype=np.float64))
            count += slab.size
        return total / count

    def coefficients(self, tables: LinkTables, beams: int, conditions: int) -> tuple[NDArray[Any], tuple[Any, ...]]:
        """Struct Coefficients as a 0-d array, and the device arrays that it points to."""
        xp, body = self.device.xp, self.body
        arrays = tuple(xp.asarray(table) for table in (tables.inner, tables.links, tables.halves))
        enthalpies = body.enthalpies
        struct = np.zeros((), dtype=structs.general_coefficients_dtype(self.precision, enthalpies.vary, self.mixed))
        struct["c"] = tables.c
        medium = struct["medium"]
        medium["cells"] = address(body.cells)
        medium["inner"], medium["links"], medium["halves"] = (address(array) for array in arrays)
        medium["patches"] = [address(numbers) for numbers in body.maps]
        medium["weighted"], medium["before"], medium["weights"] = map(address, (body.bits, body.before, body.weights))
        medium["reference"] = body.reference
        medium["kinds"], medium["first_heated"], medium["beams"] = len(tables.inner), body.first_heated, beams
        medium["void_kind"], medium["void_condition"] = body.void, body.void_condition
        medium["open"] = sum(1 << face for face, lets_through in enumerate(self.open_faces) if lets_through)
        if enthalpies.vary:
            of_kind = np.zeros(len(tables.inner), dtype=structs.enthalpy_dtype(self.precision))
            of_kind["place"], of_kind["base"] = (
                self.device.to_host(enthalpies.places),
                self.device.to_host(enthalpies.bases),
            )
            arrays = (*arrays, xp.asarray(of_kind.view(np.uint8)))
            medium["held"] = 6 * conditions
            medium["enthalpies"] = [
                address(table)
                for table in (arrays[-1], enthalpies.potentials, enthalpies.states, enthalpies.resistances)
            ]
        if self.mixed:
            mixed = body.mixed
            parts = np.zeros(len(mixed.numbers), dtype=structs.part_dtype(self.precision))
            parts["number"], parts["fraction"] = mixed.numbers, mixed.fractions
            tables_of_cells = (mixed.places, mixed.first.astype(np.uint32), parts.view(np.uint8))
            arrays = (*arrays, *map(xp.asarray, tables_of_cells))
            medium["mixed"] = [address(table) for table in arrays[-3:]]
            medium["mixed_cells"] = len(mixed.places)
        return struct, arrays

    def sweeps(self, rows: Rows, first: int, count: int) -> SweepTable:
        """Steps ``first`` … ``first + count − 1`` on the device."""
        xp = self.device.xp
        # The potentials of held conditions follow the conditions of each step.
        numbers = np.hstack([part.reshape(len(part), -1) for part in (rows.conditions, rows.held)])
        conditions = xp.asarray(numbers.astype(self.precision, order="C"))
        heat = xp.asarray(rows.heat.astype(self.precision, order="C"))
        table = np.zeros(count, dtype=structs.GENERAL_SWEEP)
        table["step"] = np.arange(first, first + count) & 0xFFFFFFFF
        table["conditions"] = _pointers(conditions, count)
        table["heat"] = _pointers(heat, count)
        arrays = [conditions, heat]
        if rows.beams:
            steps = max(len(beam.first) for beam in rows.beams)
            beams = np.zeros((steps, len(rows.beams)), dtype=structs.BEAM)
            for number, beam in enumerate(rows.beams):
                weights = [xp.asarray(weight.astype(self.precision, order="C")) for weight in beam.weights]
                arrays += weights
                column = beams[:, number]
                column["face"] = beam.face
                column["first"] = beam.first
                column["count"] = [weight.shape[1] for weight in weights]
                column["weights"] = np.stack([_pointers(weight, steps) for weight in weights], axis=1)
            on_device = xp.asarray(beams.view(np.uint8).reshape(steps, -1))
            arrays.append(on_device)
            table["beams"] = _pointers(on_device, count)
        return SweepTable(xp.asarray(table.view(np.uint8)), table.itemsize, tuple(arrays))

    def row(self, rows: Rows, step: int, grid: Grid) -> StepRow:
        """The data of step ``step`` of ``rows`` for a CPU kernel."""
        number = np.dtype(self.precision).type
        beams = [np.zeros((0, 0), dtype=self.precision) for _ in range(6)]
        nz, ny, nx = grid.shape
        shapes = ((nz, ny), (nz, nx), (ny, nx))
        for beam in rows.beams:
            if not beams[beam.face].size:
                beams[beam.face] = np.zeros(shapes[beam.face // 2], dtype=self.precision)
            u, v = (weight[min(step, len(weight) - 1)].astype(number) for weight in beam.weights)
            first_u, first_v = beam.first[min(step, len(beam.first) - 1)]
            beams[beam.face][first_v : first_v + len(v), first_u : first_u + len(u)] += np.outer(v, u)
        conditions, held = (part[min(step, len(part) - 1)].astype(number) for part in (rows.conditions, rows.held))
        return StepRow(conditions, held, rows.heat[min(step, len(rows.heat) - 1)].astype(number), beams)


def ledger_struct(entries: Entries) -> NDArray[Any]:
    """Struct Ledger as a 0-d array."""
    struct = np.zeros((), dtype=structs.GENERAL_LEDGER)
    struct["face"] = [address(sums) for sums in entries.faces]
    struct["beam"] = [address(sums) for sums in entries.beams]
    struct["exposed"], struct["parts"] = address(entries.exposed), address(entries.parts)
    return struct


def address(array: Any) -> int:
    """The address of an array's memory; 0 if it is empty."""
    if not array.size:
        return 0
    return int(array.ctypes.data) if isinstance(array, np.ndarray) else int(array.data.ptr)


def _pointers(rows: Any, count: int) -> NDArray[np.uint64]:
    """The addresses of an array's rows, one for each step; the same for all if there is a single row."""
    stride = rows.strides[0] if len(rows) > 1 else 0
    return (address(rows) + stride * np.arange(count)).astype(np.uint64)


def _slabs(field: Any) -> Iterator[slice]:
    """Slices of a few planes of an array [z, y, x], so that temporaries stay small."""
    planes = max(1, _CELLS_AT_ONCE // field[0].size)
    for first in range(0, len(field), planes):
        yield slice(first, min(first + planes, len(field)))
