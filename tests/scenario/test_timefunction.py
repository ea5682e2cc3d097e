import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from heatsim.scenario.values.quantities import COEFFICIENT, FLUX, TEMPERATURE
from heatsim.scenario.values.timefunction import Constant, Formula, Table, read_time_function


def read(value, quantity=TEMPERATURE, in_space=False):
    return read_time_function(value, quantity, in_space=in_space)


def test_number_and_text_with_a_unit_are_constant():
    for value in (293.15, "20 degC"):
        function = read(value)
        assert function == Constant(293.15)
        assert function.constant
        assert function.at(np.array([0.0, 1.0])).tolist() == [293.15, 293.15]
        assert function.nodes(10.0).tolist() == [0.0, 10.0]


def test_number_in_quotes_is_the_expression_that_it_is():
    function = read("300")
    assert isinstance(function, Formula)
    assert function.constant
    assert function.at(np.array([0.0, 5.0])).tolist() == [300.0, 300.0]


def test_expression_varies_in_time():
    function = read("300 + 2*t")
    assert not function.constant
    assert function.at(np.array([0.0, 5.0])).tolist() == [300.0, 310.0]


def test_table_is_linear_in_between_and_held_at_the_ends():
    function = read({"times": [1, "3 s"], "values": [300, "320 K"]})
    assert function == Table((1.0, 3.0), (300.0, 320.0))
    assert function.at(np.array([0.0, 1.0, 1.5, 3.0, 9.0])).tolist() == [300.0, 300.0, 305.0, 320.0, 320.0]


def test_repeated_table_starts_again_after_its_last_time():
    function = read({"times": [0, 2, 4], "values": [0.0, 10.0, 4.0], "repeat": True}, FLUX)
    assert function.at(np.array([1.0, 5.0, 9.0, 3.0, 7.0, 4.0, 8.0])).tolist() == [5.0, 5.0, 5.0, 7.0, 7.0, 0.0, 0.0]


def test_a_time_may_stand_twice():
    function = read({"times": [0, 5, 5, 9], "values": [1.0, 1.0, 3.0, 3.0]}, FLUX)
    assert function == Table((0.0, 5.0, 5.0, 9.0), (1.0, 1.0, 3.0, 3.0))
    assert function.at(np.array([0.0, 4.9, 5.0, 12.0])).tolist() == [1.0, 1.0, 3.0, 3.0]


def test_table_of_equal_values_is_constant():
    assert read({"times": [0, 1], "values": [300.0, 300.0]}).constant


def test_nodes_of_a_table_are_its_times_with_both_sides_of_jumps():
    held = Table((1.0, 2.0, 3.0, 40.0), (5.0, 9.0, 1.0, 50.0))
    assert held.nodes(10.0).tolist() == [0.0, 1.0, 2.0, 3.0, 10.0]
    repeated = Table((0.0, 2.0, 4.0), (1.0, 2.0, 9.0), repeat=True)
    nodes = repeated.nodes(10.0)
    np.testing.assert_allclose(nodes, [0, 2, 4, 4, 6, 8, 8, 10], rtol=1e-14)
    np.testing.assert_allclose(repeated.at(nodes), [1, 2, 9, 1, 2, 9, 1, 2], rtol=1e-14)
    assert repeated.nodes(1.0).tolist() == [0.0, 1.0]
    assert repeated.extremes(1000.0) == (pytest.approx(1.0), pytest.approx(9.0))


@pytest.mark.parametrize("periods", [1, 7, 64, 1000, 4096, 4097])
def test_extremes_of_an_expression_are_those_of_an_oscillation(periods):
    function = read(f"sin(2*pi*{periods}*t/10)", FLUX)
    nodes = function.nodes(10.0)
    assert (np.diff(nodes) > 0).all()
    assert (nodes[0], nodes[-1]) == (0.0, 10.0)
    assert function.extremes(10.0) == (pytest.approx(-1.0, abs=1e-9), pytest.approx(1.0, abs=1e-9))


