"""Workers of a study are started away from what lies in the current folder."""

import json
from pathlib import Path

import runs
import study_text


def test_workers_of_a_study_do_not_look_into_the_current_folder(tmp_path: Path) -> None:
    for name in ("h5py", "numpy", "numba"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    path = study_text.write(tmp_path)
    words = ["study", path, "--output", tmp_path / "out", "--quiet", "--workers", "1"]
    code, _, err = runs.command(*words, cwd=tmp_path, safe_path=True)
    assert (code, err) == (0, "")
    assert not (tmp_path / "executed").exists()
    assert json.loads(next((tmp_path / "out" / "runs").glob("*/summary.json")).read_text())["steps"]
