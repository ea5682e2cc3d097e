"""Expressions in time and place as sums of products, found in their trees."""

import numpy as np
import pytest

from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.products import products_of

NAMES = ("x", "y", "z", "t")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1e5*exp(-((t - 2137)/1)^2)*(1 + x)", 1),
        ("300 + 20*sin(t)*x - y*t^2", 3),
        ("(x + t)^2/(1 + t)", 3),
        ("-(x*t) + +(t - y)", 2),
        ("exp(-(x/0.01)^2 - t/5)", 1),
        ("where(x < 0.5, sin(t), 2*x)", 2),
        ("where(t % 2 < 1, log(x), where(x > 2, 1/t, 0))", 3),
        ("x*y + log(z)", 1),
        ("sin(2*x - t/3 + y)", 2),
        ("cos(x + t)", 2),
        ("sqrt(x*t) + abs(x*(t - 1))", 2),
        ("(x*(t - 1))^(-3) + (x*t^2)^1.5", 2),
        ("max(0, (x - 1)*sin(9*t))", 2),
        ("min(0, (x - 1)*sin(9*t))", 2),
        ("where(x > 1 and not (t < 1 or y > 2), x*t, y)", 4),
        ("1 + (t > 1 and x > 2)", 3),
    ],
)
def test_a_sum_of_products_is_the_expression(text: str, count: int) -> None:
    expression = Expression(text, NAMES)
    products = products_of(expression.tree)
    assert products is not None
    assert len(products) == count
    x, y, z, t = np.random.default_rng(1).uniform(0.1, 3.0, (4, 200))
    found = np.zeros(200)
    for in_time, in_place in products:
        factor, weight = Expression.of_tree(in_time, ("t",)), Expression.of_tree(in_place, ("x", "y", "z"))
        found += factor.evaluate(t=t) * weight.evaluate(x=x, y=y, z=z)
    np.testing.assert_allclose(found, expression.evaluate(x=x, y=y, z=z, t=t), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "text", ["tan(x - t)", "max(1, x*t)", "where(x < t, 1, 0)", "1/(x + t)", "x^t", "(x + y*t + z*t^2 + 1)^4"]
)
def test_what_moves_is_no_sum_of_few_products(text: str) -> None:
    assert products_of(Expression(text, NAMES).tree) is None
