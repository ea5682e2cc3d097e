"""The method that "auto" takes: work is counted from numbers of the problem, and agrees with what runs took."""

import json
import tomllib
from math import inf
from pathlib import Path

import numpy as np
import pytest
import runs
from cuda_host import gpu

from heatsim import Simulation, device
from heatsim.errors import ScenarioError
from heatsim.physics.drives import jumps
from heatsim.physics.drives.jumps import Jumps
from heatsim.physics.estimates import method_work
from heatsim.physics.estimates.method_choice import MethodChoice
from heatsim.physics.estimates.method_work import (
    WorkEstimate,
    count_work,
    euler_steps,
    first_tolerance,
    stages_between,
    steps_between,
)
from heatsim.physics.problem import HeatProblem
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe
from heatsim.scenario import load
from heatsim.solver import device_bytes
from heatsim.solver.stabilized.scheme import MOST_STAGES, all_stages
from heatsim.storage import folder

SCENARIOS = Path(__file__).parents[1] / "scenarios"
# A body that Euler's method would need 30,000 steps for.
LONG = """
title = "Block"
domain = { size = [0.1, 0.1, 0.1], cells = [CELLS, CELLS, CELLS] }
material = { conductivity = 237.0, density = 2700.0, specific_heat = 900.0 }
initial = { temperature = "300 + 100*x/0.1" }
boundaries = { default = { type = "convection", coefficient = 500.0, ambient = 300.0 } }
time = { end = END }
output = { figures = false }
solver = { device = "cpu" }
[[probes]]
name = "corner"
point = [0.0, 0.0, 0.0]
"""
# A foil whose cells are 25 µm high.
FOIL = """
title = "Foil"
domain = { size = [0.1, 0.1, 0.002], cells = [10, 10, 80] }
material = { conductivity = 200.0, density = 2700.0, specific_heat = 900.0 }
initial = { temperature = 350.0 }
boundaries = { default = { type = "convection", coefficient = 20.0, ambient = 300.0 } }
time = { end = 2000.0 }
output = { figures = false }
solver = { device = "cpu" }
[[probes]]
name = "corner"
point = [0.0, 0.0, 0.0]
"""


def problem(at, *overrides):
    return HeatProblem.from_scenario(load(runs.write(at), ["time.method=stabilized", *overrides]))


def chosen(at: Path, text: str, *overrides: str) -> HeatProblem:
    """The problem of a scenario that leaves the method to "auto"."""
    return HeatProblem.from_scenario(load(runs.write(at, text), overrides))


def block(cells: int = 48, end: float = 100.0) -> str:
    return LONG.replace("CELLS", str(cells)).replace("END", str(end))


def even_block() -> str:
    """A block that hardly changes beside its tolerance, in few steps of Euler's method."""
    text = block(8, 10.0).replace('"300 + 100*x/0.1"', "300.5")
    return text.replace("time = { end = 10.0 }", "time = { end = 10.0, tolerance = 1e-3 }")


@pytest.mark.parametrize(
    ("euler", "measured", "edges", "melts"),
    [
        (7_990, 546, 1, False),  # a quenched cube of 64³ cells
        (127_836, 2_195, 1, False),  # of 256³ cells
        (2_627, 318, 1, False),  # a block that radiates
        (419_430, 18_101, 14, False),  # a wall through a week, whose surroundings turn twice a day
        (25_205, 7_053, 1, True),  # wax that melts in steel
        (54_270, 3_918, 6, False),  # a power module, switched five times
    ],
)
def test_counted_stages_are_those_of_runs_at_a_thousandth_of_the_range(euler, measured, edges, melts):
    """Stages that prototypes of the method took, which the factor was not fitted to but for the cubes."""
    expected = stages_between(np.linspace(0.0, 0.9 * euler, edges + 1), 1.0, 1e-3, 514.0)
    fewest, most = (3.0, 12.0) if melts else (2.0 / 3.0, 2.0)
    assert fewest * expected <= measured <= most * expected


