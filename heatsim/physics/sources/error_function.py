"""The error function of arrays: NumPy has none, and a call of ``math.erf`` for each value takes longer than a step.

Around each of 97 nodes in [0, 6] it is a Taylor polynomial. With H_n the Hermite polynomials (Abramowitz and Stegun,
Handbook of Mathematical Functions, 7.1.19),

    erf(x + h) = erf(x) + 2/√π · exp(−x²) · Σ (−1)ⁿ H_n(x) hⁿ⁺¹ / (n + 1)!      n = 0, 1, …

With 9 terms and |h| ≤ 1/32 the remainder is below 1e-17. Each value takes only products, sums and a look-up, which
IEEE 754 defines to the bit. So it does not depend on the machine or on the other values of the array.
"""

from functools import cache
from math import erf, exp, factorial, pi, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LAST = 6.0  # from here on the error function rounds to 1
_PER_UNIT = 16  # nodes
_TERMS = 9


def error_function(values: Array) -> Array:
    """The error function of each value, within 2 units in the last place; an array like ``values``."""
    sizes = np.minimum(np.abs(values), _LAST)
    nodes = np.rint(sizes * _PER_UNIT)
    h = sizes - nodes / _PER_UNIT
    place = nodes.astype(np.intp)
    *rest, highest = _coefficients()
    found: Array = highest.take(place)
    for coefficient in reversed(rest):
        found *= h
        found += coefficient.take(place)
    return np.asarray(np.copysign(found, values))


@cache
def _coefficients() -> Array:
    """The coefficients of h⁰, h¹, … for each node, shape (terms + 1, nodes)."""
    nodes = [place / _PER_UNIT for place in range(int(_LAST * _PER_UNIT) + 1)]
    return np.array([_taylor(node) for node in nodes]).T.copy()


def _taylor(x: float) -> list[float]:
    """The coefficients of h⁰, h¹, … in erf(x + h)."""
    hermite = [1.0, 2.0 * x]
    for n in range(1, _TERMS - 1):
        hermite.append(2.0 * x * hermite[n] - 2.0 * n * hermite[n - 1])
    slope = 2.0 / sqrt(pi) * exp(-x * x)
    return [erf(x), *((-1) ** n * slope * value / factorial(n + 1) for n, value in enumerate(hermite))]
