"""Call a collective function for all ranks of a job in one process, one rank after the other.

Only one rank at a time needs memory. But a rank needs values from ranks that come after it. So the function is called
again for all ranks, with the values of the calls before, until no rank gives another value:

    1st pass   rank 0 … rank n − 1    a rank takes its own value for each one that is not known yet
    2nd pass   rank 0 … rank n − 1    with the values of the ranks before it in this pass, and after it in the last one
    …

The values of the first collective call depend on nothing, so they are right in the first pass. Those of each call
depend on the calls before it, so they are right at the latest one pass later. If a pass changes no value, every rank
has worked with the values that all ranks give: it has returned what it would return in a job. Most calls depend on few
others: the bundled scenarios take two to five passes.
"""

import gc
import pickle
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from heatsim.errors import RanksError
from heatsim.parallel.team import Parcel, Team

T = TypeVar("T")

_MOST_PASSES = 1000  # far more than any function needs; it ends a function that gives other values each time


class RehearsedTeam(Team):
    """A rank of :func:`rehearse`.

    Args:
        rank: its number.
        of_ranks: what each rank gave to its collective calls so far, as pickled objects.

    Attributes:
        given: what this rank has given to its collective calls.
    """

    def __init__(self, rank: int, of_ranks: Sequence[Sequence[bytes]]) -> None:
        self.rank, self.size = rank, len(of_ranks)
        self._of_ranks = of_ranks
        self.given: list[bytes] = []

    def broadcast(self, value: T) -> T:
        """The value of rank 0. Collective."""
        return self.gathered(value)[0]

    def gathered(self, value: T) -> list[T]:
        """The values of all ranks as far as they are known, else the value of this rank. Collective."""
        call, own = len(self.given), pickle.dumps(value)
        self.given.append(own)
        return [
            pickle.loads(own if rank == self.rank or call >= len(known) else known[call])
            for rank, known in enumerate(self._of_ranks)
        ]

    def exchange(self, sent: Sequence[Parcel], received: Sequence[Parcel]) -> None:
        """Receive the arrays that are known; the others keep their values."""
        letters = [(self.rank, each.peer, each.mark, each.array) for each in sent]
        arrays = {letter[:3]: letter[3] for of_rank in self.gathered(letters) for letter in of_rank}
        for each in received:
            found = arrays.get((each.peer, self.rank, each.mark))
            if found is not None:
                each.array.reshape(-1)[:] = found.reshape(-1)


def rehearse(size: int, work: Callable[[Team], T], show: Callable[[int, int], Any]) -> list[T]:
    """The results of a collective function on all ranks of a job, called for one rank after the other.

    Args:
        size: the number of ranks.
        work: the function. Given the same values it must return the same, and give equal values to other ranks.
        show: called with the number of the pass, from 1, and that of the rank, before ``work``.

    Raises:
        Exception: what ``work`` raises on the lowest rank that raises anything in the last pass.
        RanksError: ``work`` gives other values in each pass.
    """
    of_ranks: list[list[bytes]] = [[] for _ in range(size)]
    for number in range(1, _MOST_PASSES):
        before, results, errors = list(of_ranks), list[T](), list[Exception]()
        for rank in range(size):
            show(number, rank)
            team = RehearsedTeam(rank, of_ranks)
            try:
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")  # values that are not known yet can lead to any numbers
                    results.append(work(team))
            except MemoryError:
                raise
            except Exception as error:  # counts only in the last pass
                errors.append(error.with_traceback(None))
            of_ranks[rank] = team.given
            gc.collect()
        if of_ranks == before:
            if errors:
                raise errors[0]
            return results
    raise RanksError(f"the ranks do not agree after {_MOST_PASSES} passes")
