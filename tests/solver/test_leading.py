"""Steps that a GPU does while the host reads the field before them change no file.

The host plays a GPU that does all work as late as possible: when the host waits for it.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bodies
import numpy as np
import pytest
import runs
from cuda_host import gpu
from cuda_host.deferred import HostQueue, defer

from heatsim.device import Device
from heatsim.errors import HeatsimError, Interrupted
from heatsim.observers.observer import Observer
from heatsim.observers.state import RunState
from heatsim.observers.watchdog import Watchdog
from heatsim.run.simulation import Simulation
from heatsim.solver.field import field
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.rows import leading, rows_ahead
from heatsim.solver.rows.leading import Leading
from heatsim.solver.rows.observables import FoundRow, Observables
from heatsim.solver.rows.row_request import Request

# Rows, fields and comparisons at different steps. The length of the warm part is read from the field itself.
COMPOSITE = (
    bodies.EVERYTHING.replace("probe_every = 0.05", "probe_every = 0.02\nevery = 0.06\nregion_heat = true").replace(
        "end = 0.2", "end = 0.2\nstop_below = 1e-9"
    )
    + '[[probes]]\nname = "warm part"\nstatistic = "extent_x"\nthreshold = 320.0\n'
)
# Nothing reads the field itself between the fields: the extent of a part does, and so does the comparison of fields.
SUMS = COMPOSITE.replace('"extent_x"\nthreshold = 320.0', '"max"').replace("stop_below = 1e-9\n", "")
TEXTS = {"one material": runs.TEXT, "composite": COMPOSITE, "sums": SUMS}


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> HostQueue:
    """The host plays a GPU that does work when the host waits for it."""
    gpu.play_gpu(monkeypatch)
    runs.write_at_once(monkeypatch)
    return defer(monkeypatch)


def simulation(at: Path, text: str, *overrides: str) -> Simulation:
    return Simulation.from_scenario(runs.write(at.parent, text), ["solver.device=cuda", *overrides], output=at)


def read_at_once(monkeypatch: pytest.MonkeyPatch, queue: HostQueue) -> None:
    """From here on no steps are queued before a row is read, and work is done when it is queued."""
    monkeypatch.setattr(Leading, "of", lambda *arguments: None)
    monkeypatch.setattr(queue, "deferring", False)


def outcome(at: Path, text: str, *overrides: str) -> tuple[str, dict[str, bytes]]:
    """The error of a run, or nothing, and its tables."""
    message = ""
    try:
        simulation(at, text, *overrides).run()
    except HeatsimError as error:
        message = str(error).replace(str(at), "")
    return message, {name: (at / name).read_bytes() for name in ("probes.csv", "energy.csv")}


@pytest.mark.quick("sums-resident-64", "one material-streamed-1")
@pytest.mark.parametrize(
    ("name", "kernel", "most"),
    [
        ("one material", "streamed", 1),
        ("composite", "resident", 64),
        pytest.param("sums", "resident", 1, marks=pytest.mark.slow),
        ("sums", "resident", 64),
    ],
)
def test_files_are_those_of_a_run_that_reads_each_row_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: HostQueue, name: str, kernel: str, most: int
) -> None:
    """Also for batches that end between rows: the first ones have 1, 2, 4 steps. Up to ``most`` rows are read later."""
    monkeypatch.setattr(rows_ahead, "MOST_ROWS", most)
    pending, later, searched = list[int](), list[int](), list[bool]()
    handle, show, find_row, search = Watchdog.handle, FoundRow.show, RunState.find_row, field.first_of_each
    is_later = False

    def handle_row(watchdog: Watchdog, state: RunState) -> None:
        handle(watchdog, state)
        pending.append(queue.pending)

    def show_row(row: FoundRow, run: Observables) -> None:
        nonlocal is_later
        is_later = True
        show(row, run)
        later.append(queue.pending)

    def find_now(state: RunState) -> None:
        nonlocal is_later
        is_later = False
        find_row(state)

    def search_now(*arguments: Any) -> list[int]:
        searched.append(is_later)
        return search(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Watchdog, "handle", handle_row)
        patch.setattr(FoundRow, "show", show_row)
        patch.setattr(RunState, "find_row", find_now)
        patch.setattr(field, "first_of_each", search_now)
        simulation(tmp_path / "ahead", TEXTS[name], f"solver.kernel={kernel}").run()
    # The first row is that of the start. While the last ones are made, no steps are left.
    last = pending.index(0, 1)
    assert last > 2, "the GPU has no work while a row is made"
    assert not any(pending[last:])
    assert not any(searched), "the field is that of a later step"
    # In the other runs most rows have a field, or an extent that is read from the field.
    assert len(later) > 1
    assert (len(later) > 2) == (name == "sums")
    read_at_once(monkeypatch, queue)
    simulation(tmp_path / "direct", TEXTS[name], f"solver.kernel={kernel}").run()
    assert runs.results(tmp_path / "ahead") == runs.results(tmp_path / "direct")


def test_rows_before_and_after_sums_are_carried_over_are_read_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: HostQueue
) -> None:
    """The steps queued after the last row of a batch carry the ledger over: the sums of a row lie elsewhere then."""
    monkeypatch.setattr("heatsim.solver.euler.stepper.STEPS_TO_CARRY", 1)
    often = "solver.kernel=resident", "output.probe_every=0.002", "output.every=0.06", "time.end=0.06"
    carried, rows = list[int](), list[bool]()
    carry, show = Ledger.carry, FoundRow.show

    def carry_now(ledger: Ledger) -> None:
        carry(ledger)
        carried.append(len(rows))

    def show_row(row: FoundRow, run: Observables) -> None:
        show(row, run)
        rows.append(bool(carried))

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "carry", carry_now)
        patch.setattr(FoundRow, "show", show_row)
        simulation(tmp_path / "ahead", SUMS, *often).run()
    assert carried
    assert True in rows
    read_at_once(monkeypatch, queue)
    simulation(tmp_path / "direct", SUMS, *often).run()
    assert runs.results(tmp_path / "ahead") == runs.results(tmp_path / "direct")


@pytest.mark.slow
@pytest.mark.parametrize("call", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_without_room_for_the_sums_of_rows_each_row_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: HostQueue, call: int
) -> None:
    """The device may have no room for the first launches, or for those that read the other buffer of the field."""
    calls, request = 0, Request.__init__

    def refuse(self: Request, runs: Sequence[Observables], *arguments: Any) -> None:
        nonlocal calls
        if runs[0].ledger is not state.ledger:
            calls += 1
            if calls == call:
                raise MemoryError
        request(self, runs, *arguments)

    often = "solver.kernel=streamed", "output.probe_every=0.004", "time.end=0.12"
    with monkeypatch.context() as patch:
        patch.setattr(Request, "__init__", refuse)
        run = simulation(tmp_path / "ahead", SUMS, *often)
        state = run.state
        run.run()
    assert calls == call
    read_at_once(monkeypatch, queue)
    simulation(tmp_path / "direct", SUMS, *often).run()
    assert runs.results(tmp_path / "ahead") == runs.results(tmp_path / "direct")


def test_a_run_that_fails_between_rows_resumes_to_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: HostQueue
) -> None:
    """It ends when the device has done the steps ahead: they fill memory that the next run in this process may get."""
    often = "solver.kernel=resident", "output.probe_every=0.004", "output.checkpoint_wall=1e-9", "time.end=0.12"
    handle = Watchdog.handle

    def fail(watchdog: Watchdog, state: RunState) -> None:
        if state.step > 60 and queue.pending:
            raise HeatsimError("a mistake")
        handle(watchdog, state)

    parts = simulation(tmp_path / "parts", SUMS, *often)
    with monkeypatch.context() as patch:
        patch.setattr(Watchdog, "handle", fail)
        with pytest.raises(HeatsimError, match="a mistake"):
            parts.run()
    assert not queue.pending
    resumed = Simulation.resume(tmp_path / "parts")
    assert 0 < resumed.step < parts.step
    resumed.run()
    read_at_once(monkeypatch, queue)
    simulation(tmp_path / "direct", SUMS, *often).run()
    assert runs.results(tmp_path / "parts") == runs.results(tmp_path / "direct")


@pytest.mark.quick("5")
@pytest.mark.parametrize("step", [5, 9])  # rows are due after even steps
def test_an_interrupted_run_resumes_to_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: HostQueue, step: int
) -> None:
    """The steps ahead of the last row are dropped, and done again."""
    simulation(tmp_path / "whole", runs.TEXT).run()
    parts = simulation(tmp_path / "parts", runs.TEXT)
    with monkeypatch.context() as patch:
        runs.after_step(patch, step, runs.interrupt)
        with pytest.raises(Interrupted):
            parts.run()
    resumed = Simulation.resume(tmp_path / "parts")
    assert 0 < resumed.step < step, "the step was ahead"
    resumed.run()
    assert runs.results(tmp_path / "parts") == runs.results(tmp_path / "whole")


SINGULAR = "300 + min(20, 1/abs(t - {0}) - 1/abs(t - {0}))"
HUGE = ("material.conductivity=1e-11", "time.end=1e14", "output.every=2.5e13", "output.probe_every=1.25e13")
ENDINGS = {
    "a step that cannot be done": (runs.TEXT.replace("300 + 20*sin(t)", SINGULAR.format(5.625)), (), "t = 5.625 s"),
    "a row, and the step after it": (runs.TEXT.replace("300 + 20*sin(t)", SINGULAR.format(5)), (), "is nan K at t = 5"),
    "overflow": (runs.TEXT.replace("value = 5e3", "value = 1e30"), HUGE, "NaN or infinity in the field"),
    "steady": (runs.TEXT.replace(" + 20*sin(t)", "").replace("[0.0, 5.0]", "[0.0, 1.0]"), ("time.stop_below=1e9",), ""),
}


@pytest.mark.quick("a step that cannot be done", "steady", "overflow")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_run_that_ends_early_leaves_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: HostQueue, ending: str
) -> None:
    """An error in the steps ahead is raised after the row before them; a stop drops them."""
    text, overrides, message = ENDINGS[ending]
    ahead = outcome(tmp_path / "ahead", text, *overrides)
    assert message in ahead[0]
    assert bool(message) == bool(ahead[0])
    assert 2 <= ahead[1]["probes.csv"].count(b"\n") < 9, "the run ends early"
    read_at_once(monkeypatch, queue)
    assert ahead == outcome(tmp_path / "direct", text, *overrides)


def test_a_watcher_sees_the_field_of_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: HostQueue
) -> None:
    """Its own reading waits for the steps ahead, which change another field."""

    class Watcher(Observer):
        def __init__(self) -> None:
            self.seen: dict[int, bytes] = {}

        def due(self, state: RunState) -> Any:
            return np.arange(1, runs.LAST_STEP + 1)

        def handle(self, state: RunState) -> None:
            self.seen[state.step] = state.field.temperature().tobytes()

    watchers = Watcher(), Watcher()
    simulation(tmp_path / "ahead", runs.TEXT).run(watchers=[watchers[0]])
    read_at_once(monkeypatch, queue)
    simulation(tmp_path / "direct", runs.TEXT).run(watchers=[watchers[1]])
    assert len(watchers[0].seen) == runs.LAST_STEP
    assert watchers[0].seen == watchers[1].seen


def test_a_wait_for_steps_ahead_is_no_reason_for_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: HostQueue
) -> None:
    """A watcher that reads the field itself waits for them: 32 s, of which the GPU is busy for nearly all."""
    seconds = 0.0

    class Watcher(Observer):
        def due(self, state: RunState) -> Any:
            return np.arange(1, runs.LAST_STEP + 1)

        def handle(self, state: RunState) -> None:
            nonlocal seconds
            seconds += 2.0

    def warnings(busy: float, folder: str) -> list[str]:
        def timed(device: Device, work: Callable[[], object]) -> Callable[[], float]:
            work()
            return lambda: busy

        monkeypatch.setattr(Device, "timed", timed)
        run = simulation(tmp_path / folder, runs.TEXT)
        run.run(watchers=[Watcher()])
        return [warning for warning in run.warnings if "the next run takes less time" in warning]

    monkeypatch.setattr("heatsim.run.timing.time", SimpleNamespace(perf_counter=lambda: seconds))
    assert not warnings(1.8, "busy")
    assert warnings(0.8, "idle")


def test_without_room_for_a_copy_each_row_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.play_gpu(monkeypatch)
    state = simulation(tmp_path / "run", runs.TEXT).state
    assert Leading.of(state.field, state.ledger, state.part) is not None

    def refuse(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(leading, "Ledger", refuse)
    assert Leading.of(state.field, state.ledger, state.part) is None
    monkeypatch.undo()
    state = simulation(tmp_path / "on a CPU", runs.TEXT, "solver.device=cpu").state
    assert Leading.of(state.field, state.ledger, state.part) is None
