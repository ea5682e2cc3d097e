"""What enters and what leaves a body through one surface or source, where both add up to little or nothing."""

import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import runs
import tomli_w

from heatsim import Simulation
from heatsim.amounts import POWERS, format_amount
from heatsim.errors import Interrupted
from heatsim.grid import FACES
from heatsim.render.curves.energy_balance import SURFACES_TO_VOID, read_balance, read_flows
from heatsim.report.answer import heat_facts
from heatsim.report.number_tables import balance_table, flow_table
from heatsim.report.page import build
from heatsim.storage import folder as run_folder
from heatsim.storage import tables
from heatsim.storage.summary_file import read_summary

METHODS = ("steady", "euler", "stabilized", "implicit")


def simulated(at: Path, document: dict[str, Any], *overrides: str, name: str = "out") -> Path:
    path = at / "case.toml"
    path.write_text(tomli_w.dumps(document), encoding="utf-8")
    Simulation.from_scenario(path, overrides, output=at / name).run()
    return at / name


def columns_of(folder: Path) -> dict[str, Any]:
    headers, rows = tables.read(folder / run_folder.ENERGY)
    return dict(zip(headers, rows.T, strict=True))


def box(cells: tuple[int, int, int], size: tuple[float, float, float], method: str, **more: Any) -> dict[str, Any]:
    time = {"method": method} if method == "steady" else {"method": method, "end": 10.0}
    return {
        "domain": {"size": list(size), "cells": list(cells)},
        "material": {"conductivity": 50.0, "density": 2000.0, "specific_heat": 1000.0},
        "time": time,
        "solver": {"device": "cpu", "precision": "float64"},
        "output": {"figures": False, "fields": False},
        **more,
    }


def test_a_face_half_hot_and_half_cold_passes_the_heat_of_a_chain(tmp_path: Path) -> None:
    """Two cells: from 400 K through half a cell, between the cells, and through half a cell to 300 K."""
    size, k = (0.1, 0.02, 0.02), 50.0
    face = {"z_min": {"type": "temperature", "value": "where(x < 0.05, 400, 300)"}}
    folder = simulated(tmp_path, box((2, 1, 1), size, "steady", boundaries=face))
    half = k * (0.05 * 0.02) / 0.01
    between = k * (0.02 * 0.02) / 0.05
    passing = 100.0 / (1.0 / half + 1.0 / between + 1.0 / half)
    of = columns_of(folder)
    assert of["in z_min (W)"][0] == pytest.approx(passing, rel=1e-6)
    assert of["out z_min (W)"][0] == pytest.approx(passing, rel=1e-6)
    assert abs(of["imbalance (%)"][0]) < 1e-3
    flows = read_flows(folder, {})
    assert flows is not None
    assert not flows.none
    assert flows.turnover == pytest.approx(passing, rel=1e-6)
    assert "no heat flows" not in build(folder)
    shown = format_amount(passing, POWERS, 4)
    assert dict(heat_facts(None, flows)) == {"heat": f"z_min {shown} in and {shown} out"}
    (name, _, entering, leaving), _ = flow_table(flows).rows
    assert (name, float(entering), float(leaving)) == ("z_min", pytest.approx(passing, rel=1e-4), float(entering))


WALL = {
    "regions": [
        {"name": "brick", "material": "brick", "box": {"min": [0.1, 0.0, 0.0], "max": [0.2, 0.02, 0.02]}},
        {"name": "room", "material": "void", "box": {"min": [0.0, 0.0, 0.0], "max": [0.1, 0.02, 0.02]}},
        {"name": "outdoors", "material": "void", "box": {"min": [0.2, 0.0, 0.0], "max": [0.3, 0.02, 0.02]}},
    ],
    "materials": {"brick": {"conductivity": 0.8, "density": 1000.0, "specific_heat": 100.0}},
    "boundaries": {
        "void": {"type": "convection", "coefficient": "where(x < 0.15, 8, 25)", "ambient": "where(x < 0.15, 295, 265)"}
    },
}


