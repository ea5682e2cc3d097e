"""The memory of a process and the space on the disk that a plan states, against what a run takes."""

import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import runs

from heatsim import Simulation
from heatsim.physics.problem import HeatProblem
from heatsim.run import process_memory, step_times, work_time
from heatsim.run.capacity import size
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe
from heatsim.run.step_times import measure_methods, timed_plan
from heatsim.scenario import load

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
WAX = """
domain = { size = [0.04, 0.04, 0.04], cells = [40, 40, 40], material = "wax" }
materials.wax = { conductivity = 0.2, density = 900.0, specific_heat = 2e3, MELT }
materials.copper = { conductivity = 400.0, density = 8960.0, specific_heat = 385.0 }
regions = [{ name = "plate", material = "copper", box = { min = [0.0, 0.0, 0.0], max = [0.04, 0.04, 0.01] } }]
initial.temperature = 300.0
boundaries.z_min = { type = "temperature", value = 340.0 }
time = { method = "implicit", end = 1.0 }
solver.device = "cpu"
output.figures = false
"""
MELT = ", latent_heat = 2e5, solidus = 320.0, liquidus = 325.0"
WAX = WAX.replace(", MELT", MELT)
CHILD = """
import sys
from heatsim.cli import main
from heatsim.run.process_memory import most
code = main(sys.argv[1:])
print("most", most())
sys.exit(code)
"""


def process(*arguments: object) -> tuple[str, int]:
    """What a command prints, and the most bytes that its process has held."""
    done = subprocess.run([sys.executable, "-c", CHILD, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text, _, most = done.stdout.rpartition("most ")
    return text, int(most)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc reports the memory of processes on Linux")
def test_a_plan_states_the_memory_of_the_process_and_needs_no_more(tmp_path: Path) -> None:
    """Within a factor of 1.3 for implicit steps of a composite body."""
    path = runs.write(tmp_path, WAX.replace(MELT, ""))
    text, of_plan = process("plan", path, "--set=time.end=0.01")
    _, of_run = process("run", path, "--set=time.end=0.01", "--output", tmp_path / "out", "--quiet")
    found = re.search(r"^process +about ([\d.]+) (\w+) on the host at most", text, re.MULTILINE)
    assert found is not None
    stated = float(found[1]) * UNITS[found[2]]
    assert of_run / 1.3 < stated < 1.3 * of_run
    assert of_plan < 1.15 * of_run


def test_other_methods_than_that_of_a_run_are_timed_in_about_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_time, "SECONDS", 0.01)
    monkeypatch.setattr(process_memory, "most", lambda: 20 * 2**20)
    timed = list[Plan]()
    original = step_times.measure_work

    def note(plan: Plan, on: Plan | None = None) -> object:
        assert on is not None
        timed.append(on)
        return original(plan, on)

    monkeypatch.setattr(step_times, "measure_work", note)
    problem = HeatProblem.from_scenario(load(runs.write(tmp_path, WAX), ["time.method=euler", "time.end=0.1"]))
    measured = measure_methods(problem)
    own, *others = timed
    assert own.problem.grid.cell_count == 40**3
    assert {plan.problem.scenario.time.method for plan in others} == {"stabilized", "implicit"}
    assert set(measured.times) == {"euler", "stabilized", "implicit"}
    room = process_memory.on_host(own) + measured.process // 20
    assert all(process_memory.on_host(plan) <= room for plan in others)
    assert process_memory.on_host(Plan.of(problem.with_method("implicit"))) > 2 * room
    # Without a grid that fits there is no time.
    assert timed_plan(Plan.of(problem.with_method("implicit")), 100) is None


def test_the_memory_of_a_coarser_timed_grid_is_scaled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "most", lambda: 10**9)
    path = runs.write(tmp_path, WAX)
    whole, coarse = (
        Plan.of(HeatProblem.from_scenario(load(path, [f"domain.cells=[{n}, {n}, {n}]"]))) for n in (40, 20)
    )
    more = process_memory.expected(whole, coarse) - process_memory.expected(whole, whole)
    assert more == process_memory.on_host(whole) - process_memory.on_host(coarse) > 0
    # If the start held much more than it holds now, a field is written into what is free again.
    monkeypatch.setattr(process_memory, "held", lambda: 10**8)
    assert process_memory.expected(whole, whole) == 10**9
    monkeypatch.setattr(process_memory, "held", lambda: 10**9)
    assert process_memory.expected(whole, whole) > 10**9 + whole.copy_bytes
    monkeypatch.setattr(process_memory, "most", lambda: 0)
    assert process_memory.expected(whole, coarse) == 0
    assert "process" not in describe(whole)


LINE = "line = { from = [0.0, 0.0, 0.0], to = [0.04, 0.04, 0.04], count = 4000 }"


@pytest.mark.quick("32-output.heat_flux = true")
@pytest.mark.parametrize(
    ("cells", "more"), [(8, f'probes = [{{ name = "p", {LINE} }}]'), (32, "output.heat_flux = true")]
)
def test_points_and_heat_fluxes_take_the_memory_that_a_plan_counts(
    cells: int, more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python and NumPy hold at most grows by what the plan counts, or by less."""
    for name in ("most", "held"):
        monkeypatch.setattr(process_memory, name, lambda: 2**30)
    text = (
        WAX.replace('"implicit", end = 1.0', '"euler", end = 0.01')
        .replace("40, 40, 40", f"{cells}, {cells}, {cells}")
        .replace(MELT, "")
    )
    stated, held = [], []
    for each in ("", more):
        path = runs.write(tmp_path, f"{text}\noutput.probe_every = 0.001\n{each}")
        simulation = Simulation.from_scenario(path, output=tmp_path / f"{len(held)}")
        stated.append(process_memory.expected(simulation.plan, simulation.plan))
        tracemalloc.start()
        simulation.run()
        held.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    grown = held[1] - held[0]
    assert grown > 2 * 10**6
    assert grown / 1.3 < stated[1] - stated[0] < 2.0 * grown


def test_copies_of_input_files_count_as_disk_space(tmp_path: Path) -> None:
    (tmp_path / "weather.csv").write_text("s,T\n" + "".join(f"{second},300.0\n" for second in range(20_000)))
    weather = '{ file = "weather.csv", time = "s", column = "T", unit = "K" }'
    text = WAX.replace("value = 340.0", f"value = {weather}")
    without, planned = (Plan.of(HeatProblem.from_scenario(load(runs.write(tmp_path, each)))) for each in (WAX, text))
    copied = (tmp_path / "weather.csv").stat().st_size
    assert planned.input_bytes == copied > 200_000
    assert planned.disk_bytes == without.disk_bytes + copied
    assert f"disk         {size(planned.disk_bytes)}" in describe(planned)
    assert "copies of 1 input" in describe(planned)
