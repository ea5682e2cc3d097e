"""What layers change in the cells that take them; :mod:`heatsim.physics.layers.layer_layout` finds it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.geometry.cell_faces import Indices

Array = NDArray[np.float64]

# The largest distance of a layer's node from a surface that is held, in parts of half a cell.
DEPTH = 1.0 / 32.0


@dataclass(frozen=True, eq=False)
class Layering:
    """The changes by all layers of a body.

    Attributes:
        cells: the cells that hold layers, by their index in the flattened grid, ascending; shape (n,).
        capacity: heat capacity that layers add, in J/(m³ K) of a cell; shape (n,).
        half: resistance between node and surface along x, y, z in m² K/W, for cells at surfaces; shape (n, 3).
            In rings it is that of the upper half cell, to which that of the lower one is in proportion.
        node: place of the node along x, y, z in half cells from the centre, −1 to 1; shape (n, 3). Along a radius it
            divides the resistance of the half cell.
        faces: the faces between cells whose conductance changes, numbered as in
            :class:`heatsim.physics.geometry.cell_faces.FaceAreas`; ascending.
        links: their conductances in W/(m² K).
        areas: area of each layer on cells that conduct in m², by the number of the layer.
    """

    cells: Indices
    capacity: Array
    half: Array
    node: Array
    faces: Indices
    links: Array
    areas: Mapping[int, float]

    def node_of(self, axis: int, cells: Indices) -> Array:
        """Places of the nodes of any cells along an axis, in half cells from the centre."""
        return values_of(cells, self.cells, self.node[:, axis])

    def link_of(self, faces: Indices) -> Array:
        """Conductances of any faces in W/(m² K); 0 for those that do not change."""
        return values_of(faces, self.faces, self.links)


NO_LAYERS = Layering(
    np.zeros(0, dtype=np.int64),
    np.zeros(0),
    np.zeros((0, 3)),
    np.zeros((0, 3)),
    np.zeros(0, dtype=np.int64),
    np.zeros(0),
    {},
)


def values_of(numbers: Indices, known: Indices, values: Array) -> Array:
    """The values of numbers, from those of the ``known`` ones, which ascend; 0 for others."""
    if not len(known):
        return np.zeros(numbers.shape)
    place = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    return np.where(known[place] == numbers, values[place], 0.0)
