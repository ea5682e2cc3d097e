"""Stabilized runs advanced together have the files, to the bit, that each has alone: each has its own steps."""

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import runs
from cuda_host import gpu

from heatsim.errors import Interrupted, Mistake, NotFiniteError, ScenarioError
from heatsim.kernels import cuda_graphs
from heatsim.observers.observer import Observer
from heatsim.observers.state import RunState
from heatsim.physics.time.stage_times import StageTimes
from heatsim.run import ensemble_rounds
from heatsim.run.ensemble import run_together
from heatsim.run.simulation import Simulation
from heatsim.solver.kernels import ensemble_stages
from heatsim.solver.kernels.stage_arguments import StageValues
from heatsim.solver.kernels.stage_kernels import StageKernels
from heatsim.solver.stabilized.ensemble import StabilizedEnsemble
from heatsim.storage import folder

COMMON = (
    *("domain.cells=[8,8,6]", "solver.device=cuda", "time.method=stabilized"),
    *("time.end=3.75", "output.every=1.25", "output.probe_every=0.25"),
)
# Stages, ends, tolerances, jumps, kinks, initial fields and when rows are due differ.
SURGE = "boundaries.x_max.ambient={times=[0.0, 2.0, 2.0, 3.5, 4.0], values=[280.0, 280.0, 400.0, 300.0, 300.0]}"
MEMBERS: tuple[tuple[str, ...], ...] = (
    (),
    ("material.conductivity=400.0", "time.end=3.5", "time.tolerance=2.0"),
    (SURGE, "output.probe_every=0.125", "time.tolerance=0.03"),
    ("boundaries.y_min.value=where(t < 1.7, 1e5, 0)", "time.end=3.0", "initial.temperature=333.0", "output.every=3.0"),
    ("boundaries.x_min.value=300 + 20*sin(9*t)", "time.tolerance=0.1"),
)


@pytest.fixture(params=["host", pytest.param("gpu", marks=pytest.mark.gpu)], autouse=True)
def some_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU, or the host in its part, with few stages recorded and few of them sent at once."""
    monkeypatch.setattr(cuda_graphs, "RUNS", (4, 2))
    monkeypatch.setattr(ensemble_stages, "_BYTES_PER_TABLE", 10_000)
    if request.param == "host":
        gpu.play_gpu(monkeypatch)


def simulations(at: Path, *overrides: str) -> list[Simulation]:
    at.mkdir(exist_ok=True)
    scenario = runs.write(at)
    return [
        Simulation.from_scenario(scenario, (*COMMON, *overrides, *own), output=at / f"member {number}")
        for number, own in enumerate(MEMBERS)
    ]


def together(members: Sequence[Simulation]) -> dict[int, Exception | None]:
    return {ended.number: ended.error for ended in run_together(members, [()] * len(members))}


def alone(at: Path, count: int, *overrides: str) -> list[Path]:
    members = simulations(at, *overrides)[:count]
    for member in members:
        member.run()
    return [member.folder for member in members]


def summaries(members: Iterable[Path]) -> list[dict[str, int]]:
    return [json.loads((member / folder.SUMMARY).read_text()) for member in members]


@pytest.mark.parametrize(
    ("overrides", "count"),
    [
        (("solver.kernel=auto",), len(MEMBERS)),
        pytest.param(("solver.kernel=naive", "solver.precision=float64"), 2, marks=pytest.mark.slow),
    ],
    ids=["auto", "float64"],
)
def test_the_files_are_those_of_runs_alone(tmp_path: Path, overrides: tuple[str, ...], count: int) -> None:
    members = simulations(tmp_path / "together", *overrides)[:count]
    assert together(members) == dict.fromkeys(range(count))
    folders = alone(tmp_path / "alone", count, *overrides)
    for member, own in zip(members, folders, strict=True):
        without = runs.OF_KERNELS if "solver.kernel=auto" in overrides else ()
        assert runs.results(member.folder, without) == runs.results(own, without)
    found = summaries(folders)
    assert len({summary["stages"] for summary in found}) == count
    assert count == 2 or sum(summary["rejected"] > 0 for summary in found) >= 2


def test_runs_that_fail_drop_out_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One has NaN in its field, one a foreign folder, one a condition that cannot be used in its fourth step."""
    members = simulations(tmp_path, "solver.kernel=naive")
    methods = [member.state.method for member in members]
    advance, evaluate = StabilizedEnsemble.advance, StageKernels.evaluate

    def spoil(ensemble: StabilizedEnsemble, numbers: Iterable[int]) -> dict[int, Exception]:
        if methods[1].reached > 2.0:
            methods[1].substeps._last.T[2, 1, 3] = np.nan
        return advance(ensemble, numbers)

    def refuse(kernels: StageKernels, stages: StageTimes, increments: StageTimes) -> StageValues[Any]:
        if kernels is methods[3].substeps.kernels and methods[3].work.steps == 3:
            raise ScenarioError("x.toml", [Mistake("boundaries.y_min", "too hot")])
        return evaluate(kernels, stages, increments)

    monkeypatch.setattr(StabilizedEnsemble, "advance", spoil)
    monkeypatch.setattr(StageKernels, "evaluate", refuse)
    members[2].folder.mkdir()
    (members[2].folder / "someone's file").touch()
    ended = together(members)
    assert isinstance(ended[1], NotFiniteError)
    assert "not from" in str(ended[2])
    assert "too hot" in str(ended[3])
    assert ended[0] is ended[4] is None


