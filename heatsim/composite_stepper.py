"""Advance the field of a composite body by whole steps."""

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.field import Field
from heatsim.kernels import launch
from heatsim.kernels.catalog import SINGLE_STEP, KernelSpec
from heatsim.kernels.composite import CompositeArrays, ledger_struct, make_tables
from heatsim.kernels.cpu_composite import COMPOSITE_KERNELS, Entries, Row, Tables
from heatsim.kernels.replay import Replay, Sweeps
from heatsim.ledger import Ledger
from heatsim.physics.body import Body, Rows
from heatsim.physics.problem import HeatProblem

# Steps whose rows are made and sent to the device together, and the bytes that these may take.
_STEPS_PER_TABLE = 16_384
_BYTES_PER_TABLE = 2**24


class CompositeStepping:
    """Steps of one composite body on one field with one kernel.

    Attributes:
        spec: the kernel; of those that do several steps a sweep none knows composite bodies, single steps do it all.
    """

    def __init__(
        self,
        problem: HeatProblem,
        body: Body,
        field: Field,
        ledger: Ledger,
        spec: KernelSpec,
        arrays: CompositeArrays | None = None,
    ) -> None:
        self._problem = problem
        self._body = body
        self._field = field
        self.spec = SINGLE_STEP if spec.steps > 1 else spec
        self._arrays = arrays or composite_arrays(problem, body, field)
        self._entries = Entries(ledger.faces, ledger.beams, ledger.exposed)
        self._tables: dict[float, Tables] = {}
        self._coefficients: dict[float, tuple[NDArray[Any], tuple[Any, ...]]] = {}

    @property
    def steps_per_table(self) -> int:
        """How many steps :meth:`advance` may be asked for at a time."""
        body, itemsize = self._body, np.dtype(self._problem.precision).itemsize
        row = launch.GENERAL_SWEEP.itemsize + body.sources.beam_bytes(itemsize)
        row += 6 * itemsize * len(body.conditions.conditions) * (not body.conditions.constant)
        row += itemsize * len(body.medium.kinds) * (not body.sources.heat_constant)
        return max(1, min(_STEPS_PER_TABLE, _BYTES_PER_TABLE // row))

    def prepare(self) -> None:
        """Compile the kernel."""
        if self.spec.backend == "cuda":
            _ = self._compiled
        elif self.spec.name == "numba" and self._problem.timeline.last_step > 0:
            self._rehearse()

    def advance(self, first: int, until: int) -> None:
        """Do steps ``first`` … ``until`` − 1, all of one interval between due times.

        Raises:
            ScenarioError: a condition or source at one of the steps cannot be used.
        """
        timeline = self._problem.timeline
        dt = float(timeline.dts[timeline.interval(first)])
        rows = self._body.rows(timeline.step_times(first, until), dt, self._field.reference)
        if dt not in self._tables:
            c = self._problem.coefficients[dt].c
            self._tables[dt] = make_tables(self._body.medium, c, dt, self._problem.precision)
        if self.spec.backend == "cuda":
            self._advance_cuda(first, until, dt, rows)
        else:
            self._advance_cpu(first, until, dt, rows)

    @cached_property
    def _compiled(self) -> list[tuple[int, launch.CudaKernel, list[launch.Launch]]]:
        """Steps a sweep, kernel and launches, the one that does most at a time first."""
        problem, device = self._problem, self._field.device
        builds = launch.builds(
            self.spec,
            problem.precision,
            problem.scheme,
            problem.grid,
            problem.periodic,
            device.block_memory(),
            faces=True,
            materials=not self._body.medium.uniform,
            varying=self._body.medium.varies,
        )
        return [
            (
                build.spec.steps,
                launch.compile_kernel(build),
                launch.launches(build, problem.grid, problem.periodic, device.multiprocessors()),
            )
            for build in builds
        ]

    @cached_property
    def _replay(self) -> Replay:
        return Replay(self._field.device, self._problem.grid.cell_count)

    def _advance_cuda(self, first: int, until: int, dt: float, rows: Rows) -> None:
        field = self._field
        if dt not in self._coefficients:
            self._coefficients[dt] = self._arrays.coefficients(self._tables[dt], len(rows.beams))
        coefficients, _ = self._coefficients[dt]
        sweeps = self._arrays.sweeps(rows, first, until - first)
        ledger = ledger_struct(self._entries)
        itemsize, step = launch.GENERAL_SWEEP.itemsize, first
        for reach, kernel, launches in self._compiled:
            steps = (until - step) // reach * reach
            part = sweeps.table[(step - first) * itemsize : (step - first + steps) * itemsize]
            run = Sweeps(kernel, launches, coefficients, ledger)
            field.deviation, field.spare = self._replay.advance(run, field.deviation, field.spare, part)
            step += steps

    def _rehearse(self) -> None:
        """Have numba compile by the first step, which ends in the spare buffer and in sums that nobody looks at."""
        ledger = self._entries
        faces, beams = ([np.zeros_like(sums) for sums in of_faces] for of_faces in (ledger.faces, ledger.beams))
        stand_in = copy(self)
        stand_in._field = copy(self._field)
        stand_in._entries = Entries(faces, beams, np.zeros_like(ledger.exposed))
        stand_in.advance(0, 1)

    def _advance_cpu(self, first: int, until: int, dt: float, rows: Rows) -> None:
        problem, field, arrays = self._problem, self._field, self._arrays
        kernel, tables = COMPOSITE_KERNELS[self.spec.name], self._tables[dt]
        changing = max(len(rows.conditions), len(rows.heat), *(len(beam.first) for beam in rows.beams), 1) > 1
        row: Row | None = None
        for step in range(first, until):
            if row is None or changing:
                row = arrays.row(rows, step - first, problem.grid)
            number = step & 0xFFFFFFFF
            kernel(
                *(field.deviation, field.spare, problem.periodic, arrays.body, tables, row),
                *(number, self._entries, problem.scheme),
            )
            field.swap()


def composite_arrays(problem: HeatProblem, body: Body, field: Field) -> CompositeArrays:
    """The body's arrays on the field's device."""
    return CompositeArrays(
        field.device, body.medium, body.conditions.maps, body.conditions.void, field.reference, problem.precision
    )
