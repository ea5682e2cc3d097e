"""The balance of heat at a surface: its temperature, and the heat that a step brings to the cell behind it.

A condition is six numbers: film h, ambient T∞, flux q, emission εσ, surroundings T_sur, and free (1; 0 where the
temperature is held). The half cell behind the surface has the conductance K = 2k/d. The surface temperature T_s
satisfies

    h·(T∞ − T_s) + q + εσ·(T_sur⁴ − T_s⁴) = K·(T_s − T)          T: of the cell, d/2 behind the surface

The film and the half cell are in series (Incropera, *Fundamentals of Heat and Mass Transfer*, §3.1). Without radiation
the balance is linear, and one step gives the cell f − g·(T − T_ref): :func:`linear_terms`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# The numbers of a condition, in the order of struct Condition (kernels/composite/surface_balance.cuh).
NUMBERS = 6
FILM, AMBIENT, FLUX, EMISSION, SURROUNDINGS, FREE = range(NUMBERS)
STEFAN_BOLTZMANN = 5.670374419e-8  # W/(m² K⁴), CODATA 2018
LAW = 2.0  # `free` of a condition whose heat flux is a table: physics/conditions/surface_laws.py
NEWTON_STEPS = 16  # at the most
# A change that is smaller, relative to the rise, leaves an error whose square is below rounding.
TOLERANCES = {"float32": 1e-4, "float64": 1e-8}


def linear_terms(
    rows: Array, conductance: float, share: Array, rounded_share: Array, precision: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The terms f (K) and g of a condition that does not radiate: a step gives its cell f − g·(T − T_ref).

        g = round(share_r·h/(free·K + h))      f = g·(T∞ − T_ref) + share·free·q/(free·K + h)

    With c = k·dt/(ρ·cp·d²) these are 2c for a held temperature, c·h/(k/d + h/2) for convection, c·q·d/k for a flux.
    f is made from the rounded g, so that f/g is the ambient temperature to within one rounding. The heat of a given
    flux does not depend on the rounded coefficient, so it is made with the exact one.

    Args:
        rows: the six numbers of the condition at n times, shape (n, 6), or (1, 6) where they do not change.
        conductance: K = 2k/d of the half cell in W/(m² K).
        share: 2c of n steps, exact; shape (n,) or ().
        rounded_share: the same from the coefficient that kernels use.
        precision: of the terms.

    Returns:
        f and g, each of shape (n,).
    """
    film, ambient, flux, _, _, free = rows.T
    losses = free * conductance + film
    g = (rounded_share * film / losses).astype(precision)
    f = g.astype(np.float64) * ambient + share * free * flux / losses
    return f.astype(precision), g


def film_at(row: Any, absolute: Any) -> Any:
    """The film h + 4·εσ·T_s³ of a surface at T_s in K, in W/(m² K): minus the derivative of its heat flux."""
    return row[FILM] + 4.0 * row[EMISSION] * absolute**3


def surface_rise(row: Any, conductance: Any, reference: Any, T: Any, beam: Any = 0.0, xp: Any = np) -> Any:
    """T_s − T in K, by the same operations as in kernels (composite/surface_balance.cuh, cpu/surface_rises.py).

    Args:
        row: the six numbers of the condition; each may be an array of the cells' shape.
        conductance: 2k/d of the cells in W/(m² K).
        reference: the temperature in K that T and the temperatures of the row are relative to.
        T: deviations of the cells in K.
        beam: flux of a beam in W/m².
        xp: NumPy or CuPy, the library of ``T`` and of arrays of its shape.
    """
    film, ambient, flux, emission, surroundings, free = row
    number = T.dtype.type
    zero, four, six = number(0.0), number(4.0), number(6.0)
    to_ambient, flux = ambient - T, free * (flux + beam)
    linear = film * to_ambient + flux
    losses = free * conductance + film
    radiating = emission > zero
    if not radiating.any():
        return xp.asarray(linear / losses)

    to_surroundings, a, b = surroundings - T, T + reference, surroundings + reference
    tolerance = number(TOLERANCES[T.dtype.name])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exchange = emission * ((a + b) * (a * a + b * b))
        driving = exchange * to_surroundings + linear
        inverse = number(1.0) / (four * emission * (a * a * a) + losses)
        step = driving * inverse
        second = emission * step * (step * (four * a + step) + six * a * a) * inverse
        settled = ~radiating | ((xp.abs(second) <= tolerance) & (xp.minimum(a, a + step) > zero))
        hottest = xp.sqrt(xp.sqrt((b * b) * (b * b) + xp.maximum(flux, zero) / emission)) - reference
        most = xp.where(radiating, xp.maximum(xp.maximum(to_ambient, zero), hottest - T), number(xp.inf))
        rise = xp.where(settled, step - step * second, xp.minimum(driving / (losses + exchange), most))
        rise = xp.where(radiating, rise, linear / losses)
    for _ in range(NEWTON_STEPS):
        if settled.all():
            break
        a = xp.maximum(T + rise + reference, zero)
        exchange = emission * ((a + b) * (a * a + b * b))
        excess = exchange * (to_surroundings - rise) + (linear - losses * rise)
        change = excess / (four * emission * (a * a * a) + losses)
        rise = xp.where(settled, rise, xp.minimum(rise + change, most))
        settled |= xp.abs(change) <= tolerance * xp.abs(rise)
    return xp.asarray(rise)
