"""Whole jobs of several ranks: equal files, and an end within seconds whatever happens to a rank."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jobs
import pytest
import runs
from covering import SLOW

from heatsim import Simulation
from heatsim.cli import main
from heatsim.commands.ranks import ranks_to_start, start_ranks
from heatsim.errors import CapacityError, DeviceError, InputError, Interrupted, RunError, ScenarioError
from heatsim.parallel import launch
from heatsim.scenario import load
from heatsim.storage import folder

HERE = Path(__file__).parent
# Seconds of work on any machine, in steps of a tenth of a millisecond.
Z_FACES = ('boundaries.z_min={type="insulated"}', 'boundaries.z_max={type="convection",coefficient=50.0,ambient=280.0}')
LASTING = (*jobs.PLANES, "time.end=1000", "output.every=500", "output.probe_every=50", "solver.kernel=numpy")


def test_collective_calls() -> None:
    """The last call fails on one rank, which ends the job. The programs leave the end of their team to Python."""
    late, on_disk, hanging = (jobs.start(2, HERE / "team_calls.py", how) for how in ("late", "disk", "hang"))
    code, out, err = jobs.ended(jobs.start(3, HERE / "team_calls.py", "3"))
    assert (code, err) == (CapacityError.exit_code, "")
    assert "".join(out.split()) == "checked" * 3  # two ranks may write to one line
    code, _, err = jobs.ended(late)
    assert code == 1
    assert err.startswith("heatsim: rank 1 on ")
    assert " makes no progress: rank 0 has waited for it for 2 s; it executes ranks/team_calls.py:" in err
    assert err.endswith("; do it again; if it only needs more time, set HEATSIM_RANK_WAIT to more seconds\n")
    code, _, err = jobs.ended(on_disk)
    assert code == 1
    assert ": no sign of life for 3 s: its process waits for a disk, a network file system or a driver" in err
    code, _, err = jobs.ended(hanging)
    assert code == 1
    assert err.startswith("heatsim: rank 1 on ")
    assert "an exchange of planes between GPUs has not ended for 2 s, although all ranks have started it" in err
    assert err.endswith("; do it again\n")


def test_a_run_by_two_ranks_is_interrupted_and_resumed_by_three_and_by_one(tmp_path: Path) -> None:
    """Only one rank enters heat in the ledger for the z face."""
    scenario, overrides = runs.write(tmp_path), (*LASTING, *Z_FACES)
    parts = tmp_path / "parts"
    process = runs.start("run", scenario, "--output", parts, *jobs.options(*overrides), "--ranks", "2", "--quiet")
    while not (parts / folder.CHECKPOINT).exists() and not (parts / folder.FIELDS).exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    code, _, err = jobs.ended(process)
    assert code == 130
    assert len(err.splitlines()) == 1
    assert "interrupted" in err
    code, _, err = runs.process("resume", parts, "--ranks", "3", "--quiet")
    assert (code, err) == (0, ""), err
    alone = tmp_path / "alone"
    Simulation.from_scenario(scenario, overrides, output=alone).run()
    assert jobs.content(parts) == jobs.content(alone)
    assert runs.results(parts) == runs.results(alone)


def test_every_end_of_a_rank_ends_the_job(tmp_path: Path) -> None:
    """Three ranks, where it matters that two of them are left."""
    scenario = runs.write(tmp_path)
    arguments = [*jobs.options(*jobs.PLANES, "output.checkpoint_wall=1e-6", "solver.kernel=numpy"), "--quiet"]

    def start(how: str, rank: int, ranks: int = 2) -> "jobs.subprocess.Popen[str]":
        command = (HERE / "failing_rank.py", how, str(rank), "8")
        return jobs.start(ranks, *command, "run", scenario, "--output", tmp_path / how, *arguments)

    stopped, at_end = start("stop", 1, 3), start("end", 0)
    later = {"finalize": (start("finalize", 2, 3), 2), "exit": (start("exit", 1), 1)} if SLOW else {}
    for how, rank, expected, message in (
        ("raise", 1, 1, "ValueError: a mistake in the program"),
        ("disk", 1, 1, "could not be written: No space left on device; free some disk space"),
    ):
        code, out, err = jobs.ended(start(how, rank))
        assert (code, out) == (expected, "")
        assert err.count(message) == 1
        assert ("Traceback" in err) == (how == "raise")
        advice = (
            f"heatsim: the program failed; continue from the last checkpoint with `heatsim resume {tmp_path / how} "
        )
        assert (advice in err) == (how == "raise")
    code, _, _ = jobs.ended(start("kill", 0))
    assert code not in (0, 2, 130)
    for job, rank in ((at_end, 0), *later.values()):
        code, _, err = jobs.ended(job)
        assert code == 1 if job is at_end else code != 0
        assert err.count("heatsim: rank ") == 1
        assert f"rank {rank} on " in err
        assert "its process is stopped, for instance by SIGSTOP or Ctrl-Z; the run is complete, but the job" in err
    code, _, err = jobs.ended(stopped)
    assert code == 1
    assert "rank 1 on " in err
    assert "no sign of life for 2 s: its process is stopped, for instance by SIGSTOP or Ctrl-Z; continue" in err
    assert "; to debug a rank, set HEATSIM_RANK_TIMEOUT to more seconds" in err
    assert f"heatsim resume {tmp_path / 'stop'} --ranks 3`, or on fewer ranks" in err

    whole = runs.run(tmp_path, *jobs.PLANES, "output.checkpoint_wall=1e-6", "solver.kernel=numpy")
    for how in ("raise", "disk", "kill", "stop", "end", *later):
        Simulation.resume(tmp_path / how).run()
        assert jobs.content(tmp_path / how) == jobs.content(whole), how


@pytest.mark.parametrize(
    ("fault", "own_code", "message"),
    [
        ('sys.modules["cyclopts"] = None', True, "ModuleNotFoundError: import of cyclopts halted"),
        ('sys.modules["heatsim.parallel.job"] = None', True, "import of heatsim.parallel.job halted"),
        ('sys.modules["mpi4py"] = None', False, ": several ranks need mpi4py, which cannot be"),
        ("from heatsim.parallel import job; job._use_cores = job._team = None", True, "TypeError: 'NoneType' object"),
    ],
    ids=["package", "module", "mpi4py", "bug"],
)
def test_a_rank_that_cannot_start_ends_the_job(tmp_path: Path, fault: str, own_code: bool, message: str) -> None:
    """The other rank waits in MPI until all have started."""
    program = (
        f'import os, sys\nif os.environ["PMI_RANK"] == "1":\n    {fault}\n'
        "from heatsim.__main__ import main\nsys.exit(main())"
    )
    process = jobs.start(2, "-c", program, "run", runs.write(tmp_path), "--output", tmp_path / "run")
    code, _, err = jobs.ended(process, 30.0)  # other ranks wait for a minute
    assert (code == 1) == own_code
    assert code != 0
    assert err.count(message) == 1
    assert not (tmp_path / "run").exists()


def test_ctrl_c_before_the_ranks_have_joined_shows_no_traceback(tmp_path: Path) -> None:
    program = (
        "import signal, sys\n"
        "class Finder:\n    def find_spec(self, name, *more):\n"
        '        if name == "heatsim.cli":\n            signal.raise_signal(signal.SIGINT)\n'
        "sys.meta_path.insert(0, Finder())\nfrom heatsim.__main__ import main\nsys.exit(main())"
    )
    for ranks in (1, 2):
        with runs.default_signals():
            code, _, err = jobs.ended(jobs.start(ranks, "-c", program), 30.0)
        assert (code, err) == (130, "heatsim: interrupted\n") if ranks == 1 else (code != 0 and err == "")


@pytest.mark.parametrize(
    "before",
    [pytest.param("", marks=pytest.mark.slow), "    import mpi4py.MPI\n"],
    ids=["before MPI", "before the watch"],
)
def test_a_rank_that_is_stopped_before_it_has_started_ends_the_job(before: str) -> None:
    program = (
        "import os, signal\nfrom heatsim.parallel import job, starting\nstarting.SECONDS = 0.0\n"
        f'if os.environ["PMI_RANK"] == "1":\n{before}    os.kill(os.getpid(), signal.SIGSTOP)\njob.join()'
    )
    code, _, err = jobs.ended(jobs.start(2, "-c", program))
    assert code not in (0, 1, 2, 130)
    assert err.count("heatsim: some ranks did not start within 2 s: they are stopped or hang") == 1


def test_the_process_that_keeps_the_time_of_a_start_ignores_ctrl_c() -> None:
    """A launcher passes SIGINT on to it too; it must not go on as a second copy of the rank."""
    program = (
        "import os, signal\nfrom heatsim.parallel import deadline, starting\n"
        "deadline._keep_time = lambda *_: (signal.raise_signal(signal.SIGINT), os.write(1, b'kept\\n'))\n"
        "with starting.start_in_time():\n    pass\nprint('once')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30.0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "kept\nonce\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not say whether a process is stopped")
@pytest.mark.parametrize("stops", [True, False])
def test_a_process_that_is_stopped_after_the_last_deadline_is_killed(stops: bool) -> None:
    """Work of any length may follow the deadline. A child that has the pipe, as after a fork, changes nothing."""
    program = (
        "import os, signal, time\nfrom heatsim.parallel import deadline\n"
        "from heatsim.parallel.process import Process\n"
        "with deadline.in_time(0.5, lambda: 'it is stopped', Process.this().is_stopped):\n    pass\n"
        "print('after', flush=True)\n"
        "if os.fork() == 0:\n    os.close(2)\n    time.sleep(1.5)\n    os._exit(0)\n"
        f"{'os.kill(os.getpid(), signal.SIGSTOP)' if stops else 'time.sleep(1.0)'}"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30.0)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL if stops else 0, "after\n")
    assert done.stderr == ("heatsim: it is stopped\n" if stops else "")


def test_a_mistake_of_the_user_is_told_once(tmp_path: Path) -> None:
    scenario = runs.write(tmp_path)
    run = ("-m", "heatsim", "run", scenario, "--output", tmp_path / "run")
    code, out, err = jobs.ended(jobs.start(3, *run, "--set", "domain.cells=[7,5,8]"))
    assert (code, out) == (2, "")
    assert err == (
        f"heatsim: {scenario}: domain.cells: a grid with 8 planes along z can be divided among at most 2 ranks, each "
        "with at least 4 planes; got 3 ranks\n"
    )
    assert not (tmp_path / "run").exists()


def test_the_option_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch.check_ranks("all") is None
    assert launch.check_ranks("3") == 3
    for text in ("0", "-1", "two", "1.5"):
        with pytest.raises(InputError, match=f'--ranks = "{text}": expected a number of ranks, 1 or more, or "all"'):
            launch.check_ranks(text)
    assert launch.all_ranks("cpu") >= 1
    monkeypatch.setenv("PMI_SIZE", "3")
    monkeypatch.setenv("PMI_RANK", "0")
    scenario = load(runs.write(tmp_path))
    assert ranks_to_start("3", scenario) == ranks_to_start("all", scenario) == 1
    with pytest.raises(InputError, match="--ranks = 2, but the launcher started 3 processes; leave --ranks out"):
        ranks_to_start("2", scenario)
    monkeypatch.delenv("PMI_SIZE")
    assert ranks_to_start("1", scenario) == 1
    with pytest.raises(ScenarioError, match="a grid with 6 planes along z can be divided among at most 1 rank,"):
        ranks_to_start("100000", scenario)  # before any process is started
    monkeypatch.setenv("PMI_SIZE", "3")
    code, out, err = runs.process("run", scenario.path)
    assert (code, out) == (2, "")
    assert "the launcher started 3 processes, but the MPI of mpi4py" in err


@pytest.mark.parametrize("command", ["study", "render", "export", "bench", "verify"])
def test_a_launcher_does_not_start_a_command_several_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """The first process tells it. Help and commands that only print are printed once."""
    monkeypatch.setenv("PMI_SIZE", "2")
    for rank, told in (("0", True), ("1", False)):
        monkeypatch.setenv("PMI_RANK", rank)
        assert main([command, str(tmp_path / "x.toml"), "--json", str(tmp_path / "x.json")]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        start = f"heatsim: the launcher started 2 processes, and each of them would do all of `heatsim {command}`; "
        assert err.startswith(f"{start}start it without a launcher") if told else err == ""
        for shown in ([command, "--help"], [command, "-h"], ["kernels"]):
            assert main(shown) == 0
            assert (capsys.readouterr().out != "") == told
    assert not list(tmp_path.iterdir())


def test_a_killed_rank_gives_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher kills all ranks when one is killed, so the process that started it tells the user."""
    fake = tmp_path / "mpiexec"
    fake.write_text("#!/bin/sh\nexit 9\n")
    fake.chmod(0o755)
    monkeypatch.setattr(launch, "mpiexec", lambda: str(fake))
    with pytest.raises(RunError, match=r"a rank was killed \(mpiexec returned 9\) .*; continue so"):
        launch.launch(3, ["run", "x.toml"], lambda: "continue so")
    fake.write_text(f"#!/bin/sh\nkill -TERM {os.getpid()}\nsleep 30\n")
    with pytest.raises(Interrupted, match="interrupted before a checkpoint was saved; continue so"):
        launch.launch(3, ["run", "x.toml"], lambda: "continue so")


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("", ""),
        (folder.SCENARIO, "; continue from the last checkpoint with `heatsim resume {} --ranks 2`, or on fewer ranks"),
        (folder.SUMMARY, "; the run is complete; draw its pictures with `heatsim render {}`"),
    ],
)
def test_the_advice_after_a_kill_depends_on_what_the_job_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, advice: str
) -> None:
    """The folder has a finished run, which the new run replaces."""
    run, fake = tmp_path / "run", tmp_path / "mpiexec"
    run.mkdir()
    for name in (folder.SCENARIO, folder.SUMMARY):
        (run / name).touch()
    fake.write_text(f"#!/bin/sh\nsleep 0.02\n{written and f'echo new > {run / written}'}\nexit 9\n")
    fake.chmod(0o755)
    monkeypatch.setattr(launch, "mpiexec", lambda: str(fake))
    with pytest.raises(RunError) as killed:
        start_ranks(2, [], run)
    assert str(killed.value).partition("memory ran out")[2] == advice.format(run)


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "find_spec", lambda name: None)
    with pytest.raises(DeviceError, match=r"several ranks need mpi4py.*install heatsim\[ranks\]"):
        launch.launch(2, [], str)
    monkeypatch.undo()
    monkeypatch.setattr(launch.shutil, "which", lambda *names, **where: None)
    with pytest.raises(DeviceError, match="--ranks needs mpiexec, which was not found"):
        launch.launch(2, [], str)
    assert os.environ.get("PMI_SIZE") is None
