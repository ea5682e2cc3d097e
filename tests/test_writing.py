"""Fields and checkpoints that are written while the run continues."""

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runs

from heatsim import Simulation
from heatsim.errors import Interrupted, StorageError
from heatsim.run.plan import Plan
from heatsim.solver.euler.stepper import Stepper
from heatsim.storage import checkpoint, folder
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.field_writer import FieldWriter


def test_the_files_have_the_same_bytes_as_when_the_run_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = ["output.heat_flux=true", "output.checkpoint_wall=1e-9", "time.stop_below=0.01"]
    beside = runs.run(tmp_path, *overrides, output=tmp_path / "beside")
    monkeypatch.setattr(Plan, "room_for_copy", lambda plan: False)
    waiting = runs.run(tmp_path, *overrides, output=tmp_path / "waiting")
    assert runs.results(beside) == runs.results(waiting)
    for name in (folder.FIELDS, folder.PROBES, folder.ENERGY):
        assert (beside / name).read_bytes() == (waiting / name).read_bytes()


def test_a_device_without_room_for_a_copy_writes_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = runs.run(tmp_path)
    simulation = Simulation.from_scenario(runs.write(tmp_path), output=tmp_path / "run")

    empty_like = simulation.plan.device.xp.empty_like

    def full(array: Any, *arguments: Any, **options: Any) -> Any:
        if array.ndim == 3:
            raise MemoryError
        return empty_like(array, *arguments, **options)

    monkeypatch.setattr(simulation.plan.device.xp, "empty_like", full)
    simulation.run()
    assert not simulation.state.copies
    assert runs.results(tmp_path / "run") == runs.results(whole)


class Held:
    """The second field is written only after `go_on` is set; the run continues meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, end: Callable[[], object] = lambda: None) -> None:
        self.go_on = threading.Event()
        append = FieldWriter.append

        def slow(writer: FieldWriter, *arguments: Any) -> None:
            if len(writer) == 1:
                assert self.go_on.wait(30.0)
                end()
            append(writer, *arguments)

        monkeypatch.setattr(FieldWriter, "append", slow)


def fail() -> None:
    raise StorageError("fields.vtkhdf: could not be written: no room")


def test_a_field_that_cannot_be_written_ends_the_run_and_loses_nothing_good(tmp_path: Path) -> None:
    whole, parts = runs.run(tmp_path), tmp_path / "parts"
    with pytest.MonkeyPatch.context() as monkeypatch:
        held = Held(monkeypatch, fail)
        # The field is of step 4; the error comes when the run is already at a later step.
        runs.after_step(monkeypatch, 6, lambda stepper: held.go_on.set())
        simulation = Simulation.from_scenario(tmp_path / "mixed.toml", output=parts)
        with pytest.raises(StorageError, match="no room"):
            simulation.run()
    assert simulation.step >= 6
    assert not (parts / folder.SUMMARY).exists()
    with FieldReader(parts / folder.FIELDS) as reader:
        assert reader.times.tolist() == runs.FIELD_TIMES[:1]
    Simulation.resume(parts).run()
    assert runs.results(parts) == runs.results(whole)


def test_a_checkpoint_counts_no_field_that_is_not_on_the_disk_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the run is interrupted while the field of step 4 is being written, the checkpoint of step 6 waits for it."""
    whole, parts = runs.run(tmp_path), tmp_path / "parts"
    events = []

    def note(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            found = function(*arguments)
            events.append((name, *(str(argument) for argument in arguments if isinstance(argument, Path))))
            return found

        return call

    def interrupt(stepper: Stepper) -> None:
        assert not (parts / folder.CHECKPOINT).exists()
        signal.raise_signal(signal.SIGINT)
        threading.Timer(0.1, held.go_on.set).start()

    with monkeypatch.context() as patch:
        held = Held(patch)
        patch.setattr(FieldWriter, "append", note("field", FieldWriter.append))
        patch.setattr(FieldWriter, "flush", note("on the disk", FieldWriter.flush))
        patch.setattr(os, "replace", note("renamed", os.replace))
        runs.after_step(patch, 6, interrupt)
        simulation = Simulation.from_scenario(tmp_path / "mixed.toml", output=parts)
        with pytest.raises(Interrupted, match="step 6;"):
            simulation.run()
    part, whole_name = str(parts / f"{folder.CHECKPOINT}.part"), str(parts / folder.CHECKPOINT)
    assert events[-3:] == [("field",), ("on the disk",), ("renamed", part, whole_name)]
    saved, _ = checkpoint.read_last_good(parts)
    assert saved is not None
    assert (saved.values["step"], saved.values["snapshots"]) == (6, 2)
    assert simulation.timing.waiting >= 0.05
    Simulation.resume(parts).run()
    assert runs.results(parts) == runs.results(whole)


def test_the_last_checkpoint_is_written_beside_the_last_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, filled = runs.run(tmp_path), threading.Event()
    append, fill = FieldWriter.append, checkpoint.fill

    def append_late(writer: FieldWriter, *arguments: Any) -> None:
        if len(writer) == len(runs.FIELD_TIMES) - 1:
            assert filled.wait(30.0)
        append(writer, *arguments)

    def fill_and_tell(*arguments: Any) -> tuple[int, int]:
        found = fill(*arguments)
        filled.set()
        return found

    monkeypatch.setattr(FieldWriter, "append", append_late)
    monkeypatch.setattr(checkpoint, "fill", fill_and_tell)
    beside = runs.run(tmp_path, output=tmp_path / "beside")
    assert runs.results(beside) == runs.results(whole)


def test_the_summary_says_where_the_time_went(tmp_path: Path) -> None:
    summary = json.loads((runs.run(tmp_path) / folder.SUMMARY).read_text())
    parts = [summary[f"{name}_time"] for name in ("preparing", "stepping", "observing", "waiting")]
    assert min(parts) >= 0.0
    assert sum(parts) == pytest.approx(summary["wall_time"])
