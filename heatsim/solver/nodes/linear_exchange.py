"""What nodes exchange with a body where nothing but temperatures changes.

    heat into node i = Q_i + Σ w·T − S_i·(u_i − T_ref)        T: deviations of the cells at its surfaces from T_ref

The sum has sections: the cells of a node in a group of planes, in their order, at most ``_MOST`` of them. The sections
of all ranks are added up one after the other, so sums have the same bits on any number of ranks.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.nodes.node_stage import NodeKernels
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.nodes.network import Given
from heatsim.solver.field.field import Field
from heatsim.solver.nodes.node_exchange import Column, Exchanged

Array = NDArray[np.float64]

_MOST = 1024  # cells of a section


class LinearExchange:
    """The heat into nodes as a function of temperatures.

    Args:
        boundary: the conditions, with a network.
        field: whose cells they are.
        found: the exchange where cells and nodes are at the reference temperature.
        columns: how it changes with the temperatures of cells.
    """

    def __init__(self, boundary: Boundary, field: Field, found: Exchanged, columns: Sequence[Column]) -> None:
        assert boundary.network is not None
        self._boundary, self._network, self._field, self._found = boundary, boundary.network, field, found
        self._cells, self._weights, self._bounds, own = _sections(field, columns)
        self._nodes: NDArray[np.int64] = np.concatenate(field.team.gathered(own))

    def exchanged(self, T: Any) -> Exchanged:
        """The heat into the nodes, and its slopes. Collective.

        Args:
            T: the buffer of the field.
        """
        (heat, slopes), device = self._found, self._field.device
        if device.backend == "cpu":
            products = self._weights * T.reshape(-1)[self._cells]
            own = np.add.reduceat(products, self._bounds[:-1]) if len(products) else np.zeros(0)
        else:
            own = device.to_host(self._kernels.sums(T))
        sums = np.bincount(self._nodes, self._joined(own), len(heat))
        return Exchanged(heat + sums - slopes @ (self._network.temperatures - self._field.reference), slopes)

    def begin_stages(self, sizes: Array, conditions: Sequence[int], given: Given) -> None:
        """Begin stages on a GPU, at most MOST_STAGES, from the present state of the nodes.

        Args:
            sizes: their lengths in s.
            conditions: the addresses of their conditions.
            given: of the stages.
        """
        self._kernels.begin(self._network.state, sizes, conditions, np.stack(given, axis=1))

    def queue_stage(self, T: Any) -> Callable[[], None] | None:
        """Queue the next stage of the nodes, before or beside that of the field. Collective.

        Args:
            T: the buffer of the field at its start.

        Returns:
            What has to be called when the stage of the field is queued; None for nothing.
        """
        kernels, device = self._kernels, self._field.device
        if self._field.slab.alone:
            if kernels.ahead:
                return kernels.beside(T)
            kernels.move(kernels.sums(T))
        else:
            kernels.move(device.xp.asarray(self._joined(device.to_host(kernels.sums(T)))))
        return None

    def end_stages(self) -> Array:
        """Set the state of the nodes to that behind the queued stages; return its change in the last one."""
        self._network.state[...], change = self._kernels.moved()
        return change

    def _joined(self, own: Array) -> Array:
        return np.concatenate(self._field.team.gathered(own))

    @cached_property
    def _kernels(self) -> NodeKernels:
        network, (heats, slopes) = self._network, self._found
        massless, places = network.massless, self._boundary.places_of_nodes
        response = np.zeros(slopes.shape)
        if massless.any():
            own = np.ix_(massless, massless)
            response[own] = network.solved((network.matrix + slopes)[own], np.eye(int(massless.sum())))
        order = np.argsort(self._nodes, kind="stable")
        numbers = {
            **{"links": network.links, "flows": network.flows, "response": response},
            **{"capacities": network.capacities, "heats": heats, "slopes": slopes.diagonal()},
            **{"first": np.searchsorted(self._nodes[order], np.arange(len(network) + 1)), "order": order},
            **{"places": np.array([*places], np.int64), "of_place": np.array([*places.values()], np.int64)},
        }
        field = self._field
        sections = self._cells, self._weights, self._bounds
        return NodeKernels(field.device, field.precision, *sections, numbers, field.reference)


def _sections(
    field: Field, columns: Iterable[Column]
) -> tuple[NDArray[np.int64], Array, NDArray[np.int64], NDArray[np.int64]]:
    """The own cells at surfaces with nodes in sections: cells, weights, where each section begins, and its node."""
    slab, (_, ny, nx), to_host = field.slab, field.grid.shape, field.device.to_host
    shape, found = (slab.depth, ny, nx), [(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))]
    for column in columns:
        cells = column.surface.cells
        listed = _indices(cells, shape) if isinstance(cells, tuple) else to_host(cells)
        found.append((listed, to_host(column.back).reshape(-1), to_host(column.nodes).reshape(-1)))
    cells, weights, nodes = map(np.concatenate, zip(*found, strict=True))
    planes = cells // (ny * nx) - slab.own.start
    some = np.flatnonzero((nodes >= 0) & (planes >= 0) & (planes < slab.count))
    groups = planes[some] // field.grid.groups.size
    order = np.lexsort((nodes[some], groups))
    some, groups = some[order], groups[order]
    begins = (np.diff(nodes[some], prepend=-1) != 0) | (np.diff(groups, prepend=-1) != 0)
    first = np.flatnonzero(begins)
    begins |= (np.arange(len(some)) - np.repeat(first, np.diff(first, append=len(some)))) % _MOST == 0
    bounds = np.flatnonzero(begins)
    return cells[some], weights[some], np.append(bounds, len(some)), nodes[some][bounds]


def _indices(cells: tuple[slice, ...], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The indices of cells in a flattened array."""
    z, y, x = (np.arange(count, dtype=np.int64)[some] for count, some in zip(shape, cells, strict=True))
    return np.asarray(((z[:, None, None] * shape[1] + y[:, None]) * shape[2] + x).reshape(-1))
