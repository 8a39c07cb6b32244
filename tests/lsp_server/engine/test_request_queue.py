"""The newest request of each user, in turns; and one user's work never takes another's place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.request import CompletionRequest
from lsp_server.engine.engine_types import CloseJob, CompletionJob, EngineUser, PrefetchJob
from lsp_server.engine.request_queue import RequestQueue


def user() -> EngineUser:
    return EngineUser()


def request(prefix: str, document: str = "a.py") -> CompletionRequest:
    return CompletionRequest(prefix=prefix, suffix="", document=document)


def job(of: EngineUser, prefix: str) -> CompletionJob:
    return CompletionJob(request(prefix), of, lambda answer: None, lambda ms: None)


def taken(queue: RequestQueue) -> str:
    found = queue.take_job()
    return found.request.prefix if found else ""


def test_each_user_has_one_request_the_newest() -> None:
    queue, one, other = RequestQueue(), user(), user()
    for of, prefix in ((one, "a"), (other, "b"), (one, "c")):
        queue.submit(job(of, prefix))
    assert [taken(queue) for _ in range(3)] == ["c", "b", ""]


def test_who_was_served_longest_ago_is_next_however_often_others_ask() -> None:
    queue, patient, hasty = RequestQueue(), user(), user()
    served = []
    queue.submit(job(patient, "patient"))
    for number in range(6):
        queue.submit(job(hasty, f"hasty {number}"))
        queue.submit(job(hasty, f"hastier {number}"))
        served.append(taken(queue))
        if served[-1] == "patient" and number < 3:
            queue.submit(job(patient, "patient"))
    assert served == ["patient", "hastier 1", "patient", "hastier 3", "patient", "hastier 5"]


def test_users_that_come_and_go_overtake_nobody() -> None:
    queue, stays = RequestQueue(), user()
    queue.submit(job(stays, "first"))
    assert taken(queue) == "first"
    queue.submit(job(stays, "second"))
    for _ in range(3):
        comes = user()
        queue.submit(job(comes, "new"))
        queue.leave(comes)
    queue.submit(job(user(), "newer"))
    assert (taken(queue), taken(queue)) == ("second", "newer")


def test_a_request_ends_what_its_own_user_expected_and_no_other_does() -> None:
    queue, one, other = RequestQueue(), user(), user()
    queue.submit(PrefetchJob(request("looked at"), one))
    queue.submit(job(other, "typed"))
    assert queue.next_prefetch
    queue.submit(job(one, "typed too"))
    assert not queue.next_prefetch


def test_of_places_that_were_looked_at_the_last_one_counts() -> None:
    queue, one, other = RequestQueue(), user(), user()
    queue.submit(PrefetchJob(request("first"), one))
    queue.submit(PrefetchJob(request("second"), other))
    expected = queue.take_prefetch()
    assert expected is not None
    assert expected.request.prefix == "second"
    assert queue.take_prefetch() is None


@pytest.mark.parametrize(
    ("by_another", "writes", "waits"),
    [(True, False, "typed"), (True, True, "second"), (False, False, "second"), (False, True, "second")],
)
def test_a_place_that_is_looked_at_waits_behind_anothers_text_that_is_to_be_written(
    by_another: bool, writes: bool, waits: str
) -> None:
    queue, one = RequestQueue(), user()
    queue.submit(PrefetchJob(request("typed"), one, writes=True))
    queue.submit(PrefetchJob(request("second"), user() if by_another else one, writes=writes))
    assert queue.next_prefetch is not None
    assert queue.next_prefetch.request.prefix == waits


def test_who_leaves_takes_all_that_it_wanted_along_but_its_documents_are_closed() -> None:
    queue, one, other = RequestQueue(), user(), user()
    queue.submit(job(other, "stays"))
    queue.submit(job(one, "goes"))
    queue.submit(PrefetchJob(request("goes too", "document"), one))
    queue.submit(CloseJob("document"))
    queue.leave(one)
    assert (taken(queue), taken(queue)) == ("stays", "")
    assert queue.take_prefetch() is None
    assert [queue.take_closed() for _ in range(3)] == ["document", "a.py", None]


def test_documents_of_which_nothing_is_known_are_not_closed() -> None:
    queue, one = RequestQueue(), user()
    queue.submit(job(one, "x"))
    for number in range(100):
        queue.submit(CloseJob(f"never opened {number}"))
    assert queue.take_closed() is None


def test_a_place_in_a_closed_document_is_expected_no_more() -> None:
    queue, one = RequestQueue(), user()
    queue.submit(PrefetchJob(request("typed", "a.py"), one, writes=True))
    queue.submit(CloseJob("b.py"))
    assert queue.next_prefetch
    queue.submit(CloseJob("a.py"))
    assert not queue.next_prefetch


def test_of_documents_that_a_user_had_each_is_closed_once_and_no_others() -> None:
    queue, one, other = RequestQueue(), user(), user()
    queue.submit(CompletionJob(request("", "asked"), one, lambda answer: None, lambda ms: None))
    queue.submit(PrefetchJob(request("", "looked at"), one))
    queue.submit(PrefetchJob(request("", "closed"), one))
    queue.submit(PrefetchJob(request("", "theirs"), other))
    queue.submit(CloseJob("closed"))
    queue.leave(one)
    closed = [queue.take_closed() for _ in range(4)]
    assert (closed[0], set(closed[1:3]), closed[3]) == ("closed", {"asked", "looked at"}, None)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_every_users_last_request_is_taken_once(steps: list[tuple[int, bool]]) -> None:
    """Submit and take in any order: nothing vanishes but what its own user replaced, nothing comes twice."""
    queue, users = RequestQueue(), [user() for _ in range(4)]
    waiting: dict[int, str] = {}
    for number, (index, is_taking) in enumerate(steps):
        if is_taking:
            got = taken(queue)
            assert bool(got) == bool(waiting)
            waiting = {of: prefix for of, prefix in waiting.items() if prefix != got}
        else:
            waiting[index] = f"request {number}"
            queue.submit(job(users[index], waiting[index]))
        assert queue.has_jobs == bool(waiting)
    assert {taken(queue) for _ in range(len(waiting))} == set(waiting.values())
