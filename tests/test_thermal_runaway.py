"""Sources whose heat grows with the temperature: two steady states, one of which is unstable, and runaways in time.

A slab of half width a = 1 cm, held at T₀ on both sides, with q = q₀·exp(β·(T − T₀)) and δ = q₀·β·a²/k: below
δ = 0.8785 there are two steady states, T = T₀ + (ln m − 2·ln cosh(√(δ·m/2)·x/a))/β, with the two m that give T₀ at the
sides; above there is none (Frank-Kamenetskii, *Diffusion and Heat Transfer in Chemical Kinetics*, ch. 6).
"""

from math import cosh, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import heatsim
from heatsim.errors import NotConvergedError, ScenarioError
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse

BETA, HALF, T_0 = 0.02, 0.01, 300.0


def scenario(delta: float, start: float | str, cells: int = 40, **tables: object) -> dict[str, object]:
    density = delta / (BETA * HALF**2)
    return {
        "domain": {"size": [2.0 * HALF, 0.01, 0.01], "cells": [cells, 1, 1]},
        "material": {"conductivity": 1.0, "density": 1000.0, "specific_heat": 500.0},
        "initial": {"temperature": start},
        "boundaries": {face: {"type": "temperature", "value": T_0} for face in ("x_min", "x_max")},
        "sources": [{"power_density": f"{density}*exp({BETA}*(T - {T_0}))", "temperature_range": [200.0, 900.0]}],
        "time": {"method": "steady"},
        "solver": {"device": "cpu", "precision": "float64"},
        "output": {"figures": False},
    } | tables


def run(at: Path, of: dict[str, object]) -> NDArray[np.float64]:
    simulation = heatsim.Simulation.from_model(parse(of, at / "slab.toml"), at / "out")
    simulation.run()
    return simulation.temperature.ravel()


def known(delta: float, cells: int, *, stable: bool) -> NDArray[np.float64]:
    def excess(m: float) -> float:
        return m - cosh(sqrt(delta * m / 2.0)) ** 2

    # The first root lies below the largest m − cosh², the second one above it.
    trials = np.exp(np.linspace(0.0, 8.0, 4001))
    middle = float(max(trials, key=excess))
    low, high = (1.0, middle) if stable else (middle, float(trials[-1]))
    rising = excess(high) > excess(low)
    for _ in range(200):
        m = 0.5 * (low + high)
        low, high = (m, high) if (excess(m) < 0.0) == rising else (low, m)
    x = (np.arange(cells) + 0.5) / cells * 2.0 - 1.0
    return np.asarray(T_0 + (log(m) - 2.0 * np.log(np.cosh(sqrt(delta * m / 2.0) * x))) / BETA)


@pytest.mark.parametrize(
    ("start", "varying"), [(T_0, False), (340.0, False), (400.0, False), (T_0, True), (340.0, True)]
)
def test_a_steady_state_is_the_stable_one(tmp_path: Path, start: float, varying: bool) -> None:
    """The unstable one has its peak at 445 K, so 400 K everywhere lies between both."""
    of = scenario(0.5, start)
    if varying:
        of["material"] = {"conductivity": "1 + 0*T", "density": 1000.0, "specific_heat": 500.0}
    T = run(tmp_path, of)
    np.testing.assert_allclose(T, known(0.5, 40, stable=True), atol=0.02)


def test_close_to_the_limit(tmp_path: Path) -> None:
    errors = [
        np.abs(run(tmp_path / str(n), scenario(0.87, T_0, n)) - known(0.87, n, stable=True)).max() for n in (20, 40)
    ]
    assert errors[1] < 0.3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)


@pytest.mark.parametrize(("delta", "start"), [(0.95, T_0), (0.95, 600.0), (0.5, 600.0), (0.87, 400.0)])
def test_a_runaway_is_told(tmp_path: Path, delta: float, start: float) -> None:
    with pytest.raises(NotConvergedError, match=r"thermal runaway.*begin below it with initial\.temperature"):
        run(tmp_path, scenario(delta, start))


