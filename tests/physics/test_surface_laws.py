"""Film coefficients and emissivities that depend on the temperature of the surface."""

import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heatsim import Simulation
from heatsim.errors import ScenarioError
from heatsim.physics.conditions.law_nodes import make_nodes
from heatsim.physics.conditions.surface_laws import LawAtTime, rise_and_slope
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import Scenario, load, parse, write_resolved
from heatsim.storage import folder, tables

NATURAL = "1.32*(abs(T - Tamb)/0.05)^0.25"
BLOCK = """
title = "block"
domain = { size = [0.02, 0.02, 0.01], cells = [6, 5, 4] }
material = { conductivity = 2.0, density = 1000.0, specific_heat = 500.0 }
initial.temperature = 400.0
time.end = 50.0
output = { figures = false, fields = false, every = 50.0, probe_every = 10.0 }
solver = { device = "cpu", precision = "float64" }
probes = [{ name = "middle", point = [0.01, 0.01, 0.005] }, { name = "top", point = [0.01, 0.01, 0.01] }]
"""
FACES = f'boundaries.default = {{ type = "convection", coefficient = "{NATURAL}", ambient = 300.0 }}\n'


def run(at: Path, text: str, *overrides: str) -> tuple[Simulation, np.ndarray]:
    """A run, and the last row of its probes."""
    path = at / "case.toml"
    path.write_text(text, encoding="utf-8")
    simulation = Simulation.from_scenario(path, overrides, output=at / "run", overwrite=True)
    simulation.run()
    return simulation, tables.read(simulation.folder / folder.PROBES)[1][-1, 1:]


def assert_energy_closes(simulation: Simulation) -> None:
    names, rows = tables.read(simulation.folder / folder.ENERGY)
    bound = json.loads((simulation.folder / folder.SUMMARY).read_text(encoding="utf-8"))["energy_bound"]
    residual = next(number for number, name in enumerate(names) if name.startswith("residual"))
    assert np.abs(rows[:, residual]).max() <= bound
    assert bound < 1e-6


@pytest.mark.quick("implicit-0.01", "euler-0.02")
@pytest.mark.parametrize(("method", "error"), [("euler", 0.02), ("stabilized", 0.01), ("implicit", 0.01)])
def test_a_lumped_body_cools_as_it_must(tmp_path: Path, method: str, error: float) -> None:
    """C·dθ/dt = −A·c·θ^(5/4): θ = (θ0^(−1/4) + A·c·t/(4·C))^(−4), for a cell that conducts well: Bi = 1e-4."""
    text = BLOCK.replace("[6, 5, 4]", "[1, 1, 1]").replace("conductivity = 2.0", "conductivity = 400.0") + FACES
    settings = ["time.end=600", "output.every=600", "output.probe_every=100", f"time.method={method}"]
    settings += {"euler": ["time.dt=0.02"], "stabilized": ["time.tolerance=1e-4"], "implicit": ["time.tolerance=5e-4"]}[
        method
    ]
    _, probes = run(tmp_path, text, *settings)
    film, area, capacity = 1.32 / 0.05**0.25, 2 * (0.02 * 0.02 + 2 * 0.02 * 0.01), 1000.0 * 500.0 * 4e-6
    expected = 300.0 + (100.0**-0.25 + area * film * 600.0 / (4.0 * capacity)) ** -4
    assert probes[0] == pytest.approx(expected, abs=error)


