"""The surfaces of shapes as plane facets, each with the normal and area of its part of the smooth surface.

In the domain, facets of curved surfaces have about the size of a cell. Far outside they are coarse, so that a sphere
much larger than the domain costs little.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.geometry.counted import extreme_widths
from heatsim.physics.geometry.stl import Surface
from heatsim.scenario import Cylinder, Sphere

Array = NDArray[np.float64]

_ARC = 0.5  # cells: the longest chord of a circle
_PATCH = 2.0  # cells: the longest edge of a facet of a sphere
_ARCS = 64  # of a circle, at least
_PATCHES = 32  # along each edge of the cube that is projected onto a sphere, at least
_DEEP = 0.25  # cells: how far a facet may lie from the surface where cells have several widths
_THIN = 0.1  # of the widest side of a cell: the least length that facets are measured with there
_AT_ONCE = 2**14  # facets


@dataclass(frozen=True, eq=False)
class Facets:
    """Convex polygons of four corners. Triangles repeat the last corner.

    Attributes:
        corners: coordinates (x, y, z) in m, shape (n, 4, 3).
        normals: of the smooth surface, pointing out of the shape, of length 1; shape (n, 3).
        factors: smooth area / area of the polygon; shape (n,).
    """

    corners: Array
    normals: Array
    factors: Array

    def __len__(self) -> int:
        return len(self.corners)

    def __getitem__(self, which: slice | NDArray[np.integer]) -> "Facets":
        return Facets(self.corners[which], self.normals[which], self.factors[which])


def facets(shape: Sphere | Cylinder | Surface, grid: Grid) -> Iterator[Facets]:
    """The facets of a shape's surface, a limited number at a time. Facets outside the domain may be missing."""
    if isinstance(shape, Sphere):
        found = _sphere(shape, grid)
    elif isinstance(shape, Cylinder):
        found = _cylinder(shape, grid)
    else:
        found = _triangles(shape)
    for first in range(0, len(found), _AT_ONCE):
        yield found[slice(first, first + _AT_ONCE)]


def _triangles(surface: Surface) -> Facets:
    """The triangles of a closed surface."""
    corners = surface.points[surface.triangles]
    a, b, c = np.moveaxis(corners, 1, 0)
    doubled = np.cross(b - a, c - a)
    length = np.linalg.norm(doubled, axis=1)
    flat = length > 0.0
    normals = doubled[flat] / length[flat, None]
    return Facets(corners[flat][:, [0, 1, 2, 2]], normals, np.ones(int(flat.sum())))


def _sphere(sphere: Sphere, grid: Grid) -> Facets:
    """A cube whose sides are cut into squares, projected onto the sphere.

    Between (a₁, b₁) and (a₂, b₂) on the side at distance 1 lies the solid angle Ω(a₂, b₂) − Ω(a₁, b₂) − Ω(a₂, b₁) +
    Ω(a₁, b₁) with Ω(a, b) = atan(a·b/√(1 + a² + b²)).
    """
    parts = []

    def outwards(points: Array) -> Array:
        return np.asarray(points - np.array(sphere.centre))

    for axis in range(3):
        for side in (-1.0, 1.0):

            def corners(squares: Array, axis: int = axis, side: float = side) -> Array:
                (low_a, low_b), (high_a, high_b) = squares[:, :, 0].T, squares[:, :, 1].T
                ring = []
                for a, b in ((low_a, low_b), (high_a, low_b), (high_a, high_b), (low_a, high_b)):
                    directions = np.empty((len(squares), 3))
                    directions[:, axis], directions[:, axis - 2], directions[:, axis - 1] = side, a, b
                    ring.append(directions / np.sqrt(1.0 + a**2 + b**2)[:, None])
                return np.array(sphere.centre) + sphere.radius * np.stack(ring, axis=1)

            edges = np.linspace(-1.0, 1.0, _PATCHES + 1)
            spans = np.stack((edges[:-1], edges[1:]), axis=1)
            start = np.stack(np.broadcast_arrays(spans[:, None], spans[None]), axis=2).reshape(-1, 2, 2)
            squares = _refined(start, corners, outwards, (0, 1), _PATCH, sphere.radius, grid)
            a, b = squares[:, 0, :, None], squares[:, 1, None, :]
            angles = np.arctan(a * b / np.sqrt(1.0 + a**2 + b**2))
            solid = angles[:, 1, 1] - angles[:, 0, 1] - angles[:, 1, 0] + angles[:, 0, 0]
            parts.append(_projected(corners(squares), solid * sphere.radius**2, np.array(sphere.centre)))
    return _joined(parts)


def _projected(ring: Array, area: Array, centre: Array) -> Facets:
    """Two triangles for each patch of a sphere, from its corners, shape (n, 4, 3), and its smooth area."""
    triangles = np.stack((ring[:, [0, 1, 2, 2]], ring[:, [0, 2, 3, 3]]), axis=1)
    doubled = np.cross(triangles[:, :, 1] - triangles[:, :, 0], triangles[:, :, 2] - triangles[:, :, 0])
    flat = 0.5 * np.linalg.norm(doubled, axis=2).sum(axis=1)
    normals = triangles[:, :, :3].mean(axis=2) - centre
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    return Facets(triangles.reshape(-1, 4, 3), normals.reshape(-1, 3), np.repeat(area / flat, 2))


