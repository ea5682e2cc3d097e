"""Cell types, and the conductances between cells.

A cell type is a material together with the sources that heat it and what layers add to it. The conductance between the
centres of two neighbours is that of two half cells in series, with the contact resistance R between them (Incropera,
*Fundamentals of Heat and Mass Transfer*, §3.1.4), so that the interface of a composite wall is exact:

    link = 1 / (d/2k_a + R + d/2k_b)    W/(m² K)

If a material varies with temperature, these numbers hold at the reference temperature, and its enthalpy table gives
their change. Within one such material the potential drives conduction, so the link is the same at all temperatures.
Between two materials each half cell has the conductivity at its own centre. A surface held at a temperature has a known
potential.

All of these numbers are those of cells of the mean widths. The factors of the grid's axes give those of each cell
(:class:`heatsim.grid.Axis`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.cells.cell_heat import NO_HEATED_CELLS, HeatedCells
from heatsim.physics.cells.weighted_surfaces import NO_WEIGHTED_SURFACES, WeightedSurfaces
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.layers.layering import NO_LAYERS, Layering
from heatsim.physics.matter.enthalpy import EnthalpyTable, constant
from heatsim.physics.matter.material_numbers import VOID, MaterialNumbers

Array = NDArray[np.float64]

INTERIOR = 0x80  # bit of a cell's byte
MAXIMUM_CELL_TYPES = 127  # cell types
CELL_TYPE = np.uint8(INTERIOR - 1)  # the other bits: the index of its type
_CELLS_AT_ONCE = 2**18


class TooManyCellTypesError(ValueError):
    """More cell types than a byte per cell can number."""


@dataclass(frozen=True)
class CellType:
    """What the cells of a type have in common.

    Attributes:
        material: index in the palette.
        sources: those that heat it, as indices in the list of sources.
        added: heat capacity that layers add, in J/(m³ K).
        half: resistance between node and surface along x, y, z in m² K/W, where layers change it; else None.
    """

    material: int
    sources: tuple[int, ...] = ()
    added: float = 0.0
    half: tuple[float, float, float] | None = None


@dataclass(frozen=True, eq=False)
class CellTypes:
    """The cell types of a body, and the conductances between its cells.

    Attributes:
        grid: the cells.
        palette: the materials; those of regions that contacts or surfaces name stand there once more.
        types: the cell types: those without sources first, then void, then those with sources.
        cells: one byte per cell: the index of its type, and the bit INTERIOR if all its neighbours have the same type;
            shape (nz, ny, nx), or of the planes that are held; empty if there is one type.
        counts: the number of cells of each type in the whole grid.
        link: conductance between neighbouring centres in W/(m² K), 0 towards void; the largest one across a gap;
            shape (3, types, types).
        half: d/2k in m² K/W, infinite for void; between node and surface for types with layers; shape (3, types).
        heat_capacity: in J/(m³ K), 0 for void; shape (types,).
        resistance: contact resistances in m² K/W, the smallest ones of gaps; shape (types, types).
        void: the index of void among the cell types; None if there is no void.
        weighted_surfaces: the cells with weighted surfaces: contacts, and void surfaces that let heat through.
        surface_areas: smooth areas in m² of these surfaces, by pairs of materials (indices in the palette).
        void_conditions: the condition on surfaces of each type towards void, shape (types,); MIXED if it varies in
            space, see :mod:`heatsim.physics.conditions.mixed_cells`. Empty if these surfaces let nothing through.
        layering: what layers change; all links of their cells are in ``weighted_surfaces`` too.
        heated: the cells that sources heat individually; types count only sources that heat all their cells alike.
        held: the planes of ``cells``.
        face_types: the types of the cells at each face of the grid; empty if ``held`` has all planes.
        of_whole: the cell types of the whole grid, if these are those of a rank's slab.
        gap_of: the row of the gap law between two types, −1 for none; shape (types, types), or empty.
    """

    grid: Grid
    palette: tuple[MaterialNumbers, ...]
    types: tuple[CellType, ...]
    cells: NDArray[np.uint8]
    counts: NDArray[np.int64]
    link: Array
    half: Array
    heat_capacity: Array
    resistance: Array
    void: int | None = None
    weighted_surfaces: WeightedSurfaces = NO_WEIGHTED_SURFACES
    surface_areas: Mapping[frozenset[int], float] = field(default_factory=dict)
    void_conditions: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    layering: Layering = NO_LAYERS
    heated: HeatedCells = NO_HEATED_CELLS
    held: PaintedPlanes = EVERYTHING
    face_types: tuple[NDArray[np.uint8], ...] = ()
    of_whole: "CellTypes | None" = None
    gap_of: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    @property
    def has_gaps(self) -> bool:
        """Whether any link has a gap law."""
        return bool(self.gap_of.size)

    @property
    def by_halves(self) -> bool:
        """Whether links between materials are those of two half cells whose resistance, or that between, changes."""
        return self.varies or self.has_gaps

    @property
    def uniform(self) -> bool:
        """Whether all cells have one type."""
        return len(self.types) == 1

    @cached_property
    def varies(self) -> bool:
        """Whether a material with cells varies with temperature."""
        return any(self.palette[cell_type.material].enthalpy is not None for cell_type in self.types)

    @cached_property
    def enthalpies(self) -> tuple[EnthalpyTable, ...]:
        """The enthalpy table of each cell type; types of one material share the table."""
        unchanging = {
            place: constant(substance.conductivity or (0.0, 0.0, 0.0), substance.heat_capacity)
            for place, substance in enumerate(self.palette)
        }
        places = [cell_type.material for cell_type in self.types]
        return tuple(self.palette[place].enthalpy or unchanging[place] for place in places)

    def with_palette(self, palette: Sequence[MaterialNumbers]) -> "CellTypes":
        """A copy with other enthalpy tables of the same materials."""
        return replace(self, palette=tuple(palette))

    def by_enthalpy(
        self, of: Callable[[EnthalpyTable, Any, Any], Any], cell_types: Any, deviation: Any, xp: Any = np
    ) -> Any:
        """A quantity of cells from their temperatures, of the shape of ``cell_types``.

        Args:
            of: a method of EnthalpyTable that returns the quantity, such as ``EnthalpyTable.content_at``.
            cell_types: the types of the cells.
            deviation: T − T_ref in K, of the same shape.
            xp: NumPy or CuPy, the library of both arrays.
        """
        tables = list(dict.fromkeys(self.enthalpies))
        if len(tables) == 1:
            return of(tables[0], deviation, xp)
        found = xp.empty(deviation.shape)
        out, values = found.reshape(-1), deviation.reshape(-1)
        table_of = np.array([tables.index(enthalpy) for enthalpy in self.enthalpies], dtype=np.uint8)
        numbers = xp.asarray(table_of)[cell_types.reshape(-1)]
        for number, enthalpy in enumerate(tables):
            cells = xp.flatnonzero(numbers == number)
            if len(cells):
                out[cells] = of(enthalpy, values[cells], xp)
        return found

    def potentials_at(self, deviation: Array) -> Array:
        """φ in K of each cell type at T − T_ref in K, shape (*deviation.shape, types); (…, 0) if nothing varies."""
        enthalpies = self.enthalpies if self.varies else ()
        found = {enthalpy: enthalpy.potential_at(deviation) for enthalpy in dict.fromkeys(enthalpies)}
        return np.moveaxis(
            np.array([found[enthalpy] for enthalpy in enthalpies]).reshape(len(enthalpies), *deviation.shape), 0, -1
        )

    def contents(self, first: int, deviation: Array) -> Array:
        """The contents in K of cells in planes from ``first`` on, for T − T_ref in K; both (planes, ny, nx)."""
        if not self.varies:
            return deviation
        if self.uniform:
            return np.asarray(self.enthalpies[0].content_at(deviation))
        cell_types = self.cells[self.held.local(slice(first, first + len(deviation)))] & CELL_TYPE
        return np.asarray(self.by_enthalpy(EnthalpyTable.content_at, cell_types, deviation))

    @cached_property
    def first_heated(self) -> int:
        """The index of the first cell type with sources; the number of types if no type has sources."""
        return next((number for number, cell_type in enumerate(self.types) if cell_type.sources), len(self.types))

    @property
    def first_material(self) -> MaterialNumbers:
        """The first material of the palette that conducts and has cells."""
        return self.palette[min(each.material for each in self.types if self.palette[each.material].conductivity)]

    @property
    def diffusion_rates(self) -> tuple[float, float, float]:
        """α/d² along x, y, z in 1/s, of :attr:`first_material`."""
        found, spacing = self.first_material, self.grid.mean_spacing
        x, y, z = (k / found.heat_capacity / d**2 for k, d in zip(found.conductivity or (), spacing, strict=True))
        return x, y, z

    @cached_property
    def cell_heat_capacity(self) -> Array:
        """ρ·cp·V of a cell of each type and of the mean volume in J/K, shape (types,)."""
        return self.heat_capacity * self.grid.mean_volume

    @cached_property
    def volumes(self) -> Array:
        """The volume of all cells of each type in mean volumes of a cell, shape (types,): ``counts`` of equal cells.

        Collective at the first access.
        """
        if self.of_whole is not None:
            return self.of_whole.volumes
        if self.grid.uniform:
            return self.counts.astype(np.float64)
        x, y, z = (axis.volume_factors for axis in self.grid.axes)
        if self.uniform:
            return np.array([x.sum() * y.sum() * z.sum()])
        first, last = self.held.own_planes(self.grid.cells[2])
        planes = np.arange(first, last)
        across = (y[:, None] * x).reshape(-1)
        found = [
            z[plane] * np.bincount(self.types_of(slice(plane, plane + 1)).reshape(-1), across, len(self.types))
            for plane in planes
        ]
        # Sums of planes, added in their order on all ranks: the same bits.
        return np.asarray(
            np.concatenate([*self.held.gathered(np.array(found).reshape(-1, len(self.types)))]).sum(axis=0)
        )

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.cells.nbytes + self.weighted_surfaces.nbytes + self.heated.nbytes

    @property
    def exposed_cells(self) -> int:
        """Number of sums that a ledger needs for heat through void surfaces; 0 if they let no heat through."""
        return len(self.weighted_surfaces.cells) if self.weighted_surfaces.void else 0

    def types_of(self, index: Any) -> NDArray[np.intp]:
        """The types of the cells at an index [z, y, x], which must lie in planes that are held."""
        if self.uniform:  # one value, broadcast to the shape of the grid
            return np.zeros(np.broadcast_to(np.uint8(0), self.grid.shape)[index].shape, dtype=np.intp)
        if self.held.slab is not None:
            z, *others = index if isinstance(index, tuple) else (index,)
            index = (self.held.local(z), *others)
        return np.asarray(self.cells[index] & CELL_TYPE, dtype=np.intp)

    def types_at(self, x: NDArray[np.int64], y: NDArray[np.int64], z: NDArray[np.int64]) -> NDArray[np.intp]:
        """The types of cells in any planes. Collective."""
        x, y, z = np.broadcast_arrays(x, y, z)
        found = self.held.anywhere(z, lambda own: self.types_of((z[own], y[own], x[own])), np.intp(0))
        return np.asarray(found).reshape(z.shape)

    def types_on_face(self, face: int) -> NDArray[np.intp]:
        """The types of the cells at a face, in the shape of ``Grid.face_shape``."""
        if self.face_types:
            return self.face_types[face].astype(np.intp)
        index: list[int | slice] = [slice(None)] * 3
        index[2 - face // 2] = -(face % 2)
        return self.types_of(tuple(index))

    def cells_of(self, name: str) -> int:
        """The number of cells of a material."""
        counts = zip(self.types, self.counts, strict=True)
        return int(sum(count for cell_type, count in counts if self.palette[cell_type.material].name == name))

    def type_at(self, x: int, y: int, z: int) -> int:
        """The type of a cell. Collective."""
        return 0 if self.uniform else int(self.types_at(np.array([x]), np.array([y]), np.array([z]))[0])

    @property
    def material_names(self) -> tuple[str, ...]:
        """The names of the materials in the order of the palette, each once."""
        return tuple(dict.fromkeys(substance.name for substance in self.palette))

    def materials(self, first: int, last: int) -> Iterator[NDArray[np.uint8]]:
        """Indices in ``material_names`` of the cells in planes ``first`` … ``last`` − 1, plane by plane.

        Each has the shape (1, ny, nx). Not for uniform bodies.
        """
        names = self.material_names
        of_types = [names.index(self.palette[cell_type.material].name) for cell_type in self.types]
        places = np.array(of_types, dtype=np.uint8)
        return (places[self.types_of(slice(z, z + 1))] for z in range(first, last))

    def in_void(self, first: int, last: int) -> Iterator[NDArray[np.bool_]]:
        """Which cells are void in planes ``first`` … ``last`` − 1, as :meth:`materials`; nothing without void."""
        names = self.material_names
        if not self.uniform and VOID.name in names:
            for plane in self.materials(first, last):
                yield plane == names.index(VOID.name)

    def substance_at(self, x: int, y: int, z: int) -> MaterialNumbers:
        """The material of a cell. Collective."""
        return self.palette[self.types[self.type_at(x, y, z)].material]

    def coefficients(self, dt: float) -> Array:
        """Change in K of a cell of type a per kelvin to its neighbour of type b, shape (3, types, types).

        It is 0 across gaps, whose heat is that of single cells.
        """
        found = self._exchanging(dt)
        return np.where(self.gap_of >= 0, 0.0, found) if self.has_gaps else found

    def _exchanging(self, dt: float) -> Array:
        d = np.reshape(self.grid.mean_spacing, (3, 1, 1))
        return np.asarray(self.link * self._per_heat_capacity[None, :, None] * dt / d)

    def half_cells(self, dt: float) -> Array:
        """2k/d in W/(m² K), dt·2k/(ρ·cp·d²), and dt/(ρ·cp·d) in K m²/W, for each type and axis; shape (types, 3, 3)."""
        gain = dt * self._per_heat_capacity[:, None] / self.grid.mean_spacing
        conductance = 1.0 / self.half.T
        return np.stack((conductance, conductance * gain, gain), axis=2)

    def rates(self) -> Array:
        """Upper bound in 1/s of a cell's exchange with a neighbour, by both types; shape (3, types, types)."""
        rates = self._exchanging(1.0)
        if not self.varies:
            return rates
        material = np.array([cell_type.material for cell_type in self.types])
        half = self.least_half
        link = 1.0 / (half[:, :, None] + self.resistance + half[:, None, :])
        d = np.reshape(self.grid.mean_spacing, (3, 1, 1))
        between = link * (self._per_heat_capacity * self.warming)[:, None] / d
        driving = np.array([enthalpy.driving for enthalpy in self.enthalpies])
        return np.asarray(np.where(material[:, None] == material, rates * driving[:, None], between))

    @cached_property
    def least_half(self) -> Array:
        """d/2k in m² K/W of each type at its largest conductivity, shape (3, types)."""
        return self.half / np.array([enthalpy.conducting for enthalpy in self.enthalpies]) if self.varies else self.half

    @cached_property
    def most_half(self) -> Array:
        """d/2k in m² K/W of each type at its smallest conductivity, shape (3, types)."""
        return self.half / np.array([table.least_conducting for table in self.enthalpies]) if self.varies else self.half

    @cached_property
    def warming(self) -> Array:
        """The largest dT/dθ of each type: temperature change per content; shape (types,)."""
        return np.array([enthalpy.warming for enthalpy in self.enthalpies]) if self.varies else np.ones(len(self.types))

    @cached_property
    def _per_heat_capacity(self) -> Array:
        """1/(ρ·cp), 0 for void."""
        conducts = self.heat_capacity > 0.0
        return np.asarray(np.where(conducts, 1.0 / np.where(conducts, self.heat_capacity, 1.0), 0.0))


def planes_at_once(shape: tuple[int, ...]) -> int:
    """Number of planes [y, x] to process together in a grid of this shape, so that temporary arrays stay small."""
    return max(1, _CELLS_AT_ONCE // (shape[1] * shape[2]))
