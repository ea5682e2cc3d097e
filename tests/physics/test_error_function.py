"""The error function of arrays."""

from math import erf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heatsim.physics.sources.error_function import error_function


def test_values_are_those_of_the_math_library() -> None:
    """Also between nodes, where two polynomials meet, and beyond the last node."""
    halves = np.arange(1, 200) / 32
    values = np.concatenate([np.linspace(-7.0, 7.0, 9_999), halves, np.nextafter(halves, 0.0), [1e-300, 5e-324, 1e300]])
    expected = np.array([erf(value) for value in values.tolist()])
    assert np.all(np.abs(error_function(values) - expected) <= 2.0 * np.spacing(np.abs(expected)))
    assert error_function(np.array([6.0, np.inf, -np.inf])).tolist() == [1.0, 1.0, -1.0]


@given(st.lists(st.floats(-8.0, 8.0), min_size=1, max_size=40))
def test_a_value_does_not_depend_on_the_others(values: list[float]) -> None:
    """So tables of any number of steps have the same bits."""
    alone = [error_function(np.array([value])).item() for value in values]
    together = error_function(np.array([values, values]))
    assert together.tobytes() == np.array([alone, alone]).tobytes()
