"""The text being written: tokens to characters, without the healed beginning.

Keeps the constraint that the first tokens must spell the word that was taken back before the cursor.
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
        """Return whether `token` is a valid next one: it spells what is healing, or a part of it."""
        if not self.bytes:
            return True
        spelt = self.tokenizer.spell([token])
        return bool(spelt) and (spelt.startswith(self.bytes) or self.bytes.startswith(spelt))

    def candidates(self) -> list[int]:
        """Return the valid next tokens; call it only while something is healing."""
        return self.tokenizer.tokens_towards(self.bytes)

    def after(self, token: int) -> HealingConstraint:
        """Return the rest of the constraint once `token` is written."""
        return HealingConstraint(self.tokenizer, self.bytes[len(self.tokenizer.spell([token])) :])


class Written:
    """Tokens written so far, as text at the cursor."""

    def __init__(self, tokenizer: Tokenizer, healed: bytes) -> None:
        self._tokenizer = tokenizer
        self.bound = HealingConstraint(tokenizer, healed)  # for the first tokens
        self._healing = self.bound  # for the next one
        self._spelt = bytearray()
        self.ends: list[int] = []  # characters of text after each token
        self.text = ""

    def healing(self) -> HealingConstraint:
        """Return the bytes that the next tokens must still spell."""
        return self._healing

    def tokens_of(self, text: str) -> list[int]:
        """Return the usual tokens of the bound bytes and `text` after them."""
        return self._tokenizer.encode(self.bound.bytes.decode("utf-8", "replace") + text)

    def allows(self, token: int) -> bool:
        """Return whether `token` is a valid next one."""
        return self._healing.allows(token)

    def is_end(self, token: int) -> bool:
        """Return whether `token` ends the infill."""
        return token in self._tokenizer.end_ids

    def spell(self, tokens: list[int]) -> bytes:
        """Return the bytes that `tokens` spell."""
        return self._tokenizer.spell(tokens)

    def follows(self, tokens: list[int]) -> bool:
        """Return whether all `tokens` in a row are valid next ones."""
        spelt, healing = self.spell(tokens), self._healing.bytes
        return spelt.startswith(healing) if len(spelt) >= len(healing) else healing.startswith(spelt)

    def add(self, token: int) -> None:
        """Append a token that is allowed."""
        self._spelt += self._tokenizer.spell([token])[len(self._healing.bytes) :]
        self._healing = self._healing.after(token)
        self.text = self._spelt.decode("utf-8", errors="ignore")
        self.ends.append(len(self.text))
