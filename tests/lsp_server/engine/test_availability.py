"""When a team's servers are asked: by what they answered before, in seconds that the test says."""

from __future__ import annotations

import pytest

from completion_engine.errors import RemoteError, RemoteFault
from lsp_server.engine.remote_first import FIRST_PROBE_S, LAST_PROBE_S, Availability


def fault(kind: RemoteFault, retry_s: float = 0.0) -> RemoteError:
    return RemoteError(kind, "no", retry_s=retry_s)


@pytest.mark.parametrize(
    ("kinds", "is_down"),
    [
        (["truncated"], False),
        (["truncated", "unavailable"], False),
        (["truncated", "unavailable", "invalid"], True),
        (["truncated", "truncated", "answer", "truncated"], False),
        (["busy"] * 9, False),
        (["silent"], True),
        (["refused"], True),
        (["certificate"], True),
        (["tokenizer"], True),
    ],
)
def test_what_takes_them_down(kinds: list[RemoteFault | str], is_down: bool) -> None:
    availability = Availability()
    for kind in kinds:
        if kind == "answer":
            availability.answered()
        else:
            availability.failed(fault(kind), 0.0)  # type: ignore[arg-type]
    assert availability.is_down == is_down


def test_busy_ones_are_left_alone_for_longer_each_time_and_as_long_as_they_say() -> None:
    availability, now_s = Availability(), 0.0
    for pause_s in (0.5, 1.0, 2.0, 4.0, 8.0, 8.0):
        availability.failed(fault("busy"), now_s)
        assert not availability.may_ask(now_s + 0.99 * pause_s)
        now_s += pause_s
        assert availability.may_ask(now_s)
    availability.failed(fault("busy", retry_s=30.0), now_s)
    assert not availability.may_ask(now_s + 29.0)
    availability.answered()
    availability.failed(fault("busy"), now_s + 40.0)
    assert availability.may_ask(now_s + 40.5)


def test_probes_come_less_and_less_often_until_an_answer() -> None:
    availability = Availability()
    pauses = [availability.go_down() for _ in range(8)]
    assert pauses == [min(FIRST_PROBE_S * 2**at, LAST_PROBE_S) for at in range(8)]
    availability.come_back()
    assert availability.may_ask(0.0)
    assert availability.go_down() == LAST_PROBE_S
    availability.come_back()
    availability.answered()
    assert availability.go_down() == FIRST_PROBE_S
