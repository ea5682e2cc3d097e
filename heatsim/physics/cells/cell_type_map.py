"""The map of cell types: which type each cell has, from the materials and the cells that sources heat."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.cells import layer_types
from heatsim.physics.cells.cell_types import (
    CELL_TYPE,
    INTERIOR,
    MAXIMUM_CELL_TYPES,
    Array,
    CellType,
    CellTypes,
    TooManyCellTypesError,
    planes_at_once,
)
from heatsim.physics.cells.weighted_surfaces import NO_WEIGHTED_SURFACES, WeightedSurfaces, find_weighted
from heatsim.physics.geometry import cell_faces, voxel_areas
from heatsim.physics.geometry.cell_faces import FaceAreas
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.geometry.painting import count_values
from heatsim.physics.layers.layering import NO_LAYERS, Layering
from heatsim.physics.matter.material_numbers import MaterialNumbers

Contacts = Mapping[frozenset[int], float]


def build(
    grid: Grid,
    palette: Sequence[MaterialNumbers],
    material: NDArray[np.uint8] | None,
    *,
    contacts: Contacts | None = None,
    heated: Iterable[NDArray[np.bool_] | None] = (),
    periodic: tuple[bool, bool, bool] = (False, False, False),
    void_conditions: Sequence[int] | None = None,
    surfaces: FaceAreas | None = None,
    layering: Layering = NO_LAYERS,
    held: PaintedPlanes = EVERYTHING,
) -> CellTypes:
    """The cell types of a body. Collective.

    Args:
        grid: the whole grid.
        palette: the materials; for void :data:`heatsim.physics.matter.material_numbers.VOID`.
        material: index of each cell's material in the palette, shaped as the held planes; None if all have the first.
        contacts: contact resistances in m² K/W; keys are pairs of indices in the palette.
        heated: for each source the cells that it heats, of the same shape; None if it heats all cells that conduct.
        periodic: which axes wrap.
        void_conditions: the number of the condition on surfaces of each material towards void; None if these let no
            heat through.
        surfaces: smooth areas of all faces between :func:`weighted` materials; None to derive them from the voxels.
        layering: what layers change in the whole body.
        held: the planes of ``material`` and ``heated``; all planes if neither has an array.

    Raises:
        TooManyCellTypesError: there are more than 127 cell types.
    """
    void = next((place for place, substance in enumerate(palette) if substance.conductivity is None), None)
    contacts, exposed = contacts or {}, void_conditions is not None
    cells, types, counts = _types_of_cells(held, grid, palette, material, heated, void, layering)
    surfaces_of_cells, areas = NO_WEIGHTED_SURFACES, dict[frozenset[int], float]()
    if cells.size:
        if material is not None and surfaces is None:
            surfaces = _voxel_areas(grid, material, weighted(palette, contacts, exposed), void, periodic)
        uneven = _between_half_cells(held, grid, palette, contacts, material, periodic)
        surfaces_of_cells, areas = _weighted_surfaces(held, grid, material, surfaces, void, layering, uneven)
        _mark_interior(held, cells, periodic, surfaces_of_cells.cells if len(layering.cells) else None)
    half, resistance = _resistances(grid, palette, types, contacts)
    conditions = () if void_conditions is None else [void_conditions[one.material] for one in types]
    return CellTypes(
        grid=grid,
        palette=tuple(palette),
        types=types,
        cells=cells,
        counts=counts,
        link=1.0 / (half[:, :, None] + resistance + half[:, None, :]),
        half=half,
        heat_capacity=np.array([palette[one.material].heat_capacity + one.added for one in types]),
        resistance=resistance,
        void=next((number for number, cell_type in enumerate(types) if cell_type.material == void), None),
        weighted_surfaces=surfaces_of_cells,
        surface_areas=areas,
        void_conditions=np.array(conditions, dtype=np.int32),
        layering=layering,
        held=held if cells.size else EVERYTHING,
        face_types=_face_types(held, grid, cells) if cells.size and held.slab is not None else (),
    )


def _types_of_cells(
    held: PaintedPlanes,
    grid: Grid,
    palette: Sequence[MaterialNumbers],
    material: NDArray[np.uint8] | None,
    heated: Iterable[NDArray[np.bool_] | None],
    void: int | None,
    layering: Layering,
) -> tuple[NDArray[np.uint8], tuple[CellType, ...], NDArray[np.int64]]:
    """The type of each cell, the types, and the number of cells of each, as :func:`_in_order` returns them."""
    cells, types = _map(held, grid, len(palette), material, heated, void)
    if len(layering.cells):
        cells, types = layer_types.add(held, grid, palette, cells, types, layering)
    return _in_order(held, grid, cells, types, void, keep_map=len(layering.cells) > 0)


def _voxel_areas(
    grid: Grid,
    material: NDArray[np.uint8],
    pairs: NDArray[np.bool_],
    void: int | None,
    periodic: tuple[bool, bool, bool],
) -> FaceAreas:
    """Smooth areas of the faces between the pairs of materials, from the voxels."""
    faces = cell_faces.between(grid, material, pairs, periodic)
    return FaceAreas(faces, voxel_areas.areas(grid, material, faces, void, periodic))


def _resistances(
    grid: Grid, palette: Sequence[MaterialNumbers], types: Sequence[CellType], contacts: Contacts
) -> tuple[Array, Array]:
    """d/2k of each type, shape (3, types), and contact resistances between types, shape (types, types); in m² K/W."""
    halves = [one.half or layer_types.half(grid, palette[one.material]) for one in types]
    return np.ascontiguousarray(np.array(halves).T), resistances([one.material for one in types], contacts)


def _weighted_surfaces(
    held: PaintedPlanes,
    grid: Grid,
    material: NDArray[np.uint8] | None,
    surfaces: FaceAreas | None,
    void: int | None,
    layering: Layering,
    uneven: NDArray[np.int64],
) -> tuple[WeightedSurfaces, dict[frozenset[int], float]]:
    """The cells with weighted surfaces or links, and the areas of these surfaces by pairs of materials. Collective."""
    if material is not None and surfaces is not None:
        areas = cell_faces.total_areas(grid, surfaces, material, held)
        return find_weighted(grid, surfaces, material, void, layering, held, uneven), areas
    if len(layering.cells):
        none = np.zeros((0, 0, 0), dtype=np.uint8)
        return find_weighted(grid, cell_faces.NO_AREAS, none, void, layering, held), {}
    return NO_WEIGHTED_SURFACES, {}


def _between_half_cells(
    held: PaintedPlanes,
    grid: Grid,
    palette: Sequence[MaterialNumbers],
    contacts: Contacts,
    material: NDArray[np.uint8] | None,
    periodic: tuple[bool, bool, bool],
) -> NDArray[np.int64]:
    """The faces at which the factor of a plane is not that of the link, on axes of several widths.

    There two conductivities meet, or parts with a contact resistance, also of one material.
    """
    if grid.uniform or material is None:
        return np.zeros(0, dtype=np.int64)
    conductivities = [one.conductivity for one in palette]
    differ = [[None not in (a, b) and a != b for b in conductivities] for a in conductivities]
    pairs = np.array(differ) | (resistances(range(len(palette)), contacts) > 0.0)
    local = cell_faces.between(held.grid(grid), material, pairs, held.periodic(periodic))
    plane = grid.cells[0] * grid.cells[1]
    faces = 3 * held.global_cells(local // 3, plane) + local % 3
    return np.sort(faces[~np.array([axis.uniform for axis in grid.axes])[faces % 3]])


def _face_types(held: PaintedPlanes, grid: Grid, cells: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], ...]:
    """The types of the cells at each face of the grid, from the ranks that have them. Collective."""
    own, (first, last) = cells[held.own] & CELL_TYPE, held.own_planes(grid.shape[0])
    sides = [own[:, :, 0], own[:, :, -1], own[:, 0], own[:, -1]]
    found = [np.concatenate(held.gathered(np.ascontiguousarray(side))) for side in sides]
    for plane, at in ((0, 0), (grid.shape[0] - 1, -1)):
        of_ranks = held.gathered(own[at] if first <= plane < last else None)
        found.extend(of_rank for of_rank in of_ranks if of_rank is not None)
    return tuple(found)


def weighted(palette: Sequence[MaterialNumbers], contacts: Contacts, exposed: bool) -> NDArray[np.bool_]:
    """Between which materials the area of surfaces matters, shape (materials, materials).

    Args:
        palette: the materials.
        contacts: contact resistances in m² K/W; keys are pairs of indices in the palette.
        exposed: whether void surfaces let heat through.
    """
    pairs = np.zeros((len(palette), len(palette)), dtype=bool)
    for pair, resistance in contacts.items():
        if resistance > 0.0 and len(pair) == 2:
            a, b = pair
            pairs[a, b] = pairs[b, a] = True
    for place, substance in enumerate(palette):
        if substance.conductivity is None:
            pairs[place] = pairs[:, place] = exposed
            pairs[place, place] = False
    return pairs


def _map(
    held: PaintedPlanes,
    grid: Grid,
    materials: int,
    material: NDArray[np.uint8] | None,
    heated: Iterable[NDArray[np.bool_] | None],
    void: int | None,
) -> tuple[NDArray[np.uint8], list[CellType]]:
    """The type of each cell, empty if all cells have one type; and all types, those without cells included."""
    masks = list(heated)
    mapped = material is not None or any(mask is not None for mask in masks)
    cells = np.zeros(held.grid(grid).shape if mapped else (0, 0, 0), dtype=np.uint8)
    types = [CellType(place) for place in range(materials if material is not None else 1)]
    if material is not None:
        cells[...] = material
    for source, mask in enumerate(masks):
        cells = _heat(held, cells, types, source, mask, void)
    return cells, types


def _heat(
    held: PaintedPlanes,
    cells: NDArray[np.uint8],
    types: list[CellType],
    source: int,
    mask: NDArray[np.bool_] | None,
    void: int | None,
) -> NDArray[np.uint8]:
    """The map after a source is added; new types are appended to ``types``."""
    if not cells.size:
        types[0] = CellType(types[0].material, (*types[0].sources, source))
        return cells
    present = held.union(np.unique(cells if mask is None else cells[mask]).tolist())
    lookup = np.arange(256, dtype=np.uint8)
    for old in present:
        if types[old].material == void:
            continue
        if len(types) == 256:
            raise TooManyCellTypesError(f"more than {MAXIMUM_CELL_TYPES} combinations of materials and sources")
        lookup[old] = len(types)
        types.append(CellType(types[old].material, (*types[old].sources, source)))
    if mask is None:
        return lookup[cells]
    cells[mask] = lookup[cells[mask]]
    return cells


def _in_order(
    held: PaintedPlanes,
    grid: Grid,
    cells: NDArray[np.uint8],
    types: Sequence[CellType],
    void: int | None,
    keep_map: bool = False,
) -> tuple[NDArray[np.uint8], tuple[CellType, ...], NDArray[np.int64]]:
    """The map, the types and the cells of each type; types without cells are left out, the others sorted.

    Types without sources come first, then void, then types with sources. If one type is left, the map is empty; with
    ``keep_map`` the type stands twice instead, because links have weights only in bodies of several types.
    """
    if not cells.size:
        return cells, (types[0],), np.array([grid.cell_count], dtype=np.int64)
    counts = held.total(count_values(cells[held.own], len(types)))
    order = sorted(
        np.flatnonzero(counts).tolist(),
        key=lambda number: (bool(types[number].sources), types[number].material == void, number),
    )
    if len(order) > MAXIMUM_CELL_TYPES:
        raise TooManyCellTypesError(
            f"{len(order)} combinations of materials and sources; at most {MAXIMUM_CELL_TYPES} are allowed"
        )
    found, counts = tuple(types[number] for number in order), counts[order].astype(np.int64)
    if len(order) == 1 and keep_map:
        return np.zeros_like(cells), found * 2, np.append(counts, 0)
    if len(order) == 1:
        return np.zeros((0, 0, 0), dtype=np.uint8), found, counts
    lookup = np.zeros(len(types), dtype=np.uint8)
    lookup[order] = np.arange(len(order))
    return lookup[cells], found, counts


def resistances(materials: Sequence[int], contacts: Contacts) -> Array:
    """Contact resistances in m² K/W between things of these materials, shape (things, things)."""
    resistance = np.zeros((len(materials), len(materials)))
    for a, b in np.ndindex(*resistance.shape):
        resistance[a, b] = contacts.get(frozenset((materials[a], materials[b])), 0.0)
    return resistance


def _mark_interior(
    held: PaintedPlanes, cells: NDArray[np.uint8], periodic: tuple[bool, bool, bool], never: NDArray[np.int64] | None
) -> None:
    """Set INTERIOR in cells whose neighbours all have the same type, but not in ``never``, cells of the whole grid.

    Works on a few planes at a time.
    """
    nz, periodic = len(cells), held.periodic(periodic)
    count = planes_at_once(cells.shape)
    for first in range(0, nz, count):
        last = min(first + count, nz)
        below = (first - 1) % nz if periodic[2] else max(first - 1, 0)
        above = last % nz if periodic[2] else min(last, nz - 1)
        column = np.concatenate([cells[below][None], cells[first:last], cells[above][None]]) & CELL_TYPE
        planes = column[1:-1]
        same = (planes == column[:-2]) & (planes == column[2:])
        for axis, wraps in ((2, periodic[0]), (1, periodic[1])):
            if planes.shape[axis] == 1:
                continue
            types, along = np.moveaxis(planes, axis, 0), np.moveaxis(same, axis, 0)
            same_as_next = types[1:] == types[:-1]
            along[1:] &= same_as_next
            along[:-1] &= same_as_next
            if wraps:
                ends = types[0] == types[-1]
                along[0] &= ends
                along[-1] &= ends
        cells[first:last] |= np.where(same, np.uint8(INTERIOR), np.uint8(0))
    if never is not None:
        cells.reshape(-1)[held.local_cells(never, cells[0].size)] &= CELL_TYPE
