"""Running a study from start to end."""

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsim.counts import counted
from heatsim.errors import FolderError, InputError, Interrupted
from heatsim.outputs import output_folder
from heatsim.physics.geometry.painted_sizes import thickness_hints
from heatsim.physics.problem import HeatProblem
from heatsim.run.error.coarser_run import FinishedRun, state_error
from heatsim.run.interrupt import Stop, stop_on_signals
from heatsim.run.plan import Plan
from heatsim.storage import folder as run_folder
from heatsim.storage.disk import make_folders, reason
from heatsim.study import definition as definitions
from heatsim.study import folder as study_folder
from heatsim.study.columns import DONE, RUN, STATUS
from heatsim.study.definition import Definition
from heatsim.study.dispatch import Dispatch
from heatsim.study.drawing import BackgroundStudyPictures
from heatsim.study.early_workers import EarlyWorkers
from heatsim.study.model import shown_values
from heatsim.study.points import identity
from heatsim.study.report import title_of
from heatsim.study.responses import extreme_runs
from heatsim.study.results import Results, Row, response_values

if TYPE_CHECKING:
    import pyarrow
    from rich.console import Group

    from heatsim.render.notebook import ShownPictures


@dataclass(repr=False)
class Study:
    """A scenario with a table [study]; running it again finishes it.

    >>> import heatsim
    >>> table = heatsim.Study.from_scenario("scenarios/heat_sink_study.toml").run()
    >>> table.to_pandas()

    Attributes:
        definition: the scenario's document and the points.
        folder: the folder of its output.
    """

    definition: Definition
    folder: Path

    _problems: Mapping[str, HeatProblem]
    _plans: Mapping[str, Plan]
    _workers: int | None = None
    _cluster: str | None = None
    _extend: bool = False
    _overwrite: bool = False
    _rows: Sequence[Row] = ()
    _early: EarlyWorkers | None = None

    @classmethod
    def from_scenario(
        cls,
        path: str | Path,
        overrides: Sequence[str] = (),
        *,
        output: str | Path | None = None,
        workers: int | None = None,
        cluster: str | None = None,
        extend: bool = False,
        overwrite: bool = False,
        early: EarlyWorkers | None = None,
    ) -> "Study":
        """Read a study and check all of its runs, without writing anything.

        Args:
            path: the TOML file.
            overrides: ``key.path=value`` settings that replace keys of the file or add keys.
            output: the folder to write to; by default outputs/<the file's stem>.
            workers: the number of processes on this machine; by default one per core, or up to eight per GPU.
            cluster: the address of a Dask scheduler that runs the groups instead.
            extend: whether to add points that the study in the folder does not have, and to drop points without a run.
            overwrite: whether to replace another study in the folder.
            early: workers on this machine that were started for the study; :meth:`run` uses them.

        Raises:
            ScenarioError: lists every mistake, and every refused run with its reasons.
            DeviceError: the requested device or kernel is not available.
            InputError: two options exclude each other.
        """
        _check_workers(workers, cluster)
        target = output_folder(path, output)
        definition, problems = definitions.read(path, overrides, elsewhere=cluster is not None)
        return cls.of(definition, problems, target, workers, cluster, extend=extend, overwrite=overwrite, early=early)

    @classmethod
    def from_dict(
        cls,
        document: Mapping[str, Any],
        output: str | Path,
        *,
        folder: str | Path = ".",
        workers: int | None = None,
        cluster: str | None = None,
        extend: bool = False,
        overwrite: bool = False,
    ) -> "Study":
        """A study given as a dictionary with the tables and keys of a TOML file, among them ``study``.

        Args:
            document: for instance ``{**scenario, "study": {"method": "grid", "parameters": {"material.density":
                [1000.0, 2000.0]}}}``; numbers and arrays of NumPy and paths are allowed.
            output: the folder to write to.
            folder: where the paths of input files start.
            workers: as for :meth:`from_scenario`, like the others.
            cluster: the address of a Dask scheduler.
            extend: whether to add points.
            overwrite: whether to replace another study.

        Raises:
            ScenarioError, DeviceError, InputError: as for :meth:`from_scenario`.
        """
        _check_workers(workers, cluster)
        definition, problems = definitions.read_dict(document, folder, elsewhere=cluster is not None)
        target = output_folder(definition.path, output)
        return cls.of(definition, problems, target, workers, cluster, extend=extend, overwrite=overwrite)

    @classmethod
    def of(
        cls,
        definition: Definition,
        problems: Mapping[int, HeatProblem],
        folder: Path,
        workers: int | None = None,
        cluster: str | None = None,
        *,
        extend: bool = False,
        overwrite: bool = False,
        early: EarlyWorkers | None = None,
    ) -> "Study":
        """A study whose runs are checked; arguments as for :meth:`from_scenario`, and the problem of each run."""
        plans = {} if cluster is not None else {number: Plan.of(problem) for number, problem in problems.items()}
        ids = {number: identity(definition.points[number - 1]) for number in problems}
        its_problems = {ids[number]: problem for number, problem in problems.items()}
        its_plans = {ids[number]: plan for number, plan in plans.items()}
        return cls(definition, folder, its_problems, its_plans, workers, cluster, extend, overwrite, _early=early)

    def run(self, *, progress: bool = False) -> "pyarrow.Table":
        """Compute the missing runs, and write the results.

        Finished runs are skipped and interrupted runs are resumed. A run that fails is a row with its message.

        Args:
            progress: whether to show the progress on stderr.

        Returns:
            The table of results.parquet, with one row for each run.

        Raises:
            FolderError: the folder cannot be used.
            CapacityError: the runs do not fit the memory or the disk.
            Interrupted: after SIGINT or SIGTERM; checkpoints are saved.
        """
        with BackgroundStudyPictures() if self._draws else nullcontext() as pictures:
            with ExitStack() as stack:
                if self._early is not None:
                    stack.callback(self._early.close)
                self._make_folder()
                stack.enter_context(run_folder.claim(self.folder))
                stop = stack.enter_context(stop_on_signals())
                self.definition = study_folder.check_study(
                    self.folder, self.definition, extend=self._extend, overwrite=self._overwrite
                )
                numbers = self.definition.numbers
                missing = [number for number in numbers if self._overwrite or self._is_missing(number)]
                dispatch = self._dispatch(missing) if missing else None
                if dispatch is not None:
                    dispatch.check_capacity(overwrite=self._overwrite)
                study_folder.write_study(self.folder, self.definition, overwrite=self._overwrite)
                self._overwrite = False
                results = Results(self.folder, self.definition)
                stack.callback(results.write)
                started = time.monotonic()
                if dispatch is not None:
                    dispatch.run(results, stop, len(numbers), draws=self._draws, shown=progress)
                self._rows = results.rows()
                if not stop.requested:
                    self._state_errors(time.monotonic() - started if dispatch is not None else None, stop)
            if stop.requested and any(self._is_missing(number) for number in missing):
                done = sum(study_folder.is_done(self._path(number)) for number in self.definition.numbers)
                raise Interrupted(
                    f"interrupted: {done} of {counted(len(self.definition.points), 'run')} done; those that had "
                    f"started have checkpoints; continue with {study_folder.AGAIN}"
                )
            if pictures is not None:
                from heatsim.study.page import write_report

                pictures.render(self.folder, self.definition, self._rows)
                write_report(self.folder, self.definition, self._rows)
            return results.table()

    def plot(self) -> "ShownPictures":
        """Draw the responses and probes of the finished runs, and show the pictures in a notebook; their paths.

        Raises:
            StorageError: the results cannot be read, or a picture could not be written.
        """
        from heatsim.render.notebook import ShownPictures
        from heatsim.study.figures import draw

        return ShownPictures(draw(self.folder, self.definition, Results(self.folder, self.definition).rows()))

    def __repr__(self) -> str:
        return f"<heatsim study {self._describe()}>"

    def _repr_html_(self) -> str:
        keys = "".join(
            f"<tr><th>{escape(', '.join(axis.keys))}</th><td>{escape(shown_values(axis))}</td></tr>"
            for axis in self.definition.table.axes
        )
        return f"<b>heatsim study</b><br>{escape(self._describe())}<table>{keys}</table>"

    def _describe(self) -> str:
        numbers = self.definition.numbers
        done, runs = sum(study_folder.is_done(self._path(number)) for number in numbers), counted(len(numbers), "run")
        return f'"{title_of(self.definition)}" in {self.folder}: {done} of {runs} done'

    @property
    def hints(self) -> list[str]:
        """Warnings about values of the runs that are allowed, but are probably not what was meant; each once."""
        scenarios = [problem.scenario for problem in self._problems.values()]
        found = (hint for scenario in scenarios for hint in (*scenario.hints, *thickness_hints(scenario)))
        return list(dict.fromkeys(found))

    @property
    def not_done(self) -> int:
        """The number of runs that have failed or are waiting."""
        return sum(row[STATUS] != DONE for row in self._rows)

    def summary(self, verbose: bool = False) -> "Group":
        """The results for rich's console; ``verbose``: also errors and files."""
        from heatsim.study.report import summarise

        return summarise(self.folder, self.definition, self._rows, verbose)

    @property
    def _draws(self) -> bool:
        """Whether there will be pictures and a report."""
        return bool(self.definition.document.get("output", {}).get("figures", True))

    def _make_folder(self) -> None:
        run_folder.check_names(self.folder)
        try:
            make_folders(self.folder)
        except OSError as error:
            raise FolderError(
                f"{self.folder}: could not be created: {reason(error)}; choose another --output"
            ) from None

    def _dispatch(self, missing: Sequence[int]) -> Dispatch:
        ids = {number: identity(self.definition.points[number - 1]) for number in missing}
        problems = {number: self._problems[its] for number, its in ids.items()}
        plans = {number: self._plans[its] for number, its in ids.items() if its in self._plans}
        return Dispatch(self.folder, problems, plans, self._workers, self._cluster, self._early)

    def _state_errors(self, seconds: float | None, stop: Stop) -> None:
        """Find the errors in space of the runs with the smallest and the largest responses, where that is cheap.

        Args:
            seconds: that all runs took; None for those of each run.
            stop: ends it once it is requested.
        """
        if self._cluster is not None:
            return  # this machine may be slower than those of the cluster
        numbers = {int(row[RUN]) for row in extreme_runs(self.definition, self._rows).values()}
        more = partial(response_values, responses=self.definition.table.responses)
        for number in sorted(numbers):
            scenario = self._problems[identity(self.definition.points[number - 1])].scenario
            if scenario.output.error != "none":
                part = None if seconds is None else seconds / len(numbers)
                state_error(FinishedRun(scenario, self._path(number), seconds=part, more=more), stop)

    def _path(self, number: int) -> Path:
        return study_folder.run_path(self.folder, number)

    def _is_missing(self, number: int) -> bool:
        if study_folder.is_done(self._path(number)):
            return False
        failure = study_folder.read_failure(self._path(number))
        return failure is None or failure[1]


def _check_workers(workers: int | None, cluster: str | None) -> None:
    """Refuse a number of workers beside a cluster, or less than one."""
    if workers is not None and cluster is not None:
        raise InputError("--workers and --cluster exclude each other: the cluster determines the number of workers")
    if workers is not None and workers < 1:
        raise InputError(f"--workers: got {workers}; a whole number from 1 is expected")
