"""Sweeps of an ensemble on a GPU: the same launches step fields on equal grids, each with its own coefficients.

A table on the device has one row (struct Member) per member: its two buffers, coefficients, ledger, and number of
sweeps to do. A launch has blocks for all members that still have sweeps to do. Members may do different numbers of
sweeps; those with the most come first, so that the active members are always the first rows:

        sweep        0   1   2   3   4   5   6
        row 0        x   x   x   x   x   x   x
        row 1        x   x   x   x   x
        row 2        x   x   x                      launches of 3, 3, 3, 2, 2, 1, 1 members

If all members together are small, sweeps are recorded as CUDA graphs (see :mod:`heatsim.kernels.cuda_graphs`). Each
recorded launch has a fixed number; the number of sweeps done before the graph is read from device memory.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import compilation, cuda_graphs, launch, structs
from heatsim.kernels.compilation import Build
from heatsim.kernels.composite.arrays import SweepTable
from heatsim.kernels.launch import CudaKernel, Launch

# Launches are made for these numbers of members times powers of two, and for smaller numbers. Blocks of members without
# work end at once.
_EIGHTHS = (8, 9, 10, 11, 12, 13, 14, 15)
_ITEM = np.dtype(np.uint32).itemsize


@dataclass(frozen=True)
class MemberSteps:
    """The next steps of a member.

    Attributes:
        T: its field, a device array.
        T_new: the buffer that the first sweep writes.
        coefficients: struct Coefficients.
        ledger: struct Ledger.
        sweeps: struct StepData of each step, on the host; a single one if all are equal.
        steps: number of steps.
    """

    T: Any
    T_new: Any
    coefficients: NDArray[Any]
    ledger: NDArray[Any]
    sweeps: NDArray[Any]
    steps: int


def row(member: MemberSteps, odd: bool, sweeps: int, count: int, stride: int) -> tuple[Any, ...]:
    """Struct Member for the next steps of a member.

    Args:
        member: its next steps.
        odd: whether the field is now in the second buffer.
        sweeps: device address of the first struct StepData.
        count: sweeps to do.
        stride: entries of the StepData array from one sweep to the next; 0 if all are equal.
    """
    buffers = (member.T.data.ptr, member.T_new.data.ptr)
    c, ledger = member.coefficients["c"], member.ledger
    return (buffers[::-1] if odd else buffers, sweeps, ledger, c, count, stride)


def padded(members: int, most: int) -> int:
    """The number of members to launch for: ``members`` rounded up, at most ``most``, so that few launches differ."""
    if members <= _EIGHTHS[-1]:
        return members
    eighth = 1 << (members.bit_length() - 4)
    return min(ceil(members / eighth) * eighth, most)


class EnsembleLaunches:
    """Queues the sweeps of an ensemble.

    Args:
        device: a GPU.
        builds: builds for ensembles, as from :func:`fitting.builds`: the one with most steps per sweep comes first.
        grid, periodic: the grid of each member.
        planes: planes that a block of the first build marches through; None for the depth of its tile.
        members: the largest number of members.
        recorded: whether ledgers record the heat.
    """

    def __init__(
        self,
        device: Device,
        builds: Sequence[compilation.Build],
        grid: Grid,
        periodic: tuple[bool, bool, bool],
        planes: int | None,
        members: int,
        recorded: bool,
    ) -> None:
        self._device = device
        self._grid = grid
        self._periodic = periodic
        self._members = members
        self._recorded = recorded
        self._kernels = [launch.compile_kernel(build) for build in builds]
        # `planes` is for the first build, which does nearly all steps.
        self._planes = [planes, *(None for _ in builds[1:])]
        self._launches: dict[tuple[int, int], list[Launch]] = {}
        self._graphs: dict[tuple[int, int, int], Any] = {}
        self._wanted: set[tuple[int, int, int]] = set()
        xp, row = device.xp, structs.member_dtype(builds[0].precision)
        self._table: Any = xp.zeros(members * row.itemsize, dtype=np.uint8)
        self._done: Any = xp.zeros(1, dtype=np.uint32)
        self._numbers: Any = xp.zeros(1, dtype=np.uint32)

    def advance(self, members: Sequence[MemberSteps]) -> list[tuple[Any, Any]]:
        """Queue the steps of all members.

        Returns:
            For each member the buffer that will hold its field, and the other one.
        """
        steps = np.array([member.steps for member in members])
        longest = max(kernel.build.spec.steps for kernel in self._kernels)
        alike = np.array([len(member.sweeps) < member.steps for member in members])
        tables = [
            np.repeat(member.sweeps, longest) if same else member.sweeps
            for member, same in zip(members, alike, strict=True)
        ]
        # As bytes: NumPy takes 10 us to join structs.
        table = self._device.xp.asarray(np.concatenate([sweeps.view(np.uint8) for sweeps in tables]))
        itemsize = self._kernels[0].build.sweep_dtype.itemsize
        addresses = int(table.data.ptr) + itemsize * np.cumsum([0, *(len(sweeps) for sweeps in tables[:-1])])
        steps_done, swept = np.zeros(len(members), dtype=np.int64), np.zeros(len(members), dtype=np.int64)
        for number, kernel in enumerate(self._kernels):
            reach = kernel.build.spec.steps
            counts = (steps - steps_done) // reach
            order = np.argsort(-counts, kind="stable")
            firsts = addresses + itemsize * np.where(alike, 0, steps_done)
            self._fill(
                row(members[i], bool(swept[i] % 2), int(firsts[i]), int(counts[i]), 0 if alike[i] else reach)
                for i in order
            )
            self._queue(number, counts[order])
            steps_done += counts * reach
            swept += counts
        # Queued work still reads the table. The pool reuses its memory only for work queued later on the same stream.
        return [
            (member.T_new, member.T) if odd else (member.T, member.T_new)
            for member, odd in zip(members, swept % 2, strict=True)
        ]

    def _fill(self, members: Iterable[tuple[Any, ...]]) -> None:
        """Write the table of members; the remaining rows are empty."""
        table = np.zeros(self._members, structs.member_dtype(self._kernels[0].build.precision))
        for number, member in enumerate(members):
            table[number] = member
        self._table.set(table.view(np.uint8))

    def _queue(self, kernel: int, counts: NDArray[np.int64]) -> None:
        """Queue the sweeps of one kernel; ``counts`` of the rows are in descending order."""
        first, last = 0, int(counts[0])
        if self._numbers.size <= last:
            self._numbers = self._device.xp.asarray(np.arange(2 * last + 1, dtype=np.uint32))
        self._set_done(0)
        while first < last:
            members = padded(int(np.count_nonzero(counts > first)), self._members)
            count = self._run(members, last - first)
            graph = self._graph(kernel, members, count) if count > 1 else None
            if graph is not None:
                self._set_done(first)
                graph.launch()
                self._set_done(0)
            else:
                self._sweep(kernel, members, range(first, first + count))
            first += count

    def _run(self, members: int, left: int) -> int:
        """Number of sweeps to record in one graph; 1 if each is launched separately."""
        if members * self._grid.cell_count > cuda_graphs.LARGEST_GRID:
            return 1
        return next((count for count in cuda_graphs.RUNS if count <= left), 1)

    def _sweep(self, kernel: int, members: int, numbers: range) -> None:
        for number in numbers:
            self._kernels[kernel].step_members(self._covering(kernel, members), self._table, self._done, number)

    def _covering(self, kernel: int, members: int) -> list[Launch]:
        if (kernel, members) not in self._launches:
            self._launches[kernel, members] = launch.launches(
                self._kernels[kernel].build,
                self._grid,
                self._periodic,
                self._device.multiprocessors(),
                self._planes[kernel],
                self._recorded,
                members,
            )
        return self._launches[kernel, members]

    def _graph(self, kernel: int, members: int, count: int) -> Any:
        """A graph of ``count`` sweeps from any sweep on, recorded at the second request; None at the first."""
        key = (kernel, members, count)
        if key not in self._wanted:
            self._wanted.add(key)
            return None
        if key not in self._graphs:
            self._graphs[key] = cuda_graphs.record(self._device, lambda: self._sweep(kernel, members, range(count)))
        return self._graphs[key]

    def _set_done(self, sweeps: int) -> None:
        self._done.data.copy_from_device_async(self._numbers[sweeps : sweeps + 1].data, _ITEM)


def trial(
    kernel: CudaKernel, launches: Sequence[Launch], device: Device, members: Sequence[MemberSteps]
) -> Callable[[], None]:
    """A function that queues one sweep of every member, always the same one: it reads T and writes T_new."""
    build = kernel.build
    sweeps = device.xp.zeros(build.spec.steps * build.sweep_dtype.itemsize, dtype=np.uint8)
    rows = np.array(
        [row(member, False, int(sweeps.data.ptr), 1, 0) for member in members], structs.member_dtype(build.precision)
    )
    table = device.xp.asarray(rows.view(np.uint8))
    done = device.xp.zeros(1, dtype=np.uint32)
    # The function keeps the arrays alive that the table points to.
    return partial(_sweep_once, kernel, launches, table, done, sweeps)


def _sweep_once(kernel: CudaKernel, launches: Sequence[Launch], table: Any, done: Any, sweeps: Any) -> None:
    kernel.step_members(launches, table, done, 0)


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
