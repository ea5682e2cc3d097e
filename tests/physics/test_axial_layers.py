"""Layers of axial domains are discs and cylinders, and beams are centred on the axis."""

from math import exp, log, pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from numpy.typing import NDArray

from heatsim import Simulation
from heatsim.cli import main
from heatsim.errors import Interrupted, ScenarioError
from heatsim.opened.run import Run
from heatsim.physics.cells.cell_types import CELL_TYPE
from heatsim.physics.problem import HeatProblem
from heatsim.run import plan_text
from heatsim.run.plan import Plan
from heatsim.scenario import parse
from heatsim.storage import folder

Array = NDArray[np.float64]
Document = dict[str, Any]

INNER, OUTER, HEIGHT = 0.003, 0.023, 0.012
RANDOM = np.random.default_rng(2)
MATERIALS = {
    "board": {"conductivity": [0.8, 0.8, 0.3], "density": 1850.0, "specific_heat": 1100.0},
    "copper": {"conductivity": 390.0, "density": 8960.0, "specific_heat": 385.0},
}


def widths(count: int, size: float) -> list[float]:
    parts = np.exp(RANDOM.uniform(0.0, np.log(30.0), count))
    return [float(width) for width in parts / parts.sum() * size]


def axial(inner: float, along_r: list[float], along_z: list[float], **tables: Any) -> Document:
    return {
        "domain": {
            "symmetry": "axial",
            "origin": [inner, 0.0],
            "material": "board",
            "x": {"widths": along_r},
            "z": {"widths": along_z},
        },
        "materials": MATERIALS,
        "initial": {"temperature": 300.0},
        "time": {"method": "steady", "tolerance": 1e-7},
        "solver": {"device": "cpu", "precision": "float64"},
        **tables,
    }


def layer(axis: str, at: float, low: tuple[float, float] | None = None, high: tuple[float, float] | None = None,
          thickness: float = 4e-5) -> Document:  # fmt: skip
    plane: Document = {"axis": axis, "at": at}
    if low is not None and high is not None:
        plane["rectangle"] = {"min": list(low), "max": list(high)}
    return {"material": "copper", "thickness": thickness, "plane": plane}


def beam(face: str, path: Any = ((0.0, 0.0),), **more: Any) -> Document:
    spot = {"face": face, "power": 50.0, "absorptivity": 0.4, "radius": 0.004, "path": [list(point) for point in path]}
    return {"beam": {**spot, **more}}


def held(face: str, temperature: float) -> Document:
    return {face: {"type": "temperature", "value": temperature}}


def run(document: Document, at: Path | None = None) -> Simulation:
    simulation = Simulation.from_dict(document, at, in_memory=at is None)
    simulation.run()
    return simulation


@pytest.mark.parametrize("plane", [0, 2, 5])
def test_a_disc_conducts_along_the_radius_as_a_ring_does(tmp_path: Path, plane: int) -> None:
    """Its temperatures and heat are exact with any widths; it lies on a face or between cells."""
    along_r, along_z = widths(7, OUTER - INNER), widths(5, HEIGHT)
    at = float(np.append(0.0, np.cumsum(along_z))[plane])
    faces = {**held("x_min", 400.0), **held("x_max", 300.0)}
    disc = run(axial(INNER, along_r, along_z, layers=[layer("z", at)], boundaries=faces), tmp_path / "disc")
    whole, radii = log(OUTER / INNER), disc.plan.problem.grid.centres(0)
    np.testing.assert_allclose(disc.temperature[:, 0], np.tile(300.0 + 100.0 * np.log(OUTER / radii) / whole, (5, 1)))
    flow = Run(tmp_path / "disc").energy.iloc[-1]["x_min (W)"]
    assert flow == pytest.approx(100.0 * 2.0 * pi * (0.8 * HEIGHT + 390.0 * 4e-5) / whole, rel=1e-7)
    assert disc.plan.problem.materials.layering.areas[0] == pytest.approx(pi * (OUTER**2 - INNER**2), rel=1e-12)


