"""Factors of conductances at contacts and void surfaces, from their smooth areas, at layers, and where materials meet.

A voxel face of area A stands for the part w·A of a smooth surface. There a contact resistance R becomes R/w, and a film
coefficient h towards void becomes w·h, each in series with the unchanged half cells. At a plane of any direction
between cells of equal conductivity each face then passes exactly the right heat. A link that a layer changes has the
conductance that :mod:`heatsim.physics.layers.layering` finds, as a factor of the link without the layer. Along axes
with cells of several widths, links between two materials have factors too.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.geometry.cell_faces import Array, Indices


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
    if materials.varies:
        return np.asarray(inverse)
    conducts = materials.heat_capacity > 0.0
    linked = contact if materials.grid.uniform else conducts[own][:, None] & conducts[around]
    return np.asarray(np.where(linked, link_factors(materials), inverse))


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


def plane_factors(materials: CellTypes, cells: Indices) -> tuple[Array, Array]:
    """The factors of cells' own half cells and of their neighbours' facing ones, towards x−, …, z+; shapes (n, 6)."""
    own, beyond, stride = [], [], 1
    for axis, n in zip(materials.grid.axes, materials.grid.cells, strict=True):
        planes = cells // stride % n
        own.append(axis.half_factors[planes])
        beyond.append(axis.beyond_factors[planes])
        stride *= n
    return np.hstack(own), np.hstack(beyond)


def link_factors(materials: CellTypes) -> Array:
    """Factors of the weighted cells' links, shape (n, 6), in the order of ``weighted_surfaces.cells``.

    They multiply ``materials.link`` and the factor of the cell's plane (``Axis.link_factors``). A contact with the
    smooth area w for each area of the voxel face has the resistance R/w. If R is the share s of the resistance between
    the centres, the factor is w/(w + s·(1 − w)). Where cells do not have the mean widths, the factor of the plane is
    right within one material only; between two materials the factor of the link corrects it. Materials that vary with
    temperature have their largest conductivity here.
    """
    surfaces, axis = materials.weighted_surfaces, np.arange(6) // 2
    types, around = types_around(materials, surfaces.cells)
    own, beyond = plane_factors(materials, surfaces.cells)
    half = materials.least_half
    here, there = half[axis, types[:, None]], half[axis, around]
    contact = materials.resistance[types[:, None], around]
    with np.errstate(invalid="ignore"):
        graded = own * here + contact + beyond * there
        share = contact / graded
        # Exactly 1 on axes with cells of one width.
        uneven = (here + contact + there) / graded * ((own + beyond) / 2.0)
        factors = np.where(share > 0.0, surfaces.area / (surfaces.area + share * (1.0 - surfaces.area)), 1.0)
        # And within one material: kernels are faster where weights are exactly 1.
        differ = (here != there) | (contact > 0.0)
        factors = factors * np.where(np.isfinite(uneven) & differ, uneven, 1.0)
    if not len(surfaces.links):
        return factors
    plain = materials.link[axis, types[:, None], around]
    layered = surfaces.links > 0.0
    return np.where(layered, surfaces.links * ((own + beyond) / 2.0) / np.where(layered, plain, 1.0), factors)
