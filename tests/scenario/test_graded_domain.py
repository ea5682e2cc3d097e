"""Tables [domain.x], [domain.y] and [domain.z]: what they mean, which mistakes they may have, and their round trip."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from refusals import mistakes_of

from heatsim.scenario import Scenario, load, parse
from heatsim.scenario.documents.resolved import write_resolved
from heatsim.storage.field_writer import FieldWriter
from heatsim.study.definition import read

MATERIAL = """
material = { conductivity = 40.0, density = 2000.0, specific_heat = 500.0 }
initial.temperature = 300.0
time.end = 60.0
"""
X = 'intervals = [{ to = "20 mm", cells = 4 }, { to = 0.1, cells = 6, growth = 1.2 }]'
DOMAIN = "size = [0.1, 0.08, 0.06]\ncells = [10, 3, 4]"


def text(x: str = X, domain: str = DOMAIN, more: str = "") -> str:
    return f"[domain]\n{domain}\n[domain.x]\n{x}\n{more}".replace("[domain]", f"{MATERIAL}\n[domain]", 1)


def read_text(*parts: str) -> Scenario:
    return parse(tomllib.loads(text(*parts)), "slab.toml")


def test_intervals_divide_an_axis() -> None:
    grid = read_text().grid
    widths = grid.axes[0].widths
    np.testing.assert_allclose(widths[:4], 0.005)
    np.testing.assert_allclose(widths[5:] / widths[4:-1], 1.2)
    assert (grid.borders[0][4], grid.borders[0][-1]) == (0.02, 0.1)
    assert (grid.borders[1:], grid.cells) == (((), ()), (10, 3, 4))


def test_widths_that_are_equal_are_a_uniform_axis() -> None:
    assert read_text(f"widths = {[0.01] * 10}").grid.uniform
    assert read_text("intervals = [{ to = 0.1, cells = 10 }]").grid.uniform
    narrow = read_text(f"widths = {[0.001, *[0.011] * 9]}").grid
    np.testing.assert_allclose(narrow.borders[0][:3], [0.0, 0.001, 0.012])


def test_an_axis_may_begin_anywhere() -> None:
    domain = f'{DOMAIN}\norigin = ["-1 cm", 0, 0]'
    assert (
        read_text("intervals = [{ to = 0.01, cells = 5 }, { to = 0.09, cells = 5 }]", domain).grid.borders[0][0]
        == -0.01
    )


@pytest.mark.parametrize(
    ("domain", "more"),
    [
        ("size = [0.08, 0.06]\ncells = [3, 4]", ""),
        ('size = ["8 cm", "6 cm"]\ncells = [10, 3, 4]', ""),
        ("size = [0.1, 0.08]\ncells = [3]", "[domain.z]\nwidths = [0.01, 0.02, 0.02, 0.01]"),
        ("", "[domain.y]\nwidths = [0.03, 0.03, 0.02]\n[domain.z]\nwidths = [0.01, 0.02, 0.02, 0.01]"),
    ],
)
def test_entries_of_axes_with_tables_may_be_left_out(domain: str, more: str) -> None:
    if more and domain:
        domain = domain.replace("[0.1, 0.08]", "[0.08]")
    found = read_text(X, domain, more)
    np.testing.assert_allclose(found.domain.size, (0.1, 0.08, 0.06))
    assert found.domain.cells == (10, 3, 4)


REFUSED = {
    "negative": ("widths = [0.11, -0.01]", "domain.x.widths.1", "got -0.01; a length must be greater than 0 m"),
    "no list": ('widths = "1 mm"', "domain.x.widths", "a list of lengths in m is expected"),
    "both": (f"{X}\nwidths = [0.1]", "domain.x", "both of widths and intervals given; write one of them"),
    "neither": ("", "domain.x", "neither of widths and intervals given; write one of them"),
    "none": ("intervals = []", "domain.x.intervals", "write at least one interval"),
    "falls": (X.replace("0.1,", "0.01,"), "domain.x.intervals.1.to", "got 0.01; the interval begins at 0.02 m"),
    "growth": (X.replace("1.2", "2.5"), "domain.x.intervals.1.growth", "got 2.5; a number from 0.5 to 2 is expected"),
    "cells": (X.replace("4 }", "0 }"), "domain.x.intervals.0.cells", "got 0; a whole number of cells"),
    "unit": (X.replace("20 mm", "20 s"), "domain.x.intervals.0.to", '"20 s"'),
    "name": (X.replace("growth", "grow"), "domain.x.intervals.1.grow", 'did you mean "growth"?'),
    "key": (X.replace("intervals", "interval"), "domain.x.interval", 'did you mean "intervals"?'),
    "narrow": (X.replace("cells = 6, growth = 1.2", "cells = 90000, growth = 2"), "domain.x", "make them wider"),
    "many": (X.replace("cells = 6", "cells = 99999"), "domain.x.intervals", "got 100,003 cells in all"),
    "size": (
        X.replace("0.1,", "0.2,"),
        "domain.size.0",
        "got 0.1; the cells of domain.x are 0.2 m long: write that, or",
    ),
    "count": (X.replace("4 }", "5 }"), "domain.cells.0", "got 10; domain.x has 11 cells: write 11, or leave"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_named_at_their_key(tmp_path: Path, case: str) -> None:
    x, key, message = REFUSED[case]
    path = tmp_path / "slab.toml"
    # A rule about places is checked too, on a table that cannot be read.
    path.write_text(text(x, more='[[probes]]\nname = "far"\npoint = [5.0, 0.04, 0.03]'))
    found = dict(mistakes_of(path))
    assert message in found.pop(key)
    assert list(found) in ([], ["probes.0.point.0"])
    # Where entries are left out, those that stand in for them are no mistakes.
    if case not in ("size", "count"):
        path.write_text(text(x, "size = [0.08, 0.06]\ncells = [3, 4]"))
        assert [name for name, _ in mistakes_of(path)] == [key]


def test_overrides_and_study_points_change_intervals(tmp_path: Path) -> None:
    path = tmp_path / "slab.toml"
    path.write_text(text(domain="size = [0.08, 0.06]\ncells = [3, 4]"))
    assert load(path, ["domain.x.intervals.0.cells=20"]).domain.cells == (26, 3, 4)
    assert load(path, ['domain.x.intervals.1.to="30 cm"']).domain.size[0] == 0.3
    path.write_text(path.read_text() + '[study]\nmethod = "grid"\nparameters."domain.x.intervals.0.cells" = [2, 8]\n')
    definition, _ = read(path)
    assert [definition.scenario(number).domain.cells[0] for number in definition.numbers] == [8, 14]


def test_the_resolved_scenario_has_the_same_cells(tmp_path: Path) -> None:
    scenario = read_text(
        X, "size = [0.06]\ncells = [4]\norigin = [-0.02, 0.5, 0.0]", "[domain.y]\nwidths = [0.05, 0.03]"
    )
    write_resolved(scenario, tmp_path)
    again = load(tmp_path / "scenario.toml")
    assert again.domain == scenario.domain
    assert again.grid == scenario.grid


def test_a_field_of_a_run_with_other_widths_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "slab.toml"
    of_run = text(more="").replace(
        "initial.temperature = 300.0", 'initial.temperature = { file = "fields.vtkhdf", time = 0.0 }'
    )
    path.write_text(of_run)
    for x, refused in ((X, False), (X.replace("1.2", "1.21"), True), ("intervals = [{ to = 0.1, cells = 10 }]", True)):
        grid = read_text(x).grid
        with FieldWriter.create(tmp_path / "fields.vtkhdf", grid, "float64") as writer:
            writer.append(0.0, [np.full(grid.shape, 300.0)])
        if not refused:
            load(path)
            continue
        ((key, message),) = mistakes_of(path)
        assert key == "initial.temperature.file"
        assert "which belongs to cells of other widths; use the same widths" in message


@pytest.mark.parametrize(
    ("entries", "key", "message"),
    [
        ("origin = [0.02, 0, 0, 0]", "domain.origin", "got [0.02, 0, 0, 0]; a list of two numbers is expected, for x"),
        ('origin = "a"', "domain.origin", 'got "a"; a list of two numbers is expected, for x and z'),
        ("origin = [nan, 0]", "domain.origin.0", "got nan; a coordinate must be finite"),
        ("y = 1", "domain.y", "got 1; write [domain.y] with widths or intervals"),
        ('origin = [0.01, 0]\nacross = "a"', "domain.across", "a whole number from 1 to 1,000 is expected"),
    ],
)
def test_mistakes_of_axial_domains_are_named_at_their_key(tmp_path: Path, entries: str, key: str, message: str) -> None:
    path = tmp_path / "disc.toml"
    domain = f'[domain]\nsymmetry = "axial"\nsize = [0.1, 0.06]\ncells = [4, 3]\n{entries}\n'
    faces = '[boundaries.x_min]\ntype = "convection"\ncoefficient = 5.0\nambient = 300.0\n'
    path.write_text(MATERIAL + domain + faces)
    ((found, text_of_mistake),) = [each for each in mistakes_of(path) if each[0] != "boundaries.x_min"]
    assert (found, message in text_of_mistake) == (key, True)


@pytest.mark.parametrize(("growth", "told"), [(1.0, 0), (1.05, 0), (1.3, 1)])
def test_label_images_on_cells_whose_widths_change_fast_are_told(growth: float, told: int, tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", (np.arange(64).reshape(4, 4, 4) % 2).astype(np.uint8))
    material = {"conductivity": 1.0, "density": 1.0, "specific_heat": 1.0}
    labels = {"file": "labels.npy", "materials": {"0": "a", "1": "b"}}
    document = {
        "domain": {"size": [1.0, 1.0], "cells": [4, 4], "material": "a"},
        "materials": {"a": material, "b": material},
        "regions": [{"name": "image", "labels": labels}],
        "initial": {"temperature": 300.0},
        "time": {"end": 1.0},
    }
    document["domain"]["x"] = {"intervals": [{"to": 1.0, "cells": 4, "growth": growth}]}
    hints = parse(document, tmp_path / "case.toml").hints
    assert len([hint for hint in hints if hint.startswith("regions.0.labels")]) == told
