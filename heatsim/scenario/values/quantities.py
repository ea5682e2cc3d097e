"""The physical quantities of a scenario: unit, allowed range, and conversion from TOML."""

import re
from dataclasses import dataclass
from math import isfinite

from heatsim.scenario.messages import show
from heatsim.scenario.values import units
from heatsim.scenario.values.expressions import Expression

# Within these bounds, products such as conductivity · dt / dx² neither overflow nor underflow in float64.
SMALLEST = 1e-30
LARGEST = 1e30
_DASHES = re.compile("[−–—‐‑]")  # of word processors
_PERCENT = re.compile(rf"\s*({units.NUMBER})\s*%\s*")


@dataclass(frozen=True)
class Quantity:
    """A physical quantity.

    Attributes:
        name: its name with an article, for messages.
        unit: its SI unit; "" for a pure number.
        example: an example with a unit.
        above: the bound that all values exceed; they are also at least 1e-30.
        at_least: the smallest value.
        at_most: the largest value.
    """

    name: str
    unit: str
    example: str = ""
    above: float | None = None
    at_least: float | None = None
    at_most: float = LARGEST

    @property
    def expected(self) -> str:
        """The part of a message that describes the value to write."""
        if not self.unit:
            return f"{self.name} is expected, as a number"
        return f'{self.name} is expected, as a number in {self.unit} or as text with a unit such as "{self.example}"'

    def advice(self, text: str) -> str:
        """The part of a message that says what to write instead of a text that cannot be read."""
        respelled = units.respell(text, self.unit) if self.unit else None
        if (typed := _DASHES.sub("-", text)) != text and (units.split(typed) or _is_number(typed)):
            return f"write {show(typed) if units.split(typed) else typed.strip()}, with a plain minus sign"
        if meant := units.without_thousands(text) if len(text) <= units.MAX_LENGTH else []:
            # A plain number has no quotes.
            shown = [show(each) if units.split(each) else each.strip() for each in meant]
            return f"write {', or '.join(shown)}{' if the comma is a decimal point' if len(shown) > 1 else ''}"
        if not self.unit and (percent := _PERCENT.fullmatch(text)):
            return f"write {float(percent[1]) / 100.0:.10g}"
        return self.expected if respelled is None else f'write "{respelled}"'

    def range_fault(self, value: float) -> str | None:
        """The part of a message that names the allowed range if ``value`` is outside, else None."""
        if not isfinite(value):
            return f"{self.name} must be finite"
        if self.above is not None and value <= self.above:
            limit = f" and at most {self._with_unit(self.at_most)}" if self.at_most < LARGEST else ""
            return f"{self.name} must be greater than {self._with_unit(self.above)}{limit}"
        if self.above is not None and value < SMALLEST:
            return f"{self.name} must be at least {self._with_unit(SMALLEST)}"
        if self.at_least is not None and value < self.at_least:
            return f"{self.name} must be at least {self._with_unit(self.at_least)}"
        if value > self.at_most:
            return f"{self.name} must be at most {self._with_unit(self.at_most)}"
        if value < -LARGEST:
            return f"{self.name} must be at least {self._with_unit(-LARGEST)}"
        return None

    def read(self, value: object) -> float:
        """The SI value of a number or of a text with a unit.

        Raises:
            ValueError: any other value, or a value out of range; the message is for the user.
        """
        if isinstance(value, str):
            return self._read_text(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"got {show(value)}; {self.expected}")
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        outside = self.range_fault(number)
        if outside:
            raise ValueError(f"got {show(value)}; {outside}")
        return number

    def read_expression(self, text: str, names: tuple[str, ...], wanted: str) -> Expression:
        """An expression in variables; ``wanted`` says in which, for messages.

        Raises:
            ValueError: it cannot be read; the message is for the user.
        """
        try:
            return Expression(text, names)
        except ValueError as error:
            advice = self.advice(text)
            if advice == self.expected:
                advice = f"{error}; {advice}, or as an expression {wanted}"
            raise ValueError(f"got {show(text)}; {advice}") from None

    def _read_text(self, text: str) -> float:
        parts = units.split(text)
        if parts is None or not self.unit:
            unquoted = ": no quotes around a plain number" if _is_number(text) else ""
            raise ValueError(f"got {show(text)}; {self.advice(text)}{unquoted}")
        try:
            number = units.convert(*parts, self.unit)
        except ValueError as error:
            raise ValueError(f"got {show(text)}; {error}; {self.advice(text)}") from None
        outside = self.range_fault(number)
        if outside:
            raise ValueError(f"got {show(text)}, which is {self._with_unit(number)}; {outside}")
        return number

    def _with_unit(self, value: float) -> str:
        # 0.0 reads better as 0 in a message; numbers are otherwise shown in full.
        number = repr(int(value)) if abs(value) < 1e6 and value == int(value) else repr(value)
        return f"{number} {self.unit}".rstrip()


