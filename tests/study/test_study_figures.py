"""Pictures and tables of a study: which there are, and that each response and probe is in one."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import run_folders
import study_text
from rich.console import Console

from heatsim.cli import main
from heatsim.storage import manifest
from heatsim.study import folder as study_folder
from heatsim.study.columns import DONE, FAILED, MESSAGE, STATUS
from heatsim.study.definition import Definition, read
from heatsim.study.drawing import BackgroundStudyPictures
from heatsim.study.figures import draw
from heatsim.study.page import write_report
from heatsim.study.report import response_tables, summarise
from heatsim.study.responses import key_label, parameters_of
from heatsim.study.results import Row, column_types

RANGES = """
[study]
method = "latin-hypercube"
samples = 30
[study.parameters]
"material.conductivity" = { min = 20.0, max = 60.0 }
"boundaries.x_min.coefficient" = { min = 100.0, max = 1000.0, scale = "log" }
"initial.temperature" = { min = 350.0, max = 450.0 }
[[study.responses]]
name = "Σ at the end"
probe = "middle"
statistic = "final"
"""


def finished(at: Path, study: str) -> tuple[Definition, list[Row]]:
    """A study with given results that are easy to recognise; nothing is run."""
    definition, _ = read(study_text.write(at, study))
    manifest.create(at, ())
    rows = []
    for number, point in zip(definition.numbers, definition.points, strict=True):
        row: Row = dict.fromkeys(column_types(definition))
        row.update(point, run=number, folder=f"runs/{number:04d}", **{STATUS: DONE, MESSAGE: ""})
        value = 300.0 + float(str(point["material.conductivity"]))
        row.update({response.name: value for response in definition.table.responses})
        path = study_folder.run_path(at, number)
        path.mkdir(parents=True)
        curve = [[time, value - time] for time in np.linspace(0.0, 8.0, 5).tolist()]
        run_folders.write_table(path / "probes.csv", ["time (s)", "middle (K)"], curve)
        rows.append(row)
    return definition, rows


@pytest.fixture
def grid_study(tmp_path: Path) -> tuple[Definition, list[Row]]:
    """That of study_text.STUDY: six runs, two parameters, two responses."""
    return finished(tmp_path, study_text.STUDY)


def names(pictures: list[Path]) -> list[str]:
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG")
    return [path.name for path in pictures]


def shown(at: Path, definition: Definition, rows: list[Row]) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(summarise(at, definition, rows))
    return capture.get()


@pytest.mark.slow
def test_a_grid_of_two_parameters_has_lines_and_maps(tmp_path: Path, grid_study: tuple[Definition, list[Row]]) -> None:
    definition, rows = grid_study
    # A response that is missing in one run leaves a gap; one that is missing in all runs is not drawn.
    rows[1]["cooled"] = None
    expected = ["response_1_cooled.png", "map_1_cooled.png", "response_2_warmest.png", "map_2_warmest.png"]
    assert names(draw(tmp_path, definition, rows)) == [*expected, "curves_1_middle.png"]
    for row in rows:
        row["cooled"] = None
    assert names(draw(tmp_path, definition, rows)) == [*expected[2:], "curves_1_middle.png"]
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == sorted(
        [*expected[2:], "curves_1_middle.png"]
    )
    text = shown(tmp_path, definition, rows)
    assert "6 of 6 runs done" in text
    assert "46.85 °C" in text


@pytest.mark.parametrize("fails", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_processes_beside_a_study_draw_its_pictures(
    tmp_path: Path, grid_study: tuple[Definition, list[Row]], monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    figures = tmp_path / study_folder.FIGURES
    drawn = {path.name: path.read_bytes() for path in draw(tmp_path, *grid_study)}
    with manifest.replacing(tmp_path, ["figures/map_9_of_earlier_results.png"], "usual png"):
        (figures / "map_9_of_earlier_results.png").touch()
    (figures / "map_of_the_test_rig.png").write_bytes(b"mine")
    drawn["map_of_the_test_rig.png"] = b"mine"
    if fails:
        (tmp_path / "matplotlib.py").write_text("raise ImportError")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with BackgroundStudyPictures() as pictures, monkeypatch.context() as alone:
        if not fails:  # it needs no help
            alone.delattr("heatsim.study.figures.draw")
        pictures.render(tmp_path, *grid_study)
    assert {path.name: path.read_bytes() for path in figures.iterdir()} == drawn


@pytest.mark.slow
def test_many_drawn_runs_are_points_and_their_spans(tmp_path: Path) -> None:
    definition, rows = finished(tmp_path, RANGES)
    assert names(draw(tmp_path, definition, rows)) == ["response_1_at_the_end.png", "curves_1_middle.png"]
    text = shown(tmp_path, definition, rows)
    assert [parameter.short for parameter in parameters_of(definition, rows)] == [
        "conductivity",
        "coefficient",
        "temperature",
    ]
    conductivity = next(line for line in text.splitlines() if line.strip().startswith("conductivity"))
    assert conductivity.split()[-1] == "+1.00"
    for word in ("least", "median", "most", "deviation", "Σ at the end (°C)"):
        assert word in text


def test_what_is_no_number_is_a_category(tmp_path: Path) -> None:
    study = """
