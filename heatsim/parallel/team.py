"""The ranks that do one run together, and the messages between them.

Every rank runs the same program. All ranks must make the collective calls in the same order. A run on one rank is a
team of one: its calls return at once, and MPI is not imported.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from numpy.typing import NDArray

from heatsim.errors import HeatsimError

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Parcel:
    """An array to send to, or to receive from, another rank.

    Attributes:
        peer: the other rank.
        mark: distinguishes the parcels between two ranks; equal at both ends.
        array: contiguous array on the host: the values to send, or the buffer to receive into.
    """

    peer: int
    mark: int
    array: NDArray[Any]


@dataclass(frozen=True)
class ExchangeProgress:
    """How far a rank is with exchanges that devices do without this process.

    Attributes:
        reached: number of exchanges that the device has come to.
        done: number of those that have ended.
    """

    reached: int = 0
    done: int = 0


class Team:
    """A team of one; :class:`heatsim.parallel.mpi_team.MpiTeam` is one of several ranks.

    Attributes:
        rank: the number of this process, from 0.
        size: the number of ranks.
        local_rank: its number among the ranks of this machine, from 0.
        host: the name of this machine; set only if there are several ranks.
        cores: the number of CPU cores for this rank; 0 if more ranks than cores share its cores. Set only if there are
            several ranks.
    """

    rank = 0
    size = 1
    local_rank = 0
    host = ""
    cores = 1

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
        """If any rank has an error, raise that of the lowest such rank on all ranks. Collective.

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
        """Run a block without collective calls. If it fails on one rank, all ranks raise that error.

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

        The peer of each sent parcel must receive one with the same mark and the same number of bytes.
        """
        if sent or received:
            raise ValueError("a team of one rank cannot exchange arrays")

    @property
    def stop_requested(self) -> bool:
        """Whether a signal asked another rank to stop; known to rank 0."""
        return False

    def request_stop(self) -> None:
        """Tell rank 0 that a signal asks the run to stop."""

    def follow(self, progress: Callable[[], ExchangeProgress]) -> None:
        """Watch exchanges between devices, and end the job if one hangs although all ranks have started it.

        Args:
            progress: called from another thread. An error that it raises ends the job.
        """

    def advise(self, advice: str) -> None:
        """Set the advice to the user that follows the message about a lost rank."""

    def failing(self, error: BaseException | None) -> None:
        """Tell the other ranks that an error was raised here; None cancels this after an error of all ranks.

        The others raise it too, unless they raise an error themselves.
        """

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Run a block. If it fails, call :meth:`failing` before the files around the block are closed."""
        self.failing(None)
        try:
            yield
        except BaseException as error:
            self.failing(error)
            raise

    def end(self, code: int, text: str) -> tuple[int, str]:
        """Wait until all ranks have ended. Collective.

        Args:
            code: the exit code of this rank.
            text: the message of its error.

        Returns:
            The exit code of the job, and the message that this rank must print, "" for none.
        """
        return code, text

    def leave(self, code: int) -> None:
        """Leave the team after :meth:`end`; with an exit code other than 0 the process may end here."""

    def branch(self, name: str) -> "Team":
        """A second team of the same ranks for another thread, with separate messages. Collective.

        Args:
            name: what it is for. Later calls with the same name return the same team.
        """
        return self

    @cached_property
    def connections(self) -> dict[Hashable, Any]:
        """The connections between the devices of the ranks, which last as long as the team.

        They are made by :func:`heatsim.parallel.transport.choose_transport`.
        """
        return {}


ALONE = Team()
