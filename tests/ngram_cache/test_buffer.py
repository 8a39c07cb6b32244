"""The live buffer against the slow truth."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngram_cache import TokenBuffer

edits = st.lists(
    st.one_of(
        st.tuples(st.just("extend"), st.lists(st.integers(0, 2), max_size=20)),
        st.tuples(st.just("truncate"), st.integers(0, 60)),
    ),
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(
    edits=edits,
    context=st.lists(st.integers(0, 2), max_size=40),
    own=st.booleans(),
)
def test_the_buffer_answers_as_an_index_of_its_one_document(
    brute_force: Callable[..., object],
    described: Callable[..., object],
    edits: list[tuple[str, object]],
    context: list[int],
    own: bool,
) -> None:
    buffer, model = TokenBuffer(), []
    for _, argument in edits:
        if isinstance(argument, list):
            buffer.extend(argument)
            model += argument
        elif isinstance(argument, int) and argument <= len(model):
            buffer.truncate(argument)
            del model[argument:]
    model = model[:60]
    buffer.truncate(len(model))
    assert (len(buffer), buffer.tokens.tolist()) == (len(model), model)
    asked = model if own else context
    found = described(buffer.lookup(asked, max_nodes=7, max_depth=5), str)
    expected = brute_force([("-1", model)], asked, max_nodes=7, max_depth=5)
    assert found == expected


def test_of_many_occurrences_the_most_recent_count() -> None:
    buffer = TokenBuffer([1, 2] * 500 + [1, 3] * 100)
    found = buffer.lookup([1], max_nodes=2, max_depth=1)
    assert found.num_occurrences == 600
    assert [(node.token, node.num_occurrences) for node in found.nodes] == [(3, 64)]


def test_a_long_match_in_a_long_buffer_is_followed() -> None:
    text = [number * number % 97 for number in range(5000)]
    found = TokenBuffer(text).lookup(text[:40], max_nodes=4, max_depth=4)
    assert (found.match_length, found.nodes[0].token, found.nodes[0].document) == (32, text[40], -1)


def test_only_what_is_there_can_be_kept() -> None:
    with pytest.raises(ValueError, match="cannot keep"):
        TokenBuffer([1]).truncate(2)
