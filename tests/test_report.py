import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from run_folders import write_run, write_table

from heatsim.errors import FolderError
from heatsim.grid import Grid
from heatsim.report.tables import summarise

SUMMARY: dict[str, Any] = {
    "device": "Some CPU, 64 cores",
    "kernel": "numba",
    "precision": "float32",
    "rounding": "stochastic",
    "cells": [4, 3, 2],
    "steps": 24120,
    "coefficients": [
        {"dt": 0.0025, "steps": 24000, "c0": 0.4, "c1": 0.1, "c2": 0.1, "c3": 0.1, "c4": 0.1, "c5": 0.1, "c6": 3e-7},
        {"dt": 0.001, "steps": 120, "c0": 0.7, "c1": 0.05, "c2": 0.05, "c3": 0.05, "c4": 0.05, "c5": 0.05, "c6": 0.05},
    ],
    "reference_temperature": 373.15,
    "temperature": {"min": 293.25, "max": 320.5, "mean": 310.125},
    "wall_time": 9.1,
    "stepping_time": 7.5,
    "cells_per_second": 1.25e9,
}
GRID = Grid((4, 3, 2), (1.0, 1.0, 1.0))


def show(folder: Path, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(summarise(folder))
    text = console.file.getvalue().replace("\N{NO-BREAK SPACE}", " ")
    assert max(map(len, text.splitlines())) <= width
    return text


def test_everything_a_reader_asks_for_is_there(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, title="Tea [bold]hot[/]", **SUMMARY)
    text = show(folder)
    for expected in (
        "Tea [bold]hot[/]",
        "4 × 3 × 2",
        "Some CPU, 64 cores, numba, float32, stochastic rounding",
        "24,120 to 1 s",
        "9.1 s: stepping 7.5 s",
        "1.25 GCells/s",
        "min 293.25, max 320.5, mean 310.125 K",
        "373.15",
        "fields.vtkhdf",
        "probes.csv",
        "energy.csv",
    ):
        assert expected in text
    lines = [line.split() for line in text.splitlines()]
    assert ["0.0025", "24,000", "0.4000", *["0.1000"] * 5, "3.0e-07"] in lines
    assert ["0.001", "120", "0.7000", *["0.0500"] * 6] in lines
    assert ["edge,", "upper", "350", "348", "348", "350"] in lines
    assert ["stored,", "the", "sum", "-1234.5"] in lines
    assert ["through", "x_min", "-1234.5"] in lines
    assert "through x_max" not in text
    assert "(bound 1e-08 J: closed)" in text


def test_coefficients_fit_an_ordinary_terminal(tmp_path: Path) -> None:
    text = show(write_run(tmp_path / "run", GRID, **SUMMARY), width=80)
    assert ["0.0025", "24,000", "0.4000", *["0.1000"] * 5, "3.0e-07"] in [line.split() for line in text.splitlines()]


def test_an_open_balance_is_not_overlooked(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, **{**SUMMARY, "energy_bound": 1e-12})
    assert "NOT CLOSED" in show(folder)


def test_long_lists_are_cut_and_say_where_the_rest_is(tmp_path: Path) -> None:
    coefficients = [{**SUMMARY["coefficients"][0], "dt": 0.001 * n} for n in range(1, 31)]
    folder = write_run(
        tmp_path / "run", GRID, probes=[f"p{n}" for n in range(30)], **{**SUMMARY, "coefficients": coefficients}
    )
    text = show(folder)
    assert "18 more in summary.json" in " ".join(text.split())
    assert "18 more in probes.csv" in " ".join(text.split())


def test_what_is_absent_is_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, probes=())
    (folder / "energy.csv").unlink()
    text = show(folder)
    assert "Probes" not in text
    assert "Energy" not in text


def test_an_unfinished_run_has_no_report(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID)
    (folder / "summary.json").unlink()
    with pytest.raises(FolderError, match="resume"):
        summarise(folder)


def test_no_number_is_broken_at_any_width(tmp_path: Path) -> None:
    names = ["a probe with a long name of many words", "b"]
    folder = write_run(tmp_path / "run", GRID, probes=names, **SUMMARY)
    rows = [[0.0, -1234567.25, 98765.4321], [1.0, 1234567.25, 12345.6789]]
    write_table(folder / "probes.csv", ["time (s)", *(f"{name} (K)" for name in names)], rows)
    for width in (80, 60, 40):
        words = show(folder, width).split()
        for number in ("-1234567", "1234567", "98765.43", "0.4000", "3.0e-07", "-1234.5", "24,000"):
            assert number in words, (number, width)


def test_points_of_a_line_share_a_row(tmp_path: Path) -> None:
    line = "line = { from = [0.0, 0.0, 0.0], to = [1.0, 0.0, 0.0], count = 3 }"
    folder = write_run(tmp_path / "run", GRID, probes=["across[0]", "across[1]", "across[2]", "alone"])
    (folder / "scenario.toml").write_text(f'title = "line"\n[[probes]]\nname = "across"\n{line}\n')
    lines = [row.split() for row in show(folder).splitlines()]
    assert ["across", "(3", "points)", "350", "347…349", "347", "350"] in lines
    assert any(row[:1] == ["alone"] for row in lines)
    assert not any("across[0]" in row for row in lines)
