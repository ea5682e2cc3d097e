"""Regions painted on the grid: the material and the owner of every cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES, Grid
from heatsim.physics.shapes import Block, Mask, Solid
from heatsim.scenario import Beam, Region, Scenario, Source, face_axes, load_labels
from heatsim.scenario.materials import VOID
from heatsim.scenario.messages import show
from heatsim.scenario.regions import SHAPES, Shaped

Bytes = NDArray[np.uint8]

_CELLS_PER_SLAB = 2**22
BETWEEN = 1e-6  # cells: a point this near to a border lies in both cells
ARRAYS = 2  # arrays of one byte per cell in ``Parts``


@dataclass(frozen=True)
class Parts:
    """The material and owner of every cell.

    Attributes:
        material: index into the scenario's ``palette``, shape (nz, ny, nx).
        owner: number of the region that painted the cell last, from 1; 0 if no region did.
        region_cells: number of cells that each region owns, in the order of the scenario.
        material_cells: number of cells of each material of the palette.
    """

    material: Bytes
    owner: Bytes
    region_cells: tuple[int, ...]
    material_cells: tuple[int, ...]


def are_painted(scenario: Scenario) -> bool:
    """Whether cells must be painted: for regions, void, or sources with a shape. Then :class:`Parts` needs memory."""
    return bool(scenario.regions) or scenario.uses_void or any(source.shape is not None for source in scenario.sources)


def paint(scenario: Scenario) -> Parts:
    """Paint all regions in their order.

    Raises:
        ScenarioError: carries all mistakes: a region lies outside the domain, paints no cell or has an open surface;
            all cells are void; a source, or the region of a probe, has no cell that conducts; a point of a probe or the
            path of a beam lies in void.
    """
    grid = scenario.grid
    names = [name for name, _ in scenario.palette]
    material = np.full(grid.shape, names.index(scenario.domain.material or names[0]), dtype=np.uint8)
    owner = np.zeros(grid.shape, dtype=np.uint8)
    problems: list[Mistake] = []
    for index, region in enumerate(scenario.regions):
        key = f"regions.{index}"
        if region.labels is not None:
            problems += _paint_labels(region, index, names, material, owner)
            continue
        try:
            for block, mask in _blocks(region, grid):
                material[block][mask] = names.index(region.materials[0])
                owner[block][mask] = index + 1
        except ValueError as error:
            problems.append(Mistake(f"{key}.{_place(region)}", str(error)))
    parts = Parts(
        material,
        owner,
        region_cells=_counts(owner, len(scenario.regions) + 1)[1:],
        material_cells=_counts(material, len(names)),
    )
    if not problems:
        problems = [*_idle_sources(scenario, parts), *_empty_probes(scenario, parts)]
    if not problems and scenario.uses_void and parts.material_cells[-1] == grid.cell_count:
        problems = [_nothing_conducts(scenario)]
    if problems:
        raise ScenarioError(scenario.path, problems)
    return parts


def _nothing_conducts(scenario: Scenario) -> Mistake:
    """The mistake of a scenario whose cells are all void."""
    void = [region.name for region in scenario.regions if VOID in region.materials]
    key = "regions" if void else "domain.material"
    found = f"by {', '.join(map(show, void))}" if void else 'because the domain is "void" and no region is painted'
    remedy = "make the void smaller, or paint a region of a material after it"
    return Mistake(key, f"all {scenario.grid.cell_count:,} cells are void, {found}: nothing conducts; {remedy}")


def source_mask(source: Source, scenario: Scenario, parts: Parts) -> Mask:
    """The conducting cells that a source heats, shape (nz, ny, nx)."""
    mask = np.zeros(parts.material.shape, dtype=bool)
    for block, heated in _source_blocks(source, scenario, parts):
        mask[block] = heated
    return mask


def region_mask(name: str, scenario: Scenario, parts: Parts) -> Mask:
    """The conducting cells that a region owns, shape (nz, ny, nx)."""
    return np.asarray((parts.owner == region_number(name, scenario)) & _conducts(parts.material, scenario))


def region_number(name: str, scenario: Scenario) -> int:
    """The number of a region in ``Parts.owner``."""
    return 1 + [region.name for region in scenario.regions].index(name)


def _blocks(shaped: Shaped, grid: Grid) -> Iterator[tuple[Block, Mask]]:
    """The blocks of a shape, or of the whole grid if there is no shape.

    Raises:
        ValueError: no cell lies in the shape; the message is for the user.
    """
    if shaped.shape is None:
        yield from _whole(grid)
        return
    solid, count = Solid.of(shaped.shape), 0
    for block, mask in solid.blocks(grid):
        count += int(np.count_nonzero(mask))
        yield block, mask
    if not count:
        ends = [origin + length for origin, length in zip(grid.origin, grid.size, strict=True)]
        apart = any(
            high < start or low > end
            for low, high, start, end in zip(solid.low, solid.high, grid.origin, ends, strict=True)
        )
        where = f"{show(shaped.name)} reaches from {_point(solid.low)} to {_point(solid.high)} m"
        if apart:
            domain = f"{_point(grid.origin)} to {_point(ends)} m"
            raise ValueError(f"{where} and lies outside the domain, which reaches from {domain}")
        raise ValueError(
            f"{where} and contains no centre of a cell; make it larger than the cells of {_point(grid.spacing)} m, "
            "or use more cells"
        )


def _whole(grid: Grid) -> Iterator[tuple[Block, Mask]]:
    nz, ny, nx = grid.shape
    planes = max(1, _CELLS_PER_SLAB // (nx * ny))
    for first in range(0, nz, planes):
        last = min(first + planes, nz)
        yield (slice(first, last), slice(0, ny), slice(0, nx)), np.ones((last - first, ny, nx), dtype=bool)


def _paint_labels(region: Region, index: int, names: list[str], material: Bytes, owner: Bytes) -> list[Mistake]:
    assert region.labels is not None
    try:
        found = load_labels(region.labels.file.path)
    except ValueError as error:  # Changed since the scenario was read.
        return [Mistake(f"regions.{index}.labels.file", f"{region.labels.file.path.name} {error}")]
    planes = max(1, _CELLS_PER_SLAB // found[0].size)
    for first in range(0, len(found), planes):
        block = found[first : first + planes]
        for label, name in region.labels.materials.items():
            mask = block == int(label)
            material[first : first + planes][mask] = names.index(name)
            owner[first : first + planes][mask] = index + 1
    return []


def _source_blocks(source: Source, scenario: Scenario, parts: Parts) -> Iterator[tuple[Block, Mask]]:
    number = region_number(source.region, scenario) if source.region is not None else None
    for block, mask in _blocks(source, scenario.grid):
        heated = mask & _conducts(parts.material[block], scenario)
        yield block, heated if number is None else heated & (parts.owner[block] == number)


def _idle_sources(scenario: Scenario, parts: Parts) -> Iterator[Mistake]:
    for index, source in enumerate(scenario.sources):
        key = f"sources.{index}"
        if source.beam is not None:
            spots = _spots(source.beam, scenario) if scenario.uses_void else ()
            missed = next((spot for spot in spots if _in_void(spot, scenario, parts)), None)
            if missed is not None:
                message = f"{show(source.name)} falls on void at {_point(missed)}, where a beam heats nothing"
                remedy = "keep the path on cells that conduct at this face of the box"
                yield Mistake(f"{key}.beam.path", f"{message}; {remedy}")
            continue
        try:
            heats = any(heated.any() for _, heated in _source_blocks(source, scenario, parts))
        except ValueError as error:
            yield Mistake(f"{key}.{_place(source)}", str(error))
            continue
        if not heats:
            key += ".region" if source.region is not None else "" if source.shape is None else f".{_place(source)}"
            yield Mistake(key, f"{show(source.name)} has no cell that conducts: {_reason(source.region)}")


def _empty_probes(scenario: Scenario, parts: Parts) -> Iterator[Mistake]:
    for index, probe in enumerate(scenario.probes):
        if probe.region is not None and not region_mask(probe.region, scenario, parts).any():
            message = f"got {show(probe.region)}, which has no cell that conducts: {_reason(probe.region)}"
            yield Mistake(f"probes.{index}.region", message)
        lost = next((point for point in probe.points if _in_void(point, scenario, parts)), None)
        if lost is not None:
            message = f"got {_point(lost)}, which lies in void, where there is no temperature; move it into a part"
            yield Mistake(f"probes.{index}.{'point' if probe.line is None else 'line'}", message)


def _spots(beam: Beam, scenario: Scenario) -> Iterator[tuple[float, float, float]]:
    """Points of a beam's path on its face, with distances of at most a cell."""
    grid, face = scenario.grid, FACES.index(beam.face)
    across, along = face // 2, face_axes(beam.face)
    place = [0.0, 0.0, 0.0]
    place[across] = grid.origin[across] + grid.size[across] * (face % 2)
    path = beam.path if len(beam.path) > 1 else (beam.path[0], beam.path[0])
    for start, end in pairwise(path):
        parts = max(1, *(ceil(abs(end[i] - start[i]) / grid.spacing[axis]) for i, axis in enumerate(along)))
        for part in range(parts + 1):
            for i, axis in enumerate(along):
                place[axis] = start[i] + (end[i] - start[i]) * part / parts
            yield place[0], place[1], place[2]


