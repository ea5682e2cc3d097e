"""`python -m heatsim`, and the command `heatsim`."""

import os
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from heatsim import garbage
        from heatsim.parallel import environment

        garbage.search_rarely()
        # Pictures need no display. Matplotlib fails at its import if another environment has set a backend.
        os.environ.pop("MPLBACKEND", None)
        if environment.size() > 1:
            return _main_of_rank()
        from heatsim import cli

        return cli.main()
    except KeyboardInterrupt:  # while modules are imported
        print("heatsim: interrupted", file=sys.stderr)
        return 130


def _main_of_rank() -> int:
    """Run the command line on one of several ranks. If it cannot be imported, the whole job ends."""
    import signal

    # Until this rank has joined the others, Ctrl-C ends it without a traceback, and the launcher ends the others.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from heatsim import cli
        from heatsim.parallel import job  # noqa: F401  (what a rank needs to join the others)
    except Exception:
        import traceback

        from heatsim.parallel.starting import end_start

        traceback.print_exc()
        end_start(1)
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
