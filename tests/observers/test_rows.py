"""Rows made together equal rows made one by one, and no row is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import bodies
import numpy as np
import pytest
import runs
from cuda_host import gpu
from numpy.typing import NDArray

from heatsim import Simulation
from heatsim.device import Device, choose
from heatsim.kernels.reductions import launch_batch
from heatsim.kernels.reductions.find import first_of_each
from heatsim.observers import table
from heatsim.observers.energy import balance
from heatsim.observers.observer import Observer
from heatsim.observers.state import RunState
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.interpolation import Interpolation
from heatsim.run.observed_run import ObservedRun
from heatsim.scenario import load
from heatsim.solver.field import field
from heatsim.solver.rows.leading import Leading
from heatsim.storage import tables

LASER = (Path(__file__).parents[2] / "scenarios" / "laser_track.toml").read_text()


@pytest.mark.parametrize(
    "text", [runs.TEXT, bodies.EVERYTHING, LASER], ids=["conditions that vary", "composite, radiating", "moving beam"]
)
def test_temperatures_at_points_are_the_same_for_one_time_and_for_many(tmp_path: Path, text: str) -> None:
    problem = HeatProblem.from_scenario(load(runs.write(tmp_path, text)))
    size = np.array(problem.grid.size) * (1.0, 1.0, 0.6)  # above is void
    places = np.random.default_rng(1).uniform(0.0, 1.0, (40, 3))
    places[::4] = places[::4].round()  # edges and corners
    places[1::4, 0] = 1.0  # faces
    points = Interpolation(problem, [(x, y, z) for x, y, z in (places * size).tolist()])
    steps = [0, 1, 2, problem.timeline.last_step // 2, problem.timeline.last_step]
    temperatures = np.random.default_rng(2).uniform(300.0, 900.0, (len(steps), *points.cells[0].shape))
    together = points.of(temperatures, steps)
    for number, step in enumerate(steps):
        assert points.of(temperatures[[number]], [step]).tobytes() == together[number].tobytes()


def test_rows_are_written_within_a_second_and_before_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    target = tmp_path / "run"
    observe = ObservedRun.observe

    def fail_at_the_end(run: ObservedRun) -> None:
        observe(run)
        seen.append((target / "probes.csv").read_bytes().count(b"\n") - 1)
        if run.state.step > 10:
            raise ArithmeticError

    monkeypatch.setattr(ObservedRun, "observe", fail_at_the_end)
    constant = runs.TEXT.replace('"300 + 20*sin(t)"', "300.0").replace(
        "coefficient = { times = [0.0, 5.0], values = [100.0, 900.0] }", "coefficient = 100.0"
    )
    scenario = runs.write(tmp_path, constant)
    for seconds, rows in ((1e9, 0), (-1.0, 7)):
        monkeypatch.setattr(table, "_SECONDS_BETWEEN_WRITES", seconds)
        seen.clear()
        with pytest.raises(ArithmeticError):
            Simulation.from_scenario(scenario, output=target, overwrite=True).run()
        assert seen[-1] == rows
        for name in ("probes.csv", "energy.csv"):
            assert len(tables.read(target / name)[1]) == 7


def test_a_balance_that_a_watcher_reads_changes_no_row(tmp_path: Path) -> None:
    """Also while rows wait to be made: the heat of sources is added up from one due time to the next."""

    class Watcher(Observer):
        def due(self, state: RunState) -> NDArray[np.int64]:
            return state.problem.timeline.steps

        def handle(self, state: RunState) -> None:
            balance(state)

    text = runs.write(tmp_path, bodies.EVERYTHING)
    tables_of = []
    for watchers in ([], [Watcher()]):
        simulation = Simulation.from_scenario(text, ["solver.device=cpu"], output=tmp_path / "run", overwrite=True)
        simulation.run(watchers=watchers)
        tables_of.append((tmp_path / "run" / "energy.csv").read_bytes())
    assert tables_of[0] == tables_of[1]


def test_a_table_is_uploaded_once_until_many_others_follow() -> None:
    xp = choose("cpu").xp
    first = launch_batch.uploaded(xp, np.arange(7))
    assert launch_batch.uploaded(xp, np.arange(7)) is first
    assert launch_batch.uploaded(xp, np.arange(1, 8)) is not first
    assert first.tobytes() == np.arange(7).tobytes()
    for number in range(200):
        launch_batch.uploaded(xp, np.full(5, number))
    assert len(launch_batch._kept) <= launch_batch._MOST
    assert launch_batch.uploaded(xp, np.arange(7)) is not first


def test_a_gpu_finds_the_cells_of_the_records_of_a_row_without_a_second_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second row on, each row breaks the same records as the previous one. The third row uses a graph."""
    gpu.play_gpu(monkeypatch)
    scenario = runs.write(tmp_path, bodies.EVERYTHING)
    state = Simulation.from_scenario(scenario, ["solver.device=cuda"], output=tmp_path / "run").state
    searches: list[int] = []

    def count(device: Device, fields: list[object], *rest: list[object]) -> list[int]:
        searches.append(len(fields))
        return first_of_each(device, fields, *rest)

    monkeypatch.setattr(field, "first_of_each", count)
    types, names = state.problem.materials.types_at, [region.name for region in state.problem.scenario.regions]
    conducting = [name for name in names if state.problem.scenario.regions[names.index(name)].material != "void"]
    z, y, x = np.indices(state.problem.grid.shape)
    kinds = types(x, y, z)
    for row in range(4):
        values = np.random.default_rng(row).permutation(kinds.size).reshape(kinds.shape).astype("float32")
        values[values > 0.9 * kinds.size] = kinds.size  # several cells have the extreme
        state.field.load_deviations(values)
        searches.clear()
        state.find_row()
        for cell_type in (0, 1):
            for highest in (False, True):
                at = state.statistics.extreme_cells.of_type(cell_type, highest)
                own = np.where(kinds == cell_type, values, np.nan)
                assert at[::-1] == np.unravel_index(np.nanargmax(own) if highest else np.nanargmin(own), kinds.shape)
        for name in conducting[:2]:
            of_region = state.statistics.extreme_cells.of_region(name, highest=True)
            assert of_region is not None
            assert values[of_region[::-1]] == state.statistics.extremes(name).highest - state.field.reference
        assert searches == ([1] * 6 if row == 0 else [])
    assert len(gpu.HostStream.graphs) == 1


