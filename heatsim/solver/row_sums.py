"""Find all data that observers read of fields and ledgers at a due time, with one wait for the GPU and one message.

Observers read sums over parts of the body, temperatures at points, heats through surfaces and the cells of extremes. On
a GPU all of them are queued together and copied to the host once. If several ranks do a run, each rank sums over its
own planes, and all ranks exchange their numbers in one message. On a CPU, in a run on one rank, this module does
nothing: a sum is found when an observer reads it.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.find import Search, Searches
from heatsim.kernels.reductions.fused import Pass, partials
from heatsim.kernels.reductions.gather import Gather
from heatsim.kernels.reductions.launch_batch import BatchedLaunch, LaunchBatch, offsets
from heatsim.kernels.reductions.statistics import STATISTICS, FieldReduction, Partials
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.field import Field
from heatsim.solver.field_statistics import Extreme, FieldStatistics
from heatsim.solver.points import PlacedValues
from heatsim.solver.surface_sums import OwnSums

# Number of cached requests. Requests differ because two buffers swap places and because the expected extremes change.
_MOST_KEPT = 8


class Observables(NamedTuple):
    """The data of a run that observers read.

    Attributes:
        field: the field.
        ledger: the energy ledger.
        statistics: the statistics of the field.
    """

    field: Field
    ledger: Ledger
    statistics: FieldStatistics


class _Own(NamedTuple):
    """The numbers of a run from a rank's own planes; temperatures at points in the order of the field's points.

    Without a ledger, its sums are None.
    """

    of_field: Partials
    of_ledger: OwnSums | None
    at_points: list[PlacedValues]


class RowSums:
    """Finds the sums of runs on one device, and caches the launches."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Request] = OrderedDict()
        self._queued: _Request | None = None
        self._workspaces: dict[int, Any] = {}  # shared by all requests of single runs, which never run at once

    def queue(self, runs: Sequence[Observables]) -> None:
        """On a GPU, queue what :meth:`find` will read. The fields must not change in between."""
        if runs[0].field.device.backend == "cuda":
            self._queued = self._request(runs)
            self._queued.batch.queue()

    @property
    def queued(self) -> bool:
        """Whether a request waits for :meth:`find`."""
        return self._queued is not None

    def find(self, runs: Sequence[Observables]) -> None:
        """Find the sums of runs, unless they are known. Collective.

        Args:
            runs: runs on one device; those of :meth:`queue` if that was called since the last call. If there are
                several, the job has one rank.
        """
        team, request = runs[0].field.team, self._queued
        if runs[0].field.device.backend == "cuda":
            if request is None:
                self.queue(runs)
                request = self._queued
            assert request is not None
            own = request.read()
            self._queued = None
        elif team.size > 1:
            own = [_on_cpu(run) for run in runs]
        else:
            return
        gathered = list(zip(*team.gathered(own), strict=True))
        reductions = _reductions([[each.of_field for each in of_ranks] for of_ranks in gathered])
        for run, reduction, of_ranks in zip(runs, reductions, gathered, strict=True):
            run.field.store(reduction, [each.at_points for each in of_ranks])
            if run.ledger.recorded:
                run.ledger.store([each.of_ledger for each in of_ranks if each.of_ledger is not None])
        if request is not None:
            request.take_cells()

    def _request(self, runs: Sequence[Observables]) -> "_Request":
        """The launches for some runs, cached: the same runs need them again at later due times."""
        expected = [run.statistics.expected() for run in runs]
        key = tuple(
            (int(run.field.deviation.data.ptr), run.ledger.addresses, wanted, len(run.field.all_points))
            for run, wanted in zip(runs, expected, strict=True)
        )
        workspaces = self._workspaces if len(runs) == 1 else {}
        request = self._kept.pop(key, None) or _Request(runs, expected, workspaces)
        self._kept[key] = request
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return request


