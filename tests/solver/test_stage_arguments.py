"""Arguments of kernels for stages of different lengths, and for the rate of change."""

import re
from math import fsum
from typing import Any

import numpy as np
import pytest
from bodies import EVERYTHING
from exact import INSULATED, convection, flux, scenario
from numpy.typing import NDArray

from heatsim import device
from heatsim.kernels.cpu.composite_body import CompositeCall
from heatsim.kernels.cpu.composite_oracle import COMPOSITE_KERNELS
from heatsim.kernels.cpu.oracle import CPU_KERNELS
from heatsim.physics.matter.coefficients import choose_stage_scheme
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import StageTimes
from heatsim.scenario import parse
from heatsim.solver.field.field import Field
from heatsim.solver.kernels.kernel_arguments import GeneralArguments, LinearArguments
from heatsim.solver.ledger.energy_ledger import Ledger

CPU = device.choose("cpu")
FACES = "\n".join(
    (
        f"x_min = {convection(800.0, 300.0)}",
        'x_max = { type = "temperature", value = "300 + 20*sin(t)" }',
        f"y_min = {INSULATED}",
        'y_max = { type = "flux", value = "1e4*where(t % 0.5 < 0.2, 1, -2)" }',
        f"z_min = {convection(50.0, 350.0)}",
        f"z_max = {flux(-2e3)}",
    )
)


def problem(text: str, *changes: tuple[str, str]) -> HeatProblem:
    import tomllib

    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return HeatProblem.from_scenario(parse(tomllib.loads(text), "case.toml"))


def box(precision: str = "float64", faces: str = FACES) -> HeatProblem:
    text = scenario((0.06, 0.05, 0.04), (12, 10, 8), initial=300.0, end=10.0, boundaries=faces, k=(20.0, 30.0, 10.0))
    return problem(re.sub(r'precision = "float64"', f'precision = "{precision}"', text))


def field_of(derived: HeatProblem, seed: int = 0) -> Field:
    field = Field(CPU, derived.grid, derived.precision, 300.0)
    field.deviation[...] = np.random.default_rng(seed).uniform(-50.0, 50.0, derived.grid.shape)
    return field


def stages(derived: HeatProblem, times: float = 40.0) -> StageTimes:
    """Four stages that together last ``times`` stable steps; the first is far beyond the limit."""
    lengths = np.array([0.7, 0.2, 0.08, 0.02]) * times * derived.limit.dt
    starts = 0.3 + np.concatenate(([0.0], np.cumsum(lengths)[:-1]))
    return StageTimes(starts + 0.4 * lengths, starts, lengths, lengths)


def seven(c: NDArray[np.float64]) -> NDArray[np.float64]:
    return c[:, [0, 1, 1, 2, 2, 3, 3]]


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_stage_of_the_length_of_a_step_is_the_step(precision: str) -> None:
    """Bits of f, g and the coefficients; and rows and factors of a general body."""
    linear = box(precision)
    arguments = LinearArguments(linear, field_of(linear), Ledger(CPU, linear, False))
    dt = linear.timeline.dt(0)
    times = linear.timeline.step_times(0, 5)
    steps, own = arguments.host_sweeps(0, 5), arguments.host_stage_sweeps(StageTimes.of_steps(times, dt), linear.scheme)
    assert linear.scheme == "seven_term"
    for name in ("f", "g"):
        assert steps[name].tobytes() == own[name].tobytes()
    np.testing.assert_array_equal(seven(own["c"]), np.broadcast_to(linear.coefficients[dt].c, (5, 7)))

    body = problem(EVERYTHING)
    rows = body.rows(body.timeline.step_times(0, 5), body.timeline.dt(0), 300.0)
    same = body.stage_rows(
        StageTimes.of_steps(body.timeline.step_times(0, 5), body.timeline.dt(0)), body.timeline.dt(0), 300.0
    )
    for name in ("conditions", "held", "heat", "factors"):
        assert getattr(rows, name).tobytes() == getattr(same, name).tobytes()
    assert (rows.factors == 1.0).all()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_stages_of_a_linear_body_keep_the_balance(precision: str) -> None:
    """Σ C·(T − T_before) is the ledger's heat, to the roundings of each stage times the growth of those after it."""
    derived = box(precision)
    field, ledger = field_of(derived), Ledger(CPU, derived, True)
    arguments, times = LinearArguments(derived, field, ledger), stages(derived)
    scheme = choose_stage_scheme(derived.grid, derived.rates, times.sizes, derived.precision)
    sweeps = arguments.host_stage_sweeps(times, scheme)
    T, size = field.deviation.copy(), float(np.abs(field.deviation).max())
    for kernel in CPU_KERNELS.values():
        for sums in ledger.sums.heats.faces:
            sums[...] = 0.0
        before = T.copy()
        after, _ = kernel(
            before,
            before.copy(),
            derived.periodic,
            seven(sweeps["c"]),
            sweeps["f"],
            sweeps["g"],
            ledger.sums.heats.faces,
            scheme,
        )
        gained = fsum((after.astype(float) - T).reshape(-1))
        growth = np.prod(np.abs(seven(sweeps["c"])).sum(axis=1) + sweeps["g"].sum(axis=1))
        rounding = (
            16.0 * len(times) * float(np.finfo(precision).eps * growth) * (size + float(np.abs(sweeps["f"]).max()))
        )
        assert gained == pytest.approx(fsum(ledger.sums.values), abs=rounding * T.size)
        assert abs(gained) > 1e3 * rounding * T.size or precision == "float32"


