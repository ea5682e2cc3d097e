"""Joined surfaces with different conditions give the same bits as each surface alone."""

import tomllib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim.physics.operator.balance_surfaces import at_stage, find_surfaces
from heatsim.physics.operator.joined_surfaces import joined
from heatsim.physics.operator.surface_exchange import BalanceSurface
from heatsim.physics.problem import HeatProblem
from heatsim.physics.time.stage_times import Side, StageTimes
from heatsim.scenario import parse

# A bar in void: cells at bounds of its samples of the ambient temperature have two conditions. Its faces at x have
# several patches, one of them with a held temperature, and a beam.
BAR = """
[domain]
size = [0.08, 0.05, 0.04]
cells = [8, 5, 13]
material = "void"

[materials]
plastic = { conductivity = 5.0, density = 1000.0, specific_heat = 500.0 }
wood = { conductivity = [9.0, 2.0, 1.0], density = 1000.0, specific_heat = 500.0 }

[[regions]]
name = "bar"
material = "plastic"
box = { min = [0.0, 0.012, 0.006], max = [0.08, 0.041, 0.036] }

[[regions]]
name = "foot"
material = "wood"
box = { min = [0.03, 0.012, 0.0], max = [0.05, 0.041, 0.006] }

[initial]
temperature = 300.0

[boundaries]
x_min = { type = "convection", coefficient = 8.0, ambient = "300 + 2*t + 900*z" }
z_min = { type = "convection", coefficient = 11.0, ambient = "290 + t + 10*x/0.05" }

[[patches]]
name = "held"
face = "x_min"
type = "temperature"
value = 350.0
rectangle = { min = [0.013, 0.01], max = [0.0207, 0.02] }

[[patches]]
name = "flux"
face = "x_min"
type = "flux"
value = "100*(1 + t)"
rectangle = { min = [0.0207, 0.013], max = [0.04, 0.031] }

[[surfaces]]
of = "bar"
type = "convection"
SURFACE

[[surfaces]]
of = "foot"
type = "convection"
coefficient = 7.0
ambient = "310 + 3*t"
emissivity = 0.5

[[sources]]
name = "beam"
beam = { face = "x_min", power = 3.0, radius = 8e-3, path = [[0.02, 0.02]] }

[time]
end = 20.0

[solver]
device = "cpu"
precision = "float64"
"""
SURFACES = {
    "linear": 'coefficient = 20.0\nambient = "300 + 700*z + t"',
    "radiating": 'coefficient = "20 + t"\nambient = "300 + 700*z"\nemissivity = 0.8',
    "law": 'coefficient = "1.4*(abs(T - Tamb)/0.06)^0.25"\nambient = "300 + 700*z + t"\nemissivity = 0.3',
}


@pytest.mark.parametrize("kind", SURFACES)
@pytest.mark.parametrize("changing", [False, True])
def test_joined_surfaces_give_the_same_bits(kind: str, changing: bool) -> None:
    problem = HeatProblem.from_scenario(parse(tomllib.loads(BAR.replace("SURFACE", SURFACES[kind])), "bar.toml"))
    reference = problem.reference
    apart = find_surfaces(np, problem, reference, changing=changing)
    together = joined(apart, problem.boundary.rows(np.zeros(1), reference)[0])
    assert len(apart) > 15
    assert len(together) < 0.7 * len(apart)
    T = np.random.default_rng(4).uniform(-20.0, 60.0, problem.grid.shape)
    assert_equal(apart, together, T)
    if changing:
        stage = problem.stage_rows(StageTimes.beside(7.0, Side.AFTER, 1.0, 20.0), 1.0, reference)
        later = [at_stage(of, problem.grid, stage.conditions[0], stage.beams) for of in (apart, together)]
        assert_equal(*later, T)


def assert_equal(apart: tuple[BalanceSurface, ...], together: tuple[BalanceSurface, ...], T: NDArray[Any]) -> None:
    """Compare the heat of each cell, its slope, the rounding errors in float32, and the sums of each condition."""
    found: list[list[NDArray[Any]]] = []
    by_condition: list[dict[Any, list[float]]] = []
    for surfaces in (apart, together):
        heats, slopes, rounded, lost = (np.zeros(T.shape, kind) for kind in ("f8", "f8", "f4", "f8"))
        sums: dict[Any, list[float]] = {}
        for surface in surfaces:
            heat, slope = surface.exchange(surface.of(T))
            surface.add(heat, heats)
            surface.add(slope, slopes)
            surface.add(surface.add_rounded(heat, rounded), lost)
            for label, place in zip(surface.labels, surface.slices, strict=True):
                sums.setdefault(label, []).append(float(np.sum(heat[place])))
        found.append([heats, slopes, rounded, lost])
        by_condition.append(sums)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert by_condition[0] == by_condition[1]
    assert found[0][0].any()
    assert found[0][3].any()
