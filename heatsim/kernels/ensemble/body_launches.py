"""Step several composite bodies on equal grids with one launch of 10_bricked.cu.

A launch has blocks for some members; the blocks of a member hold the bricks of its grid. It does all steps until the
next row:

        multiprocessor   0   1   2   3   4   5   6   7
        first launch     member 0| member 1| member 2| member 3
        second launch    member 4| member 5| member 6| member 7

Members may differ in bodies, conditions, dt and number of steps. A table on the device has a struct Member for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import launch, structs
from heatsim.kernels.compilation import Build
from heatsim.kernels.composite.arrays import SweepTable


@dataclass(frozen=True)
class BodySteps:
    """The next steps of a composite body.

    Attributes:
        T: its field, a device array.
        T_new: the other buffer.
        coefficients: struct Coefficients.
        ledger: struct Ledger.
        table: struct StepData of each step on the device; it may contain more steps than these.
        some: the part of the table with these steps.
    """

    T: Any
    T_new: Any
    coefficients: NDArray[Any]
    ledger: NDArray[Any]
    table: SweepTable
    some: slice

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.some.stop - self.some.start)


class BodyLaunches:
    """Queues the steps of composite bodies.

    Args:
        device: a GPU.
        build: the build of 10_bricked.cu for ensembles.
        grid, periodic: the grid of each member.
        together: the largest number of members of a launch.
        members: the number of members.
    """

    def __init__(
        self,
        device: Device,
        build: Build,
        grid: Grid,
        periodic: tuple[bool, bool, bool],
        together: int,
        members: int,
    ) -> None:
        self._device = device
        self._together = together
        self._members = members
        self._kernel = launch.compile_kernel(build)
        (self._launch,) = launch.launches(build, grid, periodic, members=together)
        self._table: NDArray[Any] | None = None
        self._written: dict[int, tuple[Any, Any]] = {}

    def advance(self, members: Mapping[int, BodySteps]) -> dict[int, tuple[Any, Any]]:
        """Queue the steps of some members, by their numbers.

        Returns:
            For each member the buffer that will hold its field, and the other buffer.
        """
        table = self._filled(members)
        on_device = self._device.xp.asarray(table.view(np.uint8))
        for first in range(0, self._members, self._together):
            some = table[first : first + self._together]
            if some["count"].any():
                self._kernel.do_members(self._launch, on_device, first, len(some))
        # Queued work still reads the table. The pool reuses its memory only for work queued later on the same stream.
        return {number: (own.T_new, own.T) if own.steps % 2 else (own.T, own.T_new) for number, own in members.items()}

    def _filled(self, members: Mapping[int, BodySteps]) -> NDArray[Any]:
        """Struct Member of all members; those without steps have the count 0."""
        if self._table is None:
            dtype = structs.general_member_dtype(next(iter(members.values())).coefficients.dtype)
            self._table = np.zeros(self._members, dtype)
        table = self._table
        table["count"] = 0
        numbers = list(members)
        table["field"][numbers] = [(own.T.data.ptr, own.T_new.data.ptr) for own in members.values()]
        table["sweeps"][numbers] = [own.table.address(own.some.start) for own in members.values()]
        table["count"][numbers] = [own.steps for own in members.values()]
        for number, own in members.items():
            # Coefficients change with dt. Writing them takes NumPy 5 µs, so they are written only then.
            c, ledger = self._written.get(number, (None, None))
            if c is not own.coefficients or ledger is not own.ledger:
                table["c"][number], table["ledger"][number] = own.coefficients, own.ledger
                self._written[number] = own.coefficients, own.ledger
        return table
