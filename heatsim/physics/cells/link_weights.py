"""Factors of conductances at contacts and void surfaces, from their smooth areas, and at layers.

A voxel face of area A stands for the part w·A of a smooth surface. There a contact resistance R becomes R/w, and a film
coefficient h towards void becomes w·h, each in series with the unchanged half cells. At a plane of any direction
between cells of equal conductivity each face then passes exactly the right heat. A link that a layer changes has the
conductance that :mod:`heatsim.physics.layers.layering` finds, as a factor of the link without the layer.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.geometry.cell_faces import Array, Indices


def contact_share(materials: CellTypes) -> Array:
    """The largest share of a contact in the resistance between two centres, shape (3, types, types)."""
    half = materials.least_half
    with np.errstate(invalid="ignore"):
        return materials.resistance / (half[:, :, None] + materials.resistance + half[:, None, :])


def surface_weights(materials: CellTypes) -> Array:
    """The weights of weighted surfaces for kernels, shape (n, 6), in the order of ``weighted_surfaces.cells``.

    - Void surface: 1/ratio of smooth to voxel area, a factor of the half cell's conductance; 0 if no smooth surface
      belongs to the face.
    - Contact or layer: the factor of the link; or, if conductivities vary with temperature, 1/ratio, a factor of the
      contact's resistance.
    """
    surfaces = materials.weighted_surfaces
    own, around = types_around(materials, surfaces.cells)
    contact = materials.resistance[own[:, None], around] > 0.0
    if len(surfaces.links):
        contact |= surfaces.links > 0.0
    with np.errstate(divide="ignore"):
        inverse = np.where((surfaces.area == 0.0) & ~contact, 0.0, 1.0 / surfaces.area)
    return np.asarray(inverse if materials.varies else np.where(contact, link_factors(materials), inverse))


def types_around(materials: CellTypes, cells: Indices) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The types of cells, shape (n,), and of their neighbours towards x−, x+, …, z+, shape (n, 6).

    Beyond a face of the box the neighbour is the cell at the opposite face; where its plane is not held, the cell.
    """
    around = np.zeros((len(cells), 6), dtype=np.intp)
    if materials.uniform:
        return np.zeros(len(cells), dtype=np.intp), around
    nx, ny, nz = materials.grid.cells
    numbers, held, stride = materials.cells.reshape(-1), materials.held, 1
    for axis, n in enumerate((nx, ny, nz)):
        place = cells // stride % n
        for side in (-1, 1):
            beside = (place + side) % n
            if axis == 2 and not held.whole:
                beside = np.where(held.has(beside), beside, place)
            others = held.local_cells(cells + (beside - place) * stride, nx * ny)
            around[:, 2 * axis + (side > 0)] = numbers[others] & CELL_TYPE
        stride *= n
    return (numbers[held.local_cells(cells, nx * ny)] & CELL_TYPE).astype(np.intp), around


def link_factor(
    materials: CellTypes,
    axis: int | NDArray[np.integer],
    cell_type: NDArray[np.intp],
    other: NDArray[np.intp],
    ratio: Array,
) -> Array:
    """The factor of a link at a contact whose smooth area is ``ratio`` times the area of the voxel face.

    The contact resistance R becomes R/w with the ratio w. If R is the share s of the resistance between the centres,
    the factor is w/(w + s·(1 − w)). Materials that vary with temperature have their largest conductivity here.
    """
    share = contact_share(materials)[axis, cell_type, other]
    with np.errstate(invalid="ignore"):
        return np.where(share > 0.0, ratio / (ratio + share * (1.0 - ratio)), 1.0)


def link_factors(materials: CellTypes) -> Array:
    """:func:`link_factor` of the weighted cells' links, shape (n, 6), in the order of ``weighted_surfaces.cells``."""
    surfaces = materials.weighted_surfaces
    own, around = types_around(materials, surfaces.cells)
    factors = link_factor(materials, np.arange(6) // 2, own[:, None], around, surfaces.area)
    if not len(surfaces.links):
        return factors
    plain = materials.link[np.arange(6) // 2, own[:, None], around]
    layered = surfaces.links > 0.0
    return np.where(layered, surfaces.links / np.where(layered, plain, 1.0), factors)
