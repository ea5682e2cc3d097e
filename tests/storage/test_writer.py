"""Work on other threads: its order, its errors, and its end."""

import threading
from collections.abc import Callable

import pytest

from heatsim.errors import StorageError
from heatsim.storage.writer import Writer


def fail() -> None:
    raise StorageError("the disk is full")


def test_work_is_done_in_order_while_the_caller_goes_on() -> None:
    done, go_on = [], threading.Event()
    with Writer() as writer:
        writer.submit(go_on.wait)
        for number in range(5):
            writer.submit(lambda number=number: done.append((number, threading.current_thread())))
        assert done == []
        go_on.set()
        writer.wait()
        assert [number for number, _ in done] == [0, 1, 2, 3, 4]
        assert threading.main_thread() not in {thread for _, thread in done}
    assert writer.waited > 0.0


def test_leaving_waits_for_what_is_under_way() -> None:
    done = []
    with Writer() as writer:
        writer.submit(lambda: (threading.Event().wait(0.05), done.append(1)))
    assert done == [1]


@pytest.mark.parametrize("look", ["submit", "check", "wait", "leave"])
def test_an_error_is_raised_where_the_caller_looks_next_and_what_follows_is_dropped(look: str) -> None:
    done, go_on = [], threading.Event()
    writer = Writer()

    def run() -> None:
        with writer:
            for work in (go_on.wait, fail, lambda: done.append(1)):
                writer.submit(work)
            writer.check()
            go_on.set()
            while look == "submit":
                writer.submit(lambda: done.append(2))
            while look == "check":
                writer.check()
            if look == "wait":
                writer.wait()

    with pytest.raises(StorageError, match="the disk is full"):
        run()
    assert done == []
    with writer:
        writer.submit(lambda: done.append(3))
    assert done == [3], "it can be used again"


def test_work_beside_the_rest_begins_at_once_and_can_wait_for_what_came_before() -> None:
    done, begun, go_on = [], threading.Event(), threading.Event()

    def beside(wait_for_the_rest: Callable[[], None]) -> None:
        begun.set()
        wait_for_the_rest()
        done.append("beside")

    with Writer() as writer:
        writer.submit(lambda: (go_on.wait(30.0), done.append("before")))
        writer.submit_beside(beside)
        writer.submit_beside(lambda wait_for_the_rest: done.append("next beside"))
        assert begun.wait(30.0)
        assert done == []
        go_on.set()
        writer.wait()
        assert done == ["before", "beside", "next beside"]


def test_work_beside_learns_that_what_came_before_has_failed() -> None:
    done, go_on = [], threading.Event()

    def failing() -> None:
        go_on.wait(30.0)
        fail()

    def beside(wait_for_the_rest: Callable[[], None]) -> None:
        go_on.set()
        try:
            wait_for_the_rest()
        except StorageError as error:
            done.append(str(error))
            raise
        done.append("counted")

    def run() -> None:
        with Writer() as writer:
            writer.submit(failing)
            writer.submit_beside(beside)
            writer.wait()

    with pytest.raises(StorageError, match="the disk is full"):
        run()
    assert done == ["the disk is full"]


def test_another_error_under_way_is_not_hidden_by_that_of_the_writer() -> None:
    def run() -> None:
        with Writer() as writer:
            writer.submit(fail)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
