"""Layers without cells conduct along and across and hold heat, as much as the same layers with cells."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from problem_text import problem

from heatsim import Simulation
from heatsim.errors import ScenarioError
from heatsim.physics.cells.cell_types import INTERIOR
from heatsim.physics.operator.stability import Stability
from heatsim.physics.problem import HeatProblem
from heatsim.run import plan_text
from heatsim.run.plan import Plan
from heatsim.scenario import parse
from heatsim.storage import folder, tables

MATERIALS = """
[materials.board]
conductivity = [0.8, 0.8, 0.3]
density = 1850.0
specific_heat = 1100.0
[materials.copper]
conductivity = 390.0
density = 8960.0
specific_heat = 385.0
[materials.film]
conductivity = [20.0, 10.0, 0.02]
density = 1000.0
specific_heat = 2000.0
[materials.chip]
conductivity = 120.0
density = 2330.0
specific_heat = 700.0
"""
ENDS = (
    '[boundaries]\n{0}_min = {{ type = "temperature", value = 310.0 }}\n'
    '{0}_max = {{ type = "temperature", value = 300.0 }}\n'
)
STEADY = 'time = { method = "steady", tolerance = 1e-6 }\n'


def text(
    size: tuple[float, ...], cells: tuple[int, ...], body: str, material: str = "board", head: str = STEADY
) -> str:
    return (
        f'title = "layers"\ndomain = {{ size = {list(size)}, cells = {list(cells)}, material = "{material}" }}\n{head}'
        'solver = { device = "cpu", precision = "float64" }\noutput = { figures = false, fields = false }\n'
        + MATERIALS
        + body
    )


def layer(axis: str, at: float, low: tuple[float, float] | None = None, high: tuple[float, float] | None = None,
          thickness: float = 35e-6, material: str = "copper") -> str:  # fmt: skip
    rectangle = "" if low is None or high is None else f", rectangle = {{ min = {list(low)}, max = {list(high)} }}"
    return (
        f'[[layers]]\nmaterial = "{material}"\nthickness = {thickness!r}\n'
        f'plane = {{ axis = "{axis}", at = {at!r}{rectangle} }}\n'
    )


def box(name: str, material: str, low: tuple[float, ...], high: tuple[float, ...]) -> str:
    return f'[[regions]]\nname = "{name}"\nmaterial = "{material}"\nbox = {{ min = {list(low)}, max = {list(high)} }}\n'


def run(at: Path, scenario: str) -> tuple[Simulation, dict[str, float], list[float]]:
    """A run, its last row of heats, and the last row of its probes."""
    path = at / "case.toml"
    path.write_text(scenario, encoding="utf-8")
    simulation = Simulation.from_scenario(path, output=at / "run", overwrite=True)
    simulation.run()
    names, rows = tables.read(simulation.folder / folder.ENERGY)
    probes = tables.read(simulation.folder / folder.PROBES)[1][-1, 1:].tolist() if "[[probes]]" in scenario else []
    return simulation, dict(zip(names, rows[-1].tolist(), strict=True)), probes


def heat_from(energy: dict[str, float], face: str) -> float:
    return next(value for name, value in energy.items() if name.startswith(face))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("place", "contact"), [(0.0, 0.0), (0.5, 0.0), (0.5, 3e-4), (1.0, 0.0)])
def test_resistances_across_are_in_series(tmp_path: Path, axis: int, place: float, contact: float) -> None:
    """Two materials, a film of 0.1 mm between them or on a face, and a contact; the probes follow the resistances."""
    size, cells = [0.003, 0.003, 0.003], [3, 3, 3]
    size[axis], cells[axis] = 0.004, 8
    name, (u, v) = "xyz"[axis], [other for other in range(3) if other != axis]
    low = [0.0, 0.0, 0.0]
    low[axis] = 0.002
    k_film, k_board = (20.0, 10.0, 0.02)[axis], (0.8, 0.8, 0.3)[axis]
    body = box("chip", "chip", tuple(low), tuple(size)) + layer(name, place * 0.004, None, None, 1e-4, "film")
    if contact:
        body += f'[[contacts]]\nbetween = ["chip", "board"]\nresistance = {contact}\n'
    body += (
        f'[boundaries]\n{name}_min = {{ type = "temperature", value = 400.0 }}\n'
        f'{name}_max = {{ type = "convection", coefficient = 500.0, ambient = 300.0 }}\n'
    )
    points = [[0.001, 0.001, 0.001] for _ in range(4)]
    for point, at in zip(points, (0.0003, 0.0019, 0.0022, 0.0039), strict=True):
        point[axis] = at
    body += "".join(f'[[probes]]\nname = "{number}"\npoint = {point}\n' for number, point in enumerate(points))
    _, energy, probes = run(tmp_path, text(tuple(size), tuple(cells), body))
    film = 1e-4 / k_film
    flux = 100.0 / (0.002 / k_board + film + contact + 0.002 / 120.0 + 1.0 / 500.0)
    assert heat_from(energy, f"{name}_min") == pytest.approx(flux * size[u] * size[v], rel=1e-8)
    resistance = [0.0003 / k_board, 0.0019 / k_board, 0.002 / k_board + contact + 0.0002 / 120.0]
    resistance.append(resistance[2] + 0.0017 / 120.0)
    before = [film if place == 0.0 or (place == 0.5 and number >= 2) else 0.0 for number in range(4)]
    expected = [400.0 - flux * (of + more) for of, more in zip(resistance, before, strict=True)]
    assert probes == pytest.approx(expected, abs=1e-5)


@pytest.mark.each_value
@pytest.mark.parametrize("axes", ["xy", "yx", "xz", "zx", "yz", "zy"])
@pytest.mark.parametrize(
    ("first", "last"),
    [(0.0, 0.006), (0.001, 0.005), (0.0013, 0.0045), (0.0022, 0.0028)],
    ids=["whole", "aligned", "within", "narrow"],
)
def test_a_strip_conducts_with_its_true_width(tmp_path: Path, axes: str, first: float, last: float) -> None:
    """Along one axis; a strip may be narrower than a cell, and lies between two planes of cells."""
    along, normal = ("xyz".index(name) for name in axes)
    size, cells = [0.006, 0.006, 0.006], [6, 6, 6]
    low, high = [first, first], [last, last]
    place = sorted({0, 1, 2} - {normal}).index(along)
    low[place], high[place] = 0.0, 0.006
    body = layer(axes[1], 0.003, (low[0], low[1]), (high[0], high[1])) + (
        f'[boundaries]\n{axes[0]}_min = {{ type = "temperature", value = 310.0 }}\n'
        f'{axes[0]}_max = {{ type = "temperature", value = 300.0 }}\n'
    )
    _, energy, _ = run(tmp_path, text(tuple(size), tuple(cells), body))
    own, copper = (0.8, 0.8, 0.3)[along] * 0.006**2, 390.0 * 35e-6 * (last - first)
    assert heat_from(energy, f"{axes[0]}_min") == pytest.approx(10.0 / 0.006 * (own + copper), rel=1e-7)


def test_rectangles_that_touch_within_a_cell_are_one_layer(tmp_path: Path) -> None:
    halves = layer("z", 0.002, (0.0, 0.0), (0.00273, 0.006)) + layer("z", 0.002, (0.00273, 0.0), (0.006, 0.006))
    apart = halves.replace("min = [0.00273", "min = [0.0029")
    faces = ENDS.format("x")
    heat = [
        heat_from(run(tmp_path, text((0.006, 0.006, 0.004), (6, 6, 4), layers + faces))[1], "x_min")
        for layers in (layer("z", 0.002), halves, apart)
    ]
    assert heat[1] == pytest.approx(heat[0], rel=1e-9)
    assert heat[2] < 0.5 * heat[0]


def test_layers_of_one_plane_lie_on_each_other(tmp_path: Path) -> None:
    layers = layer("z", 0.004) + layer("z", 0.004, None, None, 1e-4, "film")
    for axis, k, film in (("x", 0.8, 20.0), ("y", 0.8, 10.0)):
        scenario = text((0.006, 0.006, 0.004), (6, 6, 4), layers + ENDS.format(axis))
        expected = 10.0 * (k * 0.004 + 390.0 * 35e-6 + film * 1e-4)
        assert heat_from(run(tmp_path, scenario)[1], f"{axis}_min") == pytest.approx(expected, rel=1e-7)
    across = text((0.006, 0.006, 0.004), (6, 6, 4), layers + ENDS.format("z"))
    resistance = 0.004 / 0.3 + 35e-6 / 390.0 + 1e-4 / 0.02
    assert heat_from(run(tmp_path, across)[1], "z_min") == pytest.approx(10.0 * 0.006**2 / resistance, rel=1e-7)


TRACES = (
    layer("z", 0.002)
    + layer("z", 0.003, (0.0011, 0.0003), (0.0047, 0.0059))
    + layer("z", 0.003, (0.0002, 0.0001), (0.0005, 0.0044), 1e-4, "film")
    + layer("x", 0.0, (0.0, 0.0), (0.0033, 0.0021))
)
HELD = (
    "[initial]\ntemperature = 300.0\n"
    '[boundaries]\ndefault = { type = "convection", coefficient = 9.0, ambient = 350.0 }\n'
)


def test_heat_capacity_is_exact_on_any_grid() -> None:
    for cells in ((6, 6, 4), (7, 5, 8), (1, 3, 4)):
        found = problem(text((0.006, 0.006, 0.004), cells, TRACES + HELD, head="time = { end = 1.0 }\n"))
        materials = found.materials
        copper = 8960.0 * 385.0 * 35e-6 * (0.006**2 + 0.0036 * 0.0056 + 0.0033 * 0.0021)
        whole = 1850.0 * 1100.0 * 0.006**2 * 0.004 + copper + 1000.0 * 2000.0 * 1e-4 * 0.0003 * 0.0043
        assert materials.counts @ materials.cell_heat_capacity == pytest.approx(whole, rel=1e-12)
        assert materials.counts.sum() == found.grid.cell_count


def test_layers_over_void_are_left_out() -> None:
    """A hole in the board; the plan says what remains."""
    body = box("hole", "void", (0.001, 0.002, 0.0), (0.003, 0.004, 0.004)) + layer("z", 0.002) + HELD
    found = problem(text((0.006, 0.006, 0.004), (12, 12, 4), body, head="time = { end = 1.0 }\n"))
    laid = 0.006**2 - 0.002**2
    assert found.materials.layering.areas[0] == pytest.approx(laid, rel=1e-12)
    whole = (1850.0 * 1100.0 * 0.004 + 8960.0 * 385.0 * 35e-6) * laid
    assert found.materials.counts @ found.materials.cell_heat_capacity == pytest.approx(whole, rel=1e-12)
    assert (
        f"35 µm of copper at z = 2 mm; {1e4 * laid:.4g} cm² of 0.36 cm², the rest lies over void"
        in plan_text.describe(Plan.of(found))
    )


def test_no_step_below_the_limit_makes_new_extremes(tmp_path: Path) -> None:
    """The limit counts the layers: a step at the limit leaves every cell's own coefficient at 0 or above."""
    found = problem(text((0.006, 0.006, 0.004), (6, 6, 4), TRACES + HELD, head="time = { end = 1.0 }\n"))
    materials, limit = found.materials, Stability(found.materials, found.boundary).limit
    plain = problem(text((0.006, 0.006, 0.004), (6, 6, 4), HELD, head="time = { end = 1.0 }\n")).limit
    assert limit.dt < plain.dt / 20.0
    weighted = materials.weighted_surfaces
    assert not (materials.cells.reshape(-1)[weighted.cells] & INTERIOR).any()
    for precision in ("float32", "float64"):
        body = TRACES + HELD.replace("temperature = 300.0", 'temperature = "300 + 100*(x > 0.003)"')
        scenario = text(
            (0.006, 0.006, 0.004), (6, 6, 4), body, head='time = { end = 0.5, method = "euler", safety = 1.0 }\n'
        )
        simulation, _, _ = run(tmp_path, scenario.replace('"float64"', f'"{precision}"'))
        assert 300.0 - 1e-4 < simulation.temperature.min() <= simulation.temperature.max() < 400.0 + 1e-4