def test_extremes_of_an_expression_are_those_of_its_narrowest_pulses():
    """Pulses of 1e-6 of the time each, upwards and downwards."""
    function = read("where(t % 2.5 < 1e-5, 900, 5) - 3*(abs(t - 4.321) < 1e-6)", FLUX)
    assert function.extremes(10.0) == (2.0, 900.0)
    assert Table((0.0, 5.0, 5.0, 9.0), (0.0, 8.0, 1.0, 1.0)).extremes(20.0) == (0.0, pytest.approx(8.0, rel=1e-14))
    assert Constant(3.0).extremes(1.0) == (3.0, 3.0)


FUNCTIONS = [
    read("sin(t)*exp(-t/3) + t^1.7", FLUX),
    read("where(sin(t) > 0, cosh(t/9), tanh(t)) + atan2(t, 2)", FLUX),
    read("log(t + 1)*t^0.5 + log10(t + 1)", FLUX),
    Table((0.0, 1.1, 3.7, 9.3), (1.0, 7.3, -2.1, 0.3)),
    Table((0.0, 1.1, 3.7), (1.0, 7.3, -2.1), repeat=True),
]


@given(
    function=st.sampled_from(FUNCTIONS),
    count=st.integers(1, 70),
    cuts=st.lists(st.integers(0, 70), max_size=6),
    offset=st.floats(0.0, 5.0),
)
def test_a_value_has_the_same_bits_whatever_else_is_asked_for(function, count, cuts, offset):
    times = offset + 0.1 * np.arange(count)
    parts = np.split(times, sorted(min(cut, count) for cut in cuts))
    assert np.concatenate([function.at(part) for part in parts]).tobytes() == function.at(times).tobytes()


@pytest.mark.parametrize(
    ("value", "fragments"),
    [
        (True, ["got true", "in K", "expression in t", "times"]),
        ([300.0], ["got [300.0]"]),
        (-1.0, ["got -1.0; a temperature must be at least 0 K"]),
        (float("nan"), ["got nan", "finite"]),
        ("20 m", ['got "20 m"', "cannot be converted to K"]),
        ("300 + x", ['"x" is not known; known are t, pi, e']),
        ("300 K + t", ["cannot be read as an expression", '"20 degC"']),
    ],
)
def test_wrong_value_is_refused_with_a_reason(value, fragments):
    with pytest.raises(ValueError, match=r"^got ") as caught:
        read(value)
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("300 - 50*t", ["which is -", "at t = 6.0", "must be at least 0 K"]),
        ("-3", ["which is -3.0 always"]),
        ("1/t", ["inf at t = 0.0 s", "finite"]),
        ("9**9**9**9", ["inf always"]),
        ("log(t - 1)", ["nan at t = 0.0 s"]),
    ],
)
def test_expression_out_of_range_is_found_with_its_time(text, fragments):
    message = read(text).fault(TEMPERATURE, 10.0)
    for fragment in fragments:
        assert fragment in str(message)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("300 + 1e-9/(t - 3.3333)^2", 3.3333),
        ("300 + 1e-9*abs(t - 3.3333)^-1", 3.3333),
        ("300 + 1e-6/sqrt(abs(t - 2.2))", 2.2),
        ("300 + where(t < 6, 1e-9/abs(t - 5), 0)", 5.0),
        ("300 + 1e-9/(1 - exp(t - 4))^2", 4.0),
        ("300 + 1e-9*tan(t/2)^2", 3.14159265),
        ("300 + 1e-12/(t % 3 - 1.5)", 1.5),
        ("300 - 1e-12/log(t/5)", 5.0),
    ],
)
def test_poles_between_samples_are_found(text, place):
    assert f"grows without bound near t = {place:.9g} s" in str(read(text).fault(TEMPERATURE, 10.0))


@pytest.mark.parametrize(
    "text",
    [
        "300 + where(t < 3, 1/(5 - t), 2)",
        "300/(1 + exp(3 - t))",
        "300 + (t - 3)^2",
        "300 + t*(2 - t)/(2.5*t + 2 - t)",
        # What is divided by 0 may be 0 too, or what grows without bound may be bounded.
        "300 + sin(t - 10/3)/(t - 10/3)",
        "300 + 1/(1/(t - 10/3))",
        "min(1000, 300 + 1/abs(t - 10/3))",
        "300 + exp(-1/(t - 10/3)^2) + atan(1/(t - 10/3))",
    ],
)
def test_what_has_no_pole_is_not_refused(text):
    assert read(text).fault(TEMPERATURE, 10.0) is None


