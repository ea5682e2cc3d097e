"""Try out whether several steps a sweep with a correction are faster on a composite body than single steps."""

from contextlib import suppress
from typing import Any

import numpy as np

from heatsim.kernels import autotune, launch, structs
from heatsim.physics.problem import HeatProblem
from heatsim.solver.field import Field
from heatsim.solver.kernel_arguments import GeneralArguments

_STEPS = 16  # of a timed trial

Launched = tuple[launch.CudaKernel, list[launch.Launch]]


def is_faster(
    several: Launched, one: Launched, problem: HeatProblem, field: Field, arguments: GeneralArguments
) -> bool:
    """Whether sweeps of several steps give the bits of single steps and take less time, measured here and now.

    Writes to the field's spare buffer and enters no heat. A kernel that fails, also for lack of memory, is not faster.
    """
    with suppress(Exception):
        trial = _Trial(problem, field, arguments, several[0].build.spec.steps)
        return trial.equal_bits(several, one) and trial.seconds_a_step(several) < trial.seconds_a_step(one)
    return False


class _Trial:
    """The first steps of a run, all with the conditions of the very first."""

    def __init__(self, problem: HeatProblem, field: Field, arguments: GeneralArguments, steps: int) -> None:
        rows = arguments.rows(0, 1)
        self._field = field
        self._precision = problem.precision
        self._coefficients = arguments.coefficients(problem.timeline.dt(0))
        self._sweeps = arguments.arrays.sweeps(rows, 0, steps)
        self._ledger = np.zeros((), dtype=structs.GENERAL_LEDGER)

    def equal_bits(self, several: Launched, one: Launched) -> bool:
        """Whether one sweep of several steps makes of a rugged field the same as single steps."""
        xp, spare = self._field.device.xp, self._field.spare
        # Neighbours differ by up to 20 K, everywhere in another way.
        waves = (10.0 * np.sin(np.arange(n) ** 2.0) for n in spare.shape)
        z, y, x = (xp.asarray(wave.astype(self._precision)) for wave in waves)
        rugged, other = xp.empty_like(spare), xp.empty_like(spare)
        xp.add((y[:, None] + x)[None], z[:, None, None], out=rugged)
        self._sweep(several, rugged, spare, 0)
        found = spare.copy()
        for step in range(several[0].build.spec.steps):
            self._sweep(one, rugged, other, step)
            rugged, other = other, rugged
        return bool((found == rugged).all())

    def seconds_a_step(self, launched: Launched) -> float:
        """Seconds on the device's clock."""
        field, sweeps = self._field, _STEPS // launched[0].build.spec.steps

        def work() -> None:
            for _ in range(sweeps):
                self._sweep(launched, field.deviation, field.spare, 0)

        work()  # the first launch may load the kernel
        return autotune.seconds(field.device, work) / (sweeps * launched[0].build.spec.steps)

    def _sweep(self, launched: Launched, T: Any, T_new: Any, step: int) -> None:
        kernel, launches = launched
        kernel(launches, T, T_new, self._coefficients, self._sweeps.address(step), self._ledger)