@pytest.mark.parametrize(
    ("euler", "edges", "stages", "applications"),
    [
        (7_990, 1, 672, 418),  # the quenched cube of 64³ cells
        (31_959, 1, 1_524, 423),  # of 128³ cells
        (109_758, 1, None, 820),  # a fin of 40 cells
        (18_090, 2, 1_942, 2_466),  # the power module of 24,000 cells
        (72_357, 2, 3_848, 2_813),  # of 192,000 cells
        (426_119, 1, 19_202, 2_768),  # a slab of 256 cells, where float32 limits the stages of a step
        (26_010, 1, 1_700, 836),  # a plate
        (3_574, 1, 604, 862),  # a block that radiates
    ],
)
def test_counted_work_is_that_of_runs_with_the_default_tolerance(euler, edges, stages, applications):
    """Runs in float32 with 0.02 % of the range: stages and applications within a factor of two of the estimate."""
    times = np.linspace(0.0, 0.9 * euler, edges + 1)
    if stages is not None:
        assert 0.5 < stages / stages_between(times, 1.0, 2e-4, 60.0) < 2.2
    assert 0.4 < applications / (21.0 * steps_between(times, 1.0, 2e-4)) < 2.2


@pytest.mark.quick(
    "slab_convection-implicit-changes1", "photograph-stabilized-changes3", "laser_track-stabilized-changes5"
)
@pytest.mark.parametrize(
    ("name", "method", "changes"),
    [
        ("wall_year", "stabilized", ["time.end=3 days", "output.every=1 d", "output.probe_every=1 d"]),
        ("slab_convection", "implicit", []),
        ("day_night_wall", "stabilized", ["time.end=1 d", "output.every=1 d", "output.probe_every=1 d"]),
        ("photograph", "stabilized", []),
        ("cube", "stabilized", ["domain.cells=[32, 32, 32]"]),
        ("laser_track", "stabilized", ["time.end=0.1", "output.every=0.1"]),
    ],
)
def test_counted_work_is_that_of_a_run(name: str, method: str, changes: list[str], tmp_path: Path) -> None:
    """Weather has kinks, a slab one jump, a wall swings, a picture is rough, a cube has weak films, a beam moves."""
    changes = [f"time.method={method}", "output.figures=false", "solver.device=cpu", *changes]
    simulation = Simulation.from_scenario(SCENARIOS / f"{name}.toml", changes, output=tmp_path / "run")
    expected = count_work(simulation.plan.problem, first_tolerance(simulation.plan.problem))
    simulation.run()
    found = simulation.state.method
    assert found is not None
    units, between = found.work.stages, expected.stages
    if method == "implicit":
        units, between = found.counts["applications"], expected.applications
    assert 1.0 / 1.45 <= units / (between[0] * between[1]) ** 0.5 <= 1.45


def test_stages_grow_with_the_root_of_time_and_slowly_with_the_tolerance():
    edges = np.array([0.0, 1e4])
    few, more = stages_between(edges, 1.0, 1e-3, 514.0), stages_between(4.0 * edges, 1.0, 1e-3, 514.0)
    assert more / few == pytest.approx(2.0, rel=1e-12)
    tight = stages_between(edges, 1.0, 1e-4, 514.0)
    assert tight / few == pytest.approx(10.0 ** (1.0 / 6.0), rel=1e-12)


def test_steps_of_implicit_hardly_depend_on_the_grid():
    """Twice as many cells along each axis: ln 4/θ more steps."""
    coarse, fine = (steps_between(np.array([0.0, 1.0]), limit, 2e-4) for limit in (1e-4, 2.5e-5))
    assert coarse < fine < 1.2 * coarse


def test_where_rounding_limits_a_step_stages_grow_with_time():
    edges = np.array([0.0, 1e6])
    longest = 0.654 * 60.0**2 / 2.0
    assert stages_between(edges, 1.0, 2e-4, 60.0) == pytest.approx(1e6 / longest * 60.0)


def test_a_short_interval_takes_a_whole_step():
    """Six stages are the fewest of a step; with 1,000 jumps there are 1,001 steps."""
    assert stages_between(np.linspace(0.0, 1.0, 1002), 1.0, 1e-3, 514.0) == 6 * 1001


def test_numbers_of_the_polynomials_are_those_of_their_tables():
    stages = all_stages()
    assert stages[0].count == 6
    assert stages[-1].count == MOST_STAGES["float64"] == 514
    assert method_work.MOST_STAGES == MOST_STAGES
    assert stages[-1].beta / stages[-1].count ** 2 == pytest.approx(0.654, rel=2e-2)


def test_nothing_conducts():
    assert euler_steps(10.0, inf, 0.9) == 1
    assert stages_between(np.array([0.0, 10.0]), inf, 1e-3, 514.0) == 6


