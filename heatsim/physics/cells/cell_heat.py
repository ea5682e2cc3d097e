"""Heat in single cells: of densities that vary in space or with temperature, of beams in the body, and across gaps.

A cell has a list of entries. Entry e adds a heat of

    weight_e · amount(t)                  W/m³    a density that varies in space
    weight_e · amount(t) · table(T)       W/m³    a density that depends on the temperature T of the cell
    weight_e · flux(u, v, t)              W/m³    light of a beam that the cell absorbs; the weight is in 1/m
    weight_e · q(T, T of a neighbour, t)  W/m³    heat across a gap (conditions/gap_laws.py); the weight is in 1/m

Amounts are averaged over each step, as all sources are. The weights contain every factor that depends only on the cell,
so kernels look up and add. Tables have equal steps of temperature and are linear in between. All parts of the program
use the table, not the expression.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.scenario import TimeFunction

Array = NDArray[np.float64]

# The range in K of an expression in T if the scenario has no temperature_range.
WIDEST = (1.0, 10_000.0)


@dataclass(frozen=True, eq=False)
class DensityTable:
    """A power density as a function of the temperature of the cell, constant beyond its ends.

    Attributes:
        low: temperature in K of the first node.
        per_kelvin: steps per kelvin.
        values: at the nodes, in W/m³; shape (steps + 1,); an array of NumPy or CuPy.
        extremes: the lowest and the highest value that the nodes miss.
    """

    low: float
    per_kelvin: float
    values: Array
    extremes: tuple[float, float] = (inf, -inf)

    def on(self, xp: Any) -> "DensityTable":
        """The table with its values in an array of ``xp``."""
        return replace(self, values=xp.asarray(self.values))

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.values) - 1

    @property
    def high(self) -> float:
        """Temperature in K of the last node."""
        return self.low + self.steps / self.per_kelvin

    @cached_property
    def slopes(self) -> tuple[float, float]:
        """The smallest and the largest dq/dT in W/(m³ K), 0 among them."""
        rises = np.diff(self.values)
        return min(float(rises.min()), 0.0) * self.per_kelvin, max(float(rises.max()), 0.0) * self.per_kelvin

    def at(self, T: Any, xp: Any = np) -> tuple[Any, Any]:
        """Value in W/m³ and slope in W/(m³ K) at temperatures in K, arrays of the library ``xp``."""
        nodes = xp.asarray(self.values)
        steps = (T - self.low) * self.per_kelvin
        # A temperature that is not a number gives a value that is none: the method that asked notices it.
        place = xp.nan_to_num(xp.clip(xp.floor(steps), 0, self.steps - 1)).astype(np.int64)
        rise = nodes[place + 1] - nodes[place]
        inside = (steps >= 0.0) & (steps <= self.steps)
        value = nodes[place] + rise * xp.clip(steps - place, 0.0, 1.0)
        return value, xp.where(inside, rise * self.per_kelvin, 0.0)


@dataclass(frozen=True)
class Amount:
    """A function of time by which entries are multiplied.

    Attributes:
        source: the number of the source in the scenario. Its scale and its interval multiply the function.
        function: in W/m³; without a unit if a table or the weights have the unit.
        table: the number of the table that the amount multiplies; −1 for none.
    """

    source: int
    function: TimeFunction
    table: int = -1


GAPS = 2**20  # the first number of entries across gaps, also in composite/materials.cuh


@dataclass(frozen=True, eq=False)
class HeatedCells:
    """The cells that sources heat individually, or that lie at gaps.

    Attributes:
        cells: by their index in the flattened grid, ascending, shape (n,). Void is not among them.
        first: the first entry of each cell, and the number of entries; shape (n + 1,).
        numbers: for each entry the number of its amount, or (number of amounts) + (number of its beam), or GAPS + (the
            row of its gap law among the conditions); shape (entries,). Those of beams ascend in a cell, behind amounts.
        weights: see the docstring of this module, shape (entries,).
        spots: for each entry of a beam the cell (u, v) of the face that the light enters; for each entry of a gap its
            side of the cell (0 to 5) and its link; shape (entries, 2), or (0, 2) if there are neither.
        heat_capacity: ρ·cp of each cell in J/(m³ K), shape (n,).
        amounts: factors in time.
        tables: densities that depend on temperature.
        volume: of a cell of the mean widths in m³.
        volume_factors: the volume of each cell over this one, shape (n,); by default 1.
        lit: a byte for each cell with weighted surfaces. Bit n is set if beams fall on its side n (x−, x+, …, z+).
            These beams come through the face of the box on the same side. Shape (weighted cells,), or empty.
        across: of each link across a gap the resistances of the lower and of the upper half cell in m² K/W, at the
            reference temperature, and the ratio of the smooth to the voxel area; shape (links, 3).
    """

    cells: NDArray[np.int64]
    first: NDArray[np.int64]
    numbers: NDArray[np.int32]
    weights: Array
    spots: NDArray[np.int32]
    heat_capacity: Array
    amounts: tuple[Amount, ...] = ()
    tables: tuple[DensityTable, ...] = ()
    volume: float = 0.0
    volume_factors: Array = field(default_factory=lambda: np.ones(1))
    lit: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    across: Array = field(default_factory=lambda: np.zeros((0, 3)))
    owners: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "owners", np.repeat(np.arange(len(self.cells)), np.diff(self.first)))
        object.__setattr__(self, "volume_factors", np.broadcast_to(self.volume_factors, len(self.cells)))

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def nbytes(self) -> int:
        """Bytes on a device, without the heat of each cell of the grid."""
        per_entry = self.numbers.itemsize + self.weights.itemsize + 2 * 4 * bool(len(self.spots))
        return len(self) * 16 + len(self.numbers) * per_entry + self.across.nbytes

    @cached_property
    def has_beams(self) -> bool:
        """Whether any entry is light of a beam."""
        return bool(((self.numbers >= len(self.amounts)) & (self.numbers < GAPS)).any())

    def volumes(self, xp: Any = np) -> Any:
        """The volume of each cell in m³, shape (n,), as an array of a library; made once for each."""
        kept = self.__dict__.setdefault("_kept_volumes", {})
        if xp not in kept:
            kept[xp] = xp.asarray(self.volume_factors * self.volume)
        return kept[xp]

    def cells_of(self, amount: int) -> NDArray[np.int64]:
        """The cells that an amount heats, ascending."""
        return np.asarray(self.cells[self.owners[self.numbers == amount]])

    def entries_of_beam(self, beam: int) -> NDArray[np.intp]:
        """The entries that are light of a beam, ascending."""
        order, ends = self._by_number
        number = len(self.amounts) + beam
        return order[ends[number] : ends[number + 1]] if number + 1 < len(ends) else order[:0]

    @cached_property
    def _by_number(self) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The entries of sources by their numbers, and where each number begins."""
        some = np.flatnonzero(self.numbers < GAPS)
        counts = np.bincount(self.numbers[some])
        return some[np.argsort(self.numbers[some], kind="stable")], np.concatenate(([0], np.cumsum(counts)))

    def per_kelvin(self) -> Array:
        """Temperature change in K of each entry's cell for one unit of amount · time; shape (entries,)."""
        return self.weights / self.heat_capacity[self.owners]

    @cached_property
    def magnitudes(self) -> Array:
        """Σ |weight|·volume of each amount, in W per unit of it; 0 for amounts with a table; shape (amounts,)."""
        count, fixed = len(self.amounts), [amount.table < 0 for amount in self.amounts]
        some = self.numbers < count
        weights = np.abs(self.weights[some]) * self.volume_factors[self.owners[some]]
        found = np.bincount(self.numbers[some], weights, count) * self.volume
        return np.asarray(found * np.array(fixed))

    def densities(self, amounts: Array, light: Sequence[tuple[Any, Any]], T: Any, xp: Any = np) -> tuple[Any, Any]:
        """Heat in W/m³ of each cell and its slope in W/(m³ K), shape (n,); arrays of the library ``xp``.

        Args:
            amounts: the amounts at one moment, shape (amounts,).
            light: of each beam that shines the places of the cells that absorb it, and the heat in W/m³ there.
            T: temperatures of the cells in K; not read if no density depends on T.
            xp: NumPy, or CuPy.
        """
        heat, slope = xp.zeros(len(self)), xp.zeros(len(self))
        known = xp.asarray(amounts)
        for group in self._groups(xp):
            factor = group.weights * known[group.amounts]
            if group.table is not None:
                value, rate = group.table.at(T[group.cells], xp)
                heat[group.cells] += factor * value
                slope[group.cells] += factor * rate
                continue
            heat[group.cells] += factor
        for cells, density in light:
            heat[cells] += density
        return heat, slope

    def _groups(self, xp: Any) -> "list[_EntryGroup]":
        """All entries with amounts, in groups with arrays of a library; made once for each.

        A cell is in a group at most once.
        """
        kept = self.__dict__.setdefault("_kept_groups", {})
        if xp not in kept:
            kept[xp] = list(self._found_groups(xp))
        found: list[_EntryGroup] = kept[xp]
        return found

    def _found_groups(self, xp: Any) -> "Iterator[_EntryGroup]":
        counts = np.bincount(self.owners[self.numbers < len(self.amounts)], minlength=len(self))
        tables = np.array([amount.table for amount in self.amounts], dtype=np.int64)
        for place in range(int(counts.max(initial=0))):  # a cell's first entry, its second one, ...
            cells = np.flatnonzero(counts > place)
            entries = self.first[cells] + place
            amounts = self.numbers[entries]
            for table in np.unique(tables[amounts]):
                some = tables[amounts] == table
                chosen = entries[some]
                yield _EntryGroup(
                    cells=slice(None) if len(chosen) == len(self) else xp.asarray(cells[some]),
                    amounts=xp.asarray(amounts[some]),
                    weights=xp.asarray(self.weights[chosen]),
                    table=None if table < 0 else self.tables[table].on(xp),
                )


