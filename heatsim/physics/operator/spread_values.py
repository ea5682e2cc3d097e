"""Values that vary over the cells of a surface, as mixtures of fixed values, the levels: each cell has parts of two."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES, Grid
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.condition_terms import Condition
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.operator.boundary_faces import BoundaryFaces
from heatsim.scenario import Convection, Flux, SpaceFormula, Temperature, TimeFunction, face_axes, radiates
from heatsim.scenario.messages import show
from heatsim.scenario.tables.boundaries import depends_on_surface
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.function_of_time import Length
from heatsim.scenario.values.functions import functions_in_time
from heatsim.scenario.values.quantities import Quantity
from heatsim.scenario.values.space_means import ALIKE, TOLERABLE, SpaceMeans, means_over, points_of
from heatsim.scenario.values.timefunction import Formula

Array = NDArray[np.float64]
Numbers = NDArray[np.int64]
Products = Sequence[tuple[TimeFunction, Expression]]
End = tuple[float, tuple[float, float, float]]  # a value and its point

# Conditions from the lowest to the highest value, by the number of keys in which a condition's flux is not linear;
# fewer where each condition has a table.
LEVELS = {0: 2, 1: 129, 2: 33, 3: 9}
LEVELS_OF_TABLES = {0: 2, 1: 33, 2: 9, 3: 5}
_SAME = 1e-9  # fraction of the range of the values
_PARTS = 2**18  # into which all cells of a surface are divided at most, about


@dataclass(frozen=True)
class Blend(TimeFunction):
    """A function of time between two others: (1 − part)·low + part·high."""

    low: TimeFunction
    high: TimeFunction
    part: float

    @property
    def constant(self) -> bool:
        """Whether both functions are constant."""
        return self.low.constant and self.high.constant

    def at(self, times: Array) -> Array:
        """Values at times in s."""
        return (1.0 - self.part) * self.low.at(times) + self.part * self.high.at(times)

    def jumps(self, end: float, error: float = 0.0) -> Array | None:
        """The jumps of both functions."""
        low, high = self.low.jumps(end, error), self.high.jumps(end, error)
        return None if low is None or high is None else np.union1d(low, high)

    def mean(self, times: Array, dt: Length) -> Array:
        """Means over steps."""
        return (1.0 - self.part) * self.low.mean(times, dt) + self.part * self.high.mean(times, dt)

    def nodes(self, end: float) -> Array:
        """The nodes of both functions."""
        return np.union1d(self.low.nodes(end), self.high.nodes(end))

    def extremes(self, end: float) -> tuple[float, float]:
        """Bounds: the mixtures of the lowest and of the highest values."""
        low, high = self.low.extremes(end), self.high.extremes(end)
        return (1.0 - self.part) * low[0] + self.part * high[0], (1.0 - self.part) * low[1] + self.part * high[1]

    def last_change(self, end: float) -> float:
        """The later one of the two last changes."""
        return max(self.low.last_change(end), self.high.last_change(end))


@dataclass(frozen=True, eq=False)
class Levels:
    """A value of a condition that varies over cells of a surface.

    Attributes:
        names: the keys of the condition that have this value.
        levels: the values of its conditions, from lowest to highest.
        below: for each cell the number of the level below its value.
        part: the part of the level above.
    """

    names: tuple[str, ...]
    levels: tuple[TimeFunction, ...]
    below: Numbers
    part: Array


@dataclass(frozen=True, eq=False)
class SurfacePoints:
    """The cells of a surface.

    Attributes:
        low, high: the lowest and the highest x, y and z in m of the rectangle over which values are averaged, of each
            cell, shape (3, cells).
        points: of these rectangles: x, y and z in m, shape (cells, points).
        conductance: of their half cells in W/(m² K) of surface, at the reference temperature; 0 for void.
        varies: whether it varies with temperature.
        held: the planes of this rank, if each rank has a part of the cells.
        own: the cells in own planes, by their places in the arrays.
        order: the places of the own cells among the cells of all ranks, in the order of a run on one rank; ascending.
        count: the number of cells of all ranks.
        turned: whether the rectangles are turned around the axis x = 0, so that their area grows with x.
    """

    low: Array
    high: Array
    points: tuple[Array, Array, Array]
    conductance: Array
    varies: bool
    held: PaintedPlanes
    own: NDArray[np.intp]
    order: NDArray[np.intp]
    count: int
    turned: bool

    @classmethod
    def on_face(cls, materials: CellTypes, boundary: Boundary, faces: BoundaryFaces, varies: bool) -> "SurfacePoints":
        """Those of boundary faces with one condition at a face of the box.

        The points lie in the part of each cell's face that a patch covers; for conditions of faces in the whole one.
        """
        grid, axis, number = materials.grid, faces.axis, int(faces.conditions[0])
        patches, condition = boundary.scenario.patches, boundary.conditions[number]
        patch = patches[number - len(FACES)] if 0 <= number - len(FACES) < len(patches) else None
        at = np.divmod(faces.places, grid.face_shape(faces.side)[1])[::-1]
        lows, highs = np.full((2, 3, len(faces)), grid.origin[axis] + grid.size[axis] * (faces.side % 2))
        for place, (other, cells) in enumerate(zip(face_axes(FACES[faces.side]), at, strict=True)):
            middle, half = grid.centres(other)[cells], 0.5 * grid.axes[other].widths[cells]
            lows[other], highs[other] = middle - half, middle + half
            if patch is not None:
                lows[other] = np.maximum(lows[other], patch.rectangle.min[place])
                highs[other] = np.minimum(highs[other], patch.rectangle.max[place])
        conductance, every = 1.0 / faces.resistances(materials), np.arange(len(faces))
        points = points_in(lows, highs, condition)
        return cls(lows, highs, points, conductance, varies, EVERYTHING, every, every, len(faces), grid.radial)

    def highest(self, number: float) -> float:
        """The highest number of all ranks. Collective."""
        return max(self.held.gathered(number))


def points_in(low: Array, high: Array, condition: Condition) -> tuple[Array, Array, Array]:
    """Points in rectangles at which the values of a condition are looked at: x, y and z in m, shape (cells, points)."""
    x, y, z = points_of(low, high, "".join(name for name in "xyz" if name in names_in(condition)))
    return x, y, z


def names_in(condition: Condition) -> set[str]:
    """The names of variables in the expressions of a condition that vary in space."""
    formulas = [value for _, value, _ in functions_in_time(condition) if isinstance(value, SpaceFormula)]
    return {name for value in formulas for name in value.expression.used}


def around(middles: Array, across: Numbers, flat: NDArray[np.bool_], cells: Numbers, grid: Grid) -> tuple[Array, Array]:
    """The lowest and the highest x, y and z in m of faces of cells, or of the middles of curved surfaces.

    Args:
        middles: x, y and z of the surfaces, shape (3, surfaces).
        across: the axis across each surface.
        flat: which of them are faces of cells.
        cells: the cell of each surface, by its index in the flattened grid.
        grid: the cells.
    """
    planes = np.unravel_index(cells, grid.shape)[::-1]
    widths = np.array([axis.widths[places] for axis, places in zip(grid.axes, planes, strict=True)])
    half = 0.5 * widths * (flat & (np.arange(3)[:, None] != across))
    return middles - half, middles + half


def levels_of(boundary: Boundary, number: int, cells: SurfacePoints) -> Iterator[Levels]:
    """The values of a condition that vary over some cells. Collective."""
    condition = boundary.conditions[number]
    names: dict[SpaceFormula, list[str]] = {}
    quantities: dict[SpaceFormula, Quantity] = {}
    for name, value, quantity in functions_in_time(condition):
        if isinstance(value, SpaceFormula):
            # Surroundings are the ambient if they are not set; a resolved scenario has them in any case.
            names.setdefault(value, []).append(name)
            quantities.setdefault(value, quantity)
    bends = [_bends(condition, some[0], value, cells.varies) for value, some in names.items()]
    levels = (LEVELS_OF_TABLES if depends_on_surface(condition) else LEVELS)[min(sum(bends), 3)]
    for (value, some), bent in zip(names.items(), bends, strict=True):
        at = _Key(boundary, f"{boundary.keys[number]}.{some[0]}", value, quantities[value])
        yield at.spread(cells, tuple(some), levels if bent else LEVELS[0])


def _bends(condition: Condition, name: str, value: SpaceFormula, varies: bool) -> bool:
    """Whether mixtures of two values do not give the flux of a value between them."""
    match condition, name:
        case Flux(), _:
            return False
        case Temperature(), _:
            return varies
        case Convection(), "coefficient":
            return varies or radiates(condition) or not value.constant
        case Convection(), "ambient" | "flux":
            return radiates(condition) or depends_on_surface(condition)
    return True


@dataclass(frozen=True)
class _Key:
    """A value that varies over a face: its key in the scenario, the expression and its quantity."""

    boundary: Boundary
    key: str
    value: SpaceFormula
    quantity: Quantity

    def spread(self, cells: SurfacePoints, names: tuple[str, ...], count: int) -> Levels:
        """The levels of the value, and the place of each cell's value between them. Collective.

        Raises:
            ScenarioError: the value is not physical, or does not have the form a(t) + b(t)·f(x, y, z).
        """
        end, products = self.boundary.scenario.time.end, self.value.products()
        if products is None:
            raise self._moving()
        in_space = [factor for factor, in_place in products if in_place.used]
        time, span = self._largest(cells, products, in_space)
        most = int(_PARTS / np.sqrt(max(cells.count, 1)))  # the edge of a jump passes about √n of n cells
        found = self._means(cells, time, most)
        self._check(cells, found, time)
        (lowest, low), (highest, high) = (_extreme(cells, found, sign) for sign in (1.0, -1.0))
        ends = [self.value.at_point(*point) for point in (low, high)]
        for of_end, point in zip(ends, (low, high), strict=True):
            if isinstance(of_end, Formula):
                fault = of_end.fault(self.quantity, end)
            else:
                fault = self.quantity.range_fault(of_end.value)
            if fault is not None:
                place = ", ".join(f"{name} = {at!r}" for name, at in zip("xyz", point, strict=True))
                raise self._mistake(f"got {show(self.value.expression.text)}, at {place}, {fault}")
        if len(in_space) > 1:
            self._refuse_moving(cells, time, products, (lowest, low), (highest, high), span)
        values, part = found.means, np.zeros(found.means.shape)
        if highest > lowest:
            part = (values - lowest) / (highest - lowest)
        below = np.minimum((part * (count - 1)).astype(np.int64), count - 2)
        between = [Blend(ends[0], ends[1], at / (count - 1)) for at in range(1, count - 1)]
        levels: tuple[TimeFunction, ...] = (ends[0], *between, ends[1])
        within = part * (count - 1) - below
        if names == ("coefficient",) and self.value.constant:
            edges = np.array([float(level.at(np.zeros(1))[0]) for level in levels])
            within = _part_of_flux(values, edges[below], edges[below + 1], cells.conductance)
        return Levels(names, levels, below, within)

    def _means(self, cells: SurfacePoints, time: float, most: int) -> SpaceMeans:
        """The means of the value over the cells' surfaces at a time in s. Collective.

        At most ``most`` cells are looked at in parts. The mean of f over a ring is the mean of x·f along x, over the
        mean radius.
        """
        expression = self.value.expression
        found = means_over(expression.with_values(t=time), cells.low, cells.high, most, cells.highest)
        if not cells.turned or "x" not in expression.used:
            return found
        weighted = means_over(expression.times("x").with_values(t=time), cells.low, cells.high, most, cells.highest)
        means = weighted.means * 2.0 / (cells.low[0] + cells.high[0])
        return replace(found, means=np.clip(means, found.lowest, found.highest))

    def _largest(
        self, cells: SurfacePoints, products: Products, in_space: Sequence[TimeFunction]
    ) -> tuple[float, float]:
        """A time in s at which the value varies most over the surface, and its span over all times. Collective.

        Raises:
            ScenarioError: a value is not physical.
        """
        if self.value.constant:
            return 0.0, inf
        end = self.boundary.scenario.time.end
        times = np.unique(np.concatenate([factor.extreme_times(end) for factor, _ in products]))
        lows, highs = _ranges(cells.held, self._table(cells, times))
        # Points may miss what varies; with one shape, its factor tells when it is largest.
        spans = np.abs(in_space[0].at(times)) if len(in_space) == 1 else np.subtract(highs, lows)
        return float(times[int(np.argmax(spans))]), max(highs) - min(lows)

    def _check(self, cells: SurfacePoints, found: SpaceMeans, time: float) -> None:
        """Check that values are physical, and that their integral over the surface is known. Collective."""
        lowest, highest = found.lowest[cells.own], found.highest[cells.own]
        known = np.isfinite(lowest).all() and np.isfinite(highest).all()
        ends = (float(lowest.min()), float(highest.max())) if len(lowest) and known else ()
        if cells.held.any(not known or any(self.quantity.range_fault(end) for end in ends)):
            self._table(cells, np.array([time]))
        squares, magnitudes = np.sum(cells.held.gathered(np.array(found.error(cells.own))), axis=0)
        if not ALIKE * np.sqrt(squares) <= TOLERABLE * magnitudes < inf:
            raise self._mistake(
                f"got {show(self.value.expression.text)}, which is not bounded, or changes so finely within cells that "
                f"its integral over the surface is not known to {TOLERABLE:.1%}; write its mean, use finer cells, or "
                "a patch for the place of the change"
            )

    def _refuse_moving(
        self,
        cells: SurfacePoints,
        time: float,
        products: Products,
        lowest: End,
        highest: End,
        span: float,
    ) -> None:
        """Check that all values move between the lowest and the highest one alike. Collective.

        Args:
            cells: of the surface.
            time: in s, at which the ends are the lowest and the highest value.
            products: of the value.
            lowest: the lowest value and its point.
            highest: the highest value and its point.
            span: of all values at all times.
        """
        (least, low), (most, high) = lowest, highest
        part = (self._values(cells, time) - least) / (most - least if most > least else 1.0)
        off, end = 0.0, self.boundary.scenario.time.end
        for factor, in_place in products:
            first, last = (float(in_place.evaluate(**dict(zip("xyz", point, strict=True)))) for point in (low, high))
            weights = in_place.evaluate(**dict(zip("xyz", cells.points, strict=True)))
            missed = np.abs(weights - (first + (last - first) * part))[cells.own]
            off += max(map(abs, factor.extremes(end))) * float(missed.max(initial=0.0))
        if not max(cells.held.gathered(off)) <= _SAME * span:
            raise self._moving()

    def _table(self, cells: SurfacePoints, times: Array) -> Array:
        """The values at own cells, shape (times, cells, points). Collective.

        Raises:
            ScenarioError: a value is not physical; names the first time and the first cell of all ranks.
        """
        table = np.array([self._values(cells, time)[cells.own] for time in times.tolist()])
        wrong = self._first_wrong(cells, times, table)
        first = min((each for each in cells.held.gathered(wrong) if each is not None), default=None)
        if first is not None:
            raise self._mistake(first[-1])
        return table

    def _values(self, cells: SurfacePoints, time: float) -> Array:
        """The values at all cells at a time, shape (cells, points)."""
        x, y, z = cells.points
        return np.broadcast_to(self.value.expression.evaluate(x=x, y=y, z=z, t=time), x.shape)

    def _first_wrong(self, cells: SurfacePoints, times: Array, table: Array) -> tuple[int, int, str] | None:
        """The first value of this rank that is not physical: the index of its time, the place of its cell, a text."""
        for number, (time, values) in enumerate(zip(times.tolist(), table, strict=True)):
            ends = (values.min(), values.max()) if len(values) else ()
            if all(self.quantity.range_fault(float(end)) is None for end in ends):
                continue
            flat = next(at for at, value in enumerate(values.reshape(-1).tolist()) if self.quantity.range_fault(value))
            at, point = divmod(flat, values.shape[1])
            place = ", ".join(
                f"{name} = {float(along[cells.own[at], point]):.12g}"
                for name, along in zip("xyz", cells.points, strict=True)
            )
            value = float(values[at, point])
            text = (
                f"got {show(self.value.expression.text)}, which is {value!r} at {place}, t = {time!r} s; "
                f"{self.quantity.range_fault(value)}"
            )
            return number, int(cells.order[at]), text
        return None

    def _moving(self) -> ScenarioError:
        return self._mistake(
            f"got {show(self.value.expression.text)}, whose shape over the face changes in time; only a(t) + "
            "b(t)*f(x, y, z) is possible: write a moving source of heat as a beam, or use several patches"
        )

    def _mistake(self, message: str) -> ScenarioError:
        return ScenarioError(self.boundary.scenario.path, [Mistake(self.key, message)])


def _ranges(held: PaintedPlanes, table: Array) -> tuple[list[float], list[float]]:
    """The lowest and the highest value on all ranks at each time; ``table``: of this rank's cells. Collective."""
    own = np.array([table.min(axis=(1, 2), initial=inf), -table.max(axis=(1, 2), initial=-inf)])
    low, high = np.min(held.gathered(own), axis=0)
    return low.tolist(), (-high).tolist()


def _extreme(cells: SurfacePoints, found: SpaceMeans, sign: float) -> End:
    """The lowest (sign 1) or highest (sign −1) value on all ranks, and the point of the first cell that has it.

    Collective.
    """
    values, points = (found.lowest, found.low) if sign > 0.0 else (found.highest, found.high)
    own, best = sign * values[cells.own], None
    if len(own):
        at = int(np.argmin(own))
        x, y, z = points[:, cells.own[at]].tolist()
        best = float(own[at]), int(cells.order[at]), (x, y, z)
    value, _, point = min(each for each in cells.held.gathered(best) if each is not None)
    return sign * value, point


def _part_of_flux(films: Array, low: Array, high: Array, conductance: Array) -> Array:
    """The part of the higher film coefficient with which a mixture passes the flux of a film in series with K."""
    with np.errstate(divide="ignore", invalid="ignore"):
        flux, least, most = (film / (conductance + film) for film in (films, low, high))
        part = (flux - least) / (most - least)
    return np.where((most > least) & (conductance > 0.0), part, 0.0)
