"""What cannot run is refused before work is done on it, by one message."""

import os
from pathlib import Path

import numpy as np
import pytest
import runs

from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import ScenarioError
from heatsim.grid import Grid
from heatsim.physics import body as materials
from heatsim.physics.cells import cell_type_map, cell_types
from heatsim.physics.cells.cell_types import INTERIOR
from heatsim.physics.matter.material_numbers import MaterialNumbers
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import load

PARTS = """
[domain]
size = [0.006, 0.004, 0.05]
cells = [6, 1, 50]
material = "copper"

[materials.copper]
conductivity = 400.0
density = 9000.0
specific_heat = 400.0

[materials.glass]
conductivity = 1.0
density = 2500.0
specific_heat = 800.0

[[regions]]
name = "rod"
material = "glass"
box = { min = [0.0, 0.0, 0.01], max = [0.003, 0.004, 0.04] }

[[regions]]
name = "hole"
material = "void"
box = { min = [0.004, 0.0, 0.02], max = [0.006, 0.004, 0.03] }

[boundaries]
void = { type = "convection", coefficient = 50.0, ambient = 300.0 }
z_min = { type = "convection", coefficient = 1e9, ambient = 300.0 }

[initial]
temperature = 400.0

[time]
end = 1.0
"""


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """The one line that a command says and ends with exit code 2."""
    assert main([str(word) for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("heatsim: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_body_of_void_alone_is_refused(tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    everything = "box = { min = [-1.0, -1.0, -1.0], max = [1.0, 1.0, 1.0] }"
    text = PARTS.replace("box = { min = [0.004, 0.0, 0.02], max = [0.006, 0.004, 0.03] }", everything)
    err = refused(capsys, command, runs.write(tmp_path, text), "--output", tmp_path / "run")
    assert 'regions: all 300 cells are void, by "hole": nothing conducts; make the void smaller' in err
    text = PARTS[: PARTS.index("[[regions]]")] + PARTS[PARTS.index("[boundaries]") :]
    path = runs.write(tmp_path, text.replace('material = "copper"', 'material = "void"'))
    err = refused(capsys, command, path, "--output", tmp_path / "run")
    assert 'domain.material: all 300 cells are void, because the domain is "void" and no region is painted' in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["plan", "run", "study"])
def test_a_scenario_that_is_no_file_is_refused(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path / "pipe.toml", Path("/dev/zero")):
        assert f"{path}: is a pipe or a device" in refused(capsys, command, path)


def test_a_file_longer_than_any_scenario_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "long.toml"
    with open(path, "wb") as file:
        file.truncate(2**40)
    assert "has 1,099,511,627,776 bytes; a scenario has at most 67,108,864" in refused(capsys, "plan", path)


@pytest.mark.parametrize("command", ["plan", "run", "study"])
def test_too_many_cells_are_refused_before_regions_are_painted(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(materials, "paint", None)
    study = '\n[study]\nmethod = "grid"\n[study.parameters]\n"time.end" = [1.0, 2.0]\n' * (command == "study")
    path = runs.write(tmp_path, PARTS.replace("[6, 1, 50]", "[8192, 8192, 8192]") + study)
    err = refused(capsys, command, path, "--output", tmp_path / "run", "--device", "cpu")
    assert f"{path}: needs at least " in err
    assert "TiB of memory on " in err
    assert "use fewer cells" in err


def test_the_limit_is_that_of_every_plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many planes are looked at together."""
    scenario = load(runs.write(tmp_path, PARTS))
    whole = HeatProblem.from_scenario(scenario)
    monkeypatch.setattr(cell_types, "_CELLS_AT_ONCE", 1)
    by_plane = HeatProblem.from_scenario(scenario)
    assert whole.limit == by_plane.limit
    # Copper at the cooled end: 2·k/d² along x, k/d² and 1/(d/2k + 1/h)/d along z, over ρ·cp.
    k, c, d, h = 400.0, 9000.0 * 400.0, 1e-3, 1e9
    assert whole.limit.cell == (1, 0, 0)
    assert whole.limit.dt == pytest.approx(1.0 / (3.0 * k / c / d**2 + 1.0 / (d / (2.0 * k) + 1.0 / h) / (c * d)))


@pytest.mark.parametrize("cells", ["[5, 4, 3]", "[1, 4, 3]", "[2, 2, 2]", "[5, 1, 1]"])
@pytest.mark.parametrize("faces", ["", 'z_min = { type = "periodic" }\nz_max = { type = "periodic" }\n'])
def test_the_limit_of_one_material_is_that_of_all_of_its_cells(
    tmp_path: Path, cells: str, faces: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A patch with the condition of its face has every cell of the face looked at."""
    text = runs.TEXT.replace("[7, 5, 6]", cells)
    start, end = text.index("[boundaries]"), text.index("[time]")
    convection = 'type = "convection", coefficient = 1e9, ambient = 300.0'
    source = "\n[[sources]]\npower = 1.0\n"
    text = f"{text[:start]}[boundaries]\nx_max = {{ {convection} }}\n{faces}\n{text[end:]}{source}"
    few = HeatProblem.from_scenario(load(runs.write(tmp_path, text)))
    patch = "rectangle = { min = [0.0, 0.0], max = [0.05, 0.06] }\n"
    condition = convection.replace(", ", "\n")
    text += f'[[patches]]\nface = "x_max"\n{patch}{condition}\n'
    assert few.limit == HeatProblem.from_scenario(load(runs.write(tmp_path, text))).limit


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 1, 4), (5, 6, 1), (4, 5, 6)])
@pytest.mark.parametrize("periodic", [(False, False, False), (True, False, True), (False, True, False)])
def test_interior_cells_have_neighbours_of_their_own_type(
    shape: tuple[int, int, int], periodic: tuple[bool, bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    material = (np.random.default_rng(7).random(shape) < 0.1).astype(np.uint8)
    material[0, 0, 0] = 1
    palette = (MaterialNumbers("a", (1.0, 1.0, 1.0), 1.0), MaterialNumbers("b", (2.0, 2.0, 2.0), 1.0))
    grid = Grid(shape[::-1], (1.0, 1.0, 1.0), (0.0, 0.0, 0.0))
    same = np.ones(shape, dtype=bool)
    for axis in range(3):
        for shift in (-1, 1):
            beside = np.roll(material, shift, axis)
            if not periodic[2 - axis]:
                end = [slice(None)] * 3
                end[axis] = slice(0, 1) if shift == 1 else slice(-1, None)
                beside[tuple(end)] = material[tuple(end)]
            same &= material == beside
    for at_once in (1, 25, 2**18):
        monkeypatch.setattr(cell_types, "_CELLS_AT_ONCE", at_once)
        found = cell_type_map.build(grid, palette, material, periodic=periodic)
        if not found.uniform:
            np.testing.assert_array_equal((found.cells & INTERIOR) > 0, same)


def test_a_plan_without_a_limit_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = runs.TEXT.replace("[7, 5, 6]", "[1, 1, 1]").replace("x_min", "z_min", 0)
    text = text[: text.index("[boundaries]")] + text[text.index("[time]") : text.index("[[probes]]")]
    text = text.replace('"320 + 30*sin(60*x)*cos(40*y)"', "300.0")
    assert main(["plan", str(runs.write(tmp_path, text))]) == 0
    out = capsys.readouterr().out
    assert "limit        any dt is stable: no heat is conducted" in out
    assert "inf" not in out
    with pytest.raises(ScenarioError, match="does not divide"):
        Simulation.from_scenario(runs.write(tmp_path, text), ["time.dt=3"], output=tmp_path / "run")
