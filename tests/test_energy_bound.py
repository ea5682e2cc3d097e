"""No residual of the energy balance is larger than the bound that is derived for it, whatever happens between rows."""

import tempfile
from math import fsum
from pathlib import Path

import numpy as np
import pytest
import runs
from bodies import EVERYTHING
from covering import SLOW
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heatsim import Simulation
from heatsim.errors import Interrupted
from heatsim.observers import energy
from heatsim.observers.observer import Observer
from heatsim.observers.state import RunState
from heatsim.storage import folder

pytestmark = pytest.mark.usefixtures("one_thread", "each_row_at_once")


class Watch(Observer):
    """Compares each row's residual with the bound, and the heat after every step with what it was bounded by."""

    def __init__(self) -> None:
        self.ratios: list[float] = []
        self.heats: list[float] = []

    def due(self, state: RunState) -> NDArray[np.int64]:
        return np.arange(state.problem.timeline.last_step + 1)

    def handle(self, state: RunState) -> None:
        self.heats.append(state.statistics.heat(absolute=True))
        assert state.energy_bound is not None
        row = state.energy_bound.row
        assert row is not None
        if row.step == state.step:
            residual, bound = abs(energy.balance(state)["residual"]), energy.bound(state)
            assert residual <= bound, f"step {state.step}"
            if state.step > 0:
                assert max(self.heats) <= state.energy_bound.heat * (1.0 + 1e-4)
                self.ratios.append(residual / bound if bound > 0.0 else 0.0)
            self.heats = self.heats[-1:]


def watched(text: str, *overrides: str) -> tuple[Simulation, Watch]:
    watch = Watch()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "case.toml")
        path.write_text(text, encoding="utf-8")
        simulation = Simulation.from_scenario(path, ("time.method=euler", *overrides), output=Path(name, "run"))
        simulation.run(watchers=[watch])
    return simulation, watch


# A body that a source cools far below its start and that has warmed again when the row comes.
BETWEEN_ROWS = """
domain = { size = [0.1, 0.1, 0.1], cells = [4, 4, 4] }
material = { conductivity = 237.0, density = 2700.0, specific_heat = 900.0 }
initial = { temperature = 300.0 }
boundaries = { default = { type = "convection", coefficient = 5000.0, ambient = 300.0 } }
time = { end = 800.0 }
output = { figures = false, fields = false, probe_every = 400.0 }
[[sources]]
power_density = -1e7
during = [0.0, 100.0]
"""
# One row of cells whose faces along it are held: nearly all heat passes each step through them.
HELD_SIDES = """
domain = { size = [2.0, 0.1, 0.1], cells = [6, 1, 1] }
material = { conductivity = 401.0, density = 3439.0, specific_heat = 1000.0 }
initial = { temperature = 100.0 }
time = { end = 1800.0 }
output = { figures = false, probe_every = 100.0 }
[boundaries]
x_min = { type = "convection", coefficient = 0.2, ambient = 500.0 }
default = { type = "temperature", value = 300.0 }
"""


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("text", [BETWEEN_ROWS, HELD_SIDES, EVERYTHING], ids=["between rows", "held sides", "all"])
def test_the_bound_holds_and_says_something(text: str, precision: str) -> None:
    simulation, watch = watched(text, f"solver.precision={precision}", "solver.device=cpu")
    assert max(watch.ratios) <= 1.0
    # A hundred roundings of all the heat that moves are a useful bound for what is a few.
    state = simulation.state
    assert state.energy_bound is not None
    heat = max(state.energy_bound.heat, state.energy_bound.given)
    u = {"float32": 2.0**-24, "float64": 2.0**-53}[precision]
    assert energy.bound(state) <= 1e-10 * heat + 30.0 * simulation.step * u * heat


def test_the_heat_between_two_rows_is_counted() -> None:
    """At the rows, 0 and 400 s, and at the end, there is little heat; in between there was up to 1 MJ of it."""
    simulation, _ = watched(BETWEEN_ROWS, "solver.device=cpu", "solver.precision=float32")
    assert simulation.state.energy_bound is not None
    assert simulation.state.statistics.heat(absolute=True) < 1e3
    assert energy.bound(simulation.state) > 7.0 * 2.0**-24 * 1e5 * simulation.step / 8.0


def test_the_bound_grows_with_the_steps_and_not_with_what_is_looked_at(tmp_path: Path) -> None:
    """Rows at ten times as many moments: a bound that is no larger, for the heat is known better."""
    few, _ = watched(HELD_SIDES, "solver.device=cpu", "solver.precision=float32")
    many, _ = watched(HELD_SIDES, "solver.device=cpu", "solver.precision=float32", "output.probe_every=50.0")
    assert many.step == pytest.approx(few.step, rel=0.1)
    assert energy.bound(many.state) <= 1.1 * energy.bound(few.state)


