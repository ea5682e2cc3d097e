"""The temperature of a face, half a cell outside the centres of its cells."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.surface_laws import SurfaceConditions
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.operator.boundary_faces import at_box
from heatsim.physics.problem import HeatProblem
from heatsim.physics.sources.beam_rows import BeamRows
from heatsim.scenario import Temperature, face_axes

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
    """The conditions and beams that act on surfaces at one time, or at several times if only beams change.

    Attributes:
        conditions: the six numbers of each condition, with temperatures in K; they need not be finite.
        beams: the power of the beams at each time.
    """

    conditions: Array
    beams: list[BeamRows]


# The latest result of acting_at: several probes ask for the same time.
_latest: "WeakKeyDictionary[HeatProblem, tuple[int, Acting]]" = WeakKeyDictionary()


def acting_at(problem: HeatProblem, step: int) -> Acting:
    """The conditions and beams that act on surfaces after ``step`` steps."""
    known = _latest.get(problem)
    if known is None or known[0] != step:
        time = problem.timeline.time(step)
        beams = problem.sources.face_beams(np.array([time]), problem.timeline.shown_over(step))
        known = _latest[problem] = step, Acting(problem.boundary.unchecked_rows(time), beams)
    return known[1]


def forget_acting(problem: HeatProblem) -> None:
    """Find what acts on surfaces again: a value was set at this time."""
    _latest.pop(problem, None)


def acting_over(problem: HeatProblem, steps: Sequence[int]) -> Iterator[tuple[slice, Acting]]:
    """What acts on surfaces after some numbers of steps, each with the slice of ``steps`` to which it applies."""
    first, timeline = 0, problem.timeline
    if problem.boundary.lasts and not problem.sources.beams:
        yield slice(0, len(steps)), acting_at(problem, steps[0])
    elif problem.boundary.lasts:
        rows = problem.boundary.unchecked_rows(timeline.time(steps[0]))
        for length, some in groupby(steps, timeline.shown_over):
            times = np.array([timeline.time(step) for step in some])
            yield slice(first, first + len(times)), Acting(rows, problem.sources.face_beams(times, length))
            first += len(times)
    else:
        for number, step in enumerate(steps):
            yield slice(number, number + 1), acting_at(problem, step)


def holds_temperature(boundary: Boundary, at: SurfacePoint) -> bool:
    """Whether the condition at a point of a face holds a temperature."""
    numbers, _ = _mixture_at(boundary, at)
    return isinstance(boundary.conditions[int(numbers[0])], Temperature)


class SurfaceTemperatures:
    """Temperatures of faces at some points, from those of the cells at them."""

    def __init__(self, problem: HeatProblem, points: Sequence[SurfacePoint]) -> None:
        self._materials, self._reference = problem.materials, problem.reference
        self._faces = np.array([at.face for at in points])
        self._places = np.array([[at.cell[axis] for axis in face_axes(FACES[at.face])] for at in points])
        mixtures = [_mixture_at(problem.boundary, at) for at in points]
        self._owners = np.repeat(np.arange(len(points)), [len(numbers) for numbers, _ in mixtures])
        self._whole = len(self._owners) == len(points)  # each point has one condition
        self._numbers = np.concatenate([numbers for numbers, _ in mixtures])
        self._parts = np.concatenate([parts for _, parts in mixtures])
        x, y, z = np.array([at.cell for at in points]).T
        self._cell_types = problem.materials.types_at(x, y, z)
        self._conducts = self._cell_types != (-1 if problem.materials.void is None else problem.materials.void)
        ends = [problem.grid.axes[face // 2].half_factors[-(face % 2), face % 2] for face in self._faces.tolist()]
        half = problem.materials.half[self._faces // 2, self._cell_types] * np.array(ends)
        self._conductance = 1.0 / np.where(self._conducts, half, 1.0)
        self._latest: tuple[Array, SurfaceConditions] | None = None

    def of(self, temperatures: Array, acting: Acting) -> Array:
        """Temperatures of the surfaces in K.

        If a condition is not finite at this time, the temperature of its surfaces is not finite. Void keeps its values.

        Args:
            temperatures: of the cells in K, shape (points,); (times, points) for several times with equal conditions.
            acting: the conditions and beams at the one time, or at each of these times.
        """
        conductance = self._conductance
        if self._materials.varies:
            deviation = temperatures - self._reference
            conductance = conductance * self._materials.by_enthalpy(
                EnthalpyTable.conductivity_at, np.broadcast_to(self._cell_types, deviation.shape), deviation
            )
        beams, conditions = self._fluxes(acting.beams), self._conditions(acting.conditions)
        if self._whole:
            rise = conditions.rises(conductance, 0.0, temperatures, beams)
        else:
            owners, rise = self._owners, np.zeros(temperatures.shape)
            of_parts = conditions.rises(conductance[..., owners], 0.0, temperatures[..., owners], beams[..., owners])
            for number, owner in enumerate(owners.tolist()):
                rise[..., owner] += self._parts[number] * of_parts[..., number]
        return np.where(self._conducts, temperatures + rise, temperatures)

    def _conditions(self, rows: Array) -> SurfaceConditions:
        """The conditions of the surfaces; found once if the rows stay the same array."""
        if self._latest is None or self._latest[0] is not rows:
            self._latest = rows, SurfaceConditions(rows, self._numbers)
        return self._latest[1]

    def _fluxes(self, beams: Sequence[BeamRows]) -> Array:
        """The flux of beams in W/m², shape (points,), or (times, points) for several times."""
        flux = np.zeros((max((len(beam.first) for beam in beams), default=1), len(self._faces)))
        for beam in beams:
            for spot in range(beam.first.shape[1]):
                u, v = (weights[:, spot] for weights in beam.weights)
                i, j = np.moveaxis(self._places - beam.first[:, spot, None], -1, 0)
                inside = (i >= 0) & (i < u.shape[1]) & (j >= 0) & (j < v.shape[1])
                times, points = np.nonzero(inside & (self._faces == beam.face))
                flux[times, points] += u[times, i[times, points]] * v[times, j[times, points]]
        return flux[0] if len(flux) == 1 else flux


def _mixture_at(boundary: Boundary, at: SurfacePoint) -> tuple[NDArray[np.int64], Array]:
    """The conditions at a point of a face, and their parts, which sum to 1; those of a patch if it covers the point."""
    grid = boundary.scenario.grid
    _, faces = at_box(boundary, grid, at.face).of(np.array([np.ravel_multi_index(at.cell[::-1], grid.shape)]))
    numbers, parts = faces.conditions, faces.fractions
    owner = _condition_at(boundary, at, numbers)
    own = (np.array(boundary.owners)[numbers] == owner) & (parts > 0.0)
    if not own.any():  # rounding: no part of the cell has the condition at the point
        return np.array([owner]), np.ones(1)
    return numbers[own], parts[own] / parts[own].sum()


def _condition_at(boundary: Boundary, at: SurfacePoint, numbers: NDArray[np.int64]) -> int:
    """The number in the scenario of the condition at a point, of those of its cell; that of the patch there, if any."""
    owners = {boundary.owners[number] for number in numbers.tolist()}
    if len(owners) == 1:
        return int(min(owners))
    u, v = (at.point[axis] for axis in face_axes(FACES[at.face]))
    for number, patch in enumerate(boundary.scenario.patches, start=len(FACES)):
        (u_min, v_min), (u_max, v_max) = patch.rectangle.min, patch.rectangle.max
        if patch.face == FACES[at.face] and u_min <= u <= u_max and v_min <= v <= v_max:
            return number
    return at.face
