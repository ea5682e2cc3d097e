"""Exact answers of the cases with several materials, sources, radiation and patches; m, s, K."""

from math import atan, cosh, exp, log, pi, sin, sqrt

import numpy as np

from heatsim.run.simulation import Simulation
from heatsim.storage.run_tables import read_energy
from heatsim.storage.tables import GROSS
from heatsim.verification.answers import plane_wave
from heatsim.verification.case import Array, Comparison, table_of
from heatsim.verification.exact import STEFAN_BOLTZMANN, complementary_error, root, sphere_series


def interface(simulation: Simulation) -> Comparison:
    """The 500 K at the interface of copper and iron, extrapolated from two cells on each side."""
    T = simulation.temperature[0, 0]
    middle = len(T) // 2
    sides = (1.5 * T[middle - 1] - 0.5 * T[middle - 2], 1.5 * T[middle] - 0.5 * T[middle + 1])
    return Comparison(np.array([500.0, 500.0]), np.array(sides))


def touching_slabs(x: Array, y: Array, z: Array, t: float) -> Array:
    """Two linear profiles: from 650 to 600 K and from 500 to 300 K."""
    return np.where(x < 0.5, 650.0 - 100.0 * x, 500.0 - 400.0 * (x - 0.5))


def touching_bodies(x: Array, y: Array, z: Array, t: float) -> Array:
    """Steel at 300 K for x < 0, copper at 400 K for x > 0: Incropera §5.7, eq. 5.63."""
    return _touching(x, t)


def touching_with_contact(x: Array, y: Array, z: Array, t: float) -> Array:
    """The same bodies with 1e-3 m² K/W between them; the scenario describes the solution."""
    return _touching(x, t, resistance=1e-3)


def _touching(x: Array, t: float, resistance: float = 0.0) -> Array:
    """Temperatures of the two bodies; the resistance in m² K/W."""
    steel, copper = sqrt(50.0 * 8000.0 * 500.0), sqrt(400.0 * 9000.0 * 400.0)  # effusivities
    contact = (steel * 300.0 + copper * 400.0) / (steel + copper)
    start = np.where(x < 0.0, 300.0, 400.0)
    alpha = np.where(x < 0.0, 50.0 / (8000.0 * 500.0), 400.0 / (9000.0 * 400.0))
    depth = np.abs(x) / (2.0 * np.sqrt(alpha * t))
    way = complementary_error(depth)
    if resistance > 0.0:
        passed = (1.0 / steel + 1.0 / copper) / resistance * sqrt(t)
        way = way - np.exp(2.0 * depth * passed + passed**2) * complementary_error(depth + passed)
    return start + (contact - start) * way


def radiating_gap(x: Array, y: Array, z: Array, t: float) -> Array:
    """Straight lines in two slabs beside a gap; the scenario has the same numbers."""

    def surplus(q: float) -> float:
        one, other = 900.0 - q * 0.5 / 20.0, 300.0 + q * 0.5 / 5.0
        conducted = (0.1 + 0.0003 * (0.5 * (one + other) - 300.0)) / 0.01 * (one - other)
        return q - conducted - STEFAN_BOLTZMANN * (one**4 - other**4) / (1.0 / 0.8 + 1.0 / 0.6 - 1.0)

    q = root(surplus, 0.0, 4800.0)
    return np.where(x < 0.5, 900.0 - q * x / 20.0, 300.0 + q * (1.0 - x) / 5.0)


def contact_wave(x: Array, y: Array, z: Array, t: float) -> Array:
    """The second mode of two slabs with a contact resistance; the scenario has the same numbers."""
    first, second, amplitude = 2.813517071395591, 3.9789140003358763, 83.59845086863771
    mode = np.where(x < 0.4, 50.0 * np.sin(first * x), amplitude * np.sin(second * (1.0 - x)))
    return mode * exp(-0.5 * first**2 * t)


def region_surfaces(simulation: Simulation) -> Comparison:
    """Waves in two walls beside a gap; the scenario has the same numbers."""
    x, t = simulation.plan.problem.grid.centres(0), simulation.time
    first = np.where(x < 0.2, 50.0 * np.cos(2.3 * x), 41.10132243037909 * np.cos(2.3 * x + 0.1105149072383208))
    known = np.where(x < 0.4, first * exp(-0.5 * 2.3**2 * t), 50.0 * np.cos(1.5 * (1.0 - x)) * exp(-0.5 * 1.5**2 * t))
    walls = (x < 0.4) | (x > 0.6)
    return Comparison(300.0 + known[walls], simulation.temperature[0, 0][walls])


