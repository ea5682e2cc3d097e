"""Runs that differ in powers share cell types and stability limits; other runs do not."""

import os
from pathlib import Path

import pytest

from heatsim.physics.problem import HeatProblem
from heatsim.scenario import load

SCENARIO = Path("scenarios/power_module.toml")
SMALL = ("domain.cells=[20, 15, 20]", "sources.0.power=100.0")


@pytest.fixture(scope="module")
def first() -> HeatProblem:
    return HeatProblem.from_scenario(load(SCENARIO, SMALL))


@pytest.mark.parametrize(
    ("changes", "shared"),
    [
        (("sources.0.power=-5.0", "sources.1.power=80.0", "title=other"), True),
        (("sources.0.during=[0.0, 1.0]",), False),
        (("boundaries.z_min.coefficient=4000.0",), False),
        (("regions.1.box.max=[0.03, 0.026, 0.00325]",), False),
        (("materials.copper.conductivity=391.0",), False),
        (
            ("materials.copper.conductivity=400 - 0.07*(T - 300)", "materials.copper.temperature_range=[200, 900]"),
            False,
        ),
        (("time.end=3.5",), False),
    ],
    ids=["powers", "times", "boundary", "region", "material", "varying", "end"],
)
def test_only_runs_with_other_powers_share_a_body(first: HeatProblem, changes: tuple[str, ...], shared: bool) -> None:
    scenario = load(SCENARIO, (*SMALL, *changes))
    problem, alone = HeatProblem.from_scenario(scenario, like=first), HeatProblem.from_scenario(scenario)
    assert (problem.materials is first.materials, problem.stability is first.stability) == (shared, shared)
    assert problem.boundary.scenario is problem.scenario
    assert problem.limit == alone.limit
    assert problem.scenario == alone.scenario
    assert problem.timeline.step_lengths == alone.timeline.step_lengths
    times = problem.timeline.step_times(0, 3)
    heats = [of.sources.heat(times, 1e-4, times * 0.0 + 1e-4).tolist() for of in (problem, alone)]
    assert heats[0] == heats[1]


def test_a_body_whose_input_file_was_changed_is_painted_again(tmp_path: Path) -> None:
    for name in ("cooling_gear.toml", "gear.stl"):
        (tmp_path / name).write_bytes((SCENARIO.parent / name).read_bytes())

    def problem(power: float, like: HeatProblem | None) -> HeatProblem:
        overrides = ["domain.cells=[16, 16, 4]", "probes=[]", f"sources=[{{ region = 'gear', power = {power} }}]"]
        return HeatProblem.from_scenario(load(tmp_path / "cooling_gear.toml", overrides), like=like)

    before = problem(1.0, None)
    shared = problem(2.0, before)
    assert shared.materials is before.materials
    os.utime(tmp_path / "gear.stl", ns=(0, 0))
    assert problem(2.5, shared).materials is before.materials
    content = (tmp_path / "gear.stl").read_bytes()
    (tmp_path / "gear.stl").write_bytes(b"gear of another program".ljust(80) + content[80:])
    again = problem(3.0, shared)
    assert again.materials is not before.materials
    assert problem(4.0, again).materials is again.materials
