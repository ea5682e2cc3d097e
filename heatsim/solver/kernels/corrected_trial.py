"""Try out whether several steps a sweep with a correction are faster on a composite body than single steps."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import autotune, launch, structs
from heatsim.kernels.composite.arrays import SweepTable
from heatsim.solver.field.field import Field

_STEPS = 16  # of a timed trial

Launched = tuple[launch.CudaKernel, list[launch.Launch]]


@dataclass(frozen=True)
class TrialSteps:
    """Arguments of the steps of a trial.

    Attributes:
        coefficients: struct Coefficients.
        sweeps: struct StepData of each step.
    """

    coefficients: NDArray[Any]
    sweeps: SweepTable


def is_faster(several: Launched, one: Launched, field: Field, trial_steps: Callable[[int], TrialSteps]) -> bool:
    """Whether sweeps of several steps give the bits of single steps and take less time, measured here and now.

    Writes to the field's spare buffer and enters no heat. A kernel that fails, also for lack of memory, is not faster.

    Args:
        several: the kernel that does several steps a sweep, with its launches.
        one: the kernel that does single steps.
        field: the field; it stays as it is.
        trial_steps: makes the given number of steps.
    """
    with suppress(Exception):
        trial = _Trial(field, trial_steps(several[0].build.spec.steps))
        return trial.equal_bits(several, one) and trial.seconds_a_step(several) < trial.seconds_a_step(one)
    return False


class _Trial:
    def __init__(self, field: Field, steps: TrialSteps) -> None:
        self._field = field
        self._steps = steps
        self._ledger = np.zeros((), dtype=structs.GENERAL_LEDGER)

    def equal_bits(self, several: Launched, one: Launched) -> bool:
        """Whether one sweep of several steps makes of a rugged field the same as single steps."""
        xp, spare = self._field.device.xp, self._field.spare
        # Neighbours differ by up to 20 K, everywhere in another way.
        waves = (10.0 * np.sin(np.arange(n) ** 2.0) for n in spare.shape)
        z, y, x = (xp.asarray(wave.astype(self._field.precision)) for wave in waves)
        rugged, other = xp.empty_like(spare), xp.empty_like(spare)
        xp.add((y[:, None] + x)[None], z[:, None, None], out=rugged)
        self._sweep(several, rugged, spare, 0)
        found = spare.copy()
        for step in range(several[0].build.spec.steps):
            self._sweep(one, rugged, other, step)
            rugged, other = other, rugged
        own = self._field.slab.own
        return bool((found[own] == rugged[own]).all())

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
        kernel(launches, T, T_new, self._steps.coefficients, self._steps.sweeps.address(step), self._ledger)
