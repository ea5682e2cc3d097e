"""Temperatures of surfaces, many at a time as vectors.

The numbers of up to SURFACES surfaces stand in the memory of the ring, from ``plan.surfaces`` on, one array after the
other.
"""

from typing import Any

import numpy as np

from heatsim.kernels.cpu.lines import compiled, larger, smaller, whole_vectors
from heatsim.kernels.cpu.plan import behind
from heatsim.physics.conditions.surface_balance import (
    AMBIENT,
    EMISSION,
    FILM,
    FLUX,
    FREE,
    LAW,
    NEWTON_STEPS,
    SURROUNDINGS,
)

SURFACES = 256
# The arrays of these surfaces: T − T_ref, the half cell's conductance and share, the flux of beams, and their heat on
# surfaces towards void; then the temperature of the surface minus that of the cell, the most that it can be, and
# whether it is found.
ROOM = 8 * SURFACES
DEGREES_AT, CONDUCTANCE_AT, SHARE_AT, BEAM_AT, LIGHT_AT, RISE_AT, MOST_AT, FOUND_AT = range(0, ROOM, SURFACES)


@compiled
def find_rises(condition: Any, scale: Any, surface: Any, degrees: Any, conductance: Any, count: int) -> None:
    """The temperature of each surface minus that of its cell."""
    if condition[FREE] == LAW:
        beam, rise = behind(surface, BEAM_AT), behind(surface, RISE_AT)
        for j in range(count):
            rise[j] = _law_rise(condition, conductance[j], degrees[j], beam[j])
    elif not condition[EMISSION] > 0:
        find_linear_rises(condition, scale, surface, degrees, conductance, count)
    elif _find_weak_rises(condition, scale, surface, degrees, conductance, count) < count:
        _guess_rises(condition, scale, surface, degrees, conductance, count)
        for _ in range(NEWTON_STEPS):
            if _improve_rises(condition, scale, surface, degrees, conductance, count) == count:
                break


@compiled
def find_linear_rises(condition: Any, scale: Any, surface: Any, degrees: Any, conductance: Any, count: int) -> None:
    """The same for a condition without radiation. Most bodies need only this, which compiles in a third of the time."""
    whole_vectors()
    film, free, ambient, flux = condition[FILM], condition[FREE], condition[AMBIENT], condition[FLUX]
    beam, rise = behind(surface, BEAM_AT), behind(surface, RISE_AT)
    for j in range(np.uint64(count)):
        linear = film * (ambient - degrees[j]) + free * (flux + beam[j])
        rise[j] = linear / (free * conductance[j] + film)


@compiled
def _find_weak_rises(condition: Any, scale: Any, surface: Any, degrees: Any, conductance: Any, count: int) -> Any:
    """The second-order step of :func:`surface_rise`; the number of surfaces for which it is accurate enough."""
    whole_vectors()
    film, ambient, flux_in, free = condition[FILM], condition[AMBIENT], condition[FLUX], condition[FREE]
    emission, surroundings, reference, tolerance = condition[EMISSION], condition[SURROUNDINGS], scale[0], scale[1]
    zero, b, twice, found = film - film, surroundings + reference, emission + emission, np.int64(0)
    beam, rise, is_found = behind(surface, BEAM_AT), behind(surface, RISE_AT), behind(surface, FOUND_AT)
    for j in range(np.uint64(count)):
        T = degrees[j]
        linear = film * (ambient - T) + free * (flux_in + beam[j])
        losses, a = free * conductance[j] + film, T + reference
        exchange = emission * ((a + b) * (a * a + b * b))
        driving = exchange * (surroundings - T) + linear
        double, slope = a + a, (twice + twice) * (a * a * a) + losses
        step = driving / slope
        second = emission * step * (step * (double + double + step) + (double + a) * double) / slope
        rise[j] = step - step * second
        settled = (abs(second) <= tolerance) & (a > zero) & (a + step > zero)
        is_found[j] = settled
        found += np.int64(settled)
    return found


@compiled
def _guess_rises(condition: Any, scale: Any, surface: Any, degrees: Any, conductance: Any, count: int) -> None:
    """Where Newton's method of :func:`surface_rise` begins, and the most, for surfaces that are not found."""
    whole_vectors()
    film, ambient, flux_in, free = condition[FILM], condition[AMBIENT], condition[FLUX], condition[FREE]
    emission, surroundings, reference = condition[EMISSION], condition[SURROUNDINGS], scale[0]
    zero, b = film - film, surroundings + reference
    beam, rise, most = behind(surface, BEAM_AT), behind(surface, RISE_AT), behind(surface, MOST_AT)
    is_found = behind(surface, FOUND_AT)
    for j in range(np.uint64(count)):
        T = degrees[j]
        to_ambient, to_surroundings, a = ambient - T, surroundings - T, T + reference
        flux = free * (flux_in + beam[j])
        linear = film * to_ambient + flux
        losses, exchange = free * conductance[j] + film, emission * ((a + b) * (a * a + b * b))
        hottest = np.sqrt(np.sqrt((b * b) * (b * b) + larger(flux, zero) / emission)) - reference
        most[j] = larger(larger(to_ambient, zero), hottest - T)
        guess = smaller((exchange * to_surroundings + linear) / (losses + exchange), most[j])
        rise[j] = rise[j] if is_found[j] != zero else guess


