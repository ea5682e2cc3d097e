"""The heat that cells exchange through a surface, on a GPU: one launch instead of one for each operation on arrays."""

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels import compiled
from heatsim.physics.surface_balance import NEWTON_STEPS, TOLERANCES
from heatsim.physics.surface_exchange import SteadySurface

SOURCE = "surface_heat.cu"
FOLDER = Path(__file__).parent
THREADS = 128  # of a block
MACROS: dict[str, str | int] = {"STEPS": NEWTON_STEPS, "TOLERANCE": repr(TOLERANCES["float64"])}

# struct Numbers and struct Surface of surface_heat.cu.
_NUMBERS = np.dtype([("each", np.uint64), ("all", np.float64)])
_OF_CELLS = ("area", "half", "weight", "beam", "film", "ambient", "flux", "emission", "surroundings")
SURFACE = np.dtype(
    [
        *((name, _NUMBERS) for name in (*_OF_CELLS, "conducting", "below_held")),
        *((name, np.uint64) for name in ("nodes", "fluxes", "first")),
        *((name, np.int64) for name in ("first_of_all", "segments")),
        *((name, np.float64) for name in ("free", "reference")),
    ]
)
_NUMBER = (int, float, np.generic)
_OPAQUE = np.dtype((np.void, SURFACE.itemsize))  # CuPy takes 25 us to describe the fields of a struct


def exchange(surface: SteadySurface, T: Any, conducting: Any = 1.0, below_held: Any = None) -> tuple[Any, Any]:
    """As :meth:`SteadySurface.exchange`, with the same bits, for arrays of a GPU."""
    of_cells, heat, slope = _Struct(surface.xp, T.shape), surface.xp.empty(T.shape), surface.xp.empty(T.shape)
    if not heat.size:
        return heat, slope
    (film, ambient, flux, emission, surroundings, free), law = surface.condition, surface.law
    if law is not None:
        film, ambient, flux, emission, surroundings = 0.0, law.ambient, 0.0, 0.0, 0.0
        of_cells.put_law(law.nodes, law.fluxes, law.first)
    found = surface.area, surface.half, surface.weight, surface.beam, film, ambient, flux, emission, surroundings
    for name, numbers in zip(_OF_CELLS, found, strict=True):
        of_cells.put(name, numbers)
    of_cells.put("conducting", conducting)
    of_cells.put("below_held", 0.0 if below_held is None else below_held)
    of_cells.struct["free"], of_cells.struct["reference"] = free, surface.reference
    arguments = of_cells.struct.view(_OPAQUE), of_cells.each(T), np.uint32(heat.size), heat, slope
    compiled.function(SOURCE, "exchange", MACROS, FOLDER)((ceil(heat.size / THREADS),), (THREADS,), arguments)
    return heat, slope


class _Struct:
    """Fills struct Surface.

    Args:
        xp: CuPy.
        shape: of arrays of the cells.

    Attributes:
        struct: struct Surface as a 0-d array.
    """

    def __init__(self, xp: Any, shape: tuple[int, ...]) -> None:
        self.struct: NDArray[Any] = np.zeros((), SURFACE)
        self._xp, self._shape = xp, shape
        self._kept = list[Any]()  # the struct has the addresses of these arrays only

    def each(self, numbers: Any) -> Any:
        """One float64 for each cell, contiguous."""
        numbers = self._xp.ascontiguousarray(self._xp.broadcast_to(numbers, self._shape))
        assert numbers.dtype == np.float64
        self._kept.append(numbers)
        return numbers

    def put(self, name: str, numbers: Any) -> None:
        """Set a member to an array with a number for each cell, or to one number for all."""
        if isinstance(numbers, _NUMBER):
            self.struct[name]["all"] = numbers
        else:
            self.struct[name]["each"] = self.each(numbers).data.ptr

    def put_law(self, nodes: Any, fluxes: Any, first: Any) -> None:
        """Set the tables of a law; arguments as in :class:`heatsim.physics.surface_laws.LawAtTime`."""
        xp = self._xp
        nodes, fluxes = (xp.ascontiguousarray(xp.asarray(table)) for table in (nodes, fluxes))
        self._kept += nodes, fluxes
        self.struct["nodes"], self.struct["fluxes"] = nodes.data.ptr, fluxes.data.ptr
        self.struct["segments"] = len(nodes) - 1
        if isinstance(first, _NUMBER):
            self.struct["first_of_all"] = first
        else:
            self._kept.append(xp.ascontiguousarray(first))
            self.struct["first"] = self._kept[-1].data.ptr
