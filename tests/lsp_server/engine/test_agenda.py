"""Of each user the newest request, in turns; and one user's work never takes another's place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.request import CompletionRequest
from lsp_server.engine.agenda import Agenda, Expectation
from lsp_server.engine.work import EngineJob, EngineUser


def user() -> EngineUser:
    return EngineUser()


def request(prefix: str, document: str = "a.py") -> CompletionRequest:
    return CompletionRequest(prefix=prefix, suffix="", document=document)


def job(of: EngineUser, prefix: str) -> EngineJob:
    return EngineJob(request(prefix), of, lambda answer: None, lambda ms: None)


def taken(agenda: Agenda) -> str:
    found = agenda.take_job()
    return found.request.prefix if found else ""


def test_each_user_has_one_request_the_newest() -> None:
    agenda, one, other = Agenda(), user(), user()
    for of, prefix in ((one, "a"), (other, "b"), (one, "c")):
        agenda.submit(job(of, prefix))
    assert [taken(agenda) for _ in range(3)] == ["c", "b", ""]


def test_who_was_served_longest_ago_is_next_however_often_others_ask() -> None:
    agenda, patient, hasty = Agenda(), user(), user()
    served = []
    agenda.submit(job(patient, "patient"))
    for number in range(6):
        agenda.submit(job(hasty, f"hasty {number}"))
        agenda.submit(job(hasty, f"hastier {number}"))
        served.append(taken(agenda))
        if served[-1] == "patient" and number < 3:
            agenda.submit(job(patient, "patient"))
    assert served == ["patient", "hastier 1", "patient", "hastier 3", "patient", "hastier 5"]


def test_users_that_come_and_go_overtake_nobody() -> None:
    agenda, stays = Agenda(), user()
    agenda.submit(job(stays, "first"))
    assert taken(agenda) == "first"
    agenda.submit(job(stays, "second"))
    for _ in range(3):
        comes = user()
        agenda.submit(job(comes, "new"))
        agenda.leave(comes)
    agenda.submit(job(user(), "newer"))
    assert (taken(agenda), taken(agenda)) == ("second", "newer")


def test_a_request_ends_what_its_own_user_expected_and_no_other_does() -> None:
    agenda, one, other = Agenda(), user(), user()
    agenda.expect(one, Expectation(request("looked at")))
    agenda.submit(job(other, "typed"))
    assert agenda.expected
    agenda.submit(job(one, "typed too"))
    assert not agenda.expected


def test_of_places_that_were_looked_at_the_last_one_counts() -> None:
    agenda, one, other = Agenda(), user(), user()
    agenda.expect(one, Expectation(request("first")))
    agenda.expect(other, Expectation(request("second")))
    expected = agenda.take_expected()
    assert expected is not None
    assert expected.request.prefix == "second"
    assert agenda.take_expected() is None


@pytest.mark.parametrize(
    ("by_another", "writes", "waits"),
    [(True, False, "typed"), (True, True, "second"), (False, False, "second"), (False, True, "second")],
)
def test_a_place_that_is_looked_at_waits_behind_anothers_text_that_is_to_be_written(
    by_another: bool, writes: bool, waits: str
) -> None:
    agenda, one = Agenda(), user()
    agenda.expect(one, Expectation(request("typed"), writes=True))
    agenda.expect(user() if by_another else one, Expectation(request("second"), writes=writes))
    assert agenda.expected is not None
    assert agenda.expected.request.prefix == waits


def test_who_leaves_takes_all_that_it_wanted_along_but_its_documents_are_closed() -> None:
    agenda, one, other = Agenda(), user(), user()
    agenda.submit(job(other, "stays"))
    agenda.submit(job(one, "goes"))
    agenda.expect(one, Expectation(request("goes too", "document")))
    agenda.close("document")
    agenda.leave(one)
    assert (taken(agenda), taken(agenda)) == ("stays", "")
    assert agenda.take_expected() is None
    assert [agenda.take_closed() for _ in range(3)] == ["document", "a.py", None]


def test_documents_of_which_nothing_is_known_are_not_closed() -> None:
    agenda, one = Agenda(), user()
    agenda.submit(job(one, "x"))
    for number in range(100):
        agenda.close(f"never opened {number}")
    assert agenda.take_closed() is None


def test_a_place_in_a_closed_document_is_expected_no_more() -> None:
    agenda, one = Agenda(), user()
    agenda.expect(one, Expectation(request("typed", "a.py"), writes=True))
    agenda.close("b.py")
    assert agenda.expected
    agenda.close("a.py")
    assert not agenda.expected


def test_of_documents_that_a_user_had_each_is_closed_once_and_no_others() -> None:
    agenda, one, other = Agenda(), user(), user()
    agenda.submit(EngineJob(request("", "asked"), one, lambda answer: None, lambda ms: None))
    agenda.expect(one, Expectation(request("", "looked at")))
    agenda.expect(one, Expectation(request("", "closed")))
    agenda.expect(other, Expectation(request("", "theirs")))
    agenda.close("closed")
    agenda.leave(one)
    closed = [agenda.take_closed() for _ in range(4)]
    assert (closed[0], set(closed[1:3]), closed[3]) == ("closed", {"asked", "looked at"}, None)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_every_users_last_request_is_taken_once(steps: list[tuple[int, bool]]) -> None:
    """Submit and take in any order: nothing vanishes but what its own user replaced, nothing comes twice."""
    agenda, users = Agenda(), [user() for _ in range(4)]
    waiting: dict[int, str] = {}
    for number, (index, is_taking) in enumerate(steps):
        if is_taking:
            got = taken(agenda)
            assert bool(got) == bool(waiting)
            waiting = {of: prefix for of, prefix in waiting.items() if prefix != got}
        else:
            waiting[index] = f"request {number}"
            agenda.submit(job(users[index], waiting[index]))
        assert agenda.has_jobs == bool(waiting)
    assert {taken(agenda) for _ in range(len(waiting))} == set(waiting.values())
