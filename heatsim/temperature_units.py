"""The unit in which temperatures are shown: in tables, pictures, on the terminal and in reports.

heatsim calculates in kelvins, and fields.vtkhdf, checkpoints, summary.json and NumPy arrays hold kelvins. Everything
that shows a temperature converts it here. A temperature has an offset, a difference of temperatures has none:
20 °C is 293.15 K, but a tolerance of 1.8 °F is 1 K.
"""

from dataclasses import dataclass
from math import ceil, log10
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatsim.counts import plain

# Decimals to which converted temperatures are rounded: 300 K is 26.85 °C, not 26.850000000000023 °C. A float64 near
# 300 K is itself only known to 6e-14 K.
_DECIMALS = 12


@dataclass(frozen=True)
class TemperatureUnit:
    """A unit of temperatures.

    Attributes:
        name: as scenarios and headers of tables write it.
        symbol: as pictures and texts write it.
        difference_symbol: the symbol of its differences.
        degrees: degrees of this unit per kelvin.
        zero: the temperature in K that is 0 degrees.
    """

    name: str
    symbol: str
    difference_symbol: str
    degrees: float
    zero: float

    @overload
    def of(self, kelvins: float) -> float: ...
    @overload
    def of(self, kelvins: NDArray[Any]) -> NDArray[np.float64]: ...
    def of(self, kelvins: ArrayLike) -> float | NDArray[np.float64]:
        """Temperatures in K converted to this unit, in float64; kelvins stay the same to the bit."""
        values = np.asarray(kelvins, dtype=np.float64)
        if self.zero != 0.0:
            values = np.round((values - self.zero) * self.degrees, _DECIMALS)
        return float(values) if values.ndim == 0 else values

    @overload
    def kelvins(self, temperatures: float) -> float: ...
    @overload
    def kelvins(self, temperatures: NDArray[Any]) -> NDArray[np.float64]: ...
    def kelvins(self, temperatures: ArrayLike) -> float | NDArray[np.float64]:
        """Temperatures in this unit converted to K, in float64."""
        values = np.asarray(temperatures, dtype=np.float64)
        if self.zero != 0.0:
            values = np.round(values / self.degrees + self.zero, _DECIMALS)
        return float(values) if values.ndim == 0 else values

    @overload
    def of_difference(self, kelvins: float) -> float: ...
    @overload
    def of_difference(self, kelvins: NDArray[Any]) -> NDArray[np.float64]: ...
    def of_difference(self, kelvins: ArrayLike) -> float | NDArray[np.float64]:
        """Differences of temperatures in K converted to this unit: without an offset."""
        values = np.asarray(kelvins, dtype=np.float64) * self.degrees
        return float(values) if values.ndim == 0 else values

    def text(self, kelvins: float, digits: int = 6) -> str:
        """A temperature in K as text with the unit's symbol, such as ``"20 °C"``."""
        return f"{plain(self.of(kelvins), digits)} {self.symbol}"

    def interval_text(self, low: float, high: float) -> str:
        """Two temperatures in K, ``"20 °C and 25 °C"``, with two digits of their difference, 15 digits at most."""
        largest, difference = max(abs(self.of(low)), abs(self.of(high))), self.of_difference(high - low)
        digits = min(15, max(6, ceil(log10(largest / difference)) + 2)) if difference > 0.0 else 6
        return f"{self.text(low, digits)} and {self.text(high, digits)}"

    def difference_text(self, kelvins: float, digits: int = 6) -> str:
        """A difference in K as text with the unit's symbol."""
        return f"{plain(self.of_difference(kelvins), digits)} {self.difference_symbol}"


KELVIN = TemperatureUnit("K", "K", "K", 1.0, 0.0)
CELSIUS = TemperatureUnit("degC", "°C", "K", 1.0, 273.15)
FAHRENHEIT = TemperatureUnit("degF", "°F", "°F", 1.8, 459.67 / 1.8)
TEMPERATURE_UNITS = {unit.name: unit for unit in (KELVIN, CELSIUS, FAHRENHEIT)}
