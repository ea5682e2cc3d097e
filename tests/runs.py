"""Small runs for the tests of behaviour: a scenario, heatsim as a user starts it, and the content of a folder."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heatsim
from heatsim.cli import main
from heatsim.physics.conditions.boundary import Boundary
from heatsim.run import batch_size
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.storage import checkpoint, field_counter, folder, run_tables, writer
from heatsim.storage.field_reader import FieldReader

# 16 steps, rows at every 2nd, fields at every 4th; all types of faces, a periodic axis, all axes different.
TEXT = """
title = "Every kind of face"

[domain]
size = [0.07, 0.05, 0.06]
cells = [7, 5, 6]

[material]
conductivity = [20.0, 12.0, 16.0]
density = 2000.0
specific_heat = 500.0

[initial]
temperature = "320 + 30*sin(60*x)*cos(40*y)"

[boundaries]
x_min = { type = "temperature", value = "300 + 20*sin(t)" }
x_max = { type = "convection", coefficient = { times = [0.0, 5.0], values = [100.0, 900.0] }, ambient = 280.0 }
y_min = { type = "flux", value = 5e3 }
z_min = { type = "periodic" }
z_max = { type = "periodic" }

[time]
end = 10.0
method = "euler"

[solver]
device = "cpu"

[output]
every = 2.5
probe_every = 1.25
figures = false

[[probes]]
name = "inside"
point = [0.031, 0.02, 0.01]

[[probes]]
name = "warm, side"
point = [0.0, 0.05, 0.06]
"""
LAST_STEP = 16
FIELD_TIMES = [0.0, 2.5, 5.0, 7.5, 10.0]

# Keys of a summary that depend on how the run went: wall-clock times, and warnings about them or about a resume.
TIMES = (
    *(
        "converge_time",
        "error_in_space",
        "wall_time",
        "preparing_time",
        "stepping_time",
        "observing_time",
        "waiting_time",
        "cells_per_second",
    ),
    "warnings",
)


class Killed(BaseException):
    """The end of the process; no code catches it."""


class _AtOnce:
    """Runs submitted work at once, instead of on a thread."""

    def __init__(self, *arguments: object) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future

    def shutdown(self) -> None:
        pass


def write(at: Path, text: str = TEXT, name: str = "mixed.toml") -> Path:
    path = at / name
    path.write_text(text, encoding="utf-8")
    return path


def run(at: Path, *overrides: str, output: Path | None = None) -> Path:
    """Run the scenario above without interruption and return its folder."""
    target = at / "whole" if output is None else output
    heatsim.Simulation.from_scenario(write(at), overrides, output=target).run()
    return target


def energy_rows(at: Path) -> list[dict[str, float]]:
    """The rows of a run's energy.csv: the time in s and the heats in J by name."""
    table = run_tables.read_energy(at)
    assert table is not None
    heats = {"time": table.times, **table.in_unit("J")}
    return [{name: float(values[row]) for name, values in heats.items()} for row in range(len(table.times))]


def probe_rows(at: Path) -> list[dict[str, float]]:
    """The rows of a run's probes.csv: the time in s and the temperatures in K by name."""
    table = run_tables.read_probes(at)
    assert table is not None
    curves = {"time": table.times, **table.in_unit("K")}
    return [{name: float(values[row]) for name, values in curves.items()} for row in range(len(table.times))]


# Runs together and runs alone each have their own fastest kernel.
OF_KERNELS = {"kernel", "launch"}


def results(at: Path, without: Collection[str] = ()) -> dict[str, Any]:
    """All results of a run to the bit, without times and without some values of the summary."""
    saved, warnings = checkpoint.read_last_good(at)
    assert saved is not None
    assert not warnings
    with FieldReader(at / folder.FIELDS) as reader:
        fields = {float(time): reader.read(i).tobytes() for i, time in enumerate(reader.times)}
    summary = json.loads((at / folder.SUMMARY).read_text())
    return {
        "fields": fields,
        "probes": (at / folder.PROBES).read_text(),
        "energy": (at / folder.ENERGY).read_text(),
        "checkpoint": {name: array.tobytes() for name, array in saved.arrays.items()},
        "values": {name: value for name, value in saved.values.items() if name != "wall_time"},
        "summary": {name: value for name, value in summary.items() if name not in {*TIMES, *without}},
    }


