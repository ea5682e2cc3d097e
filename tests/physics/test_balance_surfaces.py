"""The surfaces of balances against the balance of each boundary face."""

import tomllib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heatsim.physics.conditions.surface_laws import SurfaceConditions
from heatsim.physics.operator.balance_surfaces import at_stage, beam_fluxes, find_surfaces
from heatsim.physics.operator.boundary_faces import boundary_faces
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
def test_surfaces_give_cells_the_heat_of_the_table_of_boundary_faces(kind: str, changing: bool) -> None:
    problem = HeatProblem.from_scenario(parse(tomllib.loads(BAR.replace("SURFACE", SURFACES[kind])), "bar.toml"))
    reference = problem.reference
    surfaces = find_surfaces(np, problem, reference, changing=changing)
    assert sum(len(surface.conditions) > 1 for surface in surfaces) >= 2
    T = np.random.default_rng(4).uniform(280.0, 360.0, problem.grid.shape) - reference
    rows, beams = problem.boundary.rows(np.zeros(1), reference)[0], problem.sources.face_beams(np.zeros(1), 1e-9)
    if changing:
        stage = problem.stage_rows(StageTimes.beside(7.0, Side.AFTER, 1.0, 20.0), 1.0, reference)
        rows, beams = stage.conditions[0], stage.beams
        surfaces = at_stage(surfaces, problem.grid, rows, beams)
    of_cells, of_conditions = from_table(problem, rows, beam_fluxes(beams, problem.grid), T.reshape(-1))
    found, slopes, rounded, lost = (np.zeros(T.shape, kind) for kind in ("f8", "f8", "f4", "f8"))
    sums: dict[Any, float] = {}
    for surface in surfaces:
        heat, slope = surface.exchange(surface.of(T))
        surface.add(heat, found)
        surface.add(slope, slopes)
        surface.add(surface.add_rounded(heat, rounded), lost)
        for (_, number), place in zip(surface.labels, surface.slices, strict=True):
            sums[number] = sums.get(number, 0.0) + float(np.sum(heat[place]))
    scale = np.abs(of_cells).max()
    np.testing.assert_allclose(found.reshape(-1), of_cells, rtol=1e-12, atol=1e-13 * scale)
    assert of_conditions.keys() == {number for number, heat in sums.items() if heat} | of_conditions.keys()
    for number, heat in of_conditions.items():
        assert sums.get(number, 0.0) == pytest.approx(heat, rel=1e-11, abs=1e-13 * scale)
    np.testing.assert_allclose(rounded + lost, found, rtol=1e-12, atol=1e-13 * scale)
    assert lost.any()
    warmer, colder = (
        from_table(problem, rows, beam_fluxes(beams, problem.grid), T.reshape(-1) + difference)[0]
        for difference in (0.01, -0.01)
    )
    slope = (colder - warmer) / 0.02
    np.testing.assert_allclose(slopes.reshape(-1), slope, rtol=2e-3, atol=1e-6 * slopes.max())


def from_table(
    problem: HeatProblem, rows: NDArray[Any], fluxes: dict[int, NDArray[Any]], T: NDArray[Any]
) -> tuple[NDArray[Any], dict[int, float]]:
    """Heat in W into each cell, and through each condition, from the balance of each boundary face."""
    of_cells, of_conditions = np.zeros(len(T)), np.zeros(len(problem.boundary.conditions))
    for faces in boundary_faces(problem.boundary, problem.materials):
        types, lit = faces.types(problem.materials), faces.lit(problem.materials)
        beam = np.zeros(len(faces))
        if lit is not None and faces.side in fluxes:
            beam = np.where(lit >= 0, fluxes[faces.side][lit], 0.0) / faces.ratios
        K = 1.0 / (problem.materials.half[faces.axis, types] * faces.ratios)
        rise = SurfaceConditions(rows, faces.conditions).rises(K, problem.reference, T[faces.cells], beam)
        heat = faces.area * faces.fractions * faces.ratios * K * rise
        np.add.at(of_cells, faces.cells, heat)
        np.add.at(of_conditions, faces.conditions, heat)
    return of_cells, {number: heat for number, heat in enumerate(of_conditions.tolist()) if heat}