class _Request:
    """The launches that find the sums of some runs.

    Attributes:
        batch: all launches.
    """

    def __init__(
        self, runs: Sequence[Observables], expected: Sequence[Sequence[Extreme]], workspaces: dict[int, Any]
    ) -> None:
        device = runs[0].field.device
        self._runs, self._expected = runs, expected
        self._fields = list(_alike([run.field.labelling_key for run in runs]))
        self._ledgers = list(_alike([run.ledger.labelling_key for run in runs]))
        passes: list[Pass] = []
        for some in self._fields:
            division = runs[some[0]].field.division
            passes.append(Pass.of(device.xp, [runs[each].field.sections() for each in some], division, workspaces))
        for some in self._ledgers:
            sections = [one for each in some for one in runs[each].ledger.sections()]
            passes.append(Pass.of(device.xp, sections, runs[some[0]].ledger.division, workspaces))
        works: list[BatchedLaunch] = [*passes]
        points = [(run.field.own, points.cells) for run in runs for points in run.field.all_points]
        self._gathers = any(cells.size for _, cells in points)
        if self._gathers:
            works.append(Gather(device, points))
        count = sum(map(len, expected))
        most = Searches.most_bytes(count, max(run.field.own.size for run in runs))
        places, length = offsets([*(work.nbytes for work in works), most])
        buffer = device.xp.empty(length, dtype=np.uint8)
        if count:
            works.append(Searches(device, list(self._searches(passes, places, buffer))))
        self.batch = LaunchBatch(device, buffer, works)
        self._cells: list[int] = []

    def _searches(self, passes: Sequence[Pass], places: Sequence[int], buffer: Any) -> Iterator[Search]:
        """The searches for the expected extremes of each run, whose values earlier launches of the batch find."""
        found = {}
        for some, launches, place in zip(self._fields, passes, places, strict=False):
            size = launches.nbytes // sum(launches.counts)
            for each, count in zip(some, launches.counts, strict=True):
                found[each] = buffer[place : place + size * count]
                place += size * count
        for number, run in enumerate(self._runs):
            for extreme in self._expected[number]:
                yield run.statistics.search_for(extreme, found[number])

    def read(self) -> list[_Own]:
        """Wait for the numbers of each run, and return them."""
        found = self.batch.read()
        of_fields: dict[int, Partials] = {}
        of_ledgers: dict[int, OwnSums] = {}
        for some, partial in zip(self._fields, found, strict=False):
            of_fields |= zip(some, partial, strict=True)
        for some, partial in zip(self._ledgers, found[len(self._fields) :], strict=False):
            rest = iter(partial)
            for each in some:
                ledger = self._runs[each].ledger
                of_ledgers[each] = ledger.own_sums([next(rest) for _ in ledger.sections()])
        others = found[len(self._fields) + len(self._ledgers) :]
        values = iter(others.pop(0) if self._gathers else ())
        self._cells = others.pop(0) if others else []
        for run in self._runs:
            _take_points(run.field, values)
        return [
            _Own(of_fields[number], of_ledgers.get(number), _at_points(run.field))
            for number, run in enumerate(self._runs)
        ]

    def take_cells(self) -> None:
        """Store the cells of extremes in the statistics of each run. Call it after the statistics are stored."""
        cells = iter(self._cells)
        for run, expected in zip(self._runs, self._expected, strict=True):
            run.statistics.store({extreme: next(cells) for extreme in expected})


def _reductions(fields: Sequence[Sequence[Partials]]) -> list[FieldReduction]:
    """The reductions of fields from STATISTICS of each rank's sections; those of equal shapes are made together."""
    whole = [of_ranks[0] if len(of_ranks) == 1 else np.concatenate(of_ranks) for of_ranks in fields]
    reductions: dict[int, FieldReduction] = {}
    for some in _alike([of_field.shape for of_field in whole]):
        together = np.stack([whole[each].view(np.float64) for each in some])  # NumPy is slow to join structs
        reductions |= zip(some, FieldReduction.of_each(together.view(STATISTICS)), strict=True)
    return [reductions[number] for number in range(len(whole))]


def _take_points(field: Field, values: Iterator[NDArray[Any]]) -> None:
    """Store the values at all points of a field, taken from ``values`` in order; without points on this rank, none."""
    nothing = np.empty(0, field.precision)
    for points in field.all_points:
        points.take(next(values, nothing))


def _at_points(field: Field) -> list[PlacedValues]:
    """The places and temperatures of all points in own planes."""
    return [(points.held, points.own_temperatures()) for points in field.all_points]


def _alike(keys: Sequence[Hashable]) -> Iterator[list[int]]:
    """Groups of runs with equal keys, as their numbers. Runs with the key None are left out."""
    groups: dict[Hashable, list[int]] = {}
    for number, key in enumerate(keys):
        if key is not None:
            groups.setdefault(key, []).append(number)
    yield from groups.values()


def _on_cpu(run: Observables) -> _Own:
    """The numbers of a run from this rank's own planes, on a CPU."""
    field, ledger = run.field, run.ledger
    (of_field,) = partials(field.device, [field.sections()], field.division)
    heats: OwnSums | None = None
    if ledger.recorded:
        heats = ledger.own_sums(partials(field.device, ledger.sections(), ledger.division))
    return _Own(of_field, heats, _at_points(field))
