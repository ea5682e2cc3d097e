"""The smooth area of each face between two cells, from the painted shapes.

Between two cells of different regions lies the surface of the region that was painted last. A piece of that surface
with area dS and unit normal n adds nᵢ²·dS to the voxel face across axis i in its column of cells:

    z                     . ' /
    |   +-------+     . '    /| n        Σ nᵢ² = 1, so the faces have the area of the surface, whatever its direction.
    |   |   o   | . '        '           A plane gives |nᵢ| of a face's area to every face across axis i, so what
    |   +-------+-------+                flows normal to it crosses each face with the resistance that the plane has.
    |       . ' |   o   |
    +-----------+-------+---- x

If the column has no such face, as at edges, the area goes to the nearest face, in equal parts if several are
equally near. Pieces that another region covers do not count.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from heatsim.device import usable_cores
from heatsim.parallel.slab import HALO
from heatsim.physics.geometry.box_sides import visible_sides
from heatsim.physics.geometry.cell_faces import FaceAreas, between, cells_beside, face_centres, voxel_areas
from heatsim.physics.geometry.counted import coordinates
from heatsim.physics.geometry.division import Division
from heatsim.physics.geometry.facets import Facets, facets
from heatsim.physics.geometry.polygons import split
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.geometry.stl import Surface
from heatsim.physics.geometry.surface_faces import NEAR, FaceSearch
from heatsim.physics.geometry.surface_pieces import FARTHEST, SurfacePieces, VisibleSurfaces
from heatsim.physics.geometry.voxel_areas import areas as areas_of_voxels
from heatsim.physics.geometry.voxel_areas import reach as reach_in_voxels
from heatsim.scenario import Box, Cylinder, Scenario, Sphere, Stl

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

# The number of bodies whose areas are cached, and the largest number of cells of such a body.
_MOST_BODIES = 16
_MOST_CELLS = 2**22
_MOST_THREADS = 4  # each may hold the pieces of a whole surface


def reach(scenario: Scenario) -> int:
    """How many planes away from a face the cells lie that its smooth area depends on."""
    # A piece adds to a face at most this far from it, and looks for faces as far as that on its other side.
    boxes = all(region.shape is None or isinstance(region.shape, Box) for region in scenario.regions)
    found = 2 * ((1 if boxes else FARTHEST) + 1) + NEAR
    if any(region.labels is not None for region in scenario.regions):
        found = max(found, reach_in_voxels(scenario.grid))
    return found


class _AreaCache:
    """A cache of the areas of the latest bodies: the runs of a study often have equal shapes."""

    def __init__(self) -> None:
        self._areas: OrderedDict[Hashable, FaceAreas] = OrderedDict()

    def of(self, body: Hashable | None, make: Callable[[], FaceAreas]) -> FaceAreas:
        """The areas of a body; ``make`` finds them if the cache has none. With ``body`` None they are not cached."""
        if body is None:
            return make()
        found = self._areas.pop(body, None) or make()
        for array in (found.faces, found.areas, found.centres):
            array.flags.writeable = False
        self._areas[body] = found
        if len(self._areas) > _MOST_BODIES:
            self._areas.popitem(last=False)
        return found


_kept = _AreaCache()


def find(
    division: Division,
    parts: Parts,
    material: NDArray[np.uint8],
    wanted: NDArray[np.bool_],
    periodic: tuple[bool, bool, bool],
    centres: bool = False,
) -> FaceAreas:
    """All faces between wanted materials, with their smooth areas.

    Each rank finds the faces of its planes and of HALO + 1 planes on both sides.

    Args:
        division: the materials of the palette, with their scenario.
        parts: the painted cells.
        material: the material of each cell, in the shape of the parts' arrays.
        wanted: whether areas between two materials of the palette are wanted, shape (materials, materials).
        periodic: which axes wrap.
        centres: whether to find the centres of these areas too; without a smooth area, that of the voxel face.

    Returns:
        The areas; their arrays must not be changed.
    """
    body = _body(division, parts, material)
    key = None if body is None else (body, wanted.tobytes(), periodic, centres)
    return _kept.of(key, lambda: _find(division, parts, material, wanted, periodic, centres))


def _body(division: Division, parts: Parts, material: NDArray[np.uint8]) -> Hashable | None:
    """A key for bodies with equal cells and shapes; None for large bodies, parts of bodies and shapes in files."""
    scenario = division.scenario
    regions = [(region.shape, region.name, region.materials, region.labels) for region in scenario.regions]
    in_files = any(labels is not None or isinstance(shape, Stl) for shape, _, _, labels in regions)
    if in_files or parts.held.slab is not None or material.size > _MOST_CELLS:
        return None
    cells = sha256(parts.owner.tobytes() + material.tobytes()).digest()
    return repr((scenario.domain, scenario.grid, regions, division.kinds, scenario.uses_void)), cells


def _find(
    division: Division,
    parts: Parts,
    material: NDArray[np.uint8],
    wanted: NDArray[np.bool_],
    periodic: tuple[bool, bool, bool],
    centres: bool,
) -> FaceAreas:
    """The areas; arguments as for :func:`find`."""
    scenario, grid, held = division.scenario, division.scenario.grid, parts.held
    here, plane = held.grid(grid), grid.cells[0] * grid.cells[1]
    local = between(here, material, wanted, held.periodic(periodic))
    faces = 3 * held.global_cells(local // 3, plane) + local % 3
    near = np.flatnonzero(held.near(faces // 3 // plane, HALO + 1))
    order = near[np.argsort(faces[near])]
    faces, local = faces[order], local[order]
    if not len(faces):
        return FaceAreas(faces, np.zeros(0))
    visible = VisibleSurfaces(division, held, periodic)
    void = len(wanted) - 1 if scenario.uses_void else None
    smooth = _from_shapes(visible, FaceSearch(grid, parts, material, periodic, void), wanted, centres)
    areas = smooth.of(faces)
    low, high = cells_beside(grid, faces)
    # If a shape that the domain cuts off meets itself across a periodic axis, the end of the domain is the surface.
    areas = np.where((high < low) & (areas == 0.0), voxel_areas(grid, faces), areas)
    owner = parts.owner.reshape(-1)
    labels = np.array([False, *(region.labels is not None for region in scenario.regions)])
    images = labels[np.maximum(*(owner[held.local_cells(cells, plane)] for cells in (low, high)))]
    if images.any():
        areas[images] = areas_of_voxels(
            here, material, local[images], void, held.periodic(periodic), max(scenario.domain.cells)
        )
    if not centres:
        return FaceAreas(faces, areas)
    middles = face_centres(grid, faces)
    known, at, places = np.intersect1d(faces[~images], smooth.faces, assume_unique=True, return_indices=True)
    if len(known):
        middles[np.flatnonzero(~images)[at]] = smooth.centres[places]
    return FaceAreas(faces, areas, middles)


def _surface(
    shape: Box | Sphere | Cylinder | Surface, visible: VisibleSurfaces, number: int, wanted: NDArray[np.bool_]
) -> Iterable[Facets | SurfacePieces]:
    """The surface of a region's shape: pieces that are visible, and facets of which parts may be covered."""
    if isinstance(shape, Box):
        return visible_sides(shape, visible, number, wanted)
    return facets(shape, visible.grid)


