"""Bodies for the tests of implicit steps, and their backends."""

import tomllib

import numpy as np
from numpy.typing import NDArray

from heatsim import device
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import Side, StageTimes
from heatsim.scenario import parse
from heatsim.solver.field.field import Field
from heatsim.solver.implicit.field_stages import FieldStages
from heatsim.solver.kernels.kernel_arguments import composite_arrays
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.stabilized.substeps import End

Array = NDArray[np.float64]

SLAB = """
title = "Slab"
domain = { size = [0.12, 0.01, 0.01], cells = [12, 1, 1] }
solver = { device = "cpu", precision = "float64" }
initial = { temperature = 400.0 }
time = { method = "implicit", end = 400.0 }
[material]
conductivity = CONDUCTIVITY
density = 2000.0
specific_heat = 500.0
[boundaries]
x_min = X_MIN
x_max = { type = "convection", coefficient = 200.0, ambient = 300.0 }
"""
CONVECTION = '{ type = "convection", coefficient = 500.0, ambient = "300 + 80*sin(t/40)" }'
HELD = '{ type = "temperature", value = 300.0 }'
RADIATION = '{ type = "radiation", emissivity = 1.0, ambient = "700 + 300*sin(t/60)" }'
SOURCE = """
[[sources]]
power_density = 2e5
scale = "1 + sin(t/25)"
"""
GROWING = "{ temperatures = [300.0, 900.0], values = [20.0, 40.0] }"


def slab(x_min: str = HELD, conductivity: str = "30.0", more: str = "") -> str:
    return SLAB.replace("X_MIN", x_min).replace("CONDUCTIVITY", conductivity) + more


def problem_of(text: str) -> HeatProblem:
    return HeatProblem.from_scenario(parse(tomllib.loads(text), "body.toml"))


def backend_of(problem: HeatProblem, deviation: Array | float, reference: float = 400.0) -> FieldStages:
    """Implicit stages on the CPU; the field holds these values at first."""
    field = Field(device.choose("cpu"), problem.grid, problem.precision, reference)
    field.deviation[...] = deviation
    ledger = Ledger(field.device, problem, True)
    return FieldStages(problem, field, ledger, composite_arrays(problem, field).body.cells)


def end_of(stages: FieldStages) -> Array:
    """The field at the first end."""
    found: Array = stages.restart(last=False)[0].deviation
    return found.copy()


def steps(stages: FieldStages, start: float, h: float, count: int, tolerance: float) -> Array:
    """The field after some steps of one length."""
    stages.rate(End.FIRST, start, Side.AFTER)
    for step in range(count):
        t = start + step * h
        stages.advance(stages.choose(h, tolerance), t, h)
        stages.rate(End.LAST, t + h, Side.BEFORE)
        stages.accept()
    return end_of(stages)


def classical_runge_kutta(problem: HeatProblem, values: Array, start: float, end: float, reference: float) -> Array:
    """The field at ``end`` by explicit steps of fourth order below the limit of Euler's method."""
    equations = backend_of(problem, values, reference)._equations
    count = max(60, int(2.5 * (end - start) / problem.limit.dt))
    h = (end - start) / count

    def rate(t: float, values: Array) -> Array:
        moment = StageTimes.beside(t, Side.AFTER, 1.0, problem.scenario.time.end)
        found: Array = equations.rate(problem.stage_rows(moment, 1.0, reference), values)
        return found

    values = values.copy()
    for step in range(count):
        t = start + step * h
        one = rate(t, values)
        two = rate(t + h / 2, values + h / 2 * one)
        three = rate(t + h / 2, values + h / 2 * two)
        four = rate(t + h, values + h * three)
        values += h / 6 * (one + 2 * two + 2 * three + four)
    return values
