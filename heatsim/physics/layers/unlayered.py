"""A body without its layers: what :mod:`heatsim.physics.layers.layer_layout` needs to know of it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.geometry.cell_faces import FaceAreas, Indices, cells_beside, voxel_areas
from heatsim.physics.layers.sheets import Array, Mask


@dataclass(frozen=True, eq=False)
class Unlayered:
    """A body without its layers.

    Attributes:
        grid: the cells.
        periodic: which axes wrap.
        material: a function that gives the materials of cells near layers; None if all cells have the first.
        half: d/2k in m² K/W of each material in cells of the mean widths, infinite for void; shape (3, materials).
        heat_capacity: ρ·c_p of each material in J/(m³ K), shape (materials,).
        resistance: contact resistances in m² K/W between materials, shape (materials, materials).
        surfaces: smooth areas of contacts near layers.
        held: a function that gives the parts of the surfaces of cells that are held at temperatures, 0 to 1, from the
            number of a side (0 for x−, …, 5 for z+), the cells and their materials.
    """

    grid: Grid
    periodic: tuple[bool, bool, bool]
    material: Callable[[Indices], NDArray[np.uint8]] | None
    half: Array
    heat_capacity: Array
    resistance: Array
    surfaces: FaceAreas
    held: Callable[[int, Indices, NDArray[np.uint8]], Array]

    def material_of(self, cells: Indices) -> NDArray[np.uint8]:
        """The materials of cells."""
        return np.zeros(cells.shape, dtype=np.uint8) if self.material is None else self.material(cells)

    def halves(self, axis: int, cells: Indices, side: int) -> Array:
        """d/2k of cells along an axis towards a side (−1 or 1) in m² K/W, infinite for void."""
        factors = self.grid.axes[axis].half_factors[self.planes_of(axis, cells), int(side > 0)]
        return np.asarray(self.half[axis, self.material_of(cells)] * factors)

    def between(self, axis: int, cells: Indices, side: int, start: Array | float, end: Array | float) -> Array:
        """Resistances between two places in cells, in m² K/W for the area of their side; see ``Axis.ways``."""
        ways = self.grid.axes[axis].ways(self.planes_of(axis, cells), side, start, end)
        return np.asarray(ways * self.halves(axis, cells, side))

    def over_upper(self, axis: int, cells: Indices, side: int) -> Array:
        """Half cells towards a side (−1 or 1) over those towards the upper side, as resistances for their areas."""
        factors = self.grid.axes[axis].half_factors[self.planes_of(axis, cells)]
        return np.asarray(factors[..., int(side > 0)] / factors[..., 1])

    def planes_of(self, axis: int, cells: Indices) -> Indices:
        """The planes of cells across an axis."""
        return np.asarray(cells // int(np.prod(self.grid.cells[:axis])) % self.grid.cells[axis])

    def conducts(self, cells: Indices) -> Mask:
        """Which cells conduct."""
        return np.asarray(np.isfinite(self.half[0, self.material_of(cells)]))

    def contacts(self, faces: Indices) -> Array:
        """Contact resistances in m² K/W of faces between cells, for the area of the face."""
        low, high = cells_beside(self.grid, faces)
        resistance = self.resistance[self.material_of(low), self.material_of(high)]
        with np.errstate(divide="ignore", invalid="ignore"):
            weighted = resistance * voxel_areas(self.grid, faces) / self.surfaces.of(faces)
        return np.where(resistance > 0.0, weighted, 0.0)

    def solid(self, axis: int, place: int) -> Mask:
        """Which cells of a plane conduct, in the shape of a face."""
        return self.conducts(self.plane(axis, place))

    def plane(self, axis: int, place: int) -> Indices:
        """The cells of a plane by their index in the flattened grid, in the shape of a face."""
        strides = np.cumprod((1, *self.grid.cells[:2]))
        u, v = (strides[of] * np.arange(self.grid.cells[of], dtype=np.int64) for of in _others(axis))
        return np.asarray(place * strides[axis] + v[:, None] + u)

    def beside(self, axis: int, cells: Indices, side: int) -> tuple[Indices, Mask]:
        """The neighbours of cells in a direction, and whether they exist and conduct."""
        stride, n = int(np.prod(self.grid.cells[:axis])), self.grid.cells[axis]
        beyond = self.planes_of(axis, cells) + side
        inside = (beyond >= 0) & (beyond < n)
        neighbours = np.where(inside, cells + side * stride, cells - side * (n - 1) * stride)
        if self.periodic[axis]:
            inside = np.full(cells.shape, n > 1)
        return neighbours, inside & self.conducts(neighbours)


def _others(axis: int) -> tuple[int, int]:
    """The two other axes, in the order x, y, z."""
    u, v = (other for other in range(3) if other != axis)
    return u, v
