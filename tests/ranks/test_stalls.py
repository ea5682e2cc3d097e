"""Find a rank that is alive but makes no progress, and ignore one that is slow or begins with long work."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from slab_runs import LINEAR, painted, problem_of
from thread_team import on_ranks

from heatsim.observers.observer import Observer
from heatsim.observers.state import RunState
from heatsim.parallel import activity, mpi_team, stalls
from heatsim.parallel.activity import Activity, Meter, unforeseen
from heatsim.parallel.stalls import find_stalled
from heatsim.parallel.team import Team
from heatsim.run.initial_state import initial_state
from heatsim.run.observed_run import ObservedRun
from heatsim.run.plan import Plan
from heatsim.run.timing import Timing
from heatsim.storage.disk import sync_folder
from heatsim.storage.system import File
from heatsim.storage.writer import Writer

WAITS = Activity(waiting=True, longest_busy=0.5, longest_idle=0.1)
STEP = 0.02  # s between samples


def during(work: Callable[[], object], seconds: float, meter: Meter, paced: bool = True) -> list[Activity]:
    """What a meter sees while a thread works."""

    def run() -> None:
        with meter.paced() if paced else nullcontext():
            work()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    found = []
    for _ in range(round(seconds / STEP)):
        time.sleep(STEP)
        found.append(meter.look())
    return found


def loop(seconds: float) -> None:
    """Calculate for some time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc")
