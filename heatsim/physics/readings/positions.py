"""The cells on both sides of a point along one axis."""

from dataclasses import dataclass

from heatsim.grid import Grid

_ON_FACE = 1e-9  # cells: a point this near to a face of the box lies on it


@dataclass(frozen=True)
class Position:
    """The position of a point along one axis.

    Attributes:
        cells: the two cells whose centres are on both sides; twice the same cell in the half cell before a face.
        weight: weight of the second value within one material, 0 to 1.
        face: number of the face whose temperature is the first value; None between two centres.
    """

    cells: tuple[int, int]
    weight: float
    face: int | None


def locate(grid: Grid, periodic: bool, axis: int, coordinate: float, node: float = 0.0) -> Position:
    """The position of a coordinate (m) along an axis of the grid.

    Args:
        grid: the grid.
        periodic: whether the axis wraps.
        axis: 0, 1 or 2.
        coordinate: in m.
        node: place of the node of the cell that contains it, in half cells from the centre.
    """
    n = grid.cells[axis]
    # In cells from the first centre. Rounding must not move a point on a face out of the domain.
    s = min(max((coordinate - grid.origin[axis]) / grid.size[axis], 0.0), 1.0) * n - 0.5
    cell = cell_at(grid, axis, coordinate)
    lower = cell if s >= cell + node / 2.0 else cell - 1
    if periodic:
        return Position((lower % n, (lower + 1) % n), s - lower, None)
    # A node may lie on a face. A point on the face has the temperature of the face, not that of the node.
    below, above = s + 0.5, n - 0.5 - s
    if lower < 0 or below <= _ON_FACE:
        return Position((0, 0), below / (node / 2.0 + 0.5) if below > _ON_FACE else 0.0, 2 * axis)
    if above <= _ON_FACE or (lower == n - 1 and s > cell + node / 2.0):
        weight = above / (0.5 - node / 2.0) if above > _ON_FACE else 0.0
        return Position((n - 1, n - 1), weight, 2 * axis + 1)
    lower = min(lower, max(n - 2, 0))
    return Position((lower, min(lower + 1, n - 1)), s - lower, None)


def cell_at(grid: Grid, axis: int, coordinate: float) -> int:
    """The cell that contains a coordinate (m) along an axis; of two cells the upper one."""
    n = grid.cells[axis]
    place = min(max((coordinate - grid.origin[axis]) / grid.size[axis], 0.0), 1.0) * n
    return min(int(place), n - 1)
