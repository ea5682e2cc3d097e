"""What a command prints to: streams that may be closed, full, or unable to show a character."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

from heatsim.errors import InputError, RunError


@contextmanager
def usable_streams() -> Iterator[None]:
    """Meanwhile there are a stdout and a stderr, whatever the program was started with.

    What cannot be written to stderr is left out, an error in writing to stdout says that it is stdout; on a terminal
    that has no × a question mark will do.
    """
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    named: Any = _Named(sys.stdout)
    told: Any = _Told(sys.stderr)
    with redirect_stdout(named), redirect_stderr(told):
        yield


@contextmanager
def no_traceback() -> Iterator[None]:
    """Memory that runs out is the input's fault, a closed pipe nobody's; what else the system refuses, it has named."""
    try:
        yield
    except MemoryError as error:
        raise InputError(f"out of memory: {error}; use fewer cells or precision float32") from None
    except BrokenPipeError:
        # What is left in the buffer has nowhere to go, which the interpreter would say at its end.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise RunError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None


def show_table(table: Any) -> None:
    """Print a table; where nobody reads it, what was done is done all the same."""
    from rich.console import Console

    with suppress(SystemExit):  # rich's answer to a closed pipe
        Console().print(table)


def warn(warning: str) -> None:
    """Print a warning."""
    print(f"heatsim: warning: {warning}", file=sys.stderr)


class _Stream:
    """A stream of text that does some things in its own way."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Named(_Stream):
    """stdout whose errors carry its name, as a file's do."""

    def write(self, text: str) -> int:
        with _naming("stdout"):
            return int(self._stream.write(text))

    def flush(self) -> None:
        with _naming("stdout"):
            self._stream.flush()


class _Told(_Stream):
    """stderr that leaves out what cannot be written: a run goes on when its terminal or a pipe's reader is gone."""

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = name
        raise


def _open_what_is_closed() -> None:
    """Point streams that a program was started without to nowhere.

    The next file that is opened would get the number of such a stream, and be written to by whoever writes to it.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