@pytest.mark.parametrize("method", ["euler", "stabilized", "implicit"])
@pytest.mark.parametrize("cells", [(6, 6, 4), (1, 6, 1)])
def test_energy_closes(tmp_path: Path, method: str, cells: tuple[int, int, int]) -> None:
    """Partly covered cells, a source, a corner of two layers, a body of one cell across."""
    layers = TRACES if cells[2] > 1 else layer("z", 0.004, (0.0, 0.0), (0.006, 0.0041))
    body = layers + "[[sources]]\npower = 0.2\nbox = { min = [0.0, 0.0, 0.0], max = [0.006, 0.003, 0.004] }\n" + HELD
    simulation, energy, _ = run(
        tmp_path, text((0.006, 0.006, 0.004), cells, body, head=f'time = {{ end = 5.0, method = "{method}" }}\n')
    )
    assert heat_from(energy, "sources") == pytest.approx(1.0, rel=1e-6)
    summary = json.loads((simulation.folder / folder.SUMMARY).read_text(encoding="utf-8"))
    assert abs(heat_from(energy, "residual")) <= summary["energy_bound"]
    assert summary["energy_bound"] < 1e-3


RESOLVED, THIN = 1, 3  # cells of 35 µm across the board


def assembly(per_cell: int, method: str) -> str:
    """A chip on a board of 1.575 mm with copper below it and on the whole underside; resolved, or by layers."""
    d, (lower, upper) = 35e-6, (45, 27)
    resolved = per_cell == RESOLVED
    faces = HELD.replace("default", "z_min").replace("9.0, ambient = 350.0", "50.0, ambient = 300.0")
    source = (
        '[[sources]]\npower = 2.0\nregion = "chip"\n[[probes]]\nname = "chip"\nregion = "chip"\nstatistic = "max"\n'
    )
    planes = lower + upper + 2 * resolved
    low, top = resolved * d, (lower + resolved) * d
    body = box("board", "board", (0.0, 0.0, low), (0.03, 0.02, top))
    if resolved:
        body += box("bottom", "copper", (0.0, 0.0, 0.0), (0.03, 0.02, d))
        body += box("pad", "copper", (0.004, 0.003, top), (0.026, 0.017, top + d))
    body += box("chip", "chip", (0.01, 0.005, top + resolved * d), (0.02, 0.015, planes * d))
    if not resolved:
        body += layer("z", 0.0) + layer("z", top, (0.004, 0.003), (0.026, 0.017))
    head = STEADY if method == "steady" else 'time = { end = 20.0, method = "implicit", tolerance = "5 mK" }\n'
    scenario = text((0.03, 0.02, planes * d), (30, 20, planes // per_cell), body + faces + source, "void", head)
    return scenario.replace("fields = false", "fields = false, probe_every = 2.0") if method != "steady" else scenario


@pytest.mark.quick("steady")
@pytest.mark.parametrize("method", ["steady", "implicit"])
def test_layers_agree_with_the_same_layers_resolved_by_cells(tmp_path: Path, method: str) -> None:
    """35 µm of copper on laminate, steady and in time: within 0.2 % of the chip's rise, with 15 cells across."""
    rises = []
    for per_cell in (RESOLVED, THIN):
        simulation, _, _ = run(tmp_path, assembly(per_cell, method))
        rises.append(tables.read(simulation.folder / folder.PROBES)[1][:, 1] - 300.0)
    assert np.abs(rises[1] - rises[0]).max() <= 2e-3 * rises[0][-1]
    assert rises[0][-1] > 20.0


CUBE = (0.006, 0.006, 0.004)


@pytest.mark.parametrize(
    ("layers", "key", "parts"),
    [
        (layer("z", 0.0015), "layers.0.plane.at", ["inside a cell", "at 0.001 and 0.002 m"]),
        (layer("z", 0.005), "layers.0.plane.at", ["got 0.005", "from 0.0 to 0.004 m along z"]),
        (layer("z", 0.002, (0.0, 0.0), (0.007, 0.003)), "layers.0.plane.rectangle.max.0", ["got 0.007", "along x"]),
        (layer("z", 0.002, None, None, 1.1e-3), "layers.0.thickness", ["more than a cell", "region with cells"]),
        (layer("z", 0.002, None, None, 35.0), "layers.0.thickness", ["35.0 m", 'write "35 um" for micrometres']),
        (layer("z", 0.002, material="cooper"), "layers.0.material", ['got "cooper"', 'did you mean "copper"']),
        (layer("z", 0.002, material="void"), "layers.0.material", ["does not conduct"]),
        (layer("z", 0.002).replace('"z"', '"w"'), "layers.0.plane.axis", ['one of "x", "y", "z"']),
        (layer("z", 0.002).replace("plane", 'name = "a"\nplane') * 2, "layers.1.name", ["a second time"]),
    ],
)
def test_layers_that_cannot_be_are_refused(layers: str, key: str, parts: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(tomllib.loads(text(CUBE, (6, 6, 4), layers)), "case.toml")
    ((found, message),) = [(mistake.key, mistake.message) for mistake in caught.value.mistakes]
    assert found == key
    for part in parts:
        assert part in message


UNEVEN = box("low", "void", (0.0, 0.0, 0.0), (0.003, 0.006, 0.002)) + box(
    "high", "void", (0.003, 0.0, 0.002), (0.006, 0.006, 0.004)
)


@pytest.mark.parametrize(
    ("cells", "body", "key", "part"),
    [
        ((6, 6, 4), box("all", "void", (0.0, 0.0, 0.002), CUBE) + layer("z", 0.003), "layers.0.plane", "lies in void"),
        ((6, 6, 4), UNEVEN + layer("z", 0.002), "layers.0.plane", "only below its plane in one place"),
        ((6, 6, 1), layer("z", 0.0) + layer("z", 0.004), "layers.1.plane", "as many cells along z as there are layers"),
        ((6, 6, 2), layer("z", 0.0) + layer("z", 0.002) + layer("z", 0.004), "layers.2.plane", "the cells between"),
    ],
)
def test_layers_that_find_no_cells_are_refused(cells: tuple[int, int, int], body: str, key: str, part: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        HeatProblem.from_scenario(
            parse(tomllib.loads(text(CUBE, cells, body + HELD, head="time = { end = 1.0 }\n")), "a")
        )
    assert [mistake.key for mistake in caught.value.mistakes] == [key]
    assert part in str(caught.value)


def test_layers_apart_may_lie_on_different_sides_of_their_plane() -> None:
    body = (
        UNEVEN + layer("z", 0.002, (0.0, 0.0), (0.002, 0.006)) + layer("z", 0.002, (0.004, 0.0), (0.006, 0.006)) + HELD
    )
    layering = problem(text(CUBE, (6, 6, 4), body, head="time = { end = 1.0 }\n")).materials.layering
    assert sorted(set(np.round(layering.node[:, 2], 3).tolist())) == [-1.0, 0.0, 1.0]


def test_layers_beside_materials_that_vary_are_refused() -> None:
    scenario = text(CUBE, (6, 6, 4), layer("z", 0.002)).replace(
        "conductivity = 120.0", 'conductivity = "120 - 0.1*(T - 300)"'
    )
    parse(tomllib.loads(scenario), "case.toml")  # no region is of this material
    for material, advice in (("chip", "give constant values"), ("library:copper(T)", 'use "library:copper"')):
        with pytest.raises(ScenarioError, match=f"constant properties.*{advice}"):
            parse(tomllib.loads(scenario.replace('material = "board"', f'material = "{material}"')), "case.toml")


@pytest.mark.parametrize(("weight", "thickness"), [("1 oz", "35 um"), ("0.5 oz/ft^2", "17.5 um")])
def test_the_refusal_of_a_weight_of_copper_names_its_thickness(weight: str, thickness: str) -> None:
    scenario = text(CUBE, (6, 6, 4), layer("z", 0.002)).replace("thickness = 3.5e-05", f'thickness = "{weight}"')
    with pytest.raises(ScenarioError, match=f'a weight; write the thickness: for copper "{thickness}"'):
        parse(tomllib.loads(scenario), "case.toml")


def test_four_planes_of_copper_need_four_cells() -> None:
    """Each layer finds different cells, from the underside up."""
    planes = "".join(layer("z", at) for at in (0.0, 0.001, 0.002, 0.003, 0.004))
    with pytest.raises(ScenarioError, match="as many cells"):
        problem(text(CUBE, (6, 6, 4), planes + HELD, head="time = { end = 1.0 }\n"))
    layering = problem(text(CUBE, (6, 6, 8), planes + HELD, head="time = { end = 1.0 }\n")).materials.layering
    assert sorted(set(layering.node[:, 2].tolist())) == [-1.0, 0.0, 1.0]


@pytest.mark.parametrize("axis", ["x", "z"])
def test_layers_wrap_with_a_periodic_axis(tmp_path: Path, axis: str) -> None:
    """A periodic body that is moved by two cells, its layer with it, has the same temperatures, moved."""
    size, cells, moved = (0.006, 0.006, 0.006), (6, 4, 6), 0.002
    fields = []
    for shift in (0.0, moved):
        low, high = ((0.001 + shift, 0.002), (0.004 + shift, 0.005)) if axis == "x" else ((0.001, 0.0), (0.004, 0.006))
        at = 0.003 if axis == "x" else 0.004 + shift
        start = f"300 + 50*({axis} > {0.001 + shift})*({axis} < {0.003 + shift})"
        faces = "".join(f'{axis}_{end} = {{ type = "periodic" }}\n' for end in ("min", "max"))
        body = layer("z", at, low, high) + f'[initial]\ntemperature = "{start}"\n[boundaries]\n{faces}'
        head = 'time = { end = 0.2, method = "euler", dt = 0.001 }\n'
        simulation, energy, _ = run(tmp_path, text(size, cells, body, head=head))
        assert abs(heat_from(energy, "residual")) < 1e-12
        fields.append(simulation.temperature.copy())
    along = {"x": 2, "z": 0}[axis]
    np.testing.assert_allclose(np.roll(fields[0], 2, axis=along), fields[1], rtol=1e-10)
    assert np.ptp(fields[0]) > 10.0
