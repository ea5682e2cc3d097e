"""Conversion of texts with a unit, such as "5 mm", to the SI unit of a key."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
_MOST_DECIMALS = 16
_EXACT = 2**53  # whole numbers below are exact in float64
_EXACT_POWER = 22  # so are powers of ten up to this one
# Other spellings of units of temperature and time, by the SI unit, without spaces. Elsewhere C is the coulomb, F the
# farad and m the metre.
_MEANT = {
    "K": {
        "degC": ("c", "degc", "°c", "celsius", "centigrade", "degcelsius", "degreecelsius", "degreescelsius", "gradc"),
        "degF": ("f", "degf", "°f", "fahrenheit", "degfahrenheit", "degreefahrenheit", "degreesfahrenheit"),
        "K": ("degk", "°k", "kelvins"),
    },
    "s": {"s": ("sec", "sek"), "min": ("m", "mins"), "h": ("hr", "hrs", "std")},
}
# Behind a comma, three digits after another number than 0 may also be thousands: 1,000.
_DECIMAL_COMMA = re.compile(r"^(\s*[+-]?(?:0|\d+(?!,\d{3}\b))),(\d+)\b")
_THOUSANDS = re.compile(r"\s*([+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?)(?:\s*[^\d\s,.].*)?", re.DOTALL)
_SIGNS = re.compile(r"[\s()*.·⋅^-]+")
_WITHOUT_POWER = re.compile(r"([A-Za-zµμΩÅ])(-?[1-9])")
_KELVIN_WITHOUT_SPACE = re.compile(r"\b(kg|m)K\b")
_WITHOUT_SPACE = re.compile(r"(\^-?[1-9])(?=[A-Za-zµμΩÅ])")
_MIL = re.compile(r"\bmils?\b")  # an angle in the unit library
_BETWEEN_NAMES = re.compile(r"(?<=[A-Za-zµμΩÅ1-9])\s*[-.·⋅*]\s*(?=[A-Za-zµμΩÅ])")
SPELLINGS = {"°C": "degC", "℃": "degC", "°F": "degF", "°": "deg", "·": "*", "⋅": "*", "²": "^2", "³": "^3", "⁻¹": "^-1"}
# Usual units: the SI unit, the factor and the offset. They are converted without the unit library, which takes half a
# second to load.
_USUAL = {
    "degC": ("K", "1", "273.15"),
    "mK": ("K", "0.001", "0"),
    "um": ("m", "0.000001", "0"),
    "µm": ("m", "0.000001", "0"),
    "mm": ("m", "0.001", "0"),
    "cm": ("m", "0.01", "0"),
    "mil": ("m", "0.0000254", "0"),
    "ms": ("s", "0.001", "0"),
    "min": ("s", "60", "0"),
    "h": ("s", "3600", "0"),
    "hours": ("s", "3600", "0"),
    "d": ("s", "86400", "0"),
    "days": ("s", "86400", "0"),
    "kW": ("W", "1000", "0"),
    "kW/m^2": ("W/m^2", "1000", "0"),
    "kJ/kg": ("J/kg", "1000", "0"),
}


def split(text: str) -> tuple[str, str] | None:
    """The number and the unit of a text such as "5 mm"; None for any other text."""
    match = NUMBER_WITH_UNIT.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        return None
    number, unit = match[1], _plain(match[2])
    return (number, unit) if UNIT.fullmatch(unit) else None


def _plain(unit: str) -> str:
    """A unit with letters and digits in place of signs such as ° and ²."""
    for spelling, plain in SPELLINGS.items():
        unit = unit.replace(spelling, plain)
    return unit


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


def scaled(
    numbers: NDArray[np.float64], factor: Decimal, offset: Decimal
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Numbers times a factor plus an offset, rounded once, and which of them could not be calculated like this.

    A number stands for its shortest decimal: a whole number N divided by 10ᵏ. With whole numbers below 2⁵³,
    N·factor + offset is one quotient of two numbers that are exact.
    """
    (factor_sign, factor_digits, a), (offset_sign, offset_digits, b) = factor.as_tuple(), offset.as_tuple()
    times = (-1) ** factor_sign * int("".join(map(str, factor_digits)))
    plus = (-1) ** offset_sign * int("".join(map(str, offset_digits)))
    found, left = np.zeros(len(numbers)), np.ones(len(numbers), dtype=bool)
    for k in range(_MOST_DECIMALS):
        here = np.flatnonzero(left)
        places = max(k - int(a), -int(b), 0)
        by, more = 10 ** (places - k + int(a)) * times, 10 ** (places + int(b)) * plus
        if not len(here) or places > _EXACT_POWER or max(abs(by), abs(more)) >= _EXACT:
            break
        whole = np.rint(numbers[here] * 10.0**k)
        exact = (whole / 10.0**k == numbers[here]) & (np.abs(whole * float(by)) + abs(more) < _EXACT)
        found[here[exact]] = (whole[exact] * by + more) / 10.0**places
        left[here[exact]] = False
    return found, left


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


