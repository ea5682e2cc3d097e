"""`heatsim doctor`: what works on this machine, and what to install for the rest."""

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heatsim.commands.terminal import show_lines, showing_work
from heatsim.errors import HeatsimError, InputError
from heatsim.version import version

_MPI_TRIAL = "from mpi4py import MPI; print(MPI.COMM_WORLD.size, MPI.Get_library_version().splitlines()[0])"
_MPI_SECONDS = 60.0
# Templates that together use the kernels of one material, of several, of void and radiation, beams, melting, and steady
# states; with the methods that are tried, a part of their first interval.
_COMPILED = {
    "cube": ("euler", "stabilized", "implicit", "steady"),
    "power_module": ("euler", "stabilized", "implicit"),
    "cooling_gear": ("stabilized",),
    "laser_track": ("stabilized",),
    "melting_block": ("stabilized",),
    "circuit_board": ("steady",),
}
_SHORT = ("time.end=1e-3", "output.every=1e-3", "output.probe_every=1e-3", "output.figures=false")


def doctor(
    *,
    compile: Annotated[
        bool, Parameter(help="Also compile the usual kernels now, so that later runs start at once.", negative="")
    ] = False,
) -> int:
    """Report what works on this machine, and what to install for the rest."""
    for name, look in _LOOKS.items():
        try:
            state, found = "works", look()
        except HeatsimError as error:
            state, found = "–", str(error)
        show_lines(f"{name:13}{state:7}{found}")
    if compile:
        started = time.perf_counter()
        count = _compile_all()
        print(f"\ncompiled in {time.perf_counter() - started:.0f} s, with {count} short runs")
    return 0


def _python() -> str:
    import numba
    import numpy as np

    return f"heatsim {version()}, Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}"


def _cpu() -> str:
    from heatsim.device import choose, host_memory

    return f"{choose('cpu').name}, {host_memory() / 2**30:.1f} GiB of memory free"


def _gpu() -> str:
    from heatsim.device import choose, count_gpus, cuda_of_driver

    cuda = cuda_of_driver()
    if cuda == 0:
        raise InputError("no NVIDIA driver; runs use the CPU. With an NVIDIA GPU install driver 580 or newer")
    if cuda < 12:
        raise InputError(f"the NVIDIA driver is for CUDA {cuda}; install driver 580 or newer")
    try:
        gpu = choose("cuda")
    except HeatsimError as error:
        raise InputError(f'{error}; for this driver: pip install "heatsim[cuda{min(cuda, 13)}]"') from None
    return f"{gpu.name}, {count_gpus()} in all, {gpu.free_memory() / 2**30:.1f} GiB free, {gpu.software()}"


def _opengl() -> str:
    from heatsim.render.opengl import finish_trial, start_trial

    with start_trial() as trial:
        finish_trial(trial)
    return "views in space can be drawn"


def _mpi() -> str:
    """The library of MPI that starts two ranks.

    Raises:
        InputError: they do not start.
    """
    from importlib.util import find_spec

    from heatsim.parallel.launch import mpiexec

    if find_spec("mpi4py") is None:
        raise InputError('runs on several GPUs need mpi4py: pip install "heatsim[ranks]"')
    try:
        done = subprocess.run(
            [mpiexec(), "-n", "2", sys.executable, "-P", "-c", _MPI_TRIAL],
            capture_output=True,
            text=True,
            timeout=_MPI_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"mpiexec did not start two processes within {_MPI_SECONDS:.0f} s") from None
    lines = (done.stdout if done.returncode == 0 else done.stderr).splitlines() or [""]
    if done.returncode != 0 or not lines[0].startswith("2 "):
        raise InputError(f"mpiexec does not start two ranks of one job ({lines[-1]}); install heatsim[ranks]")
    return f"{' '.join(lines[0].split()[1:])}, for runs on several GPUs"


def _dask() -> str:
    from heatsim.study.cluster_connection import import_distributed

    return f"distributed {import_distributed().__version__}, for studies on several machines"


def _ffmpeg() -> str:
    from heatsim.render.animation import find_ffmpeg

    return f"{find_ffmpeg()}, for MP4"


def _compiler() -> str:
    found = shutil.which("g++")
    if found is None:
        raise InputError("only CUDA kernels without a GPU need g++: `heatsim kernels --check`, the tests")
    return f"{found}, for CUDA kernels without a GPU"


def _cache() -> str:
    """The folders of compiled kernels.

    Raises:
        InputError: one of them cannot be written.
    """
    from heatsim.kernels.cpu import blocked
    from heatsim.kernels.disk_cache import cache_folder
    from heatsim.numba_cache import folder_of, is_kept

    if not is_kept(blocked.advance):
        raise InputError(
            "every process compiles the kernels again: set NUMBA_CACHE_DIR to a folder that can be written"
        )
    folders = {"GPU": cache_folder(), "CPU": folder_of(blocked.advance)}
    for folder in folders.values():
        existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        if not os.access(existing, os.W_OK):
            raise InputError(
                f"{existing}: cannot be written; set HEATSIM_CACHE_DIR and NUMBA_CACHE_DIR to other folders"
            )
    return "; ".join(f"kernels of the {device} in {folder}" for device, folder in folders.items())


def _compile_all() -> int:
    """Compile the usual kernels with short runs of templates in a temporary folder. Returns the number of runs."""
    import tempfile

    from heatsim.commands.new import find_template
    from heatsim.run.simulation import Simulation

    cases = [(template, method) for template, methods in _COMPILED.items() for method in methods]
    with tempfile.TemporaryDirectory(prefix="heatsim") as folder, showing_work() as show:
        for number, (template, method) in enumerate(cases):
            show(f"compiling: {template}, {method}")
            changes = [f"time.method={method}", *(_SHORT if method != "steady" else _SHORT[3:])]
            Simulation.from_scenario(find_template(template), changes, output=Path(folder, str(number))).run()
    return len(cases)


_LOOKS: dict[str, Callable[[], str]] = {
    "Python": _python,
    "CPU": _cpu,
    "GPU": _gpu,
    "OpenGL": _opengl,
    "MPI": _mpi,
    "Dask": _dask,
    "ffmpeg": _ffmpeg,
    "g++": _compiler,
    "cache": _cache,
}
