"""Tables of materials that change with temperature, laid out for kernels."""

import numpy as np

from heatsim.grid import Grid
from heatsim.kernels.composite.tables import make_laws
from heatsim.physics import cell_types as media
from heatsim.physics.cell_types import Substance
from heatsim.physics.enthalpy import Law


def law(first: int, steps: int) -> Law:
    """Heat capacity and conductivity do not change in it; what matters is where its table lies."""
    nodes = (first + np.arange(steps + 1)).astype(np.float64)
    return Law(
        (10.0, 10.0, 10.0), 1e6, 1.0, first, nodes, nodes, np.ones(steps + 1), (300.0, 310.0), (10.0, 10.0), (1.0, 1.0)
    )


def test_no_two_materials_have_the_same_base_though_one_table_ends_where_the_next_begins() -> None:
    below, above = law(-10, 10), law(0, 5)
    palette = [Substance(name, of.conductivity, of.heat_capacity, of) for name, of in (("a", below), ("b", above))]
    material = np.zeros((1, 1, 4), np.uint8)
    material[..., 2:] = 1
    laws = make_laws(media.build(Grid((4, 1, 1), (1.0, 1.0, 1.0)), palette, material), "float64")
    assert laws.bases[0] != laws.bases[1]
    for base, of in zip(laws.bases.tolist(), (below, above), strict=True):
        entries = base + of.first + np.arange(of.steps)
        np.testing.assert_array_equal(laws.potentials[entries, 0], of.potentials[:-1])
        np.testing.assert_array_equal(laws.potentials[entries, 1], np.diff(of.potentials))
        np.testing.assert_array_equal(laws.states[entries, 0], of.temperatures[:-1])
