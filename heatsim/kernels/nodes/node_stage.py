"""Explicit stages of nodes on a GPU: see node_stage.cu."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.device import Device
from heatsim.kernels import compiled
from heatsim.kernels.composite.arrays import address
from heatsim.physics.nodes.network import COLUMNS

Array = NDArray[np.float64]

SOURCE = "node_stage.cu"
FOLDER = Path(__file__).parent
THREADS = 256  # of a block

MOST_STAGES = 1024  # that are queued between two calls of NodeKernels.begin
_LANES = 32
_FLOATS = ("links", "flows", "response", "capacities", "heats", "slopes")
_PLACES = ("first", "order", "places", "of_place")
_ROOM = ("lanes", "heat", "missing", "state", "change", "done", "stages")

# struct Network of node_stage.cu.
NETWORK = np.dtype(
    [
        *((name, np.uint64) for name in (*_FLOATS, *_PLACES, *_ROOM)),
        *(("reference", np.float64), ("nodes", np.int32), ("entered", np.int32), ("ahead", np.int32)),
    ],
    align=True,
)


class NodeKernels:
    """The kernels, and their arrays on the device.

    Args:
        device: a GPU.
        precision: of fields and conditions.
        cells: the cells of all sections by their index in the flattened field.
        weights: the heat that each gives to the node of its section in W/K.
        bounds: where each section begins in both, and their end.
        numbers: the members of struct Network that are arrays, by name; matrices have the shape (nodes, nodes).
        reference: the temperature in K that deviations are counted from.

    Attributes:
        ahead: whether the temperatures of a stage are known before it, because all nodes have heat capacities; then
            :meth:`beside` can queue it.
    """

    def __init__(
        self,
        device: Device,
        precision: str,
        cells: NDArray[np.int64],
        weights: Array,
        bounds: NDArray[np.int64],
        numbers: Mapping[str, NDArray[Any]],
        reference: float,
    ) -> None:
        macros: dict[str, str | int] = {"REAL": compiled.REAL[precision], "THREADS": THREADS}
        self._sum, self._move, self._enter = (
            compiled.function(SOURCE, name, macros, FOLDER) for name in ("sum_sections", "move_nodes", "enter_first")
        )
        self.ahead = bool(numbers["capacities"].all())
        self._stream = device.xp.cuda.Stream(non_blocking=True)
        xp, self._device, self._count = device.xp, device, len(bounds) - 1
        self._sections = tuple(map(xp.asarray, (cells, weights, bounds)))
        self._sums, nodes = xp.empty(self._count), len(numbers["capacities"])
        columns = {name: xp.asarray(np.ascontiguousarray(numbers[name].T)) for name in (*_FLOATS, *_PLACES)}
        # Graphs have the addresses of all arrays. What changes stands together, so that one copy brings it.
        self._state, self._stage = COLUMNS * nodes, 2 + 3 * nodes
        self._changing = xp.zeros(1 + 2 * self._state + (MOST_STAGES + 1) * self._stage)
        ends = np.cumsum([0, 1, self._state, self._state, (MOST_STAGES + 1) * self._stage]).tolist()
        parts = (self._changing[first:end] for first, end in pairwise(ends))
        columns |= zip(("done", "state", "change", "stages"), parts, strict=True)
        columns |= {"lanes": xp.zeros(_LANES * nodes), "heat": xp.zeros(nodes), "missing": xp.zeros(nodes)}
        self._kept, self._struct = columns, np.zeros((), NETWORK)
        for name, column in columns.items():
            self._struct[name] = address(column)
        self._struct["reference"], self._struct["nodes"] = reference, nodes
        self._struct["entered"], self._struct["ahead"] = len(numbers["places"]), self.ahead
        self._opaque = self._struct.view(np.dtype((np.void, NETWORK.itemsize)))  # CuPy describes fields slowly

    def begin(self, state: Array, sizes: Array, conditions: Sequence[int], given: Array) -> None:
        """Set the state, and what the stages to come need, at most MOST_STAGES of them.

        Args:
            state: shape (nodes, columns).
            sizes: lengths of the stages in s.
            conditions: addresses of the conditions of each.
            given: in W through links, through flows, power; shape (stages, 3, nodes).
        """
        stages = np.zeros((len(sizes) + 1, self._stage))
        stages[:-1, 0], stages[:-1, 1] = sizes, np.array(conditions, np.uint64).view(np.float64)
        stages[:-1, 2:] = given.reshape(len(given), -1)
        changing = np.concatenate([np.zeros(1), state.T.reshape(-1), np.zeros(self._state), stages.reshape(-1)])
        self._changing[: len(changing)] = self._device.xp.asarray(changing)
        if self.ahead:
            self._enter((1,), (THREADS,), (self._opaque,))

    def sums(self, T: Any) -> Any:
        """Queue the sums of the sections of a field; return the array that will hold them."""
        if self._count:
            self._sum((self._count,), (THREADS,), (T, *self._sections, self._sums))
        return self._sums

    def beside(self, T: Any) -> Callable[[], None]:
        """Queue the next stage beside the sweep that is queued next; what is returned lets the stream wait for it."""
        cuda = self._device.xp.cuda
        stream = cuda.get_current_stream()
        self._stream.wait_event(self._device.recorded())
        with self._stream:
            self.move(self.sums(T))
            moved = self._device.recorded()
        return lambda: stream.wait_event(moved)

    def move(self, sums: Any) -> None:
        """Queue the next stage: enter temperatures into its conditions or into those of the next one, move the nodes.

        Args:
            sums: of the sections of all ranks.
        """
        self._move((1,), (THREADS,), (self._opaque, sums))

    def moved(self) -> tuple[Array, Array]:
        """The state, and its change in the last stage, shape (nodes, columns); waits for the device."""
        found = self._device.to_host(self._changing[1 : 1 + 2 * self._state])
        state, change = found.reshape(2, COLUMNS, -1)
        return state.T, change.T
