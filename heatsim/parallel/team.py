"""The ranks that do one run together, and the messages between them.

Every rank runs the same program. A collective call is made by all ranks in the same order, and gives all of them the
same result. A run alone is a team of one: its calls return at once, and no MPI is imported.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from numpy.typing import NDArray

from heatsim.errors import HeatsimError

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Parcel:
    """An array on the way between two ranks.

    Attributes:
        peer: the other rank.
        mark: tells the parcels between two ranks apart; equal at both ends.
        array: on the host, contiguous; the values to send, or the room for what comes.
    """

    peer: int
    mark: int
    array: NDArray[Any]


class Team:
    """A team of one; :class:`heatsim.parallel.mpi_team.MpiTeam` is one of several ranks.

    Attributes:
        rank: the number of this process, from 0.
        size: the number of ranks.
        local_rank: its number among the ranks of this machine, from 0.
        local_size: the number of ranks on this machine.
        host: the name of this machine, where there are several ranks.
    """

    rank = 0
    size = 1
    local_rank = 0
    local_size = 1
    host = ""

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which decides, prints, and writes all files but the fields."""
        return self.rank == 0

    def broadcast(self, value: T) -> T:
        """The value of rank 0. Collective."""
        return value

    def gathered(self, value: T) -> list[T]:
        """The values of all ranks, in the order of the ranks. Collective."""
        return [value]

    def lowest(self, value: T) -> T:
        """The smallest of the values of all ranks. Collective."""
        return min(self.gathered(value))  # type: ignore[type-var]

    def highest(self, value: T) -> T:
        """The largest of the values of all ranks. Collective."""
        return max(self.gathered(value))  # type: ignore[type-var]

    def meet(self) -> None:
        """Wait until all ranks are here. Collective."""
        self.gathered(None)

    def agree(self, error: HeatsimError | None) -> None:
        """Raise the error of the lowest rank that has one on all ranks. Collective.

        Args:
            error: what went wrong on this rank, or None.

        Raises:
            HeatsimError: a rank has an error.
        """
        found = next((each for each in self.gathered(error) if each is not None), None)
        if found is not None:
            raise found from None

    @contextmanager
    def agreeing(self) -> Iterator[None]:
        """Run a block without collective calls. Its error on one rank becomes the error of all ranks.

        Raises:
            HeatsimError: the block failed on a rank.
        """
        error = None
        try:
            yield
        except HeatsimError as raised:
            if self.size == 1:
                raise
            error = raised
        self.agree(error)

    def exchange(self, sent: Sequence[Parcel], received: Sequence[Parcel]) -> None:
        """Send arrays to other ranks and fill arrays with what they send; returns when all of it is done.

        Each sent parcel needs a received one of the same mark and number of bytes at its peer.
        """
        if sent or received:
            raise ValueError("a team of one rank cannot exchange arrays")

    @property
    def stop_requested(self) -> bool:
        """Whether a signal asked another rank to stop; known to rank 0."""
        return False

    def request_stop(self) -> None:
        """Tell rank 0 that a signal asks to stop."""

    def advise(self, advice: str) -> None:
        """Set what a user should do after a rank is lost."""

    def failing(self, error: BaseException | None) -> None:
        """Tell the other ranks that an error was raised here; None: that this rank goes on after an error of all.

        They raise it too, unless they raise their own.
        """

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Run a block; :meth:`failing` is called for its error, before what is around the block closes."""
        self.failing(None)
        try:
            yield
        except BaseException as error:
            self.failing(error)
            raise

    def end(self, code: int, text: str) -> tuple[int, str]:
        """Wait until all ranks have come to their end. Collective.

        Args:
            code: the exit code of this rank.
            text: the message of its error.

        Returns:
            The exit code of all ranks, and the message that this rank has to print, if any.
        """
        return code, text

    def leave(self, code: int) -> None:
        """Leave the team after :meth:`end`; with an exit code other than 0 the process may end here."""

    def branch(self) -> "Team":
        """The same ranks with messages that do not mix with those of this team, for another thread. Collective."""
        return self


ALONE = Team()
