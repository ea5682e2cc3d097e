"""Cells with weighted surfaces: void surfaces and contacts, with the smooth area of each, and links that layers change.

A voxel surface is a staircase and larger than the smooth surface: that of a sphere is 1.5 times as large. So the heat
through a face between two cells is weighted with the ratio of smooth to voxel area: the heat exchange of a void surface
is multiplied by it, and a contact resistance is divided by it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.parallel.slab import HALO
from heatsim.physics.geometry.cell_faces import NO_AREAS, Array, FaceAreas, Indices, cells_beside, distinct, voxel_areas
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.layers.layering import NO_LAYERS, Layering

_EXACT = 1e-6  # a ratio nearer than this to 0 or 1 is 0 or 1


@dataclass(frozen=True, eq=False)
class WeightedSurfaces:
    """Cells with weighted surfaces; empty where no surface is weighted.

    Attributes:
        bits: one bit per cell of the grid, in the order of memory, lowest bit of a word first; uint32.
        before: the number of these cells before each word; uint32.
        cells: their indices in the flattened grid, ascending; int64, shape (n,).
        area: ratio of smooth to voxel area of their faces towards x−, x+, y−, y+, z−, z+, shape (n, 6); 1 for faces
            that are neither void surfaces nor contacts.
        void: whether void surfaces let heat through.
        contacts: whether the links of any cell have weights: those of contacts with a ratio other than 1, and those
            that layers change.
        links: conductances in W/(m² K) of the links that layers change, in the same directions; 0 for others. Shape
            (n, 6), or (0, 6) without layers.
        held: the planes whose cells are listed, with HALO planes on both sides; the flags belong to the whole body.
    """

    bits: NDArray[np.uint32]
    before: NDArray[np.uint32]
    cells: Indices
    area: Array
    void: bool
    contacts: bool
    links: Array
    held: PaintedPlanes = EVERYTHING

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.bits.nbytes + self.before.nbytes + self.area.nbytes

    def ratios(self, cells: Indices, direction: int, plane: int, of: Array | None = None) -> Array:
        """Ratio of smooth to voxel area of cells' faces in a direction (0 to 5); 1 without weighted surfaces.

        Collective. ``plane``: cells of a plane of the grid; ``of``: other numbers than these ratios, of their shape.
        """
        known = self.area if of is None else of

        def of_own(own: NDArray[np.bool_]) -> Array:
            ratios = np.ones(np.count_nonzero(own))
            listed, places = self.find(cells[own])
            ratios[listed] = known[places, direction]
            return ratios

        found = self.held.anywhere(cells // plane, of_own, 1.0)
        return np.asarray(found).reshape(cells.shape)

    def find(self, cells: Indices) -> tuple[NDArray[np.bool_], Indices]:
        """Which of some cells have weighted surfaces, shape of ``cells``, and the places of these in ``self.cells``."""
        place = np.searchsorted(self.cells, cells)
        listed = place < len(self.cells)
        listed[listed] = self.cells[place[listed]] == cells[listed]
        return listed, place[listed]

    @cached_property
    def most(self) -> Array:
        """The largest ratio in each of the six directions, at least 1; shape (6,). Collective at the first time."""
        return np.asarray(np.max(self.held.gathered(self.area.max(axis=0, initial=1.0)), axis=0))


NO_WEIGHTED_SURFACES = WeightedSurfaces(
    bits=np.zeros(0, dtype=np.uint32),
    before=np.zeros(0, dtype=np.uint32),
    cells=np.zeros(0, dtype=np.int64),
    area=np.ones((0, 6)),
    void=False,
    contacts=False,
    links=np.zeros((0, 6)),
)


def find_weighted(
    grid: Grid,
    surfaces: FaceAreas,
    material: NDArray[np.uint8],
    void: int | None,
    layering: Layering = NO_LAYERS,
    held: PaintedPlanes = EVERYTHING,
    uneven: Indices = NO_AREAS.faces,
) -> WeightedSurfaces:
    """The cells with weighted surfaces. Collective.

    Args:
        grid: the whole grid.
        surfaces: void surfaces that let heat through, and contacts.
        material: the material of each cell, in the shape of the planes that are held; empty if there are no surfaces.
        void: the number of void among the materials.
        layering: what layers change in the whole body.
        held: the planes. If they are not all planes, only cells in own planes and HALO planes on both sides are listed.
        uneven: faces whose links have factors because the cells beside them differ in width and in material.
    """
    low, high = cells_beside(grid, surfaces.faces)
    axis = surfaces.faces % 3
    ratio = surfaces.areas / voxel_areas(grid, surfaces.faces)
    ratio = np.where(np.abs(ratio - 1.0) <= _EXACT, 1.0, np.where(ratio <= _EXACT, 0.0, ratio))
    plane = grid.cells[0] * grid.cells[1]
    below, above = (material.reshape(-1)[held.local_cells(cells, plane)] for cells in (low, high))
    towards_void = np.zeros(len(low), dtype=bool) if void is None else (below == void) | (above == void)
    contacts = ~towards_void & (ratio != 1.0)
    # Void cells have no temperature, so only their neighbours are listed.
    sides = [
        (low, 2 * axis + 1, (towards_void & (below != void)) | contacts),
        (high, 2 * axis, (towards_void & (above != void)) | contacts),
    ]
    sides = [(side, direction, weighted & held.near(side // plane, HALO)) for side, direction, weighted in sides]
    layered, linked = len(layering.faces) > 0, [*_linked(grid, layering, held)]
    beside = np.concatenate(cells_beside(grid, uneven))
    beside = beside[held.has(beside // plane)]
    beside = beside[held.near(beside // plane, HALO)]
    cells = distinct(
        np.concatenate([*(side[weighted] for side, _, weighted in sides), *(side for side, _, _ in linked), beside])
    )
    opens, weighs, found = held.any(
        np.array([towards_void.any(), contacts.any() or layered or len(beside) > 0, len(cells) > 0], dtype=bool)
    ).tolist()
    if not found:
        return NO_WEIGHTED_SURFACES
    # Kernels need bits for the planes of a slab only.
    bits, before = listed(cells, grid.cell_count) if held.slab is None else (NO_WEIGHTED_SURFACES.bits,) * 2
    area = np.ones((len(cells), 6))
    for side, direction, weighted in sides:
        area[np.searchsorted(cells, side[weighted]), direction[weighted]] = ratio[weighted]
    links = np.zeros((len(cells) if layered else 0, 6))
    for side, directions, values in linked:
        links[np.searchsorted(cells, side), directions] = values
    return WeightedSurfaces(bits, before, cells, area, opens, weighs, links, held)


def _linked(grid: Grid, layering: Layering, held: PaintedPlanes) -> Iterator[tuple[Indices, Indices, Array]]:
    """The cells below and above the links that layers change, the directions of the links, and their conductances.

    Only for cells of own planes and of HALO planes on both sides.
    """
    for cells, upwards in zip(cells_beside(grid, layering.faces), (1, 0), strict=True):
        z = cells // (grid.cells[0] * grid.cells[1])
        here = held.has(z)
        here[here] = held.near(z[here], HALO)
        yield cells[here], 2 * (layering.faces[here] % 3) + upwards, layering.links[here]


def listed(cells: Indices, cell_count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """One bit for each cell of a grid, set for ``cells``, in words; and the number of these before each word."""
    words = -(-cell_count // 32)
    bits = np.zeros(words, dtype=np.uint32)
    np.bitwise_or.at(bits, cells // 32, np.left_shift(np.uint32(1), (cells % 32).astype(np.uint32)))
    counts = np.bincount(cells // 32, minlength=words)
    return bits, (np.cumsum(counts) - counts).astype(np.uint32)
