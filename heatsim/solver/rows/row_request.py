"""The launches that find the data of rows on a GPU.

launches                            they read
a pass over fields                  all fields with the same parts
a pass over the sums of ledgers     all ledgers with the same parts
a gather                            the temperatures at all points
searches                            the cells of extremes, whose values the passes over fields found
"""

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heatsim.kernels.reductions.find import Search, Searches
from heatsim.kernels.reductions.fused import Pass
from heatsim.kernels.reductions.gather import Gather
from heatsim.kernels.reductions.launch_batch import BatchedLaunch, LaunchBatch, offsets
from heatsim.kernels.reductions.statistics import STATISTICS, FieldReduction, Partials
from heatsim.solver.field.extreme_cells import Extreme
from heatsim.solver.ledger.energy_ledger import Ledger
from heatsim.solver.ledger.sum_table import OwnSums
from heatsim.solver.rows.observables import FoundRow, Observables, OwnRow, take_points, temperatures_at_points


class _Fields(NamedTuple):
    """Fields that one pass reduces.

    Attributes:
        runs: the numbers of their runs.
        launches: the pass.
    """

    runs: Sequence[int]
    launches: Pass

    @classmethod
    def of(cls, runs: Sequence[Observables], numbers: Sequence[int], workspaces: dict[int, Any]) -> "_Fields":
        """The fields of the runs with some numbers."""
        fields = [runs[number].field for number in numbers]
        sections = [field.sections() for field in fields]
        return cls(numbers, Pass.of(fields[0].device.xp, sections, fields[0].division, workspaces))


class _Ledgers(NamedTuple):
    """Ledgers whose sums one pass reduces.

    Attributes:
        runs: the numbers of their runs.
        ledgers: the ledgers.
        alike: whether their sums lie at the same places.
        launches: the pass.
    """

    runs: Sequence[int]
    ledgers: Sequence[Ledger]
    alike: bool
    launches: Pass

    @classmethod
    def of(cls, runs: Sequence[Observables], numbers: Sequence[int], workspaces: dict[int, Any]) -> "_Ledgers":
        """The ledgers of the runs with some numbers."""
        ledgers = [runs[number].ledger for number in numbers]
        alike = all(ledger.lies_like(ledgers[0]) for ledger in ledgers)
        sections = [ledger.sections() for ledger in ledgers]
        xp = runs[numbers[0]].field.device.xp
        return cls(numbers, ledgers, alike, Pass.of(xp, sections, ledgers[0].division, workspaces))

    def own_sums(self, found: Any) -> Sequence[OwnSums]:
        """The sums of each ledger on this rank, from the results of the pass."""
        if self.alike:
            return list(self.ledgers[0].own_sums(found))
        return [ledger.own_sums(one) for ledger, one in zip(self.ledgers, found, strict=True)]