def wave_in_void(simulation: Simulation) -> Comparison:
    """A wave in a square of 1 m with void on two sides; the scenario has the same numbers."""
    x, y = (simulation.plan.problem.grid.centres(axis) for axis in (0, 1))
    known = 300.0 + plane_wave(x, y[:, None], np.zeros(1), simulation.time)
    square = (x < 1.0) & (y[:, None] < 1.0)
    return Comparison(known[square], simulation.temperature[0][square])


def layered_slab(simulation: Simulation) -> Comparison:
    """The mode of a slab with a layer on its upper face, at the nodes of cells; the scenario has the same numbers."""
    mode, grid = 4.134189896536774, simulation.plan.problem.grid
    layering = simulation.plan.problem.materials.layering
    node = layering.node_of(2, np.arange(grid.cell_count).reshape(grid.shape))
    x, z = grid.centres(0), grid.centres(2)[:, None, None] + node * grid.axes[2].widths[:, None, None] / 2.0
    decay = exp(-(pi**2 + mode**2) * simulation.time)
    return Comparison(300.0 + 100.0 * decay * np.cos(pi * x) * np.sin(mode * z), simulation.temperature)


def radiating_body(t: float) -> float:
    """The uniform temperature of a cube of 4 mm that cools from 1000 K: Incropera, eq. 5.18."""
    surroundings, start = 300.0, 1000.0
    scale = 8000.0 * 300.0 * 0.004 / (6.0 * 0.8 * STEFAN_BOLTZMANN)

    def primitive(T: float) -> float:
        ratio = (T - surroundings) / (T + surroundings)
        return (log(ratio) - 2.0 * atan(T / surroundings)) / (4.0 * surroundings**3)

    # The time to cool to T falls with T.
    return root(lambda T: t - scale * (primitive(start) - primitive(T)), surroundings * (1.0 + 1e-12), start)


def radiating_slab(x: Array, y: Array, z: Array, t: float) -> Array:
    """A linear profile to the surface temperature at which conduction balances convection and radiation."""
    gradient = 10.0 / 0.1

    def surplus(T: float) -> float:
        return 20.0 * (T - 300.0) + 0.8 * STEFAN_BOLTZMANN * (T**4 - 500.0**4) - gradient * (1000.0 - T)

    surface = root(surplus, 300.0, 1000.0)
    return 1000.0 + (surface - 1000.0) * x / 0.1


def naturally_cooled_slab(x: Array, y: Array, z: Array, t: float) -> Array:
    """The same with natural convection, and an emissivity that grows with the temperature."""

    def surplus(T: float) -> float:
        radiated = (0.2 + 0.0005 * T) * STEFAN_BOLTZMANN * (T**4 - 500.0**4)
        convected: float = 1.5 * (T - 300.0) ** (4.0 / 3.0)
        return convected + radiated - 100.0 * (1000.0 - T)

    surface = root(surplus, 300.0, 1000.0)
    return 1000.0 + (surface - 1000.0) * x / 0.1


def heater_patch(x: Array, y: Array, z: Array, t: float) -> Array:
    """A flux of 4e4 W/m² on 0.04 m of a plate of 0.1 × 0.05 m, by separation of variables; differences from 300 K."""
    width, height, heated, slope = 0.1, 0.05, 0.04, 4e4 / 20.0
    field = heated / width * y + np.zeros_like(x)
    for n in range(1, 120):
        wavenumber = n * pi / width
        amplitude = 2.0 / (n * pi) * sin(n * pi * heated / width) / wavenumber / cosh(wavenumber * height)
        field = field + amplitude * np.cos(wavenumber * x) * np.sinh(wavenumber * y)
    return slope * field


def heated_layer(x: Array, y: Array, z: Array, t: float) -> Array:
    """1e5 W/m³ between 0.4 and 0.6 m, k = 50 W/(m K); differences from 300 K."""
    from_middle = np.abs(x - 0.5)
    half, slope = 0.1, 1e5 * 0.1 / 50.0
    inside = slope * 0.4 + 1e5 / (2.0 * 50.0) * (half**2 - from_middle**2)
    return np.where(from_middle < half, inside, slope * (0.5 - from_middle))


