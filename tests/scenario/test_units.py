import contextlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heatsim.scenario.values import quantities as q
from heatsim.scenario.values import units
from heatsim.scenario.values.materialfunction import read_material_function
from heatsim.scenario.values.timefunction import read_time_function


@pytest.mark.parametrize(
    ("text", "quantity", "value"),
    [
        ("5 mm", q.LENGTH, 0.005),
        ("1.1mm", q.LENGTH, 0.0011),
        ("+3.5e1 cm", q.LENGTH, 0.35),
        ("7 µm", q.LENGTH, 7e-6),
        ("2 in", q.LENGTH, 0.0508),
        ("-5 mm", q.COORDINATE, -0.005),
        ("10 min", q.DURATION, 600.0),
        ("1 day", q.DURATION, 86400.0),
        ("20 degC", q.TEMPERATURE, 293.15),
        ("20 °C", q.TEMPERATURE, 293.15),
        ("20°C", q.TEMPERATURE, 293.15),
        ("-40 degC", q.TEMPERATURE, 233.15),
        ("-40 degF", q.TEMPERATURE, 233.15),
        ("300 K", q.TEMPERATURE, 300.0),
        ("500 W/(m^2 K)", q.COEFFICIENT, 500.0),
        ("500 W/(m**2*K)", q.COEFFICIENT, 500.0),
        ("500 W/m²/K", q.COEFFICIENT, 500.0),
        ("500 W/(m^2 degC)", q.COEFFICIENT, 500.0),
        ("2 kW/m^2", q.FLUX, 2000.0),
        ("-2 kW/m^2", q.FLUX, -2000.0),
        ("2.7 g/cm^3", q.DENSITY, 2700.0),
        ("0.9 kJ/(kg K)", q.SPECIFIC_HEAT, 900.0),
        ("0.24 W m^-1 K^-1", q.CONDUCTIVITY, 0.24),
        ("4 mil", q.LENGTH, 1.016e-4),
        ("2 mils", q.LENGTH, 5.08e-5),
        ("1 mil^2 K/W", q.CONTACT_RESISTANCE, 6.4516e-10),
    ],
)
def test_text_with_a_unit_is_the_nearest_float_in_si(text, quantity, value):
    assert quantity.read(text) == value


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("5 s", ['got "5 s"', '"s" cannot be converted to m', '"5 mm"']),
        ("5 mn", ['"mn" is not a known unit']),
        ("300", ['got "300"', "in m", "no quotes around a plain number"]),
        ("five mm", ['got "five mm"', "as a number in m"]),
        ("5 (mm", ['got "5 (mm"']),
        ("5 m^9^9^9^9", ["got"]),
        ("5 9 m", ["got"]),
        ("-5 mm", ['got "-5 mm", which is -0.005 m', "must be greater than 0 m"]),
        ("1e400 m", ["must be finite"]),
        ("", ['got ""']),
    ],
)
def test_wrong_text_is_refused_with_what_to_write(text, fragments):
    with pytest.raises(ValueError, match="a length") as caught:
        q.LENGTH.read(text)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_below_absolute_zero_is_refused_with_the_kelvins():
    with pytest.raises(ValueError, match=r'got "-300 degC", which is -26.85\d* K; a temperature must be at least 0 K'):
        q.TEMPERATURE.read("-300 degC")


@pytest.mark.parametrize("value", [True, None, [1.0], float("nan"), float("inf"), 10**400, 0, 0.0, -1, 1e-200, 1e200])
def test_what_is_no_length_is_refused(value):
    with pytest.raises(ValueError, match=r"^got .*a length"):
        q.LENGTH.read(value)


@given(st.floats(min_value=1e-30, max_value=1e30))
def test_a_number_is_taken_to_the_bit(value):
    assert q.LENGTH.read(value) == value


@given(st.text("0123456789.eE+-/*^()µ°² mKsWgJCdin", max_size=60))
def test_any_text_gives_a_number_or_a_message(text):
    parts = units.split(text)
    if parts is None:
        return
    with contextlib.suppress(ValueError):
        assert isinstance(units.convert(*parts, "W/(m^2 K)"), float)


