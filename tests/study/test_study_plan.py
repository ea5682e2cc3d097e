"""`heatsim plan` of a study, and other commands on a study's folder."""

from pathlib import Path

import pytest
import study_text

import heatsim
from heatsim.cli import main
from heatsim.errors import FolderError


def test_a_plan_says_what_would_run_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = study_text.write(tmp_path), tmp_path / "out"
    assert main(["plan", str(path), "--output", str(out)]) == 0
    shown = capsys.readouterr().out
    for line in (
        "Plate that cools\n",
        "study        grid: 6 runs\n",
        "parameter    material.conductivity: 20.0, 40.0\n",
        "parameter    boundaries.x_min.coefficient: 100.0, 300.0, 900.0\n",
        "cells        32 in a run\n",
        "method       euler in 6 runs\n",
        "time         less than 1 s for 6 runs one after the other",
    ):
        assert line in shown
    assert not out.exists()
    assert list(tmp_path.iterdir()) == [path]


def test_the_geometry_is_that_of_the_first_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = study_text.write(tmp_path), tmp_path / "parts.svg"
    assert main(["plan", str(path), "--picture", str(picture)]) == 0
    assert capsys.readouterr().out.startswith(f"geometry of run 1: {picture}\n")
    assert "Plate that cools, run 1 —\N{NO-BREAK SPACE}geometry" in picture.read_text(encoding="utf-8")


def test_a_plan_counts_runs_that_are_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = study_text.write(tmp_path), tmp_path / "out"
    heatsim.Study.from_scenario(path, output=out, workers=1).run()
    (out / "runs" / "0002" / "summary.json").unlink()
    assert main(["plan", str(path), "--output", str(out)]) == 0
    assert f"done         5 runs in {out}; 1 run left\n" in capsys.readouterr().out


def test_a_plan_reports_the_mistakes_of_all_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = study_text.write(tmp_path, study_text.STUDY.replace("[20.0, 40.0]", "[20.0, -4.0]"))
    assert main(["plan", str(path)]) == 2
    assert "-4.0; a conductivity must be greater than 0" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["resume", "export"])
def test_a_command_for_runs_names_the_one_for_the_study(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "study.json").write_text('{"path": "/scenarios/my fin.toml"}')
    assert main([command, str(out)]) == 2
    told = (
        f"{out}: is the folder of a study; give one of its runs, such as {out / 'runs' / '0001'}, or finish the study: "
        f"`heatsim study '/scenarios/my fin.toml' --output {out}`"
    )
    assert told in capsys.readouterr().err
    with pytest.raises(FolderError, match="heatsim study"):
        heatsim.Simulation.resume(out)