def test_a_given_flux_is_averaged_over_the_interval_and_the_rest_is_taken_at_the_time() -> None:
    derived = box()
    times = StageTimes(np.array([1.0, 2.0]), np.array([0.5, 0.7]), np.array([0.5, 0.1]), np.array([9.0, 3.0]))
    rows = derived.stage_rows(times, 1.0, 300.0)
    assert rows.conditions[:, 3, 2] == pytest.approx([1e4 * (0.2 - 2.0 * 0.3) / 0.5, -2e4], rel=1e-12)
    assert rows.conditions[:, 1, 1] == pytest.approx(20.0 * np.sin([1.0, 2.0]), rel=1e-12)
    assert rows.factors.tolist() == [9.0, 3.0]


def test_sources_give_in_stages_what_they_give_in_the_time() -> None:
    """Intervals of different lengths that tile the time: a switched source and a changing one."""
    body = problem(EVERYTHING)
    arguments = GeneralArguments(body, field_of(body), Ledger(CPU, body, True))
    end = body.scenario.time.end
    ends = np.union1d(np.linspace(0.0, 1.0, 81) ** 2 * end, [0.03, 0.13])
    lengths = np.diff(ends)
    times = StageTimes(ends[:-1], ends[:-1], lengths, lengths)
    rows = arguments.stage_rows(times)
    given = body.sources.total(rows.heat, rows.factors, "float64")
    everywhere = float(body.materials.counts[[1 in cell_type.sources for cell_type in body.materials.types]].sum())
    exact = 5.0 * 0.1 + 1e6 * everywhere * body.grid.cell_volume * (end + (1.0 - np.cos(30.0 * end)) / 30.0)
    assert given == pytest.approx(exact, rel=1e-9)
    assert len(rows.beams[0].first) == len(times)


def test_stages_of_a_step_share_its_heat() -> None:
    """A course that is even in time has its value at each place; any other keeps its mean over the step."""
    sizes, places = np.array([0.5, 0.3, 0.2]), np.array([-0.4, 0.2, 0.7])  # with Σ size·place = 0
    steps = np.column_stack((np.full(3, 2.0), np.full(3, 4.0), places))
    times = StageTimes(*[np.array([2.0, 4.0, 5.2])] * 2, *[4.0 * sizes] * 2, steps)
    even = times.means(lambda starts, lengths: 3.0 * (starts + 0.5 * lengths))
    np.testing.assert_allclose(even, 3.0 * (4.0 + 4.0 * places), rtol=1e-14)
    pulse = times.means(lambda starts, lengths: np.where(starts < 4.0, 7.0 / lengths, 0.0)[:, None])
    assert 4.0 * sizes @ pulse[:, 0] == pytest.approx(7.0, rel=1e-14)
    assert times.means(lambda starts, lengths: np.ones((1, 2))).shape == (1, 2)


