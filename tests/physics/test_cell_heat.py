"""Sources that heat single cells: densities in space and temperature, beams in the body and on void surfaces."""

import csv
import json
import re
from math import exp, pi
from pathlib import Path

import numpy as np
import pytest
import runs
from problem_text import problem

import heatsim
from heatsim.errors import Interrupted, ScenarioError
from heatsim.physics.sources.cell_sources import tabulate
from heatsim.scenario.values.densities import read_density
from heatsim.scenario.values.expressions import Expression

BLOCK = """
title = "Block"
[domain]
size = [0.1, 0.05, 0.02]
cells = [20, 10, 8]
[material]
conductivity = 20.0
density = 2000.0
specific_heat = 500.0
[initial]
temperature = 300.0
[boundaries]
x_min = { type = "temperature", value = 300.0 }
[output]
every = 5.0
fields = false
figures = false
"""
# A ball of 9 mm radius in void, with 24 cells to its diameter.
BALL = """
title = "Ball"
[domain]
size = [0.024, 0.024, 0.024]
cells = [32, 32, 32]
origin = [-0.012, -0.012, -0.012]
material = "void"
[materials.steel]
conductivity = 40.0
density = 8000.0
specific_heat = 500.0
[[regions]]
name = "ball"
material = "steel"
sphere = { centre = [0.0, 0.0, 0.0], radius = 0.009 }
[initial]
temperature = 300.0
[boundaries]
void = { type = "convection", coefficient = 200.0, ambient = 300.0, emissivity = 0.5 }
[output]
every = 1.0
fields = false
figures = false
"""
SPACE = '[[sources]]\npower_density = "1e6*x*(1 + sin(t)) + 2e5*exp(-t)*cos(60*y)"\n'
SPREAD = '[[sources]]\npower = 50.0\ndistribution = "exp(-x/0.02)"\nscale = "1 + t"\n'
HOTTER = '[[sources]]\npower_density = "2e5*(1 + 0.01*(T - 300))"\n'
SINK = '[[sources]]\npower_density = "2e4*(320 - T)"\nduring = [0.0, 4.0]\n'
DEEP = '[[sources]]\nbeam = { face = "%s", power = 50.0, radius = 0.003, absorption_depth = 0.004, path = [%s] }\n'
ALL = SPACE + SPREAD + HOTTER + SINK + DEEP % ("z_max", "[0.03, 0.02]")