def test_expression_is_in_range_up_to_the_end():
    assert read("300 - 50*t").fault(TEMPERATURE, 5.9) is None


@pytest.mark.parametrize(
    ("table", "place", "fragment"),
    [
        ({"values": [1, 2]}, ("times",), "missing; write for example times"),
        ({"times": [0, 1]}, ("values",), "missing; write for example values"),
        ({"times": [0, 1], "values": [1, 2], "repeet": True}, ("repeet",), 'did you mean "repeat"?'),
        ({"times": [0, 1], "values": [1, 2], "repeat": 1}, ("repeat",), "got 1; true or false"),
        ({"times": [0], "values": [1, 2]}, ("times",), "two or more"),
        ({"times": 3, "values": [1, 2]}, ("times",), "got 3; a list"),
        ({"times": [0, 1, 2], "values": [1, 2]}, (), "got 3 times and 2 values"),
        ({"times": [0, 2, 1], "values": [1, 2, 3]}, ("times", 2), "got 1.0 after 2.0; times must increase"),
        ({"times": [0, 1, 1, 1], "values": [1, 2, 3, 4]}, ("times", 3), "got 1.0 a third time"),
        ({"times": [0, 0], "values": [1, 2]}, ("times", 1), "needs a time before or after it"),
        ({"times": [0, "5 m"], "values": [1, 2]}, ("times", 1), "cannot be converted to s"),
        ({"times": [0, 1], "values": [1, "-5 W/(m^2 K)"]}, ("values", 1), "must be at least 0 W/(m^2 K)"),
        ({"times": [0, 1], "values": [1, True]}, ("values", 1), "got true"),
        ({"times": [1, 2], "values": [1, 2], "repeat": True}, ("times", 0), "must start at 0"),
        ({"times": [0, 5e-324], "values": [0, 1e30]}, (), "too close"),
    ],
)
def test_wrong_table_is_refused_at_its_place(table, place, fragment):
    with pytest.raises(ValidationError) as caught:
        read(table, COEFFICIENT)
    (error,) = caught.value.errors()
    assert error["loc"] == place
    assert fragment in error["msg"]


@pytest.mark.parametrize(
    ("function", "last"),
    [
        (Constant(3.0), 0.0),
        (Table((1.0, 4.0), (2.0, 2.0)), 0.0),
        (Table((1.0, 4.0, 6.0), (2.0, 3.0, 3.0)), 4.0),
        (Table((1.0, 4.0, 60.0), (2.0, 3.0, 4.0)), 10.0),
        (Table((1.0, 4.0, 40.0, 60.0), (2.0, 3.0, 3.0, 4.0)), 4.0),
        (Table((0.0, 1.0, 2.0, 3.0, 4.0), (0.0, 0.0, 1.0, 0.0, 0.0), repeat=True), 10.0),
        (Table((0.0, 1.0, 4.0), (0.0, 1.0, 1.0), repeat=True), 9.0),
        (Table((0.0, 1.0, 2.5), (0.0, 1.0, 1.0), repeat=True), 8.5),
        (Table((0.0, 5.0, 20.0), (0.0, 1.0, 1.0), repeat=True), 5.0),
        (Table((0.0, 1.0), (5.0, 5.0), repeat=True), 0.0),
        (read("where(t < 2, 5, 6)", FLUX), 2.0),
        (read("where(abs(t - 3) < 1, 5, 6)", FLUX), 4.0),
        (read("5 + sin(t)", FLUX), 10.0),
        (read("7", FLUX), 0.0),
        (read("1 + where(x < 1e-3 and t < 6, x, 0)", FLUX, in_space=True), 6.0),
        (read("sin(x - 0.1*t)", FLUX, in_space=True), 10.0),
        (read("where((t > 6) and (t < 6.0001), 5, 0)", FLUX), 6.0001),
    ],
)
def test_the_last_change(function, last):
    assert function.last_change(10.0) == pytest.approx(last, rel=1e-13)
