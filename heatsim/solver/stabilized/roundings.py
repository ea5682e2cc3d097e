"""How much the stages of a step round: the weights of their roundings in the bound of the energy balance.

The bound of physics/readings/energy_bound.py counts r(σ)·u·H a step, with the unit roundoff u, H = Σ C·|T − T_ref| and
σ = dt/limit. A stage is such a step with σ_j = δ_j·h/limit, which may be far above 1. Its coefficients are then not all
positive: Σ |c| = |1 − σ_j| + σ_j, and roundings count with this sum.

H is taken from the ends of steps. Between two stages the field may be larger where it changes from cell to cell, but
such waves decay within the first steps; the tests of the energy balance hold the bound with them.
"""

import numpy as np

from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.energy_bound import roundings
from heatsim.solver.stabilized.scheme import Stages


def roundings_of_step(problem: HeatProblem, stages: Stages, h: float) -> float:
    """Σ of the weighted roundings of the stages of a step of ``h`` s, in parts of u·H."""
    sizes = np.array([substep.delta for substep in stages.substeps] + [stages.pair.a])
    return float(roundings(problem, sizes * h / problem.limit.dt).sum())
