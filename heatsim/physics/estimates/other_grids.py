"""Finer and coarser grids of a scenario on which its parts keep their planes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, pairwise
from math import gcd, log, prod
from typing import NamedTuple

import numpy as np

from heatsim.device import usable_cores
from heatsim.errors import InputError
from heatsim.grid import AXES
from heatsim.scenario import Scenario
from heatsim.scenario.tables.initial import ArrayFile
from heatsim.scenario.tables.regions import Box, Cylinder, Shaped

Cells = tuple[int, int, int]

# How far a plane may lie from a face of cells, as a fraction of a cell.
_ROUNDING = 1e-6
# Celik et al. advise ratios of spacings above 1.3.
LEAST_RATIO, _BEST_RATIO = 1.3, 2.0
_COARSEST, _FINEST = 6.0, 4.5  # ratios to the spacing of the given grid
_LARGEST = 8  # of numerator and denominator of the ratios that are tried
_MOST_SPREAD = 1.1  # between the ratios along the three axes
_FEWEST_CELLS = 4  # along an axis that has as many
# Cells of a grid that is finer than the given one, for each backend; of a steady state four times more.
_MOST_CELLS, _MORE_IF_STEADY = {"cpu": 2**22, "cuda": 2**28}, 4
# The time of `heatsim converge`: s to start; that of the runs on the given grid, as multiples of that of the run; the
# power of the number of cells with which the time of other runs grows.
_START, _SAME_GRID, _POWER = 3.0, 3.0, 0.85
# The power with which the work of a cell grows with the number of cells along an axis.
GROWTH = {"euler": 2.0, "stabilized": 1.0, "implicit": 0.0, "steady": 0.0}
_COARSER = 4.0  # the largest ratio of a coarser grid beside which a run is compared
# How much the choice of grids dislikes more cells, unequal ratios and very coarse grids.
_OF_CELLS, _OF_SPREAD, _OF_COARSE = 0.4, 8.0, 0.5


class Graded(NamedTuple):
    """Cells of several widths along an axis.

    Attributes:
        borders: coordinates in m of the planes between cells.
        planes: the numbers of those at which parts end, and of both ends.
    """

    borders: tuple[float, ...]
    planes: tuple[int, ...]


@dataclass(frozen=True)
class GridChoice:
    """The grids on which a scenario can be computed.

    Attributes:
        given: the cells of the scenario.
        steps: along each axis, conforming grids have a multiple of this number of cells.
        fixed: whether the axis keeps its single cell, because nothing changes along it.
        off_faces: parts of which a plane lies within cells of the given grid, or that are curved.
        graded: the axes with tables of their cells, whose widths differ.
    """

    given: Cells
    steps: Cells
    fixed: tuple[bool, bool, bool]
    off_faces: tuple[str, ...]
    graded: tuple[tuple[str, Graded], ...] = ()

    @classmethod
    def of(cls, scenario: Scenario) -> "GridChoice":
        """The choice for a scenario.

        Raises:
            InputError: a file has one value for each cell.
        """
        _refuse_files_of_cells(scenario)
        grid = scenario.grid
        counts: list[list[int]] = [[], [], []]
        off: list[str] = []
        for name, axis, coordinate in _planes(scenario):
            place = float(grid.axes[axis].places(coordinate))
            if not _ROUNDING < place < grid.cells[axis] - _ROUNDING:
                continue
            if abs(place - round(place)) > _ROUNDING * grid.cells[axis]:
                off.append(f"{name} at {AXES[axis]} = {coordinate:.6g} m")
            else:
                counts[axis].append(round(place))
        x, y, z = (cells // reduce(gcd, found, cells) for cells, found in zip(grid.cells, counts, strict=True))
        a, b, c = (n == 1 and _nothing_along(scenario, axis) for axis, n in enumerate(grid.cells))
        off += [part.name for part in _shaped(scenario) if part.shape is not None and not isinstance(part.shape, Box)]
        graded = {
            axis: Graded(borders, tuple(sorted({0, *found, cells})))
            for axis, borders, found, cells in zip(AXES, grid.borders, counts, grid.cells, strict=True)
            if getattr(scenario.domain, axis) is not None and borders
        }
        return cls(grid.cells, (x, y, z), (a, b, c), tuple(dict.fromkeys(off)), tuple(graded.items()))

    @property
    def dimensions(self) -> int:
        """The number of axes along which the grid can change."""
        return sum(not fixed for fixed in self.fixed)

    def widths(self, cells: Sequence[int]) -> dict[str, list[float]]:
        """The widths in m of a grid along each axis on which they differ, by its name."""
        return {name: _regrid(along, cells[AXES.index(name)]) for name, along in self.graded}

    def ratio(self, cells: Sequence[int]) -> float:
        """The spacing of a grid over that of the given one: the mean of the axes along which they differ."""
        return float((prod(self.given) / prod(cells)) ** (1.0 / max(self.dimensions, 1)))

    def near(self, ratio: float) -> Cells | None:
        """The conforming grid nearest to a ratio of spacings; None if its ratios along the axes differ too much."""
        x, y, z = (
            n if fixed else step * max(round(n / ratio / step), 1)
            for n, step, fixed in zip(self.given, self.steps, self.fixed, strict=True)
        )
        return (x, y, z) if self._spread((x, y, z)) <= _MOST_SPREAD else None

    def _spread(self, cells: Cells) -> float:
        ratios = [n / m for n, m, fixed in zip(self.given, cells, self.fixed, strict=True) if not fixed]
        return max(ratios, default=1.0) / min(ratios, default=1.0)

    def coarser(self) -> list[Cells]:
        """The coarser grids for a comparison of two: those whose cells are about twice as large come first."""
        found = [
            cells
            for cells in _candidates(self, LEAST_RATIO, _COARSER)
            if _apart(self.ratio(cells)) and not self.few(cells)
        ]
        return sorted(found, key=lambda cells: abs(log(self.ratio(cells) / _BEST_RATIO)))

    def work(self, cells: Sequence[int], scenario: Scenario) -> float:
        """The work of a run on another grid, in parts of that on the given one; the scenario has its method."""
        fixed = not isinstance(scenario.time.dt, str) and scenario.time.method == "euler"
        growth = 0.0 if fixed else GROWTH[scenario.time.method]
        return float(self.ratio(cells) ** -(self.dimensions + growth))

    def usual(self, backend: str, steady: bool) -> list[Cells]:
        """The grids of `heatsim converge`, as :meth:`three`; ``backend``: "cpu" or "cuda"."""
        return self.three(max(_MOST_CELLS[backend] * (_MORE_IF_STEADY if steady else 1), prod(self.given)))

    def three(self, most_cells: int) -> list[Cells]:
        """Three grids, the given one among them, the finest first; fewer if no more conform or have few enough cells.

        Args:
            most_cells: of a grid that is finer than the given one.
        """
        return list(_three(self, most_cells))

    def few(self, cells: Cells) -> int:
        """The number of axes with fewer cells than there should be."""
        return sum(m < min(n, _FEWEST_CELLS) for n, m in zip(self.given, cells, strict=True))


def seconds_to_converge(scenario: Scenario, backend: str, seconds: float) -> float | None:
    """The time that `heatsim converge` needs for a scenario; None if the scenario has no other grid.

    Args:
        scenario: the scenario.
        backend: "cpu" or "cuda".
        seconds: that the run has taken.
    """
    try:
        choice = GridChoice.of(scenario)
    except InputError:
        return None
    others = [cells for cells in choice.usual(backend, scenario.steady) if cells != choice.given]
    runs = _SAME_GRID + sum((prod(cells) / prod(choice.given)) ** _POWER for cells in others)
    workers = min(usable_cores(), 2) if backend == "cpu" else 1
    return float(_START + seconds * runs / workers)


@lru_cache(maxsize=64)
def _three(choice: GridChoice, most_cells: int) -> tuple[Cells, ...]:
    """As :meth:`GridChoice.three`; the runs of a study have the same grids."""
    given, size = choice.given, prod(choice.given)
    found = _candidates(choice, 1.0 / _FINEST, _COARSEST)
    spacings = {cells: choice.ratio(cells) for cells in (given, *found)}
    unequal = {cells: log(choice._spread(cells)) for cells in spacings}
    few = {cells: choice.few(cells) for cells in spacings}
    others = [
        cells for cells in found if (prod(cells) <= most_cells or spacings[cells] > 1.0) and _apart(spacings[cells])
    ]

    def cost(grids: Sequence[Cells], ratios: Sequence[float]) -> float:
        """How little some grids suit, the finest first: by ratios, number of cells, unequal axes, few cells."""
        cost = sum(abs(log(ratio / _BEST_RATIO)) for ratio in ratios)
        cost += _OF_CELLS * log(max(1.0, prod(grids[0]) / size))
        cost += _OF_SPREAD * sum(unequal[cells] for cells in grids)
        return cost + _OF_COARSE * sum(few[cells] for cells in grids)

    for count in (2, 1):
        sets = [sorted((given, *some), key=spacings.__getitem__) for some in combinations(others, count)]
        ratios = [[spacings[b] / spacings[a] for a, b in pairwise(some)] for some in sets]
        costs = [(cost(*of), of[0]) for of in zip(sets, ratios, strict=True) if all(map(_apart, of[1]))]
        if costs:
            return tuple(min(costs, key=lambda of: of[0])[1])
    return (given,)


def _candidates(choice: GridChoice, least: float, most: float) -> list[Cells]:
    """Conforming grids whose ratios of spacings to the given one were to be from ``least`` to ``most``; each once."""
    ratios = {p / q for p in range(1, _LARGEST + 1) for q in range(1, _LARGEST + 1)}
    found = (choice.near(ratio) for ratio in sorted(ratios) if least <= ratio <= most)
    return [cells for cells in dict.fromkeys(found) if cells is not None]


def _apart(ratio: float) -> bool:
    return max(ratio, 1.0 / ratio) >= LEAST_RATIO * (1.0 - 1e-9)


def _planes(scenario: Scenario) -> Iterator[tuple[str, int, float]]:
    """The planes that a conforming grid has between cells: a name, the axis and the coordinate in m.

    Rectangles of layers and patches are none: cells at their edges count with the part that they cover.
    """
    for part in _shaped(scenario):
        match part.shape:
            case Box(min=low, max=high):
                for axis in range(3):
                    yield from ((part.name, axis, corner[axis]) for corner in (low, high))
            case Cylinder(from_=start, to=end):
                across = [axis for axis in range(3) if start[axis] != end[axis]]
                if len(across) == 1:
                    yield from ((part.name, across[0], point[across[0]]) for point in (start, end))
    for layer in scenario.layers:
        yield layer.name, layer.plane.across, layer.plane.at


def _shaped(scenario: Scenario) -> tuple[Shaped, ...]:
    return (*scenario.regions, *scenario.sources)


def _nothing_along(scenario: Scenario, axis: int) -> bool:
    """Whether the faces across an axis pass no heat, so that one cell along it is exact."""
    faces = [f"{AXES[axis]}_{end}" for end in ("min", "max")]
    types = {scenario.boundaries.face(face).type for face in faces}
    return types <= {"insulated", "periodic"} and not any(patch.face in faces for patch in scenario.patches)


def _regrid(along: Graded, cells: int) -> list[float]:
    """The widths of another number of cells along an axis: the logarithms of widths are interpolated between parts."""
    widths, found = np.diff(along.borders), list[float]()
    if cells == len(widths):
        return [float(width) for width in widths]
    for first, last in pairwise(along.planes):
        count, own = (last - first) * cells // len(widths), np.log(widths[first:last])
        places = (np.arange(count) + 0.5) * ((last - first) / count) - 0.5
        # Beyond the middles of the first and the last cell they go on as between their neighbours.
        own = np.concatenate((2.0 * own[:1] - own[1:2], own, 2.0 * own[-1:] - own[-2:-1]))
        new = np.exp(np.interp(places, np.arange(len(own)) - (len(own) - (last - first)) / 2.0, own))
        found += (new * ((along.borders[last] - along.borders[first]) / new.sum())).tolist()
    return found


def _refuse_files_of_cells(scenario: Scenario) -> None:
    labelled = [f'label image of region "{region.name}"' for region in scenario.regions if region.labels is not None]
    if isinstance(scenario.initial.temperature, ArrayFile):
        labelled.append("field in initial.temperature.file")
    if labelled:
        raise InputError(
            f"{scenario.path}: the {' and the '.join(labelled)} has one value for each cell, so there is no other grid "
            "to compare with; describe the parts by shapes, or write the file for two other grids and compare the runs"
        )
