"""A whole study: its runs are those of `heatsim run`, its table has their results, and no run is computed twice."""

import csv
import gc
import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import runs
import study_text

import heatsim
from heatsim import garbage
from heatsim.cli import main
from heatsim.errors import CapacityError, FolderError, InputError, Interrupted, NotFiniteError
from heatsim.run.interrupt import Stop
from heatsim.run.simulation import Simulation
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.field.field import Field
from heatsim.storage import checkpoint, manifest
from heatsim.storage import folder as run_folder
from heatsim.storage.summary_file import read_summary
from heatsim.study import folder as study_folder
from heatsim.study.definition import read
from heatsim.study.run_group import run_group
from heatsim.study.workers import LocalWorkers

EULER = "time.method=euler"  # whose steps these tests interrupt and spoil


def prepared(at: Path, *overrides: str) -> Path:
    """The folder of a study without any run."""
    definition, _ = read(study_text.write(at), overrides)
    (at / "out").mkdir()
    study_folder.write_study(at / "out", definition)
    return at / "out"


def ignore(number: int, step: int) -> None:
    pass


def stamps(study: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (study / "runs").rglob("*") if path.is_file()}


def study(at: Path, *overrides: str, **options: Any) -> "pyarrow.Table":
    path = study_text.write(at)
    return heatsim.Study.from_scenario(path, overrides, output=at / "out", workers=1, **options).run()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished study in "out"; not to be changed."""
    at = tmp_path_factory.mktemp("whole")
    study(at)
    return at


@pytest.fixture
def finished(whole: Path, tmp_path: Path) -> Path:
    """The same, which a test may change."""
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_runs_are_those_that_heatsim_run_does_and_nothing_is_done_twice(finished: Path) -> None:
    tmp_path, out = finished, finished / "out"
    table = pyarrow.parquet.read_table(out / "results.parquet")
    assert table.column("run").to_pylist() == [1, 2, 3, 4, 5, 6]
    assert table.column("status").to_pylist() == 6 * ["done"]
    assert table.column("material.conductivity").to_pylist() == [20.0, 20.0, 20.0, 40.0, 40.0, 40.0]

    plain = study_text.write(tmp_path, "", name="plain.toml")
    single = Simulation.from_scenario(
        plain, ["material.conductivity=40.0", "boundaries.x_min.coefficient=300.0"], output=tmp_path / "single"
    )
    single.run()
    alike = out / "runs" / "0005"
    for name in (run_folder.PROBES, run_folder.ENERGY):
        assert (alike / name).read_bytes() == (tmp_path / "single" / name).read_bytes()
    assert not (alike / run_folder.FIELDS).exists()
    fields = [checkpoint.read_last_good(at)[0] for at in (alike, tmp_path / "single")]
    assert fields[0] is not None
    assert fields[1] is not None
    assert fields[0].arrays["deviation"].tobytes() == fields[1].arrays["deviation"].tobytes()

    row = table.slice(4, 1).to_pylist()[0]
    T = single.temperature
    assert (row["final_min"], row["final_max"]) == pytest.approx((T.min(), T.max()), abs=1e-12)
    assert row["final_mean"] == pytest.approx(T.mean(), abs=1e-9)
    curve = np.loadtxt(tmp_path / "single" / run_folder.PROBES, delimiter=",", skiprows=1)
    assert row["middle max"] == row["warmest"] == curve[:, 1].max()
    assert row["middle final"] == curve[-1, 1]
    assert row["cooled"] == pytest.approx(np.interp(-390.0, -curve[:, 1], curve[:, 0]), rel=1e-12)
    assert row["folder"] == "runs/0005"
    summary = read_summary(alike)
    assert (row["energy_residual"], row["wall_time"]) == (summary["energy"]["residual"], summary["wall_time"])

    before, tables = stamps(out), (out / "results.csv").read_bytes()
    again = study(tmp_path)
    assert again.equals(table)
    assert stamps(out) == before
    assert (out / "results.csv").read_bytes() == tables


def test_both_tables_say_the_same_and_the_clock_stands_last(whole: Path) -> None:
    table = pyarrow.parquet.read_table(whole / "out" / "results.parquet")
    with open(whole / "out" / "results.csv", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    units = {"final_min": "K", "middle max": "K", "cooled": "s", "energy_residual": "J", "wall_time": "s"}
    units |= {"material.conductivity": "W/(m K)", "boundaries.x_min.coefficient": "W/(m^2 K)"}
    headers = {name: _header(table.schema.field(name)) for name in table.column_names}
    assert list(rows[0]) == list(headers.values())
    for name, unit in units.items():
        assert headers[name] == f"{name} ({unit})"
    assert table.column_names[-1] == "wall_time"
    for row, expected in zip(rows, table.to_pylist(), strict=True):
        for name, value in expected.items():
            assert row[headers[name]] == (
                "" if value is None else repr(value) if isinstance(value, float) else str(value)
            )


def _header(field: "pyarrow.Field") -> str:
    """The header in results.csv of a column of results.parquet."""
    unit = (field.metadata or {}).get(b"unit", b"").decode()
    return f"{field.name} ({unit})" if unit else str(field.name)


def test_responses_may_change_without_a_run_being_done_again(finished: Path) -> None:
    before = stamps(finished / "out")
    table = study(finished, 'study.responses.1.statistic="min"', 'study.responses.1.name="coldest"')
    assert stamps(finished / "out") == before
    assert "warmest" not in table.column_names
    assert all(
        low <= end for low, end in zip(table["coldest"].to_pylist(), table["middle final"].to_pylist(), strict=True)
    )


def test_a_table_that_was_changed_after_its_run_counts_as_a_failed_run(finished: Path) -> None:
    path = finished / "out" / "runs" / "0002" / run_folder.PROBES
    content = path.read_bytes()
    path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    summary = finished / "out" / "runs" / "0003" / run_folder.SUMMARY
    summary.write_text("{")
    table = study(finished).to_pydict()
    assert table["status"] == ["done", "failed", "failed", *3 * ["done"]]
    assert "probes.csv: was changed since the run ended" in table["message"][1]
    assert "summary.json: could not be read: line 1 is not JSON" in table["message"][2]
    for folder, message in zip((path.parent, summary.parent), table["message"][1:3], strict=True):
        assert message.endswith(f"; put a good copy of the file there, or remove {folder} to repeat the run")
    assert table["warmest"][1] is None


def test_a_run_that_fails_is_a_row_and_the_others_are_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A file is in place of its folder, so nothing can be written there.
    out = prepared(tmp_path)
    (out / "runs").mkdir()
    (out / "runs" / "0002").write_text("mine")
    command = ["study", str(tmp_path / "plate.toml"), "--output", str(out), "--workers", "1"]
    assert main([*command, "--quiet"]) == 1
    assert capsys.readouterr().err == f"heatsim: 1 of 6 runs failed; results.csv in {out} has the reasons\n"
    table = pyarrow.parquet.read_table(out / "results.parquet")
    assert table.column("status").to_pylist() == ["done", "failed", "done", "done", "done", "done"]
    message = table.column("message").to_pylist()
    assert "0002: is a file" in message[1]
    assert set(message) == {"", message[1]}
    assert table.column("final_max").to_pylist()[1] is None

    # A run that failed because of the disk is tried again.
    before = stamps(out)
    (out / "runs" / "0002").unlink()
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "Plate that cools: 6 of 6 runs done" in shown
    assert "cooled (s)" in shown
    after = stamps(out)
    assert all(after[path] == stamp for path, stamp in before.items() if "0002" not in path)


def test_numbers_that_fail_are_not_calculated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = prepared(tmp_path, EULER)
    advance = Stepper.advance
    seen: list[int] = []

    def spoilt(self: Stepper, steps: int) -> None:
        advance(self, steps)
        seen.append(self.step)
        if self.problem.scenario.material.conductivity[0] == 20.0:
            self.field.deviation[...] = np.nan

    monkeypatch.setattr(Stepper, "advance", spoilt)
    outcomes = list(run_group(out, range(1, 7), ignore, Stop()))
    assert [outcome.status for outcome in outcomes] == 3 * ["failed"] + 3 * ["done"]
    assert all("NaN or infinity in the field, seen at step" in outcome.message for outcome in outcomes[:3])
    seen.clear()
    table = study(tmp_path, EULER)
    assert not seen
    assert table.column("status").to_pylist() == 3 * ["failed"] + 3 * ["done"]
    assert table.column("message").to_pylist()[0] == outcomes[0].message
    assert NotFiniteError.__name__ not in outcomes[0].message


def test_a_worker_keeps_no_field_of_a_run_that_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches for garbage are rare in workers, but a study of large grids must not fill the memory."""
    out, usual = prepared(tmp_path), gc.get_threshold()
    gc.collect()
    before = count_fields()
    monkeypatch.setattr("atexit.register", lambda function: function)
    garbage.search_rarely()
    try:
        at_start: dict[int, int] = {}
        list(run_group(out, range(1, 7), lambda run, step: at_start.setdefault(run, count_fields()) and None, Stop()))
        assert count_fields() == before
    finally:
        gc.set_threshold(*usual)
    assert len(at_start) == 6
    assert len(set(at_start.values())) == 1


