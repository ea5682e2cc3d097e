"""A run from start to end: the only place that puts the parts together."""

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from heatsim.errors import FolderError, Interrupted
from heatsim.kernels.autotune import Choice
from heatsim.observers.checkpoint import Checkpoints
from heatsim.observers.energy import Energy
from heatsim.observers.extreme_temperatures import ExtremeTemperatures, temperature_warnings
from heatsim.observers.heat_flows import HeatFlows
from heatsim.observers.observer import Observer, Values
from heatsim.observers.probes import Probes
from heatsim.observers.progress import Progress
from heatsim.observers.snapshots import Snapshots
from heatsim.observers.state import RunState
from heatsim.observers.steady import Steady
from heatsim.observers.watchdog import Watchdog
from heatsim.physics.initial import InitialField
from heatsim.physics.problem import HeatProblem
from heatsim.physics.steady_notes import notes_on_steady
from heatsim.run.capacity import check_room
from heatsim.run.interrupt import Stop, done_unless_stopped, stop_on_signals
from heatsim.run.plan import Plan
from heatsim.run.resume import check_inputs, check_numerics, check_scenario, settings
from heatsim.run.summary import summarise
from heatsim.run.time_loop import Batch, Course, Timing
from heatsim.scenario import Scenario, input_checksums, input_names, load, write_resolved
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.field import Field
from heatsim.solver.field_statistics import FieldStatistics, make_thermometer
from heatsim.solver.kernel_arguments import composite_arrays
from heatsim.solver.make_stepper import make_stepper
from heatsim.solver.steady_state import find_steady_state
from heatsim.solver.stepper import Stepper
from heatsim.storage import checkpoint, folder, tables, traces
from heatsim.storage.disk import resume_command
from heatsim.version import NUMERICS

