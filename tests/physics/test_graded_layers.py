"""Layers between cells of different sizes conduct along and across and hold heat as between equal ones."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike
from problem_text import problem
from test_thin_layers import ENDS, HELD, MATERIALS, STEADY, TRACES, box, heat_from, layer, run, text

from heatsim.errors import ScenarioError
from heatsim.physics.cells.cell_types import CELL_TYPE

RANDOM = np.random.default_rng(8)
# Widths across the plane, in parts: a layer lies above the third cell.
ACROSS: dict[str, ArrayLike] = {
    "finer above": [10.0, 10.0, 10.0, 1.0, 1.0, 2.0],
    "coarser above": [1.0, 2.0, 1.0, 10.0, 20.0, 10.0],
    "random": np.exp(RANDOM.uniform(0.0, np.log(100.0), 6)),
}
OTHERS: list[ArrayLike] = [1.5 ** np.arange(4), 0.6 ** np.arange(5)]


def lengths(parts: ArrayLike, size: float) -> list[float]:
    """Widths in m of cells, from widths in parts."""
    return [float(width) for width in np.asarray(parts) / np.sum(parts) * size]


def graded(widths: list[list[float]], body: str, material: str = "board", head: str = STEADY) -> str:
    tables = "".join(f"domain.{name}.widths = {of}\n" for name, of in zip("xyz", widths, strict=True))
    return (
        f'title = "layers"\ndomain.material = "{material}"\n{tables}{head}'
        'solver = { device = "cpu", precision = "float64" }\noutput = { figures = false, fields = false }\n'
        + MATERIALS
        + body
    )


@pytest.mark.parametrize(("axis", "kind"), [(0, "finer above"), (1, "random"), (2, "coarser above")])
@pytest.mark.parametrize("contact", [0.0, 3e-4])
def test_resistances_across_are_in_series(tmp_path: Path, axis: int, kind: str, contact: float) -> None:
    """A film between two materials; the probes follow the resistances."""
    widths = [lengths(parts, 0.003) for parts in OTHERS]
    widths.insert(axis, lengths(ACROSS[kind], 0.004))
    sizes, below = [float(np.cumsum(of)[-1]) for of in widths], float(np.cumsum(widths[axis])[2])
    name, low = "xyz"[axis], [0.0, 0.0, 0.0]
    low[axis] = below
    k_film, k_board = (20.0, 10.0, 0.02)[axis], (0.8, 0.8, 0.3)[axis]
    body = box("chip", "chip", tuple(low), tuple(sizes)) + layer(name, below, None, None, 1e-5, "film")
    if contact:
        body += f'[[contacts]]\nbetween = ["chip", "board"]\nresistance = {contact}\n'
    body += (
        f'[boundaries]\n{name}_min = {{ type = "temperature", value = 400.0 }}\n'
        f'{name}_max = {{ type = "convection", coefficient = 500.0, ambient = 300.0 }}\n'
    )
    places = 0.3 * below, 0.95 * below, 1.02 * below, 0.0039
    for number, at in enumerate(places):
        point = [0.001, 0.001, 0.001]
        point[axis] = at
        body += f'[[probes]]\nname = "{number}"\npoint = {point}\n'
    _, energy, probes = run(tmp_path, graded(widths, body))
    film, above = 1e-5 / k_film, sizes[axis] - below
    flux = 100.0 / (below / k_board + film + contact + above / 120.0 + 1.0 / 500.0)
    area = np.prod(sizes) / sizes[axis]
    assert heat_from(energy, f"{name}_min") == pytest.approx(flux * area, rel=1e-8)
    before = [min(at, below) / k_board + (at > below) * (film + contact + (at - below) / 120.0) for at in places]
    assert probes == pytest.approx([400.0 - flux * of for of in before], abs=1e-5)


@pytest.mark.parametrize(("axes", "kind"), [("xz", "finer above"), ("zy", "coarser above"), ("yx", "random")])
@pytest.mark.parametrize(("first", "last"), [(0.0, 1.0), (0.37, 0.41)])
def test_a_strip_conducts_with_its_true_width(tmp_path: Path, axes: str, kind: str, first: float, last: float) -> None:
    """Along one axis; a strip may be narrower than a cell."""
    along, normal = ("xyz".index(name) for name in axes)
    widths = [lengths(parts, 0.006) for parts in OTHERS]
    widths.insert(normal, lengths(ACROSS[kind], 0.006))
    sizes = [float(np.sum(of)) for of in widths]
    across = ({0, 1, 2} - {along, normal}).pop()
    place = [axis for axis in range(3) if axis != normal].index(across)
    low, high = [0.0, 0.0], [size for axis, size in enumerate(sizes) if axis != normal]
    low[place], high[place] = first * sizes[across], last * sizes[across]
    plane = float(np.cumsum(widths[normal])[2])
    body = layer(axes[1], plane, (low[0], low[1]), (high[0], high[1]), 1e-5) + ENDS.format(axes[0])
    scenario = graded(widths, body)
    _, energy, _ = run(tmp_path, scenario)
    own = (0.8, 0.8, 0.3)[along] * sizes[normal] * sizes[across]
    copper = 390.0 * 1e-5 * (last - first) * sizes[across]
    assert heat_from(energy, f"{axes[0]}_min") == pytest.approx(10.0 / sizes[along] * (own + copper), rel=1e-7)
    laid = (last - first) * sizes[across] * sizes[along]
    assert problem(scenario).materials.layering.areas[0] == pytest.approx(laid, rel=1e-12)


@pytest.mark.parametrize(
    ("parts", "at"), [([4.0, 4.0, 1.0, 1.0], 2), ([1.0, 10.0, 1.0, 1.0], 2), ([1.0, 1.0, 4.0, 4.0], 2)]
)
def test_a_strip_that_another_layer_crosses_keeps_its_length(tmp_path: Path, parts: list[float], at: int) -> None:
    """The crossing layer moves the node of the cell below it to the face of the next cell, which may be narrower."""
    along = lengths(parts, 0.01)
    crossing = layer("x", float(np.sum(along[:at])), None, None, 1e-9, "board")
    body = layer("z", 0.003, None, None, 1e-5) + crossing + ENDS.format("x")
    _, energy, _ = run(tmp_path, graded([along, [0.003] * 2, [0.001] * 6], body))
    exact = 10.0 / 0.01 * (0.8 * 0.006 * 0.006 + 390.0 * 1e-5 * 0.006)
    assert heat_from(energy, "x_min") == pytest.approx(exact, rel=1e-6)


def test_heat_capacity_is_exact() -> None:
    for parts in ACROSS.values():
        widths = [lengths(of, 0.006) for of in OTHERS] + [lengths(parts, 0.004)]
        at = float(np.cumsum(widths[2])[2])
        layers = (
            layer("z", at, (0.0011, 0.0003), (0.0047, 0.0059), 1e-5)
            + layer("z", at, (0.0002, 0.0001), (0.0005, 0.0044), 1e-5, "film")
            + layer("x", 0.0, (0.0, 0.0), (0.0033, 0.0021), 1e-5)
        )
        materials = problem(graded(widths, layers + HELD, head="time = { end = 1.0 }\n")).materials
        copper = 8960.0 * 385.0 * 1e-5 * (0.0036 * 0.0056 + 0.0033 * 0.0021)
        whole = 1850.0 * 1100.0 * 0.006**2 * 0.004 + copper + 1000.0 * 2000.0 * 1e-5 * 0.0003 * 0.0043
        assert materials.volumes @ materials.cell_heat_capacity == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("boundaries", [HELD, ENDS.format("z") + "[initial]\ntemperature = 300.0\n"])
def test_nearly_equal_cells_have_the_layers_of_equal_ones(boundaries: str) -> None:
    scenario = text((0.006, 0.006, 0.004), (6, 7, 8), TRACES + boundaries, head="time = { end = 1.0 }\n")
    tables = ", ".join(
        f"{name} = {{ widths = {lengths(1.0 + 1e-9 * RANDOM.uniform(-1.0, 1.0, count), size)} }}"
        for name, size, count in (("x", 0.006, 6), ("y", 0.006, 7), ("z", 0.004, 8))
    )
    nearly = problem(re.sub("domain = {", f"domain = {{ {tables},", scenario)).materials
    equal = problem(scenario).materials
    assert not nearly.grid.uniform
    for name in ("cells", "node", "capacity", "half", "faces", "links"):
        one, other = (getattr(materials.layering, name) for materials in (nearly, equal))
        np.testing.assert_allclose(one, other, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("parts", [[2.0, 2.0, 2.0, 10.0, 10.0], [10.0, 10.0, 2.0, 2.0]])
def test_errors_fall_with_the_square_of_the_cells(tmp_path: Path, parts: list[float]) -> None:
    """The mean temperature while heat spreads along a layer, with every cell halved twice."""
    means, zones = [], (lengths(1.5 ** np.arange(6), 0.006), [0.001], lengths(parts, 0.004))
    plane = float(np.cumsum(zones[2])[2])
    body = layer("z", plane, None, None, 1e-5) + (
        '[[sources]]\npower_density = "1e7*(1 + cos(pi*x/0.006))"\n'
        '[boundaries]\nz_min = { type = "temperature", value = 300.0 }\n'
    )
    for halved in (1, 2, 4):
        widths = [np.repeat(np.array(of) / halved, halved).tolist() for of in (zones[0], zones[2])]
        scenario = graded([widths[0], zones[1], widths[1]], body)
        simulation, _, _ = run(tmp_path, scenario)
        materials = problem(scenario).materials
        capacities = materials.heat_capacity[materials.cells & CELL_TYPE].reshape(-1)
        capacities *= materials.grid.volume_factors(np.arange(materials.grid.cell_count))
        means.append(float(simulation.temperature.reshape(-1) @ capacities / capacities.sum()))
    assert (means[0] - means[1]) / (means[1] - means[2]) == pytest.approx(4.0, abs=0.01)


@pytest.mark.parametrize(
    ("at", "thickness", "words"),
    [
        (0.0011, 1e-5, "nearest planes between cells of 0.002 m are at 0.001 and 0.003 m"),
        (0.001, 1.5e-3, "more than a cell, which has 0.001 m along z"),
    ],
)
def test_refusals_name_the_cells_beside_the_plane(at: float, thickness: float, words: str) -> None:
    scenario = graded([[0.001, 0.002], [0.003], [0.001, 0.002, 0.004]], layer("z", at, None, None, thickness))
    with pytest.raises(ScenarioError, match=words):
        problem(scenario)
