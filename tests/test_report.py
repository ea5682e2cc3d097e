import io
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from run_folders import write_run, write_table

from heatsim.errors import FolderError
from heatsim.grid import FACES, Grid
from heatsim.render import render
from heatsim.render.curves.flow_curves import flow_curves, usual_range
from heatsim.report import numbers, page
from heatsim.report.facts import answers
from heatsim.report.number_tables import NumberTable
from heatsim.report.tables import summarise
from heatsim.report.terminal import TerminalTable
from heatsim.temperature_units import KELVIN

SUMMARY: dict[str, Any] = {
    "device": "Some CPU, 64 cores",
    "kernel": "numba",
    "precision": "float32",
    "cells": [4, 3, 2],
    "steps": 24120,
    "coefficients": [
        {"dt": 0.0025, "steps": 24000, "c0": 0.4, "c1": 0.1, "c2": 0.1, "c3": 0.1, "c4": 0.1, "c5": 0.1, "c6": 3e-7},
        {"dt": 0.001, "steps": 120, "c0": 0.7, "c1": 0.05, "c2": 0.05, "c3": 0.05, "c4": 0.05, "c5": 0.05, "c6": 0.05},
    ],
    "reference_temperature": 373.15,
    "time": 1.0,
    "highest_temperature": {
        "temperature": 373.15,
        "time": 0.25,
        "cell": [3, 1, 0],
        "point": [0.0125, 0.002, -0.0005],
        "material": "silicon",
        "region": "die",
    },
    "lowest_temperature": {"temperature": 273.0, "time": 0.0, "cell": [0, 0, 0], "point": [0.0, 0.0, 0.0]},
    "temperature": {"min": 293.25, "max": 320.5, "mean": 310.125},
    "wall_time": 9.1,
    "stepping_time": 7.5,
    "cells_per_second": 1.25e9,
}
GRID = Grid((4, 3, 2), (1.0, 1.0, 1.0))


