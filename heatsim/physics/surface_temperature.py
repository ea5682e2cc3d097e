"""The temperature of a face, half a cell outside the centres of its cells."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.boundary import Boundary
from heatsim.physics.enthalpy import EnthalpyTable
from heatsim.physics.mixed_cells import MIXED
from heatsim.physics.problem import HeatProblem
from heatsim.physics.sources import BeamRows
from heatsim.physics.surface_laws import rises
from heatsim.scenario import face_axes

Array = NDArray[np.float64]
Cell = tuple[int, int, int]
Point = tuple[float, float, float]


class SurfacePoint(NamedTuple):
    """A point at a face.

    Attributes:
        face: the face's number.
        cell: the cell (x, y, z) at it.
        point: in m.
    """

    face: int
    cell: Cell
    point: Point


class Acting(NamedTuple):
    """What acts on surfaces at one time.

    Attributes:
        conditions: the six numbers of each condition, with temperatures in K; some may be not finite.
        beams: what beams bring.
    """

    conditions: Array
    beams: list[BeamRows]


def acting_at(problem: HeatProblem, step: int) -> Acting:
    """What acts on surfaces after ``step`` steps."""
    time = problem.timeline.time(step)
    beams = problem.sources.beam_rows(np.array([time]), problem.timeline.shown_over(step))
    return Acting(problem.boundary.unchecked_rows(time, 0.0), beams)


class SurfaceTemperatures:
    """Temperatures of faces at some points, from those of the cells at them."""

    def __init__(self, problem: HeatProblem, points: Sequence[SurfacePoint]) -> None:
        self._materials, self._reference = problem.materials, problem.reference
        self._faces = np.array([at.face for at in points])
        self._places = np.array([[at.cell[axis] for axis in face_axes(FACES[at.face])] for at in points])
        self._numbers = np.array([_condition_at(problem.boundary, at) for at in points])
        x, y, z = np.array([at.cell for at in points]).T
        self._cell_types = problem.materials.types_of((z, y, x))
        self._conducts = self._cell_types != (-1 if problem.materials.void is None else problem.materials.void)
        half = problem.materials.half[self._faces // 2, self._cell_types]
        self._conductance = 1.0 / np.where(self._conducts, half, 1.0)

    def of(self, temperatures: Array, acting: Acting) -> Array:
        """Temperatures of the surfaces in K.

        If a condition is not finite at this time, neither is the temperature of its surfaces. Void keeps its number.

        Args:
            temperatures: of the cells in K, shape (points,).
            acting: what acts on the surfaces.
        """
        conductance = self._conductance
        if self._materials.varies:
            deviation = temperatures - self._reference
            conductance = conductance * self._materials.by_enthalpy(
                EnthalpyTable.conductivity_at, self._cell_types, deviation
            )
        rise = rises(acting.conditions, self._numbers, conductance, 0.0, temperatures, self._fluxes(acting.beams))
        return np.where(self._conducts, temperatures + rise, temperatures)

    def _fluxes(self, beams: Sequence[BeamRows]) -> Array:
        """The flux of beams in W/m²."""
        flux = np.zeros(len(self._faces))
        for beam in beams:
            u, v = (weights[0] for weights in beam.weights)
            i, j = (self._places - beam.first[0]).T
            hit = np.flatnonzero((self._faces == beam.face) & (i >= 0) & (i < len(u)) & (j >= 0) & (j < len(v)))
            flux[hit] += u[i[hit]] * v[j[hit]]
        return flux


def _condition_at(boundary: Boundary, at: SurfacePoint) -> int:
    """The number of the condition at a point of a face; in a mixed cell that of the patch at the point, if any."""
    if not boundary.maps[at.face].size:
        return at.face
    cell_u, cell_v = (at.cell[axis] for axis in face_axes(FACES[at.face]))
    number = int(boundary.maps[at.face][cell_v, cell_u])
    if number != MIXED:
        return number
    u, v = (at.point[axis] for axis in face_axes(FACES[at.face]))
    for number, patch in enumerate(boundary.scenario.patches, start=len(FACES)):
        (u_min, v_min), (u_max, v_max) = patch.rectangle.min, patch.rectangle.max
        if patch.face == FACES[at.face] and u_min <= u <= u_max and v_min <= v <= v_max:
            return number
    return at.face
