"""Find values of conditions that change within cells in a way that the points of a cell do not see.

A cell at a face of the box takes the mean over 4 × 4 points (:mod:`heatsim.physics.operator.spread_values`). Bounds of
the expression tell what lies between these points. Surfaces towards void are not looked at.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES, Grid
from heatsim.physics.operator.spread_values import POINTS
from heatsim.scenario import Scenario, SpaceFormula, face_axes
from heatsim.scenario.messages import show
from heatsim.scenario.values.bounds import bounds
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.functions import functions_in_time

Array = NDArray[np.float64]

# A peak between points counts from this part of the range of values: a straight line over one cell has an eighth there.
_UNSEEN = 0.3
# The means of the outer and of the inner points of cells differ by this part of the range, or by all of the mean height
# above the lowest value or depth below the highest one: of a parabola over one cell by an eighth, and by 0.4 of it.
_UNEVEN = 0.25
_MOST_POINTS = 2**20  # a face with more has small cells


def notes_on_coarse_values(scenario: Scenario) -> list[str]:
    """Sentences for the user about values that vary in space more finely than the points of the cells show."""
    grid = scenario.grid
    faces = [(f"boundaries.{name}", name, scenario.boundaries.face(name), _box(grid, name)) for name in FACES]
    rectangles = [np.array([patch.rectangle.min, patch.rectangle.max]).T for patch in scenario.patches]
    patches = [
        (f"patches.{number}", patch.face, patch.condition, rectangle)
        for number, (patch, rectangle) in enumerate(zip(scenario.patches, rectangles, strict=True))
    ]
    return [
        f"{key}.{name} = {show(value.expression.text)} changes within cells, which take its mean over {POINTS} × "
        f"{POINTS} points, and these miss much of it: use finer cells, or a patch for the place of the change"
        for key, face, condition, rectangle in (*faces, *patches)
        for name, value, _ in functions_in_time(condition)
        if isinstance(value, SpaceFormula)
        and any(_is_coarse(in_place, grid, face, rectangle) for _, in_place in value.products() or [])
    ]


def _box(grid: Grid, face: str) -> Array:
    return np.array([(grid.origin[axis], grid.origin[axis] + grid.size[axis]) for axis in face_axes(face)])


def _is_coarse(expression: Expression, grid: Grid, face: str, rectangle: Array) -> bool:
    """Whether points of the cells within a rectangle of a face miss much of an expression in x, y and z."""
    axis, across = FACES.index(face) // 2, grid.origin[FACES.index(face) // 2]
    at = {"xyz"[axis]: across + grid.size[axis] * (FACES.index(face) % 2)}
    box = {name: (place, place) for name, place in at.items()}
    along = list(_points(grid, face, rectangle, expression.used))
    if np.prod([points.size for points in along]) > _MOST_POINTS:
        return False
    first, second = ("xyz"[other] for other in face_axes(face))
    for name, (low, high) in zip((first, second), rectangle, strict=True):
        box[name] = (float(low), float(high))
    places: dict[str, Any] = {**at, first: along[0][:, :, None, None], second: along[1]}
    values = np.broadcast_to(expression.evaluate(**places), (*along[0].shape, *along[1].shape))
    found, low, high = bounds(expression, **box), float(values.min()), float(values.max())
    if not np.isfinite([found.low, found.high, low, high]).all():
        return True
    unseen, uneven = max(low - found.low, found.high - high), max(_uneven(values, 1), _uneven(values, 3))
    most = min(_UNEVEN * (high - low), float(values.mean()) - low, high - float(values.mean()))
    return unseen > _UNSEEN * (found.high - found.low) or (high > low and uneven > most)


def _points(grid: Grid, face: str, rectangle: Array, used: frozenset[str] | set[str]) -> Iterator[Array]:
    """The points of the cells along each axis of a face, shape (cells, points); one point where nothing changes."""
    for axis, (low, high) in zip(face_axes(face), rectangle, strict=True):
        middles, half = grid.centres(axis), 0.5 * grid.spacing[axis]
        covered = (middles + half > low) & (middles - half < high)
        if "xyz"[axis] not in used:
            yield np.array([[0.5 * (low + high)]])
            continue
        first, last = (np.clip(middles[covered] + side, low, high)[:, None] for side in (-half, half))
        yield first + (last - first) * (np.arange(POINTS) + 0.5) / POINTS


def _uneven(values: Array, axis: int) -> float:
    """The mean difference between the outer and the inner points of the cells along an axis."""
    if values.shape[axis] == 1:
        return 0.0
    outer, inner = (np.take(values, some, axis=axis).mean(axis=axis) for some in ((0, 3), (1, 2)))
    return float(np.abs(outer - inner).mean())
