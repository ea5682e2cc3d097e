"""Heat-flux vectors: what passes the cells, the faces' part among it."""

import numpy as np
import pytest
from exact import PERIODIC, convection, flux, held, scenario
from numpy.typing import NDArray
from problem_text import problem

from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.heat_flux import heat_flux

SIZE, CELLS = (0.06, 0.05, 0.08), (6, 5, 8)
RADIATING = '{ type = "radiation", emissivity = 0.8, ambient = 900.0 }'


def vectors(derived: HeatProblem, T: NDArray[np.float64], planes: int) -> NDArray[np.float64]:
    """The whole field, so many planes at a time."""
    slabs = [
        heat_flux(derived, 0, first, lambda low, high: T[low:high], min(planes, len(T) - first))
        for first in range(0, len(T), planes)
    ]
    return np.concatenate(slabs)


def grid_of(derived: HeatProblem) -> list[NDArray[np.float64]]:
    x, y, z = (derived.grid.centres(axis) for axis in range(3))
    return [x[None, None, :], y[None, :, None], z[:, None, None]]


@pytest.mark.parametrize("planes", [1, 3, 8])
def test_a_linear_field_has_the_flux_of_its_gradient_inside(planes: int) -> None:
    derived = problem(scenario(SIZE, CELLS, initial=300.0, end=1.0, k=(10.0, 20.0, 40.0)))
    x, y, z = grid_of(derived)
    q = vectors(derived, 300.0 + 100.0 * x - 50.0 * y + 200.0 * z, planes)
    np.testing.assert_allclose(q[1:-1, 1:-1, 1:-1], np.broadcast_to([-1e3, 1e3, -8e3], (6, 3, 4, 3)), rtol=1e-10)


@pytest.mark.parametrize("planes", [1, 8])
@pytest.mark.parametrize(
    "extra", ["", "[[sources]]\npower = 0.0\nsphere = { centre = [0.03, 0.02, 0.04], radius = 0.02 }\n"]
)
def test_at_faces_half_is_what_passes_them(planes: int, extra: str) -> None:
    """One material as itself and as two cell types: a convection, a flux, a held and a periodic axis."""
    faces = f"x_min = {convection(50.0, 350.0)}\nx_max = {flux(4000.0)}\ny_min = {PERIODIC}\ny_max = {PERIODIC}\n"
    text = scenario(SIZE, CELLS, initial=300.0, end=1.0, k=10.0, boundaries=faces + f"z_max = {held(320.0)}") + extra
    derived = problem(text)
    assert derived.linear == (not extra)
    T = 300.0 + np.random.default_rng(0).uniform(0.0, 20.0, derived.grid.shape)
    q = vectors(derived, T, planes)
    d = 0.01
    inner = np.diff(T, axis=2) * -10.0 / d
    first = (350.0 - T[:, :, 0]) / (1.0 / 50.0 + d / 20.0)
    np.testing.assert_allclose(q[:, :, 0, 0], (first + inner[:, :, 0]) / 2.0, rtol=1e-9)
    np.testing.assert_allclose(q[:, :, -1, 0], (inner[:, :, -1] - 4000.0) / 2.0, rtol=1e-9)
    around = (np.roll(T, 1, axis=1) - np.roll(T, -1, axis=1)) * 10.0 / d / 2.0
    np.testing.assert_allclose(q[..., 1], around, atol=1e-8)
    top = (T[-1] - 320.0) * 20.0 / d
    np.testing.assert_allclose(q[-1, ..., 2], (top + (T[-2] - T[-1]) * 10.0 / d) / 2.0, atol=1e-8)
    np.testing.assert_allclose(q[0, ..., 2], (T[0] - T[1]) * 10.0 / d / 2.0, atol=1e-8)


def test_materials_agree_on_what_passes_between_them() -> None:
    text = scenario((0.4, 1.0, 1.0), (4, 1, 1), initial=300.0, end=1.0, boundaries=f"x_max = {RADIATING}")
    several = "\n".join(line for line in text.splitlines() if not line.startswith("material ="))
    several = several.replace("domain = {", 'domain = { material = "one",')
    several += """
[materials.one]
conductivity = 10.0
density = 1000.0
specific_heat = 500.0
[materials.two]
conductivity = 40.0
density = 1000.0
specific_heat = 500.0
[[regions]]
name = "two"
material = "two"
box = { min = [0.2, 0.0, 0.0], max = [0.4, 1.0, 1.0] }
"""
    derived = problem(several)
    # 1000 W/m² towards x_min: steps of 10 K, of (5 + 1.25) K over the interface, of 2.5 K.
    T = np.array([300.0, 310.0, 316.25, 318.75]).reshape(1, 1, 4)
    q = vectors(derived, T, 1)[0, 0, :, 0]
    np.testing.assert_allclose(q[1:3], -1000.0, rtol=1e-12)
    assert q[0] == pytest.approx(-500.0, rel=1e-12)
