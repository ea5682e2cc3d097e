"""The energy balance as pictures and reports show it: all terms, each once, and rounding named as rounding."""

from pathlib import Path

import numpy as np
import pytest
import runs
from run_folders import write_run, write_table

from heatsim import Simulation
from heatsim.grid import FACES, Grid
from heatsim.render.curves import energy_picture
from heatsim.render.curves.curves import line_style
from heatsim.render.curves.energy_balance import SURFACES_TO_VOID, SteadyFlows, read_balance, read_flows
from heatsim.render.curves.flow_curves import flow_curves
from heatsim.report.number_tables import balance_table, flow_table
from heatsim.report.page import build
from heatsim.storage import folder as run_folder
from heatsim.storage.summary_file import read_summary, write_summary

GRID = Grid((4, 3, 2), (1.0, 1.0, 1.0))
PATCHES = {"chip": "z_max", "pipe": "z_max"}


def write_balance(folder: Path, rows: list[dict[str, float]], bound: float | None = 1e-6) -> Path:
    """A run with given heats: every row has the time and the terms that are not zero."""
    write_run(folder, GRID, probes=())
    names = ["stored", "sources", *FACES, "chip", "pipe", "void", "residual"]
    table = [[row["time"], *(row.get(name, 0.0) for name in names)] for row in rows]
    write_table(folder / "energy.csv", ["time (s)", *(f"{name} (J)" for name in names)], table)
    if bound is None:
        (folder / run_folder.SUMMARY).unlink()
    else:
        write_summary(folder, {"energy_bound": bound})
    return folder


def heated(folder: Path) -> Path:
    """120 J from sources; z_max lets 45 J out, 30 J through the chip and 10 J through the pipe; 60 J go to void."""
    end = {"sources": 120.0, "z_max": -45.0, "chip": -30.0, "pipe": -10.0, "void": -60.0, "y_min": 3e-12}
    end |= {"stored": 15.0 + 2e-9, "residual": 2e-9}
    return write_balance(folder, [{"time": 0.0}, {"time": 5.0, **end}])


def test_each_heat_is_in_one_part_and_they_add_up(tmp_path: Path) -> None:
    balance = read_balance(heated(tmp_path / "run"), PATCHES)
    assert balance is not None
    ends = {name: float(heat[-1]) for name, heat in balance.real().items()}
    assert ends == {
        "sources": 120.0,
        "z_max beside patches": -5.0,
        "chip (on z_max)": -30.0,
        "pipe (on z_max)": -10.0,
        SURFACES_TO_VOID: -60.0,
    }
    np.testing.assert_allclose(sum(ends.values()) + balance.residual[-1], balance.stored[-1], rtol=1e-15)
    # A face with 3 pJ of rounding is not a result.
    assert balance.negligible() == ["x_min", "x_max", "y_min", "y_max", "z_min"]
    assert balance.closed
    assert not balance.only_noise


def test_rounding_alone_is_named_as_such(tmp_path: Path) -> None:
    rows = [{"time": t, "stored": 4e-12 * t, "x_min": 1e-12, "residual": 4e-12 * t - 1e-12} for t in (0.0, 1.0, 2.0)]
    balance = read_balance(write_balance(tmp_path / "run", rows, bound=3e-11), {})
    assert balance is not None
    assert balance.only_noise
    assert "no heat flows" in balance_table(balance).remark
    # The same without a summary, and thus without a bound: the residual tells the size of rounding.
    unfinished = read_balance(write_balance(tmp_path / "unfinished", rows, bound=None), {})
    assert unfinished is not None
    assert unfinished.only_noise
    assert unfinished.closed is None


def test_a_small_heat_is_not_taken_for_rounding(tmp_path: Path) -> None:
    """A bound as large as the heats, as in float32 on a hot body, does not hide heats of a part in ten thousand."""
    end = {"sources": 100.0, "x_min": -0.01, "stored": 99.99}
    balance = read_balance(write_balance(tmp_path / "run", [{"time": 0.0}, {"time": 1.0, **end}], bound=50.0), {})
    assert balance is not None
    assert set(balance.real()) == {"sources", "x_min"}


