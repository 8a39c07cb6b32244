"""Builds prompts as tokens, and turns the tokens written after them into text.

Anchored fill-in-the-middle: `<prefix>` text before the anchor `<suffix>` text after the cursor `<middle>`,
then the text from the anchor to the cursor as the given beginning of the middle. So a keystroke only appends
tokens, and everything before keeps its position in the KV cache.

Token healing: the last word before the cursor is left out of the prompt, because half a word has other tokens
than a whole one. The first tokens written after the prompt must spell it again; `Written` leaves its bytes
out of the text.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache

from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.text_window import TextWindow

GROWTH = 1.5  # the text window grows with typing; at this multiple of its first size a new anchor is set
_MAX_DOCUMENTS = 64
_MAX_ANCHORS = 4  # in each document
_OPENING_CHARS = 64
_ANCHOR_LINES = 12  # the best distance between anchor and cursor, found by measurement


@dataclass(frozen=True, slots=True)
class Prompt:
    """The token ids of a prompt, and the healed bytes that the first written tokens must spell.

    The first `num_context` tokens are snippets of the repository, the others the document.
    """

    tokens: tuple[int, ...]
    healed: bytes
    num_context: int = 0


@dataclass(frozen=True, slots=True)
class HealingConstraint:
    """The healed bytes that the next tokens still have to spell; empty without a constraint."""

    tokenizer: Tokenizer
    bytes: bytes

    def allows(self, token: int) -> bool:
        """Return whether the bytes of `token` begin with the healed bytes or are their beginning."""
        if not self.bytes:
            return True
        spelt = self.tokenizer.spell([token])
        return bool(spelt) and (spelt.startswith(self.bytes) or self.bytes.startswith(spelt))

    def candidates(self) -> list[int]:
        """Return the allowed tokens; call it only while `bytes` is not empty."""
        return self.tokenizer.tokens_towards(self.bytes)

    def after(self, token: int) -> HealingConstraint:
        """Return the constraint that is left after `token`."""
        return HealingConstraint(self.tokenizer, self.bytes[len(self.tokenizer.spell([token])) :])


class Written:
    """The tokens written so far, and the text that they add at the cursor."""

    def __init__(self, tokenizer: Tokenizer, healed: bytes) -> None:
        self._tokenizer = tokenizer
        self.first_healing = HealingConstraint(tokenizer, healed)
        self._healing = self.first_healing
        self._spelt = bytearray()
        self.ends: list[int] = []  # length of the text after each token
        self.text = ""

    def healing(self) -> HealingConstraint:
        """Return the healing constraint of the next token."""
        return self._healing

    def tokens_of(self, text: str) -> list[int]:
        """Return the tokenizer's encoding of the healed bytes and `text` after them."""
        return self._tokenizer.encode(self.first_healing.bytes.decode("utf-8", "replace") + text)

    def allows(self, token: int) -> bool:
        """Return whether healing allows `token` next."""
        return self._healing.allows(token)

    def is_end(self, token: int) -> bool:
        """Return whether `token` ends the infill."""
        return token in self._tokenizer.end_ids

    def spell(self, tokens: list[int]) -> bytes:
        """Return the bytes that `tokens` spell."""
        return self._tokenizer.spell(tokens)

    def follows(self, tokens: list[int]) -> bool:
        """Return whether healing allows the sequence `tokens` next."""
        spelt, healing = self.spell(tokens), self._healing.bytes
        return spelt.startswith(healing) if len(spelt) >= len(healing) else healing.startswith(spelt)

    def add(self, token: int) -> None:
        """Append a token, which healing allows."""
        self._spelt += self._tokenizer.spell([token])[len(self._healing.bytes) :]
        self._healing = self._healing.after(token)
        self.text = self._spelt.decode("utf-8", errors="ignore")
        self.ends.append(len(self.text))


@dataclass(frozen=True, slots=True)
class _AnchoredText:
    """The text before an anchor, which stays the same while the cursor moves on after the anchor.

    If the text begins within a very long line, `opening` holds the beginning of the visible part, to find it
    again.
    """

    before: str
    num_lead: int  # characters of the document before `before`; a hint where to search for it
    opening: str = ""


