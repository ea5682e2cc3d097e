"""The two stages of an implicit step.

    C·(T₁ − T_n)/(γh) = F(T₁)                            at t + γh
    C·(T₂ − T_n − (1−γ)·h·K₁)/(γh) = F(T₂)               at t + h,      K_i = F(T_i)/C
    T_{n+1} = T₂ = T_n + h·((1−γ)·K₁ + γ·K₂)             γ = 1 − 1/√2

It is of order 2 and L-stable: what decays fast is gone after a step, however long the step. Both stages have the same
matrix. On linear problems it gives the same numbers as TR-BDF2 (Bank et al., *IEEE Trans. Electron Devices* 32 (1985)
1992; Hosea & Shampine, *Appl. Numer. Math.* 20 (1996) 21), but it does not need the rate at the start of the step,
which the solver's errors would spoil. Source: Alexander, *SIAM J. Numer. Anal.* 14 (1977) 1006.

Conditions count with their values at t + γh and t + h. Sources, beams and given fluxes are averaged over the first
(1 − γ)·h and over the rest: so all of their energy counts, and the order stays 2.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from heatsim.physics.stage_times import Side, StageTimes

GAMMA = 1.0 - sqrt(0.5)
VERSION = "SDIRK2, an operator for each step"


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
    """The times of both stages of a step of ``h`` s from ``t``, and of its end; ``end`` is that of the run in s."""
    last = StageTimes.beside(t + h, Side.BEFORE, 1.0, end)
    starts, lengths = np.array([t, t + (1.0 - GAMMA) * h]), np.array([(1.0 - GAMMA) * h, GAMMA * h])
    times = np.array([t + GAMMA * h, last.times[0]])
    return StageTimes.joined([StageTimes(times, starts, lengths, lengths).after(t, end), last])
