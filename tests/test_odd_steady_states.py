"""Steady states of odd bodies against exact answers: extremes of tolerances, films and conductivities, odd grids."""

from pathlib import Path

import numpy as np
import pytest
from covering import pairwise
from numpy.typing import NDArray

import heatsim
from heatsim.errors import NotConvergedError, RunError
from heatsim.scenario import parse

Array = NDArray[np.float64]
# A bar of 1 m along z with a section of 1 cm².
AREA = 1e-4
STEEL = {"conductivity": 50.0, "density": 8000.0, "specific_heat": 500.0}


def steady(at: Path, cells: int = 31, **tables: object) -> tuple[Array, heatsim.Simulation]:
    """Temperatures along the bar in K, and the run; tables of the scenario are replaced."""
    scenario = {
        "domain": {"size": [0.01, 0.01, 1.0], "cells": [1, 1, cells]},
        "material": STEEL,
        "boundaries": {"z_min": {"type": "temperature", "value": 400.0}},
        "time": {"method": "steady"},
        "solver": {"device": "cpu"},
        "output": {"figures": False},
    }
    given = {name: table for name, table in {**scenario, **tables}.items() if table is not None}
    simulation = heatsim.Simulation.from_model(parse(given, at / "bar.toml"), at / "out")
    simulation.run()
    return simulation.temperature.ravel(), simulation


def centres(cells: int) -> Array:
    return (np.arange(cells) + 0.5) / cells


@pytest.mark.parametrize(
    ("precision", "tolerance", "cells"), pairwise(("float32", "float64"), (1e-9, 1e-3, 100.0), (1, 2, 31, 997))
)
def test_a_bar_is_right_to_any_tolerance(tmp_path: Path, cells: int, tolerance: float, precision: str) -> None:
    """Held at 400 K, cooled at the other end: the half cells make the grid exact."""
    T, _ = steady(
        tmp_path,
        cells,
        boundaries={
            "z_min": {"type": "temperature", "value": 400.0},
            "z_max": {"type": "convection", "coefficient": 50.0, "ambient": 300.0},
        },
        time={"method": "steady", "tolerance": tolerance},
        solver={"device": "cpu", "precision": precision},
    )
    # Film and bar have the same resistance. float32 rounds conductances to 6e-8, and so does the field.
    rounding = 0.0 if precision == "float64" else 1e-4
    assert np.abs(T - (400.0 - 50.0 * centres(cells))).max() <= tolerance + rounding + 1e-9


def test_nothing_happens_without_power(tmp_path: Path) -> None:
    T, _ = steady(tmp_path, sources=[{"power": 0.0}])
    assert np.abs(T - 400.0).max() <= 1e-3


def test_a_film_that_is_nearly_an_insulator(tmp_path: Path) -> None:
    """All heat leaves through 10⁻⁶ W/(m² K): conductances differ by a factor of 10⁹."""
    film = {"type": "convection", "coefficient": 1e-6, "ambient": 300.0}
    T, _ = steady(
        tmp_path,
        boundaries={"z_min": film},
        sources=[{"power": 1e-8}],
        solver={"device": "cpu", "precision": "float64"},
    )
    assert np.abs(T - (300.0 + 1e-8 / (1e-6 * AREA))).max() <= 1e-3


def test_conductivities_that_differ_by_a_million(tmp_path: Path) -> None:
    """A third of the bar is a good insulator: all the rise is in it."""
    T, _ = steady(
        tmp_path,
        30,
        domain={"size": [0.01, 0.01, 1.0], "cells": [1, 1, 30], "material": "copper"},
        material=None,
        materials={"copper": {**STEEL, "conductivity": 1000.0}, "gel": {**STEEL, "conductivity": 1e-3}},
        regions=[{"name": "gel", "material": "gel", "box": {"min": [0, 0, 1 / 3], "max": [0.01, 0.01, 2 / 3]}}],
        boundaries={"z_min": {"type": "temperature", "value": 400.0}, "z_max": {"type": "temperature", "value": 300.0}},
    )
    gel = np.clip((centres(30) - 1.0 / 3.0) * 3.0, 0.0, 1.0)
    # The copper takes 4e-6 of the 100 K.
    assert np.abs(T - (400.0 - 100.0 * gel)).max() <= 0.01 + 4e-4


