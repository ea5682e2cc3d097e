"""The arrays of a composite body that kernels read (composite/composite.cuh), on the host and on a device."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import structs
from heatsim.kernels.composite.heat_tables import make_heat_tables, on_device
from heatsim.kernels.composite.tables import EnthalpyTables, make_enthalpy_tables
from heatsim.kernels.cpu.composite_body import HostBody, LinkTables, StepRows
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.cells.link_weights import surface_weights
from heatsim.physics.conditions.mixed_cells import NO_MIXED_CELLS, MixedCells
from heatsim.physics.operator.heat_sums import HeatSums
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.sources.beam_rows import BeamRows


def make_tables(materials: CellTypes, c: tuple[float, ...], dt: float, precision: str) -> LinkTables:
    """The tables that depend on the time step.

    Args:
        materials: the cell types.
        c: c0…c6, for a body with one cell type.
        dt: the time step in s.
        precision: the precision of the tables.
    """
    links = materials.coefficients(dt).astype(precision, order="C")
    inner = np.zeros((len(materials.types), 4), dtype=precision)
    inner[:, :3] = links.diagonal(axis1=1, axis2=2).T
    halves = np.zeros((len(materials.types), 3, 4), dtype=precision)
    halves[:, :, :3] = materials.half_cells(dt)
    if len(materials.void_conditions):
        halves[:, :, 3] = materials.void_conditions[:, None]
    return LinkTables(np.array(c, dtype=precision), inner, links, halves)


@dataclass(frozen=True, eq=False)
class SweepTable:
    """The data of several steps on a device.

    Attributes:
        table: struct StepData of each step, an array of bytes on the device.
        itemsize: bytes of a struct.
        arrays: the arrays that the structs point to; of general bodies first the numbers of conditions.
    """

    table: Any
    itemsize: int
    arrays: tuple[Any, ...] = ()

    def address(self, step: int) -> int:
        """The device address of a step's struct."""
        return int(self.table.data.ptr) + step * self.itemsize

    def conditions(self, some: slice) -> Sequence[int]:
        """The device addresses of the numbers of conditions, of some steps of a general body."""
        addresses: list[int] = _pointers(self.arrays[0], some.stop)[some].tolist()
        return addresses

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
        planes: the factors of graded axes as CUDA kernels read them (:func:`heatsim.kernels.structs.planes`).
    """

    def __init__(
        self,
        device: Device,
        materials: CellTypes,
        maps: tuple[NDArray[np.uint8], ...],
        reference: float,
        precision: str,
        open_faces: tuple[bool, ...] = (True,) * 6,
        mixed: MixedCells = NO_MIXED_CELLS,
        beams: int = 0,
    ) -> None:
        xp, surfaces = device.xp, materials.weighted_surfaces
        enthalpies = make_enthalpy_tables(materials, precision)
        self.device = device
        self.precision = precision
        self.materials = materials
        self._face_shapes = [materials.grid.face_shape(face) for face in range(6)]
        self.open_faces = open_faces
        self.mixed = bool(len(mixed.places))
        self.planes = xp.asarray(structs.planes(materials.grid, precision))
        self.body = HostBody(
            materials=materials,
            cells=xp.ascontiguousarray(xp.asarray(materials.cells)),
            maps=tuple(xp.ascontiguousarray(xp.asarray(numbers)) for numbers in maps),
            mixed=replace(mixed, fractions=mixed.fractions.astype(precision)),
            bits=xp.asarray(surfaces.bits),
            before=xp.asarray(surfaces.before),
            weights=xp.asarray(surface_weights(materials).astype(precision, order="C")),
            contacts=surfaces.contacts,
            reference=np.dtype(precision).type(reference),
            first_heated=materials.first_heated,
            void=-1 if materials.void is None else materials.void,
            exposed=materials.exposed_cells > 0,
            enthalpies=EnthalpyTables(
                **{name: xp.ascontiguousarray(xp.asarray(table)) for name, table in vars(enthalpies).items()}
            ),
            open_faces=tuple(open_faces),
            heated=on_device(make_heat_tables(materials.heated, reference, precision), xp),
            lit=xp.asarray(materials.heated.lit),
            planes=tuple(xp.asarray(axis.kernel_factors(precision)) for axis in materials.grid.axes),
            beams=beams,
        )

    def coefficients(self, tables: LinkTables, conditions: int, numbers: int) -> tuple[NDArray[Any], tuple[Any, ...]]:
        """Struct Coefficients as a 0-d array, and the device arrays that it points to.

        Args:
            tables: what depends on the length of the steps.
            conditions: number of rows of conditions of a step, with their tables.
            numbers: how many numbers they and the held potentials are.
        """
        body = self.body
        arrays = [self.device.xp.asarray(table) for table in (tables.inner, tables.links, tables.halves)]
        varies, heats, lit = body.enthalpies.vary, bool(len(body.heated)), bool(len(body.lit))
        graded = not self.materials.grid.uniform
        dtype = structs.general_coefficients_dtype(self.precision, varies, self.mixed, heats, lit, graded)
        struct = np.zeros((), dtype=dtype)
        struct["c"] = tables.c
        materials = struct["materials"]
        materials["cells"] = address(body.cells)
        materials["inner"], materials["links"], materials["halves"] = map(address, arrays)
        materials["patches"] = [address(numbers) for numbers in body.maps]
        materials["weighted"], materials["before"] = address(body.bits), address(body.before)
        materials["weights"] = address(body.weights)
        materials["reference"] = body.reference
        materials["count"], materials["first_heated"] = len(tables.inner), body.first_heated
        materials["beams"] = body.beams
        materials["void_type"], materials["exposed"] = body.void, body.exposed
        materials["numbers"] = numbers
        materials["open"] = sum(1 << face for face, lets_through in enumerate(self.open_faces) if lets_through)
        if varies:
            materials["held"] = 6 * conditions
            arrays += self._enter_enthalpies(materials)
        if self.mixed:
            arrays += self._enter_mixed_cells(materials)
        if lit:
            materials["lit"] = address(body.lit)
        if graded:
            materials["planes"] = address(self.planes)
        if heats:
            heated, of = materials["heated"], body.heated
            heated["arrays"] = [address(array) for array in (self.cell_heat, *vars(of).values())]
            heated["count"], heated["amounts"] = len(of), len(of.table_of)
        return struct, tuple(arrays)

    def _enter_enthalpies(self, materials: NDArray[Any]) -> list[Any]:
        """Enter the tables of varying materials into struct Materials; returns new device arrays that it points to."""
        enthalpies, to_host = self.body.enthalpies, self.device.to_host
        of_type = np.zeros(len(enthalpies.places), dtype=structs.enthalpy_dtype(self.precision))
        of_type["place"], of_type["base"] = to_host(enthalpies.places), to_host(enthalpies.bases)
        types = self.device.xp.asarray(of_type.view(np.uint8))
        tables = types, enthalpies.potentials, enthalpies.states, enthalpies.resistances
        materials["enthalpies"] = [address(table) for table in tables]
        return [types]

    def _enter_mixed_cells(self, materials: NDArray[Any]) -> list[Any]:
        """Enter the cells that several conditions share; returns the device arrays that struct Materials points to."""
        mixed = self.body.mixed
        parts = np.zeros(len(mixed.numbers), dtype=structs.part_dtype(self.precision))
        parts["number"], parts["fraction"] = mixed.numbers, mixed.fractions
        tables = [
            self.device.xp.asarray(table)
            for table in (mixed.places, mixed.first.astype(np.uint32), parts.view(np.uint8))
        ]
        materials["mixed"] = [address(table) for table in tables]
        materials["mixed_cells"] = len(mixed.places)
        return tables

    @cached_property
    def cell_heat(self) -> Any:
        """The heat of each cell of the grid in a step in K, where sources heat single cells; −0 in all others."""
        return self.device.xp.full(self.materials.grid.shape, -0.0, dtype=self.precision)

    def sweeps(self, rows: StepInputs, count: int, rate: bool = False, base: Any = None) -> SweepTable:
        """Struct StepData of ``count`` steps on the device.

        Args:
            rows: what changes from step to step.
            count: how many steps there are.
            rate: whether they are for a build with ``rate``.
            base: for such a build the field, on the device, to which the increments are added; None for 0.
        """
        # The potentials of held conditions follow the conditions of each step.
        numbers = np.hstack([part.reshape(len(part), -1) for part in (rows.conditions, rows.held)])
        arrays = {"conditions": self._on_device(numbers), "heat": self._on_device(rows.heat)}
        heats = bool(len(self.body.heated))
        if heats:
            arrays["amounts"] = self._on_device(rows.amounts)
        kept = list(arrays.values())
        if self.body.beams:
            arrays["spots"], weights = self._spots(rows.beams) if rows.beams else (self._no_spots, [])
            kept += [arrays["spots"], *weights]
        table = np.zeros(count, dtype=structs.general_sweep_dtype(self.precision, rate, heats))
        table["factor"] = rows.factors
        if base is not None:
            table["base"] = address(base)
        for name, array in arrays.items():
            table[name] = _pointers(array, count)
        return SweepTable(self.device.xp.asarray(table.view(np.uint8)), table.itemsize, tuple(kept))

    def _spots(self, beams: Sequence[BeamRows]) -> tuple[Any, list[Any]]:
        """Struct BeamSpot of the spots of each step, or of all steps, and the arrays of weights that these point to."""
        steps, kept = max((len(beam.first) for beam in beams), default=1), list[Any]()
        found = [np.zeros((steps, count), dtype=structs.BEAM_SPOT) for count in (*(b.first.shape[1] for b in beams), 1)]
        found[-1]["face"] = structs.NO_SPOT
        for beam, spots in zip(beams, found[:-1], strict=True):
            weights = [self._on_device(weight) for weight in beam.weights]
            kept += weights
            places = np.arange(spots.shape[1], dtype=np.uint64)[:, None]
            within = places * np.array([weight.strides[1] for weight in weights], dtype=np.uint64)
            spots["weights"] = np.stack([_pointers(weight, steps) for weight in weights], axis=1)[:, None] + within
            spots["beam"], spots["first"] = beam.number, beam.first
            spots["count"] = [part.shape[2] for part in weights]
            there = np.arange(spots.shape[1]) < beam.spots[:, None]
            spots["face"] = np.where(there, beam.face if beam.at_face else -1, structs.NO_SPOT)
        every = np.hstack(found)
        order = np.argsort(every["face"] == structs.NO_SPOT, axis=1, kind="stable")
        every = np.take_along_axis(every, order, axis=1)
        return self.device.xp.asarray(every.view(np.uint8).reshape(steps, -1)), kept

    @cached_property
    def _no_spots(self) -> Any:
        """The spots of steps in which all beams are off."""
        return self._spots([])[0]

    def _on_device(self, numbers: NDArray[np.float64]) -> Any:
        """Numbers in the precision of the field, on the device."""
        return self.device.xp.asarray(numbers.astype(self.precision, order="C"))

    def steps(self, rows: StepInputs, count: int) -> StepRows:
        """The data of ``count`` steps for a CPU kernel."""
        conditions, held, heat, factors, amounts = (
            np.ascontiguousarray(part, dtype=self.precision)
            for part in (rows.conditions, rows.held, rows.heat, rows.factors, rows.amounts)
        )
        beams = []
        for beam in rows.beams:
            u, v = (np.ascontiguousarray(weights, dtype=self.precision) for weights in beam.weights)
            beams.append(replace(beam, weights=(u, v)))
        return StepRows(count, conditions, held, heat, factors, beams, self._face_shapes, amounts)


def ledger_struct(sums: HeatSums, *, linear: bool = False) -> NDArray[Any]:
    """Struct Ledger as a 0-d array; ``linear``: that of kernels for bodies whose faces hold f − g·T."""
    struct = np.zeros((), dtype=structs.LEDGER if linear else structs.GENERAL_LEDGER)
    struct["face"] = [address(of_face) for of_face in sums.heats.faces]
    if not linear:
        struct["parts"], struct["exposed"] = address(sums.heats.parts), address(sums.heats.towards_void)
        struct["cells"], struct["beams"] = address(sums.cells), sums.layout.to_beams
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