@pytest.mark.parametrize(
    ("stabilized", "implicit", "taken"),
    [(1.0, 9.0, "stabilized"), (9.0, 1.0, "implicit"), (1.01, 1.02, "euler"), (2.0, 3.0, "euler")],
)
def test_the_choice_needs_a_gain_of_three(stabilized, implicit, taken):
    none = Jumps(np.zeros(0), np.zeros(0, dtype=bool))
    costs = {"euler": 3.0, "stabilized": stabilized, "implicit": implicit}
    assert WorkEstimate(1, (1, 1), (1, 1), 1.0, none, 0.1, 0.1, costs).cheapest == taken
    # Beyond the tolerance Euler's method is not taken, however cheap it is.
    best = min(("stabilized", "implicit"), key=costs.__getitem__)
    assert WorkEstimate(1, (1, 1), (1, 1), 1.0, none, 0.1, 0.11, costs).cheapest == best


@pytest.mark.parametrize(
    ("override", "measured"),
    [
        ("domain.cells=[64, 64, 64]", 4.4),
        ('material.conductivity="237*(373/T)^0.5"', 5.1),
        ("boundaries.default.emissivity=0.9", 4.9),
    ],
)
def test_counted_gains_are_those_of_runs_on_a_cpu(override, measured):
    """CPU time of "euler" / that of "stabilized" for the quenched cube, within a factor of two."""
    found = HeatProblem.from_scenario(load(SCENARIOS / "cube.toml", ["domain.cells=[48, 48, 48]", override]))
    costs = found.choice.work.costs
    assert 0.5 < costs["euler"] / costs["stabilized"] / measured < 2.0
    assert found.choice.method == "stabilized"


def test_auto_is_the_default_unless_the_length_of_steps_is_set(tmp_path):
    path = runs.write(tmp_path, block())
    assert load(path).time.method == "auto"
    for given in ("time.dt=auto", "time.safety=0.5"):
        assert load(path, [given]).time.method == "euler"
    with pytest.raises(ScenarioError, match=r'time\.safety: got 0\.5 with method = "auto"'):
        load(path, ["time.method=auto", "time.safety=0.5"])


def test_each_body_gets_the_method_that_suits_it(tmp_path):
    """Few steps of small changes: euler. Many steps, smooth: stabilized. Flat cells: implicit."""
    assert chosen(tmp_path, even_block()).scenario.time.method == "euler"
    assert chosen(tmp_path, block()).scenario.time.method == "stabilized"
    assert chosen(tmp_path, FOIL).scenario.time.method == "implicit"


def test_the_choice_depends_on_neither_device_nor_kernel(tmp_path, monkeypatch):
    found = [chosen(tmp_path, block(), f"solver.kernel={name}").choice for name in ("auto", "numba", "numpy")]
    monkeypatch.setattr(device, "choose", lambda wanted: gpu.host_device())
    found.append(chosen(tmp_path, block(), "solver.device=cuda").choice)
    assert len({(choice.method, choice.reason) for choice in found}) == 1


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ('boundaries.default.ambient="where(sin(1e4*t) > 0, 300, 310)"', "end at each jump"),
    ],
)
def test_auto_never_takes_a_method_that_refuses_the_scenario(override, words, tmp_path, monkeypatch):
    """Each of these would have been refused at the start of a run; the run begins with Euler's method."""
    monkeypatch.setattr(jumps, "MOST_JUMPS", 1000)
    found = chosen(tmp_path, block(), override)
    assert found.scenario.time.method == "euler"
    assert words in found.choice.reason
    assert found.choice.work is None
    assert found.timeline.last_step > 1000


def test_a_tolerance_that_float32_cannot_resolve_is_refused_where_euler_would_not_keep_it(tmp_path):
    """The run names the least tolerance, and float64. Euler's steps were off by up to 50 times the tolerance."""
    path = runs.write(tmp_path, block(8))
    tight = ["time.tolerance=1e-5", "solver.precision=float32"]
    simulation = Simulation.from_scenario(path, tight, output=tmp_path / "run")
    assert "euler may be off by" in simulation.plan.problem.choice.reason
    with pytest.raises(ScenarioError, match=r"float32 resolves errors of .* or set solver.precision"):
        simulation.run()