[study]
method = "zip"
[study.parameters]
"initial.temperature" = ["350 + 100*x", "400"]
"material.conductivity" = [20.0, 40.0]
""".replace('"400"', "400.0")
    definition, rows = finished(tmp_path, study)
    for row in rows:
        row["initial.temperature"] = str(row["initial.temperature"])
        row["middle final"] = 310.0
    assert parameters_of(definition, rows)[0].categories == ("350 + 100*x", "400.0")
    drawn = names(draw(tmp_path, definition, rows))
    assert drawn == ["response_1_middle_final.png", "map_1_middle_final.png", "curves_1_middle.png"]


def test_without_a_finished_run_there_is_nothing_to_draw(
    tmp_path: Path, grid_study: tuple[Definition, list[Row]]
) -> None:
    definition, rows = grid_study
    for row in rows:
        row.update({STATUS: FAILED, MESSAGE: "no [bold]space[/bold] left"})
    assert draw(tmp_path, definition, rows) == []
    text = shown(tmp_path, definition, rows)
    assert "0 of 6 runs done, 6 failed" in text
    assert text.count("no [bold]space[/bold] left") == 6


@pytest.mark.parametrize(
    ("keys", "short"),
    [
        (['"material.conductivity"', '"material.density"'], ["conductivity", "density"]),
        (['"boundaries.x_min.ambient"', '"boundaries.x_max.value"'], ["ambient", "value"]),
        (['"domain.size.0"', '"domain.cells.0"'], ["size.x", "cells.x"]),
    ],
)
def test_keys_are_as_short_as_can_be_told_apart(keys: list[str], short: list[str], tmp_path: Path) -> None:
    values = {'"domain.size.0"': "[0.04, 0.05]", '"domain.cells.0"': "[8, 9]"}
    lines = "\n".join(f"{key} = {values.get(key, '[300.0, 310.0]')}" for key in keys)
    definition, _ = read(study_text.write(tmp_path, f'[study]\nmethod = "grid"\n[study.parameters]\n{lines}\n'))
    assert [parameter.short for parameter in parameters_of(definition, [])] == short


FIN = """
[domain]
size = [0.04, 0.01, 0.005]
[[regions]]
name = "base"
box = { min = [0, 0, 0], max = [0.005, 0.01, 0.005] }
[[regions]]
name = "fin"
box = { min = [0.005, 0, 0], max = [0.04, 0.002, 0.005] }
[[sources]]
name = "chip"
power = 3.0
[[contacts]]
resistance = 1e-5
[[patches]]
rectangle = { min = [0.0, 0.0], max = [0.01, 0.01] }
"""


@pytest.mark.parametrize(
    ("key", "others", "label"),
    [
        ("regions.1.box.max.1", [], "fin.box.max.y"),
        ("regions.1.box.max.1", ["regions.0.box.max.1"], "fin.box.max.y"),
        ("regions.1.material", ["regions.0.material"], "fin.material"),
        ("sources.0.power", [], "chip.power"),
        ("contacts.0.resistance", [], "resistance"),
        ("contacts.0.resistance", ["contacts.1.resistance"], "contacts.0.resistance"),
        ("patches.0.rectangle.max.1", [], "max.1"),  # along the second axis of the face, not along y
        ("domain.size.2", [], "size.z"),
        ("initial.temperature", [], "temperature"),
        ("regions.7.box.max.1", [], "max.1"),  # is not in the scenario
    ],
)
def test_labels_name_the_part_and_the_axis(key: str, others: list[str], label: str) -> None:
    assert key_label(key, others, tomllib.loads(FIN)) == label


def test_lengths_are_drawn_in_a_readable_unit_and_decimals_are_aligned(tmp_path: Path) -> None:
    study = """
