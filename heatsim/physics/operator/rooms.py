"""Rooms: void regions that [[surfaces]] name, and the condition of each boundary face towards void.

The condition of a boundary face depends on the kind of its cell, and on the region that painted the void cell beyond it
(:meth:`heatsim.physics.geometry.division.Division.towards_void`). Kernels know one condition for each cell type. So
where the faces of a type have several, its cells are mixed cells, see :mod:`heatsim.physics.conditions.mixed_cells`:
each face is one part, with the fraction 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heatsim.counts import counted
from heatsim.errors import Mistake, ScenarioError
from heatsim.parallel.slab import Slab
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.mixed_cells import MIXED, TOWARDS_VOID, MixedCells, place_of
from heatsim.physics.geometry.division import Division
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.operator.boundary_faces import BoundaryFaces, towards_void
from heatsim.physics.operator.channel_walls import with_channels
from heatsim.scenario.messages import show

Numbers = NDArray[np.int64]
_Pairs = tuple[NDArray[np.integer], NDArray[np.uint8]]  # kinds and rooms of boundary faces


def rooms_beyond(faces: BoundaryFaces, parts: Parts, slab: Slab) -> NDArray[np.uint8]:
    """The region that painted the void cell beyond each boundary face, numbered as in ``Parts.owner``; shape (n,).

    Args:
        faces: towards void, of cells that lie in planes of the slab.
        parts: the painted cells, with the planes next to these cells.
        slab: the planes of the grid of ``faces``; ``Slab.whole`` for all planes.
    """
    z, y, x = np.unravel_index(faces.cells, faces.grid.shape)
    at, n = [x, y, slab.place[z]], (*faces.grid.cells[:2], slab.planes)
    at[faces.axis] = (at[faces.axis] + 2 * (faces.side % 2) - 1) % n[faces.axis]
    x, y, z = at
    return np.asarray(parts.owner[parts.held.local(z), y, x])


def numbers_towards_void(boundary: Boundary, division: Division) -> Numbers:
    """The number of the condition of cells of each kind towards void that each region painted, (kinds, 1 + regions).

    Where several of [[surfaces]] hold, it is that of the last one; no boundary face may lie there.
    """
    holds = division.towards_void
    found = np.full(holds.shape[1:], boundary.first_towards_void)
    for number, of_entry in enumerate(holds, start=boundary.first_towards_void + 1):
        found[of_entry] = number
    for number, (owner, room) in enumerate(zip(boundary.owners, boundary.rooms, strict=True)):
        if number != owner:
            found[found[:, room] == owner, room] = number
    return found


def with_rooms(
    boundary: Boundary, materials: CellTypes, division: Division, parts: Parts | None
) -> tuple[Boundary, CellTypes]:
    """The conditions of a body, and its cell types, where [[surfaces]] name rooms. Collective.

    Args:
        boundary: the conditions of a scenario, before any of them is replaced.
        materials: the cell types; the condition of each towards void is that towards all void.
        division: the kinds of cells.
        parts: the painted cells.

    Raises:
        ScenarioError: two entries of [[surfaces]] hold on one boundary face, or an entry of a room on none.
    """
    if parts is None or not boundary.exposes or not (any(boundary.rooms) or boundary.scenario.channels):
        return boundary, materials
    numbers, grid, held = numbers_towards_void(boundary, division), materials.grid, parts.held
    kinds = np.array([cell_type.material for cell_type in materials.types])
    everything, sides = Slab.whole(grid.cells[2]), [*towards_void(materials, boundary.periodic, boundary.mixed)]
    pairs = [(kinds[of.types(materials)], rooms_beyond(of, parts, everything)) for of in sides]
    areas = _areas(materials, sides, pairs, numbers.shape)
    of_sides = [numbers[pair] for pair in pairs]
    boundary = with_channels(boundary, materials, parts, sides, [pair[1] for pair in pairs], of_sides)
    used = np.zeros((len(kinds), len(boundary.conditions)), dtype=bool)
    for of, own in zip(sides, of_sides, strict=True):
        used[of.types(materials), own] = True
    used = held.any(used)
    problems = [*_meeting(division, areas), *_empty(division, parts, areas)]
    if problems:
        raise ScenarioError(boundary.scenario.path, sorted(problems, key=lambda problem: problem.key))
    alone = used.argmax(axis=1)
    several = (used.sum(axis=1) > 1) | (alone == MIXED)
    conditions = np.where(several, MIXED, np.where(used.any(axis=1), alone, materials.void_conditions))
    found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for of, own in zip(sides, of_sides, strict=True):
        some = np.flatnonzero(several[of.types(materials)])
        some = some[np.argsort(of.cells[some])]
        found.append((place_of(TOWARDS_VOID + of.side, 0) + of.cells[some], own[some]))
    places, of_places = (np.concatenate(each) for each in zip(*found, strict=True))
    mixed = boundary.mixed
    mixed = MixedCells(
        np.concatenate((mixed.places, places)),
        np.concatenate((mixed.first, mixed.first[-1] + 1 + np.arange(len(places)))),
        np.concatenate((mixed.numbers, of_places)),
        np.concatenate((mixed.fractions, np.ones(len(places)))),
    )
    return replace(boundary, mixed=mixed), replace(materials, void_conditions=conditions.astype(np.int32))


def _areas(
    materials: CellTypes, sides: Sequence[BoundaryFaces], pairs: Sequence[_Pairs], shape: tuple[int, int]
) -> NDArray[np.float64]:
    """The number of boundary faces, and their area in m², by kind and room; shape (2, kinds, rooms). Collective."""
    plane, found = materials.grid.cells[0] * materials.grid.cells[1], np.zeros((2, *shape))
    nothing = [np.zeros(0)]
    z = np.concatenate([*nothing, *(of.cells // plane for of in sides)]).astype(np.int64)
    keys = np.concatenate([*nothing, *(np.ravel_multi_index(pair, shape) for pair in pairs)]).astype(np.int64)
    areas = np.concatenate([*nothing, *(np.broadcast_to(of.area * of.ratios, len(of)) for of in sides)])
    for row, values in zip(found, (np.ones(len(z)), areas), strict=True):
        for key, total in materials.held.sums(z, keys, values).items():
            row.reshape(-1)[key] = total
    return found


def _meeting(division: Division, faces: NDArray[np.float64]) -> Iterator[Mistake]:
    """The mistakes of entries that hold on boundary faces where an earlier one holds too."""
    surfaces, holds = division.scenario.surfaces, division.towards_void
    for later, surface in enumerate(surfaces):
        for earlier in range(later):
            count, area = faces[:, holds[later] & holds[earlier]].sum(axis=1)
            if count:
                other, rooms = surfaces[earlier], division.scenario.rooms
                whole, part = (other, surface) if other.of in rooms else (surface, other)
                advice = (
                    "keep `of` in one of them and write `between`, with parts of other rooms, in place of the other; "
                    "or divide the region"
                )
                if part.between is not None and whole.of in part.between:
                    advice = _instead(division, faces[0], surfaces.index(whole))
                yield Mistake(
                    f"surfaces.{later}.{surface.key}",
                    f"got {show(surface.between or surface.of)}, which has {counted(int(count), 'boundary face')} "
                    f"({area:.4g} m²) in common with surfaces.{earlier}, {show(other.between or other.of)}: {advice}",
                )
                break


def _instead(division: Division, faces: NDArray[np.float64], number: int) -> str:
    """What to write instead of the entry ``number``, of a room of which a part has an entry too."""
    holds, room = division.towards_void, division.scenario.surfaces[number].of
    others = np.delete(holds, number, axis=0).any(axis=0)
    left = ((faces > 0.0) & holds[number] & ~others).any(axis=1).tolist()
    kinds = [kind for kind, rest in zip(division.kinds, left, strict=True) if rest]
    names = dict.fromkeys(region or material for material, region in kinds)
    entries = " and ".join(f"between = {show([name, room])}" for name in names)
    return (f"write an entry with {entries}, and " if names else "") + f"remove the entry with of = {show(room)}"


def _empty(division: Division, parts: Parts, faces: NDArray[np.float64]) -> Iterator[Mistake]:
    """The mistakes of entries whose room has no surface, or none towards their part."""
    scenario = division.scenario
    for index, surface in enumerate(scenario.surfaces):
        room = surface.room(scenario.rooms)
        if room is None or faces[0, division.towards_void[index]].any():
            continue
        part, left = surface.part(scenario.rooms), parts.region_cells[scenario.rooms[room] - 1]
        if not left:
            why = f"later regions have painted over all of {show(room)}: paint it after them"
        elif part is None:
            why = f"no cell that conducts borders on {show(room)}: void or faces of the box surround it"
        else:
            why = f"{show(part)} does not border on {show(room)}"
        yield Mistake(f"surfaces.{index}.{surface.key}", f"got {show(surface.between or surface.of)}; {why}")