@compiled
def _improve_rises(condition: Any, scale: Any, surface: Any, degrees: Any, conductance: Any, count: int) -> Any:
    """One step of Newton's method for surfaces that are not found; the number of those that are."""
    whole_vectors()
    film, ambient, flux_in, free = condition[FILM], condition[AMBIENT], condition[FLUX], condition[FREE]
    emission, surroundings, reference, tolerance = condition[EMISSION], condition[SURROUNDINGS], scale[0], scale[1]
    zero, b, twice, found = film - film, surroundings + reference, emission + emission, np.int64(0)
    beam, rise, most = behind(surface, BEAM_AT), behind(surface, RISE_AT), behind(surface, MOST_AT)
    is_found = behind(surface, FOUND_AT)
    for j in range(np.uint64(count)):
        T = degrees[j]
        linear = film * (ambient - T) + free * (flux_in + beam[j])
        losses, before = free * conductance[j] + film, rise[j]
        a = larger(T + before + reference, zero)
        exchange = emission * ((a + b) * (a * a + b * b))
        excess = exchange * (surroundings - T - before) + (linear - losses * before)
        change = excess / ((twice + twice) * (a * a * a) + losses)
        after = smaller(before + change, most[j])
        was_found = is_found[j] != zero
        settled = was_found | (abs(change) <= tolerance * abs(after))
        rise[j] = before if was_found else after
        is_found[j] = settled
        found += np.int64(settled)
    return found


@compiled
def surface_rise(condition: Any, conductance: Any, scale: Any, T: Any, beam: Any) -> Any:
    """As ``surface_rise`` in conditions/surface_balance.py, for one cell; ``scale`` is (reference, tolerance)."""
    if condition[FREE] == LAW:
        return _law_rise(condition, conductance, T, beam)
    reference, tolerance = scale[0], scale[1]
    film, emission, free = condition[FILM], condition[EMISSION], condition[FREE]
    zero = T - T
    to_ambient = condition[AMBIENT] - T
    flux = free * (condition[FLUX] + beam)
    linear = film * to_ambient + flux
    losses = free * conductance + film
    if not emission > zero:
        return linear / losses

    to_surroundings, b = condition[SURROUNDINGS] - T, condition[SURROUNDINGS] + reference
    a = T + reference
    exchange = emission * ((a + b) * (a * a + b * b))
    driving = exchange * to_surroundings + linear
    twice, double = emission + emission, a + a
    slope = (twice + twice) * (a * a * a) + losses
    step = driving / slope
    second = emission * step * (step * (double + double + step) + (double + a) * double) / slope
    if abs(second) <= tolerance and smaller(a, a + step) > zero:
        return step - step * second

    hottest = np.sqrt(np.sqrt((b * b) * (b * b) + larger(flux, zero) / emission)) - reference
    most = larger(larger(to_ambient, zero), hottest - T)
    rise = smaller(driving / (losses + exchange), most)
    for _ in range(NEWTON_STEPS):
        a = larger(T + rise + reference, zero)
        exchange = emission * ((a + b) * (a * a + b * b))
        excess = exchange * (to_surroundings - rise) + (linear - losses * rise)
        change = excess / ((twice + twice) * (a * a * a) + losses)
        rise = smaller(rise + change, most)
        if abs(change) <= tolerance * abs(rise):
            break
    return rise


@compiled
def _law_rise(condition: Any, conductance: Any, T: Any, beam: Any) -> Any:
    """As :func:`heatsim.physics.conditions.surface_laws.rise_and_slope`, for one cell."""
    nodes, fluxes = np.int64(condition[EMISSION]), np.int64(condition[FLUX])
    distance = T - condition[AMBIENT]
    low, high = np.int64(0), np.int64(condition[FILM]) - 2
    segment = _segment(condition, nodes, distance, low, high)
    while True:
        start, end, first = condition[nodes + segment], condition[nodes + segment + 1], condition[fluxes + segment]
        slope = (condition[fluxes + segment + 1] - first) / (end - start)
        rise = (first + slope * (distance - start) + beam) / (conductance - slope)
        there = distance + rise
        if there > end and segment < high:
            low = segment + 1
        elif there < start and segment > low:
            high = segment - 1
        else:
            return rise
        segment = _segment(condition, nodes, there, low, high)


@compiled
def _segment(condition: Any, nodes: int, distance: Any, low: int, high: int) -> int:
    """The segment between ``low`` and ``high`` that contains a distance; ``nodes``: where the nodes begin."""
    while low < high:
        middle = (low + high + 1) // 2
        if condition[nodes + middle] <= distance:
            low = middle
        else:
            high = middle - 1
    return low
