"""A test of whether this machine can render 3-D views."""

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from inspect import getsource

from heatsim.errors import InputError
from heatsim.storage.pyvista import import_pyvista

# A broken driver may hang instead of failing; a slow machine needs a few seconds.
TRIAL_SECONDS = 120.0
# The environment variable with Matplotlib's backend. Pictures need none, and another environment may have set it.
BACKEND = "MPLBACKEND"

_works = False  # whether a trial of this process has passed; the next ones would take a second each


def try_opengl() -> None:
    """Render a cube. Without EGL, OSMesa and a display, VTK ends the process with a segmentation fault."""
    import pyvista

    plotter = pyvista.Plotter(off_screen=True, window_size=[16, 16])
    plotter.add_mesh(pyvista.Cube())
    plotter.screenshot(return_img=True)
    plotter.close()


def prefer_egl() -> None:
    """Tell VTK that there is no display: otherwise it tries an X server first and writes an error to stderr."""
    if sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        os.environ.setdefault("VTK_DEFAULT_OPENGL_WINDOW", "vtkEGLRenderWindow")


def start_trial() -> "subprocess.Popen[bytes] | nullcontext[None]":
    """A process that tests whether this machine can render, beside other work; none after one has passed."""
    prefer_egl()
    if _works:
        return nullcontext()
    # -P: do not import modules from the current folder, which may be untrusted.
    trial = f"{getsource(try_opengl)}\ntry_opengl()"
    return subprocess.Popen(
        [sys.executable, "-P", "-c", trial],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={name: value for name, value in os.environ.items() if name != BACKEND},
    )


def finish_trial(trial: "subprocess.Popen[bytes] | None") -> None:
    """Wait for the result of the test that :func:`start_trial` has started, if it has.

    Raises:
        InputError: PyVista is missing, or rendering does not work on this machine.
    """
    global _works
    import_pyvista()
    if trial is None:
        return
    try:
        output, _ = trial.communicate(timeout=TRIAL_SECONDS)
    except subprocess.TimeoutExpired:
        trial.kill()
        output, _ = trial.communicate()
    if trial.returncode != 0:
        # VTK writes "time (…) [thread] file:line WARN| message", in colours.
        lines = re.sub(r"\x1b\[[0-9;]*m", "", output.decode(errors="replace")).strip().splitlines()
        raise InputError(
            "3-D views need OpenGL, which does not work on this machine"
            + (f" ({lines[-1].split('| ')[-1].strip()})" if lines else "")
            + "; install EGL (Debian, Ubuntu: apt install libegl1 libgl1; Fedora: dnf install mesa-libEGL), "
            "or copy the folder to a machine with OpenGL, and run `heatsim render` there"
        )
    _works = True