@pytest.mark.parametrize("unit", units._USUAL)
@pytest.mark.parametrize(
    "number", ["0", "1.1", "-40", ".3", "3.3333333333333333", "1e-9", "1e400", "1e9999999999999999999"]
)
def test_usual_units_give_the_bits_of_the_unit_library(unit, number):
    target, *_ = units._USUAL[unit]

    def outcome(convert):
        try:
            return convert(number, unit, target)
        except ValueError as error:
            return str(error)

    assert outcome(units.convert) == outcome(units._convert)
    with contextlib.suppress(ValueError):
        assert units.to_si(number, unit) == units._to_si(number, unit)


@pytest.mark.parametrize(
    ("text", "quantity", "expected"),
    [
        ("100 C", q.TEMPERATURE, "100 degC"),
        ("20 °c", q.TEMPERATURE, "20 degC"),
        ("20 deg C", q.TEMPERATURE, "20 degC"),
        ("20.5 Celsius", q.TEMPERATURE, "20.5 degC"),
        ("68 F", q.TEMPERATURE, "68 degF"),
        ("237 W/m-K", q.CONDUCTIVITY, "237 W/(m K)"),
        ("237 W/mK", q.CONDUCTIVITY, "237 W/(m K)"),
        ("237 W/m K", q.CONDUCTIVITY, "237 W/(m K)"),
        ("237 W/(m.K)", q.CONDUCTIVITY, "237 W/(m K)"),
        ("237 W m-1 K-1", q.CONDUCTIVITY, "237 W m^-1 K^-1"),
        ("0.9 kJ/kg-K", q.SPECIFIC_HEAT, "0.9 kJ/(kg K)"),
        ("500 W/m2K", q.COEFFICIENT, "500 W/(m^2 K)"),
        ("500 W/m2-K", q.COEFFICIENT, "500 W/(m^2 K)"),
        ("500 W/(m²K)", q.COEFFICIENT, "500 W/(m^2 K)"),
        ("0.9 kJ/kgK", q.SPECIFIC_HEAT, "0.9 kJ/(kg K)"),
        ("1e-4 m²K/W", q.CONTACT_RESISTANCE, "1e-4 m^2 K/W"),
        ("2700 kg/m3", q.DENSITY, "2700 kg/m^3"),
        ("20,5 degC", q.TEMPERATURE, "20.5 degC"),
        ("0,025 W/mK", q.CONDUCTIVITY, "0.025 W/(m K)"),
        ("10 m", q.DURATION, "10 min"),
        ("10 sek", q.DURATION, "10 s"),
    ],
)
def test_a_usual_spelling_is_answered_with_what_to_write(text: str, quantity: q.Quantity, expected: str) -> None:
    with pytest.raises(ValueError, match="got") as caught:
        quantity.read(text)
    assert str(caught.value).endswith(f'write "{expected}"')
    quantity.read(expected)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (read_time_function, "500 W/m2K"),
        (read_material_function, "0.5 W/m2-K"),
    ],
)
def test_where_an_expression_is_allowed_too_a_spelling_is_answered(read: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r'write "[0-9.]+ W/\(m\^2 K\)"$'):
        read(text, q.COEFFICIENT)


def test_percent_is_answered_with_the_number() -> None:
    with pytest.raises(ValueError, match=r'^got "85 %"; write 0\.85$'):
        read_time_function("85 %", q.EMISSIVITY)


def test_a_comma_that_may_separate_thousands_is_not_read_as_a_decimal_comma() -> None:
    for text in ("1,000 s", "12,500 s", "1,000,000 s"):
        assert units.respell(text, "s") is None


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("3,600 s", 'write "3600 s", or "3.600 s" if the comma is a decimal point'),
        ("−10 s", 'write "-10 s", with a plain minus sign'),
        ("3,600", "write 3600, or 3.600 if the comma is a decimal point"),
        ("-12,500.5 min", 'write "-12500.5 min"'),
        ("1,000,000", "write 1000000"),
    ],
)
def test_thousands_are_answered_with_numbers_that_are_read(text: str, advice: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'got "{text}"; {advice}') + "$"):
        q.TIME.read(text)
    for meant in re.findall(r'"[^"]+"|[\d.]+', advice):
        q.TIME.read(meant.strip('"') if meant[0] == '"' else float(meant))


def test_what_is_no_unit_gets_no_spelling() -> None:
    for text in ("20 foo", "5 kg", "x + 3", "5 m^9^9", "20 C/s"):
        assert units.respell(text, "K") is None
