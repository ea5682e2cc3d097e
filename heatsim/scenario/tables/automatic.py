"""Cells of a domain that leaves them to heatsim: `cells = "auto"`.

Planes of parts lie between cells, and cells are small where parts are thin or heat enters. For each axis,

1. the planes of boxes, cylinders along the axis, patches and layers, and the ends of curved parts, divide the domain;
2. each of the pieces gets at least ``across`` cells; the cells beside a plane where heat enters are half as wide;
3. from there widths grow with the distance by at most GROWTH from cell to cell, up to a part of the longest edge.

Borders divide ∫dx/h evenly, where h(x) is the width that these rules allow at x. So neighbours differ smoothly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf, prod
from typing import NamedTuple, Protocol, cast

import numpy as np
from pydantic import BaseModel

from heatsim.grid import AXES, FACES, Floats
from heatsim.scenario.tables.boundaries import Boundaries, Insulated, Periodic
from heatsim.scenario.tables.domain import AxisCells, Domain
from heatsim.scenario.tables.layers import Layer
from heatsim.scenario.tables.patches import Patch, face_axes
from heatsim.scenario.tables.regions import Box, Cylinder, Shaped, Sphere
from heatsim.scenario.tables.sources import Beam, Source
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.functions import all_functions_in_time
from heatsim.scenario.values.timefunction import SpaceFormula

# The largest width of a cell over that of its neighbour.
GROWTH = 1.25
_SLOPE = 0.88 * (GROWTH - 1.0)  # of widths over the distance; less than the limit, because cells are whole
_LONGEST = 1.0 / 40.0  # the largest width of a cell, in parts of the longest edge of the domain
_CURVED = 4.0  # parts that are no boxes get as many times more cells across
_SPOT, _DEPTH = 1.0 / 3.0, 0.5  # widths beside beams, in parts of the radius and of the absorption depth
_SAME = 1e-9  # planes nearer to each other than this part of the edge are one
_SAMPLES = 64  # of the width between two planes, for its integral
_TRIES = 40  # of the largest width, if there are too many cells


class Divided(Protocol):
    """What the cells of a domain follow from; attributes of a scenario."""

    @property
    def domain(self) -> Domain: ...  # noqa: D102
    @property
    def regions(self) -> Sequence[Shaped]: ...  # noqa: D102
    @property
    def sources(self) -> Sequence[Source]: ...  # noqa: D102
    @property
    def boundaries(self) -> Boundaries: ...  # noqa: D102
    @property
    def patches(self) -> Sequence[Patch]: ...  # noqa: D102
    @property
    def layers(self) -> Sequence[Layer]: ...  # noqa: D102
    @property
    def initial(self) -> object: ...  # noqa: D102


class Mark(NamedTuple):
    """What an axis has to resolve.

    Attributes:
        name: of the part.
        low, high: its ends in m.
        width: the largest width of cells between them in m.
        enters: whether heat enters at the ends.
    """

    name: str
    low: float
    high: float
    width: float
    enters: bool


@dataclass(frozen=True)
class AutomaticCells:
    """Cells for a scenario.

    Attributes:
        borders: of each axis in m.
        finest: for each axis the part that sets the smallest width.
    """

    borders: tuple[Floats, Floats, Floats]
    finest: tuple[str, str, str]

    @property
    def count(self) -> int:
        """Number of cells."""
        return prod(len(borders) - 1 for borders in self.borders)

    def domain(self, domain: Domain) -> Domain:
        """The domain with these cells."""
        tables = {
            name: AxisCells(widths=tuple(np.diff(borders).tolist()))
            for name, borders in zip(AXES, self.borders, strict=True)
            if not (domain.axial and name == "y")
        }
        cells = tuple(len(borders) - 1 for borders in self.borders)
        return domain.model_copy(update={**tables, "cells": cells})


def automatic_cells(scenario: Divided) -> AutomaticCells:
    """The cells of a scenario whose domain has ``cells = "auto"``.

    Raises:
        ValueError: more than ``domain.most`` cells are needed.
    """
    domain = scenario.domain
    marks = [_marks(scenario, axis) for axis in range(3)]
    single = [_is_single(scenario, axis, marks[axis]) for axis in range(3)]
    edges = [size for size, alone in zip(domain.size, single, strict=True) if not alone]
    largest = _LONGEST * max(edges, default=0.0)

    def cells(largest: float) -> AutomaticCells:
        axes = [
            (np.array([domain.origin[axis], domain.origin[axis] + domain.size[axis]]), "the domain")
            if single[axis]
            else _of_axis(domain, axis, marks[axis], largest)
            for axis in range(3)
        ]
        (x, of_x), (y, of_y), (z, of_z) = axes
        return AutomaticCells((x, y, z), (of_x, of_y, of_z))

    found = cells(largest)
    if found.count <= domain.most:
        return found
    if (coarsest := cells(inf)).count > domain.most:
        named = zip(coarsest.finest, AXES, coarsest.borders, strict=True)
        thin = {f"{name} along {axis} ({len(of) - 1} cells)" for name, axis, of in named}
        raise ValueError(
            f'got "auto", which needs {coarsest.count:,} cells, more than domain.most = {domain.most:,}; the thinnest '
            f"parts are {', '.join(sorted(thin))}: allow more, make domain.across smaller, or describe thin parts as "
            "layers"
        )
    few, many = 1.0, 1e6  # factors of the largest width
    for _ in range(_TRIES):
        factor = (few * many) ** 0.5
        few, many = (few, factor) if cells(factor * largest).count <= domain.most else (factor, many)
    return cells(many * largest)


def _of_axis(domain: Domain, axis: int, marks: Sequence[Mark], largest: float) -> tuple[Floats, str]:
    """The borders of the cells of an axis, and the part that sets the smallest width."""
    low, size = domain.origin[axis], domain.size[axis]
    places = np.array([low, low + size, *(end for mark in marks for end in (mark.low, mark.high))])
    places = np.sort(places[(places >= low) & (places <= low + size)])
    planes = np.append(places[:-1][np.diff(places) > _SAME * size], low + size)
    planes[0] = low
    gaps = np.diff(planes)
    widths, names = np.minimum(gaps / domain.across, largest), ["a gap"] * len(gaps)
    beside = np.full(len(planes), inf)
    for mark in marks:
        inside = (planes[:-1] > mark.low - _SAME * size) & (planes[1:] < mark.high + _SAME * size)
        for gap in np.flatnonzero(inside):
            if gaps[gap] / domain.across <= widths[gap] or mark.width < widths[gap]:
                widths[gap], names[gap] = min(widths[gap], mark.width), mark.name
        if mark.enters:
            for end in (mark.low, mark.high):
                beside[np.abs(planes - end) <= _SAME * size] = 0.5
    at = np.minimum(np.append(widths, inf), np.append(inf, widths)) * np.minimum(beside, 1.0)
    reached = (at[None, :] + _SLOPE * np.abs(planes[:, None] - planes[None, :])).min(axis=1)
    borders = [np.array([low])]
    for number, (start, end) in enumerate(pairwise(planes)):
        borders.append(_between(start, end, reached[number], reached[number + 1], widths[number]))
    return np.concatenate(borders), names[int(np.argmin(widths))]


def _between(start: float, end: float, first: float, last: float, widest: float) -> Floats:
    """The borders of cells after ``start`` up to ``end``; ``first``, ``last``: the widths there, in m."""
    # Widths change over many decades, so that the samples lie at equal ratios of the distance from both ends.
    half, middle = 0.5 * (end - start), 0.5 * (start + end)
    near = half * np.append(0.0, np.geomspace(min(first, last, half) * 0.1 / half, 1.0, _SAMPLES))
    x = np.concatenate((start + near, (end - near[::-1])[1:]))
    x[len(near) - 1] = middle
    h = np.minimum(np.minimum(first + _SLOPE * (x - start), last + _SLOPE * (end - x)), widest)
    passed = np.append(0.0, np.cumsum(0.5 * np.diff(x) * (1.0 / h[1:] + 1.0 / h[:-1])))
    cells = max(1, ceil(passed[-1] - 1e-9))
    found = np.interp(np.arange(1, cells + 1) * (passed[-1] / cells), passed, x)
    found[-1] = end
    return np.asarray(found)


def _is_single(scenario: Divided, axis: int, marks: Sequence[Mark]) -> bool:
    """Whether nothing changes along an axis, so that one cell is exact."""
    domain, name = scenario.domain, AXES[axis]
    if domain.axial and axis == 1:
        return True
    if any(part.shape is not None and not isinstance(part.shape, Box | Sphere | Cylinder) for part in scenario.regions):
        return False
    low, high = domain.origin[axis], domain.origin[axis] + domain.size[axis]
    if any(low < end < high for mark in marks for end in (mark.low, mark.high)):
        return False
    faces = [scenario.boundaries.face(face) for face in FACES[2 * axis : 2 * axis + 2]]
    if not all(isinstance(face, Insulated | Periodic) for face in faces):
        return False
    if any(FACES.index(patch.face) // 2 == axis for patch in scenario.patches):
        return False
    initial = getattr(scenario.initial, "temperature", None)
    if not isinstance(initial, float) and not (isinstance(initial, Expression) and name not in initial.used):
        return False
    formulas = (
        function
        for _, function, _ in all_functions_in_time(cast(BaseModel, scenario))
        if isinstance(function, SpaceFormula)
    )
    return not any(name in formula.expression.used for formula in formulas)


def _marks(scenario: Divided, axis: int) -> list[Mark]:
    """What an axis has to resolve: parts, patches, layers, beams, and the faces of the domain."""
    domain = scenario.domain
    found = [*_of_parts(scenario, axis), *_of_beams(scenario, axis)]
    for patch in scenario.patches:
        if axis in face_axes(patch.face):
            at = face_axes(patch.face).index(axis)
            low, high = patch.rectangle.min[at], patch.rectangle.max[at]
            found.append(Mark(f'patch "{patch.name}"', low, high, (high - low) / domain.across, True))
    for layer in scenario.layers:
        if layer.plane.across == axis:
            found.append(Mark(f'layer "{layer.name}"', layer.plane.at, layer.plane.at, inf, False))
        elif layer.plane.rectangle is not None:
            at = layer.plane.along.index(axis)
            low, high = layer.plane.rectangle.min[at], layer.plane.rectangle.max[at]
            found.append(Mark(f'layer "{layer.name}"', low, high, (high - low) / domain.across, False))
    patched = {patch.face for patch in scenario.patches}
    for number, face in enumerate(FACES[2 * axis : 2 * axis + 2]):
        if face in patched or not isinstance(scenario.boundaries.face(face), Insulated | Periodic):
            place = domain.origin[axis] + number * domain.size[axis]
            found.append(Mark("the domain", place, place, inf, True))
    return found


def _of_parts(scenario: Divided, axis: int) -> Iterator[Mark]:
    across = scenario.domain.across
    named: list[tuple[str, Shaped]] = [(f'region "{region.name}"', region) for region in scenario.regions]
    named += [(source.label, source) for source in scenario.sources]
    for name, part in named:
        heated = part in scenario.sources or any(source.region == part.name for source in scenario.sources)
        match part.shape:
            case Box(min=lows, max=highs):
                yield Mark(name, lows[axis], highs[axis], (highs[axis] - lows[axis]) / across, heated)
            case Sphere(centre=centre, radius=radius):
                low, high = centre[axis] - radius, centre[axis] + radius
                yield Mark(name, low, high, (high - low) / (_CURVED * across), heated)
            case Cylinder(from_=start, to=end, radius=radius):
                along = np.subtract(end, start) / np.linalg.norm(np.subtract(end, start))
                reach = radius * float(np.sqrt(max(0.0, 1.0 - along[axis] ** 2)))
                low, high = min(start[axis], end[axis]) - reach, max(start[axis], end[axis]) + reach
                width = (high - low) / across if reach == 0.0 else 2.0 * reach / (_CURVED * across)
                yield Mark(name, low, high, width, heated)


def _of_beams(scenario: Divided, axis: int) -> Iterator[Mark]:
    domain = scenario.domain
    for source in scenario.sources:
        beam: Beam | None = source.beam
        if beam is None:
            continue
        face = FACES.index(beam.face)
        if face // 2 != axis:
            at = face_axes(beam.face).index(axis)
            places = [point[at] for point in beam.path]
            low, high = min(places) - 2.0 * beam.radius, max(places) + 2.0 * beam.radius
            yield Mark(source.label, low, high, _SPOT * beam.radius, True)
        elif beam.absorption_depth is not None:
            end, depth = domain.origin[axis] + (face % 2) * domain.size[axis], 3.0 * beam.absorption_depth
            low, high = (end - depth, end) if face % 2 else (end, end + depth)
            yield Mark(source.label, low, high, _DEPTH * beam.absorption_depth, True)