def run(text: str, folder: Path, method: str, end: float = 10.0, solver: str = 'precision = "float64"'):  # type: ignore[no-untyped-def]
    """The run, and the rows of energy.csv."""
    time = 'method = "steady"' if method == "steady" else f'method = "{method}"\nend = {end}'
    path = folder / f"{method}.toml"
    path.write_text(f'{text}\n[time]\n{time}\n[solver]\ndevice = "cpu"\n{solver}\n')
    simulation = heatsim.Simulation.from_scenario(path, output=folder / f"out_{method}")
    simulation.run()
    with (folder / f"out_{method}" / "energy.csv").open() as file:
        return simulation, [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


@pytest.mark.quick("euler-float32", "stabilized-float64")
@pytest.mark.parametrize(
    ("method", "precision"), [("euler", "float32"), ("stabilized", "float64"), ("implicit", "float32")]
)
def test_the_ledger_closes_with_every_kind_of_source(method: str, precision: str, tmp_path: Path) -> None:
    _, rows = run(BLOCK + ALL, tmp_path, method, solver=f'precision = "{precision}"')
    bound = json.loads((tmp_path / f"out_{method}" / "summary.json").read_text())["energy_bound"]
    assert all(abs(row["residual (J)"]) <= bound for row in rows)
    assert bound < (2e-2 if precision == "float32" else 1e-8) * rows[-1]["sources (J)"]


def test_all_methods_in_time_agree(tmp_path: Path) -> None:
    fields = []
    for method in ("euler", "stabilized", "implicit"):
        simulation, _ = run(BLOCK + ALL, tmp_path, method)
        fields.append(simulation.temperature)
    rise = np.ptp(fields[0])
    for field in fields[1:]:
        assert np.abs(field - fields[0]).max() < 4e-3 * rise


def test_a_distributed_power_is_exact(tmp_path: Path) -> None:
    _, rows = run(BLOCK + SPREAD, tmp_path, "euler")
    for row in rows:
        t = row["time (s)"]
        assert row["sources (J)"] == pytest.approx(50.0 * (t + t**2 / 2.0), rel=1e-12, abs=1e-12)


def test_a_density_in_space_and_time_brings_its_integral(tmp_path: Path) -> None:
    """The integral over the body and time; factors in time are known to a millionth."""
    _, rows = run(BLOCK + SPACE, tmp_path, "implicit")
    volume = 0.1 * 0.05 * 0.02
    for row in rows:
        t = row["time (s)"]
        mean = 1e6 * 0.05 * (t + 1.0 - np.cos(t)) + 2e5 * (1.0 - exp(-t)) * np.sin(3.0) / 3.0
        assert row["sources (J)"] == pytest.approx(mean * volume, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("density", "at_3_s"),
    [
        (
            "1e6 + 1e9*t*(abs(x - 0.05125) < 1e-3)*(abs(y - 0.0175) < 8e-4)*(abs(z - 0.0095) < 4e-4)",
            24e9 + 0.6144 * 3e9,
        ),
        ("1e9*t*(abs(x - 0.05125) < 1e-3)*(abs(y - 0.0175) < 8e-4)*(abs(z - 0.0095) < 4e-4)", 0.6144 * 3e9),
        ("1e6*x/0.05 + 1e9*y/0.025*(t > 2.999)*(t < 3.02)", 24e9 + 24e12),
        ("where(abs(x - 0.05125) < 1e-3 and abs(t - 3) < 1e-4, 1e9*t, 0)", 600.0 * 0.8 * 3e9),
        ("0*t*x", 0.0),
    ],
)
def test_heat_of_one_cell_or_of_a_short_time_is_not_lost(density: str, at_3_s: float) -> None:
    """24,000 cells; a part of one has another course in time than all others; a pulse of 0.2 % of the run."""
    text = BLOCK.replace("[20, 10, 8]", "[40, 30, 20]")
    heated = problem(f'{text}[[sources]]\npower_density = "{density}"\n[time]\nend = 10.0\n').materials.heated
    amounts = np.array([float(amount.function.at(np.array([3.0]))[0]) for amount in heated.amounts])
    heat, _ = heated.densities(amounts, (), None)
    assert heat.sum() == pytest.approx(at_3_s, rel=1e-6)


@pytest.mark.parametrize(
    ("density", "power"),
    [
        ("1e9*exp(-((x - 0.0312)/4e-4)^2)", 1e9 * 4e-4 * np.pi**0.5 * 1e-3),  # cells of 5 mm
        ("1e9*exp(-((x - 0.0312)^2 + (y - 0.0211)^2 + (z - 0.0111)^2)/4e-4^2)", 1e9 * (4e-4 * np.pi**0.5) ** 3),
        ("where(x < 0.0312, 1e6, 0)", 1e6 * 0.0312 * 1e-3),
        ("where((x - 0.05)^2 + (y - 0.025)^2 + (z - 0.01)^2 < 4.9e-5, 1e6, 0)", 4e6 / 3 * np.pi * 4.9e-5**1.5),
        ("where(abs(x + y - 0.0712) < 1e-3, 1e6, 0)", 1e6 * 2e-3 * 1e-3),
    ],
)
def test_a_density_that_is_narrower_than_a_cell_brings_its_integral(density: str, power: float) -> None:
    heated = problem(f'{BLOCK}[[sources]]\npower_density = "{density}"\n[time]\nend = 1.0\n').materials.heated
    assert heated.weights.sum() * heated.volume == pytest.approx(power, rel=5e-4)


def test_a_density_may_jump_at_the_faces_of_cells() -> None:
    """A checkerboard whose jumps lie on the faces, to rounding: each cell has 1 or −1."""
    random = np.random.default_rng(7)
    for _ in range(20):
        cells = random.integers(3, 10, 3)
        size = [round(float(d), 5) for d in random.uniform(1e-3, 0.1, 3)]
        waves = "*".join(f"cos(pi*floor({a}/{s / int(n)!r}))" for a, s, n in zip("xyz", size, cells, strict=True))
        text = BLOCK.replace("[0.1, 0.05, 0.02]", str(size)).replace("[20, 10, 8]", str(cells.tolist()))
        weights = problem(f'{text}[[sources]]\npower_density = "{waves}"\n[time]\nend = 1.0\n').materials.heated.weights
        np.testing.assert_allclose(np.abs(weights), 1.0, rtol=1e-6)


@pytest.mark.quick("0")
@pytest.mark.parametrize("seed", range(2))
def test_densities_bring_their_integrals_however_wide_they_are(seed: int) -> None:
    """Random places, slopes and widths of 0.3 to 5 cells; no width at which another rule begins is seen in the heat."""
    random = np.random.default_rng(seed)
    points, weights = np.polynomial.legendre.leggauss(3)
    for _ in range(3):
        angle, width = random.uniform(0.0, np.pi), 5e-3 * np.exp(random.uniform(np.log(0.3), np.log(5.0)))
        along_x, along_y, middle = np.cos(angle) / width, np.sin(angle) / width, random.uniform(0.02, 0.08)
        slope = f"({along_x:.3f}*(x - {middle:.4f}) + {along_y:.3f}*(y - 0.024))"
        for density, allowed in (
            (f"exp(-{slope}^2)", 1e-5),
            (f"1 + sin({slope})", 1e-9),
            (f"max(0, {slope})", 1e-4),
            (f"abs({slope})", 1e-4),
        ):
            text = f'{BLOCK}[[sources]]\npower_density = "{density}"\n[time]\nend = 1.0\n'
            heated = problem(text).materials.heated
            parts = [(np.arange(count)[:, None] + 0.5 + 0.5 * points).reshape(-1) / count for count in (400, 200)]
            x, y = 0.1 * parts[0][:, None], 0.05 * parts[1]
            values = Expression(density, ("x", "y")).evaluate(x=x, y=y) + np.zeros((1200, 600))
            means = np.einsum("apbq,p,q->", values.reshape(400, 3, 200, 3), weights, weights)
            exact = means / (4 * 400 * 200) * 0.1 * 0.05 * 0.02
            assert heated.weights.sum() * heated.volume == pytest.approx(exact, rel=allowed)


@pytest.mark.parametrize(
    ("density", "words"),
    [
        ("1/(x - 0.03331)^2", "which is not bounded"),
        ("where(abs(x + y + z - 0.0712) < 2e-5, 1e9, 0)", "so finely within cells that its heat is not known to 0.1%"),
        ("1e9*exp(-((x - 0.0312 - 1e-5*t)/4e-4)^2)", "whose shape moves and at 0."),
    ],
)
def test_a_density_whose_heat_is_not_known_is_refused(density: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=re.escape(words)):
        problem(f'{BLOCK}[[sources]]\npower_density = "{density}"\n[time]\nend = 1.0\n')


@pytest.mark.parametrize("width", [1.0, 1e-3])
@pytest.mark.parametrize(
    "density",
    [
        "1e5*exp(-((t - 5.137)/{width})^2)*(1 + x)",
        "1e5*exp(-((t - 5.137)/{width})^2 + log(1 + x))",
        "sqrt(1e10*exp(-2*((t - 5.137)/{width})^2)*(1 + x)^2)",  # no product to be seen in it
    ],
)
def test_a_pulse_in_all_cells_is_not_lost(density: str, width: float) -> None:
    """A product a(t)·b(x) whose a is 0 nearly all the time."""
    source = f'[[sources]]\npower_density = "{density.format(width=width)}"\n[time]\nend = 10.0\n'
    derived = problem(f"{BLOCK}{source}")
    heated, (start, end) = derived.materials.heated, (np.zeros(1), 10.0)
    amounts = np.array([float(amount.function.mean(start, end)[0]) for amount in heated.amounts])
    heat, _ = heated.densities(amounts, (), None)
    assert heat.mean() == pytest.approx(1e5 * 1.05 * width * pi**0.5 / end, rel=1e-6)


@pytest.mark.parametrize("face", ["z_max", "z_min", "x_max", "y_min"])
@pytest.mark.parametrize("method", ["euler", "steady"])
def test_a_body_takes_what_does_not_pass_it(face: str, method: str, tmp_path: Path) -> None:
    """P·(1 − exp(−L/δ)) with the length L of the block along the beam; the spot lies inside the face."""
    spot = {"z": "[0.05, 0.025]", "x": "[0.025, 0.01]", "y": "[0.05, 0.01]"}[face[0]]
    text = BLOCK + (DEEP % (face, spot)).replace("radius = 0.003", "radius = 0.0015")
    _, rows = run(text, tmp_path, method, end=1.0)
    length = {"z": 0.02, "x": 0.1, "y": 0.05}[face[0]]
    name = "sources (J)" if method == "euler" else "source 1 (W)"
    reached = 1.0 - 2.0 * 3e-15
    assert rows[-1][name] == pytest.approx(50.0 * (1.0 - exp(-length / 0.004)) * reached, rel=1e-11)


def test_light_passes_gaps_between_bodies(tmp_path: Path) -> None:
    """A gap in the column moves the rest of the light down; it takes none."""
    gap = '[[regions]]\nname = "gap"\nmaterial = "void"\nbox = { min = [0, 0, 0.01], max = [0.1, 0.05, 0.015] }\n'
    text = BLOCK.replace("[material]", "[materials.steel]").replace(
        "cells = [20, 10, 8]", 'cells = [20, 10, 8]\nmaterial = "steel"'
    )
    body = problem(text + gap + DEEP % ("z_max", "[0.05, 0.025]") + "[time]\nend = 1.0\n")
    heated = body.materials.heated
    middle = heated.cells % 200 == 10 + 20 * 5
    planes, parts = heated.cells[middle] // 200, heated.weights[middle] * 0.0025
    assert planes.tolist() == [0, 1, 2, 3, 6, 7]
    depths = np.array([5, 4, 3, 2, 1, 0]) * 0.0025
    np.testing.assert_allclose(parts, np.exp(-depths / 0.004) - np.exp(-(depths + 0.0025) / 0.004), rtol=1e-13)


@pytest.mark.quick("euler", "stabilized", "steady")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit", "steady"])
def test_a_beam_on_a_curved_surface_brings_its_power(method: str, tmp_path: Path) -> None:
    """The spot lies inside the outline of the ball, so all of it is absorbed. The surface loses heat to air."""
    beam = 'face = "x_max", power = 8.0, absorptivity = 0.5, radius = 1.5e-3, path = [[0.0, 0.0]]'
    beam = f"[[sources]]\nbeam = {{ {beam} }}\n"
    _, rows = run(BALL + beam, tmp_path, method, end=2.0)
    if method == "steady":
        assert rows[-1]["source 1 (W)"] == pytest.approx(4.0, rel=1e-12)
        assert rows[-1]["void (W)"] == pytest.approx(-4.0, rel=1e-5)
        return
    assert rows[-1]["sources (J)"] == pytest.approx(8.0, rel=1e-12)
    assert rows[-1]["void (J)"] < 0.0
    assert abs(rows[-1]["residual (J)"]) < 1e-11


def test_a_beam_heats_a_ball_as_the_series_says(tmp_path: Path) -> None:
    """A wide beam, q·cosθ on the upper half: T − 300 K = Σ q_n·(r/a)^n·P_n/(nk/a + h), with Legendre coefficients q_n.

    The outline of the ball in cells, and so the power, is right to half a percent; a cell is 6 % of the radius.
    """
    a, h, k, q = 0.009, 200.0, 4.0, 4e4
    text = BALL.replace(", emissivity = 0.5", "").replace("conductivity = 40.0", "conductivity = 4.0")
    text = text.replace("[32, 32, 32]", "[48, 48, 48]")
    power = q * pi * 0.3**2 / 2.0
    beam = f'[[sources]]\nbeam = {{ face = "z_max", power = {power}, radius = 0.3, path = [[0.0, 0.0]] }}\n'
    simulation, _ = run(text + beam, tmp_path, "steady")
    nodes, weights = np.polynomial.legendre.leggauss(200)
    z = simulation.plan.problem.grid.centres(2)[10:38]
    known, cosines = np.full(len(z), 300.0), 0.5 * (nodes + 1.0)
    for n in range(40):
        legendre = np.polynomial.legendre.Legendre.basis(n)
        flux = q * (2 * n + 1) / 2.0 * float((0.5 * weights) @ (cosines * legendre(cosines)))
        known += flux * (np.abs(z) / a) ** n * legendre(np.sign(z)) / (n * k / a + h)
    found = simulation.temperature[10:38, 23:25, 23:25].mean(axis=(1, 2))
    assert np.abs(found - known).max() < 0.02 * np.ptp(known)


def test_a_source_that_falls_with_temperature_shortens_the_step() -> None:
    def limit(sources: str) -> float:
        return problem(BLOCK + sources + "[time]\nend = 1.0\n").limit.dt

    rate = 5e9 / (2000.0 * 500.0)
    assert 1.0 / limit('[[sources]]\npower_density = "5e9*(300 - T)"\n') == pytest.approx(
        1.0 / limit("") + rate, rel=1e-6
    )


INSULATED = BLOCK.replace('x_min = { type = "temperature", value = 300.0 }', "")
HALVES = INSULATED.replace("[material]", "[materials.steel]").replace("[20, 10, 8]", '[20, 10, 8]\nmaterial = "void"')
for _name, _low, _high in (("left", 0.0, 0.04), ("right", 0.06, 0.1)):
    HALVES += f'[[regions]]\nname = "{_name}"\nmaterial = "steel"\n'
    HALVES += f"box = {{ min = [{_low}, 0, 0], max = [{_high}, 0.05, 0.02] }}\n"
COOLED = '[[sources]]\npower_density = "1e4*(320 - T)"\n'


@pytest.mark.parametrize("source", [COOLED, '[[sources]]\npower_density = "1e4*(T - 320)"\nscale = -1.0\n'])
def test_heat_that_falls_with_temperature_holds_an_insulated_body(source: str, tmp_path: Path) -> None:
    simulation, _ = run(INSULATED + source, tmp_path, "steady")
    np.testing.assert_allclose(simulation.temperature, 320.0, atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        INSULATED + COOLED + "scale = -1.0\n",
        INSULATED + COOLED + "scale = 0.0\n",
        HALVES + COOLED + 'region = "left"\n[[sources]]\nregion = "right"\npower = 1.0\ndistribution = "x"\n',
    ],
)
def test_other_heat_does_not_hold_it(text: str, tmp_path: Path) -> None:
    """Heat that rises with temperature, or is none, or belongs to another body."""
    with pytest.raises(ScenarioError, match="no steady temperature"):
        run(text, tmp_path, "steady")


