"""Whether an emulated kernel is right, in words: its values, and whether they depend on the order of the threads."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.counts import counted
from heatsim.kernels.emulation.machine import KernelError, Order

ORDERS: tuple[Order, ...] = ("forward", "reverse")


def fault(run: Callable[[Order], NDArray[Any]], expected: NDArray[Any]) -> str | None:
    """What is wrong with a kernel; None if it gives the expected bits in both orders.

    Between two barriers each pair of threads runs in both orders. So a value shows whether one thread reads what the
    other writes. A lost update, where both read before they write, does not show.

    Args:
        run: launches the kernel on its input with threads in an order, and returns its output, which was filled with
            ``np.nan`` before.
        expected: the right output, without NaN.
    """
    try:
        forward, reverse = (run(order) for order in ORDERS)
    except KernelError as error:
        return str(error)
    if (moved := _differ(forward, reverse)).any():
        return (
            f"{counted(int(moved.sum()), 'value')} of {moved.size:,} depend on the order of the threads, the first at "
            f"{_place(moved)}: {_value(forward, moved)} forward, {_value(reverse, moved)} in reverse, "
            f"{_value(expected, moved)} is right; two threads use the same value without a barrier between them"
        )
    if (wrong := _differ(forward, expected)).any():
        return (
            f"{counted(int(wrong.sum()), 'value')} of {wrong.size:,} are wrong, the first at {_place(wrong)}: "
            f"{_value(forward, wrong)} instead of {_value(expected, wrong)}{_why(forward, wrong)}"
        )
    return None


def _why(values: NDArray[Any], wrong: NDArray[np.bool_]) -> str:
    """Where a NaN comes from: shared memory and all that is outside arrays has other bits than ``np.nan``."""
    at = np.unravel_index(int(wrong.argmax()), wrong.shape)
    if not np.isnan(values[at]):
        return ""
    if values[at].tobytes() == values.dtype.type(np.nan).tobytes():
        return ": no thread wrote this value"
    return ": it comes from shared memory that no thread had written (is a barrier missing?), or from outside an array"


def _differ(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Where the bits of two arrays differ."""
    bits = np.dtype(f"u{one.itemsize}")
    return np.asarray(one.view(bits) != other.view(bits))


def _place(where: NDArray[np.bool_]) -> str:
    """The first place, in the order of memory."""
    index = np.unravel_index(int(where.argmax()), where.shape)
    return ", ".join(f"{axis} = {at}" for axis, at in zip("xyz", reversed(index), strict=False))


def _value(values: NDArray[Any], where: NDArray[np.bool_]) -> str:
    """The value there."""
    return str(values[np.unravel_index(int(where.argmax()), where.shape)])
