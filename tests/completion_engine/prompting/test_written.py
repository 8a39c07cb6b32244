"""Tests of the text written after a prompt: healed bytes are spelt again and left out of it."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion_engine.prompting.prompt import HealingConstraint, Written
from completion_engine.prompting.tokenizer import Tokenizer

texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)


def token_of(tokenizer: Tokenizer, spelt: bytes) -> int:
    """The token that spells these bytes alone."""
    return tokenizer.token_bytes.index(spelt)


@given(healed=texts, text=texts)
def test_the_text_is_what_follows_the_healed_bytes(tokenizer: Tokenizer, healed: str, text: str) -> None:
    spelt = (healed + text).encode()
    tokens = [token_of(tokenizer, bytes([byte])) for byte in spelt]
    written = Written(tokenizer, healed.encode())
    assert written.text == ""
    texts = []
    for at, token in enumerate(tokens):
        assert written.healing().bytes == healed.encode()[at:]
        assert written.allows(token)
        assert written.follows(tokens[at:])
        written.add(token)
        texts.append(spelt[len(healed.encode()) : at + 1].decode(errors="ignore"))
        assert written.text == texts[-1]
    assert written.ends == [len(text) for text in texts]
    assert written.first_healing.bytes == healed.encode()
    assert not written.healing().bytes


def test_a_token_may_go_on_after_the_healed_bytes(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode(" return value\n")
    written = Written(tokenizer, b" ret")
    for token in tokens:
        assert written.allows(token)
        written.add(token)
    assert written.text == "urn value\n"
    lengths = accumulate(len(tokenizer.spell([token])) for token in tokens)
    assert written.ends == [max(0, length - len(" ret")) for length in lengths]


@pytest.mark.parametrize(
    ("spelt", "is_allowed"), [(b" ", True), (b"r", False), (b"t", False), (b"\n", False)]
)
def test_a_token_is_allowed_if_it_begins_the_healed_bytes(
    tokenizer: Tokenizer, spelt: bytes, is_allowed: bool
) -> None:
    token = token_of(tokenizer, spelt)
    constraint = HealingConstraint(tokenizer, b" ret")
    assert constraint.allows(token) == is_allowed
    assert Written(tokenizer, b" ret").allows(token) == is_allowed
    assert (token in constraint.candidates()) == is_allowed
    assert HealingConstraint(tokenizer, b"").allows(token)


def test_what_spells_nothing_is_allowed_only_without_healed_bytes(tokenizer: Tokenizer) -> None:
    assert tokenizer.fim is not None
    marker = tokenizer.fim.middle
    assert tokenizer.spell([marker]) == b""
    assert not HealingConstraint(tokenizer, b"r").allows(marker)
    assert HealingConstraint(tokenizer, b"").allows(marker)


@pytest.mark.parametrize(
    ("text", "does_follow"),
    [
        ("", True),
        (" r", True),
        (" ret", True),
        (" return", True),
        (" rex", False),
        (" x", False),
        ("ret", False),
    ],
)
def test_a_sequence_follows_if_it_spells_the_healed_bytes(
    tokenizer: Tokenizer, text: str, does_follow: bool
) -> None:
    tokens = [token_of(tokenizer, bytes([byte])) for byte in text.encode()]
    assert Written(tokenizer, b" ret").follows(tokens) == does_follow


def test_a_text_is_encoded_with_the_healed_bytes_before_it(tokenizer: Tokenizer) -> None:
    written = Written(tokenizer, b" ret")
    written.add(tokenizer.encode(" return")[0])
    assert written.tokens_of("urn value") == tokenizer.encode(" return value")
    half = "é".encode()[:1]
    assert Written(tokenizer, half).tokens_of("x") == tokenizer.encode("�x")


def test_the_infill_ends_at_an_end_token(tokenizer: Tokenizer) -> None:
    written = Written(tokenizer, b"")
    assert tokenizer.end_ids
    assert all(map(written.is_end, tokenizer.end_ids))
    assert not written.is_end(token_of(tokenizer, b"x"))
