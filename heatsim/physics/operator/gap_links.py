"""Links across gaps: the contacts whose conductance depends on temperatures or on time.

The pair table of links has nothing for them. A pass before each step gives both cells of a link their heat: an entry
among those of single cells (cells/cell_heat.py). Stability, grounding and the scale of equations count such a link with
the largest conductance that the law can have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cells.cell_heat import HeatedCells
from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.gap_laws import GapLinks
from heatsim.physics.conditions.surface_balance import NUMBERS
from heatsim.physics.geometry.cell_faces import between, cells_beside
from heatsim.scenario.values.quantities import LARGEST

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Links:
    """Links, each once: arrays of one length.

    Attributes:
        low, high: the cells below and above, by their index in the flattened grid.
        axes: along which they are neighbours.
        laws: the number of each link's law.
        halves: resistances of both half cells at the reference temperature in m² K/W, shape (links, 2).
        least, most: the same at the largest and at the smallest conductivity.
        gains: area over volume of both cells in 1/m, shape (links, 2).
        ratios: of the smooth to the voxel area.
    """

    low: Indices
    high: Indices
    axes: Indices
    laws: Indices
    halves: Array
    least: Array
    most: Array
    gains: Array
    ratios: Array


def with_gaps(materials: CellTypes, boundary: Boundary, contacts: Mapping[frozenset[int], int]) -> CellTypes:
    """Cell types whose links between some materials follow the laws of a boundary. Collective.

    Args:
        materials: the cell types, in which these links have any resistance above 0.
        boundary: its conditions and laws.
        contacts: the number of the contact between two materials, by their indices in the palette.

    Raises:
        ScenarioError: a law is so steep that surfaces would have several temperatures.
    """
    numbers = {law.number: place for place, law in enumerate(boundary.gaps)}
    kinds = [one.material for one in materials.types]
    laws = np.array([[numbers.get(contacts.get(frozenset((a, b)), -1), -1) for a in kinds] for b in kinds])
    links = _found(materials, boundary.periodic, laws)
    _refuse_steep(boundary, links)
    largest = np.array([law.largest for law in boundary.gaps])
    resistance = np.where(laws >= 0, 1.0 / np.clip(largest, 1.0 / LARGEST, LARGEST)[laws], materials.resistance)
    half = materials.half
    return replace(
        materials,
        resistance=resistance,
        link=1.0 / (half[:, :, None] + resistance + half[:, None, :]),
        gap_of=laws,
        heated=_with_entries(materials, links),
    )


def _found(materials: CellTypes, periodic: tuple[bool, bool, bool], laws: Indices) -> _Links:
    """The links between cell types with a law. Collective."""
    grid, held = materials.grid, materials.held
    plane = grid.cells[0] * grid.cells[1]
    faces = np.zeros(0, dtype=np.int64)
    if materials.cells.size:
        local = between(held.grid(grid), materials.cells & CELL_TYPE, laws >= 0, held.periodic(periodic))
        faces = 3 * held.global_cells(local // 3, plane) + local % 3
        first, last = held.own_planes(grid.shape[0])
        faces = faces[(faces // 3 >= first * plane) & (faces // 3 < last * plane)]
    faces = np.sort(np.concatenate(held.gathered(faces)))
    low, high = cells_beside(grid, faces)
    axes, ratios = faces % 3, np.ones(len(faces))
    for axis in range(3):
        some = axes == axis
        ratios[some] = materials.weighted_surfaces.ratios(low[some], 2 * axis + 1, plane)
    some = np.flatnonzero(ratios > 0.0)
    low, high, axes, ratios = low[some], high[some], axes[some], ratios[some]
    strides = np.array([1, grid.cells[0], plane])[axes]
    places = [cells // strides % np.array(grid.cells)[axes] for cells in (low, high)]
    nx, ny, _ = grid.cells
    types = [materials.types_at(cells % nx, cells // nx % ny, cells // plane) for cells in (low, high)]
    factors, gains = np.empty((len(low), 2)), np.empty((len(low), 2))
    for axis, of in enumerate(grid.axes):
        here = np.flatnonzero(axes == axis)
        for end, side in enumerate((1, 0)):
            factors[here, end] = of.half_factors[places[end][here], side]
            gains[here, end] = of.gain_factors[places[end][here], side] / of.spacing
    halves, least, most = (
        np.stack([table[axes, of] for of in types], axis=1) * factors
        for table in (materials.half, materials.least_half, materials.most_half)
    )
    return _Links(low, high, axes, laws[types[0], types[1]], halves, least, most, gains, ratios)


def _refuse_steep(boundary: Boundary, links: _Links) -> None:
    mistakes = []
    for place, law in enumerate(boundary.gaps):
        some = links.laws == place
        if not some.any():
            continue
        least, most = links.least[some], links.most[some]
        uneven = float(np.maximum(most[:, 0] - least[:, 1], most[:, 1] - least[:, 0]).max())
        whole = float(least.sum(axis=1).min())
        found = law.steepest(whole, uneven, float(links.ratios[some].max()))
        if found is not None:
            slope, low, high = found
            unit = boundary.scenario.output.temperature_unit
            message = (
                f"between {unit.text(low)} and {unit.text(high)} the conductance changes by {slope:.4g} W/(m² K) for "
                "each kelvin, faster than the half cells beside the gap, whose resistances differ by "
                f"{uneven:.3g} m² K/W, can follow; so the surfaces would have several temperatures. Use smaller cells, "
                "or a law that changes over a wider range of temperatures. If surfaces do not reach these "
                "temperatures, limit the law with temperature_range"
            )
            mistakes.append(Mistake(f"contacts.{law.number}", message))
    if mistakes:
        raise ScenarioError(boundary.scenario.path, mistakes)


def _with_entries(materials: CellTypes, links: _Links) -> HeatedCells:
    """The heated cells with an entry for each cell of each link behind those of sources. Collective."""
    heated, grid, count = materials.heated, materials.grid, len(links.low)
    cells = np.concatenate((heated.cells[heated.owners], links.low, links.high))
    order, entries = np.argsort(cells, kind="stable"), len(heated.numbers)
    spots = np.zeros((len(cells), 2), np.int32)
    spots[: len(heated.spots)] = heated.spots
    spots[entries:, 0] = np.concatenate((2 * links.axes + 1, 2 * links.axes))
    spots[entries:, 1] = np.tile(np.arange(count), 2)
    numbers = np.concatenate((heated.numbers, np.tile(heated.first_gap + links.laws, 2))).astype(np.int32)
    own, first = np.unique(cells[order], return_index=True)
    nx, ny, _ = grid.cells
    types = materials.types_at(own % nx, own // nx % ny, own // (nx * ny))
    return replace(
        heated,
        cells=own,
        first=np.append(first, len(order)).astype(np.int64),
        numbers=numbers[order],
        weights=np.concatenate((heated.weights, links.gains.T.reshape(-1)))[order],
        spots=spots[order],
        heat_capacity=materials.heat_capacity[types],
        volume=grid.mean_volume,
        volume_factors=grid.volume_factors(own),
        across=np.column_stack((links.halves, links.ratios)),
    )


class GapFaces:
    """The links across gaps on a device, as equations see them.

    Args:
        xp: NumPy, or CuPy.
        materials: the cell types, of a rank's slab if several ranks share the body.
        first_law: the row of the first law among those of the conditions.
    """

    def __init__(self, xp: Any, materials: CellTypes, first_law: int) -> None:
        self._xp, self._first, heated, grid = xp, first_law, materials.heated, materials.grid
        entries = np.flatnonzero((heated.numbers >= heated.first_gap) & (heated.weights != 0.0))
        sides, links = heated.spots[entries].T
        cells, upper = heated.cells[heated.owners[entries]], sides % 2 == 0
        other = neighbours(cells, sides, grid.cells)
        here, before = np.where(upper, cells, other), np.where(upper, other, cells)
        faces, some = np.unique(3 * here + sides // 2, return_index=True)
        self._axes = []
        for axis in range(3):
            chosen = some[faces % 3 == axis]
            laws = heated.numbers[entries[chosen]] - heated.first_gap
            numbers = here[chosen], before[chosen], laws, heated.across[links[chosen]].T
            self._axes.append(tuple(xp.asarray(np.ascontiguousarray(each)) for each in numbers))
        self._rows: Any = None

    def move_to(self, rows: Array) -> None:
        """Take the rows of the conditions at one time, shape (rows, 6)."""
        self._rows = self._xp.asarray(rows.reshape(-1))

    def of(
        self, reference: float, T: Any, axis: int, conducting: Any, bend: Any
    ) -> tuple[Any, Any, Any, Any, Any] | None:
        """What passes the links along an axis.

        Args:
            reference: the temperature in K that deviations are counted from.
            T: deviations in K of all cells, flattened.
            axis: 0, 1 or 2.
            conducting: k(T)/k(T_ref) of all cells.
            bend: k'(T)/k(T) in 1/K.

        Returns:
            The cells above the links and those below; the flux from below in W/m²; how it grows with the temperature
            below, and falls with that above, in W/(m² K). None if there are no links.
        """
        here, before, laws, (low, high, ratio) = self._axes[axis]
        if not len(here):
            return None
        first = NUMBERS * (self._first + laws)
        links = GapLinks(self._rows, first, reference, low / conducting[before], high / conducting[here], ratio)
        bends = bend[before], bend[here]
        return here, before, *links.flux_and_slopes(T[before], T[here], bends, self._xp)


def neighbours(cells: Indices, sides: NDArray[Any], shape: Sequence[int]) -> Indices:
    """The neighbours of cells towards x−, x+, …, z+ (0 … 5); beyond an end of an axis the cell at the other end."""
    strides = np.array([1, shape[0], shape[0] * shape[1]])[sides // 2]
    counts = np.array(shape)[sides // 2]
    place = cells // strides % counts
    return np.asarray(cells + ((place + 2 * (sides % 2) - 1) % counts - place) * strides)
