"""The command line: arguments in, exit code out."""

import os
import re
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence

from cyclopts import App, CycloptsError, UnusedCliTokensError

from heatsim.commands.benchmarks import bench
from heatsim.commands.convergence import converge
from heatsim.commands.doctor import doctor
from heatsim.commands.kernels import kernels
from heatsim.commands.materials import materials
from heatsim.commands.new import new
from heatsim.commands.plans import plan
from heatsim.commands.results import export, render
from heatsim.commands.runs import resume, run
from heatsim.commands.schema import schema
from heatsim.commands.studies import study
from heatsim.commands.terminal import no_traceback, tell, usable_streams
from heatsim.commands.verification import verify
from heatsim.errors import HeatsimError, InputError, Interrupted, at_command_line
from heatsim.parallel import environment
from heatsim.parallel.ending import print_message
from heatsim.version import version

_SECONDS_FOR_RANK_0 = 1.0  # to end the job if no rank can start
# Commands that one process does, and what to know about them. Several processes would write the same files.
_OF_ONE_PROCESS = {
    **dict.fromkeys(
        ("study", "converge"), "; it uses all GPUs or cores of this machine, or with --cluster several machines"
    ),
    **dict.fromkeys(("render", "export", "bench", "verify"), ", or with one process"),
}

app = App(
    name="heatsim",
    help="3-D heat conduction: `heatsim SCENARIO.toml` runs a scenario and writes the results to outputs/.",
    help_format="markdown",
    version=version,
    version_flags=["--version"],
)
app.default(run)
_COMMANDS = (run, resume, plan, converge, study, render, export, new, doctor, kernels, materials, schema, bench, verify)
for command in _COMMANDS:
    app.command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 wrong input, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if environment.size() > 1 and _runs(words):
        with at_command_line():
            return _main_of_rank(words)
    with usable_streams(silent=not environment.is_first()), at_command_line():
        code, text = _main(words)
        if text:
            tell(text)
        return code


def _runs(words: Sequence[str]) -> bool:
    """Whether a command line starts, resumes or plans a run, which several ranks may do together."""
    return words[0] in ("run", "resume", "plan") or not (words[0].startswith("-") or words[0] in _commands())


def _refuse_launcher(words: Sequence[str]) -> None:
    """Refuse a command that several processes would do several times.

    Raises:
        InputError: the command is one of these.
    """
    if environment.size() > 1 and words[0] in _OF_ONE_PROCESS and not {"--help", "-h"} & set(words):
        raise InputError(
            f"the launcher started {environment.size()} processes, and each of them would do all of `heatsim "
            f"{words[0]}`; start it without a launcher{_OF_ONE_PROCESS[words[0]]}"
        )


def _refuse_empty(words: Sequence[str]) -> None:
    """Refuse an empty path or value, which a shell gives for a variable that is not set.

    Raises:
        InputError: names the option.
    """
    for before, word in zip(("", *words), words, strict=False):
        empty = re.fullmatch(r"(--[a-z-]+)=|", word)
        if empty is not None:
            option = empty[1] or (before if re.fullmatch(r"--[a-z-]+", before) else None)
            remedy = "write a value" if option is None else "write a value, or leave the option out"
            raise InputError(f'{option or "an argument"}: got ""; {remedy}')


def _main_of_rank(words: Sequence[str]) -> int:
    """Run the command line on one of several ranks. All have the same exit code; rank 0 prints."""
    with usable_streams(silent=not environment.is_first()):
        from heatsim.parallel import job

        try:
            team = job.join()
        except HeatsimError as error:
            _tell_why_no_start(error)
            return error.exit_code
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see __main__.py
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            code, text = _main(words)
        except Exception as error:
            team.failing(error)
            code, text = 1, traceback.format_exc()
        code, text = team.end(code, text)
        if text:
            tell(text)
            sys.stderr.flush()
        team.leave(code)
        return code


def _tell_why_no_start(error: HeatsimError) -> None:
    """Report that this rank could not join the others. Rank 0 reports what all ranks find."""
    if environment.is_first():
        print_message(str(error))
    elif "mpi4py.MPI" not in sys.modules:
        time.sleep(_SECONDS_FOR_RANK_0)
        print_message(f"rank {environment.rank()} on {socket.gethostname()}: {error}")


def _main(words: Sequence[str]) -> tuple[int, str]:
    """Run the command. Returns its exit code and the message of an error."""
    code = 0  # also where a closed pipe ends the output
    try:
        with no_traceback():
            _refuse_launcher(words)
            _refuse_empty(words)
            if words and not words[0].startswith("-") and words[0] not in _commands():
                _check_is_file(words[0])
            code = int(app(words, exit_on_error=False, print_error=False, result_action="return_value") or 0)
            sys.stdout.flush()
        return code, ""
    except HeatsimError as error:
        return error.exit_code, f"heatsim: {error}"
    except UnusedCliTokensError as error:
        unused = " ".join(error.unused_tokens or ())
        return 2, f'heatsim: "{unused}" is an unexpected argument.\n{_help_of(words)}'
    except CycloptsError as error:
        return 2, f"heatsim: {error}\n{_help_of(words)}"
    except (KeyboardInterrupt, SystemExit) as error:
        # cyclopts turns Ctrl-C into SystemExit(130).
        if isinstance(error, SystemExit) and error.code != 130:
            raise
        return 130, f"heatsim: {_interruption(error)}"


def _interruption(error: BaseException) -> str:
    """The message of the interruption during which a second signal came; else a general one."""
    earlier: BaseException | None = error
    while earlier is not None and not isinstance(earlier, Interrupted):
        earlier = earlier.__context__
    return str(earlier or "interrupted")


def _commands() -> list[str]:
    return [name for name in app if not name.startswith("-")]


def _help_of(words: Sequence[str]) -> str:
    """Where a user finds the arguments of the command in a command line."""
    return f"Try `heatsim {words[0]} --help`." if words[0] in _commands() else "Try `heatsim --help`."


def _check_is_file(word: str) -> None:
    """A word that is neither a file nor a command gets a hint at both."""
    if os.path.exists(word) or os.path.splitext(word)[1]:
        return
    from heatsim.scenario import suggest

    commands = _commands()
    near = suggest(word, commands)
    hint = f'; did you mean the command "{near}"?' if near else ""
    raise InputError(f'"{word}" is neither a file nor a command; commands: {", ".join(commands)}{hint}')
