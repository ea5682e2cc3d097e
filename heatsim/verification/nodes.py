"""Exact answers of the cases with rooms, nodes and channels; m, s, K."""

from itertools import pairwise
from math import exp, log, pi

import numpy as np

from heatsim.run.simulation import Simulation
from heatsim.storage.run_tables import WATT, read_energy, read_nodes, read_probes
from heatsim.temperature_units import KELVIN
from heatsim.verification.case import Array, Comparison, table_of

_ICE = 273.15


def node_temperatures(simulation: Simulation) -> Array:
    """The temperatures of nodes and channels in nodes.csv, shape (rows, nodes)."""
    table = table_of(read_nodes, simulation)
    return np.stack(list(table.in_unit(KELVIN.name).values()), axis=1)


def _exponential(matrix: Array, time: float) -> Array:
    """exp(matrix·time) of a matrix with a full set of eigenvectors."""
    values, vectors = np.linalg.eig(matrix)
    return np.asarray(np.real((vectors * np.exp(values * time)) @ np.linalg.inv(vectors)))


def lumped_bodies(simulation: Simulation) -> Comparison:
    """Three bodies of 2 J/K and the air between them; the scenario has the same numbers."""
    first, second = (1e-4 / (1.0 / film + 0.01 / 2.0) for film in (50.0, 100.0))
    front = first / 2.0  # both films in series, because the air between them has no heat capacity
    exchange = np.array(
        [
            [-front, front, 0.0, 0.0],
            [front, -front - second, second, 0.0],
            [0.0, second, -2.0 * second, second],
            [0.0, 0.0, second, -second],
        ]
    )
    capacities = np.array([2.0, 2.0, 1.0, 2.0])
    start = np.array([400.0, 300.0, 330.0, 320.0])
    known = _exponential(exchange / capacities[:, None], simulation.time) @ start
    bodies = simulation.temperature[0, 0, [0, 2, 4]]
    air = node_temperatures(simulation)[-1]
    return Comparison(
        np.array([*known, 0.5 * (known[0] + known[1])]), np.array([*bodies[:2], air[1], bodies[2], air[0]])
    )


def heated_air(simulation: Simulation) -> Comparison:
    """The air beside a wall of 1 m² at 350 K, at the times of nodes.csv; the scenario has the same numbers."""
    table = table_of(read_nodes, simulation)
    wall = 1.0 / (1.0 / 10.0 + 0.005 / 1e4)
    conductance = 4.0 + 6.0 + wall
    end = (200.0 + 4.0 * 280.0 + 6.0 * 290.0 + wall * 350.0) / conductance
    left = np.zeros(1) if simulation.plan.problem.scenario.steady else np.exp(-conductance / 12e3 * table.times)
    return Comparison(end + (300.0 - end) * left, node_temperatures(simulation)[:, 0])


def room_through_a_day(simulation: Simulation) -> Comparison:
    """The cells and the air as a dense system, exactly; the scenario has the same numbers."""
    grid, cells = simulation.plan.problem.grid, simulation.temperature[0, 0]
    x, d = grid.centres(0), 0.8 / grid.cells[0]
    wool, room = x < 0.1, (x > 0.3) & (x < 0.6)
    half = d / 2.0 / np.where(wool, 0.04, 0.8)
    capacities = d * np.where(wool, 60.0 * 1000.0, 1700.0 * 900.0)
    solid = np.flatnonzero(~room)
    air, swing, turned, one = range(len(solid), len(solid) + 4)
    outside = np.zeros(one + 1)
    outside[[one, swing]] = 275.0, -5.0  # with cos ωt
    matrix = np.zeros((one + 1, one + 1))

    def conducts(between: tuple[int, int], conductance: float) -> None:
        for here, there in (between, between[::-1]):
            matrix[here, here] -= conductance
            matrix[here, there] += conductance

    def loses(here: int, conductance: float) -> None:
        matrix[here, here] -= conductance
        matrix[here] += conductance * outside

    for here, (low, high) in enumerate(pairwise(solid)):
        if high == low + 1:
            conducts((here, here + 1), 1.0 / (half[low] + half[high]))
        else:
            conducts((here, air), 1.0 / (half[low] + 1.0 / 8.0))
            conducts((here + 1, air), 1.0 / (half[high] + 1.0 / 8.0))
    loses(0, 1.0 / (half[0] + 1.0 / 25.0))
    loses(air, 1.5 + 0.001 * 1006.0)
    stores = np.array([*capacities[solid], 20e3])
    matrix[: len(stores)] /= stores[:, None]
    omega = 2.0 * pi / 86400.0
    matrix[swing, turned], matrix[turned, swing] = -omega, omega  # cos ωt and sin ωt
    heated = matrix.copy()
    heated[air, one] += 60.0 / 20e3
    hours = [_exponential(of, 3600.0) for of in (matrix, heated)]
    state = np.full(one + 1, 290.0)
    state[[swing, turned, one]] = 1.0, 0.0, 1.0
    known = [290.0]
    for hour in range(24):
        state = hours[6 <= hour < 22] @ state
        known.append(state[air])
    return Comparison(
        np.array([*known, *state[: len(solid)]]), np.array([*node_temperatures(simulation)[:, 0], *cells[solid]])
    )