[study]
method = "grid"
[study.parameters]
"domain.size.1" = ["12 mm", "20 mm"]
"material.conductivity" = [40.25, 241.2]
"""
    definition, rows = finished(tmp_path, study)
    for row in rows:
        row["domain.size.1"] = float(str(row["domain.size.1"]).removesuffix(" mm")) * 1e-3
        row["middle final"] = 573.15 + float(str(row["material.conductivity"]))
    size = parameters_of(definition, rows)[0]
    assert size.label == "size.y (mm)"
    assert size.values.tolist() == pytest.approx([12.0, 12.0, 20.0, 20.0], rel=1e-15)
    table = next(iter(response_tables(definition, rows)))
    assert table.headers == ("run", "size.y (mm)", "conductivity (W/(m K))", "middle final (°C)")
    assert table.rows[:2] == [("1", "12", "40.25", "340.25"), ("2", "12", "241.20", "541.20")]
    # The decimals of temperatures follow from their range: one near 0 does not ask for more.
    for row, temperature in zip(rows, (291.7147666, 273.0818686, 277.8889881, None), strict=True):
        row["middle final"] = temperature
    table = next(iter(response_tables(definition, rows)))
    assert [texts[-1] for texts in table.rows] == ["18.56", "−0.07", "4.74", "–"]


def test_long_times_are_in_hours_and_categories_have_short_names(tmp_path: Path) -> None:
    study = """
[study]
method = "grid"
[study.parameters]
"solver.kernel" = ["numpy", "numba"]
"material.conductivity" = [20.0, 40.0]
"""
    study += study_text.COOLED
    definition, rows = finished(tmp_path, study)
    for row, seconds in zip(rows, (9000.0, 18000.0, 27000.0, None), strict=True):
        row["cooled"] = seconds
        row["solver.kernel"] = {"numpy": "library:fused-silica", "numba": "library:carbon-steel"}[
            str(row["solver.kernel"])
        ]
    table = next(iter(response_tables(definition, rows)))
    assert table.headers[-1] == "cooled (h)"
    assert [texts[-1] for texts in table.rows] == ["2.5", "5.0", "7.5", "–"]
    draw(tmp_path, definition, rows, "svg")
    for name in ("response_1_cooled", "map_1_cooled"):
        drawn = (tmp_path / "figures" / f"{name}.svg").read_text(encoding="utf-8")
        assert "fused-silica" in drawn
        assert "library:" not in drawn


@pytest.mark.slow
def test_a_steady_study_has_no_curves(tmp_path: Path, grid_study: tuple[Definition, list[Row]]) -> None:
    definition, rows = grid_study
    for row in rows:
        run_folders.write_table(
            tmp_path / str(row["folder"]) / "probes.csv", ["time (s)", "middle (K)"], [[0.0, 300.0]]
        )
    assert not [path for path in draw(tmp_path, definition, rows) if path.name.startswith("curves")]


def test_grey_cells_of_a_map_are_explained(tmp_path: Path, grid_study: tuple[Definition, list[Row]]) -> None:
    definition, rows = grid_study
    rows[0]["cooled"] = None
    rows[1][STATUS] = FAILED
    draw(tmp_path, definition, rows, "svg")
    drawn = (tmp_path / "figures" / "map_1_cooled.svg").read_text(encoding="utf-8")
    assert "Grey: the run is not done, or the curve does not pass the threshold." in drawn
    drawn = (tmp_path / "figures" / "map_2_warmest.svg").read_text(encoding="utf-8")
    assert "Grey: the run is not done." in drawn


def test_the_report_has_all_responses_and_curves_with_units(
    tmp_path: Path, grid_study: tuple[Definition, list[Row]]
) -> None:
    definition, rows = grid_study
    rows[1].update({STATUS: FAILED, MESSAGE: "<b>no</b> space"})
    draw(tmp_path, definition, rows)
    text = write_report(tmp_path, definition, rows).read_text(encoding="utf-8")
    assert "5 of 6 runs done, 1 failed" in text
    assert "run 2: &lt;b&gt;no&lt;/b&gt; space" in text
    assert "conductivity (W/(m\N{NO-BREAK SPACE}K))" in text
    assert "middle" in text
    # Each finished run has a curve.
    assert text.count('"run ') == 5
    assert text.count("data:image/png;base64,") == len(list((tmp_path / "figures").iterdir()))


@pytest.mark.slow
def test_a_study_is_rendered_again_in_other_formats(
    tmp_path: Path, grid_study: tuple[Definition, list[Row]], capsys: pytest.CaptureFixture[str]
) -> None:
    definition, rows = grid_study
    drawn = draw(tmp_path, definition, rows, "svg")
    assert all(path.read_bytes().startswith(b"<?xml") for path in drawn)
    # The runs have no summaries, so nothing is done when the folder is read again.
    (tmp_path / "again").mkdir()
    study_folder.write_study(tmp_path / "again", definition)
    assert main(["render", str(tmp_path / "again"), "--format", "pdf"]) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "again" / "report.html")]
    assert "0 of 6 runs done" in (tmp_path / "again" / "report.html").read_text(encoding="utf-8")
    for options in (["--animate"], ["--format", "gif"]):
        assert main(["render", str(tmp_path / "again"), *options]) == 2
