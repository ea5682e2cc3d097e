"""Jobs of several ranks, started with the mpiexec of the Python environment."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import runs

# The scenario of `runs`, with enough planes for several ranks.
PLANES = ("domain.cells=[7,5,13]", "domain.size=[0.07,0.05,0.13]")


def mpiexec() -> str:
    found = shutil.which("mpiexec", path=sysconfig.get_path("scripts"))
    assert found is not None, "install heatsim[test]"
    return found


def start(ranks: int, *command: str | Path) -> "subprocess.Popen[str]":
    """A Python command on several ranks."""
    here = str(Path(__file__).parent)
    inherited = runs.environment()
    return subprocess.Popen(
        [mpiexec(), "-n", str(ranks), sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**inherited, "PYTHONPATH": os.pathsep.join([here, inherited["PYTHONPATH"]]), "COLUMNS": "200"},
    )


def ended(process: "subprocess.Popen[str]", seconds: float = 60.0) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a job, which has to end by itself."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, err


def options(*overrides: str) -> list[str]:
    """Overrides as arguments of the command line."""
    return [option for override in overrides for option in ("--set", override)]


def content(at: Path) -> dict[str, bytes]:
    """The files of a run without those that hold wall-clock times."""
    names = ("scenario.toml", "fields.vtkhdf", "probes.csv", "energy.csv")
    return {name: (at / name).read_bytes() for name in names if (at / name).exists()}
