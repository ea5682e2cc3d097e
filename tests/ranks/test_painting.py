"""Each rank paints its planes and some beside them, and finds the same body as a run on one rank."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slab_runs import LIT, equal, found, of_run, painted, problem_of, same, scenario_of, stepped
from test_slabs import observed
from thread_team import on_ranks

from heatsim.errors import ScenarioError
from heatsim.parallel.slab import HALO
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.estimates.method_work import count_work, first_tolerance
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.energy_bound import EnergyBound
from heatsim.run.initial_state import find_steady_state, initial_state
from heatsim.run.interrupt import Stop
from heatsim.run.plan import Plan
from heatsim.run.ranks import held_planes

# A slender body: curved and slanted surfaces towards void and between materials cross cuts, with powers on them;
# regions with conditions, sources in regions and shapes, a patch, values that vary over a face.
ROD = """
[domain]
size = [0.011, 0.01, 0.200]
cells = [9, 8, 128]
material = "air"
[materials.steel]
conductivity = { temperatures = [300.0, 900.0], values = [60.0, 30.0] }
density = 7800.0
specific_heat = 470.0
[materials.copper]
conductivity = [390.0, 200.0, 300.0]
density = 8900.0
specific_heat = 385.0
[materials.air]
conductivity = 0.03
density = 1.2
specific_heat = 1000.0
[[regions]]
name = "rod"
material = "steel"
cylinder = { from = [0.004, 0.004, 0.012], to = [0.0072, 0.0062, 0.183], radius = 0.0031 }
[[regions]]
name = "ball"
material = "copper"
sphere = { centre = [0.0055, 0.005, 0.097], radius = 0.0047 }
initial_temperature = 350.0
[[regions]]
name = "hole"
material = "void"
sphere = { centre = [0.003, 0.005, 0.149], radius = 0.0043 }
[[regions]]
name = "foot"
material = "steel"
box = { min = [0.0, 0.0, 0.0], max = [0.011, 0.01, 0.0121] }
[[regions]]
name = "slit"
material = "void"
box = { min = [0.0, 0.004, 0.04], max = [0.011, 0.0061, 0.07] }
[[contacts]]
between = ["steel", "copper"]
resistance = 1e-4
[[contacts]]
between = ["foot", "rod"]
resistance = 2e-4
[[surfaces]]
of = "rod"
type = "flux"
power = 2.0
[initial]
temperature = "300 + 100*z"
[boundaries]
void = { type = "convection", coefficient = 30.0, ambient = 300.0, emissivity = 0.3 }
x_max = { type = "flux", value = "1e4 + 3e4*z" }
y_min = { type = "flux", power = 1.5 }
z_max = { type = "convection", coefficient = 100.0, ambient = 310.0 }
[[patches]]
face = "x_min"
rectangle = { min = [0.0013, 0.0407], max = [0.0057, 0.1532] }
type = "temperature"
value = 350.0
[[sources]]
region = "ball"
power = 2.0
[[sources]]
power_density = 1e6
sphere = { centre = [0.006, 0.005, 0.06], radius = 0.005 }
[[probes]]
name = "near cuts"
line = { from = [0.0101, 0.0021, 0.001], to = [0.0091, 0.0027, 0.199], count = 23 }
[[probes]]
name = "ball"
region = "ball"
statistic = "mean"
[[probes]]
name = "length"
region = "rod"
statistic = "extent_z"
threshold = 310.0
[[probes]]
name = "surface of the rod"
region = "rod"
surface = "void"
statistic = "mean"
[[probes]]
name = "hottest surface"
surface = "void"
statistic = "max"
[[probes]]
name = "patched face"
surface = "x_min"
statistic = "mean"
[[probes]]
name = "insulated face"
surface = "y_max"
statistic = "min"
[output]
region_heat = true
[time]
end = 0.05
method = "euler"
"""
AROUND = {"z_min": {"type": "periodic"}, "z_max": {"type": "periodic"}, "void": {"type": "flux", "power": 3.0}}
SOLVER = {"device": "cpu"}


def of_body(problem: HeatProblem) -> dict[str, Any]:
    """What a rank knows of the whole body."""
    materials, parts = problem.materials, problem.parts
    assert parts is not None
    corners, work = np.array([[0, 5], [0, 5], [0, 64]]), count_work(problem, first_tolerance(problem))
    return {
        "limit": problem.limit,
        "setter": problem.stability.setter,
        "types": materials.types,
        "counts": materials.counts,
        "areas": materials.surface_areas,
        "void": (materials.void, materials.weighted_surfaces.void, materials.weighted_surfaces.contacts),
        "most": materials.weighted_surfaces.most,
        "cells": (parts.region_cells, parts.material_cells),
        "faces": np.concatenate([materials.types_on_face(face).ravel() for face in range(6)]),
        "boundary": problem.boundary.rows(np.zeros(1), 0.0),
        "maps": np.concatenate([numbers.ravel() for numbers in problem.boundary.maps]),
        "owners": parts.owners_at(*corners),
        "types of cells": materials.types_at(*corners),
        "coefficients": problem.coefficients,
        "bound": EnergyBound(problem, 300.0)._areas,
        "work": work.costs,
        "error of euler": work.euler_error,
    }


def same_planes(whole: HeatProblem, problem: HeatProblem) -> None:
    """The arrays of a rank are a part of those of the whole body; it has not painted all of it."""
    held, materials, parts = problem.held, problem.materials, problem.parts
    assert held.slab is not None
    assert whole.parts is not None
    assert parts is not None
    assert len(materials.cells) == len(parts.owner) == held.slab.depth < whole.grid.shape[0]
    np.testing.assert_array_equal(parts.owner, whole.parts.owner[held.slab.place])
    np.testing.assert_array_equal(parts.material, whole.parts.material[held.slab.place])
    # The marks of cells with like neighbours count in halos too; at the ends of the arrays a neighbour is missing.
    near = slice(held.own.start - (HALO if held.own.start else 0), held.own.stop + HALO)
    np.testing.assert_array_equal(materials.cells[near], whole.materials.cells[held.slab.place[near]])
    surfaces, others = materials.weighted_surfaces, whole.materials.weighted_surfaces
    z = others.cells // (whole.grid.cells[0] * whole.grid.cells[1])
    there = np.flatnonzero(np.isin(z, held.slab.place[near]))
    np.testing.assert_array_equal(surfaces.cells, others.cells[there])
    assert surfaces.area.tobytes() == others.area[there].tobytes()
    assert surfaces.links.tobytes() == (others.links[there] if len(others.links) else others.links).tobytes()


def painted_alike(whole: HeatProblem, more: Callable[[HeatProblem], dict[str, Any]] = lambda problem: {}) -> None:
    """Four ranks know, step and observe the body as one rank does; ``more`` is what else they know of it."""

    def results(problem: HeatProblem, team: Team) -> dict[str, Any]:
        state = stepped(problem, team)
        return of_body(problem) | more(problem) | of_run(state) | observed(state)

    def on_rank(team: Team) -> dict[str, Any]:
        problem = painted(whole, team)
        same_planes(whole, problem)
        return results(problem, team)

    equal(results(whole, ALONE), on_ranks(4, on_rank))


# Values that vary towards void are on the same body.
@pytest.mark.slow
@pytest.mark.parametrize("ends", [{}, {"boundaries": AROUND, "patches": []}], ids=["open", "ring"])
def test_ranks_find_the_body_of_one_rank_and_step_it(ends: dict[str, Any]) -> None:
    painted_alike(problem_of(ROD, solver=SOLVER, **ends))


FILM = '{ type = "convection", coefficient = "20 + 300*z", ambient = "(295 + 1e3*y)*(1 + 0.1*t)", emissivity = 0.5 }'
FLUX = '{ type = "flux", value = "1e5*x*(1 + 40*t)" }'


@pytest.mark.parametrize("condition", [FILM, pytest.param(FLUX, marks=pytest.mark.slow)], ids=["film", "flux"])
def test_values_that_vary_towards_void(condition: str) -> None:
    """Extremes of the values lie on different ranks. The 33 × 33 and 2 conditions are numbered as on one rank."""
    start = ROD.index("void = {")
    text = ROD[:start] + f"void = {condition}\n" + ROD[ROD.index("y_min = {") :]

    def conditions(problem: HeatProblem) -> dict[str, Any]:
        return {"owners": problem.boundary.owners, "keys": problem.boundary.keys}

    painted_alike(problem_of(text, solver=SOLVER), conditions)


# A board on edge: copper on both sides of cuts and along the board, on its surface and beside a hole; a chip with a
# contact crosses a layer.
LAYERED = """
[domain]
size = [0.009, 0.008, 0.096]
cells = [9, 8, 96]
material = "board"
[materials.board]
conductivity = [0.8, 0.8, 0.3]
density = 1850.0
specific_heat = 1100.0
[materials.copper]
conductivity = 390.0
density = 8960.0
specific_heat = 385.0
[materials.chip]
conductivity = 120.0
density = 2330.0
specific_heat = 700.0
[[regions]]
name = "chip"
material = "chip"
box = { min = [0.002, 0.002, 0.020], max = [0.006, 0.005, 0.052] }
[[regions]]
name = "hole"
material = "void"
box = { min = [0.001, 0.002, 0.06], max = [0.007, 0.006, 0.09] }
[[contacts]]
between = ["board", "chip"]
resistance = 1e-4
[[layers]]
name = "along"
material = "copper"
thickness = 35e-6
plane = { axis = "x", at = 0.002, rectangle = { min = [0.0013, 0.0103], max = [0.0067, 0.0911] } }
[[layers]]
name = "surface"
material = "copper"
thickness = 70e-6
plane = { axis = "y", at = 0.0 }
[[layers]]
name = "across"
material = "copper"
thickness = 35e-6
plane = { axis = "z", at = 0.024, rectangle = { min = [0.0025, 0.0], max = [0.009, 0.0061] } }
[[layers]]
name = "above"
material = "copper"
thickness = 20e-6
plane = { axis = "z", at = 0.048 }
[initial]
temperature = "300 + 100*z + 1e3*x"
[boundaries]
void = { type = "convection", coefficient = 30.0, ambient = 300.0 }
y_min = { type = "flux", value = "1e4*z" }
x_max = { type = "convection", coefficient = 100.0, ambient = 310.0 }
[[sources]]
region = "chip"
power = 2.0
[[probes]]
name = "line"
line = { from = [0.0021, 0.001, 0.001], to = [0.0089, 0.001, 0.095], count = 33 }
[output]
region_heat = true
[time]
end = 0.02
method = "euler"
"""


@pytest.mark.parametrize(
    "ends", [pytest.param({}, marks=pytest.mark.slow), {"boundaries": AROUND}], ids=["open", "ring"]
)
def test_layers(ends: dict[str, Any]) -> None:
    """All ranks find the layering of the whole body from planes near layers, and number cell types equally."""

    def laid(problem: HeatProblem) -> dict[str, Any]:
        names = ("cells", "capacity", "half", "node", "faces", "links")
        return {f"layering: {name}": getattr(problem.materials.layering, name) for name in (*names, "areas")}

    painted_alike(problem_of(LAYERED, solver=SOLVER, **ends), laid)


def test_layers_in_a_body_of_one_material() -> None:
    start, end = LAYERED.index("[materials.copper]"), LAYERED.index('[[layers]]\nname = "surface"')
    text = LAYERED[:start] + LAYERED[LAYERED.index('[[layers]]\nname = "along"') : end].replace("copper", "board")
    text += '[initial]\ntemperature = "300 + 100*z"\n[time]\nend = 1.0\nmethod = "euler"\n'
    problem = problem_of(text, solver=SOLVER)
    assert painted_less(problem, 3)
    same(problem, 3)


def test_label_images(tmp_path: Path) -> None:
    """Areas of voxels depend on the cells in balls around them."""
    z, y, x = np.meshgrid(*(np.arange(n) for n in (160, 9, 8)), indexing="ij")
    labels = ((x - 4) ** 2 + (y - 4) ** 2 < 7 + 5 * np.sin(0.2 * z)).astype(np.uint8) + (x > 5)
    np.save(tmp_path / "labels.npy", labels)
    text = f"""
