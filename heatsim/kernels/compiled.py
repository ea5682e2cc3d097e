"""The functions of .cu files that stand alone, compiled for the current GPU."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from heatsim.kernels import binaries

FOLDER = Path(__file__).parent / "reductions"
REAL = {"float32": "float", "float64": "double"}


def options(macros: Mapping[str, str | int]) -> tuple[str, ...]:
    """Options of the compiler. Contraction to fma is off, so that a sum has the same bits everywhere."""
    return ("--std=c++17", "--fmad=false", *(f"-D{name}={value}" for name, value in macros.items()))


def function(source: str, name: str, macros: Mapping[str, str | int], folder: Path = FOLDER) -> Any:
    """One compiled function of a file in a folder. Call it with blocks, threads and arguments to launch it."""
    return _function(str(folder), source, name, tuple(macros.items()))


@cache  # rows of tables look up the same few functions thousands of times; these keys compare fast
def _function(folder: str, source: str, name: str, macros: tuple[tuple[str, str | int], ...]) -> Any:
    return _module(Path(folder, source), options(dict(macros))).get_function(name)


@cache
def _module(source: Path, compiler_options: tuple[str, ...]) -> Any:
    return binaries.load(source.read_text(encoding="utf-8"), compiler_options)
