"""The data of a run that observers read at a due time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.statistics import FieldReduction, Partials
from heatsim.solver.field.extreme_cells import Extreme
from heatsim.solver.field.field import Field
from heatsim.solver.field.field_statistics import FieldStatistics
from heatsim.solver.field.points import PlacedValues
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.ledger.sum_table import OwnSums


class Observables(NamedTuple):
    """The data of a run that observers read.

    Attributes:
        field: the field.
        ledger: the energy ledger.
        statistics: the statistics of the field.
    """

    field: Field
    ledger: Ledger
    statistics: FieldStatistics


class OwnRow(NamedTuple):
    """The numbers of a run at a due time, from a rank's own planes.

    Attributes:
        of_field: STATISTICS of its sections.
        of_ledger: the sums of the ledger; None if it records nothing.
        at_points: for each of the field's points the places and temperatures in K.
    """

    of_field: Partials
    of_ledger: OwnSums | None
    at_points: list[PlacedValues]


class FoundRow(NamedTuple):
    """The numbers of a run at a due time that is over, on one rank.

    Attributes:
        reduction: of the field.
        of_ledger: the sums of the ledger; None if it records nothing.
        at_points: for each of the field's points the values of its cells in the buffer.
        cells: those of extremes.
    """

    reduction: FieldReduction
    of_ledger: OwnSums | None
    at_points: Sequence[NDArray[Any]]
    cells: Mapping[Extreme, int]

    def show(self, run: Observables) -> None:
        """Let observers of a run read these numbers instead of those of its present field."""
        take_points(run.field, iter(self.at_points))
        run.field.store(self.reduction, [temperatures_at_points(run.field)])
        if self.of_ledger is not None:
            run.ledger.store([self.of_ledger])
        run.statistics.extreme_cells.store(self.cells)


def take_points(field: Field, values: Iterator[NDArray[Any]]) -> None:
    """Store the values at all points of a field, taken from ``values`` in order; without points on this rank, none."""
    nothing = np.empty(0, field.precision)
    for points in field.all_points:
        points.take(next(values, nothing))


def temperatures_at_points(field: Field) -> list[PlacedValues]:
    """The places and temperatures of all points in own planes."""
    return [(points.held, points.own_temperatures()) for points in field.all_points]
