"""A study whose runs take stabilized steps."""

import json
from pathlib import Path

import study_text

import heatsim
from heatsim import Simulation
from heatsim.storage import folder


def test_runs_of_a_study_are_those_of_heatsim_run(tmp_path: Path) -> None:
    changes = ["time.method=stabilized", 'study.parameters={ "material.conductivity" = [20.0, 40.0] }']
    path = study_text.write(tmp_path)
    table = heatsim.Study.from_scenario(path, changes, output=tmp_path / "out", workers=1).run()
    assert table["status"].to_pylist() == ["done", "done"]
    plain = study_text.write(tmp_path, "", name="plain.toml")
    changes = ["time.method=stabilized", "material.conductivity=40.0"]
    single = Simulation.from_scenario(plain, changes, output=tmp_path / "single")
    single.run()
    member = tmp_path / "out" / "runs" / "0002"
    for name in (folder.PROBES, folder.ENERGY):
        assert (member / name).read_bytes() == (tmp_path / "single" / name).read_bytes()
    found, expected = (json.loads((at / folder.SUMMARY).read_text()) for at in (member, tmp_path / "single"))
    for key in ("method", "tolerance", "steps", "stages", "rejected", "temperature"):
        assert found[key] == expected[key]
