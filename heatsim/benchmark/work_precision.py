"""Measure the error of the methods in time on a user's scenario, and the time that they take.

The reference is a run in float64 with a twentieth of the smallest tolerance measured, and so with about a twentieth of
the smallest error of "stabilized". It uses the grid of the scenario, so errors are those in time and of rounding,
without the error in space.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import ceil, inf
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from heatsim import garbage
from heatsim.benchmark.method_results import MethodResult, WorkPrecision
from heatsim.counts import counted
from heatsim.errors import InputError, Interrupted, RunError, ScenarioError, StorageError
from heatsim.observers.observer import Observer, Values
from heatsim.observers.state import RunState
from heatsim.physics.estimates.initial import InitialField
from heatsim.physics.estimates.temperature_range import span
from heatsim.run.method_override import method_override
from heatsim.run.plan import Plan
from heatsim.run.simulation import Simulation
from heatsim.scenario import ADAPTIVE, Scenario, load
from heatsim.solver.field.field_copy import FieldCopy
from heatsim.storage import folder
from heatsim.storage.field_reader import FieldReader
from heatsim.storage.run_tables import read_probes
from heatsim.storage.summary_file import read_summary
from heatsim.storage.vtkhdf import VOID
from heatsim.temperature_units import KELVIN

PATIENCE = 120.0  # s
# The tolerances, as parts of the range of temperatures.
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5)
_REFERENCE = 5e-7
_LONG_ENOUGH = 0.3  # s of Euler's steps, from which the time of all of them follows
_GROWTH = 4
# No pictures, and no heat flux: neither is compared.
_LESS_OUTPUT = ("output.error=none", "output.figures=false", "output.heat_flux=false")


def measure_methods(
    path: Path,
    overrides: Sequence[str] = (),
    patience: float = PATIENCE,
    say: Callable[[str], None] = lambda doing: None,
) -> WorkPrecision:
    """Run a scenario with each method in time, in a temporary folder.

    Args:
        path: the scenario.
        overrides: "key.path=value" texts that replace single values of it.
        patience: leave out Euler's method if its steps would take longer than this, in s.
        say: called with a text before each run.

    Raises:
        InputError: the scenario cannot be run, is a steady state, or its temperatures do not change.
        RunError: the reference failed.
        Interrupted: a signal came; nothing is left on the disk.
    """
    if not 0.0 <= patience < inf:
        raise InputError(f"--patience {patience:g}: give a time in s, at least 0")
    scenario = load(path, overrides)
    if scenario.steady:
        raise InputError(
            f'{path}: time.method = "steady" has no steps; --methods compares methods in time: add for example '
            "--set time.method=euler --set time.end=10"
        )
    with TemporaryDirectory(prefix="heatsim-bench-", ignore_cleanup_errors=True) as temporary:
        try:
            return _measure(_Bench(path, tuple(overrides), scenario, Path(temporary), patience, say))
        except (Interrupted, KeyboardInterrupt):
            # The message of a run names a checkpoint in the temporary folder, which is deleted.
            raise Interrupted(f"{path}: interrupted; no numbers were written") from None


class _Range(Observer):
    """The extremes in K of the field at all due times."""

    def __init__(self) -> None:
        self.lowest, self.highest = inf, -inf

    def due(self, state: RunState) -> NDArray[np.int64]:
        """All due times."""
        return state.problem.timeline.steps

    def handle(self, state: RunState) -> None:
        """Look at the extremes."""
        extremes = state.statistics.extremes()
        self.lowest, self.highest = min(self.lowest, extremes.lowest), max(self.highest, extremes.highest)


class _Difference(Observer):
    """The largest difference in K from the fields of a finished run, and its time in s."""

    def __init__(self, reference: Path) -> None:
        self.error, self.time = 0.0, 0.0
        self._path = reference / folder.FIELDS
        self._files = ExitStack()

    def due(self, state: RunState) -> NDArray[np.int64]:
        """The due times of fields."""
        return state.problem.timeline.steps_at(state.problem.scenario.output.every)

    def start(self, state: RunState, saved: Values | None) -> None:
        """Open the fields to compare with."""
        self._reader, self._count = self._files.enter_context(FieldReader(self._path)), 0

    def handle(self, state: RunState) -> None:
        """Compare the field, a few planes at a time."""
        mine, reader = FieldCopy(state.field), self._reader
        for planes, known in reader.slabs(self._count):
            difference = np.abs(mine.planes(planes.start, planes.stop) - known)
            if VOID in reader.materials:
                difference = difference[reader.conducting(planes)]
            largest = float(difference.max(initial=0.0))
            if largest > self.error:
                self.error, self.time = largest, state.time
        self._count += 1

    def close(self) -> None:
        """Close the file."""
        self._files.close()


@dataclass
class _Bench:
    """What all runs of a benchmark share; ``end`` and ``range`` are known after the first one."""

    path: Path
    overrides: tuple[str, ...]
    scenario: Scenario
    temporary: Path
    patience: float
    say: Callable[[str], None]
    end: float | None = None
    range: float = 0.0
    runs: int = 0

    @property
    def reference(self) -> Path:
        """The folder of the reference."""
        return self.temporary / "reference"

    def simulation(
        self, method: str, tolerance: float | None = None, *others: str, at: Path | None = None
    ) -> Simulation:
        """A run that has not begun."""
        self.runs += 1
        garbage.search_now()  # the fields of the run before
        return Simulation.from_scenario(
            self.path,
            [
                *self.overrides,
                method_override(self.scenario, method, tolerance, self.end),
                *_LESS_OUTPUT,
                *others,
            ],
            output=at or self.temporary / f"run_{self.runs}",
        )


def _measure(bench: _Bench) -> WorkPrecision:
    plan = _find_range(bench)
    reference = _reference(bench)
    methods = (*(result for method in ADAPTIVE for result in _adaptive(bench, method)), _euler(bench))
    assert bench.end is not None
    return WorkPrecision(
        scenario=str(bench.path),
        title=bench.scenario.title,
        device=plan.device.name,
        precision=plan.problem.precision,
        cells=plan.problem.grid.cells,
        end=bench.end,
        range=bench.range,
        reference=reference,
        methods=methods,
    )


def _find_range(bench: _Bench) -> Plan:
    """Find the range of temperatures and the end, by a run with the default tolerance. It warms the machine up too.

    Raises:
        InputError: the temperatures do not change.
    """
    bench.say("a first run, for the range of temperatures")
    extremes, simulation = _Range(), bench.simulation("stabilized")
    simulation.run(watchers=[extremes])
    problem = simulation.plan.problem
    around = span(InitialField.from_scenario(problem.scenario, problem.parts), problem.boundary)
    bench.end, bench.range = simulation.time, max(around, extremes.highest - extremes.lowest)
    if bench.range == 0.0:
        raise InputError(f"{bench.path}: all temperatures stay at {extremes.lowest:.6g} K, so no method makes an error")
    if bench.scenario.solver.precision == "auto":  # all of them have that of the default tolerance
        bench.overrides = (*bench.overrides, f"solver.precision={problem.precision}")
    return simulation.plan


def _reference(bench: _Bench) -> MethodResult:
    """Run the reference; its fields and probes stay in the temporary folder."""
    tolerance = _REFERENCE * bench.range
    bench.say(f"the reference: float64, tolerance {tolerance:.2g} K")
    exact = ("solver.precision=float64", "output.fields=true", "output.energy=false")
    simulation = bench.simulation("stabilized", tolerance, *exact, at=bench.reference)
    simulation.run()
    return _numbers(bench.reference)


def _adaptive(bench: _Bench, method: str) -> Iterator[MethodResult]:
    """The results of a method for all tolerances, the largest first."""
    for tolerance in (part * bench.range for part in TOLERANCES):
        bench.say(f"{method}, tolerance {tolerance:.2g} K")
        yield _compared(bench, method, tolerance)


def _euler(bench: _Bench) -> MethodResult:
    """The result of Euler's method if it is not too slow."""
    bench.say("euler: timing some steps")
    try:
        seconds, steps = _seconds_of_euler(bench.simulation("euler"))
    except ScenarioError as error:  # more steps than can be counted
        return MethodResult("euler", None, skipped=str(error))
    if seconds > bench.patience:
        reason = f"left out: {counted(steps, 'step')} would take about {seconds:,.0f} s"
        return MethodResult("euler", None, skipped=f"{reason}; --patience {ceil(1.1 * seconds)} allows that")
    bench.say(f"euler: {counted(steps, 'step')}, about {seconds:,.2g} s")
    return _compared(bench, "euler")


