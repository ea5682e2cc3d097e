"""What the smooth area of contacts and of surfaces towards void makes of what passes cells' faces.

A face with the area A stands for the part w·A of a smooth surface. A contact's resistance R becomes R/w there, and a
film h towards void w·h, each in series with the half cells, which stay as they are. At a plane between cells of equal
conductivity each face then passes exactly what flows through it, whatever the plane's direction.
"""

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cell_faces import Array, Indices
from heatsim.physics.cell_types import INTERIOR, Medium

_KIND = np.uint8(INTERIOR - 1)


def contact_share(medium: Medium) -> Array:
    """A contact's part of the resistance between two centres, at the most; shape (3, kinds, kinds)."""
    half = medium.least_half
    with np.errstate(invalid="ignore"):
        return medium.resistance / (half[:, :, None] + medium.resistance + half[:, None, :])


def surface_weights(medium: Medium) -> Array:
    """What kernels weight the surfaces of weighted cells with, shape (n, 6), in the order of ``exposure.cells``.

    Towards void it is one over the area ratio, with which the half cell's conductance is multiplied, or 0 where no
    smooth surface belongs to a face. At a contact it is what the link is multiplied with, or, where conductivities
    change with temperature, one over the area ratio, with which the resistance is multiplied.
    """
    assert medium.exposure is not None
    own, around = kinds_around(medium, medium.exposure.cells)
    contact = medium.resistance[own[:, None], around] > 0.0
    with np.errstate(divide="ignore"):
        inverse = np.where((medium.exposure.area == 0.0) & ~contact, 0.0, 1.0 / medium.exposure.area)
    return np.asarray(inverse if medium.varies else np.where(contact, link_factors(medium), inverse))


def kinds_around(medium: Medium, cells: Indices) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The kinds of cells, shape (n,), and of their neighbours towards x−, x+, …, z+, shape (n, 6).

    A neighbour beyond a face of the box is the one at its other end.
    """
    around = np.zeros((len(cells), 6), dtype=np.intp)
    if medium.uniform:
        return np.zeros(len(cells), dtype=np.intp), around
    numbers, stride = medium.cells.reshape(-1), 1
    for axis, n in enumerate(medium.grid.cells):
        place = cells // stride % n
        for side in (-1, 1):
            around[:, 2 * axis + (side > 0)] = numbers[cells + ((place + side) % n - place) * stride] & _KIND
        stride *= n
    return (numbers[cells] & _KIND).astype(np.intp), around


def link_factor(
    medium: Medium, axis: int | NDArray[np.integer], kind: NDArray[np.intp], other: NDArray[np.intp], ratio: Array
) -> Array:
    """What a link between two kinds is multiplied with where its contact has the area ``ratio`` of the cells' face.

    A contact's resistance R becomes R over the ratio w, so a link of which R is the share s of the resistance
    becomes w/(w + s·(1 − w)) of itself. Materials that change with temperature are taken where they conduct best.
    """
    share = contact_share(medium)[axis, kind, other]
    with np.errstate(invalid="ignore"):
        return np.where(share > 0.0, ratio / (ratio + share * (1.0 - ratio)), 1.0)


def link_factors(medium: Medium) -> Array:
    """:func:`link_factor` of the weighted cells' links, shape (n, 6), in the order of ``exposure.cells``."""
    assert medium.exposure is not None
    own, around = kinds_around(medium, medium.exposure.cells)
    return link_factor(medium, np.arange(6) // 2, own[:, None], around, medium.exposure.area)
