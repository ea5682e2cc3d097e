"""How long ranks wait for others, and which rank is stuck."""

import os
import threading

from heatsim.parallel.signs import Sign
from heatsim.parallel.team import ExchangeProgress
from heatsim.parallel.waits import Waits, find_stuck, place_of_main_thread


def test_the_longest_wait_that_goes_on_counts() -> None:
    """A thread that writes files may wait too."""
    waits, ends = Waits(), threading.Event()

    def wait() -> None:
        with waits.waiting():
            ends.wait()

    assert [waits.tick(()) for _ in range(3)] == [0, 0, 0]
    with waits.waiting():
        assert [waits.tick(()), waits.tick(())] == [1, 2]
        thread = threading.Thread(target=wait)
        thread.start()
        while waits._began.keys() != {thread.ident, threading.get_ident()}:
            pass
        assert waits.tick(()) == 3
    assert waits.tick(()) == 2
    ends.set()
    thread.join()
    assert waits.tick(()) == 0


def test_a_device_in_an_exchange_waits() -> None:
    """Its host may wait for the device, and so for another rank, without any message."""
    waits, before, within = Waits(), ExchangeProgress(4, 4), ExchangeProgress(5, 4)
    others = ExchangeProgress(9, 9)
    assert [waits.tick((others, progress)) for progress in (before, before, within, within, within)] == [0, 0, 0, 1, 2]
    assert waits.tick((others, ExchangeProgress(6, 5))) == 0, "the next exchange"
    assert waits.tick((others, ExchangeProgress(6, 6))) == 0


def test_a_rank_for_which_others_wait_longer_than_the_limit_is_stuck() -> None:
    def signs(*waited: float) -> list[Sign]:
        return [Sign(waited=each) for each in waited]

    assert find_stuck(signs(0.0, 29.0, 28.0), 30.0) is None
    assert find_stuck(signs(29.0, 0.0, 30.0), 30.0) == (1, 2)
    assert find_stuck(signs(31.0, 30.0, 29.0), 30.0) == (2, 0), "all wait for each other"
    assert find_stuck([Sign(ended=True), *signs(31.0, 0.0)], 30.0) == (2, 1), "a rank that has ended is not late"


def test_the_place_of_the_main_thread_is_in_the_program() -> None:
    """Not in the library of Python that waits, or in a package."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(place_of_main_thread()))
    thread.start()
    thread.join()
    file = os.path.join("ranks", "test_waits.py")
    assert found[0].startswith(f"{file}:")
    assert found[0].endswith(", in test_the_place_of_the_main_thread_is_in_the_program")
