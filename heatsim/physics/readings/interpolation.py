"""Temperatures at points between the centres of cells.

Between two centres heat flows through two half cells and, between two materials, through their contact. So the
temperature follows the resistances, not the distance (Patankar, *Numerical Heat Transfer and Fluid Flow*, §4.2-3). With
s from 0 to 1 between the centres a and b, and r = d/2k of each half cell:

        a        interface        b         in a:  T = T_a + 2s·r_a/(r_a + R + r_b) · (T_b − T_a)
        ●------------|------------●         in b:  T = T_b − 2(1 − s)·r_b/(r_a + R + r_b) · (T_b − T_a)
        s = 0        ½            1         with a contact R, T jumps by R/(r_a + R + r_b) · (T_b − T_a) at s = ½

R is the resistance with the smooth area of the interface, as in the kernels. Within one material T is linear in the
coordinate, also between cells of different widths.
Interpolation along x, then y, then z is trilinear within one material. It is exact if the temperature changes along one
axis only, or linearly along interfaces. After the step along x, the values on the point's own side of the interfaces
across x are used along y, and so on. If a material varies with temperature, each half cell has the conductivity at its
centre.

The last half cell before a face lies between the outermost centre and the temperature of the face:

        face      cell 0      cell 1
         |  ---●--- | ---●---  |           node positions: 0, 1/2, 3/2, … cells
         0     ½    1   3/2

Near an edge of the body, one face after the other takes its half cell; faces that hold a temperature come last. So a
point at the edge of a held face and a heated one has the temperature of the held face.

Void has no temperature: the half cell before a void surface has the temperature of its centre. A cell with a layer has
its node on the plane of the layer, so the resistances begin there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.cells.layer_types import half
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.gap_resistances import with_gap_resistances
from heatsim.physics.readings.own_side import own_side
from heatsim.physics.readings.positions import cell_at, locate
from heatsim.physics.readings.surface_temperature import (
    SurfacePoint,
    SurfaceTemperatures,
    acting_over,
    holds_temperature,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Step:
    """The interpolation of pairs of values along one axis.

    Attributes:
        axis: 0, 1 or 2.
        known: whether the first and the second value are known; None if all are.
        share: the weight of the second value; if materials vary with temperature, that within one material.
        place: s, with the interface at ½.
        side: the side of the interface on which the point lies, 0 or 1.
        cell_types: of the first and the second value.
        contact: resistances in m² K/W of contacts and layers between them; None if all cells are of one type.
        nodes: places of both nodes, in half cells from the centres.
        halves: the factors of the half cells on both sides of the interface, see `Axis.half_factors`.
        others: the other halves of both cells over these, as resistances.
    """

    axis: int
    known: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None
    share: Array
    place: Array
    side: NDArray[np.intp]
    cell_types: tuple[NDArray[np.intp], NDArray[np.intp]]
    contact: Array | None
    nodes: tuple[Array, Array]
    halves: tuple[Array, Array]
    others: tuple[Array, Array]

    def beyond_nodes(self, places: tuple[Array | float, Array | float]) -> tuple[Array, Array]:
        """Resistances from both nodes to places, in half cells from the centres towards the interface."""
        nodes = self.nodes[0], -self.nodes[1]
        first, second = (
            np.where(place < 0.0, place * other, place) - np.where(node < 0.0, node * other, node)
            for place, node, other in zip(places, nodes, self.others, strict=True)
        )
        return first, second


class _BesideFaces(NamedTuple):
    """Points between outermost centres and faces: each at most once.

    Attributes:
        points: their numbers.
        weights: of the temperature of the cell; the rest is the weight of that of the surface.
        surfaces: the surfaces.
    """

    points: NDArray[np.intp]
    weights: Array
    surfaces: SurfaceTemperatures


class Interpolation:
    """Temperatures at points.

    Attributes:
        cells: the cells around each point as index arrays x, y, z of shape (points, 2, 2, 2), along z, y, x.
    """

    def __init__(self, problem: HeatProblem, points: Sequence[tuple[float, float, float]]) -> None:
        self._problem = problem
        self._positions = [
            tuple(
                locate(problem.grid, wraps, axis, point[axis], node)
                for axis, (wraps, node) in enumerate(zip(problem.periodic, _nodes_at(problem, point), strict=True))
            )
            for point in points
        ]
        cells = np.array([[at.cells for at in positions] for positions in self._positions], dtype=np.int64)
        x, y, z = cells.reshape(-1, 3, 2).transpose(1, 0, 2)
        self.cells = np.broadcast_arrays(x[:, None, None, :], y[:, None, :, None], z[:, :, None, None])
        nx, ny, _ = problem.grid.cells
        self._places = (self.cells[2] * ny + self.cells[1]) * nx + self.cells[0]
        self._points = list(points)
        of_points = [[(at.share, at.weight) for at in positions] for positions in self._positions]
        self._shares, self._weights = np.moveaxis(np.array(of_points).reshape(-1, 3, 2), 2, 0)
        self._cell_types, self._known = _cell_types(problem.materials, self.cells)
        materials = problem.materials
        self._half = np.array([half(problem.grid, materials.palette[one.material]) for one in materials.types]).T
        self._sides = np.array(
            [
                own_side(problem, point, positions, known, owners)
                for point, positions, known, owners in zip(
                    points, self._positions, self._known, self._owners(), strict=True
                )
            ],
            dtype=np.intp,
        ).reshape(-1, 3)
        self._at_faces = self._beside_faces()
        self._steps = self._along_axes()

    def of(self, temperatures: Array, steps: Sequence[int]) -> Array:
        """Temperatures in K at the points at some times, shape (times, points).

        Args:
            temperatures: temperatures of ``cells`` in K at each time, shape (times, points, 2, 2, 2).
            steps: the number of steps done at each time, for conditions that vary in time.
        """
        values = temperatures
        for axis in self._steps:
            first, second = values[..., 0], values[..., 1]
            if axis.known is not None:
                first, second = np.where(axis.known[0], first, second), np.where(axis.known[1], second, first)
            share = axis.share
            if axis.contact is not None and self._problem.materials.by_halves:
                share = self._share(axis, axis.contact, (first, second), steps)
            values = first + share * (second - first)
        found = values.reshape(len(steps), -1)
        if self._at_faces:
            for times, acting in acting_over(self._problem, steps):
                for beside in self._at_faces:
                    inside = found[times, beside.points]
                    outside = beside.surfaces.of(inside, acting)
                    found[times, beside.points] = outside + beside.weights * (inside - outside)
        return found

    def _owners(self) -> NDArray[np.uint8]:
        """The regions of the cells around the points, shape (points, 2, 2, 2)."""
        parts = self._problem.parts
        return np.zeros(self.cells[0].shape, dtype=np.uint8) if parts is None else parts.owners_at(*self.cells)

    def _beside_faces(self) -> list[_BesideFaces]:
        """The points between the outermost centres and faces: with their first face, their second, their third.

        Faces that hold a temperature come last, because an edge of the body has their temperature.
        """
        rounds: list[list[tuple[int, float, SurfacePoint]]] = [[], [], []]
        for number, positions in enumerate(self._positions):
            own, point = self._own_cell(number), self._points[number]
            faces = [(at.weight, SurfacePoint(at.face, own, point)) for at in positions if at.face is not None]
            faces.sort(key=lambda face: holds_temperature(self._problem.boundary, face[1]))
            for of_round, face in zip(rounds, faces, strict=False):
                of_round.append((number, *face))
        found = []
        for of_round in filter(None, rounds):
            numbers, weights, surfaces = zip(*of_round, strict=True)
            temperatures = SurfaceTemperatures(self._problem, surfaces)
            found.append(_BesideFaces(np.array(numbers), np.array(weights), temperatures))
        return found

    def _along_axes(self) -> list[_Step]:
        """The interpolations along x, then y, then z: along the last index of the values each time."""
        known, cell_types, places, steps = self._known, self._cell_types, self._places, []
        layering = self._problem.materials.layering
        mixed = bool((cell_types != cell_types[:, :1, :1, :1]).any()) or len(layering.cells) > 0
        for axis in range(3):
            pair = (cell_types[..., 0], cell_types[..., 1])
            side = self._sides[:, axis].reshape(-1, *[1] * (pair[0].ndim - 1))
            share, place = (of[:, axis].reshape(side.shape) for of in (self._shares, self._weights))
            ends = (places[..., 0], places[..., 1])
            nodes = (layering.node_of(axis, ends[0]), layering.node_of(axis, ends[1]))
            halves = (self._half_factors(axis, ends[0], 1), self._half_factors(axis, ends[1], 0))
            others = (self._other_halves(axis, ends[0], 1), self._other_halves(axis, ends[1], -1))
            both = None if known.all() else (known[..., 0], known[..., 1])
            step = _Step(axis, both, share, place, side, pair, None, nodes, halves, others)
            contact = self._contact(step, ends) if mixed else None
            step = replace(step, contact=contact)
            if contact is not None and not self._problem.materials.by_halves:
                step = replace(step, share=self._share(step, contact))
            steps.append(step)
            # Continue with the point's own side; if that is void, with the other side.
            own = np.where(side == 1, known[..., 1], ~known[..., 0])
            cell_types, known = np.where(own, pair[1], pair[0]), np.asarray(known.any(axis=-1))
            places = np.where(own, places[..., 1], places[..., 0])
        return steps

    def _own_cell(self, number: int) -> tuple[int, int, int]:
        x, y, z = (
            at.cells[side] for at, side in zip(self._positions[number], self._sides[number].tolist(), strict=True)
        )
        return x, y, z

    def _half_factors(self, axis: int, places: NDArray[np.int64], side: int) -> Array:
        """The factors of the half cells of cells on a side along an axis; see `Axis.half_factors`."""
        cells = self._problem.grid.cells
        planes = places // (1, cells[0], cells[0] * cells[1])[axis] % cells[axis]
        return np.asarray(self._problem.grid.axes[axis].half_factors[planes, side])

    def _other_halves(self, axis: int, places: NDArray[np.int64], side: int) -> Array:
        cells = self._problem.grid.cells
        planes = places // (1, cells[0], cells[0] * cells[1])[axis] % cells[axis]
        return self._problem.grid.axes[axis].other_halves(planes, side)

    def _contact(self, step: _Step, places: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Array:
        """Resistances in m² K/W of contacts and layers between cells and their upper neighbours along an axis."""
        materials, (lower, upper) = self._problem.materials, places
        axis, cell_types = step.axis, step.cell_types
        nx, ny, _ = self._problem.grid.cells
        contact = materials.resistance[cell_types]
        ratio = materials.weighted_surfaces.ratios(lower, 2 * axis + 1, nx * ny)
        with np.errstate(divide="ignore", invalid="ignore"):
            contact = np.where(contact > 0.0, contact / ratio, 0.0)
        if not len(materials.layering.cells):
            return contact
        # What the link has beyond both half cells; along a layer it has less.
        link = np.where(lower != upper, materials.layering.link_of(3 * lower + axis), 0.0)
        own, other = self._half_cells(step)
        own, other = (part * of for part, of in zip(step.beyond_nodes((1.0, 1.0)), (own, other), strict=True))
        beyond = 1.0 / np.where(link > 0.0, link, 1.0) - own - other
        return np.where((link > 0.0) & (beyond > 0.0), beyond, contact)

    def _half_cells(self, step: _Step) -> tuple[Array, Array]:
        """Resistances in m² K/W between each of two centres and the interface between them."""
        own, other = (
            self._half[step.axis, cell_type] * factors
            for cell_type, factors in zip(step.cell_types, step.halves, strict=True)
        )
        return own, other

    def _share(
        self, step: _Step, contact: Array, temperatures: tuple[Array, ...] = (), steps: Sequence[int] = ()
    ) -> Array:
        """The weight of the second of two values along an axis, from the resistances between them.

        It depends on their temperatures, and on the numbers of steps done, only if `CellTypes.by_halves`.
        """
        materials, cell_types, s = self._problem.materials, step.cell_types, step.place
        own, other = self._half_cells(step)
        material = np.array([cell_type.material for cell_type in materials.types])
        alike = (material[cell_types[0]] == material[cell_types[1]]) & (contact == 0.0)
        alike &= (step.nodes[0] == 0.0) & (step.nodes[1] == 0.0)
        if materials.by_halves:
            own, other = (
                resistance
                / materials.by_enthalpy(
                    EnthalpyTable.conductivity_at, np.broadcast_to(cell_type, T.shape), T - self._problem.reference
                )
                for resistance, cell_type, T in zip((own, other), cell_types, temperatures, strict=True)
            )
        if materials.has_gaps:
            contact, least = np.empty(temperatures[0].shape), contact
            for some, acting in acting_over(self._problem, steps):
                now = (temperatures[0][some], temperatures[1][some]), (own[some], other[some])
                contact[some] = with_gap_resistances(self._problem, acting.conditions, cell_types, *now, least)
        resisting = np.isfinite(own) & np.isfinite(other)
        own, other = np.where(resisting, own, 0.0), np.where(resisting, other, 0.0)
        to_own, to_other = step.beyond_nodes((1.0, 1.0))
        whole = to_own * own + contact + to_other * other
        whole = np.where(resisting & (whole > 0.0), whole, 1.0)
        to_own, to_other = step.beyond_nodes((2.0 * np.minimum(s, 0.5), 2.0 * (1.0 - np.maximum(s, 0.5))))
        before, behind = to_own * own / whole, 1.0 - to_other * other / whole
        return np.asarray(np.where(alike | ~resisting, step.share, np.where(step.side == 1, behind, before)))


def _nodes_at(problem: HeatProblem, point: tuple[float, float, float]) -> list[float]:
    """The places of the node of the cell that contains a point, in half cells from the centre along x, y, z."""
    grid, layering = problem.grid, problem.materials.layering
    x, y, z = (cell_at(grid, axis, coordinate) for axis, coordinate in enumerate(point))
    cell = np.array([(z * grid.cells[1] + y) * grid.cells[0] + x], dtype=np.int64)
    return [float(layering.node_of(axis, cell)[0]) for axis in range(3)]


def _cell_types(materials: CellTypes, cells: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The types of cells, and whether they conduct."""
    x, y, z = cells
    cell_types = materials.types_at(x, y, z)
    return cell_types, cell_types != (-1 if materials.void is None else materials.void)
