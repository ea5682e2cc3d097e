"""Heat-flux vectors at the centres of cells, from the conductances between them.

The flux between two centres is their conductance times the temperature difference, so two cells of different materials
agree on it. Each component of a cell's vector is the mean of the fluxes through its two faces along that axis. Within a
material that varies with temperature, the difference of potentials replaces that of temperatures.

Where neighbours have different widths too, fluxes between centres are those through the sides, to second order: the
temperatures come from balances of the cells. Along the radius of an axially symmetric body flux times radius is linear
in the square of the radius. So heat that passes through rings, and heat that each m³ gives, are exact.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.link_weights import link_factors
from heatsim.physics.conditions.surface_balance import AMBIENT, FREE
from heatsim.physics.conditions.surface_laws import SurfaceConditions
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.operator.boundary_faces import at_box
from heatsim.physics.operator.face_cells import beam_flux
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.gap_resistances import with_gap_resistances

Array = NDArray[np.float64]
# Types of cells and their temperatures in K, of equal shapes.
Cells = tuple[NDArray[np.intp], Array]


def heat_flux(problem: HeatProblem, step: int, first: int, planes: Callable[[int, int], Array], count: int) -> Array:
    """Vectors in W/m², shape (count, ny, nx, 3), components along x, y, z; arguments as for :func:`fluxes`."""
    _, ny, nx = problem.grid.shape
    flux = np.empty((count, ny, nx, 3))
    for axis, passed in enumerate(fluxes(problem, step, first, planes, count)):
        flux[..., axis] = np.moveaxis(_at_centres(problem, axis, passed), 0, 2 - axis)
    return flux


def fluxes(
    problem: HeatProblem, step: int, first: int, planes: Callable[[int, int], Array], count: int
) -> Iterator[Array]:
    """For each axis the heat fluxes through the sides of cells across it in W/m², towards larger coordinates.

    The first dimension is the axis itself, with one side more than cells; the others keep their order.

    Args:
        problem: the problem.
        step: number of steps done, for conditions that vary in time.
        first: the lowest plane.
        planes: a function (first, end) that returns the temperatures in K of planes ``first`` to ``end`` − 1, shape
            (planes, ny, nx), float64.
        count: number of planes.
    """
    nz = problem.grid.cells[2]
    wraps = problem.periodic
    below = planes(first - 1, first) if first > 0 else planes(nz - 1, nz) if wraps[2] else None
    last = first + count
    above = planes(last, last + 1) if last < nz else planes(0, 1) if wraps[2] else None
    T = planes(first, last)
    cell_types = problem.materials.types_of(slice(first, last))
    rows = problem.boundary.unchecked_rows(problem.timeline.time(step))
    through_face = _faces_at(problem, step)
    for axis in range(3):
        along = 2 - axis
        n = T.shape[along]
        passed = np.empty([length + (dimension == along) for dimension, length in enumerate(T.shape)])
        inner = np.moveaxis(passed, along, 0)
        cells, cell_type = np.moveaxis(T, along, 0), np.moveaxis(cell_types, along, 0)
        weights = [np.moveaxis(_weights(problem, first, last, 2 * axis + side), along, 0) for side in (0, 1)]
        between = _HalvesBetween(problem, axis, slice(first, last) if axis == 2 else slice(None))
        pair = (cell_type[:-1], cells[:-1]), (cell_type[1:], cells[1:])
        inner[1:n] = passing(problem, axis, *pair, weights[1][:-1], between.halves, rows)
        ends = (below, above) if axis == 2 else (cells[-1:], cells[:1]) if wraps[axis] else (None, None)
        for side, beside in enumerate(ends):
            here, own = cells[-side], cell_type[-side]
            if beside is not None:
                place = (first - 1) % nz if side == 0 else last % nz
                other = problem.materials.types_of(place) if axis == 2 else cell_type[side - 1]
                lower, upper = (other, np.asarray(beside).reshape(here.shape)), (own, here)
                weight = weights[1][-1]
                if side == 0:
                    weight = _weights(problem, place, place + 1, 5)[0] if axis == 2 else weight
                # From the lower cell to the upper one, as everywhere: so planes may be found in any number of parts.
                if side == 1:
                    lower, upper = upper, lower
                inner[-side] = passing(problem, axis, lower, upper, weight, between.at_end(side), rows)
            else:
                inwards = through_face(2 * axis + side, slice(None) if axis == 2 else slice(first, last), here, own)
                inner[-side] = inwards if side == 0 else -inwards
        yield inner


def _at_centres(problem: HeatProblem, axis: int, passed: Array) -> Array:
    """The fluxes at the centres of cells from those through their sides."""
    if not problem.grid.radial or axis != 0:
        return np.asarray((passed[:-1] + passed[1:]) / 2.0)
    radius = problem.grid.axes[axis]
    sides, centres = radius.borders[:, None, None], radius.centres[:, None, None]
    of_rings, squares = passed * sides, sides**2
    part = (centres**2 - squares[:-1]) / (squares[1:] - squares[:-1])
    return np.asarray((of_rings[:-1] + part * (of_rings[1:] - of_rings[:-1])) / centres)


class _HalvesBetween:
    """The factors of half cells between planes of cells along an axis.

    Args:
        problem: the problem.
        axis: 0, 1 or 2.
        some: the planes.
    """

    def __init__(self, problem: HeatProblem, axis: int, some: slice) -> None:
        of_axis = problem.grid.axes[axis]
        self._own, self._beyond = (
            factors[some, :, None, None] for factors in (of_axis.half_factors, of_axis.beyond_factors)
        )

    @property
    def halves(self) -> tuple[Array, Array]:
        """The factors of the half cells between neighbouring planes, of the lower and of the upper cell."""
        return self._own[:-1, 1], self._own[1:, 0]

    def at_end(self, side: int) -> tuple[Array, Array]:
        """The factors of the half cells between the first plane and the one below, or the last and the one above."""
        own, beyond = self._own[-side, side, 0], self._beyond[-side, side, 0]
        return (own, beyond) if side else (beyond, own)


def _weights(problem: HeatProblem, first: int, last: int, direction: int) -> Array:
    """Weights of links towards x−, x+, …, z+ (0 … 5), shape (planes, ny, nx).

    If `CellTypes.by_halves`, the ratio of smooth to voxel area of contacts; else the factor of the link.
    """
    nx, ny, _ = problem.grid.cells
    weights = np.ones((last - first, ny, nx))
    surfaces = problem.materials.weighted_surfaces
    if surfaces.contacts:
        here = slice(*np.searchsorted(surfaces.cells, (first * ny * nx, last * ny * nx)))
        found = surfaces.area if problem.materials.by_halves else link_factors(problem.materials)
        weights.reshape(-1)[surfaces.cells[here] - first * ny * nx] = found[here, direction]
    return weights


def passing(
    problem: HeatProblem, axis: int, one: Cells, other: Cells, weight: Array, halves: tuple[Array, Array], rows: Array
) -> Array:
    """Heat flux from a cell to its neighbour in W/m².

    Args:
        problem: the problem.
        axis: along which they are neighbours.
        one: the cell.
        other: its neighbour.
        weight: of the link; if `CellTypes.by_halves`, the ratio of smooth to voxel area of a contact.
        halves: the factors of both half cells between them, see `Axis.half_factors`.
        rows: of the conditions at the time, with temperatures in K.
    """
    (type_a, T_a), (type_b, T_b) = one, other
    materials, conductance = problem.materials, 2.0 / (halves[0] + halves[1])
    if not materials.by_halves:
        return np.asarray(materials.link[axis, type_a, type_b] * weight * conductance * (T_a - T_b))
    material = np.array([cell_type.material for cell_type in materials.types])
    potentials = (
        materials.by_enthalpy(EnthalpyTable.potential_at, cell_type, T - problem.reference)
        for cell_type, T in (one, other)
    )
    half_a, half_b = (half_cell(problem, axis, cell, factor) for cell, factor in zip((one, other), halves, strict=True))
    within = materials.link[axis, type_a, type_b] * conductance * (next(potentials) - next(potentials))
    resistance = materials.resistance[type_a, type_b]
    with np.errstate(divide="ignore", invalid="ignore"):
        contact = np.where(resistance > 0.0, resistance / weight, 0.0)
    contact = with_gap_resistances(problem, rows, (type_a, type_b), (T_a, T_b), (half_a, half_b), contact)
    between = (T_a - T_b) / (half_a + contact + half_b)
    return np.asarray(np.where(material[type_a] == material[type_b], within, between))


def half_cell(problem: HeatProblem, axis: int, cell: Cells, factor: Array) -> Array:
    """Resistances of half cells along an axis in m² K/W; ``factor``: see `Axis.half_factors`."""
    cell_type, T = cell
    conducting = problem.materials.by_enthalpy(EnthalpyTable.conductivity_at, cell_type, T - problem.reference)
    return np.asarray(problem.materials.half[axis, cell_type] * factor / conducting)


def _faces_at(problem: HeatProblem, step: int) -> Callable[[int, slice, Array, NDArray[np.intp]], Array]:
    """A function from a face's number, its rows, their temperatures and types to the flux into the body in W/m²."""
    time, materials = problem.timeline.time(step), problem.materials
    conditions = problem.boundary.unchecked_rows(time)
    beams = problem.sources.face_beams(np.array([time]), problem.timeline.shown_over(step))

    sides = [at_box(problem.boundary, problem.grid, face) for face in range(6)]

    def through_face(face: int, rows: slice, T: Array, cell_types: NDArray[np.intp]) -> Array:
        factor = problem.grid.axes[face // 2].half_factors[-(face % 2), face % 2]
        conductance = 1.0 / (materials.half[face // 2, cell_types] * factor)
        if materials.varies:
            conductance = conductance * materials.by_enthalpy(
                EnthalpyTable.conductivity_at, cell_types, T - problem.reference
            )
        beam = beam_flux([brought for brought in beams if brought.face == face], problem.grid.face_shape(face))
        flux, width = np.zeros(T.size), beam.shape[1]
        for number, faces in sides[face].by_condition():
            first, last, _ = rows.indices(len(beam))
            faces = faces.where((faces.places >= first * width) & (faces.places < last * width))
            at = faces.places - first * width
            own, types, K = T.reshape(-1)[at], cell_types.reshape(-1)[at], conductance.reshape(-1)[at]
            rise = SurfaceConditions(conditions, np.full(len(at), number)).rises(
                np.where(K > 0.0, K, 1.0), 0.0, own, beam.reshape(-1)[faces.places]
            )
            passing = K * rise
            if materials.varies and conditions[number, FREE] == 0.0:
                ambient = np.full(len(at), conditions[number, AMBIENT])
                potentials = (
                    materials.by_enthalpy(EnthalpyTable.potential_at, types, temperature - problem.reference)
                    for temperature in (ambient, own)
                )
                passing = (next(potentials) - next(potentials)) / (materials.half[face // 2, types] * factor)
            np.add.at(flux, at, faces.fractions * passing)
        return flux.reshape(T.shape)

    return through_face
