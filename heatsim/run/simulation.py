"""Run a simulation from start to end: the place that puts all parts together."""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import FolderError, Interrupted, in_python
from heatsim.kernels.autotune import Choice
from heatsim.observers.extreme_temperatures import temperature_warnings
from heatsim.observers.observer import Observer, Values
from heatsim.observers.state import RunState
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import check_room
from heatsim.run.initial_state import find_steady_state, initial_state, notes_at_start, saved_state
from heatsim.run.interrupt import Stop, done_unless_stopped, stop_of_ranks, stop_on_signals
from heatsim.run.make_observers import make_observers
from heatsim.run.plan import Plan
from heatsim.run.plan_text import PlanInWords
from heatsim.run.ranks import held_planes, resume_advice
from heatsim.run.resume import check_numerics, identity, input_files
from heatsim.run.summary import summarise
from heatsim.run.time_loop import Batch, TimeLoop, Timing
from heatsim.scenario import Scenario, load, parse_dict, write_resolved
from heatsim.solver.make_stepper import make_stepper
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.solver.stepper import Stepper
from heatsim.storage import checkpoint, folder, tables, traces
from heatsim.storage.disk import resume_command


@dataclass(repr=False)
class Simulation:
    """A scenario that can be run or resumed.

    >>> import heatsim
    >>> simulation = heatsim.Simulation.from_scenario("scenarios/cube.toml")
    >>> simulation.run()
    >>> simulation.temperature.max()

    Attributes:
        plan: the problem, the device, the kernel, and the memory needed.
        folder: the output folder.
        state: field, step and time.
        timing: wall-clock seconds of the parts of the run.
        warnings: messages about the run for the user.
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
        team: Team = ALONE,
    ) -> "Simulation":
        """Read a scenario and set the field to the initial temperature. Nothing is written yet.

        Args:
            path: the TOML file.
            overrides: "key.path=value" texts, each of which replaces one value of the file.
            output: the output folder; by default outputs/<the file's stem>.
            overwrite: replace the files of an unfinished run in that folder.
            team: the ranks that do the run together. Each of them must make this call.

        Raises:
            ScenarioError, DeviceError, CapacityError: the scenario cannot be run; says why.
        """
        scenario = load(path, overrides)
        target = Path("outputs") / Path(path).stem if output is None else Path(output)
        return cls._assemble(scenario, target, team=team, overwrite=overwrite)

    @classmethod
    def from_dict(
        cls, document: Mapping[str, Any], output: str | Path, *, folder: str | Path = ".", overwrite: bool = False
    ) -> "Simulation":
        """A simulation of a scenario given as a dictionary with the tables and keys of a TOML file.

        Args:
            document: for instance ``{"domain": {"size": [0.1, 0.1, 0.1], "cells": [64, 64, 64]}, …}``; numbers and
                arrays of NumPy and paths are allowed.
            output: the output folder.
            folder: where the paths of input files start.
            overwrite: as for :meth:`from_scenario`.

        Raises:
            ScenarioError, DeviceError, CapacityError: the scenario cannot be run; says why.
        """
        return cls.from_model(parse_dict(document, folder), output, overwrite=overwrite)

    @classmethod
    def from_model(
        cls, scenario: Scenario, output: str | Path, *, overwrite: bool = False, team: Team = ALONE
    ) -> "Simulation":
        """A simulation of a scenario that has been read already. Errors are those of :meth:`from_scenario`.

        Args:
            scenario: from :func:`heatsim.scenario.load`.
            output: the output folder.
            overwrite: as for :meth:`from_scenario`.
            team: as for :meth:`from_scenario`.
        """
        return cls._assemble(scenario, Path(output), team=team, overwrite=overwrite)

    @classmethod
    def resume(cls, path: str | Path, *, team: Team = ALONE) -> "Simulation":
        """Continue from the last good checkpoint of a run's folder, or from the start if there is none.

        Args:
            path: the folder.
            team: as for :meth:`from_scenario`; the run may have begun on another number of ranks.

        Raises:
            FolderError: the folder is not that of a run, another process writes there, or its scenario.toml was
                changed.
            StorageError: all checkpoints are damaged.
        """
        target = folder.require_run(Path(path))
        with ExitStack() as stack:  # print nothing if another process writes in the folder
            with team.agreeing():
                if team.first:
                    stack.enter_context(folder.claim(target))
            saved, warnings = checkpoint.read_last_good(target, team)
        if saved is not None:
            check_numerics(target, saved)
        reached = team.broadcast(traces.latest_time(target) if saved is None and team.first else 0.0)
        if reached > 0.0:
            warnings.append(f"{target}: its files go to t = {reached:.6g} s, but no checkpoint is left; it starts over")
        simulation = cls._assemble(load(target / folder.SCENARIO), target, saved, team=team, resuming=True)
        simulation.warnings.extend(warnings)
        return simulation

    @classmethod
    def _assemble(
        cls,
        scenario: Scenario,
        target: Path,
        saved: checkpoint.Checkpoint | None = None,
        *,
        team: Team = ALONE,
        overwrite: bool = False,
        resuming: bool = False,
    ) -> "Simulation":
        started = time.perf_counter()
        check_room(scenario, team=team)
        problem = HeatProblem.from_scenario(scenario, held_planes(scenario, team))
        plan = PlanInWords.of(problem, team)
        plan.check_capacity(target)
        state = initial_state(plan, target) if saved is None else saved_state(plan, target, saved)
        simulation = cls(
            *(plan, target, state),
            _saved={**saved.values, **saved.files} if saved else None,
            _overwrite=overwrite,
            _resuming=resuming,
        )
        simulation.warnings.extend(notes_at_start(plan, scenario, saved))
        simulation.timing.preparing = time.perf_counter() - started
        return simulation

    def __repr__(self) -> str:
        count = len(self.warnings)
        more = f", {count} warning{'s' if count > 1 else ''}" if count else ""
        return f"<heatsim simulation {self._describe()}{more}>"

    def _repr_html_(self) -> str:
        warnings = "".join(f"<br>Warning: {escape(warning)}" for warning in self.warnings)
        return f"<b>heatsim simulation</b><br>{escape(self._describe())}{warnings}"

    def _describe(self) -> str:
        scenario, end = self.plan.problem.scenario, self.plan.problem.scenario.time.end
        cells = " × ".join(map(str, scenario.domain.cells))
        reached = scenario.time.method if scenario.steady else f"t = {self.time:.6g} of {end:.6g} s"
        return f'"{scenario.title}": {cells} cells, {reached}, in {self.folder}'

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
        """Number of steps done; of rows and fields reached by a method that chooses its own steps."""
        return self.state.step

    @property
    def finished(self) -> bool:
        """Whether a summary says that the run in the folder is complete, with nothing left to do."""
        there = (self.folder / folder.SUMMARY).exists()
        return self._resuming and self.state.finished and self.state.team.broadcast(there)

    def run(
        self,
        *,
        progress: bool = False,
        pictures: bool = False,
        watchers: Sequence[Observer] = (),
        stop: "Stop | None" = None,
    ) -> None:
        """Run to the end and write all results to the folder. `heatsim.open(simulation.folder)` reads them.

        After an interruption, call it again to continue.

        Args:
            progress: print the progress, and in Python the warnings, on stderr.
            pictures: draw the pictures into the folder figures/ at the end, and write report.html.
            watchers: observers of the caller; checkpoints keep nothing of them.
            stop: interrupts the run once it is requested, as a signal does.

        Raises:
            FolderError: the folder cannot be used.
            NotFiniteError, StorageError: the run failed; the files written before are good.
            Interrupted: SIGINT or SIGTERM came; a checkpoint was saved.
            InputError: 3-D views cannot be drawn on this machine; everything else is written.
        """
        if not self.finished:
            aloud = progress and in_python()
            shown = self._print_warnings(0) if aloud else 0
            self._run(progress, watchers, stop)
            if aloud:
                self._print_warnings(shown)
        if pictures:
            from heatsim.render import render
            from heatsim.report.page import write_report

            render(self.folder)
            write_report(self.folder)

    def _print_warnings(self, first: int) -> int:
        """Print the warnings from number ``first`` on; their number."""
        for warning in self.warnings[first:]:
            print(f"warning: {warning}", file=sys.stderr)
        return len(self.warnings)

    def _run(self, progress: bool, watchers: Sequence[Observer], stop: "Stop | None") -> None:
        """Run to the end and write all results, except pictures."""
        team = self.state.team
        with ExitStack() as stack:
            wanted = stack.enter_context(stop_on_signals(stop))
            stack.enter_context(team.telling())
            stepper = self.stepper()
            batch = Batch(stepper.steps_a_sweep if isinstance(stepper, Stepper) else 1)
            if self.state.method is not None:
                self.state.method.stopped = lambda: stop_of_ranks(wanted, team)
            replaced = None if self._resuming or not team.first else folder.describe_finished(self.folder)
            self.take_folder(stack)
            if progress and replaced is not None:
                print(f"{self.folder}: replaces the finished run {replaced}", file=sys.stderr)
            if progress and team.size > 1:
                print(f"{team.size} ranks exchange planes through {self.state.field.halo.way}", file=sys.stderr)
            team.advise(resume_advice(self.folder, team.size))
            loop = self.begin(stack, stepper, wanted, progress=progress, watchers=watchers)
            while not loop.finished:
                if stop_of_ranks(wanted, team):
                    self.interrupt(loop)
                batch.steps = team.broadcast(batch.steps)
                loop.advance(stepper, batch)
            loop.finish()
            summary = self.summary(loop)
            with team.agreeing():
                if team.first:
                    folder.write_summary(self.folder, summary)

    def stepper(self) -> Stepper | AdaptiveStepper:
        """The stepper that advances the field from its present step."""
        if self.state.method is not None:
            return self.state.method
        return make_stepper(
            *(self.state.part, self.state.field, self.state.ledger, self.plan.kernel),
            step=self.state.step,
            tuned=self.plan.tuned,
            arrays=self.state.arrays,
        )

    def take_folder(self, stack: ExitStack) -> None:
        """Claim the run's folder until ``stack`` is closed; write a new run's scenario there. Works in any thread.

        Rank 0 does it. Collective.

        Raises:
            FolderError: the folder cannot be used.
            StorageError: the disk refused.
        """
        scenario = self.plan.problem.scenario
        if self.step != (self._saved["step"] if self._saved else 0):
            raise FolderError(
                f"{self.folder}: the run failed {self.state.progress}; continue from its last checkpoint with "
                f"`{resume_command(self.folder)}` or Simulation.resume"
            )
        with self.state.team.agreeing():
            if self.state.team.first:
                if not self._resuming:
                    folder.prepare(self.folder, self._overwrite, inputs=(scenario.path, *scenario.input_files))
                stack.enter_context(folder.claim(self.folder))
                if not self._resuming:
                    write_resolved(scenario, self.folder)
        self._resuming = True

    def begin(
        self,
        stack: ExitStack,
        stepper: Stepper | AdaptiveStepper,
        stop: Stop,
        *,
        progress: bool = False,
        watchers: Sequence[Observer] = (),
        choice: Choice | None = None,
    ) -> TimeLoop:
        """Open all files of the run, after :meth:`take_folder`. :mod:`heatsim.run.ensemble` calls it for several runs.

        Args:
            stack: closes everything when it is closed.
            stepper: from :meth:`stepper`.
            stop: ends the wait for the compiler.
            progress: as for :meth:`run`.
            watchers: as for :meth:`run`.
            choice: the kernel of an ensemble, which does the steps; None if ``stepper`` does them and is prepared here.

        Raises:
            NotFiniteError, StorageError: the run failed at once.
            Interrupted: a stop was requested while the kernel was compiled.
        """
        scenario = self.plan.problem.scenario
        if scenario.steady:
            with self.timing.timed("stepping"):
                find_steady_state(self.state, stop)
            self.state.wall_time = self.timing.stepping
        team = self.state.team
        same = team.broadcast(identity(self.plan, self.folder) if team.first else None) or {}
        observers = make_observers(scenario, same, progress, watchers)
        if self._saved is not None:
            # All files are looked at before any of them is changed.
            with self.timing.timed("preparing"), checkpoint.understanding(self.folder):
                for observer in observers:
                    observer.check(self.state, self._saved)
        for observer in observers:
            stack.callback(observer.close)
        with self.timing.timed("preparing"):
            for observer in observers:
                observer.prepare()
            if not scenario.steady:
                if choice is None and not done_unless_stopped(self.plan.device.elsewhere(stepper.prepare), stop):
                    raise self.interrupted_early()
                self._choice = choice or stepper.choice
        stack.enter_context(self.state.writer)
        return TimeLoop(self.state, observers, self.timing, self._saved)

    def interrupted_early(self) -> Interrupted:
        """The exception for a run that did no step since its field was read."""
        return Interrupted(
            f"interrupted while the kernel was compiled, {self.state.progress}; continue with "
            f"`{resume_command(self.folder)}`"
        )

    def interrupt(self, loop: TimeLoop) -> NoReturn:
        """Save a checkpoint.

        Raises:
            Interrupted: says how to go on.
            NotFiniteError, StorageError: the checkpoint could not be saved.
        """
        self._saved = loop.save()
        raise Interrupted(
            f"interrupted at t = {self.state.time:.6g} s, {self.state.progress}; a checkpoint is saved: "
            f"continue with `{resume_command(self.folder)}`"
        )

    def summary(self, loop: TimeLoop) -> dict[str, Any]:
        """The content of summary.json, when the last checkpoint is on the disk; ``loop`` was told to finish.

        Raises:
            StorageError: the disk refused the last files.
        """
        self.warnings += loop.end() + temperature_warnings(self.state)
        with self.state.team.agreeing():
            if self.state.team.first:
                folder.require_files(self.folder, [*input_files(self.plan.problem.scenario), *loop.files])
        return {
            **summarise(self.plan, self.state, self.timing, self._choice),
            "checksums": _checksums(self.folder, loop.files) if self.state.team.first else {},
            "warnings": list(self.warnings),
        }


def _checksums(target: Path, files: Sequence[str]) -> dict[str, int]:
    """The checksums of the tables among the files of a run."""
    return {name: tables.checksum(target / name) for name in files if Path(name).suffix == ".csv"}