@pytest.mark.parametrize("plane", [0, 1, 4, 7])
@pytest.mark.parametrize("part", [(0.0, 1.0), (0.0, 0.37)])
def test_a_cylinder_conducts_along_the_axis(tmp_path: Path, plane: int, part: tuple[float, float]) -> None:
    """On the whole height exactly; in a part of it with its heat capacity and area."""
    along_r, along_z = widths(7, OUTER - INNER), widths(6, HEIGHT)
    at = float(INNER + np.append(0.0, np.cumsum(along_r))[plane])
    low, high = ((-0.5, part[0] * HEIGHT), (0.5, part[1] * HEIGHT))
    faces = {**held("z_min", 400.0), **held("z_max", 300.0)}
    document = axial(INNER, along_r, along_z, layers=[layer("x", at, low, high)], boundaries=faces)
    problem = HeatProblem.from_scenario(parse(document, "case.toml"))
    materials = problem.materials
    area = 2.0 * pi * at * (high[1] - low[1])
    assert materials.layering.areas[0] == pytest.approx(area, rel=1e-12)
    own = 1850.0 * 1100.0 * pi * (OUTER**2 - INNER**2) * HEIGHT
    assert materials.volumes @ materials.cell_heat_capacity == pytest.approx(own + 8960.0 * 385.0 * 4e-5 * area)
    (told,) = (line for line in plan_text.describe(Plan.of(problem)).splitlines() if line.startswith("layer "))
    assert told.endswith(f"; {1e4 * area:.4g} cm²")  # all of it lies on cells that conduct
    if part == (0.0, 1.0):
        run(document, tmp_path / "cylinder")
        flow = Run(tmp_path / "cylinder").energy.iloc[-1]["z_min (W)"]
        across = 0.3 * pi * (OUTER**2 - INNER**2) + 390.0 * 4e-5 * 2.0 * pi * at
        assert flow == pytest.approx(100.0 * across / HEIGHT, rel=1e-7)


@pytest.mark.parametrize("inner", [0.0, INNER])
@pytest.mark.parametrize(("plane", "cells"), [(3, 6), (6, 6), (1, 1)])
def test_resistances_across_a_cylinder_are_in_series(tmp_path: Path, inner: float, plane: int, cells: int) -> None:
    """Between cells, on a face, and around a body of one ring; probes follow the resistances."""
    along_r = widths(cells, OUTER - inner)
    at, film = float(inner + np.cumsum(along_r)[plane - 1]), 60.0
    document = axial(inner, along_r, widths(2, HEIGHT), layers=[layer("x", at, thickness=1e-4)])
    document["materials"] = {**MATERIALS, "copper": {**MATERIALS["copper"], "conductivity": [0.01, 1.0, 1.0]}}
    faces = {"x_max": {"type": "convection", "coefficient": film, "ambient": 300.0}}
    start, warm = inner, dict[str, Any]()
    if inner:
        faces |= held("x_min", 400.0)
    else:  # heat from the innermost ring
        start = 0.5 * along_r[0] if cells > 1 else OUTER
        ring = {"min": [0.0, -1.0, 0.0], "max": [along_r[0], 1.0, HEIGHT]}
        warm["sources"] = [{"power": 2.0, "box": ring}]
    radii = np.linspace(inner, 0.999 * OUTER, 12)
    warm["probes"] = [{"name": f"{r}", "point": [float(r), 0.0, 0.5 * HEIGHT]} for r in radii]
    simulation = run({**document, "boundaries": faces, **warm}, tmp_path / "run")
    outside = 0.01 / at + 1.0 / (film * OUTER)
    flow = -Run(tmp_path / "run").energy.iloc[-1]["x_max (W)"]
    body = log(OUTER / start) / 0.8 if cells > 1 or inner else log(2.0) / 0.8
    if inner:
        assert flow == pytest.approx(100.0 * 2.0 * pi * HEIGHT / (body + outside), rel=1e-7)
        if cells == 1:  # half of the layer counts towards each face
            return
        before = np.log(radii / inner) / 0.8 + np.where(radii > at, 0.01 / at, 0.0)
        probes = Run(tmp_path / "run").probes.iloc[-1].to_numpy()[-12:]
        np.testing.assert_allclose(probes, 400.0 - 100.0 * before / (body + outside), rtol=0.0, atol=1e-5)
    else:
        hottest = float(simulation.temperature.max()) - 300.0
        assert hottest == pytest.approx(2.0 / (2.0 * pi * HEIGHT) * (body + outside), rel=1e-7)


