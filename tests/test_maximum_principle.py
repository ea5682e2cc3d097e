"""Random scenarios: without sources no temperature leaves the range of the start and the surroundings."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import runs
from covering import SLOW
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from heatsim import Simulation
from heatsim.errors import HeatsimError
from heatsim.grid import FACES
from heatsim.kernels.catalog import KERNELS
from heatsim.storage import folder, tables
from heatsim.storage.field_reader import FieldReader

UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}


@dataclass
class Case:
    """A scenario and the range in K of its start and of all that its faces lead to.

    Attributes:
        text: TOML.
        precision: of the solver.
        lowest, highest: in K.
        sound: whether there is no mistake in it; dt and the number of due times may still be refused.
    """

    text: str = ""
    precision: str = "float32"
    lowest: float = float("inf")
    highest: float = 0.0
    sound: bool = True

    def include(self, low: float, high: float) -> None:
        self.lowest, self.highest = min(self.lowest, low), max(self.highest, high)


def magnitudes(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers spread evenly over orders of magnitude."""
    return st.floats(np.log10(low), np.log10(high)).map(lambda exponent: float(f"{10.0**exponent:.4g}"))


KELVIN = st.floats(200.0, 1500.0).map(lambda value: round(value, 2))


@st.composite
def temperature_in_time(draw: st.DrawFn, case: Case, end: float) -> str:
    """A face's temperature as TOML; its range is noted."""
    low, high = sorted((draw(KELVIN), draw(KELVIN)))
    kind = draw(st.sampled_from(("constant", "wave", "steps", "table", "repeated")))
    if kind == "constant":
        case.include(low, low)
        return repr(low)
    case.include(low, high)
    middle, height = (low + high) / 2.0, (high - low) / 2.0
    if kind == "wave":
        return f'"{middle!r} + {height!r}*sin({draw(magnitudes(0.1, 100.0)) / end!r}*t)"'
    if kind == "steps":
        return f'"where(t < {draw(st.floats(0.0, 1.0)) * end!r}, {low!r}, {high!r})"'
    last = end * draw(st.sampled_from((0.1, 0.3, 1.0, 3.0)))
    repeat = str(kind == "repeated").lower()
    return f"{{ times = [0.0, {last / 3.0!r}, {last!r}], values = [{low!r}, {high!r}, {low!r}], repeat = {repeat} }}"


@st.composite
def coefficient_in_time(draw: st.DrawFn, end: float) -> str:
    """A heat transfer coefficient as TOML."""
    h = draw(magnitudes(0.1, 1e6))
    return draw(
        st.sampled_from(
            (
                repr(h),
                "0.0",
                f'"{h!r}*(1 + cos({7.0 / end!r}*t))"',
                f"{{ times = [0.0, {end / 2.0!r}], values = [{h!r}, 0.0] }}",
            )
        )
    )


@st.composite
def face(draw: st.DrawFn, case: Case, end: float) -> str:
    kind = draw(st.sampled_from(("insulated", "temperature", "convection")))
    if kind == "insulated":
        return '{ type = "insulated" }'
    temperature = draw(temperature_in_time(case, end))
    if kind == "temperature":
        return f'{{ type = "temperature", value = {temperature} }}'
    return f'{{ type = "convection", coefficient = {draw(coefficient_in_time(end))}, ambient = {temperature} }}'


