"""Numbers with units in texts: the units that suit them, and as many digits as a reader needs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from heatsim.counts import plain


@dataclass(frozen=True)
class Unit:
    """A unit for numbers: its symbol, its size in SI, and the smallest SI value for which it is used."""

    symbol: str
    size: float
    least: float


_NOISE = 1e-6
YEAR = 365.25 * 86400.0  # s

LENGTHS = (
    Unit("nm", 1e-9, 0.0),
    Unit("µm", 1e-6, 1e-6),
    Unit("mm", 1e-3, 1e-3),
    Unit("m", 1.0, 3.0),
    Unit("km", 1e3, 5e3),
)
TIMES = (
    Unit("ps", 1e-12, 0.0),
    Unit("ns", 1e-9, 1e-9),
    Unit("µs", 1e-6, 1e-6),
    Unit("ms", 1e-3, 1e-3),
    Unit("s", 1.0, 1.0),
    Unit("min", 60.0, 1200.0),
    Unit("h", 3600.0, 3.0 * 3600.0),
    Unit("days", 86400.0, 3.0 * 86400.0),
    Unit("years", YEAR, 3.0 * YEAR),
    Unit("kyr", 1e3 * YEAR, 1e4 * YEAR),
    Unit("Myr", 1e6 * YEAR, 1e7 * YEAR),
)
PREFIXES = ("p", -12), ("n", -9), ("µ", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12)
POWERS = tuple(Unit(f"{prefix}W", 10.0**power, 10.0**power) for prefix, power in PREFIXES)
FLUXES = tuple(Unit(f"{prefix}W/m²", 10.0**power, 10.0**power) for prefix, power in PREFIXES)
SPEEDS = (
    Unit("cells/s", 1.0, 0.0),
    Unit("kCells/s", 1e3, 1e3),
    Unit("MCells/s", 1e6, 1e6),
    Unit("GCells/s", 1e9, 1e9),
)
ENERGIES = tuple(Unit(f"{prefix}J", 10.0**power, 10.0**power) for prefix, power in PREFIXES)


def choose_unit(units: Sequence[Unit], largest: float) -> Unit:
    """The most readable unit for the magnitude of ``largest`` (in SI); joules or metres for 0."""
    if largest == 0.0:
        return next(unit for unit in units if unit.size == 1.0)
    fitting = [unit for unit in units if abs(largest) >= unit.least]
    return fitting[-1] if fitting else units[0]


def readable_unit(unit: str, values: ArrayLike) -> Unit:
    """The unit in which to show numbers in m or s; other numbers keep their unit, and fractions (1) have none.

    Args:
        unit: the unit of the numbers, as in the header of a table.
        values: the numbers; those that are not finite do not count.
    """
    units = {"m": LENGTHS, "s": TIMES}.get(unit)
    if units is None:
        return Unit("" if unit == "1" else unit, 1.0, 0.0)
    numbers = np.asarray(values, dtype=np.float64)
    return choose_unit(units, float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)))


def format_time(time: float, unit: Unit, digits: int = 4) -> str:
    """A time in s as text in a unit: ``"2.5 min"``."""
    return f"{plain(time / unit.size, digits)} {unit.symbol}"


def format_amount(value: float, units: Sequence[Unit], digits: int = 3) -> str:
    """A number in SI as text in its most readable unit: ``"−4.2 kJ"``. What the smallest unit cannot show is 0."""
    if abs(value) < _NOISE * min(unit.size for unit in units):
        value = 0.0
    unit = choose_unit(units, value)
    return f"{plain(value / unit.size, digits)} {unit.symbol}"
