"""report.html: one page without requests, safe whatever a scenario contains, with numbers under the pointer."""

import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import runs
from browser import look_at
from run_folders import write_run, write_table

from heatsim.cli import main
from heatsim.grid import FACES, Grid
from heatsim.render import render
from heatsim.render.choice import PictureChoice
from heatsim.render.curves.curves import line_style
from heatsim.render.curves.energy_balance import read_balance
from heatsim.render.curves.energy_picture import STORED_STYLE, parts_to_draw
from heatsim.render.descriptions import description_of
from heatsim.report import charts, document, page
from heatsim.report.charts import Chart
from heatsim.report.number_tables import NumberTable

GRID = Grid((4, 3, 2), (1.0, 1.0, 1.0))
HOSTILE = "</script><script>alert(1)</script><img src=//evil.example/x onerror=alert(2)>&\\\"'</title>"
# What may be loaded: data in the page itself, and places in it.
OWN = ("data:", "#")
STABILIZED = {"method": "stabilized", "steps": 9, "tolerance": 0.02, "rejected": 0}


class Elements(HTMLParser):
    """All elements of a page with their attributes, and the texts outside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def hostile_run(folder: Path) -> Path:
    write_run(folder, GRID, title="plain", probes=[HOSTILE, "edge, upper"], warnings=[f"mind {HOSTILE}"])
    (folder / "scenario.toml").write_text(f"title = {json.dumps(HOSTILE)}\n", encoding="utf-8")
    (folder / "figures").mkdir()
    (folder / "figures" / 'a"><b>.png').write_bytes(b"\x89PNG\r\n\x1a\n")
    return folder


def test_what_comes_from_a_scenario_stays_text(tmp_path: Path) -> None:
    text = page.build(hostile_run(tmp_path / "run"))
    elements = Elements(text)
    # One script for each chart's numbers, and that of the page.
    assert len(elements.of("script")) == len(elements.of("svg")) + 1
    assert len(elements.of("img")) == 1
    assert not elements.of("b")
    assert all(not name.startswith("on") for _, attributes in elements.found for name in attributes)
    for _, attributes in elements.found:
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(OWN)


def test_a_table_has_one_head_and_units_and_amounts_stay_on_one_line() -> None:
    table = document.table(NumberTable("", ["", "film (W/(m² K))", "of what (see below) it is"], [["a", "1", "2"]]))
    assert re.findall("<thead>.*?<th", table) == ["<thead><tr><th"]
    assert "<caption>" not in table
    assert "film (W/(m²\xa0K))" in table
    assert "of what (see below) it is" in table
    listed = document.name_list([("hottest", "91.1 °C after 2 h with 5 W/(m² K); limit ≤ 85 °C")])
    assert "91.1\xa0°C after 2\xa0h with 5\xa0W/(m²\xa0K); limit ≤\xa085\xa0°C" in listed


def test_a_page_says_what_was_computed_and_how_sure_it_is(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / "run",
        GRID,
        method="stabilized",
        tolerance=0.02,
        steps=5,
        stages=50,
        rejected=0,
        warnings=["too hot"],
    )
    text = page.build(folder)
    for expected in (
        "energy balance closed",
        "Energy balance closed: residual 1 nJ of 1.2 kJ.",
        "<td>±0.02 K</td>",
        "Warning: too hot",
        "A block that costs $5 and $6",
        "edge, upper",
    ):
        assert expected in text
    (folder / "summary.json").unlink()
    (folder / "scenario.toml").write_text('title = "half"\ntime.end = 4.0\n')
    text = page.build(folder)
    for expected in ("not finished", "1 s of 4 s".replace(" ", "\N{NO-BREAK SPACE}"), f"heatsim resume {folder}"):
        assert expected in text


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        # 20,000 Euler steps round 100 K by 2^-24 each.
        (
            {},
            ("±0.12 K", "20,000 times the rounding of float32", "The largest error that is known is that of round"),
        ),
        ({"precision": "float64"}, ("±2.2e-10 K", "rounding of float64")),
        (
            {"method": "stabilized", "steps": 9, "stages": 60, "tolerance": 0.02, "rejected": 0},
            ("±0.02 K", "Not known: the error in space and of rounding"),
        ),
        ({"converge_time": 42.0}, ("heatsim converge", "which takes about 42 s", "Not known: the error in space and")),
        ({"converge_time": None}, ("one value for each cell",)),
    ],
)
def test_a_page_says_how_large_each_error_is(tmp_path: Path, changes: dict[str, object], told: Sequence[str]) -> None:
    hot, cold = ({"temperature": T, "time": 0.0, "point": [0.5, 0.5, 0.5]} for T in (400.0, 300.0))
    euler = {
        **{"method": "euler", "dt": [0.1], "precision": "float32", "stages": None, "steps": 20_000},
        **{"highest_temperature": hot, "lowest_temperature": cold, "reference_temperature": 300.0},
    }
    text = page.build(write_run(tmp_path / "run", GRID, **{**euler, **changes}))
    for expected in told:
        assert expected in text


def test_pictures_have_captions_that_say_what_they_show(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Grid((40, 30, 1), (0.04, 0.03, 1.0)), title="A plate — 5 < 6 & 7")
    with (folder / "scenario.toml").open("a", encoding="utf-8") as scenario:
        scenario.write(
            '[[probes]]\nname = "edge <1>"\nline = { from = [0.0, 0.0, 0.0], to = [0.04, 0.0, 0.0], count = 2 }\n'
        )
    write_table(
        folder / "probes.csv",
        ["time (s)", "edge <1>[0] (K)", "edge <1>[1] (K)"],
        [[0.0, 300.0, 301.0], [1.0, 300.5, 300.0]],
    )
    render(folder)
    render(folder, PictureChoice(format="svg", times=(1.0,)))
    (folder / "figures" / "photo.png").write_bytes(b"no picture")
    (folder / "figures" / "plane.gif").write_bytes(b"")
    text = page.build(folder)
    captions = re.findall(r"<figure><img [^>]* alt=\"([^\"]*)\"[^>]*><figcaption>([^<]*)</figcaption>", text)
    assert all(alternative == caption for alternative, caption in captions)
    assert [caption for _, caption in captions] == [
        "photo.png",
        "Animation: plane",
        "Plane: temperature, t = 0 s",
        "Plane: temperature, t = 1 s",
        "Probe &quot;edge &lt;1&gt;&quot;",
    ]


def test_sections_of_a_part_have_a_caption(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", Grid((12, 9, 6), (0.1, 0.06, 0.03)))
    (path,) = render(folder, PictureChoice(views=("sections",), times=(1.0,), cells=((0, 6), (0, 9), (0, 6))))
    assert description_of(path) == "Sections: temperature, t = 1 s, part of the body"


def test_the_same_term_has_the_same_colour_as_in_the_pictures(tmp_path: Path) -> None:
    """Two patches on one face, a source and two faces: heats and flows of each in one colour."""
    folder = write_run(tmp_path / "run", GRID)
    (folder / "scenario.toml").write_text(
        'title = "terms"\n' + "".join(f'[[patches]]\nname = "{name}"\nface = "z_max"\n' for name in ("one", "two"))
    )
    names = ("stored", "sources", *FACES, "one", "two")
    heats = [3.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 1.5, 0.25, 0.75]
    headers = [f"{name} (J)" for name in (*names, "residual")] + [f"{name} (W)" for name in names]
    rows = [[0.0] * (1 + len(headers)), [1.0, *heats, 0.0, *heats], [2.0, *heats, 0.0, *heats]]
    write_table(folder / "energy.csv", ["time (s)", *headers], rows)
    heat, flow = (
        {curve["name"]: curve["colour"] for curve in json.loads(numbers)["curves"]}
        for numbers in re.findall(r'<script type="application/json">(.*?)</script>', page.build(folder))
        if "stored" in numbers
    )
    balance = read_balance(folder, {"one": "z_max", "two": "z_max"})
    assert balance is not None
    drawn = {name: line_style(number)["color"] for number, name in enumerate(parts_to_draw(balance))}
    assert list(drawn) == ["sources", "x_min", "z_max beside patches", "one (on z_max)", "two (on z_max)"]
    assert heat == flow == {"stored": STORED_STYLE["color"], **drawn}


def test_probes_look_as_in_the_pictures_and_many_runs_by_their_order(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(9)]
    text = page.build(write_run(tmp_path / "run", GRID, probes=names))
    (numbers,) = (
        found for found in re.findall(r'<script type="application/json">(.*?)</script>', text) if "p8" in found
    )
    assert [curve["colour"] for curve in json.loads(numbers)["curves"]] == [line_style(n)["color"] for n in range(9)]
    assert f'stroke="{line_style(8)["color"]}" stroke-dasharray' in text
    x = np.array([0.0, 1.0])
    many = charts.draw(Chart("runs", "Time (s)", "T (K)", dict.fromkeys(names, (x, x))))
    assert 'stroke="hsl(240 75% 42%)"' in many
    assert "stroke-dasharray" not in many


def test_temperatures_have_the_unit_of_the_scenario(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID)
    (folder / "scenario.toml").write_text('title = "warm"\n[output]\ntemperature = "degC"\n', encoding="utf-8")
    text = page.build(folder)
    assert "Temperature (°C)" in text
    assert "Probes (°C)" in text
    assert "<td>76.85</td>" in text  # 350 K


def test_a_chart_keeps_short_peaks_and_the_ends() -> None:
    x = np.linspace(0.0, 1.0, 100_001)
    y = np.zeros_like(x)
    y[54_321], y[-1] = 7.0, 0.5
    text = charts.draw(Chart("peak", "Time (s)", "T (K)", {"a": (x, y)}))
    numbers = json.loads(text.split('<script type="application/json">')[1].split("</script>")[0])
    (curve,) = numbers["curves"]
    assert max(curve["y"]) == 7.0
    assert (curve["x"][0], curve["x"][-1], curve["y"][-1]) == (0.0, 1.0, 0.5)
    assert len(curve["x"]) < 1000


@pytest.mark.parametrize("values", [[1.0], [3.0, 3.0], [np.nan, 2.0], [np.nan], [990.13, 990.13 * (1 + 1e-15)]])
def test_charts_of_few_points(values: list[float]) -> None:
    x = np.arange(len(values), dtype=float)
    text = charts.draw(Chart("few", "Time (s)", "T (K)", {"a": (x, np.array(values))}))
    assert "nan" not in text
    assert bool(text) == bool(np.isfinite(values).any())


@pytest.mark.usefixtures("one_core")
def test_a_run_writes_its_report_unless_figures_are_off(tmp_path: Path) -> None:
    # A plate, whose pictures are drawn fast.
    scenario = runs.write(tmp_path, runs.TEXT.replace("[7, 5, 6]", "[7, 5, 1]"))
    for figures in ("true", "false"):
        out = tmp_path / figures
        assert main(["run", str(scenario), "--output", str(out), "--quiet", "--set", f"output.figures={figures}"]) == 0
        assert (out / "report.html").exists() == (figures == "true")
    report = tmp_path / "true" / "report.html"
    report.unlink()
    assert main(["render", str(tmp_path / "true")]) == 0
    assert "data:image/png;base64," in report.read_text(encoding="utf-8")
    # A finished run is replaced with its report.
    again = ["run", str(scenario), "--output", str(tmp_path / "true"), "--quiet", "--set", "output.figures=false"]
    assert main(again) == 0
    assert not report.exists()


def test_a_browser_shows_numbers_without_errors_or_requests(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path / "run")
    columns = ["time (s)", f"{HOSTILE} (K)", "edge, upper (K)"]
    write_table(folder / "probes.csv", columns, [[float(t), 300.0 + t, 350.0] for t in range(11)])
    seen = look_at(page.build(folder), tmp_path)
    assert seen["errors"] == []
    assert [name for name in seen["requests"] if not name.startswith("data:")] == []
    probes, energy = seen["shown"]
    assert probes.splitlines()[1:] == [f"{HOSTILE}: 305", "edge, upper: 350"]
    assert "stored: " in energy
