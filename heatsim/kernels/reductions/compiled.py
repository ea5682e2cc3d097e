"""The functions of this folder's .cu files, compiled for the current GPU."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
REAL = {"float32": "float", "float64": "double"}


def options(macros: Mapping[str, str | int]) -> tuple[str, ...]:
    """The compiler's options; no contraction, so that a sum is rounded alike everywhere."""
    return ("--std=c++17", "--fmad=false", *(f"-D{name}={value}" for name, value in macros.items()))


def function(source: str, name: str, macros: Mapping[str, str | int]) -> Any:
    """One function of a file in this folder; CuPy launches it when it is called with blocks, threads and arguments."""
    return _module(source, options(macros)).get_function(name)


@cache
def _module(source: str, compiler_options: tuple[str, ...]) -> Any:
    import cupy

    code = (FOLDER / source).read_text(encoding="utf-8")
    return cupy.RawModule(code=code, options=compiler_options, backend="nvrtc")
