"""A scenario turned into numbers: the coefficients of every step, and what a composite body consists of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import Mistake, ScenarioError
from heatsim.grid import FACES, Grid
from heatsim.physics import time_steps
from heatsim.physics.body import Body
from heatsim.physics.coefficients import (
    Coefficients,
    Precision,
    Rounding,
    Scheme,
    StabilityLimit,
    choose_scheme,
    derive,
    diffusion_rates,
    stability_limit,
)
from heatsim.physics.faces import Faces
from heatsim.physics.grounding import refuse_floating
from heatsim.physics.steady_balance import SteadyBalance
from heatsim.physics.time_steps import Timeline
from heatsim.scenario import Periodic, Scenario


@dataclass(frozen=True)
class HeatProblem:
    """What the kernels and observers need to know of a scenario.

    Attributes:
        scenario: where it came from.
        grid: the cells.
        faces: the boundary conditions.
        periodic: which axes wrap.
        rates: α/d² of the three axes in 1/s, in the first material of the palette; of one that changes with temperature
            this and what follows from it is meant at the reference temperature.
        limit: the largest stable time step.
        timeline: due times and steps.
        precision, rounding, scheme: how steps are summed.
        coefficients: c0…c6 for every dt used, of the first material.
        cell_heat_capacity: ρ·cp·V of one cell in J/K, of the first material.
        body: the kinds of cells, conditions and sources where one material and linear conditions are not enough, else
            None.
    """

    scenario: Scenario
    grid: Grid
    faces: Faces
    periodic: tuple[bool, bool, bool]
    rates: tuple[float, float, float]
    limit: StabilityLimit
    timeline: Timeline
    precision: Precision
    rounding: Rounding
    scheme: Scheme
    coefficients: Mapping[float, Coefficients]
    cell_heat_capacity: float
    body: Body | None = None

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
        x, y, z = (isinstance(scenario.boundaries.face(name), Periodic) for name in FACES[::2])
        periodic = (x, y, z)
        body = Body.from_scenario(scenario, periodic) if scenario.composite else None
        reference = body.reference if body is not None else 0.0
        faces, rates = Faces.from_scenario(scenario, reference), diffusion_rates(scenario, reference)
        if body is None:
            limit = stability_limit(grid, rates, periodic, faces.largest_betas(time.end))
        else:
            limit = body.stability_limit()
        if not isinstance(time.dt, str) and time.dt > limit.dt * (1.0 + 1e-9):
            raise _time_error(
                scenario,
                f"{time.dt!r} s is beyond the stability limit {limit.dt:.6g} s (set by {limit_setter(limit, body)}); "
                f'use at most that, "auto", or coarser cells',
            )
        intervals = (scenario.output.every, scenario.output.probe_every)
        try:
            steps = time_steps.build(time.end, intervals, time.dt, time.safety, limit.dt, scenario.switching_times)
        except time_steps.TimelineError as error:
            raise _time_error(scenario, str(error)) from None

        precision, solver = scenario.solver.precision, scenario.solver
        rounding: Rounding = "stochastic" if solver.rounding == "stochastic" and precision == "float32" else "nearest"
        scheme = choose_scheme(grid, rates, float(steps.dts.min()), precision, rounding)
        if body is not None and (body.medium.varies or not body.medium.uniform) and scheme == "seven_term":
            scheme = "increments"  # one cell's coefficients differ from the next one's
        material = scenario.base_material
        return cls(
            scenario=scenario,
            grid=grid,
            faces=faces,
            periodic=periodic,
            rates=rates,
            limit=limit,
            timeline=steps,
            precision=precision,
            rounding=rounding,
            scheme=scheme,
            coefficients={dt: derive(grid, rates, dt, precision, scheme) for dt in steps.step_lengths},
            cell_heat_capacity=material.density * material.specific_heat_at(reference) * grid.cell_volume,
            body=body,
        )

    @classmethod
    def _steady(cls, scenario: Scenario) -> "HeatProblem":
        """Where no time passes there are no steps, and every body is looked at in the same way."""
        grid, precision = scenario.grid, scenario.solver.precision
        x, y, z = (isinstance(scenario.boundaries.face(name), Periodic) for name in FACES[::2])
        body = Body.from_scenario(scenario, (x, y, z))
        refuse_floating(scenario, SteadyBalance(body, 0.0))
        material = scenario.base_material
        return cls(
            scenario=scenario,
            grid=grid,
            faces=Faces.from_scenario(scenario, body.reference),
            periodic=(x, y, z),
            rates=diffusion_rates(scenario, body.reference),
            limit=body.stability_limit(),
            timeline=Timeline.instant(),
            precision=precision,
            rounding="nearest",
            scheme="increments",
            coefficients={},
            cell_heat_capacity=material.density * material.specific_heat_at(body.reference) * grid.cell_volume,
            body=body,
        )

    def exchanging(self, face: int) -> bool:
        """Whether heat can pass a face to or from outside the box, other than a beam's."""
        return self.faces.exchanging(face) if self.body is None else self.body.conditions.exchanging(face)

    def face_terms(self, times: NDArray[np.float64], dt: float, reference: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """The terms f and g of the six faces for steps of ``dt`` seconds that start at ``times``.

        Args:
            times: in s, shape (n,).
            dt: in s, one of the timeline's.
            reference: the temperature in K that deviations are counted from.

        Returns:
            f (K) and g, each of shape (n, 6) in the run's precision. f is made from the rounded g, so that f/g is the
            ambient temperature to within one rounding.

        Raises:
            ScenarioError: a face's value is not finite or makes the time step unstable at one of the times.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below
            return self._face_terms(times, dt, reference)

    def _face_terms(self, times: NDArray[np.float64], dt: float, reference: float) -> tuple[NDArray[Any], NDArray[Any]]:
        f = np.zeros((len(times), 6), dtype=self.precision)
        g = np.zeros((len(times), 6), dtype=self.precision)
        betas = [0.0] * 6
        for face in range(6):
            if not self.faces.exchanging(face):
                continue
            axis = face // 2
            c = self.coefficients[dt].exchange[axis]
            exchange = self.faces.exchange(face, times, dt)
            g[:, face] = c * exchange.beta
            gradient = exchange.flux * self.grid.spacing[axis] / self.faces.conductivity[axis]
            # The heat of a given flux does not depend on c, so it is made with the unrounded one.
            flux = self.rates[axis] * dt * gradient
            f[:, face] = g[:, face].astype(np.float64) * (exchange.ambient - reference) + flux
            betas[face] = float(exchange.beta.max())
            finite = np.isfinite(f[:, face]) & np.isfinite(g[:, face]) & (exchange.ambient >= 0.0)
            if not finite.all():
                time = float(times[int(np.argmin(finite))])
                raise ScenarioError(
                    self.scenario.path,
                    [Mistake(f"boundaries.{FACES[face]}", f"is not a finite, physical value at t = {time!r} s")],
                )
        limit = stability_limit(self.grid, self.rates, self.periodic, betas)
        if dt > limit.dt * (1.0 + 1e-9):
            raise _time_error(
                self.scenario,
                f"{dt!r} s is beyond the stability limit {limit.dt:.6g} s that the convection coefficients reach near "
                f"t = {float(times[0])!r} s, a peak too narrow to be foreseen; lower time.safety or give a table",
            )
        return f, g


def limit_setter(limit: StabilityLimit, body: Body | None) -> str:
    """The cell that sets the limit, and of several materials its own."""
    x, y, z = limit.cell
    cell = f"cell [{x}, {y}, {z}]"
    if body is None or len(body.medium.palette) == 1:
        return cell
    return f'{cell}, material "{body.medium.substance_at(x, y, z).name}"'


def _time_error(scenario: Scenario, message: str) -> ScenarioError:
    return ScenarioError(scenario.path, [Mistake("time.dt", message)])
