"""The initial temperature, a few planes at a time, so that a large grid needs no second copy."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.geometry.regions import Parts, paint
from heatsim.physics.layers.layering import NO_LAYERS, Layering
from heatsim.scenario import ArrayFile, Expression, ImageFile, Scenario
from heatsim.scenario.stored_field import Planes

Array = NDArray[np.float64]

_CELLS_PER_SLAB = 2**22


class Unevenness(NamedTuple):
    """How an initial field varies.

    Attributes:
        steps: the largest difference between neighbouring cells along x, y and z in K, shape (3,).
        slopes: the steepest change between them in K for each mean width of a cell, shape (3,).
        faces: the lowest and highest temperature of the cells at each face of the box in K, shape (6, 2).
    """

    steps: Array
    slopes: Array
    faces: Array


@dataclass(frozen=True)
class InitialField:
    """The initial temperature of a scenario.

    Attributes:
        scenario: the scenario.
        lowest, highest: its range in K.
        owner: the region of each cell, as in ``Parts``; None if no region has an initial temperature.
        void: whether each cell is void, where a file may have no temperature; None if it has all.
        layering: what layers change; an expression counts at the nodes of their cells.
        held: the planes of ``owner`` and ``void``.
    """

    scenario: Scenario
    lowest: float
    highest: float
    owner: NDArray[np.uint8] | None = None
    void: NDArray[np.bool_] | None = None
    layering: Layering = NO_LAYERS
    held: PaintedPlanes = EVERYTHING

    @classmethod
    def from_scenario(
        cls,
        scenario: Scenario,
        parts: Parts | None = None,
        layering: Layering = NO_LAYERS,
        held: PaintedPlanes | None = None,
    ) -> "InitialField":
        """Check the whole field and find its range. Collective.

        Args:
            scenario: the scenario.
            parts: its painted regions; None to paint them if needed.
            layering: what layers change.
            held: the planes of this rank; None for those of ``parts``, or all.

        Raises:
            ScenarioError: a value is not finite or below 0 K; the message names the cell.
        """
        lowest, highest = np.inf, -np.inf
        held = held or (EVERYTHING if parts is None else parts.held)
        temperature = scenario.initial.temperature
        owner = void = None
        if any(region.initial_temperature is not None for region in scenario.regions):
            parts = parts or paint(scenario, held)
            owner = parts.owner
        if isinstance(temperature, ArrayFile) and temperature.missing is not None:
            parts = parts or paint(scenario, held)
            void = parts.material == len(scenario.palette) - 1
        found = cls(scenario, lowest, highest, owner, void, layering, held)
        alike = owner is None and isinstance(temperature, float)
        first, last = held.own_planes(scenario.grid.shape[0])
        with held.team.agreeing():
            for z, slab in [(0, np.full((1, 1, 1), temperature))] if alike else found.slabs(first, last):
                _check(scenario, z, slab)
                lowest, highest = min(lowest, float(slab.min())), max(highest, float(slab.max()))
        return replace(found, lowest=min(held.gathered(lowest)), highest=max(held.gathered(highest)))

    @property
    def uniform(self) -> bool:
        """Whether all cells have the same initial temperature; then it is the reference."""
        return self.lowest == self.highest

    @property
    def reference(self) -> float:
        """The reference temperature in K for deviations: the middle of the range."""
        return self.lowest if self.uniform else 0.5 * (self.lowest + self.highest)

    def unevenness(self) -> "Unevenness":
        """How much neighbouring cells differ, and what cells at the faces of the box have. Collective."""
        first, last = self.held.own_planes(self.scenario.grid.shape[0])
        steps, slopes, below = np.zeros(3), np.zeros(3), None
        faces = np.tile((np.inf, -np.inf), (6, 1))
        if self.uniform:
            return Unevenness(steps, slopes, np.full((6, 2), self.lowest))
        shared = min(last + 1, self.scenario.grid.shape[0])  # with the rank above
        for z, slab in self.slabs(first, shared):
            with_below = slab if below is None else np.concatenate((below, slab))
            for axis, along in enumerate((2, 1, 0)):
                differences = np.abs(np.diff(with_below, axis=along))
                start = z + len(slab) - len(with_below) if axis == 2 else 0
                nearness = self._nearness(axis)[start : start + differences.shape[along]]
                steps[axis] = max(steps[axis], differences.max(initial=0.0))
                by_distance = np.moveaxis(differences, along, -1) * nearness
                slopes[axis] = max(slopes[axis], by_distance.max(initial=0.0))
                ends = slab.take((0, -1), axis=along)
                for upper in (0, 1):
                    if axis < 2 or z + (len(slab) - 1) * upper == (self.scenario.grid.shape[0] - 1) * upper:
                        values, face = ends.take(upper, axis=along), faces[2 * axis + upper]
                        face[:] = min(face[0], values.min()), max(face[1], values.max())
            below = slab[-1:]
        own = np.concatenate((np.column_stack((steps, steps)), np.column_stack((slopes, slopes)), faces))
        of_ranks = np.array(self.held.gathered(own.tolist()))
        low, high = of_ranks[:, :, 0].min(axis=0), of_ranks[:, :, 1].max(axis=0)
        return Unevenness(high[:3], high[3:6], np.column_stack((low, high))[6:])

    def _nearness(self, axis: int) -> Array:
        """The mean width of cells over the distance between neighbouring centres, shape (n − 1,)."""
        along = self.scenario.grid.axes[axis]
        return np.asarray(2.0 / (along.half_factors[:-1, 1] + along.half_factors[1:, 0]))

    def slabs(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, Array]]:
        """The grid from the bottom up: (first z index, temperatures in K of shape (planes, ny, nx)).

        Args:
            first: the first plane that is needed; the rank must hold it.
            last: the end of the needed planes; None for all of them.
        """
        grid, temperature = self.scenario.grid, self.scenario.initial.temperature
        nz, ny, nx = grid.shape
        planes, end = max(1, _CELLS_PER_SLAB // (nx * ny)), nz if last is None else last
        # The same slabs for any part of the grid, so that no value depends on where a run is cut.
        for begin, whole in _evaluated(self.scenario, self.layering, first // planes * planes, end, planes):
            low, high = max(begin, first), min(begin + len(whole), end)
            slab = whole[low - begin : high - begin]
            if self.void is not None and isinstance(temperature, ArrayFile):
                empty = np.isnan(slab) & self.void[self.held.local(slice(low, high))]
                slab = np.where(empty, temperature.lowest, slab)
            if self.owner is not None:
                slab, owner = np.array(slab), self.owner[self.held.local(slice(low, high))]
                for number, region in enumerate(self.scenario.regions, 1):
                    if region.initial_temperature is not None:
                        slab[owner == number] = region.initial_temperature
            yield low, slab


def _evaluated(
    scenario: Scenario, layering: Layering, begin: int, end: int, planes: int
) -> Iterator[tuple[int, Array]]:
    """The temperatures without those of regions, ``planes`` planes at a time, from plane ``begin`` on."""
    grid, temperature = scenario.grid, scenario.initial.temperature
    nz, ny, nx = grid.shape
    x, y, z = (grid.centres(axis) for axis in range(3))
    array, image = _read_file(scenario)
    for first in range(begin, end, planes):
        last = min(first + planes, nz)
        shape = (last - first, ny, nx)
        if array is not None:
            slab = np.asarray(array[first:last], dtype=np.float64)
        elif image is not None:
            slab = np.broadcast_to(image, shape)
        elif isinstance(temperature, Expression):
            slab = np.broadcast_to(
                temperature.evaluate(x=x[None, None, :], y=y[None, :, None], z=z[first:last, None, None]), shape
            )
            if len(layering.cells):
                slab = np.array(slab)
                _set_at_nodes(slab, temperature, scenario, layering, first * ny * nx)
        else:
            slab = np.full(shape, temperature)
        yield first, slab


def _set_at_nodes(slab: Array, temperature: Expression, scenario: Scenario, layering: Layering, start: int) -> None:
    """Set the temperatures of cells with layers; ``start`` is the index of the slab's first cell."""
    grid = scenario.grid
    here = slice(*np.searchsorted(layering.cells, (start, start + slab.size)))
    cells, node = layering.cells[here], layering.node[here]
    index = np.unravel_index(cells, grid.shape)[::-1]
    x, y, z = (
        axis.centres[index[number]] + node[:, number] * axis.widths[index[number]] / 2.0
        for number, axis in enumerate(grid.axes)
    )
    slab.reshape(-1)[cells - start] = temperature.evaluate(x=x, y=y, z=z)