def _in_void(point: Sequence[float], scenario: Scenario, parts: Parts) -> bool:
    """Whether all cells at a point are void; on a border there are several."""
    if not scenario.uses_void:
        return False
    grid, around = scenario.grid, []
    for at, origin, spacing, n in zip(point, grid.origin, grid.spacing, grid.cells, strict=True):
        place = (at - origin) / spacing
        border = round(place)
        cells = (border - 1, border) if abs(place - border) < BETWEEN else (floor(place),)
        around.append({min(max(cell, 0), n - 1) for cell in cells})
    void = len(scenario.palette) - 1
    return all(parts.material[z, y, x] == void for x, y, z in product(*around))


def _reason(region: str | None) -> str:
    if region is None:
        return "all its cells are void"
    return "it is void, or later regions cover all of it"


def _conducts(material: Bytes, scenario: Scenario) -> Mask:
    if not scenario.uses_void:
        return np.ones(material.shape, dtype=bool)
    return np.asarray(material != len(scenario.palette) - 1)


def _counts(array: Bytes, numbers: int) -> tuple[int, ...]:
    planes = max(1, _CELLS_PER_SLAB // array[0].size)
    counts = np.zeros(numbers, dtype=np.int64)
    for first in range(0, len(array), planes):
        counts += np.bincount(array[first : first + planes].ravel(), minlength=numbers)
    return tuple(counts.tolist())


def _place(shaped: Shaped) -> str:
    """The key of the scenario that locates a region or source."""
    return next((key for key in SHAPES if getattr(shaped, key) is not None), "everywhere")


def _point(coordinates: Sequence[float]) -> str:
    return f"({', '.join(f'{coordinate:.6g}' for coordinate in coordinates)})"
