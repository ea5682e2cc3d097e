"""One implicit step of fixed length: its order, its damping, its ledger; the same numbers from a device's arrays."""

import bodies
import numpy as np
import pytest
from cuda_host.multigrid import sweeps_on_host
from cuda_host.strict import StrictModule
from implicit_bodies import (
    CONVECTION,
    GROWING,
    HELD,
    RADIATION,
    SOURCE,
    backend_of,
    classical_runge_kutta,
    end_of,
    problem_of,
    slab,
    steps,
)

from heatsim.device import Device
from heatsim.physics.operator.heat_sums import HeatSums
from heatsim.physics.time.stage_times import Side
from heatsim.solver.field.field import Field
from heatsim.solver.implicit import field_stages
from heatsim.solver.implicit.field_stages import FieldStages
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.stabilized.substeps import End

BODIES = {
    "swinging surroundings": slab(CONVECTION),
    "source": slab(CONVECTION, more=SOURCE),
    "radiation": slab(RADIATION),
    "k(T)": slab(CONVECTION, GROWING, SOURCE),
}


@pytest.mark.quick("k(T)", "swinging surroundings")
@pytest.mark.parametrize("name", BODIES)
def test_the_order_is_two(name: str) -> None:
    """Also where surfaces, sources and conductivities change on the way."""
    problem = problem_of(BODIES[name])
    begun = classical_runge_kutta(problem, np.zeros(problem.grid.shape), 0.0, 20.0, 400.0)
    exact = classical_runge_kutta(problem, begun, 20.0, 100.0, 400.0)
    coarse, fine = (
        np.abs(steps(backend_of(problem, begun), 20.0, 80.0 / count, count, 1e-5) - exact).max() for count in (16, 32)
    )
    assert fine < 0.1
    assert 1.85 <= np.log2(coarse / fine) <= 2.25


def test_decay_is_over_after_a_long_step() -> None:
    """R(z) of an L-stable method vanishes: |R| ≤ ((2γ − 1)·|z| + 1)/(1 + γ·|z|)² < 5/|z|; Crank-Nicolson keeps 1."""
    problem = problem_of(slab(HELD))
    ripple = 50.0 * (-1.0) ** np.arange(12).reshape(1, 1, 12)
    slowest = 0.2 * 30.0 / (2000.0 * 500.0 * 0.12**2)  # 1/s: less than (π/2)²·α/L²
    for h in (1e4, 1e6, 1e8):
        allowed = 150.0 * 5.0 / (slowest * h)
        rest = steps(backend_of(problem, ripple), 0.0, h, 1, 1e-4)
        assert np.abs(rest + 100.0).max() <= allowed + 1e-3  # the 300 K of both sides


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_the_ledger_closes_whatever_the_tolerance(precision: str) -> None:
    """With every kind of surface and source: within what the solver states, and that is far below the tolerance."""
    text = bodies.EVERYTHING.replace('method = "euler"', 'method = "implicit"')
    problem = problem_of(text.replace('"float64"', f'"{precision}"'))
    for tolerance in (1.0, 1e-4):
        across = np.linspace(0.0, 80.0, problem.grid.cells[0]) * np.ones(problem.grid.shape)
        stages = backend_of(problem, across, 300.0)
        capacities = problem.materials.cell_heat_capacity[problem.materials.cells & 0x7F]
        start = float((capacities * end_of(stages)).sum(dtype=np.float64))
        steps(stages, 0.0, 0.02, 1, tolerance)
        for t in (0.02, 0.04):
            stages.advance(stages.choose(0.02, tolerance), t, 0.02)
            stages.count(stages.choose(0.02, tolerance), 0.02)
            stages.rate(End.LAST, t + 0.02, Side.BEFORE)
            stages.accept()
        T = end_of(stages)
        stored = float((capacities * T).sum(dtype=np.float64)) - start
        ledger = Ledger(stages._field.device, problem, True)
        ledger.show(stages._first.sums)
        heats = ledger.heats()
        residual = stored - ledger.shown_sources - float(heats.beams[0] + heats.faces.sum() + heats.towards_void[0, 0])
        stated = stages.counts()["imbalance"]
        unit = {"float64": 2.0**-53, "float32": 2.0**-24}[precision]
        rounding = 3 * 2 * unit * float((capacities * np.abs(T)).sum())
        # The first step was not counted; it is like the others.
        assert abs(residual) <= 3.0 * stated + rounding + 1e-9
        # A tolerance of 1 K allows the solver 0.1 K: Σ C·0.1 K is 0.6 J.
        assert stated < 1e-4


