"""Output streams of the commands; they may be closed, full, or unable to show a character."""

import codecs
import io
import os
import re
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO
from unicodedata import normalize

from heatsim.errors import from_system_error

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_NARROWEST = 40  # characters: lines are not broken shorter than this
_AFTER_LABEL = 13  # column at which the text of a plan's line begins
_SECONDS_BETWEEN_LINES = 5.0  # about work in progress
_NBSP = "\N{NO-BREAK SPACE}"
# Characters of messages whose decompositions are not ASCII.
_SIMILAR = {
    "×": "x",
    "·": "*",
    "−": "-",
    "–": "-",
    "—": "-",
    "…": "...",
    "°": "deg ",
    "±": "+-",
    "µ": "u",
    "ρ": "rho",
    "≤": "<=",
}
# Spaces between a number and its unit, within a unit, and around ×: lines are not broken there.
_WITHIN_AMOUNTS = re.compile(r"(?<=\d) (?=[^\W\d])|(?<=[m²g]) (?=K\b)| (?=×)|(?<=×) ")


@contextmanager
def usable_streams(silent: bool = False) -> Iterator[None]:
    """Provide a usable stdout and stderr inside the context, even if the program was started without them.

    If ``silent``, what is printed goes nowhere.

    Text that cannot be written to stderr is dropped. An error on stdout names stdout. Characters that a terminal does
    not have become similar ones of ASCII, such as x for ×, or question marks.
    """
    _open_what_is_closed()
    codecs.register_error("heatsim.similar", _similar)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="heatsim.similar")
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


def _similar(error: UnicodeError) -> tuple[str, int]:
    """What to write instead of characters that an encoding does not have, and where the text goes on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    similar = (_SIMILAR.get(each) or normalize("NFKD", each) for each in error.object[error.start : error.end])
    return "".join(text.encode("ascii", "ignore").decode() or "?" for text in similar), error.end


@contextmanager
def no_traceback() -> Iterator[None]:
    """Turn MemoryError into InputError and OSError into RunError; ignore a closed pipe."""
    try:
        yield
    except BrokenPipeError:
        # Otherwise the interpreter reports at exit that the buffer cannot be flushed.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (MemoryError, OSError) as error:
        raise from_system_error(error) or error from None


def show_table(table: Any) -> None:
    """Print a table; a closed pipe is ignored."""
    from rich.console import Console

    with suppress(SystemExit):  # rich's answer to a closed pipe
        Console().print(_Readable(table))


def show_lines(text: str) -> None:
    """Print lines. On a terminal, break long lines and indent the rest below the text of the line."""
    for line in text.split("\n"):
        indent = _AFTER_LABEL if line[:_AFTER_LABEL].rstrip() != line[:_AFTER_LABEL] else 0
        print(fitted(readable(line), sys.stdout, " " * indent))


def show_path(path: Path) -> None:
    """Print a path for a program that reads it: exactly, but on a terminal without characters that would break it."""
    print(readable(str(path)) if sys.stdout.isatty() else path)


@contextmanager
def waiting_for(work: str, shown: bool = True) -> Iterator[None]:
    """Show on a terminal what is done within the context; elsewhere nothing, and nothing if not ``shown``."""
    if not shown or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{work} …"):
        yield


@contextmanager
def showing_work() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows on stderr what is done now: on a terminal at once, elsewhere every few seconds."""
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield status.update
        return
    doing, ended = list[str](), threading.Event()

    def tell_sometimes() -> None:
        told = ""
        while not ended.wait(_SECONDS_BETWEEN_LINES):
            if doing and doing[-1] != told:
                told = doing[-1]
                tell(told)

    thread = threading.Thread(target=tell_sometimes, daemon=True)
    thread.start()
    try:
        yield doing.append
    finally:
        ended.set()
        thread.join()


def warn(warning: str) -> None:
    """Print a warning."""
    tell(f"heatsim: warning: {warning}")


def tell(message: str) -> None:
    """Print a message on stderr; on a terminal, break it between words."""
    print("\n".join(fitted(readable(line), sys.stderr, "  ") for line in message.split("\n")), file=sys.stderr)


def readable(text: str) -> str:
    """The text with ? for characters that would break a terminal: files and folders of others may have them."""
    if text.isprintable():
        return text
    from heatsim.scenario.messages import has_control_characters

    return "".join("?" if has_control_characters(each) and each not in "\n\t" else each for each in text)


def fitted(line: str, stream: TextIO, indent: str) -> str:
    """The line, broken between words if the terminal is too narrow for it; further lines begin with ``indent``."""
    if not stream.isatty():
        return line
    width = max(shutil.get_terminal_size().columns, _NARROWEST)
    if len(line) <= width:
        return line
    own = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        _WITHIN_AMOUNTS.sub(_NBSP, line.strip()),
        width,
        initial_indent=own,
        subsequent_indent=own + indent,
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_NBSP, " ")


class _Readable:
    """Something that rich prints, with readable texts."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.segment import Segment

        for segment in console.render(self._content, options):
            yield segment if segment.control else Segment(readable(segment.text), segment.style)


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
