"""A simulation, the interface in Python: read a scenario or resume a run, look at the field, run it to the end."""

import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heatsim.counts import counted
from heatsim.errors import FolderError, InputError, StorageError, in_python
from heatsim.observers.observer import Observer
from heatsim.observers.probes import ProbeNow
from heatsim.observers.state import RunState
from heatsim.observers.steering import Steering
from heatsim.outputs import output_folder
from heatsim.parallel.team import ALONE, Team
from heatsim.physics.problem import HeatProblem
from heatsim.run.capacity import check_room
from heatsim.run.error.coarser_run import FinishedRun, state_error
from heatsim.run.error.refinement import refine_on_first
from heatsim.run.error.values import means_of_regions
from heatsim.run.execution import Execution
from heatsim.run.initial_state import initial_state, notes_at_start, saved_state
from heatsim.run.interrupt import Stop, stop_on_signals
from heatsim.run.plan import Plan
from heatsim.run.plan_text import PlanInWords
from heatsim.run.ranks import check_inputs_of_ranks, held_planes
from heatsim.run.resume import check_numerics, with_choices_of
from heatsim.run.timing import Timing
from heatsim.scenario import TIMES_BEYOND, Scenario, load, parse_dict
from heatsim.scenario.files import reading_within
from heatsim.scenario.messages import did_you_mean, show
from heatsim.scenario.values.quantities import DURATION, MOMENT
from heatsim.scenario.values.steered import multiples
from heatsim.storage import checkpoint, folder, manifest, traces
from heatsim.storage.summary_file import read_summary


