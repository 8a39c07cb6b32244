"""The text being written: tokens to characters, with the healed beginning taken off.

Keeps the constraint that the first tokens must spell what was taken back before the cursor.
"""

from __future__ import annotations

from dataclasses import dataclass

from completion_engine.prompting.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class HealingConstraint:
    """Bytes before the cursor that the next tokens still have to spell."""

    tokenizer: Tokenizer
    bytes: bytes

    def allows(self, token: int) -> bool:
        """Whether `token` may come next: it spells what is healing, or a part of it."""
        if not self.bytes:
            return True
        spelt = self.tokenizer.spell([token])
        return bool(spelt) and (spelt.startswith(self.bytes) or self.bytes.startswith(spelt))

    def candidates(self) -> list[int]:
        """The tokens that may come next; asked only while something is healing."""
        return self.tokenizer.tokens_towards(self.bytes)

    def after(self, token: int) -> HealingConstraint:
        """What is healing once `token` is written."""
        return HealingConstraint(self.tokenizer, self.bytes[len(self.tokenizer.spell([token])) :])


class Written:
    """Tokens written so far, as text at the cursor."""

    def __init__(self, tokenizer: Tokenizer, healed: bytes) -> None:
        self._tokenizer = tokenizer
        self.bound = self._healing = HealingConstraint(
            tokenizer, healed
        )  # of the first tokens, and of the next
        self._spelt = bytearray()
        self.ends: list[int] = []  # characters of text after each token
        self.text = ""

    def healing(self) -> HealingConstraint:
        """What the next tokens still have to spell."""
        return self._healing

    def tokens_of(self, text: str) -> list[int]:
        """What the first tokens have to spell, and `text` behind it, in the usual tokens."""
        return self._tokenizer.encode(self.bound.bytes.decode("utf-8", "replace") + text)

    def allows(self, token: int) -> bool:
        """Whether `token` may come next."""
        return self._healing.allows(token)

    def is_end(self, token: int) -> bool:
        """Whether `token` ends the infill."""
        return token in self._tokenizer.end_ids

    def spell(self, tokens: list[int]) -> bytes:
        """The bytes that `tokens` spell."""
        return self._tokenizer.spell(tokens)

    def follows(self, tokens: list[int]) -> bool:
        """Whether `tokens` may come next, all of them in a row."""
        spelt, healing = self.spell(tokens), self._healing.bytes
        return spelt.startswith(healing) if len(spelt) >= len(healing) else healing.startswith(spelt)

    def add(self, token: int) -> None:
        """Append a token that is allowed."""
        self._spelt += self._tokenizer.spell([token])[len(self._healing.bytes) :]
        self._healing = self._healing.after(token)
        self.text = self._spelt.decode("utf-8", errors="ignore")
        self.ends.append(len(self.text))
