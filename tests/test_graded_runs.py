"""A run on a graded grid, interrupted and resumed: the same files, and no other widths."""

import json
from pathlib import Path

import numpy as np
import pytest
import runs

import heatsim
from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import Interrupted
from heatsim.storage import folder

TEXT = (
    runs.TEXT.replace("size = [0.07, 0.05, 0.06]\ncells = [7, 5, 6]", "size = [0.06]\ncells = [6]")
    .replace(
        "[material]",
        '[domain.x]\nintervals = [{ to = "1 cm", cells = 2 }, { to = 0.07, cells = 5, growth = 1.3 }]\n\n[material]',
        1,
    )
    .replace("[material]", "[domain.y]\nwidths = [0.01, 0.005, 0.008, 0.012, 0.015]\n\n[material]", 1)
)


def test_a_resumed_run_has_the_same_bits_and_refuses_other_widths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, half, whole = runs.write(tmp_path, TEXT), tmp_path / "half", tmp_path / "whole"
    Simulation.from_scenario(path, output=whole).run()
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, 9, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(path, output=half).run()
    resolved = (half / folder.SCENARIO).read_text()
    for key, replaced in (
        ("domain.x.intervals", {"growth = 1.3": "growth = 1.2"}),
        ("domain.y.widths", {"0.012,": "0.007,", "0.015,": "0.02,"}),
    ):
        changed = resolved
        for old, new in replaced.items():
            changed = changed.replace(old, new)
        assert changed != resolved
        (half / folder.SCENARIO).write_text(changed)
        capsys.readouterr()
        assert main(["resume", str(half), "--quiet"]) == 2
        assert key in capsys.readouterr().err
    (half / folder.SCENARIO).write_text(resolved)
    assert main(["resume", str(half), "--quiet"]) == 0
    for name in (folder.FIELDS, folder.PROBES, folder.ENERGY):
        assert (half / name).read_bytes() == (whole / name).read_bytes()
    summary = json.loads((whole / folder.SUMMARY).read_text())
    assert summary["coefficients_cell"] == pytest.approx([0.01, 0.01, 0.01])
    T = heatsim.open(whole).temperature
    np.testing.assert_allclose(T.x[:2], [0.0025, 0.0075])
    assert (
        main(["render", str(half), "--view", "sections", "--zoom", "x = 0 to 12 mm", "--quantity", "temperature"]) == 0
    )
    assert (half / folder.FIGURES / "zoom_sections_t0004.png").is_file()