def outlets_in_series(simulation: Simulation) -> Comparison:
    """There with 0.4 W/K through 0.2 m · 0.1 m of wall, back with 0.32 W/K."""
    there = 350.0 - 50.0 * exp(-1500.0 * 2e-3 * 0.1 / 0.4)
    back = 350.0 - (350.0 - there) * exp(-1000.0 * 2e-3 * 0.1 / 0.32)
    return Comparison(np.array([there, back]), node_temperatures(simulation)[-1])


def uniform_flux(simulation: Simulation) -> Comparison:
    """10 W through 2 · 0.1 m · 1 mm into 0.4 W/K."""
    x, cells = simulation.plan.problem.grid.centres(0), simulation.temperature[0, [0, 3]]
    known = np.broadcast_to(300.0 + 10.0 / 0.4 * x / 0.1 + 10.0 / 2e-4 / 2000.0, cells.shape)
    outlet = node_temperatures(simulation)[-1]
    return Comparison(np.array([325.0, *known.flat]), np.array([*outlet, *cells.flat]))


def counterflow(simulation: Simulation) -> Comparison:
    """Incropera eq. 11.29a with the smaller capacity rate 0.5 W/K of the cold fluid."""
    units = 0.5 * 0.01 / (1.0 / 1000.0 + 0.001 / 0.5 + 1.0 / 500.0) / 0.5
    ratio = 0.5
    left = exp(-units * (1.0 - ratio))
    effectiveness = (1.0 - left) / (1.0 - ratio * left)
    heat = effectiveness * 0.5 * 70.0
    return Comparison(np.array([360.0 - heat / 1.0, 290.0 + heat / 0.5]), node_temperatures(simulation)[-1])


def corner_of_walls(simulation: Simulation) -> Comparison:
    """What the corner adds to the heat that leaves the room, as a part of 20 K."""
    table = table_of(read_energy, simulation)
    added = table.of_parts(WATT)["surface room"][-1] - 2.0 * (0.8 / 0.2) * 1.0 * 20.0
    known = 0.8 * 20.0 * (1.0 - 2.0 / pi * log(2.0))
    return Comparison(np.array([_ICE + 20.0]), np.array([_ICE + 20.0 * added / known]))


def house_corner(simulation: Simulation) -> Comparison:
    """The lowest surface temperatures of both rooms; the heat that leaves them and the couplings, as parts of 20 K."""
    energy, probes = table_of(read_energy, simulation), table_of(read_probes, simulation)
    flows = [energy.of_parts(WATT)[f"surface {room}"][-1] for room in ("below", "above")]
    *coldest, _, _, _ = columns = [float(values[-1]) for values in probes.columns.values()]
    found = np.array([*flows, *columns[2:]]) / [46.09, 13.89, 1.781, 1.624, 2.094]
    return Comparison(
        np.array([_ICE + 11.32, _ICE + 11.11, *[_ICE + 20.0] * 5]), np.array([*coldest, *(_ICE + 20.0 * found)])
    )