@pytest.mark.parametrize("make", [box, lambda: problem(EVERYTHING)], ids=["one material", "everything"])
@pytest.mark.parametrize("kernel", COMPOSITE_KERNELS)
def test_a_rate_of_change_added_to_the_field_is_a_step(make, kernel: str) -> None:  # type: ignore[no-untyped-def]
    """Of any body, with the same heat in the ledger; added to 0 it is the same increment."""
    derived = make()
    field, ledger = field_of(derived), Ledger(CPU, derived, True)
    arguments = GeneralArguments(derived, field, ledger)
    rows = arguments.stage_rows(stages(derived, 0.5))
    steps, tables = arguments.arrays.steps(rows, 1), arguments.tables(arguments.reference_dt)
    advance, T = COMPOSITE_KERNELS[kernel], field.deviation
    stepped, added, alone = (np.empty_like(T) for _ in range(3))

    def run(T_new: NDArray[np.float64], *base: NDArray[np.float64]) -> NDArray[np.float64]:
        ledger.sums.values[...] = 0.0
        body, sums = arguments.arrays.body, arguments.sums
        advance(T, T_new, CompositeCall(derived.periodic, body, tables, steps, sums, "increments", *base))
        return ledger.sums.values.copy()

    expected = run(stepped)
    for sums in (run(added, T), run(alone, np.zeros(0))):
        assert sums.tobytes() == expected.tobytes()
    assert added.tobytes() == stepped.tobytes()
    np.testing.assert_array_equal(T + alone, stepped)
    assert sum(float(np.abs(sums).sum()) for sums in expected) > 0.0


DELTAS = np.array([0.35, 0.08, 0.2, 0.12])
CONSTANT = "\n".join(
    (
        f"x_min = {convection(800.0, 300.0)}",
        'x_max = { type = "temperature", value = 320.0 }',
        f"y_min = {INSULATED}",
        f"y_max = {flux(1e4)}",
        f"z_min = {convection(50.0, 350.0)}",
        f"z_max = {flux(-2e3)}",
    )
)


def factored(derived: HeatProblem, T: NDArray[np.float64], h: float, steps: int, linear: bool) -> tuple[Any, Ledger]:
    """Steps of Π(1 + δz)·(1 + az + bz²), the pair after two substeps, and the ledger.

    The pair is Z = T + (b/a)·h·F(T) without an entry, and T' = T + a·h·F(Z), of which the general kernel does both.
    """
    field, ledger = field_of(derived), Ledger(CPU, derived, True)
    general, arguments = GeneralArguments(derived, field, ledger), LinearArguments(derived, field, ledger)
    tables, advance = general.tables(general.reference_dt), COMPOSITE_KERNELS["numba"]
    a = 1.0 - DELTAS.sum()
    b = (a * a + (DELTAS**2).sum()) / 2.0
    sizes = np.array([*DELTAS[:2], b / a, a, *DELTAS[2:]]) * h
    times = StageTimes(np.zeros(6), np.zeros(6), np.abs(sizes), sizes)
    rows = general.stage_rows(times)
    scheme = choose_stage_scheme(derived.grid, derived.rates, times.sizes, derived.precision)
    sweeps = arguments.host_stage_sweeps(times, scheme)

    def general_stage(T: Any, stage: int, *base: Any) -> Any:
        sums = general.no_sums if stage == 2 else general.sums
        T_new, steps = np.empty_like(T), general.arrays.steps(rows[stage : stage + 1], 1)
        body = general.arrays.body
        advance(T, T_new, CompositeCall(derived.periodic, body, tables, steps, sums, "increments", *base))
        return T_new

    def substeps(T: Any, first: int) -> Any:
        if not linear:
            return general_stage(general_stage(T, first), first + 1)
        own = sweeps[first : first + 2]
        fixed = (derived.periodic, seven(own["c"]), own["f"], own["g"], ledger.sums.heats.faces, scheme)
        return CPU_KERNELS["numba"](T.copy(), np.empty_like(T), *fixed)[0]

    for _ in range(steps):
        T = substeps(T, 0)
        T = substeps(general_stage(general_stage(T, 2), 3, T), 4)
    return T, ledger


@pytest.mark.parametrize("linear", [True, False], ids=["linear", "general"])
def test_substeps_and_a_pair_are_of_second_order_and_keep_the_balance(linear: bool) -> None:
    derived = box(faces=CONSTANT)
    x, y, z = (np.cos(np.arange(n)) for n in derived.grid.cells)
    start = 20.0 * (z[:, None, None] + y[:, None] + x)
    end = 6.0 * derived.limit.dt
    fields = {}
    for steps in (32, 64, 512):
        T, ledger = factored(derived, start, end / steps, steps, linear)
        entered = fsum(ledger.sums.values)
        terms = fsum(np.abs(ledger.sums.values)) + float(np.abs(T).sum())
        assert fsum((T - start).reshape(-1)) == pytest.approx(entered, abs=6 * steps * 8 * np.finfo(float).eps * terms)
        fields[steps] = T
    coarse, fine = (float(np.abs(fields[steps] - fields[512]).max()) for steps in (32, 64))
    assert coarse < 1e-3
    assert 3.5 < coarse / fine < 5.0