def test_a_meter_distinguishes_a_loop_a_blocked_call_and_a_wait(tmp_path: Path) -> None:
    meter, going_on = Meter(STEP), [True]

    def calculate() -> None:
        while going_on[0]:
            pass

    started = time.perf_counter()
    busy = during(calculate, 0.4, meter)
    assert 0.05 < busy[-1].busy <= time.perf_counter() - started
    assert busy[-1].idle == 0.0
    assert busy[-1].where.startswith(os.path.join("ranks", "test_stalls.py:"))
    going_on[0] = False
    time.sleep(0.1)
    assert meter.look().longest_busy == busy[-1].busy  # the loop has ended

    # A pipe without a writer blocks, like a disk that hangs.
    os.mkfifo(tmp_path / "pipe")
    blocked = during((tmp_path / "pipe").read_bytes, 0.6, meter)
    assert 0.2 < blocked[-1].idle <= 0.61
    assert blocked[-1].busy < 0.1
    (tmp_path / "pipe").write_bytes(b"")

    def wait() -> None:
        with meter.waiting():
            time.sleep(0.2)

    def compile_code() -> None:
        with unforeseen():
            time.sleep(0.2)

    waited = during(wait, 0.16, meter)
    assert all(each.waiting and each.idle == each.busy == 0.0 for each in waited[1:])
    time.sleep(0.1)
    assert all(each.idle == each.busy == 0.0 for each in during(compile_code, 0.16, meter)[1:])
    assert all(each.idle == each.busy == 0.0 for each in during(lambda: time.sleep(0.2), 0.1, meter, paced=False))


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc")
def test_a_rank_that_steps_does_not_wait_while_another_thread_of_it_does() -> None:
    """The thread that writes files waits for the files of other ranks; their steps do not delay it."""
    meter, ended, sampled = Meter(STEP), threading.Event(), threading.Event()

    def write() -> None:
        with meter.waiting():
            ended.wait()

    def step() -> None:
        while not sampled.is_set():  # a sample may take a tenth of a second beside a thread that calculates
            loop(STEP)

    threading.Thread(target=write, daemon=True).start()
    stepping = during(step, 0.2, meter)[2:]
    sampled.set()
    assert max(each.busy for each in stepping) > 0.05
    assert sum(each.waiting for each in stepping) < len(stepping) / 2
    time.sleep(0.3)
    # Now the steps wait for the files, and so for other ranks.
    blocked = during(lambda: time.sleep(0.4), 0.2, meter)[2:]
    assert sum(each.waiting for each in blocked) > len(blocked) / 2
    ended.set()


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc")
def test_a_meter_names_the_file_that_a_thread_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the thread that steps writes it, or waits for a thread that does; a wait for anything else is none."""
    meter, answers, writer = Meter(STEP), threading.Event(), Writer()
    path = tmp_path / "field"
    file = File.create(path)
    monkeypatch.setattr(os, "fsync", lambda descriptor: answers.wait())

    def write() -> None:
        writer.submit(file.sync)
        writer.wait()

    for work, awaited in ((file.sync, path), (write, path), (lambda: sync_folder(tmp_path), tmp_path)):
        answers.clear()
        waited = during(work, 0.4, meter)
        assert waited[-1].idle > 0.1
        assert waited[-1].disk == str(awaited)
        answers.set()
        time.sleep(0.1)
        assert meter.look().longest_idle == 0.0  # the next call of another kind has no more time
    answers.clear()
    writer.submit(answers.wait)
    stuck = during(writer.wait, 0.4, meter)
    assert stuck[-1].idle > 0.1
    assert stuck[-1].disk == ""
    answers.set()
    writer.wait()


@pytest.mark.parametrize(("paced", "threads"), [(False, {1, 2}), (True, {0})])
def test_observers_of_a_caller_may_take_any_time(paced: bool, threads: set[int]) -> None:
    """The time that they need once on one rank, as for a picture, does not end the job."""
    seen: list[int] = []

    class Watcher(Observer):
        def due(self, state: RunState) -> NDArray[np.int64]:
            return np.zeros(1, dtype=np.int64)

        def handle(self, state: RunState) -> None:
            seen.append(activity._unforeseen.threads)

        poll = handle

    class Own(Watcher):
        paced = True

    def run(team: Team) -> None:
        plan = Plan.of(painted(problem_of(LINEAR, solver={"device": "cpu"}), team), team)
        ObservedRun(initial_state(plan, Path("nowhere")), [Own() if paced else Watcher()], Timing(), None).observe()

    on_ranks(2, run)
    assert len(seen) == 4
    assert threads.issuperset(seen)


def test_a_stalled_rank_exceeds_what_other_ranks_needed() -> None:
    def found(late: Activity, other: Activity = WAITS) -> str | None:
        stalled = find_stalled([other, late, other], 20.0)
        assert stalled is None or stalled[0] == 1
        return None if stalled is None else stalled[1]

    assert found(Activity(busy=19.0)) is None
    text = found(Activity(busy=21.0, where="solver/x.py:3, in f"))
    assert text == ("has used 21 s of processor time (solver/x.py:3, in f), while others wait for it")
    assert "has done nothing for 21 s" in str(found(Activity(idle=21.0)))
    # Other ranks needed 3 s for this work, or this rank before; or no rank waits; or a disk does not answer.
    assert found(Activity(busy=29.0), Activity(waiting=True, longest_busy=3.0)) is None
    assert found(Activity(busy=29.0, longest_busy=3.0)) is None
    assert found(Activity(idle=29.0, longest_idle=3.0)) is None
    assert found(Activity(busy=100.0), Activity()) is None
    assert found(Activity(idle=1199.0, disk="/shared/run/fields.vtkhdf")) is None
    assert found(Activity(idle=1201.0, disk="/shared/run/fields.vtkhdf")) == (
        "has waited 1201 s for /shared/run/fields.vtkhdf, which does not answer"
    )


def test_ranks_wait_longer_for_others_than_these_for_a_disk() -> None:
    """Otherwise the message would not name the file."""
    assert stalls.SECONDS_FOR_DISK < mpi_team.PATIENCE
    waiting = [WAITS, Activity(idle=21.0, disk="a disk")]
    assert stalls.find_waiting_for_disk(waiting, 20.0) == (1, "a disk")
    assert stalls.find_waiting_for_disk(waiting, 22.0) is None
