"""Running a group of runs in this process, as a worker does.

All results are in the folders of the runs; the events only report progress. A run with a checkpoint is resumed and a
finished run is skipped, so a group can be run again at any time.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from heatsim import garbage
from heatsim.errors import HeatsimError, Interrupted, NotFiniteError, ScenarioError, StorageError
from heatsim.observers.observer import Observer, Values
from heatsim.observers.state import RunState
from heatsim.physics.problem import HeatProblem
from heatsim.run.ensemble import run_together
from heatsim.run.interrupt import Stop
from heatsim.run.simulation import Simulation
from heatsim.storage import folder as run_folder
from heatsim.study import folder as study_folder
from heatsim.study.columns import DONE, FAILED
from heatsim.study.definition import Definition
from heatsim.study.groups import EnsembleKey, ensemble_key, fits_ensemble
from heatsim.study.progress import Event

SECONDS_BETWEEN_REPORTS = 0.25

_FAILURES = (HeatsimError, MemoryError, OSError, ArithmeticError, ValueError, LookupError, TypeError)

# Called with a run's number and its number of steps so far; may set ``requested`` of the group's Stop.
Report = Callable[[int, int], None]


def run_group(study: Path, numbers: Sequence[int], report: Report, stop: Stop) -> Iterator[Event]:
    """Run a group, and yield an event for each run when it ends; end early once ``stop`` is requested.

    On a GPU, runs that can form an ensemble advance together, those of each method by themselves. Other runs, and all
    runs on a CPU, run one after the other: a CPU is fastest when one field has the caches for itself.

    Args:
        study: the study's folder.
        numbers: the runs.
        report: called for each run at its start and then a few times a second.
        stop: a request to save checkpoints and stop.
    """
    definition = study_folder.read_study(study)
    alike: dict[EnsembleKey, dict[int, Simulation]] = {}
    last: HeatProblem | None = None
    for number in numbers:
        if stop.requested:
            return
        folder = study_folder.run_path(study, number)
        try:
            study_folder.wait_until_free(folder)
            if study_folder.is_done(folder):
                study_folder.forget_failure(folder)
                yield Event(number, None, DONE)
                continue
            simulation = _open(definition, folder, number, last)
            last = simulation.plan.problem
        except _FAILURES as error:
            yield _failed(folder, number, error)
            continue
        if len(numbers) > 1 and fits_ensemble(simulation.plan.problem, simulation.plan.device.backend):
            alike.setdefault(ensemble_key(simulation.plan.problem), {})[number] = simulation
            continue
        try:
            report(number, simulation.step)
            if not simulation.finished:
                simulation.execution.run(False, (_Reporter(number, report),), stop)
        except Interrupted:
            return
        except _FAILURES as error:
            yield _failed(folder, number, error)
        else:
            study_folder.forget_failure(folder)
            yield Event(number, None, DONE)
        del simulation
        garbage.search_now()
    while alike:
        yield from _run_together(alike.pop(next(iter(alike))), report, stop)
        garbage.search_now()


def _run_together(ensemble: Mapping[int, Simulation], report: Report, stop: Stop) -> Iterator[Event]:
    numbers = list(ensemble)
    for number, simulation in ensemble.items():
        report(number, simulation.step)
    watchers = [(_Reporter(number, report),) for number in numbers]
    for ended in run_together(list(ensemble.values()), watchers, stop):
        number = numbers[ended.number]
        folder = ensemble[number].folder
        if ended.error is None:
            study_folder.forget_failure(folder)
            yield Event(number, None, DONE)
        elif not isinstance(ended.error, Interrupted):
            if not isinstance(ended.error, _FAILURES):
                raise ended.error
            yield _failed(folder, number, ended.error)


def _failed(folder: Path, number: int, error: Exception) -> Event:
    message = str(error) if isinstance(error, HeatsimError) else f"{type(error).__name__}: {error}"
    # A numerical failure would happen again; a full disk may have space next time.
    again = not isinstance(error, NotFiniteError | ScenarioError)
    with suppress(StorageError, OSError):
        study_folder.write_failure(folder, message, again=again)
    return Event(number, None, FAILED, message)


def _open(definition: Definition, folder: Path, number: int, like: HeatProblem | None) -> Simulation:
    if (folder / run_folder.SCENARIO).exists():
        return Simulation.resume(folder)
    study_folder.forget_failure(folder)
    return Simulation.from_model(definition.scenario(number), folder, like=like)


class _Reporter(Observer):
    """Reports the steps of a run at intervals of wall-clock time."""

    def __init__(self, number: int, report: Report) -> None:
        self._number = number
        self._report = report
        self._reported_at = 0.0

    def start(self, state: RunState, saved: Values | None) -> None:
        self._reported_at = time.monotonic()

    def poll(self, state: RunState) -> None:
        if time.monotonic() - self._reported_at >= SECONDS_BETWEEN_REPORTS:
            self._reported_at = time.monotonic()
            self._report(self._number, state.step)
