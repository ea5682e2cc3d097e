"""A run from start to end: the only place that puts the parts together."""

import json
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heatsim.composite_stepper import composite_arrays
from heatsim.errors import FolderError, Interrupted
from heatsim.field import Field
from heatsim.kernels.tuning import Choice
from heatsim.ledger import Ledger
from heatsim.observers import energy
from heatsim.observers.checkpoint import Checkpoints
from heatsim.observers.energy import Energy
from heatsim.observers.observer import Observer, RunState, Values
from heatsim.observers.probes import Probes
from heatsim.observers.progress import Progress
from heatsim.observers.snapshots import Snapshots
from heatsim.observers.steady import Steady
from heatsim.observers.watchdog import Watchdog
from heatsim.physics.initial import InitialField
from heatsim.physics.problem import HeatProblem
from heatsim.plan import Plan
from heatsim.scenario import Scenario, load, write_resolved
from heatsim.settings import differences, settings
from heatsim.stepper import Stepper
from heatsim.stop import Stop, done_unless_stopped, stop_on_signals
from heatsim.storage import checkpoint, folder
from heatsim.storage.disk import resume_command
from heatsim.version import version

# Device work is queued for about this long before the clock and signals are looked at.
_BATCH_SECONDS = 0.25
_OBSERVING_WORTH_A_WARNING = 1.0  # s


@dataclass
class Timing:
    """Wall-clock seconds of a run's parts.

    Attributes:
        preparing: reading the initial field and compiling.
        stepping: the kernels.
        observing: summing, copying the field for what is written beside the run, writing rows.
        waiting: for fields and checkpoints that were still being written.
    """

    preparing: float = 0.0
    stepping: float = 0.0
    observing: float = 0.0
    waiting: float = 0.0


