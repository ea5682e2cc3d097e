"""Output streams of the commands; they may be closed, full, or unable to show a character."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

from heatsim.errors import InputError, RunError


@contextmanager
def usable_streams(silent: bool = False) -> Iterator[None]:
    """Provide a usable stdout and stderr inside the context, also if the program was started without them.

    If ``silent``, what is printed goes nowhere.

    Text that cannot be written to stderr is dropped. An error on stdout names stdout. Characters that a terminal does
    not have, such as ×, become question marks.
    """
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with ExitStack() as stack:
        if silent:
            nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stdout: Any = nowhere
            stderr: Any = nowhere
        else:
            stdout, stderr = _NamedStdout(sys.stdout), _LenientStderr(sys.stderr)
        stack.enter_context(redirect_stdout(stdout))
        stack.enter_context(redirect_stderr(stderr))
        yield


@contextmanager
def no_traceback() -> Iterator[None]:
    """Turn MemoryError into InputError and OSError into RunError; ignore a closed pipe."""
    try:
        yield
    except MemoryError as error:
        raise InputError(f"out of memory: {error}; use fewer cells or precision float32") from None
    except BrokenPipeError:
        # Otherwise the interpreter reports at exit that the buffer cannot be flushed.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise RunError(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from None


def show_table(table: Any) -> None:
    """Print a table; a closed pipe is ignored."""
    from rich.console import Console

    with suppress(SystemExit):  # rich's answer to a closed pipe
        Console().print(table)


def warn(warning: str) -> None:
    """Print a warning."""
    print(f"heatsim: warning: {warning}", file=sys.stderr)


class _Stream:
    """A text stream that forwards everything to another stream, except for overridden methods."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _NamedStdout(_Stream):
    """stdout; its errors name "stdout", as those of a file name the file."""

    def write(self, text: str) -> int:
        with _naming("stdout"):
            return int(self._stream.write(text))

    def flush(self) -> None:
        with _naming("stdout"):
            self._stream.flush()


class _LenientStderr(_Stream):
    """stderr; text that cannot be written is dropped, so that a run continues when its terminal or pipe is closed."""

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
    """Redirect closed standard streams to os.devnull.

    Otherwise the next opened file gets the number of such a stream, and output of other code would be written to it.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
