"""Choose the stepper for the backend of a kernel."""

from typing import Any

from heatsim.kernels.catalog import KernelSpec
from heatsim.physics.problem import HeatProblem
from heatsim.solver.cpu_stepper import CpuStepper
from heatsim.solver.cuda_stepper import CudaStepper
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.field import Field
from heatsim.solver.stepper import Stepper


def make_stepper(problem: HeatProblem, field: Field, ledger: Ledger, spec: KernelSpec, **options: Any) -> Stepper:
    """The stepper for the backend of a kernel; arguments and options are those of :class:`Stepper`."""
    stepper = CudaStepper if spec.backend == "cuda" else CpuStepper
    return stepper(problem, field, ledger, spec, **options)
