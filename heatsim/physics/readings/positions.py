"""The cells on both sides of a point along one axis."""

from dataclasses import dataclass
from math import log

from heatsim.grid import Axis, Grid

_ON_FACE = 1e-9  # cells: a point this near to a face of the box lies on it


@dataclass(frozen=True)
class Position:
    """The position of a point along one axis.

    Attributes:
        cells: the two cells whose centres are on both sides; twice the same cell in the half cell before a face.
        weight: place between both centres, 0 to 1, with the border of the cells at ½; between face and centre the
            weight of the second value.
        share: weight of the second value within one material, 0 to 1; ``weight`` between cells of one width.
        face: number of the face whose temperature is the first value; None between two centres.
    """

    cells: tuple[int, int]
    weight: float
    face: int | None
    share: float


def _between(axis: Axis, lower: int, upper: int, weight: float) -> Position:
    """A position between the centres of two cells."""
    share = weight
    if not axis.uniform:
        own, other = float(axis.halves[lower, 1]), float(axis.halves[upper, 0])
        before, behind = 2.0 * min(weight, 0.5) * own, 2.0 * max(weight - 0.5, 0.0) * other
        share = (before + behind) / (own + other)
    return Position((lower, upper), weight, None, share)


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
    s = _place(grid, axis, coordinate) - 0.5  # in cells from the first centre
    cell = cell_at(grid, axis, coordinate)
    lower = cell if s >= cell + node / 2.0 else cell - 1
    if periodic:
        return _between(grid.axes[axis], lower % n, (lower + 1) % n, s - lower)
    # A node may lie on a face. A point on the face has the temperature of the face, not that of the node.
    below, above = s + 0.5, n - 0.5 - s
    if lower < 0 or below <= _ON_FACE:
        far = float(grid.axes[axis].other_halves(0, -1))
        weight = _from_face(below, far) / _from_face(node / 2.0 + 0.5, far) if below > _ON_FACE else 0.0
        return Position((0, 0), weight, 2 * axis, weight)
    if above <= _ON_FACE or (lower == n - 1 and s > cell + node / 2.0):
        far = float(grid.axes[axis].other_halves(n - 1, 1))
        weight = _from_face(above, far) / _from_face(0.5 - node / 2.0, far) if above > _ON_FACE else 0.0
        return Position((n - 1, n - 1), weight, 2 * axis + 1, weight)
    lower = min(lower, max(n - 2, 0))
    return _between(grid.axes[axis], lower, min(lower + 1, n - 1), s - lower)


def _from_face(place: float, far: float) -> float:
    """A distance from a face in cells; where it reaches into the far half, with what this resists more."""
    return place if place <= 0.5 or far == 1.0 else 0.5 + (place - 0.5) * far


def cell_at(grid: Grid, axis: int, coordinate: float) -> int:
    """The cell that contains a coordinate (m) along an axis; of two cells the upper one."""
    return min(int(_place(grid, axis, coordinate)), grid.cells[axis] - 1)


def _place(grid: Grid, axis: int, coordinate: float) -> float:
    """A coordinate (m) in cells from the first border. Rounding must not move a point on a face out of the domain."""
    n = grid.cells[axis]
    if grid.axes[axis].uniform:
        return min(max((coordinate - grid.origin[axis]) / grid.size[axis], 0.0), 1.0) * n
    place = min(max(float(grid.axes[axis].places(coordinate)), 0.0), float(n))
    return _by_resistance(grid.axes[axis], place) if grid.radial and axis == 0 else place


def _by_resistance(axis: Axis, place: float) -> float:
    """A place along the radius, where each half cell is divided by its resistance: steady temperatures are exact."""
    cell = min(int(place), len(axis) - 1)
    centre, upper = float(axis.centres[cell]), place - cell >= 0.5
    side, radius = float(axis.borders[cell + upper]), float(axis.coordinates(place))
    if min(side, radius) <= 0.0:  # the axis of symmetry: no heat passes it
        return place
    return cell + 0.5 + (0.5 if upper else -0.5) * log(radius / centre) / log(side / centre)
