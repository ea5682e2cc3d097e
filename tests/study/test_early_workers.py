"""Workers of a study start before the study is read, from a preview of its file."""

from pathlib import Path

import pytest
import study_text

from heatsim.outputs import output_folder
from heatsim.study import early_workers
from heatsim.study.definition import read
from heatsim.study.early_workers import EarlyWorkers, preview
from heatsim.study.worker_processes import Shares

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.quick("overrides0-heat_sink_study", "overrides1-uncertainty_study", "overrides2-heat_sink_study")
@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*_study.toml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("overrides", [[], ["study.samples=7", "solver.device=cpu"], ['solver.device="cuda"']])
def test_a_preview_finds_the_number_of_runs_and_the_device(path: Path, overrides: list[str]) -> None:
    if "latin" not in path.read_text():
        overrides = [each for each in overrides if "samples" not in each]
    definition, _ = read(path, [*overrides, "solver.device=cpu", "domain.cells=[4, 4, 4]"])
    device = overrides[-1].split("=")[1].strip('"') if overrides else "auto"
    assert preview(path, overrides) == (len(definition.points), device)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[study",
        "study = 3",
        "[study]\nmethod = 'grid'\nparameters = 4",
        "[study]\nmethod = 'latin-hypercube'",
        "[study]\nmethod = 'latin-hypercube'\nsamples = 'many'",
        "[study]\nmethod = 'latin-hypercube'\nsamples = inf",
        "[study]\nmethod = 'latin-hypercube'\nsamples = 3\nname = " + 3000 * "[" + 3000 * "]",
        "[study]\nmethod = 'latin-hypercube'\nsamples = 3\n[solver]\ndevice = 'other'",
        "[study]\nmethod = 'grid'\nparameters = { 'a.b' = [] }",
        "solver = 3\n[study]\nmethod = 'grid'\nparameters = { 'a.b' = [1, 2] }",
    ],
)
def test_an_unclear_file_starts_no_workers(tmp_path: Path, text: str) -> None:
    (tmp_path / "file.toml").write_text(text)
    assert preview(tmp_path / "file.toml", []) is None
    early = EarlyWorkers.started(tmp_path / "file.toml", [], tmp_path / "out", None)
    assert early._processes is None
    assert preview(tmp_path / "missing.toml", []) is None
    assert preview(tmp_path, []) is None


def test_workers_started_early_are_taken_if_their_shares_are_right_and_replaced_otherwise(tmp_path: Path) -> None:
    path = study_text.write(tmp_path)
    early = EarlyWorkers.started(path, ["solver.device=cpu"], tmp_path / "out", 1)
    assert early._processes is not None
    first = early._processes
    shares = first.shares
    assert shares == Shares.of(len(read(path, ["solver.device=cpu"])[0].points), "cpu", 1)
    assert early.take(shares, "cpu") is first
    early._processes = first
    (worker,) = first._started
    other = early.take(Shares(workers=1, threads=shares.threads + 1), "cpu")
    assert other is not first
    assert worker.process.poll() is not None
    other.close()


def test_workers_are_killed_at_once_if_the_study_is_refused(tmp_path: Path) -> None:
    path = study_text.write(tmp_path)
    early = EarlyWorkers.started(path, ["solver.device=cpu"], tmp_path / "out", 1)
    assert early._processes is not None
    (worker,) = early._processes._started
    early.close()
    assert worker.process.poll() is not None
    early.close()


def test_the_default_folder_has_the_name_of_the_file() -> None:
    assert output_folder("at/cube.toml", None) == Path("outputs/cube")
    assert output_folder("at/cube.toml", "there") == Path("there")


def test_gpus_are_listed_without_starting_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    from heatsim import device

    monkeypatch.setattr(device, "_driver_installed", lambda: True)
    monkeypatch.setattr("os.listdir", lambda folder: ["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"])
    assert device.listed_gpus() == 2
    monkeypatch.setattr("os.listdir", lambda folder: ["null"])
    monkeypatch.setattr(device, "visible_gpus", lambda: 3)
    assert device.listed_gpus() == 3
    assert early_workers.listed_gpus is device.listed_gpus