def count_fields() -> int:
    return sum(type(found) is Field for found in gc.get_objects())  # isinstance would ask dead proxies


def test_an_interrupted_run_continues_from_its_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, whole = prepared(tmp_path, EULER), prepared(tmp_path / "whole", EULER)
    list(run_group(whole, range(1, 7), ignore, Stop()))
    stop = Stop()

    def halfway(stepper: Stepper) -> None:
        stop.requested = True

    with monkeypatch.context() as patch:
        runs.after_step(patch, 3, halfway)
        assert list(run_group(out, range(1, 7), ignore, stop)) == []
    assert not study_folder.is_done(out / "runs" / "0001")
    starts: dict[int, int] = {}
    outcomes = list(run_group(out, range(1, 7), lambda number, step: starts.setdefault(number, step) and None, Stop()))
    assert [outcome.status for outcome in outcomes] == 6 * ["done"]
    assert starts == {1: 3, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0}
    for number in range(1, 7):
        for name in (run_folder.PROBES, run_folder.ENERGY):
            path = Path("runs") / f"{number:04d}" / name
            assert (out / path).read_bytes() == (whole / path).read_bytes()


@pytest.mark.parametrize("left", ["scenario.toml.part", "failure.json"])
def test_a_start_that_was_killed_is_cleared_away(tmp_path: Path, left: str) -> None:
    out = prepared(tmp_path)
    (out / "runs" / "0001").mkdir(parents=True)
    manifest.create(out / "runs" / "0001", ["scenario.toml", "failure.json"])
    (out / "runs" / "0001" / left).write_text('{"message": "no space", "again": true}')
    assert [outcome.status for outcome in run_group(out, [1], ignore, Stop())] == ["done"]
    assert not (out / "runs" / "0001" / left).exists()


