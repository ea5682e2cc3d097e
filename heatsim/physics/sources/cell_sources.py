"""Find the cells that sources heat individually, and the entries of each cell (see cell_heat.py)."""

from dataclasses import dataclass, replace
from math import ceil, floor, inf

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES
from heatsim.physics.cells.cell_heat import NO_HEATED_CELLS, WIDEST, Amount, DensityTable, HeatedCells
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.geometry.regions import Parts, source_mask
from heatsim.physics.sources.beam_columns import absorbed_by, hits
from heatsim.scenario import Constant, Scenario, Source, SpaceFormula, TimeFunction
from heatsim.scenario.messages import show
from heatsim.scenario.values.course import refined
from heatsim.scenario.values.expressions import Expression
from heatsim.scenario.values.materialfunction import MaterialFormula, MaterialFunction, MaterialTable
from heatsim.scenario.values.moments import MOST_MOMENTS, moments_of
from heatsim.scenario.values.products import MOST_TERMS
from heatsim.scenario.values.quantities import LARGEST, POWER_DENSITY
from heatsim.scenario.values.space_means import ALIKE, POINTS, TOLERABLE, changes_much, gauss_means, means_over
from heatsim.scenario.values.timefunction import Formula

Array = NDArray[np.float64]
Cells = NDArray[np.int64]

_START = np.zeros(1)
# In parts of the largest value of a density: changes within a cell up to which two points along each axis are enough,
# above which its mean is found to rounding, above which a density that moves is refused; and what rules may differ by.
_EVEN, _SMOOTH, _MOVING, _SAME_MEAN = 5e-4, 0.05, 0.9, 1e-7
_BLOCK, _VALUES = 8, 2**22  # cells along a block; values from which the means of all cells are found at most
_SAME = 1e-9  # rounding of a sum of products, in parts of its largest value
# Numbers of steps of a table, as powers of 2. The table is fine enough at this relative error of each value; values
# below this fraction of the largest one are not checked.
_FEWEST, _MOST, _PRECISION, _LEAST = 8, 18, 1e-5, 1e-20
_BESIDE = 0.01  # of the temperatures that can occur: what a table covers on either side of them


@dataclass(frozen=True, eq=False)
class _Entries:
    """One entry for each of some cells.

    Attributes:
        cells: by their index in the flattened grid.
        number: of the amount, or (number of amounts) + (number of the beam).
        weights: see cell_heat.py, shape (n,).
        spots: of a beam, shape (n, 2); None for other sources.
    """

    cells: Cells
    number: int
    weights: Array
    spots: NDArray[np.int32] | None = None


def find(scenario: Scenario, materials: CellTypes, parts: Parts | None) -> HeatedCells:
    """The cells that sources of a scenario heat individually: those of the whole grid, on all ranks. Collective.

    Args:
        scenario: the scenario.
        materials: the cell types.
        parts: the painted cells; None if nothing is painted.

    Raises:
        ScenarioError: a density is not finite, its shape moves, or it is 0 in all cells; or a beam heats nothing.
    """
    finder = _HeatFinder(scenario, materials, parts)
    for number, source in enumerate(scenario.sources):
        if source.beam is None and not source.even:
            finder.add(number, source)
    beams = [(index, source.beam) for index, source in enumerate(scenario.sources) if source.beam is not None]
    for number, (index, beam) in enumerate(beams):
        if not hits(beam, scenario, materials):
            message = f"{show(scenario.sources[index].name)} heats nothing: there is no conducting cell behind its path"
            raise ScenarioError(scenario.path, [Mistake(f"sources.{index}.beam.path", message)])
        absorbed = absorbed_by(beam, scenario, materials)
        if len(absorbed.cells):
            weights, spots = absorbed.weights, absorbed.spots
            finder.entries.append(_Entries(absorbed.cells, len(finder.amounts) + number, weights, spots))
        finder.light(FACES.index(beam.face), absorbed.lit)
    return finder.found()


