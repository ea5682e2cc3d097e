import builtins
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heatsim.scenario.values.expressions import FUNCTIONS, MAX_LENGTH, Expression

X = 0.75


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2*3 - 4/8", 6.5),
        ("2^3", 8.0),
        ("2**3", 8.0),
        ("2^3^2", 512.0),
        ("-x^2", -(X**2)),
        ("2*x^2", 2 * X**2),
        ("7 % 3", 1.0),
        ("-7 % 3", 2.0),
        ("+x", X),
        ("x < 1", 1.0),
        ("0 < x < 0.5", 0.0),
        ("0.5 < x <= 0.75 != 1", 1.0),
        ("(x < 1) - (x < 1)", 0.0),
        ("(x > 0) + (x == 0.75)", 2.0),
        ("x > 0 and x < 0.5", 0.0),
        ("x > 1 or x < 0.8", 1.0),
        ("not x > 1", 1.0),
        ("where(x > 0.5, 10, 20)", 10.0),
        ("where(x, 10, 20)", 10.0),
        ("min(x, 1, 0.5)", 0.5),
        ("max(x, 1)", 1.0),
        ("pi", math.pi),
        ("e", math.e),
        ("1_000", 1000.0),
        (" 1\n+\t2 ", 3.0),
        ("sin(x) + cos(x)", math.sin(X) + math.cos(X)),
        ("atan2(x, 2)", math.atan2(X, 2)),
        ("log(exp(x))", X),
        ("log10(1000)", 3.0),
        ("sqrt(x) + abs(-x) + floor(x) + ceil(x) + sign(-x)", math.sqrt(X) + X + 0 + 1 - 1),
        ("asin(x) + acos(x) + atan(x)", math.asin(X) + math.acos(X) + math.atan(X)),
        ("sinh(x) + cosh(x) + tanh(x) + tan(x)", math.sinh(X) + math.cosh(X) + math.tanh(X) + math.tan(X)),
    ],
)
def test_value(text, value):
    result = Expression(text, ("x",)).evaluate(x=X)
    assert result.dtype == np.float64
    assert float(result) == pytest.approx(value, rel=1e-15, abs=1e-15)


def test_constant_has_the_shape_of_the_points():
    values = Expression("300", ("x", "y", "z")).evaluate(
        x=np.ones((1, 1, 2)), y=np.ones((1, 3, 1)), z=np.ones((4, 1, 1))
    )
    assert values.shape == (4, 3, 2)
    assert (values == 300.0).all()


def test_points_are_not_handed_out_as_values():
    points = np.array([1.0, 2.0])
    Expression("x", ("x",)).evaluate(x=points)[0] = 9.0
    assert points[0] == 1.0


def test_used_names_those_variables_that_matter():
    assert Expression("3*x + pi", ("x", "y")).used == {"x"}


def test_wrong_variables_are_a_programming_error():
    with pytest.raises(TypeError, match="needed"):
        Expression("x", ("x",)).evaluate(y=1.0)


def test_tower_of_powers_ends_at_infinity():
    assert np.isinf(Expression("9**9**9**9", ("x",)).evaluate(x=0.0))
    assert np.isinf(Expression("9" * 400, ("x",)).evaluate(x=0.0))


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("", "empty"),
        ("1 +", 'cannot be read as an expression at "1 +"'),
        ("1 + * 2", 'at "* 2"'),
        ("2 x", "cannot be read"),
        ("T + 1", '"T" is not known; known are x, pi, e'),
        ("sn(x)", 'did you mean "sin"?'),
        ("sin", "sin is a function; write sin(…)"),
        ("sin(x, x)", "sin takes 1 arguments, not 2"),
        ("where(x > 1, 2)", "where takes 3 arguments, not 2"),
        ("min(x)", "min takes 2 to 20 arguments, not 1"),
        ("sin(*x)", "Starred"),
        ("where(x, yes=1)", "is not allowed"),
        ("x(1)", '"x" is not a known function'),
        ("x.real", "Attribute is not allowed"),
        ("x[0]", '"[" is not allowed'),
        ("'a'", "is not allowed"),
        ("1 if x else 2", "IfExp is not allowed"),
        ("True", "True is not allowed"),
        ("...", "... is not allowed"),
        ("1j", "1j is not allowed"),
        ("x // 2", "is not allowed"),
        ("x is x", "is not allowed"),
        ("x, x", "Tuple is not allowed"),
        ("lambda: x", "is not allowed"),
        ("(x := 1)", "is not allowed"),
        ("__import__(1)", "is not a known function"),
        ("𝐬in(x)", "is not allowed"),
        ("x" * (MAX_LENGTH + 1), "too long"),
        ("(" * 400 + "x" + ")" * 400, "cannot be read"),
        ("-" * 900 + "x", "deep|involved"),
        ("+".join("x" * 400), "involved"),
        ("not " * 200 + "x", "deep|involved"),
        ("x\0", "is not allowed"),
    ],
)
def test_refused_with_a_reason(text, fragment):
    with pytest.raises(ValueError, match=fragment if "|" in fragment else None) as caught:
        Expression(text, ("x",))
    assert "\n" not in str(caught.value)
    if "|" not in fragment:
        assert fragment in str(caught.value)


PIECES = [
    *FUNCTIONS,
    "x",
    "pi",
    "9",
    "1e300",
    "0.5",
    "(",
    ")",
    ",",
    "+",
    "-",
    "*",
    "/",
    "^",
    "**",
    "%",
    "<",
    ">=",
    "==",
    "!=",
]
HOSTILE = [
    "and ",
    "or ",
    "not ",
    ".",
    "_",
    "__class__",
    "open",
    "eval",
    "lambda ",
    ":",
    "[",
    "]",
    "'",
    " ",
    "\n",
    "if ",
    "else ",
]


@settings(max_examples=400)
@given(st.one_of(st.lists(st.sampled_from(PIECES + HOSTILE), max_size=30).map("".join), st.text(max_size=60)))
@example("9**9**9**9**9**9")
@example("9%0")
def test_any_text_gives_values_or_a_message(text):
    points = np.linspace(-2.0, 2.0, 5)
    try:
        expression = Expression(text, ("x",))
    except ValueError:
        return
    assert expression.evaluate(x=points).shape == points.shape


@pytest.mark.parametrize(
    "text",
    [
        "open('/tmp/heatsim', 'w')",
        "__import__('os').system('true')",
        "().__class__.__base__.__subclasses__()",
        "(lambda: x)()",
        "[x for x in (1, 2)]",
        "f'{x}'",
        "exec(x)",
        "eval(x)",
        "print(x)",
    ],
)
def test_hostile_text_runs_nothing(text, monkeypatch):
    for name in ("open", "exec", "eval", "print"):
        monkeypatch.setattr(builtins, name, lambda *args, **kwargs: pytest.fail("was run"))
    with pytest.raises(ValueError, match=r"is not allowed|cannot|is not a known function"):
        Expression(text, ("x",))