def test_ctrl_c_saves_checkpoints_and_says_how_to_go_on(tmp_path: Path) -> None:
    path, out = study_text.write(tmp_path), tmp_path / "out"
    # Ten thousand steps per run, of 0.1 ms each.
    command = ["study", path, "--output", out, "--workers", "2", "--quiet", "--set", "time.dt=1e-3"]
    process = runs.start(*command)
    while not list((out / "runs").glob("*/probes.csv")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, err = process.communicate(timeout=40)
    assert (process.returncode, stdout) == (130, "")
    assert len(err.splitlines()) == 1
    assert "of 6 runs done" in err
    assert "continue with the same command again" in err
    unfinished = [at for at in (out / "runs").iterdir() if not study_folder.is_done(at)]
    assert any(checkpoint.read_last_good(at)[0] is not None for at in unfinished)
    statuses = pyarrow.parquet.read_table(out / "results.parquet").column("status").to_pylist()
    assert statuses.count("waiting") == 6 - statuses.count("done") >= 1


def test_python_hears_of_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = LocalWorkers.events

    def interrupted(self: LocalWorkers) -> Any:
        for event in events(self):
            signal.raise_signal(signal.SIGINT)
            yield event

    monkeypatch.setattr(LocalWorkers, "events", interrupted)
    with pytest.raises(Interrupted, match="of 6 runs done"):
        study(tmp_path)


def test_workers_that_cannot_start_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    path = study_text.write(tmp_path)
    with pytest.raises(heatsim.HeatsimError, match="worker processes cannot be started: exit code 1") as caught:
        heatsim.Study.from_scenario(path, output=tmp_path / "out", workers=1).run()
    assert caught.value.exit_code == 1


def test_options_that_cannot_be(tmp_path: Path) -> None:
    path = study_text.write(tmp_path)
    with pytest.raises(InputError, match="--workers: got 0"):
        heatsim.Study.from_scenario(path, workers=0)
    with pytest.raises(InputError, match="--workers and --cluster exclude each other"):
        heatsim.Study.from_scenario(path, workers=2, cluster="tcp://127.0.0.1:1")


def test_a_kernel_that_is_not_there_is_told_of_before_anything_is_written(tmp_path: Path) -> None:
    path = study_text.write(tmp_path)
    with pytest.raises(InputError, match="numbaa"):
        heatsim.Study.from_scenario(path, ["solver.kernel=numbaa"], output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_response_that_is_called_like_another_column(tmp_path: Path) -> None:
    path = study_text.write(tmp_path)
    with pytest.raises(
        InputError, match=r'study.responses.0.name: got "middle max"; the results already have a column of this name'
    ):
        heatsim.Study.from_scenario(path, ['study.responses.0.name="middle max"'])


def test_two_studies_do_not_write_to_one_folder(tmp_path: Path) -> None:
    out = prepared(tmp_path)
    with run_folder.claim(out), pytest.raises(FolderError, match="another heatsim process is writing there"):
        study(tmp_path)


def test_definition_comes_back_as_it_was(tmp_path: Path) -> None:
    out = prepared(tmp_path)
    definition, _ = read(study_text.write(tmp_path))
    again = study_folder.read_study(out)
    assert again.points == definition.points
    assert again.scenario(3) == definition.scenario(3)
    assert json.loads((out / "study.json").read_text())["path"] == str(tmp_path / "plate.toml")


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_study_that_does_not_fit_changes_nothing(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    out = tmp_path / "out"
    if overwrite:
        shutil.copytree(whole / "out", out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(0, 0, 0))
    with pytest.raises(CapacityError, match="its runs would write"):
        study(tmp_path, "time.end=9.0", "output.every=1e-3", overwrite=overwrite)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_probes_that_points_name_are_in_the_table(tmp_path: Path) -> None:
    text = study_text.STUDY[: study_text.STUDY.index("[study.parameters]")]
    text += """[study.parameters]
"probes.0.name" = ["left", "right"]
"""
    path = study_text.write(tmp_path, text)
    table = heatsim.Study.from_scenario(path, output=tmp_path / "out", workers=1).run()
    left, right = (table.column(f"{name} final").to_pylist() for name in ("left", "right"))
    assert left[0] == right[1] is not None
    assert left[1] is None
    assert right[0] is None
