"""Flush subnormal numbers to zero while a CPU kernel steps.

Numbers below 1.2e-38 in float32, or 2.2e-308 in float64, are subnormal: they have fewer digits than others. They
appear at the front of the heat if a body has one temperature everywhere else. Far from a beam, for instance, deviations
fall to such numbers and, without this module, stay there for thousands of steps. On x86-64 operations with them take up
to a hundred times as long.

A bit of the processor's control register makes operations treat subnormal operands as 0, and return 0 instead of
subnormal results. Each thread has this register. So each compiled function that Python calls to step sets the bit and
restores it at the end. The NumPy oracle does the same, so all CPU kernels have the same bits, on any number of threads.
Copies keep all bits. On processors other than x86-64 and 64-bit ARM nothing is set.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from heatsim.kernels.cpu.lines import OPTIONS, compiled, intrinsic
from heatsim.numba_cache import kept

_MACHINE = platform.machine().lower()
_X86, _ARM = _MACHINE in ("x86_64", "amd64"), _MACHINE in ("aarch64", "arm64")
# On x86-64 results (bit 15) and operands (bit 6) of MXCSR; on ARM one bit of FPCR for both. 0: not known.
_FLUSHING = 0x8040 if _X86 else 1 << 24 if _ARM else 0
FLUSHES = _FLUSHING != 0

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


def _register(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Call a function of LLVM that reads or writes a control register."""
    function = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, name), arguments)


@intrinsic
def _mode(typing_context: Any) -> Any:
    """The control register of this thread; 0 if it is not known."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _X86:
            place = cgutils.alloca_once(builder, _INT32)
            pointer = builder.bitcast(place, ir.IntType(8).as_pointer())
            _register(builder, "llvm.x86.sse.stmxcsr", ir.VoidType(), pointer)
            return builder.zext(builder.load(place), _INT64)
        return _register(builder, "llvm.aarch64.get.fpcr", _INT64) if _ARM else _INT64(0)

    return types.int64(), generate


@intrinsic
def set_mode(typing_context: Any, mode: Any) -> Any:
    """Set the control register of this thread to what :func:`flush_subnormals` returned."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _X86:
            place = cgutils.alloca_once_value(builder, builder.trunc(arguments[0], _INT32))
            pointer = builder.bitcast(place, ir.IntType(8).as_pointer())
            _register(builder, "llvm.x86.sse.ldmxcsr", ir.VoidType(), pointer)
        elif _ARM:
            _register(builder, "llvm.aarch64.set.fpcr", ir.VoidType(), arguments[0])
        return context.get_dummy_value()

    return types.none(types.int64), generate


@compiled
def flush_subnormals() -> Any:
    """Flush subnormal numbers to zero in this thread from now on. Returns the previous mode."""
    mode = _mode()
    set_mode(mode | _FLUSHING)
    return mode


@kept(**OPTIONS)
def _begin() -> Any:
    return flush_subnormals()


@kept(**OPTIONS)
def _end(mode: int) -> None:
    set_mode(mode)


@contextmanager
def subnormals_flushed() -> Iterator[None]:
    """Flush subnormal numbers to zero in this thread, in NumPy too."""
    mode = _begin()
    try:
        yield
    finally:
        _end(mode)
