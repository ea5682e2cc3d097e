"""Choose the stepper for the backend of a kernel and for the method of a scenario."""

from typing import Any

from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.physics.estimates.temperature_range import TemperatureLimits
from heatsim.physics.problem import HeatProblem
from heatsim.solver.euler.cpu_stepper import CpuStepper
from heatsim.solver.euler.cuda_stepper import CudaStepper
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.field.cell_parts import own_cells
from heatsim.solver.field.field import Field
from heatsim.solver.implicit.field_stages import FieldStages
from heatsim.solver.kernels.stage_kernels import CpuStageKernels, CudaStageKernels
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.stabilized.field_substeps import FieldSubsteps
from heatsim.solver.stabilized.stepper import AdaptiveStepper, RunSubsteps
from heatsim.storage.checkpoint import Checkpoint


def make_stepper(problem: HeatProblem, field: Field, ledger: Ledger, spec: KernelSpec, **options: Any) -> Stepper:
    """The stepper for the backend of a kernel; arguments and options are those of :class:`Stepper`."""
    stepper = CudaStepper if spec.backend == "cuda" else CpuStepper
    return stepper(problem, field, ledger, spec, **options)


def make_adaptive_stepper(
    problem: HeatProblem,
    field: Field,
    ledger: Ledger,
    spec: KernelSpec,
    limits: TemperatureLimits,
    *,
    arrays: CompositeArrays,
    tuned: bool = False,
    step: int = 0,
    saved: Checkpoint | None = None,
) -> AdaptiveStepper:
    """The stepper of a method that chooses its own steps.

    Args:
        problem: due times, conditions, sources, the method; of several ranks the problem of this rank's slab.
        field: what is advanced, and what observers read.
        ledger: the heat through surfaces that belongs to the field.
        spec: the kernel.
        limits: of the temperatures of the run.
        arrays: the body's arrays on the field's device.
        tuned: on a GPU, take the fastest kernel and launch shape, whatever ``spec`` says.
        step: the number of due times that were reached before.
        saved: the checkpoint from which the run goes on; None for a new run.

    Raises:
        ScenarioError: something jumps too often.
        ValueError: the checkpoint was written with other stages.
    """
    if problem.scenario.time.method == "implicit":
        substeps: RunSubsteps = FieldStages(problem, field, ledger, arrays.body.cells, saved)
    else:
        entered = Ledger(field.device, problem, ledger.recorded, field.team)
        make = CudaStageKernels if spec.backend == "cuda" else CpuStageKernels
        kernels = make(problem, field, entered, spec, arrays, tuned)
        substeps = FieldSubsteps(problem, field, ledger, kernels, entered, own_cells(arrays, field))
    values = None if saved is None else saved.values
    return AdaptiveStepper(problem.whole, substeps, limits, field.reference, step=step, saved=values)
