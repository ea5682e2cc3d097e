"""Regions painted on the grid: the material and the owner of every cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Problem, ScenarioError
from heatsim.grid import Grid
from heatsim.physics.shapes import Block, Mask, Solid
from heatsim.scenario import Region, Scenario, Source, load_labels
from heatsim.scenario.problems import show
from heatsim.scenario.regions import SHAPES, Shaped

Bytes = NDArray[np.uint8]

_CELLS_PER_SLAB = 2**22
ARRAYS = 2  # of one byte a cell, that ``Parts`` holds


@dataclass(frozen=True)
class Parts:
    """What every cell is.

    Attributes:
        material: index into the scenario's ``palette``, shape (nz, ny, nx).
        owner: 0 for the domain itself, i for the i-th region (counted from 1) that painted the cell last.
        region_cells: how many cells each region owns in the end, in the order of the scenario.
        material_cells: how many cells each material of the palette has.
    """

    material: Bytes
    owner: Bytes
    region_cells: tuple[int, ...]
    material_cells: tuple[int, ...]


def paint(scenario: Scenario) -> Parts:
    """Paint all regions in their order.

    Raises:
        ScenarioError: a region lies outside the domain, paints no cell or has an open surface; or a source, or a region
            that a probe looks at, has no cell that conducts. Carries all of these.
    """
    grid = scenario.grid
    names = [name for name, _ in scenario.palette]
    material = np.full(grid.shape, names.index(scenario.domain.material or names[0]), dtype=np.uint8)
    owner = np.zeros(grid.shape, dtype=np.uint8)
    problems: list[Problem] = []
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
            problems.append(Problem(f"{key}.{_place(region)}", str(error)))
    parts = Parts(
        material,
        owner,
        region_cells=_counts(owner, len(scenario.regions) + 1)[1:],
        material_cells=_counts(material, len(names)),
    )
    if not problems:
        problems = [*_idle_sources(scenario, parts), *_empty_probes(scenario, parts)]
    if problems:
        raise ScenarioError(scenario.path, problems)
    return parts


def source_mask(source: Source, scenario: Scenario, parts: Parts) -> Mask:
    """The cells in which a source sets heat free, shape (nz, ny, nx): those of its place that conduct."""
    mask = np.zeros(parts.material.shape, dtype=bool)
    for block, heated in _source_blocks(source, scenario, parts):
        mask[block] = heated
    return mask


def region_mask(name: str, scenario: Scenario, parts: Parts) -> Mask:
    """The cells that a region owns and that conduct, shape (nz, ny, nx)."""
    return np.asarray((parts.owner == _number(name, scenario)) & _conducts(parts.material, scenario))


def _blocks(shaped: Shaped, grid: Grid) -> Iterator[tuple[Block, Mask]]:
    """The blocks of a shape, or of everything.

    Raises:
        ValueError: no cell belongs to it, or it has no cells that could; the message is the user's.
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
            f"{where} and holds no centre of a cell; make it larger than the cells of {_point(grid.spacing)} m, "
            "or use more cells"
        )


def _whole(grid: Grid) -> Iterator[tuple[Block, Mask]]:
    nz, ny, nx = grid.shape
    planes = max(1, _CELLS_PER_SLAB // (nx * ny))
    for first in range(0, nz, planes):
        last = min(first + planes, nz)
        yield (slice(first, last), slice(0, ny), slice(0, nx)), np.ones((last - first, ny, nx), dtype=bool)


def _paint_labels(region: Region, index: int, names: list[str], material: Bytes, owner: Bytes) -> list[Problem]:
    assert region.labels is not None
    try:
        found = load_labels(region.labels.file.path)
    except ValueError as error:  # Changed since the scenario was read.
        return [Problem(f"regions.{index}.labels.file", f"{region.labels.file.path.name} {error}")]
    planes = max(1, _CELLS_PER_SLAB // found[0].size)
    for first in range(0, len(found), planes):
        block = found[first : first + planes]
        for label, name in region.labels.materials.items():
            mask = block == int(label)
            material[first : first + planes][mask] = names.index(name)
            owner[first : first + planes][mask] = index + 1
    return []


def _source_blocks(source: Source, scenario: Scenario, parts: Parts) -> Iterator[tuple[Block, Mask]]:
    number = _number(source.region, scenario) if source.region is not None else None
    for block, mask in _blocks(source, scenario.grid):
        heated = mask & _conducts(parts.material[block], scenario)
        yield block, heated if number is None else heated & (parts.owner[block] == number)


def _idle_sources(scenario: Scenario, parts: Parts) -> Iterator[Problem]:
    for index, source in enumerate(scenario.sources):
        if source.beam is not None:
            continue
        key = f"sources.{index}"
        try:
            heats = any(heated.any() for _, heated in _source_blocks(source, scenario, parts))
        except ValueError as error:
            yield Problem(f"{key}.{_place(source)}", str(error))
            continue
        if not heats:
            key += ".region" if source.region is not None else "" if source.shape is None else f".{_place(source)}"
            yield Problem(key, f"{show(source.name)} has no cell that conducts: {_reason(source.region)}")


def _empty_probes(scenario: Scenario, parts: Parts) -> Iterator[Problem]:
    for index, probe in enumerate(scenario.probes):
        if probe.region is not None and not region_mask(probe.region, scenario, parts).any():
            message = f"got {show(probe.region)}, which has no cell that conducts: {_reason(probe.region)}"
            yield Problem(f"probes.{index}.region", message)


def _reason(region: str | None) -> str:
    if region is None:
        return "all that is there is void"
    return "it is void, or later regions are painted over all of it"


def _conducts(material: Bytes, scenario: Scenario) -> Mask:
    if not scenario.uses_void:
        return np.ones(material.shape, dtype=bool)
    return np.asarray(material != len(scenario.palette) - 1)


def _number(name: str, scenario: Scenario) -> int:
    return 1 + [region.name for region in scenario.regions].index(name)


def _counts(array: Bytes, kinds: int) -> tuple[int, ...]:
    planes = max(1, _CELLS_PER_SLAB // array[0].size)
    counts = np.zeros(kinds, dtype=np.int64)
    for first in range(0, len(array), planes):
        counts += np.bincount(array[first : first + planes].ravel(), minlength=kinds)
    return tuple(counts.tolist())


def _place(shaped: Shaped) -> str:
    """The key that says where a region or source is."""
    return next((key for key in SHAPES if getattr(shaped, key) is not None), "everywhere")


def _point(coordinates: Sequence[float]) -> str:
    return f"({', '.join(f'{coordinate:.6g}' for coordinate in coordinates)})"