def test_heat_at_no_temperature_is_no_number() -> None:
    """A method whose trial step overflows then rejects it, instead of looking up an entry that does not exist."""
    value, _ = tabulate(read_density("1e3*T"), 1.0, 1e4).at(np.array([np.nan, np.inf, 300.0]))  # type: ignore[arg-type]
    np.testing.assert_allclose(value, [np.nan, 1e7, 3e5], rtol=1e-12)


def test_a_table_meets_an_arrhenius_law() -> None:
    density = read_density("1e12*exp(-1.2e4/T)")
    assert not isinstance(density, float | str)
    table = tabulate(density, 1.0, 1e4)  # type: ignore[arg-type]
    T = np.array([350.0, 501.3, 997.7, 4321.0])
    exact = 1e12 * np.exp(-1.2e4 / T)
    value, slope = table.at(T)
    np.testing.assert_allclose(value, exact, rtol=2e-4)
    np.testing.assert_allclose(slope, exact * 1.2e4 / T**2, rtol=2e-2)


def test_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    beam = '[[sources]]\nbeam = { face = "y_min", power = 8.0, radius = 1e-3, path = [[0.0, 0.0]] }\n'
    run(BALL + HOTTER + beam, tmp_path, "euler", end=2.0)
    path, parts = tmp_path / "euler.toml", tmp_path / "parts"
    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, 50, runs.interrupt)
        with pytest.raises(Interrupted):
            heatsim.Simulation.from_scenario(path, output=parts).run()
    heatsim.Simulation.resume(parts).run()
    assert (parts / "energy.csv").read_bytes() == (tmp_path / "out_euler" / "energy.csv").read_bytes()


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('power_density = "1e6*x*T"', ["sources.0.power_density", "cannot have x too"]),
        ('power_density = "1e6*sin(50*x - t)*sin(1/(0.01 + x*t))"', ["sources.0.power_density", "its shape moves"]),
        ('power_density = "1e6/x"', ["sources.0.power_density", "not bounded"]),
        ('power_density = "1e6/x"\nbox = { min = [0.01, 0, 0], max = [0.1, 0.05, 0.02] }', []),
        ('power_density = "1e6*log(x - 0.01)"', ["sources.0.power_density", "x = 0.0025", "finite"]),
        ('power_density = "1e-9*x/(t - 0.321)^2"', ["sources.0.power_density", "near t = 0.321 s"]),
        ('power_density = "1e40*x"', ["sources.0.power_density", "at most 1e+30"]),
        ('power = 5.0\ndistribution = "1e307*exp(x)"', ["sources.0.distribution", "at most 1e+30"]),
        ('power_density = "1e6*log(T - 300)"', ["sources.0.power_density", "temperature_range"]),
        ('power = 5.0\ndistribution = "x - 0.05"', ["sources.0.distribution", "at least 0"]),
        ('power_density = 5.0\ndistribution = "x"', ["sources.0.distribution", "needs power"]),
        ("power = 5.0\ntemperature_range = [250.0, 400.0]", ["sources.0.temperature_range", "expression in T"]),
        ('power_density = "1e4/(T - 300)"', ["sources.0.power_density", "without bound near 300", "temperature_range"]),
        ('power_density = "where(T < 300, 1e4, 2e4)"', []),
        ('power = "5*t"', ["sources.0.power", "scale", "distribution"]),
        ("power = { times = [0, 1], values = [1, 2] }", ["write power = 1.0, and this table as scale"]),
        (
            'beam = { face = "z_max", radius = 0.01, path = [[0.01, 0.01]], power = "5*t" }',
            ["sources.0.beam.power", "as scale"],
        ),
    ],
)
def test_what_cannot_be_is_said(source: str, texts: list[str]) -> None:
    text = f"{BLOCK}[[sources]]\n{source}\n[time]\nend = 1.0\n"
    if not texts:
        problem(text)
        return
    with pytest.raises(ScenarioError) as caught:
        problem(text)
    for expected in texts:
        assert expected in str(caught.value)
