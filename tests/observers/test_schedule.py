"""Who is called when: the loop stops exactly at due steps and nowhere else."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import runs
from numpy.typing import NDArray

from heatsim import Simulation
from heatsim.observers.observer import Observer
from heatsim.observers.snapshots import Snapshots
from heatsim.observers.state import RunState
from heatsim.observers.watchdog import Watchdog
from heatsim.run import batch_size, make_observers


class Recorder(Observer):
    """Due at the steps given; keeps what it is told."""

    def __init__(self, steps: Sequence[int]) -> None:
        self.steps = steps
        self.told: list[tuple[str, int]] = []

    def due(self, state: RunState) -> NDArray[np.int64]:
        return np.array(self.steps, dtype=np.int64)

    def handle(self, state: RunState) -> None:
        self.told.append(("handle", state.step))

    def poll(self, state: RunState) -> None:
        self.told.append(("poll", state.step))

    def finish(self, state: RunState) -> None:
        self.told.append(("finish", state.step))

    def close(self) -> None:
        self.told.append(("close", -1))


def test_batches_of_a_large_grid_reach_the_depth_of_its_kernel() -> None:
    """A step that takes 0.5 s by itself takes 0.05 s in a sweep of 16 steps."""
    batch, plain = batch_size.BatchSize(16), batch_size.BatchSize()
    for _ in range(8):
        batch.took(batch.steps, max(0.5, 0.05 * batch.steps))
        plain.took(plain.steps, max(0.5, 0.05 * plain.steps))
    assert (batch.steps, plain.steps) == (16, 1)
    for _ in range(8):
        batch.took(batch.steps, 0.5 * batch.steps)
    assert batch.steps == 4


@pytest.mark.parametrize("steps", [[0, 1, 2, 3], [0, 5, 16], [16], [], [3, 7, 11]])
@pytest.mark.parametrize("batch_seconds", [0.0, 10.0])
def test_an_observer_is_called_after_each_of_its_steps_once(
    tmp_path: Path, steps: list[int], batch_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(steps)
    monkeypatch.setattr(batch_size, "BATCH_SECONDS", batch_seconds)
    monkeypatch.setattr(make_observers, "Progress", lambda: recorder)
    run = Simulation.from_scenario(runs.write(tmp_path), output=tmp_path / "run")
    run.run(progress=True)
    assert [step for what, step in recorder.told if what == "handle"] == steps
    assert recorder.told[-2:] == [("finish", runs.LAST_STEP), ("close", -1)]
    polled = [step for what, step in recorder.told if what == "poll"]
    assert polled == sorted(set(polled))
    # However long the batches, the clock is looked at after every due step of any observer.
    assert set(polled) >= {2, 4, 6, 8, 10, 12, 14, 16} | set(steps) - {0}
    if batch_seconds == 0.0:
        assert polled == list(range(1, runs.LAST_STEP + 1))


def test_observers_let_go_of_their_files_when_another_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(Recorder):
        def handle(self, state: RunState) -> None:
            super().handle(state)
            raise ValueError("failed")

    failing, closed = Failing([4]), []
    close = Snapshots.close
    monkeypatch.setattr(make_observers, "Progress", lambda: failing)
    monkeypatch.setattr(Snapshots, "close", lambda self: (closed.append(self), close(self)))
    with pytest.raises(ValueError, match="failed"):
        Simulation.from_scenario(runs.write(tmp_path), output=tmp_path / "run").run(progress=True)
    assert failing.told[-2:] == [("handle", 4), ("close", -1)]
    assert len(closed) == 1


def test_the_watchdog_looks_at_every_due_step_before_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int]] = []

    def watched(kind: type[Observer]) -> None:
        handle = kind.handle
        monkeypatch.setattr(
            kind, "handle", lambda self, state: (told.append((kind.__name__, state.step)), handle(self, state))
        )

    watched(Watchdog)
    watched(Snapshots)
    runs.run(tmp_path)
    assert [step for name, step in told if name == "Watchdog"] == list(range(0, 18, 2))
    assert [step for name, step in told if name == "Snapshots"] == [0, 4, 8, 12, 16]
    for i, (name, step) in enumerate(told):
        assert name == "Watchdog" or told[i - 1] == ("Watchdog", step)
