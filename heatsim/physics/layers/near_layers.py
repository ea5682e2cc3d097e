"""The body near layers: two planes of cells on each side of each layer, gathered from the ranks that painted them.

Each rank has these planes, and needs no other cells to find the layering. So all ranks find the same layering.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.geometry.cell_faces import FaceAreas, Indices
from heatsim.physics.geometry.painted_planes import PaintedPlanes
from heatsim.scenario import Scenario

Bytes = NDArray[np.uint8]

# A layer changes the planes of cells next to it; the nodes behind these depend on one more plane.
_NEAR = (-2, -1, 0, 1)


class NearLayers:
    """The planes of cells near layers. Several ranks create it together.

    Args:
        scenario: the scenario.
        held: the planes that this rank has painted.
    """

    def __init__(self, scenario: Scenario, held: PaintedPlanes) -> None:
        self._grid, self._held = scenario.grid, held
        near: list[set[int]] = [set(), set(), set()]
        for layer in scenario.layers:
            axis, index = layer.plane.across, int(layer.plane.index(scenario.grid))
            near[axis].update((index + beside) % scenario.grid.cells[axis] for beside in _NEAR)
        self._planes = [np.array(sorted(of_axis), dtype=np.int64) for of_axis in near]
        # For each plane of cells across x, y and z: its place among the planes near layers, or −1.
        self._places = [np.full(n, -1, dtype=np.int64) for n in scenario.grid.cells]
        for places, planes in zip(self._places, self._planes, strict=True):
            places[planes] = np.arange(len(planes))

    def materials(self, material: Bytes) -> Callable[[Indices], Bytes]:
        """A function that gives the materials of cells near layers. Collective.

        Args:
            material: the material of each cell, in the shape of the held planes.
        """
        if self._held.slab is None:
            return lambda cells: np.asarray(material.reshape(-1)[cells])
        held, own = self._held, material[self._held.own]
        x, y = (
            np.concatenate(held.gathered(np.ascontiguousarray(own.take(self._planes[of], 2 - of)))) for of in (0, 1)
        )
        mine = self._planes[2][held.owns(self._planes[2])]
        z = np.concatenate(held.gathered(material[held.local(mine)]))
        of_axes = x, y, z

        def of(cells: Indices) -> Bytes:
            at, found = np.unravel_index(cells, self._grid.shape), np.zeros(cells.shape, dtype=np.uint8)
            for axis, (places, values) in enumerate(zip(self._places, of_axes, strict=True)):
                index = list(at)
                index[2 - axis] = places[at[2 - axis]]
                there = index[2 - axis] >= 0
                found[there] = values[tuple(along[there] for along in index)]
            return found

        return of

    def areas(self, surfaces: FaceAreas) -> FaceAreas:
        """The smooth areas of faces near layers; ``surfaces``: those that this rank has found. Collective."""
        if self._held.slab is None:
            return surfaces
        z, y, x = np.unravel_index(surfaces.faces // 3, self._grid.shape)
        near = (self._places[0][x] >= 0) | (self._places[1][y] >= 0) | (self._places[2][z] >= 0)
        near &= self._held.owns(z)
        faces, areas = zip(*self._held.gathered((surfaces.faces[near], surfaces.areas[near])), strict=True)
        return FaceAreas(np.concatenate(faces), np.concatenate(areas))