def test_a_bound_that_hides_errors_is_told(tmp_path: Path) -> None:
    """A bound grows with the stages. If it is a third of the heats, or larger than them, a balance proves little.

    The heats stay results: √n roundings of bound/n each are far below them.
    """
    end = {"sources": 100.0, "x_min": -40.0, "stored": 59.8, "residual": -0.2}
    rows = [{"time": 0.0}, {"time": 1.0, **end}]
    for bound, shown in ((33.0, "±33 J"), (5e3, "±5 kJ")):
        folder = write_balance(tmp_path / shown, rows, bound)
        summary = {"energy_bound": bound, "steps": 1_000_000, "stages": None, "precision": "float32"}
        write_summary(folder, summary)
        balance = read_balance(folder, {})
        assert balance is not None
        assert set(balance.real()) == {"sources", "x_min"}
        assert not balance.only_noise
        assert balance.closed
        assert balance.doubtful
        assert balance.verdict == "energy residual 0.2 %"
        assert balance.describe_residual() == (
            f"The residual is −200 mJ of 100 J. It may be rounding, which can reach {shown} "
            'here. To find out, run it again with solver.precision = "float64".'
        )
        assert "no heat flows" not in balance_table(balance).remark


@pytest.mark.parametrize(
    ("residual", "bound", "told"),
    [
        (-0.2, 0.9, "Energy balance closed: residual −200 mJ of 100 J."),
        (-2e-7, 33.0, "Energy balance closed: residual −200 nJ of 100 J."),
    ],
)
def test_a_small_bound_or_a_small_residual_closes_a_balance(
    residual: float, bound: float, told: str, tmp_path: Path
) -> None:
    end = {"sources": 100.0, "x_min": -40.0, "stored": 60.0 + residual, "residual": residual}
    balance = read_balance(write_balance(tmp_path / "run", [{"time": 0.0}, {"time": 1.0, **end}], bound), {})
    assert balance is not None
    assert not balance.doubtful
    assert balance.verdict == "energy balance closed"
    assert balance.describe_residual() == told


def test_an_open_balance_says_so(tmp_path: Path) -> None:
    end = {"sources": 1.0, "stored": 0.9, "residual": -0.1}
    balance = read_balance(write_balance(tmp_path / "run", [{"time": 0.0}, {"time": 1.0, **end}]), {})
    assert balance is not None
    assert balance.closed is False
    assert "NOT CLOSED" in balance.describe_residual()
    assert "NOT CLOSED" in balance_table(balance).remark


def test_the_picture_has_a_row_for_each_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    original = energy_picture.add_text

    def note(figure: object, x: float, y: float, text: str, **options: object) -> object:
        texts.append(text)
        return original(figure, x, y, text, **options)

    monkeypatch.setattr(energy_picture, "add_text", note)
    balance = read_balance(heated(tmp_path / "run"), PATCHES)
    assert balance is not None
    for suffix in ("png", "pdf", "svg"):
        energy_picture.draw_energy(tmp_path / f"energy.{suffix}", "heat", balance)
        assert (tmp_path / f"energy.{suffix}").stat().st_size > 5000
    for row in (
        "sources",
        "120.0",
        "chip (on z_max)",
        "−30.0",
        "surfaces to void",
        "−60.0",
        "stored (the sum)",
        "15.0",
    ):
        assert row in texts


def test_flows_have_the_colours_of_the_balance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(energy_picture, "draw_numbers", lambda *arguments: drawn.append(arguments))
    balance = read_balance(heated(tmp_path / "run"), PATCHES)
    assert balance is not None
    flows = {name: np.ones(2) for name in ("stored", "die", *energy_picture.parts_to_draw(balance))}
    curves = flow_curves(balance.times, flows)
    assert curves is not None
    energy_picture.draw_flow_curves(tmp_path / "flows.png", "flows", curves, balance)
    ((*_, styles, _),) = drawn
    assert styles["stored"] == energy_picture.STORED_STYLE
    for number, name in enumerate(energy_picture.parts_to_draw(balance)):
        assert styles[name] == line_style(number)
    assert len({str(style) for style in styles.values()}) == len(flows)


