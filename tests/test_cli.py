"""The command line as a user sees it: processes, exit codes, output and files."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import runs
from covering import mostly_slow
from rich.console import Group
from rich.text import Text

import heatsim
from heatsim import Simulation, Study, device, render
from heatsim.cli import main
from heatsim.commands.terminal import readable, show_lines, show_path, show_table, tell, usable_streams, waiting_for
from heatsim.errors import DeviceError, InputError, Interrupted, StorageError
from heatsim.kernels.catalog import KERNELS
from heatsim.report.number_tables import NumberTable
from heatsim.report.terminal import TerminalTable
from heatsim.storage import folder
from heatsim.version import version

WRITTEN = {
    *(folder.SCENARIO, folder.FIELDS, folder.CHECKPOINT, folder.PROBES, folder.ENERGY, folder.SUMMARY),
    "manifest.json",
}


def refused(*arguments: str | Path, cwd: Path | None = None) -> str:
    """The stderr of a command that exits with code 2, prints nothing else and shows no traceback."""
    code, out, err = runs.command(*arguments, cwd=cwd)
    assert code == 2, err
    assert out == ""
    assert err.startswith("heatsim: ")
    assert "Traceback" not in err
    return err


@pytest.mark.usefixtures("one_core")
def test_the_short_form_runs_a_scenario_and_says_where_everything_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under a notebook too, which names another backend of Matplotlib: pictures need none."""
    pytest.importorskip("pyvista", reason="PyVista is not installed")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    # A plate, whose pictures are drawn fast.
    text = runs.TEXT.replace("figures = false", "figures = true").replace("[7, 5, 6]", "[7, 5, 1]")
    scenario = runs.write(tmp_path, text, name="slab.toml")
    code, out, err = runs.process(scenario, cwd=tmp_path)
    target = tmp_path / "outputs" / "slab"
    assert (code, err) == (0, "")
    names = {path.name for path in target.iterdir()}
    assert names == WRITTEN | {folder.FIGURES, folder.REPORT}
    assert list((target / folder.FIGURES).glob("*.png"))
    assert "Every kind of face" in out
    assert out.endswith(f"\nWritten to {Path('outputs') / 'slab' / folder.REPORT}\n")
    assert "geometry.png" in {path.name for path in (target / folder.FIGURES).iterdir()}

    pictures = sorted((target / folder.FIGURES).iterdir())
    for picture in pictures:
        picture.unlink()
    code, out, err = runs.command("render", target)
    assert (code, err) == (0, "")
    assert sorted((target / folder.FIGURES).iterdir()) == pictures
    assert sorted(map(Path, out.splitlines())) == [*pictures, target / folder.REPORT]

    code, out, err = runs.command("export", target, "--format", "pvd")
    assert (code, err) == (0, "")
    exported = set(map(Path, out.splitlines()))
    assert exported == set((target / folder.EXPORT).iterdir())
    assert len([path for path in exported if path.suffix == ".vti"]) == len(runs.FIELD_TIMES)
    assert len([path for path in exported if path.suffix == ".pvd"]) == 1