@pytest.mark.quick("stabilized", "steady")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit", "steady"])
def test_expressions_without_a_slope_are_constant_values(tmp_path: Path, method: str) -> None:
    """A table of straight lines is then the condition itself, on faces, patches that share cells, and void surfaces."""
    body = (
        '[domain]\nmaterial = "solid"\nsize = [0.02, 0.02, 0.01]\ncells = [6, 5, 4]\n'
        "[materials.solid]\nconductivity = 2.0\ndensity = 1000.0\nspecific_heat = 500.0\n"
        '[[regions]]\nname = "hole"\nmaterial = "void"\n'
        "sphere = { centre = [0.01, 0.01, 0.005], radius = 0.004 }\n"
        '[[patches]]\nface = "z_max"\nrectangle = { min = [0.001, 0.001], max = [0.012, 0.013] }\n'
        'type = "convection"\ncoefficient = COEFFICIENT\nambient = 350.0\n[[sources]]\npower = 0.5\n'
    )
    faces = (
        'boundaries.default = { type = "convection", coefficient = COEFFICIENT, ambient = "300 + t" }\n'
        'boundaries.void = { type = "convection", coefficient = COEFFICIENT, ambient = 320.0 }\n'
    )
    start = BLOCK.replace("domain = { size = [0.02, 0.02, 0.01], cells = [6, 5, 4] }\n", "").split("material =")[0]
    rest = "\n".join(line for line in BLOCK.splitlines()[4:] if not line.startswith("probes"))
    probe = '[[probes]]\nname = "top"\npoint = [0.01, 0.01, 0.01]\n[[probes]]\nname = "edge"\npoint = [0.0, 0.0, 0.0]\n'
    text, found = start + rest + "\n" + faces + body + probe, []
    chosen = {"euler": ["time.dt=0.05"], "steady": ['time={method="steady", tolerance=1e-7}']}
    settings = chosen.get(method, [f"time.method={method}", "time.tolerance=1e-3"])
    for coefficient in ("12.0", '"12 + 0*T"'):
        simulation, probes = run(tmp_path, text.replace("COEFFICIENT", coefficient), *settings)
        if method != "steady":
            assert_energy_closes(simulation)
        found.append(probes)
    # Steps that follow a tolerance have other lengths.
    np.testing.assert_allclose(found[1], found[0], atol=1e-8 if method == "euler" else 5e-3)


@pytest.mark.quick("stabilized", "euler")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_energy_closes_and_probes_show_the_surface(tmp_path: Path, method: str) -> None:
    text = BLOCK + FACES.replace("300.0", '"300 + 5*sin(t)", emissivity = "0.3 + 0.0005*T", surroundings = 290.0')
    simulation, (middle, top) = run(tmp_path, text, f"time.method={method}")
    assert_energy_closes(simulation)
    assert 300.0 < top < middle < 400.0


def test_a_steady_state_is_where_a_long_run_ends(tmp_path: Path) -> None:
    """A source of 1 W; the balance of the whole surface has no other solution."""
    text = BLOCK + FACES + "[[sources]]\npower = 1.0\n"
    _, steady = run(tmp_path, text, 'time={method="steady", tolerance=1e-6}')
    _, settled = run(
        tmp_path, text, "time.end=3000", 'time.method="implicit"', "time.tolerance=1e-3", "output.every=3000"
    )
    np.testing.assert_allclose(settled, steady, atol=5e-3)


@settings(max_examples=60)
@example(69921392)  # a segment that falls 3e7 times as steeply as the half cell conducts
@given(st.integers(0, 2**31))
def test_the_balance_of_heat_is_solved_on_the_right_segment(seed: int) -> None:
    """Against the residual: q(T_s) + beam = K·(T_s − T) with the table's own straight lines."""
    rng = np.random.default_rng(seed)
    nodes = make_nodes(rng.uniform(1.0, 500.0))
    conductance, beam = 10.0 ** rng.uniform(-1.0, 7.0), rng.choice([0.0, 1e5])
    changes = -rng.exponential(1.0, len(nodes) - 1) * rng.choice([0.0, 1.0, 300.0], len(nodes) - 1)
    # As in boiling, the flux also rises, on some segments nearly as fast as the half cell conducts.
    rising = rng.random(len(changes)) < rng.choice([0.0, 0.3, 0.9])
    changes[rising] = (rng.uniform(0.0, 0.98, len(changes)) * conductance * np.diff(nodes))[rising]
    fluxes = np.concatenate(([0.0], np.cumsum(changes)))
    fluxes -= np.interp(0.0, nodes, fluxes)
    T = rng.uniform(-400.0, 2e3, 50)
    rise, slope = rise_and_slope(LawAtTime(20.0, nodes, fluxes), conductance, T, beam)
    at = T + rise - 20.0
    inside = (at > nodes[0]) & (at < nodes[-1])
    residual = np.interp(at, nodes, fluxes) + beam - conductance * rise
    size = np.abs(fluxes).max() + beam + conductance * np.abs(T).max()
    # T_s is rounded, which a steep segment turns into a flux.
    rounded = np.spacing(2.0 * np.abs(T).max()) * np.abs(np.diff(fluxes) / np.diff(nodes)).max()
    assert np.abs(residual[inside]).max(initial=0.0) <= 1e-10 * size + rounded
    assert (slope > -conductance).all()


