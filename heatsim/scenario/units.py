"""Conversion of texts with a unit, such as "5 mm", to the SI unit of a key."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
NAME = r"[A-Za-zµμΩÅ]+"
# Products and quotients of named units with exponents of one digit. The pattern excludes numbers and nested powers,
# with which a unit library could compute forever.
FACTOR = rf"{NAME}(?:\s*(?:\^|\*\*)\s*-?[1-9])?"
BETWEEN = r"(?:\s*[*/]\s*|\s+)"
TERM = rf"(?:{FACTOR}|\(\s*{FACTOR}(?:{BETWEEN}{FACTOR})*\s*\))"
UNIT = re.compile(rf"(?:1\s*/\s*)?{TERM}(?:{BETWEEN}{TERM})*")
NUMBER_WITH_UNIT = re.compile(rf"\s*({NUMBER})\s*(\S.*?)\s*", re.DOTALL)
MAX_LENGTH = 80
SPELLINGS = {"°C": "degC", "℃": "degC", "°F": "degF", "°": "deg", "·": "*", "⋅": "*", "²": "^2", "³": "^3", "⁻¹": "^-1"}
# Usual units with the unit, the factor and the offset that they are converted by: the unit library takes half a second
# to load.
_USUAL = {
    "degC": ("K", "1", "273.15"),
    "mK": ("K", "0.001", "0"),
    "um": ("m", "0.000001", "0"),
    "µm": ("m", "0.000001", "0"),
    "mm": ("m", "0.001", "0"),
    "cm": ("m", "0.01", "0"),
    "ms": ("s", "0.001", "0"),
    "min": ("s", "60", "0"),
    "h": ("s", "3600", "0"),
    "d": ("s", "86400", "0"),
    "kW/m^2": ("W/m^2", "1000", "0"),
}


def split(text: str) -> tuple[str, str] | None:
    """The number and the unit of a text such as "5 mm"; None for any other text."""
    match = NUMBER_WITH_UNIT.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        return None
    number, unit = match[1], match[2]
    for spelling, plain in SPELLINGS.items():
        unit = unit.replace(spelling, plain)
    return (number, unit) if UNIT.fullmatch(unit) else None


def convert(number: str, unit: str, target: str) -> float:
    """A number with a unit from ``split``, converted to the unit ``target``.

    Calculated in decimals and rounded once, so that "1.1 mm" is the float 0.0011 and "20 degC" the float 293.15.

    Raises:
        ValueError: the unit is unknown or has another dimension.
    """
    known, factor, offset = (unit, "1", "0") if unit == target else _USUAL.get(unit, ("", "0", "0"))
    try:
        if known == target:
            return float(Decimal(number) * Decimal(factor) + Decimal(offset))
    except ArithmeticError:
        raise ValueError(f'"{number} {unit}" cannot be calculated in {target}') from None
    return _convert(number, unit, target)


def linear(unit: str, target: str) -> tuple[Decimal, Decimal]:
    """The factor and the offset with which numbers in a unit become numbers in the unit ``target``.

    Raises:
        ValueError: the unit is unknown or has another dimension.
    """
    parts = split(f"0 {unit}")
    if parts is None:
        raise ValueError(f'"{unit}" cannot be read as a unit')
    if parts[1] in _USUAL and _USUAL[parts[1]][0] == target:
        _, factor, offset = _USUAL[parts[1]]
        return Decimal(factor), Decimal(offset)
    import pint

    source = _parse(parts[1])
    try:
        zero, one = (_registry().Quantity(Decimal(number), source).to(target).magnitude for number in (0, 1))
    except pint.DimensionalityError:
        raise ValueError(f'"{unit}" cannot be converted to {target}') from None
    return one - zero, zero


def _convert(number: str, unit: str, target: str) -> float:
    """As :func:`convert`, by the unit library."""
    import pint

    source = _parse(unit)
    try:
        return float(_registry().Quantity(Decimal(number), source).to(target).magnitude)
    except pint.DimensionalityError:
        raise ValueError(f'"{unit}" cannot be converted to {target}') from None
    except Exception:
        raise ValueError(f'"{number} {unit}" cannot be calculated in {target}') from None


def to_si(number: str, unit: str) -> float:
    """A number with a unit from ``split``, converted to the SI unit of its dimension; rounded once.

    Raises:
        ValueError: the unit is unknown.
    """
    source = _parse(unit)
    try:
        return float(_registry().Quantity(Decimal(number), source).to_base_units().magnitude)
    except Exception:
        raise ValueError(f'"{number} {unit}" cannot be calculated in SI units') from None


def _parse(unit: str) -> Any:
    import pint

    # pint also raises KeyError, AssertionError, TypeError and the errors of decimal.
    try:
        return _registry().parse_units(unit)
    except pint.UndefinedUnitError as error:
        names: Any = error.unit_names  # one name as text, several as a tuple
        unknown = ", ".join([names] if isinstance(names, str) else names)
        raise ValueError(f'"{unknown}" is not a known unit') from None
    except Exception:
        raise ValueError(f'"{unit}" cannot be read as a unit') from None


@lru_cache(maxsize=1)
def _registry() -> Any:
    """The unit registry, made on the first use because it takes half a second."""
    import pint

    return pint.UnitRegistry(non_int_type=Decimal)