@pytest.mark.quick("30")
@pytest.mark.parametrize("step", [1, 30])
def test_a_resumed_run_has_the_same_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    whole = Simulation.from_scenario(runs.write(tmp_path, EVERYTHING), output=tmp_path / "whole")
    whole.run()
    with monkeypatch.context() as patch:
        runs.after_step(patch, step, runs.interrupt)
        with pytest.raises(Interrupted):
            Simulation.from_scenario(tmp_path / "mixed.toml", output=tmp_path / "parts").run()
    Simulation.resume(tmp_path / "parts").run()
    assert runs.results(tmp_path / "parts") == runs.results(tmp_path / "whole")
    assert (tmp_path / "whole" / folder.SUMMARY).exists()


def magnitudes(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers spread evenly over orders of magnitude."""
    return st.floats(np.log10(low), np.log10(high)).map(lambda exponent: float(f"{10.0**exponent:.4g}"))


@st.composite
def conditions(draw: st.DrawFn, end: float) -> str:
    """A condition as TOML, constant or changing."""
    T = draw(st.floats(200.0, 800.0).map(lambda value: round(value, 1)))
    moving = f'"{T} + 90*sin({draw(st.floats(1.0, 60.0)) / end!r}*t)"'
    value = draw(st.sampled_from((repr(T), moving, f'"where(t % {end / 7.3!r} < {end / 20.0!r}, {T}, 300)"')))
    h, q = draw(magnitudes(1e-3, 1e5)), draw(magnitudes(1.0, 1e5)) * draw(st.sampled_from((1.0, -0.01)))
    return draw(
        st.sampled_from(
            (
                '{ type = "insulated" }',
                f'{{ type = "temperature", value = {value} }}',
                f'{{ type = "flux", value = "where(t % {end / 3.7!r} < {end / 9.0!r}, {q!r}, 0)" }}',
                f'{{ type = "convection", coefficient = {h!r}, ambient = {value} }}',
                f'{{ type = "convection", coefficient = {h!r}, ambient = {value}, emissivity = 0.7, '
                f"surroundings = {T} }}",
                f'{{ type = "radiation", emissivity = 0.9, ambient = {value} }}',
            )
        )
    )


@st.composite
def scenarios(draw: st.DrawFn, graded: bool = False) -> str:
    cells = draw(st.tuples(*[st.integers(1, 6)] * 3))
    size = [0.01 * n * draw(magnitudes(0.3, 3.0)) for n in cells]
    k, other = draw(magnitudes(0.1, 400.0)), draw(magnitudes(0.1, 400.0))
    least, widths = [length / n for length, n in zip(size, cells, strict=True)], ""
    if graded:
        of_axes = [draw(st.lists(magnitudes(0.003, 0.1), min_size=n, max_size=n)) for n in cells]
        size, least = [fsum(of) for of in of_axes], [min(of) for of in of_axes]
        widths = "".join(f", {axis} = {{ widths = {of!r} }}" for axis, of in zip("xyz", of_axes, strict=True))
    rate = sum(max(k, other) / 1e6 / d**2 for d in least)
    end = float(f"{draw(magnitudes(1.0, 60.0)) / rate:.6g}")
    several, changing = draw(st.booleans()), draw(st.integers(0, 3)) == 0
    void = several and draw(st.booleans())
    capacity = "{ temperatures = [250.0, 500.0], values = [500.0, 1500.0] }" if changing else "1000.0"
    start = draw(st.sampled_from(("300.0", '"330 + 20*sin(200*x)*cos(300*y)"')))
    every = end * draw(st.sampled_from((0.07, 0.5, 1.0)))
    lines = [
        f"domain = {{ size = {size!r}, cells = {list(cells)!r}{widths}"
        + (', material = "base" }' if several else " }"),
        f"initial = {{ temperature = {start} }}",
        f"time = {{ end = {end!r}, safety = {draw(st.sampled_from((0.3, 0.9, 1.0)))!r} }}",
        f"output = {{ figures = false, fields = false, probe_every = {every!r} }}",
        f'solver = {{ device = "cpu", kernel = "{draw(st.sampled_from(("numpy", "numba")))}", '
        f'precision = "{draw(st.sampled_from(("float32", "float64")))}" }}',
        "[materials.base]" if several else "[material]",
        f"conductivity = {k!r}\ndensity = 1000.0\nspecific_heat = {capacity}",
    ]
    if several:
        lines.append(f"[materials.other]\nconductivity = {other!r}\ndensity = 3000.0\nspecific_heat = 700.0")
        lines.append('[[contacts]]\nbetween = ["base", "other"]\nresistance = 1e-4')
        half = [0.5 * length for length in size]
        lines.append(
            f'[[regions]]\nname = "part"\nmaterial = "other"\nbox = {{ min = [0, 0, 0], max = {half!r} }}'
            if min(cells) > 1
            else '[[regions]]\nname = "part"\nmaterial = "other"\neverywhere = true'
        )
        if void and min(cells) > 2:
            lines.append(f'[[regions]]\nname = "hole"\nmaterial = "void"\nbox = {{ min = {half!r}, max = {size!r} }}')
    lines.append("[boundaries]")
    for axis in "xyz":
        if draw(st.integers(0, 3)) == 0:
            lines += [f'{axis}_min = {{ type = "periodic" }}', f'{axis}_max = {{ type = "periodic" }}']
        else:
            lines += [f"{axis}_{side} = {draw(conditions(end))}" for side in ("min", "max")]
    periodic_top = 'z_max = { type = "periodic" }' in lines
    if void and min(cells) > 2:
        lines.append(f"void = {draw(conditions(end))}")
    if several or draw(st.booleans()):
        volume = float(np.prod(size))
        power = 1e6 * volume * draw(magnitudes(1.0, 300.0)) / end * draw(st.sampled_from((1.0, -0.2)))
        lines.append(f'[[sources]]\npower = {power!r}\nscale = "where(t % {end / 4.1!r} < {end / 11.0!r}, 2, 0)"')
        if not periodic_top:
            spot = (
                f'face = "z_max", power = {abs(power)!r}, radius = {0.3 * size[0]!r}, path = [[0.0, {size[1] / 2.0!r}]]'
            )
            lines.append(f"[[sources]]\nbeam = {{ {spot} }}")
    return "\n".join(lines) + "\n"


@settings(
    max_examples=60 if SLOW else 15, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(text=scenarios())
def test_no_random_scenario_exceeds_its_bound(text: str) -> None:
    watched(text)


@settings(
    max_examples=40 if SLOW else 8, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(text=scenarios(graded=True))
def test_no_random_graded_grid_exceeds_its_bound(text: str) -> None:
    watched(text)


# Heat flows for many steps through few cells.
FEW_CELLS = """
domain = { size = [1.0, 1.0, 1.0], cells = [3, 2, 1] }
material = { conductivity = [401.0, 213.0, 97.0], density = 3439.0, specific_heat = 1000.0 }
initial = { temperature = 300.0 }
time = { end = 3000.0 }
output = { figures = false, fields = false, probe_every = 1000.0 }
[boundaries]
x_min = { type = "temperature", value = 400.0 }
x_max = { type = "temperature", value = 200.0 }
"""


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_rounded_factors_of_links_create_less_heat_than_the_bound(precision: str) -> None:
    """Factors are rounded on both sides of a link alone: always the same part of the heat through it is created."""
    random, ratios = np.random.default_rng(1), list[float]()
    for _ in range(4):
        widths = (10.0 ** random.uniform(0.0, 1.0, n) for n in (3, 2))
        x, y = ((of / of.sum()).tolist() for of in widths)
        overrides = f"domain.x.widths={x}", f"domain.y.widths={y}", "solver.device=cpu", f"solver.precision={precision}"
        ratios += watched(FEW_CELLS, *overrides)[1].ratios
    assert len(ratios) == 12
    assert max(ratios) > {"float32": 1e-3, "float64": 1e-4}[precision]  # the bound says something


# Cells grow by a half from each to the next, or shrink; along z widths differ up to 1:100.
STRONG = 1.5 ** np.arange(6), 1.5 ** -np.arange(6), np.array([1.0, 0.02, 0.3, 2.0])


@pytest.mark.parametrize(
    ("method", "kernel", "heated"),
    [
        ("euler", "numpy", True),
        ("euler", "numba", True),
        ("stabilized", "numba", True),
        ("stabilized", "numba", False),
        ("implicit", "numba", True),
    ],
)
def test_balances_close_on_strongly_graded_grids(method: str, kernel: str, heated: bool, tmp_path: Path) -> None:
    axes = [f"domain.{axis}.widths={(0.1 * of / of.sum()).tolist()}" for axis, of in zip("xyz", STRONG, strict=True)]
    overrides = *axes, "domain.cells=[6, 6, 4]", f"time.method={method}", f"solver.kernel={kernel}", "time.end=0.5"
    body = BETWEEN_ROWS.replace("[0.0, 100.0]", "[0.0, 0.2]").replace("probe_every = 400.0", "probe_every = 0.25")
    given = *overrides, 'initial.temperature="300 + 2e3*x + 1e4*y*z"', "solver.device=cpu", "solver.precision=float32"
    path = runs.write(tmp_path, body if heated else body.partition("[[sources]]")[0])
    simulation = Simulation.from_scenario(path, given, output=tmp_path / "run")
    simulation.run()
    row, bound = runs.energy_rows(tmp_path / "run")[-1], energy.bound(simulation.state)
    assert abs(row["residual"]) <= bound < 2e-2 * max(abs(row["sources"]), abs(row["stored"]))