@dataclass
class Simulation:
    """A scenario that can be run, or gone on with.

    >>> import heatsim
    >>> simulation = heatsim.Simulation.from_scenario("scenarios/cube.toml")
    >>> simulation.run()
    >>> simulation.temperature.max()

    Attributes:
        plan: what the run needs and does.
        folder: where it writes.
        state: field, step and time.
        timing: where the wall-clock time went.
        warnings: what the user should know although it did not stop the run.
    """

    plan: Plan
    folder: Path
    state: RunState
    timing: Timing = field(default_factory=Timing)
    warnings: list[str] = field(default_factory=list)

    _choice: Choice | None = None
    _saved: Values | None = None
    _overwrite: bool = False
    _resuming: bool = False

    @classmethod
    def from_scenario(
        cls,
        path: str | Path,
        overrides: Sequence[str] = (),
        *,
        output: str | Path | None = None,
        overwrite: bool = False,
    ) -> "Simulation":
        """Read a scenario and set its field to the initial temperature; nothing is written yet.

        Args:
            path: the TOML file.
            overrides: "key.path=value" texts that replace single values of it.
            output: the folder to write to; outputs/<the file's stem> if not given.
            overwrite: replace what an unfinished run left in that folder.

        Raises:
            ScenarioError, DeviceError, CapacityError: it cannot be run; says why.
        """
        scenario = load(path, overrides)
        target = Path("outputs") / Path(path).stem if output is None else Path(output)
        return cls._assemble(scenario, target, overwrite=overwrite)

    @classmethod
    def from_model(cls, scenario: Scenario, output: str | Path) -> "Simulation":
        """The same from a scenario that has been read already, into the folder ``output``.

        Raises:
            ScenarioError, DeviceError, CapacityError: it cannot be run; says why.
        """
        return cls._assemble(scenario, Path(output))

    @classmethod
    def resume(cls, path: str | Path) -> "Simulation":
        """Go on from the last good checkpoint of a run's folder; from the start if there is none yet.

        Raises:
            FolderError: not the folder of a run, or its scenario.toml was changed since.
            StorageError: all checkpoints are damaged.
        """
        target = folder.require_run(Path(path))
        saved, warnings = checkpoint.read_last_good(target)
        simulation = cls._assemble(load(target / folder.SCENARIO), target, saved, resuming=True)
        simulation.warnings.extend(warnings)
        return simulation

    @classmethod
    def _assemble(
        cls,
        scenario: Scenario,
        target: Path,
        saved: checkpoint.Checkpoint | None = None,
        *,
        overwrite: bool = False,
        resuming: bool = False,
    ) -> "Simulation":
        started = time.perf_counter()
        problem = HeatProblem.from_scenario(scenario)
        plan = Plan.of(problem)
        plan.check_capacity(target)
        copies = plan.room_for_copy
        if saved is None:
            initial = InitialField.from_scenario(scenario)
            reference = initial.reference
        else:
            initial, reference = None, float(saved.values["reference"])
        temperatures = Field(plan.device, problem.grid, problem.precision, reference)
        ledger = Ledger(plan.device, problem.grid, problem.faces, scenario.output.energy, problem.body)
        arrays = None if problem.body is None else composite_arrays(problem, problem.body, temperatures)
        if arrays is not None:
            temperatures.thermometer = arrays.thermometer
        if initial is not None and initial.uniform:
            temperatures.load_deviations(np.zeros((1, 1, 1)))
        elif initial is not None:
            contents = () if problem.body is None else (problem.body.medium.contents,)
            temperatures.load_temperatures(initial.slabs(), *contents)
        state = RunState(problem, temperatures, ledger, target, arrays=arrays, copies=copies)
        simulation = cls(
            plan, target, state, _saved=saved.values if saved else None, _overwrite=overwrite, _resuming=resuming
        )
        if saved is None:
            state.total()  # sees that it is finite
            state.initial_total = state.content()
        else:
            simulation._restore(saved)
        simulation.timing.preparing = time.perf_counter() - started
        return simulation

    @property
    def temperature(self) -> NDArray[np.float64]:
        """The temperatures in K after the steps done so far, shape (nz, ny, nx)."""
        return self.state.field.temperature()

    @property
    def time(self) -> float:
        """Simulated time in s."""
        return self.state.time

    @property
    def step(self) -> int:
        """Number of steps done."""
        return self.state.step

    @property
    def finished(self) -> bool:
        """Whether a summary says that the run in the folder is complete, with nothing left to do."""
        return self._resuming and self.state.finished and (self.folder / folder.SUMMARY).exists()

    def run(self, *, progress: bool = False, watchers: Sequence[Observer] = (), stop: "Stop | None" = None) -> None:
        """Run to the end and write everything to the folder; pictures are left to :func:`heatsim.render.render`.

        After an interruption it can be called again to go on.

        Args:
            progress: say on stderr how far it is.
            watchers: observers of the caller's own; nothing of theirs is kept in checkpoints.
            stop: interrupts the run, as a signal does, once it is requested.

        Raises:
            FolderError: the folder cannot be used.
            NotFiniteError, StorageError: the run failed; what was written before is good.
            Interrupted: SIGINT or SIGTERM came; a checkpoint was saved.
        """
        scenario = self.plan.problem.scenario
        if self.finished:
            return
        if self.step != (self._saved["step"] if self._saved else 0):
            raise FolderError(
                f"{self.folder}: the run failed at step {self.step:,}; go on from its last checkpoint with "
                f"`{resume_command(self.folder)}` or Simulation.resume"
            )
        if not self._resuming:
            folder.prepare(self.folder, self._overwrite, inputs=(scenario.path, *scenario.input_files))
        with ExitStack() as stack:
            stack.enter_context(folder.claim(self.folder))
            if not self._resuming:
                write_resolved(scenario, self.folder)
                self._resuming = True
            observers = self._observers(progress, watchers)
            for observer in observers:
                stack.callback(observer.close)
            stack.enter_context(self.state.writer)
            self._loop(observers, stack.enter_context(stop_on_signals(stop)))
            folder.write_summary(self.folder, self._summary())

    def _observers(self, progress: bool, watchers: Sequence[Observer]) -> list[Observer]:
        scenario = self.plan.problem.scenario
        observers: list[Observer] = [Watchdog()]
        if scenario.time.stop_below is not None:
            observers.append(Steady())  # before those that write: it may be the last time
        if scenario.output.fields:
            observers.append(Snapshots())
        if scenario.probes:
            observers.append(Probes())
        if scenario.output.energy:
            observers.append(Energy())
        if progress:
            observers.append(Progress())
        observers.append(Checkpoints(tuple(observers), self._identity()))
        observers[-1:-1] = watchers
        return observers

    def _loop(self, observers: Sequence[Observer], stop: "Stop") -> None:
        state, timing = self.state, self.timing
        stepper = Stepper(
            *(self.plan.problem, state.field, state.ledger, self.plan.kernel, state.step),
            tuned=self.plan.tuned,
            arrays=state.arrays,
        )
        started = time.perf_counter()
        for observer in observers:
            observer.prepare()
        if not done_unless_stopped(self.plan.device.elsewhere(stepper.prepare), stop):
            raise Interrupted(
                f"interrupted while the kernel was compiled, at step {state.step:,}; go on with "
                f"`{resume_command(self.folder)}`"
            )
        self._choice = stepper.choice
        timing.preparing += time.perf_counter() - started

        saved = self._saved
        due = [observer.due(state) for observer in observers]
        with self._observing():
            for observer in observers:
                observer.start(state, saved)
            if saved is None:
                self._notify(observers, due)
        batch, begun = 1, replace(timing)
        while not state.finished:
            next_due = min(_next_after(state.step, steps) for steps in due)
            while state.step < next_due:
                if stop.requested:
                    self._interrupt(observers[-1])
                steps = min(batch, next_due - state.step)
                seconds = self._advance(stepper, steps)
                if steps == batch or seconds > _BATCH_SECONDS:
                    batch = max(1, min(2 * steps, int(steps * _BATCH_SECONDS / max(seconds, 1e-9))))
                with self._observing():
                    state.writer.check()
                    # At a due step observers are notified first: a checkpoint counts what has been written.
                    if state.step == next_due:
                        self._notify(observers, due)
                    for observer in observers:
                        observer.poll(state)
        writing = timing.observing + timing.waiting
        self._compare(timing.stepping - begun.stepping, writing - begun.observing - begun.waiting)
        with self._observing():
            for observer in observers:
                observer.finish(state)
            state.writer.wait()

    def _compare(self, stepping: float, observing: float) -> None:
        """Warn where what is written costs more seconds than the steps in between."""
        if observing > max(stepping, _OBSERVING_WORTH_A_WARNING):
            self.warnings.append(
                f"fields, rows and checkpoints took {observing:.3g} s, the steps between them {stepping:.3g} s; longer "
                "output.every, output.probe_every and output.checkpoint_wall make the run faster"
            )

    def _advance(self, stepper: Stepper, steps: int) -> float:
        started = time.perf_counter()
        stepper.advance(steps)
        self.plan.device.synchronise()
        self.state.step = stepper.step
        seconds = time.perf_counter() - started
        self.timing.stepping += seconds
        self.state.wall_time += seconds
        return seconds

    def _notify(self, observers: Sequence[Observer], due: Sequence[NDArray[np.int64]]) -> None:
        for observer, steps in zip(observers, due, strict=True):
            if self.state.stopped or _next_after(self.state.step - 1, steps) == self.state.step:
                observer.handle(self.state)

    def _interrupt(self, checkpoints: Observer) -> None:
        assert isinstance(checkpoints, Checkpoints)
        with self._observing():
            self._saved = checkpoints.write(self.state)
            self.state.writer.wait()
        raise Interrupted(
            f"interrupted at t = {self.state.time:.6g} s, step {self.state.step:,}; a checkpoint is saved: "
            f"go on with `{resume_command(self.folder)}`"
        )

    @contextmanager
    def _observing(self) -> Iterator[None]:
        """Time what happens between steps, waiting for the writer apart from the rest."""
        started, waited = time.perf_counter(), self.state.writer.waited
        try:
            yield
        finally:
            waited = self.state.writer.waited - waited
            self.timing.waiting += waited
            self.timing.observing += time.perf_counter() - started - waited

    def _identity(self) -> Values:
        """What decides the bits of a run; a resumed one is compared with it."""
        return {
            "kernel": self.plan.kernel.name,
            "device": self.plan.device.name,
            "backend": self.plan.device.backend,
            "scenario": json.dumps(settings(self.plan.problem.scenario), ensure_ascii=False),
        }

    def _restore(self, saved: checkpoint.Checkpoint) -> None:
        identity = self._identity()
        path = self.folder / folder.SCENARIO
        changes = differences(json.loads(str(saved.values["scenario"])), json.loads(str(identity["scenario"])))
        if changes:
            raise FolderError(
                f"{path}: was changed since the run began: {'; '.join(changes)}; put it back to go on with the run. "
                f"What is changed, a longer time.end too, needs a run of its own from the start: "
                f"`heatsim run {shlex.quote(str(path))} --output …`"
            )
        if saved.values["backend"] != identity["backend"]:
            self.warnings.append(
                f'the run began on device "{saved.values["backend"]}" and goes on on "{identity["backend"]}": results '
                "will agree to rounding, not to the bit"
            )
        self.state.field.load_deviations(saved.arrays["deviation"])
        self.state.ledger.restore(saved.arrays)
        self.state.step = int(saved.values["step"])
        self.state.initial_total = float(saved.values["initial_total"])
        self.state.largest_heat = float(saved.values["largest_heat"])
        self.state.wall_time = float(saved.values["wall_time"])
        self.state.stopped = bool(saved.values["stopped"])
        if "compared" in saved.arrays:
            before = self.plan.device.xp.asarray(saved.arrays["compared"])
            self.state.compared = (int(saved.values["compared_step"]), before)

    def _summary(self) -> dict[str, Any]:
        problem, state = self.plan.problem, self.state
        extremes = state.extremes()
        names = ("c0", "c1", "c2", "c3", "c4", "c5", "c6")
        summary: dict[str, Any] = {
            "title": problem.scenario.title,
            "versions": _versions(self.plan.device.backend),
            "device": self.plan.device.name,
            "backend": self.plan.device.backend,
            "kernel": self._choice.shape.spec.name if self._choice else self.plan.kernel.name,
            "precision": problem.precision,
            "rounding": problem.rounding,
            "scheme": problem.scheme,
            "cells": list(problem.grid.cells),
            "time": state.time,
            "steps": state.step,
            "dt": list(problem.timeline.step_lengths),
            "dt_limit": problem.limit.dt,
            "coefficients": [
                {"dt": dt, "steps": steps, **dict(zip(names, problem.coefficients[dt].c, strict=True))}
                for dt, steps in problem.timeline.step_lengths.items()
            ],
            "reference_temperature": state.field.reference,
            "temperature": {"min": extremes.lowest, "max": extremes.highest, "mean": state.mean()},
            "wall_time": self.timing.preparing + self.timing.observing + self.timing.waiting + state.wall_time,
            "preparing_time": self.timing.preparing,
            "stepping_time": state.wall_time,
            "observing_time": self.timing.observing,
            "waiting_time": self.timing.waiting,
            "cells_per_second": state.step * problem.grid.cell_count / max(state.wall_time, 1e-9),
        }
        if self.plan.device.backend == "cuda" and self._choice:
            summary["launch"] = self._choice.describe()
        if problem.scenario.output.energy:
            row = energy.balance(state)
            summary["energy"] = row
            summary["energy_bound"] = energy.bound(state, row)
        return summary


def _next_after(step: int, due: NDArray[np.int64]) -> int:
    """The first due step after ``step``; far away if there is none."""
    i = int(np.searchsorted(due, step, side="right"))
    return int(due[i]) if i < len(due) else 1 << 62


def _versions(backend: str) -> dict[str, str]:
    """Versions of what decides the numbers."""
    import platform

    packages = ["numpy", "h5py"]
    packages += ["numba"] if backend == "cpu" else ["cupy-cuda13x", "cupy-cuda12x"]
    versions = {"heatsim": version(), "python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