def insulated_wall(x: Array, y: Array, z: Array, t: float) -> Array:
    """10 W/m² through films, brick, a contact and wool."""
    brick = 300.0 - 10.0 / 8.0 - 10.0 * x / 0.8
    wool = 270.35 + 10.0 / 25.0 + 10.0 * (0.3 - x) / 0.04
    return np.where(x < 0.2, brick, wool)


def heated_rod() -> tuple[float, ...]:
    """4e6 W/m³ in a rod of 10 mm with a sleeve of 18 mm, at the probes' distances from the axis."""
    a, b, density = 0.01, 0.018, 4e6
    surface = 300.0 + density * a**2 / (2.0 * b * 500.0)

    def sleeve(r: float) -> float:
        return surface + density * a**2 / (2.0 * 15.0) * log(b / r)

    def rod(r: float) -> float:
        return sleeve(a) + density * (a**2 - r**2) / (4.0 * 3.0)

    return rod(0.0), rod(0.005), rod(0.005), sleeve(0.014), sleeve(0.014), sleeve(0.016)


def heated_slab(x: Array, y: Array, z: Array, t: float) -> Array:
    """5e4 W/m³ in 0.1 m; the heat leaves by convection and radiation at the face x = 0.1 m."""
    heat = 5e4 * 0.1

    def surplus(T: float) -> float:
        return 10.0 * (T - 300.0) + 0.9 * STEFAN_BOLTZMANN * (T**4 - 400.0**4) - heat

    return root(surplus, 300.0, 2000.0) + 5e4 / (2.0 * 12.0) * (0.1**2 - x**2)


def uniform_rise(x: Array, y: Array, z: Array, t: float) -> Array:
    """200 W for 0.25 s in 1e-6 m³ of 2e6 J/(m³ K); differences from 300 K."""
    return np.full(np.broadcast_shapes(x.shape, y.shape, z.shape), 200.0 * 0.25 / (1e-6 * 2e6))


def flux_within_cells(simulation: Simulation) -> Comparison:
    """The mean temperature of a bar that four fluxes heat for 40 s."""
    power = 600.0 + 1e6 * sqrt(pi) * 0.004 * 0.1 + 150.0 + 480.0
    known = 300.0 + 40.0 * power / (0.96 * 0.1 * 0.1 * 8900.0 * 385.0)
    return Comparison(np.array([known]), np.array([simulation.temperature.mean()]))


def wall_in_void(simulation: Simulation) -> Comparison:
    """The temperature difference from the heat that enters a wall of 1 m², and from that which leaves it."""
    table = table_of(read_energy, simulation)
    flows = [table.of_gross(way)["void"][-1] for way in GROSS]
    resistance = 1.0 / 8.0 + 0.2 / 0.8 + 1.0 / 25.0
    return Comparison(np.full(2, 293.15 - 272.4), np.array(flows) * resistance)


def moving_beam(x: Array, y: Array, z: Array, t: float) -> Array:
    """An integral over spreading spots, by Gauss–Legendre in the square root of their age; differences from 300 K."""
    absorbed, radius, capacity, alpha = 50.0, 0.002, 3e6, 1e-5
    nodes, weights = np.polynomial.legendre.leggauss(200)
    roots = 0.5 * sqrt(t) * (nodes + 1.0)
    age = roots**2
    variance = radius**2 / 4.0 + 2.0 * alpha * age
    # dt' = 2·√age·d√age cancels the √age in the denominator.
    heat = absorbed / capacity * sqrt(t) * weights / sqrt(pi * alpha) / (2.0 * pi * variance)
    spot = 0.008 + 0.04 * (t - age)
    along_x = np.exp(-((x.ravel() - spot[:, None]) ** 2) / (2.0 * variance[:, None]))
    along_y = np.exp(-((y.ravel() - 0.009) ** 2) / (2.0 * variance[:, None]))
    below = np.exp(-((0.008 - z.ravel()) ** 2) / (4.0 * alpha * age[:, None]))
    plane = along_y[:, :, None] * along_x[:, None, :]
    summed = (heat[:, None] * below).T @ plane.reshape(len(age), -1)
    return np.asarray(summed.reshape(z.size, y.size, x.size))


def rod_in_sleeve() -> tuple[float, ...]:
    """At 0, 20, 30 and 42 mm from the axis: heated rod of radius 25 mm, contact resistance, sleeve of radius 45 mm."""
    a, b, heat = 0.025, 0.045, 4e6
    through = heat * a**2 / 2.0  # W/m, over 2π
    sleeve = [300.0 + through / (b * 500.0) + through / 10.0 * log(b / r) for r in (a, 0.03, 0.042)]
    rod = [sleeve[0] + through / a * 1e-3 + heat / (4.0 * 20.0) * (a**2 - r**2) for r in (0.0, 0.02)]
    return (*rod, *sleeve[1:])


