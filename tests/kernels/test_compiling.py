"""Functions that several processes compile together, also where one of these fails or hangs."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import types

import heatsim
from heatsim import numba_cache
from heatsim.kernels.cpu import blocked, compiling, composite
from heatsim.kernels.cpu.compiling import Code, compile_ahead, compile_all, sweeps
from heatsim.kernels.multigrid.cpu_sweeps import codes
from heatsim.kernels.reductions import cpu_fused, cpu_step_error

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes fork on Linux only")

HERE = os.getpid()
KERNELS = (blocked, composite)
SCENARIO = Path(__file__).parents[2] / "scenarios/cube.toml"


class Task(Code):
    """Notes in a folder which process did it, and how many files that had open."""

    kept, stored = True, False  # type: ignore[assignment]

    def compile(self) -> None:
        opened = len(os.listdir("/proc/self/fd"))
        (self.function / f"{self.types[0]} {os.getpid()} {opened}").touch()
        # Long enough for the other process to take the next one.
        time.sleep(0.2 if os.getpid() == HERE else self.types[1])


class Death(Task):
    """A task that ends any process but this one."""

    def compile(self) -> None:
        if os.getpid() != HERE:
            os.kill(os.getpid(), signal.SIGKILL)
        super().compile()


@pytest.fixture(autouse=True)
def two_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 2)
    yield
    with pytest.raises(ChildProcessError):  # none is left
        os.waitpid(-1, os.WNOHANG)


def done(folder: Path) -> list[tuple[int, int, int]]:
    """The task, the process and its number of open files, of all that was done."""
    return sorted(tuple(map(int, path.name.split())) for path in folder.iterdir())  # type: ignore[misc]


def test_each_function_is_compiled_by_one_of_several_processes(tmp_path: Path) -> None:
    with (tmp_path.parent / "open").open("w"):
        compile_all([Task(tmp_path, (number, 0.2)) for number in range(3)])
    elsewhere = [(number, opened) for number, process, opened in done(tmp_path) if process != HERE]
    # This process then loads what the other one compiled.
    assert [number for number, process, _ in done(tmp_path) if process == HERE] == [0, 1, 2]
    assert 1 <= len(elsewhere) <= 2
    # Three streams, the pipe, and the list of open files.
    assert {opened for _, opened in elsewhere} == {5}


def test_functions_are_compiled_beside_other_work(tmp_path: Path) -> None:
    codes = [Task(tmp_path, (number, 0.0)) for number in range(3)]
    compile_ahead(codes[:2])
    compile_ahead(codes[:2])  # as if another run were set up
    until = time.monotonic() + 20.0
    while len(done(tmp_path)) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert [number for number, process, _ in done(tmp_path) if process != HERE] == [0, 1]
    compile_all(codes)
    # This process loads what the other one compiled, and compiles the last function.
    assert [number for number, process, _ in done(tmp_path) if process == HERE] == [0, 1, 2]


def test_a_forked_process_leaves_what_another_one_began(tmp_path: Path) -> None:
    compile_ahead([Task(tmp_path, (0, 1.0))])
    process = os.fork()
    if process == 0:
        os._exit(len(compiling._ahead))
    assert os.waitpid(process, 0)[1] == 0
    compile_all([])


def test_a_process_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_PATIENCE", 0.5)
    monkeypatch.setattr(compiling, "_LEAST_PATIENCE", 0.0)
    started = time.monotonic()
    compile_all([Task(tmp_path, (number, 60.0)) for number in range(2)])
    assert time.monotonic() - started < 10.0
    assert {number for number, process, _ in done(tmp_path) if process == HERE} == {0, 1}


def test_a_process_that_hangs_is_ended_if_a_run_starts_long_after_its_set_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "_MOST_PATIENCE", 0.5)
    task = Task(tmp_path, (0, 60.0))
    compile_ahead([task])
    until = time.monotonic() + 20.0
    while not done(tmp_path) and time.monotonic() < until:
        time.sleep(0.01)
    clock = time.monotonic
    monkeypatch.setattr(compiling.time, "monotonic", lambda: clock() + 3600.0)
    started = clock()
    compile_all([])
    assert clock() - started < 10.0


def test_a_process_that_hangs_at_its_start_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_keep_only", lambda pipe: time.sleep(60.0))
    monkeypatch.setattr(compiling, "_PATIENCE", 0.1)
    monkeypatch.setattr(compiling, "_LEAST_PATIENCE", 0.0)
    started = time.monotonic()
    compile_all([Task(tmp_path, (number, 0.0)) for number in range(2)])
    assert time.monotonic() - started < 10.0
    assert [process for _, process, _ in done(tmp_path)] == [HERE, HERE]


@pytest.mark.parametrize("kept", [True, False])
def test_a_process_compiles_alone_with_one_thread_or_without_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1 if kept else 2)
    monkeypatch.setattr(Task, "kept", kept)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("another process was forked"))
    compile_all([Task(tmp_path, (number, 0.0)) for number in range(2)])
    assert [process for _, process, _ in done(tmp_path)] == [HERE, HERE]


def test_what_a_process_did_not_compile_is_compiled_here(tmp_path: Path) -> None:
    compile_all([Death(tmp_path, (number, 0.0)) for number in range(2)])
    assert {number for number, process, _ in done(tmp_path) if process == HERE} == {0, 1}


def test_code_of_the_other_process_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def plus(number: int) -> Any:
        def added(x: int) -> int:
            return x + number

        return numba_cache.Callback(added, types.int64(types.int64), f"plus_{number}")

    functions = [plus(number) for number in range(2)]
    compile_all([Code(function) for function in functions])
    assert [function.ctypes(5) for function in functions] == [5, 6]
    assert sum(function.cache_hits for function in functions) >= 1


SLAB = ["domain.cells=[12, 6, 1]", "time.end=20", "output.figures=false"]


@pytest.mark.parametrize("method", ["euler", "stabilized", "steady"])
def test_runs_call_the_code_that_is_compiled_beforehand(tmp_path: Path, method: str) -> None:
    """If types differed, it would be compiled twice."""
    dtype = np.dtype("float32")
    planned = [*codes(dtype), *(sweeps(kernel.advance, dtype) for kernel in KERNELS), cpu_step_error.code(dtype)]
    for number in (dtype, np.dtype("float64")):
        planned += cpu_fused.codes(number, np.dtype("uint8"), thermometers=True)
    before = {id(code.function): set(code.function.overloads) for code in planned}
    overrides = [*SLAB, f'time.method="{method}"']
    heatsim.Simulation.from_scenario(SCENARIO, overrides, output=tmp_path).run()
    for code in planned:
        types_of_function = {other.types for other in planned if other.function is code.function}
        assert set(code.function.overloads) - before[id(code.function)] <= types_of_function
