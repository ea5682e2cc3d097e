"""Functions that are linked into compiled functions have no machine code; the results are those of Python."""

import os
import subprocess
import sys
from pathlib import Path
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


def test_names_of_linked_functions_are_those_of_one_process() -> None:
    """numba numbers functions and types of records in each process; cached code of two processes meets in a third."""
    numba.njit(nogil=True)(add_twice)(np.ones(2), np.ones(2))
    here = {found.fndesc.mangled_name for found in scaled.overloads.values()}
    code = "from test_linked_functions import *; numba.njit(nogil=True)(add_twice)(np.ones(2), np.ones(2)); "
    code += "print(*(found.fndesc.mangled_name for found in scaled.overloads.values()))"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    there = set(result.stdout.split())
    assert len(there) == 2
    assert len(here) >= 2
    assert not here & there


def test_python_cannot_call_a_linked_function() -> None:
    with pytest.raises((TypeError, KeyError)):
        scaled(np.ones(1), 2.0, 0)
