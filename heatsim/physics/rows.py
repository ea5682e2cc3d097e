"""What changes from step to step: conditions, heat of sources, beams."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.sources import BeamRows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """The changing numbers of n steps; arrays of one row hold for all of them.

    Attributes:
        conditions: the six numbers of each condition, shape (n or 1, conditions, 6).
        held: potential in K of each kind of cell at the ambient of each condition, which is the surface's own where
            its temperature is held; shape (n or 1, conditions, kinds), (n or 1, conditions, 0) where no material
            changes with temperature.
        heat: what sources give to the cells of each kind in K, shape (n or 1, kinds).
        beams: what beams bring, each of n steps or of one.
    """

    conditions: Array
    held: Array
    heat: Array
    beams: tuple[BeamRows, ...] = ()
