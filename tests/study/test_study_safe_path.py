"""A study in a folder from someone else: its workers execute no code from there, and links in it are refused."""

import json
from pathlib import Path

import pytest
import runs
import study_text

from heatsim import Study
from heatsim.errors import FolderError


def test_workers_of_a_study_do_not_look_into_the_current_folder(tmp_path: Path) -> None:
    for name in ("h5py", "numpy", "numba"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    path = study_text.write(tmp_path)
    words = ["study", path, "--output", tmp_path / "out", "--quiet", "--workers", "1"]
    code, _, err = runs.process(*words, cwd=tmp_path, safe_path=True)
    assert (code, err) == (0, "")
    assert not (tmp_path / "executed").exists()
    assert json.loads(next((tmp_path / "out" / "runs").glob("*/summary.json")).read_text())["steps"]


@pytest.mark.parametrize(
    "name", ["study.json", "results.csv", "lease", "runs", "figures", "runs/0002", "study.json.part"]
)
def test_links_in_the_folder_of_a_study_are_refused(tmp_path: Path, name: str) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (out / name).parent.mkdir(parents=True)
    (out / name).symlink_to(elsewhere)
    study = Study.from_scenario(study_text.write(tmp_path), output=out)
    with pytest.raises(FolderError, match="is a symbolic link"):
        study.run()
    assert not list(elsewhere.iterdir())