def _from_shapes(visible: VisibleSurfaces, search: FaceSearch, wanted: NDArray[np.bool_], centres: bool) -> FaceAreas:
    """The areas of faces from the surfaces of shapes, and if wanted their centres."""

    def of_surface(work: tuple[int, Facets | SurfacePieces]) -> tuple[Indices, Array, Array]:
        number, some = work
        if isinstance(some, Facets):
            near = some[visible.near(some.corners[:, :, 2], metres=True)]
            polygons = split(near, visible.grid)
            samples = visible.pieces(polygons[visible.near(polygons.corners[:, :, 2])], number, wanted)
        else:
            samples = some[visible.near(some.points[:, 2:])]
        ids, pieces, points = search.assign(samples, number, visible.materials[number])
        points = points if visible.grid.uniform else coordinates(visible.grid, points)
        if visible.grid.radial:
            # By Pappus' theorem: of 1 m of the section of turned shapes.
            pieces = pieces * (2.0 * np.pi * points[:, 0])
        return ids, pieces, points if centres else points[:0]

    works = (
        (number, some)
        for number, solid in enumerate(visible.solids)
        if solid is not None and wanted[visible.materials[number]].any()
        for some in _surface(solid.shape, visible, number, wanted)
    )
    found: list[tuple[Indices, Array, Array]] = [(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, 3)))]
    with ThreadPoolExecutor(min(usable_cores(), _MOST_THREADS), "heatsim-areas") as pool:
        found.extend(pool.map(of_surface, works))
    ids, pieces, points = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    faces, place = np.unique(ids, return_inverse=True)
    total = np.zeros(len(faces))
    np.add.at(total, place.reshape(-1), pieces)
    if not centres:
        return FaceAreas(faces, total)
    moments = np.stack([np.bincount(place.reshape(-1), pieces * along, len(faces)) for along in points.T], axis=1)
    has, grid = total > 0.0, visible.grid
    middles = moments[has] / total[has, None]
    return FaceAreas(faces[has], total[has], coordinates(grid, middles) if grid.uniform else middles)
