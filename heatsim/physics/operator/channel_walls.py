"""The walls of channels: each plane across the way of the fluid has its own condition towards its own node."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.nodes.channel_nodes import ChannelNodes, PlaneFilm
from heatsim.physics.operator.boundary_faces import BoundaryFaces
from heatsim.scenario import Convection, NodeTemperature
from heatsim.scenario.messages import show

Array = NDArray[np.float64]


def with_channels(
    boundary: Boundary,
    materials: CellTypes,
    parts: Parts,
    sides: Sequence[BoundaryFaces],
    beyond: Sequence[NDArray[np.integer]],
    numbers: Sequence[NDArray[np.integer]],
) -> Boundary:
    """The conditions with those of channels behind them. Collective.

    Args:
        boundary: the conditions.
        materials: the cell types.
        parts: the painted cells.
        sides: the boundary faces towards void.
        beyond: the region beyond each of them.
        numbers: the number of the condition of each of them; those of channels are entered.

    Raises:
        ScenarioError: a channel has no wall, or its wall has another condition too.
    """
    scenario, problems = boundary.scenario, []
    for nodes in () if boundary.network is None else boundary.network.channels:
        region, key = scenario.rooms[nodes.channel.region], f"channels.{nodes.index}.region"
        areas, meets, own = _walls(boundary, materials, nodes, sides, [of == region for of in beyond], numbers)
        if meets:
            message = f"got {show(nodes.channel.region)}, whose surface has a condition of [[surfaces]] too: remove it"
            problems.append(Mistake(key, message))
        elif not areas.any():
            message = f"got {show(nodes.channel.region)}; no cell that conducts borders on it"
            if not parts.region_cells[region - 1]:
                message = f"got {show(nodes.channel.region)}; later regions have painted over all of it"
            problems.append(Mistake(key, message))
        else:
            first = len(boundary.conditions)
            for of_side, (some, of_nodes) in zip(numbers, own, strict=True):
                of_side[some] = first + of_nodes
            boundary = _with_conditions(boundary, nodes, areas, region)
    if problems:
        raise ScenarioError(scenario.path, problems)
    return boundary


def _walls(
    boundary: Boundary,
    materials: CellTypes,
    nodes: ChannelNodes,
    sides: Sequence[BoundaryFaces],
    inside: Sequence[NDArray[np.bool_]],
    numbers: Sequence[NDArray[np.integer]],
) -> tuple[Array, bool, list[tuple[NDArray[np.intp], NDArray[np.int64]]]]:
    """The area of the wall of each node, whether another entry holds on it, and the nodes of its boundary faces."""
    grid, count = materials.grid, len(nodes.planes)
    stride, n = (1, grid.cells[0], grid.cells[0] * grid.cells[1])[nodes.axis], grid.cells[nodes.axis]
    planes, keys, areas = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    own, meets = [], False
    for of, within, of_side in zip(sides, inside, numbers, strict=True):
        some = np.flatnonzero(within)
        faces = of.where(some)
        at = faces.cells // stride % n
        if of.axis == nodes.axis:  # the cell of void beyond the wall
            at = (at + 2 * (of.side % 2) - 1) % n
        of_nodes = nodes.nodes_of(np.clip(at, nodes.planes.start, nodes.planes.stop - 1))
        meets |= bool((of_side[some] != boundary.first_towards_void).any())
        own.append((some, of_nodes))
        planes.append(faces.cells // (grid.cells[0] * grid.cells[1]))
        keys.append(of_nodes)
        areas.append(np.broadcast_to(faces.area * faces.ratios, (len(some),)))
    found = np.zeros(count)
    sums = materials.held.sums(np.concatenate(planes), np.concatenate(keys), np.concatenate(areas))
    for key, area in sums.items():
        found[key] = area
    return found, bool(materials.held.any(np.array([meets]))[0]), own


def _with_conditions(boundary: Boundary, nodes: ChannelNodes, areas: Array, room: int) -> Boundary:
    """The conditions, with one for each node of a channel."""
    scenario, channel, network = boundary.scenario, nodes.channel, boundary.network
    assert network is not None
    known = [end for node in network.nodes for of in node.known_temperatures for end in of.extremes(scenario.time.end)]
    conditions = []
    for number, area in enumerate(areas.tolist()):
        ambient = NodeTemperature(nodes.name(number), None, (min(known), max(known)))
        # A node without a wall has no boundary face; any condition does.
        film = PlaneFilm(channel.coefficient, (area or float(areas.max())) / channel.capacity_rate)
        conditions.append(Convection(coefficient=film, ambient=ambient))
    void = boundary.first_towards_void
    return replace(
        boundary,
        keys=(*boundary.keys, *[f"channels.{nodes.index}"] * len(areas)),
        conditions=(*boundary.conditions, *conditions),
        owners=(*boundary.owners, *[void] * len(areas)),
        rooms=(*boundary.rooms, *[room] * len(areas)),
    )
