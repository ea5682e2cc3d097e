"""Text with a unit, such as "5 mm", read into the SI unit that a key has."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
NAME = r"[A-Za-zµμΩÅ]+"
# Products and quotients of named units with exponents of one digit. What passes here is short and holds neither
# numbers nor towers of powers, on which a unit library could spend for ever.
FACTOR = rf"{NAME}(?:\s*(?:\^|\*\*)\s*-?[1-9])?"
BETWEEN = r"(?:\s*[*/]\s*|\s+)"
TERM = rf"(?:{FACTOR}|\(\s*{FACTOR}(?:{BETWEEN}{FACTOR})*\s*\))"
UNIT = re.compile(rf"(?:1\s*/\s*)?{TERM}(?:{BETWEEN}{TERM})*")
NUMBER_WITH_UNIT = re.compile(rf"\s*({NUMBER})\s*(\S.*?)\s*", re.DOTALL)
MAX_LENGTH = 80
SPELLINGS = {"°C": "degC", "℃": "degC", "°F": "degF", "°": "deg", "·": "*", "⋅": "*", "²": "^2", "³": "^3", "⁻¹": "^-1"}


def split(text: str) -> tuple[str, str] | None:
    """The number and the unit of a text such as "5 mm"; None where the text is not a number followed by a unit."""
    match = NUMBER_WITH_UNIT.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        return None
    number, unit = match[1], match[2]
    for spelling, plain in SPELLINGS.items():
        unit = unit.replace(spelling, plain)
    return (number, unit) if UNIT.fullmatch(unit) else None


def convert(number: str, unit: str, target: str) -> float:
    """A number with a unit, as ``split`` gives them, in the unit ``target``.

    Calculated in decimals and rounded once, so that "1.1 mm" is the float 0.0011 and "20 degC" the float 293.15.

    Raises:
        ValueError: an unknown unit, or one of another dimension; the message says which.
    """
    import pint

    source = _parse(unit)
    try:
        return float(_registry().Quantity(Decimal(number), source).to(target).magnitude)
    except pint.DimensionalityError:
        raise ValueError(f'"{unit}" cannot be converted to {target}') from None
    except Exception:
        raise ValueError(f'"{number} {unit}" cannot be calculated in {target}') from None


def to_si(number: str, unit: str) -> float:
    """A number with a unit, as ``split`` gives them, in the SI unit of its dimension; rounded once.

    Raises:
        ValueError: an unknown unit.
    """
    source = _parse(unit)
    try:
        return float(_registry().Quantity(Decimal(number), source).to_base_units().magnitude)
    except Exception:
        raise ValueError(f'"{number} {unit}" cannot be calculated in SI units') from None


def _parse(unit: str) -> Any:
    import pint

    # Besides its own errors pint lets others through (KeyError, AssertionError, TypeError, those of decimal).
    try:
        return _registry().parse_units(unit)
    except pint.UndefinedUnitError as error:
        names: Any = error.unit_names  # one name as text, several as a tuple
        unknown = ", ".join([names] if isinstance(names, str) else names)
        raise ValueError(f'"{unknown}" is no unit that is known') from None
    except Exception:
        raise ValueError(f'"{unit}" cannot be read as a unit') from None


@lru_cache(maxsize=1)
def _registry() -> Any:
    """The unit registry: half a second to make, so only when a text with a unit is there."""
    import pint

    return pint.UnitRegistry(non_int_type=Decimal)
