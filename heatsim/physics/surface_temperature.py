"""The temperature of a face, half a cell outside the centres of its cells."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.boundary import Boundary
from heatsim.physics.mixed_cells import MIXED
from heatsim.physics.problem import HeatProblem
from heatsim.physics.sources import BeamRows
from heatsim.physics.surface_balance import surface_rise
from heatsim.scenario import face_axes

Array = NDArray[np.float64]
Cell = tuple[int, int, int]
Point = tuple[float, float, float]

# A function from a face's number, the cell (x, y, z) at it, a point of the cell in m, and temperatures of the cell in K
# to temperatures of the surface in K.
Surfaces = Callable[[int, Cell, Point, Array], Array]


def surfaces_at(problem: HeatProblem, step: int) -> Surfaces:
    """A function that returns temperatures of faces from those of the cells at them, after ``step`` steps.

    If a condition is not finite at this time, neither is the temperature of the surface.
    """
    time, materials = problem.timeline.time(step), problem.materials

    found: list[tuple[Array, list[BeamRows]]] = []

    def acting() -> tuple[Array, list[BeamRows]]:
        """The numbers of the conditions, and the beams; found when the first surface needs them."""
        if not found:
            beams = problem.sources.beam_rows(np.array([time]), problem.timeline.shown_over(step))
            found.append((problem.boundary.unchecked_rows(time, 0.0), beams))
        return found[0]

    def surface(face: int, cell: Cell, point: Point, temperatures: Array) -> Array:
        axis, cell_type = face // 2, materials.type_at(*cell)
        if cell_type == materials.void:
            return temperatures
        u, v = (cell[other] for other in face_axes(FACES[face]))
        flux = 0.0
        rows, beams = acting()
        for beam in beams:
            weight_u, weight_v = beam.weights[0][0], beam.weights[1][0]
            i, j = (int(at) - int(first) for at, first in zip((u, v), beam.first[0], strict=True))
            if beam.face == face and 0 <= i < len(weight_u) and 0 <= j < len(weight_v):
                flux += float(weight_u[i] * weight_v[j])
        T = np.asarray(temperatures, dtype=np.float64)
        conducting = materials.enthalpies[cell_type].conductivity_at(T - problem.reference) if materials.varies else 1.0
        conductance = conducting * np.float64(1.0 / materials.half[axis, cell_type])
        condition = rows[_condition_at(problem.boundary, face, (u, v), point)]
        return np.asarray(temperatures + surface_rise(condition, conductance, 0.0, T, flux))

    return surface


def _condition_at(boundary: Boundary, face: int, cell: tuple[int, int], point: Point) -> int:
    """The number of the condition at a point of a face; in a mixed cell that of the patch at the point, if any."""
    if not boundary.maps[face].size:
        return face
    number = int(boundary.maps[face][cell[1], cell[0]])
    if number != MIXED:
        return number
    u, v = (point[axis] for axis in face_axes(FACES[face]))
    for number, patch in enumerate(boundary.scenario.patches, start=len(FACES)):
        (u_min, v_min), (u_max, v_max) = patch.rectangle.min, patch.rectangle.max
        if patch.face == FACES[face] and u_min <= u <= u_max and v_min <= v <= v_max:
            return number
    return face
