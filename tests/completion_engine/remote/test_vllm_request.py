"""The form of a request: patterns for the beginning of a text, and nothing else."""

from __future__ import annotations

import re

import pytest

from completion_engine.remote.vllm_client import healing_pattern

CHARACTERS = [chr(code) for code in range(1, 128)] + [*"äß—你\u2028\ufeff🧮"]


@pytest.mark.parametrize("text", [*CHARACTERS, "\\d", "[^", "(?", "a{2}", "x.y", " self._get"])
def test_a_pattern_takes_what_begins_so_and_nothing_else(text: str) -> None:
    pattern = re.compile(healing_pattern(text.encode()))
    assert pattern.fullmatch(text + 'tail\n\r\n\u2028 "z\\"')
    assert pattern.fullmatch(text)
    assert not pattern.fullmatch("後" + text)
    assert not pattern.fullmatch(text[:-1])


@pytest.mark.parametrize("text", " -\n\t\"'/#&~,;:=<>!%@`äß你")
def test_only_what_means_something_in_a_pattern_is_escaped(text: str) -> None:
    assert "\\" + text not in healing_pattern(text.encode())


@pytest.mark.parametrize("healed", [b"", "ä".encode()[:1], b"a\0b"])
def test_what_no_pattern_can_say_has_none(healed: bytes) -> None:
    assert healing_pattern(healed) == ""
