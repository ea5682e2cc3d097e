"""Plans: one record of numbers and addresses instead of dozens of arrays.

A compiled function that takes arrays gets the shape and strides of each; numba takes most of its time for them, and so
does a call. A record is one pointer. Functions make views of the arrays that they need, without a length.

A call passes the record as an array of integers: numba takes 20 µs a call to find the type of an array of
records.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types
from numpy.typing import NDArray

from heatsim.kernels.cpu.lines import intrinsic

# The fields that march.py uses.
MARCH = (
    *("nz", "ny", "nx", "periodic_x", "periodic_y", "periodic_z", "steps", "sweeps", "workers"),
    *("tile_y", "tile_z", "rows", "stride", "margin"),
)


class KernelPlan:
    """A record of 64-bit integers, for compiled functions.

    Attributes:
        numbers: of all fields in their order; see :func:`record_in`.
    """

    numbers: NDArray[np.int64]

    def __init__(self, fields: tuple[str, ...], values: Mapping[str, Any], start: "KernelPlan | None" = None) -> None:
        """Enter values of fields.

        Args:
            fields: their names.
            values: integers; arrays, which have to be contiguous, are entered by their addresses.
            start: another plan, with the values of the other fields; 0 if it is missing.
        """
        places = _places(fields)
        self._arrays: list[Any] = [start]
        self.numbers = np.zeros(len(fields), np.int64) if start is None else start.numbers.copy()
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                self._arrays.append(value)
                value = address_of(value)
            self.numbers[places[name]] = value

    def keep(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Keep arrays whose addresses are in one of the plan's arrays."""
        self._arrays += arrays


@cache
def _places(fields: tuple[str, ...]) -> dict[str, int]:
    """The place of each field."""
    return {name: place for place, name in enumerate(fields)}


def address_of(array: NDArray[Any]) -> int:
    """The address of an array's memory; 0 if it is empty."""
    if not array.size:
        return 0
    interface = array.__array_interface__
    assert interface["strides"] is None, "not contiguous"
    return int(interface["data"][0])


def _record(fields: tuple[str, ...]) -> Any:
    """The type of a record."""
    return from_dtype(np.dtype([(name, np.int64) for name in fields]))


def record_at(fields: tuple[str, ...]) -> Any:
    """A compiled function that makes the record with these fields from its address."""
    record = _record(fields)

    @intrinsic
    def record_of(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(record))

        return record(types.int64), generate

    return record_of


def record_in(fields: tuple[str, ...]) -> Any:
    """A compiled function that makes the record with these fields from the numbers of a plan."""
    record = _record(fields)

    @intrinsic
    def record_of(typing_context: Any, numbers: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(numbers)(context, builder, arguments[0]).data
            return builder.bitcast(data, context.get_value_type(record))

        return record(numbers), generate

    return record_of


_pointer_to: Any = types.CPointer


def _at_address(kind: Any) -> Any:
    """A compiled function that makes a pointer to numbers from an address; ``p[i]`` reads and writes them."""

    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return _pointer_to(kind)(types.int64), generate

    return pointer


bytes_at, ints_at, longs_at = _at_address(types.uint8), _at_address(types.int32), _at_address(types.int64)
doubles_at = _at_address(types.float64)


@intrinsic
def reals_at(typing_context: Any, address: Any, T: Any) -> Any:
    """The numbers at an address, of the type of a field T."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return _pointer_to(T.dtype)(types.int64, T), generate


def _constants(module: Any) -> Any:
    """The set of all memory that :func:`constant` reads, for the compiler's analysis of aliases."""
    domain = module.add_metadata(["heatsim"])
    return module.add_metadata([module.add_metadata(["constants", domain])])


@intrinsic
def constant(typing_context: Any, pointer: Any, i: Any) -> Any:
    """``pointer[i]`` of numbers that :func:`put` never writes: no store has to be expected to change them."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = builder.load(builder.gep(arguments[0], [arguments[1]]))
        number.set_metadata("alias.scope", _constants(builder.module))
        return number

    return pointer.dtype(pointer, i), generate


@intrinsic
def get(typing_context: Any, pointer: Any, i: Any) -> Any:
    """``pointer[i]`` of numbers that :func:`constant` never reads."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = builder.load(builder.gep(arguments[0], [arguments[1]]))
        number.set_metadata("noalias", _constants(builder.module))
        return number

    return pointer.dtype(pointer, i), generate


@intrinsic
def put(typing_context: Any, pointer: Any, i: Any, value: Any) -> Any:
    """``pointer[i] = value`` for numbers that :func:`constant` never reads."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        store = builder.store(arguments[2], builder.gep(arguments[0], [arguments[1]]))
        store.set_metadata("noalias", _constants(builder.module))
        return context.get_dummy_value()

    return types.none(pointer, i, pointer.dtype), generate


@intrinsic
def memory_of(typing_context: Any, array: Any) -> Any:
    """The numbers of a contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(array)(context, builder, arguments[0]).data

    return _pointer_to(array.dtype)(array), generate


@intrinsic
def behind(typing_context: Any, pointer: Any, count: Any) -> Any:
    """The numbers from number ``count`` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), generate
