"""The course: solutions are right, files with gaps are not, and what a learner does wrong is named."""

import re
from pathlib import Path

import pytest

from heatsim.cli import main
from heatsim.kernels.course import check
from heatsim.kernels.course.check import trial
from heatsim.kernels.course.exercises import GAP, KERNELS, solutions, write
from heatsim.kernels.emulation import machine

FIND_COMPILER = machine.find_compiler  # tests skip where there is none; see conftest.py
ALL = pytest.mark.parametrize("number", solutions())
BARRIER = re.compile(r"\n +__syncthreads\(\);.*")
BARRIERS = [(each, at) for each in KERNELS for at in range(solutions()[each].read_text().count("__syncthreads();"))]


def solved(number: int, folder: Path, *changes: tuple[str, str]) -> Path:
    """A file with the solution of an exercise, as a learner would have it, with some texts changed."""
    text = "".join(
        line
        for line in solutions()[number].read_text(encoding="utf-8").splitlines(keepends=True)
        if not GAP.match(line) and line.strip() not in ("// END", "# END")
    )
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / solutions()[number].name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.quick("1", "3")
@ALL
def test_a_solution_is_right(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--check", str(solved(number, tmp_path))]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"exercise {number}: right. ")
    assert out.endswith(f"The solution, with its reasons: {solutions()[number]}\n")


@ALL
def test_a_file_with_gaps_is_not(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--exercise", str(number), str(tmp_path)]) == 0
    (path,) = tmp_path.glob("*.[ct][uo]*")
    assert path.with_suffix(".md").read_text(encoding="utf-8").startswith(f"# Exercise {number}: ")
    assert main(["kernels", "--check", str(path)]) == 1
    err = capsys.readouterr().err
    text = path.read_text(encoding="utf-8")
    assert "END" not in text
    gaps = [line for line in text.splitlines() if "GAP" in line]
    assert len(gaps) > 1
    assert [line for line in err.splitlines() if line.startswith("  line ")] == [
        f"  line {text.splitlines().index(line) + 1}, gap {place}: {line.partition(': ')[2]}"
        for place, line in enumerate(gaps, 1)
    ]
    path.write_text("\n".join(line for line in text.splitlines() if line not in gaps), encoding="utf-8")
    assert main(["kernels", "--check", str(path)]) == 1
    found = capsys.readouterr().err
    assert any(sentence in found for sentence in ("are wrong", "depend on", "not declared", "a number is expected"))


@pytest.mark.parametrize(("number", "place"), BARRIERS)
def test_no_barrier_of_a_solution_can_be_left_out(number: int, place: int, tmp_path: Path) -> None:
    path = solved(number, tmp_path)
    assert len(BARRIERS) == 7
    text = path.read_text(encoding="utf-8")
    barrier = list(BARRIER.finditer(text))[place]
    path.write_text(text[: barrier.start()] + text[barrier.end() :], encoding="utf-8")
    wrong = trial(path, number)["wrong"]
    in_one_order = "depend on the order of the threads, the first at x = "
    in_both = "nan instead of 0."  # each thread reads values on both sides
    assert in_one_order in wrong or (in_both in wrong and "is a barrier missing?" in wrong)


@pytest.mark.parametrize(
    ("number", "change", "sentence"),
    [
        (3, ("[i - 1], tile[k][j][i + 1]", "[i + 1], tile[k][j][i + 1]"), "are wrong, the first at x = 0, y = 0"),
        (3, (" && z < nz;", " && z < nz - 1;"), ": no thread wrote this value"),
        (6, (" && x < count)", ")"), "bytes written behind the array of shape (150,)"),
        (2, ("tile[thread] = values[max(i - RADIUS, 0)];", "tile[thread - 3] = 0;"), "index out of bounds at "),
        (2, ("int count)", "float count, int more)"), "the parameters of the kernel must stay as they are"),
    ],
)
def test_a_mistake_is_named(number: int, change: tuple[str, str], sentence: str, tmp_path: Path) -> None:
    assert sentence in trial(solved(number, tmp_path, change), number)["wrong"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("while (true) sums[0] = tile[0];", "the kernel has not ended after 5 s: look for a loop without end"),
        ("sums[(long long)i << 40] = 0;", "the kernel reads or writes far outside its arrays"),
        ("sums[i] = missing;", "‘missing’ was not declared"),
    ],
)
def test_a_kernel_that_hangs_or_crashes_ends(
    change: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "_SECONDS", 5.0)
    path = solved(2, tmp_path, ("sums[i] = sum;", change))
    assert main(["kernels", "--check", str(path)]) == 1
    assert sentence in capsys.readouterr().err


def test_predictions_are_compared_with_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The counts are those of the table of the ladder."""
    path = solved(1, tmp_path, ("loads_02 = 2.03", "loads_02 = 1"), ('faster = "01"', 'faster = "02"'))
    assert main(["kernels", "--check", str(path)]) == 1
    err = capsys.readouterr().err
    assert "\n  loads_02: you predict 1, the emulated kernel counts 2.03\n  faster: 01 was faster on every GPU" in err
    assert dict(check._counts()) == pytest.approx(
        {"loads_01": 7, "loads_02": 128 / 63, "shared_02": 128 / 63 + 7, "working_02": 63 / 128}
    )


def test_what_is_no_exercise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(3, tmp_path)
    other = tmp_path / "mine.cu"
    other.write_text("// a kernel\n")
    for words, sentence in (
        (["--exercise", "3", str(tmp_path)], "3_block.md: is there already; nothing was written"),
        (["--exercise", "7", str(tmp_path)], "--exercise 7: there are exercises 1 to 6"),
        (["--check", str(other)], "mine.cu: the first line of a file of `heatsim kernels --exercise` says"),
        (["--check", str(tmp_path)], "cannot be read"),
        (["--check", str(other), "--listing", "04"], "--listing, --exercise and --check exclude each other"),
    ):
        assert main(["kernels", *words]) == 2
        assert sentence in capsys.readouterr().err


def test_a_missing_compiler_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = solved(5, tmp_path)
    monkeypatch.setattr(machine, "find_compiler", FIND_COMPILER)
    monkeypatch.setenv("PATH", "")
    assert main(["kernels", "--check", str(path)]) == 2
    assert "emulated CUDA kernels need g++ on Linux: install it" in capsys.readouterr().err