LENGTH = Quantity("a length", "m", "5 mm", above=0.0)
AREA = Quantity("an area", "m^2", "4.8 m^2", above=0.0)
COORDINATE = Quantity("a coordinate", "m", "5 mm")
DURATION = Quantity("a duration", "s", "10 min", above=0.0)
TIME = Quantity("a time", "s", "10 min")
TEMPERATURE = Quantity("a temperature", "K", "20 degC", at_least=0.0)
# The formula of ISO 13788 for the saturation of air is one for the weather and rooms.
AIR = Quantity("a temperature of air", "K", "20 degC", at_least=173.15, at_most=373.15)
CONDUCTIVITY = Quantity("a conductivity", "W/(m K)", "237 W/(m K)", above=0.0)
DENSITY = Quantity("a density", "kg/m^3", "2.7 g/cm^3", above=0.0)
SPECIFIC_HEAT = Quantity("a specific heat", "J/(kg K)", "0.9 kJ/(kg K)", above=0.0)
FLUX = Quantity("a heat flux", "W/m^2", "2 kW/m^2")
COEFFICIENT = Quantity("a heat transfer coefficient", "W/(m^2 K)", "500 W/(m^2 K)", at_least=0.0)
TRANSMITTANCE = Quantity("a thermal transmittance", "W/(m^2 K)", "0.24 W/(m^2 K)", above=0.0)
LINEAR_TRANSMITTANCE = Quantity("a linear thermal transmittance", "W/(m K)", "0.05 W/(m K)")
FRACTION = Quantity("a fraction", "", above=0.0, at_most=1.0)
EMISSIVITY = Quantity("an emissivity", "", at_least=0.0, at_most=1.0)
ABSORPTIVITY = Quantity("an absorptivity", "", above=0.0, at_most=1.0)
FACTOR = Quantity("a factor", "")
ENLARGEMENT = Quantity("a scale", "", above=0.0)
MOMENT = Quantity("a time", "s", "10 min", at_least=0.0)
SPEED = Quantity("a speed", "m/s", "200 mm/s", above=0.0)
TEMPERATURE_RATE = Quantity("a rate of change of temperature", "K/s", "0.1 mK/s", above=0.0)
TOLERANCE = Quantity("a temperature difference", "K", "0.1 K", above=0.0)
LATENT_HEAT = Quantity("a latent heat", "J/kg", "200 kJ/kg", above=0.0)
CONTACT_RESISTANCE = Quantity("a contact resistance", "m^2 K/W", "10 mm^2 K/W", at_least=0.0)
CONTACT_CONDUCTANCE = Quantity("the conductance of a contact", "W/(m^2 K)", "5 kW/(m^2 K)", at_least=0.0)
GAP_EMISSIVITY = Quantity("the emissivity of a surface", "", above=0.0, at_most=1.0)
POWER = Quantity("a power", "W", "120 W")
CONDUCTANCE = Quantity("a conductance", "W/K", "12 W/K", above=0.0)
MASS_FLOW = Quantity("a mass flow", "kg/s", "72 kg/h", above=0.0)
NODE_HEAT_CAPACITY = Quantity("a heat capacity", "J/K", "60 kJ/K", at_least=0.0)
POWER_DENSITY = Quantity("a power density", "W/m^3", "2 MW/m^3")


def si_number(value: object) -> float | None:
    """A number, or a text with a unit in SI units; None for any other value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return None
    parts = units.split(value) if isinstance(value, str) else None
    if parts is None:
        return None
    try:
        return units.to_si(*parts)
    except ValueError:
        return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
