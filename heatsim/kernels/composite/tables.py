"""The laws of materials that change with temperature, as kernels look them up: the tables of composite/varying.cuh."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.cell_types import Medium
from heatsim.physics.enthalpy import Law

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Laws:
    """Tables in a precision; empty arrays where nothing changes.

    Attributes:
        places: steps in a kelvin of content, the first and the last of the steps, of each kind; shape (kinds, 3).
        bases: of step 0 of each kind, in entries; the same for kinds of one material and no others, by which kernels
            tell materials apart. Shape (kinds,), int64.
        potentials: at the lower end of each step and across it, shape (entries, 2).
        states: temperature and conductivity likewise: value, rise, value, rise; shape (entries, 4).
        resistances: of contacts in m² K/W, shape (kinds, kinds).
    """

    places: Array
    bases: NDArray[np.int64]
    potentials: Array
    states: Array
    resistances: Array

    @property
    def vary(self) -> bool:
        """Whether there are any."""
        return bool(self.bases.size)


def make_laws(medium: Medium, precision: str) -> Laws:
    """The tables of a body's kinds of cells."""
    if not medium.varies:
        nothing = np.zeros((0, 0), dtype=precision)
        return Laws(nothing, np.zeros(0, dtype=np.int64), nothing, nothing, nothing)
    laws = medium.laws
    starts = _starts(list(dict.fromkeys(laws)))
    return Laws(
        places=np.array([(1.0 / law.step, law.first, law.first + law.steps - 1) for law in laws], dtype=precision),
        bases=np.array([starts[law] - law.first for law in laws], dtype=np.int64),
        potentials=_entries(starts, "potentials").astype(precision),
        states=np.hstack([_entries(starts, name) for name in ("temperatures", "conductivities")]).astype(precision),
        resistances=medium.resistance.astype(precision),
    )


def _starts(laws: Sequence[Law]) -> dict[Law, int]:
    """Where the table of each law starts, so that no two have the same base; entries may be left out for that."""
    starts: dict[Law, int] = {}
    end, bases = 0, set[int]()
    for law in laws:
        while end - law.first in bases:
            end += 1
        bases.add(end - law.first)
        starts[law] = end
        end += law.steps
    return starts


def _entries(starts: Mapping[Law, int], name: str) -> NDArray[np.float64]:
    """For each step of each table its value at the lower end and its rise across it, shape (entries, 2)."""
    entries = np.zeros((max(start + law.steps for law, start in starts.items()), 2))
    for law, start in starts.items():
        values = getattr(law, name)
        entries[start : start + law.steps] = np.stack((values[:-1], np.diff(values)), axis=1)
    return entries