@dataclass(frozen=True, eq=False)
class _EntryGroup:
    """Entries of :class:`HeatedCells` with one table, or with none, on a device.

    Attributes:
        cells: the places of their cells among the heated cells.
        weights: as in :class:`HeatedCells`.
        amounts: the index of each entry's amount.
        table: their table; None if the heat does not depend on the temperature.
    """

    cells: Any
    amounts: Any
    weights: Any
    table: DensityTable | None


NO_HEATED_CELLS = HeatedCells(
    cells=np.zeros(0, np.int64),
    first=np.zeros(1, np.int64),
    numbers=np.zeros(0, np.int32),
    weights=np.zeros(0),
    spots=np.zeros((0, 2), np.int32),
    heat_capacity=np.zeros(0),
)


def extreme_densities(heated: HeatedCells, amounts: Array) -> tuple[float, float]:
    """The lowest and highest heat in W/m³ that each amount can give to a cell, without beams; shape (amounts,)."""
    low, high = np.zeros(len(heated)), np.zeros(len(heated))
    for number, amount in enumerate(heated.amounts):
        some = heated.numbers == number
        ends = [1.0, 1.0] if amount.table < 0 else _ends(heated.tables[amount.table])
        products = np.multiply.outer(heated.weights[some] * amounts[number], ends)
        np.add.at(low, heated.owners[some], np.minimum(products.min(axis=1), 0.0))
        np.add.at(high, heated.owners[some], np.maximum(products.max(axis=1), 0.0))
    return float(low.min(initial=0.0)), float(high.max(initial=0.0))


def _ends(table: DensityTable) -> list[float]:
    return [min(float(table.values.min()), table.extremes[0]), max(float(table.values.max()), table.extremes[1])]