@pytest.mark.parametrize("method", METHODS)
def test_a_wall_between_two_regions_of_void_passes_heat(method: str, tmp_path: Path) -> None:
    """Room and outdoors are both void: U = 1/(1/8 + 0.1/0.8 + 1/25), whatever "void" is as a sum."""
    document = {**box((30, 2, 2), (0.3, 0.02, 0.02), method), **WALL}
    del document["material"]
    document["domain"]["material"] = "brick"
    document["initial"] = {"temperature": "where(x < 0.11, 282, where(x > 0.19, 269, 282))"}
    document["time"] |= {} if method == "steady" else {"end": 1e5}
    document["output"]["probe_every"] = 5e3
    folder = simulated(tmp_path, document)
    passing = 30.0 / (1.0 / 8.0 + 0.1 / 0.8 + 1.0 / 25.0) * 4e-4
    of = columns_of(folder)
    near = pytest.approx(passing, rel=1e-5 if method == "implicit" else 1e-6)  # its equations are solved iteratively
    assert of["in void (W)"][-1] == near
    assert of["out void (W)"][-1] == near
    if method == "steady":
        flows = read_flows(folder, {})
        assert flows is not None
        assert not flows.none
        assert SURFACES_TO_VOID in flows.both
        return
    balance = read_balance(folder, {})
    assert balance is not None
    assert balance.turnover == pytest.approx(passing * 1e5, rel=0.1)
    assert not balance.only_noise
    assert SURFACES_TO_VOID not in balance.negligible()
    assert "Heat flows both ways: surfaces to void" in balance_table(balance).remark
    assert re.match(r"surfaces to void \S+ kJ in and \S+ kJ out", dict(heat_facts(balance, None))["heat"])
    assert "no heat flows" not in build(folder)
    if method == "implicit":
        summary = read_summary(folder)
        assert summary["imbalance_part"] == pytest.approx(summary["imbalance"] / balance.turnover, rel=1e-6)


@pytest.mark.parametrize("method", METHODS[1:])
def test_fluxes_of_both_signs_bring_and_take_their_heat_between_rows(method: str, tmp_path: Path) -> None:
    """Half of a face gets sin(t), the other half takes it: rows at 0, 2.5, … have |∫ sin| of both, whatever cancels."""
    face = {"y_max": {"type": "flux", "value": "where(x < 0.05, 1000, -600)*sin(t)"}}
    document = box((4, 2, 2), (0.1, 0.02, 0.02), method, boundaries=face, initial={"temperature": 300.0})
    document["output"]["probe_every"] = 2.5
    document["time"]["tolerance" if method != "euler" else "dt"] = 1e-3 if method != "euler" else 0.05
    of = columns_of(simulated(tmp_path, document))
    edges = np.array([0.0, 2.5, 5.0, 7.5, 10.0])
    mean = 0.05 * 0.02 * np.diff(-np.cos(edges)) / 2.5
    # Averages over steps of euler and stabilized are exact; the two stages of an implicit step are not.
    near = {"rtol": 1e-12, "atol": 1e-12} if method == "euler" else {"rtol": 1e-3, "atol": 1e-4}
    entering, leaving = np.where(mean > 0.0, 1000.0, -600.0) * mean, np.where(mean > 0.0, 600.0, -1000.0) * mean
    np.testing.assert_allclose(of["in y_max (W)"][1:], entering, **near)
    np.testing.assert_allclose(of["out y_max (W)"][1:], leaving, **near)


