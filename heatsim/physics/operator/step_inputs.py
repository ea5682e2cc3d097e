"""What changes from step to step: conditions, heat of sources, beams, length."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.sources.beam_rows import BeamRows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StepInputs:
    """The changing numbers of n steps; arrays of one row hold for all of them.

    Attributes:
        conditions: the six numbers of each condition, shape (n or 1, conditions, 6).
        held: potential in K of each cell type at the ambient of each condition, which is the surface's own where
            its temperature is held; shape (n or 1, conditions, types), (n or 1, conditions, 0) where no material
            changes with temperature.
        heat: what sources give to the cells of each type in K, in a step of the length for which the kernels' tables
            are made; shape (n or 1, types).
        beams: what beams bring in n steps; without those that are off in all of these, or of a longer row of steps.
        amounts: what sources give to single cells, see :meth:`heatsim.physics.sources.sources.Sources.amounts`; in a
            step of that length too, shape (n or 1, amounts + 1).
        factors: length of each step / that for which the tables are made, shape (n or 1,).
    """

    conditions: Array
    held: Array
    heat: Array
    beams: tuple[BeamRows, ...] = ()
    factors: Array = field(default_factory=lambda: np.ones(1))
    amounts: Array = field(default_factory=lambda: np.zeros((1, 1)))

    def __getitem__(self, some: slice) -> "StepInputs":
        """The numbers of some of the steps, of which each has its own factor."""
        conditions, held, heat = (_of(part, some) for part in (self.conditions, self.held, self.heat))
        beams = tuple(beam[some] for beam in self.beams)
        return StepInputs(conditions, held, heat, beams, self.factors[some], _of(self.amounts, some))


def _of(part: NDArray[Any], some: slice) -> NDArray[Any]:
    return part if len(part) == 1 else part[some]
