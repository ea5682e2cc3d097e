"""Linear combinations of the fields at both ends of a step: the state in between, and the estimate of the error.

T_n and F_n are the field and its rate dT/dt at the start of a step of length h, T_{n+1} and F_{n+1} those at its end.

Rows between the ends of steps close as well as rows at the ends. Stored heat S is linear in the field (cells store
enthalpy), and its rate is the sum of the flows through surfaces P and of the power of sources Q': S' = P + Q'. At
both ends the ledger holds to rounding: S = H + Q with the heat H through surfaces and Q of sources. So with the same
four weights for S and S', H and P, Q and Q', the ledger of the interpolated row is a linear combination of balances
that hold, whatever the weights are. The weights of T are between 0 and 1, those of F below h·4/27, so roundings do
not grow.
"""

from typing import NamedTuple


class Weights(NamedTuple):
    """Factors of T_n, F_n, T_{n+1} and F_{n+1}; those of the rates are in s."""

    first: float
    first_rate: float
    last: float
    last_rate: float


def hermite(theta: float, h: float) -> Weights:
    """Weights of the cubic that has values and rates of both ends, at t + θ·h, 0 ≤ θ ≤ 1.

    They are (1, 0, 0, 0) at θ = 0 and (0, 0, 1, 0) at θ = 1, exactly. Source: Hairer, Nørsett & Wanner, *Solving
    Ordinary Differential Equations I* (1993), II.6.
    """
    rest = 1.0 - theta
    last = theta * theta * (3.0 - 2.0 * theta)
    return Weights(1.0 - last, h * theta * rest * rest, last, -h * theta * theta * rest)


def error_estimate(h: float, factor: float = 1.0) -> Weights:
    """Weights whose combination estimates the error of a step: 4/5·(T_n − T_{n+1}) + 2/5·h·(F_n + F_{n+1}).

    For an exact T_{n+1} it is h³/15·d³T/dt³. Source: Sommeijer, Shampine & Verwer, *J. Comput. Appl. Math.* 88 (1998)
    315. ``factor`` is that of :func:`factor_of_estimate`.
    """
    return Weights(0.8 * factor, 0.4 * factor * h, -0.8 * factor, 0.4 * factor * h)


# The estimate of a step contains this part of the heat that bends in it, ∫ q dt − h·(q_n + q_{n+1})/2: h³/15·d²q/dt².
# Stages take the means of heat, so it causes no error. But it can hide that of a cell which changes the other way.
HIDDEN = 0.8


def factor_of_estimate(cubic: float) -> float:
    """The factor with which the estimate is twice the error of a step.

    A step multiplies a mode by R(z) = 1 + z + z²/2 + ``cubic``·z³ + …. So its error is (1/6 − cubic)·h³·d³T/dt³, and
    the estimate without a factor is (1/5 − 4/5·cubic)·h³·d³T/dt³.
    """
    return 2.0 * abs((1.0 / 6.0 - cubic) / (0.2 - 0.8 * cubic))


def change_of_rate(h: float) -> Weights:
    """Weights of h·(F_{n+1} − F_n), from which the first step follows."""
    return Weights(0.0, -h, 0.0, h)