def test_an_interval_between_rows_closes_like_its_ends() -> None:
    """The rate at the end is that of the balance: Σ C·F = flows + sources, to what the solver left."""
    problem = problem_of(BODIES["source"])
    stages = backend_of(problem, 0.0)
    steps(stages, 0.0, 2.0, 3, 1e-5)
    flows = stages._first.flows
    through = float(flows.values.sum())
    capacity = float(problem.materials.cell_heat_capacity[0])
    gained = capacity * float(stages._first.F.sum())
    assert gained == pytest.approx(capacity * through + flows.sources, abs=1e-4)
    assert abs(gained) > 1.0


def test_the_rate_after_a_short_step_is_that_of_its_end() -> None:
    """K₂ of such a step is a small change of T, rounded, over a short time."""
    problem = problem_of(BODIES["swinging surroundings"])
    stages = backend_of(problem, 40.0 * np.sin(np.arange(12.0)))
    h = 1e-9 * stages.dt_limit
    steps(stages, 20.0, h, 1, 0.1)
    other = backend_of(problem, end_of(stages))
    other.rate(End.FIRST, 20.0 + h, Side.AFTER)
    assert np.abs(stages._first.F - other._first.F).max() <= 1e-9 * np.abs(other._first.F).max()


@pytest.mark.parametrize("name", ["swinging surroundings", "radiation"])
def test_a_first_guess_far_off_does_not_count(name: str) -> None:
    """Where steps are far too long F_n leads anywhere; right-hand sides in float32 would be off by kelvins then."""
    problem = problem_of(BODIES[name])
    found = []
    for factor in (1.0, -1e7):
        stages = backend_of(problem, 0.0)
        stages.rate(End.FIRST, 0.0, Side.AFTER)
        stages._first.F *= factor
        stages.advance(stages.choose(5.0, 1e-4), 0.0, 5.0)
        stages.accept()
        found.append(end_of(stages))
    assert np.abs(found[1] - found[0]).max() <= 1e-4


def test_a_step_without_a_solution_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN in the last end: the controller then tries a tenth of the length."""
    monkeypatch.setattr(field_stages, "_MOST_CYCLES", 0)
    problem = problem_of(slab())
    stages = backend_of(problem, 0.0)
    stages.rate(End.FIRST, 0.0, Side.AFTER)
    stages.advance(stages.choose(1.0, 0.1), 0.0, 1.0)
    assert np.isnan(stages.measure((0.0, 0.0, 1.0, 0.0), 2).size)  # type: ignore[arg-type]


VARYING = """
title = "Fin in wax"
domain = { size = [0.011, 0.006, 0.005], cells = [11, 6, 5], material = "wax" }
solver = { device = "cpu", precision = "float32" }
initial = { temperature = 320.0 }
time = { method = "implicit", end = 50.0 }
[materials.wax]
conductivity = { temperatures = [300.0, 400.0], values = [0.3, 0.2] }
density = 800.0
specific_heat = 2000.0
latent_heat = 1.9e5
solidus = 325.0
liquidus = 330.0
[materials.steel]
conductivity = 20.0
density = 7800.0
specific_heat = 470.0
[[regions]]
name = "fin"
material = "steel"
box = { min = [0.004, 0.0, 0.0], max = [0.006, 0.006, 0.005] }
[boundaries]
x_min = { type = "temperature", value = 360.0 }
z_min = { type = "convection", coefficient = 300.0, ambient = 350.0, emissivity = 0.8 }
"""
EVERYTHING = bodies.EVERYTHING.replace("[12, 9, 12]", "[8, 6, 5]").replace('method = "euler"', 'method = "implicit"')


@pytest.mark.parametrize("text", [EVERYTHING.replace('"float64"', '"float32"'), VARYING], ids=["everything", "melting"])
def test_arrays_of_a_device_give_the_same_step(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CUDA kernels on the host, with arrays that do not mix with NumPy's."""
    problem, tolerance, h = problem_of(text), 0.01, 0.02
    known = backend_of(problem, 0.0, problem.reference or 320.0)
    expected = steps(known, 0.0, h, 1, tolerance)
    device = Device("cpu", StrictModule(), "the host")
    sweeps, _ = sweeps_on_host(device.xp, monkeypatch)
    monkeypatch.setattr(field_stages, "make_sweeps", lambda field: sweeps)
    field = Field(device, problem.grid, problem.precision, problem.reference or 320.0)
    field.deviation[...] = 0.0
    ledger = Ledger(device, problem, True)
    stages = FieldStages(problem, field, ledger, device.xp.asarray(problem.materials.cells))
    found = steps(stages, 0.0, h, 1, tolerance)
    assert np.abs(found.get() - expected).max() <= 0.2 * tolerance
    sums: HeatSums = known._first.sums
    same = stages._first.sums.values.get()
    np.testing.assert_allclose(same, sums.values, rtol=1e-3, atol=1e-3 * np.abs(sums.values).max() + 1e-12)