def test_interrupted_all_save_checkpoints_and_go_on_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted between steps and between a rejected try and the next; then alone, with others, as the last one."""
    options = ("solver.kernel=naive", "time.end=2.5")
    folders = alone(tmp_path / "alone", len(MEMBERS), *options)
    members = simulations(tmp_path / "together", *options)
    advance, left = StabilizedEnsemble.advance, 0

    def advance_and_stop(ensemble: StabilizedEnsemble, numbers: Iterable[int]) -> dict[int, Exception]:
        nonlocal left
        left -= 1
        if left == 0:
            runs.interrupt(ensemble._members[0])
        return advance(ensemble, numbers)

    for left in (1, 6):  # noqa: B007  (counted down by the function above)
        with monkeypatch.context() as patch:
            patch.setattr(StabilizedEnsemble, "advance", advance_and_stop)
            ended = together(members)
        assert Interrupted in {type(error) for error in ended.values()}
        members = [Simulation.resume(member.folder) for member in members]
    assert together(members[:2]) == {0: None, 1: None}
    members[2].run()
    assert together(members[3:4]) == together(members[4:]) == {0: None}
    for member, own in zip(members, folders, strict=True):
        assert runs.results(member.folder) == runs.results(own)


def test_all_members_try_a_step_in_each_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with rejected steps or more rows does not hold up the others."""
    rounds: list[int] = []
    advance = StabilizedEnsemble.advance

    def count(ensemble: StabilizedEnsemble, numbers: Iterable[int]) -> dict[int, Exception]:
        numbers = [*numbers]
        rounds.append(len(numbers))
        return advance(ensemble, numbers)

    monkeypatch.setattr(StabilizedEnsemble, "advance", count)
    members = simulations(tmp_path, "solver.kernel=naive", "time.end=2.5")
    together(members)
    tries = [summary["steps"] + summary["rejected"] for summary in summaries(m.folder for m in members)]
    assert len(rounds) == max(tries)
    assert sum(rounds) == sum(tries)


@pytest.mark.slow
def test_the_clock_is_checked_for_each_run_although_rows_are_due_in_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rounds take a second each, so no run may leave a round unchecked: a checkpoint by the clock depends on it."""
    rounds, advance = 0, StabilizedEnsemble.advance

    class Watcher(Observer):
        def __init__(self) -> None:
            self.polled = set[int]()

        def poll(self, state: RunState) -> None:
            self.polled.add(rounds)

    def count(ensemble: StabilizedEnsemble, numbers: Iterable[int]) -> dict[int, Exception]:
        nonlocal rounds
        rounds += 1
        return advance(ensemble, numbers)

    monkeypatch.setattr(StabilizedEnsemble, "advance", count)
    clock = SimpleNamespace(monotonic=lambda: float(rounds), perf_counter=time.perf_counter)
    monkeypatch.setattr(ensemble_rounds, "time", clock)
    members, watchers = simulations(tmp_path, "output.probe_every=0.05", "time.end=2.0")[:2], (Watcher(), Watcher())
    assert all(ended.error is None for ended in run_together(members, [[watcher] for watcher in watchers]))
    assert rounds > 2
    for watcher, member in zip(watchers, members, strict=True):
        steps = member.state.method.work.steps
        assert len(watcher.polled) >= min(rounds, steps)