class _HeatFinder:
    """Gathers entries."""

    def __init__(self, scenario: Scenario, materials: CellTypes, parts: Parts | None) -> None:
        self._scenario, self._materials, self._parts = scenario, materials, parts
        self.entries: list[_Entries] = []
        self.amounts: list[Amount] = []
        self._tables: list[DensityTable] = []
        self._lit = np.zeros(0, np.uint8)

    def add(self, number: int, source: Source) -> None:
        """Add the entries of a source in the body."""
        cells, density = self._cells_of(source), source.power_density
        if isinstance(density, MaterialFunction):
            self._tables.append(self._table(number, source, density))
            self._enter(cells, Amount(number, Constant(1.0), len(self._tables) - 1), np.ones(len(cells)))
        elif isinstance(density, SpaceFormula):
            self._add_values(number, cells, density)
        else:
            assert source.nominal is not None
            assert source.distribution is not None
            weights = self._values(number, "distribution", source.distribution, cells, _START)[0]
            weights = self._means(number, "distribution", source.distribution.expression, cells, weights)
            grid = self._materials.grid
            whole = float((weights * grid.volume_factors(cells)).sum()) * grid.mean_volume
            if weights.min() < 0.0 or whole <= 0.0:
                message = f"got {show(source.distribution.expression.text)}, which is "
                message += f"{float(weights.min())!r} in a cell" if weights.min() < 0.0 else "0 in all cells"
                raise self._mistake(number, "distribution", f"{message}; values of at least 0 are expected, not all 0")
            self._enter(cells, Amount(number, Constant(source.nominal)), weights / whole)

    def light(self, side: int, places: Cells) -> None:
        """Add the sides of weighted cells that a beam hits; ``places`` are indices among the held cells. Collective."""
        if self._materials.held.any(len(places) > 0):
            if not len(self._lit):
                self._lit = np.zeros(len(self._materials.weighted_surfaces.cells), np.uint8)
            self._lit[places] |= np.uint8(1 << side)

    def found(self) -> HeatedCells:
        """All entries, cell by cell."""
        if not self.entries:
            return replace(NO_HEATED_CELLS, lit=self._lit) if len(self._lit) else NO_HEATED_CELLS
        cells = np.concatenate([entries.cells for entries in self.entries])
        order = np.argsort(cells, kind="stable")
        numbers = np.concatenate([np.full(len(each.cells), each.number, np.int32) for each in self.entries])
        weights = np.concatenate([entries.weights for entries in self.entries])
        spots = np.zeros((0, 2), np.int32)
        if any(entries.spots is not None for entries in self.entries):
            nothing = [np.zeros((len(each.cells), 2), np.int32) for each in self.entries]
            pairs = zip(self.entries, nothing, strict=True)
            spots = np.concatenate([none if each.spots is None else each.spots for each, none in pairs])[order]
        own, first = np.unique(cells[order], return_index=True)
        grid = self._materials.grid
        nx, ny, _ = grid.cells
        types = self._materials.types_at(own % nx, own // nx % ny, own // (nx * ny))
        return HeatedCells(
            cells=own,
            first=np.append(first, len(order)).astype(np.int64),
            numbers=numbers[order],
            weights=weights[order],
            spots=spots,
            heat_capacity=self._materials.heat_capacity[types],
            amounts=tuple(self.amounts),
            tables=tuple(self._tables),
            volume=grid.mean_volume,
            volume_factors=grid.volume_factors(own),
            lit=self._lit,
        )

    def _enter(self, cells: Cells, amount: Amount, weights: Array) -> None:
        some = np.flatnonzero(weights != 0.0)
        self.amounts.append(amount)
        self.entries.append(_Entries(cells[some], len(self.amounts) - 1, weights[some]))

    def _cells_of(self, source: Source) -> Cells:
        """The cells that a source heats."""
        grid = self._materials.grid
        if self._parts is None:
            return np.arange(grid.cell_count, dtype=np.int64)
        held = self._parts.held
        first, _ = held.own_planes(grid.shape[0])
        own = np.flatnonzero(source_mask(source, self._scenario, self._parts)[held.own]).astype(np.int64)
        return np.concatenate(held.gathered(own + first * grid.cells[0] * grid.cells[1]))

    def _add_values(self, number: int, cells: Cells, density: SpaceFormula) -> None:
        """Add a density that varies in space or time."""
        products = density.products()
        if products is None:
            self._add_moments(number, cells, density)
            return
        end, points = self._scenario.time.end, dict(zip("xyz", self._points(cells), strict=True))
        at_centres = [in_place.evaluate(**points) for _, in_place in products]
        pairs = zip((in_place for _, in_place in products), at_centres, strict=True)
        means = [self._means(number, "power_density", in_place, cells, values) for in_place, values in pairs]
        some = [place for place, weights in enumerate(means) if weights.any()] or [0]
        functions = [products[place][0] for place in some]
        for function in functions:
            self._check(number, density, function)
        times = np.unique(np.concatenate([function.extreme_times(end) for function in functions]))
        exact = self._values(number, "power_density", density, cells, times)
        found = sum(products[place][0].at(times)[:, None] * at_centres[place] for place in some)
        if not (np.abs(found - exact) <= _SAME * np.abs(exact).max()).all():
            message = (
                f"got {show(density.expression.text)}, whose parts f(t)·g(x, y, z) are so much larger than their sum "
                "that rounding spoils it; write it as products of smaller numbers"
            )
            raise self._mistake(number, "power_density", message)
        for function, place in zip(functions, some, strict=True):
            self._enter(cells, Amount(number, function), means[place])

    def _add_moments(self, number: int, cells: Cells, density: SpaceFormula) -> None:
        """Add a density that is no sum of products f(t)·g(x, y, z), from its values at a few moments."""
        end, points = self._scenario.time.end, dict(zip("xyz", self._points(cells), strict=True))
        moments = moments_of(density.expression, end, points) if len(cells) else []
        if moments is None:
            message = (
                f"got {show(density.expression.text)}, which is no sum of at most {MOST_TERMS} products "
                f"f(t)·g(x, y, z): its shape moves, and until {end:.6g} s by so much that its values at {MOST_MOMENTS} "
                "moments do not give it to a millionth; write a moving heat source as a beam with a path, or several "
                "sources that are each switched on `during` a part of the time"
            )
            raise self._mistake(number, "power_density", message)
        values = self._values(number, "power_density", density, cells, np.array([moment.time for moment in moments]))
        for moment, weights in zip(moments, values, strict=True):
            largest = float(np.abs(weights).max())
            in_place = density.expression.with_values(t=moment.time)
            if len(self._changing(in_place, cells, _MOVING * largest)):
                message = (
                    f"got {show(density.expression.text)}, whose shape moves and at {moment.time:.6g} s changes within "
                    "a cell by about its largest value: cells are too large for it; use more domain.cells, or write a "
                    "moving heat source as a beam with a path"
                )
                raise self._mistake(number, "power_density", message)
            means = self._means(number, "power_density", in_place, cells, weights)
            self._enter(cells, Amount(number, Formula(moment.factor, end)), means)

    def _check(self, number: int, density: SpaceFormula, in_time: TimeFunction) -> None:
        """See that a factor in time is finite at all times."""
        if not isinstance(in_time, Formula):
            return
        fault = in_time.fault(POWER_DENSITY, self._scenario.time.end)
        if fault is not None:
            text = f"got {show(density.expression.text)}, with the factor {show(in_time.expression.text)} in time"
            raise self._mistake(number, "power_density", f"{text}, {fault}")

    def _values(self, number: int, key: str, formula: SpaceFormula, cells: Cells, times: Array) -> Array:
        """The values of an expression at times in s at the centres of cells, shape (times, cells); all are in range."""
        x, y, z = self._points(cells)
        variables = {"x": x, "y": y, "z": z, "t": times[:, np.newaxis]}
        names = formula.expression.names
        values = formula.expression.evaluate(**{name: variables[name] for name in names})
        values = np.broadcast_to(values, (len(times), len(cells)))
        with np.errstate(invalid="ignore"):
            wrong = np.argwhere(~(np.abs(values) <= LARGEST))
        if len(wrong):
            time, cell = wrong[0]
            place = ", ".join(f"{name} = {float(axis[cell])!r}" for name, axis in zip("xyz", (x, y, z), strict=True))
            value = f"which is {float(values[time, cell])!r} at {place}, t = {float(times[time])!r} s"
            allowed = f"values must be finite in all cells of the source, and at most {LARGEST!r}"
            raise self._mistake(number, key, f"got {show(formula.expression.text)}, {value}; {allowed}")
        return values

    def _means(self, number: int, key: str, expression: Expression, cells: Cells, at_centres: Array) -> Array:
        """The means of an expression over cells, from its values at their centres if these are not finite.

        Rings grow with the radius x: the mean of f over a ring is the mean of x·f along x, over the mean radius.

        Raises:
            ScenarioError: as :meth:`_means_along`.
        """
        if not self._materials.grid.radial or "x" not in expression.used or not np.isfinite(at_centres).all():
            return self._means_along(number, key, expression, cells, at_centres)
        radii = self._points(cells)[0]
        return self._means_along(number, key, expression.times("x"), cells, radii * at_centres) / radii

    def _means_along(self, number: int, key: str, expression: Expression, cells: Cells, at_centres: Array) -> Array:
        """The means of an expression along x, y and z between the borders of cells; arguments as :meth:`_means`.

        All cells take Gauss's rule with two points along each axis, and those within which the expression changes
        that with three. Where these differ, where it changes by more than a twentieth of its largest value, or may
        jump, its mean is found to rounding (see space_means.py). Blocks of cells tell first where it hardly changes.

        Raises:
            ScenarioError: the heat is not known well enough, because the expression is not bounded or too fine.
        """
        used = "".join(name for name in "xyz" if name in expression.used)
        if not used or not len(cells) or not np.isfinite(at_centres).all():
            return at_centres  # what is not finite at a centre is told with its place
        # Cells that differ along other axes only have the same mean.
        grid = self._materials.grid
        columns = np.zeros(len(cells), np.int64)
        for axis, place in enumerate(self._places(cells)):
            columns = columns * grid.cells[axis] + place if "xyz"[axis] in used else columns
        if len(used) == 3:
            first = which = np.arange(len(cells))
        else:
            _, first, which = np.unique(columns, return_index=True, return_inverse=True)
            which = which.reshape(-1)
        low, high, which_box = self._blocks(cells[first], 1)
        means = gauss_means(expression, low, high, used, 2)[which_box]
        largest = float(np.abs(at_centres).max(initial=0.0))
        changing = self._changing(expression, cells[first], _EVEN * largest)
        wide = self._changing(expression, cells[first[changing]], _SMOOTH * largest)
        low, high, which_box = self._blocks(cells[first[changing]], 1)
        better = gauss_means(expression, low, high, used, 3)[which_box]
        differ = ~(np.abs(better - means[changing]) <= _SAME_MEAN * largest)
        differ[wide] = True
        means[changing] = better
        some = np.union1d(changing[differ], np.flatnonzero(~np.isfinite(means)))
        low, high, which_box = self._blocks(cells[first[some]], 1)
        parts = _VALUES // (POINTS ** len(used) * max(len(some), 1))
        found = means_over(expression, low, high, parts).of(which_box)
        means[some] = found.means
        volumes, others = np.bincount(which, grid.volume_factors(cells), len(first)), np.ones(len(first), dtype=bool)
        others[some] = False
        whole = float(volumes[others] @ np.abs(means[others]) + volumes[some] @ found.magnitudes)
        if not ALIKE * np.linalg.norm(volumes[some] * found.missed) <= TOLERABLE * whole < inf:
            raise self._mistake(
                number,
                key,
                f"got {show(expression.text)}, which is not bounded, or changes so finely within cells that its heat "
                f"is not known to {TOLERABLE:.1%}; write its mean, use more domain.cells, or a region for the place "
                "of the change",
            )
        return np.asarray(means[which])

    def _changing(self, expression: Expression, cells: Cells, allowed: float) -> NDArray[np.intp]:
        """The places of the cells within which values may differ by more than ``allowed``, or may jump."""
        some = np.arange(len(cells))
        for width in (_BLOCK, 1):
            low, high, which = self._blocks(cells[some], width)
            some = some[changes_much(expression, low, high, allowed, 0.0)[which]]
        return some

    def _blocks(self, cells: Cells, width: int) -> tuple[Array, Array, Cells]:
        """Blocks of ``width`` cells along each axis: those that contain some cells.

        Returns:
            The lowest and the highest x, y and z of each block in m, and the number of the block of each cell.
        """
        grid, places = self._materials.grid, self._places(cells) // width
        counts = [-(-count // width) for count in grid.cells]
        keys, which = np.unique(np.ravel_multi_index(tuple(places), counts), return_inverse=True)
        blocks = np.array(np.unravel_index(keys, counts))
        ends = np.minimum((blocks + 1) * width, np.array(grid.cells)[:, None])
        low, high = (
            np.array([axis.coordinates(place) for axis, place in zip(grid.axes, places, strict=True)])
            for places in (blocks * width, ends)
        )
        return low, high, which.reshape(-1)

    def _places(self, cells: Cells) -> Cells:
        """The indices x, y, z of cells, shape (3, cells)."""
        nx, ny, _ = self._materials.grid.cells
        return np.stack([cells % nx, cells // nx % ny, cells // (nx * ny)])

    def _points(self, cells: Cells) -> tuple[Array, Array, Array]:
        """The centres of cells: x, y and z in m."""
        grid = self._materials.grid
        x, y, z = (grid.centres(axis)[place] for axis, place in enumerate(self._places(cells)))
        return x, y, z

    def _table(self, number: int, source: Source, density: MaterialFunction) -> DensityTable:
        """The table of a density that depends on temperature."""
        low, high = source.temperature_range or WIDEST
        if isinstance(density, MaterialTable):
            low, high = density.temperatures[0], density.temperatures[-1]
        try:
            return tabulate(density, low, high)
        except ValueError as error:
            text = density.expression.text if isinstance(density, MaterialFormula) else ""
            remedy = "write temperature_range = [lowest, highest], the range in which the expression holds"
            raise self._mistake(number, "power_density", f"got {show(text)}, {error}; {remedy}") from None

    def _mistake(self, number: int, key: str, message: str) -> ScenarioError:
        return ScenarioError(self._scenario.path, [Mistake(f"sources.{number}.{key}", message)])


def followed(heated: HeatedCells, scenario: Scenario, low: float, high: float, resolution: float) -> HeatedCells:
    """With tables between the temperatures that can occur, where others do not follow their densities there.

    Args:
        heated: the cells that sources heat.
        scenario: the scenario.
        low: the lowest temperature in K that can occur.
        high: the highest one.
        resolution: by how many K a table may displace temperatures.
    """
    tables = list(heated.tables)
    for amount in heated.amounts:
        if amount.table >= 0:
            table, density = tables[amount.table], scenario.sources[amount.source].power_density
            assert isinstance(density, MaterialFunction)
            beside = _BESIDE * (high - low) + resolution
            ends = max(table.low, low - beside), min(table.high, high + beside)
            if ends[0] < ends[1] and not _follows(table, density, *ends, resolution):
                for power in range(_FEWEST, _MOST + 1):
                    values = density.at(np.linspace(*ends, 2**power + 1))
                    table = DensityTable(ends[0], 2**power / (ends[1] - ends[0]), values)
                    if _follows(table, density, *ends, resolution):
                        break
            tables[amount.table] = table
    return replace(heated, tables=tuple(tables))


def _follows(table: DensityTable, density: MaterialFunction, low: float, high: float, resolution: float) -> bool:
    """Whether a table is right between two temperatures in K, or has the values that are up to ``resolution`` K away.

    Straight lines have the values of the density between their ends: none is farther away than a step is long.
    """
    if table.per_kelvin * resolution >= 1.0:
        return True
    first, last = ((T - table.low) * table.per_kelvin for T in (low, high))
    nodes = table.low + np.arange(floor(first), ceil(last) + 1) / table.per_kelvin
    T = np.clip(refined(np.union1d(nodes, density.nodes(low, high)), 2), low, high)
    values, (found, slopes) = density.at(T), table.at(T)
    missed = np.abs(found - values)
    right = missed <= np.maximum(_LEAST * np.abs(values).max(), _PRECISION * np.abs(values))
    return bool((right | (missed <= resolution * np.abs(slopes))).all())


def tabulate(density: MaterialFunction, low: float, high: float) -> DensityTable:
    """A function of temperature as a table with equal steps.

    Args:
        density: in W/m³.
        low: the lowest temperature in K; below it the table keeps its value.
        high: the highest one.

    Raises:
        ValueError: a value is not finite, too large, or grows without bound; the message is for the user.
    """
    poles = density.poles(low, high)
    if len(poles):
        raise ValueError(f"which grows without bound near {float(poles[0]):.6g} K")
    for power in range(_FEWEST, _MOST + 1):
        T = np.linspace(low, high, 2 ** (power + 1) + 1)
        values = density.at(T)
        faults = [POWER_DENSITY.range_fault(float(value)) for value in (values.min(), values.max())]
        if faults != [None, None]:
            wrong = next(place for place, value in enumerate(values.tolist()) if POWER_DENSITY.range_fault(value))
            raise ValueError(
                f"which is {float(values[wrong])!r} at {float(T[wrong])!r} K; "
                f"{POWER_DENSITY.range_fault(float(values[wrong]))}"
            )
        nodes, middles = values[::2], values[1::2]
        error = np.abs(0.5 * (nodes[1:] + nodes[:-1]) - middles)
        # The rate of a reaction at room temperature is many powers of ten smaller than at its hottest.
        allowed = np.maximum(_LEAST * np.abs(values).max(), _PRECISION * np.abs(middles))
        if (error <= allowed).all():
            break
    at_bends = density.at(density.nodes(low, high))
    most = (1.0 + _PRECISION) * np.abs(nodes).max()
    missed = at_bends[np.abs(at_bends) > most]
    return DensityTable(low, 2**power / (high - low), nodes, (missed.min(initial=inf), missed.max(initial=-inf)))
