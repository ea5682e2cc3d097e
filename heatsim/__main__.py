"""`python -m heatsim`, and the command `heatsim`."""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from heatsim import cli
    except KeyboardInterrupt:
        print("heatsim: interrupted", file=sys.stderr)
        return 130
    except Exception:
        _end_job()
        raise
    return cli.main()


def _end_job() -> None:
    """If the job has several ranks, report the current error and end all ranks: the others wait in MPI for this one."""
    from heatsim.parallel import environment

    if environment.size() > 1:
        import os
        import time
        import traceback

        from mpi4py import MPI

        traceback.print_exc()
        sys.stderr.flush()
        time.sleep(0.5)  # when a job ends, launchers drop output that they have not passed on yet
        MPI.COMM_WORLD.Abort(1)
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
