"""Divide the cells of a body into parts for sums: by cell type and, if observers need it, by region."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.composite.arrays import CompositeArrays
from heatsim.kernels.reductions.fused import PART, WHOLE, Labelling, Thermometers
from heatsim.physics.cells.cell_types import CELL_TYPE, CellTypes
from heatsim.physics.geometry.regions import region_number
from heatsim.physics.matter.enthalpy import TemperatureTables, Thermometer
from heatsim.physics.problem import HeatProblem
from heatsim.scenario import LIQUID_FRACTION, VOID
from heatsim.solver.field.field import Field


def own_cells(arrays: CompositeArrays, field: Field) -> Any:
    """The type of each own cell of a field, one byte, on its device; empty if there is one type."""
    cells = arrays.body.cells
    return cells[field.slab.own] if cells.size else cells


def set_thermometers(problem: HeatProblem, field: Field, cells: Any) -> None:
    """Give a field its thermometers if a material varies. ``cells``: from :func:`own_cells`."""
    materials = problem.materials
    if materials.varies:
        field.thermometer, field.point_thermometer = (
            Thermometer(xp, materials.enthalpies, partial(_types_at, None if materials.uniform else of_cells))
            for xp, of_cells in ((field.device.xp, cells), (np, materials.cells))
        )
        if materials.held.slab is not None:
            field.point_thermometer = Thermometer(np, materials.enthalpies, materials.types_of)


def _types_at(cells: Any, place: Any) -> Any:
    """The types of the cells at an index of the field; 0 if there is one type."""
    return 0 if cells is None else cells[place] & CELL_TYPE


_CELLS_AT_ONCE = 2**22

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CellParts:
    """The parts of a body's cells. All cells of a part have the same type and, if regions are watched, the same owner.

    Attributes:
        labels: device array [z, y, x] with a number for each own cell; ``number & division.mask`` is its part. None if
            there is one part.
        division: the number of parts, and how to read the labels.
        cell_types: the type of each part.
        owners: the region number of each part; 0 for all regions that are not watched.
        volumes: the volume of each part in mean volumes of a cell: the number of its cells if all are equal.
    """

    labels: Any
    division: Labelling
    cell_types: Numbers
    owners: Numbers
    volumes: NDArray[np.float64]

    @classmethod
    def of_problem(cls, problem: HeatProblem, cells: Any, field: Field) -> "CellParts":
        """The parts that the observers of a run need.

        Args:
            problem: the problem.
            cells: the byte of each own cell on the device; empty if there is one type.
            field: the field; its device, planes and reference temperature are used.
        """
        xp, reference = field.device.xp, field.reference
        regions = [region_number(name, problem.scenario) for name in watched_regions(problem)]
        parts = cls.of_regions(problem, regions, field) if regions else cls.of_types(problem.materials, cells)
        wanted = {probe.statistic for probe in problem.scenario.probes}
        if LIQUID_FRACTION in wanted or (problem.materials.varies and "mean" in wanted):
            return parts.with_thermometers(problem, xp, reference)
        return parts

    @classmethod
    def of_types(cls, materials: CellTypes, cells: Any) -> "CellParts":
        """A part for each cell type."""
        count = len(materials.types)
        division = WHOLE if materials.uniform else Labelling(count, int(CELL_TYPE))
        numbers = np.arange(count), np.zeros(count, dtype=np.int64), materials.volumes
        return cls(None if materials.uniform else cells, division, *numbers)

    @classmethod
    def of_regions(cls, problem: HeatProblem, regions: Sequence[int], field: Field) -> "CellParts":
        """One part for each cell type in each of some regions; and one for each cell type in all other cells.

        Collective.
        """
        materials = problem.materials
        owner_of = np.zeros(256, dtype=np.int64)
        owner_of[list(regions)] = regions
        own = field.slab.first, field.slab.last
        count = np.zeros(256 * len(materials.types), dtype=np.int64)
        for _, pairs in _pairs(problem, own, owner_of):
            count += np.bincount(pairs.ravel(), minlength=len(count))
        count = np.sum(field.team.gathered(count), axis=0)
        present = np.flatnonzero(count)
        label_of = np.zeros(len(count), dtype=np.uint8 if len(present) <= 256 else np.uint16)
        label_of[present] = np.arange(len(present))
        labels = np.empty((field.slab.count, *materials.grid.shape[1:]), dtype=label_of.dtype)
        for planes, pairs in _pairs(problem, own, owner_of):
            labels[planes.start - own[0] : planes.stop - own[0]] = label_of[pairs]
        one = len(present) == 1
        division = WHOLE if one else Labelling(len(present))
        on_device = None if one else field.device.xp.asarray(labels)
        uniform = materials.grid.uniform
        volumes = count[present].astype(np.float64) if uniform else _volumes(labels, len(present), field)
        return cls(on_device, division, present // 256, present % 256, volumes)

    def with_thermometers(self, problem: HeatProblem, xp: Any, reference: float) -> "CellParts":
        """The same parts, with sums of temperatures and liquid parts in addition."""
        materials, palette = problem.materials, dict(problem.scenario.palette)
        tables = TemperatureTables.of(materials.enthalpies)
        of_type = np.zeros(len(materials.types), PART)
        for name in ("per_kelvin", "first", "last", "base"):
            of_type[name] = getattr(tables, name)
        for number, cell_type in enumerate(materials.types):
            material = palette[materials.palette[cell_type.material].name]
            if material is not None and material.solidus is not None and material.liquidus is not None:
                of_type[number]["solidus"] = material.solidus - reference
                of_type[number]["melting"] = material.liquidus - material.solidus
        of_part = xp.asarray(of_type[self.cell_types].view(np.float64))
        thermometers = Thermometers(of_part, xp.asarray(tables.values), xp.asarray(tables.rises))
        return replace(self, division=replace(self.division, thermometers=thermometers))


def watched_regions(problem: HeatProblem) -> list[str]:
    """The regions whose statistics or heat the scenario records."""
    scenario = problem.scenario
    names = [probe.region for probe in scenario.probes if probe.statistic is not None and probe.region is not None]
    return list(dict.fromkeys([*names, *regions_with_heat(problem)]))


def regions_with_heat(problem: HeatProblem) -> list[str]:
    """The regions whose heat energy.csv has; empty unless the scenario asks for it."""
    return conducting_regions(problem) if problem.scenario.output.region_heat else []


def conducting_regions(problem: HeatProblem) -> list[str]:
    """The regions that have cells and are not void."""
    if problem.parts is None:
        return []
    scenario = problem.scenario
    cells = zip(scenario.regions, problem.parts.region_cells, strict=True)
    return [region.name for region, count in cells if count and {*region.materials} != {VOID}]


def _pairs(problem: HeatProblem, own: tuple[int, int], owner_of: Numbers) -> Iterator[tuple[slice, Numbers]]:
    """256 · type + owner of the cells in planes ``own``, a few planes at a time."""
    materials, painted = problem.materials, problem.parts
    assert painted is not None, "a scenario with regions is painted"
    planes_at_once = max(1, _CELLS_AT_ONCE // painted.owner[0].size)
    for first in range(*own, planes_at_once):
        planes = slice(first, min(first + planes_at_once, own[1]))
        owners = painted.owner[painted.held.local(planes)]
        yield planes, 256 * materials.types_of(planes).astype(np.int64) + owner_of[owners]


def _volumes(labels: NDArray[np.unsignedinteger], parts: int, field: Field) -> NDArray[np.float64]:
    """The volume of each part in mean volumes of a cell, from the part of each own cell [z, y, x]. Collective."""
    x, y, z = (axis.volume_factors for axis in field.grid.axes)
    across, first = (y[:, None] * x).reshape(-1), field.slab.first
    own = [z[first + n] * np.bincount(plane.reshape(-1), across, parts) for n, plane in enumerate(labels)]
    # Planes are added in their order on all ranks: the same bits.
    of_planes = np.concatenate(field.team.gathered(np.array(own).reshape(-1, parts)))
    return np.asarray(of_planes.sum(axis=0))
