"""The heat that cells exchange through a surface, on a GPU: one launch instead of one for each operation on arrays."""

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import compiled
from heatsim.physics.conditions.surface_balance import AMBIENT, NUMBERS
from heatsim.physics.operator.surface_exchange import BalanceSurface

SOURCE = "surface_heat.cu"
FOLDER = Path(__file__).parent
THREADS = 128  # of a block

# struct Numbers and struct Surface of surface_heat.cu.
_NUMBERS = np.dtype([("each", np.uint64), ("all", np.float64)])
SURFACE = np.dtype(
    [
        *((name, _NUMBERS) for name in ("area", "half", "weight", "beam")),
        ("condition", _NUMBERS, NUMBERS),
        *((name, _NUMBERS) for name in ("conducting", "below_held")),
        *((name, np.uint64) for name in ("nodes", "fluxes", "first")),
        *((name, np.int64) for name in ("first_of_all", "segments")),
        ("reference", np.float64),
    ]
)
_NUMBER = (int, float, np.generic)
_OPAQUE = np.dtype((np.void, SURFACE.itemsize))  # CuPy takes 25 us to describe the fields of a struct


def exchange(surface: BalanceSurface, T: Any, conducting: Any = 1.0, below_held: Any = None) -> tuple[Any, Any]:
    """Heat into each cell in W and its slope in W/K, of the shape of ``T``: as :meth:`BalanceSurface.exchange`.

    Arrays are float64 and on the GPU. The heat has the same bits as there. The slope of radiating surfaces may be
    rounded differently.
    """
    xp, struct = surface.xp, _Struct(surface.xp, T.shape)
    heat, slope = xp.empty(T.shape), xp.empty(T.shape)
    if not heat.size:
        return heat, slope
    for name in ("area", "half", "weight", "beam"):
        struct.put(name, getattr(surface, name))
    if surface.law is None:
        for place, numbers in enumerate(surface.condition):
            struct.put("condition", numbers, place)
    else:
        struct.put("condition", surface.law.ambient, AMBIENT)
        struct.put_law(surface.law.nodes, surface.law.fluxes, surface.law.first)
    struct.put("conducting", conducting)
    if below_held is not None:
        struct.put_each("below_held", below_held)
    struct.values["reference"] = surface.reference
    arguments = struct.values.view(_OPAQUE), struct.each(T), np.uint32(heat.size), heat, slope
    compiled.function(SOURCE, "exchange", {}, FOLDER)((ceil(heat.size / THREADS),), (THREADS,), arguments)
    return heat, slope


class _Struct:
    """Fills struct Surface, and keeps the arrays whose addresses it has.

    Args:
        xp: CuPy.
        shape: of arrays of the cells.

    Attributes:
        values: struct Surface as a 0-d array.
    """

    def __init__(self, xp: Any, shape: tuple[int, ...]) -> None:
        self.values: NDArray[Any] = np.zeros((), SURFACE)
        self._xp, self._shape, self._kept = xp, shape, list[Any]()

    def each(self, numbers: Any) -> Any:
        """One number for each cell, in a contiguous array, which is kept."""
        return self._keep(self._xp.broadcast_to(numbers, self._shape), np.float64)

    def put(self, name: str, numbers: Any, place: int | tuple[()] = ()) -> None:
        """Set a member, or one place of it, to an array with a number for each cell, or to one number for all."""
        if isinstance(numbers, _NUMBER):
            self.values[name]["all"][place] = numbers
        else:
            self.put_each(name, numbers, place)

    def put_each(self, name: str, numbers: Any, place: int | tuple[()] = ()) -> None:
        """Set a member, or one place of it, to an array with a number for each cell."""
        self.values[name]["each"][place] = self.each(numbers).data.ptr

    def put_law(self, nodes: Any, fluxes: Any, first: Any) -> None:
        """Set the tables of a law; arguments as in :class:`heatsim.physics.conditions.surface_laws.LawAtTime`."""
        for name, table in (("nodes", nodes), ("fluxes", fluxes)):
            self.values[name] = self._keep(self._xp.asarray(table), np.float64).data.ptr
        self.values["segments"] = len(nodes) - 1
        if isinstance(first, _NUMBER):
            self.values["first_of_all"] = first
        else:
            self.values["first"] = self._keep(first, np.int64).data.ptr

    def _keep(self, values: Any, dtype: Any) -> Any:
        contiguous = self._xp.ascontiguousarray(values)
        assert contiguous.dtype == dtype
        self._kept.append(contiguous)
        return contiguous