class PromptBuilder:
    """Builds prompts for one target, and keeps the last anchors of each document."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        window: TextWindow,
        *,
        max_prompt: int,
        anchor_lines: int = _ANCHOR_LINES,
        max_chars: int = 0,
    ) -> None:
        """The text before the cursor is `window` at first and grows with typing up to `max_chars`.

        By default `max_chars` is `GROWTH` times the window.
        """
        self._tokenizer = tokenizer
        self._anchor_lines = anchor_lines
        self._window = window
        self._max_chars = max_chars or round(window.num_before * GROWTH)
        self._max_prompt = max_prompt
        self._anchored: OrderedDict[str, list[_AnchoredText]] = OrderedDict()  # by document, the newest first
        self._encode = lru_cache(maxsize=64)(lambda text: tuple(tokenizer.encode(text)))

    def build(self, document: str, prefix: str, suffix: str, context: tuple[int, ...] = ()) -> Prompt:
        """Return the prompt for a cursor between `prefix` and `suffix`, with `context` in front.

        Without the context it has at most `max_prompt` tokens; if the text needs more, a smaller window is
        used.
        """
        newest_first = self._anchored.get(document, ())
        found = next(filter(None, (self._serving(anchored, prefix) for anchored in newest_first)), None)
        visible = self._window
        while True:
            anchored, forced = found or _anchor(prefix, visible, self._anchor_lines)
            prompt = self._assemble(anchored.before, forced, visible.after(suffix))
            if len(prompt.tokens) <= self._max_prompt or visible.num_before < 8:
                break
            found, visible = None, visible.halved()
        self._remember(document, anchored)
        if len(prompt.tokens) > self._max_prompt:
            return Prompt(prompt.tokens[-self._max_prompt :], prompt.healed)
        num_leading = len(self._tokenizer.leading_ids)
        tokens = (*prompt.tokens[:num_leading], *context, *prompt.tokens[num_leading:])
        return Prompt(tokens, prompt.healed, num_leading + len(context) if context else 0)

    def forget(self, document: str) -> None:
        """Drop the anchors of a closed document, and the cached text of all."""
        self._anchored.pop(document, None)
        self._encode.cache_clear()

    def _remember(self, document: str, anchored: _AnchoredText) -> None:
        text = anchored.before, anchored.opening
        known = [it for it in self._anchored.get(document, ()) if (it.before, it.opening) != text]
        self._anchored[document] = [anchored, *known][:_MAX_ANCHORS]
        self._anchored.move_to_end(document)
        while len(self._anchored) > _MAX_DOCUMENTS:
            self._anchored.popitem(last=False)

    def _serving(self, anchored: _AnchoredText, prefix: str) -> tuple[_AnchoredText, str] | None:
        """Return an anchor and the text from it to a cursor after `prefix`; None where it does not fit."""
        at, known = anchored.num_lead, anchored.before + anchored.opening
        if not prefix.startswith(known, at):
            at = prefix.rfind(known)
            if at < 0:
                return None
        anchor = at + len(anchored.before)
        is_at_line = anchored.opening or anchor == 0 or prefix[anchor - 1] == "\n"
        if not is_at_line or len(prefix) - at > self._max_chars:
            return None
        if at and len(prefix) - at < self._window.num_before // 2:
            return None  # the cursor moved far up, so the window would be too small
        return replace(anchored, num_lead=at), prefix[anchor:]

    def _assemble(self, before: str, forced: str, after: str) -> Prompt:
        tokenizer, fim = self._tokenizer, self._tokenizer.fim
        if fim is None:
            kept, healed = self._heal(before + forced)
            return Prompt((*tokenizer.leading_ids, *kept), healed)
        kept, healed = self._heal(forced)
        head = (*tokenizer.leading_ids, fim.prefix, *self._encode(before), fim.suffix, *self._encode(after))
        return Prompt((*head, fim.middle, *kept), healed)

    def _heal(self, text: str) -> tuple[tuple[int, ...], bytes]:
        """Return the tokens of `text` without its last word, and the bytes of that word.

        The whole word is left out, because a cut word has other tokens: the target has never seen `rn` after
        `ret` + `u`. A line end is kept: without it the target often writes several and leaves the block. A
        word whose tokens do not spell the text exactly is kept, because no tokens could spell it again.
        """
        tokens = self._encode(text)
        if not tokens or text.endswith("\n"):
            return tokens, b""
        num_kept = max(0, len(tokens) - self._tokenizer.num_in_last_word(text))
        before, word = (self._tokenizer.spell(list(part)) for part in (tokens[:num_kept], tokens[num_kept:]))
        spelt = text.encode("utf-8", errors="replace")
        if spelt.startswith(before):
            return tokens[:num_kept], spelt[len(before) :]
        return (tokens[:num_kept], word) if word and spelt.endswith(word) else (tokens, b"")


def _anchor(prefix: str, visible: TextWindow, anchor_lines: int) -> tuple[_AnchoredText, str]:
    """Return the visible text before a new anchor, and the text between anchor and cursor."""
    start = visible.start(prefix)
    opening = prefix[start : start + _OPENING_CHARS] if visible.cuts_line(prefix) else ""
    anchor = len(prefix)
    for _ in range(anchor_lines + 1):
        anchor = prefix.rfind("\n", start, anchor)
        if anchor < 0:
            anchor = start
            break
    else:
        anchor += 1
    return _AnchoredText(prefix[start:anchor], start, opening), prefix[anchor:]
