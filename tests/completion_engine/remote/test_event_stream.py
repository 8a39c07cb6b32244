"""Server-sent events: cut anywhere they are the same, and none is without end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.remote.token_stream import MAX_EVENT_BYTES, EventParser, EventStreamError

EVENTS = ['{"a": 1}', "[DONE]", "größe\nin two lines", " a blank in front"]
LINES = ["\n", "\r\n"]


def written(events: list[str], end: str) -> bytes:
    fields = (["data: " + line for line in event.split("\n")] for event in events)
    return "".join(end.join([": a comment", "event: x", *lines, "", ""]) for lines in fields).encode()


@given(st.lists(st.sampled_from(EVENTS), max_size=5), st.sampled_from(LINES), st.lists(st.integers(1, 7)))
def test_events_are_the_same_however_they_are_cut(events: list[str], end: str, sizes: list[int]) -> None:
    parser, data, found = EventParser(), written(events, end), []
    for size in [*sizes, len(data)]:
        part, data = data[:size], data[size:]
        found += parser.feed(part)
    assert found == events


@pytest.mark.parametrize("endless", [b"data: " + b"x" * 1000, b"x" * 1000, b"data:\n" * 100, b"data: x\n"])
def test_nothing_is_kept_without_end(endless: bytes) -> None:
    parser, num_fed = EventParser(), 0
    with pytest.raises(EventStreamError):
        while num_fed < 3 * MAX_EVENT_BYTES:
            parser.feed(endless)
            num_fed += len(endless)


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(data: bytes) -> None:
    assert all(isinstance(event, str) for event in EventParser().feed(data))
