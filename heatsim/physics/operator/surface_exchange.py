"""The heat that cells exchange through a surface, and its slope, at one moment.

From the balance of :mod:`heatsim.physics.conditions.surface_balance`, with the temperature T of the cell behind the
surface:

    exchange = area·K·(T_s − T),     slope = −∂exchange/∂T = area·K·(h + h_r)/(free·K + h + h_r),     h_r = 4·ε·σ·T_s³

Where a surface is larger than the smooth one that it stands for, K is weighted as in
:mod:`heatsim.physics.cells.link_weights`. All arrays are the device's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from heatsim.physics.conditions.surface_balance import FILM, FREE, film_at, surface_rise
from heatsim.physics.conditions.surface_laws import LawAtTime, rise_and_slope

Label = tuple[str, int]


@dataclass(frozen=True, eq=False)
class ExchangingCells:
    """Cells that exchange heat with something.

    Attributes:
        xp: NumPy, or CuPy.
        cells: their indices in the flattened grid, shape (n,); or, for a whole face of the box, slices of the grid.
            Arrays of values of the cells have the shape of the selected cells.
    """

    xp: Any
    cells: Any

    @property
    def occurrences(self) -> tuple[Any, ...] | None:
        """If cells occur several times, the places of their first occurrences, of their second ones, ...; else None."""
        return None

    def of(self, values: Any) -> Any:
        """The values of an array of shape (nz, ny, nx) at the cells; a view if they are a whole face."""
        return values[self.cells] if isinstance(self.cells, tuple) else values.reshape(-1)[self.cells]

    @property
    def labels(self) -> Sequence[Label]:
        """A label of each condition, the same on all ranks: a name and the number of the condition."""
        return (("cells", 0),)

    @property
    def slices(self) -> Sequence[slice]:
        """For each condition the slice of its cells in arrays of values of the cells; the slices follow each other."""
        return (slice(None),)

    @property
    def holding(self) -> Any:
        """Which of the cells fix the level of a steady state if any of them does; one value for all, or shape (n,)."""
        return True

    def put(self, numbers: Any, to: Any) -> None:
        """Set the numbers of the cells in an array of shape (nz, ny, nx)."""
        if isinstance(self.cells, tuple):
            to[self.cells] = numbers
        else:
            to.reshape(-1)[self.cells] = numbers

    def add(self, numbers: Any, to: Any) -> None:
        """Add to the numbers of the cells in an array of shape (nz, ny, nx)."""
        if isinstance(self.cells, tuple):
            to[self.cells] += numbers
        else:
            self.add_at(self.cells, numbers, to.reshape(-1))

    def add_at(self, places: Any, numbers: Any, to: Any) -> None:
        """Add a number for each cell to the entry at its place in an array with one dimension."""
        if self.occurrences is None:
            to[places] += numbers
            return
        numbers = self.xp.broadcast_to(numbers, places.shape)
        for some in self.occurrences:
            to[places[some]] += numbers[some]

    def add_rounded(self, numbers: Any, to: Any) -> Any:
        """As :meth:`add`. Returns the rounding error of each addition: the part of the number that was not added."""
        if isinstance(self.cells, tuple) or self.occurrences is None:
            before = self.of(to).astype("float64")
            self.add(numbers, to)
            return numbers - (self.of(to) - before)
        lost, flat = self.xp.empty(self.cells.shape), to.reshape(-1)
        for some in self.occurrences:
            cells = self.cells[some]
            before = flat[cells].astype("float64")
            flat[cells] += numbers[some]
            lost[some] = numbers[some] - (flat[cells] - before)
        return lost


class SameCondition(NamedTuple):
    """The cells of a surface that have one condition.

    Attributes:
        number: the number of the condition.
        place: the places of the cells in the arrays of the surface.
    """

    number: int
    place: slice


@dataclass(frozen=True, eq=False)
class BalanceSurface(ExchangingCells):
    """Cells behind a surface with conditions of one kind.

    Attributes:
        name: the face's, or "void".
        conditions: the cells of each condition.
        grounded: whether the heat depends on the temperature of the cell.
        radiates: whether the condition radiates.
        cell_types: their types, shape (n,), or one number where all are equal.
        area: in m², shape (n,), or one number where all are equal.
        half: conductance K of the half cells in W/(m² K) at the reference temperature; shape (n,), or a number.
        weight: area of the cells' faces over the smooth area that they stand for; shape (n,), or a number.
        condition: its six numbers, on the host. For several conditions, arrays of shape (n,), but one number `free`.
        beam: flux of beams in W/m² of smooth surface; shape (n,), or a number.
        reference: the temperature in K that deviations are relative to.
        law: for conditions that depend on the temperature of the surface, their tables; else None.
        lit: the face of the box through which beams enter, and for each cell its place on this face, or −1 if no beam
            can fall on it; None if beams reach no cell.
        which: for several conditions, the place of each cell's condition among them; shape (n,).
        occurrences: if cells occur several times, the places of their first occurrences, second ones, ...; else None.
        ledger: the place of each boundary face's sum in the ledger, shape (n,); None if it was not asked for.
    """

    name: str
    conditions: tuple[SameCondition, ...]
    grounded: bool
    radiates: bool
    cell_types: Any
    area: Any
    half: Any
    weight: Any
    condition: tuple[Any, ...]
    beam: Any
    reference: float
    law: LawAtTime | None = None
    lit: tuple[int, Any] | None = None
    which: Any = None
    occurrences: tuple[Any, ...] | None = None
    ledger: Any = None

    @property
    def labels(self) -> Sequence[Label]:
        """See :class:`ExchangingCells`."""
        return [(self.name, condition.number) for condition in self.conditions]

    @property
    def slices(self) -> Sequence[slice]:
        """See :class:`ExchangingCells`."""
        return [condition.place for condition in self.conditions]

    @property
    def brought(self) -> Any:
        """Heat of beams on the surface of each cell in W; shape (n,), or a number."""
        return self.area * self.beam / self.weight

    @property
    def bends(self) -> bool:
        """Whether the heat is no linear function of the temperature of the cell."""
        return self.radiates

    @property
    def alike(self) -> bool:
        """Whether the same numbers hold for all cells."""
        return all(isinstance(number, float) for number in (self.area, self.half, self.weight, self.beam))

    def linear_terms(self) -> tuple[Any, Any]:
        """Heat in W into each cell at T = 0, and its decrease per kelvin of T in W/K, where nothing radiates.

        Returns:
            Python numbers if the cells are alike.
        """
        if not self.alike:
            return self.exchange(np.float64(0.0))
        heat, slope = replace(self, xp=np).exchange(np.float64(0.0))
        return float(heat), float(slope)

    def rise(self, T: Any, conducting: Any = 1.0) -> Any:
        """T_s − T in K: the surface minus the centre of each cell. Arguments as in :meth:`exchange`."""
        half = self.half * conducting * self.weight
        if self.law is not None:
            return rise_and_slope(self.law, half, T, self.beam, self.xp)[0]
        return surface_rise(self.condition, half, self.reference, T, self.beam, self.xp)

    def exchange(self, T: Any, conducting: Any = 1.0, below_held: Any = None) -> tuple[Any, Any]:
        """Heat into each cell in W, that of beams included, and its slope in W/K.

        Args:
            T: of the cells, as deviations in K.
            conducting: their conductivities over those at the reference temperature.
            below_held: by how much their potentials are below that at the ambient temperature, in K; it drives the
                heat through a held face where the conductivity varies.
        """
        xp, film, free = self.xp, self.condition[FILM], self.condition[FREE]
        half = self.half * conducting
        if self.law is not None:
            rise, film = rise_and_slope(self.law, half * self.weight, T, self.beam, xp)
            return self.area * half * rise, self.area * half * film / (half * self.weight + film)
        rise = self.rise(T, conducting)
        if self.radiates:
            film = film_at(self.condition, xp.maximum(T + rise + self.reference, 0.0))
        passing = half * rise
        if below_held is not None and free == 0.0:
            passing = self.half * below_held
        return self.area * passing, self.area * half * film / (free * half * self.weight + film)
