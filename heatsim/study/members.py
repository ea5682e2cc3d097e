"""The runs of a group, done in this process: what a worker does.

Everything is in the folders afterwards; what is returned only tells how it went. A run that was begun is gone on with
from its checkpoint, a finished one is left alone, so that a group can be given out again at any time.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from heatsim.errors import HeatsimError, Interrupted, NotFiniteError, ScenarioError, StorageError
from heatsim.observers.observer import Observer, RunState, Values
from heatsim.simulation import Simulation
from heatsim.stop import Stop
from heatsim.storage import folder as run_folder
from heatsim.study import folder as study_folder
from heatsim.study.definition import Definition

DONE, FAILED = "done", "failed"
SECONDS_BETWEEN_REPORTS = 0.25

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

    Args:
        study: the study's folder.
        numbers: which runs.
        report: told how far each is, at its start and then a few times a second.
        stop: a request to save a checkpoint and stop.
    """
    definition = study_folder.read_study(study)
    for number in numbers:
        if stop.requested:
            return
        outcome = _run(definition, study_folder.run_path(study, number), number, report, stop)
        if outcome is None:
            return
        yield outcome


def _run(definition: Definition, folder: Path, number: int, report: Report, stop: Stop) -> Outcome | None:
    """One run to its end; None if it was interrupted."""
    try:
        study_folder.wait_until_free(folder)
        if not study_folder.is_done(folder):
            simulation = _open(definition, folder, number)
            report(number, simulation.step)
            simulation.run(watchers=(_Reporter(number, report),), stop=stop)
        study_folder.forget_failure(folder)
        return Outcome(number, DONE)
    except Interrupted:
        return None
    except (HeatsimError, MemoryError, OSError, ArithmeticError, ValueError, LookupError, TypeError) as error:
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
