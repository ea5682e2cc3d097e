"""A study given as a dictionary."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import study_text

import heatsim
from heatsim.errors import FolderError, InputError, ScenarioError
from heatsim.study import folder as definitions


def test_a_dictionary_gives_the_results_of_the_file(tmp_path: Path) -> None:
    text = study_text.BASE + study_text.STUDY.replace("[20.0, 40.0]", "[20.0]")
    document = tomllib.loads(text)
    document["study"]["parameters"] = {
        "material.conductivity": np.array([20.0]),
        "boundaries.x_min.coefficient": np.array([100.0, 300.0, 900.0]),
    }
    folder = tmp_path / "of a dictionary"
    study = heatsim.Study.from_dict(document, folder, workers=1)
    assert repr(study) == f'<heatsim study "Plate that cools" in {folder}: 0 of 3 runs done>'
    study.run()
    file = tmp_path / "plate.toml"
    file.write_text(text, encoding="utf-8")
    heatsim.Study.from_scenario(file, output=tmp_path / "of a file", workers=1).run()
    found, expected = (heatsim.open(tmp_path / name) for name in ("of a dictionary", "of a file"))
    assert isinstance(found, heatsim.StudyResults)
    assert isinstance(expected, heatsim.StudyResults)
    columns = [name for name in expected.results.columns if not name.startswith(("wall", "converge"))]
    assert found.results[columns].equals(expected.results[columns])
    # The same call finds its runs again.
    again = heatsim.Study.from_dict(document, folder, workers=1)
    assert again.run().num_rows == 3


def test_input_files_start_in_a_folder(tmp_path: Path) -> None:
    np.save(tmp_path / "start.npy", np.full((1, 4, 8), 350.0))
    document = tomllib.loads(study_text.BASE + study_text.STUDY)
    document["initial"]["temperature"] = {"file": "start.npy"}
    study = heatsim.Study.from_dict(document, tmp_path / "out", folder=tmp_path, workers=1)
    assert study.definition.inputs.keys() == {"start.npy"}


def test_what_cannot_be_a_study_is_refused(tmp_path: Path) -> None:
    document = tomllib.loads(study_text.BASE + study_text.STUDY)
    with pytest.raises(ScenarioError, match=r"study: missing; write a table study .* or use Simulation.from_dict"):
        heatsim.Study.from_dict(tomllib.loads(study_text.BASE), tmp_path / "out")
    with pytest.raises(ScenarioError, match=r"got str; a dictionary is expected; Study.from_scenario reads a file"):
        heatsim.Study.from_dict("plate.toml", tmp_path / "out")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="got 0; a whole number from 1 is expected"):
        heatsim.Study.from_dict(document, tmp_path / "out", workers=0)
    document["study"]["parameters"]["material.conductivty"] = [1.0]
    with pytest.raises(ScenarioError, match="conductivty"):
        heatsim.Study.from_dict(document, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_that_has_not_started_says_how_to_go_on(tmp_path: Path) -> None:
    document = tomllib.loads(study_text.BASE + study_text.STUDY)
    planned = heatsim.Study.from_dict(document, tmp_path / "out", workers=1)
    (tmp_path / "out").mkdir()
    definitions.write_study(tmp_path / "out", planned.definition)
    study = heatsim.open(tmp_path / "out")
    assert isinstance(study, heatsim.StudyResults)
    with pytest.raises(FolderError, match=r"Study\.from_dict\(…, .*\)\.run\(\) with the dictionary"):
        study.run(2)
