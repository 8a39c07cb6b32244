"""A tokenizer in which a test can count: each byte is a token."""

from __future__ import annotations

from completion_engine.prompting.tokenizer import FimTokens


class Letters:
    """Each byte is a token."""

    fim, leading_ids = FimTokens(1, 2, 3), ()

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def num_in_last_word(self, text: str) -> int:
        return 1

    def spell(self, ids: list[int]) -> bytes:
        return bytes(ids)
