"""Find all data that observers read of fields and ledgers at a due time, with one wait for the GPU and one message.

Observers read sums over parts of the body, temperatures at points, heats through surfaces and the cells of extremes. On
a GPU all of them are queued together and copied to the host once. If several ranks do a run, each rank sums over its
own planes, and all ranks exchange their numbers in one message. On a CPU, in a run on one rank, this module does
nothing: a sum is found when an observer reads it.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
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


class FoundRow(NamedTuple):
    """The numbers of a run at a due time that is over, on one rank.

    Attributes:
        reduction: of the field.
        of_ledger: the sums of the ledger; None if it records nothing.
        at_points: for each of the field's points the values of its cells in the buffer.
        cells: those of extremes.
    """

    reduction: FieldReduction
    of_ledger: OwnSums | None
    at_points: Sequence[NDArray[Any]]
    cells: Mapping[Extreme, int]

    def show(self, run: Observables) -> None:
        """Let observers of a run read these numbers instead of those of its present field."""
        _take_points(run.field, iter(self.at_points))
        run.field.store(self.reduction, [_at_points(run.field)])
        if self.of_ledger is not None:
            run.ledger.store([self.of_ledger])
        run.statistics.store(self.cells)


class RowSums:
    """Finds the sums of runs on one device, and caches the launches."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Request] = OrderedDict()
        self._queued: Request | None = None
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

    def _request(self, runs: Sequence[Observables]) -> "Request":
        """The launches for some runs, cached: the same runs need them again at later due times."""
        expected = [run.statistics.expected() for run in runs]
        key = tuple(
            (int(run.field.deviation.data.ptr), run.ledger.addresses, wanted, len(run.field.all_points))
            for run, wanted in zip(runs, expected, strict=True)
        )
        workspaces = self._workspaces if len(runs) == 1 else {}
        request = self._kept.pop(key, None) or Request(runs, expected, workspaces)
        self._kept[key] = request
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return request


class Request:
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
        passes = self._passes = list[Pass]()
        for some in self._fields:
            division = runs[some[0]].field.division
            passes.append(Pass.of(device.xp, [runs[each].field.sections() for each in some], division, workspaces))
        self._ledgers_alike: list[bool] = []
        for some in self._ledgers:
            ledgers = [runs[each].ledger for each in some]
            self._ledgers_alike.append(all(ledger.lies_like(ledgers[0]) for ledger in ledgers))
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
                yield run.statistics.search_for(extreme, run.field.own, found[number])

    def read(self) -> list[_Own]:
        """Wait for the numbers of each run, and return them."""
        found = self.batch.read()
        of_fields: dict[int, Partials] = {}
        of_ledgers: dict[int, OwnSums] = {}
        for some, partial in zip(self._fields, found, strict=False):
            of_fields |= zip(some, partial, strict=True)
        for some, alike, partial in zip(self._ledgers, self._ledgers_alike, found[len(self._fields) :], strict=False):
            ledgers = [self._runs[each].ledger for each in some]
            if alike:
                of_ledgers |= zip(some, Ledger.own_sums_of(ledgers, partial), strict=True)
            else:
                rest = iter(partial)
                sums = [ledger.own_sums([next(rest) for _ in ledger.sections()]) for ledger in ledgers]
                of_ledgers |= zip(some, sums, strict=True)
        others = found[len(self._fields) + len(self._ledgers) :]
        values = iter(others.pop(0) if self._gathers else ())
        self._cells = others.pop(0) if others else []
        for run in self._runs:
            _take_points(run.field, values)
        return [
            _Own(of_fields[number], of_ledgers.get(number), _at_points(run.field))
            for number, run in enumerate(self._runs)
        ]

    def rows(self, results: NDArray[np.uint8]) -> list[FoundRow]:
        """The numbers of a single run at several times, from the bytes of :meth:`LaunchBatch.queue_to`.

        Args:
            results: shape (times, bytes).
        """
        (run,), (expected,) = self._runs, self._expected
        works, count = self.batch.parts(results), len(results)
        found = [
            part.view(STATISTICS).reshape(count, sum(launches.counts), launches.division.parts)
            for part, launches in zip(works, self._passes, strict=False)
        ]
        of_ledgers: Sequence[OwnSums | None] = [None] * count
        if len(self._passes) > 1:
            ends = np.cumsum(self._passes[1].counts)[:-1]
            of_ledgers = list(run.ledger.own_sums(np.split(found[1], ends, axis=1)))
        others = works[len(self._passes) :]
        values = others.pop(0).view(run.field.precision) if self._gathers else np.empty((count, 0))
        ends = np.cumsum([points.cells.size for points in run.field.all_points]).tolist()
        places = [slice(*place) for place in pairwise([0, *ends])] if self._gathers else []
        at_points = [[of_row[place] for place in places] for of_row in values]
        cells: list[list[int]] = [[]] * count
        if others:
            chunks = others.pop(0).view(np.uint64).reshape(count, len(expected), -1)
            cells = chunks.min(axis=2).tolist()
        reductions = FieldReduction.of_each(found[0])
        return [
            FoundRow(reduction, heats, its_values, dict(zip(expected, its_cells, strict=True)))
            for reduction, heats, its_values, its_cells in zip(reductions, of_ledgers, at_points, cells, strict=True)
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
        # NumPy is slow to join structs, and slower to join many arrays than their bytes.
        joined = np.frombuffer(b"".join([whole[each].data for each in some]), STATISTICS)
        reductions |= zip(some, FieldReduction.of_each(joined.reshape(len(some), *whole[some[0]].shape)), strict=True)
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
