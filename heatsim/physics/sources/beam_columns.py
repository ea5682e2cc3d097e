"""Follow the light of a beam that its face of the box does not absorb along the face's normal, cell by cell.

Light passes void without loss. Without an absorption depth, the surface of the first conducting cell absorbs all of it;
if void surfaces are insulated, the cell itself absorbs it. With an absorption depth δ, a conducting cell absorbs the
fraction

    exp(−s/δ) − exp(−(s + d)/δ)        s: distance so far in conducting cells, d: size of the cell along the normal

of the light that came in (Beer–Lambert). The sum over a column is exact for any cell size.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, exp, expm1

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.sources.spots import REACH, window, wraps
from heatsim.scenario import Beam, Scenario, face_axes

Array = NDArray[np.float64]

# Light below this fraction of the incoming light is ignored.
_DARK = 1e-18


@dataclass(frozen=True, eq=False)
class Absorbed:
    """The cells and surfaces that absorb the light of a beam, except surfaces at its face of the box.

    Attributes:
        cells: the cells that absorb light, by their indices in the flattened grid, shape (n,).
        weights: for each cell the fraction of its column's light that it absorbs, divided by the size of the cell along
            the normal, in 1/m.
        spots: for each cell the cell (u, v) of the face in the same column, shape (n, 2).
        lit: cells whose surface towards void absorbs light on the side of the face, by their indices among the cells
            with weighted surfaces.
    """

    cells: NDArray[np.int64]
    weights: Array
    spots: NDArray[np.int32]
    lit: NDArray[np.int64]


def absorbed_by(beam: Beam, scenario: Scenario, materials: CellTypes) -> Absorbed:
    """The cells and surfaces that absorb the light of a beam; see :class:`Absorbed`. Collective.

    The cells are those of the whole grid, on all ranks; the surfaces are those in the planes that are held.
    """
    grid, face = materials.grid, FACES.index(beam.face)
    axis, n = face // 2, materials.grid.cells[face // 2]
    window, columns = _reached(beam, scenario)
    light = columns.astype(np.float64)
    travelled = np.zeros(columns.shape)
    lit = [np.zeros(0, np.int64)]
    found: list[tuple[NDArray[np.int64], Array, NDArray[np.int32]]] = []
    all_at_face = materials.void is None and beam.absorption_depth is None
    for depth in range(0 if all_at_face else n):
        place = n - 1 - depth if face % 2 else depth
        d = float(grid.axes[axis].widths[place])
        solid = _conducts(materials, axis, place, window) & (light > _DARK)
        at = np.nonzero(solid)
        v, u = (places + span.start for places, span in zip(at, window, strict=True))
        if beam.absorption_depth is None:
            light[at] = 0.0
            if depth == 0:  # the surface at the face of the box absorbs it, with its condition
                continue
            cells = _index(grid.cells, axis, place, v, u)
            has_surface, here = _surfaces(materials, cells, face)
            lit.append(here)
            v, u = v[~has_surface], u[~has_surface]
            part = np.ones(len(v))
        else:
            part = -np.exp(-travelled[at] / beam.absorption_depth) * expm1(-d / beam.absorption_depth)
            travelled[at] += d
            light[at] *= exp(-d / beam.absorption_depth)
        if len(v):
            found.append((_index(grid.cells, axis, place, v, u), part / d, np.column_stack((u, v)).astype(np.int32)))
        if not (light > _DARK).any():
            break
    found.append((np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 2), np.int32)))
    own, weights, spots = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    return Absorbed(own, weights, spots, np.concatenate(lit))


def hits(beam: Beam, scenario: Scenario, materials: CellTypes) -> bool:
    """Whether a beam meets any conducting cell. Collective."""
    if materials.void is None:
        return True
    axis, (window, reached) = FACES.index(beam.face) // 2, _reached(beam, scenario)
    planes = range(materials.grid.cells[axis])
    return any((_conducts(materials, axis, place, window) & reached).any() for place in planes)


def _conducts(materials: CellTypes, axis: int, place: int, window: tuple[slice, slice]) -> NDArray[np.bool_]:
    """Which cells of a window (v, u) of a plane normal to an axis conduct, shape of the window. Collective."""
    held, (v, u) = materials.held, window
    shape = v.stop - v.start, u.stop - u.start
    if materials.void is None:
        return np.ones(shape, dtype=bool)
    first, last = held.own_planes(materials.grid.shape[0])
    if axis == 2:
        planes, part = slice(place, place + 1), (v, u)
    else:
        planes, part = v, (slice(place, place + 1), u) if axis == 1 else (u, slice(place, place + 1))
    own = slice(max(planes.start, first), min(planes.stop, last))
    types = materials.cells[(held.local(own), *part)] if own.start < own.stop else np.zeros((0, 0, 0), np.uint8)
    conducts = [(of_rank & CELL_TYPE) != materials.void for of_rank in held.gathered(types) if of_rank.size]
    return np.concatenate(conducts).reshape(shape) if conducts else np.zeros(shape, dtype=bool)


def _surfaces(materials: CellTypes, cells: NDArray[np.int64], face: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which cells have a void surface on the side of a face, and the list indices of these surfaces. Collective.

    The list has the surfaces in the planes that are held.
    """
    surfaces, held = materials.weighted_surfaces, materials.held
    if not surfaces.void:
        return np.zeros(len(cells), dtype=bool), np.zeros(0, np.int64)
    listed, places = surfaces.find(cells)
    smooth = surfaces.area[places, face] > 0.0
    here = np.zeros(len(cells), dtype=bool)
    here[listed] = smooth
    z = cells // (materials.grid.cells[0] * materials.grid.cells[1])
    return np.asarray(held.anywhere(z, lambda own: here[own], False)), places[smooth]


