"""Expressions in time and place by their values at a few moments: the error is known, or there are none."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim import Simulation
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.moments import ERROR, MOST_MOMENTS, moments_of

NAMES = ("x", "y", "z", "t")


def places(count: int = 500) -> dict[str, NDArray[np.float64]]:
    random = np.random.default_rng(3)
    return {name: random.uniform(0.0, 0.1, count) for name in "xyz"}


@pytest.mark.parametrize(
    "text",
    [
        "exp(-((x - 0.05 - 1e-3*t)/0.02)^2)",
        "1/(1 + x*t)",
        "abs(1 + x*sin(t/2))",
        "where(x < 0.05, exp(-x*t), cos(x*t))",
        "exp(-((x - 0.05 - 0.01*sin(t/10))^2 + (y - 0.05)^2)/0.02^2)",
        "sqrt(1 + x*t)*y",
        "max(1, x*t) + max(0.5, x - 1) + 1/(2 + x*t)",
    ],
)
def test_the_values_at_moments_give_it_to_a_millionth(text: str) -> None:
    expression, points, end = Expression(text, NAMES), places(), 9.0
    moments = moments_of(expression, end, points)
    assert moments is not None
    assert len(moments) <= MOST_MOMENTS
    times = np.linspace(0.0, end, 257)
    exact = expression.evaluate(**points, t=times[:, None])
    values = [np.broadcast_to(expression.evaluate(**points, t=moment.time), 500) for moment in moments]
    found = sum(moment.factor.evaluate(t=times)[:, None] * value for moment, value in zip(moments, values, strict=True))
    assert np.abs(found - exact).max() <= ERROR * np.abs(exact).max()


@pytest.mark.parametrize(
    "text",
    [
        "exp(-((x - 0.05 - 0.1*t)/0.001)^2)",
        "max(0, x - 0.05 + 0.01*t)",
        "where(x < 0.01*t, 1, 0)",
        "sin(50*x - t)*sin(1/(0.01 + x*t))",
        "1/(x - 0.005*t)",
    ],
)
def test_none_are_found_for_what_jumps_bends_or_moves_far(text: str) -> None:
    assert moments_of(Expression(text, NAMES), 9.0, places()) is None


@pytest.mark.quick("stabilized", "euler")
@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_a_slowly_moving_heat_warms_cells_that_conduct_nothing(tmp_path: Path, method: str) -> None:
    """T − T₀ = ∫ q dt/(ρ·c) in each cell, from a sum over many moments."""
    cells, size, end, density = 40, 0.1, 20.0, "1e6*exp(-((x - 0.04 - 5e-4*t)/0.02)^2)"
    document = {
        "domain": {"size": [size, 0.01, 0.01], "cells": [cells, 1, 1]},
        "material": {"conductivity": 1e-9, "density": 1000.0, "specific_heat": 1000.0},
        "initial": {"temperature": 300.0},
        "boundaries": {"x_min": {"type": "insulated"}},
        "sources": [{"power_density": density}],
        "time": {"end": end, "method": method},
        "solver": {"device": "cpu", "precision": "float64"},
        "output": {"every": end / 4, "figures": False},
    }
    if method != "euler":
        document["time"]["tolerance"] = 1e-3 if method == "implicit" else 0.1
    simulation = Simulation.from_dict(document, tmp_path / "run")
    simulation.run()
    within = np.polynomial.legendre.leggauss(4)  # four points of each cell
    x, t = (np.arange(cells)[:, None] + 0.5 + 0.5 * within[0]) * size / cells, (np.arange(4000) + 0.5) * end / 4000
    values = Expression(density, ("x", "t")).evaluate(x=x, t=t[:, None, None]).mean(axis=0)
    exact = values @ (0.5 * within[1]) * end / 1e6
    assert np.ptp(exact) > 10.0
    # The heat is averaged over steps, so only its error counts: a millionth of its largest value. Solutions of implicit
    # stages are off by up to a tenth of what a step may have.
    allowed = ERROR * 1e6 * end / 1e6 + (0.1 * 1e-3 if method == "implicit" else 0.0)
    np.testing.assert_allclose(simulation.temperature.ravel() - 300.0, exact, rtol=0.0, atol=allowed)
