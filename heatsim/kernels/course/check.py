"""Whether a learner's answer to an exercise is right, in words: `heatsim kernels --check FILE`."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from math import isclose, prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import InputError, RunError
from heatsim.grid import Grid
from heatsim.kernels import compilation, launch, structs
from heatsim.kernels.catalog import KERNELS as RUNGS
from heatsim.kernels.catalog import KernelSpec
from heatsim.kernels.course.exercises import KERNELS, number_of, open_gaps, solutions
from heatsim.kernels.emulation.machine import COUNTED, Order, compile_kernel, guarded
from heatsim.kernels.emulation.verdict import fault

_SECONDS = 60.0  # after which a kernel is said to hang; right ones take less than one
_GRID = Grid((28, 24, 12), (1.0, 1.0, 1.0))  # whole tiles of 02
_CLOSE = 0.1  # relative; what a prediction may be off


def check(path: Path) -> str:
    """What to say about a right answer.

    A kernel is compiled by g++ and executed one thread after the other, in two orders; see verdict.py for what this
    finds.

    Raises:
        InputError: the file is no exercise, or cannot be read.
        DeviceError: there is no g++.
        RunError: the answer is wrong, with what is wrong first.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    number = number_of(path, text)
    if gaps := open_gaps(text):
        raise RunError(f"{path}: replace each line with GAP by your answer\n  " + "\n  ".join(gaps))
    found = _predictions(path, text) if number == 1 else _kernel(path, number)
    return f"exercise {number}: right. {found}\nThe solution, with its reasons: {solutions()[number]}"


def _kernel(path: Path, number: int) -> str:
    """The traffic of a right kernel, in words."""
    compile_kernel(path, COUNTED)  # here, for its errors; the other process loads what is compiled
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-P", "-m", "heatsim.kernels.course.check", str(path.resolve()), str(number)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise RunError(f"{path}: the kernel has not ended after {_SECONDS:g} s: look for a loop without end") from None
    if done.returncode < 0:
        raise RunError(f"{path}: the kernel reads or writes far outside its arrays: look at the indices")
    if done.returncode:
        raise RunError(f"{path}: the kernel could not be launched:\n{done.stderr.rstrip()}")
    found = json.loads(done.stdout)
    if found["wrong"]:
        raise RunError(f"{path}: {found['wrong']}")
    return (
        f"The values are those of NumPy, in both orders of the threads. For each value written, the threads load "
        f"{found['loads']:.2f} from global memory and do {found['shared']:.2f} loads and stores of shared memory."
    )


def trial(path: Path, number: int) -> dict[str, Any]:
    """What is wrong with a learner's kernel, or None; and what it loads and uses for each value that it writes."""
    exercise, kernel = KERNELS[number], compile_kernel(path, COUNTED)
    source = guarded(exercise.values())

    def run(order: Order) -> NDArray[Any]:
        target = guarded(np.full(exercise.shape, np.nan, np.float32))
        sizes = map(np.int32, exercise.cells)
        kernel.launch(exercise.blocks, exercise.threads, source.array, target.array, *sizes, order=order)
        target.assert_guards_untouched()
        return target.array

    try:
        wrong = fault(run, exercise.oracle(exercise.values()))
    except TypeError as error:
        wrong = f"{error}; the parameters of the kernel must stay as they are"
    traffic = None if wrong else kernel.traffic(source.array, lambda: run("forward"))
    per_value = {} if traffic is None else {"loads": traffic.read, "shared": traffic.shared}
    return {"wrong": wrong, **{name: size / source.array.nbytes for name, size in per_value.items()}}


def _predictions(path: Path, text: str) -> str:
    """What was counted, if all predictions are close to it."""
    try:
        answers = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RunError(f"{path}: {error}") from None
    counted = dict(_counts())
    wrong = []
    for name, value in counted.items():
        given = answers.get(name)
        if not isinstance(given, int | float) or isinstance(given, bool):
            wrong.append(f"{name}: a number is expected, such as {name} = 1.5")
        elif not isclose(given, value, rel_tol=_CLOSE):
            wrong.append(f"{name}: you predict {given:g}, the emulated kernel counts {value:.2f}")
    if answers.get("faster") not in ("01", "02"):
        wrong.append('faster: "01" or "02" is expected, in quotes')
    elif answers["faster"] == "02":
        wrong.append("faster: 01 was faster on every GPU that was measured (heatsim/kernels/README.md)")
    if wrong:
        raise RunError(f"{path}:\n  " + "\n  ".join(wrong))
    numbers = ", ".join(f"{name} {value:.2f}" for name, value in counted.items())
    return f"Counted: {numbers}. Now explain in two sentences why 01 is faster."


def _counts() -> Iterator[tuple[str, float]]:
    """What the answers of exercise 1 are compared with, counted in the kernels."""
    first, second = (spec for spec in RUNGS if spec.name in ("naive", "tiled"))
    yield "loads_01", _loads(first)[0]
    loads, shared = _loads(second)
    yield from (("loads_02", loads), ("shared_02", shared))
    yield "working_02", prod(second.tile) / prod(second.block)


def _loads(spec: KernelSpec) -> tuple[float, float]:
    """Values that an emulated kernel loads from the field for each cell written; accesses to shared memory."""
    build = compilation.build(spec, "float32", "increments", _GRID)
    macros = [option for option in build.options if option.startswith("-D")]
    kernel = compile_kernel(compilation.FOLDER / build.source, (*COUNTED, *macros))
    T, T_new = np.zeros((2, *_GRID.shape), np.float32)
    numbers = (
        np.zeros((), structs.coefficients_dtype("float32")),
        np.zeros(1, structs.sweep_dtype("float32")),
        np.zeros((), structs.LEDGER),
    )
    (part,) = launch.launches(build, _GRID, (False, False, False), multiprocessors=1)
    traffic = kernel.traffic(T, lambda: kernel.launch(part.blocks, spec.block, T, T_new, part.grid, *numbers))
    return traffic.read / T.nbytes, traffic.shared / T.nbytes


if __name__ == "__main__":  # a process of its own, because a learner's kernel may hang or crash
    print(json.dumps(trial(Path(sys.argv[1]), int(sys.argv[2]))))
