"""Find the side of the interfaces around a point on which the point lies."""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.geometry.regions import BETWEEN
from heatsim.physics.geometry.shapes import holds
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.positions import Position

Sides = tuple[int, int, int]


def own_side(
    problem: HeatProblem,
    point: tuple[float, float, float],
    positions: Sequence[Position],
    known: NDArray[np.bool_],
    owners: NDArray[np.uint8],
) -> Sides:
    """The side of the interfaces on which a point lies: 0 or 1 along x, y, z.

    Like a cell, a point on the border between cells belongs to the last painted region whose shape contains it. Without
    regions it belongs to the upper cell. It never belongs to void.

    Args:
        problem: the problem.
        point: (x, y, z) in m.
        positions: its position along each axis.
        known: whether the cells around it conduct, along z, y, x.
        owners: the regions of these cells.
    """
    choices = [
        (0, 1) if at.face is None and abs(at.weight - 0.5) < BETWEEN else (int(at.weight >= 0.5),) for at in positions
    ]
    candidates = [(x, y, z) for x, y, z in product(*choices) if known[z, y, x]]
    if not candidates:  # a border of void: the nearest cell that conducts
        candidates = [(x, y, z) for x, y, z in product((0, 1), repeat=3) if known[z, y, x]]
        return max(candidates, key=lambda sides: float(np.prod(_weights(positions, sides))))
    if len(candidates) == 1 or problem.parts is None:
        return candidates[-1]
    widths = (axis.widths[list(at.cells)].min() for axis, at in zip(problem.grid.axes, positions, strict=True))
    regions, margin = problem.scenario.regions, BETWEEN * float(min(widths))

    def rank(sides: Sides) -> tuple[bool, int, Sides]:
        x, y, z = sides
        owner = int(owners[z, y, x])
        return owner == 0 or holds(regions[owner - 1], point, margin), owner, sides

    return max(candidates, key=rank)


def _weights(positions: Sequence[Position], sides: Sides) -> list[float]:
    return [at.weight if side else 1.0 - at.weight for at, side in zip(positions, sides, strict=True)]