def test_many_parts_are_drawn_as_the_largest_and_their_rest(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", GRID, probes=())
    patches = {f"p{number}": "x_min" for number in range(40)}
    names = ["stored", "sources", *FACES, *patches, "residual"]
    end = {"stored": 820.0, "x_min": 820.0} | {name: number + 1.0 for number, name in enumerate(patches)}
    rows = [[0.0] * (len(names) + 1), [1.0, *(end.get(name, 0.0) for name in names)]]
    write_table(folder / "energy.csv", ["time (s)", *(f"{name} (J)" for name in names)], rows)
    balance = read_balance(folder, patches)
    assert balance is not None
    shown = energy_picture.parts_to_draw(balance)
    assert len(shown) == 14
    assert sum(float(heat[-1]) for heat in shown.values()) == pytest.approx(820.0)


def test_steady_flows_add_up_to_the_imbalance() -> None:
    table = flow_table(SteadyFlows({"chip": 3.0, "z_max": -1.0, SURFACES_TO_VOID: -1.9}, 0.1, 3.4))
    assert table.rows[-1] == ("imbalance, the sum (3.4 %)", "0.1")
    assert table.remark == ""


@pytest.mark.parametrize("flows", [{"x_min": 2e-6, "x_max": 3e-6}, {"x_min": 0.0}])
def test_steady_flows_within_their_imbalance_are_none(flows: dict[str, float]) -> None:
    table = flow_table(SteadyFlows(flows, sum(flows.values()), 100.0 if sum(flows.values()) else 0.0))
    assert table.rows[-1][0] == "imbalance, the sum"
    assert table.remark == "All flows are within the imbalance: no heat flows."


def test_the_imbalance_is_the_same_number_everywhere(tmp_path: Path) -> None:
    """Heat enters through the void surface of one region and leaves through that of the other: their sum is tiny."""
    text = """
        domain = { size = [0.1, 0.02, 0.02], cells = [20, 4, 4], material = "copper" }
        materials.copper = { conductivity = 400.0, density = 8960.0, specific_heat = 385.0 }
        regions = [
            { name = "hot", material = "copper", box = { min = [0.0, 0.0, 0.0], max = [0.05, 0.01, 0.02] } },
            { name = "cold", material = "copper", box = { min = [0.05, 0.0, 0.0], max = [0.1, 0.01, 0.02] } },
            { name = "air", material = "void", box = { min = [0.0, 0.01, 0.0], max = [0.1, 0.02, 0.02] } },
        ]
        surfaces = [
            { of = "hot", type = "convection", coefficient = 500.0, ambient = 400.0 },
            { of = "cold", type = "convection", coefficient = 500.0, ambient = 300.0 },
        ]
        time = { method = "steady" }
        solver.device = "cpu"
        output.fields = false
    """
    folder = tmp_path / "out"
    Simulation.from_scenario(runs.write(tmp_path, text), output=folder).run()
    flows = read_flows(folder, {})
    assert flows is not None
    row = read_summary(folder)["heat_flows"]
    assert (flows.imbalance, flows.percent) == (row["imbalance (W)"], row["imbalance (%)"])
    assert flows.turnover == pytest.approx(abs(100.0 * flows.imbalance / flows.percent))
    assert flows.turnover == pytest.approx(row["in surface hot (W)"], rel=1e-6)
    assert not flows.none
    table = flow_table(flows)
    assert table.rows[-1][0] == f"imbalance, the sum ({flows.part})"
    assert table.headers == ("into the body", "W", "in (W)", "out (W)")
    assert "Heat flows both ways: surfaces to void" in flows.hidden
    assert f"imbalance of heat flows {flows.part}" in build(folder)
