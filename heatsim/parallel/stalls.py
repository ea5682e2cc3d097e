"""Find a rank that is alive but makes no progress while others wait for it: an endless loop, or a disk that hangs.

All batches of time steps take about the same time. A rank has stalled if, since its last message, it has

    used more processor time than    max(deadline, 10 · the longest time that any rank needed before)
    been idle for longer than        max(deadline, 10 · the longest time before, bytes to write / 10 MB/s)

The longest times include those of the waiting ranks, because they have done the same work. Set-up takes different
times on different ranks, so it is not compared.
"""

from collections.abc import Sequence

from heatsim.parallel.activity import Activity

_TIMES_LONGEST = 10.0


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
        if each.idle > max(idle, each.writing):
            return rank, f"has done nothing for {each.idle:.0f} s{at}, while others wait for it; check its disks"
    return None