[domain]
size = [0.008, 0.009, 0.160]
cells = [8, 9, 160]
material = "steel"
[materials.steel]
conductivity = 40.0
density = 7800.0
specific_heat = 470.0
[materials.copper]
conductivity = 390.0
density = 8900.0
specific_heat = 385.0
[[regions]]
name = "scan"
labels = {{ file = "{tmp_path / "labels.npy"}", materials = {{ "1" = "copper", "2" = "void" }} }}
[[contacts]]
between = ["steel", "copper"]
resistance = 1e-4
[initial]
temperature = "300 + 100*z"
[boundaries]
void = {{ type = "flux", power = 3.0 }}
[time]
end = 0.01
method = "euler"
"""
    problem = problem_of(text, solver=SOLVER)
    assert painted_less(problem, 4)
    same(problem, 4)


def painted_less(problem: HeatProblem, ranks: int) -> bool:
    depths = on_ranks(ranks, lambda team: len(painted(problem, team).materials.cells))
    return max(depths) < problem.grid.shape[0]


def test_a_body_of_one_material_is_not_painted() -> None:
    """Each rank evaluates the initial field in its planes; the range is that of the whole field."""
    text = ROD[: ROD.index("[materials.copper]")] + '[initial]\ntemperature = "300 + 1e3*z"\n[time]\nend = 0.01\n'
    text = text.replace('"air"', '"steel"')
    problem = problem_of(text, solver=SOLVER)
    for other in on_ranks(3, lambda team: painted(problem, team)):
        assert other.parts is None
        assert other.materials.cells.size == 0


def test_mistakes_are_those_of_one_rank() -> None:
    """Errors on any rank: a region without cells, a source in void, a point in void, values in space."""
    nowhere = ROD.replace("radius = 0.0047 }", "radius = 1e-5 }")
    idle = ROD.replace("radius = 0.005 }", "radius = 0.0007 }")
    in_void = ROD.replace("from = [0.0101, 0.0021, 0.001]", "from = [0.003, 0.005, 0.149]")
    negative = ROD.replace("coefficient = 30.0", 'coefficient = "20 - 1e4*z*t"')
    changing = ROD.replace("ambient = 300.0, emissivity = 0.3", 'ambient = "300 + 1000*z*sin(z*t)"')
    for text in (nowhere, idle, in_void, negative, changing):
        with pytest.raises(ScenarioError) as alone:
            problem_of(text, solver=SOLVER)
        messages = on_ranks(2, lambda team, text=text: refused(text, team))  # type: ignore[misc]
        assert messages == [str(alone.value)] * 2


def test_a_probe_of_a_surface_without_a_cell_is_refused() -> None:
    text = ROD.replace('name = "surface of the rod"\nregion = "rod"', 'name = "bare"\nregion = "ball"')
    text = text.replace('surface = "void"', 'surface = "z_max"', 1)
    with pytest.raises(
        ScenarioError, match=r'probes\.3\.surface: got "z_max", where region "ball" has no cell'
    ) as alone:
        Plan.of(problem_of(text, solver=SOLVER))
    assert on_ranks(2, lambda team: refused(text, team)) == [str(alone.value)] * 2


def refused(text: str, team: Team) -> str:
    scenario = scenario_of(text, solver=SOLVER)
    with pytest.raises(ScenarioError) as error:
        Plan.of(HeatProblem.from_scenario(scenario, held_planes(scenario, team)), team)
    return str(error.value)


def steady_state(problem: HeatProblem, team: Team) -> dict[str, Any]:
    state = initial_state(Plan.of(problem, team), Path("nowhere"))
    find_steady_state(state, Stop())
    assert state.steady is not None
    return {"T": state.field.temperature(), "flows": state.steady.flows, "progress": state.steady.progress}


def test_methods_that_solve_equations() -> None:
    """A body of boxes, so that ranks paint few planes in addition to their own."""
    start = ROD.index('[[regions]]\nname = "rod"')
    boxes = ROD[:start] + ROD[ROD.index('[[regions]]\nname = "foot"') : ROD.index("[[contacts]]")]
    boxes = boxes.replace("cells = [9, 8, 128]", "cells = [5, 5, 64]")
    boxes += '[boundaries]\nvoid = { type = "convection", coefficient = 30.0, ambient = 300.0 }\n'
    boxes += 'z_max = { type = "convection", coefficient = 100.0, ambient = 310.0 }\n'
    boxes += '[[sources]]\nregion = "foot"\npower = 2.0\n[initial]\ntemperature = 300.0\n[time]\nend = 2.0\n'
    problem = problem_of(boxes, solver=SOLVER)
    assert painted_less(problem.with_method("steady"), 3)
    for method, results in (("steady", steady_state), ("implicit", found)):
        chosen = problem.with_method(method)
        of_ranks = on_ranks(3, lambda team: results(painted(chosen, team), team))  # noqa: B023
        equal(results(chosen, ALONE), of_ranks)


def test_ranks_choose_the_same_precision() -> None:
    """Each of them has painted a part of the planes; one is hotter than the rest."""
    start = ROD.index('[[regions]]\nname = "rod"')
    boxes = ROD[:start] + ROD[ROD.index('[[regions]]\nname = "foot"') : ROD.index("[[contacts]]")]
    boxes += '[[sources]]\nregion = "foot"\npower = 2.0\n[initial]\ntemperature = "300 + 100*z"\n[time]\nend = 20.0\n'
    scenario = scenario_of(boxes.replace("cells = [9, 8, 128]", "cells = [5, 5, 64]"), solver={"device": "cpu"})
    on_each = on_ranks(3, lambda team: HeatProblem.from_scenario(scenario, held_planes(scenario, team)))
    assert {each.precision_choice for each in on_each} == {HeatProblem.from_scenario(scenario).precision_choice}


def test_sources_in_single_cells_and_beams() -> None:
    """Light from five faces passes through void in the planes of several ranks; one beam ends in the ball."""
    text = LIT.replace("[0.012, 0.01, 0.02]", "[0.012, 0.01, 0.16]").replace("[12, 10, 20]", "[12, 10, 160]")
    problem = problem_of(text.replace("[0.006, 0.018]", "[0.006, 0.15]"), solver=SOLVER)
    assert painted_less(problem, 3)
    same(problem, 3)

    def powers(problem: HeatProblem) -> dict[str, Any]:
        rows = problem.sources.beam_rows(np.zeros(1), 1e-3)
        return {str(beam.number): problem.sources.absorbed_by(beam) for beam in rows}

    equal(powers(problem), on_ranks(3, lambda team: powers(painted(problem, team))))


# A snake of steel in void goes up and down through all cuts; a plate beside it touches nothing.
SNAKE = """
[domain]
size = [0.007, 0.003, 0.064]
cells = [7, 3, 64]
material = "void"
[materials.steel]
conductivity = 40.0
density = 7800.0
specific_heat = 470.0
[[regions]]
name = "snake"
material = "steel"
box = { min = [0.0, 0.0, 0.0], max = [0.005, 0.001, 0.064] }
[[regions]]
name = "gap"
material = "void"
box = { min = [0.001, 0.0, 0.0], max = [0.002, 0.001, 0.062] }
[[regions]]
name = "other gap"
material = "void"
box = { min = [0.003, 0.0, 0.002], max = [0.004, 0.001, 0.064] }
[[regions]]
name = "plate"
material = "steel"
box = { min = [0.006, 0.0, 0.020], max = [0.007, 0.001, 0.044] }
[[patches]]
face = "x_min"
rectangle = { min = [0.0, 0.0], max = [0.003, 0.002] }
type = "temperature"
value = 350.0
[time]
method = "steady"
"""


def test_parts_without_a_steady_temperature() -> None:
    """Only the lower end of the snake has a held temperature. All ranks name the plate, which lies on some ranks."""
    joined = SNAKE.replace(
        "max = [0.007, 0.001, 0.044] }",
        "max = [0.007, 0.001, 0.044] }\n"
        '[[regions]]\nname = "bridge"\nmaterial = "steel"\n'
        "box = { min = [0.005, 0.0, 0.04], max = [0.006, 0.001, 0.041] }",
    )
    problem = problem_of(joined, solver=SOLVER)
    on_ranks(4, lambda team: Plan.of(painted(problem, team), team))
    with pytest.raises(ScenarioError, match=r'region "plate": a part .* with cell \[6, 0, 20\]') as alone:
        problem_of(SNAKE, solver=SOLVER)
    assert on_ranks(4, lambda team: refused(SNAKE, team)) == [str(alone.value)] * 4
