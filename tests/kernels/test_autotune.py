"""What "auto" chooses on a GPU: the fastest of what it tries, once; and that nothing but time depends on it."""

import gc
import json
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs
from cuda_host import gpu

from heatsim import device
from heatsim.device import Device
from heatsim.grid import Grid
from heatsim.kernels import autotune, compiled, launch, structs
from heatsim.kernels.autotune import choose
from heatsim.kernels.disk_cache import cache_folder
from heatsim.kernels.launch_shapes import Choice, Shape, Task, candidates
from heatsim.run.plan import Plan
from heatsim.run.plan_text import describe
from heatsim.run.simulation import Simulation


@pytest.fixture(autouse=True)
def host_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The host in the part of a GPU, unless the test wants a real one."""
    monkeypatch.setenv("HEATSIM_CACHE_DIR", str(tmp_path / "cache"))
    if request.node.get_closest_marker("gpu") is None:
        monkeypatch.setattr(device, "choose", lambda requested: gpu.host_device())
        monkeypatch.setattr(compiled, "function", gpu.function_on_host)


def task(cells: tuple[int, int, int] = (64, 64, 64), precision: str = "float32") -> Task:
    return Task(gpu.host_device(), Grid(cells, (1.0, 1.0, 1.0)), (False, False, False), precision, "seven_term")


class Clock:
    """Stands for kernels and clock: every launch takes what the table says of its shape, and nothing is computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step_times: Callable[[Shape], float]) -> None:
        self.tried: list[Shape] = []
        self.now = 0.0

        def sweeps(_: Task, shape: Shape, *rest: Any) -> Callable[[int], None]:
            def work(count: int) -> None:
                self.tried += count * [shape]
                self.now += count * step_times(shape) * shape.spec.steps

            return work

        monkeypatch.setattr(autotune, "_sweeps", sweeps)
        monkeypatch.setattr(autotune, "_repeated", lambda task, shape, work, count: partial(work, count))

    def __call__(self, _: Device, work: Callable[[], None]) -> float:
        before = self.now
        work()
        return self.now - before


def chosen(what: Task, timer: Any, steps: float = inf) -> Choice:
    return choose(what, steps, None, None, np.zeros(1), timer)


def test_the_fastest_is_taken_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Shape(next(shape.spec for shape in candidates(task()) if shape.spec.name == "streamed"), planes=2)
    clock = Clock(monkeypatch, lambda shape: 1e-5 if shape == wanted else 2e-5)
    assert chosen(task(), clock) == Choice(wanted, "tried")
    assert set(clock.tried) == set(candidates(task()))
    clock.tried.clear()
    assert chosen(task(), clock) == Choice(wanted, "remembered")
    assert clock.tried == []


def test_another_grid_precision_or_device_is_tuned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, lambda shape: 2.0**-17)
    assert chosen(task(), clock).chosen == "tried"
    others = (
        task((64, 64, 65)),
        task(precision="float64"),
        replace(task(), scheme="increments"),
        replace(task(), device=replace(task().device, name="another")),
    )
    for other in others:
        assert chosen(other, clock).chosen == "tried"
        assert chosen(other, clock).chosen == "remembered"
    monkeypatch.setattr(autotune, "_kernels_digest", lambda: "the kernels were changed")
    assert chosen(task(), clock).chosen == "tried"