@pytest.mark.parametrize(("drawn", "said"), [(False, "no pictures"), (True, "not all pictures")])
def test_a_run_without_all_of_its_pictures_is_done(
    tmp_path: Path,
    drawn: bool,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def draw(run: Path, *choice: object) -> None:
        if not drawn:
            raise StorageError("3-D views need OpenGL")
        raise InputError("3-D views need OpenGL")

    # The process that would draw them fails to start.
    (tmp_path / "matplotlib.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(render, "render", draw)
    scenario = runs.write(tmp_path, runs.TEXT.replace("figures = false", "figures = true"))
    assert main(["run", str(scenario), "--output", str(tmp_path / "run"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", f"heatsim: warning: {said}: 3-D views need OpenGL\n")


def test_a_second_signal_does_not_hide_how_to_continue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted_twice(simulation: Simulation, progress: bool) -> None:
        try:
            raise Interrupted("interrupted; continue with `heatsim resume run`")
        finally:
            raise KeyboardInterrupt

    monkeypatch.setattr(Simulation, "run", interrupted_twice)
    assert main(["run", str(runs.write(tmp_path)), "--output", str(tmp_path / "run")]) == 130
    assert capsys.readouterr().err == "heatsim: interrupted; continue with `heatsim resume run`\n"


def test_a_run_whose_pictures_are_interrupted_is_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(folder: Path, *choice: object) -> None:
        raise KeyboardInterrupt

    scenario = runs.write(tmp_path, runs.TEXT.replace("figures = false", "figures = true"))
    target = tmp_path / "run"
    monkeypatch.setattr("heatsim.commands.pictures.BackgroundRenderer.of", lambda *arguments: None)
    monkeypatch.setattr("heatsim.render.render", interrupted)
    assert main(["run", str(scenario), "--output", str(target), "--quiet"]) == 130
    drawn = f"`heatsim render {target}`"
    assert capsys.readouterr().err == (
        f"heatsim: the run in {target} is complete, but its pictures are not; draw them with {drawn}\n"
    )
    assert main(["resume", str(target)]) == 0
    assert f"the run is complete; nothing to resume; draw its pictures with {drawn}\n" in capsys.readouterr().out


def test_options_replace_values_of_the_scenario_and_quiet_prints_nothing(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere" / "results"
    options = ["--device", "cpu", "--kernel=numpy", "--precision", "float64", "--quiet", "--output", target]
    settings = ["--set", "time.end=5", "--set=boundaries.x_min.value=20 degC", "--set", "probes.1.name=corner"]
    scenario = runs.write(tmp_path)
    assert runs.command("run", *options, *settings, scenario) == (0, "", "")
    summary = json.loads((target / folder.SUMMARY).read_text())
    assert (summary["kernel"], summary["precision"], summary["backend"]) == ("numpy", "float64", "cpu")
    assert summary["time"] == 5.0
    assert (target / folder.PROBES).read_text().startswith("time (s),inside (K),corner (K)\n0.0,")

    # The resolved scenario beside the results gives the same bits without any option.
    again = tmp_path / "again"
    assert runs.command(target / folder.SCENARIO, "--output", again, "--quiet") == (0, "", "")
    assert runs.results(again) == runs.results(target)

    # There is nothing to resume; this is not an error.
    code, out, err = runs.command("resume", target)
    assert (code, err) == (0, "")
    assert "complete" in out
    assert runs.command("resume", target, "--quiet") == (0, "", "")


def test_whose_folder_is_replaced_and_whose_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario, target = runs.write(tmp_path), tmp_path / "run"
    arguments = ["run", str(scenario), "--output", str(target), "--quiet"]
    assert main(arguments) == 0
    first = runs.results(target)
    assert main([*arguments[:-1], "--set", "time.end=5"]) == 0
    assert f'{target}: replaces the finished run "Every kind of face" of ' in capsys.readouterr().err
    assert runs.results(target) != first

    with pytest.MonkeyPatch.context() as monkeypatch:
        runs.after_step(monkeypatch, 3, runs.interrupt)
        assert main(arguments) == 130
    capsys.readouterr()
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{target}: holds an unfinished run" in err
    assert f"heatsim resume {target}" in err
    assert "--overwrite" in err
    assert not (target / folder.SUMMARY).exists()
    assert main([*arguments, "--overwrite"]) == 0
    assert runs.results(target) == first

    note = target / "note.txt"
    note.write_text("mine")
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    assert main([*arguments, "--overwrite"]) == 2
    assert "note.txt" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before
    assert main(["run", str(scenario), "--output", str(note)]) == 2
    assert f"{note}: is a file" in capsys.readouterr().err


def test_a_scenario_with_a_mistake_leaves_no_folder_behind(tmp_path: Path) -> None:
    scenario = runs.write(tmp_path, runs.TEXT.replace("conductivity =", "conductvity ="))
    err = refused(scenario, cwd=tmp_path)
    assert err.startswith(f"heatsim: {scenario}: ")
    assert 'did you mean "conductivity"?' in err
    assert list(tmp_path.iterdir()) == [scenario]


def test_plan_tells_and_writes_nothing(tmp_path: Path) -> None:
    scenario = runs.write(tmp_path)
    code, out, err = runs.command("plan", scenario, "--set", "time.end=5", "--precision", "float64", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert list(tmp_path.iterdir()) == [scenario]
    problem = Simulation.from_scenario(scenario, ["time.end=5", "solver.precision=float64"]).plan.problem
    (dt,) = problem.timeline.step_lengths
    assert f"dt           {dt!r} s, 8 steps" in out
    for i, c in enumerate(problem.coefficients[dt].c):
        assert f"c{i} = {c!r}" in out
    assert f"dt ≤ {problem.limit.dt:.6g} s, set by cell [0, 1, 0]" in out
    for word in ("float64", "numba", "memory", "disk", "time"):
        assert word in out


def test_kernels_lists_the_whole_ladder() -> None:
    code, out, err = runs.command("kernels")
    assert (code, err) == (0, "")
    for kernel in KERNELS:
        able = "yes" if kernel.composite else "no"
        assert re.search(rf" {kernel.name} .*│ {able} +│", out), kernel.name
    assert "(auto)" in out


def test_help_and_version() -> None:
    code, out, err = runs.command("--help")
    assert (code, err) == (0, "")
    for word in ("run", "resume", "plan", "render", "export", "kernels", "--set", "--output", "--overwrite", "--quiet"):
        assert word in out
    code, out, err = runs.command("resume", "--help")
    assert (code, err) == (0, "")
    assert "--quiet" in out
    code, out, err = runs.command("--version")
    assert (code, err) == (0, "")
    assert out.strip() == version() != "unknown"


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["run"], ["SCENARIO", "`heatsim run --help`"]),
        (["resume"], ["FOLDER", "--help"]),
        (["--colour", "SCENARIO"], ["--colour", "`heatsim --help`"]),
        (["run", "SCENARIO", "--overwite"], ["--overwite", "--overwrite"]),
        (["run", "SCENARIO", "another"], ['"another"', "--help"]),
        (["run", "SCENARIO", "--output"], ["--output"]),
        (["run", "SCENARIO", "--output", ""], ['--output: got ""', "leave the option out"]),
        (["SCENARIO", "--output="], ['--output: got ""']),
        (["study", "SCENARIO", "--output", ""], ['--output: got ""']),
        (["plan", "SCENARIO", "--picture", ""], ['--picture: got ""']),
        (["resume", ""], ['an argument: got ""']),
        (["run", "SCENARIO", "--set"], ["--set"]),
        (["run", "SCENARIO", "--set", "time.end"], ["--set", '"time.end"', "key.path=value"]),
        (["run", "SCENARIO", "--precision", "float16"], ["float16", "--precision", "float32", "float64"]),
        (["run", "SCENARIO", "--device", "gpu"], ["gpu", "--device", "auto", "cuda", "cpu"]),
        (["export", "SCENARIO", "--format", "stl"], ["stl", "--format", "vti", "pvd"]),
        (["resme", "SCENARIO"], ['"resme"', "neither a file nor a command", '"resume"']),
        (["kernel"], ['"kernel"', '"kernels"']),
        (["SCENARO.toml"], ["SCENARO.toml", "no such file", "SCENARIO.toml"]),
        (["plan", "SCENARO.toml"], ["SCENARO.toml", "no such file"]),
        (["."], [".", "is a folder"]),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else None,
)
def test_wrong_usage_is_told_in_a_line_or_two(
    tmp_path: Path,
    arguments: list[str],
    fragments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs.write(tmp_path, name="SCENARIO.toml")
    monkeypatch.chdir(tmp_path)
    assert main([argument.replace("SCENARIO", "SCENARIO.toml") for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("heatsim: ")
    assert len(err.splitlines()) <= 2
    for fragment in fragments:
        assert fragment in err
    assert [path.name for path in tmp_path.iterdir()] == ["SCENARIO.toml"]


def test_an_empty_output_is_refused_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the files of the run, or of the study, would lie in the current folder."""
    monkeypatch.chdir(tmp_path)
    for start in (Simulation.from_scenario, Study.from_scenario):
        with pytest.raises(InputError, match='output: got ""'):
            start(runs.write(tmp_path), output="")


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("NUMBA_NUM_THREADS", "0", 'NUMBA_NUM_THREADS: got "0"; a whole number from 1 is expected'),
        ("NUMBA_DISABLE_JIT", "1", 'NUMBA_DISABLE_JIT: got "1"; kernels of the CPU are compiled: unset it'),
        pytest.param(
            *("NUMBA_NUM_THREADS", "two", 'NUMBA_NUM_THREADS: got "two"; a whole number from 1 is expected'),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_variables_of_another_environment(
    name: str, value: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without threads there is one message, and no folder."""
    monkeypatch.setenv(name, value)
    code, _, err = runs.process("run", runs.write(tmp_path), "--quiet", cwd=tmp_path)
    assert code == 2
    assert err.startswith(f"heatsim: {told}")
    assert not (tmp_path / "outputs").exists()


def test_a_backend_of_another_environment_hinders_no_picture_from_python(tmp_path: Path) -> None:
    """The variable stays as the user set it."""
    Simulation.from_scenario(runs.write(tmp_path), output=tmp_path / "out").run()
    program = (
        "import os; from heatsim.report.page import write_report; from pathlib import Path; "
        f"write_report(Path({str(tmp_path / 'out')!r})); print(os.environ['MPLBACKEND'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "MPLBACKEND": "nonsense"}, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("nonsense\n", "")


def test_texts_of_others_do_not_command_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A summary from someone else may colour, erase or turn around what follows it."""
    title = "a\x1b[2Jb\u202ec [bold]d[/] é 温度"
    table = Group(Text(title, style="bold"), TerminalTable(NumberTable(title, ("name", "K"), [(title, "1")], title)))
    show_table(table)
    show_lines(title)
    tell(f"{title}\nsecond line")
    out, err = capsys.readouterr()
    for line in (*out.splitlines(), err.splitlines()[0]):
        assert readable(line) == line
    assert out.count("a?[2Jb?c [bold]d[/] é 温度") == 5
    assert err.splitlines()[1] == "second line"
    show_path(Path("a\x1b[2Jb"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_path(Path("a\x1b[2Jb"))
    assert capsys.readouterr().out == "a\x1b[2Jb\na?[2Jb\n"


def test_wrong_usage_of_the_process_is_exit_code_2() -> None:
    code, out, err = runs.process("--colour")
    assert (code, out) == (2, "")
    assert err.startswith("heatsim: ")
    assert "--colour" in err


def test_cuda_without_a_gpu_says_why(tmp_path: Path) -> None:
    try:
        device.choose("cuda")
    except DeviceError as error:
        reason = str(error)
    else:
        pytest.skip("there is a GPU")
    err = refused(runs.write(tmp_path), "--device", "cuda", cwd=tmp_path)
    assert err == f"heatsim: {reason}\n"
    assert 'use device "cpu"' in err
    assert not (tmp_path / "outputs").exists()


def test_a_terminal_without_unicode_gets_similar_characters(tmp_path: Path) -> None:
    # Latin-1 has × but no ≤.
    code, out, err = runs.process("plan", runs.write(tmp_path), "--kernel", "numpy", encoding="latin-1")
    assert (code, err) == (0, "")
    assert "7 × 5 × 6 cells" in out
    assert "dt <= 0.8" in out


@pytest.mark.parametrize("streams", mostly_slow(["<&- >&- 2>&-", "2>/dev/full | head -c 0"], "<&- >&- 2>&-"))
def test_a_run_completes_without_a_reader_of_its_output(streams: str, tmp_path: Path) -> None:
    """With closed streams, a closed terminal or a pipe without a reader, the run still completes."""
    scenario = runs.write(tmp_path)
    command = (
        f"{sys.executable} -m heatsim run {shlex.quote(str(scenario))} --output {shlex.quote(str(tmp_path / 'run'))}"
    )
    shell = f"set -o pipefail; {command} {streams}"
    assert subprocess.run(["bash", "-c", shell], env=runs.environment(), check=False).returncode == 0
    assert {path.name for path in (tmp_path / "run").iterdir()} >= WRITTEN
    runs.results(tmp_path / "run")


def test_a_reader_that_closes_the_pipe_is_no_error() -> None:
    shell = ["bash", "-c", f"set -o pipefail; {sys.executable} -m heatsim materials | head -c 0"]
    done = subprocess.run(shell, env=runs.environment(), check=False, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_table_that_cannot_be_written_fails() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    command = [sys.executable, "-m", "heatsim", "materials"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            command, env=runs.environment(), check=False, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr == "heatsim: stdout: No space left on device\n"


def test_ctrl_c_outside_a_run_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("heatsim.scenario.load", press)
    assert main(["plan", str(runs.write(tmp_path))]) == 130
    assert capsys.readouterr() == ("", "heatsim: interrupted\n")


def test_heatsim_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    alone = capsys.readouterr()
    assert main(["--help"]) == 0
    assert (alone.out, alone.err) == (capsys.readouterr().out, "")
    assert "resume" in alone.out


def test_the_columns_of_the_library_do_not_touch(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["materials"]) == 0
    heading, *rows = capsys.readouterr().out.split("\n\n")[0].splitlines()
    starts = [
        heading.index(name) for name in ("k, W", "kg/m³", "cp, J", "at, K", "±10 %", "(T), K", "source", "material")
    ]
    assert len(rows) > 40
    for row in rows:
        assert all(row[start - 2 : start] == "  " and row[start] != " " for start in starts), row


def test_characters_that_a_terminal_does_not_have_become_similar_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    with usable_streams():
        print("3\N{NO-BREAK SPACE}× 5 m², 20 °C ± 1 K — Würfel, ρ −7 温 …")
        sys.stdout.flush()
    assert written.getvalue() == b"3 x 5 m2, 20 deg C +- 1 K - Wurfel, rho -7 ? ...\n"


def python(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with ``path`` before this heatsim in its search path."""
    paths = os.pathsep.join((str(path), str(Path(heatsim.__file__).parents[1])))
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)


def test_ctrl_c_while_modules_are_imported_gives_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "cyclopts.py").write_text("raise KeyboardInterrupt")
    done = python("-m", "heatsim", "kernels", path=tmp_path)
    assert (done.stdout, done.stderr) == ("", "heatsim: interrupted\n")
    assert done.returncode == 130


def test_little_is_imported_before_the_command_line_catches_ctrl_c(tmp_path: Path) -> None:
    code = "import sys; before = {*sys.modules}; import heatsim.__main__; print(len({*sys.modules} - before))"
    assert int(python("-c", code, path=tmp_path).stdout) < 10


@pytest.mark.parametrize("words", [("study", "s.toml", "--workers"), ("bench", "--cells"), ("bench", "--repeats")])
@pytest.mark.parametrize("value", ["1.5", "2.0", "0x4"])
def test_options_of_whole_numbers_are_not_rounded(words: tuple[str, ...], value: str) -> None:
    assert f'"{value}" is not a whole number' in refused(*words, value)


@pytest.mark.parametrize(("option", "value"), [("--range", "-20 degC, 80 degC"), ("--times", "-5 s")])
def test_values_of_render_may_begin_with_a_minus(option: str, value: str, tmp_path: Path) -> None:
    assert "scenario.toml is missing" in refused("render", tmp_path, option, value)


def test_long_work_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown, expected in ((Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with waiting_for("drawing the pictures", shown):
            pass
        assert ("drawing the pictures …" in stream.getvalue()) == expected