def _seconds_of_euler(simulation: Simulation) -> tuple[float, int]:
    """How long all steps of a run would take, from some that are done here, and their number."""
    stepper, device = simulation.execution.stepper(), simulation.plan.device
    last = simulation.plan.problem.timeline.last_step
    stepper.prepare()
    stepper.advance(1)  # compiles what was not compiled before
    device.synchronise()
    steps, seconds, done, timed = 1, 0.0, 1, 1
    while seconds < _LONG_ENOUGH and done < last:
        steps = min(steps, last - done)
        started = time.perf_counter()
        stepper.advance(steps)
        device.synchronise()
        seconds, done, timed = time.perf_counter() - started, done + steps, steps
        steps *= _GROWTH
    return seconds / timed * last, last


def _compared(bench: _Bench, method: str, tolerance: float | None = None) -> MethodResult:
    """The numbers of a run, which is done here, and its largest difference from the reference.

    Raises:
        StorageError: files cannot be written or read back. Other failures are a part of the result.
    """
    difference, simulation = _Difference(bench.reference), bench.simulation(method, tolerance)
    try:
        simulation.run(watchers=[difference])
    except StorageError:
        raise
    except (ScenarioError, RunError) as failure:  # one of these says that rounding hides the tolerance
        return MethodResult(method, tolerance, skipped=f"failed: {failure}")
    error, place, at = difference.error, "field", difference.time
    if bench.scenario.probes:
        known, found = read_probes(bench.reference), read_probes(simulation.folder)
        assert known is not None, "the reference has the same probes"
        assert found is not None, "a run with probes writes them"
        curves = found.in_unit(KELVIN.name)
        for name, exact in known.in_unit(KELVIN.name).items():
            differences = np.abs(curves[name] - exact)
            row = int(np.argmax(differences))
            if differences[row] > error:
                error, place, at = float(differences[row]), name, float(known.times[row])
    return replace(_numbers(simulation.folder), error=error, error_place=place, error_time=at)


def _numbers(run: Path) -> MethodResult:
    """What the summary of a finished run says."""
    summary = read_summary(run)
    return MethodResult(
        method=summary["method"],
        tolerance=summary.get("tolerance"),
        kernel=summary["kernel"],
        steps=summary["steps"],
        stages=summary.get("stages"),
        rejected=summary.get("rejected"),
        seconds=summary["stepping_time"],
        cells_per_second=summary["cells_per_second"],
    )