def cooled_sphere(t: float) -> tuple[float, float, float]:
    """The temperature at the centre and, twice, at 8 mm: a sphere of radius 10 mm with Bi = 1, α = 5e-7 m²/s."""
    centre, near_surface = 300.0 + 100.0 * sphere_series(1.0, np.array([0.0, 0.8]), 5e-7 * t / 0.01**2)
    return float(centre), float(near_surface), float(near_surface)


def sources_in_space(x: Array, y: Array, z: Array, t: float) -> Array:
    """Two modes of a plate, one heated ever more, one ever less; differences from 300 K."""
    slow, fast = 2.0 * pi**2, 5.0 * pi**2
    first = (2000.0 - 40000.0 / slow) / slow * (1.0 - exp(-slow * t)) + 40000.0 * t / slow
    second = 8000.0 * (exp(-10.0 * t) - exp(-fast * t)) / (fast - 10.0)
    field = (first * np.sin(pi * x) + second * np.sin(2.0 * pi * x)) * np.sin(pi * y)
    return field + np.zeros_like(z)


def resistive_slab(x: Array, y: Array, z: Array, t: float) -> Array:
    """The steady profile of the slab, and a wave on it that decays; differences from 300 K."""
    wave = 50.0 * np.sin(pi * x) * exp(-(pi**2 - 4.0) * t)
    return np.asarray(resistive_slab_at_the_end(x, y, z, t) + wave)


def resistive_slab_at_the_end(x: Array, y: Array, z: Array, t: float) -> Array:
    """The steady profile alone."""
    return np.asarray(200.0 * (np.cos(2.0 * (x - 0.5)) / np.cos(1.0) - 1.0))


def reacting_slab(x: Array, y: Array, z: Array, t: float) -> Array:
    """Frank-Kamenetskii's profile with a = 1.5; differences from 300 K."""
    return np.asarray(200.0 * np.log(cosh(0.75) / np.cosh(1.5 * (x - 0.5))))


def absorbed_beam(x: Array, y: Array, z: Array, t: float) -> Array:
    """As :func:`moving_beam`, with spots that begin as exp(−z/δ)/δ; differences from 300 K."""
    absorbed, radius, capacity, alpha, depth = 50.0, 0.002, 3e6, 1e-5, 1.2e-3
    nodes, weights = np.polynomial.legendre.leggauss(200)
    roots = 0.5 * sqrt(t) * (nodes + 1.0)
    age = roots**2
    variance = radius**2 / 4.0 + 2.0 * alpha * age
    heat = absorbed / capacity * sqrt(t) * weights * roots / (2.0 * pi * variance)
    spot = 0.008 + 0.08 * (t - age)
    along_x = np.exp(-((x.ravel() - spot[:, None]) ** 2) / (2.0 * variance[:, None]))
    along_y = np.exp(-((y.ravel() - 0.009) ** 2) / (2.0 * variance[:, None]))
    spread, below = np.sqrt(alpha * age)[:, None], 0.016 - z.ravel()
    profile = sum(
        np.exp(spread**2 / depth**2 + sign * below / depth)
        * complementary_error(spread / depth + sign * below / (2.0 * spread))
        for sign in (-1.0, 1.0)
    )
    plane = along_y[:, :, None] * along_x[:, None, :]
    summed = (heat[:, None] * profile / (2.0 * depth)).T @ plane.reshape(len(age), -1)
    return np.asarray(summed.reshape(z.size, y.size, x.size))


def lit_slab(simulation: Simulation) -> Comparison:
    """A straight line from 300 K to the temperature at which 5e4 W/m² balance conduction, convection and radiation."""

    def surplus(T: float) -> float:
        lost = (10.0 / 0.08 + 200.0) * (T - 300.0) + 0.8 * STEFAN_BOLTZMANN * (T**4 - 300.0**4)
        return lost - 5e4

    z = simulation.plan.problem.grid.centres(2)
    known = 300.0 + (root(surplus, 300.0, 1000.0) - 300.0) * z / 0.08
    slab = z < 0.08
    return Comparison(known[slab], simulation.temperature[slab, 0, 0])
