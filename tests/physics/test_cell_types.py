"""Cell types and what passes between them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heatsim.grid import Grid
from heatsim.physics.cells import cell_type_map
from heatsim.physics.cells.cell_types import INTERIOR, TooManyCellTypesError
from heatsim.physics.matter.material_numbers import VOID, MaterialNumbers

COPPER = MaterialNumbers("copper", (400.0, 300.0, 200.0), 3.4e6)
IRON = MaterialNumbers("iron", (80.0, 80.0, 80.0), 3.5e6)
GRID = Grid((6, 5, 4), (0.6, 1.0, 1.2))


def test_two_half_cells_and_a_contact_in_series() -> None:
    material = np.zeros(GRID.shape, dtype=np.uint8)
    material[:, :, 3:] = 1
    found = cell_type_map.build(GRID, (COPPER, IRON), material, contacts={frozenset((0, 1)): 1e-3})
    for axis, d in enumerate(GRID.spacing):
        assert COPPER.conductivity is not None
        k = COPPER.conductivity[axis]
        assert found.link[axis, 0, 0] == pytest.approx(k / d, rel=1e-14)
        expected = 1.0 / (d / 2.0 / k + 1e-3 + d / 2.0 / 80.0)
        assert found.link[axis, 0, 1] == pytest.approx(expected, rel=1e-14)
        assert found.link[axis, 1, 0] == pytest.approx(found.link[axis, 0, 1], rel=1e-15)
        c = found.coefficients(0.5)
        assert c[axis, 0, 1] == pytest.approx(0.5 * expected / (3.4e6 * d), rel=1e-14)
        assert c[axis, 1, 0] == pytest.approx(0.5 * expected / (3.5e6 * d), rel=1e-14)


def test_nothing_passes_to_void() -> None:
    material = np.zeros(GRID.shape, dtype=np.uint8)
    material[0] = 1
    found = cell_type_map.build(GRID, (COPPER, VOID), material)
    assert found.void == 1
    assert not found.link[:, :, 1].any()
    assert not found.half_cells(1.0)[1].any()
    assert not found.coefficients(1.0)[:, 1].any()
    assert found.cell_heat_capacity[1] == 0.0


@settings(max_examples=40)
@given(
    cells=st.tuples(*[st.integers(1, 5)] * 3),
    periodic=st.tuples(*[st.booleans()] * 3),
    seed=st.integers(0, 2**31),
)
def test_interior_cells_have_neighbours_of_their_own_type(
    cells: tuple[int, int, int], periodic: tuple[bool, bool, bool], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    grid = Grid(cells, (1.0, 1.0, 1.0))
    material = (rng.random(grid.shape) < 0.15).astype(np.uint8)
    found = cell_type_map.build(grid, (COPPER, IRON), material, periodic=periodic)
    if found.uniform:
        assert len(np.unique(material)) == 1
        return
    cell_types = found.cells & ~np.uint8(INTERIOR)
    assert [found.types[cell_type].material for cell_type in cell_types.ravel().tolist()] == material.ravel().tolist()
    for z, y, x in np.ndindex(grid.shape):
        same = True
        for axis, side in product(range(3), (-1, 1)):
            place, n = [x, y, z], cells[axis]
            place[axis] += side
            if not 0 <= place[axis] < n:
                if not periodic[axis]:
                    continue
                place[axis] %= n
            same &= bool(material[place[2], place[1], place[0]] == material[z, y, x])
        assert bool(found.cells[z, y, x] & INTERIOR) == same


def test_sources_make_cell_types() -> None:
    """Materials without sources first, then void, then what is heated."""
    material = np.zeros(GRID.shape, dtype=np.uint8)
    material[2:] = 1
    material[3, 4] = 2
    one, two = np.zeros(GRID.shape, dtype=bool), np.zeros(GRID.shape, dtype=bool)
    one[1:3] = True
    two[2:, :2] = True
    found = cell_type_map.build(GRID, (COPPER, IRON, VOID), material, heated=[one, two])
    cell_types = found.cells & ~np.uint8(INTERIOR)
    assert found.types[0].material == 0
    assert found.void == found.first_heated - 1
    for z, y, x in np.ndindex(GRID.shape):
        cell_type = found.types[int(cell_types[z, y, x])]
        assert cell_type.material == material[z, y, x]
        sources = () if cell_type.material == 2 else tuple(n for n, mask in enumerate((one, two)) if mask[z, y, x])
        assert cell_type.sources == sources
        assert (int(cell_types[z, y, x]) >= found.first_heated) == bool(sources)
    assert found.counts.sum() == GRID.cell_count
    np.testing.assert_array_equal(found.counts, np.bincount(cell_types.ravel()))


def test_one_material_heated_everywhere_needs_no_bytes() -> None:
    found = cell_type_map.build(GRID, (COPPER,), None, heated=[None])
    assert found.uniform
    assert found.first_heated == 0
    assert found.cells.size == 0


def test_more_cell_types_than_a_byte_can_tell_apart_are_refused() -> None:
    rng = np.random.default_rng(0)
    grid = Grid((16, 16, 16), (1.0, 1.0, 1.0))
    with pytest.raises(TooManyCellTypesError, match="127"):
        cell_type_map.build(grid, (COPPER,), None, heated=[rng.random(grid.shape) < 0.5 for _ in range(9)])
