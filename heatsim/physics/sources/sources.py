"""Heat set free in the body, and beams on its faces, averaged over each time step.

A power is spread evenly over the volume of the cells that it heats, so it is exact on the grid whatever its cells. A
beam's Gaussian is integrated over each cell by differences of the error function. The cells of a spot that lies inside
its face receive the whole power, however coarse they are; the part of a spot that falls beside the face misses it. On a
periodic axis that part comes back in at the other end.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES, Grid
from heatsim.physics.cells.cell_heat import HeatedCells
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.sources.beam_rows import BeamRows
from heatsim.physics.sources.spots import OnTime, Track, weights_along, window
from heatsim.scenario import Scenario, Source, TimeFunction, face_axes
from heatsim.scenario.values.averages import mean_of_product

Array = NDArray[np.float64]


class Power(NamedTuple):
    """The power of a source in W.

    Attributes:
        net: what it gives to all its cells.
        entering: what it gives to the cells that it heats; it cools others.
    """

    net: float
    entering: float

    @classmethod
    def alike(cls, net: float) -> "Power":
        """Of a source that heats all its cells, or cools all."""
        return cls(net, max(net, 0.0))

    @classmethod
    def of_cells(cls, net: float, powers: Array) -> "Power":
        """Of a source that gives these powers to its cells."""
        alike = (powers >= 0.0).all() or (powers <= 0.0).all()
        return cls.alike(net) if alike else cls(net, float(np.maximum(powers, 0.0).sum()))


@dataclass(frozen=True)
class Sources:
    """The sources of a scenario on a grid.

    Attributes:
        scenario: the scenario.
        materials: the cell types; the sources that they name count those without a beam.
    """

    scenario: Scenario
    materials: CellTypes

    @cached_property
    def even(self) -> list[Source]:
        """The sources that heat all their cells alike, in the order in which the cell types count them."""
        return [source for source in self.scenario.sources if source.even]

    @cached_property
    def tracks(self) -> list[Track]:
        """The ways of the spots of all beams of the scenario, in its order."""
        return [Track(source, source.beam) for source in self.scenario.sources if source.beam is not None]

    @property
    def beams(self) -> list[Track]:
        """The ways of those that can bring something."""
        return self.tracks

    @property
    def heated(self) -> HeatedCells:
        """The cells that other sources heat individually."""
        return self.materials.heated

    @property
    def heat_constant(self) -> bool:
        """Whether the heat and the amounts of each step are those of every other of the same length."""
        in_body = [source for source in self.scenario.sources if source.beam is None]
        own = all(source.factor.constant and source.during is None for source in in_body)
        return own and all(amount.function.constant for amount in self.heated.amounts)

    def beam_faces(self) -> set[int]:
        """The numbers of the faces whose surfaces absorb beams."""
        return {FACES.index(track.beam.face) for track in self.beams if track.beam.absorption_depth is None}

    def heat(self, times: Array, dt: float, lengths: Array | None = None) -> Array:
        """What steps of ``dt`` seconds give to the cells of each type, in K.

        Args:
            times: starts in s of the intervals over which the sources are averaged.
            dt: in s.
            lengths: of these intervals in s; None for ``dt``.

        Returns:
            Shape (times, types); (1, types) if all steps give the same.

        Raises:
            ScenarioError: a value of ``scale`` is not finite.
        """
        materials = self.materials
        shared = {
            first: self._factor(self.even[first], times, dt if lengths is None else lengths)
            for first in set(self._same_in_time)
        }
        scales = [shared[first] for first in self._same_in_time]
        if all((scale == scale[:1]).all() for scale in scales):
            scales = [scale[:1] for scale in scales]
        density = np.zeros((len(scales[0]) if scales else 1, len(materials.types)))
        for number, scale in enumerate(scales):
            density += np.multiply.outer(scale, self.density_of(number))
        capacity = np.where(materials.heat_capacity > 0.0, materials.heat_capacity, 1.0)
        return density * dt / capacity

    @cached_property
    def _same_in_time(self) -> list[int]:
        """For each source of :attr:`even`, the first one with the same scale and times; they are evaluated together."""
        in_time = [(source.factor, source.during) for source in self.even]
        return [in_time.index(of) for of in in_time]

    def density_of(self, number: int) -> Array:
        """What source ``number`` of :attr:`even` gives to the cells of each type at scale 1 in W/m³, shape (types,)."""
        materials, source = self.materials, self.even[number]
        heated = np.array([number in cell_type.sources for cell_type in materials.types])
        if source.power_density is None:
            assert source.nominal is not None
            amount = source.nominal / (float(materials.volumes[heated].sum()) * materials.grid.mean_volume)
        else:
            assert isinstance(source.power_density, float)
            amount = source.power_density
        return amount * heated

    def amounts(self, times: Array, dt: float, lengths: Array | None = None) -> Array:
        """The amounts of :attr:`heated` times ``dt``, and ``dt`` itself, which stands before fluxes of beams.

        Args:
            times: starts in s of the intervals over which the sources are averaged.
            dt: in s.
            lengths: of these intervals in s; None for ``dt``.

        Returns:
            Shape (times, amounts + 1).

        Raises:
            ScenarioError: a value is not finite.
        """
        found = np.full((len(times), len(self.heated.amounts) + 1), dt)
        length: float | Array = dt if lengths is None else lengths
        for number, amount in enumerate(self.heated.amounts):
            source = self.scenario.sources[amount.source]
            found[:, number] *= self._factor(source, times, length, amount.function)
        return found

    def cell_powers(self, time: float, length: float, T: Array | None) -> dict[int, Power]:
        """Mean power in W that each source without beam gives to :attr:`heated` from ``time`` on, for ``length`` s.

        Args:
            time: in s.
            length: of the interval over which they are averaged, in s.
            T: temperatures of these cells in K; None if no density depends on it.

        Returns:
            The powers by the numbers of the sources.
        """
        heated, powers, cells = self.heated, dict[int, float](), dict[int, Array]()
        amounts = self.amounts(np.array([time]), length)[0, :-1] / length
        for number, amount in enumerate(heated.amounts):
            some = heated.numbers == number
            weights = heated.weights[some]
            if amount.table >= 0 and T is not None:
                weights = weights * heated.tables[amount.table].at(T[heated.owners[some]])[0]
            weights = weights * heated.volume_factors[heated.owners[some]]
            power = float(weights.sum()) * heated.volume * float(amounts[number])
            powers[amount.source] = powers.get(amount.source, 0.0) + power
            of_cells = np.bincount(heated.owners[some], weights * (heated.volume * amounts[number]), len(heated))
            cells[amount.source] = of_cells + cells.get(amount.source, np.zeros(1))
        return {source: Power.of_cells(net, cells[source]) for source, net in powers.items()}

    def absorbed_by(self, rows: BeamRows) -> float:
        """Power in W that the body takes of a beam in the first step of its rows. Collective."""
        heated, grid = self.heated, self.materials.grid
        power = 0.0
        some = heated.entries_of_beam(rows.number)
        if len(some):
            weights = heated.weights[some] * heated.volume_factors[heated.owners[some]]
            power = float(weights @ rows.fluxes(0, heated.spots[some])) * heated.volume
        if rows.at_face:
            flux = np.zeros(grid.face_shape(rows.face))
            rows.add_to(flux, 0)
            if self.materials.void is not None:
                flux[self.materials.types_on_face(rows.face) == self.materials.void] = 0.0
            flux *= _area_factors(grid, rows.face)
            power += float(flux.sum()) * grid.mean_volume / grid.mean_spacing[rows.face // 2]
            power += self._on_void_surfaces(rows)
        return power

    def _on_void_surfaces(self, rows: BeamRows) -> float:
        """Power in W of a beam on surfaces towards void in the first step of its rows. Collective."""
        grid, held, axis = self.materials.grid, self.materials.held, rows.face // 2
        nx, ny, _ = grid.cells
        cells = self.materials.weighted_surfaces.cells[: len(self.heated.lit)]
        cells = cells[(self.heated.lit >> rows.face & 1 > 0) & held.owns(cells // (nx * ny))]
        cells = np.concatenate(held.gathered(cells))
        if not len(cells):
            return 0.0
        along = (cells % nx, cells // nx % ny, cells // (nx * ny))
        spots = np.stack([place for other, place in enumerate(along) if other != axis], axis=1).astype(np.int32)
        flux = rows.fluxes(0, spots) * _area_factors(grid, rows.face)[spots[:, 1], spots[:, 0]]
        return float(flux.sum()) * grid.mean_volume / grid.mean_spacing[axis]

    def total(self, heat: Array, factors: Array, precision: str) -> float:
        """Heat in J that sources in the body give in stages, as rounded for kernels.

        Args:
            heat: as in :class:`heatsim.physics.operator.step_inputs.Rows`, shape (n or 1, types).
            factors: of the n stages, as there.
            precision: of the kernels.
        """
        if not self.even:
            return 0.0
        steps = factors.astype(precision).astype(np.float64)
        released = self.heat_of_steps(heat, precision)
        # Which sum it is must not depend on which stages give the same.
        return float(steps.sum() * released[0] if self.heat_constant else steps @ np.resize(released, len(steps)))

    def heat_of_steps(self, heat: Array, precision: str) -> Array:
        """Heat in J of the sources in the body in each step, as rounded for kernels; arguments as for :meth:`total`.

        The other steps do not change the bits of a step.
        """
        rounded = heat.astype(precision).astype(np.float64)
        return np.asarray((rounded * (self.materials.volumes * self.materials.cell_heat_capacity)).sum(axis=1))

    def cancelled(self, edges: Array) -> Array:
        """The heat in J that sources of :attr:`even` bring while others take as much, between times in s."""
        if len(self.even) < 2:
            return np.zeros(len(edges) - 1)
        heat = self.heats(edges)
        return np.asarray(np.minimum(np.maximum(heat, 0.0).sum(axis=1), np.maximum(-heat, 0.0).sum(axis=1)))

    def heats(self, edges: Array) -> Array:
        """The heat in J of every source of :attr:`even` between times in s, shape (spans, sources)."""
        found, lengths = np.zeros((len(edges) - 1, len(self.even))), np.diff(edges)
        some = lengths > 0.0
        if some.any():
            found[some] = self.powers(edges[:-1][some], lengths[some]) * lengths[some][:, np.newaxis]
        return found

    def parts(self, weights: Array) -> Array:
        """The mean weight of the cells of each source of :attr:`even`, by their volumes.

        Args:
            weights: of the cell types, shape (sums, types).

        Returns:
            Shape (sources, sums).
        """
        heated = [
            [number in cell_type.sources for cell_type in self.materials.types] for number in range(len(self.even))
        ]
        cells = np.array(heated, dtype=np.float64).reshape(len(self.even), -1) * self.materials.volumes
        whole = cells.sum(axis=1, keepdims=True)
        return np.asarray(cells @ weights.T / np.where(whole > 0.0, whole, 1.0))

    def powers(self, times: Array, dt: float | Array) -> Array:
        """Mean power in W of every source in the body in steps of ``dt`` seconds, one or one each, from ``times``.

        Returns:
            Shape (times, sources), in the order of ``even``.

        Raises:
            ScenarioError: a value of ``scale`` is not finite.
        """
        powers = np.zeros((len(times), len(self.even)))
        for number, source in enumerate(self.even):
            powers[:, number] = self.whole_power(number) * self._factor(source, times, dt)
        return powers

    def whole_power(self, number: int) -> float:
        """The power in W of source ``number`` of :attr:`even` at scale 1."""
        materials, source = self.materials, self.even[number]
        if source.nominal is not None:
            return source.nominal
        assert isinstance(source.power_density, float)
        heated = np.array([number in cell_type.sources for cell_type in materials.types])
        return source.power_density * float(materials.volumes[heated].sum()) * materials.grid.mean_volume

    def beam_rows(self, times: Array, dt: float | Array) -> list[BeamRows]:
        """What beams bring in steps of ``dt`` seconds, one length or one for each, from ``times``.

        Beams that are off in all these steps are left out.

        Raises:
            ScenarioError: a value of ``scale`` is not finite.
        """
        numbers, begins, ends = self._spans
        shining = np.unique(numbers[(begins < times.max() + np.max(dt)) & (ends > times.min())])
        rows = (self.rows_of(number, times, dt) for number in shining.tolist())
        return [found for found in rows if found is not None]

    def face_beams(self, times: Array, dt: float | Array) -> list[BeamRows]:
        """The same for the beams that surfaces at faces of the box absorb."""
        return [rows for rows in self.beam_rows(times, dt) if rows.at_face]

    def beam_bytes(self, itemsize: int, dt: float) -> int:
        """Bytes of the weights of a step of at most ``dt`` seconds."""
        return itemsize * sum(
            track.most_spots(dt) * window(self.scenario, track.beam, axis)
            for track in self.tracks
            for axis in face_axes(track.beam.face)
        )

    def _factor(self, source: Source, times: Array, dt: float | Array, *others: TimeFunction) -> Array:
        """The mean over steps of the product of a source's factors in time, which are 0 while it is off.

        Args:
            source: the source.
            times: starts of the steps in s.
            dt: their length in s, or that of each.
            others: functions of time besides its scale.

        Raises:
            ScenarioError: the product is not finite.
        """
        on = OnTime.within(source.during or (-inf, inf), times, dt)
        some = on.shares > 0.0
        found = np.zeros(len(times))
        found[some] = on.shares[some] * mean_of_product([*others, source.factor], on.starts[some], on.lengths[some])
        self._check(source, found, times, "power_density" if others else "scale")
        return found

    def _check(self, source: Source, values: Array, times: Array, key: str) -> None:
        if not np.isfinite(values).all():
            time, number = float(times[int(np.argmin(np.isfinite(values)))]), self.scenario.sources.index(source)
            mistake = Mistake(f"sources.{number}.{key}", f"is not finite in the step from t = {time!r} s")
            raise ScenarioError(self.scenario.path, [mistake])

    @cached_property
    def _spans(self) -> tuple[NDArray[np.intp], Array, Array]:
        """The spans in which beams may bring something: numbers of beams, starts and ends in s; shapes (spans,)."""
        spans = [track.spans(self.scenario.time.end) for track in self.tracks]
        numbers = np.repeat(np.arange(len(spans)), [len(some) for some in spans])
        begins, ends = np.concatenate([np.zeros((0, 2)), *spans]).T
        return numbers, begins, ends

    def rows_of(self, number: int, times: Array, dt: float | Array) -> BeamRows | None:
        """What one beam of the scenario brings in steps; None if it is off in all of them.

        Raises:
            ScenarioError: a value of ``scale`` is not finite.
        """
        track = self.tracks[number]
        beam, spots = track.beam, track.spots(times, dt)
        self._check(track.source, spots.powers, spots.starts, "scale")
        if not spots.powers.any():
            return None
        shape = len(times), int(spots.counts.max())
        first, weights = np.zeros((*shape, 2), np.int32), []
        for place, (axis, centres) in enumerate(zip(face_axes(beam.face), spots.places, strict=True)):
            starts, along = weights_along(self.scenario, beam, axis, centres)
            first[spots.steps, spots.numbers, place] = starts
            weights.append(np.zeros((*shape, along.shape[1])))
            weights[-1][spots.steps, spots.numbers] = spots.powers[:, None] * along if place == 0 else along
        u, v = weights
        at_face = beam.absorption_depth is None
        return BeamRows(FACES.index(beam.face), first, (u, v), spots.counts.astype(np.int32), number, at_face)


def _area_factors(grid: Grid, face: int) -> Array:
    """The areas of cells' sides at a face over those of a cell of the mean widths, in the shape of the face's map."""
    u, v = (grid.axes[axis].volume_factors for axis in face_axes(FACES[face]))
    axis, plane = grid.axes[face // 2], -(face % 2)
    side = float(axis.volume_factors[plane] * axis.gain_factors[plane, face % 2])
    return np.asarray(np.outer(v, u) * side)
