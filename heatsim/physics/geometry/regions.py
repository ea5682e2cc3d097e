"""Regions painted on the grid: the material and the owner of every cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import floor

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import Grid
from heatsim.physics.geometry.counted import places, widths
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.geometry.painting import Bytes, blocks, count_values, key_of_place, paint_planes
from heatsim.physics.geometry.shapes import OTHER_UNIT, Block, Mask, Solid, is_of_other_unit
from heatsim.scenario import Scenario, Source
from heatsim.scenario.messages import show
from heatsim.scenario.tables.materials import VOID
from heatsim.scenario.tables.regions import Shaped

BETWEEN = 1e-6  # cells: a point this near to a border lies in both cells
ARRAYS = 2  # arrays of one byte per cell in ``Parts``


@dataclass(frozen=True)
class Parts:
    """The material and owner of every cell.

    Attributes:
        material: index into the scenario's ``palette``, shape (nz, ny, nx), or of the planes that are held.
        owner: number of the region that painted the cell last, from 1; 0 if no region did.
        region_cells: number of cells of the whole grid that each region owns, in the order of the scenario.
        material_cells: number of cells of each material of the palette.
        held: the planes of the arrays.
    """

    material: Bytes
    owner: Bytes
    region_cells: tuple[int, ...]
    material_cells: tuple[int, ...]
    held: PaintedPlanes = EVERYTHING

    def owners_at(self, x: NDArray[np.int64], y: NDArray[np.int64], z: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The owners of cells in any planes. Collective."""
        x, y, z = np.broadcast_arrays(x, y, z)

        def own(mask: Mask) -> Bytes:
            return np.asarray(self.owner[self.held.local(z[mask]), y[mask], x[mask]])

        found = self.held.anywhere(z, own, np.uint8(0))
        return np.asarray(found).reshape(z.shape)

    def owner_at(self, x: int, y: int, z: int) -> int:
        """The owner of a cell. Collective."""
        return int(self.owners_at(np.array([x]), np.array([y]), np.array([z]))[0])


def are_painted(scenario: Scenario) -> bool:
    """Whether cells must be painted: for regions, void, or sources with a shape. Then :class:`Parts` needs memory."""
    return bool(scenario.regions) or scenario.uses_void or any(source.shape is not None for source in scenario.sources)


