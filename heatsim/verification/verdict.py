"""Run a case and decide whether it passes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from heatsim.errors import Interrupted, RunError
from heatsim.grid import AXES
from heatsim.run.method_override import method_override
from heatsim.run.simulation import Simulation
from heatsim.scenario import ADAPTIVE, Scenario, load
from heatsim.solver.steady.steady_state import METHOD
from heatsim.verification.case import LEAST_ORDER, Case, Comparison, EndState


@dataclass(frozen=True)
class Verdict:
    """The result of a case. Field names are those of its JSON; numbers are None if the run failed.

    Attributes:
        name: name of the case.
        source: the publication or derivation of the answer.
        scenario: the scenario file.
        reference: the known value in K where the difference is largest.
        computed: the computed value in K at the same place.
        error: the largest difference in K.
        tolerance: the largest allowed difference in K.
        order: observed order, from a second grid of half as many cells along each axis; None if it is not tested.
        least_order: the smallest allowed order; None if it is not tested.
        passed: whether error and order are within their limits.
        method: "euler", "stabilized", "implicit" or "steady".
        end_state: whether the end state of a transient case was solved for.
        step_tolerance: the error in K that a step may have; None for methods without such a tolerance.
        failure: the error message of a failed run; else None.
        device: name of the device.
        kernel: name of the kernel.
        precision: "float32" or "float64".
        cells: cells along x, y, z.
        steps: number of steps.
        stages: number of stages, those of rejected steps included; None for methods without stages.
        seconds: wall-clock time of all runs of the case.
    """

    name: str
    source: str
    scenario: str
    reference: float | None
    computed: float | None
    error: float | None
    tolerance: float
    order: float | None
    least_order: float | None
    passed: bool
    method: str
    end_state: bool
    step_tolerance: float | None
    failure: str | None
    device: str
    kernel: str
    precision: str
    cells: tuple[int, int, int]
    steps: int
    stages: int | None
    seconds: float


def check(case: Case, overrides: Sequence[str] = (), method: str | None = None) -> Verdict:
    """Run a case in a temporary folder, on two grids if its order is tested.

    Args:
        case: the case.
        overrides: "key.path=value" texts that replace single values of its scenario.
        method: "euler", "stabilized" or "implicit" for a case in which time passes, "steady" for its end state; None
            for the method of its scenario.

    Raises:
        InputError: the device, kernel or memory that it needs is not available.
        KeyboardInterrupt: the run was stopped by a signal.
    """
    started = perf_counter()
    failure: str | None = None
    found: Comparison | None = None
    order: float | None = None
    overrides = [*overrides, *_with_method(case, overrides, method), "output.error=none"]
    end = case.end if method == "steady" and isinstance(case.end, EndState) else None
    tests_order = case.order and end is None
    with TemporaryDirectory(prefix="heatsim-verify-", ignore_cleanup_errors=True) as temporary:
        simulation = Simulation.from_scenario(case.path, overrides, output=Path(temporary) / "run")
        try:
            simulation.run()
            found = ((end and end.quantity) or case.quantity)(simulation)
            if tests_order:
                order = log2(_coarse(case, overrides, Path(temporary) / "coarse").rms / found.rms)
        except RunError as error:
            failure = str(error)
        except Interrupted:
            # The message names a checkpoint in the temporary folder, which is deleted.
            raise KeyboardInterrupt from None
    problem = simulation.plan.problem
    time, adaptive = problem.scenario.time, simulation.state.method
    tolerance = case.allowed(problem.precision, time.method) if end is None else _allowed_at_end(end, simulation)
    reference, computed = found.worst if found else (None, None)
    return Verdict(
        name=case.name,
        source=case.source,
        scenario=str(case.path),
        reference=reference,
        computed=computed,
        error=found.error if found else None,
        tolerance=tolerance,
        order=order,
        least_order=LEAST_ORDER if tests_order else None,
        passed=failure is None and _passes(found, tolerance, order, tests_order),
        method=time.method,
        end_state=end is not None,
        step_tolerance=time.tolerance if adaptive else None,
        failure=failure,
        device=simulation.plan.device.name,
        kernel=METHOD if problem.scenario.steady else simulation.plan.kernel.name,
        precision=problem.precision,
        cells=problem.grid.cells,
        steps=adaptive.work.steps if adaptive else simulation.step,
        stages=adaptive.work.stages if adaptive else None,
        seconds=perf_counter() - started,
    )


def _allowed_at_end(end: EndState, simulation: Simulation) -> float:
    """The tolerance of a steady state: that of the grid, and that of its solver."""
    steady = simulation.state.steady
    return end.in_space + (0.0 if steady is None else steady.progress.tolerance)


def _passes(found: Comparison | None, tolerance: float, order: float | None, tests_order: bool) -> bool:
    """Whether error and order are within their limits; NaN is not."""
    if found is None or not found.error <= tolerance:
        return False
    return not tests_order or (order is not None and order >= LEAST_ORDER)


def _with_method(case: Case, overrides: Sequence[str], method: str | None) -> list[str]:
    """The override that runs a case with a method; none for a steady state, or for the method of its scenario."""
    scenario = load(case.path, overrides)
    if method is None or scenario.steady:
        return []
    if method == "steady":
        return ['time={ method = "steady" }']
    tolerance = case.tolerance_of_step(scenario.solver.precision) if method in ADAPTIVE else None
    return [method_override(scenario, method, tolerance)]


def _coarse(case: Case, overrides: Sequence[str], output: Path) -> Comparison:
    """The case with half as many cells along each axis of several cells, and four times the time step of "euler"."""
    scenario = load(case.path, overrides)
    coarser = _coarse_cells(scenario)
    if scenario.time.method == "euler":
        dt = scenario.time.dt
        assert isinstance(dt, float), f"{case.path}: a case with an order gives its dt"
        coarser.append(f"time.dt={4.0 * dt!r}")
    simulation = Simulation.from_scenario(case.path, [*overrides, *coarser], output=output)
    simulation.run()
    return case.quantity(simulation)


def _coarse_cells(scenario: Scenario) -> list[str]:
    """The overrides that join pairs of cells along each axis of several cells."""
    domain = scenario.domain
    found, rest = [], []
    for name, axis, count in zip(AXES, domain.grid.axes, domain.cells, strict=True):
        if getattr(domain, name) is not None:
            found.append(f"domain.{name}={{ widths = {np.diff(axis.borders[::2]).tolist()} }}")
        elif not (domain.axial and name == "y"):
            rest.append(count if count == 1 else count // 2)
    return [*found, f"domain.cells={rest}"] if rest else found
