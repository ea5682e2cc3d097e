"""Sums over all cells of a body, or over those of its surfaces, as solvers of equations need them."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heatsim.physics.operator.surface_exchange import ExchangingCells, Label

# A surface, and a value for each of its cells.
Valued = tuple[ExchangingCells, Any]


class CellSums(Protocol):
    """Sums over arrays of cells. If several ranks share the cells, all methods are collective."""

    def of_arrays(self, arrays: Iterable[Any]) -> list[float]:
        """Return Σ over all cells of each array of shape (nz, ny, nx)."""

    def of_surfaces(self, surfaces: Iterable[Valued]) -> float:
        """Return Σ of the values of all surfaces."""

    def of_conditions(self, surfaces: Iterable[Valued]) -> dict[Label, float]:
        """Return Σ of the values for each condition of the surfaces. Several surfaces may have the same condition."""

    def largest_of_conditions(self, surfaces: Iterable[Valued]) -> dict[Label, float]:
        """Return max |value| for each condition of the surfaces; NaN or infinite if a value is."""

    def largest_of_array(self, array: Any) -> float:
        """Return max |value| over all cells of an array of shape (nz, ny, nx)."""

    def listed(self, cells: Any, values: Any) -> NDArray[Any]:
        """Return the values of an ascending list of cells, those of all ranks, on the host."""

    def largest(self, number: float) -> float:
        """Return the largest of the numbers of all ranks."""


class LocalSums:
    """Sums by the array library, over all cells of the arrays: the order depends on the library."""

    def of_arrays(self, arrays: Iterable[Any]) -> list[float]:
        """See :class:`CellSums`."""
        return [float(array.sum()) for array in arrays]

    def of_surfaces(self, surfaces: Iterable[Valued]) -> float:
        """See :class:`CellSums`."""
        return sum(float(values.sum()) for _, values in surfaces)

    def of_conditions(self, surfaces: Iterable[Valued]) -> dict[Label, float]:
        """See :class:`CellSums`."""
        found = dict[Label, float]()
        for label, values in _by_condition(surfaces):
            found[label] = found.get(label, 0.0) + float(values.sum())
        return found

    def largest_of_conditions(self, surfaces: Iterable[Valued]) -> dict[Label, float]:
        """See :class:`CellSums`."""
        found = dict[Label, float]()
        for label, values in _by_condition(surfaces):
            found[label] = float(np.maximum(found.get(label, 0.0), float(abs(values).max())))
        return found

    def largest_of_array(self, array: Any) -> float:
        """See :class:`CellSums`."""
        return float(abs(array).max())

    def listed(self, cells: Any, values: Any) -> NDArray[Any]:
        """See :class:`CellSums`."""
        return np.asarray(values if isinstance(values, np.ndarray) else values.get())

    def largest(self, number: float) -> float:
        """See :class:`CellSums`."""
        return number


def _by_condition(surfaces: Iterable[Valued]) -> Iterator[tuple[Label, Any]]:
    for surface, values in surfaces:
        for label, place in zip(surface.labels, surface.slices, strict=True):
            yield label, values[place]
