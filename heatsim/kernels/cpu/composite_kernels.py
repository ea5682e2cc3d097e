"""The CPU kernels for composite bodies by name: the NumPy oracle (composite_oracle.py) and numba (composite.py).

Both do the operations of composite/composite.cuh in the same order and without fma, so their bits agree.
"""

from collections.abc import Callable
from functools import partial

from heatsim.kernels.cpu.composite_body import CompositeCall, Field
from heatsim.kernels.cpu.composite_oracle import advance_numpy
from heatsim.kernels.cpu.oracle import choose_tiling, run_sweeps


def _advance_numpy(T: Field, T_new: Field, call: CompositeCall) -> tuple[Field, Field]:
    from heatsim.kernels.cpu.subnormals import subnormals_flushed

    with subnormals_flushed():
        for step in range(call.steps.count):
            advance_numpy(T, T_new, call, step)
            T, T_new = T_new, T
    return T, T_new


def _advance_numba(T: Field, T_new: Field, call: CompositeCall) -> tuple[Field, Field]:
    # Imported here, because importing numba takes half a second.
    from heatsim.kernels.cpu.composite_parts import OptionalParts, kernel_for
    from heatsim.kernels.cpu.composite_plan import make_plan
    from heatsim.kernels.cpu.ring_axes import AS_IN_GRID, ring_axes
    from heatsim.kernels.cpu.surface_rises import ROOM

    body, steps, (nz, ny, nx) = call.body, call.steps, T.shape
    # Stochastic rounding depends on the place of a cell along each axis.
    axes = AS_IN_GRID if call.scheme == "stochastic" else ring_axes((nz, ny, nx))
    ring, wraps = axes.shape((nz, ny, nx)), axes.wraps(call.periodic, (nz, ny, nx))
    fields = 2 if body.enthalpies.vary else 1
    chosen = choose_tiling(ring, wraps, T.itemsize, steps.count, fields)
    # A worker's memory: the rings of its fields, sums of some rows, surfaces.
    sums = fields * chosen.ring
    surfaces = sums + chosen.rows * chosen.stride + chosen.margin
    plan = make_plan(T.shape, call, axes, chosen, sums, surfaces)
    has = OptionalParts.of(
        body,
        call.periodic,
        beams=len(steps.beams) > 0,
        radiating=steps.radiates,
        seven_term=call.scheme == "seven_term",
    )
    advance = kernel_for(has, plan.numbers, T.dtype)
    return run_sweeps(partial(advance, plan.numbers), T, T_new, steps.count, chosen, surfaces + ROOM)


# kernel(T, T_new, call) does the steps of the call. It returns (result, other array); the other array has no useful
# contents. With one step the result is in T_new and T is unchanged.
COMPOSITE_KERNELS: dict[str, Callable[[Field, Field, CompositeCall], tuple[Field, Field]]] = {
    "numpy": _advance_numpy,
    "numba": _advance_numba,
}
