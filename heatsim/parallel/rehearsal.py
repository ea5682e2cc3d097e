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

_NOTHING = object()
_MOST_SHARED = 2**16  # bytes of a value; copies of larger ones would double the memory
_MOST_PASSES = 1000  # far more than any function needs; it ends a function that gives other values each time


class _Given:
    """What a rank gave to a collective call; equal if the content is.

    Args:
        value: the object. Others receive copies of it, as in a job.
    """

    def __init__(self, value: Any) -> None:
        self._content = pickle.dumps(value)
        self._shared: Any = _NOTHING  # a copy that no receiver can change
        self._can_share = len(self._content) <= _MOST_SHARED

    def copy(self) -> Any:
        """The value; the same object each time if it is small and cannot change. Its arrays are read-only then."""
        if self._shared is not _NOTHING:
            return self._shared
        found = pickle.loads(self._content)
        if self._can_share and _frozen(found):
            self._shared = found
        elif self._can_share:
            self._can_share, found = False, pickle.loads(self._content)
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Given) and self._content == other._content

    __hash__ = None  # type: ignore[assignment]


def _frozen(value: Any) -> bool:
    """Make the arrays in a value read-only. Returns whether nothing in the value can change then."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
        return not value.dtype.hasobject
    if isinstance(value, tuple):
        return all(map(_frozen, value))
    return isinstance(value, (type(None), bool, int, float, str, np.generic))


class RehearsedTeam(Team):
    """A rank of :func:`rehearse`.

    Args:
        rank: its number.
        of_ranks: what each rank gave to its collective calls so far.

    Attributes:
        given: what this rank has given to its collective calls.
    """

    def __init__(self, rank: int, of_ranks: Sequence[Sequence[_Given]]) -> None:
        self.rank, self.size = rank, len(of_ranks)
        self._of_ranks = of_ranks
        self.given: list[_Given] = []

    def broadcast(self, value: T) -> T:
        """The value of rank 0. Collective."""
        found: T = self._give(value)(0).copy()
        return found

    def gathered(self, value: T) -> list[T]:
        """The values of all ranks as far as they are known, else the value of this rank. Collective."""
        given = self._give(value)
        return [given(rank).copy() for rank in range(self.size)]

    def exchange(self, sent: Sequence[Parcel], received: Sequence[Parcel]) -> None:
        """Receive the arrays that are known; the others keep their values."""
        given = self._give(tuple((self.rank, each.peer, each.mark, each.array) for each in sent))
        for each in received:
            for sender, receiver, mark, array in given(each.peer).copy():
                if (sender, receiver, mark) == (each.peer, self.rank, each.mark):
                    each.array.reshape(-1)[:] = array.reshape(-1)

    def _give(self, value: object) -> Callable[[int], _Given]:
        """Take part in a collective call. Returns a function of the rank: what it gave, else what this rank gives."""
        call, own = len(self.given), _Given(value)
        self.given.append(own)

        def of_rank(rank: int) -> _Given:
            known = self._of_ranks[rank]
            return own if rank == self.rank or call >= len(known) else known[call]

        return of_rank


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
    gc.collect()
    gc.freeze()  # the collections below then look only at what the ranks leave
    try:
        return _agreed(size, work, show)
    finally:
        gc.unfreeze()


def _agreed(size: int, work: Callable[[Team], T], show: Callable[[int, int], Any]) -> list[T]:
    """The results of the pass in which no rank gives another value."""
    of_ranks: list[list[_Given]] = [[] for _ in range(size)]
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
