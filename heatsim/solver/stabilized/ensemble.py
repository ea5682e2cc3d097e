"""Stabilized steps of several runs on equal grids by the same launches.

Each run has its own steps: their lengths, numbers of stages, rejections. In each round every member tries one step; the
launches do the stages of all of them, and a member with fewer stages is left out of the last launches:

        member 0    ├── step of 66 stages, accepted ──┤     ├── next step …
        member 1    ├── 38 stages, rejected ──┤             ├── the same step again, shorter …
                    round 1                                 round 2
"""

from collections.abc import Iterable, Sequence

from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.launch_shapes import Choice, Task
from heatsim.solver.kernels.ensemble_stages import EnsembleStages
from heatsim.solver.kernels.stage_kernels import CudaStageKernels
from heatsim.solver.stabilized.field_ends import FieldEnds
from heatsim.solver.stabilized.field_substeps import FieldSubsteps
from heatsim.solver.stabilized.interpolation import error_estimate
from heatsim.solver.stabilized.method import Attempt, Step
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.solver.stabilized.substeps import End, StepInterrupted


class StabilizedEnsemble:
    """Steps of several linear problems that share grid, periodic axes, precision and scheme, on one GPU.

    Args:
        members: the stepper of each problem.
        task: grid and arithmetic of the members.
        spec: the kernel.
        tuned: whether to autotune kernel and launch shape for all members together; then ``spec`` is not used.
    """

    def __init__(self, members: Sequence[AdaptiveStepper], task: Task, spec: KernelSpec, tuned: bool) -> None:
        self._members = members
        self._substeps = [_substeps_of(member) for member in members]
        buffers = [substeps.buffers for substeps in self._substeps]
        self._stages = EnsembleStages([_kernels_of(own) for own in self._substeps], buffers, task, spec, tuned)
        self._attempts: dict[int, Attempt] = {}

    @property
    def choice(self) -> Choice:
        """The kernel of the stages and its launch shape."""
        return self._stages.choice

    def prepare(self) -> None:
        """Find the fastest kernel and compile it."""
        self._stages.prepare()

    def advance(self, numbers: Iterable[int]) -> dict[int, Exception]:
        """Try one step of some members, by their numbers.

        A member whose step is rejected tries again in the next call; until then its state is that before the step.
        The same holds for a member whose step was interrupted.

        Returns:
            The errors of members that failed, as :meth:`AdaptiveStepper.advance` raises them.
        """
        numbers = [*numbers]
        failed = self._begin([number for number in numbers if number not in self._attempts])
        tried = [number for number in numbers if number in self._attempts]
        stages, works = {}, {}
        for number in tried:
            substeps, method, attempt = self._substeps[number], self._members[number].method, self._attempts[number]
            stages[number] = substeps.choose(attempt.h, method.tolerance.kelvin)
            works[number] = substeps.trying(stages[number], method.t, attempt.h, attempt.end)
        for number, error in self._stages.do(works).items():
            tried.remove(number)
            del self._attempts[number]
            if isinstance(error, StepInterrupted):
                self._substeps[number].reject()
            else:
                failed[number] = error
        weights = [error_estimate(self._attempts[number].h) for number in tried]
        counts = [stages[number].count for number in tried]
        measures = FieldEnds.measure_all([self._substeps[number] for number in tried], weights, counts)
        for number, measure in zip(tried, measures, strict=True):
            member, attempt = self._members[number], self._attempts.pop(number)
            try:
                result = member.method.judge(attempt, stages[number], measure)
            except Exception as error:
                failed[number] = error
                continue
            if isinstance(result, Step):
                member.accept(result)
            else:
                self._attempts[number] = result
        return failed

    def _begin(self, numbers: Sequence[int]) -> dict[int, Exception]:
        """Begin steps of members; returns the errors of those that failed."""
        works = {}
        for number in numbers:
            method = self._members[number].method
            method.settle()
            moment = method.wanted_rate()
            if moment is not None:
                works[number] = self._substeps[number].rating(End.FIRST, *moment)
        failed = self._stages.do(works)
        for number in works.keys() - failed:
            self._members[number].method.rate_found()
        for number in numbers:
            if number not in failed:
                try:
                    self._attempts[number] = self._members[number].begin()
                except Exception as error:
                    failed[number] = error
        return failed


def _substeps_of(member: AdaptiveStepper) -> FieldSubsteps:
    assert isinstance(member.substeps, FieldSubsteps), "only stages of the method stabilized are stacked"
    return member.substeps


def _kernels_of(substeps: FieldSubsteps) -> CudaStageKernels:
    assert isinstance(substeps.kernels, CudaStageKernels), "ensembles run on a GPU"
    return substeps.kernels
