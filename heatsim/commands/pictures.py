"""Pictures drawn by a process that gets ready while a run is still calculating.

Importing Matplotlib and VTK takes longer than many a run. The process imports both and tests OpenGL, then waits for a
line on its standard input, and draws. It ends with 0 if it has drawn all pictures. Where it fails, for whatever reason,
:func:`heatsim.render.render` draws in the process of the run, and reports the reason.
"""

import faulthandler
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from heatsim.errors import HeatsimError


class BackgroundRenderer:
    """A process that draws the pictures of a run; a context manager, whose exit ends the process."""

    def __init__(self, folder: Path, in_three_dimensions: bool) -> None:
        """Start the process.

        Args:
            folder: the output folder, which need not exist yet.
            in_three_dimensions: whether there will be 3-D views.
        """
        self._folder = folder
        package = str(Path(__file__).parents[2])
        paths = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            # -P: do not import modules from the current folder.
            [sys.executable, "-P", "-m", __name__, str(folder.absolute()), *["3-D"] * in_three_dimensions],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
            # Ctrl-C reaches only the run, which then ends this process.
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def render(self) -> None:
        """Draw the pictures, once the run has written its files.

        Raises:
            FolderError, InputError, StorageError: as for :func:`heatsim.render.render`.
        """
        self._process.communicate(b"draw\n")
        if self._process.returncode != 0:
            from heatsim.render import render

            render(self._folder)


def main() -> int:
    """Draw the pictures of the folder named by the first argument, when a line comes in; the exit code."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401

    from heatsim.render import render
    from heatsim.render.opengl import TRIAL_SECONDS, prefer_egl, try_opengl

    folder, *in_three_dimensions = sys.argv[1:]

    if in_three_dimensions:
        prefer_egl()
        # A broken driver may hang instead of failing.
        faulthandler.dump_traceback_later(TRIAL_SECONDS, exit=True)
        try_opengl()
        faulthandler.cancel_dump_traceback_later()
    if sys.stdin.readline():
        try:
            render(Path(folder), tried=bool(in_three_dimensions))
        except HeatsimError:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
