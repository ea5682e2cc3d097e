"""Which axis of the grid lies along each axis of the ring of march.py.

The ring holds planes of rows. Short rows and planes of few rows are slow: each row and each plane costs some calls. So
axes with one cell come last:

    cells of the grid        along x, y, z of the ring
    nx, ny, nz               x, y, z
    nx,  1, nz               x, z, y
     1, ny, nz               y, z, x
     1,  1, nz               z, x, y

The other axes keep their order, so cells lie in memory as before. Kernels still add the terms of a cell in the order of
the grid's axes, and results have the same bits.
"""

from typing import NamedTuple

Shape = tuple[int, int, int]
Wraps = tuple[bool, bool, bool]


class RingAxes(NamedTuple):
    """The axis of the grid (0 for x, 1 for y, 2 for z) that lies along each axis of the ring."""

    x: int
    y: int
    z: int

    def shape(self, shape: Shape) -> Shape:
        """Cells along z, y, x of the ring, from those along z, y, x of the grid."""
        cells = shape[::-1]
        return cells[self.z], cells[self.y], cells[self.x]

    def wraps(self, periodic: Wraps, shape: Shape) -> Wraps:
        """Which of x, y, z of the ring wrap, from those of the grid; an axis with one cell need not."""
        x, y, z = (periodic[axis] and shape[2 - axis] > 1 for axis in self)
        return x, y, z

    def side(self, face: int) -> int:
        """The face of the ring at which a face of the grid lies."""
        return 2 * self.index(face // 2) + face % 2

    def turned(self, face: int) -> bool:
        """Whether the axes u and v of a face of the grid are v and u of its face of the ring."""
        first, second = (axis for axis in self if axis != face // 2)
        return first > second


def ring_axes(shape: Shape) -> RingAxes:
    """The axes for a grid with these cells along z, y, x: those with one cell come last."""
    return RingAxes(*sorted(range(3), key=lambda axis: shape[2 - axis] == 1))
