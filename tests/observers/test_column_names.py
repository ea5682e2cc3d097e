"""Names that a user may choose: each number has a column that no other number has, or the scenario is refused."""

from pathlib import Path

import pytest
import runs

from heatsim import Simulation
from heatsim.errors import ScenarioError
from heatsim.render.curves.energy_balance import read_flows
from heatsim.report import number_tables
from heatsim.storage import folder, run_tables, tables
from heatsim.storage.run_settings import read_settings

BODY = """
domain = { size = [0.04, 0.04, 0.02], cells = [4, 4, 2], material = "a" }
materials.a = { conductivity = 20.0, density = 2700.0, specific_heat = 900.0 }
materials.b = { conductivity = 2.0, density = 2700.0, specific_heat = 900.0 }
materials."b to b" = { conductivity = 2.0, density = 2700.0, specific_heat = 900.0 }
materials."a to b" = { conductivity = 2.0, density = 2700.0, specific_heat = 900.0 }
initial.temperature = 290.0
boundaries.default = { type = "convection", coefficient = 50.0, ambient = 290.0 }
output = { region_heat = true, figures = false, fields = false }
solver.device = "cpu"
regions = [
    { name = "all other cells", material = "b", box = { min = [0.0, 0.0, 0.0], max = [0.02, 0.02, 0.02] } },
    { name = "stored", material = "b", box = { min = [0.02, 0.0, 0.0], max = [0.04, 0.02, 0.02] } },
]
sources = [{ name = "SOURCE", power = 1.0 }, { name = "source SOURCE", power = 2.0 }]
patches = [
    { name = "PATCH", face = "z_max", rectangle = { min = [0, 0], max = [0.01, 0.01] }, type = "flux", value = 1e4 },
]
CONTACTS
"""
ANY = ("hot", "surfaces to void", "hot (on z_max)", "z_max beside patches", "imbalance, the sum")
OF_COLUMNS = ("x_min", "void", "imbalance", "stored", "residual", "region stored", "contact a to b", "in x_min")


def write(at: Path, method: str, source: str = "die", patch: str = "hot", contacts: str = "") -> Path:
    time = 'time.method = "steady"' if method == "steady" else f'time = {{ method = "{method}", end = 20.0 }}'
    text = BODY.replace("SOURCE", source).replace("PATCH", patch).replace("CONTACTS", contacts)
    return runs.write(at, text.replace("solver.device", f"{time}\nsolver.device"))


def names_in_tables(run: Path) -> list[list[str]]:
    """The headers of energy.csv, and the names of rows in each table of a report."""
    energy, settings = run_tables.read_energy(run), read_settings(run)
    assert energy is not None
    parts = number_tables.parts_table(energy, settings.steady)
    shown = [] if parts is None else [[row[0] for row in parts.rows]]
    if settings.steady and (flows := read_flows(run, settings.patches)) is not None:
        shown.append([row[0] for row in number_tables.flow_table(flows).rows])
    return [tables.read(run / folder.ENERGY)[0], *shown]


def assert_names_differ(run: Path) -> None:
    for names in names_in_tables(run):
        assert len(set(names)) == len(names)


@pytest.mark.each_value
@pytest.mark.parametrize("method", ["steady", "euler"])
@pytest.mark.parametrize("name", ANY + OF_COLUMNS)
def test_a_source_may_have_any_name(name: str, method: str, tmp_path: Path) -> None:
    Simulation.from_scenario(write(tmp_path, method, source=name), output=tmp_path / "out").run()
    assert_names_differ(tmp_path / "out")
    headers = tables.read(tmp_path / "out" / folder.ENERGY)[0]
    assert method == "euler" or {f"source {name} (W)", f"source source {name} (W)"} <= {*headers}


def test_a_source_without_a_name_is_called_source_once(tmp_path: Path) -> None:
    text = write(tmp_path, "steady").read_text().replace('name = "die", ', "").replace("source die", "1")
    (tmp_path / "two.toml").write_text(text)
    with pytest.raises(ScenarioError, match=r'sources\.1\.name: got "1" beside "source 1".* both "source 1": rename'):
        Simulation.from_scenario(tmp_path / "two.toml")
    (tmp_path / "two.toml").write_text(text.replace('name = "1", ', ""))
    Simulation.from_scenario(tmp_path / "two.toml", output=tmp_path / "out").run()
    assert {"source 1 (W)", "source 2 (W)"} <= {*tables.read(tmp_path / "out" / folder.ENERGY)[0]}


@pytest.mark.parametrize("method", ["steady", "euler"])
@pytest.mark.parametrize("name", ANY)
def test_a_patch_may_have_names_that_no_column_has(name: str, method: str, tmp_path: Path) -> None:
    Simulation.from_scenario(write(tmp_path, method, source=name, patch=name), output=tmp_path / "out").run()
    assert_names_differ(tmp_path / "out")


@pytest.mark.parametrize("name", [*OF_COLUMNS, "source die"])
def test_a_patch_with_the_name_of_another_column_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"patches\.0\.name: .* choose another name"):
        Simulation.from_scenario(write(tmp_path, "euler", patch=name))


@pytest.mark.parametrize("other", ['["b", "b to b"]', '["b to b", "b"]'])
def test_two_contacts_of_one_name_are_refused(other: str, tmp_path: Path) -> None:
    """ "a to b" with "b" and "a" with "b to b" would both be "contact a to b to b"."""
    pair = 'contacts = [{{ between = ["a to b", "b"], resistance = 1e-3 }}, {{ between = {}, resistance = 1e-3 }}]'
    path = write(tmp_path, "euler", contacts=pair.format('["a", "b to b"]'))
    with pytest.raises(ScenarioError, match=r'contacts\.1\.between: .*"a to b to b".* rename'):
        Simulation.from_scenario(path)
    Simulation.from_scenario(path, ["output.region_heat=false"])  # then they have no columns
    Simulation.from_scenario(write(tmp_path, "euler", contacts=pair.format(other)))
