"""The cell types of cells that hold layers.

Cells of one material and with the same sources have the same type if layers add the same heat capacity to them and
change their half cells at surfaces alike. If that gives more types than a byte can number, cells whose numbers differ
by less than some part share a type and its mean numbers: the total heat capacity stays exact.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import Grid
from heatsim.physics.cells.cell_types import MAXIMUM_CELL_TYPES, CellType, TooManyCellTypesError
from heatsim.physics.geometry.painted_planes import PaintedPlanes
from heatsim.physics.geometry.painting import count_values
from heatsim.physics.layers.layering import Layering
from heatsim.physics.matter.material_numbers import MaterialNumbers

Array = NDArray[np.float64]

# Parts by which the numbers of cells of one type may differ; the next one is taken if there are too many types.
_PARTS = (1e-9, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
_MOST_NUMBERS = 256  # of types before those without cells are left out


def half(grid: Grid, substance: MaterialNumbers) -> tuple[float, float, float]:
    """d/2k in m² K/W along x, y, z of a cell of the mean widths; infinite for void."""
    if substance.conductivity is None:
        return np.inf, np.inf, np.inf
    x, y, z = (d / (2.0 * k) for d, k in zip(grid.mean_spacing, substance.conductivity, strict=True))
    return x, y, z


def add(
    held: PaintedPlanes,
    grid: Grid,
    palette: Sequence[MaterialNumbers],
    cells: NDArray[np.uint8],
    types: Sequence[CellType],
    layering: Layering,
) -> tuple[NDArray[np.uint8], list[CellType]]:
    """The map of types, and all types, after layers are added; an empty map stands for one type. Collective.

    Args:
        held: the planes of the map.
        grid: the whole grid.
        palette: the materials.
        cells: the map.
        types: the types before layers are added.
        layering: what layers change.

    Raises:
        TooManyCellTypesError: there are more types than a byte can number.
    """
    cells = cells if cells.size else np.zeros(held.grid(grid).shape, dtype=np.uint8)
    flat, found, plane = cells.reshape(-1), list(types), grid.cells[0] * grid.cells[1]
    planes = layering.cells // plane
    own = held.anywhere(planes, lambda some: flat[held.local_cells(layering.cells[some], plane)], np.uint8(0))
    capacity = np.array([palette[one.material].heat_capacity for one in types])[own]
    plain = np.array([half(grid, palette[one.material]) for one in types])[own]
    volumes = grid.volume_factors(layering.cells)
    half_cells = layering.half / _half_factors(grid, layering.cells)  # of cells of the mean widths
    numbers = np.column_stack((1.0 + layering.capacity / capacity, half_cells / plain))
    of_all = held.total(count_values(cells[held.own], 256))
    kinds = int(np.count_nonzero(of_all > np.bincount(own, minlength=256)))
    room = min(MAXIMUM_CELL_TYPES - kinds, _MOST_NUMBERS - len(types))
    for part in _PARTS:
        keys = np.column_stack((own, np.round(np.log(numbers) / np.log1p(part)).astype(np.int64)))
        distinct, kind = _distinct_rows(keys)
        if len(distinct) <= room:
            break
    else:
        raise TooManyCellTypesError(
            f"layers need {len(distinct)} kinds of cells besides {kinds} combinations of materials and sources; at "
            f"most {MAXIMUM_CELL_TYPES} are allowed"
        )
    whole = np.bincount(kind, volumes)
    for number, (base, *_) in enumerate(distinct.tolist()):
        some = kind == number
        x, y, z = (1.0 / (1.0 / half_cells[some]).mean(axis=0)).tolist()
        added = float((layering.capacity[some] * volumes[some]).sum() / whole[number])
        found.append(CellType(types[base].material, types[base].sources, added, (x, y, z)))
    here = held.has(planes)
    flat[held.local_cells(layering.cells[here], plane)] = len(types) + kind[here]
    return cells, found


def _half_factors(grid: Grid, cells: NDArray[np.int64]) -> Array:
    """The factors of half cells along x, y, z, shape (cells, 3)."""
    nx, ny, _ = grid.cells
    planes = cells % nx, cells // nx % ny, cells // (nx * ny)
    return np.stack([axis.half_factors[of, 1] for axis, of in zip(grid.axes, planes, strict=True)], axis=1)


def _distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct rows in ascending order, and the place of each row among them; as ``numpy.unique``, but faster."""
    order = np.lexsort(rows.T[::-1])
    ascending, place = rows[order], np.empty(len(rows), np.int64)
    new = np.ones(len(rows), bool)
    new[1:] = (np.diff(ascending, axis=0) != 0).any(axis=1)
    place[order] = np.cumsum(new) - 1
    return ascending[new], place
