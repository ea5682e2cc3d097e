"""Workers that die: their runs go to other workers, and a run that kills every worker fails."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from heatsim.study import folder as study_folder
from heatsim.study.progress import Event
from heatsim.study.worker_processes import Shares, WorkerProcesses
from heatsim.study.workers import LocalWorkers

# Has the protocol of a worker. Completes all runs but 2, which kills it, at the next step in the file "steps".
WORKER = """
import json, os, pathlib, signal, sys
print(json.dumps({"ready": True}), flush=True)
steps = pathlib.Path(__file__).with_name("steps")
for line in sys.stdin:
    for number in json.loads(line):
        if number == 2:
            first, *rest = steps.read_text().split()
            steps.write_text(" ".join(rest or [first]))
            print(json.dumps({"run": 2, "step": int(first)}), flush=True)
            if first != "99":
                print("out of things", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
        print(json.dumps({"run": number, "status": "done", "message": ""}), flush=True)
    print(json.dumps({"idle": True}), flush=True)
"""


# Begins all runs of a group at once. A group with run 6 kills it.
STACKING_WORKER = """
import json, os, signal, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    group = json.loads(line)
    with open("groups", "a") as groups:
        groups.write(f"{len(group)} ")
    for number in group:
        print(json.dumps({"run": number, "step": 0}), flush=True)
    if 6 in group:
        os.kill(os.getpid(), signal.SIGKILL)
    for number in group:
        print(json.dumps({"run": number, "status": "done", "message": ""}), flush=True)
    print(json.dumps({"idle": True}), flush=True)
"""


# Sets up the runs of a group one after the other; setting up run 6 kills it.
SETTING_UP = """
import json, os, signal, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    for number in json.loads(line):
        if number == 6:
            os.kill(os.getpid(), signal.SIGKILL)
        print(json.dumps({"run": number, "step": 0}), flush=True)
        print(json.dumps({"run": number, "status": "done", "message": ""}), flush=True)
    print(json.dumps({"idle": True}), flush=True)
"""


def events(
    at: Path,
    monkeypatch: pytest.MonkeyPatch,
    steps: str,
    worker: str = WORKER,
    groups: Sequence[Sequence[int]] = ((1, 2, 3), (4,)),
) -> list[Event]:
    (at / "worker.py").write_text(worker)
    (at / "steps").write_text(steps)
    (at / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "{at / "worker.py"}"\n')
    (at / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(at / "python"))
    workers = LocalWorkers(at, groups, WorkerProcesses(at, Shares(workers=1, threads=1), "cpu"))
    found = [event for event in workers.events() if event is not None and event.status]
    assert workers.stop() == []
    return found


def test_a_run_that_kills_every_worker_is_given_up_and_the_others_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = events(tmp_path, monkeypatch, "0")
    assert [(event.number, event.status) for event in found] == [(1, "done"), (2, "failed"), (3, "done"), (4, "done")]
    message = "the worker process was killed by signal 9, 5 times at the same step of this run"
    assert found[1].message == f"{message}; its last line of output: out of things"
    assert study_folder.read_failure(study_folder.run_path(tmp_path, 2)) == (found[1].message, True)


def test_a_run_that_gets_further_each_time_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = events(tmp_path, monkeypatch, "0 10 10 10 20 20 30 30 30 99")
    assert [(event.number, event.status) for event in found] == [(number, "done") for number in (1, 2, 3, 4)]


def test_of_runs_advanced_together_the_one_that_kills_workers_is_found_by_halving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = events(tmp_path, monkeypatch, "", STACKING_WORKER, [[1, 2, 3, 4, 5, 6, 7, 8]])
    assert sorted(event.number for event in found if event.status == "done") == [1, 2, 3, 4, 5, 7, 8]
    assert [event.number for event in found if event.status == "failed"] == [6]
    sizes = [int(size) for size in (tmp_path / "groups").read_text().split()]
    assert sizes[:4] == [8, 4, 4, 2]
    assert sizes.count(1) == 6


def test_a_run_that_kills_workers_while_it_is_set_up_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = events(tmp_path, monkeypatch, "", SETTING_UP, [[1, 2, 3, 4, 5, 6, 7, 8]])
    assert sorted(event.number for event in found if event.status == "done") == [1, 2, 3, 4, 5, 7, 8]
    (failed,) = (event for event in found if event.status == "failed")
    assert failed.number == 6
    assert failed.message.startswith("the worker process was killed by signal 9, 5 times at the same step of this run")
