"""Upper bound of the residual of the energy balance, from counted and weighted roundings.

In exact arithmetic a step moves heat between neighbours and through faces, and the balance closes exactly. The ledger
takes the rounded heat of a face, which is the heat that the cell gets. Only the roundings of each cell's sum remain:

    |residual| ≤ r·u·Σ_steps H  +  1e-12·(|stored| + Σ_rows Σ_faces |heat| + Σ |heat given|)
                 +  64·2⁻⁵³·(H_first + H_last)

with the unit roundoff u, 2⁻⁵³ in float64 and 2⁻²⁴ in float32. The second term is for the sums of the ledger, one for
each boundary face from row to row, each of which adds up to 8,192 terms before it is carried over. The third is for the
sum over the field.

**r, the roundings of a step.** A step makes T' = Σ c_j·T_j + heats, with c_j ≥ 0 and Σ c_j = 1. The error of a rounding
is at most u times the sum so far, which is at most Σ c_j·|T_j| plus the heats so far. Each cell is also the neighbour
of others, with coefficients whose sum is 1 (C_a·c_ab = C_b·c_ba). So over all cells the error of each rounding is at
most u·H with H = Σ C·|T − T_ref| and the heat capacity C of a cell.

    seven_term    7 for the seven products and sums, with fma or without, and 1 for each face and source added
    increments    c_j·(T_j − T): 6 for products and sums, 1 for each face, source and void surface added. If cell
                  types differ, 1 for the difference and 2 for c_ab and c_ba, which are rounded separately; within one
                  type both sides use the same numbers. If contacts are weighted, 4 more for the weights of both sides
                  and the products with them. On graded grids 2 more for the factor of a link's plane and the product
                  with it, which are not those of the neighbour. In float64 7 instead: three roundings make a factor
                  and three the volume of a cell, so V_a·c_ab and V_b·c_ba differ by these too. The sums are at most
                  2σ·H, because the neighbours' coefficients add up to at most σ = dt/limit. T + increments adds 1 of H.

**H, from one row to the next.** A step is monotone: a higher old value never gives a lower new one. The limit on dt
guarantees this. So a step creates no new extremes and, because it only moves heat, does not increase Σ C·|T − T_ref|
(Crandall & Tartar, *Proc. Am. Math. Soc.* 78 (1980) 385). Between rows, from the row's H, lowest and highest
temperature,

    H ≤ min( H_row + E,  Σ C·max|T − T_ref| over the row's and the surroundings' temperatures ) + Q

E is the largest heat that the surroundings can bring to a body at T_ref in the time since the row. Q is ∫ |q| dt of
each source, beam and flux, so opposite heats do not cancel; of densities that depend on temperature it is what the
ledger has. For materials that vary with temperature the same holds with contents (matter/enthalpy.py) instead
of T − T_ref.

Methods that choose their own steps know the extremes of the field at both ends of each. There

    H ≤ Σ C·max|T − T_ref| over the temperatures at both ends and those of the surroundings

whatever brings heat between two rows, and takes it away again.
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
from heatsim.scenario import Temperature, TimeFunction, depends_on_surface
from heatsim.scenario.values.averages import magnitudes

Array = NDArray[np.float64]

TOLERANCE = 1e-12
UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
_OF_FACTORS = {"float32": 2.0, "float64": 7.0}  # on graded grids
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
    if not problem.grid.uniform:
        of_increments += _OF_FACTORS[problem.precision]
    if not problem.linear:
        of_increments += 2.0 if materials.uniform else 5.0
        of_increments += 4.0 if materials.weighted_surfaces.contacts else 0.0
        of_increments += 1.0 if len(materials.heated) else 0.0
        of_increments += 4.0 if materials.has_gaps else 0.0  # both cells round what passes
    of_sum = np.abs(1.0 - sigma) + sigma
    return np.asarray(of_sum + 2.0 * sigma * of_increments)


class LargestHeat:
    """Σ C·max|T − T_ref| of a body in J, over temperatures between two extremes and those around it."""

    def __init__(self, problem: HeatProblem, reference: float) -> None:
        self._materials = problem.materials
        around = [T - reference for T in surrounding(problem.boundary, problem.scenario.time.end)]
        self._lowest, self._highest = min(around, default=inf), max(around, default=-inf)
        self._capacities = problem.materials.volumes * problem.materials.cell_heat_capacity

    def __call__(self, low: float, high: float) -> float:
        """For a field with these extremes of T − T_ref in K."""
        ends = np.array([min(low, self._lowest), max(high, self._highest)])
        if not self._materials.varies:
            return float(self._capacities.sum() * np.abs(ends).max())
        largest = [np.abs(enthalpy.content_at(ends)).max() for enthalpy in self._materials.enthalpies]
        return float(self._capacities @ np.array(largest))


class EnergyBound:
    """The bound of one run; it grows from row to row.

    Attributes:
        heat: the bound of H in J between the last two rows; 0 for methods that choose their own steps.
        row: the last row; None before the first.
        given: heat in J that sources, beams and fluxes have brought since the start, by magnitude.
    """

    def __init__(self, problem: HeatProblem, reference: float) -> None:
        self._problem = problem
        self._reference = reference
        self._largest = LargestHeat(problem, reference)
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
            if timeline.adaptive:
                self._rounded_heat = float(rows.roundings[-1])
            else:
                seconds = np.diff([timeline.time(step) for step in steps.tolist()])
                by_heat = rows.heat[:-1] + self._power * seconds
                ends = zip(rows.lowest[:-1].tolist(), rows.highest[:-1].tolist(), strict=True)
                within = np.array([self._largest(*extremes) for extremes in ends])
                heat = np.maximum(np.minimum(by_heat, within) + brought, rows.heat[1:])
                self.heat = float(heat[-1])
                self._rounded_heat = _added(self._rounded_heat, self.roundings * np.diff(steps) * heat)
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
            functions = time_functions(condition)
            most = conductance * max(
                (self._farthest(temperature) for _, temperature in functions.exchanges), default=0.0
            )
            if not isinstance(condition, Temperature) and not depends_on_surface(condition):
                convected = functions.film.extremes(end)[1] * self._farthest(functions.ambient)
                most = min(most, convected + self._radiated(functions.emissivity, functions.surroundings))
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

    def _given(self, steps: NDArray[np.int64]) -> Array:
        """∫ |q| dt in J of all sources, beams and fluxes from each of these steps to the next."""
        edges = np.array([self._problem.timeline.time(step) for step in steps.tolist()])
        end, given = self._problem.scenario.time.end, np.zeros(len(steps) - 1)
        for size, functions, during in self._owners:
            given += size * magnitudes(functions, edges, during, end)
        return given

    @cached_property
    def _owners(self) -> list[tuple[float, list[TimeFunction], tuple[float, float]]]:
        """All that brings heat whatever the temperature: its size by magnitude, factors in time, and when it acts."""
        sources, heated, always = self._problem.sources, self._problem.sources.heated, (0.0, inf)
        fluxes = [(area, time_functions(condition).flux) for condition, area, _ in self._areas]
        found = [(area, [flux], always) for area, flux in fluxes if flux != NOTHING]
        for number, source in enumerate(sources.even):
            found.append((abs(sources.whole_power(number)), [source.factor], source.during or always))
        for size, amount in zip(heated.magnitudes.tolist(), heated.amounts, strict=True):
            source = sources.scenario.sources[amount.source]
            found.append((size, [amount.function, source.factor], source.during or always))
        for track in sources.beams:
            found.append((abs(track.beam.power * track.beam.absorptivity), [track.source.factor], track.on))
        return found


def _added(number: float, more: Array) -> float:
    """The sum of a number and more numbers, added one after the other."""
    return float(np.add.accumulate(np.concatenate(([number], more)))[-1])