def reference(radii: Array, heat: float, spread: float, film: float) -> Array:
    """Temperatures above the surroundings in a thin plate under a beam, from a fine grid along the radius.

    (1/r)·d/dr(r·S·dT/dr) + q = h·T with S = ``spread`` in W/K and h = ``film`` in W/(m² K); no heat passes the rim.
    """
    n = 4000
    sides = np.linspace(0.0, OUTER, n + 1)
    areas, links = pi * np.diff(sides**2), 2.0 * pi * sides[1:-1] * spread * n / OUTER
    gained = heat * -np.diff(np.exp(-2.0 * (sides / 0.004) ** 2))
    diagonal = film * areas + np.append(links, 0.0) + np.append(0.0, links)
    for place in range(1, n):
        ratio = links[place - 1] / diagonal[place - 1]
        diagonal[place] -= ratio * links[place - 1]
        gained[place] += ratio * gained[place - 1]
    gained[-1] /= diagonal[-1]
    for place in range(n - 2, -1, -1):
        gained[place] = (gained[place] + links[place] * gained[place + 1]) / diagonal[place]
    return np.asarray(np.interp(radii, (sides[1:] + sides[:-1]) / 2.0, gained))


def test_errors_of_a_disc_under_a_beam_fall_with_the_square_of_the_cells() -> None:
    """Copper on a thin board that cools from below; rings grow from the axis on, and each is halved again and again."""
    thick, sizes, errors = 2e-4, 1.3 ** np.arange(8), list[float]()
    for halved in (2, 4, 8):
        along_r = np.repeat(sizes / sizes.sum() * OUTER / halved, halved).tolist()
        document = axial(0.0, along_r, [thick], layers=[layer("z", thick)], sources=[beam("z_max")])
        document["boundaries"] = {"z_min": {"type": "convection", "coefficient": 500.0, "ambient": 300.0}}
        simulation = run(document)
        grid = simulation.plan.problem.grid
        # The cell's temperature counts between both halves of what the layer resists, and the lower half of the board.
        film = 1.0 / (1.0 / 500.0 + 0.5 * thick / 0.3 + 0.5 * 4e-5 / 390.0)
        exact = reference(grid.centres(0), 20.0, 390.0 * 4e-5 + 0.8 * thick, film)
        differences = simulation.temperature[0, 0] - 300.0 - exact
        errors.append(float(np.sqrt(np.average(differences**2, weights=grid.axes[0].measures))))
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([2.0, 2.0], abs=0.12)


@pytest.mark.parametrize(("axis", "inner"), [("x", 0.0), ("x", INNER), ("z", 0.0)])
def test_errors_of_heat_that_spreads_along_a_layer_fall_with_the_square_of_the_cells(axis: str, inner: float) -> None:
    """The mean temperature of a body between whose cells the layer lies, with every cell halved twice."""
    means, parts = list[float](), (1.3 ** np.arange(8), 0.8 ** np.arange(8))
    for halved in (1, 2, 4):
        along_r, along_z = (
            np.repeat(of / of.sum() * size / halved, halved)
            for of, size in zip(parts, (OUTER - inner, HEIGHT), strict=True)
        )
        at = inner + along_r[: 3 * halved].sum() if axis == "x" else along_z[: 5 * halved].sum()
        document = axial(inner, along_r.tolist(), along_z.tolist(), layers=[layer(axis, float(at), thickness=2e-5)])
        film = {"type": "convection", "coefficient": 20.0, "ambient": 300.0}
        document["boundaries"] = {**held("z_min", 300.0), "x_max": film}
        density = f"1e6*(1 + cos(pi*x/{OUTER}) + cos(2*pi*z/{HEIGHT}))"
        simulation = run({**document, "sources": [{"power_density": density}]})
        materials = simulation.plan.problem.materials
        capacities = materials.heat_capacity[materials.cells & CELL_TYPE].reshape(-1)
        capacities *= materials.grid.volume_factors(np.arange(materials.grid.cell_count))
        means.append(float(simulation.temperature.reshape(-1) @ capacities / capacities.sum()))
    assert (means[0] - means[1]) / (means[1] - means[2]) == pytest.approx(4.0, abs=0.1)


