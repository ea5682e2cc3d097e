"""Advance a field by whole steps: the only caller of kernels."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import autotune, launch, structs
from heatsim.kernels.autotune import Choice, Shape, Task
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.kernels.cuda_graphs import Replay, Sweeps
from heatsim.kernels.ensemble.launches import Turn
from heatsim.physics.problem import HeatProblem
from heatsim.solver.composite_stepper import CompositeStepping
from heatsim.solver.energy_ledger import STEPS_TO_CARRY, Ledger
from heatsim.solver.field import Field

# Steps whose face terms are made and sent to the device together.
SWEEPS_PER_TABLE = 16_384


class Stepper:
    """Steps of one problem on one field with one kernel.

    Attributes:
        problem: coefficients, faces and times.
        field: what is advanced.
        step: number of steps done, or queued on the device.
    """

    def __init__(
        self,
        problem: HeatProblem,
        field: Field,
        ledger: Ledger,
        spec: KernelSpec,
        step: int = 0,
        tuned: bool = False,
        arrays: CompositeArrays | None = None,
    ) -> None:
        """Compile nothing yet.

        Args:
            problem: coefficients, faces and times.
            field: what is advanced.
            ledger: what the heat through the faces is entered into.
            spec: the kernel.
            step: number of steps that the field has behind it.
            arrays: a composite body on the field's device; made where it is not given.
            tuned: on a GPU, take the kernel and the launch shape that are fastest there, whatever ``spec`` says.
        """
        self.step = step
        self._tuned = tuned
        self.problem = problem
        self.field = field
        self._ledger = ledger
        self._spec = spec
        self._composite = (
            None
            if problem.body is None
            else CompositeStepping(problem, problem.body, field, ledger, spec, arrays, tuned)
        )
        self._constant_faces = self._composite is None and problem.faces.constant()
        self._constant_terms: dict[float, tuple[NDArray[Any], NDArray[Any]]] = {}

    def prepare(self) -> None:
        """Compile the kernel, which the first step would do otherwise."""
        problem = self.problem
        if self._composite is not None:
            self._composite.prepare()
            return
        if self._spec.backend == "cuda":
            _ = self._compiled
            return
        cell = np.zeros((1, 1, 1), dtype=problem.precision)
        c, f, g = (np.zeros(n, dtype=problem.precision) for n in (7, 6, 6))
        nothing = (np.zeros((0, 0)),) * 6
        CPU_KERNELS[self._spec.name](cell, cell.copy(), problem.periodic, c, f, g, 0, nothing, problem.scheme)

    def advance(self, steps: int) -> None:
        """Do ``steps`` more steps; on a GPU they are queued and may still be running at return.

        Raises:
            ScenarioError: a face's value at one of the steps cannot be used.
        """
        last = self.step + steps
        self.field.changed()
        self._ledger.changed()
        while self.step < last:
            interval_end = int(self.problem.timeline.steps[self.problem.timeline.interval(self.step) + 1])
            until = min(last, interval_end, self.step + SWEEPS_PER_TABLE, self.step + self.steps_to_carry)
            if self._composite is not None:
                until = min(until, self.step + self._composite.steps_per_table)
                self._composite.advance(self.step, until)
                self.step = until
            elif self._spec.backend == "cuda":
                self._advance_cuda(until)
            else:
                self._advance_cpu(until)
            self._carry()

    def turn(self, steps: int) -> Turn:
        """What the next steps, all before the next due time and ``steps_to_carry`` at most, need on a GPU.

        It is for launches that step several fields.

        Raises:
            ScenarioError: a face's value at one of the steps cannot be used.
        """
        alike = self._constant_faces and self.problem.scheme != "stochastic"
        dt, sweeps = self._sweeps(self.step + (1 if alike else steps))
        coefficients = structs.coefficients_struct(self.problem.coefficients[dt], self.problem.precision)
        return Turn(self.field.deviation, self.field.spare, coefficients, self._ledger_struct, sweeps, steps)

    def take(self, steps: int, T: Any, T_new: Any) -> None:
        """So many steps have been queued by others, and ended in buffer T."""
        self.step += steps
        self.field.deviation, self.field.spare = T, T_new
        self.field.changed()
        self._ledger.changed()
        self._carry()

    @property
    def steps_to_carry(self) -> int:
        """How many steps may be done before the ledger is to be carried over."""
        return STEPS_TO_CARRY - self.step % STEPS_TO_CARRY

    def _carry(self) -> None:
        if self.step % STEPS_TO_CARRY == 0:
            self._ledger.carry()

    @cached_property
    def _ledger_struct(self) -> NDArray[Any]:
        pointers = [sums.data.ptr if sums.size else 0 for sums in self._ledger.faces]
        return np.array((pointers,), dtype=structs.LEDGER)

    def _sweeps(self, until: int) -> tuple[float, NDArray[Any]]:
        """dt, and what changes from step to step (struct Sweep) for the steps before ``until``."""
        problem, timeline = self.problem, self.problem.timeline
        dt = float(timeline.dts[timeline.interval(self.step)])
        sweeps = np.zeros(until - self.step, dtype=structs.sweep_dtype(problem.precision))
        terms = self._constant_terms.get(dt)
        if terms is None:
            times = timeline.step_times(self.step, self.step + 1 if self._constant_faces else until)
            terms = problem.face_terms(times, dt, self.field.reference)
            if self._constant_faces:
                self._constant_terms[dt] = terms
        sweeps["f"], sweeps["g"] = terms
        sweeps["step"] = np.arange(self.step, until) & 0xFFFFFFFF
        return dt, sweeps

    @property
    def recorded(self) -> bool:
        """Whether heat through faces is entered into the ledger."""
        return any(sums.size for sums in self._ledger.faces)

    @cached_property
    def choice(self) -> Choice:
        """The kernel and its launch shape; where it is still to be tried out, the spare buffer is written to."""
        problem, field, spec = self.problem, self.field, self._spec
        if self._composite is not None:
            return self._composite.choice
        if not self._tuned:
            return Choice(Shape(spec), "asked for")
        dt = float(problem.timeline.dts[problem.timeline.interval(self.step)])
        return autotune.choose(
            Task(field.device, problem.grid, problem.periodic, problem.precision, problem.scheme),
            problem.timeline.last_step - self.step,
            field.deviation,
            field.spare,
            structs.coefficients_struct(problem.coefficients[dt], problem.precision),
        )

    @cached_property
    def _compiled(self) -> list[tuple[int, launch.CudaKernel, list[launch.Launch]]]:
        """Steps a sweep, kernel and launches, the one that does most at a time first."""
        problem, device, shape = self.problem, self.field.device, self.choice.shape
        builds = launch.builds(
            *(shape.spec, problem.precision, problem.scheme, problem.grid, problem.periodic), device.block_memory()
        )
        # The shape is that of the first, which does nearly all steps.
        return [
            (
                build.spec.steps,
                launch.compile_kernel(build),
                launch.launches(build, problem.grid, problem.periodic, device.multiprocessors(), planes, self.recorded),
            )
            for build, planes in zip(builds, (shape.planes, None), strict=False)
        ]

    @cached_property
    def _replay(self) -> Replay:
        return Replay(self.field.device, self.problem.grid.cell_count)

    def _advance_cuda(self, until: int) -> None:
        problem, field = self.problem, self.field
        dt, sweeps = self._sweeps(until)
        table = field.device.xp.asarray(sweeps.view(np.uint8))
        coefficients = structs.coefficients_struct(problem.coefficients[dt], problem.precision)
        for reach, kernel, launches in self._compiled:
            steps = (until - self.step) // reach * reach
            first = len(sweeps) - (until - self.step)
            part = table[first * sweeps.itemsize : (first + steps) * sweeps.itemsize]
            run = Sweeps(kernel, launches, coefficients, self._ledger_struct)
            field.deviation, field.spare = self._replay.advance(run, field.deviation, field.spare, part)
            self.step += steps

    def _advance_cpu(self, until: int) -> None:
        problem, field = self.problem, self.field
        kernel = CPU_KERNELS[self._spec.name]
        dt, sweeps = self._sweeps(until)
        c = np.array(problem.coefficients[dt].c, dtype=problem.precision)
        f, g, step = sweeps["f"], sweeps["g"], int(sweeps["step"][0])
        field.deviation, field.spare = kernel(
            field.deviation, field.spare, problem.periodic, c, f, g, step, self._ledger.faces, problem.scheme
        )
        self.step = until