def test_speed_is_that_of_a_step_not_of_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep of four steps takes longer than one of a single step and is taken all the same."""
    clock = Clock(monkeypatch, lambda shape: 1e-5 if shape.spec.steps == 4 else 3e-5)
    assert chosen(task(), clock).shape.spec.steps == 4


def test_what_fails_is_not_chosen_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def times(shape: Shape) -> float:
        if shape.spec.name == "boxed":
            raise RuntimeError("does not compile")
        return 1e-5

    assert chosen(task(), Clock(monkeypatch, times)).shape.spec.name != "boxed"

    def nothing_works(shape: Shape) -> float:
        raise RuntimeError("no")

    what = task((64, 64, 60))
    assert chosen(what, Clock(monkeypatch, nothing_works)) == Choice(candidates(what)[0], "by rule")


def test_what_is_hopeless_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = candidates(task())[-1]
    clock = Clock(monkeypatch, lambda shape: 1e-2 if shape == slow else 1e-5)
    chosen(task(), clock)
    assert clock.tried.count(slow) == 2  # to load it, and to see


def test_a_short_run_does_not_try(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, lambda shape: 2.0**-17)
    assert chosen(task(), clock, steps=1000) == Choice(candidates(task())[0], "by rule")
    assert clock.tried == []
    fastest = chosen(task(), clock).shape
    assert chosen(task(), clock, steps=1000) == Choice(fastest, "remembered")


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"shape": 3}', '{"shape": {"kernel": "another"}}'])
def test_a_damaged_file_is_replaced(damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, lambda shape: 2.0**-17)
    first = chosen(task(), clock)
    (path,) = (cache_folder() / "tuning").iterdir()
    content = path.read_bytes()
    path.write_text(damage, encoding="utf-8")
    assert chosen(task(), clock) == first
    assert path.read_bytes() == content
    assert json.loads(content)["for"]["cells"] == [64, 64, 64]


def test_a_folder_that_cannot_be_written_is_not_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    clock = Clock(monkeypatch, lambda shape: 2.0**-17)
    assert [chosen(task(), clock).chosen for _ in range(2)] == ["tried", "tried"]


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        ((1, 1, 1), "resident"),
        ((16, 16, 8), "resident"),
        ((64, 64, 64), "boxed"),
        ((67, 61, 33), "boxed"),
        ((128, 128, 128), "streamed"),
        ((512, 512, 512), "temporal"),
        ((1500, 200, 300), "temporal"),
        ((333, 477, 611), "temporal"),
    ],
)
def test_the_rule_of_thumb(cells: tuple[int, int, int], first: str) -> None:
    shapes = candidates(task(cells))
    assert shapes[0].spec.name == first
    assert len(set(shapes)) == len(shapes)
    for shape in shapes:
        assert task(cells).suits(shape.spec)
        assert shape.planes is None or 1 <= shape.planes <= cells[2]


@pytest.mark.parametrize(
    ("edge", "precision", "steps"),
    [(64, "float64", [3, 4]), (48, "float64", [4, 3]), (64, "float32", [4])],
)
def test_members_in_float64_take_the_tiles_that_waste_less(edge: int, precision: str, steps: list[int]) -> None:
    what = replace(task((edge,) * 3, precision), members=256)
    shapes = candidates(what)
    assert [shape.spec.steps for shape in shapes if shape.spec.name == "temporal"] == steps
    assert shapes[0].spec.name == "temporal"
    assert len({json.dumps(shape.describe()) for shape in shapes}) == len(shapes)


def test_the_arrays_of_recorded_sweeps_live_as_long_as_the_graph() -> None:
    what = task((16, 8, 9))

    def work(count: int) -> None:
        """Stands for sweeps, which refer to their tables on the device."""

    recorded = next(shape for shape in candidates(what) if not shape.spec.resident)
    repeat = autotune._repeated(what, recorded, work, 3)
    kept = weakref.ref(work)
    del work
    gc.collect()
    assert kept() is not None
    repeat()


def test_every_shape_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sweep, or as many as a sweep of several steps does, from the same field."""
    monkeypatch.setattr(launch, "compile_kernel", gpu.compile_on_host)
    what = task((16, 8, 9))
    rng = np.random.default_rng(1)
    start = gpu.asarray(rng.random(what.grid.shape, np.float32))
    coefficients = np.array((np.array([0.4, *[0.1] * 6], np.float32),), structs.coefficients_dtype("float32"))
    results = set()
    for shape in candidates(what):
        T, T_new = gpu.asarray(start), gpu.asarray(np.full(what.grid.shape, np.nan, np.float32))
        work = autotune._sweeps(what, shape, T, T_new, coefficients)
        work(1)
        np.testing.assert_array_equal(T, start, "what is tried must not change the field")
        for _ in range(4 // shape.spec.steps - 1):
            T[...] = T_new
            work(1)
        results.add(T_new.tobytes())
    assert len(results) == 1


def test_a_run_says_what_it_took_and_a_plan_that_it_will(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(launch, "compile_kernel", gpu.compile_on_host)
    monkeypatch.setattr(autotune, "_WORTH_TRYING", 0.0)
    keep = ("streamed", "boxed")
    shapes = [shape for shape in candidates(task((8, 4, 5))) if shape.spec.name in keep][:3]
    monkeypatch.setattr(autotune, "candidates", lambda task: tuple(shapes))
    overrides = ("domain.cells=[8,4,5]", "solver.device=cuda", "output.every=5.0")
    results = {}
    for name in ("tried", "remembered"):
        simulation = Simulation.from_scenario(runs.write(tmp_path), overrides, output=tmp_path / name)
        assert "kernel auto, tuned at the run" in describe(Plan.of(simulation.plan.problem))
        simulation.run()
        summary = json.loads((tmp_path / name / "summary.json").read_text())
        assert summary["launch"]["chosen"] == name
        assert summary["kernel"] == summary["launch"]["kernel"]
        assert {**summary["launch"], "chosen": ""} in [{**shape.describe(), "chosen": ""} for shape in shapes]
        results[name] = simulation.temperature.tobytes()
    simulation = Simulation.from_scenario(
        runs.write(tmp_path), (*overrides, "solver.kernel=naive"), output=tmp_path / "naive"
    )
    simulation.run()
    summary = json.loads((tmp_path / "naive" / "summary.json").read_text())
    assert (summary["kernel"], summary["launch"]["chosen"]) == ("naive", "asked for")
    results["naive"] = simulation.temperature.tobytes()
    assert len(set(results.values())) == 1


@pytest.mark.gpu
@pytest.mark.parametrize("cells", [(64, 64, 64), (130, 61, 33), (256, 256, 128)], ids=str)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_gpu_is_tried_and_every_shape_works_there(cells: tuple[int, int, int], precision: str) -> None:
    what = Task(device.choose("cuda"), Grid(cells, (1.0, 1.0, 1.0)), (False, True, False), precision, "seven_term")
    xp = what.device.xp
    T = xp.asarray(np.random.default_rng(2).random(what.grid.shape).astype(precision))
    before, T_new = T.copy(), xp.empty_like(T)
    c = np.array([0.4, *[0.1] * 6]).astype(precision)
    coefficients = np.array((c,), structs.coefficients_dtype(precision))

    def work_of(shape: Shape) -> Callable[[int], None]:
        return autotune._sweeps(what, shape, T, T_new, coefficients)

    times = autotune._try(what, candidates(what), work_of, autotune.seconds)
    assert times
    assert all(time > 0.0 for time in times.values())
    assert bool((before == T).all())
    for shape in candidates(what):
        work_of(shape)(1)
    what.device.synchronise()
    assert choose(what, inf, T, T_new, coefficients).chosen == "tried"
    assert choose(what, 1, T, T_new, coefficients).chosen == "remembered"
