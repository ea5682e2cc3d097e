"""The sums of an energy ledger in one array: those of boundary faces, and one for each cell that sources heat.

    values     boundary faces | the light of beams on the same boundary faces | heated cells

Boundary faces lie in this order: those of each face of the box, one for each cell; the parts of mixed cells; then one
for each cell beside void, which its sides share if they have one condition (with a sum for each side 06 was 8 % slower
in float32 on an H200). Sums to which no boundary face belongs stay 0: those of void cells, and those of mixed cells,
which have a sum for each part. A copy, a combination or a reset of all sums is one operation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.operator.boundary_faces import BoundaryFaces

Sums = NDArray[np.float64]

# Runs begin at multiples of this many float64: of 256 bytes, as separate arrays do.
_ALIGNMENT = 32


@dataclass(frozen=True)
class SumLayout:
    """Where the sums lie in the array; without arguments there are none.

    Attributes:
        face_shapes: the cells of each face of the box; (0, 0) for faces that let nothing through.
        parts: the number of parts of mixed cells.
        beside_void: the number of cells with surfaces towards void.
        has_beams: whether light of beams can fall on boundary faces.
        heated: the number of cells that sources heat individually.
    """

    face_shapes: tuple[tuple[int, int], ...] = ((0, 0),) * 6
    parts: int = 0
    beside_void: int = 0
    has_beams: bool = False
    heated: int = 0

    @cached_property
    def faces(self) -> tuple[slice, ...]:
        """Where the sums of each face of the box lie."""
        found, first = list[slice](), 0
        for shape in self.face_shapes:
            found.append(slice(first, first + prod(shape)))
            first = _aligned(first + prod(shape))
        return tuple(found)

    @cached_property
    def listed(self) -> slice:
        """Where the sums of the parts of mixed cells lie, and behind them those of cells beside void."""
        first = _aligned(int(self.faces[-1].stop))
        return slice(first, first + self.parts + self.beside_void)

    @property
    def first_towards_void(self) -> int:
        """The first sum of the cells beside void."""
        return int(self.listed.start) + self.parts

    @property
    def boundary_faces(self) -> int:
        """The length of the stretch for boundary faces."""
        return _aligned(int(self.listed.stop))

    @property
    def to_beams(self) -> int:
        """From the sum of a boundary face to that of beams on it; 0 if there are no beams."""
        return self.boundary_faces if self.has_beams else 0

    @property
    def cells(self) -> slice:
        """Where the sums of heated cells lie."""
        first = self.boundary_faces + self.to_beams
        return slice(first, first + self.heated)

    @property
    def size(self) -> int:
        """Length of the array."""
        return _aligned(int(self.cells.stop))

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return 8 * self.size

    def records(self, faces: BoundaryFaces) -> bool:
        """Whether boundary faces have sums."""
        return self.beside_void > 0 if faces.towards_void else prod(self.face_shapes[faces.side]) > 0

    def places_of(self, faces: BoundaryFaces) -> NDArray[np.int64]:
        """The place of the sum of each boundary face; the same for sides of a cell towards void with one condition."""
        if faces.towards_void:
            alone = self.first_towards_void + faces.places
        else:
            alone = self.faces[faces.side].start + faces.places
        return alone if faces.dense else np.where(faces.parts < 0, alone, self.listed.start + faces.parts)


def _aligned(place: int) -> int:
    return -(-place // _ALIGNMENT) * _ALIGNMENT


class SurfaceHeats(NamedTuple):
    """Sums of boundary faces, as views of the array.

    Attributes:
        faces: of each face of the box, of the shape of its cells, empty if it lets nothing through.
        parts: of the parts of mixed cells.
        towards_void: of the cells beside void.
    """

    faces: Sequence[Any]
    parts: Any
    towards_void: Any


@dataclass(frozen=True, eq=False)
class HeatSums:
    """The sums of a ledger at one time, or flows with which they grow.

    Attributes:
        layout: of ``values``.
        values: float64 array on a device, in K of each cell, or K/s.
        sources: heat of sources in the body in J, or their power in W.
    """

    layout: SumLayout
    values: Any
    sources: float = 0.0

    @classmethod
    def zeros(cls, xp: Any, layout: SumLayout, sources: float = 0.0) -> "HeatSums":
        """Sums of zero on a device; ``xp`` is NumPy or CuPy."""
        return cls(layout, xp.zeros(layout.size, dtype=np.float64), sources)

    @cached_property
    def heats(self) -> SurfaceHeats:
        """Through boundary faces, without beams."""
        values, layout = self.values, self.layout
        faces = [values[place].reshape(shape) for place, shape in zip(layout.faces, layout.face_shapes, strict=True)]
        parts = values[layout.listed.start : layout.first_towards_void]
        return SurfaceHeats(faces, parts, values[layout.first_towards_void : layout.listed.stop])

    @property
    def cells(self) -> Any:
        """In the cells that sources heat individually."""
        return self.values[self.layout.cells]

    @classmethod
    def combined(cls, terms: "Iterable[tuple[float, HeatSums]]") -> "HeatSums":
        """Σ weight·sums. Terms with weight 0 are left out; at least one other is needed."""
        used = [(weight, sums) for weight, sums in terms if weight != 0.0]
        values = sum(weight * sums.values for weight, sums in used)
        return cls(used[0][1].layout, values, float(sum(weight * sums.sources for weight, sums in used)))


def no_sums() -> HeatSums:
    """Sums of a ledger that records nothing."""
    return HeatSums.zeros(np, SumLayout())
