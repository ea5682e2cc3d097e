"""The links between cells of two materials or regions with a contact, and the heat flow through them.

The flux of a link is that of the kernels: the conductance of two half cells and the contact resistance in series, with
the smooth area of the surface, times the temperature difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.link_weights import link_factors
from heatsim.physics.cells.type_links import links_between
from heatsim.physics.geometry.division import Division
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.heat_flux import half_cell, passing

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
    materials, grid = problem.materials, problem.grid
    found = links_between(materials, problem.periodic, joins | joins.T)
    upwards = joins[found.types[0], found.types[1]]
    cells, types, halves = (np.where(upwards, of, of[::-1]) for of in (found.cells, found.types, found.halves))
    ends = np.array([np.unravel_index(of, grid.shape) for of in cells]).reshape(2, 3, -1)
    surfaces, areas, weight = materials.weighted_surfaces, np.zeros(len(upwards)), np.ones(len(upwards))
    factors = surfaces.area if materials.by_halves or not surfaces.contacts else link_factors(materials)
    for direction in range(6):
        some = 2 * found.axes + upwards == direction
        areas[some] = grid.side_areas(direction, cells[0, some])
        weight[some] = surfaces.ratios(cells[0, some], direction, grid.cells[0] * grid.cells[1], factors)
    order = np.lexsort((*ends[1, ::-1], *ends[0, ::-1], found.axes))
    own = found.axes[order], ends[0][:, order], ends[1][:, order], types[:, order], halves[:, order]
    return ContactLinks(*own, areas[order], weight[order])


def flow_through(problem: HeatProblem, links: ContactLinks, ends: tuple[Array, Array], time: float = 0.0) -> float:
    """The heat flow in W from the first side of a contact to the second.

    Args:
        problem: the problem.
        links: of a contact.
        ends: temperatures in K of the cells of the first side and of the second, each of the shape (links,).
        time: in s, for gaps that change in time.
    """
    total, grid = 0.0, problem.grid
    for axis, here, flux, _ in _passing(problem, links, ends, time):
        if grid.uniform:
            total += float(flux.sum()) * grid.cell_volume / grid.spacing[axis]
        else:
            total += float((flux * links.areas[here]).sum())
    return total


def temperatures_between(
    problem: HeatProblem, links: ContactLinks, ends: tuple[Array, Array], time: float = 0.0
) -> Array:
    """The mean temperature in K of both surfaces at each link of a contact; arguments as of :func:`flow_through`."""
    found, (first, second) = np.empty(len(links.axes)), ends
    for _, here, flux, (near, far) in _passing(problem, links, ends, time):
        found[here] = 0.5 * (first[here] + second[here] + flux * (far - near))
    return found


def _passing(
    problem: HeatProblem, links: ContactLinks, ends: tuple[Array, Array], time: float
) -> Iterator[tuple[int, NDArray[np.bool_], Array, list[Array]]]:
    """For each axis which links lie along it, their heat fluxes in W/m², and the resistances of both half cells."""
    rows = problem.boundary.unchecked_rows(time)
    for axis in range(3):
        here = links.axes == axis
        if here.any():
            one, other = zip(links.types[:, here], (of[here] for of in ends), strict=True)
            halves = links.halves[0, here], links.halves[1, here]
            flux = passing(problem, axis, one, other, links.weight[here], halves, rows)
            both = zip((one, other), halves, strict=True)
            yield axis, here, flux, [half_cell(problem, axis, cell, factor) for cell, factor in both]


def joins(problem: HeatProblem, division: Division, number: int) -> NDArray[np.bool_]:
    """Whether a contact joins a cell type of its first side to one of its second, shape (types, types)."""
    owners = [cell_type.material for cell_type in problem.materials.types]
    numbers = np.array([[division.contacts.get(frozenset((a, b)), -1) for b in owners] for a in owners])
    places = [(int(name not in problem.scenario.materials), name) for name in problem.scenario.contacts[number].between]
    first, second = (np.array([division.kinds[owner][place] == name for owner in owners]) for place, name in places)
    return np.asarray((numbers == number) & first[:, None] & second)
