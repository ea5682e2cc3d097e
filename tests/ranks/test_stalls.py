"""Find a rank that is alive but makes no progress, and ignore one that is slow or begins with long work."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from heatsim.parallel.activity import Activity, Meter, unforeseen
from heatsim.parallel.stalls import find_stalled

WAITS = Activity(waiting=True, longest_busy=0.5, longest_idle=0.1)
STEP = 0.02  # s between samples


def during(work: Callable[[], object], seconds: float, meter: Meter, paced: bool = True) -> list[Activity]:
    """What a meter sees while a thread works."""

    def run() -> None:
        with meter.paced() if paced else nullcontext():
            work()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    found = []
    for _ in range(round(seconds / STEP)):
        time.sleep(STEP)
        found.append(meter.look())
    return found


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc")
def test_a_meter_distinguishes_a_loop_a_blocked_call_and_a_wait(tmp_path: Path) -> None:
    meter, going_on = Meter(STEP), [True]

    def loop() -> None:
        while going_on[0]:
            pass

    started = time.perf_counter()
    busy = during(loop, 0.4, meter)
    assert 0.05 < busy[-1].busy <= time.perf_counter() - started
    assert busy[-1].idle == 0.0
    assert busy[-1].where.startswith(os.path.join("ranks", "test_stalls.py:"))
    going_on[0] = False
    time.sleep(0.1)
    assert meter.look().longest_busy == busy[-1].busy  # the loop has ended

    # A pipe without a writer blocks, like a disk that hangs.
    os.mkfifo(tmp_path / "pipe")
    blocked = during((tmp_path / "pipe").read_bytes, 0.6, meter)
    assert 0.2 < blocked[-1].idle <= 0.61
    assert blocked[-1].busy < 0.1
    (tmp_path / "pipe").write_bytes(b"")

    def wait() -> None:
        with meter.waiting():
            time.sleep(0.2)

    def compile_code() -> None:
        with unforeseen():
            time.sleep(0.2)

    waited = during(wait, 0.16, meter)
    assert all(each.waiting and each.idle == each.busy == 0.0 for each in waited[1:])
    time.sleep(0.1)
    assert all(each.idle == each.busy == 0.0 for each in during(compile_code, 0.16, meter)[1:])
    assert all(each.idle == each.busy == 0.0 for each in during(lambda: time.sleep(0.2), 0.1, meter, paced=False))


def test_a_stalled_rank_exceeds_what_other_ranks_needed() -> None:
    def found(late: Activity, other: Activity = WAITS) -> str | None:
        stalled = find_stalled([other, late, other], 20.0)
        assert stalled is None or stalled[0] == 1
        return None if stalled is None else stalled[1]

    assert found(Activity(busy=19.0)) is None
    text = found(Activity(busy=21.0, where="solver/x.py:3, in f"))
    assert text == ("has used 21 s of processor time (solver/x.py:3, in f), while others wait for it")
    assert "has done nothing for 21 s" in str(found(Activity(idle=21.0)))
    # Other ranks needed 3 s for this work, or this rank before; or no rank waits; or a slow disk has much to write.
    assert found(Activity(busy=29.0), Activity(waiting=True, longest_busy=3.0)) is None
    assert found(Activity(busy=29.0, longest_busy=3.0)) is None
    assert found(Activity(idle=29.0, longest_idle=3.0)) is None
    assert found(Activity(busy=100.0), Activity()) is None
    assert found(Activity(idle=29.0, writing=30.0)) is None
