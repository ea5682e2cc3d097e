"""What is said on stderr while a run lasts."""

import io
import re
import sys
import threading
from itertools import count, pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import runs

from heatsim import Simulation
from heatsim.observers import progress
from heatsim.solver.euler.stepper import Stepper

LINE = (
    r"t = ([\d.]+) of 10 s, step (\d+) of 16, [\d.]+ (?:c|[kMG]C)ells/s"
    r"(?:, (about [\d.]+ (?:s|min)|less than 1 s) left)?"
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of the clock is three seconds later; every batch has one step."""
    seconds = count(0, 3)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))
    runs.step_by_step(monkeypatch)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(at: Path, *, said: bool) -> None:
    Simulation.from_scenario(runs.write(at), output=at / "run").run(progress=said)


@pytest.mark.usefixtures("clock")
def test_away_from_a_terminal_there_is_a_line_every_few_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, said=True)
    out, err = capsys.readouterr()
    assert out == ""
    found = [re.fullmatch(LINE, line) for line in err.splitlines()]
    assert all(found), err
    lines = [(float(match[1]), int(match[2]), match[3]) for match in found if match]
    steps = [step for _, step, _ in lines]
    # Fewer lines than steps, because lines are more than three seconds apart; and none twice.
    assert 2 < len(steps) < runs.LAST_STEP
    assert steps == sorted(set(steps))
    assert [time for time, _, _ in lines] == [0.625 * step for step in steps]
    # The time left is told once it has settled, and not at the end.
    left = [text for _, _, text in lines]
    assert left[0] is None
    assert left[len(left) // 2] is not None
    assert left[-1] is None


def test_the_lines_of_a_long_run_get_rarer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A day, polled each second: lines are at least 5 s apart, and at least a tenth of the time so far."""
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    timeline = SimpleNamespace(times=[0.0, 86_400.0], last_step=86_400)
    state = SimpleNamespace(
        method=None,
        step=0,
        reached=0.0,
        problem=SimpleNamespace(timeline=timeline),
        field=SimpleNamespace(grid=SimpleNamespace(cell_count=1000)),
    )
    shown = progress.Progress()
    shown.start(state, None)  # type: ignore[arg-type]
    for second in range(1, 86_401):
        now[0] = state.reached = float(second)
        state.step = second
        shown.poll(state)  # type: ignore[arg-type]
    lines = capsys.readouterr().err.splitlines()
    assert 80 < len(lines) < 100
    steps = [int(line.split("step ")[1].split(" of")[0].replace(",", "")) for line in lines]
    assert steps[:4] == [5, 10, 15, 20]
    assert all(after - before >= 0.1 * before for before, after in pairwise(steps))


def test_a_run_of_less_than_a_few_seconds_prints_no_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, said=True)
    assert capsys.readouterr() == ("", "")


def slow_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling lasts until a message about it is printed."""
    said = threading.Event()

    class Timer(threading.Timer):
        def run(self) -> None:
            super().run()
            said.set()

    def prepare(self: Stepper) -> None:
        assert said.wait(60.0)

    monkeypatch.setattr(threading, "Timer", Timer)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(Stepper, "prepare", prepare)


def test_compiling_that_takes_some_seconds_is_no_hang(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_compiler(monkeypatch)
    run(tmp_path, said=True)
    out, err = capsys.readouterr()
    assert out == ""
    first, *others = err.splitlines()
    assert first == "compiling the kernel …"
    assert all(re.fullmatch(LINE, line) for line in others)


@pytest.mark.usefixtures("clock")
def test_nothing_is_said_unless_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, said=False)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_a_bar_is_drawn_and_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "80"), ("TTY_COMPATIBLE", "1"), ("TTY_INTERACTIVE", "1")):
        monkeypatch.setenv(name, value)
    run(tmp_path, said=True)
    drawn = terminal.getvalue()
    assert drawn.index("compiling the kernel") < drawn.index("of 10 s")
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn)
    (*_, last) = re.split(r"[\r\n]+", plain[: plain.rindex("ells/s") + 6])
    assert re.search(r" \d+% t = [\d.]+ of 10 s, [\d.]+ (?:c|[kMG]C)ells/s$", last)
    assert len(last) <= 80
    # The cursor is shown again and the last line erased.
    assert drawn.rindex("\x1b[?25h") > drawn.rindex("\x1b[?25l")
    assert drawn.endswith("\x1b[2K")


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (1e-11, "t = 5 of 10 ps"),
        (10.0, "t = 5 of 10 s"),
        (36_000.0, "t = 5 of 10 h"),
        (31_536_000.0, "t = 182.5 of 365 days"),
        (1.8938e15, "t = 30.01 of 60.01 Myr"),
    ],
)
def test_times_are_told_in_units_from_picoseconds_to_millions_of_years(end: float, told: str) -> None:
    state = SimpleNamespace(problem=SimpleNamespace(timeline=SimpleNamespace(times=[0.0, end])), reached=0.5 * end)
    assert progress._times(state) == told  # type: ignore[arg-type]
