"""Stages of several fields on equal grids by the same launches; each field has its own number and lengths of stages."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from heatsim.kernels import autotune, fitting, structs
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.ensemble.launches import EnsembleLaunches, MemberSteps
from heatsim.kernels.launch_shapes import Choice, Shape, Task
from heatsim.solver.kernels.kernel_arguments import LinearArguments
from heatsim.solver.kernels.stage_arguments import StageRun, Work
from heatsim.solver.kernels.stage_kernels import CudaStageKernels

# Bytes of stage data that are sent to the device together.
_BYTES_PER_TABLE = 1 << 26


class EnsembleStages:
    """Stages of several linear problems that share grid, periodic axes, precision and scheme, on one GPU.

    Args:
        members: the kernels of each problem.
        buffers: for each problem a field, and a buffer that autotuning may overwrite.
        task: grid and arithmetic of the members.
        spec: the kernel.
        tuned: whether to autotune kernel and launch shape for all members together; then ``spec`` is not used.
    """

    def __init__(
        self,
        members: Sequence[CudaStageKernels],
        buffers: Sequence[tuple[Any, Any]],
        task: Task,
        spec: KernelSpec,
        tuned: bool,
    ) -> None:
        self._members = members
        self._buffers = buffers
        self._task = task
        self._spec = spec
        self._tuned = tuned

    def prepare(self) -> None:
        """Choose the kernels and compile them."""
        _ = self._launches
        for member in self._members:
            member.prepare_increments()

    @cached_property
    def choice(self) -> Choice:
        """The kernel of the stages and its launch shape. Autotuning overwrites the buffers given for it."""
        if not self._tuned:
            return Choice(Shape(self._spec), "asked for")
        stages = sum(member.likely_stages for member in self._members) / len(self._members)
        resting = [member.at_rest(*own) for member, own in zip(self._members, self._buffers, strict=True)]
        return autotune.choose_for_members(self._task, stages, resting)

    def do(self, works: Mapping[int, Work[None]]) -> dict[int, Exception]:
        """Do the works of some members, by their numbers. Returns the errors of those that failed."""
        failed: dict[int, Exception] = {}
        replies: dict[int, Any] = dict.fromkeys(works)
        while replies:
            runs: dict[int, StageRun] = {}
            answered: dict[int, Any] = {}
            for number, reply in replies.items():
                try:
                    request = works[number].send(reply)
                except StopIteration:
                    continue
                except Exception as error:
                    failed[number] = error
                    continue
                if isinstance(request, StageRun):
                    runs[number] = request
                else:
                    answered[number] = self._members[number].reply(request)
            replies = answered | self._advance(runs)
        return failed

    def _advance(self, runs: Mapping[int, StageRun]) -> dict[int, tuple[Any, Any, float]]:
        """Do stages of some members by the same launches; returns the replies."""
        members = {number: self._members[number].member_steps(run) for number, run in runs.items()}
        buffers = {number: (member.T, member.T_new) for number, member in members.items()}
        first, most = 0, self._most_stages
        while left := {number: member for number, member in members.items() if member.steps > first}:
            parts = [_part(member, buffers[number], slice(first, first + most)) for number, member in left.items()]
            buffers |= zip(left, self._launches.advance(parts), strict=True)
            first += most
        return {number: (T, T_new, 0.0) for number, (T, T_new) in buffers.items()}

    @cached_property
    def _launches(self) -> EnsembleLaunches:
        task, shape = self._task, self.choice.shape
        builds = fitting.builds(
            shape.spec,
            task.precision,
            task.scheme,
            task.grid,
            task.periodic,
            task.device.room(),
            variant=LinearArguments.stage_variant,
            members=True,
        )
        recorded = any(member.recorded for member in self._members)
        return EnsembleLaunches(
            task.device, builds, task.grid, task.periodic, shape.planes, len(self._members), recorded
        )

    @cached_property
    def _most_stages(self) -> int:
        """Most stages of each member that are sent to the device together."""
        size = structs.sweep_dtype(self._task.precision, stages=True).itemsize
        return max(1, _BYTES_PER_TABLE // (size * len(self._members)))


def _part(member: MemberSteps, buffers: tuple[Any, Any], some: slice) -> MemberSteps:
    """Some of the steps of a member, whose field is now in the first of two buffers."""
    sweeps = member.sweeps[some]
    return MemberSteps(*buffers, member.coefficients, member.ledger, sweeps, len(sweeps))
