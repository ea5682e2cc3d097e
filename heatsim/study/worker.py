"""A worker: `python -m heatsim.study.worker FOLDER DEVICE` reads groups from standard input and runs them.

It first imports the modules for the scenario's device ("auto", "cuda" or "cpu"). Meanwhile a thread connects to the
GPU, which takes about as long.

A line of input has the numbers of a group, as JSON. The lines of output are

    {"ready": true}                                    once at the start
    {"run": 7, "step": 1200}                           at the start of a run and then a few times a second
    {"run": 7, "status": "done", "message": ""}        at the end of a run
    {"idle": true}                                     at the end of a group

At the end of its input the worker saves checkpoints and exits: the study has asked it to stop, or has died.
"""

import gc
import json
import os
import queue
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heatsim import device, garbage

if TYPE_CHECKING:
    from heatsim.run.interrupt import Stop


def main(study: Path, requested: str) -> None:
    """Run groups until the input ends."""
    garbage.search_rarely()
    connecting = threading.Thread(target=device.connect if requested != "cpu" else lambda: None)
    connecting.start()
    from heatsim.run.interrupt import Stop
    from heatsim.study.run_group import run_group

    # Text that libraries print must not mix with the messages.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**message: Any) -> None:
        try:
            out.write(json.dumps(message) + "\n")
            out.flush()
        except BrokenPipeError:
            stop.requested = True

    stop, groups = Stop(), queue.Queue[list[int] | None]()
    threading.Thread(target=_listen, args=(groups, stop), daemon=True).start()
    _import_for(requested, connecting)
    gc.freeze()  # modules stay: searches after each run need not look at them
    say(ready=True)
    while not stop.requested and (numbers := groups.get()) is not None:
        for event in run_group(study, numbers, lambda run, step: say(run=run, step=step), stop):
            say(run=event.number, status=event.status, message=event.message)
        if not stop.requested:
            say(idle=True)
    out.close()
    # All files are closed. The system releases memory faster than Python and CuPy would.
    os._exit(0)


def _import_for(requested: str, connecting: threading.Thread) -> None:
    """Import the modules for runs on a device, and wait until the GPU is connected."""
    from heatsim.errors import DeviceError

    if requested != "cpu" and find_spec("cupy") is not None:
        import cupy  # noqa: F401
    connecting.join()
    # If the device does not work, each run reports it.
    with suppress(DeviceError):
        chosen = device.choose(requested)
        if chosen.backend == "cuda":
            chosen.free_memory()
        else:
            import numba  # noqa: F401


def _listen(groups: "queue.Queue[list[int] | None]", stop: "Stop") -> None:
    for line in sys.stdin:
        groups.put(json.loads(line))
    stop.requested = True
    groups.put(None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
