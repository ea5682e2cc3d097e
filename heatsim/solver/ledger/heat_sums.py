"""The sums of an energy ledger in one array on the device, and linear combinations of them.

Each name, such as ``ledger_x_min``, has a part of the array. So a copy, a combination or a reset of all sums is one
operation on the device, whatever faces a body has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

# Parts begin at multiples of this many float64: of 256 bytes, as separate arrays do.
_ALIGNMENT = 32


@dataclass(frozen=True)
class SumLayout:
    """Where the sums lie in the array.

    Attributes:
        shapes: of the sums of each name; none is empty.
    """

    shapes: Mapping[str, tuple[int, ...]]

    @cached_property
    def size(self) -> int:
        """Length of the array: all sums, and gaps of zeros between them."""
        return max((part.stop for part in self._parts.values()), default=0)

    @property
    def nbytes(self) -> int:
        """Bytes of the sums, without the gaps."""
        return sum(8 * prod(shape) for shape in self.shapes.values())

    def views(self, values: Any) -> dict[str, Any]:
        """The sums of each name, as parts of the array ``values``."""
        return {name: values[self._parts[name]].reshape(shape) for name, shape in self.shapes.items()}

    def place(self, name: str) -> slice:
        """Where the sums of a name lie in the array."""
        return self._parts[name]

    @cached_property
    def _parts(self) -> dict[str, slice]:
        parts, first = {}, 0
        for name, shape in self.shapes.items():
            parts[name] = slice(first, first + prod(shape))
            first += -(-prod(shape) // _ALIGNMENT) * _ALIGNMENT
        return parts


@dataclass(frozen=True, eq=False)
class HeatSums:
    """The sums of a ledger at one time, or flows with which they grow.

    Attributes:
        layout: of ``values``.
        values: float64 device array, in K of each cell, or K/s.
        sources: heat of sources in the body in J, or their power in W.
    """

    layout: SumLayout
    values: Any
    sources: float = 0.0

    @property
    def surfaces(self) -> dict[str, Any]:
        """Parts of ``values`` by the names of checkpoints."""
        return self.layout.views(self.values)

    @classmethod
    def zeros(cls, xp: Any, layout: SumLayout, sources: float = 0.0) -> "HeatSums":
        """Sums of zero on a device; ``xp`` is NumPy or CuPy."""
        return cls(layout, xp.zeros(layout.size, dtype=np.float64), sources)

    @classmethod
    def combined(cls, terms: "Iterable[tuple[float, HeatSums]]") -> "HeatSums":
        """Σ weight·sums. Terms with weight 0 are left out; at least one other is needed."""
        used = [(weight, sums) for weight, sums in terms if weight != 0.0]
        values = sum(weight * sums.values for weight, sums in used)
        return cls(used[0][1].layout, values, float(sum(weight * sums.sources for weight, sums in used)))
