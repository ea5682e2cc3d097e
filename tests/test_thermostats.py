"""Steady states of bodies whose heat falls steeply with the temperature, as that of a thermostat does.

A bar with convection at x_min, insulated elsewhere. The temperature of its last plane gives those of all others, one
after the other, and what the balance of the film misses. That rises with the temperature, so bisection finds the state.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from covering import pairwise
from numpy.typing import NDArray

import heatsim
from heatsim.errors import NotConvergedError

Thermostat = tuple[int, float, float, float]  # plane, power at low temperatures in W/m³, threshold in K, width in K

pytestmark = pytest.mark.usefixtures("one_thread")

D, K, FILM, AMBIENT = 1e-3, 2.0, 20.0, 300.0


def expected(planes: int, thermostats: Sequence[Thermostat]) -> NDArray[np.float64]:
    def heat(plane: int, T: float) -> float:
        found = [q / (1.0 + np.exp((T - at) / w)) for of, q, at, w in thermostats if of == plane]
        return D * sum(found)

    def along(last: float) -> tuple[list[float], float]:
        temperatures, flux = [last], heat(planes - 1, last)
        for plane in range(planes - 2, -1, -1):
            temperatures.append(temperatures[-1] - flux * D / K)
            flux += heat(plane, temperatures[-1])
        return temperatures[::-1], (temperatures[-1] - AMBIENT) / (1.0 / FILM + D / (2.0 * K)) - flux

    low, high = AMBIENT, 3000.0
    with np.errstate(over="ignore"):
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if along(middle)[1] > 0.0 else (middle, high)
        return np.array(along(low)[0])


def document(
    planes: int, thermostats: Sequence[Thermostat], precision: str, across: int = 1, factor: str = "1"
) -> dict[str, object]:
    size = [planes * D, across * D, across * D]
    sources = [
        {
            "power_density": f"{q}*({factor})/(1 + exp((T - {at})/{w}))",
            "box": {"min": [plane * D, 0.0, 0.0], "max": [(plane + 1) * D, *size[1:]]},
            "temperature_range": [200.0, 1000.0],
        }
        for plane, q, at, w in thermostats
    ]
    return {
        "domain": {"size": size, "cells": [planes, across, across]},
        "material": {"conductivity": K, "density": 2000.0, "specific_heat": 1000.0},
        "initial": {"temperature": AMBIENT},
        "boundaries": {"x_min": {"type": "convection", "coefficient": FILM, "ambient": AMBIENT}},
        "sources": sources,
        "time": {"method": "steady"},
        "solver": {"device": "cpu", "precision": precision},
        "output": {"figures": False, "fields": False},
    }


@pytest.fixture
def steady(tmp_path: Path) -> Callable[[dict[str, object]], NDArray[np.float64]]:
    def run(of: dict[str, object]) -> NDArray[np.float64]:
        simulation = heatsim.Simulation.from_dict(of, tmp_path / "run")
        simulation.run()
        return simulation.temperature

    return run


@pytest.mark.parametrize(
    ("bar", "width", "precision"),
    pairwise([(10, 1, 1e6), (1, 1, 1e7), (6, 3, 1e8)], (0.05, 0.5, 2.0, 5.0, 20.0), ("float32", "float64")),
)
def test_a_thermostat_holds_its_plane(
    steady: Callable[..., NDArray[np.float64]], bar: tuple[int, int, float], width: float, precision: str
) -> None:
    """In one cell, and in a plane of 9 cells."""
    planes, across, q = bar
    thermostats = [(planes - 1, q, 330.0, width)]
    T, known = steady(document(planes, thermostats, precision, across)), expected(planes, thermostats)
    np.testing.assert_allclose(T, np.broadcast_to(known, T.shape), atol=max(1e-3, 1e-4 * float(np.ptp(known))))


@pytest.mark.parametrize("width", [0.05, 1.0, 20.0])
def test_several_thermostats(steady: Callable[..., NDArray[np.float64]], width: float) -> None:
    """Each plane of a bar has its own threshold; some are off, some on, some in between."""
    thermostats = [(plane, 10.0 ** (5 + plane % 4), 320.0 + 7.0 * (plane * 5 % 8), width) for plane in range(8)]
    T, known = steady(document(8, thermostats, "float64")).ravel(), expected(8, thermostats)
    np.testing.assert_allclose(T, known, atol=max(1e-3, 1e-4 * float(np.ptp(known))))


def test_heat_that_rises_before_it_falls(steady: Callable[..., NDArray[np.float64]]) -> None:
    """It doubles every 20 K until the thermostat turns it off; without that there would be no steady state."""
    of = document(4, [(3, 1e6, 350.0, 0.5)], "float64", factor="exp((T - 300)/28.85)")
    T = steady(of).ravel()
    flux = float(T[0] - AMBIENT) / (1.0 / FILM + D / (2.0 * K))
    np.testing.assert_allclose(np.diff(T), flux * D / K, rtol=1e-3)
    given = D * 1e6 * np.exp((T[3] - 300.0) / 28.85) / (1.0 + np.exp((T[3] - 350.0) / 0.5))
    assert given == pytest.approx(flux, rel=0.01)


def test_heat_that_falls_too_late_is_told(steady: Callable[..., NDArray[np.float64]]) -> None:
    """The same without a threshold in the range of the source."""
    with pytest.raises(NotConvergedError, match="thermal runaway"):
        steady(document(4, [(3, 1e6, 2000.0, 100.0)], "float64", factor="exp((T - 300)/28.85)"))
