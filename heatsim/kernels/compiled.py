"""The functions of .cu files that stand alone, compiled for the current GPU."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from heatsim.kernels import binaries

KERNELS = Path(__file__).parent
FOLDER = KERNELS / "reductions"
REAL = {"float32": "float", "float64": "double"}


def spliced(source: Path) -> str:
    """The source of a .cu file with its headers inserted, so that every cache notices a change in a header."""
    text = source.read_text(encoding="utf-8")

    def splice(include: re.Match[str]) -> str:
        next_line = text[: include.start()].count("\n") + 2
        return f'#line 1 "{include[1]}"\n{spliced(KERNELS / include[1])}\n#line {next_line} "{source.name}"'

    return re.sub(r'#include "(.+)"', splice, text)


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
    return binaries.load(spliced(source), compiler_options)
