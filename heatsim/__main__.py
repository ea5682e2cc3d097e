"""`python -m heatsim`, and the command `heatsim`."""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from heatsim import cli
    except Exception:
        _end_job()
        raise
    return cli.main()


def _end_job() -> None:
    """If this is one of several ranks, report the present error and end all of them: they wait for this one in MPI."""
    from heatsim.parallel import environment

    if environment.size() > 1:
        import os
        import time
        import traceback

        from mpi4py import MPI

        traceback.print_exc()
        sys.stderr.flush()
        time.sleep(0.5)  # launchers drop what they have not passed on when a job ends
        MPI.COMM_WORLD.Abort(1)
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