@pytest.mark.quick("composite")
@pytest.mark.parametrize("text", [runs.TEXT, bodies.EVERYTHING], ids=["one material", "composite"])
def test_a_gpu_waits_once_for_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """After one wait the host has all data that the observers of a row read, if it reads the row at once."""
    gpu.play_gpu(monkeypatch)
    monkeypatch.setattr(Leading, "of", lambda *arguments: None)
    scenario = runs.write(tmp_path, text)
    sets = ["solver.device=cuda", "solver.kernel=naive", "time.method=euler"]
    simulation = Simulation.from_scenario(scenario, sets, output=tmp_path / "r")
    copies: list[str] = []
    xp = simulation.state.field.device.xp
    monkeypatch.setattr(type(simulation.state), "find_row", counted(type(simulation.state).find_row, copies, "row"))
    monkeypatch.setattr(xp, "asnumpy", counted(xp.asnumpy, copies, "copy"))
    simulation.run()
    rows = "".join(word[0] for word in copies).split("r")
    # The first row of records is looked for; checkpoints at the end copy the field.
    assert len(rows) > 5
    assert rows[3:-1] == [""] * (len(rows) - 4)
    alone = Simulation.from_scenario(scenario, sets, output=tmp_path / "one")
    monkeypatch.setattr(type(alone.state), "find_row", lambda state: None)
    monkeypatch.setattr(type(alone.state), "queue_row", lambda state: None)
    alone.run()
    for name in ("probes.csv", "energy.csv"):
        assert (tmp_path / "r" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def counted(function: Callable[..., Any], calls: list[str], name: str) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        calls.append(name)
        return function(*arguments)

    return call
