"""Tables of materials that change with temperature, laid out for kernels."""

import numpy as np

from heatsim.grid import Grid
from heatsim.kernels.composite.tables import make_enthalpy_tables
from heatsim.physics.cells import cell_type_map
from heatsim.physics.matter.enthalpy import EnthalpyTable
from heatsim.physics.matter.material_numbers import MaterialNumbers


def enthalpy(first: int, steps: int) -> EnthalpyTable:
    """Heat capacity and conductivity do not change in it; what matters is where its table lies."""
    nodes = (first + np.arange(steps + 1)).astype(np.float64)
    return EnthalpyTable(
        (10.0, 10.0, 10.0), 1e6, 1.0, first, nodes, nodes, np.ones(steps + 1), (300.0, 310.0), (10.0, 10.0), (1.0, 1.0)
    )


def test_no_two_materials_have_the_same_base_though_one_table_ends_where_the_next_begins() -> None:
    below, above = enthalpy(-10, 10), enthalpy(0, 5)
    palette = [
        MaterialNumbers(name, of.conductivity, of.heat_capacity, of) for name, of in (("a", below), ("b", above))
    ]
    material = np.zeros((1, 1, 4), np.uint8)
    material[..., 2:] = 1
    enthalpies = make_enthalpy_tables(
        cell_type_map.build(Grid((4, 1, 1), (1.0, 1.0, 1.0)), palette, material), "float64"
    )
    assert enthalpies.bases[0] != enthalpies.bases[1]
    for base, of in zip(enthalpies.bases.tolist(), (below, above), strict=True):
        entries = base + of.first + np.arange(of.steps)
        np.testing.assert_array_equal(enthalpies.potentials[entries, 0], of.potentials[:-1])
        np.testing.assert_array_equal(enthalpies.potentials[entries, 1], np.diff(of.potentials))
        np.testing.assert_array_equal(enthalpies.states[entries, 0], of.temperatures[:-1])