class Request:
    """The launches that find the sums of some runs.

    Args:
        runs: runs on one GPU.
        expected: the extremes of each run whose cells are searched.
        workspaces: shared by requests that never run at once.

    Attributes:
        batch: all launches.
    """

    def __init__(
        self, runs: Sequence[Observables], expected: Sequence[Sequence[Extreme]], workspaces: dict[int, Any]
    ) -> None:
        device = runs[0].field.device
        self._runs, self._expected = runs, expected
        self._cells: list[int] = []
        fields_alike = alike([run.field.labelling_key for run in runs])
        ledgers_alike = alike([run.ledger.labelling_key for run in runs])
        self._fields = [_Fields.of(runs, numbers, workspaces) for numbers in fields_alike]
        self._ledgers = [_Ledgers.of(runs, numbers, workspaces) for numbers in ledgers_alike]
        works: list[BatchedLaunch] = [fields.launches for fields in self._fields]
        works += [ledgers.launches for ledgers in self._ledgers]
        points = [(run.field.own, points.cells) for run in runs for points in run.field.all_points]
        self._gathers = any(cells.size for _, cells in points)
        if self._gathers:
            works.append(Gather(device, points))
        count = sum(map(len, expected))
        most = Searches.most_bytes(count, max(run.field.own.size for run in runs))
        places, length = offsets([*(work.nbytes for work in works), most])
        buffer = device.xp.empty(length, dtype=np.uint8)
        if count:
            works.append(Searches(device, list(self._searches(places, buffer))))
        self.batch = LaunchBatch(device, buffer, works)

    def _searches(self, places: Sequence[int], buffer: Any) -> Iterator[Search]:
        """The searches for the expected extremes of each run, whose values earlier launches of the batch find."""
        found = {}
        for (numbers, launches), place in zip(self._fields, places, strict=False):
            size = launches.nbytes // sum(launches.counts)
            for number, count in zip(numbers, launches.counts, strict=True):
                found[number] = buffer[place : place + size * count]
                place += size * count
        for number, run in enumerate(self._runs):
            for extreme in self._expected[number]:
                yield run.statistics.extreme_cells.search_for(extreme, run.field.own, found[number])

    def read(self) -> list[OwnRow]:
        """Wait for the numbers of each run, and return them."""
        found = iter(self.batch.read())
        of_fields: dict[int, Partials] = {}
        of_ledgers: dict[int, OwnSums] = {}
        for fields in self._fields:
            of_fields |= zip(fields.runs, next(found), strict=True)
        for ledgers in self._ledgers:
            of_ledgers |= zip(ledgers.runs, ledgers.own_sums(next(found)), strict=True)
        values = iter(next(found)) if self._gathers else iter(())
        self._cells = next(found, [])
        for run in self._runs:
            take_points(run.field, values)
        return [
            OwnRow(of_fields[number], of_ledgers.get(number), temperatures_at_points(run.field))
            for number, run in enumerate(self._runs)
        ]

    def rows(self, results: NDArray[np.uint8]) -> list[FoundRow]:
        """The numbers of a single run at several times, from the bytes of :meth:`LaunchBatch.queue_to`.

        Args:
            results: shape (times, bytes).
        """
        (run,), (expected,) = self._runs, self._expected
        found, count = iter(self.batch.parts(results)), len(results)
        reductions = FieldReduction.of_each(_statistics(next(found), self._fields[0].launches))
        of_ledgers: Sequence[OwnSums | None] = [None] * count
        if self._ledgers:
            of_ledgers = list(run.ledger.own_sums(_statistics(next(found), self._ledgers[0].launches)))
        at_points: list[list[NDArray[Any]]] = [[]] * count
        if self._gathers:
            ends = np.cumsum([points.cells.size for points in run.field.all_points]).tolist()
            places = [slice(*place) for place in pairwise([0, *ends])]
            at_points = [[of_row[place] for place in places] for of_row in next(found).view(run.field.precision)]
        cells: list[list[int]] = [[]] * count
        if expected:
            chunks = next(found).view(np.uint64).reshape(count, len(expected), -1)
            cells = chunks.min(axis=2).tolist()
        return [
            FoundRow(reduction, heats, its_values, dict(zip(expected, its_cells, strict=True)))
            for reduction, heats, its_values, its_cells in zip(reductions, of_ledgers, at_points, cells, strict=True)
        ]

    def take_cells(self) -> None:
        """Store the cells of extremes in the statistics of each run. Call it after the statistics are stored."""
        cells = iter(self._cells)
        for run, expected in zip(self._runs, self._expected, strict=True):
            run.statistics.extreme_cells.store({extreme: next(cells) for extreme in expected})


def _statistics(found: NDArray[np.uint8], launches: Pass) -> NDArray[Any]:
    """STATISTICS of a pass at several times, shape (times, sections, parts), from their bytes."""
    return found.view(STATISTICS).reshape(len(found), sum(launches.counts), launches.division.parts)


def alike(keys: Sequence[Hashable]) -> Iterator[list[int]]:
    """Groups of runs with equal keys, as their numbers. Runs with the key None are left out."""
    groups: dict[Hashable, list[int]] = {}
    for number, key in enumerate(keys):
        if key is not None:
            groups.setdefault(key, []).append(number)
    yield from groups.values()
