"""`heatsim bench SCENARIO --methods`: errors against exact values, and its output; times are not asserted."""

import json
import tempfile
from itertools import pairwise
from math import exp
from pathlib import Path

import numpy as np
import pytest

from heatsim.benchmark import work_precision
from heatsim.benchmark.method_results import WorkPrecision
from heatsim.benchmark.work_precision import TOLERANCES, measure_methods
from heatsim.cli import main
from heatsim.errors import InputError, Interrupted, RunError
from heatsim.run.simulation import Simulation

pytestmark = pytest.mark.usefixtures("one_thread")

# One cell with a film: T' = −(T − T∞)/τ with τ = ρ·cp·d·(1/h + d/2k).
TAU = 1000.0 * 1000.0 * 0.01 * (1.0 / 100.0 + 0.005 / 10.0)
DT, END, ROW = 0.5, 200.0, 20.0
LUMPED = f"""
title = "Lumped"
domain.size = [0.01, 0.01, 0.01]
domain.cells = [1, 1, 1]
material = {{ conductivity = 10.0, density = 1000.0, specific_heat = 1000.0 }}
initial.temperature = 400.0
boundaries.x_max = {{ type = "convection", coefficient = 100.0, ambient = 300.0 }}
time = {{ end = {END}, dt = {DT} }}
output.every = {ROW}
probes = [{{ name = "middle", point = [0.005, 0.005, 0.005] }}]
solver = {{ precision = "float64", device = "cpu" }}
"""
# Half of the cells are void; a source heats one body that is cooled at one end.
BAR = """
title = "Bar in void"
domain.size = [0.02, 0.01, 0.01]
domain.cells = [8, 4, 4]
domain.material = "steel"
materials.steel = { conductivity = 50.0, density = 7800.0, specific_heat = 500.0 }
regions = [{ name = "hole", material = "void", box = { min = [0, 0, 0.005], max = [0.02, 0.01, 0.01] } }]
sources = [{ power = 5.0, during = [0.0, 3.0] }]
initial.temperature = 300.0
boundaries.x_max = { type = "convection", coefficient = 2000.0, ambient = 300.0 }
time.end = 6.0
output = { every = 1.5, probe_every = 0.5 }
probes = [{ name = "hot end", point = [0.0, 0.005, 0.002] }]
solver.device = "cpu"
"""


