"""Exact answers of the cases with several widths of cells and with axial symmetry; m, s, K."""

from collections.abc import Sequence
from math import log

import numpy as np

from heatsim.run.simulation import Simulation
from heatsim.storage.run_tables import WATT, read_energy, read_probes
from heatsim.verification.case import Array, Comparison, table_of
from heatsim.verification.exact import cylinder_series, slab_series

_ICE = 273.15


def finite_cylinder(x: Array, y: Array, z: Array, t: float) -> Array:
    """The product of an infinite cylinder and a plane wall: Carslaw & Jaeger §1.15; differences from 300 K."""
    radius, half, alpha = 0.03, 0.06, 5e-6
    around = cylinder_series(1.2, x / radius, alpha * t / radius**2)
    return 100.0 * around * slab_series(2.4, z / half, alpha * t / half**2)


def fuel_pin(x: Array, y: Array, z: Array, t: float) -> Array:
    """A pellet with an even density of heat, a gap, a cladding and a film."""
    pellet, inner, outer, density = 4.1e-3, 4.15e-3, 4.75e-3, 3.6e8
    around = density * pellet**2 / 2.0  # W/m, over 2π
    cladding = 580.0 + around / (3e4 * outer)
    gap = cladding + around / 16.0 * log(outer / inner)
    surface = gap + around / 0.3 * log(inner / pellet)
    inside = surface + density * (pellet**2 - x**2) / (4.0 * 3.0)
    in_gap, in_cladding = gap + around / 0.3 * np.log(inner / x), cladding + around / 16.0 * np.log(outer / x)
    return np.select([x < pellet, x < inner], [inside, in_gap], in_cladding)


def hollow_cylinder(x: Array, y: Array, z: Array, t: float) -> Array:
    """Steel from 20 to 25 mm, a contact, wool to 50 mm and foam to 80 mm, between two films."""
    films = [1.0 / (0.02 * 500.0), 1.0 / (0.08 * 8.0)]
    parts = [log(0.025 / 0.02) / 15.0, log(0.05 / 0.025) / 0.04, log(0.08 / 0.05) / 0.025]
    around = 160.0 / (sum(films) + sum(parts) + 0.01 / 0.025)  # W/m, over 2π
    steel = 450.0 - around * (films[0] + np.log(x / 0.02) / 15.0)
    foam = 290.0 + around * (films[1] + np.log(0.08 / x) / 0.025)
    wool = 290.0 + around * (films[1] + parts[2] + np.log(0.05 / x) / 0.04)
    return np.select([x < 0.025, x < 0.05], [steel, wool], foam)


def graded_wall(x: Array, y: Array, z: Array, t: float) -> Array:
    """10 W/m² through plaster, two boards of foam, concrete and the contacts between them."""
    plaster = 300.0 - 10.0 / 8.0 - 10.0 * x / 0.2
    foam = 300.0 - 10.0 / 8.0 - 10.0 * 0.015 / 0.2 - 10.0 * (x - 0.015) / 0.03 - np.where(x > 0.095, 1.0, 0.0)
    concrete = 255.4 + 10.0 / 25.0 + 10.0 * (0.335 - x) / 2.0
    return np.select([x < 0.015, x < 0.135], [plaster, foam], concrete)


def bar_through_insulation(simulation: Simulation) -> Comparison:
    """The heat flow through the whole body as a part of 1 K, and the highest temperature on the cold side."""
    probes = table_of(read_probes, simulation)
    (highest,) = (float(values[-1]) for values in probes.columns.values())
    flow = -4.0 * _entering(simulation, ["z_min"])
    return Comparison(np.array([_ICE + 1.0, _ICE + 0.805]), np.array([_ICE + flow / 0.540, highest]))


def slab_on_ground(simulation: Simulation) -> Comparison:
    """The heat flow through the whole floor, as a part of 20 K."""
    flow = 4.0 * _entering(simulation, ["floor"])
    return Comparison(np.array([303.15]), np.array([283.15 + 20.0 * flow / 2432.6]))


def _entering(simulation: Simulation, names: Sequence[str]) -> float:
    """The heat in W that enters at faces and patches in the steady state."""
    table = table_of(read_energy, simulation)
    return float(sum(table.of_body(WATT)[name][-1] for name in names))
