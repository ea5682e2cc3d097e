"""Sources in single cells, light that the body absorbs, and lit surfaces towards void have the same bits on slabs."""

from functools import partial

import numpy as np
import pytest
from covering import mostly_slow, pairwise
from cuda_host import gpu
from slab_runs import AROUND, LINEAR, LIT, problem_of, same

from heatsim.kernels.temporal_composite import correction

# Light that falls through a periodic z axis, and sources on both sides of its ends.
LIT_AROUND = (
    AROUND
    + '[[sources]]\npower_density = "1e9*(T - 300)/300"\n'
    + '[[sources]]\npower_density = "1e8*sin(400*z)"\n'
    + '[[sources]]\nbeam = { face = "x_max", power = 3.0, radius = 1e-3, absorption_depth = 2e-3, '
    + "path = [[0.004, 0.001], [0.004, 0.014]], speed = 0.4 }\n"
)
BODIES = {"lit": LIT, "around": LIT_AROUND}

# The same five beams, each on for a part of the first 20 steps of 0.5 ms or so: none, one or several at a time.
SPANS = (0.001, 0.003), (0.002, 1.0), (0.004, 0.0055), (0.0062, 0.0063), (0.005, 0.007)
BODY, *LIGHTS = LIT.split("[[sources]]\nbeam")
SWITCHED = BODY + "".join(
    f"[[sources]]\nduring = [{start}, {stop}]\nbeam{light}" for (start, stop), light in zip(SPANS, LIGHTS, strict=True)
)


@pytest.mark.quick("around-float32-3")
@pytest.mark.parametrize(
    ("name", "precision", "ranks"),
    mostly_slow(pairwise(BODIES, ("float32", "float64"), (2, 3)), ("lit", "float64", 3), ("around", "float32", 3)),
)
def test_eulers_method(name: str, precision: str, ranks: int) -> None:
    problem = problem_of(BODIES[name], solver={"device": "cpu", "precision": precision})
    assert len(problem.materials.heated)
    same(problem, ranks)


@pytest.mark.quick("lit")
@pytest.mark.parametrize("text", BODIES.values(), ids=BODIES)
def test_stabilized_steps(text: str) -> None:
    same(problem_of(text, solver={"device": "cpu"}).with_method("stabilized"), 3)


@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
def test_beams_that_are_on_at_different_times(method: str) -> None:
    problem = problem_of(SWITCHED, solver={"device": "cpu"}).with_method(method)
    shining = [len(problem.sources.beam_rows(np.array([time]), 1e-4)) for time in np.arange(0.0, 0.0075, 1e-4)]
    assert set(shining) >= {0, 1, 2}
    same(problem, 3)


def test_cuda_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correction, "boxes", partial(correction.boxes, most=np.inf))
    gpu.play_gpu(monkeypatch)
    same(problem_of(SWITCHED, solver={"device": "cuda", "kernel": "temporal", "precision": "float32"}), 2)


def test_light_crosses_cuts() -> None:
    """The beams from above and below light the ball, which three ranks share, and the plate below it."""
    problem = problem_of(LIT, solver={"device": "cpu"})
    heated = problem.materials.heated
    planes = problem.materials.weighted_surfaces.cells // (12 * 10)
    assert np.unique(planes[heated.lit > 0]).size > 4
    assert heated.has_beams


def test_light_in_a_body_without_surfaces_towards_void_crosses_cuts() -> None:
    """The lower rank does not have the face that the light comes through."""
    beam = 'face = "z_max", power = 50.0, radius = 0.02, path = [[0.1, 0.04]], absorption_depth = 0.05'
    problem = problem_of(f"{LINEAR}\n[[sources]]\nbeam = {{ {beam} }}\n", solver={"device": "cpu"})
    assert problem.materials.heated.has_beams
    assert not len(problem.materials.heated.lit)
    same(problem, 2)


