"""The terms f and g of the six faces of a linear problem: a step gives a cell at a face f − g·(T − T_ref)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.surface_balance import linear_terms
from heatsim.physics.time.stage_times import StageTimes

Array = NDArray[np.float64]


def face_terms(
    boundary: Boundary,
    grid: Grid,
    resistances: Array,
    rates: tuple[float, float, float],
    stages: StageTimes,
    exchange: Array,
    rows: Array,
    precision: str,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The terms f (K) and g of all faces in n stages, each of shape (n, 6); 0 at faces that exchange no heat.

    Args:
        boundary: the conditions on the faces.
        grid: the cells; resistances, rates and exchange are those of cells of the mean widths.
        resistances: d/(2k) of the half cells along x, y and z in m² K/W.
        rates: α/d² along x, y and z in 1/s.
        stages: the times and lengths of the stages.
        exchange: α·dt/d² as kernels round it, shape (n, 3), or (3,) if all stages have one length.
        rows: the six numbers of each condition, shape (n or 1, conditions, 6).
        precision: of the terms.

    Raises:
        ScenarioError: a term is not finite at one of the times.
    """
    f = np.zeros((len(stages), 6), dtype=precision)
    g = np.zeros((len(stages), 6), dtype=precision)
    for face in range(6):
        if not boundary.exchanging(face):
            continue
        axis, plane, side = face // 2, -(face % 2), face % 2
        half = float(grid.axes[axis].half_factors[plane, side])
        part = float(grid.axes[axis].gain_factors[plane, side]) / half
        shares = 2.0 * rates[axis] * part * stages.sizes, 2.0 * exchange[..., axis] * part
        conductance = float(1.0 / (resistances[axis] * half))
        f[:, face], g[:, face] = linear_terms(rows[:, face], conductance, *shares, precision)
        finite = np.isfinite(f[:, face]) & np.isfinite(g[:, face])
        if not finite.all():
            raise boundary.not_physical(face, float(stages.times[int(np.argmin(finite))]))
    return f, g
