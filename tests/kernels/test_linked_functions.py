"""Functions that are linked into compiled functions have no machine code; the results are those of Python."""

from typing import Any

import numba
import numpy as np
import pytest

from heatsim.kernels.cpu.linked_functions import linked


@linked(nogil=True)
def scaled(values: Any, factor: Any, i: int) -> Any:
    return factor * values[i]


@linked(nogil=True)
def add_scaled(values: Any, factor: Any, out: Any) -> None:
    for i in range(len(values)):
        out[i] += scaled(values, factor, i)


def add_twice(values: Any, out: Any) -> None:
    add_scaled(values, values[0], out)
    add_scaled(values, 2, out)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_linked_functions_are_compiled_into_their_callers(precision: str) -> None:
    """Two levels deep, for two types of an argument."""
    values, out, expected = np.arange(1.0, 40.0, dtype=precision), np.zeros(39, precision), np.zeros(39, precision)
    numba.njit(nogil=True)(add_twice)(values, out)
    for i, value in enumerate(values):
        expected[i] += values[0] * value
        expected[i] += 2 * value
    np.testing.assert_array_equal(out, expected)


def test_python_cannot_call_a_linked_function() -> None:
    with pytest.raises((TypeError, KeyError)):
        scaled(np.ones(1), 2.0, 0)