def respell(text: str, target: str) -> str | None:
    """A text such as "100 C" or "237 W/m-K" in a spelling that can be converted to ``target``; None if none is near."""
    match = NUMBER_WITH_UNIT.fullmatch(_DECIMAL_COMMA.sub(r"\1.\2", text)) if len(text) <= MAX_LENGTH else None
    if match is None:
        return None
    number, unit = match[1], _plain(match[2])
    for candidate in _spellings(unit, target):
        parts = split(f"{number} {candidate}")
        try:
            if parts is not None:
                convert(*parts, target)
                return f"{number} {candidate}"
        except ValueError:
            continue
    return None


def without_thousands(text: str) -> list[str]:
    """What a text such as "3,600 s" may mean: "3600 s", or "3.600 s"; empty if it has no commas between thousands."""
    match = _THOUSANDS.fullmatch(text)
    if match is None:
        return []
    decimal = [text.replace(",", ".")] if text.count(",") == 1 and "." not in match[1] else []
    return [text.replace(",", "", match[1].count(",")), *decimal]


def respell_unit(unit: str, target: str) -> str | None:
    """A unit such as "C" in a spelling that can be converted to ``target``; None if none is near."""
    respelled = respell(f"1 {unit}", target)
    return None if respelled is None else respelled.partition(" ")[2]


def _spellings(unit: str, target: str) -> Iterator[str]:
    """Units that may be meant."""
    meant = unit.lower().replace(" ", "")
    yield from (name for name, spelled in _MEANT.get(target, {}).items() if meant in spelled)
    yield unit
    if _SIGNS.sub("", unit) == _SIGNS.sub("", target):
        yield target
    plain = _WITHOUT_POWER.sub(r"\1^\2", unit)
    yield plain
    # m^2K means m^2 K, and kgK below a slash kg K.
    plain = _WITHOUT_SPACE.sub(r"\1 ", plain)
    yield plain
    # W/m-K, W/m.K and W/m·K mean W/(m K).
    above, slash, below = plain.partition("/")
    if slash:
        below = _KELVIN_WITHOUT_SPACE.sub(r"\1 K", below)
        yield f"{above}/({' '.join(_BETWEEN_NAMES.split(below.strip('() ')))})"


def to_si(number: str, unit: str) -> float:
    """A number with a unit from ``split``, converted to the SI unit of its dimension; rounded once.

    Raises:
        ValueError: the unit is unknown.
    """
    return convert(number, unit, _USUAL[unit][0]) if unit in _USUAL else _to_si(number, unit)


def _to_si(number: str, unit: str) -> float:
    """As :func:`to_si`, by the unit library."""
    source = _parse(unit)
    try:
        return float(_registry().Quantity(Decimal(number), source).to_base_units().magnitude)
    except Exception:
        raise ValueError(f'"{number} {unit}" cannot be calculated in SI units') from None


def _parse(unit: str) -> Any:
    import pint

    # pint also raises KeyError, AssertionError, TypeError and the errors of decimal.
    try:
        return _registry().parse_units(_MIL.sub("thou", unit))
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
