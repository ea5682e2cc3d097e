"""Cells of a domain that leaves them to heatsim: `cells = "auto"`.

Planes of parts lie between cells, and cells are small where parts are thin, end, or are heated. For each axis,

1. the ends of parts and patches and the planes of layers divide the domain into pieces, each with an even number of
   cells, so that the coarser grids of multigrid and of the error in space keep the planes;
2. parts, patches, layers and gaps between parts that face each other have at least ``across`` cells, curved parts more;
3. fluxes are singular at edges of parts, so beside its ends widths are EDGE of those of a part, except along the
   thinnest axis of thin parts, which heat crosses evenly; beside faces that heat passes they are FACE of those there,
   if the domain is not thin; in beams and where formulas vary, they are small enough for their shapes;
4. widths grow with the distance by GROWTH from cell to cell, up to a part of the longest edge, which is larger in
   bodies with parts; between pieces of two or four cells, whose numbers are rounded, by up to 1.5.

All widths are in proportion to 1/``across``. Borders divide ∫dx/h evenly, where h(x) is the width that these rules
allow at x. So neighbours differ smoothly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf, prod
from typing import NamedTuple

import numpy as np

from heatsim.grid import AXES, Floats
from heatsim.scenario.tables.boundaries import Periodic
from heatsim.scenario.tables.domain import MOST_PLANES, NARROWEST, AxisCells, Domain
from heatsim.scenario.tables.marks import THIN, Divided, Mark, Widths, marks_of, refused, varies, widths_of_formulas

# The largest width of a cell over that of its neighbour.
GROWTH = 1.25
_SLOPE = 0.88 * (GROWTH - 1.0)  # of widths over the distance; less than the limit, because cells are whole
# The fewest cells along the longest edge of the domain in units of ``across``, if 0, 1, 2 or 3 axes have several cells:
# of a body with parts, far from which heat flow is smooth; of one where only beams and formulas have a scale; of one
# without either, whose error follows from these cells alone.
_PARTS, _SHAPES, _PLAIN = (1.0, 10.0, 5.0, 5.0), (1.0, 12.0, 16.0, 8.0), (1.0, 16.0, 16.0, 16.0)
_SAME = 1e-9  # planes nearer to each other than this part of the edge are one
_CLOSE = 0.5  # of a width: how far samples of it lie apart
_PASSES, _SETTLED = 8, 0.98  # over an axis; the part of a width by which it may still change
_STEP = 1.15  # of widths from one piece to the next
_FEWER = 0.15  # cells that may be missing for a pair of them
_REMEDY = "make domain.across smaller, describe thin parts as layers, or write the numbers of cells"
_TRIES = 40  # of the largest width, if there are too many cells


class _Rules(NamedTuple):
    """What the widths along an axis follow from.

    Attributes:
        planes: coordinates in m that are borders of cells.
        widths: the largest in each piece between them in m.
        least: the smallest widths of the cells beside each plane.
        starts, ends: of places in m, those of the planes last.
        limits: the largest widths there, from which widths may grow.
        owners: the parts that set these limits.
        period: after which everything repeats in m; 0 for an axis with two ends.
    """

    planes: Floats
    widths: Floats
    least: Floats
    starts: Floats
    ends: Floats
    limits: Floats
    owners: list[str]
    period: float

    def at(self, x: Floats) -> Floats:
        """The largest width at coordinates in m as far as the places say."""
        found = np.full(len(x), inf)
        for shift in {0.0, self.period, -self.period}:
            at = x[:, None] + shift
            distances = np.maximum(np.maximum(self.starts - at, at - self.ends), 0.0)
            found = np.minimum(found, (self.limits + _SLOPE * distances).min(axis=1))
        return found


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
    def cells(self) -> tuple[int, int, int]:
        """Number of cells along each axis."""
        x, y, z = (len(borders) - 1 for borders in self.borders)
        return x, y, z

    def domain(self, domain: Domain) -> Domain:
        """The domain with these cells; it keeps how to find cells if a run still makes them smaller."""
        tables = {
            name: AxisCells(widths=tuple(np.diff(borders).tolist()))
            for name, borders in zip(AXES, self.borders, strict=True)
            if not (domain.axial and name == "y")
        }
        found = domain.model_copy(update={**tables, "cells": self.cells})
        return found.settled if domain.accuracy is None else found


def automatic_cells(scenario: Divided, wanted: Sequence[Widths] = ()) -> AutomaticCells:
    """The cells of a scenario whose domain has ``cells = "auto"``.

    Args:
        scenario: the scenario.
        wanted: for each axis widths that cells may not exceed either; then there may be more than ``domain.most``.

    Raises:
        ValueError: more than ``domain.most`` cells are needed, or a file has a value for each cell.
    """
    domain = scenario.domain
    if reasons := refused(scenario):
        raise ValueError(f'got "auto", but {" and ".join(reasons)}: write the numbers of cells')
    marks = [marks_of(scenario, axis) for axis in range(3)]
    several = [varies(scenario, axis, marks[axis]) for axis in range(3)]
    edges = [size for size, more in zip(domain.size, several, strict=True) if more]
    flat = [size < THIN * min((other for other in edges if other != size), default=0.0) for size in domain.size]
    ends = [np.array([low, low + size]) for low, size in zip(domain.origin, domain.size, strict=True)]
    formulas = [widths_of_formulas(scenario, axis) for axis in range(3)]
    inside = [mark for axis, (low, high) in enumerate(ends) for mark in marks[axis] if mark.divides(low, high)]
    beams = [source for source in scenario.sources if source.beam is not None]
    shapes = bool(beams) or any(len(each.limits) for each in formulas)
    longest = _PARTS if inside else _SHAPES if shapes else _PLAIN
    largest = max(edges, default=0.0) / (longest[len(edges)] * domain.least_across)
    if wanted:
        pairs = zip(formulas, wanted, strict=True)
        formulas = [Widths(*map(np.concatenate, zip(*pair, strict=True))) for pair in pairs]
    periodic = [isinstance(scenario.boundaries.face(f"{name}_min"), Periodic) for name in AXES]

    # In a thin domain heat flows evenly from face to face.
    marks = [
        [mark._replace(beside=1.0) if even and mark.low == mark.high else mark for mark in of_axis]
        for even, of_axis in zip(flat, marks, strict=True)
    ]

    def cells(largest: float) -> AutomaticCells:
        (x, of_x), (y, of_y), (z, of_z) = (
            _divided(_rules(domain, axis, marks[axis], largest, formulas[axis], periodic[axis]))
            if several[axis]
            else (ends[axis], "the domain")
            for axis in range(3)
        )
        return AutomaticCells((x, y, z), (of_x, of_y, of_z))

    found = cells(largest)
    _refuse_narrow(domain, found)
    if wanted or prod(found.cells) <= domain.most:
        return found
    if prod((coarsest := cells(inf)).cells) > domain.most:
        named = zip(coarsest.finest, AXES, coarsest.cells, strict=True)
        thin = [f"{name} along {axis} ({number} cells)" for name, axis, number in named if number > 1]
        raise ValueError(
            f'got "auto", which needs {prod(coarsest.cells):,} cells, more than domain.most = {domain.most:,}; the '
            f"finest are those of {', '.join(thin)}: allow more, {_REMEDY}"
        )
    few, many = 1.0, 1e6  # factors of the largest width
    for _ in range(_TRIES):
        factor = (few * many) ** 0.5
        few, many = (few, factor) if prod(cells(factor * largest).cells) <= domain.most else (factor, many)
    return cells(many * largest)


def _refuse_narrow(domain: Domain, found: AutomaticCells) -> None:
    """Refuse cells whose borders are not exact enough."""
    for name, borders, owner in zip(AXES, found.borders, found.finest, strict=True):
        if np.diff(borders).min() <= NARROWEST * np.abs(borders).max() and not (domain.axial and name == "y"):
            raise ValueError(
                f'got "auto", but the cells for {owner} are narrower than a billionth of the largest coordinate along '
                f"{name}: {_REMEDY}"
            )


def _rules(
    domain: Domain,
    axis: int,
    marks: Sequence[Mark],
    largest: float,
    formulas: Widths,
    periodic: bool,
) -> _Rules:
    """What the widths along an axis follow from."""
    low, size = domain.origin[axis], domain.size[axis]
    near = _SAME * size
    planes = _planes(low, size, [end for mark in marks if mark.whole for end in (mark.low, mark.high)])
    count = len(planes) - 1
    widths, names = np.full(count, min(largest, size / domain.least_across)), ["the domain"] * count
    factors, own, least = np.ones(len(planes)), np.full(len(planes), inf), np.zeros(len(planes))
    alone = [mark for mark in marks if not mark.whole or mark.low == mark.high]
    for mark in marks:
        rounding = 0.0 < mark.high - mark.low <= near  # between parts that touch
        for piece in np.flatnonzero((planes[:-1] > mark.low - near) & (planes[1:] < mark.high + near)):
            if mark.whole and mark.width < widths[piece]:
                widths[piece], names[piece] = mark.width, mark.name
        for end in (mark.low, mark.high):
            here = np.abs(planes - end) <= near
            if mark.low == mark.high or low + near < end < low + size - near:
                if mark.width < inf and not rounding:
                    own[here] = np.minimum(own[here], mark.beside * mark.width)
                else:
                    factors[here] = np.minimum(factors[here], mark.beside)
            least[here] = np.maximum(least[here], mark.least)
    before, after = np.append(inf, widths), np.append(widths, inf)
    at = np.maximum(np.minimum(np.minimum(before, after) * factors, own), least)
    varying = "a formula" if domain.accuracy is None else "domain.accuracy"
    nearer = [names[number - (before[number] < after[number])] for number in range(len(names))]
    return _Rules(
        planes,
        widths,
        least,
        starts=np.concatenate((formulas.starts, [mark.low for mark in alone], planes)),
        ends=np.concatenate((formulas.ends, [mark.high for mark in alone], planes)),
        limits=np.concatenate((formulas.limits, [max(mark.width, mark.least) for mark in alone], at)),
        owners=[*[varying] * len(formulas.limits), *(mark.name for mark in alone), *nearer, names[-1]],
        period=size if periodic else 0.0,
    )


def _planes(low: float, size: float, ends: Sequence[float]) -> Floats:
    """The coordinates within an axis at which parts end, and its ends, in m; each once."""
    places = np.array([low, low + size, *ends])
    places = np.sort(places[(places >= low) & (places <= low + size)])
    planes = np.append(places[:-1][np.diff(places) > _SAME * size], low + size)
    planes[0] = low
    return planes


def _divided(rules: _Rules) -> tuple[Floats, str]:
    """The borders of the cells of an axis, and the part that sets the smallest width."""
    owner = rules.owners[int(np.argmin(rules.limits))]
    for _ in range(_PASSES):
        pieces = [
            _between(*ends, rules, rules.widths[piece], rules.least[piece : piece + 2])
            for piece, ends in enumerate(pairwise(rules.planes))
        ]
        # Whole numbers make some cells narrower than they may be; those beside them follow.
        firsts = [piece[1] - piece[0] for piece in pieces]
        lasts = [piece[-1] - piece[-2] for piece in pieces]
        of_planes = np.minimum([*firsts, inf], [inf, *lasts])
        limits = rules.limits.copy()
        limits[-len(of_planes) :] = np.minimum(limits[-len(of_planes) :], np.maximum(_STEP * of_planes, rules.least))
        if (limits > _SETTLED * rules.limits).all():
            break
        rules = rules._replace(limits=limits)
    return np.concatenate([pieces[0][:1], *(piece[1:] for piece in pieces)]), owner


def _samples(start: float, end: float, rules: _Rules, widest: float) -> tuple[Floats, Floats]:
    """Coordinates in m from ``start`` to ``end`` and the largest widths there, so close that these change evenly."""
    x = np.concatenate((rules.starts, rules.ends))
    x = np.unique(np.clip(np.concatenate((x, x - rules.period, x + rules.period, [start, end])), start, end))
    h = np.minimum(rules.at(x), widest)
    while len(x) <= 2 * MOST_PLANES:
        far = np.diff(x) > np.maximum(_CLOSE * np.minimum(h[1:], h[:-1]), _SAME * (end - start))
        if not far.any():
            break
        more = 0.5 * (x[1:] + x[:-1])[far]
        x = np.concatenate((x, more))
        order = np.argsort(x)
        x, h = x[order], np.concatenate((h, np.minimum(rules.at(more), widest)))[order]
    return x, h


def _between(start: float, end: float, rules: _Rules, widest: float, least: Floats) -> Floats:
    """The borders of cells from ``start`` to ``end``; ``widest``: their largest width, in m.

    ``least`` has the smallest widths of the first and of the last one.
    """
    x, h = _samples(start, end, rules, widest)
    passed = np.append(0.0, np.cumsum(0.5 * np.diff(x) * (1.0 / h[1:] + 1.0 / h[:-1])))
    if passed[-1] > MOST_PLANES:
        raise ValueError(
            f'got "auto", but {rules.owners[int(np.argmin(rules.limits))]} needs cells of {rules.limits.min():.3g} m, '
            f"more than {MOST_PLANES:,} along an axis: {_REMEDY}"
        )
    cells = max(2, 2 * ceil(passed[-1] / 2.0 - _FEWER))
    if cells * least.max() > end - start:
        cells = max(1, floor((end - start) / least.max() * (1.0 + 1e-12)))
    while True:
        found = np.interp(np.arange(cells + 1) * (passed[-1] / cells), passed, x)
        found[[0, -1]] = start, end
        if cells == 1 or (found[1] - start >= least[0] and end - found[-2] >= least[1]):
            return np.asarray(found)
        cells -= 2 if cells > 2 else 1