def _cylinder(cylinder: Cylinder, grid: Grid) -> Facets:
    """Strips along the side and triangles on both ends, each with the area of its arc or sector."""
    start, end, radius = np.array(cylinder.from_), np.array(cylinder.to), cylinder.radius
    axis = (end - start) / np.linalg.norm(end - start)
    u = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    u /= np.linalg.norm(u)
    v = np.cross(axis, u)

    def around(angles: Array, centre: Array, at: Array | float) -> Array:
        return np.asarray(
            centre + np.reshape(at, (-1, 1)) * (np.cos(angles)[:, None] * u + np.sin(angles)[:, None] * v)
        )

    def corners(arcs: Array) -> Array:
        low, high = arcs[:, 0].T
        ring = ((low, start), (high, start), (high, end), (low, end))
        return np.stack([around(angles, centre, radius) for angles, centre in ring], axis=1)

    def across(points: Array) -> Array:
        return np.asarray((points - start) - ((points - start) @ axis)[:, None] * axis)

    edges = np.linspace(0.0, 2.0 * np.pi, _ARCS + 1)
    arcs = _refined(np.stack((edges[:-1], edges[1:]), axis=1)[:, None], corners, across, (0,), _ARC, radius, grid)
    low, high = arcs[:, 0].T
    angle = high - low
    normals = around((low + high) / 2.0, np.zeros(3), 1.0)
    parts = [Facets(corners(arcs), normals, angle / 2.0 / np.sin(angle / 2.0))]
    for centre, outwards in ((start, -axis), (end, axis)):
        order = np.argsort(low)
        # A triangle from the centre then has the area of its sector, so cells within an end are covered exactly.
        least = np.minimum(angle, np.roll(angle[order], 1)[np.argsort(order)])
        rim = around(low, centre, radius * np.sqrt(least / np.sin(least)))[order]
        triangles = _convex(rim)
        parts.append(
            Facets(triangles[:, [0, 1, 2, 2]], np.tile(outwards, (len(triangles), 1)), np.ones(len(triangles)))
        )
    return _joined(parts)


def _convex(corners: Array) -> Array:
    """Triangles of a convex polygon, few of them thin: every second corner is cut off until three are left."""
    triangles = []
    while len(corners) > 2:
        whole = len(corners) // 2 * 2
        following = np.roll(corners, -2, axis=0)[:whole:2]
        triangles.append(np.stack((corners[:whole:2], corners[1:whole:2], following), axis=1))
        corners = corners[::2]
    return np.concatenate(triangles)


def _refined(
    pieces: Array,
    corners: Callable[[Array], Array],
    radial: Callable[[Array], Array],
    along: tuple[int, ...],
    longest: float,
    radius: float,
    grid: Grid,
) -> Array:
    """Pieces of a curved surface. Those that may touch the domain are halved until their edges are short.

    Where cells have several widths, also until they differ little from the surface, measured in cells.

    Args:
        pieces: range of each piece in each parameter, shape (n, parameters, 2).
        corners: a function from pieces to their corners in m, in order around each piece; shape (n, 4, 3).
        radial: a function from points in m to their vectors from the centre of curvature.
        along: for each parameter the first corner of the edge that must be short.
        longest: the longest edge in cells.
        radius: radius of curvature of the surface in m.
        grid: the domain.
    """
    spacing, low = np.array(grid.mean_spacing), np.array(grid.origin)
    high, done = low + np.array(grid.size), []
    while len(pieces):
        ring = corners(pieces)
        sides = np.stack([ring[:, first + 1] - ring[:, first] for first in along], axis=1)
        # Upper bound of the height of a piece above the plane of its corners.
        bulge = (np.linalg.norm(sides, axis=2).sum(axis=1) ** 2 / radius / 4.0)[:, None]
        near = ((ring.max(axis=1) + bulge >= low) & (ring.min(axis=1) - bulge <= high)).all(axis=1)
        deep = np.zeros(len(pieces), dtype=bool)
        if not grid.uniform:
            chord = radial((ring[:, 0] + ring[:, 1 if len(along) == 1 else 2]) / 2.0)
            off = chord * (radius / np.linalg.norm(chord, axis=1) - 1.0)[:, None]
            spacing, deep = _local_spacing(ring, off, grid)
            spacing = spacing[:, None]
        long = near & (deep | (np.linalg.norm(sides / spacing, axis=2) > longest).any(axis=1))
        done.append(pieces[~long])
        pieces = pieces[long]
        for parameter in range(pieces.shape[1]):
            middle = pieces[:, parameter].mean(axis=1)
            lower, upper = pieces.copy(), pieces.copy()
            lower[:, parameter, 1] = upper[:, parameter, 0] = middle
            pieces = np.concatenate((lower, upper))
    return np.concatenate(done)


def _local_spacing(ring: Array, off: Array, grid: Grid) -> tuple[Array, NDArray[np.bool_]]:
    """What the edges of facets are measured with where cells have several widths, and which facets are too coarse.

    Args:
        ring: corners of the facets in m, shape (n, corners, 3).
        off: the vector in m from the middle of each facet to the surface, shape (n, 3).
        grid: the cells.

    Returns:
        The widest cells that each facet touches along x, y and z in m, shape (n, 3); and whether the facet differs from
        the surface by more than a part of a cell.
    """
    widest, deep = np.empty((len(ring), 3)), np.zeros(len(ring), dtype=bool)
    for number, axis in enumerate(grid.axes):
        at = ring[:, :, number]
        low = axis.places(at.min(axis=1) + np.minimum(off[:, number], 0.0))
        high = axis.places(at.max(axis=1) + np.maximum(off[:, number], 0.0))
        least, widest[:, number] = extreme_widths(axis, low, high)
        deep |= np.abs(off[:, number]) > _DEEP * least
    # A cell much narrower than long needs no facets as small as it is narrow: they are cut at its sides.
    floor = np.minimum(_THIN * widest.max(axis=1, keepdims=True), grid.mean_spacing)
    return np.maximum(widest, floor), deep


def _joined(parts: list[Facets]) -> Facets:
    return Facets(
        np.concatenate([part.corners for part in parts]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.factors for part in parts]),
    )
