"""Bounds of the functions of expressions that have all derivatives, over intervals of their argument."""

from math import factorial, pi

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario.values.expressions import FUNCTIONS

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

ULP = 4e-16  # relative error of a function of NumPy, generously
_RADIUS = (pi / 4.0, 4.0 / pi)  # of a circle in which |1/cosh²| is at most 2, and its inverse


def _passes(low: Array, high: Array, phase: float, period: float) -> Flags:
    """Whether intervals may contain phase + n·period."""
    first, last = (low - phase) / period, (high - phase) / period
    slack = ULP * (1.0 + np.maximum(np.abs(first), np.abs(last)))
    return np.asarray(~(np.ceil(first - slack) > np.floor(last + slack)))


def range_of(name: str, low: Array, high: Array) -> tuple[Array, Array, Flags]:
    """The lowest and the highest value of a function, and whether it may be undefined or unbounded."""
    broken = np.zeros(1, dtype=bool)
    match name:
        case "sin" | "cos":
            apply, top = FUNCTIONS[name][0], pi / 2.0 if name == "sin" else 0.0
            ends = [apply(low), apply(high)]
            wide = ~(np.isfinite(low) & np.isfinite(high))
            least = np.where(wide | _passes(low, high, top + pi, 2.0 * pi), -1.0, np.fmin(*ends))
            return least, np.where(wide | _passes(low, high, top, 2.0 * pi), 1.0, np.fmax(*ends)), broken
        case "cosh":
            least, most = _magnitudes(low, high)
            return np.cosh(least), np.cosh(most), broken
        case "log" | "log10":
            low, high, broken = np.maximum(low, 0.0), np.maximum(high, 0.0), low <= 0.0
        case "sqrt":
            low, high, broken = np.maximum(low, 0.0), np.maximum(high, 0.0), low < 0.0
        case "asin" | "acos":
            broken = (low < -1.0) | (high > 1.0)
            low, high = np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)
            if name == "acos":
                low, high = high, low
    apply = FUNCTIONS[name][0]
    return apply(low), apply(high), broken


def _magnitudes(low: Array, high: Array) -> tuple[Array, Array]:
    """The smallest and the largest magnitude."""
    return np.maximum(np.maximum(low, -high), 0.0), np.maximum(np.abs(low), np.abs(high))


def coefficients_of(name: str, low: Array, high: Array, orders: int) -> list[Array]:
    """Bounds of |f⁽ᵏ⁾|/k! for k from 1.

    Where a derivative has no simple form, it is that of Cauchy's integral over a circle without a singularity.
    """
    least, most = _magnitudes(low, high)
    ks = range(1, orders + 1)
    match name:
        case "sin" | "cos":
            both = [np.maximum(*map(np.abs, range_of(of, low, high)[:2])) for of in ("sin", "cos")]
            first = 1 if name == "sin" else 0
            return [both[(first + k + 1) % 2] / factorial(k) for k in ks]
        case "exp":
            return [np.exp(high) / factorial(k) for k in ks]
        case "sinh" | "cosh":
            both = [np.sinh(most), np.cosh(most)]
            first = 0 if name == "sinh" else 1
            return [both[(first + k) % 2] / factorial(k) for k in ks]
        case "log" | "log10":
            factor = 1.0 if name == "log" else 1.0 / np.log(10.0)
            return [factor / (k * np.maximum(low, 0.0) ** k) for k in ks]
        case "sqrt":
            found, factor = [], 1.0
            for k in ks:
                factor *= (1.5 - k) / k
                found.append(abs(factor) * np.maximum(low, 0.0) ** (0.5 - k))
            return found
        case "tanh":
            radius, inverse = _RADIUS
            slope = np.minimum(2.0, 4.0 * np.exp(-2.0 * np.maximum(least - radius, 0.0)))
            return [np.cosh(least) ** -2.0, *(slope * inverse ** (k - 1) / k for k in ks if k > 1)]
        case "atan":
            return [(1.0 + least**2) ** (-0.5 * k) / k for k in ks]
    # asin and acos.
    room = np.maximum(1.0 - most, 0.0)
    return [
        1.0 / np.sqrt(room * (1.0 + most)),
        *(2.0 / np.sqrt(room) * (2.0 / room) ** (k - 1) / k for k in ks if k > 1),
    ]
