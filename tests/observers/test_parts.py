"""The heat of regions and the flow through contacts in energy.csv."""

from pathlib import Path

import bodies
import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.render.curves.energy_balance import read_flows
from heatsim.report.number_tables import parts_table
from heatsim.report.page import build
from heatsim.storage import folder, run_tables, tables
from heatsim.storage.summary_file import read_summary

HEATS = "output.region_heat=true"
# 20 W through two layers with a contact between them, along any axis.
LAYERS = """
domain = { size = SIZE, cells = CELLS, material = "copper" }
materials.copper = { conductivity = 400.0, density = 8960.0, specific_heat = 385.0 }
materials.iron = { conductivity = 80.0, density = 7870.0, specific_heat = 447.0 }
regions = [{ name = "outer", material = "iron", box = { min = LOW, max = SIZE } }]
contacts = [{ between = ["iron", "copper"], resistance = 1e-3 }]
boundaries.AXIS_min = { type = "flux", value = 2000.0 }
boundaries.AXIS_max = { type = "temperature", value = 290.0 }
initial.temperature = 290.0
time = { method = "steady" }
solver.device = "cpu"
output.figures = false
"""


def energy(at: Path, text: str, *overrides: str) -> run_tables.RunTable:
    Simulation.from_scenario(runs.write(at, text), (HEATS, *overrides), output=at / "out").run()
    table = run_tables.read_energy(at / "out")
    assert table is not None
    return table


@pytest.mark.parametrize("axis", range(3))
def test_a_steady_contact_passes_the_heat_of_the_layers(axis: int, tmp_path: Path) -> None:
    size, cells, low = [0.1] * 3, [2, 1, 1], [0.0] * 3
    size[axis], cells[axis], low[axis] = 0.8, 16, 0.4
    text = LAYERS.replace("SIZE", str(size)).replace("CELLS", str(cells)).replace("LOW", str(low))
    flows = energy(tmp_path, text.replace("AXIS", "xyz"[axis])).in_unit("W")
    # Named from iron to copper, but heat flows from copper to iron.
    assert flows["contact iron to copper"][0] == pytest.approx(-2000.0 * 0.01, rel=1e-4)
    assert tables.read(tmp_path / "out" / folder.ENERGY)[0][-1] == "imbalance (%)"


def test_regions_that_cover_the_body_store_what_it_stores(tmp_path: Path) -> None:
    copper = '[[regions]]\nname = "rest"\nmaterial = "copper"\nbox = { min = [0, 0, 0], max = [0.4, 1, 1] }\n'
    text = bodies.WALL.replace("[[regions]]", f"{copper}[[regions]]", 1).replace('"600 - 750*x"', "300.0")
    table = energy(tmp_path, text, "time.end=3000", "output.probe_every=300")
    heats, flows = table.in_unit("J"), table.in_unit("W")
    total = heats["region rest"] + heats["region iron"]
    np.testing.assert_allclose(total, heats["stored"], rtol=0.0, atol=1e-12 * np.abs(heats["stored"]).max())
    assert heats["region iron"][-1] < 0.0 < heats["region rest"][-1]
    np.testing.assert_allclose(flows["region iron"][1:] * 300.0, np.diff(heats["region iron"]), rtol=1e-9, atol=1e-6)


def test_a_contact_passes_what_a_region_without_other_exchange_gains(tmp_path: Path) -> None:
    """Euler's steps take the flow at their start, so the trapezoidal rule gives dt/2 · (last − first) more."""
    text = bodies.WALL.replace('"600 - 750*x"', "300.0").replace('"temperature", value = 0.0', '"insulated"')
    text += '[[contacts]]\nbetween = ["copper", "iron"]\nresistance = 1e-3\n'
    table = energy(tmp_path, text, "time.end=4000", "time.method=euler", "output.probe_every=50")
    flow, heat = table.in_unit("W")["contact copper to iron"], table.in_unit("J")["region iron"]
    integral = float(((flow[1:] + flow[:-1]) / 2.0 * np.diff(table.times)).sum())
    (dt,) = map(float, read_summary(tmp_path / "out")["dt"])
    assert integral - heat[-1] == pytest.approx(dt / 2.0 * (flow[-1] - flow[0]), rel=0.1)
    assert integral == pytest.approx(heat[-1], rel=1e-3)


@pytest.mark.parametrize("method", ["euler", "stabilized"])
def test_parts_resume_to_the_same_bits(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = runs.write(tmp_path, bodies.EVERYTHING)
    everything = (HEATS, "output.probe_every=0.01", "time.end=0.05", f"time.method={method}")
    Simulation.from_scenario(scenario, everything, output=tmp_path / "whole").run()
    with monkeypatch.context() as patch:
        (runs.after_step if method == "euler" else runs.after_advance)(patch, 5, runs.interrupt)
        with pytest.raises(BaseException, match="interrupted"):
            Simulation.from_scenario(scenario, everything, output=tmp_path / "half").run()
    Simulation.resume(tmp_path / "half").run()
    assert runs.results(tmp_path / "half") == runs.results(tmp_path / "whole")
    columns, _ = tables.read(tmp_path / "whole" / folder.ENERGY)
    first = columns.index("region die (W)")
    assert columns[first + 1 : first + 3] == ["region lens (W)", "contact copper to silicon (W)"]


def test_the_balance_of_the_body_leaves_its_parts_out(tmp_path: Path) -> None:
    text = LAYERS.replace("SIZE", "[0.8, 0.1, 0.1]").replace("CELLS", "[16, 1, 1]").replace("LOW", "[0.4, 0.0, 0.0]")
    table = energy(tmp_path, text.replace("AXIS", "x"))
    assert list(table.of_parts("W")) == ["contact iron to copper"]
    found = read_flows(tmp_path / "out", {})
    assert found is not None
    assert "contact iron to copper" not in found.flows
    assert sum(found.flows.values()) == pytest.approx(found.imbalance, abs=1e-9)


def test_a_report_has_curves_of_flows_although_the_first_row_has_none(tmp_path: Path) -> None:
    text = bodies.WALL.replace('"600 - 750*x"', "300.0")
    text += '[[contacts]]\nbetween = ["copper", "iron"]\nresistance = 1e-3\n'
    table = parts_table(energy(tmp_path, text, "time.end=300", "output.probe_every=100", "output.fields=false"), False)
    assert table is not None
    # Flows at rows do not add up to a heat.
    assert [row[2] for row in table.rows if row[0].startswith("contact")] == ["–"]
    page = build(tmp_path / "out")
    assert "Heat flows" in page
    assert "Heat flows into regions, and through contacts" in page
    assert "NaN" not in page


def test_a_contact_may_be_between_regions(tmp_path: Path) -> None:
    text = LAYERS.replace("SIZE", "[0.8, 0.1, 0.1]").replace("CELLS", "[16, 1, 1]").replace("LOW", "[0.4, 0.0, 0.0]")
    text = text.replace('["iron", "copper"]', '["copper", "outer"]').replace("AXIS", "x")
    flows = energy(tmp_path, text).in_unit("W")
    assert flows["contact copper to outer"][0] == pytest.approx(2000.0 * 0.01, rel=1e-4)
