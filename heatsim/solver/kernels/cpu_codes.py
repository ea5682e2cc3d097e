"""The functions that a run on the CPU has numba compile."""

from typing import TYPE_CHECKING, Any

import numpy as np

from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.physics.problem import HeatProblem
from heatsim.scenario.tables.boundaries import is_linear
from heatsim.solver.field.field import Field
from heatsim.solver.ledger.energy_ledger import Ledger

if TYPE_CHECKING:
    from heatsim.kernels.cpu.compiling import Code


def compile_ahead(
    problem: HeatProblem, field: Field, ledger: Ledger, arrays: CompositeArrays, spec: KernelSpec
) -> None:
    """Begin to compile in other processes what a run on the CPU needs, beside its set-up.

    Args:
        problem: conditions, sources, the method.
        field: what is stepped.
        ledger: the heat through surfaces.
        arrays: the body's arrays.
        spec: the kernel.
    """
    from heatsim.kernels.cpu import compiling
    from heatsim.kernels.reductions import cpu_fused

    codes, byte = codes_of_steps(problem, arrays, spec), np.dtype(np.uint8)
    weighted = not problem.grid.uniform
    if ledger.recorded:
        codes += cpu_fused.codes(np.dtype(np.float64), byte, thermometers=False, weighted=weighted)
    if problem.materials.varies:
        label = byte if field.labels is None else field.labels.dtype
        # The sums themselves are asked for at once.
        codes += cpu_fused.codes(np.dtype(problem.precision), label, thermometers=True, weighted=weighted)[1:]
    compiling.compile_ahead(codes)


def codes_of_steps(problem: HeatProblem, arrays: CompositeArrays | None, spec: KernelSpec) -> list["Code"]:
    """The functions that do the steps; those that take longest are first.

    Args:
        problem: conditions, sources, the method.
        arrays: the body's arrays; may be None for Euler's method on a body of one material.
        spec: the kernel.
    """
    dtype, method = np.dtype(problem.precision), problem.scenario.time.method
    if method in ("steady", "implicit"):
        from heatsim.kernels.multigrid import cpu_sweeps

        codes = cpu_sweeps.codes(dtype)
    else:
        codes = _codes_of_kernel(problem, arrays, spec, dtype)
    if problem.timeline.adaptive:
        from heatsim.kernels.reductions import cpu_step_error

        codes.append(cpu_step_error.code(dtype))
    return codes


def _codes_of_kernel(
    problem: HeatProblem, arrays: CompositeArrays | None, spec: KernelSpec, dtype: "np.dtype[Any]"
) -> list["Code"]:
    """Those of a kernel. The rates of a body of one material, which stages need, have the general one."""
    if spec.name != "numba":
        return []
    from heatsim.kernels.cpu import blocked, composite_parts
    from heatsim.kernels.cpu.compiling import sweeps

    codes = [sweeps(blocked.advance, dtype)] if problem.linear else []
    if problem.timeline.adaptive or not problem.linear:
        assert arrays is not None
        radiating = not all(map(is_linear, problem.boundary.conditions))
        seven_term = problem.scheme == "seven_term" and not problem.timeline.adaptive
        has = composite_parts.OptionalParts.of(
            arrays.body, problem.periodic, radiating=radiating, seven_term=seven_term
        )
        codes += composite_parts.codes(has, dtype)
    return codes