@pytest.fixture
def one_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try only the loosest tolerance, which takes a few steps."""
    monkeypatch.setattr(work_precision, "TOLERANCES", TOLERANCES[:1])


@pytest.fixture(scope="module")
def lumped(tmp_path_factory: pytest.TempPathFactory) -> WorkPrecision:
    """What all methods find of the lumped body."""
    path = tmp_path_factory.mktemp("lumped") / "lumped.toml"
    path.write_text(LUMPED, encoding="utf-8")
    return measure_methods(path)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with both scenarios to work in, and another one for temporary files."""
    folder, temporary = tmp_path / "here", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    (folder / "lumped.toml").write_text(LUMPED, encoding="utf-8")
    (folder / "bar.toml").write_text(BAR, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("COLUMNS", "80")
    return folder


def test_errors_are_those_against_the_exact_solution(lumped: WorkPrecision) -> None:
    """Of Euler's steps the error is known in closed form; of the others it falls as the tolerance."""
    *adaptive, euler = lumped.methods
    stabilized, implicit = adaptive[: len(TOLERANCES)], adaptive[len(TOLERANCES) :]
    rows = np.arange(0.0, END + ROW / 2, ROW)
    differences = 100.0 * np.abs((1.0 - DT / TAU) ** (rows / DT) - np.exp(-rows / TAU))
    # The reference has a twentieth of the error of the tightest tolerance.
    assert euler.error == pytest.approx(differences.max(), abs=0.1 * (stabilized[-1].error or 0.0))
    assert euler.error_time == rows[differences.argmax()]
    assert (euler.method, euler.steps, euler.tolerance, euler.stages) == ("euler", END / DT, None, None)
    assert lumped.range == pytest.approx(100.0)
    for results in (stabilized, implicit):
        assert [result.tolerance for result in results] == pytest.approx([100.0 * part for part in TOLERANCES])
        errors = [result.error or 0.0 for result in results]
        assert all(0.0 < tight < 0.5 * loose for loose, tight in pairwise(errors))
        assert np.log10(errors[0] / errors[-1]) == pytest.approx(3.0, abs=0.6)
        steps = [result.steps or 0 for result in results]
        assert steps == sorted(steps)


def test_a_looser_method_is_as_wrong_as_its_run(here: Path, lumped: WorkPrecision) -> None:
    """The error of one method from its own run, by the exact solution."""
    found = lumped.methods[0]
    run = Simulation.from_scenario(
        here / "lumped.toml", [f'time={{method="stabilized", end={END}, tolerance={found.tolerance!r}}}'], output="run"
    )
    run.run()
    assert run.state.method is not None
    assert (run.state.method.work.steps, run.state.method.work.stages) == (found.steps, found.stages)
    assert found.error is not None
    assert abs(run.temperature[0, 0, 0] - 300.0 - 100.0 * exp(-END / TAU)) <= 1.001 * found.error


def test_the_command_prints_a_table_and_writes_numbers_and_a_plot(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "bar.toml", "--methods", "--json", "found.json", "--plot", "found.png"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "Bar in void: 8 × 4 × 4 cells, 6 s" in out
    assert out.count(" stabilized ") == out.count(" implicit ") == len(TOLERANCES)
    assert (here / "found.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads((here / "found.json").read_text(encoding="utf-8"))
    methods = ["stabilized"] * len(TOLERANCES) + ["implicit"] * len(TOLERANCES) + ["euler"]
    assert [result["method"] for result in found["methods"]] == methods
    assert found["precision"] == "float32"
    assert found["reference"]["error"] is None
    for result in found["methods"]:
        assert result["skipped"] is None
        assert 0.0 < result["error"] < 0.05 * found["range"]
        assert result["error_place"] in ("field", "hot end")
        assert result["cells_per_second"] == pytest.approx(
            128.0 * (result["stages"] or result["steps"]) / result["seconds"]
        )
    assert sorted(path.name for path in here.iterdir()) == ["bar.toml", "found.json", "found.png", "lumped.toml"]
    assert not list((here.parent / "temporary").iterdir())


@pytest.mark.slow
def test_void_has_no_error(here: Path) -> None:
    """Void cells keep a temperature that means nothing; the difference of a cell that conducts counts alone."""
    found = measure_methods(here / "bar.toml", ["solver.precision=float64", "output.probe_every=1.5"], patience=0.0)
    for method in ("stabilized", "implicit"):
        errors = [result.error or 0.0 for result in found.methods if result.method == method]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 1e-3 * found.range


@pytest.mark.slow
@pytest.mark.usefixtures("one_tolerance")
def test_a_slow_method_is_left_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "lumped.toml", "--methods", "--patience", "0"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "euler – left out" in out
    assert "euler: left out: 400 steps would take about 0 s; --patience 1 allows that" in out


@pytest.mark.slow
@pytest.mark.usefixtures("one_tolerance")
def test_runs_that_become_steady_end_together(here: Path) -> None:
    """The first run tells where; the temperature then changes by less than 0.01 K/s."""
    found = measure_methods(here / "lumped.toml", ["time.end=20000", "time.stop_below=0.01", "time.dt=0.5"])
    rate = [100.0 / TAU * exp(-time / TAU) for time in (found.end - 2.0 * ROW, found.end)]
    assert rate[0] > 0.01 >= rate[1]
    assert found.methods[-1].steps == found.end / DT


@pytest.mark.usefixtures("one_tolerance")
def test_a_method_that_fails_is_reported(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Simulation.run

    def fail(simulation: Simulation, **options: object) -> None:
        if simulation.plan.problem.scenario.time.method == "euler":
            raise RunError("no luck")
        run(simulation, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Simulation, "run", fail)
    found = measure_methods(here / "lumped.toml").methods
    assert found[-1].skipped == "failed: no luck"
    assert found[-1].steps is None
    assert found[0].skipped is None


@pytest.mark.quick("stopped1")
@pytest.mark.usefixtures("one_tolerance")
@pytest.mark.parametrize("stopped", [Interrupted("a checkpoint is saved"), KeyboardInterrupt()])
def test_an_interrupted_benchmark_leaves_nothing(
    stopped: BaseException, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(bench: object) -> None:
        raise stopped

    monkeypatch.setattr(work_precision, "_euler", stop)
    assert main(["bench", "lumped.toml", "--methods", "--json", "found.json"]) == 130
    assert capsys.readouterr().err == "heatsim: lumped.toml: interrupted; no numbers were written\n"
    assert sorted(path.name for path in here.iterdir()) == ["bar.toml", "lumped.toml"]
    assert not list((here.parent / "temporary").iterdir())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--methods"], "--methods runs a scenario: give its file"),
        (["lumped.toml"], "add --methods, or leave them out"),
        (["--patience", "3"], "add --methods, or leave them out"),
        (["lumped.toml", "--methods", "--patience", "-1"], "--patience -1: give a time in s, at least 0"),
        (["lumped.toml", "--methods", "--cells", "4"], "--cells is for kernels"),
        (["lumped.toml", "--methods", "--repeats", "5"], "--repeats is for kernels"),
        (["lumped.toml", "--methods", "--kernel", "numba", "--kernel", "numpy"], "give one kernel"),
        (["lumped.toml", "--methods", "--json", "no/file.json"], "there is no folder no"),
        (["missing.toml", "--methods"], "missing.toml: there is no such file"),
        (["lumped.toml", "--methods", "--set", 'time={method="steady"}'], 'time.method = "steady" has no steps'),
    ],
)
def test_what_does_not_fit_is_refused(
    words: list[str], complaint: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err


def test_a_body_that_keeps_its_temperature_is_refused(here: Path) -> None:
    with pytest.raises(InputError, match="all temperatures stay at 300 K"):
        measure_methods(here / "lumped.toml", ["initial.temperature=300"])
