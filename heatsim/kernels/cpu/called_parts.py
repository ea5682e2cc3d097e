"""Parts of a step that are compiled separately; the kernel calls them by their addresses.

Each part is compiled once for all bodies that have it, at the same time as the others (compiling.py). A call takes some
nanoseconds, once for the rows that are stepped together.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types

from heatsim.kernels.cpu.lines import OPTIONS, intrinsic
from heatsim.kernels.cpu.march import MarchTile, RowBlock
from heatsim.kernels.cpu.plan import record_at
from heatsim.numba_cache import Callback

_LONG, _NOTHING = ir.IntType(64), ir.IntType(8).as_pointer()


@intrinsic
def call_part(typing_context: Any, address: Any, plan: Any, tile: Any, step: Any, rows: Any, T: Any) -> Any:
    """Call the part at an address, unless this is 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place, record, of_tile, number, of_rows, ring = arguments
        numbers = [
            *(builder.extract_value(of_tile, i) for i in range(len(MarchTile._fields))),
            number,
            *(builder.extract_value(of_rows, i) for i in range(len(RowBlock._fields))),
        ]
        values = [builder.ptrtoint(record, _LONG), *numbers, ring]
        function = ir.FunctionType(_NOTHING, [value.type for value in values]).as_pointer()
        with builder.if_then(builder.icmp_unsigned("!=", place, _LONG(0))):
            builder.call(builder.inttoptr(place, function), values)
        return context.get_dummy_value()

    named: Any = types.NamedUniTuple
    of_tile, of_rows = (named(types.int64, len(kind._fields), kind) for kind in (MarchTile, RowBlock))
    return types.none(types.int64, plan, of_tile, types.int64, of_rows, T), generate


def called_part(name: str, fields: tuple[str, ...], advance: Any, dtype: Any, sources: str) -> Callback:
    """A part of a step.

    Args:
        name: its name.
        fields: of the plan.
        advance: a compiled function of (plan, tile, step, rows, ring).
        dtype: the type of the numbers of the ring.
        sources: the digest of the sources that it is compiled from.
    """
    plan_at = record_at(fields)

    def part(
        plan: Any,
        first_y: Any,
        end_y: Any,
        first_z: Any,
        end_z: Any,
        first_step: Any,
        end_step: Any,
        step: Any,
        z: Any,
        y: Any,
        size: Any,
        below: Any,
        here: Any,
        above: Any,
        new: Any,
        new_stride: Any,
        T: Any,
    ) -> None:
        tile = MarchTile(first_y, end_y, first_z, end_z, first_step, end_step)
        rows = RowBlock(z, y, size, below, here, above, new, new_stride)
        advance(plan_at(plan), tile, step, rows, T)

    count = 2 + len(MarchTile._fields) + len(RowBlock._fields)
    pointer: Any = types.CPointer
    signature = types.void(*(types.int64,) * count, pointer(from_dtype(np.dtype(dtype))))
    return Callback(part, signature, f"{name}_{np.dtype(dtype).name}", sources, **OPTIONS)
