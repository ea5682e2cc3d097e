"""Paint the regions of a scenario on planes of its grid."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake
from heatsim.grid import Grid
from heatsim.physics.geometry.painted_planes import PaintedPlanes
from heatsim.physics.geometry.shapes import Block, Mask, Solid
from heatsim.scenario import Region, Scenario, load_labels
from heatsim.scenario.tables.regions import SHAPES, Shaped

Bytes = NDArray[np.uint8]

_CELLS_PER_SLAB = 2**22


@dataclass(frozen=True)
class Paint:
    """The painted planes.

    Attributes:
        material: index into the scenario's ``palette`` for each cell of the planes that are held.
        owner: number of the region that painted the cell last, from 1; 0 if no region did.
        found: whether each region has painted a cell of these planes, or has a mistake.
        mistakes: regions that cannot be painted.
    """

    material: Bytes
    owner: Bytes
    found: NDArray[np.bool_]
    mistakes: list[Mistake]


def paint_planes(scenario: Scenario, held: PaintedPlanes) -> Paint:
    """Paint all regions in their order on the planes that are held."""
    grid = scenario.grid
    names = [name for name, _ in scenario.palette]
    shape = held.grid(grid).shape
    material = np.full(shape, names.index(scenario.domain.material or names[0]), dtype=np.uint8)
    owner = np.zeros(shape, dtype=np.uint8)
    mistakes: list[Mistake] = []
    found = np.zeros(len(scenario.regions), dtype=bool)
    for index, region in enumerate(scenario.regions):
        if region.labels is not None:
            mistakes += _paint_labels(region, index, names, material, owner, held)
            found[index] = True
            continue
        try:
            for block, mask in blocks(region, grid, held):
                material[block][mask] = names.index(region.materials[0])
                owner[block][mask] = index + 1
                found[index] |= bool(mask.any())
        except ValueError as error:
            mistakes.append(Mistake(f"regions.{index}.{key_of_place(region)}", str(error)))
            found[index] = True
    return Paint(material, owner, found, mistakes)


def blocks(shaped: Shaped, grid: Grid, held: PaintedPlanes) -> Iterator[tuple[Block, Mask]]:
    """The blocks of a shape in the planes that are held; without a shape, blocks of all these planes."""
    solid = None if shaped.shape is None else Solid.of(shaped.shape)
    for first, last, at in held.runs(grid.shape[0]):
        for (z, y, x), mask in _whole(grid, first, last) if solid is None else solid.blocks(grid, first, last):
            yield (slice(z.start - first + at, z.stop - first + at), y, x), mask


def _whole(grid: Grid, begin: int, end: int) -> Iterator[tuple[Block, Mask]]:
    _, ny, nx = grid.shape
    planes = max(1, _CELLS_PER_SLAB // (nx * ny))
    for first in range(begin, end, planes):
        last = min(first + planes, end)
        yield (slice(first, last), slice(0, ny), slice(0, nx)), np.ones((last - first, ny, nx), dtype=bool)


def _paint_labels(
    region: Region, index: int, names: list[str], material: Bytes, owner: Bytes, held: PaintedPlanes
) -> list[Mistake]:
    assert region.labels is not None
    try:
        found = load_labels(region.labels.file)
    except ValueError as error:  # The file has changed since the scenario was read.
        return [Mistake(f"regions.{index}.labels.file", f"{region.labels.file.path.name} {error}")]
    planes = max(1, _CELLS_PER_SLAB // found[0].size)
    for begin, end, at in held.runs(len(found)):
        for first in range(begin, end, planes):
            block = found[first : min(first + planes, end)]
            here = slice(first - begin + at, first - begin + at + len(block))
            for label, name in region.labels.materials.items():
                mask = block == int(label)
                material[here][mask] = names.index(name)
                owner[here][mask] = index + 1
    return []


def key_of_place(shaped: Shaped) -> str:
    """The key of the scenario that locates a region or source."""
    return next((key for key in SHAPES if getattr(shaped, key) is not None), "everywhere")


def count_values(cells: Bytes, numbers: int) -> NDArray[np.int64]:
    """How often each value from 0 to ``numbers`` − 1 stands in an array over cells, shape (numbers,).

    Works on a few planes at a time: NumPy converts what it counts to 8 bytes per value.
    """
    counts = np.zeros(numbers, dtype=np.int64)
    planes = max(1, _CELLS_PER_SLAB // cells[0].size) if len(cells) else 1
    for first in range(0, len(cells), planes):
        counts += np.bincount(cells[first : first + planes].ravel(), minlength=numbers)
    return counts