def test_an_unstable_state_is_no_answer(tmp_path: Path) -> None:
    """A start within the tolerance of the unstable state: no Newton step would move away."""
    T = known(0.5, 400, stable=False)
    np.save(tmp_path / "start.npy", T.reshape(1, 1, -1))
    of = scenario(0.5, 0.0, 400, initial={"temperature": {"file": "start.npy"}})
    of["time"] = {"method": "steady", "tolerance": 100.0}
    with pytest.raises(NotConvergedError, match="the steady state that was found is unstable"):
        run(tmp_path, of)


INSULATED = {"boundaries": {}, "domain": {"size": [0.02, 0.01, 0.01], "cells": [8, 1, 1]}}
# Zeros at 350 K, where it falls, and at 450 K, where it rises.
BOWL = [{"power_density": "10*(T - 350)*(T - 450)", "temperature_range": [200.0, 900.0]}]


@pytest.mark.parametrize("start", [T_0, 360.0, 440.0])
def test_heat_that_falls_and_then_rises_holds_an_insulated_body(tmp_path: Path, start: float) -> None:
    np.testing.assert_allclose(run(tmp_path, scenario(0.5, start, sources=BOWL, **INSULATED)), 350.0, atol=1e-3)


@pytest.mark.parametrize(("start", "reason"), [(450.0, "unstable"), (460.0, "do not balance")])
def test_beyond_its_second_zero_it_does_not(tmp_path: Path, start: float, reason: str) -> None:
    with pytest.raises(NotConvergedError, match=reason):
        run(tmp_path, scenario(0.5, start, sources=BOWL, **INSULATED))


def test_heat_that_rises_alone_does_not_hold_a_body(tmp_path: Path) -> None:
    rising = [{"power_density": "1e3*(T - 350)", "temperature_range": [200.0, 900.0]}]
    with pytest.raises(ScenarioError, match="no steady temperature"):
        run(tmp_path, scenario(0.5, T_0, sources=rising, **INSULATED))


def test_only_heat_that_falls_limits_the_step() -> None:
    def limit(*sources: dict[str, object]) -> float:
        of = scenario(0.5, T_0, sources=list(sources), time={"method": "euler", "end": 1.0})
        return HeatProblem.from_scenario(parse(of, "slab.toml")).limit.dt

    plain, steep, ends = limit(), "1e7*(T - 350)", {"temperature_range": [200.0, 900.0]}
    assert limit({"power_density": steep} | ends) == plain
    assert limit({"power_density": steep, "scale": -1.0} | ends) == pytest.approx(1.0 / (1.0 / plain + 1e7 / 5e5))
    # A scale of both signs: the part that falls counts, with its own factor.
    scale = {"times": [0.0, 1.0], "values": [2.0, -0.5]}
    assert limit({"power_density": steep, "scale": scale} | ends) == pytest.approx(1.0 / (1.0 / plain + 0.5e7 / 5e5))


@pytest.mark.parametrize(("method", "error"), [("euler", 2.0), ("stabilized", 0.5), ("implicit", 0.5)])
def test_methods_follow_a_runaway(tmp_path: Path, method: str, error: float) -> None:
    """An insulated body with q = q₀·exp(β·(T − T₀)): T = T₀ − ln(1 − β·q₀·t/(ρ·cp))/β until it explodes at t = 1 s."""
    T = run(
        tmp_path,
        scenario(
            0.0,
            T_0,
            boundaries={},
            sources=[{"power_density": f"{5e5 / BETA}*exp({BETA}*(T - {T_0}))", "temperature_range": [200.0, 500.0]}],
            time={"method": method, "end": 0.9} | ({"dt": 1e-3} if method == "euler" else {"tolerance": 0.01}),
        ),
    )
    np.testing.assert_allclose(T, T_0 - log(1.0 - 0.9) / BETA, atol=error)
