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


# A plate between two others, which contacts alone join; a face for each outer one, a hole in the middle one.
STACK = """
domain = { size = [0.06, 0.02, 0.02], cells = [12, 4, 4], material = "a" }
materials.a = { conductivity = 20.0, density = 2700.0, specific_heat = 900.0 }
materials.b = { conductivity = 2.0, density = 2700.0, specific_heat = 900.0 }
materials.c = { conductivity = 200.0, density = 8000.0, specific_heat = 400.0 }
initial.temperature = "300 + 1000*x"
boundaries.x_min = { type = "convection", coefficient = 500.0, ambient = 290.0 }
boundaries.x_max = { type = "flux", value = "2e3*sin(t)" }
boundaries.void = { type = "radiation", emissivity = 0.9, ambient = 500.0 }
regions = [
  { name = "mid", material = "b", box = { min = [0.02, 0, 0], max = [0.04, 0.02, 0.02] } },
  { name = "end", material = "c", box = { min = [0.04, 0, 0], max = [0.06, 0.02, 0.02] } },
  { name = "hole", material = "void", box = { min = [0.025, 0.005, 0.005], max = [0.035, 0.015, 0.015] } },
]
contacts = [{ between = ["a", "b"], resistance = 1e-3 }, { between = ["c", "b"], resistance = 1e-4 }]
sources = [
  { region = "mid", power = 0.8, scale = "sin(t)^2" },
  { power = -0.5 },
  { region = "end", power_density = "1e6*x" },
]
time = { end = 20.0, method = "euler", dt = 0.05 }
solver = { device = "cpu", precision = "float64" }
output = { figures = false }
probes = [{ name = "middle", point = [0.03, 0.01, 0.002] }]
"""


@pytest.mark.quick("stabilized", "euler")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_the_heat_through_a_contact_is_exact_and_does_not_depend_on_rows(method: str, tmp_path: Path) -> None:
    """Each plate stores what its sources, its boundary faces and its contacts bring."""
    text = STACK if method == "euler" else STACK.replace('"euler", dt = 0.05', f'"{method}"')
    found = [energy(tmp_path, text, f"output.probe_every={every}").in_unit("J") for every in (0.5, 10)]
    for heats in found:
        last = {name: values[-1] for name, values in heats.items()}
        a = last["stored"] - last["region mid"] - last["region end"]
        cells, even = {"a": 64, "mid": 56, "end": 64}, -0.5 * 20.0 / 184
        mid = last["sources"] - 8.0 - even * (64 + 64)
        near = {"rel": 0.0, "abs": 1e-8}  # means over time are right to 1e-9
        assert last["contact a to b"] == pytest.approx(last["x_min"] + even * cells["a"] - a, **near)
        assert last["contact c to b"] == pytest.approx(
            last["x_max"] + 8.0 + even * cells["end"] - last["region end"], **near
        )
        into = last["contact a to b"] + last["contact c to b"]
        assert into == pytest.approx(last["region mid"] - mid - last["void"], **near)
    for name in ("contact a to b", "contact c to b"):
        assert found[0][name][-1] == pytest.approx(found[1][name][-1], rel=1e-9)


def test_contacts_in_a_ring_have_no_heat(tmp_path: Path) -> None:
    """Only sums of their heats follow from balances; two pieces of a material behind one contact count together."""
    third = '{ name = "third", material = "c", box = { min = [0.0, 0.01, 0], max = [0.06, 0.02, 0.02] } },'
    ring = STACK.replace('{ name = "end",', third + '{ name = "end",')
    ring = ring.replace("contacts = [", 'contacts = [{ between = ["a", "c"], resistance = 1e-3 }, ')
    table = energy(tmp_path, ring, "time.end=1")
    assert not [name for name in table.in_unit("J") if name.startswith("contact")]
    assert len([name for name in table.in_unit("W") if name.startswith("contact")]) == 3
    pieces = STACK.replace('material = "c"', 'material = "a"').replace(
        ', { between = ["c", "b"], resistance = 1e-4 }', ""
    )
    heats = energy(tmp_path, pieces, "time.end=1").in_unit("J")
    assert heats["contact a to b"][-1] != 0.0


@pytest.mark.quick("stabilized-everything", "euler-stack")
@pytest.mark.parametrize("text", [bodies.EVERYTHING, STACK.replace(", dt = 0.05", "")], ids=["everything", "stack"])
@pytest.mark.parametrize("method", ["euler", "stabilized"])
def test_parts_resume_to_the_same_bits(method: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, end = runs.write(tmp_path, text), 0.05 if text is bodies.EVERYTHING else 5.0
    everything = (HEATS, f"output.probe_every={end / 5}", f"time.end={end}", f"time.method={method}")
    Simulation.from_scenario(scenario, everything, output=tmp_path / "whole").run()
    with monkeypatch.context() as patch:
        (runs.after_step if method == "euler" else runs.after_advance)(patch, 5, runs.interrupt)
        with pytest.raises(BaseException, match="interrupted"):
            Simulation.from_scenario(scenario, everything, output=tmp_path / "half").run()
    Simulation.resume(tmp_path / "half").run()
    assert runs.results(tmp_path / "half") == runs.results(tmp_path / "whole")
    columns, _ = tables.read(tmp_path / "whole" / folder.ENERGY)
    assert ("contact c to b (J)" if text is not bodies.EVERYTHING else "contact copper to silicon (W)") in columns


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
    heats = energy(tmp_path, text, "time.end=300", "output.probe_every=300", "output.fields=false").in_unit("J")
    (shown,) = (row[2] for row in table.rows if row[0].startswith("contact"))
    assert float(shown) == pytest.approx(heats["contact copper to iron"][-1] / 1e6, abs=0.005)
    page = build(tmp_path / "out")
    assert "Heat flows" in page
    assert "Heat flows into regions, and through contacts" in page
    assert "NaN" not in page


def test_a_contact_may_be_between_regions(tmp_path: Path) -> None:
    text = LAYERS.replace("SIZE", "[0.8, 0.1, 0.1]").replace("CELLS", "[16, 1, 1]").replace("LOW", "[0.4, 0.0, 0.0]")
    text = text.replace('["iron", "copper"]', '["copper", "outer"]').replace("AXIS", "x")
    flows = energy(tmp_path, text).in_unit("W")
    assert flows["contact copper to outer"][0] == pytest.approx(2000.0 * 0.01, rel=1e-4)
