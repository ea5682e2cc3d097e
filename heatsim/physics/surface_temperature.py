"""The temperature of a face itself, half a cell outside of the cells behind it."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.body import Body
from heatsim.physics.conditions import surface_rise
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import face_axes

Array = NDArray[np.float64]
Cell = tuple[int, int, int]

# Surface temperatures in K from those behind the surface, for a face's number and the cell (x, y, z) at it.
Surfaces = Callable[[int, Cell, Array], Array]


def surfaces_at(problem: HeatProblem, step: int) -> Surfaces:
    """How the faces' own temperatures follow from those of the cells after ``step`` steps."""
    time = problem.timeline.time(step)
    if problem.body is not None:
        return _of_body(problem.body, problem, step, time)
    weights = cache(lambda face: problem.faces.surface(face, time))

    def surface(face: int, cell: Cell, temperatures: Array) -> Array:
        a, b = weights(face)
        return a * temperatures + b

    return surface


def _of_body(body: Body, problem: HeatProblem, step: int, time: float) -> Surfaces:
    rows = body.conditions.rows(np.array([time]), 0.0)[0]
    dt = float(problem.timeline.dts[problem.timeline.interval(step)])
    beams = body.sources.beam_rows(np.array([time]), dt)

    def surface(face: int, cell: Cell, temperatures: Array) -> Array:
        axis, kind = face // 2, body.medium.kind_at(*cell)
        if kind == body.medium.void:
            return temperatures
        u, v = (cell[other] for other in face_axes(FACES[face]))
        flux = 0.0
        for beam in beams:
            i, j = (int(at - first) for at, first in zip((u, v), beam.first[0], strict=True))
            weight_u, weight_v = (weight[0] for weight in beam.weights)
            if beam.face == face and 0 <= i < len(weight_u) and 0 <= j < len(weight_v):
                flux += float(weight_u[i] * weight_v[j])
        T = np.asarray(temperatures, dtype=np.float64)
        conducting = body.medium.enthalpies[kind].conductivity_at(T - body.reference) if body.medium.varies else 1.0
        conductance = conducting * np.float64(1.0 / body.medium.half[axis, kind])
        rises = (
            float(fraction) * surface_rise(rows[int(number)], conductance, 0.0, T, flux)
            for number, fraction in body.conditions.shares(face, np.array(v), np.array(u))
        )
        return np.asarray(temperatures + sum(rises))

    return surface