def _index(
    cells: tuple[int, int, int], axis: int, place: int, v: NDArray[np.intp], u: NDArray[np.intp]
) -> NDArray[np.int64]:
    """The indices of the cells (u, v) of a plane normal to an axis."""
    strides = (1, cells[0], cells[0] * cells[1])
    along = [strides[other] for other in range(3) if other != axis]
    return np.asarray(place * strides[axis] + u * along[0] + v * along[1], dtype=np.int64)


def _reached(beam: Beam, scenario: Scenario) -> tuple[tuple[slice, slice], NDArray[np.bool_]]:
    """A window (v, u) of its face, and which cells in it a beam can reach on its path."""
    grid, (first, second) = scenario.grid, face_axes(beam.face)
    equal = grid.axes[first].uniform and grid.axes[second].uniform
    narrowest = float(min(grid.axes[first].widths.min(), grid.axes[second].widths.min()))
    distance = narrowest if equal else max(narrowest, beam.radius / 4.0)
    points = _points_on(beam, distance)
    ends = []
    for number, axis in enumerate((first, second)):
        n, count, cells = grid.cells[axis], window(scenario, beam, axis), grid.axes[axis]
        reach = REACH * beam.radius
        if wraps(scenario, beam, axis):
            start, end = np.zeros(len(points), np.int64), np.full(len(points), n)
        elif equal:
            low = cells.places(points[:, number] - reach)
            # A spot between two of these points begins a cell earlier or later.
            start = np.clip(np.floor(low), 0, n - count).astype(np.int64) - 1
            end = start + count + 2
        else:
            low, high = (cells.places(points[:, number] + side * (reach + distance)) for side in (-1.0, 1.0))
            start, end = (np.clip(np.floor(of), 0, n - 1).astype(np.int64) for of in (low, high))
            end += 1
        ends.append((np.clip(start, 0, n), np.clip(end, 0, n)))
    (first_u, end_u), (first_v, end_v) = ends
    of_v, of_u = slice(int(first_v.min()), int(end_v.max())), slice(int(first_u.min()), int(end_u.max()))
    corners = np.zeros((of_v.stop - of_v.start + 1, of_u.stop - of_u.start + 1), dtype=np.int64)
    for v, u, sign in ((first_v, first_u, 1), (first_v, end_u, -1), (end_v, first_u, -1), (end_v, end_u, 1)):
        np.add.at(corners, (v - of_v.start, u - of_u.start), sign)
    return (of_v, of_u), np.cumsum(np.cumsum(corners, axis=0), axis=1)[:-1, :-1] > 0


def _points_on(beam: Beam, distance: float) -> Array:
    """Points on the path of a beam with distances of at most ``distance`` (m), shape (points, 2)."""
    path = np.array(beam.path)
    if len(path) == 1:
        return path
    found = [path[:1]]
    for start, end in pairwise(path):
        parts = max(1, ceil(float(np.hypot(*(end - start))) / distance))
        found.append(start + (end - start) * (np.arange(1, parts + 1) / parts)[:, None])
    return np.concatenate(found)
