"""A plan times the steps of "euler" as a run does them: in the same batches, with the sums of rows in between."""

from collections.abc import Callable
from pathlib import Path

import bodies
import pytest
import runs
from cuda_host import gpu
from cuda_host.deferred import HostQueue, defer

from heatsim import Simulation
from heatsim.device import Device
from heatsim.observers.state import RunState
from heatsim.physics.problem import HeatProblem
from heatsim.run import work_time
from heatsim.run.plan import Plan
from heatsim.run.step_times import measure_work
from heatsim.scenario import load
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.rows.rows_ahead import RowsAhead

SUMS = bodies.EVERYTHING.replace("probe_every = 0.05", "probe_every = 0.004\nevery = 0.06").replace(
    'method = "euler"', 'method = "euler"'
)
COMPARED = SUMS.replace('method = "euler"', 'method = "euler"\nstop_below = 1e-9')
FIELD = SUMS + '[[probes]]\nname = "warm part"\nstatistic = "extent_x"\nthreshold = 320.0\n'
BATCH = 0.001  # s


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What is queued from here on, and at which step: steps, sums of a row between steps, a row that is read at once.

    Each batch takes 1 ms.
    """
    found = list[tuple[str, int]]()
    advance, add, queue_row = Stepper.advance, RowsAhead.add, RunState.queue_row
    reached = 0

    def note_steps(stepper: Stepper, steps: int) -> None:
        nonlocal reached
        found.append((f"{steps} steps", stepper.step))
        advance(stepper, steps)
        reached = stepper.step

    def note_sums(rows: RowsAhead) -> bool:
        found.append(("sums", reached))
        return add(rows)

    def note_row(state: RunState) -> None:
        found.append(("row", reached))
        queue_row(state)

    def timed(device: Device, work: Callable[[], object]) -> Callable[[], float]:
        work()
        return lambda: BATCH

    monkeypatch.setattr(Stepper, "advance", note_steps)
    monkeypatch.setattr(RowsAhead, "add", note_sums)
    monkeypatch.setattr(RunState, "queue_row", note_row)
    monkeypatch.setattr(Device, "timed", timed)
    monkeypatch.setattr(work_time, "SECONDS", 0.4)
    monkeypatch.setattr(work_time, "LONGEST", 1e9)
    return found


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> HostQueue:
    """The host plays a GPU that does work when the host waits for it."""
    gpu.play_gpu(monkeypatch)
    runs.write_at_once(monkeypatch)
    return defer(monkeypatch)


@pytest.mark.quick("sums-cuda", "extent-cpu", "linear-cpu")
@pytest.mark.parametrize(
    ("device", "text"),
    [
        pytest.param("cuda", SUMS, id="sums-cuda"),
        pytest.param("cpu", SUMS, id="sums-cpu", marks=pytest.mark.slow),
        pytest.param("cuda", FIELD, id="extent-cuda", marks=pytest.mark.slow),
        pytest.param("cpu", FIELD, id="extent-cpu"),
        pytest.param("cuda", COMPARED, id="compared-cuda"),
        pytest.param("cpu", COMPARED, id="compared-cpu", marks=pytest.mark.slow),
        pytest.param("cuda", runs.TEXT, id="linear-cuda"),
        pytest.param("cpu", runs.TEXT, id="linear-cpu"),
    ],
)
def test_a_plan_does_the_work_of_a_short_run_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, int]], device: str, text: str
) -> None:
    if device == "cuda":
        gpu.play_gpu(monkeypatch)
    scenario, changes = runs.write(tmp_path, text), [f"solver.device={device}", "output.checkpoint_wall=1e-9"]
    monkeypatch.chdir(tmp_path)
    planned = Plan.of(HeatProblem.from_scenario(load(scenario, changes)))
    found = measure_work(planned)
    assert list(tmp_path.iterdir()) == [scenario]
    of_plan = done.copy()
    done.clear()
    simulation = Simulation.from_scenario(scenario, changes, output=tmp_path / "run")
    simulation.run()
    assert of_plan == done
    assert "row" in dict(done)
    assert ("sums" in dict(done)) == (device == "cuda")
    assert found.unit * planned.problem.timeline.last_step == pytest.approx(simulation.timing.stepping)


@pytest.mark.slow
def test_sums_of_rows_are_among_the_steps_at_all_places_of_a_long_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[tuple[str, int]], queue: HostQueue
) -> None:
    """In the proportion that the run has. The plan ends when the device has done the steps ahead."""
    monkeypatch.setattr(work_time, "SECONDS", 8.5 * BATCH)  # nine batches, of up to 16 steps
    often = ["solver.device=cuda", "output.probe_every=0.001", "output.every=0.2"]
    planned = Plan.of(HeatProblem.from_scenario(load(runs.write(tmp_path, SUMS), often)))
    found, timeline = measure_work(planned), planned.problem.timeline
    assert not queue.pending
    assert 0.0 < found.unit < BATCH
    steps = {first: int(what.split()[0]) for what, first in done if what.endswith("steps")}
    places = {timeline.last_step * place // 8 for place in range(8)}
    assert places <= set(steps)
    rows = {at for what, at in done if what == "sums"}
    for place in places:
        assert any(place < at <= place + 16 for at in rows), place
