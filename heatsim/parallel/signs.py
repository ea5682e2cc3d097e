"""What the ranks of a run tell each other about themselves: see :mod:`heatsim.parallel.watch`."""

from dataclasses import dataclass, replace

from heatsim.errors import (
    CapacityError,
    DeviceError,
    FolderError,
    HeatsimError,
    InputError,
    Interrupted,
    NotConvergedError,
    NotFiniteError,
    RanksError,
    RunError,
    ScenarioError,
    StorageError,
)
from heatsim.parallel.team import ExchangeProgress

# Errors that keep their class on other ranks, because one text is enough to create them. Others become a RanksError.
_KINDS: dict[str, type[HeatsimError]] = {ScenarioError.__name__: InputError} | {
    kind.__name__: kind
    for kind in (
        *(InputError, FolderError, DeviceError, CapacityError, RunError, NotFiniteError, NotConvergedError),
        *(StorageError, Interrupted),
    )
}
MOST_BYTES = 4000  # of a text in a message: small messages are sent without waiting for the receiver


@dataclass(frozen=True)
class Sign:
    """What a rank says about itself.

    Attributes:
        code: the exit code, if an error was raised or the rank has ended; None before.
        text: the message of the error.
        kind: the name of its class.
        ended: whether the rank has nothing left to do.
        stop: whether a signal asked this rank to stop.
        progress: how far devices are with exchanges that the watch follows.
        waited: time in s for which it has waited for other ranks; 0 if it does not wait.
        where: the line of the program that it executes.
    """

    code: int | None = None
    text: str = ""
    kind: str = ""
    ended: bool = False
    stop: bool = False
    progress: tuple[ExchangeProgress, ...] = ()
    waited: float = 0.0
    where: str = ""

    @property
    def failing(self) -> bool:
        """Whether an error was raised."""
        return bool(self.code)

    @property
    def unexpected(self) -> bool:
        """Whether the error is one of the program: its text is a traceback."""
        return bool(self.kind) and self.kind not in _KINDS and self.kind != RanksError.__name__

    @property
    def shortened(self) -> "Sign":
        """The sign with a text that fits a small message."""
        return replace(self, text=_shortened(self.text))


@dataclass(frozen=True)
class Notice:
    """What rank 0 says to all.

    Attributes:
        code: the exit code of the rank that failed first; None if no rank failed, 0 if all ended without an error.
        text: the message of its error, with the rank.
        kind: the name of the class of its error.
        leave: whether all ranks have ended.
        at_once: whether to end the process now.
    """

    code: int | None = None
    text: str = ""
    kind: str = ""
    leave: bool = False
    at_once: bool = False

    @property
    def shortened(self) -> "Notice":
        """The notice with a text that fits a small message."""
        return replace(self, text=_shortened(self.text))

    def error(self) -> HeatsimError:
        """The error of the rank that failed first, to raise on another rank."""
        return _KINDS.get(self.kind, RanksError)(self.text)


def _shortened(text: str) -> str:
    content = text.encode()
    return text if len(content) <= MOST_BYTES else content[:MOST_BYTES].decode(errors="ignore") + " …"