@pytest.mark.parametrize("cells", [7, 40])
def test_a_conductivity_that_jumps_within_a_kelvin(tmp_path: Path, cells: int) -> None:
    """Kirchhoff's potential is a straight line, whatever k(T) is: from 1 to 100 W/(m K) at 350 K."""
    nodes, k = np.array([300.0, 350.0, 350.5, 500.0]), np.array([1.0, 1.0, 100.0, 100.0])
    T, _ = steady(
        tmp_path,
        cells,
        material={**STEEL, "conductivity": {"temperatures": nodes.tolist(), "values": k.tolist()}},
        boundaries={"z_min": {"type": "temperature", "value": 300.0}, "z_max": {"type": "temperature", "value": 500.0}},
    )
    fine = np.linspace(300.0, 500.0, 400_001)
    conducting = np.interp(fine, nodes, k)
    potential = np.concatenate(([0.0], np.cumsum(0.5 * (conducting[1:] + conducting[:-1]) * np.diff(fine))))
    # The default tolerance is 0.01 % of the range; tables of materials have 1e-6 of it.
    assert np.abs(T - np.interp(centres(cells) * potential[-1], potential, fine)).max() <= 0.02


def test_a_body_that_cannot_get_the_heat_that_is_taken_out_has_no_steady_state(tmp_path: Path) -> None:
    """At 0 K nothing radiates, so surroundings of 300 K give at most 0.05 W through this face."""
    with pytest.raises(NotConvergedError, match="none if sources take out more heat than surfaces can supply"):
        steady(
            tmp_path,
            boundaries={"z_min": {"type": "radiation", "emissivity": 0.9, "ambient": 300.0}},
            sources=[{"power": -1.0}],
        )


def test_a_steady_state_below_0_K_is_refused(tmp_path: Path) -> None:
    """Convection alone has no such limit."""
    with pytest.raises(RunError, match="steady state is below 0 K: -"):
        steady(tmp_path, sources=[{"power": -10.0}])


@pytest.mark.parametrize("wrapped", ["y", "x"])
def test_axes_of_one_or_two_cells_that_wrap_change_nothing(tmp_path: Path, wrapped: str) -> None:
    periodic = {f"{wrapped}_min": {"type": "periodic"}, f"{wrapped}_max": {"type": "periodic"}}
    T, _ = steady(
        tmp_path,
        domain={"size": [0.01, 0.01, 1.0], "cells": [1, 2, 31]},
        boundaries={
            **periodic,
            "z_min": {"type": "temperature", "value": 400.0},
            "z_max": {"type": "temperature", "value": 300.0},
        },
    )
    known = np.repeat(400.0 - 100.0 * centres(31), 2)
    assert np.abs(T - known).max() <= 0.01


@pytest.mark.parametrize("conductivity", [50.0, "50 + 0*T"])
def test_a_guess_where_the_heat_of_a_surface_is_constant(tmp_path: Path, conductivity: float | str) -> None:
    """Between hot surroundings and a cold bar, with a growing emissivity, a warmer surface would absorb more heat.

    The heat of such a surface counts as constant, so at 250 K its slope is 0.
    """
    T, _ = steady(
        tmp_path,
        material={**STEEL, "conductivity": conductivity, "temperature_range": [200.0, 600.0]}
        if isinstance(conductivity, str)
        else STEEL,
        initial={"temperature": 250.0},
        boundaries={
            "z_min": {"type": "radiation", "emissivity": "0.2 + 1e-3*(T - 300)", "ambient": 430.0},
            "z_max": {"type": "flux", "value": 100.0},
        },
        time={"method": "steady", "tolerance": 1e-3},
    )
    low, high = 430.0, 600.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        given_off = (0.2 + 1e-3 * (middle - 300.0)) * 5.670374419e-8 * (middle**4 - 430.0**4)
        low, high = (low, middle) if given_off > 100.0 else (middle, high)
    # The table of the law has a relative error of 2e-5.
    assert np.abs(T - (low + 100.0 / 50.0 * centres(31))).max() <= 1e-3 + 2e-5 * (low - 430.0)


def test_heat_that_enters_and_leaves_by_one_face_counts_as_heat_flow(tmp_path: Path) -> None:
    """5 W enter through a patch and leave beside it: the net heat flow through the face is 0."""
    _, simulation = steady(
        tmp_path,
        boundaries={"z_max": {"type": "convection", "coefficient": 50.0, "ambient": 300.0}},
        patches=[
            {"face": "z_max", "rectangle": {"min": [0.0, 0.0], "max": [0.005, 0.01]}, "type": "flux", "power": 5.0}
        ],
    )
    flows = heatsim.open(simulation.folder).energy  # type: ignore[union-attr]
    assert abs(float(flows["imbalance (%)"].iloc[-1])) < 1e-2