def test_a_law_is_written_as_it_was(tmp_path: Path) -> None:
    scenario = parse(tomllib.loads(BLOCK + FACES), tmp_path / "case.toml")
    write_resolved(scenario, tmp_path)
    assert load(tmp_path / "scenario.toml") == scenario
    assert NATURAL in (tmp_path / "scenario.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("coefficient", "parts"),
    [
        ("5*abs(T - 300)*t", ["cannot have t too", "the ambient temperature may change"]),
        ("5*abs(T - 300)*x", ["cannot have x too"]),
        ("5*abs(Ts - 300)", ['"Ts" is not known', "T, Tamb"]),
        ("5*abs(T - 300", ["cannot be read", "in T and Tamb (in K)"]),
        ("5 W/m2K", ['write "5 W/(m^2 K)"']),
    ],
)
def test_expressions_that_cannot_be_read_are_refused(coefficient: str, parts: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(tomllib.loads(BLOCK + FACES.replace(NATURAL, coefficient)), "case.toml")
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(("coefficient", "value"), [("T - Tamb - 1", "-1"), ("1/(T - Tamb)", "inf")])
def test_values_that_are_impossible_at_the_ambient_temperature_are_refused(coefficient: str, value: str) -> None:
    text = BLOCK + FACES.replace(NATURAL, coefficient)
    found = f'got "{coefficient}", which is {value} at T = Tamb = 300 K; a heat transfer coefficient must be'
    with pytest.raises(ScenarioError, match=re.escape(f".coefficient: {found}")):
        HeatProblem.from_scenario(parse(tomllib.loads(text), "case.toml")).rows(np.zeros(1), 1e-3, 300.0)


def test_a_table_is_written_as_it_was_and_its_mistakes_are_named(tmp_path: Path) -> None:
    """A table with one value is that value."""

    def read(table: str) -> Scenario:
        return parse(tomllib.loads(BLOCK + FACES.replace(f'"{NATURAL}"', table)), tmp_path / "case.toml")

    written = read('{ temperatures = ["20 degC", 400], values = ["5 W/(m^2 K)", 10] }')
    write_resolved(written, tmp_path)
    assert load(tmp_path / "scenario.toml") == written
    assert read("{ temperatures = [300, 400], values = [7, 7] }") == read("7.0")
    for table, message in (
        ("{ temperatures = [400, 300], values = [5, 10] }", "got 300.0 after 400.0; temperatures must increase"),
        ("{ temperatures = [300, 400], values = [5, -1] }", "a heat transfer coefficient must be"),
        ("{ temperatures = [300, 400] }", "values"),
    ):
        with pytest.raises(ScenarioError, match=message):
            read(table)


def test_a_constant_flux_with_its_rounding_has_a_steady_state(tmp_path: Path) -> None:
    """q = −1000 W/m² beyond 1 K from the ambient temperature. The block begins there, and cools to where it is less."""
    text = (
        BLOCK
        + 'boundaries.x_max = { type = "convection", coefficient = "1e3/max(abs(T - Tamb), 1)", ambient = 300.0 }\n'
    )
    _, (_, top) = run(tmp_path, text + "[[sources]]\npower = 0.1\n", 'time={method="steady", tolerance=1e-5}')
    assert 300.5 < top < 303.0
    assert not HeatProblem.from_scenario(load(tmp_path / "case.toml")).boundary.laws_rise
