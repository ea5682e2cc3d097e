"""The execution of a run: claim its folder, open its files, step to the end, write the summary."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from heatsim.errors import FolderError, Interrupted, RunError
from heatsim.kernels.launch_shapes import Choice
from heatsim.observers.extreme_temperatures import temperature_warnings
from heatsim.observers.observer import Observer, Values
from heatsim.observers.state import RunState
from heatsim.run.batch_size import BatchSize
from heatsim.run.error.comparison import compare
from heatsim.run.initial_state import find_steady_state
from heatsim.run.interrupt import Stop, done_unless_stopped, is_stop_requested, stop_of_ranks, stop_on_signals
from heatsim.run.make_observers import make_observers, make_watchers
from heatsim.run.observed_run import ObservedRun
from heatsim.run.plan import Plan
from heatsim.run.plan_model import describe_for_report
from heatsim.run.ranks import complete_advice, resume_advice
from heatsim.run.resume import identity, input_files
from heatsim.run.summary import summarise
from heatsim.run.time_loop import TimeLoop
from heatsim.run.timing import Timing
from heatsim.scenario import write_resolved
from heatsim.solver.euler.stepper import Stepper
from heatsim.solver.make_stepper import make_stepper
from heatsim.solver.rows.leading import Leading
from heatsim.solver.stabilized.stepper import AdaptiveStepper
from heatsim.storage import checkpoint, folder, manifest, tables
from heatsim.storage.disk import resume_command
from heatsim.storage.preparation import prepare
from heatsim.storage.run_settings import read_settings
from heatsim.storage.run_tables import read_probes
from heatsim.storage.summary_file import describe_finished, read_known, write_known, write_summary


@dataclass
class Execution:
    """One run and its folder.

    A run alone calls :meth:`run`. An ensemble (:mod:`heatsim.run.ensemble`) calls the parts of it for several runs.

    Attributes:
        plan: the problem, the device, the kernel, and the memory needed.
        folder: the output folder.
        state: field, step and time.
        saved: the values of the last checkpoint; None if there is none.
        overwrite: replace the files of an unfinished run in the folder.
        resuming: the folder holds the files of this run.
        timing: wall-clock seconds of the parts of the run.
        warnings: messages about the run for the user.
        in_memory: write nothing; the folder has no meaning.
        known: what summary.json will say that was found before the run.
    """

    plan: Plan
    folder: Path
    state: RunState
    saved: Values | None = None
    overwrite: bool = False
    resuming: bool = False
    timing: Timing = field(default_factory=Timing)
    warnings: list[str] = field(default_factory=list)
    in_memory: bool = False
    known: dict[str, Any] = field(default_factory=dict)

    _choice: Choice | None = None
    _opened: "_Opened | None" = None
    _begun: bool = False

    @property
    def finished(self) -> bool:
        """Whether a summary says that the run in the folder is complete, with nothing left to do."""
        if self.in_memory:
            return self._begun and self.state.finished
        there = (self.folder / folder.SUMMARY).exists()
        return self.resuming and self.state.finished and self.state.team.broadcast(there)

    def run(self, progress: bool, watchers: Sequence[Observer], stop: Stop | None, until: int | None = None) -> None:
        """Run to the end and write all results, except pictures; or to a step, and keep the files open.

        Args:
            progress: print the progress on stderr.
            watchers: additional observers, of a run that begins now.
            stop: interrupts the run once it is requested, as a signal does.
            until: the number of steps done after which to wait for the next call; None for the end.

        Raises:
            FolderError: the folder cannot be used.
            NotFiniteError, StorageError: the run failed; the files written before are good.
            Interrupted: SIGINT or SIGTERM came; a checkpoint was saved.
        """
        team = self.state.team
        opened, self._opened = self._opened, None
        with stop_on_signals(stop) as wanted, team.telling(), ExitStack() as stack:
            opened = opened or self._open(progress, watchers, wanted, ahead=until is None and not self.in_memory)
            stack.push(opened.files)
            if isinstance(opened.stepper, AdaptiveStepper):
                opened.stepper.stopped = lambda: stop_of_ranks(wanted, team)
            stopped = self._step(opened, wanted, until)
            if stopped and not self.in_memory:
                self.interrupt(opened.run)
            if not opened.run.finished:
                stack.pop_all()
                self._opened = opened
            if stopped:
                raise Interrupted(f"interrupted at t = {self.state.reached:.6g} s; call it again to continue")
            if opened.run.finished:
                self._complete(opened.run)

    def _open(self, progress: bool, watchers: Sequence[Observer], stop: Stop, *, ahead: bool) -> "_Opened":
        """Begin or continue: take the folder, compile, open the files.

        Args:
            progress: as for :meth:`run`.
            watchers: as for :meth:`run`.
            stop: ends the wait for the compiler.
            ahead: on a GPU, queue steps before rows are read, if that pays.
        """
        with ExitStack() as stack:
            leading = self.leading() if ahead else None
            if leading is not None:
                # After an error, steps ahead still fill memory that the next run in the process may get.
                stack.callback(self.plan.device.synchronise)
            stepper = self.stepper(leading)
            if not self.in_memory:
                self._start_in_folder(stack, progress)
            elif self._begun:
                raise RunError(f"the run failed {self.state.progress}; make the simulation again")
            try:
                run = self.begin(stack, stepper, stop, progress=progress, watchers=watchers)
            except Interrupted:
                if self.in_memory:
                    raise Interrupted("interrupted before the first step; call it again to start over") from None
                raise
            self._begun = True
            batch = BatchSize(stepper.steps_a_sweep if isinstance(stepper, Stepper) else 1)
            return _Opened(run, stepper, TimeLoop(run, stepper, leading), batch, stack.pop_all())

    def make_rows(self) -> None:
        """Have the observers of an open run make all rows until now. Collective."""
        if self._opened is not None:
            self._opened.run.make_rows()

    def close(self) -> None:
        """Save a checkpoint of a run that was not run to its end, and close its files; in memory do nothing."""
        if self._opened is not None and not self.in_memory:
            opened, self._opened = self._opened, None
            with opened.files:
                self.saved = opened.run.save()

    def _complete(self, run: ObservedRun) -> None:
        """End a run whose steps are all done: write the last rows and the summary."""
        team = self.state.team
        run.finish()
        if self.in_memory:
            self._collect_warnings(run)
            return
        summary = self.summary(run)
        with team.agreeing():
            if team.first:
                write_summary(self.folder, summary)
        team.advise(complete_advice(self.folder))

    def _start_in_folder(self, stack: ExitStack, progress: bool) -> None:
        """Take the folder until ``stack`` is closed. Print what the run replaces and how ranks exchange planes."""
        team = self.state.team
        replaced = None if self.resuming or not team.first else describe_finished(self.folder)
        self.take_folder(stack)
        if progress and replaced is not None:
            print(f"{self.folder}: replaces the finished run {replaced}", file=sys.stderr)
        if progress and team.size > 1:
            print(f"{team.size} ranks exchange planes through {self.state.field.halo.way}", file=sys.stderr)
        team.advise(resume_advice(self.folder, team.size))

    def _step(self, opened: "_Opened", stop: Stop, until: int | None) -> bool:
        """Do steps. Between batches, look whether a stop is requested. Returns whether one was."""
        team, run, batch = self.state.team, opened.run, opened.batch
        while not run.finished and (until is None or self.state.step < until):
            if until is not None:
                batch.steps = min(batch.steps, until - self.state.step)
            stops, batch.steps = team.broadcast((is_stop_requested(stop, team), batch.steps))
            if stops:
                return True
            opened.loop.advance(batch)
        return False

    def stepper(self, leading: Leading | None = None) -> Stepper | AdaptiveStepper:
        """The stepper that advances the field from its present step, or ``leading`` if it is not None."""
        if self.state.method is not None:
            return self.state.method
        stepped = leading or self.state
        return make_stepper(
            self.state.part,
            stepped.field,
            stepped.ledger,
            self.plan.kernel,
            step=self.state.step,
            tuned=self.plan.tuned,
            arrays=self.state.arrays,
        )

    def leading(self) -> Leading | None:
        """A field whose steps are queued before rows are read, if that pays. Other methods than euler have none.

        It must not take the memory that the run needs later: without room for a copy of the field there is none. Nor
        may it do steps whose values are set later.
        """
        state = self.state
        scenario = state.problem.scenario
        if state.method is not None or scenario.steady or state.finished or not state.copies or scenario.changes:
            return None
        return Leading.of(state.field, state.ledger, state.part)

    def take_folder(self, stack: ExitStack) -> None:
        """Claim the run's folder until ``stack`` is closed; write a new run's scenario there. Works in any thread.

        Rank 0 does it. Collective.

        Raises:
            FolderError: the folder cannot be used.
            StorageError: the disk refused.
        """
        scenario = self.plan.problem.scenario
        if self.state.step != (self.saved["step"] if self.saved else 0):
            raise FolderError(
                f"{self.folder}: the run failed {self.state.progress}; continue from its last checkpoint with "
                f"`{resume_command(self.folder)}` or Simulation.resume"
            )
        with self.state.team.agreeing():
            if self.state.team.first:
                if not self.resuming:
                    inputs, own = (scenario.path, *scenario.input_files), input_files(scenario)
                    prepare(self.folder, self.overwrite, inputs, names=own)
                stack.enter_context(folder.claim(self.folder))
                if not self.resuming:
                    write_resolved(self.plan.problem.asked, self.folder)
                    manifest.end(self.folder, own)
                    if self.known:
                        write_known(self.folder, self.known)
        self.resuming = True

    def begin(
        self,
        stack: ExitStack,
        stepper: Stepper | AdaptiveStepper,
        stop: Stop,
        *,
        progress: bool = False,
        watchers: Sequence[Observer] = (),
        choice: Choice | None = None,
    ) -> ObservedRun:
        """Open all files of the run, after :meth:`take_folder`. :mod:`heatsim.run.ensemble` calls it for several runs.

        Args:
            stack: closes everything when it is closed.
            stepper: from :meth:`stepper`.
            stop: ends the wait for the compiler.
            progress: as for :meth:`run`.
            watchers: as for :meth:`run`.
            choice: the kernel of an ensemble, which does the steps; None if ``stepper`` does them and is prepared here.

        Raises:
            FolderError: a file of the user has the name of one that the run writes.
            NotFiniteError, StorageError: the run failed at once.
            Interrupted: a stop was requested while the kernel was compiled.
        """
        scenario = self.plan.problem.scenario
        if scenario.steady:
            with self.timing.timed("stepping"):
                find_steady_state(self.state, stop)
            self.state.wall_time = self.timing.stepping
        team = self.state.team
        if self.in_memory:
            observers = make_watchers(scenario, progress, watchers)
        else:
            same = team.broadcast(identity(self.plan) if team.first else None) or {}
            observers = make_observers(scenario, same, progress, watchers)
        if self.saved is not None:
            # All files are looked at before any of them is changed.
            with self.timing.timed("preparing"), checkpoint.understanding(self.folder):
                for observer in observers:
                    observer.check(self.state, self.saved)
        for observer in observers:
            stack.callback(observer.close)
        with self.timing.timed("preparing"):
            for observer in observers:
                observer.prepare()
            if not scenario.steady:
                if choice is None and not done_unless_stopped(self.plan.device.elsewhere(stepper.prepare), stop):
                    raise self.interrupted_early()
                self._choice = choice or stepper.choice
        if not self.in_memory:
            self._take_names([name for observer in observers for name in observer.files])
        stack.enter_context(self.state.writer)
        return ObservedRun(self.state, observers, self.timing, self.saved)

    def _take_names(self, names: Sequence[str]) -> None:
        """Record the files that observers are about to write. Refuse names that files of the user have. Collective.

        The files of a checkpoint have its checksums: they are heatsim's even if the manifest is damaged.
        """
        with self.state.team.agreeing():
            if self.state.team.first:
                more = [folder.PREVIOUS] if folder.CHECKPOINT in names else []
                yours = manifest.begin(self.folder, [*names, *more])
                taken = manifest.find_yours(self.folder, [folder.SUMMARY])
                manifest.refuse(self.folder, taken if self.saved else [*yours, *taken])

    def interrupted_early(self) -> Interrupted:
        """The exception for a run that did no step since its field was read."""
        return Interrupted(
            f"interrupted while the kernel was compiled, {self.state.progress}; continue with "
            f"`{resume_command(self.folder)}`"
        )

    def interrupt(self, run: ObservedRun) -> NoReturn:
        """Save a checkpoint.

        Raises:
            Interrupted: says how to go on.
            NotFiniteError, StorageError: the checkpoint could not be saved.
        """
        self.saved = run.save()
        raise Interrupted(
            f"interrupted at t = {self.state.reached:.6g} s, {self.state.progress}; a checkpoint is saved: "
            f"continue with `{resume_command(self.folder)}`"
        )

    def _collect_warnings(self, run: ObservedRun) -> None:
        of_method = self.state.method.warnings if self.state.method is not None else []
        self.warnings += run.warnings + temperature_warnings(self.state) + of_method

    def summary(self, run: ObservedRun) -> dict[str, Any]:
        """Wait for the last writes of a run that was told to finish. Returns the content of summary.json.

        Raises:
            StorageError: the disk refused the last files.
        """
        run.end()
        self._collect_warnings(run)
        with self.state.team.agreeing():
            if self.state.team.first:
                folder.require_files(self.folder, [*input_files(self.plan.problem.scenario), *run.files])
        return {
            **summarise(self.plan, self.state, self.timing, self._choice),
            "checksums": _checksums(self.folder, run.files) if self.state.team.first else {},
            "limits": self._verdicts() if self.state.team.first else [],
            "measured": self._comparison() if self.state.team.first else [],
            "model": self._model(),
            "warnings": list(self.warnings),
            **(self.known or (read_known(self.folder) if self.state.team.first else {})),
        }

    def _model(self) -> list[str]:
        """The lines of a plan about the model, for a report; runs without pictures have none."""
        problem = self.plan.problem
        return describe_for_report(problem) if self.state.team.first and problem.scenario.output.figures else []

    def _verdicts(self) -> list[dict[str, Any]]:
        """Whether the rows that the run wrote keep the limits of its probes."""
        if not any(probe.limits.given for probe in self.plan.problem.scenario.probes):
            return []
        found = read_settings(self.folder).verdicts(read_probes(self.folder))
        return [{**asdict(verdict), "kept": verdict.kept} for verdict in found]

    def _comparison(self) -> list[dict[str, Any]]:
        """How far the rows that the run wrote are from what was measured."""
        scenario = self.plan.problem.scenario
        if all(probe.measured is None for probe in scenario.probes):
            return []
        return compare(scenario, read_probes(self.folder))


@dataclass(frozen=True)
class _Opened:
    """A run between its first and its last step.

    Attributes:
        run: the run with its observers.
        stepper: does the steps.
        loop: the time loop.
        batch: the size of the next batch of steps.
        files: what is closed at the end.
    """

    run: ObservedRun
    stepper: Stepper | AdaptiveStepper
    loop: TimeLoop
    batch: BatchSize
    files: ExitStack


def _checksums(target: Path, files: Sequence[str]) -> dict[str, int]:
    """The checksums of the tables among the files of a run."""
    return {name: tables.checksum(target / name) for name in files if Path(name).suffix == ".csv"}
