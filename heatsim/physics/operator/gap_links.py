"""Links across gaps: the contacts whose conductance depends on temperatures or on time.

The pair table of links has nothing for them. A pass before each step gives both cells of a link their heat: an entry
among those of single cells (cells/cell_heat.py). Stability, grounding and the scale of equations count such a link with
the largest conductance that the law can have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.cells.cell_heat import GAPS, HeatedCells
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.cells.type_links import TypeLinks, links_between
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.gap_laws import GapLinks
from heatsim.physics.conditions.surface_balance import NUMBERS
from heatsim.scenario.values.quantities import LARGEST

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


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
    links, (nx, ny, _) = links_between(materials, boundary.periodic, laws >= 0), materials.grid.cells
    ratios = np.ones(len(links.axes))
    for axis in range(3):
        some = links.axes == axis
        ratios[some] = materials.weighted_surfaces.ratios(links.cells[0, some], 2 * axis + 1, nx * ny)
    links, ratios = links.part(ratios > 0.0), ratios[ratios > 0.0]
    _refuse_steep(materials, boundary, laws[*links.types], links, ratios)
    largest = np.array([law.largest for law in boundary.gaps])
    resistance = np.where(laws >= 0, 1.0 / np.clip(largest, 1.0 / LARGEST, LARGEST)[laws], materials.resistance)
    half, rows = materials.half, np.where(laws >= 0, boundary.first_gap + laws, -1)
    return replace(
        materials,
        resistance=resistance,
        link=1.0 / (half[:, :, None] + resistance + half[:, None, :]),
        gap_of=rows,
        heated=_with_entries(materials, rows[*links.types], links, ratios),
    )


def _refuse_steep(materials: CellTypes, boundary: Boundary, laws: Indices, links: TypeLinks, ratios: Array) -> None:
    mistakes = []
    least, most = (of[links.axes, links.types] * links.halves for of in (materials.least_half, materials.most_half))
    for place, law in enumerate(boundary.gaps):
        some = laws == place
        if not some.any():
            continue
        uneven = float(np.maximum(most[0] - least[1], most[1] - least[0])[some].max())
        found = law.steepest(float(least.sum(axis=0)[some].min()), uneven, float(ratios[some].max()))
        if found is not None:
            unit = boundary.scenario.output.temperature_unit
            message = (
                f"between {unit.interval_text(found.low, found.high)} the conductance changes by "
                f"{found.slope:.4g} W/(m² K) for each kelvin, faster than the half cells beside the gap, whose "
                f"resistances differ by {uneven:.3g} m² K/W, can follow; so the surfaces would have several "
                "temperatures. Use smaller cells, or a law that changes over a wider range of temperatures. If "
                "surfaces do not reach these temperatures, limit the law with temperature_range"
            )
            mistakes.append(Mistake(f"contacts.{law.number}", message))
    if mistakes:
        raise ScenarioError(boundary.scenario.path, mistakes)


def _with_entries(materials: CellTypes, rows: Indices, links: TypeLinks, ratios: Array) -> HeatedCells:
    """The heated cells with an entry for each cell of each link behind those of sources. Collective."""
    heated, grid, count = materials.heated, materials.grid, len(ratios)
    cells = np.concatenate((heated.cells[heated.owners], *links.cells))
    order, entries = np.argsort(cells, kind="stable"), len(heated.numbers)
    spots = np.zeros((len(cells), 2), np.int32)
    spots[: len(heated.spots)] = heated.spots
    spots[entries:, 0] = np.concatenate((2 * links.axes + 1, 2 * links.axes))
    spots[entries:, 1] = np.tile(np.arange(count), 2)
    numbers = np.concatenate((heated.numbers, np.tile(GAPS + rows, 2))).astype(np.int32)
    own, first = np.unique(cells[order], return_index=True)
    nx, ny, _ = grid.cells
    types = materials.types_at(own % nx, own // nx % ny, own // (nx * ny))
    halves = materials.half[links.axes, links.types] * links.halves
    return replace(
        heated,
        cells=own,
        first=np.append(first, len(order)).astype(np.int64),
        numbers=numbers[order],
        weights=np.concatenate((heated.weights, *links.gains))[order],
        spots=spots[order],
        heat_capacity=materials.heat_capacity[types],
        volume=grid.mean_volume,
        volume_factors=grid.volume_factors(own),
        across=np.column_stack((*halves, ratios)),
    )


class GapFaces:
    """The links across gaps on a device, as equations see them.

    Args:
        xp: NumPy, or CuPy.
        materials: the cell types, of a rank's slab if several ranks share the body.
    """

    def __init__(self, xp: Any, materials: CellTypes) -> None:
        self._xp, heated, grid = xp, materials.heated, materials.grid
        entries = np.flatnonzero((heated.numbers >= GAPS) & (heated.weights != 0.0))
        sides, links = heated.spots[entries].T
        cells, upper = heated.cells[heated.owners[entries]], sides % 2 == 0
        other = neighbours(cells, sides, grid.cells)
        here, before = np.where(upper, cells, other), np.where(upper, other, cells)
        faces, some = np.unique(3 * here + sides // 2, return_index=True)
        self._axes = []
        for axis in range(3):
            chosen = some[faces % 3 == axis]
            first = NUMBERS * (heated.numbers[entries[chosen]].astype(np.int64) - GAPS)
            numbers = here[chosen], before[chosen], first, heated.across[links[chosen]].T
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
        here, before, first, (low, high, ratio) = self._axes[axis]
        if not len(here):
            return None
        links = GapLinks(self._rows, first, reference, low / conducting[before], high / conducting[here], ratio)
        bends = bend[before], bend[here]
        return here, before, *links.flux_and_slopes(T[before], T[here], bends, self._xp)


def neighbours(cells: Indices, sides: NDArray[Any], shape: Sequence[int]) -> Indices:
    """The neighbours of cells towards x−, x+, …, z+ (0 … 5); beyond an end of an axis the cell at the other end."""
    strides = np.array([1, shape[0], shape[0] * shape[1]])[sides // 2]
    counts = np.array(shape)[sides // 2]
    place = cells // strides % counts
    return np.asarray(cells + ((place + 2 * (sides % 2) - 1) % counts - place) * strides)
