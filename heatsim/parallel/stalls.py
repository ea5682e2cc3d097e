"""Find a rank that is alive but makes no progress while others wait for it: an endless loop, or a call that hangs.

All batches of time steps take about the same time. A rank has stalled if, since its last message, it has

    used more processor time than    max(deadline, 10 · the longest time that any rank needed before)
    been idle for longer than        max(deadline, 10 · the longest time before); while it waits for a disk 20 minutes

The longest times include those of the waiting ranks, because they have done the same work. Set-up takes different
times on different ranks, so it is not compared.
"""

from collections.abc import Sequence

from heatsim.parallel.activity import Activity

_TIMES_LONGEST = 10.0
# Time in s that a disk or a network file system has to answer. A file server takes minutes to restart. It is
# shorter than the patience of the ranks that wait (mpi_team.py), so that a message names the rank and the file.
SECONDS_FOR_DISK = 1200.0


def find_stalled(activities: Sequence[Activity], deadline: float) -> tuple[int, str] | None:
    """Find a rank that makes no progress. Returns its number and a text that says what it does; None if there is none.

    Args:
        activities: of all ranks.
        deadline: time in s that a rank may always take.
    """
    if not any(each.waiting for each in activities):
        return None
    busy = max(deadline, _TIMES_LONGEST * max(each.longest_busy for each in activities))
    idle = max(deadline, _TIMES_LONGEST * max(each.longest_idle for each in activities))
    for rank, each in enumerate(activities):
        at = f" ({each.where})" if each.where else ""
        if each.busy > busy:
            return rank, f"has used {each.busy:.0f} s of processor time{at}, while others wait for it"
        if each.disk and each.idle > max(idle, SECONDS_FOR_DISK):
            return rank, f"has waited {each.idle:.0f} s for {each.disk}, which does not answer"
        if not each.disk and each.idle > idle:
            return rank, f"has done nothing for {each.idle:.0f} s{at}, while others wait for it"
    return None


def find_waiting_for_disk(activities: Sequence[Activity], deadline: float) -> tuple[int, str] | None:
    """Find a rank that has waited for a disk for longer than ``deadline`` s. Returns its number and the file."""
    return next(((rank, each.disk) for rank, each in enumerate(activities) if each.disk and each.idle > deadline), None)