def paint(scenario: Scenario, held: PaintedPlanes = EVERYTHING) -> Parts:
    """Paint all regions in their order. Collective.

    Args:
        scenario: the scenario.
        held: the planes to paint.

    Raises:
        ScenarioError: carries all mistakes: a region lies outside the domain, paints no cell or has an open surface;
            all cells are void; a source, or the region of a probe, has no cell that conducts; a point of a probe lies
            in void.
    """
    grid, painted = scenario.grid, paint_planes(scenario, held)
    material, owner, problems = painted.material, painted.owner, painted.mistakes
    for index in np.flatnonzero(~held.any(painted.found)).tolist():
        region = scenario.regions[index]
        problems.append(Mistake(f"regions.{index}.{key_of_place(region)}", _no_cell(region, grid)))
    problems.sort(key=lambda mistake: int(mistake.key.split(".")[1]))
    own_owner, own_material = owner[held.own], material[held.own]
    parts = Parts(
        material,
        owner,
        region_cells=tuple(held.total(count_values(own_owner, len(scenario.regions) + 1)).tolist()[1:]),
        material_cells=tuple(held.total(count_values(own_material, len(scenario.palette))).tolist()),
        held=held,
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
    count = scenario.grid.cell_count
    cells = "the only cell is" if count == 1 else f"all {count:,} cells are"
    return Mistake(key, f"{cells} void, {found}: nothing conducts; {remedy}")


def source_mask(source: Source, scenario: Scenario, parts: Parts) -> Mask:
    """The conducting cells that a source heats, in the shape of the parts' arrays."""
    mask = np.zeros(parts.material.shape, dtype=bool)
    for block, _, heated in _source_blocks(source, scenario, parts):
        mask[block] = heated
    return mask


def region_mask(name: str, scenario: Scenario, parts: Parts) -> Mask:
    """The conducting cells that a region owns, in the shape of the parts' arrays."""
    return np.asarray((parts.owner == region_number(name, scenario)) & _conducts(parts.material, scenario))


def region_number(name: str, scenario: Scenario) -> int:
    """The number of a region in ``Parts.owner``."""
    return 1 + [region.name for region in scenario.regions].index(name)


def _no_cell(shaped: Shaped, grid: Grid) -> str:
    """Text that says why no cell lies in a shape."""
    assert shaped.shape is not None, "the whole grid has cells"
    solid = Solid.of(shaped.shape)
    ends = [origin + length for origin, length in zip(grid.origin, grid.size, strict=True)]
    middle = (np.array(solid.low) + np.array(solid.high)) / 2.0
    cells = widths(grid, places(grid, middle[None])).reshape(3).tolist()  # there
    apart = any(
        high < start or low > end
        for low, high, start, end in zip(solid.low, solid.high, grid.origin, ends, strict=True)
    )
    where = f"{show(shaped.name)} reaches from {_point(solid.low)} to {_point(solid.high)} m"
    of_other_unit = shaped.stl is not None and is_of_other_unit(solid.low, solid.high, grid)
    if apart:
        domain = f"{_point(grid.origin)} to {_point(ends)} m"
        advice = f": {OTHER_UNIT}" if of_other_unit else ""
        return f"{where} and lies outside the domain, which reaches from {domain}{advice}"
    if of_other_unit:
        return f"{where} and contains no centre of a cell: {OTHER_UNIT}"
    advice = f"make it larger than the cells of {_point(cells)} m, or use more cells"
    return f"{where} and contains no centre of a cell; {advice}"


def _source_blocks(source: Source, scenario: Scenario, parts: Parts) -> Iterator[tuple[Block, Mask, Mask]]:
    """Blocks of the arrays with the cells in a source's shape, and with those of them that it heats."""
    number = region_number(source.region, scenario) if source.region is not None else None
    for block, mask in blocks(source, scenario.grid, parts.held):
        heated = mask & _conducts(parts.material[block], scenario)
        yield block, mask, heated if number is None else heated & (parts.owner[block] == number)


def _idle_sources(scenario: Scenario, parts: Parts) -> Iterator[Mistake]:
    wrong: dict[int, str] = {}
    found = np.zeros((len(scenario.sources), 2), dtype=bool)  # whether the shape has cells, and whether any conducts
    for index, source in enumerate(scenario.sources):
        if source.beam is None:
            try:
                for _, mask, heated in _source_blocks(source, scenario, parts):
                    found[index] |= mask.any(), heated.any()
                    if found[index].all():
                        break
            except ValueError as error:
                wrong[index] = str(error)
    found = parts.held.any(found)
    for index, source in enumerate(scenario.sources):
        key, (has_cells, heats) = f"sources.{index}", found[index]
        if source.beam is not None or (heats and index not in wrong):
            continue
        if index in wrong or not has_cells:
            yield Mistake(f"{key}.{key_of_place(source)}", wrong.get(index) or _no_cell(source, scenario.grid))
            continue
        key += ".region" if source.region is not None else "" if source.shape is None else f".{key_of_place(source)}"
        yield Mistake(key, f"{show(source.name)} has no cell that conducts: {_reason(source.region)}")


def _empty_probes(scenario: Scenario, parts: Parts) -> Iterator[Mistake]:
    names = list(dict.fromkeys(probe.region for probe in scenario.probes if probe.region is not None))
    there = parts.held.any(np.array([region_mask(name, scenario, parts).any() for name in names], dtype=bool))
    for index, probe in enumerate(scenario.probes):
        if probe.region is not None and not there[names.index(probe.region)]:
            message = f"got {show(probe.region)}, which has no cell that conducts: {_reason(probe.region)}"
            yield Mistake(f"probes.{index}.region", message)
        in_void = parts.held.any(np.array([_in_void(point, scenario, parts) for point in probe.points], dtype=bool))
        lost = next((point for point, is_lost in zip(probe.points, in_void, strict=True) if is_lost), None)
        if lost is not None:
            message = f"got {_point(lost)}, which lies in void, where there is no temperature; move it into a part"
            yield Mistake(f"probes.{index}.{'point' if probe.line is None else 'line'}", message)


def _in_void(point: Sequence[float], scenario: Scenario, parts: Parts) -> bool:
    """Whether all cells at a point are void; on a border there are several. False if its planes are not held."""
    if not scenario.uses_void:
        return False
    grid, around = scenario.grid, []
    for at, axis, n in zip(point, grid.axes, grid.cells, strict=True):
        place = float(axis.places(at))
        border = round(place)
        cells = (border - 1, border) if abs(place - border) < BETWEEN else (floor(place),)
        around.append({min(max(cell, 0), n - 1) for cell in cells})
    void = len(scenario.palette) - 1
    if not parts.held.owns(np.array([min(around[2])])).any():
        return False
    return all(parts.material[parts.held.local(z), y, x] == void for x, y, z in product(*around))


def _reason(region: str | None) -> str:
    if region is None:
        return "all its cells are void"
    return "it is void, or later regions cover all of it"


def _conducts(material: Bytes, scenario: Scenario) -> Mask:
    if not scenario.uses_void:
        return np.ones(material.shape, dtype=bool)
    return np.asarray(material != len(scenario.palette) - 1)


def _point(coordinates: Sequence[float]) -> str:
    return f"({', '.join(f'{coordinate:.6g}' for coordinate in coordinates)})"
