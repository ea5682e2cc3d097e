"""The heat that cells exchange through a surface, and its slope, at one moment.

From the balance of :mod:`heatsim.physics.surface_balance`, with the temperature T of the cell behind the surface:

    exchange = area·K·(T_s − T),     slope = −∂exchange/∂T = area·K·(h + h_r)/(free·K + h + h_r),     h_r = 4·ε·σ·T_s³

Where a surface is larger than the smooth one that it stands for, K is weighted as in
:mod:`heatsim.physics.link_weights`. All arrays are the device's.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heatsim.physics.surface_balance import surface_rise
from heatsim.physics.surface_laws import rise_and_slope


@dataclass(frozen=True, eq=False)
class ExchangingCells:
    """Cells that exchange heat with something; no cell occurs twice.

    Attributes:
        xp: NumPy, or CuPy.
        cells: by their index in the flattened grid, shape (n,), or the slices of the grid that are a whole face of the
            box; arrays and numbers of the cells have the shape that these give.
    """

    xp: Any
    cells: Any

    def of(self, values: Any) -> Any:
        """The values of an array of shape (nz, ny, nx) at the cells; a view if they are a whole face."""
        return values[self.cells] if isinstance(self.cells, tuple) else values.reshape(-1)[self.cells]

    @property
    def label(self) -> tuple[str, int]:
        """What these cells have in common with those of other ranks: a name, and the number of a condition."""
        return "cells", 0

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
        values = self.of(to)
        values += numbers
        # For a whole face, values are a view of the array.
        if not isinstance(self.cells, tuple):
            self.put(values, to)


@dataclass(frozen=True, eq=False)
class SteadySurface(ExchangingCells):
    """The cells behind a surface that have one condition.

    Attributes:
        name: the face's, or "void".
        number: of the condition.
        grounded: whether the heat depends on the temperature of the cell.
        radiates: whether the condition radiates.
        face: number of the face; 6 + side (x−, x+, … z+) towards void.
        places: their indices in the flattened map of the face, or among the exposed cells; shape (n,). None with
            slices.
        parts: for mixed cells the index among the parts of the boundary, −1 for others; shape (n,). None if
            there are no mixed cells.
        cell_types: their types, shape (n,), or one number where all are equal.
        area: in m², shape (n,), or one number where all are equal.
        half: conductance K of the half cells in W/(m² K) at the reference temperature; shape (n,), or a number.
        weight: area of the cells' faces over the smooth area that they stand for; shape (n,), or a number.
        condition: its six numbers, on the host.
        beam: flux of beams in W/m² of smooth surface; shape (n,), or a number.
        reference: the temperature in K that deviations are counted from.
        law: ambient temperature, nodes and heat fluxes of a condition that depends on the temperature of the surface;
            None for others.
        lit: for surfaces towards void that beams fall on the face of the box through which these come, and the place of
            each cell on it, −1 for cells on which none falls; else None.
    """

    name: str
    number: int
    grounded: bool
    radiates: bool
    face: int
    places: Any
    parts: Any
    cell_types: Any
    area: Any
    half: Any
    weight: Any
    condition: tuple[float, ...]
    beam: Any
    reference: float
    law: tuple[Any, Any, Any] | None = None
    lit: tuple[int, Any] | None = None

    @property
    def label(self) -> tuple[str, int]:
        """The name and the number of the condition."""
        return self.name, self.number

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
            ambient, *table = self.law
            nodes, fluxes = map(self.xp.asarray, table)
            return rise_and_slope(ambient, nodes, fluxes, half, T, self.beam, self.xp)[0]
        return surface_rise(self.condition, half, self.reference, T, self.beam, self.xp)

    def exchange(self, T: Any, conducting: Any = 1.0, below_held: Any = None) -> tuple[Any, Any]:
        """Heat into each cell in W, that of beams included, and its slope in W/K.

        Args:
            T: of the cells, as deviations in K.
            conducting: their conductivities over those at the reference temperature.
            below_held: by how much their potentials are below that at the ambient temperature, in K; it drives the
                heat through a held face where the conductivity varies.
        """
        xp, (film, _, _, emission, _, free) = self.xp, self.condition
        half = self.half * conducting
        if self.law is not None:
            ambient, *table = self.law
            nodes, fluxes = map(xp.asarray, table)
            rise, film = rise_and_slope(ambient, nodes, fluxes, half * self.weight, T, self.beam, xp)
            return self.area * half * rise, self.area * half * film / (half * self.weight + film)
        rise = self.rise(T, conducting)
        if self.radiates:
            film = film + 4.0 * emission * xp.maximum(T + rise + self.reference, 0.0) ** 3
        passing = half * rise
        if below_held is not None and free == 0.0:
            passing = self.half * below_held
        return self.area * passing, self.area * half * film / (free * half * self.weight + film)
