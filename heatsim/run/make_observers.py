"""The observers that a scenario asks for, in the order in which they look at the run."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heatsim.observers.changes import Changes
from heatsim.observers.checkpoint import Checkpoints
from heatsim.observers.energy import Energy
from heatsim.observers.extreme_temperatures import ExtremeTemperatures
from heatsim.observers.heat_flows import HeatFlows
from heatsim.observers.nodes import Nodes
from heatsim.observers.observer import Observer, Values
from heatsim.observers.probes import Probes
from heatsim.observers.progress import Progress
from heatsim.observers.snapshots import Snapshots
from heatsim.observers.state import RunState
from heatsim.observers.steady import Steady
from heatsim.observers.table import TableObserver
from heatsim.observers.watchdog import Watchdog
from heatsim.run.resume import input_files
from heatsim.scenario import Scenario


def make_observers(
    scenario: Scenario, identity: Values, progress: bool, watchers: Sequence[Observer]
) -> list[Observer]:
    """The observers of a run; the watchdog comes first, the checkpoints last.

    Args:
        scenario: what is to be written.
        identity: from :func:`heatsim.run.resume.identity`; kept in checkpoints.
        progress: print the progress on stderr.
        watchers: observers of the caller; checkpoints keep nothing of them.
    """
    observers: list[Observer] = [Watchdog(), ExtremeTemperatures()]
    if scenario.time.stop_below is not None and not scenario.steady:
        observers.append(Steady())  # before those that write: it may be the last time
    if scenario.output.fields:
        observers.append(Snapshots())
    if scenario.probes or scenario.couplings:
        observers.append(Probes())
    if scenario.nodes or scenario.channels:
        observers.append(Nodes())
    if scenario.output.energy:
        observers.append(HeatFlows() if scenario.steady else Energy())
    if scenario.changes:
        observers.append(Changes())  # after those that show the time before
    if scenario.steady:
        return [*observers, *watchers]
    if progress:
        observers.append(Progress())
    return [*observers, *watchers, Checkpoints(tuple(observers), identity, input_files(scenario))]


def make_watchers(scenario: Scenario, progress: bool, watchers: Sequence[Observer]) -> list[Observer]:
    """The observers of a run that writes nothing. Those that would write are only due, so that its steps are the same.

    Arguments are those of :func:`make_observers`; a table among the watchers stands for that of the scenario.
    """
    kept = {type(watcher) for watcher in watchers if isinstance(watcher, TableObserver)}
    observers = [each for each in make_observers(scenario, {}, progress, ()) if type(each) not in kept]
    return [*map(_without_files, observers), *watchers]


def _without_files(observer: Observer) -> Observer:
    """The same observer if it writes nothing, or one that is due at the same steps."""
    if isinstance(observer, Changes):  # it also sets values
        observer.writes = False
        return observer
    return _Due(observer) if isinstance(observer, TableObserver | Snapshots | Checkpoints) else observer


def make_tables(scenario: Scenario) -> list[TableObserver]:
    """The tables of a run, whose rows are kept in memory."""
    tables = [each for each in make_observers(scenario, {}, False, ()) if isinstance(each, TableObserver)]
    for table in tables:
        table.kept = []
    return tables


def make_readers(scenario: Scenario) -> list[Observer]:
    """Observers that are due when those of a run are, and read the same sums and points; they write nothing."""
    readers = list[Observer]()
    for observer in make_observers(scenario, {}, progress=False, watchers=()):
        if isinstance(observer, TableObserver):
            observer.writes = False
        reads = isinstance(observer, TableObserver | Watchdog | ExtremeTemperatures)
        reads = reads and not isinstance(observer, Changes)  # which sets values
        readers.append(observer if reads else _Due(observer))
    return readers


class _Due(Observer):
    """Due when another observer is, which needs the field itself; does nothing."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def due(self, state: RunState) -> NDArray[np.int64]:
        """The steps of the other observer."""
        return self._observer.due(state)