def test_auto_stays_auto_in_the_resolved_scenario(tmp_path):
    """Running it makes the same choice, and gives the same bits."""
    for text, method in ((even_block(), "euler"), (block(32, 1000.0), "stabilized"), (FOIL, "implicit")):
        first, second = tmp_path / method, tmp_path / f"{method} again"
        Simulation.from_scenario(runs.write(tmp_path, text), output=first).run()
        written = tomllib.loads((first / folder.SCENARIO).read_text())["time"]
        assert written["method"] == "auto"
        again = Simulation.from_scenario(first / folder.SCENARIO, output=second)
        assert again.plan.problem.choice.method == method
        again.run()
        assert runs.results(second)["checkpoint"] == runs.results(first)["checkpoint"]
        summary = json.loads((first / folder.SUMMARY).read_text())
        assert summary["method"] == method
        assert (summary["tolerance"] is None) == (summary["stages"] is None) == (method == "euler")
        assert (summary["rejected"] is None) == (method == "euler")


def test_resume_keeps_the_method_of_the_run(tmp_path, monkeypatch):
    """Also if this heatsim would choose another; the tolerance of the user stays in scenario.toml."""
    out = tmp_path / "out"
    Simulation.from_scenario(runs.write(tmp_path, even_block()), ["time.tolerance=0.1"], output=out).run()
    assert tomllib.loads((out / folder.SCENARIO).read_text())["time"]["tolerance"] == 0.1
    monkeypatch.setattr("heatsim.physics.problem.choose_method", lambda *given: MethodChoice("implicit", ""))
    assert Simulation.resume(out).plan.problem.scenario.time.method == "euler"


def test_a_tolerance_that_is_not_used_is_named(tmp_path):
    path = runs.write(tmp_path, even_block())
    simulation = Simulation.from_scenario(path, ["time.tolerance=0.1"], output=tmp_path / "run")
    found = simulation.plan.problem
    assert found.scenario.time.method == "euler"
    assert found.scenario.time.tolerance is None
    assert simulation.warnings == [f"auto takes euler {found.choice.reason}; its steps do not use time.tolerance"]
    assert chosen(tmp_path, block(), "time.tolerance=0.1").scenario.time.tolerance == 0.1


def test_plan_shows_stages_as_a_range(tmp_path):
    """With the memory of five fields, without coefficients of Euler steps, without advice about their rounding."""
    long = ("time.end=2e4", "output.every=1e3", "output.probe_every=1e3", "boundaries.x_min.value=310")
    plan = Plan.of(problem(tmp_path, *long, "time.tolerance=0.05 K"))
    text = describe(plan)
    work = count_work(plan.problem, first_tolerance(plan.problem))
    assert "for an error of the run in time of 0.05 K" in text
    assert "stabilized   about" in text
    euler = Plan.of(HeatProblem.from_scenario(load(tmp_path / "mixed.toml", [*long, "time.method=euler"])))
    assert work.stages[0] < work.stages[1] < work.euler <= euler.problem.timeline.last_step <= 1.01 * work.euler
    assert "c0" not in text
    assert "dt  " not in text
    assert euler.problem.timeline.last_step > 10_000
    assert [device_bytes.of_run(of.problem).fields for of in (plan, euler)] == [5, 2]
    default = describe(Plan.of(problem(tmp_path)))
    assert "0.02 % of the temperature range" in default


def test_plan_shows_each_method_that_fits_and_says_which_one_auto_takes(tmp_path):
    taken = chosen(tmp_path, block())
    text = describe(Plan.of(taken))
    part = taken.choice.work.costs["stabilized"] / taken.choice.work.costs["euler"]
    assert f"method       stabilized; auto takes it because it costs about {100.0 * part:.2g} % of euler" in text
    lines = {line.split(" ")[0]: line for line in text.splitlines()}
    assert "steps; " in lines["euler"]
    assert "stages; " in lines["stabilized"]
    assert "applications of the operator; " in lines["implicit"]
    for name in ("euler", "stabilized", "implicit"):
        assert f"{Plan.of(taken.with_method(name)).device_bytes / 2**20:.4g} MiB on the device" in lines[name]
    given = describe(Plan.of(chosen(tmp_path, block(), "time.method=euler")))
    assert "method       euler; auto would take stabilized because" in given


def test_plan_counts_jumps(tmp_path):
    # The coefficient of x_max has a kink at 5 s.
    switched = 'sources=[{power = 1.0, during = [0.1, 0.2], scale = "abs(t - 0.15)"}]'
    text = describe(Plan.of(problem(tmp_path, switched)))
    assert "steps end    at 2 jumps and 2 kinks of conditions or sources" in text
    assert "steps end " not in describe(Plan.of(problem(tmp_path, 'boundaries.x_max={type = "insulated"}')))
