"""Sums over all cells of a body, or over those of its surfaces, as solvers of equations need them."""

from collections.abc import Hashable, Iterable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key", bound=Hashable)


class CellSums(Protocol):
    """Sums over arrays of cells. If several ranks share the cells, all methods are collective."""

    def of_arrays(self, arrays: Iterable[Any]) -> list[float]:
        """Return Σ over all cells of each array of shape (nz, ny, nx)."""

    def of_cells(self, lists: Iterable[tuple[Key, Any, Any]]) -> dict[Key, float]:
        """Return Σ of the values of some cells for each key.

        Args:
            lists: of a key, cells as in :class:`heatsim.physics.surface_exchange.ExchangingCells`, and their values.
                Several lists may have the same key.
        """

    def largest_of_cells(self, lists: Iterable[tuple[Key, Any, Any]]) -> dict[Key, float]:
        """Return max |value| for each key; arguments as for :meth:`of_cells`."""

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

    def of_cells(self, lists: Iterable[tuple[Key, Any, Any]]) -> dict[Key, float]:
        """See :class:`CellSums`."""
        found = dict[Key, float]()
        for key, _, values in lists:
            found[key] = found.get(key, 0.0) + float(values.sum())
        return found

    def largest_of_cells(self, lists: Iterable[tuple[Key, Any, Any]]) -> dict[Key, float]:
        """See :class:`CellSums`."""
        found = dict[Key, float]()
        for key, _, values in lists:
            found[key] = max(found.get(key, 0.0), float(abs(values).max()))
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
