"""heatsim.open of a study's folder."""

from pathlib import Path

import pandas
import pytest
import study_text

import heatsim
from heatsim.errors import FolderError
from heatsim.storage.study_hint import study_command
from heatsim.study import folder as definitions


def test_the_results_are_a_data_frame_with_the_headers_of_the_file(tmp_path: Path) -> None:
    fewer = study_text.STUDY.replace('"boundaries.x_min.coefficient" = [100.0, 300.0, 900.0]\n', "")
    path = study_text.write(tmp_path, fewer.replace("[20.0, 40.0]", "[20.0, 30.0, 40.0]"))
    planned = heatsim.Study.from_scenario(path, output=tmp_path / "out", workers=1)
    planned.run()
    study = heatsim.open(tmp_path / "out")
    assert isinstance(study, heatsim.StudyResults)
    expected = pandas.read_csv(tmp_path / "out" / "results.csv", index_col="run")
    found = study.results
    assert list(found.columns) == list(expected.columns)
    pandas.testing.assert_frame_equal(found.drop(columns="message"), expected.drop(columns="message"), rtol=1e-15)
    assert found["warmest (K)"].max() == 400.0
    assert study.run(2).probes["middle (K)"].iloc[-1] == found["middle final (K)"][2]
    assert repr(study) == f'<heatsim study "Plate that cools" in {tmp_path / "out"}: 3 of 3 runs done>'
    assert "<table" in study._repr_html_()
    with pytest.raises(FolderError, match="got run 4; the runs are 1 to 3"):
        study.run(4)


def test_a_study_in_a_notebook(tmp_path: Path) -> None:
    """Before it runs: a short text, its parameters as a table, and what to do about runs that have not started."""
    planned = heatsim.Study.from_scenario(study_text.write(tmp_path), output=tmp_path / "out", workers=1)
    assert repr(planned) == f'<heatsim study "Plate that cools" in {tmp_path / "out"}: 0 of 6 runs done>'
    assert "<th>material.conductivity</th><td>20.0, 40.0</td>" in planned._repr_html_()
    (tmp_path / "out").mkdir()
    definitions.write_study(tmp_path / "out", planned.definition)
    study = heatsim.open(tmp_path / "out")
    assert isinstance(study, heatsim.StudyResults)
    assert not study.plot()
    with pytest.raises(
        FolderError, match=r"run 2 has not started; finish it with `heatsim study .*plate\.toml"
    ) as caught:
        study.run(2)
    told = f'heatsim.Study.from_scenario("{tmp_path / "plate.toml"}", output="{tmp_path / "out"}").run()'
    assert caught.value.__notes__ == [f"In Python: {told}"]
    planned.run()
    assert [path.name for path in planned.plot()] == [path.name for path in study.plot()] != []


def test_the_command_for_a_study_with_overrides_says_that_it_needs_them(tmp_path: Path) -> None:
    path = study_text.write(tmp_path)
    for name, overrides, more in (
        ("plain", [], ""),
        ("other", ["time.end=4.0"], ", with the scenario and the options --set that it began with"),
    ):
        planned = heatsim.Study.from_scenario(path, overrides, output=tmp_path / name, workers=1)
        (tmp_path / name).mkdir()
        definitions.write_study(tmp_path / name, planned.definition)
        assert study_command(tmp_path / name) == f"`heatsim study {path} --output {tmp_path / name}`{more}"
