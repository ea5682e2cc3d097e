"""Find all data that observers read of fields and ledgers at a due time, with one wait for the GPU and one message.

Observers read sums over parts of the body, temperatures at points, heats through surfaces and the cells of extremes. On
a GPU all of them are queued together and copied to the host once. If several ranks do a run, each rank sums over its
own planes, and all ranks exchange their numbers in one message. On a CPU, in a run on one rank, this module does
nothing: a sum is found when an observer reads it.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from heatsim.kernels.reductions.fused import partials
from heatsim.kernels.reductions.statistics import STATISTICS, FieldReduction, Partials
from heatsim.solver.rows.observables import Observables, OwnRow, temperatures_at_points
from heatsim.solver.rows.row_request import Request, alike

# Number of cached requests. Requests differ because two buffers swap places and because the expected extremes change.
_MOST_KEPT = 8


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

    def _request(self, runs: Sequence[Observables]) -> Request:
        """The launches for some runs, cached: the same runs need them again at later due times."""
        for run in runs:
            run.ledger.add_up()
        expected = [run.statistics.extreme_cells.expected() for run in runs]
        key = tuple(
            (int(run.field.deviation.data.ptr), run.ledger.address, wanted, len(run.field.all_points))
            for run, wanted in zip(runs, expected, strict=True)
        )
        workspaces = self._workspaces if len(runs) == 1 else {}
        request = self._kept.pop(key, None) or Request(runs, expected, workspaces)
        self._kept[key] = request
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return request


def _reductions(fields: Sequence[Sequence[Partials]]) -> list[FieldReduction]:
    """The reductions of fields from STATISTICS of each rank's sections; those of equal shapes are made together."""
    whole = [of_ranks[0] if len(of_ranks) == 1 else np.concatenate(of_ranks) for of_ranks in fields]
    reductions: dict[int, FieldReduction] = {}
    for some in alike([of_field.shape for of_field in whole]):
        # NumPy is slow to join structs, and slower to join many arrays than their bytes.
        joined = np.frombuffer(b"".join([whole[each].data for each in some]), STATISTICS)
        reductions |= zip(some, FieldReduction.of_each(joined.reshape(len(some), *whole[some[0]].shape)), strict=True)
    return [reductions[number] for number in range(len(whole))]


def _on_cpu(run: Observables) -> OwnRow:
    """The numbers of a run from this rank's own planes, on a CPU."""
    field, ledger = run.field, run.ledger
    (of_field,) = partials(field.device, [field.sections()], field.division)
    return OwnRow(of_field, ledger.own_row() if ledger.recorded else None, temperatures_at_points(field))
