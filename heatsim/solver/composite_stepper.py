"""Advance the field of a composite body by whole steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import autotune, launch, structs
from heatsim.kernels.autotune import Choice, Shape
from heatsim.kernels.catalog import SINGLE_STEP, KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays, ledger_struct, make_tables
from heatsim.kernels.cpu.composite_oracle import COMPOSITE_KERNELS, Entries, Row, Tables
from heatsim.kernels.cuda_graphs import Replay, Sweeps
from heatsim.kernels.temporal_composite import correction
from heatsim.physics.body import Body, Rows
from heatsim.physics.problem import HeatProblem
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.field import Field

# Steps whose rows are made and sent to the device together, and the bytes that these may take.
_STEPS_PER_TABLE = 16_384
_BYTES_PER_TABLE = 2**24
_TRIAL_STEPS = 16

# Steps a sweep, the kernel, its launches.
Compiled = tuple[int, launch.CudaKernel, list[launch.Launch]]


class CompositeStepping:
    """Steps of one composite body on one field with one kernel.

    A pipeline of several steps a sweep is mended at interfaces and faces; where these are too much of the body, and for
    kernels that do not know composite bodies, single steps do it all, to the same bits.
    """

    def __init__(
        self,
        problem: HeatProblem,
        body: Body,
        field: Field,
        ledger: Ledger,
        spec: KernelSpec,
        arrays: CompositeArrays | None = None,
        tuned: bool = False,
    ) -> None:
        """Compile nothing yet.

        Args:
            problem: coefficients and times.
            body: what the cells are made of, conditions and sources.
            field: what is advanced.
            ledger: what heat is entered into.
            spec: the kernel.
            arrays: the body's on the field's device; made where they are not given.
            tuned: on a GPU, take what is faster, whatever ``spec`` says: several steps a sweep are tried out on large
                grids, if there are enough steps for that.
        """
        self._problem = problem
        self._body = body
        self._field = field
        cells, steps = problem.grid.cell_count, problem.timeline.last_step
        worth_trying = cells >= autotune.LARGE_GRID and autotune.is_worth_trying(cells, steps)
        self._spec = SINGLE_STEP if tuned and spec.backend == "cuda" and not worth_trying else spec
        self._tuned, self._tried = tuned, False
        self._arrays = arrays or composite_arrays(problem, body, field)
        self._entries = Entries(ledger.faces, ledger.beams, ledger.exposed)
        self._tables: dict[float, Tables] = {}
        self._coefficients: dict[float, tuple[NDArray[Any], tuple[Any, ...]]] = {}

    @property
    def choice(self) -> Choice:
        """The kernel that does nearly all steps."""
        if self._spec.backend == "cpu":
            return Choice(Shape(self._spec), "by rule")
        spec = self._compiled[0][1].build.spec
        return Choice(Shape(spec), "tried" if self._tried else "by rule")

    @property
    def steps_per_table(self) -> int:
        """How many steps :meth:`advance` may be asked for at a time."""
        body, itemsize = self._body, np.dtype(self._problem.precision).itemsize
        row = structs.GENERAL_SWEEP.itemsize + body.sources.beam_bytes(itemsize)
        row += 6 * itemsize * len(body.conditions.conditions) * (not body.conditions.constant)
        row += itemsize * len(body.medium.kinds) * (not body.sources.heat_constant)
        return max(1, min(_STEPS_PER_TABLE, _BYTES_PER_TABLE // row))

    def prepare(self) -> None:
        """Compile the kernel."""
        if self._spec.backend == "cuda":
            _ = self._compiled
        elif self._spec.name == "numba" and self._problem.timeline.last_step > 0:
            self._rehearse()

    def advance(self, first: int, until: int) -> None:
        """Do steps ``first`` … ``until`` − 1, all of one interval between due times.

        Raises:
            ScenarioError: a condition or source at one of the steps cannot be used.
        """
        timeline = self._problem.timeline
        dt = float(timeline.dts[timeline.interval(first)])
        rows = self._body.rows(timeline.step_times(first, until), dt, self._field.reference)
        if self._spec.backend == "cuda":
            self._advance_cuda(first, until, dt, rows)
        else:
            self._advance_cpu(first, until, dt, rows)

    @cached_property
    def _compiled(self) -> list[Compiled]:
        """What does the steps, the one that does most at a time first."""
        problem, device = self._problem, self._field.device
        *several, single = launch.builds(
            self._spec,
            problem.precision,
            problem.scheme,
            problem.grid,
            problem.periodic,
            device.block_memory(),
            faces=True,
            materials=not self._body.medium.uniform,
            varying=self._body.medium.varies,
            heated=self._body.medium.first_heated < len(self._body.medium.kinds),
            contacts=self._arrays.body.contacts,
        )
        one = self._with_launches(launch.compile_kernel(single))
        for build in several:
            mended = self._mended(build, device.block_memory())
            if mended is not None and (not self._tuned or self._is_faster(mended, one)):
                return [mended, one]
        return [one]

    def _mended(self, build: launch.Build, block_memory: int) -> Compiled | None:
        """A pipeline that is mended where it is wrong; None where that takes too long."""
        problem, processors = self._problem, self._field.device.multiprocessors()
        faces = self._arrays.open_faces
        boxes = correction.boxes(build, self._body.medium, problem.periodic, faces, block_memory, processors)
        if boxes is None:
            return None
        kernel, mender = launch.compile_kernel(build), launch.compile_kernel(correction.mender(build, block_memory))
        return self._with_launches(correction.MendedKernel(build, kernel.function, kernel.xp, mender, boxes))

    def _with_launches(self, kernel: launch.CudaKernel) -> Compiled:
        problem, processors = self._problem, self._field.device.multiprocessors()
        launches = launch.launches(kernel.build, problem.grid, problem.periodic, processors)
        return kernel.build.spec.steps, kernel, launches

    def _is_faster(self, several: Compiled, one: Compiled) -> bool:
        """Whether several steps a sweep give the same bits and take less time each, tried out here and now.

        The spare buffer is written to, no heat is entered. What does not run, for want of memory too, is not faster.
        """
        self._tried = True
        with suppress(Exception):
            return self._equal_bits(several, one) and self._seconds_a_step(several) < self._seconds_a_step(one)
        return False

    def _equal_bits(self, several: Compiled, one: Compiled) -> bool:
        """Whether one sweep of several steps makes of a rugged field what as many sweeps of one step do."""
        (steps, kernel, launches), (_, single, single_launches) = several, one
        xp, spare = self._field.device.xp, self._field.spare
        # Neighbours differ by up to 20 K, everywhere in another way.
        waves = (10.0 * np.sin(np.arange(n) ** 2.0) for n in spare.shape)
        z, y, x = (xp.asarray(wave.astype(self._problem.precision)) for wave in waves)
        rugged, other = xp.empty_like(spare), xp.empty_like(spare)
        xp.add((y[:, None] + x)[None], z[:, None, None], out=rugged)
        with self._trial(steps) as (coefficients, address, ledger):
            kernel(launches, rugged, spare, coefficients, address(0), ledger)
            found = spare.copy()
            for step in range(steps):
                single(single_launches, rugged, other, coefficients, address(step), ledger)
                rugged, other = other, rugged
        return bool((found == rugged).all())

    def _seconds_a_step(self, compiled: Compiled) -> float:
        steps, kernel, launches = compiled
        field = self._field
        with self._trial(steps) as (coefficients, address, ledger):

            def work() -> None:
                for _ in range(_TRIAL_STEPS // steps):
                    kernel(launches, field.deviation, field.spare, coefficients, address(0), ledger)

            work()  # the first time a kernel may have to be loaded
            return autotune.seconds(field.device, work) / (_TRIAL_STEPS // steps * steps)

    @contextmanager
    def _trial(self, steps: int) -> Iterator[tuple[Any, Callable[[int], int], NDArray[Any]]]:
        """What kernels need for the first steps, all with the conditions of the first: the ledger is nobody's."""
        timeline = self._problem.timeline
        dt = float(timeline.dts[0])
        rows = self._body.rows(timeline.step_times(0, 1), dt, self._field.reference)
        # What the coefficients point to has to live until the kernels are done.
        coefficients, keep = self._arrays.coefficients(self._tables_of(dt), len(rows.beams))
        sweeps = self._arrays.sweeps(rows, 0, steps)
        yield coefficients, sweeps.address, np.zeros((), dtype=structs.GENERAL_LEDGER)
        self._field.device.synchronise()
        del keep

    def _tables_of(self, dt: float) -> Tables:
        """What depends on the length of the steps."""
        if dt not in self._tables:
            c = self._problem.coefficients[dt].c
            self._tables[dt] = make_tables(self._body.medium, c, dt, self._problem.precision)
        return self._tables[dt]

    @cached_property
    def _replay(self) -> Replay:
        return Replay(self._field.device, self._problem.grid.cell_count)

    def _advance_cuda(self, first: int, until: int, dt: float, rows: Rows) -> None:
        field = self._field
        if dt not in self._coefficients:
            self._coefficients[dt] = self._arrays.coefficients(self._tables_of(dt), len(rows.beams))
        coefficients, _ = self._coefficients[dt]
        sweeps = self._arrays.sweeps(rows, first, until - first)
        ledger = ledger_struct(self._entries)
        itemsize, step = structs.GENERAL_SWEEP.itemsize, first
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
        kernel, tables = COMPOSITE_KERNELS[self._spec.name], self._tables_of(dt)
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
        *(field.device, body.medium, body.conditions.maps, body.conditions.void, field.reference, problem.precision),
        open_faces=body.open_faces,
    )