def test_layers_and_heats_on_graded_grids() -> None:
    """Layers across x and z, a contact, a hole, and every kind of source, with cells from 1 to 30 along each axis."""
    random, tables = np.random.default_rng(4), ""
    for name, size, count in (("x", 0.006, 6), ("y", 0.006, 5), ("z", 0.012, 21)):
        widths = np.exp(random.uniform(0.0, np.log(30.0), count))
        tables += f"domain.{name}.widths = {(widths / widths.sum() * size).tolist()}\n"
    z = np.append(0.0, np.cumsum(widths / widths.sum() * size)).tolist()
    text = f"""domain.material = "board"
{tables}
materials.board = {{ conductivity = [0.8, 0.8, 0.3], density = 1850.0, specific_heat = 1100.0 }}
materials.chip = {{ conductivity = 120.0, density = 2330.0, specific_heat = 700.0 }}
contacts = [{{ between = ["chip", "board"], resistance = 3e-4 }}]
initial.temperature = "300 + 1e4*x"
time = {{ end = 0.01, method = "euler" }}
[[regions]]
name = "chip"
material = "chip"
box = {{ min = [0.0, 0.0, {z[5]}], max = [0.004, 0.003, {z[12]}] }}
[[regions]]
name = "hole"
material = "void"
box = {{ min = [0.0, 0.0, {z[14]}], max = [0.002, 0.003, {z[21]}] }}
[[layers]]
material = "chip"
thickness = 1e-6
plane = {{ axis = "z", at = {z[10]}, rectangle = {{ min = [0.0011, 0.0003], max = [0.0047, 0.0059] }} }}
[[layers]]
material = "chip"
thickness = 1e-6
plane = {{ axis = "x", at = 0.0, rectangle = {{ min = [0.0, 0.0], max = [0.0033, 0.0091] }} }}
[boundaries]
default = {{ type = "convection", coefficient = 9.0, ambient = 350.0 }}
void = {{ type = "convection", coefficient = 5.0, ambient = 300.0 }}
[[sources]]
power = 0.2
box = {{ min = [0.0, 0.0, 0.0], max = [0.006, 0.003, 0.004] }}
[[sources]]
power = 1.0
distribution = "1 + x*z/1e-6"
[[sources]]
power_density = "1e5*(T - 290)"
[[sources]]
beam = {{ face = "x_min", power = 5.0, radius = 4e-4, path = [[0.003, 0.002], [0.003, 0.010]], speed = 0.1 }}
[[sources]]
beam = {{ face = "z_max", power = 5.0, radius = 4e-4, path = [[0.001, 0.001], [0.005, 0.005]], speed = 0.1 }}
[[sources]]
beam = {{ face = "z_max", power = 5.0, radius = 4e-4, path = [[0.001, 0.001]], absorption_depth = 1e-3 }}
"""
    problem = problem_of(text, solver={"device": "cpu", "precision": "float64"})
    assert len(problem.materials.layering.cells)
    assert len(problem.materials.heated.lit)
    for ranks in (2, 3):
        same(problem, ranks)


def test_discs_cylinders_and_beams_of_axial_domains() -> None:
    """A disc, a cylinder through the cuts, a hole in void, and beams that a surface and the body absorb."""
    text = """materials.board = { conductivity = [0.8, 0.8, 0.3], density = 1850.0, specific_heat = 1100.0 }
materials.copper = { conductivity = 390.0, density = 8960.0, specific_heat = 385.0 }
initial.temperature = "300 + 1e4*x"
time = { end = 0.01, method = "euler" }
[domain]
symmetry = "axial"
material = "board"
x.intervals = [{ to = 0.006, cells = 7, growth = 1.3 }]
z.intervals = [{ to = 0.004, cells = 9, growth = 0.9 }, { to = 0.01, cells = 10 }]
[[regions]]
name = "hole"
material = "void"
box = { min = [0.0, -1.0, 0.007], max = [0.003, 1.0, 0.01] }
[[layers]]
material = "copper"
thickness = 1e-6
plane = { axis = "x", at = 0.006 }
[[layers]]
material = "copper"
thickness = 1e-6
plane = { axis = "z", at = 0.004, rectangle = { min = [0.0011, -0.5], max = [0.006, 0.5] } }
[boundaries]
default = { type = "convection", coefficient = 9.0, ambient = 350.0 }
void = { type = "convection", coefficient = 5.0, ambient = 300.0 }
[[sources]]
beam = { face = "z_max", power = 5.0, radius = 1e-3, path = [[0.0, 0.0]] }
[[sources]]
beam = { face = "z_max", power = 5.0, radius = 2e-3, path = [[0.0, 0.0]], absorption_depth = 2e-3 }
"""
    problem = problem_of(text, solver={"device": "cpu", "precision": "float64"})
    assert len(problem.materials.layering.cells)
    assert len(problem.materials.heated.lit)
    for ranks in (2, 3):
        same(problem, ranks)
