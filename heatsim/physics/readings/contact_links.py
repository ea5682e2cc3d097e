"""The links between cells of two materials or regions with a contact, and the heat flow through them.

The flux of a link is that of the kernels: the conductance of two half cells and the contact resistance in series, with
the smooth area of the surface, times the temperature difference.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.cells.cell_types import planes_at_once
from heatsim.physics.cells.link_weights import link_factors
from heatsim.physics.geometry.division import Division
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.heat_flux import passing

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ContactLinks:
    """The links of a contact.

    Attributes:
        axes: the axis of each link, 0 = x; shape (links,).
        first: indices (z, y, x) of the cells of the first material or region, shape (3, links).
        second: those of their neighbours of the second.
        types: the types of both cells, shape (2, links).
        halves: the factors of both half cells, see `Axis.half_factors`; shape (2, links).
        areas: in m², shape (links,).
        weight: of each link, as :func:`heatsim.physics.readings.heat_flux.passing` takes it, shape (links,).
    """

    axes: Numbers
    first: Numbers
    second: Numbers
    types: NDArray[np.intp]
    halves: Array
    areas: Array
    weight: Array


def contact_links(problem: HeatProblem) -> list[ContactLinks]:
    """The links of each contact of the scenario, in its order. Collective.

    They are sorted by axis and cells, so their order does not depend on the number of ranks.
    """
    division = Division.of(problem.scenario)
    return [_links(problem, joins(problem, division, number)) for number in range(len(problem.scenario.contacts))]


def _links(problem: HeatProblem, joins: NDArray[np.bool_]) -> ContactLinks:
    """The links between cell types; ``joins``: whether a type is on the first side of one that is on the second."""
    parts = [part for along in range(3) for part in _along(problem, along, joins)]
    axes = np.concatenate([np.full(part.shape[2], along) for along, part in parts] or [np.empty(0, np.int64)])
    ends = np.concatenate([part for _, part in parts] or [np.empty((2, 3, 0), np.int64)], axis=2)
    types = np.stack([problem.materials.types_of(tuple(end)) for end in ends])
    upwards = _upwards(axes, *ends)
    own = axes, ends, types, _weights(problem, axes, ends[0], upwards), upwards
    arrays = zip(*problem.materials.held.gathered(own), strict=True)
    axes, ends, types, weights, upwards = (np.concatenate(of_ranks, axis=-1) for of_ranks in arrays)
    order = np.lexsort((*ends[1, ::-1], *ends[0, ::-1], axes))
    axes, ends, types, weights = axes[order], ends[..., order], types[:, order], weights[order]
    halves, areas = _geometry(problem.grid, axes, ends, upwards[order])
    return ContactLinks(axes, ends[0], ends[1], types, halves, areas, weights)


def _geometry(grid: Grid, axes: Numbers, ends: Numbers, upwards: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The factors of both half cells of links, shape (2, links), and their areas in m²."""
    halves, areas = np.ones((2, len(axes))), np.zeros(len(axes))
    cells = np.ravel_multi_index(tuple(ends[0]), grid.shape)
    for axis, of_axis in enumerate(grid.axes):
        here = np.flatnonzero(axes == axis)
        side = upwards[here].astype(np.intp)
        for end, sides in enumerate((side, 1 - side)):
            halves[end, here] = of_axis.half_factors[ends[end, 2 - axis, here], sides]
        for towards in (0, 1):
            some = here[side == towards]
            areas[some] = grid.mean_areas[axis] if grid.uniform else grid.side_areas(2 * axis + towards, cells[some])
    return halves, areas


def flow_through(problem: HeatProblem, links: ContactLinks, ends: tuple[Array, Array], time: float = 0.0) -> float:
    """The heat flow in W from the first side of a contact to the second.

    Args:
        problem: the problem.
        links: of a contact.
        ends: temperatures in K of the cells of the first side and of the second, each of the shape (links,).
        time: in s, for gaps that change in time.
    """
    first, second = ends
    total, grid, rows = 0.0, problem.grid, problem.boundary.unchecked_rows(time)
    for axis in range(3):
        here = links.axes == axis
        if here.any():
            one, other = zip(links.types[:, here], (first[here], second[here]), strict=True)
            halves = links.halves[0, here], links.halves[1, here]
            flux = passing(problem, axis, one, other, links.weight[here], halves, rows)
            if grid.uniform:
                total += float(flux.sum()) * grid.cell_volume / grid.spacing[axis]
            else:
                total += float((flux * links.areas[here]).sum())
    return total


def joins(problem: HeatProblem, division: Division, number: int) -> NDArray[np.bool_]:
    """Whether a contact joins a cell type of its first side to one of its second, shape (types, types)."""
    kinds = [cell_type.material for cell_type in problem.materials.types]
    first = problem.scenario.contacts[number].between[0]
    place = 0 if first in problem.scenario.materials else 1
    return np.array(
        [
            [
                division.kinds[one][place] == first and division.contacts.get(frozenset((one, other))) == number
                for other in kinds
            ]
            for one in kinds
        ]
    )


def _along(problem: HeatProblem, axis: int, joins: NDArray[np.bool_]) -> list[tuple[int, Numbers]]:
    """The links along an axis, as pairs of the axis and indices of shape (2, 3, links): first and second cell."""
    shape, dimension, materials = problem.grid.shape, 2 - axis, problem.materials
    n, step = shape[dimension], planes_at_once(shape)
    last = n if problem.periodic[axis] and n > 1 else n - 1
    begin, end = materials.held.own_planes(shape[0])
    end = min(end, last) if dimension == 0 else end
    found = []
    for start in range(begin, end, step):
        planes = np.arange(start, min(start + step, end))
        here = materials.types_of(planes)
        there = materials.types_of((planes + 1) % n) if dimension == 0 else np.roll(here, -1, dimension)
        for of_types, forwards in ((joins, True), (joins.T, False)):
            links = of_types[here, there]
            if dimension > 0:
                links[(slice(None),) * dimension + (slice(last, None),)] = False
            below = np.array(np.nonzero(links), dtype=np.int64)
            below[0] += start
            above = below.copy()
            above[dimension] = (above[dimension] + 1) % n
            found.append((axis, np.stack((below, above) if forwards else (above, below))))
    return found


def _upwards(axes: Numbers, first: Numbers, second: Numbers) -> NDArray[np.bool_]:
    """Whether the second cell of each link lies above the first."""
    links = np.arange(len(axes))
    towards = second[2 - axes, links] - first[2 - axes, links]
    # Across a periodic face the neighbour above has the lower index.
    return np.where(np.abs(towards) > 1, towards < 0, towards > 0)


def _weights(problem: HeatProblem, axes: Numbers, first: Numbers, upwards: NDArray[np.bool_]) -> Array:
    """The weight of each link, as :func:`heatsim.physics.readings.heat_flux.passing` takes it."""
    surfaces, weights = problem.materials.weighted_surfaces, np.ones(len(axes))
    if not surfaces.contacts or not len(axes):
        return weights
    nx, ny, _ = problem.grid.cells
    cells = (first[0] * ny + first[1]) * nx + first[2]
    at = np.minimum(np.searchsorted(surfaces.cells, cells), len(surfaces.cells) - 1)
    weighted = surfaces.cells[at] == cells
    found = surfaces.area if problem.materials.by_halves else link_factors(problem.materials)
    return np.where(weighted, found[at, 2 * axes + upwards], weights)
