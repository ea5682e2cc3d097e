"""Collective calls of a team on several ranks; each rank checks what it gets. Run by test_jobs.py."""

import os
import signal
import sys
import time
import weakref

import numpy as np

from heatsim.errors import CapacityError, StorageError
from heatsim.parallel import job, process
from heatsim.parallel.team import ExchangeProgress, Parcel, Team
from heatsim.parallel.watch import SILENCE_VARIABLE, WAIT_VARIABLE


def check_objects(team: Team) -> None:
    for length in (1, 300, 496, 497, 505, 2000, 100_000):
        text = bytes([7]) * length
        assert team.broadcast(text if team.first else None) == text
        found = team.gathered(bytes([team.rank]) * (length * (team.rank + 1)))
        assert found == [bytes([rank]) * (length * (rank + 1)) for rank in range(team.size)]
    assert (team.lowest(team.rank), team.highest(team.rank)) == (0, team.size - 1)


def check_exchange(team: Team) -> None:
    up, down = (team.rank + 1) % team.size, (team.rank - 1) % team.size
    mine = np.full((4, 200, 200), team.rank, np.float32)
    from_below, from_above = np.empty_like(mine), np.empty_like(mine)
    team.exchange(
        [Parcel(up, 0, mine), Parcel(down, 1, mine + 0.5)], [Parcel(down, 0, from_below), Parcel(up, 1, from_above)]
    )
    assert (from_below == down).all()
    assert (from_above == up + 0.5).all()


def check_errors(team: Team) -> None:
    """All ranks raise the error of the lowest rank, with its type. Buffers that MPI may still write to are kept."""
    caught = ""
    try:
        with team.agreeing():
            if team.rank > 0:
                raise StorageError(f"disk of rank {team.rank}")
    except StorageError as error:
        caught = str(error)
    assert caught == "disk of rank 1"
    caught, last, room = "", team.size - 1, np.empty(1000)
    kept = weakref.ref(room)
    try:
        if team.rank == last:
            with team.telling():
                raise CapacityError("no memory")
        team.exchange([], [Parcel(last, 2, room)])
    except CapacityError as error:
        caught = str(error)
    assert caught.endswith("no memory")
    del room
    assert team.rank == last or kept() is not None


def run() -> None:
    team = job.join()
    assert job.join() is team
    assert team.size == int(sys.argv[1])
    assert team.local_rank == team.rank
    assert int(os.environ["NUMBA_NUM_THREADS"]) >= 1
    check_objects(team)
    branch = team.branch("another")
    assert team.branch("another") is branch
    check_objects(branch)
    check_exchange(team)
    check_errors(team)
    print("checked", flush=True)


def be_late() -> None:
    """One rank lives, but does not come to a call."""
    os.environ[WAIT_VARIABLE] = "2"
    team = job.join()
    team.advise("do it again")
    if not team.first:
        time.sleep(60.0)
    team.meet()


def wait_for_disk() -> None:
    """One rank gives no sign of life, because it waits for a disk."""
    os.environ |= {SILENCE_VARIABLE: "2", WAIT_VARIABLE: "3"}
    team = job.join()
    if team.first:
        process._STATES["T"] = process._STATES[process._ON_DISK]
    else:
        os.kill(os.getpid(), signal.SIGSTOP)
    team.meet()


def hang() -> None:
    """All ranks come to the third exchange of their devices; on rank 1 it does not end."""
    os.environ[SILENCE_VARIABLE] = "2"
    team = job.join()
    team.advise("do it again")
    team.follow(lambda: ExchangeProgress(3, 3 if team.first else 2))
    time.sleep(60.0)


if __name__ == "__main__":
    {"late": be_late, "disk": wait_for_disk, "hang": hang}.get(sys.argv[1], run)()
