"""Advance a field by whole steps on the CPU."""

from copy import copy
from functools import cached_property

import numpy as np

from heatsim.kernels.cpu.composite_body import CompositeCall, StepRows
from heatsim.kernels.cpu.composite_oracle import COMPOSITE_KERNELS
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.kernels.cpu.tiling import MOST_STEPS
from heatsim.kernels.launch_shapes import Choice, Shape
from heatsim.physics.operator.heat_sums import HeatSums
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.time.steps_ahead import StepsAhead
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.kernels.cpu_codes import codes_of_steps
from heatsim.solver.kernels.kernel_arguments import GeneralArguments, LinearArguments

# Steps for which conditions and sources are evaluated at a time, over several due times: an evaluation takes as long as
# 20 to 100 steps of a small grid.
_STEPS_AT_ONCE = 2048


class CpuStepper(Stepper):
    """Steps of one problem on one field with a CPU kernel."""

    @property
    def choice(self) -> Choice:
        """The kernel that does the steps."""
        return Choice(Shape(self._spec), "asked for")

    @property
    def steps_a_sweep(self) -> int:
        """The depth of the deepest tiles of the kernel."""
        return MOST_STEPS if self._spec.name == "numba" else 1

    def _prepare(self) -> None:
        """Have numba compile; the field stays as it is."""
        arguments = self.arguments
        if self._spec.name == "numba":
            from heatsim.kernels.cpu.compiling import compile_all

            arrays = arguments.arrays if isinstance(arguments, GeneralArguments) else None
            compile_all(codes_of_steps(self.problem, arrays, self._spec))
        if isinstance(arguments, LinearArguments):
            cell = np.zeros((1, 1, 1), dtype=self.problem.precision)
            c, f, g = (np.zeros(n, dtype=self.problem.precision) for n in (7, 6, 6))
            nothing = (np.zeros((0, 0)),) * 6
            problem = self.problem
            CPU_KERNELS[self._spec.name](cell, cell.copy(), problem.periodic, c, f, g, nothing, problem.scheme)
        elif self._spec.name == "numba" and self.problem.timeline.last_step > 0:
            # The first step, into the spare buffer and copies of the ledger's sums.
            rehearsal = copy(arguments)
            rehearsal.sums = HeatSums.zeros(np, arguments.sums.layout)
            field = self.field
            self.field = copy(field)
            try:
                self._step_general(rehearsal, 0, 1)
            finally:
                self.field = field

    def _advance(self, until: int) -> None:
        arguments = self.arguments
        if isinstance(arguments, GeneralArguments):
            self._step_general(arguments, self.step, until)
            return
        problem, field, timeline = self.problem, self.field, self.problem.timeline
        dt = timeline.dt(self.step)
        sweeps = arguments.host_sweeps(self.step, until)
        c = np.array(problem.coefficients[dt].c, dtype=problem.precision)
        field.deviation, field.spare = CPU_KERNELS[self._spec.name](
            field.deviation,
            field.spare,
            problem.periodic,
            c,
            sweeps["f"],
            sweeps["g"],
            self._ledger.sums.heats.faces,
            problem.scheme,
            arguments.planes,
        )

    def _step_general(self, arguments: GeneralArguments, first: int, until: int) -> None:
        self._do(arguments, self.problem.timeline.dt(first), self._steps(first, until))

    def _step(self, inputs: StepInputs, dt: float) -> None:
        arguments = self.arguments
        assert isinstance(arguments, GeneralArguments)
        self._do(arguments, dt, arguments.arrays.steps(inputs, 1))

    def _do(self, arguments: GeneralArguments, dt: float, rows: StepRows) -> None:
        """Do the steps of some rows, of ``dt`` s each."""
        problem, field = self.problem, self.field
        call = CompositeCall(
            problem.periodic, arguments.arrays.body, arguments.tables(dt), rows, arguments.sums, problem.scheme
        )
        advance = COMPOSITE_KERNELS[self._spec.name]
        field.deviation, field.spare = advance(field.deviation, field.spare, call)

    def _steps(self, first: int, until: int) -> StepRows:
        """The data of steps ``first`` … ``until`` − 1."""
        steps, some = self._ahead.of(first, until)
        return steps[some]

    @cached_property
    def _ahead(self) -> StepsAhead[StepRows]:
        arguments = self.arguments
        assert isinstance(arguments, GeneralArguments)

        def make(first: int, until: int) -> StepRows:
            return arguments.arrays.steps(arguments.rows(first, until), until - first)

        return StepsAhead(self.problem.timeline, min(_STEPS_AT_ONCE, arguments.steps_per_table), make)
