"""The stencils of a composite body: the type of a cell, the types of its neighbours, and the weights of its links."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.composite_body import HostBody
from heatsim.kernels.cpu.ring_axes import Shape, Wraps
from heatsim.kernels.cpu.void_layout import types_around, weighted_cells
from heatsim.physics.cells.cell_types import CELL_TYPE, INTERIOR

Numbers = NDArray[np.int32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Stencils:
    """All stencils of a body.

    Attributes:
        own: the type of the cell, shape (stencils,).
        around: the types of its neighbours towards x−, x+, …, z+, shape (stencils, 6).
        weights: the weights of the links to them, shape (stencils, 6).
        between: a bit for each neighbour of another material, if materials vary with temperature; shape (stencils,).
    """

    own: Bytes
    around: Bytes
    weights: NDArray[np.floating]
    between: Bytes


class StencilFinder:
    """Numbers the stencils of a body: first those of cells inside each type, then the others as they are found."""

    def __init__(self, body: HostBody, shape: Shape, periodic: Wraps) -> None:
        self._shape, self._periodic, self._body, self.bases = shape, periodic, body, body.enthalpies.bases
        self._cells = body.cells.reshape(-1)
        self._count = int((self._cells & CELL_TYPE).max()) + 1
        own = np.arange(self._count, dtype=np.uint8)
        self._own, self._around = [own], [np.repeat(own[:, None], 6, axis=1)]
        self._weights = [np.ones((self._count, 6), body.weights.dtype)]
        self._weighted = weighted_cells(body, self._cells.size) if body.contacts else np.zeros(0, np.int64)
        self._numbers: dict[bytes, int] = {}

    def stencils_of(self, first: int, end: int) -> Numbers:
        """The stencils of some cells, shape (end − first,)."""
        cells = self._cells[first:end]
        numbers = (cells & CELL_TYPE).astype(np.int32)
        others = np.flatnonzero((cells & INTERIOR) == 0)
        places = others + first
        types = np.column_stack(
            (numbers[others].astype(np.uint8), types_around(self._cells, self._shape, self._periodic, places))
        )
        weights = np.ones((len(others), 6), self._body.weights.dtype)
        if len(self._weighted):
            rank = np.minimum(np.searchsorted(self._weighted, places), len(self._weighted) - 1)
            has = self._weighted[rank] == places
            weights[has] = self._body.weights[rank[has]]
        if self._body.void >= 0:  # nothing reaches void, whatever is beside it
            is_void = types[:, 0] == self._body.void
            types[is_void], weights[is_void] = self._body.void, 1.0
        keys = np.column_stack((types, weights.view(np.uint8))) if len(self._weighted) else types
        keys = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").reshape(-1)
        found, at, inverse = np.unique(keys, return_index=True, return_inverse=True)
        known = np.array([self._number(key.tobytes(), types[i], weights[i]) for key, i in zip(found, at, strict=True)])
        if len(others):
            numbers[others] = known[inverse]
        return numbers

    def stencils(self) -> Stencils:
        """All stencils found so far."""
        own, around, bases = np.concatenate(self._own), np.concatenate(self._around), self._body.enthalpies.bases
        others = bases[around] != bases[own][:, None] if bases.size else np.zeros(around.shape, bool)
        between = np.packbits(others, axis=1, bitorder="little")[:, 0]
        return Stencils(own, around, np.concatenate(self._weights), between)

    def _number(self, key: bytes, types: NDArray[np.uint8], weights: NDArray[np.floating]) -> int:
        if (types == types[0]).all() and (weights == 1.0).all():
            return int(types[0])
        if key not in self._numbers:
            self._numbers[key] = self._count + len(self._numbers)
            self._own.append(types[:1])
            self._around.append(types[None, 1:])
            self._weights.append(weights[None])
        return self._numbers[key]
