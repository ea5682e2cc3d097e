"""The CPU kernels for composite bodies by name: the NumPy oracle (composite_oracle.py) and numba (composite.py).

Both do the operations of composite/composite.cuh in the same order and without fma, so their bits agree.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.cpu.composite_body import Entries, HostBody, LinkTables, StepRows
from heatsim.kernels.cpu.composite_oracle import advance_numpy
from heatsim.kernels.cpu.oracle import choose_tiling, run_sweeps
from heatsim.physics.coefficients import Scheme
from heatsim.physics.surface_balance import EMISSION, FREE, LAW

Field = NDArray[Any]


def _advance_numpy(
    T: Field,
    T_new: Field,
    periodic: tuple[bool, bool, bool],
    body: HostBody,
    tables: LinkTables,
    steps: StepRows,
    first: int,
    ledger: Entries,
    scheme: Scheme,
    base: Field | None = None,
) -> tuple[Field, Field]:
    from heatsim.kernels.cpu.subnormals import subnormals_flushed

    with subnormals_flushed():
        for step in range(steps.count):
            advance_numpy(
                T, T_new, periodic, body, tables, steps.row(step), first + step & 0xFFFFFFFF, ledger, scheme, base
            )
            T, T_new = T_new, T
    return T, T_new


def _advance_numba(
    T: Field,
    T_new: Field,
    periodic: tuple[bool, bool, bool],
    body: HostBody,
    tables: LinkTables,
    steps: StepRows,
    first: int,
    ledger: Entries,
    scheme: Scheme,
    base: Field | None = None,
) -> tuple[Field, Field]:
    # Imported here, because importing numba takes half a second.
    from heatsim.kernels.cpu.composite_parts import OptionalParts, kernel_for
    from heatsim.kernels.cpu.composite_plan import make_plan
    from heatsim.kernels.cpu.ring_axes import AS_IN_GRID, ring_axes
    from heatsim.kernels.cpu.surface_rises import ROOM

    fields, nz, ny, nx = 2 if body.enthalpies.vary else 1, *T.shape
    # Stochastic rounding depends on the place of a cell along each axis.
    axes = AS_IN_GRID if scheme == "stochastic" else ring_axes((nz, ny, nx))
    ring, wraps = axes.shape((nz, ny, nx)), axes.wraps(periodic, (nz, ny, nx))
    chosen = choose_tiling(ring, wraps, T.itemsize, steps.count, fields)
    sums = fields * chosen.ring
    surfaces = sums + chosen.rows * chosen.stride + chosen.margin
    plan = make_plan(T, periodic, body, tables, steps, first, ledger, scheme, base, axes, chosen, sums, surfaces)
    has = OptionalParts.of(
        body, periodic, beams=len(steps.beams) > 0, radiating=_radiates(steps), seven_term=scheme == "seven_term"
    )
    advance = kernel_for(has, plan.numbers, T.dtype)
    return run_sweeps(partial(advance, plan.numbers), T, T_new, steps.count, chosen, surfaces + ROOM)


def _radiates(steps: StepRows) -> bool:
    """Whether a condition has radiation, or a table of fluxes; found once for the rows that these are a slice of."""
    whole = steps if steps.part_of is None else steps.part_of[0]
    if whole not in _radiating:
        emission, free = whole.conditions[..., EMISSION], whole.conditions[..., FREE]
        _radiating[whole] = bool(np.any((emission > 0) | (free == LAW)))
    return _radiating[whole]


_radiating: WeakKeyDictionary[StepRows, bool] = WeakKeyDictionary()

# kernel(T, T_new, periodic, body, tables, steps, first, ledger, scheme, base=None) does the steps; the first has number
# ``first``. It returns (result, other array); the other array has no useful contents. With one step the result
# is in T_new and T is unchanged. With ``base``, one step sets T_new = base + factor·increments; an empty array stands
# for 0. It needs increments.
COMPOSITE_KERNELS: dict[str, Callable[..., tuple[Field, Field]]] = {"numpy": _advance_numpy, "numba": _advance_numba}
