"""The two stages of an implicit step.

    C·(T₁ − T_n)/(γh) = F(T₁)                            at t + γh
    C·(T₂ − T_n − (1−γ)·h·K₁)/(γh) = F(T₂)               at t + h,      K_i = F(T_i)/C
    T_{n+1} = T₂ = T_n + h·((1−γ)·K₁ + γ·K₂)             γ = 1 − 1/√2

It is of order 2 and L-stable: what decays fast is gone after a step, however long the step. Both stages have the same
matrix. On linear problems it gives the same numbers as TR-BDF2 (Bank et al., *IEEE Trans. Electron Devices* 32 (1985)
1992; Hosea & Shampine, *Appl. Numer. Math.* 20 (1996) 21), but it does not need the rate at the start of the step,
which the solver's errors would spoil. Source: Alexander, *SIAM J. Numer. Anal.* 14 (1977) 1006.

Conditions count with their values at t + γh and t + h. Sources, beams and given fluxes have a mean q over the step and
a value q_1 at its end: the second stage takes q_1, the first (q − γ·q_1)/(1 − γ). So all of their energy counts. If q
changes evenly, the first stage has the value at t + γh. Cells that follow their heat at once are where they belong at
the end of the step: with the mean over the last γh they would lag behind by γh/2.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.conditions.surface_balance import FLUX
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.time.stage_times import Side, StageTimes

Array = NDArray[np.float64]

GAMMA = 1.0 - sqrt(0.5)
CUBIC = 4.0 * GAMMA**3 + 3.0 * GAMMA**2 * (1.0 - 2.0 * GAMMA)  # the factor of z³ of a step, 0.207


@dataclass(frozen=True)
class Solutions:
    """The stages of a step.

    Attributes:
        tolerance: the error that the step may have, in K; the solver's are a part of it.
        count: number of stages.
    """

    tolerance: float
    count: int = 2


def stage_times(t: float, h: float, end: float) -> StageTimes:
    """The times of both stages of a step of ``h`` s from ``t``; ``end`` is that of the run in s.

    The first has the means over the whole step, from which :func:`first_stage` takes the share of the second.
    """
    last = StageTimes.beside(t + h, Side.BEFORE, 1.0, end)
    first = StageTimes(*(np.array([number]) for number in (t + GAMMA * h, t, h, 1.0)))
    return StageTimes.joined([first.after(t, end), last])


def first_stage(rows: StepInputs, conditions: int) -> StepInputs:
    """The first stage of a step: (q − γ·q_1)/(1 − γ) for what is averaged.

    Args:
        rows: of the times of :func:`stage_times`.
        conditions: how many rows of conditions there are; behind them are the tables of laws, which are not averaged.
    """

    def rest(numbers: Array) -> Array:
        mean, last = numbers[:1], numbers[-1:]
        return np.where(mean == last, mean, (mean - GAMMA * last) / (1.0 - GAMMA))

    of_conditions = rows.conditions[:1].copy()
    fluxes = rows.conditions[:, :conditions, FLUX]
    of_conditions[:, :conditions, FLUX] = rest(fluxes)
    beams = tuple(beam[0:1].combined(beam[1:2], 1.0 / (1.0 - GAMMA), -GAMMA / (1.0 - GAMMA)) for beam in rows.beams)
    return replace(rows[0:1], conditions=of_conditions, heat=rest(rows.heat), amounts=rest(rows.amounts), beams=beams)
