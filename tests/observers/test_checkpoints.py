"""When checkpoints are written, and what they rely on."""

from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import runs

from heatsim import Simulation
from heatsim.errors import Interrupted
from heatsim.observers import checkpoint as observer
from heatsim.storage import checkpoint


@pytest.mark.parametrize(("wall", "steps"), [(2.5, [3, 6, 9, 12, 15, 16]), (100.0, [16]), (1e-9, [*range(1, 17), 16])])
def test_one_is_written_by_the_clock_on_the_wall_and_at_the_end(
    tmp_path: Path, wall: float, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a clock that moves on by a second a step."""
    seconds = count(0)
    now = 0
    write, poll = checkpoint.write, observer.Checkpoints.poll
    written = []

    def tick(self: observer.Checkpoints, state: object) -> None:
        nonlocal now
        now = next(seconds)
        poll(self, state)  # type: ignore[arg-type]

    def note(folder: Path, saved: checkpoint.Checkpoint, *rest: Any) -> None:
        written.append(saved.values["step"])
        write(folder, saved, *rest)

    next(seconds)
    monkeypatch.setattr(observer, "time", SimpleNamespace(monotonic=lambda: float(now)))
    monkeypatch.setattr(observer.Checkpoints, "poll", tick)
    monkeypatch.setattr(checkpoint, "write", note)
    runs.step_by_step(monkeypatch)
    runs.run(tmp_path, f"output.checkpoint_wall={wall!r}")
    assert written == steps


def test_it_knows_how_far_every_file_has_come(tmp_path: Path) -> None:
    simulation = Simulation.from_scenario(runs.write(tmp_path), output=tmp_path / "run")
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, 9, runs.interrupt)
        with pytest.raises(Interrupted):
            simulation.run()
    saved, _ = checkpoint.read_last_good(tmp_path / "run")
    assert saved is not None
    # Steps 0, 4, 8 of the fields; 0, 2, 4, 6, 8 of the rows.
    assert {name: saved.values[name] for name in ("step", "snapshots", "probe_rows", "energy_rows")} == {
        "step": 9,
        "snapshots": 3,
        "probe_rows": 5,
        "energy_rows": 5,
    }
    assert saved.values["reference"] == simulation.state.field.reference
    assert saved.arrays["deviation"].tobytes() == simulation.state.field.deviation.tobytes()
    # Two periodic and an insulated face need no sums.
    assert set(saved.arrays) == {"deviation", "ledger_surfaces"}
    shapes = [simulation.plan.problem.grid.face_shape(face) for face in (0, 1, 2)]
    assert saved.arrays["ledger_surfaces"].shape == (sum(rows * columns for rows, columns in shapes),)