def step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the clock and signals after every step."""
    monkeypatch.setattr(batch_size, "BATCH_SECONDS", 0.0)


def write_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write fields and checkpoints in the thread that steps, so that the order is always the same."""
    monkeypatch.setattr(writer, "ThreadPoolExecutor", _AtOnce)
    monkeypatch.setattr(field_counter, "ThreadPoolExecutor", _AtOnce)


def make_unphysical(monkeypatch: pytest.MonkeyPatch, boundary: Boundary, key: str, since: float) -> None:
    """Let a condition have no usable value from a time in s on, which no reading of a scenario can find."""
    evaluate, number = Boundary._evaluate, boundary.keys.index(key)

    def spoil(of: Boundary, times: Any, reference: float, means: Any) -> Any:
        rows, physical = evaluate(of, times, reference, means)
        if of is boundary:
            physical[np.asarray(times) >= since, number] = False
        return rows, physical

    monkeypatch.setattr(Boundary, "_evaluate", spoil)


def after_step(monkeypatch: pytest.MonkeyPatch, step: int, action: Any) -> None:
    """Call action(stepper) as soon as ``step`` steps are done; 0: before the first."""
    step_by_step(monkeypatch)
    advance, prepare = Stepper.advance, Stepper.prepare

    def watched_advance(self: Stepper, steps: int) -> None:
        advance(self, steps)
        if self.step == step:
            action(self)

    def watched_prepare(self: Stepper) -> None:
        prepare(self)
        if step == 0:
            action(self)

    monkeypatch.setattr(Stepper, "advance", watched_advance)
    monkeypatch.setattr(Stepper, "prepare", watched_prepare)


def after_advance(monkeypatch: pytest.MonkeyPatch, number: int, action: Any) -> None:
    """Call action(stepper) after the n-th call of AdaptiveStepper.advance: a step, or a row of the step before."""
    step_by_step(monkeypatch)
    advance, calls = AdaptiveStepper.advance, iter(range(1, 1 << 30))

    def watched(self: AdaptiveStepper, steps: int) -> None:
        advance(self, steps)
        if next(calls) == number:
            action(self)

    monkeypatch.setattr(AdaptiveStepper, "advance", watched)


def interrupt(stepper: Stepper | AdaptiveStepper) -> None:
    """Send the signal of Ctrl-C."""
    signal.raise_signal(signal.SIGINT)


def kill(stepper: Stepper | AdaptiveStepper) -> None:
    raise Killed


def damage(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def environment() -> dict[str, str]:
    """The environment of a process that imports the package under test from any folder."""
    package = str(Path(heatsim.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))}


@contextmanager
def default_signals() -> Iterator[None]:
    """Let new processes handle signals as usual, even if this process ignores some, as under nohup."""
    ignored = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


def start(
    *arguments: str | Path, cwd: Path | None = None, encoding: str = "utf-8", safe_path: bool = False
) -> "subprocess.Popen[str]":
    """``heatsim ARGUMENTS`` in a new process; with ``safe_path`` it does not import from the current folder."""
    with default_signals():
        return subprocess.Popen(
            [sys.executable, *["-P"] * safe_path, "-m", "heatsim", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            encoding=encoding,
            env={**environment(), "PYTHONIOENCODING": encoding, "COLUMNS": "200"},
        )


def command(*arguments: str | Path, cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of ``heatsim ARGUMENTS`` in this process."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COLUMNS", "200")
        patch.chdir(Path.cwd() if cwd is None else cwd)
        code = main([str(argument) for argument in arguments])
    return code, *(stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[return-value,attr-defined]


def process(
    *arguments: str | Path, cwd: Path | None = None, encoding: str = "utf-8", safe_path: bool = False
) -> tuple[int, str, str]:
    """The same in a new process, for tests of what a process does, such as its start and its streams."""
    process = start(*arguments, cwd=cwd, encoding=encoding, safe_path=safe_path)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err
