"""What automatic cells have to resolve: parts, gaps between them, patches, layers, beams and formulas in space."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple, Protocol, cast

import numpy as np
from pydantic import BaseModel

from heatsim.grid import AXES, FACES, Floats
from heatsim.scenario.messages import show
from heatsim.scenario.stl_file import read_triangles
from heatsim.scenario.tables.boundaries import Boundaries, Insulated, Periodic
from heatsim.scenario.tables.domain import Domain
from heatsim.scenario.tables.initial import ArrayFile, ImageFile, open_picture
from heatsim.scenario.tables.layers import Layer
from heatsim.scenario.tables.materials import VOID
from heatsim.scenario.tables.patches import Patch, face_axes
from heatsim.scenario.tables.regions import Box, Cylinder, Region, Shaped, Sphere, Stl
from heatsim.scenario.tables.sources import Source
from heatsim.scenario.values.bounds import bounds
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.functions import all_functions_in_time
from heatsim.scenario.values.space_means import changes_much
from heatsim.scenario.values.timefunction import SpaceFormula

# Parts with curved or inclined surfaces, which are steps of cells, get as many times more cells across: spheres and
# cylinders, and STL parts across their shortest extent.
_CURVED, _OF_FILE = 3.0, 1.5
# Cells in units of ``across``: in the radius of a beam that moves, and of one that stays, whose shape the field keeps;
# in the absorption depth of a beam; in a radius below a surface that absorbs a beam.
_SPOT, _STILL, _DEPTH, _UNDER = 1.0, 4.0, 2.0, 1.5
_REACH = 2.0, 3.0  # how far beams reach, in radii and in absorption depths
_CURVATURE = 1.0  # the same in √(range/|second derivative|) of a formula
_ALONG, _BESIDE, _TIMES = 129, 9, 5  # samples of formulas: along the axis, along each other one, in time
# A formula is too fast for cells if it changes by this part of its range in this part of the smallest ones, on any of
# some lines: a jump is in one cell.
_WILD, _MOST_WILD, _LINES = 0.5, 0.25, 3


class Divided(Protocol):
    """What the cells of a domain follow from; attributes of a scenario."""

    @property
    def domain(self) -> Domain: ...  # noqa: D102
    @property
    def regions(self) -> Sequence[Region]: ...  # noqa: D102
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
    @property
    def time(self) -> object: ...  # noqa: D102


# Widths beside planes, in parts of those around faces that heat passes, and of those of parts and patches that end
# there. Thin parts need none of the latter along their thinnest axis, across which heat flows evenly.
FACE, EDGE = 0.5, 0.3
THIN = 0.25  # of the next larger extent


class Mark(NamedTuple):
    """What an axis has to resolve.

    Attributes:
        name: of the part.
        low, high: its ends in m. If they are one, ``width`` is that beside the plane.
        width: the largest width of cells between them in m.
        beside: widths beside the ends, in parts of those around them.
        least: the smallest width in m of the cells beside the ends.
        whole: whether planes between cells lie at the ends; cells count with the parts that beams and layers cover.
    """

    name: str
    low: float
    high: float
    width: float = inf
    beside: float = 1.0
    least: float = 0.0
    whole: bool = True

    def divides(self, low: float, high: float) -> bool:
        """Whether the part, the patch or the layer ends between two coordinates in m."""
        return self.whole and (low < self.low < high or low < self.high < high)


class Widths(NamedTuple):
    """The largest widths of cells in pieces of an axis, in m: from ``starts`` to ``ends`` at most ``limits``."""

    starts: Floats
    ends: Floats
    limits: Floats


class _Extent(NamedTuple):
    """A part: its name, its ends along x, y, z in m, its cells across in units of ``domain.across``, what it is."""

    name: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    finer: tuple[float, ...]
    heated: bool
    empty: bool


def marks_of(scenario: Divided, axis: int) -> list[Mark]:
    """What an axis has to resolve."""
    parts = _parts(scenario)
    found = [*_of_parts(scenario.domain, parts, axis), *_of_beams(scenario, axis), *_of_layers(scenario, axis)]
    across = scenario.domain.least_across
    for patch in scenario.patches:
        if axis in face_axes(patch.face):
            at = face_axes(patch.face).index(axis)
            low, high = patch.rectangle.min[at], patch.rectangle.max[at]
            found.append(Mark(f'patch "{patch.name}"', low, high, (high - low) / across, EDGE))
    patched = {patch.face for patch in scenario.patches}
    for number, face in enumerate(FACES[2 * axis : 2 * axis + 2]):
        if face in patched or not isinstance(scenario.boundaries.face(face), Insulated | Periodic):
            place = scenario.domain.origin[axis] + number * scenario.domain.size[axis]
            found.append(Mark("the domain", place, place, beside=FACE))
    return found


def varies(scenario: Divided, axis: int, marks: Sequence[Mark]) -> bool:
    """Whether anything changes along an axis; if not, one cell is exact."""
    domain, name = scenario.domain, AXES[axis]
    if domain.axial and axis == 1:
        return False
    shaped: tuple[Shaped, ...] = (*scenario.regions, *scenario.sources)
    low, high = domain.origin[axis], domain.origin[axis] + domain.size[axis]
    initial = getattr(scenario.initial, "temperature", None)
    return (
        any(isinstance(part.shape, Stl) for part in shaped)
        or any(low < end < high for mark in marks for end in (mark.low, mark.high))
        or not all(
            isinstance(scenario.boundaries.face(face), Insulated | Periodic) for face in FACES[2 * axis : 2 * axis + 2]
        )
        or any(FACES.index(patch.face) // 2 == axis for patch in scenario.patches)
        or any(source.beam is not None for source in scenario.sources)
        or any(layer.plane.across == axis for layer in scenario.layers)
        or (isinstance(initial, ImageFile) and name != "z")
        or any(name in formula.used for formula in _formulas(scenario))
    )


def widths_of_formulas(scenario: Divided, axis: int) -> Widths:
    """The widths that resolve formulas and pictures in pieces of an axis.

    Raises:
        ValueError: a formula changes too fast for automatic cells.
    """
    domain = scenario.domain
    ends = [(start, start + size) for start, size in zip(domain.origin, domain.size, strict=True)]
    lines = [np.linspace(*end, _ALONG if other == axis else _BESIDE) for other, end in enumerate(ends)]
    points = dict(zip("xyz", np.meshgrid(*lines, indexing="ij"), strict=True))
    limits = np.full(_ALONG, inf)
    for formula in _formulas(scenario):
        if AXES[axis] not in formula.used:
            continue
        for moment in _moments(scenario) if "t" in formula.used else (0.0,):
            _refuse_wild(formula, moment, axis, ends)
            values = formula.evaluate(**{name: points.get(name, moment) for name in formula.names})
            values = np.moveaxis(np.broadcast_to(values, points["x"].shape), axis, 0).reshape(_ALONG, -1)
            step = domain.size[axis] / (_ALONG - 1)
            with np.errstate(all="ignore"):
                bends = np.abs(np.diff(values, 2, axis=0)).max(axis=1) / step**2
                of_values = np.maximum(np.sqrt(np.ptp(values) / bends) / (_CURVATURE * domain.least_across), 0.5 * step)
            of_values[~np.isfinite(of_values)] = inf
            limits[1:-1] = np.minimum(limits[1:-1], of_values)
    limits[[0, -1]] = limits[[1, -2]]
    initial = getattr(scenario.initial, "temperature", None)
    if isinstance(initial, ImageFile) and axis < 2:
        limits = np.minimum(limits, domain.size[axis] / open_picture(initial.image)[0].size[axis])
    of_pieces = np.minimum(limits[1:], limits[:-1])
    kept = np.isfinite(of_pieces)
    return Widths(lines[axis][:-1][kept], lines[axis][1:][kept], of_pieces[kept])


def _refuse_wild(formula: Expression, moment: float, axis: int, ends: Sequence[tuple[float, float]]) -> None:
    """Refuse a formula that changes by most of its range within many of the smallest cells that formulas get."""
    fixed = {name: moment for name in formula.names if name not in AXES}
    at_moment = formula.with_values(**fixed) if fixed else formula
    whole = bounds(at_moment, **{name: end for name, end in zip(AXES, ends, strict=True) if name in at_moment.names})
    allowed, cells = _WILD * (whole.high - whole.low), 2 * (_ALONG - 1)
    if not 0.0 < allowed < inf:
        return
    starts, width = np.linspace(*ends[axis], cells + 1)[:-1], (ends[axis][1] - ends[axis][0]) / cells
    lines = [starts if other == axis else np.linspace(*end, _LINES) for other, end in enumerate(ends)]
    low = np.stack([each.ravel() for each in np.meshgrid(*lines, indexing="ij")])
    high = low + width * (np.arange(3) == axis)[:, None]
    much = np.moveaxis(
        changes_much(at_moment, low, high, allowed, allowed).reshape([len(line) for line in lines]), axis, 0
    )
    part = float(much.mean(axis=0).max())
    if part > _MOST_WILD:
        raise ValueError(
            f'got "auto", but {show(formula.text)} changes by half of its range within {width:.3g} m, the smallest '
            f"cells that a formula gets along {AXES[axis]}, in {100.0 * part:.0f} % of them: write the numbers of cells"
        )


def refused(scenario: Divided) -> list[str]:
    """Why cells cannot be found; empty if they can."""
    found = [
        f'the label image of region "{region.name}" has one label for each cell'
        for region in scenario.regions
        if region.labels is not None
    ]
    if isinstance(getattr(scenario.initial, "temperature", None), ArrayFile):
        found.append("the field in initial.temperature has one value for each cell")
    return found


def _formulas(scenario: Divided) -> Iterator[Expression]:
    """All expressions in space: of the initial temperature, of conditions and of sources."""
    initial = getattr(scenario.initial, "temperature", None)
    if isinstance(initial, Expression):
        yield initial
    for _, function, _ in all_functions_in_time(cast(BaseModel, scenario)):
        if isinstance(function, SpaceFormula):
            yield function.expression


def _moments(scenario: Divided) -> Iterator[float]:
    end = getattr(scenario.time, "end", None)
    end = end if isinstance(end, float) else 0.0
    # No whole parts of the end, because periods often are.
    yield from ((number + 0.37) / _TIMES * end for number in range(_TIMES))


def _parts(scenario: Divided) -> list[_Extent]:
    heated = {source.region for source in scenario.sources}
    named: list[tuple[str, Shaped, bool, bool]] = [
        (f'region "{part.name}"', part, part.name in heated, part.material == VOID) for part in scenario.regions
    ]
    named += [(source.label, source, True, False) for source in scenario.sources]
    found = []
    for name, part, hot, empty in named:
        ends = extent(part)
        if ends is not None:
            found.append(_Extent(name, *ends, hot, empty))
    return found


def extent(part: Shaped) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]] | None:
    """The ends of a shape, and for each axis 1 for flat ends and more for curved ones; None without a shape."""
    match part.shape:
        case Box(min=low, max=high):
            return low, high, (1.0, 1.0, 1.0)
        case Sphere(centre=centre, radius=radius):
            ends = np.subtract(centre, radius), np.add(centre, radius)
            return tuple(ends[0].tolist()), tuple(ends[1].tolist()), (_CURVED,) * 3
        case Cylinder(from_=start, to=end, radius=radius):
            along = np.subtract(end, start) / np.linalg.norm(np.subtract(end, start))
            reach = radius * np.sqrt(np.maximum(0.0, 1.0 - along**2))
            # An inclined cylinder is as thin as its radius says, not as long as it reaches.
            low, high = np.minimum(start, end) - reach, np.maximum(start, end) + reach
            thick = np.where(reach > 0.0, 2.0 * radius / _CURVED, high - low)
            return tuple(low.tolist()), tuple(high.tolist()), tuple(((high - low) / thick).tolist())
        case Stl(file=file, scale=scale, translate=shift):
            try:
                corners = read_triangles(file.read()).reshape(-1, 3)
            except ValueError:
                return None  # reported where the part is painted
            low, high = corners.min(axis=0) * scale + shift, corners.max(axis=0) * scale + shift
            thick = (high - low).min() / _OF_FILE
            return tuple(low.tolist()), tuple(high.tolist()), tuple(((high - low) / thick).tolist())
    return None


def _of_parts(domain: Domain, parts: Sequence[_Extent], axis: int) -> Iterator[Mark]:
    """The marks of parts, and of the gaps between parts that face each other."""
    others, across = [other for other in range(3) if other != axis], domain.least_across
    for part in parts:
        low, high = part.low[axis], part.high[axis]
        width = inf if part.empty else (high - low) / (part.finer[axis] * across)
        thin = high - low < THIN * min(part.high[other] - part.low[other] for other in others)
        yield Mark(part.name, low, high, width, 1.0 if thin else EDGE)
    start, end = domain.origin[axis], domain.origin[axis] + domain.size[axis]
    for one in parts if domain.material != VOID else ():
        if one.empty:
            continue
        for low, high in ((start, one.low[axis]), (one.high[axis], end)):
            if low < high:
                yield Mark(f"the gap beside {one.name}", low, high, (high - low) / across)
        for two in parts:
            low, high = one.high[axis], two.low[axis]
            faces = all(one.low[each] < two.high[each] and two.low[each] < one.high[each] for each in others)
            if not two.empty and low < high and faces:
                yield Mark(f"the gap between {one.name} and {two.name}", low, high, (high - low) / across)


def _of_layers(scenario: Divided, axis: int) -> Iterator[Mark]:
    """Planes of layers lie between cells that are at least as wide; along them, layers have ``across`` cells."""
    for layer in scenario.layers:
        name = f'layer "{layer.name}"'
        if layer.plane.across == axis:
            yield Mark(name, layer.plane.at, layer.plane.at, least=layer.thickness)
        elif layer.plane.rectangle is not None:
            at = layer.plane.along.index(axis)
            low, high = layer.plane.rectangle.min[at], layer.plane.rectangle.max[at]
            yield Mark(name, low, high, (high - low) / scenario.domain.least_across, whole=False)
            start, end = scenario.domain.origin[axis], scenario.domain.origin[axis] + scenario.domain.size[axis]
            for first, last in ((start, low), (high, end)):
                if first < last:
                    width = (last - first) / scenario.domain.least_across
                    yield Mark(f"the gap beside {name}", first, last, width, whole=False)


def _of_beams(scenario: Divided, axis: int) -> Iterator[Mark]:
    domain, across = scenario.domain, scenario.domain.least_across
    for source in scenario.sources:
        beam = source.beam
        if beam is None:
            continue
        face = FACES.index(beam.face)
        if face // 2 != axis:
            at = face_axes(beam.face).index(axis)
            places = [point[at] for point in beam.path]
            low, high = min(places) - _REACH[0] * beam.radius, max(places) + _REACH[0] * beam.radius
            yield Mark(
                source.label, low, high, beam.radius / ((_SPOT if len(beam.path) > 1 else _STILL) * across), whole=False
            )
            continue
        end = domain.origin[axis] + (face % 2) * domain.size[axis]
        if beam.absorption_depth is None:
            yield Mark(source.label, end, end, beam.radius / (_UNDER * across))
        else:
            depth = _REACH[1] * beam.absorption_depth
            low, high = (end - depth, end) if face % 2 else (end, end + depth)
            yield Mark(source.label, low, high, beam.absorption_depth / (_DEPTH * across), whole=False)