def _read_file(scenario: Scenario) -> tuple[NDArray[Any] | Planes | None, Array | None]:
    """The array, or the layer of the picture, from which the temperature comes; None for both if there is no file.

    Raises:
        ScenarioError: the file was changed or removed since the scenario was read.
    """
    grid, temperature = scenario.grid, scenario.initial.temperature
    nx, ny, _ = grid.cells
    try:
        if isinstance(temperature, ArrayFile):
            array = temperature.load()
            if array.shape != grid.shape:
                raise ValueError(f"has shape {array.shape}; domain.cells needs (nz, ny, nx) = {grid.shape}")
            return array, None
        return None, temperature.load(nx, ny) if isinstance(temperature, ImageFile) else None
    except ValueError as error:
        assert isinstance(temperature, ArrayFile | ImageFile), "nothing else reads a file"
        file = temperature.file if isinstance(temperature, ArrayFile) else temperature.image
        message = f"{file.path} was changed or removed after it was checked: it {error}; restore it and start again"
        raise ScenarioError(scenario.path, [Mistake("initial.temperature", message)]) from None


def _check(scenario: Scenario, first: int, slab: Array) -> None:
    wrong = ~(np.isfinite(slab) & (slab >= 0.0))
    if wrong.any():
        k, j, i = (int(index[0]) for index in np.nonzero(wrong))
        point = ", ".join(repr(float(scenario.grid.centres(axis)[n])) for axis, n in enumerate((i, j, first + k)))
        problem = (
            f"is {float(slab[k, j, i])!r} K at ({point}) m, cell [{i}, {j}, {first + k}]; allowed: finite and ≥ 0 K"
        )
        raise ScenarioError(scenario.path, [Mistake("initial.temperature", problem)])