def show(folder: Path, width: int = 100, verbose: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(summarise(folder, verbose))
    text = console.file.getvalue().replace("\N{NO-BREAK SPACE}", " ")
    assert max(map(len, text.splitlines())) <= width
    return text


def test_everything_a_reader_asks_for_is_there(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, title="Tea [bold]hot[/]", **SUMMARY)
    text = show(folder, verbose=True)
    for expected in (
        "Tea [bold]hot[/]",
        "4 × 3 × 2",
        "Some CPU, 64 cores, numba, float32",
        "24,120 to 1 s",
        "9.1 s: stepping 7.5 s",
        "1.25 GCells/s",
        'hottest cell 373.15 K after 0.25 s at (12.5, 2, −0.5) mm, region "die", silicon',
        "coldest cell 273.00 K at the start",
        "at the end 293.25 to 320.50 K, mean 310.12 K",
        "T − 373.15 K",
        "fields.vtkhdf",
        "probes.csv",
        "energy.csv",
    ):
        assert expected in " ".join(text.split())
    lines = [line.split() for line in text.splitlines()]
    assert ["0.0025", "24,000", "0.4000", *["0.1000"] * 5, "3.0e-07"] in lines
    assert ["0.001", "120", "0.7000", *["0.0500"] * 6] in lines
    assert ["edge,", "upper", "350", "348", "348", "350"] in lines
    assert ["stored,", "the", "sum", "−1.2345", "−1.2345", "−1.2345"] in lines
    assert ["through", "x_min", "−1.2345", "−1.2345", "−1.2345"] in lines
    assert ["heat", "into", "the", "body", "kJ", "mean", "(kW)", "at", "the", "end", "(kW)"] in lines
    assert "through x_max" not in text
    assert "Energy balance closed: residual 1 nJ of 1.2 kJ." in " ".join(text.split())


def test_a_probe_on_a_surface_that_is_hotter_than_all_cells_is_told(tmp_path: Path) -> None:
    """A beam heats the surface above the centres of cells; rounding alone is not told."""
    folder = write_run(tmp_path / "run", GRID, probes=["spot", "far"], **SUMMARY)
    write_table(folder / "probes.csv", ["time (s)", "spot (K)", "far (K)"], [[0.0, 300, 300], [0.5, 420.5, 272.995]])
    text = show(folder, verbose=True)
    assert "hottest probe 420.50 K after 0.5 s, spot" in " ".join(text.split())
    assert "coldest probe" not in text


def test_what_only_numerics_need_is_left_to_verbose(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, **SUMMARY)
    text, details = show(folder), show(folder, verbose=True)
    for jargon in ("c0", "c6", "T −", "stability"):
        assert jargon not in text
    assert "c6" in details


def test_flows_through_contacts_are_told_in_watts(tmp_path: Path) -> None:
    """The region has stored what its column says. Flows of a contact at two rows do not say which heat passed."""
    folder = write_run(tmp_path / "run", GRID)
    heats = ["stored (J)", "sources (J)", *(f"{face} (J)" for face in FACES), "residual (J)"]
    headers = ["time (s)", *heats, "region die (J)", "region die (W)", "contact copper to silicon (W)"]
    rows = [[0.0] * 11 + [nan, 0.0], [2.0, 3.0, 3.0] + [0.0] * 7 + [3.0, 1.5, 4.0]]
    write_table(folder / "energy.csv", headers, rows)
    lines = [line.split() for line in show(folder, verbose=True).splitlines()]
    assert ["into", "region", "die", "1.5", "3"] in lines
    assert ["contact", "copper", "to", "silicon", "4.0", "–"] in lines
    assert "Regions and contacts" in page.build(folder)
    assert "all other cells" not in show(folder, verbose=True)


def test_places_have_a_readable_unit_and_titles_are_not_broken(tmp_path: Path) -> None:
    """A film of 2 µm, and a table that is narrower than its title."""
    place = {"temperature": 302.25, "time": 0.5, "cell": [9, 9, 9], "point": [9.5e-7, -1.2e-6, 1.9e-7]}
    folder = write_run(tmp_path / "run", GRID, **{**SUMMARY, "highest_temperature": place})
    text = show(folder)
    assert "hottest cell 302.25 K after 0.5 s at (0.95, −1.2, 0.19) µm" in " ".join(text.split())
    table = NumberTable("Energy balance at 60 min", ("heat into the body", "J"), [("stored, the sum", "0")])
    console = Console(width=80, file=io.StringIO())
    console.print(TerminalTable(table))
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[0] == "Energy balance at 60 min"


def test_heat_outside_of_all_regions_has_a_row(tmp_path: Path) -> None:
    """The body stores 3 J at 2 W, two regions of it 1.75 J at 0.5 W: the cells around them the rest."""
    folder = write_run(tmp_path / "run", GRID)
    heats = ["stored (J)", "sources (J)", *(f"{face} (J)" for face in FACES), "residual (J)"]
    regions = ["region die (J)", "region lid (J)", "stored (W)", "region die (W)", "region lid (W)"]
    rows = [[0.0] * 12 + [nan] * 3, [2.0, 3.0, 3.0] + [0.0] * 7 + [1.25, 0.5, 2.0, 0.75, -0.25]]
    write_table(folder / "energy.csv", ["time (s)", *heats, *regions], rows)
    lines = [line.split() for line in show(folder, verbose=True).splitlines()]
    assert ["into", "region", "lid", "−0.25", "0.50"] in lines
    assert ["into", "all", "other", "cells", "1.50", "1.25"] in lines


@pytest.mark.parametrize(
    ("values", "decimals", "texts"),
    [
        ([350.0, 348.0], 3, ["350", "348"]),
        ([350.25, -348.0], 3, ["350.25", "−348.00"]),
        ([-1e-9, 2.5], 2, ["0.0", "2.5"]),
        ([float("nan"), 20.0], 2, ["nan", "20"]),
        ([1500.0], 0, ["1500"]),
        ([], 2, []),
    ],
)
def test_numbers_of_a_column_have_equally_many_decimals(values: list[float], decimals: int, texts: list[str]) -> None:
    assert numbers.fixed(values, decimals) == texts


@pytest.mark.parametrize(("span", "decimals"), [(80.0, 2), (0.05, 5), (5.0, 3), (1500.0, 2), (1e-8, 9)])
def test_temperatures_show_a_thousandth_of_their_range(span: float, decimals: int) -> None:
    assert numbers.decimals_of_temperatures([0.0, span, 0.5 * span]) == decimals


@pytest.mark.parametrize(
    ("temperature", "text"), [(0.8064, "0.8064"), (293.15, "293.15"), (1510.5, "1510.5"), (0.0, "0"), (-40.0, "−40")]
)
def test_one_temperature_shows_its_own_digits(temperature: float, text: str) -> None:
    assert numbers.fixed([temperature], numbers.decimals_of_temperatures([temperature, temperature])) == [text]


def test_coefficients_fit_an_ordinary_terminal(tmp_path: Path) -> None:
    text = show(write_run(tmp_path / "run", GRID, **SUMMARY), width=80, verbose=True)
    assert ["0.0025", "24,000", "0.4000", *["0.1000"] * 5, "3.0e-07"] in [line.split() for line in text.splitlines()]


def test_an_open_balance_is_not_overlooked(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, **{**SUMMARY, "energy_bound": 1e-12})
    assert "NOT CLOSED" in " ".join(show(folder).split())


def test_long_lists_are_cut_and_say_where_the_rest_is(tmp_path: Path) -> None:
    coefficients = [{**SUMMARY["coefficients"][0], "dt": 0.001 * n} for n in range(1, 31)]
    folder = write_run(
        tmp_path / "run", GRID, probes=[f"p{n}" for n in range(30)], **{**SUMMARY, "coefficients": coefficients}
    )
    text = show(folder, verbose=True)
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
        words = show(folder, width, verbose=True).split()
        for number in ("−1234567.25", "1234567.25", "98765.43", "0.4000", "3.0e-07", "−1.2345", "24,000"):
            assert number in words, (number, width)


def test_points_of_a_line_share_a_row(tmp_path: Path) -> None:
    line = "line = { from = [0.0, 0.0, 0.0], to = [1.0, 0.0, 0.0], count = 3 }"
    folder = write_run(tmp_path / "run", GRID, probes=["across[0]", "across[1]", "across[2]", "alone"])
    (folder / "scenario.toml").write_text(f'title = "line"\n[[probes]]\nname = "across"\n{line}\n')
    lines = [row.split() for row in show(folder).splitlines()]
    assert ["across", "(3", "points)", "350", "347…349", "347", "350"] in lines
    assert any(row[:1] == ["alone"] for row in lines)
    assert not any("across[0]" in row for row in lines)


def test_lengths_and_durations_have_readable_units(tmp_path: Path) -> None:
    """A melt pool is 1.5 mm long, not 0.0015 m; a year is 365 days, not 3.154e+07 s. Fractions have no unit."""
    folder = write_run(tmp_path / "run", GRID)
    headers = ["time (s)", "pool (m)", "warm (s)", "melt (1)", "pulse (s)", "depth (m)"]
    write_table(folder / "probes.csv", headers, [[0.0] * 6, [3.1536e7, 1.504e-3, 3.1536e7, 0.25, 0.25, 2.5e-4]])
    lines = [line.split() for line in show(folder).splitlines()]
    assert ["pool", "(mm)", "0", "1.504", "0", "1.504"] in lines
    assert ["depth", "(mm)", "0", "0.25", "0", "0.25"] in lines
    assert ["warm", "(days)", "0", "365", "0", "365"] in lines
    assert ["pulse", "(ms)", "0", "250", "0", "250"] in lines
    assert ["melt", "0", "0.25", "0", "0.25"] in lines
    charts = page.build(folder)
    for label in ("Length (mm)", "Duration (days)", ">melt<"):
        assert label in charts


@pytest.mark.slow
def test_a_large_flow_at_the_start_does_not_flatten_the_others(tmp_path: Path) -> None:
    """A year of ±10 W after 400 W in the first row: the curves fill the picture, and a remark names the cut."""
    flow = np.where(np.arange(200) < 1, -400.0, 10.0 * np.sin(np.arange(200)))
    low, high = usual_range([flow]) or (nan, nan)
    assert (low, high) == pytest.approx((-11.0, 11.0), abs=0.1)
    assert usual_range([flow[1:]]) is None
    assert usual_range([np.array([-400.0, 1.0, 2.0])]) is None
    folder = write_run(tmp_path / "run", GRID)
    heats = ["stored (J)", "sources (J)", *(f"{face} (J)" for face in FACES), "residual (J)"]
    total = np.cumsum(flow)
    rows = [[float(t), q, 0.0, q, *[0.0] * 6, w, w] for t, q, w in zip(range(200), total, flow, strict=True)]
    rows[0][-2:] = nan, nan
    rows[1][-2:] = -400.0, -400.0
    write_table(folder / "energy.csv", ["time (s)", *heats, "stored (W)", "x_min (W)"], rows)
    assert "Heat flows: the first ones are cut off" in page.build(folder)
    assert (folder / "figures" / "heat_flows.png") in render(folder)


def test_many_rows_of_heat_flows_are_averaged_over_days() -> None:
    """Hours of a year with a swing of 30 W within a day, and of 10 W within the year: means have no daily swing."""
    hours = np.arange(8761.0)
    yearly = 10.0 * np.cos(2.0 * np.pi * hours / 8760.0)
    found = flow_curves(
        3600.0 * hours, {"wall": yearly + 30.0 * np.cos(2.0 * np.pi * hours / 24.0), "none": 0.0 * hours}
    )
    assert found is not None
    assert list(found.flows) == ["wall"]
    assert found.remark == "means over 24 h"
    assert found.times[:2].tolist() == [86400.0, 172800.0]
    assert found.flows["wall"][0] == pytest.approx(float(np.mean(yearly[1:25])), abs=1e-9)
    assert len(found.flows["wall"]) == 365
    few = flow_curves(hours[:5], {"wall": np.array([nan, 1.0, 2.0, 3.0, 4.0])})
    assert few is not None
    assert (few.remark, few.flows["wall"].tolist()) == ("", [1.0, 2.0, 3.0, 4.0])
    assert flow_curves(hours[:3], {"none": np.zeros(3)}) is None


@pytest.mark.slow
def test_a_line_in_a_steady_state_has_one_profile_without_a_time(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID)
    line = '[[probes]]\nname = "wall"\nline = { from = [0, 0, 0], to = [1, 0, 0], count = 3 }\n'
    (folder / "scenario.toml").write_text(f'title = "Wall"\n[time]\nmethod = "steady"\n{line}')
    write_table(folder / "probes.csv", ["time (s)", *(f"wall[{n}] (K)" for n in range(3))], [[0.0, 300, 310, 320]])
    write_table(folder / "energy.csv", ["time (s)", *(f"{face} (W)" for face in FACES), "imbalance (W)"], [[0.0] * 8])
    html = page.build(folder)
    assert "Probe &quot;wall&quot;<" in html
    assert ">0 s<" not in html
    assert (folder / "figures" / "line_1.png") in render(folder)


def test_a_probe_that_is_the_hottest_cell_has_no_row_of_its_own() -> None:
    hottest = {"temperature": 370.0, "time": 2.0, "point": [0.01, 0.02, 0.0], "region": "die"}
    others = {"die, hottest": hottest, "lid, hottest": {**hottest, "temperature": 360.0, "region": "lid"}}
    summary = {"time": 2.0, "highest_temperature": hottest, "probe_extremes": others}
    told = dict(answers(summary, KELVIN))
    assert list(told) == ["hottest cell", "lid, hottest"]
    assert told["hottest cell"].endswith(', probe "die, hottest"')