@st.composite
def cases(draw: st.DrawFn) -> Case:
    case = Case(precision=draw(st.sampled_from(tuple(UNIT_ROUNDOFF))))
    cells = draw(st.tuples(*[st.integers(1, 8)] * 3))
    scale = draw(magnitudes(1e-6, 1e3))
    size = [scale * draw(magnitudes(0.05, 20.0)) for _ in range(3)]
    conductivity = [draw(magnitudes(0.02, 500.0)) for _ in range(3)]
    density, specific_heat = draw(magnitudes(1.0, 2e4)), draw(magnitudes(100.0, 5e3))

    # Some of the longest steps that could be stable, so that each case takes a moment only.
    rate = sum(
        k / (density * specific_heat) / (length / n) ** 2
        for k, length, n in zip(conductivity, size, cells, strict=True)
    )
    end = float(f"{draw(magnitudes(0.1, 20.0)) / rate:.6g}")
    dt = draw(st.sampled_from(['"auto"'] * 6 + [repr(end / 50.0), repr(end / 200.0)]))
    safety = draw(st.sampled_from((0.5, 0.9, 1.0)))
    every, probe_every = (end * draw(st.sampled_from((0.05, 0.1, 0.25, 0.3, 1.0, 2.0))) for _ in range(2))

    low, high = sorted((draw(KELVIN), draw(KELVIN)))
    case.include(low, high)
    middle, height = (low + high) / 2.0, (high - low) / 2.0
    # ±1 from cell to cell, which a time step beyond the limit makes grow the fastest.
    board = "*".join(f"sin({np.pi * n / length!r}*{axis})" for axis, n, length in zip("xyz", cells, size, strict=True))
    wave = f"sin({9.0 / size[0]!r}*x + {7.0 / size[1]!r}*y)"
    start = draw(
        st.sampled_from(
            (
                repr(low),
                f'"{middle!r} + {height!r}*{board}"',
                f'"{middle!r} + {height!r}*{wave}"',
                f'"where(x + z < {(size[0] + size[2]) / 2.0!r}, {low!r}, {high!r})"',
            )
        )
    )
    boundaries = []
    for axis in range(3):
        if draw(st.integers(0, 3)) == 0:
            conditions = ['{ type = "periodic" }'] * 2
        else:
            conditions = [draw(face(case, end)) for _ in range(2)]
        boundaries += [f"{FACES[2 * axis + side]} = {conditions[side]}" for side in range(2)]

    mistake = draw(st.sampled_from([""] * 20 + ["periodic", "cold", "flat", "kernel", "pole"]))
    if mistake == "periodic":
        boundaries[0], boundaries[1] = 'x_min = { type = "periodic" }', 'x_max = { type = "insulated" }'
    elif mistake == "cold":
        boundaries[2] = f'y_min = {{ type = "temperature", value = "10 - {20.0 / end!r}*t" }}'
        boundaries[3] = 'y_max = { type = "insulated" }'
    elif mistake == "flat":
        size[draw(st.integers(0, 2))] = 0.0
    elif mistake == "pole":
        start = '"300 + 1/(y - y)"'
    case.sound = not mistake

    kernel = draw(st.sampled_from([kernel.name for kernel in KERNELS if kernel.backend == "cpu"]))
    point = [draw(st.floats(0.0, 1.0)) * length for length in size]
    case.text = f"""
[domain]
size = {size!r}
cells = {list(cells)!r}
[material]
conductivity = {conductivity!r}
density = {density!r}
specific_heat = {specific_heat!r}
[initial]
temperature = {start}
[boundaries]
{chr(10).join(boundaries)}
[time]
end = {end!r}
dt = {dt}{f"{chr(10)}safety = {safety!r}" if dt == '"auto"' else ""}
[solver]
device = "cpu"
kernel = "{"none" if mistake == "kernel" else kernel}"
precision = "{case.precision}"
[output]
every = {every!r}
probe_every = {probe_every!r}
[[probes]]
name = "somewhere"
point = {point!r}
"""
    return case


# A failing scenario is short enough as it is; making it shorter would take minutes.
@settings(
    max_examples=100 if SLOW else 40,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(case=cases())
def test_random_scenarios_keep_within_their_range_or_are_refused(case: Case) -> None:
    with tempfile.TemporaryDirectory() as name:
        scenario, target = Path(name, "case.toml"), Path(name, "run")
        scenario.write_text(case.text, encoding="utf-8")
        refusal = None
        try:
            simulation = Simulation.from_scenario(scenario, output=target)
            simulation.run()
        except HeatsimError as error:
            refusal = str(error)
        if refusal is not None:
            event("refused")
            # A given dt may be too long, or divide nothing.
            assert not case.sound or 'dt = "auto"' not in case.text, refusal
            return
        event("run")
        assert case.sound, "a scenario with a mistake was run"
        assert simulation.step == simulation.plan.problem.timeline.last_step
        check(case, simulation)


def check(case: Case, simulation: Simulation) -> None:
    """The maximum principle for all that was written, and the energy balance."""
    u, reference = UNIT_ROUNDOFF[case.precision], simulation.state.field.reference
    # Up to ten operations in a step round a value that is at most as far from the reference as the range is.
    deviation = max(abs(case.lowest - reference), abs(case.highest - reference))
    drift = (10 * simulation.step + 10) * u * deviation + 1e-12 * case.highest
    lowest, highest = case.lowest - drift, case.highest + drift
    cells = simulation.plan.problem.grid.cell_count
    assert lowest <= simulation.temperature.min() <= simulation.temperature.max() <= highest

    _, probes = tables.read(simulation.folder / folder.PROBES)
    assert lowest <= probes[:, 1].min() <= probes[:, 1].max() <= highest
    with FieldReader(simulation.folder / folder.FIELDS) as fields:
        for i in range(len(fields)):
            low, high = fields.range(i)
            # Written as absolute temperatures, rounded once more.
            assert lowest - u * case.highest <= low <= high <= highest + u * case.highest

    energy = runs.energy_rows(simulation.folder)
    residual = np.array([row["residual"] for row in energy])
    turned_over = np.array(
        [sum(abs(heat) for name, heat in row.items() if name not in ("time", "residual")) for row in energy]
    )
    assert (
        np.abs(residual)
        <= 1e-12 * turned_over + drift * simulation.plan.problem.materials.cell_heat_capacity[0] * cells
    ).all()
