"""What the bound of the energy balance takes from rows of energy.csv."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Row(NamedTuple):
    """The data of a row of energy.csv that the bound uses.

    Attributes:
        step: number of steps done.
        heat: Σ ρ·cp·V·|T − T_ref| in J.
        lowest, highest: T − T_ref in K.
        turned_over: |stored| + Σ|heat of each boundary face from row to row| in J, since the start.
        roundings: Σ r·H in J over the steps of a method that chooses them itself; not used otherwise.
        of_cells: Σ|heat that sources have given to single cells from row to row| in J, since the start.
    """

    step: int
    heat: float
    lowest: float
    highest: float
    turned_over: float = 0.0
    roundings: float = 0.0
    of_cells: float = 0.0


class BoundRows(NamedTuple):
    """The data of many rows of energy.csv, each an array with one number for each row; see :class:`Row`."""

    steps: NDArray[np.int64]
    heat: Array
    lowest: Array
    highest: Array
    turned_over: Array
    roundings: Array
    of_cells: Array

    def behind(self, row: Row) -> "BoundRows":
        """These rows with one before them."""
        return BoundRows(*(np.concatenate(([before], after)) for before, after in zip(row, self, strict=True)))

    @property
    def last(self) -> Row:
        """The last row."""
        return Row(*(numbers[-1].item() for numbers in self))
