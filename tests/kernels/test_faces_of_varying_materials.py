"""Faces of materials that change with temperature are of second order, with every condition and kernel.

With k = k0·(1 + b·u) and ρ·cp in proportion to it, u = T − 300 K, the potential φ = u + b·u²/2 obeys the heat equation
with constant diffusivity (Carslaw & Jaeger, *Conduction of Heat in Solids*, 2nd ed., §1.6), so solutions are known.
"""

import tomllib
from math import erfc, log2, pi, sqrt

import numpy as np
import pytest
from composite_executor import EXECUTIONS, CompositeSteps, Executor, on_cpu
from exact import held, scenario
from executor import CPU
from numpy.typing import NDArray

from heatsim.kernels.catalog import KernelSpec
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import parse

K, B, W = 2.0, 0.005, pi / 2.0
SIGMA = 5.670374419e-8
# φ = 50 + 60·x + 40·cos(W·x + 1/2)·exp(−K·W²·t), and k0·dφ/dx.
POTENTIAL = "(50 + 60*{x} + 40*cos({w!r}*{x} + 0.5)*exp(-{rate!r}*{t}))"
GRADIENT = "(2*(60 - 40*{w!r}*sin({w!r}*{x} + 0.5)*exp(-{rate!r}*{t})))"


def of_potential(potential: str) -> str:
    """The temperature in K that belongs to a potential, as an expression."""
    return f"(300 + (sqrt(1 + {2.0 * B!r}*{potential}) - 1)/{B!r})"


def expression(text: str, x: float | str, t: float | str = "t") -> str:
    return text.format(x=x, t=t, w=W, rate=K * W**2)


def bar(cells: int, initial: float | str, end: float, boundaries: str) -> HeatProblem:
    text = scenario((1.0, 1.0, 1.0), (cells, 1, 1), initial=initial, end=end, boundaries=boundaries, safety=0.5)
    constant = "material = { conductivity = 1.0, density = 1.0, specific_heat = 1.0 }"
    assert constant in text
    changing = f'conductivity = "{K}*(1 + {B}*(T - 300))", density = 1.0, specific_heat = "1 + {B}*(T - 300)"'
    varying = text.replace(constant, f"material = {{ {changing}, temperature_range = [200.0, 900.0] }}")
    return HeatProblem.from_scenario(parse(tomllib.loads(varying), "bar.toml"))


def steps_of(derived: HeatProblem, initial: NDArray[np.float64]) -> CompositeSteps:
    """All steps of a bar that begins with temperatures ``initial`` in K."""
    timeline = derived.timeline
    contents = derived.materials.enthalpies[0].content_at(initial - derived.reference)
    steps, dt = timeline.last_step, float(timeline.dts[0])
    return CompositeSteps(
        materials=derived.materials,
        maps=derived.boundary.maps,
        rows=derived.rows(timeline.step_times(0, steps), dt, derived.reference),
        steps=steps,
        dt=dt,
        periodic=derived.periodic,
        T=contents.reshape(derived.grid.shape).astype(np.float32),
        reference=derived.reference,
    )


def temperatures(derived: HeatProblem, contents: NDArray[np.float64]) -> NDArray[np.float64]:
    enthalpy = derived.materials.enthalpies[0]
    return derived.reference + np.interp(contents.reshape(-1), enthalpy.contents, enthalpy.temperatures)


def exact_temperature(potential: NDArray[np.float64]) -> NDArray[np.float64]:
    return 300.0 + (np.sqrt(1.0 + 2.0 * B * potential) - 1.0) / B


@pytest.mark.quick("numba", "streamed-host", "temporal-host")
@pytest.mark.parametrize(("spec", "execute"), EXECUTIONS)
def test_a_face_held_from_the_start_is_of_second_order(spec: KernelSpec, execute: Executor) -> None:
    """The field jumps by 300 K at the face, over which k grows by a factor of 2.5."""
    end, driving = 0.0078, 300.0 + B / 2.0 * 300.0**2
    entered = K * driving * 2.0 * sqrt(end / (pi * K))  # J/m²
    errors = []
    for cells in (16, 32):
        derived = bar(cells, 300.0, end, f"x_min = {held(600.0)}")
        result = execute(spec, steps_of(derived, np.full(cells, 300.0)), "float64", "increments")
        x = (np.arange(cells) + 0.5) / cells
        potential = driving * np.array([erfc(depth) for depth in x / (2.0 * sqrt(K * end))])
        error = temperatures(derived, result.T) - exact_temperature(potential)
        heat = float(result.ledger.heats.faces[0][0, 0]) * derived.materials.cell_heat_capacity[0]
        errors.append((np.sqrt(np.mean(error**2)), abs(heat / entered - 1.0)))
    (coarse_field, coarse_heat), (field, heat) = errors
    assert log2(coarse_field / field) == pytest.approx(2.0, abs=0.05)
    assert log2(coarse_heat / heat) == pytest.approx(2.0, abs=0.05)
    assert field < 0.2


@pytest.mark.parametrize("kind", ["temperature", "flux", "convection", "radiation"])
def test_faces_with_every_condition_are_of_second_order(kind: str) -> None:
    """The exact field's own face values, in time: what surrounds the body follows from the flux."""

    def face(x: float, inwards: str) -> str:
        surface, flux = of_potential(expression(POTENTIAL, x)), f"({inwards}{expression(GRADIENT, x)})"
        match kind:
            case "temperature":
                return held(surface)
            case "flux":
                return f'{{ type = "flux", value = "{flux}" }}'
            case "convection":
                return f'{{ type = "convection", coefficient = 20.0, ambient = "{surface} + {flux}/20" }}'
            case _:
                surroundings = f"({surface}^4 + {flux}/{SIGMA!r})^0.25"
                return f'{{ type = "radiation", emissivity = 1.0, ambient = "{surroundings}" }}'

    boundaries, end = f"x_min = {face(0.0, '-')}\nx_max = {face(1.0, '')}", 0.1
    errors = []
    for cells in (16, 32):
        x = (np.arange(cells) + 0.5) / cells

        def potential(t: float, x: NDArray[np.float64] = x) -> NDArray[np.float64]:
            return 50.0 + 60.0 * x + 40.0 * np.cos(W * x + 0.5) * np.exp(-K * W**2 * t)

        initial = of_potential(expression(POTENTIAL, "x", "0"))
        derived = bar(cells, initial, end, boundaries)
        steps = steps_of(derived, exact_temperature(potential(0.0)))
        error = temperatures(derived, on_cpu(CPU[1], steps, "float64", "increments").T)
        errors.append(float(np.sqrt(np.mean((error - exact_temperature(potential(end))) ** 2))))
    assert log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.1)
