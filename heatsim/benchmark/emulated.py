"""The primers on a computer without a GPU: whether they are right, without speeds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.benchmark.primers import PrimerResult, shape_of, some_values
from heatsim.kernels.emulation import machine
from heatsim.kernels.emulation.machine import Order, guarded
from heatsim.kernels.emulation.verdict import fault
from heatsim.kernels.primers.primers import PRIMERS, Primer, PrimerKernel


@dataclass(frozen=True)
class PrimerEmulation:
    """The kernels of one primer in one precision, compiled by g++ and executed one thread after the other.

    Attributes:
        precision: "float32" or "float64".
        primer: its name.
        shape: of its array.
        kernels: one result per kernel, without times.
    """

    precision: str
    primer: str
    shape: tuple[int, ...]
    kernels: tuple[PrimerResult, ...]


def emulate_primers(edge: int, precision: str, say: Callable[[str], None]) -> list[PrimerEmulation]:
    """Compare the kernels of all primers with NumPy, threads in two orders.

    Args:
        edge: pixels along either axis of the image; the line has as many values as the image.
        precision: "float32" or "float64".
        say: called with a text before each part of the work.

    Raises:
        DeviceError: there is no g++.
    """
    found = []
    for primer in PRIMERS:
        values, results = some_values(shape_of(primer, edge), precision), []
        for kernel in primer.kernels:
            say(f"{kernel.name}, {precision}: compiling and executing")
            error = fault(partial(_launch, primer, kernel, values), primer.oracle(values))
            results.append(PrimerResult(kernel.name, kernel.idea, error=error))
        found.append(PrimerEmulation(precision, primer.name, values.shape, tuple(results)))
    return found


def _launch(primer: Primer, kernel: PrimerKernel, values: NDArray[Any], order: Order) -> NDArray[Any]:
    """The output of a kernel, with NaN where it wrote nothing.

    Raises:
        KernelError: it would hang on a GPU, or it writes outside its array.
    """
    target = guarded(np.full_like(values, np.nan))
    _, launch = primer.launcher(kernel, guarded(values).array, target.array, partial(machine.function, order=order))
    launch()
    target.assert_guards_untouched()
    return target.array
