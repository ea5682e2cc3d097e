"""Find everything that observers read of fields and ledgers at a due time: with one wait for the GPU, and one message.

Observers ask for sums of parts of the body, temperatures at points, heats through surfaces and the cells of extremes.
On a GPU all of them are queued together and copied to the host once. If several ranks do a run, each sums its own
planes, and all ranks exchange their numbers in one message. On a CPU, in a run on one rank, there is nothing to do:
sums are formed when an observer asks.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.find import Search, Searches
from heatsim.kernels.reductions.fused import Pass, partials
from heatsim.kernels.reductions.gather import Gather
from heatsim.kernels.reductions.statistics import Partials
from heatsim.kernels.reductions.together import Together, Work, starts
from heatsim.solver.energy_ledger import Ledger
from heatsim.solver.field import Field
from heatsim.solver.field_statistics import Extreme, FieldStatistics
from heatsim.solver.points import PlacedValues
from heatsim.solver.surface_sums import OwnSums

# Requests that are kept: two buffers change places, and extremes change that are asked for.
_MOST_KEPT = 8


class Looked(NamedTuple):
    """A run whose sums are found.

    Attributes:
        field: its field.
        ledger: its ledger.
        statistics: of the field.
    """

    field: Field
    ledger: Ledger
    statistics: FieldStatistics


class _Own(NamedTuple):
    """What a rank has found of a run in its own planes; temperatures at points in the order of the field's points."""

    of_field: Partials
    of_ledger: OwnSums
    at_points: list[PlacedValues]


class RowSums:
    """Finds the sums of runs on one device; remembers the launches."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Request] = OrderedDict()
        self._queued: _Request | None = None
        self._rooms: dict[int, Any] = {}  # of all requests of a run alone: they run one after the other

    def queue(self, runs: Sequence[Looked]) -> None:
        """On a GPU, queue what :meth:`find` will read. The fields must not change in between."""
        if runs[0].field.device.backend == "cuda":
            self._queued = self._request(runs)
            self._queued.together.queue()

    @property
    def queued(self) -> bool:
        """Whether a request waits for :meth:`find`."""
        return self._queued is not None

    def find(self, runs: Sequence[Looked]) -> None:
        """Find the sums of runs, unless they are known. Collective.

        Args:
            runs: on one device; those of :meth:`queue` if it was called since the last time. Several runs are on one
                rank.
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
        for run, of_ranks in zip(runs, zip(*team.gathered(own), strict=True), strict=True):
            run.field.know([each.of_field for each in of_ranks], [each.at_points for each in of_ranks])
            if run.ledger.recorded:
                run.ledger.know([each.of_ledger for each in of_ranks])
        if request is not None:
            request.take_cells()

    def _request(self, runs: Sequence[Looked]) -> "_Request":
        """The launches for some runs; they are kept, because runs of equal steps need the same ones again."""
        expected = [run.statistics.expected() for run in runs]
        key = tuple(
            (int(run.field.deviation.data.ptr), run.ledger.addresses, wanted, len(run.field.all_points))
            for run, wanted in zip(runs, expected, strict=True)
        )
        rooms = self._rooms if len(runs) == 1 else {}
        request = self._kept.pop(key, None) or _Request(runs, expected, rooms)
        self._kept[key] = request
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return request


class _Request:
    """The launches that find the sums of some runs.

    Attributes:
        together: all launches.
    """

    def __init__(self, runs: Sequence[Looked], expected: Sequence[Sequence[Extreme]], rooms: dict[int, Any]) -> None:
        device = runs[0].field.device
        self._runs, self._expected = runs, expected
        self._fields = list(_alike([run.field.labelling_key for run in runs]))
        self._ledgers = list(_alike([run.ledger.labelling_key for run in runs]))
        passes: list[Pass] = []
        for some in self._fields:
            division = runs[some[0]].field.division
            passes.append(Pass.of(device.xp, [runs[each].field.sections() for each in some], division, rooms))
        for some in self._ledgers:
            sections = [one for each in some for one in runs[each].ledger.sections()]
            passes.append(Pass.of(device.xp, sections, runs[some[0]].ledger.division, rooms))
        works: list[Work] = [*passes]
        points = [(run.field.own, points.cells) for run in runs for points in run.field.all_points]
        self._gathers = any(cells.size for _, cells in points)
        if self._gathers:
            works.append(Gather(device, points))
        count = sum(map(len, expected))
        most = Searches.most_bytes(count, max(run.field.own.size for run in runs))
        places, length = starts([*(work.nbytes for work in works), most])
        room = device.xp.empty(length, dtype=np.uint8)
        if count:
            works.append(Searches(device, list(self._searches(passes, places, room))))
        self.together = Together(device, room, works)
        self._cells: list[int] = []

    def _searches(self, passes: Sequence[Pass], places: Sequence[int], room: Any) -> Iterator[Search]:
        """The searches for the expected extremes of each run, in the statistics that its pass will have found."""
        found = {}
        for some, launches, place in zip(self._fields, passes, places, strict=False):
            size = launches.nbytes // sum(launches.counts)
            for each, count in zip(some, launches.counts, strict=True):
                found[each] = room[place : place + size * count]
                place += size * count
        for number, run in enumerate(self._runs):
            for extreme in self._expected[number]:
                yield run.statistics.search_for(extreme, found[number])

    def read(self) -> list[_Own]:
        """Wait for the numbers of each run."""
        found = self.together.read()
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
            _Own(of_fields[number], of_ledgers.get(number, {}), _at_points(run.field))
            for number, run in enumerate(self._runs)
        ]

    def take_cells(self) -> None:
        """Give the runs the cells of their extremes, after their statistics."""
        cells = iter(self._cells)
        for run, expected in zip(self._runs, self._expected, strict=True):
            run.statistics.know({extreme: next(cells) for extreme in expected})


def _take_points(field: Field, values: Iterator[NDArray[Any]]) -> None:
    """Store the values at all points of a field; ``values``: the next ones are theirs, unless there are none."""
    nothing = np.empty(0, field.precision)
    for points in field.all_points:
        points.take(next(values, nothing))


def _at_points(field: Field) -> list[PlacedValues]:
    """The places and temperatures of all points in own planes."""
    return [(points.held, points.own_temperatures()) for points in field.all_points]


def _alike(keys: Sequence[Hashable]) -> Iterator[list[int]]:
    """The numbers of the runs with equal keys; those with None are left out."""
    groups: dict[Hashable, list[int]] = {}
    for number, key in enumerate(keys):
        if key is not None:
            groups.setdefault(key, []).append(number)
    yield from groups.values()


def _on_cpu(run: Looked) -> _Own:
    """What a rank finds of its own planes."""
    field, ledger = run.field, run.ledger
    (of_field,) = partials(field.device, [field.sections()], field.division)
    heats: OwnSums = {}
    if ledger.recorded:
        heats = ledger.own_sums(partials(field.device, ledger.sections(), ledger.division))
    return _Own(of_field, heats, _at_points(field))
