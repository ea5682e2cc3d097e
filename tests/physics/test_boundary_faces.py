"""The table of boundary faces against loops over all cells and sides of random bodies."""

from collections import defaultdict
from contextlib import suppress
from itertools import count, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from covering import mostly_slow

from heatsim.errors import ScenarioError
from heatsim.grid import FACES, Grid
from heatsim.physics.operator.boundary_faces import BoundaryFaces, areas, boundary_faces
from heatsim.physics.problem import HeatProblem
from heatsim.scenario.documents.load import parse_dict

Key = tuple[int, int, bool, int]  # cell, side, towards void, condition


def random_problem(seed: int) -> HeatProblem:
    """A box with holes, some of which touch its faces and each other, with patches that divide cells."""
    for attempt in count():
        with suppress(ScenarioError):  # such as a region without cells, or patches that overlap
            return _random_problem(np.random.default_rng((seed, attempt)))
    raise AssertionError


def _random_problem(rng: np.random.Generator) -> HeatProblem:
    cells = rng.integers(1, 7, 3).tolist()
    size = rng.uniform(0.5, 2.0, 3).tolist()
    film = {"type": "convection", "coefficient": 20.0, "ambient": 300.0}
    faces = {name: dict(film, ambient=300.0 + number) for number, name in enumerate(FACES)}
    for axis, name in enumerate("xyz"):
        if rng.random() < 0.3 and cells[axis] > 1:
            faces |= {f"{name}_min": {"type": "periodic"}, f"{name}_max": {"type": "periodic"}}
    regions = []
    for number in range(rng.integers(0, 4)):
        low = rng.uniform(-0.1, 0.7, 3) * size
        high = low + rng.uniform(0.3, 0.8, 3) * size
        material = "void" if number % 2 == 0 else "other"
        regions.append({"name": f"r{number}", "material": material, "box": {"min": low.tolist(), "max": high.tolist()}})
    if regions:
        faces["void"] = film
    patches = []
    for name in FACES:
        if faces[name]["type"] != "periodic" and rng.random() < 0.5:
            along = [size[axis] for axis in range(3) if axis != FACES.index(name) // 2]
            low, high = np.sort(rng.uniform(0.0, 1.0, (2, 2)), axis=0) * along
            patch = {"face": name, "rectangle": {"min": low.tolist(), "max": high.tolist()}}
            patches.append(patch | {"type": "flux", "value": 5.0})
    return HeatProblem.from_scenario(
        parse_dict(
            {
                "domain": {"size": size, "cells": cells, "material": "first"},
                "materials": {
                    "first": {"conductivity": 3.0, "density": 1e3, "specific_heat": 500.0},
                    "other": {"conductivity": 9.0, "density": 1e3, "specific_heat": 500.0},
                },
                "regions": regions,
                "patches": patches,
                "boundaries": faces,
                "initial": {"temperature": 300.0},
                "time": {"end": 1.0},
            },
            Path("random.toml"),
        )
    )


def looked_up(problem: HeatProblem) -> dict[Key, float]:
    """The fractions of all boundary faces, found cell by cell from the scenario."""
    scenario, grid = problem.scenario, problem.grid
    nx, ny, nz = grid.cells
    void = problem.materials.void
    types = problem.materials.types_of((slice(None),) * 3).reshape(grid.shape)
    found: dict[Key, float] = defaultdict(float)
    for z, y, x in product(range(nz), range(ny), range(nx)):
        if types[z, y, x] == void:
            continue
        for side in range(6):
            axis, place = side // 2, [x, y, z]
            place[axis] += 2 * (side % 2) - 1
            outside = not 0 <= place[axis] < grid.cells[axis]
            cell = (z * ny + y) * nx + x
            if outside and not problem.periodic[axis]:
                left, name = 1.0, FACES[side]
                v, u = [at for other, at in enumerate((x, y, z)) if other != axis][::-1]
                for number, patch in enumerate(scenario.patches, start=6):
                    if patch.face == name:
                        of_u, of_v = patch.coverage(grid)
                        part = float(of_u[u] * of_v[v])
                        found[cell, side, False, number] += part
                        left -= part
                found[cell, side, False, side] += left
                continue
            place[axis] %= grid.cells[axis]
            if types[place[2], place[1], place[0]] == void:
                found[cell, side, True, 6 + len(scenario.patches)] += 1.0
    return {key: fraction for key, fraction in found.items() if fraction > 1e-12}


@pytest.mark.parametrize("seed", mostly_slow(range(24), *range(14)))
def test_the_table_has_what_loops_over_cells_and_sides_find(seed: int) -> None:
    problem = random_problem(seed)
    expected, found = looked_up(problem), dict[Key, float]()
    smooth = problem.materials.weighted_surfaces
    for faces in boundary_faces(problem.boundary, problem.materials):
        assert (np.diff(faces.conditions) >= 0).all()
        for cell, number, fraction, ratio in zip(
            faces.cells.tolist(), faces.conditions.tolist(), faces.fractions, faces.ratios, strict=True
        ):
            key = cell, faces.side, faces.towards_void, number
            assert key not in found
            found[key] = fraction
            assert ratio == (smooth.area[smooth.find(np.array([cell]))[1][0], faces.side] if faces.towards_void else 1)
        np.testing.assert_array_equal(faces.types(problem.materials) == problem.materials.void, False)
    # Faces towards void without smooth area let nothing through.
    for key in expected.keys() - found.keys():
        listed, place = smooth.find(np.array([key[0]]))
        assert key[2]
        assert listed.all()
        assert smooth.area[place[0], key[1]] == 0.0
        del expected[key]
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([found[key] for key in expected], [*expected.values()], rtol=1e-12)


@pytest.mark.parametrize("seed", mostly_slow(range(12), *range(6)))
def test_boundary_faces_of_some_cells_are_those_of_the_table(seed: int) -> None:
    problem = random_problem(100 + seed)
    rng = np.random.default_rng(seed)
    some = rng.permutation(problem.grid.cell_count)[: rng.integers(1, problem.grid.cell_count + 1)]
    for faces in boundary_faces(problem.boundary, problem.materials):
        place, of_some = faces.of(some)
        np.testing.assert_array_equal(some[place], of_some.cells)
        wanted = faces.where(np.isin(faces.cells, some))
        one, other = (sorted(zip(at.cells, at.conditions, at.fractions, strict=True)) for at in (of_some, wanted))
        assert one == other


def test_areas_are_those_of_the_faces_of_a_full_box() -> None:
    problem = random_problem(0)
    found = areas(problem.boundary, problem.materials)
    grid = problem.grid
    for axis, d in enumerate(grid.size):
        if not problem.periodic[axis] and problem.materials.void is None:
            both = [2 * axis, 2 * axis + 1]
            patches = [n for n, patch in enumerate(problem.scenario.patches, 6) if FACES.index(patch.face) in both]
            np.testing.assert_allclose(found[[*both, *patches]].sum(), 2.0 * np.prod(grid.size) / d, rtol=1e-12)


@pytest.mark.parametrize("side", range(6))
def test_light_falls_on_a_cell_at_its_place_on_the_face_of_the_box(side: int) -> None:
    grid, bits = Grid((3, 4, 5), (1.0, 1.0, 1.0)), np.full(60, 1 << side, np.uint8)
    bits[7] = 0x3F & ~(1 << side)
    cells, nothing = np.arange(60), np.zeros(60)
    found = BoundaryFaces(grid, side, True, cells, cells, nothing, cells, nothing, cells).lit(
        SimpleNamespace(heated=SimpleNamespace(lit=bits))  # type: ignore[arg-type]
    )
    z, y, x = np.unravel_index(cells, grid.shape)
    expected = np.ravel_multi_index((y if side > 3 else z, y if side < 2 else x), grid.face_shape(side))
    expected[7] = -1
    np.testing.assert_array_equal(found, expected)