@dataclass(repr=False)
class Simulation:
    """A scenario that can be run or resumed.

    >>> import heatsim
    >>> simulation = heatsim.Simulation.from_scenario("scenarios/cube.toml")
    >>> simulation.run()
    >>> simulation.temperature.max()

    Attributes:
        execution: the run in its folder; :meth:`run` starts it.
    """

    execution: Execution
    _probes: dict[str, ProbeNow] = field(default_factory=dict)
    _set_up: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.execution, str | Path | Mapping):
            raise InputError(
                "heatsim.Simulation takes no scenario; write Simulation.from_scenario for a file, "
                "Simulation.from_dict for a dictionary, or Simulation.resume for the folder of a run"
            )

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
            InputError: the path is a dictionary.
        """
        if isinstance(path, Mapping):
            raise InputError("got a dictionary; a path is expected; Simulation.from_dict reads a dictionary")
        scenario = load(path, overrides)
        return cls._assemble(scenario, output_folder(path, output), team=team, overwrite=overwrite)

    @classmethod
    def from_dict(
        cls,
        document: Mapping[str, Any],
        output: str | Path | None = None,
        *,
        folder: str | Path = ".",
        overwrite: bool = False,
        in_memory: bool = False,
    ) -> "Simulation":
        """A simulation of a scenario given as a dictionary with the tables and keys of a TOML file.

        Args:
            document: for instance ``{"domain": {"size": [0.1, 0.1, 0.1], "cells": [64, 64, 64]}, …}``; numbers and
                arrays of NumPy and paths are allowed.
            output: the output folder; None in memory.
            folder: where the paths of input files start.
            overwrite: as for :meth:`from_scenario`.
            in_memory: write no file; read :attr:`temperature` and :meth:`probe` between calls of :meth:`advance`.

        Raises:
            ScenarioError, DeviceError, CapacityError: the scenario cannot be run; says why.
            InputError: neither a folder nor in memory, or both.
        """
        if (output is None) != in_memory:
            raise InputError("Simulation.from_dict: give either output=… for results on disk, or in_memory=True")
        scenario = parse_dict(document, folder)
        return (
            cls._assemble(scenario, None, overwrite=overwrite)
            if output is None
            else cls.from_model(scenario, output, overwrite=overwrite)
        )

    @classmethod
    def from_model(
        cls,
        scenario: Scenario,
        output: str | Path,
        *,
        overwrite: bool = False,
        team: Team = ALONE,
        like: HeatProblem | None = None,
        progress: bool = False,
    ) -> "Simulation":
        """A simulation of a scenario that has been read already. Errors are those of :meth:`from_scenario`.

        Args:
            scenario: from :func:`heatsim.scenario.load`.
            output: the output folder.
            overwrite: as for :meth:`from_scenario`.
            team: as for :meth:`from_scenario`.
            like: the problem of another simulation; its arrays are shared if both have the same body.
            progress: print on stderr the grids that are tried for an accuracy.
        """
        target = output_folder(scenario.path, output)
        return cls._assemble(scenario, target, team=team, overwrite=overwrite, like=like, progress=progress)

    @classmethod
    def resume(cls, path: str | Path, *, team: Team = ALONE) -> "Simulation":
        """Continue from the last valid checkpoint of a run's folder, or from the start if there is none.

        Args:
            path: the folder.
            team: as for :meth:`from_scenario`; the run may have begun on another number of ranks.

        Raises:
            FolderError: heatsim did not write the folder, another process writes there, or its scenario.toml was
                changed.
            StorageError: all checkpoints are damaged.
        """
        target = folder.require_run(Path(path))
        manifest.refuse_foreign(target)
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
        with reading_within(target):
            scenario = load(target / folder.SCENARIO)
        if saved is not None:
            scenario = with_choices_of(saved, scenario, target)
        simulation = cls._assemble(scenario, target, saved, team=team, resuming=True)
        simulation.warnings.extend(warnings)
        return simulation

    @classmethod
    def _assemble(
        cls,
        scenario: Scenario,
        target: Path | None,
        saved: checkpoint.Checkpoint | None = None,
        *,
        team: Team = ALONE,
        overwrite: bool = False,
        resuming: bool = False,
        like: HeatProblem | None = None,
        progress: bool = False,
    ) -> "Simulation":
        check_inputs_of_ranks(scenario, team)
        scenario, refinement = refine_on_first(scenario, team, progress)
        started = time.perf_counter()
        if scenario.changes:
            scenario = deepcopy(scenario)  # each run sets its own values
        check_room(scenario, team=team)
        problem = HeatProblem.from_scenario(scenario, held_planes(scenario, team), like)
        plan = PlanInWords.of(problem, team)
        plan.check_capacity(target)
        path = target or Path()
        state = initial_state(plan, path) if saved is None else saved_state(plan, path, saved)
        values = {**saved.values, **saved.files} if saved else None
        execution = Execution(plan, path, state, values, overwrite, resuming, in_memory=target is None)
        execution.warnings.extend(notes_at_start(plan, scenario, saved))
        if refinement is not None:
            execution.known = refinement.entries
            execution.warnings.extend(filter(None, [refinement.missed]))
        execution.timing.preparing = time.perf_counter() - started
        return cls(execution, _set_up=execution.timing.preparing)

    def __repr__(self) -> str:
        count = len(self.warnings)
        more = f", {counted(count, 'warning')}" if count else ""
        return f"<heatsim simulation {self._describe()}{more}>"

    def _repr_html_(self) -> str:
        warnings = "".join(f"<br>Warning: {escape(warning)}" for warning in self.warnings)
        return f"<b>heatsim simulation</b><br>{escape(self._describe())}{warnings}"

    def _describe(self) -> str:
        scenario, end = self.plan.problem.scenario, self.plan.problem.scenario.time.end
        cells = " × ".join(map(str, scenario.domain.cells))
        reached = scenario.time.method if scenario.steady else f"t = {self.time:.6g} of {end:.6g} s"
        place = "memory" if self.execution.in_memory else self.folder
        return f'"{scenario.title}": {cells} cells, {reached}, in {place}'

    @property
    def plan(self) -> Plan:
        """The problem, the device, the kernel, and the memory needed."""
        return self.execution.plan

    @property
    def folder(self) -> Path:
        """The output folder.

        Raises:
            InputError: the simulation is in memory.
        """
        if self.execution.in_memory:
            raise InputError("a simulation in memory has no folder; give Simulation.from_dict an output=…")
        return self.execution.folder

    @cached_property
    def _steering(self) -> Steering:
        return Steering(self.state)

    @property
    def state(self) -> RunState:
        """Field, step and time."""
        return self.execution.state

    @property
    def timing(self) -> Timing:
        """Wall-clock seconds of the parts of the run."""
        return self.execution.timing

    @property
    def warnings(self) -> list[str]:
        """Messages about the run for the user."""
        return self.execution.warnings

    @property
    def temperature(self) -> NDArray[np.float64]:
        """The temperatures in K after the steps done so far, shape (nz, ny, nx), NaN in void.

        A copy, which cannot be changed.
        """
        field, materials = self.state.field, self.state.problem.materials
        temperature = field.temperature(materials.in_void(field.slab.first, field.slab.last))
        temperature.flags.writeable = False
        return temperature

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
        """Whether the run is complete, with nothing left to do; on disk its summary must be there."""
        return self.execution.finished

    @property
    def complete(self) -> bool:
        """Whether the run is finished, and its error in space is known or not asked for. Collective."""
        if not self.finished or self.execution.in_memory or self.plan.problem.scenario.output.error == "none":
            return self.finished
        team = self.state.team
        with team.agreeing():
            stated = team.first and "error_in_space" in read_summary(self.folder)
        return team.broadcast(stated)

    def advance(self, until: float | str) -> None:
        """Do the steps up to a time and wait there; the last one completes the run as :meth:`run` does.

        The steps are those of a run without pauses, so the results have the same bits.

        Args:
            until: a time in s, or a text such as "10 min": a multiple of ``output.probe_every``, of ``output.every`` or
                of ``every`` in ``changes``, or the end of any step of ``euler``.

        Raises:
            InputError: the time has passed, or no step ends then.
            NotFiniteError, StorageError, Interrupted: as for :meth:`run`.
        """
        timeline, now = self.plan.problem.timeline, self.state
        if self.plan.problem.scenario.steady:
            raise InputError("advance: no time passes in a steady state; run() finds it")
        try:
            time = MOMENT.read(until)
        except ValueError as error:
            raise InputError(f"advance: until: {error}") from None
        step = timeline.step_at(time)
        if step is None:
            near = timeline.times[max(0, bisect_left(timeline.times, time) - 1) :][:2]
            raise InputError(
                f"advance: until = {time!r} s: no step ends then; the nearest due times are "
                f"{' s and '.join(repr(float(each)) for each in near)} s. Rows are due at the multiples of "
                "output.probe_every: change it, or the time"
            )
        if step < now.step:
            raise InputError(f"advance: until = {time!r} s has passed; the simulation is at {now.time!r} s")
        if step > now.step or (now.finished and not self.finished):
            self.execution.run(False, (), None, until=step)
            self._state_error(None)

    def set(self, path: str, value: float | str) -> None:
        """Set a value of the scenario from now on; the table ``changes`` of the scenario names it.

        Args:
            path: of its key there, such as "sources.heater.power".
            value: a number in SI units, or a text with a unit, within the range there.

        Raises:
            InputError: the scenario does not allow this value, or no change of it now.
        """
        self._steering.set(path, value)

    def set_temperature(self, temperature: ArrayLike) -> None:
        """Set the field from now on; ``changes`` of the scenario has a range for "initial.temperature".

        Sources, conditions and nodes go on. The heat that this puts in counts as in the body from the start: ``stored``
        of the energy balance does not change, and changes.csv has it.

        Args:
            temperature: in K, shape (nz, ny, nx) as :attr:`temperature`, or one number; void does not count.

        Raises:
            InputError: the scenario does not allow it, or not now; or a temperature is outside the range.
        """
        self._steering.set_temperature(temperature, self.execution.make_rows)

    def run_with(self, function: Callable[["Simulation"], object], every: float | str) -> None:
        """Run to the end; call a function with this simulation at t = 0, at the multiples of a time, and at the end.

        Args:
            function: reads and sets what it likes, such as :meth:`probe` and :meth:`set`.
            every: s between the calls, or a text with a unit; :meth:`advance` must be able to stop at its multiples.

        Raises:
            InputError, NotFiniteError, StorageError, Interrupted: as for :meth:`advance`.
        """
        try:
            interval = DURATION.read(every)
        except ValueError as error:
            raise InputError(f"run_with: every: {error}") from None
        end = self.plan.problem.scenario.time.end
        for moment in [0.0, *multiples(interval, end).tolist(), end]:
            if moment >= self.time and not self.finished:
                if moment > self.time:
                    self.advance(moment)
                function(self)

    def close(self) -> None:
        """Save a checkpoint after :meth:`advance` and close the files, so that others may resume the run."""
        self.execution.close()

    def probe(self, name: str) -> float | NDArray[np.float64]:
        """The value of a probe of the scenario now: a temperature in K, a length in m; an array along a line.

        Args:
            name: of the probe.

        Raises:
            InputError: there is no such probe, or it counts seconds.
        """
        if name not in self._probes:
            probes = {each.name: each for each in self.plan.problem.scenario.probes}
            if name not in probes:
                known = ", ".join(map(show, probes)) or "none"
                raise InputError(
                    f"got {show(name)}; the scenario has no such probe; it has {known}{did_you_mean(name, probes)}"
                )
            if probes[name].statistic in TIMES_BEYOND:
                raise InputError(f"probe {show(name)} counts the seconds of a whole run; read it from probes.csv")
            self._probes[name] = ProbeNow(probes[name], self.state)
        values = self._probes[name].read()
        return values[0] if len(values) == 1 else np.array(values)

    def run(
        self,
        *,
        progress: bool = False,
        pictures: bool = False,
        watchers: Sequence[Observer] = (),
        stop: Stop | None = None,
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
        if pictures and self.execution.in_memory:
            raise InputError("run: pictures=True draws what a run wrote; a simulation in memory writes nothing")
        if not self.finished:
            aloud = progress and in_python()
            shown = self._print_warnings(0) if aloud else 0
            self.execution.run(progress, watchers, stop)
            if aloud:
                self._print_warnings(shown)
        self._state_error(stop, progress)
        if pictures:
            from heatsim.physics.geometry.part_owners import part_owners
            from heatsim.render import render
            from heatsim.render.choice import PictureChoice
            from heatsim.report.page import write_report

            render(self.folder, PictureChoice(owners=part_owners))
            write_report(self.folder)

    def _state_error(self, stop: Stop | None, progress: bool = False) -> None:
        """Find the error of a finished run in space, unless it is known or not asked for. Collective."""
        scenario, team = self.plan.problem.scenario, self.state.team
        if self.execution.in_memory or scenario.output.error == "none" or not self.finished:
            return
        # The folder of a steady state does not hold its field.
        means = {} if scenario.steady and self.state.steady is None else means_of_regions(self.state)
        with stop_on_signals(stop) as wanted, team.agreeing():
            if team.first:
                run = FinishedRun(scenario, self.folder, means, ranks=team.size, set_up=self._set_up, progress=progress)
                try:
                    state_error(run, wanted)
                except (FolderError, StorageError) as error:
                    self.warnings.append(f"the run is complete, but not its error in space: {error}")

    def _print_warnings(self, first: int) -> int:
        """Print the warnings from number ``first`` on; their number."""
        for warning in self.warnings[first:]:
            print(f"warning: {warning}", file=sys.stderr)
        return len(self.warnings)