_OBSERVING_WORTH_A_WARNING = 1.0  # s


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
        """Go on from the last good checkpoint of a run's folder; from the start if there is none.

        Raises:
            FolderError: not the folder of a run, or its scenario.toml was changed since.
            StorageError: all checkpoints are damaged.
        """
        target = folder.require_run(Path(path))
        saved, warnings = checkpoint.read_last_good(target)
        if saved is not None:
            check_numerics(target, saved)
        reached = traces.latest_time(target) if saved is None else 0.0
        if reached > 0.0:
            warnings.append(f"{target}: its files go to t = {reached:.6g} s, but no checkpoint is left; it starts over")
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
        check_room(scenario)
        problem = HeatProblem.from_scenario(scenario)
        plan = Plan.of(problem)
        plan.check_capacity(target)
        copies = plan.room_for_copy
        if saved is None:
            initial = InitialField.from_scenario(scenario)
            reference = initial.reference
        else:
            with checkpoint.understanding(target):
                initial, reference = None, float(saved.values["reference"])
        temperatures = Field(plan.device, problem.grid, problem.precision, reference)
        ledger = Ledger(plan.device, problem, scenario.output.energy and not scenario.steady)
        arrays = composite_arrays(problem, temperatures)
        temperatures.thermometer = make_thermometer(problem, temperatures, arrays.body.cells)
        if initial is not None and initial.uniform:
            temperatures.load_deviations(np.zeros((1, 1, 1)))
        elif initial is not None:
            temperatures.load_temperatures(initial.slabs(), problem.materials.contents)
        statistics = FieldStatistics(problem, temperatures, arrays.body.cells)
        state = RunState(problem, temperatures, ledger, statistics, arrays, target, copies=copies)
        simulation = cls(
            *(plan, target, state),
            _saved={**saved.values, **saved.files} if saved else None,
            _overwrite=overwrite,
            _resuming=resuming,
        )
        if saved is None:
            state.total()  # sees that it is finite
            state.initial_heat = statistics.heat()
        else:
            with checkpoint.understanding(target):
                simulation._restore(saved)
        if scenario.steady:
            simulation.warnings.extend(notes_on_steady(scenario))
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
        if self.finished:
            return
        with ExitStack() as stack:
            wanted = stack.enter_context(stop_on_signals(stop))
            stepper, batch = self.stepper(), Batch()
            course = self.begin(stack, stepper, wanted, progress=progress, watchers=watchers)
            while not course.finished:
                if wanted.requested:
                    self.interrupt(course)
                steps = min(batch.steps, course.steps_to_due)
                started = time.perf_counter()
                stepper.advance(steps)
                self.plan.device.synchronise()
                seconds = time.perf_counter() - started
                batch.took(steps, seconds)
                course.stepped(stepper.step, seconds)
                course.look()
            self.end(course)

    def stepper(self) -> Stepper:
        """What advances the field, from the step that it is at."""
        return make_stepper(
            *(self.plan.problem, self.state.field, self.state.ledger, self.plan.kernel),
            step=self.state.step,
            tuned=self.plan.tuned,
            arrays=self.state.arrays,
        )

    def begin(
        self,
        stack: ExitStack,
        stepper: Stepper,
        stop: Stop,
        *,
        progress: bool = False,
        watchers: Sequence[Observer] = (),
        choice: Choice | None = None,
    ) -> Course:
        """Open all that the run writes, for whoever drives it; :meth:`run` does for a run alone what there is to do.

        Args:
            stack: lets go of everything when it is closed.
            stepper: from :meth:`stepper`.
            stop: ends the wait for the compiler.
            progress: as for :meth:`run`.
            watchers: likewise.
            choice: the kernel with which others do the steps; None if the stepper does them, which is prepared here.

        Raises:
            FolderError: the folder cannot be used.
            NotFiniteError, StorageError: the run failed at once.
            Interrupted: a stop was requested while the kernel was compiled.
        """
        scenario = self.plan.problem.scenario
        if self.step != (self._saved["step"] if self._saved else 0):
            raise FolderError(
                f"{self.folder}: the run failed at step {self.step:,}; go on from its last checkpoint with "
                f"`{resume_command(self.folder)}` or Simulation.resume"
            )
        if not self._resuming:
            folder.prepare(self.folder, self._overwrite, inputs=(scenario.path, *scenario.input_files))
        stack.enter_context(folder.claim(self.folder))
        if not self._resuming:
            write_resolved(scenario, self.folder)
            self._resuming = True
        if scenario.steady:
            self._find_steady_state(stop)
        observers = self._observers(progress, watchers)
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
            if (
                choice is None
                and not scenario.steady
                and not done_unless_stopped(self.plan.device.elsewhere(stepper.prepare), stop)
            ):
                raise self.interrupted_early()
            self._choice = choice or stepper.choice
        stack.enter_context(self.state.writer)
        return Course(self.state, observers, self.timing, self._saved)

    def _find_steady_state(self, stop: Stop) -> None:
        """Replace the first guess by the steady state."""
        with self.timing.timed("stepping"):
            try:
                self.state.steady = find_steady_state(self.plan.problem, self.state.field, lambda: stop.requested)
            except Interrupted as error:
                raise Interrupted(f"{error}; start it over with `{resume_command(self.folder)}`") from None
        self.state.wall_time = self.timing.stepping
        self.state.initial_heat = self.state.statistics.heat()

    def interrupted_early(self) -> Interrupted:
        """What to raise where nothing has been done since the field was read."""
        return Interrupted(
            f"interrupted while the kernel was compiled, at step {self.step:,}; go on with "
            f"`{resume_command(self.folder)}`"
        )

    def interrupt(self, course: Course) -> NoReturn:
        """Save a checkpoint.

        Raises:
            Interrupted: says how to go on.
            NotFiniteError, StorageError: the checkpoint could not be saved.
        """
        self._saved = course.save()
        raise Interrupted(
            f"interrupted at t = {self.state.time:.6g} s, step {self.state.step:,}; a checkpoint is saved: "
            f"go on with `{resume_command(self.folder)}`"
        )

    def end(self, course: Course) -> None:
        """The last step is done: write the last checkpoint and the summary."""
        scenario = self.plan.problem.scenario
        stepping, observing = course.end()
        if not scenario.steady and observing > max(stepping, _OBSERVING_WORTH_A_WARNING):
            self.warnings.append(
                f"fields, rows and checkpoints took {observing:.3g} s, the steps between them {stepping:.3g} s; longer "
                "output.every, output.probe_every and output.checkpoint_wall make the run faster"
            )
        self.warnings += temperature_warnings(self.state)
        written = {
            folder.FIELDS: scenario.output.fields,
            folder.PROBES: scenario.probes,
            folder.ENERGY: scenario.output.energy,
            folder.CHECKPOINT: not scenario.steady,
        }
        folder.require_files(self.folder, [*self._inputs(), *(name for name, wanted in written.items() if wanted)])
        summary = summarise(self.plan, self.state, self.timing, self._choice)
        written_tables = [name for name in (folder.PROBES, folder.ENERGY) if written[name]]
        summary["checksums"] = {name: tables.checksum(self.folder / name) for name in written_tables}
        folder.write_summary(self.folder, summary)

    def _observers(self, progress: bool, watchers: Sequence[Observer]) -> list[Observer]:
        scenario = self.plan.problem.scenario
        observers: list[Observer] = [Watchdog(), ExtremeTemperatures()]
        if scenario.time.stop_below is not None and not scenario.steady:
            observers.append(Steady())  # before those that write: it may be the last time
        if scenario.output.fields:
            observers.append(Snapshots())
        if scenario.probes:
            observers.append(Probes())
        if scenario.output.energy:
            observers.append(HeatFlows() if scenario.steady else Energy())
        if scenario.steady:
            return [*observers, *watchers]
        if progress:
            observers.append(Progress())
        observers.append(Checkpoints(tuple(observers), self._identity(), self._inputs()))
        observers[-1:-1] = watchers
        return observers

    def _identity(self) -> Values:
        """What decides the bits of a run; a resumed one is compared with it."""
        return {
            "numerics": NUMERICS,
            "kernel": self.plan.kernel.name,
            "device": self.plan.device.name,
            "backend": self.plan.device.backend,
            "scenario": json.dumps(settings(self.plan.problem.scenario), ensure_ascii=False),
            "inputs": json.dumps(input_checksums(self.plan.problem.scenario, self.folder), ensure_ascii=False),
        }

    def _inputs(self) -> list[str]:
        """The names of the scenario and of the copies of its input files in the run's folder."""
        return [folder.SCENARIO, *input_names(self.plan.problem.scenario)]

    def _restore(self, saved: checkpoint.Checkpoint) -> None:
        identity = self._identity()
        check_scenario(self.folder / folder.SCENARIO, str(saved.values["scenario"]), str(identity["scenario"]))
        check_inputs(self.folder, str(saved.values["inputs"]), str(identity["inputs"]))
        if saved.values["backend"] != identity["backend"]:
            self.warnings.append(
                f'the run began on device "{saved.values["backend"]}" and goes on on "{identity["backend"]}": results '
                "will agree to rounding, not to the bit"
            )
        deviation = saved.arrays["deviation"]
        if deviation.shape != self.state.field.grid.shape:
            raise ValueError(f"deviations of shape {deviation.shape}")
        self.state.field.load_deviations(deviation)
        self.state.ledger.restore(saved.arrays)
        self.state.step = int(saved.values["step"])
        self.state.initial_heat = float(saved.values["initial_heat"])
        self.state.wall_time = float(saved.values["wall_time"])
        self.state.stopped = bool(saved.values["stopped"])
        if "compared" in saved.arrays:
            before = self.plan.device.xp.asarray(saved.arrays["compared"])
            self.state.compared = (int(saved.values["compared_step"]), before)
