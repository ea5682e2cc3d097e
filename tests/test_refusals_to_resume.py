"""A resumed run first looks at what it relies on: it names what differs, and changes nothing before it refuses."""

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import FolderError, Interrupted
from heatsim.run import resume
from heatsim.storage import folder
from heatsim.storage.field_file import FieldFile
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.field_writer import FieldWriter
from heatsim.version import NUMERICS

STOPPED_AT = 9  # 5 rows, 3 fields


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """A run that was interrupted after 9 of 16 steps."""
    target = tmp_path / "half"
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, STOPPED_AT, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(runs.write(tmp_path), output=target).run()
    return target


def contents(at: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in at.iterdir()}


def refusal(at: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The message with which a resume is refused, all files left as they are."""
    before = contents(at)
    capsys.readouterr()
    assert main(["resume", str(at), "--quiet"]) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert contents(at) == before
    return err


def change(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))


@pytest.mark.parametrize("name", [folder.PROBES, folder.ENERGY])
@pytest.mark.parametrize("row", [1, 3, 5])
def test_a_changed_digit_is_told_with_its_row(
    half: Path, name: str, row: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (half / name).read_bytes().splitlines(keepends=True)
    place = lines[row].rindex(b".") + 1
    digit = b"1" if lines[row][place : place + 1] != b"1" else b"2"
    lines[row] = lines[row][:place] + digit + lines[row][place + 1 :]
    (half / name).write_bytes(b"".join(lines))
    assert f"{half / name}: row {row} differs from what was written" in refusal(half, capsys)


def test_tables_are_not_cut_when_the_one_after_them_is_refused(half: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open(half / folder.PROBES, "ab") as file:
        file.write(b"5.625,1.0,1.0\n")
    change(half / folder.ENERGY, b"time (s),", b"Time (s),")
    assert f"{half / folder.ENERGY}: has another header" in refusal(half, capsys)


@pytest.mark.parametrize("index", [0, 2])
def test_a_changed_field_is_told_with_its_time(half: Path, index: int, capsys: pytest.CaptureFixture[str]) -> None:
    with FieldReader(half / folder.FIELDS) as reader:
        field = reader.read(index)
    changed = field.copy()
    changed[5, 4, 3] = np.nextafter(changed[5, 4, 3], np.float32(0.0))
    change(half / folder.FIELDS, field.tobytes(), changed.tobytes())
    told = f"{half / folder.FIELDS}: the field at t = {runs.FIELD_TIMES[index]!r} s differs from what was written"
    assert told in refusal(half, capsys)


def test_a_file_that_is_missing_is_told(half: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (half / folder.FIELDS).unlink()
    assert "fields.vtkhdf: is missing, the checkpoint counts 3 times in it" in refusal(half, capsys)


def test_a_copy_of_an_input_file_that_was_changed_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "start.npy", np.full((6, 5, 7), 320.0))
    text = runs.TEXT.replace('"320 + 30*sin(60*x)*cos(40*y)"', '{ file = "start.npy" }')
    target = tmp_path / "half"
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, STOPPED_AT, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(runs.write(tmp_path, text), output=target).run()
    np.save(target / "start.npy", np.full((6, 5, 7), 321.0))
    assert f"{target / 'start.npy'}: was changed since the run began" in refusal(target, capsys)


def test_a_checkpoint_of_another_version_of_the_numerics_is_refused(
    half: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "NUMERICS", NUMERICS + 1)
    told = refusal(half, capsys)
    assert f"{half / folder.CHECKPOINT}: was written with version {NUMERICS} of the numerics" in told
    assert f"calculates with version {NUMERICS + 1}" in told
    assert "start again with `heatsim run … --overwrite`" in told


@pytest.mark.parametrize("announced", [-1, 0, 2, 4, 5, 1 << 40])
def test_only_what_the_checkpoint_counts_has_to_be_in_the_fields(tmp_path: Path, half: Path, announced: int) -> None:
    """A power cut may bring NSteps to the disk and lose Values."""
    with h5py.File(half / folder.FIELDS, "r+", locking=False) as file:
        steps = file["VTKHDF/Steps"]
        steps.attrs.modify("NSteps", np.int64(announced))
        steps["Values"][:] = -1.0
        steps["Values"].resize(1, axis=0)
        file["VTKHDF/CellData/temperature"][3:] = np.nan
    Simulation.resume(half).run()
    assert runs.results(half) == runs.results(runs.run(tmp_path))


def test_a_run_that_ended_early_gives_room_back_and_can_still_be_resumed(tmp_path: Path) -> None:
    constant = "boundaries.x_min.value=300.0"  # What changes with time is not steady.
    whole = runs.run(
        tmp_path, constant, "time.stop_below=1e3", "time.end=1000", "output.every=100", "output.probe_every=50"
    )
    with FieldReader(whole / folder.FIELDS) as reader:
        assert len(reader) == len(reader._field) == 2
    before = runs.results(whole)
    (whole / folder.SUMMARY).unlink()
    resumed = Simulation.resume(whole)
    assert not resumed.finished
    resumed.run()
    assert runs.results(whole) == before


def test_a_time_is_counted_after_it_was_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heatsim.grid import Grid
    from heatsim.storage import system

    grid, events = Grid((2, 1, 1), (1.0, 1.0, 1.0)), list[object]()

    class Noted(system.System):
        def write(self, descriptor: int, content: memoryview, start: int) -> int:
            events.append(start)
            return super().write(descriptor, content, start)

        def sync(self, descriptor: int) -> None:
            events.append("sync")
            super().sync(descriptor)

    runs.write_at_once(monkeypatch)
    path = tmp_path / folder.FIELDS
    with FieldWriter.create(path, grid, "float64", 2) as writer:
        monkeypatch.setattr(system, "calls", Noted())
        writer.append(1.5, [np.ones((1, 1, 2))])
        layout = FieldFile.found(path, 1).layout
        (place, _), *_ = layout.pieces("CellData/temperature", 0)
        assert events[0] == place
        assert {series.entries_at for series in layout.series} < set(events[1:-2])
        assert events[-2:] == ["sync", layout.count_at]


@pytest.mark.parametrize("name", [folder.FIELDS, folder.PROBES, folder.ENERGY, folder.SCENARIO])
@pytest.mark.parametrize("wall", ["1e-9", "60"], ids=["next checkpoint", "end"])
def test_a_file_removed_in_mid_run_is_noticed(
    tmp_path: Path, name: str, wall: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "run"
    runs.after_step(monkeypatch, STOPPED_AT, lambda stepper: (target / name).unlink())
    options = ["--output", str(target), "--quiet", "--set", f"output.checkpoint_wall={wall}"]
    assert main(["run", str(runs.write(tmp_path)), *options]) == 1
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert err.startswith(f"heatsim: {target / name}: was removed or replaced while the run was writing")
    assert "heatsim resume" not in err
    assert not (target / folder.SUMMARY).exists()


@pytest.mark.parametrize("wall", ["1e-9", "60"], ids=["next checkpoint", "end"])
def test_a_folder_removed_in_mid_run_advises_no_resume(
    tmp_path: Path, wall: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "run"
    runs.write_at_once(monkeypatch)
    runs.after_step(monkeypatch, STOPPED_AT, lambda stepper: shutil.rmtree(target))
    options = ["--output", str(target), "--quiet", "--set", f"output.checkpoint_wall={wall}"]
    assert main(["run", str(runs.write(tmp_path)), *options]) == 1
    out, err = capsys.readouterr()
    assert (out, len(err.splitlines())) == ("", 1)
    assert "its folder was removed: start again with `heatsim run`" in err
    assert "heatsim resume" not in err


def test_folders_in_the_way_cost_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overrides = ["output.checkpoint_wall=1e-9"]
    whole, target = runs.run(tmp_path, *overrides), tmp_path / "run"

    def block(stepper: object) -> None:
        for name in (folder.PREVIOUS, f"{folder.CHECKPOINT}.part", f"{folder.SUMMARY}.part"):
            (target / name).unlink(missing_ok=True)
            (target / name / "more").mkdir(parents=True)

    runs.write_at_once(monkeypatch)
    runs.after_step(monkeypatch, STOPPED_AT, block)
    runs.run(tmp_path, *overrides, output=target)
    assert runs.results(target) == runs.results(whole)


def test_a_setting_that_is_gone_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text("", encoding="utf-8")
    with pytest.raises(FolderError, match=r"patches\.1 is not given, was"):
        resume.check_scenario(file, json.dumps({"patches": [{"n": 1}, {"n": 2}]}), json.dumps({"patches": [{"n": 1}]}))
