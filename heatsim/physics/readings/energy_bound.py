"""Upper bound of the residual of the energy balance, from counted and weighted roundings.

In exact arithmetic a step moves heat between neighbours and through faces, and the balance closes exactly. The ledger
takes the rounded heat of a face, which is the heat that the cell gets. Only the roundings of each cell's sum remain:

    |residual| ≤ r·u·Σ_steps H  +  1e-12·(|stored| + Σ_cells |heat through faces| + Σ |heat given|)
                 +  64·2⁻⁵³·(H_first + H_last)

with the unit roundoff u, 2⁻⁵³ in float64 and 2⁻²⁴ in float32. The second term is for the sums of the ledger, each of
which adds up to 8,192 terms before it is carried over. The third is for the sum over the field.

**r, the roundings of a step.** A step makes T' = Σ c_j·T_j + heats, with c_j ≥ 0 and Σ c_j = 1. The error of a rounding
is at most u times the sum so far, which is at most Σ c_j·|T_j| plus the heats so far. Each cell is also the neighbour
of others, with coefficients whose sum is 1 (C_a·c_ab = C_b·c_ba). So over all cells the error of each rounding is at
most u·H with H = Σ C·|T − T_ref| and the heat capacity C of a cell.

    seven_term    7 for the seven products and sums, with fma or without, and 1 for each face and source added
    increments    c_j·(T_j − T): 6 for products and sums, 1 for each face, source and void surface added. If cell
                  types differ, 1 for the difference and 2 for c_ab and c_ba, which are rounded separately; within one
                  type both sides use the same numbers. If contacts are weighted, 4 more for the weights of both sides
                  and the products with them. The sums are at most 2σ·H, because the neighbours' coefficients add up
                  to at most σ = dt/limit. T + increments adds 1 of H.
    stochastic    the same, plus 1 of H for the number added before rounding and 1 for adding it

**H, from one row to the next.** A step is monotone: a higher old value never gives a lower new one. The limit on dt
guarantees this. So a step creates no new extremes and, because it only moves heat, does not increase Σ C·|T − T_ref|
(Crandall & Tartar, *Proc. Am. Math. Soc.* 78 (1980) 385). Between rows, from the row's H, lowest and highest
temperature,

    H ≤ min( H_row + E,  Σ C·max|T − T_ref| over the row's and the surroundings' temperatures ) + Q

E is the largest heat that the surroundings can bring to a body at T_ref in the time since the row. Q is the heat that
sources, beams and fluxes bring, by magnitude; of sources that heat single cells it is what the ledger has. For
materials that vary with temperature the same holds with contents (matter/enthalpy.py) instead of T − T_ref.
"""

from collections.abc import Mapping
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from heatsim.grid import FACES
from heatsim.physics.conditions.condition_terms import NOTHING, Condition, time_functions
from heatsim.physics.conditions.surface_balance import STEFAN_BOLTZMANN
from heatsim.physics.estimates.temperature_range import surrounding
from heatsim.physics.operator.boundary_faces import areas
from heatsim.physics.problem import HeatProblem
from heatsim.physics.readings.bound_rows import BoundRows, Row
from heatsim.physics.time.interval_sums import interval_sums
from heatsim.scenario import Temperature, TimeFunction, depends_on_surface

Array = NDArray[np.float64]

TOLERANCE = 1e-12
UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
_SUMMING = 64.0 * 2.0**-53
# A row between the ends of a step: the rounding of its field, and of the fields and rates that it is made of.
_INTERPOLATING = 4.0
# For products of roundings, and for the rounding of H itself.
_SECOND_ORDER = 1.001


def roundings(problem: HeatProblem, sigma: Array) -> Array:
    """r, the roundings of steps, weighted.

    Args:
        problem: whose scheme and faces count.
        sigma: dt/limit of each; above 1 for stages of a stabilized step, whose coefficients have Σ |c| = |1 − σ| + σ.
    """
    materials, faces = problem.materials, 0
    for axis, n in enumerate(problem.grid.cells):
        low, high = (int(problem.open_faces[2 * axis + side]) for side in (0, 1))
        faces += low + high if n == 1 else max(low, high)
    if problem.scheme == "seven_term":
        return (7.0 + faces + (not problem.linear) + (len(materials.heated) > 0)) * (np.abs(1.0 - sigma) + sigma)
    of_increments = 6.0 + faces
    if not problem.linear:
        of_increments += 2.0 if materials.uniform else 5.0
        of_increments += 4.0 if materials.weighted_surfaces.contacts else 0.0
        of_increments += 1.0 if len(materials.heated) else 0.0
    of_sum = np.abs(1.0 - sigma) + sigma
    return np.asarray((3.0 if problem.scheme == "stochastic" else 1.0) * of_sum + 2.0 * sigma * of_increments)


