"""The surfaces of a composite body towards void, in the order in which the compiled CPU kernel adds their heat."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.composite_body import HostBody
from heatsim.kernels.cpu.ring_axes import Shape, Wraps
from heatsim.physics.cells.cell_types import CELL_TYPE

Numbers = NDArray[np.int32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class VoidSurfaces:
    """The surfaces towards void, those of a cell one after the other.

    Attributes:
        first: as in :class:`Runs`.
        row: number of the row of the cell behind each surface.
        x: place of this cell along x.
        axis: direction of the surface.
        type: the type of the cell.
        condition: the number of the condition. A surface that several conditions share stands here once for each.
        fraction: the part of the surface that has it.
        weight: area of the voxel surface / area of the smooth surface.
        sum: the place of its sum among those of the parts of mixed cells and, behind them, of the sides towards void.
        last: 1 for the last surface of a cell, else 0.
        side: direction of the surface from the cell, 0 for x−, …, 5 for z+.
        lit: 1 if beams through the face of the box on this side fall on it, else 0.
        u, v: place of the cell along the axes of this face.
    """

    first: Numbers
    row: Numbers
    x: Numbers
    axis: Bytes
    type: Bytes
    condition: Numbers
    fraction: NDArray[np.floating]
    weight: NDArray[np.floating]
    sum: Numbers
    last: Bytes
    side: Numbers
    lit: Bytes
    u: Numbers
    v: Numbers


def void_surfaces(body: HostBody, periodic: Wraps, ring: Shape) -> VoidSurfaces:
    """The surfaces of a body towards void; ``ring``: the cells along the axes of the ring, along whose x rows lie."""
    nz, ny, nx = ring
    each = list(body.surfaces_towards_void(periodic))
    lit = [places if (places := of.lit(body.materials)) is not None else np.full(len(of), -1) for of in each]
    sides = [np.full(len(of), of.side) for of in each]
    types = [of.types(body.materials) for of in each]
    columns = [(of.places, of.cells, of.parts, of.conditions, of.fractions) for of in each]
    nothing = [np.zeros(0, np.int64)]
    rank, cells, part, condition, fraction = (
        np.concatenate(column) for column in zip((*nothing * 5,), *columns, strict=True)
    )
    side, cell_type, place = (np.concatenate((*nothing, *column)) for column in (sides, types, lit))
    order = np.argsort(rank, kind="stable")  # by cells; those of a cell by sides and conditions
    rank, cells, part, condition, side, place = (of[order] for of in (rank, cells, part, condition, side, place))
    shapes = np.array([body.materials.grid.face_shape(face)[1] for face in range(6)])
    row = cells // nx
    return VoidSurfaces(
        first=np.concatenate(([0], np.cumsum(np.bincount(row, minlength=nz * ny)))).astype(np.int32),
        row=row.astype(np.int32),
        x=(cells % nx).astype(np.int32),
        axis=(side // 2).astype(np.uint8),
        type=cell_type[order].astype(np.uint8),
        condition=condition.astype(np.int32),
        fraction=fraction[order].astype(body.weights.dtype),
        weight=body.weights[rank, side],
        sum=np.where(part < 0, len(body.mixed.numbers) + 6 * rank + side, part).astype(np.int32),
        last=np.append(rank[1:] != rank[:-1], True)[: len(rank)].astype(np.uint8),
        side=side.astype(np.int32),
        lit=(place >= 0).astype(np.uint8),
        u=(place % shapes[side]).astype(np.int32),
        v=(place // shapes[side]).astype(np.int32),
    )


def weighted_cells(body: HostBody, count: int) -> NDArray[np.int64]:
    """The cells with weights, in the order of the weights."""
    return np.flatnonzero(np.unpackbits(body.bits.view(np.uint8), bitorder="little")[:count])


def types_around(
    cells: NDArray[np.uint8], shape: Shape, periodic: Wraps, places: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """The types of the neighbours of some cells towards x−, x+, …, z+, shape (n, 6); at an end the cell's own."""
    around, stride = np.empty((len(places), 6), dtype=np.uint8), 1
    for axis, n in enumerate(reversed(shape)):
        place = places // stride % n
        for side in (-1, 1):
            other = (place + side) % n if periodic[axis] else np.clip(place + side, 0, n - 1)
            around[:, 2 * axis + (side > 0)] = cells[places + (other - place) * stride] & CELL_TYPE
        stride *= n
    return around
