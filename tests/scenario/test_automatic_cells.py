"""`domain.cells = "auto"`: cells follow parts, gaps, layers, beams and formulas; what is refused; the round trip."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import mistakes_of

from heatsim import Simulation
from heatsim.grid import AXES
from heatsim.physics.estimates.other_grids import GridChoice
from heatsim.scenario import Scenario, load, parse
from heatsim.scenario.documents.resolved import write_resolved
from heatsim.scenario.tables.marks import Widths
from heatsim.study.definition import read

BASE = """
time.end = 10.0
initial.temperature = {initial}
materials.a = {{ conductivity = 1.0, density = 1000.0, specific_heat = 1000.0 }}
materials.b = {{ conductivity = 100.0, density = 1000.0, specific_heat = 1000.0 }}

[domain]
size = [0.1, 0.08, 0.02]
cells = "auto"
material = "a"
{domain}
{more}
"""
WARM = 'boundaries.z_max = { type = "convection", coefficient = 10.0, ambient = 300.0 }'
SLAB = '[[regions]]\nname = "slab"\nmaterial = "b"\nbox = { min = [0.0, 0.0, 0.002], max = [0.1, 0.08, 0.0022] }'
SPOT = '[[sources]]\nbeam = { face = "z_max", power = 5.0, radius = "2 mm", path = [[0.02, 0.02]]'
SCENARIOS = Path(__file__).parents[2] / "scenarios"


def text(more: str = "", domain: str = "", initial: str = "300.0") -> str:
    tables = [line for line in more.split("\n") if line.startswith("boundaries")]
    rest = "\n".join(line for line in more.split("\n") if line not in tables)
    return "\n".join(tables) + BASE.format(more=rest, domain=domain, initial=initial)


def found(more: str = "", domain: str = "", initial: str = "300.0") -> Scenario:
    return parse(tomllib.loads(text(more, domain, initial)), "auto.toml")


def widths(scenario: Scenario, axis: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return scenario.grid.axes[axis].widths


def neighbours(scenario: Scenario) -> float:
    """The largest ratio of the widths of neighbours."""
    ratios = [np.exp(np.abs(np.diff(np.log(axis.widths)))).max(initial=1.0) for axis in scenario.grid.axes]
    return float(max(ratios))


def test_axes_along_which_nothing_changes_have_one_cell() -> None:
    assert found().domain.cells == (1, 1, 1)
    assert found(WARM).domain.cells[:2] == (1, 1)
    region = '[[regions]]\nname = "all"\nmaterial = "b"\neverywhere = true'
    assert found(region).domain.cells == (1, 1, 1)
    assert found("boundaries.x_min.type = 'periodic'\nboundaries.x_max.type = 'periodic'").domain.cells == (1, 1, 1)


@pytest.mark.parametrize(
    ("more", "initial"),
    [
        ("", '"300 + 10*y"'),
        ('[[sources]]\npower = 1.0\ndistribution = "exp(-y/0.01)"', "300.0"),
        ('boundaries.z_max = { type = "flux", value = "1000*y" }', "300.0"),
        ('[[layers]]\nname = "foil"\nmaterial = "b"\nthickness = "1 um"\nplane = { axis = "y", at = 0.0 }', "300.0"),
        (f"{SPOT} }}", "300.0"),
    ],
)
def test_axes_along_which_something_changes_have_several(more: str, initial: str) -> None:
    assert found(more, initial=initial).domain.cells[1] >= 8


def test_parts_end_between_cells_and_have_enough_of_them() -> None:
    gap = SLAB.replace("slab", "lid").replace("0.0022]", "0.0055]").replace("0.002]", "0.0023]")
    scenario = found(f"{WARM}\n{SLAB}\n{gap}")
    borders = np.array(scenario.grid.borders[2])
    for low, high in ((0.0, 0.002), (0.002, 0.0022), (0.0022, 0.0023), (0.0023, 0.0055), (0.0055, 0.02)):
        at = [int(np.argmin(np.abs(borders - place))) for place in (low, high)]
        np.testing.assert_allclose(borders[at], [low, high], atol=1e-15)
        assert at[1] - at[0] >= 4
        assert (at[1] - at[0]) % 2 == 0
    assert scenario.automatic is not None
    assert scenario.automatic.finest[2] == 'the gap between region "slab" and region "lid"'
    assert neighbours(scenario) <= 1.5
    assert len(widths(found(f"{WARM}\n{SLAB}\n{gap}", "across = 8"), 2)) > len(borders)


def test_cells_beside_layers_are_at_least_as_wide() -> None:
    foil = '[[layers]]\nname = "foil"\nmaterial = "b"\nthickness = "0.1 mm"\nplane = { axis = "z", at = 0.0022 }'
    axis = found(f"{WARM}\n{SLAB}\n{foil}").grid.axes[2]
    at = int(np.argmin(np.abs(axis.borders - 0.0022)))
    # The slab alone has cells of 0.05 mm.
    assert axis.borders[at] == pytest.approx(0.0022)
    assert axis.widths[at - 1 : at + 1].min() >= 0.0001 * (1.0 - 1e-12)
    board_document = tomllib.loads((SCENARIOS / "circuit_board.toml").read_text(encoding="utf-8"))
    board_document["domain"]["cells"] = "auto"
    board = parse(board_document, SCENARIOS / "circuit_board.toml")
    assert board.grid.cell_count < 480_000 / 3


def test_layers_thicker_than_their_cells_can_be_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        text(
            f'{SLAB}\n[[layers]]\nname = "f"\nmaterial = "b"\nthickness = "3 mm"\nplane = {{ axis = "z", at = 0.0022 }}'
        )
    )
    ((key, message),) = mistakes_of(tmp_path / "a.toml")
    assert (key, "make it a region with cells" in message) == ("layers.0.thickness", True)


def test_beams_and_formulas_have_fine_cells_where_they_vary() -> None:
    x, y, z = (widths(found(f"{SPOT} }}"), axis) for axis in range(3))
    assert x.max() > 2.0 * x.min()
    assert max(x.min(), y.min()) <= 1.1 * 0.002 / 16.0
    assert z[-1] <= 0.002 / 6.0 * 1.2
    bump = found(initial='"300 + 50*exp(-(x - 0.03)^2/(2*0.002^2))"')
    axis = bump.grid.axes[0]
    assert abs(axis.centres[np.argmin(axis.widths)] - 0.03) < 0.006
    assert axis.widths.min() < 0.001
    assert bump.domain.cells[1:] == (1, 1)


@pytest.mark.parametrize("formula", ["tanh((x - 0.03)/1e-4)", "exp(-((x - 0.0317)/3e-4)^2)", "where(x < 0.0333, 1, 0)"])
@pytest.mark.parametrize("more", ["", WARM, SLAB])
def test_widths_grow_evenly_beside_sharp_formulas(formula: str, more: str) -> None:
    assert 1.2 < neighbours(found(more, initial=f'"300 + 10*{formula}"')) < 1.26


@pytest.mark.parametrize("formula", ["sin(2000000*x)", "sin(5000*x)", "sin(2*pi*1280*x/0.1)"])
def test_a_formula_too_fast_for_cells_is_refused(tmp_path: Path, formula: str) -> None:
    (tmp_path / "a.toml").write_text(text(initial=f'"300 + {formula}"'))
    ((key, message),) = mistakes_of(tmp_path / "a.toml")
    assert (key, formula in message, "write the numbers of cells" in message) == ("domain.cells", True, True)


@pytest.mark.parametrize(
    "formula", ["sin(2000*x)", "where(sin(300*x) > 0, 1, 0)", "x*sin(5000*z)", "where(y < x, 1, 0)"]
)
def test_jumps_and_waves_wider_than_cells_get_cells(formula: str) -> None:
    assert found(initial=f'"300 + {formula}"').grid.cells[0] >= 64


def test_a_picture_has_a_cell_for_each_pixel() -> None:
    document = tomllib.loads((SCENARIOS / "photograph.toml").read_text(encoding="utf-8"))
    given = parse(document, SCENARIOS / "photograph.toml").domain.cells
    document["domain"]["cells"] = "auto"
    assert parse(document, SCENARIOS / "photograph.toml").domain.cells == given


def test_cells_far_from_parts_are_wider_than_those_of_a_body_without_any() -> None:
    warm = WARM.replace("z_max", "default")
    corner = '[[regions]]\nname = "chip"\nmaterial = "b"\nbox = { min = [0, 0, 0.018], max = [0.002, 0.002, 0.02] }'
    plain, parted = found(warm), found(f"{warm}\n{corner}")
    assert widths(parted, 0)[-4] > 1.5 * widths(plain, 0).max()
    assert widths(parted, 0).min() < 0.3 * widths(plain, 0).min()
    assert neighbours(parted) <= 1.5


def test_a_wide_part_beside_a_thin_one_has_the_cells_that_its_own_edges_need() -> None:
    # The plane where the column begins is no edge of the thin lid that it stands on.
    column = SLAB.replace("slab", "column").replace("[0.0, 0.0, 0.002]", "[0.04, 0.03, 0.0022]")
    column = column.replace("[0.1, 0.08, 0.0022]", "[0.06, 0.05, 0.02]")
    axis = found(f"{WARM}\n{SLAB}\n{column}").grid.axes[2]
    inside = axis.widths[(axis.centres > 0.002) & (axis.centres < 0.0022)]
    assert len(inside) == 4
    assert inside.min() > 0.04e-3


@pytest.mark.parametrize("end", [0.03, np.nextafter(0.03, 1.0), np.nextafter(0.03, 0.0), 0.03 + 1e-12])
def test_parts_that_touch_but_for_rounding_have_the_cells_of_parts_that_touch(end: float) -> None:
    of_b = '[[regions]]\nname = "{0}"\nmaterial = "b"\nbox = {{ min = [{1!r}, 0.0, 0.0], max = [{2!r}, 0.08, 0.02] }}\n'
    touching, nearly = (
        found(of_b.format("one", 0.02, 0.03) + of_b.format("other", float(start), 0.06)) for start in (0.03, end)
    )
    np.testing.assert_allclose(widths(nearly, 0), widths(touching, 0), rtol=1e-9)


def test_the_ends_of_periodic_axes_are_neighbours() -> None:
    faces = "boundaries.x_min.type = 'periodic'\nboundaries.x_max.type = 'periodic'"
    beside = widths(found(f"{faces}\n{SLAB.replace('max = [0.1', 'max = [0.002')}"), 0)
    assert 1 / 1.4 < beside[0] / beside[-1] < 1.4


def test_stl_parts_have_cells_across_their_extent() -> None:
    document = tomllib.loads((SCENARIOS / "cooling_gear.toml").read_text(encoding="utf-8"))
    document["domain"]["cells"] = "auto"
    gear = parse(document, SCENARIOS / "cooling_gear.toml")
    assert 8 <= gear.domain.cells[2] <= 20  # the height of the part is 50 of the 60 mm
    borders = np.array(gear.grid.borders[2])
    assert [float(np.abs(borders - end).min()) < 1e-9 for end in (0.0, 0.05)] == [True, True]


def test_axial_domains_have_rings() -> None:
    axial = 'symmetry = "axial"'
    ball = '[[regions]]\nname = "ball"\nmaterial = "b"\nsphere = { centre = [0, 0, 0.01], radius = 0.004 }'
    document = tomllib.loads(text(ball, axial))
    document["domain"]["size"] = [0.1, 0.02]
    scenario = parse(document, "auto.toml")
    assert scenario.grid.radial
    assert scenario.domain.cells[1] == 1
    np.testing.assert_allclose(np.abs(np.array(scenario.grid.borders[0]) - 0.004).min(), 0.0, atol=1e-12)


REFUSED = {
    "most": (SLAB, "most = 3", "which needs ", 'region "slab" along z', "allow more"),
    "cells": (SLAB, "across = 1000\nmost = 1000", "which needs ", "make domain.across smaller"),
    "beam": (f"{SPOT} }}".replace("2 mm", "0.1 nm"), "", "the cells for source 1 are narrower than a billionth"),
    "array": ("", "", "the field in initial.temperature has one value for each cell", "write the numbers of cells"),
    "labels": (
        '[[regions]]\nname = "ct"\nlabels = { file = "ct.npy", materials = { "1" = "b" } }',
        "",
        'the label image of region "ct" has one label for each cell',
    ),
    "table": ("[domain.x]\nwidths = [0.05, 0.05]", "", '"auto" has no meaning'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_found_is_refused(tmp_path: Path, case: str) -> None:
    more, domain, *parts = REFUSED[case]
    np.save(tmp_path / "ct.npy", np.ones((2, 2, 2), dtype=np.uint8))
    np.save(tmp_path / "start.npy", np.full((2, 2, 2), 300.0))
    (tmp_path / "a.toml").write_text(text(more, domain, '{ file = "start.npy" }' if case == "array" else "300.0"))
    ((key, message),) = mistakes_of(tmp_path / "a.toml")
    assert key == "domain.cells"
    assert [part for part in parts if part not in message] == []


def test_a_word_that_is_not_auto_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text().replace('"auto"', '"atuo"'))
    ((key, message),) = mistakes_of(tmp_path / "a.toml")
    assert (key, '"auto"' in message) == ("domain.cells", True)


def test_an_accuracy_beside_given_cells_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text(WARM, 'accuracy = "0.5 K"').replace('"auto"', "[8, 8, 8]"))
    ((key, message),) = mistakes_of(tmp_path / "a.toml")
    assert (key, 'write cells = "auto"' in message) == ("domain.accuracy", True)


def test_cells_can_be_asked_to_be_smaller() -> None:
    first = found(f"{WARM}\n{SLAB}", 'accuracy = "0.5 K"')
    assert first.grid.cells[2] < found(f"{WARM}\n{SLAB}").grid.cells[2]
    axis = first.grid.axes[2]
    none = Widths(*(np.zeros(0),) * 3)
    finer = first.with_cells([none, none, Widths(axis.borders[:-1], axis.borders[1:], axis.widths / 3.0)])
    assert finer.grid.cells[2] >= 3 * first.grid.cells[2]
    assert set(np.round(first.automatic.borders[2][[0, -1]], 12)) <= set(np.round(finer.grid.axes[2].borders, 12))
    assert (finer.domain.accuracy, finer.settled.domain.accuracy) == (0.5, None)
    assert neighbours(finer) <= 1.5


def test_the_number_of_cells_is_kept_below_most() -> None:
    warm = WARM.replace("z_max", "default")
    assert found(warm, "most = 5000").grid.cell_count <= 5000 < found(warm).grid.cell_count


def test_the_resolved_scenario_has_the_widths(tmp_path: Path) -> None:
    scenario = found(f"{WARM}\n{SLAB}\n{SPOT} }}", "across = 5")
    write_resolved(scenario, tmp_path)
    again = load(tmp_path / "scenario.toml")
    assert again.domain == scenario.domain
    assert again.grid == scenario.grid
    assert again.automatic is None


def test_overrides_and_studies_find_cells_for_each_run(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text(f"{WARM}\n{SLAB}"))
    few, many = load(path), load(path, ["domain.across=8"])
    assert many.domain.cells[2] > few.domain.cells[2]
    path.write_text(
        path.read_text() + '\n[study]\nmethod = "grid"\nparameters."regions.0.box.max.2" = [0.0025, 0.004]\n'
    )
    definition, _ = read(path)
    runs = [definition.scenario(number) for number in definition.numbers]
    assert [any(np.isclose(run.grid.borders[2], end).any() for end in (0.0025, 0.004)) for run in runs] == [True, True]
    assert runs[0].grid != runs[1].grid


def test_other_grids_keep_the_planes_of_parts() -> None:
    scenario = found(f"{WARM}\n{SLAB}\n{SPOT} }}")
    choice = GridChoice.of(scenario)
    assert len(choice.usual("cpu", False)) == 3
    coarser = choice.coarser()[0]
    borders = np.append(0.0, np.cumsum(choice.widths(coarser)["z"]))
    assert [float(np.abs(borders - place).min()) < 1e-12 for place in (0.002, 0.0022)] == [True, True]
    assert AXES[2] in dict(choice.graded)


def test_plan_names_the_parts_of_the_finest_cells() -> None:
    document = tomllib.loads(text(f"{WARM}\n{SLAB}"))
    line = next(
        line for line in str(Simulation.from_dict(document, in_memory=True).plan).splitlines() if "cells  " in line
    )
    assert line.startswith("cells        found by heatsim: along z ")
    assert 'for region "slab"' in line
