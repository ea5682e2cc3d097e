"""Runs a case and says whether it is right."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from heatsim.errors import Interrupted, RunError
from heatsim.run.simulation import Simulation
from heatsim.scenario import load
from heatsim.solver.steady_state import METHOD
from heatsim.verification.case import LEAST_ORDER, Case, Comparison


@dataclass(frozen=True)
class Verdict:
    """What a case has come to. Field names are those of its JSON; numbers are None where the run failed.

    Attributes:
        name: of the case.
        source: who published the answer, or where it is derived.
        scenario: the file that was run.
        reference: of the values known, in K, the one that differs most from the computed.
        computed: that value as computed, in K.
        error: the largest difference in K.
        tolerance: the largest allowed, in K.
        order: observed, from a second grid of half as many cells along each axis; None where it is not looked at.
        least_order: the smallest order allowed; None where it is not looked at.
        passed: whether error and order are as they must be.
        failure: why the run failed; None if it did not.
        device: its name.
        kernel: of the run.
        precision: "float32" or "float64".
        cells: along x, y, z.
        steps: of the run.
        seconds: of wall-clock time, for all runs of the case.
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
    failure: str | None
    device: str
    kernel: str
    precision: str
    cells: tuple[int, int, int]
    steps: int
    seconds: float


def check(case: Case, overrides: Sequence[str] = ()) -> Verdict:
    """Run a case in a temporary folder, on two grids where its order is looked at.

    Args:
        case: what to run.
        overrides: "key.path=value" texts that replace single values of its scenario.

    Raises:
        InputError: the device, kernel or memory that it needs is not there.
        KeyboardInterrupt: a signal came.
    """
    started = perf_counter()
    failure: str | None = None
    found: Comparison | None = None
    order: float | None = None
    with TemporaryDirectory(prefix="heatsim-verify-", ignore_cleanup_errors=True) as temporary:
        simulation = Simulation.from_scenario(case.path, overrides, output=Path(temporary) / "run")
        try:
            simulation.run()
            found = case.quantity(simulation)
            if case.order:
                coarse = _coarse(case, overrides, Path(temporary) / "coarse")
                order = log2(coarse.rms / found.rms)
        except RunError as error:
            failure = str(error)
        except Interrupted:
            # Its message is about a checkpoint, which goes with the temporary folder.
            raise KeyboardInterrupt from None
    problem = simulation.plan.problem
    tolerance = case.allowed(problem.precision)
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
        least_order=LEAST_ORDER if case.order else None,
        # Written so that NaN does not pass.
        passed=found is not None
        and failure is None
        and found.error <= tolerance
        and (not case.order or (order is not None and order >= LEAST_ORDER)),
        failure=failure,
        device=simulation.plan.device.name,
        kernel=METHOD if problem.scenario.steady else simulation.plan.kernel.name,
        precision=problem.precision,
        cells=problem.grid.cells,
        steps=simulation.step,
        seconds=perf_counter() - started,
    )


def _coarse(case: Case, overrides: Sequence[str], output: Path) -> Comparison:
    """The case on half as many cells along each axis that has several, with four times the time step."""
    scenario = load(case.path, overrides)
    cells = [n if n == 1 else n // 2 for n in scenario.domain.cells]
    dt = scenario.time.dt
    assert isinstance(dt, float), f"{case.path}: a case with an order gives its dt"
    simulation = Simulation.from_scenario(
        case.path, [*overrides, f"domain.cells={cells}", f"time.dt={4.0 * dt!r}"], output=output
    )
    simulation.run()
    return case.quantity(simulation)