@pytest.mark.parametrize("method", METHODS)
def test_sources_that_heat_and_sources_that_cool_do_not_cancel(method: str, tmp_path: Path) -> None:
    """30 W and −20 W of sources, ±10 W of a density that changes its sign in the middle, 5 W of a beam."""
    size = (0.1, 0.02, 0.02)
    dense = 10.0 / (0.05 * 0.02 * 0.02)
    sources = [
        {"name": "heater", "power": 30.0, "box": {"min": [0.0, 0.0, 0.0], "max": [0.05, 0.02, 0.02]}},
        {"name": "cooler", "power": -20.0, "box": {"min": [0.05, 0.0, 0.0], "max": [0.1, 0.02, 0.02]}},
        {"name": "both", "power_density": f"where(x < 0.05, {dense}, -{dense})"},
        {"name": "light", "beam": {"face": "z_max", "power": 5.0, "radius": 1e-4, "path": [[0.05, 0.01]]}},
    ]
    faces = {"x_min": {"type": "convection", "coefficient": 1e4, "ambient": 300.0}}
    document = box((10, 2, 2), size, method, boundaries=faces, sources=sources, initial={"temperature": 300.0})
    document["output"]["probe_every"] = 5.0
    of = columns_of(simulated(tmp_path, document))
    if method == "steady":
        entering = {name: float(of[f"in source {name} (W)"][0]) for name in ("heater", "cooler", "both", "light")}
        leaving = {name: float(of[f"out source {name} (W)"][0]) for name in entering}
        assert entering == pytest.approx({"heater": 30.0, "cooler": 0.0, "both": 10.0, "light": 5.0}, rel=1e-9)
        assert leaving == pytest.approx({"heater": 0.0, "cooler": 20.0, "both": 10.0, "light": 0.0}, rel=1e-9)
        return
    np.testing.assert_allclose(of["in sources (W)"][1:], 45.0, rtol=1e-9)
    np.testing.assert_allclose(of["out sources (W)"][1:], 30.0, rtol=1e-9)
    np.testing.assert_allclose(of["sources (W)"][1:], 15.0, rtol=1e-9)


def random_body(seed: int, method: str) -> dict[str, Any]:
    """Void, two materials, a contact, patches, a beam, sources of both signs, and laws that vary over faces."""
    rng = Random(seed)
    size = [round(rng.uniform(0.02, 0.1), 3) for _ in range(3)]
    cells = [rng.randint(4, 8) for _ in range(3)]

    def some_box() -> dict[str, list[float]]:
        pairs = [sorted(rng.sample(range(n + 1), 2)) for n in cells]
        lows, highs = ([of[end] * s / n for of, s, n in zip(pairs, size, cells, strict=True)] for end in (0, 1))
        return {"min": lows, "max": highs}

    def law() -> dict[str, Any]:
        at = f"{rng.choice('xyz')} < {rng.uniform(0.2, 0.8) * min(size)!r}"
        hot, cold = rng.uniform(320.0, 500.0), rng.uniform(250.0, 290.0)
        wave = "" if method == "steady" else f" + 10*sin({rng.uniform(0.1, 3.0)!r}*t)"
        ambient = f"where({at}, {hot!r}, {cold!r}){wave}"
        film = {"type": "convection", "coefficient": rng.uniform(10.0, 500.0), "ambient": ambient}
        return rng.choice(
            [
                film,
                {**film, "emissivity": 0.8},
                {"type": "radiation", "emissivity": 0.9, "ambient": ambient},
                {"type": "flux", "value": f"where({at}, 2e3, -1.5e3)"},
                {"type": "insulated"},
            ]
        )

    u, v = size[0], size[1]
    patch = {"min": [0.2 * u, 0.1 * v], "max": [0.7 * u, 0.6 * v]}
    hole = [{"name": "hole", "material": "void", "box": some_box()}] if rng.random() < 0.7 else []
    regions = [{"name": "core", "material": "b", "box": some_box()}, *hole]
    document = {
        "domain": {"size": size, "cells": cells, "material": "a"},
        "materials": {
            "a": {"conductivity": [20.0, 30.0, 10.0], "density": 2000.0, "specific_heat": 500.0},
            "b": {"conductivity": rng.uniform(0.5, 100.0), "density": 1000.0, "specific_heat": 800.0},
        },
        "regions": regions,
        "initial": {"temperature": 300.0},
        "boundaries": {name: law() for name in (*FACES, "void")},
        "patches": [{"name": "patch", "face": "z_min", "rectangle": patch, **law()}],
        "sources": [
            {"name": "even", "power_density": 5e4},
            {"name": "cold", "power_density": -4e4, "scale": 1.0 if method == "steady" else "1 + sin(t)"},
            {"name": "shaped", "power_density": f"3e5*sin({6.28 / u!r}*x)"},
            {"name": "light", "beam": {"face": "z_max", "power": 3.0, "radius": 0.1 * u, "path": [[0.5 * u, 0.5 * v]]}},
        ],
        "contacts": [{"between": ["a", "b"], "resistance": 1e-4}],
        "time": {"method": method} if method == "steady" else {"method": method, "end": 4.0},
        "solver": {"device": "cpu", "precision": "float64"},
        "output": {"figures": False, "fields": False, "probe_every": 0.5},
    }
    if not hole:
        del document["boundaries"]["void"]
    document["boundaries"]["x_min"] = {"type": "convection", "coefficient": 100.0, "ambient": 300.0}
    return document


