"""Operations on rows of cells for the CPU kernels: sums over neighbours, faces.

The functions do for a row what stencil.cuh does for a cell, without fastmath and fma, so that results have the same
bits as the NumPy oracle. Arrays are pointers (plan.py). A row begins at ``here`` in T, the values before the step, and
at ``new`` in the array of new values. Loop indices are unsigned: the compiler does not vectorise loops whose index may
be negative.
"""

import operator
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic as _intrinsic

from heatsim.kernels.cpu.linked_functions import linked

SEVEN_TERM = 0  # as in stencil.cuh

# The functions allocate nothing, so reference counting (nrt), which would cost atomic operations at each call, is off.
# NumPy's error model needs no check for division by zero.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
compiled: Any = linked(**OPTIONS)
intrinsic: Any = _intrinsic


@intrinsic
def whole_vectors(typing_context: Any) -> Any:
    """Let the loops of the calling function use 64-byte vectors if the CPU has them: LLVM prefers 32 bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # llvmlite rejects attributes that it does not know, so this adds it directly; LLVM knows it.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


def _choosing(compare: Any) -> Any:
    """A compiled function for one of two numbers. numba compiles functions for ``max`` and ``min`` by themselves."""

    @intrinsic
    def chosen(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            result, kinds = signature.return_type, signature.args
            first, second = (context.cast(builder, *each, result) for each in zip(arguments, kinds, strict=True))
            holds = context.get_function(compare, types.boolean(result, result))(builder, (second, first))
            return builder.select(holds, second, first)

        return typing_context.unify_types(a, b)(a, b), generate

    return chosen


larger, smaller = _choosing(operator.gt), _choosing(operator.lt)


@compiled
def wrap(i: int, n: int) -> int:
    """Position i of a periodic axis of n cells, wrapped into 0 … n − 1."""
    return i if 0 <= i < n else i % n


@compiled
def sum_seven_term(c: Any, T: Any, around: Any, stride: int, T_new: Any, new: int, new_stride: int, runs: Any) -> None:
    """c5·T(z−) + c0·T + c1·T(x−) + … + c4·T(y+) + c6·T(z+), in this order.

    Args:
        c: c0…c6.
        T: the array of values.
        around: indices of the first cell's neighbours in z− and y−, of the cell, and of its neighbours in y+ and z+.
        stride: cells from one run to the next in T.
        T_new: the array for the sums.
        new: index of the first sum.
        new_stride: cells from one run to the next in T_new.
        runs: number of runs, and their length in cells.
    """
    whole_vectors()
    below, south_of, here, north_of, above = around
    c0, c1, c2, c3, c4, c5, c6 = c[0], c[1], c[2], c[3], c[4], c[5], c[6]
    for run in range(runs[0]):
        at, out = run * stride, np.uint64(new + run * new_stride)
        i, west, east = np.uint64(here + at), np.uint64(here + at - 1), np.uint64(here + at + 1)
        south, north = np.uint64(south_of + at), np.uint64(north_of + at)
        down, up = np.uint64(below + at), np.uint64(above + at)
        for x in range(np.uint64(runs[1])):
            T_new[out + x] = (
                c5 * T[down + x]
                + c0 * T[i + x]
                + c1 * T[west + x]
                + c2 * T[east + x]
                + c3 * T[south + x]
                + c4 * T[north + x]
                + c6 * T[up + x]
            )


@compiled
def sum_increments(c: Any, T: Any, around: Any, stride: int, T_new: Any, new: int, new_stride: int, runs: Any) -> None:
    """c1·(T(x−) − T) + … + c6·(T(z+) − T); arguments as for :func:`sum_seven_term`."""
    whole_vectors()
    below, south_of, here, north_of, above = around
    c1, c2, c3, c4, c5, c6 = c[1], c[2], c[3], c[4], c[5], c[6]
    for run in range(runs[0]):
        at, out = run * stride, np.uint64(new + run * new_stride)
        i, west, east = np.uint64(here + at), np.uint64(here + at - 1), np.uint64(here + at + 1)
        south, north = np.uint64(south_of + at), np.uint64(north_of + at)
        down, up = np.uint64(below + at), np.uint64(above + at)
        for x in range(np.uint64(runs[1])):
            centre = T[i + x]
            T_new[out + x] = (
                c1 * (T[west + x] - centre)
                + c2 * (T[east + x] - centre)
                + c3 * (T[south + x] - centre)
                + c4 * (T[north + x] - centre)
                + c5 * (T[down + x] - centre)
                + c6 * (T[up + x] - centre)
            )


@compiled
def add_face_column(
    f: Any, g: Any, T: Any, here: int, stride: int, total: Any, new: int, new_stride: int, n: int
) -> None:
    """Add a face across x: one cell per row for n rows, the first at ``here``."""
    for row in range(n):
        total[np.uint64(new + row * new_stride)] += f - g * T[np.uint64(here + row * stride)]


@compiled
def add_face_row(
    f: Any, g: Any, T: Any, here: int, total: Any, new: int, n: int, sums: Any, first: int, recorded: bool
) -> None:
    """Add a face that contains all n cells of a row; if ``recorded``, also to the face's sums from ``first`` on."""
    i, out = np.uint64(here), np.uint64(new)
    for x in range(np.uint64(n)):
        total[out + x] += f - g * T[i + x]
    if recorded:
        first_sum = np.uint64(first)
        for x in range(np.uint64(n)):
            sums[first_sum + x] += f - g * T[i + x]


@compiled
def add_increments(T: Any, here: int, total: Any, new: int, n: int) -> None:
    """Set total = T + total in a row."""
    whole_vectors()
    i, out = np.uint64(here), np.uint64(new)
    for x in range(np.uint64(n)):
        total[out + x] = T[i + x] + total[out + x]


@compiled
def add_constant(value: Any, total: Any, new: int, n: int) -> None:
    """Set total = value + total in a row."""
    whole_vectors()
    out = np.uint64(new)
    for x in range(np.uint64(n)):
        total[out + x] = value + total[out + x]


@compiled
def add_scaled(base: Any, here: int, factor: Any, total: Any, at: int, T_new: Any, new: int, n: int) -> None:
    """Set T_new = base + factor·total in a row."""
    whole_vectors()
    i, j, out = np.uint64(here), np.uint64(at), np.uint64(new)
    for x in range(np.uint64(n)):
        T_new[out + x] = factor * total[j + x] + base[i + x]


@compiled
def scale(factor: Any, total: Any, at: int, T_new: Any, new: int, n: int) -> None:
    """Set T_new = 0 + factor·total in a row."""
    whole_vectors()
    j, out, zero = np.uint64(at), np.uint64(new), factor - factor
    for x in range(np.uint64(n)):
        T_new[out + x] = factor * total[j + x] + zero


@compiled
def copy_row(source: Any, start: int, target: Any, new: int, n: int) -> None:
    """Copy n cells from one array to the other."""
    i, out = np.uint64(start), np.uint64(new)
    for x in range(np.uint64(n)):
        target[out + x] = source[i + x]
