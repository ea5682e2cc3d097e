"""How much the stages of a step round: the weights of their roundings in the bound of the energy balance.

The bound of heatsim/physics/energy_bound.py counts r(σ)·u·H a step, with the unit roundoff u, H = Σ C·|T − T_ref| and
σ = dt/limit. A stage is such a step with σ_j = δ_j·h/limit, which may be far above 1. Two things change:

1. Its coefficients are not all positive: Σ |c| = |1 − σ_j| + σ_j. Roundings count with this sum.
2. The field between two stages may be larger than at both ends of the step: a wave that decays with the rate z/h has
   been multiplied by P_j(z) = Π_{i<j} (1 + d_i·z) by then. So H counts with the largest |P_j| for −β ≤ z ≤ 0.

Heat that a stage moves is entered in the ledger as it is, so a larger field does not spoil the balance otherwise.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.energy_bound import roundings
from heatsim.physics.problem import HeatProblem
from heatsim.solver.stabilized.scheme import Stages

_POINTS = 4096


def roundings_of_step(problem: HeatProblem, stages: Stages, h: float) -> float:
    """Σ of the weighted roundings of the stages of a step of ``h`` s, in parts of u·H at its ends."""
    sizes, growth = _stages(stages)
    sigmas = sizes * h / problem.limit.dt
    return sum(roundings(problem, float(sigma)) * float(by) for sigma, by in zip(sigmas, growth, strict=True))


@cache
def _stages(stages: Stages) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sizes of all stages in parts of h, in their order, and how much a wave may have grown before each."""
    z = -stages.beta * (1.0 - np.cos(np.linspace(0.0, np.pi, _POINTS))) / 2.0
    factor, sizes, growth = np.ones_like(z), [], []
    pair = stages.pair
    for number, substep in enumerate((*stages.substeps, None)):
        if number == pair.after:
            before, inner = np.abs(factor), np.abs(factor * (1.0 + pair.b / pair.a * z))
            sizes += [pair.a]
            growth += [float(np.maximum(before, inner).max())]
            factor = factor * (1.0 + pair.a * z + pair.b * z * z)
        if substep is not None:
            sizes.append(substep.delta)
            growth.append(float(np.abs(factor).max()))
            factor = factor * (1.0 + substep.delta * z)
    return np.array(sizes), np.maximum(np.array(growth), 1.0)