class EnergyBound:
    """The bound of one run; it grows from row to row.

    Attributes:
        heat: the bound of H in J between the last two rows.
        row: the last row; None before the first.
        given: heat in J that sources, beams and fluxes have brought since the start, by magnitude.
    """

    def __init__(self, problem: HeatProblem, reference: float) -> None:
        self._problem = problem
        self._reference = reference
        self.heat = 0.0
        self.row: Row | None = None
        self.given = 0.0
        self._rounded_heat = 0.0
        self._turned_over = 0.0
        self._first_heat = 0.0

    def add(self, rows: BoundRows) -> None:
        """Add the next rows; there is at least one."""
        if self.row is None:
            self._first_heat = float(rows.heat[0])
        else:
            rows = rows.behind(self.row)
        steps, timeline = rows.steps, self._problem.timeline
        if len(steps) > 1:
            brought = self._given(steps) + np.abs(np.diff(rows.of_cells))
            self.given = _added(self.given, brought)
            seconds = np.diff([timeline.time(step) for step in steps.tolist()])
            by_heat = np.full(len(seconds), inf) if timeline.adaptive else rows.heat[:-1] + self._power * seconds
            within = self._within(rows.lowest[:-1], rows.highest[:-1])
            heat = np.maximum(np.minimum(by_heat, within) + brought, rows.heat[1:])
            self.heat = float(heat[-1])
            weights = np.diff(rows.roundings) if timeline.adaptive else self.roundings * np.diff(steps)
            self._rounded_heat = _added(self._rounded_heat, weights * heat)
        self._turned_over = max(self._turned_over, float(rows.turned_over.max()))
        self.row = rows.last

    @property
    def residual(self) -> float:
        """Upper bound in J of the residual in the last row."""
        last = 0.0 if self.row is None else self.row.heat
        rounded = UNIT_ROUNDOFF[self._problem.precision] * self._rounded_heat
        if self._problem.timeline.adaptive:  # the row is a combination of fields, each rounded
            rounded += _INTERPOLATING * UNIT_ROUNDOFF[self._problem.precision] * last
        summed = _SUMMING * (self._first_heat + last) if self.row is not None and self.row.step > 0 else 0.0
        return _SECOND_ORDER * rounded + TOLERANCE * (self._turned_over + self.given) + summed

    @cached_property
    def roundings(self) -> float:
        """R of the longest step of Euler's method."""
        longest = max(self._problem.timeline.step_lengths, default=0.0)
        return float(roundings(self._problem, np.array(min(longest / self._problem.limit.dt, 1.0))))

    def save(self) -> dict[str, float]:
        """What a checkpoint keeps."""
        row = Row(-1, 0.0, 0.0, 0.0) if self.row is None else self.row
        of_run = (self.heat, self.given, self._rounded_heat, self._turned_over, self._first_heat)
        of_row = (float(row.step), row.heat, row.lowest, row.highest, row.roundings, row.of_cells)
        numbers = (*of_run, *of_row)
        return {f"energy_bound_{number}": value for number, value in enumerate(numbers)}

    def restore(self, saved: Mapping[str, int | float | str | bool]) -> None:
        """Take back what :meth:`save` gave."""
        numbers = [float(saved[f"energy_bound_{number}"]) for number in range(11)]
        self.heat, self.given, self._rounded_heat, self._turned_over, self._first_heat = numbers[:5]
        if numbers[5] >= 0.0:
            heat, lowest, highest, weighted, of_cells = numbers[6:]
            self.row = Row(int(numbers[5]), heat, lowest, highest, roundings=weighted, of_cells=of_cells)

    @cached_property
    def _surrounding(self) -> tuple[float, float]:
        """The lowest and highest temperature around the body, as deviations in K; inf and −inf where there are none."""
        around = [T - self._reference for T in surrounding(self._problem.boundary, self._problem.scenario.time.end)]
        return min(around, default=inf), max(around, default=-inf)

    def _within(self, lowest: Array, highest: Array) -> Array:
        """Σ C·max|T − T_ref| in J over the temperatures of each row and the surroundings."""
        low, high = np.minimum(lowest, self._surrounding[0]), np.maximum(highest, self._surrounding[1])
        materials = self._problem.materials
        if not materials.varies:
            return np.asarray(self._capacity * np.maximum(np.abs(low), np.abs(high)))
        found = np.empty(len(low))
        for row, ends in enumerate(np.stack([low, high], axis=1)):
            largest = np.array([np.abs(enthalpy.content_at(ends)).max() for enthalpy in materials.enthalpies])
            found[row] = self._capacities @ largest
        return found

    @cached_property
    def _capacities(self) -> Array:
        """The heat capacity in J/K of all cells of each type."""
        materials = self._problem.materials
        return materials.counts * materials.cell_heat_capacity

    @cached_property
    def _capacity(self) -> float:
        """The heat capacity of the body in J/K."""
        return float(self._capacities.sum())

    @cached_property
    def _areas(self) -> list[tuple[Condition, float, float]]:
        """Each condition that lets heat through, its area in m², and the largest conductance of its half cells."""
        boundary, materials = self._problem.boundary, self._problem.materials
        best = [1.0 / float(half.min()) for half in materials.least_half]
        faces = [*range(6), *(FACES.index(patch.face) for patch in self._problem.scenario.patches)]
        # The heat through a face towards void is limited by the smooth surface and by the half cell of the voxel.
        return [
            (condition, area, best[faces[owner] // 2] if owner < len(faces) else max(best))
            for condition, owner, area in zip(
                boundary.conditions, boundary.owners, areas(boundary, materials, 1.0).tolist(), strict=True
            )
            if area > 0.0
        ]

    @cached_property
    def _power(self) -> float:
        """The largest power in W that the surroundings bring to a body at the reference temperature."""
        end, power = self._problem.scenario.time.end, 0.0
        for condition, area, conductance in self._areas:
            film, ambient, _, emissivity, surroundings = time_functions(condition)
            pairs = ((film, ambient), (emissivity, surroundings))
            around = [self._farthest(temperature) for exchange, temperature in pairs if exchange != NOTHING]
            most = conductance * max(around, default=0.0)
            if not isinstance(condition, Temperature) and not depends_on_surface(condition):
                convected = film.extremes(end)[1] * self._farthest(ambient)
                most = min(most, convected + self._radiated(emissivity, surroundings))
            power += area * most
        return power

    def _farthest(self, temperature: TimeFunction) -> float:
        """The largest |T − T_ref| in K during the run."""
        return max(abs(T - self._reference) for T in temperature.extremes(self._problem.scenario.time.end))

    def _radiated(self, emissivity: TimeFunction, surroundings: TimeFunction) -> float:
        """The largest radiated flux in W/m² between surroundings and a surface at the reference temperature."""
        end = self._problem.scenario.time.end
        difference = max(abs(T**4 - self._reference**4) for T in surroundings.extremes(end))
        return emissivity.extremes(end)[1] * STEFAN_BOLTZMANN * difference

    @cached_property
    def _brings(self) -> bool:
        """Whether there are sources, beams or fluxes."""
        fluxes = [time_functions(condition).flux for condition, _, _ in self._areas]
        return bool(self._problem.scenario.sources) or any(flux != NOTHING for flux in fluxes)

    def _given(self, steps: NDArray[np.int64]) -> Array:
        """Heat in J that sources, beams and fluxes bring from each of these steps to the next, by magnitude."""
        given = [0.0] * (len(steps) - 1)
        if self._brings:
            found = interval_sums(self._problem.timeline, int(steps[0]), int(steps[-1]), self._find_power)
            rows = np.searchsorted(steps, found.ends) - 1
            for row, heat in zip(rows.tolist(), (found.sums * found.dts).tolist(), strict=True):
                given[row] += heat
        return np.array(given)

    def _find_power(self, first: int, until: int) -> Array:
        """The power in steps ``first`` … ``until`` − 1, of equal length. A step does not depend on the others."""
        problem, timeline, power = self._problem, self._problem.timeline, np.zeros(until - first)
        times, dt, heated = timeline.step_times(first, until), timeline.dt(first), problem.materials.heated
        for condition, area, _ in self._areas:
            flux = time_functions(condition).flux
            if flux != NOTHING:
                power = power + area * np.abs(flux.mean(times, dt))
        if problem.sources.even:
            power = power + (np.abs(problem.step_heat.of(first, until)) * self._capacities).sum(axis=1) / dt
        if heated.amounts:
            amounts = np.abs(problem.sources.amounts(times, dt)[:, :-1])
            power = power + (amounts * heated.magnitudes).sum(axis=1) / dt
        return np.asarray(power + problem.sources.absorbed(times, dt))


def _added(number: float, more: Array) -> float:
    """The sum of a number and more numbers, added one after the other."""
    return float(np.add.accumulate(np.concatenate(([number], more)))[-1])
