"""A scenario turned into numbers: the cell types, the boundary, the sources, and the coefficients of every step."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import ScenarioError
from heatsim.grid import Grid
from heatsim.parallel.slab import Slab
from heatsim.physics.cells.cell_types import CellTypes
from heatsim.physics.conditions.boundary import Boundary
from heatsim.physics.conditions.face_terms import face_terms
from heatsim.physics.conditions.surface_balance import AMBIENT
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.estimates.method_choice import MethodChoice, choose_method
from heatsim.physics.estimates.method_work import first_tolerance
from heatsim.physics.estimates.precision_choice import PrecisionChoice, choose_precision
from heatsim.physics.estimates.temperature_range import Occurring, of_surfaces
from heatsim.physics.geometry.painted_planes import EVERYTHING, PaintedPlanes
from heatsim.physics.geometry.regions import Parts
from heatsim.physics.matter.coefficients import (
    Coefficients,
    Precision,
    Scheme,
    StageCoefficients,
    choose_scheme,
    choose_stage_scheme,
    derive,
)
from heatsim.physics.operator.balance import Balance
from heatsim.physics.operator.cold_surfaces import cooled_surfaces, refuse_cold_surfaces
from heatsim.physics.operator.grounding import refuse_floating
from heatsim.physics.operator.stability import Stability, StabilityLimit
from heatsim.physics.operator.steep_laws import refuse_steep_laws
from heatsim.physics.operator.step_inputs import StepInputs
from heatsim.physics.same_body import body_of
from heatsim.physics.sources.sources import Sources
from heatsim.physics.sources.step_heat import StepHeat
from heatsim.physics.time import timelines
from heatsim.physics.time.stage_times import StageTimes
from heatsim.physics.time.time_steps import Timeline
from heatsim.scenario import Scenario
from heatsim.scenario.documents.copies import in_file

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeatProblem:
    """Everything that kernels and observers need from a scenario.

    Attributes:
        scenario: the scenario, with the method that the run takes.
        asked: the same as the user wrote it: the method may be "auto".
        grid: the cells.
        materials: the cell types; a body of one material has one.
        boundary: the conditions on faces, patches and surfaces towards void.
        sources: in the body and on faces.
        parts: the owner of each cell; None where nothing is painted.
        held: the planes of the arrays over the cells of ``materials`` and ``parts``.
        reference: the temperature in K at which materials that change have the properties that ``materials`` names;
            0 where none changes.
        rates: α/d² of the three axes in 1/s, in the first material of the palette that has cells.
        stability: limits of the time step.
        timeline: due times and steps.
        precision, scheme: how steps are summed; the precision of the scenario is "auto" in ``asked`` alone.
        coefficients: c0…c6 for every dt used, of the same material as the rates.
        reached: the lowest and highest temperature in K that surfaces can have, if any condition depends on it.
        choice: why the method of the scenario was taken, if the scenario left it to "auto"; else None.
        precision_choice: why the precision was taken, if the scenario left it to "auto"; else None.
    """

    scenario: Scenario
    asked: Scenario
    grid: Grid
    materials: CellTypes
    boundary: Boundary
    sources: Sources
    parts: Parts | None
    reference: float
    rates: tuple[float, float, float]
    stability: Stability
    timeline: Timeline
    precision: Precision
    scheme: Scheme
    coefficients: Mapping[float, Coefficients]
    reached: tuple[float, float] = (0.0, inf)
    choice: MethodChoice | None = None
    precision_choice: PrecisionChoice | None = None
    held: PaintedPlanes = EVERYTHING

    @classmethod
    def from_scenario(
        cls, scenario: Scenario, held: PaintedPlanes = EVERYTHING, like: "HeatProblem | None" = None
    ) -> "HeatProblem":
        """Derive everything. A method and a precision that are "auto" become those chosen here. Collective.

        Args:
            scenario: the scenario.
            held: the planes to paint on this rank.
            like: another problem of the whole grid; its arrays are shared if it has the same body.

        Raises:
            ScenarioError: a time step that is unstable or does not divide the intervals, or too many steps; regions
                that cannot be painted.
        """
        try:
            return cls._derived(scenario, held, like)
        except ScenarioError as error:
            if not scenario.origins:
                raise
            raise ScenarioError(error.path, in_file(error.mistakes, scenario.origins)) from None

    @classmethod
    def _derived(cls, scenario: Scenario, held: PaintedPlanes, like: "HeatProblem | None") -> "HeatProblem":
        """As :meth:`from_scenario`; mistakes have the numbers of copies."""
        painted, stability = body_of(scenario, held, like)
        reached = 0.0, inf
        if painted.boundary.laws_rise or painted.boundary.ends_of_laws:
            start = InitialField.from_scenario(scenario, painted.parts, held=held)
            reached = of_surfaces(start, painted.boundary, painted.materials)
        if painted.boundary.laws_rise:
            refuse_steep_laws(painted.boundary, painted.materials, reached)
        if cooled := cooled_surfaces(painted.boundary, painted.materials):
            start = InitialField.from_scenario(scenario, painted.parts, held=held)
            occurring = Occurring.in_run(scenario, start, painted.boundary, painted.materials)
            refuse_cold_surfaces(painted.boundary, painted.materials, cooled, occurring.high)
        problem = cls(
            scenario=scenario,
            asked=scenario,
            grid=scenario.grid,
            materials=painted.materials,
            boundary=painted.boundary,
            sources=Sources(scenario, painted.materials),
            parts=painted.parts,
            held=held,
            reference=painted.reference,
            rates=painted.materials.diffusion_rates,
            stability=stability,
            timeline=Timeline.instant(),
            precision="float64" if scenario.solver.precision == "float64" else "float32",
            scheme="increments",
            coefficients={},
            reached=reached,
        )
        return problem._with_choices()

    def _with_choices(self) -> "HeatProblem":
        """With the precision and the method that the scenario leaves to "auto"."""
        problem, time, open_precision = self, self.scenario.time, self.scenario.solver.precision == "auto"
        first = first_tolerance(self) if open_precision or time.method == "auto" else None
        choice = choose_method(self, first) if time.method == "auto" else None
        if open_precision:
            method, work = (time.method, None) if choice is None else (choice.method, choice.work)
            chosen = choose_precision(self, method, work, first)
            scenario = self.scenario.with_precision(chosen.precision)
            problem = replace(self, scenario=scenario, precision=chosen.precision, precision_choice=chosen)
            if choice is not None and chosen.precision != self.precision:
                choice = choose_method(problem, first)
        return replace(problem, choice=choice).with_method(time.method if choice is None else choice.method)

    def with_method(self, method: str) -> "HeatProblem":
        """The same problem for a run with another method in time.

        Raises:
            ScenarioError: as for :meth:`from_scenario`.
        """
        scenario = self.scenario.with_method(method)
        problem = replace(self, scenario=scenario, boundary=replace(self.boundary, scenario=scenario))
        if scenario.steady:
            if self.materials.held.slab is None:  # otherwise the ranks do it together: heatsim.run.ranks
                refuse_floating(scenario, Balance(problem, 0.0))
            return problem
        return problem._with_steps() if method == "euler" else problem._with_stages()

    def _with_steps(self) -> "HeatProblem":
        """For Euler's method: the steps, and their coefficients."""
        scenario, grid, rates, materials = self.scenario, self.grid, self.rates, self.materials
        time, precision = scenario.time, self.precision
        if not isinstance(time.dt, str):
            self.stability.check(time.dt)
        steps = timelines.of_steps(scenario, self.limit.dt)
        scheme = choose_scheme(grid, rates, float(steps.dts.min()), precision)
        if (materials.varies or not materials.uniform) and scheme == "seven_term":
            scheme = "increments"  # one cell's coefficients differ from the next one's
        coefficients = {dt: derive(grid, rates, dt, precision, scheme) for dt in steps.step_lengths}
        return replace(self, timeline=steps, scheme=scheme, coefficients=coefficients)

    def _with_stages(self) -> "HeatProblem":
        """For methods whose steps have stages of different lengths: the due times, and how stages are summed."""
        due = timelines.of_due_times(self.scenario)
        scheme: Scheme = "increments"
        if self.linear and isfinite(self.limit.dt):
            scheme = choose_stage_scheme(self.grid, self.rates, np.array([self.limit.dt]), self.precision)
        return replace(self, timeline=due, scheme=scheme)

    @property
    def limit(self) -> StabilityLimit:
        """The largest stable time step."""
        return self.stability.limit

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Which axes wrap."""
        return self.boundary.periodic

    @property
    def whole(self) -> "HeatProblem":
        """The problem of the whole grid; see :mod:`heatsim.physics.slab_problem`."""
        return self

    @property
    def slab(self) -> Slab:
        """The planes that kernels step."""
        return Slab.whole(self.grid.shape[0])

    @cached_property
    def linear(self) -> bool:
        """Whether one constant material fills the box, nothing radiates, and there are no patches and no sources.

        The variant of the kernels follows from this alone: a step then gives each cell at a face f − g·(T − T_ref).
        """
        return not self.composite_features

    @property
    def composite_features(self) -> list[str]:
        """What makes the body composite: all that steps with f − g·(T − T_ref) cannot do, in words."""
        materials, boundary = self.materials, self.boundary
        found = {
            f"cells of {len(materials.types)} types": not materials.uniform,
            "a material that changes with temperature": materials.varies,
            f"a nonlinear condition on {', '.join(boundary.nonlinear_faces)}": bool(boundary.nonlinear_faces),
            f"several conditions on {', '.join(boundary.divided_faces)}": bool(boundary.divided_faces),
            "sources": bool(self.scenario.sources),
            "nodes": boundary.network is not None,
        }
        return [feature for feature, has in found.items() if has]

    @property
    def condition_numbers(self) -> int:
        """How many numbers a kernel gets for the conditions of a step, with their tables and held potentials."""
        held = len(self.boundary.conditions) * len(self.materials.types) if self.materials.varies else 0
        return 6 * self.boundary.row_count + held

    @cached_property
    def step_heat(self) -> StepHeat:
        """What sources in the body give in steps of Euler's method."""
        return StepHeat(self.sources, self.timeline)

    @cached_property
    def open_faces(self) -> tuple[bool, ...]:
        """Which of x_min … z_max let heat through, that of beams included."""
        beams = self.sources.beam_faces()
        return tuple(self.boundary.exchanging(face) or face in beams for face in range(6))

    def linear_terms(self, times: Array, dt: float, reference: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """The terms f and g of the six faces of a linear problem, for steps of ``dt`` seconds that start at ``times``.

        Args:
            times: in s, shape (n,).
            dt: in s, one of the timeline's.
            reference: the temperature in K that deviations are counted from.

        Returns:
            f (K) and g, each of shape (n, 6) in the run's precision; see
            :mod:`heatsim.physics.conditions.surface_balance`.

        Raises:
            ScenarioError: a face's value is not finite at one of the times.
        """
        stages = StageTimes.of_steps(times, dt)
        return self._linear_terms(stages, np.array(self.coefficients[dt].exchange), reference)

    def stage_linear_terms(
        self, stages: StageTimes, coefficients: StageCoefficients, reference: float
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The terms f and g of the six faces of a linear problem, for stages of different lengths.

        Args:
            stages: their times and lengths; n of them.
            coefficients: those of the stages.
            reference: the temperature in K that deviations are counted from.

        Returns:
            f (K) and g, each of shape (n, 6) in the run's precision.

        Raises:
            ScenarioError: a face's value is not finite at one of the times.
        """
        return self._linear_terms(stages, coefficients.exchange, reference)

    def rows(self, times: Array, dt: float, reference: float) -> StepInputs:
        """What changes in steps of ``dt`` seconds from ``times``; temperatures as deviations from ``reference`` (K).

        Raises:
            ScenarioError: a value is not finite at one of the times.
        """
        return self._rows(StageTimes.of_steps(times, dt), dt, reference)

    def stage_rows(self, stages: StageTimes, dt: float, reference: float) -> StepInputs:
        """What changes in stages of different lengths.

        Args:
            stages: their times and lengths.
            dt: the step in s for which the kernels' tables are made.
            reference: the temperature in K that deviations are counted from.

        Raises:
            ScenarioError: a value is not finite at one of the times.
        """
        return self._rows(stages, dt, reference)

    def _linear_terms(self, stages: StageTimes, exchange: Array, reference: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """The terms f and g; ``exchange``: rounded α·dt/d² of the axes, shape (n, 3) or (3,)."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            rows = self._condition_rows(stages, reference)
            return face_terms(
                self.boundary,
                self.grid,
                self.materials.half[:, 0],
                self.rates,
                stages,
                exchange,
                rows,
                self.precision,
            )

    def _rows(self, stages: StageTimes, dt: float, reference: float) -> StepInputs:
        heated = stages[:1] if self.sources.heat_constant else stages
        conditions = self._condition_rows(stages, reference)
        heat = heated.means(lambda starts, lengths: self.sources.heat(starts, dt, lengths))
        held = self.materials.potentials_at(conditions[:, : len(self.boundary.conditions), AMBIENT])
        amounts = heated.means(lambda starts, lengths: self.sources.amounts(starts, dt, lengths))
        beams = tuple(self.sources.beam_rows(stages.starts, stages.lengths))
        return StepInputs(conditions, held, heat, beams, stages.sizes / dt, amounts)

    def _condition_rows(self, stages: StageTimes, reference: float) -> Array:
        some = stages[:1] if self.boundary.constant else stages
        return self.boundary.rows(some.times, reference, some)