@pytest.mark.parametrize(("seed", "method"), list(enumerate(METHODS)))
def test_what_enters_less_what_leaves_is_what_stays(seed: int, method: str, tmp_path: Path) -> None:
    """Σ in − Σ out = stored − residual in every row, to 1e-12 of the turnover; the net columns say the same."""
    folder = simulated(tmp_path, random_body(seed, method))
    of = columns_of(folder)
    total = {"in": np.zeros(1), "out": np.zeros(1)}
    given = [name.removeprefix("in ") for name in of if name.startswith("in ")]
    some = slice(None) if method == "steady" else slice(1, None)
    for name in given:
        entering, leaving = (of[f"{way} {name}"][some] for way in total)
        assert entering.min() >= 0.0
        assert leaving.min() >= 0.0
        turnover = float((entering + leaving).max())
        np.testing.assert_allclose(entering - leaving, of[name][some], rtol=0.0, atol=1e-11 * turnover)
        if name in [f"{face} (W)" for face in FACES] or name.startswith("source") or name == "void (W)":
            total = {way: total[way] + of[f"{way} {name}"][some] for way in total}
    assert min(total["in"].min(), total["out"].min()) > 0.0
    if method == "steady":
        stays, residual = np.zeros(1), of["imbalance (W)"]
        assert of["imbalance (%)"][0] == pytest.approx(200.0 * residual[0] / (total["in"] + total["out"])[0])
    else:
        seconds = np.diff(of["time (s)"])
        stays, residual = np.diff(of["stored (J)"]) / seconds, -np.diff(of["residual (J)"]) / seconds
    turnover = float((total["in"] + total["out"]).max())
    np.testing.assert_allclose(total["in"] - total["out"], stays + residual, rtol=0.0, atol=1e-12 * turnover)


@pytest.mark.quick("implicit")
@pytest.mark.parametrize("method", METHODS[1:])
def test_a_resumed_run_tells_the_same_gross_flows(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted between two rows, where sums since the last row are under way."""
    document = random_body(7, method)
    whole = simulated(tmp_path, document)
    with monkeypatch.context() as patch:
        (runs.after_step if method == "euler" else runs.after_advance)(patch, 5, runs.interrupt)
        with pytest.raises(Interrupted):
            simulated(tmp_path, document, name="half")
    Simulation.resume(tmp_path / "half").run()
    assert (tmp_path / "half" / run_folder.ENERGY).read_bytes() == (whole / run_folder.ENERGY).read_bytes()
    assert read_summary(tmp_path / "half")["energy"] == read_summary(whole)["energy"]
