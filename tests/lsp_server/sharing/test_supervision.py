"""A thread's end is never silent, and what it held is answered."""

from __future__ import annotations

import asyncio
import threading

import pytest

from lsp_server.sharing.supervision import MAX_CRASHES, SupervisedThread, on_own_thread
from tests.waiting import first_true


class Panic(BaseException):
    """A panic of a library below Python, which is not an Exception."""


@pytest.mark.parametrize("error", [ZeroDivisionError(), Panic(), SystemExit(1), KeyboardInterrupt()])
def test_work_that_ended_by_anything_goes_on_and_its_owner_is_told(error: BaseException) -> None:
    errors: list[tuple[BaseException, bool]] = []
    endings = [error]

    def work() -> None:
        if endings:
            raise endings.pop()

    thread = SupervisedThread("work", work, lambda error, is_final: errors.append((error, is_final)))
    thread.start()
    assert thread.join(5)
    assert errors == [(error, False)]


def test_work_that_always_ends_is_given_up_and_may_be_started_again() -> None:
    told: list[bool] = []

    def work() -> None:
        raise Panic

    thread = SupervisedThread("work", work, lambda _error, is_final: told.append(is_final))
    for _ in range(2):
        told.clear()
        thread.start()
        assert thread.join(5)
        assert told == [False] * (MAX_CRASHES - 1) + [True]
        assert not thread.is_alive


def test_a_start_while_the_last_crash_is_handled_begins_one_run_and_not_two() -> None:
    crashed: list[threading.Thread] = []
    may_end = threading.Event()

    def work() -> None:
        if not crashed:
            raise ZeroDivisionError
        may_end.wait(60)

    def begin_anew(_error: BaseException, _is_final: bool) -> None:
        crashed.append(threading.current_thread())
        thread.start()

    thread = SupervisedThread("worker", work, begin_anew, max_crashes=1)
    thread.start()
    try:
        first_true(lambda: crashed, 60)[0].join(10)
        assert not crashed[0].is_alive()
        assert thread.is_alive
    finally:
        may_end.set()
    assert thread.join(60)


def test_an_owner_that_fails_itself_does_not_end_the_thread() -> None:
    has_gone_on = threading.Event()
    endings = [Panic()]

    def work() -> None:
        if endings:
            raise endings.pop()
        has_gone_on.set()

    def on_crash(_error: BaseException, _is_final: bool) -> None:
        raise Panic

    SupervisedThread("work", work, on_crash).start()
    assert has_gone_on.wait(5)


def test_a_thread_that_did_not_start_is_joined_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    done = threading.Event()
    thread = SupervisedThread("test", done.set, lambda *_: None)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            thread.start()
    assert thread.join(0.0)
    thread.start()
    assert done.wait(60)
    assert thread.join(60)


async def test_work_on_a_thread_of_its_own_gives_its_result_or_its_error() -> None:
    assert await on_own_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await on_own_thread(divmod, 1, 0)

    def panic() -> None:
        raise Panic

    with pytest.raises(RuntimeError, match="Panic"):
        await on_own_thread(panic)


async def test_many_that_wait_keep_nobody_else_waiting() -> None:
    may_end = threading.Event()
    waiting = [asyncio.create_task(on_own_thread(may_end.wait, 30)) for _ in range(100)]
    async with asyncio.timeout(60):
        assert await on_own_thread(int, "1") == 1
        may_end.set()
        await asyncio.gather(*waiting)
