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
    """The temperature of each surface minus that of its cell, as ``surface_rise`` in conditions/surface_balance.py.

    ``scale`` is (reference, tolerance).
    """
    if condition[FREE] == LAW:
        beam, rise, segment = behind(surface, BEAM_AT), behind(surface, RISE_AT), np.int64(0)
        for j in range(count):
            segment = _segment(condition, conductance[j], degrees[j], beam[j], segment)
            rise[j] = _law_rise(condition, conductance[j], degrees[j], beam[j], segment)
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
    """The second-order step; the number of surfaces for which it is accurate enough."""
    whole_vectors()
    film, ambient, flux_in, free = condition[FILM], condition[AMBIENT], condition[FLUX], condition[FREE]
    emission, surroundings, reference, tolerance = condition[EMISSION], condition[SURROUNDINGS], scale[0], scale[1]
    zero, one, b, twice = film - film, emission / emission, surroundings + reference, emission + emission
    found = np.int64(0)
    beam, rise, is_found = behind(surface, BEAM_AT), behind(surface, RISE_AT), behind(surface, FOUND_AT)
    for j in range(np.uint64(count)):
        T = degrees[j]
        linear = film * (ambient - T) + free * (flux_in + beam[j])
        losses, a = free * conductance[j] + film, T + reference
        exchange = emission * ((a + b) * (a * a + b * b))
        driving = exchange * (surroundings - T) + linear
        double, inverse = a + a, one / ((twice + twice) * (a * a * a) + losses)
        step = driving * inverse
        second = emission * step * (step * (double + double + step) + (double + a) * double) * inverse
        rise[j] = step - step * second
        settled = (abs(second) <= tolerance) & (a > zero) & (a + step > zero)
        is_found[j] = settled
        found += np.int64(settled)
    return found


@compiled
def _guess_rises(condition: Any, scale: Any, surface: Any, degrees: Any, conductance: Any, count: int) -> None:
    """Where Newton's method begins, and the most, for surfaces that are not found."""
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
def _segment(condition: Any, conductance: Any, T: Any, beam: Any, likely: Any) -> Any:
    """The segment of a law that contains the temperature of the surface; ``likely`` is that of its neighbour."""
    nodes, fluxes = behind(condition, np.int64(condition[EMISSION])), behind(condition, np.int64(condition[FLUX]))
    distance = T - condition[AMBIENT]
    segment, end = np.int64(0), np.int64(condition[FILM]) - 1
    if conductance * (distance - nodes[likely]) + fluxes[likely] + beam >= 0:
        segment, after = likely, likely + 1
        if after < end:
            if conductance * (distance - nodes[after]) + fluxes[after] + beam >= 0:
                segment = after
            else:
                end = after
    else:
        end = likely if likely > 1 else np.int64(1)
    while end - segment > 1:
        middle = (segment + end) // 2
        if conductance * (distance - nodes[middle]) + fluxes[middle] + beam >= 0:
            segment = middle
        else:
            end = middle
    return segment


@compiled
def _law_rise(condition: Any, conductance: Any, T: Any, beam: Any, segment: Any) -> Any:
    """As :func:`heatsim.physics.conditions.surface_laws.rise_and_slope`, for one cell, in a segment of the law."""
    nodes, fluxes = behind(condition, np.int64(condition[EMISSION])), behind(condition, np.int64(condition[FLUX]))
    distance = T - condition[AMBIENT]
    start, flux = nodes[segment], fluxes[segment]
    slope = (fluxes[segment + 1] - flux) / (nodes[segment + 1] - start)
    return (flux + slope * (distance - start) + beam) / (conductance - slope)