@pytest.mark.each_value
@pytest.mark.parametrize("face", ["z_min", "z_max"])
@pytest.mark.parametrize("inner", [0.0, INNER])
@pytest.mark.parametrize("depth", [None, 2e-3])
def test_beams_bring_each_ring_its_part(tmp_path: Path, face: str, inner: float, depth: float | None) -> None:
    along_r, along_z = widths(9, 0.04 - inner), widths(5, HEIGHT)
    more = {} if depth is None else {"absorption_depth": depth}
    document = axial(inner, along_r, along_z, sources=[beam(face, **more)])
    simulation = run({**document, "time": {"method": "euler", "end": 0.05}}, tmp_path / "run")
    borders = inner + np.append(0.0, np.cumsum(along_r))
    parts = -np.diff(np.exp(-2.0 * (borders / 0.004) ** 2)) * 20.0
    (rows,) = simulation.plan.problem.sources.beam_rows(np.zeros(1), 1e-9)
    flux = np.zeros((1, 9))
    rows.add_to(flux, 0)
    np.testing.assert_allclose(flux[0], parts / (pi * np.diff(borders**2)), rtol=1e-12, atol=1e-8)
    power = 20.0 * exp(-2.0 * (inner / 0.004) ** 2) * (1.0 if depth is None else 1.0 - exp(-HEIGHT / depth))
    row = Run(tmp_path / "run").energy.iloc[-1]
    assert row["sources (J)"] == pytest.approx(0.05 * power, rel=1e-12)
    assert row["stored (J)"] == pytest.approx(0.05 * power, rel=1e-12)


def test_beams_fall_through_void_on_the_part_below() -> None:
    """Inside a tube; a film cools the surface towards void."""
    document = axial(0.0, widths(6, 0.02), [0.001] * 6, sources=[beam("z_max")])
    low, high = [0.0, -1.0, 0.004], [0.02, 1.0, 0.006]
    document["regions"] = [{"name": "hole", "material": "void", "box": {"min": low, "max": high}}]
    document["boundaries"] = {"void": {"type": "convection", "coefficient": 50.0, "ambient": 300.0}}
    simulation = run(document)
    problem = simulation.plan.problem
    assert problem.sources.absorbed_by(next(iter(problem.sources.beam_rows(np.zeros(1), 1e-9)))) == pytest.approx(
        20.0 * (1.0 - exp(-50.0)), rel=1e-12
    )
    assert simulation.temperature[3, 0, 0] > 310.0


def test_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    # Widths at random may be so large that the run has fewer steps than it needs here.
    along_r, along_z = [0.002, 0.0066, 0.003, 0.005, 0.0004, 0.006], [0.0003, 0.001, 0.003, 0.002, 0.0027, 0.003]
    document = axial(0.0, along_r, along_z, layers=[layer("z", HEIGHT), layer("x", OUTER)])
    document |= {"sources": [beam("z_max"), beam("z_max", absorption_depth=1e-3)], "time": {"end": 0.5}}
    document["time"] |= {"method": "euler", "dt": "auto"}
    document["output"] = {"every": 0.1, "figures": False}
    half, whole = tmp_path / "half", tmp_path / "whole"
    run(document, whole)
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, 9, runs.interrupt)
        with pytest.raises(Interrupted):
            run(document, half)
    assert main(["resume", str(half), "--quiet"]) == 0
    for name in (folder.FIELDS, folder.ENERGY):
        assert (half / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("tables", "key", "words"),
    [
        ({"layers": [layer("y", 0.0)]}, "layers.0.plane.axis", "layers are discs across z and cylinders across x"),
        ({"layers": [layer("x", 0.0)]}, "layers.0.plane.at", "got 0; .* a layer across x is a cylinder"),
        (
            {"layers": [layer("z", 0.002, (0.0, -0.1), (0.01, 0.5))]},
            "layers.0.plane.rectangle",
            "got -0.1 to 0.5 along y; .* layers are whole circles: write -0.5 and 0.5 for y",
        ),
        ({"sources": [beam("x_max")]}, "sources.0.beam.face", 'got "x_max"; .* write z_min or z_max; .* patch'),
        ({"sources": [beam("z_max", [(0.001, 0.0)])]}, "sources.0.beam.path", r"got \[0.001, 0.0\]; .* \[\[0.0,"),
        (
            {"sources": [beam("z_max", [(0.0, 0.0), (0.01, 0.0)], speed=0.1)]},
            "sources.0.beam.path",
            "got 2 points; .* is centred on the axis and does not move",
        ),
    ],
)
def test_what_does_not_turn_around_the_axis_is_refused(tables: Document, key: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words) as refused:
        parse(axial(0.0, [0.01] * 4, [0.002] * 4, time={"end": 1.0}, **tables), "case.toml")
    assert [mistake.key for mistake in refused.value.mistakes] == [key]


