"""A scenario turned into numbers: the cell types, the boundary, the sources, and the coefficients of every step."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import Grid
from heatsim.physics import time_steps
from heatsim.physics.boundary import AMBIENT, Boundary, linear_terms
from heatsim.physics.cell_types import Medium
from heatsim.physics.coefficients import Coefficients, Precision, Rounding, Scheme, choose_scheme, derive
from heatsim.physics.grounding import refuse_floating
from heatsim.physics.materials import Painted
from heatsim.physics.regions import Parts
from heatsim.physics.rows import Rows
from heatsim.physics.sources import Sources
from heatsim.physics.stability import Stability, StabilityLimit
from heatsim.physics.steady_balance import SteadyBalance
from heatsim.physics.time_steps import Timeline
from heatsim.scenario import Scenario

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeatProblem:
    """What the kernels and observers need to know of a scenario.

    Attributes:
        scenario: where it came from.
        grid: the cells.
        materials: the cell types; a body of one material has one.
        boundary: the conditions on faces, patches and surfaces towards void.
        sources: in the body and on faces.
        parts: the owner of each cell; None where nothing is painted.
        reference: the temperature in K at which materials that change have the properties that ``materials`` names;
            0 where none changes.
        rates: α/d² of the three axes in 1/s, in the first material of the palette that has cells.
        stability: limits of the time step.
        timeline: due times and steps.
        precision, rounding, scheme: how steps are summed.
        coefficients: c0…c6 for every dt used, of the same material as the rates.
    """

    scenario: Scenario
    grid: Grid
    materials: Medium
    boundary: Boundary
    sources: Sources
    parts: Parts | None
    reference: float
    rates: tuple[float, float, float]
    stability: Stability
    timeline: Timeline
    precision: Precision
    rounding: Rounding
    scheme: Scheme
    coefficients: Mapping[float, Coefficients]

    @classmethod
    def from_scenario(cls, scenario: Scenario) -> "HeatProblem":
        """Derive everything.

        Raises:
            ScenarioError: a time step that is unstable or does not divide the intervals, or too many steps; regions
                that cannot be painted.
        """
        if scenario.steady:
            return cls._steady(scenario)
        grid, time = scenario.grid, scenario.time
        boundary = Boundary.from_scenario(scenario)
        painted = Painted.from_scenario(scenario, boundary)
        materials = painted.materials
        stability = Stability(materials, boundary)
        if not isinstance(time.dt, str):
            stability.check(time.dt)
        intervals = (scenario.output.every, scenario.output.probe_every)
        try:
            steps = time_steps.build(
                time.end, intervals, time.dt, time.safety, stability.limit.dt, scenario.switching_times
            )
        except time_steps.TimelineError as error:
            raise ScenarioError(scenario.path, [Mistake("time.dt", str(error))]) from None

        precision, solver = scenario.solver.precision, scenario.solver
        rounding: Rounding = "stochastic" if solver.rounding == "stochastic" and precision == "float32" else "nearest"
        rates = materials.diffusion_rates
        scheme = choose_scheme(grid, rates, float(steps.dts.min()), precision, rounding)
        if (materials.varies or not materials.uniform) and scheme == "seven_term":
            scheme = "increments"  # one cell's coefficients differ from the next one's
        return cls(
            scenario=scenario,
            grid=grid,
            materials=materials,
            boundary=boundary,
            sources=Sources(scenario, materials),
            parts=painted.parts,
            reference=painted.reference,
            rates=rates,
            stability=stability,
            timeline=steps,
            precision=precision,
            rounding=rounding,
            scheme=scheme,
            coefficients={dt: derive(grid, rates, dt, precision, scheme) for dt in steps.step_lengths},
        )

    @classmethod
    def _steady(cls, scenario: Scenario) -> "HeatProblem":
        """Where no time passes there are no steps."""
        boundary = Boundary.from_scenario(scenario)
        painted = Painted.from_scenario(scenario, boundary)
        problem = cls(
            scenario=scenario,
            grid=scenario.grid,
            materials=painted.materials,
            boundary=boundary,
            sources=Sources(scenario, painted.materials),
            parts=painted.parts,
            reference=painted.reference,
            rates=painted.materials.diffusion_rates,
            stability=Stability(painted.materials, boundary),
            timeline=Timeline.instant(),
            precision=scenario.solver.precision,
            rounding="nearest",
            scheme="increments",
            coefficients={},
        )
        refuse_floating(scenario, SteadyBalance(problem, 0.0))
        return problem

    @property
    def limit(self) -> StabilityLimit:
        """The largest stable time step."""
        return self.stability.limit

    @property
    def periodic(self) -> tuple[bool, bool, bool]:
        """Which axes wrap."""
        return self.boundary.periodic

    @cached_property
    def linear(self) -> bool:
        """Whether one constant material fills the box, nothing radiates, and there are no patches and no sources.

        The variant of the kernels follows from this alone: a step then gives each cell at a face f − g·(T − T_ref).
        """
        one_material = self.materials.uniform and not self.materials.varies
        return one_material and self.boundary.linear and not self.scenario.sources

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
            f (K) and g, each of shape (n, 6) in the run's precision; see :func:`heatsim.physics.boundary.linear_terms`.

        Raises:
            ScenarioError: a face's value is not finite or makes the time step unstable at one of the times.
        """
        f = np.zeros((len(times), 6), dtype=self.precision)
        g = np.zeros((len(times), 6), dtype=self.precision)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
            rows = self._condition_rows(times, dt, reference)
            for face in range(6):
                if not self.boundary.exchanging(face):
                    continue
                axis = face // 2
                shares = 2.0 * self.rates[axis] * dt, 2.0 * self.coefficients[dt].exchange[axis]
                conductance = float(1.0 / self.materials.half[axis, 0])
                f[:, face], g[:, face] = linear_terms(rows[:, face], conductance, *shares, self.precision)
                finite = np.isfinite(f[:, face]) & np.isfinite(g[:, face])
                if not finite.all():
                    raise self.boundary.not_physical(face, float(times[int(np.argmin(finite))]))
        return f, g

    def rows(self, times: Array, dt: float, reference: float) -> Rows:
        """What changes in steps of ``dt`` seconds from ``times``; temperatures as deviations from ``reference`` (K).

        Raises:
            ScenarioError: a value is not finite, or makes the time step unstable at one of the times.
        """
        conditions = self._condition_rows(times[:1] if self.boundary.constant else times, dt, reference)
        heat = self.sources.heat(times[:1] if self.sources.heat_constant else times, dt)
        held = self.materials.potentials_at(conditions[:, :, AMBIENT])
        return Rows(conditions, held, heat, tuple(self.sources.beam_rows(times, dt)))

    def _condition_rows(self, times: Array, dt: float, reference: float) -> Array:
        rows = self.boundary.rows(times, reference, dt)
        self.stability.check_rows(dt, rows, float(times[0]))
        return rows
