"""All errors that heatsim raises intentionally.

HeatsimError
├── InputError             the user's input is wrong, or the run does not fit: exit code 2
│   ├── ScenarioError      a wrong scenario file; contains all of its mistakes
│   ├── FolderError        an output folder that cannot be used, resumed or read
│   ├── DeviceError        the requested device or kernel is not available
│   └── CapacityError      not enough memory or disk space
├── RunError               the run failed: exit code 1
│   ├── NotFiniteError     NaN or infinity in the field
│   ├── NotConvergedError  a steady state that was not found
│   ├── RanksError         one of several processes that share a run failed
│   └── StorageError       a file could not be written or read back
└── Interrupted            stopped by a signal after saving a checkpoint: exit code 130
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

_MOST_SHOWN = 100  # mistakes that a message lists
_LONGEST_KEY = 200  # characters of a key in a message

# Whether errors are shown at the command line. Elsewhere heatsim is used from Python.
_AT_COMMAND_LINE = ContextVar("at_command_line", default=False)
# A path as a shell takes it: in quotes, or without.
_PATH = r"(?:'([^`']*)'|([^ `']+))"
# What messages advise at the command line, and what does the same in Python.
_IN_PYTHON = (
    (rf"`heatsim resume {_PATH}`", r'heatsim.Simulation.resume("\1\2").run()'),
    (rf"`heatsim study {_PATH} --output {_PATH}`", r'heatsim.Study.from_scenario("\1\2", output="\3\4").run()'),
    (rf"`heatsim run {_PATH} --output …`", r'heatsim.Simulation.from_scenario("\1\2", output=…).run()'),
    (r"the same command again", r"run() of the same study again"),
    (r"with `heatsim study`", r"heatsim.Study.from_scenario(…)"),
    (r"use `heatsim run`", r"heatsim.Simulation.from_scenario(…)"),
    (r"--(overwrite|extend)\b", r"\1=True"),
    (r"--(view|times|planes|zoom|range|quantity)\b", r"\1=…"),
    (r"another --output\b", r"output=…"),
    (r"--set (\S+) or --set (\S+)", r'overrides=["\1", "\2"]'),
)


@contextmanager
def at_command_line() -> Iterator[None]:
    """Within the context, errors have no notes for those who use Python."""
    token = _AT_COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _AT_COMMAND_LINE.reset(token)


def in_python() -> bool:
    """Whether heatsim is used from Python, where nothing else shows warnings of a run."""
    return not _AT_COMMAND_LINE.get()


def _in_python(message: str) -> str:
    """The advice of a message as Python code; "" if the message names no command and no option."""
    found = (match.expand(words) for pattern, words in _IN_PYTHON for match in re.finditer(pattern, message))
    return "; ".join(dict.fromkeys(found))


class HeatsimError(Exception):
    """Base class of all errors; the text is one message for the user.

    Messages name commands and options of the command line. In Python, a note below the message shows the equivalent
    Python code.
    """

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        if in_python() and (advice := _in_python(message)):
            self.add_note(f"In Python: {advice}")


class InputError(HeatsimError):
    """The user's input is wrong, or the run does not fit."""

    exit_code = 2


@dataclass(frozen=True)
class Mistake:
    """One mistake in a scenario: its place and what to do.

    ``key`` is the dotted path (``boundaries.x_min.value``), empty for the whole file; ``message`` gives the value
    received and what is allowed.
    """

    key: str
    message: str

    def __str__(self) -> str:
        key = self.key if len(self.key) <= _LONGEST_KEY else f"{self.key[:_LONGEST_KEY]}…"
        return f"{key}: {self.message}" if key else self.message


class ScenarioError(InputError):
    """A scenario with mistakes; ``mistakes`` holds all of them."""

    def __init__(self, path: Path | str, mistakes: Sequence[Mistake]) -> None:
        self.path = Path(path)
        self.mistakes = tuple(mistakes)
        if len(self.mistakes) == 1:
            text = f"{path}: {self.mistakes[0]}"
        else:
            lines = "".join(f"\n  {mistake}" for mistake in self.mistakes[:_MOST_SHOWN])
            left = len(self.mistakes) - _MOST_SHOWN
            text = f"{path}: {len(self.mistakes)} mistakes{lines}" + (f"\n  … and {left} more" if left > 0 else "")
        super().__init__(text)

    def __reduce__(self) -> tuple[type["ScenarioError"], tuple[Path, tuple[Mistake, ...]]]:
        return type(self), (self.path, self.mistakes)


class FolderError(InputError):
    """An output folder that cannot be used, resumed or read."""


class DeviceError(InputError):
    """The requested device or kernel is not available."""


class CapacityError(InputError):
    """Not enough memory or disk space."""


class RunError(HeatsimError):
    """The run failed after it had started."""


class NotFiniteError(RunError):
    """The field contains NaN or infinity."""


class NotConvergedError(RunError):
    """Iterations did not come to a steady state."""


class RanksError(RunError):
    """One of several processes that share a run died, hangs or cannot be reached."""


class StorageError(RunError):
    """A file could not be written or read back."""


class Interrupted(HeatsimError):  # noqa: N818  (not an error)
    """Stopped by a signal after a checkpoint was saved."""

    exit_code = 130


def from_system_error(error: BaseException) -> HeatsimError | None:
    """The error to report to the user for a MemoryError or an OSError; None for any other error."""
    if isinstance(error, MemoryError):
        return InputError(f"out of memory: {error}; use fewer cells or precision float32")
    if isinstance(error, FileNotFoundError) and not error.filename and not _has_working_folder():
        return RunError("the working folder was removed; change to another folder")
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        return RunError(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return None


def _has_working_folder() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True