@pytest.mark.parametrize("seed", range(8))
def test_layers_far_from_the_axis_are_those_of_a_flat_body(seed: int) -> None:
    """Several layers that cross, touch and end within cells, beside a hole and held faces."""
    random, found = np.random.default_rng(seed), list[Any]()
    sizes = [0.003 * np.exp(random.uniform(-2.0, 0.0, int(random.integers(3, 8)))) for _ in range(2)]
    borders = [np.append(0.0, np.cumsum(of)) for of in sizes]
    planes = [(number % 2, int(random.integers(0, len(borders[number % 2])))) for number in range(seed % 3 + 1)]
    parts = [np.sort(random.uniform(-0.1, 1.1, 2).clip(0.0, 1.0)) for _ in planes]
    hole = [np.sort(random.choice(of, 2, replace=False)) for of in borders] if seed % 2 else []
    faces = (
        {"type": "temperature", "value": 350.0},
        {"type": "convection", "coefficient": 50.0, "ambient": 320.0},
        {"type": "flux", "value": 100.0},
    )
    conditions = dict(zip(("x_min", "x_max", "z_min", "z_max"), random.choice(faces, 4).tolist(), strict=True))
    for far in (0.0, 1e4):
        document = axial(far, *(of.tolist() for of in sizes), boundaries=conditions, time={"end": 1.0}, layers=[])
        if not far:
            document["domain"] |= {"symmetry": None, "origin": [0.0, -0.5, 0.0], "y": {"widths": [1.0]}}
        for (across, plane), part in zip(planes, parts, strict=True):
            at, ends = borders[across][plane] + (0.0, far)[1 - across], part * borders[1 - across][-1] + far * across
            low, high = ((-0.5, ends[0]), (0.5, ends[1])) if across == 0 else ((ends[0], -0.5), (ends[1], 0.5))
            document["layers"].append(layer("xz"[across], float(at), low, high, 1e-5))
        for (x0, x1), (z0, z1) in [hole] if hole else []:
            box = {"min": [x0 + far, -1.0, z0], "max": [x1 + far, 1.0, z1]}
            document["regions"] = [{"name": "hole", "material": "void", "box": box}]
        try:
            found.append(HeatProblem.from_scenario(parse(document, "case.toml")).materials.layering)
        except ScenarioError as error:
            found.append([mistake.key for mistake in error.mistakes])
    flat, turned = found
    assert flat == turned or not isinstance(flat, list)
    for name in () if isinstance(flat, list) else ("cells", "node", "capacity", "half", "faces", "links"):
        np.testing.assert_allclose(getattr(turned, name), getattr(flat, name), rtol=1e-5, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("y", [(-0.5, 0.5), (0.0, 0.5), (0.0, 0.1), (-0.1, 0.0)])
def test_what_a_box_has_for_y_does_not_matter(y: tuple[float, float]) -> None:
    """A ring in series with a contact: the flow through it has the resistance of the whole circle."""
    inner = {"name": "core", "material": "b", "box": {"min": [0.0, y[0], 0.0], "max": [0.02, y[1], 0.1]}}
    same = {"density": 1.0, "specific_heat": 1.0, "conductivity": 10.0}
    document: dict[str, Any] = {
        "title": "ring",
        "domain": {"symmetry": "axial", "size": [0.03, 0.1], "origin": [0.01, 0.0], "cells": [12, 3], "material": "a"},
        "materials": {"a": same, "b": same},
        "regions": [inner],
        "contacts": [{"between": ["a", "b"], "resistance": 1e-3}],
        "boundaries": {
            "x_min": {"type": "temperature", "value": 400.0},
            "x_max": {"type": "temperature", "value": 300.0},
        },
        "time": {"method": "steady"},
        "output": {"fields": False},
        "solver": {"precision": "float64"},
    }
    simulation = Simulation.from_dict(document, in_memory=True)
    simulation.run()
    assert simulation.state.steady is not None
    resistance = np.log(4.0) / (2.0 * np.pi * 10.0 * 0.1) + 1e-3 / (2.0 * np.pi * 0.02 * 0.1)
    assert simulation.state.steady.flows.faces["x_min"] == pytest.approx(100.0 / resistance, rel=1e-6)
