"""Which study may continue in a folder: the same one, or with --extend one with more points; other files are kept."""

import json
from pathlib import Path

import pytest
import study_text

from heatsim.errors import FolderError, StorageError
from heatsim.run.interrupt import Stop
from heatsim.storage import manifest
from heatsim.study import folder
from heatsim.study.definition import Definition, read
from heatsim.study.run_group import run_group

MORE = study_text.STUDY.replace("[20.0, 40.0]", "[10.0, 20.0, 40.0]")
FEWER = study_text.STUDY.replace("[20.0, 40.0]", "[40.0]")


def definition(at: Path, study: str = study_text.STUDY, *overrides: str) -> Definition:
    return read(study_text.write(at, study), overrides)[0]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder of a study in which only run 2 is done."""
    (tmp_path / "out").mkdir()
    folder.write_study(tmp_path / "out", definition(tmp_path))
    list(run_group(tmp_path / "out", [2], lambda number, step: None, Stop()))
    return tmp_path / "out"


def open_study(study: Path, wanted: Definition, *, extend: bool = False, overwrite: bool = False) -> Definition:
    found = folder.check_study(study, wanted, extend=extend, overwrite=overwrite)
    folder.write_study(study, found, overwrite=overwrite)
    return found


def tree(at: Path) -> dict[str, bytes]:
    return {path.relative_to(at).as_posix(): path.read_bytes() for path in at.rglob("*") if path.is_file()}


def test_the_same_study_goes_on(tmp_path: Path, out: Path) -> None:
    before = tree(out)
    # Points are equal if their values are, in any notation; pictures and responses may change.
    same = study_text.STUDY.replace("[20.0, 40.0]", "[40, 20]").replace('"max"', '"min"')
    merged = open_study(out, definition(tmp_path, same, "output.figures=true"))
    assert merged.points == definition(tmp_path).points
    assert merged.table.responses[1].statistic == "min"
    after = tree(out)
    assert {name for name in before if before[name] != after[name]} == {"study.json", "manifest.json"}


def test_another_study_is_refused_with_what_differs(tmp_path: Path, out: Path) -> None:
    before = tree(out)
    with pytest.raises(FolderError) as caught:
        open_study(out, definition(tmp_path, study_text.STUDY, "time.end=9.0", "probes.0.point.0=0.01"))
    assert str(caught.value) == (
        f"{out}: holds a study with other settings; restore these settings, choose another --output, or replace "
        "the whole study with --overwrite:\n"
        "  time.end: 8.0 there, 9.0 in the file\n"
        "  probes.0.point: [0.02, 0.01, 0.005] there, [0.01, 0.01, 0.005] in the file"
    )
    assert tree(out) == before


def test_a_study_of_which_nothing_was_run_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for study in (study_text.STUDY, FEWER, MORE):
        open_study(tmp_path / "out", definition(tmp_path, study))
    assert len(folder.read_study(tmp_path / "out").points) == 9


def test_points_with_a_run_cannot_be_dropped(tmp_path: Path, out: Path) -> None:
    for extend in (False, True):
        with pytest.raises(FolderError) as caught:
            open_study(out, definition(tmp_path, FEWER), extend=extend)
        assert "1 of its 6 points has a run and is not in the file; write it there again" in str(caught.value)
        assert "study.parameters.material.conductivity: [20.0, 40.0] there, [40.0] in the file" in str(caught.value)


def test_points_are_added_on_request_and_the_others_keep_their_numbers(tmp_path: Path, out: Path) -> None:
    with pytest.raises(FolderError, match="a study of 6 points, to which the file adds 3; add them with --extend"):
        open_study(out, definition(tmp_path, MORE))
    extended = open_study(out, definition(tmp_path, MORE), extend=True)
    first = definition(tmp_path).points
    assert extended.points[:6] == first
    assert [point["material.conductivity"] for point in extended.points[6:]] == [10.0, 10.0, 10.0]
    assert folder.is_done(out / "runs" / "0002")
    # From then on the study has the longer file.
    assert open_study(out, definition(tmp_path, MORE)).points == extended.points
    # Those that were added by mistake have no run yet.
    with pytest.raises(FolderError, match="the file drops 3 that have no run; drop them with --extend"):
        open_study(out, definition(tmp_path))
    assert open_study(out, definition(tmp_path), extend=True).points == first


def test_all_runs_have_the_same_input_files(tmp_path: Path) -> None:
    """A logger appends to weather.csv while the study runs, or before it goes on."""
    weather, out = tmp_path / "weather.csv", tmp_path / "out"
    base = study_text.BASE.replace('"20 degC"', '{ file = "weather.csv", time = "s", column = "T", unit = "degC" }')
    before, after = "s,T\n0,20\n8,20\n", "s,T\n0,20\n8,90\n"

    def run(number: int) -> list[str]:
        return [each.message or each.status for each in run_group(out, [number], lambda number, step: None, Stop())]

    def wanted() -> Definition:
        return read(study_text.write(tmp_path, base=base))[0]

    out.mkdir()
    weather.write_text(before)
    open_study(out, wanted())
    assert run(1) == ["done"]
    weather.write_text(after)
    assert run(2)[0].startswith("weather.csv: was changed since the study began; put its old content back")
    with pytest.raises(FolderError, match=r"other settings; .*:\n  weather\.csv: has another content now"):
        open_study(out, wanted())
    weather.write_text(before)
    open_study(out, wanted())
    assert run(2) == ["done"]


def test_points_without_a_run_can_be_dropped_and_the_runs_keep_their_numbers(tmp_path: Path, out: Path) -> None:
    """Run 2 stays; points that have no run take the places of those that are dropped."""
    points, text = definition(tmp_path).points, study_text.STUDY
    swapped = text.replace("[100.0, 300.0, 900.0]", "[300.0, 50.0]")
    changed = open_study(out, definition(tmp_path, swapped), extend=True)
    assert changed.points[1] == points[1]
    assert len(changed.points) == 4
    assert {point["boundaries.x_min.coefficient"] for point in changed.points} == {300.0, 50.0}
    assert folder.read_study(out).points == changed.points
    with pytest.raises(FolderError, match="run 2 would get another number, because the file drops point 1"):
        open_study(
            out, definition(tmp_path, swapped.replace("[20.0, 40.0]", "[20.0]").replace(", 50.0", "")), extend=True
        )


def test_another_study_replaces_it_on_request(tmp_path: Path, out: Path) -> None:
    with manifest.replacing(out, ["figures/map_1_x.png"], "usual png"):
        (out / "figures").mkdir()
        (out / "figures" / "map_1_x.png").write_bytes(b"")
    for name in ("results.csv", "results.parquet", "lease"):
        manifest.write_own(out, name, b"")
    (out / "results.parquet").rename(out / "results.parquet.part")
    (out / "runs" / "0003").mkdir()
    manifest.create(out / "runs" / "0003", ["scenario.toml"])
    (out / "runs" / "0003" / "scenario.toml.part").write_bytes(b"")
    replaced = open_study(out, definition(tmp_path, FEWER), overwrite=True)
    assert len(replaced.points) == 3
    assert sorted(tree(out)) == ["manifest.json", "study.json"]


@pytest.mark.parametrize(
    "other",
    [
        "notes.txt",
        "runs/0002/notes.txt",
        "runs/notes.txt",
        "runs/0009/notes.txt",
        "figures/map_mine.png",
        "report.html",
    ],
)
def test_if_a_file_of_others_is_there_nothing_is_removed(tmp_path: Path, out: Path, other: str) -> None:
    (out / other).parent.mkdir(exist_ok=True)
    (out / other).write_text("mine")
    before = tree(out)
    with pytest.raises(FolderError, match=f"{Path(other).name}.*nothing was removed"):
        open_study(out, definition(tmp_path, FEWER), overwrite=True)
    assert tree(out) == before


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(
        FolderError, match=r"files that are not from a heatsim study, or were changed since \(.*thesis.tex\); nothing"
    ):
        open_study(tmp_path, definition(tmp_path / "elsewhere"), overwrite=True)
    assert not (tmp_path / "study.json").exists()


def test_a_folder_that_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"is not the folder of a study, study.json is missing"):
        folder.read_study(tmp_path)


def test_a_definition_with_mistakes_in_its_table_is_damaged(tmp_path: Path) -> None:
    content = {"path": "plate.toml", "document": {"study": {"method": "gird"}}, "points": []}
    (tmp_path / "study.json").write_text(json.dumps(content))
    with pytest.raises(StorageError, match=r'could not be read: study.method: got "gird"; one of "grid"'):
        folder.read_study(tmp_path)
