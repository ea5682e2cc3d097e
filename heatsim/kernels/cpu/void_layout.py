"""The surfaces of a composite body towards void, in the order in which the compiled CPU kernel adds their heat."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.composite_body import HostBody
from heatsim.kernels.cpu.ring_axes import Shape, Wraps
from heatsim.physics.cells.cell_types import CELL_TYPE
from heatsim.physics.conditions.mixed_cells import FACE_SHIFT, MIXED, TOWARDS_VOID

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


def void_surfaces(body: HostBody, shape: Shape, periodic: Wraps, ring: Shape) -> VoidSurfaces:
    """The surfaces of a body towards void; ``ring``: the cells along the axes of the ring, along whose x rows lie."""
    nx = ring[2]
    cells = body.cells.reshape(-1)
    places = weighted_cells(body, cells.size) if len(body.void_conditions) else np.zeros(0, np.int64)
    own = cells[places] & CELL_TYPE
    towards_void = types_around(cells, shape, periodic, places) == body.void
    weights = body.weights[: len(places)]
    rank, side = np.nonzero(towards_void & (own != body.void)[:, None] & (weights > 0))
    rank, side, part, condition, fraction = _parts_of(body, places, own, rank, side)
    row = places[rank] // nx
    at = np.array(np.unravel_index(places[rank], shape))[::-1]
    u = np.where(side // 2 == 0, at[1], at[0]).astype(np.int32)
    v = np.where(side // 2 == 2, at[1], at[2]).astype(np.int32)
    return VoidSurfaces(
        first=np.concatenate(([0], np.cumsum(np.bincount(row, minlength=cells.size // nx)))).astype(np.int32),
        row=row.astype(np.int32),
        x=(places[rank] % nx).astype(np.int32),
        axis=(side // 2).astype(np.uint8),
        type=own[rank],
        condition=condition,
        fraction=fraction,
        weight=weights[rank, side],
        sum=np.where(part < 0, len(body.mixed.numbers) + 6 * rank + side, part).astype(np.int32),
        last=np.append(rank[1:] != rank[:-1], True)[: len(rank)].astype(np.uint8),
        side=side.astype(np.int32),
        lit=(body.lit[rank] >> side & 1).astype(np.uint8) if body.lit.size else np.zeros(len(rank), np.uint8),
        u=u,
        v=v,
    )


def _parts_of(
    body: HostBody, places: NDArray[np.int64], own: Bytes, rank: NDArray[np.intp], side: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64], Numbers, NDArray[np.floating]]:
    """The surfaces towards void with one entry for each condition that shares them.

    Returns:
        For each entry the number of its cell, the side, the number of the part of a mixed cell or −1, the condition and
        the fraction of the surface that has it.
    """
    condition = body.void_conditions[own[rank]] if len(rank) else np.zeros(0, np.int32)
    mixed, of_body = condition == MIXED, body.mixed
    if not mixed.any():
        return rank, side, np.full(len(rank), -1), condition, np.ones(len(rank), body.weights.dtype)
    wanted = (np.int64(TOWARDS_VOID) + side << FACE_SHIFT) + places[rank]
    at = np.where(mixed, np.searchsorted(of_body.places, wanted), 0)
    first = of_body.first[at]
    counts = np.where(mixed, of_body.first[at + 1] - first, 1)
    entry = np.repeat(np.arange(len(rank)), counts)
    nth = np.arange(len(entry)) - np.repeat(np.cumsum(counts) - counts, counts)
    part = np.where(mixed[entry], first[entry] + nth, -1)
    shares = np.where(mixed[entry], of_body.fractions[part], of_body.fractions.dtype.type(1.0))
    numbers = np.where(mixed[entry], of_body.numbers[part], condition[entry]).astype(np.int32)
    return rank[entry], side[entry], part, numbers, shares


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
