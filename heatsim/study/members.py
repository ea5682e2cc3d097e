"""The runs of a group, done in this process: what a worker does.

Everything is in the folders afterwards; what is returned only tells how it went. A run that was begun is gone on with
from its checkpoint, a finished one is left alone, so that a group can be given out again at any time.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from heatsim.errors import HeatsimError, Interrupted, NotFiniteError, ScenarioError, StorageError
from heatsim.observers.observer import Observer, RunState, Values
from heatsim.run.ensemble import run_together
from heatsim.run.interrupt import Stop
from heatsim.run.simulation import Simulation
from heatsim.storage import folder as run_folder
from heatsim.study import folder as study_folder
from heatsim.study.definition import Definition
from heatsim.study.groups import Kind, can_be_stacked, kind

DONE, FAILED = "done", "failed"
SECONDS_BETWEEN_REPORTS = 0.25

_FAILURES = (HeatsimError, MemoryError, OSError, ArithmeticError, ValueError, LookupError, TypeError)

# Called with a run's number and how many steps of it are done; may set ``requested`` of the group's Stop.
Report = Callable[[int, int], None]


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        number: which run.
        status: "done" or "failed".
        message: why it failed.
    """

    number: int
    status: str
    message: str = ""


def run_group(study: Path, numbers: Sequence[int], report: Report, stop: Stop) -> Iterator[Outcome]:
    """Do the runs of a group; their outcomes as they end. Ends early once ``stop`` is requested.

    On a GPU runs of one kind are advanced together, others one after the other. So are those on a CPU, where steps are
    fast because a field has the caches for itself.

    Args:
        study: the study's folder.
        numbers: which runs.
        report: told how far each is, at its start and then a few times a second.
        stop: a request to save a checkpoint and stop.
    """
    definition = study_folder.read_study(study)
    alike: dict[Kind, dict[int, Simulation]] = {}
    for number in numbers:
        if stop.requested:
            return
        folder = study_folder.run_path(study, number)
        try:
            study_folder.wait_until_free(folder)
            if study_folder.is_done(folder):
                study_folder.forget_failure(folder)
                yield Outcome(number, DONE)
                continue
            simulation = _open(definition, folder, number)
        except _FAILURES as error:
            yield _failed(folder, number, error)
            continue
        if len(numbers) > 1 and can_be_stacked(simulation.plan):
            alike.setdefault(kind(simulation.plan.problem), {})[number] = simulation
            continue
        try:
            report(number, simulation.step)
            simulation.run(watchers=(_Reporter(number, report),), stop=stop)
        except Interrupted:
            return
        except _FAILURES as error:
            yield _failed(folder, number, error)
        else:
            study_folder.forget_failure(folder)
            yield Outcome(number, DONE)
    for ensemble in alike.values():
        yield from _run_together(ensemble, report, stop)


def _run_together(ensemble: Mapping[int, Simulation], report: Report, stop: Stop) -> Iterator[Outcome]:
    numbers = list(ensemble)
    for number, simulation in ensemble.items():
        report(number, simulation.step)
    watchers = [(_Reporter(number, report),) for number in numbers]
    for ended in run_together(list(ensemble.values()), watchers, stop):
        number = numbers[ended.number]
        folder = ensemble[number].folder
        if ended.error is None:
            study_folder.forget_failure(folder)
            yield Outcome(number, DONE)
        elif not isinstance(ended.error, Interrupted):
            if not isinstance(ended.error, _FAILURES):
                raise ended.error
            yield _failed(folder, number, ended.error)


def _failed(folder: Path, number: int, error: Exception) -> Outcome:
    message = str(error) if isinstance(error, HeatsimError) else f"{type(error).__name__}: {error}"
    # What the numbers themselves did they would do again; a full disk may be emptied.
    again = not isinstance(error, NotFiniteError | ScenarioError)
    with suppress(StorageError, OSError):
        study_folder.write_failure(folder, message, again=again)
    return Outcome(number, FAILED, message)


def _open(definition: Definition, folder: Path, number: int) -> Simulation:
    if (folder / run_folder.SCENARIO).exists():
        return Simulation.resume(folder)
    study_folder.forget_failure(folder)
    return Simulation.from_model(definition.scenario(number), folder)


class _Reporter(Observer):
    """Tells how far a run is, by the wall clock."""

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
