"""Building the prompt: which text the target sees, where the anchor lies, what is healed.

Anchored fill-in-the-middle: `<prefix>` text before the anchor `<suffix>` text after the cursor `<middle>`
and then all that stands between anchor and cursor as the forced beginning of the middle. A keystroke
only appends tokens, so everything before keeps its place in the KV cache. Token healing takes the
last word before the cursor back and lets the first written tokens spell it again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import lru_cache

from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.text_window import TextWindow

GROWTH = 1.5  # a window slides once it holds this much more than it began with
_MAX_WINDOWS = 64
_MAX_PLACES = 4  # of one document
_OPENING_CHARS = 64


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids to run, and the bytes that the first tokens written must spell.

    The first `num_context` tokens are a repository's, the others the document's.
    """

    tokens: tuple[int, ...]
    healed: bytes
    num_context: int = 0


@dataclass(frozen=True, slots=True)
class _Window:
    """The text before the anchor. It stays while the cursor moves on behind the anchor.

    One that begins within a line, for which it has no room, is known by the `opening` of what it shows of it.
    """

    before: str
    num_lead: int  # characters of the document that stood before `before`; only a hint where to look
    opening: str = ""


class PromptBuilder:
    """Prompts for one target. Remembers per document where its last windows lie."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        window: TextWindow,
        *,
        max_prompt: int,
        anchor_lines: int = 12,
        max_chars: int = 0,
    ) -> None:
        """Text before the cursor begins with `window` and grows to `max_chars`, by default half more."""
        self._tokenizer = tokenizer
        self._anchor_lines = anchor_lines
        self._window = window
        self._max_chars = max_chars or round(window.num_before * GROWTH)
        self._max_prompt = max_prompt
        self._windows: OrderedDict[str, list[_Window]] = OrderedDict()  # of each document the newest first
        self._encode = lru_cache(maxsize=64)(lambda text: tuple(tokenizer.encode(text)))

    def build(self, document: str, prefix: str, suffix: str, context: tuple[int, ...] = ()) -> Prompt:
        """The prompt for a cursor between `prefix` and `suffix`, behind the tokens of a `context`.

        At most `max_prompt` tokens beside these: text that takes more is given a smaller window.
        """
        found = self._reuse(document, prefix)
        visible = self._window
        while True:
            window, forced = found or _open_window(prefix, visible, self._anchor_lines)
            prompt = self._assemble(window.before, forced, visible.after(suffix))
            if len(prompt.tokens) <= self._max_prompt or visible.num_before < 8:
                break
            found, visible = None, visible.halved()
        self._remember(document, window)
        if len(prompt.tokens) > self._max_prompt:
            return Prompt(prompt.tokens[-self._max_prompt :], prompt.healed)
        num_leading = len(self._tokenizer.leading_ids)
        tokens = (*prompt.tokens[:num_leading], *context, *prompt.tokens[num_leading:])
        return Prompt(tokens, prompt.healed, num_leading + len(context) if context else 0)

    def forget(self, document: str) -> None:
        """Drop what is known of a closed document."""
        self._windows.pop(document, None)

    def _remember(self, document: str, window: _Window) -> None:
        text = window.before, window.opening
        known = [it for it in self._windows.get(document, ()) if (it.before, it.opening) != text]
        self._windows[document] = [window, *known][:_MAX_PLACES]
        self._windows.move_to_end(document)
        while len(self._windows) > _MAX_WINDOWS:
            self._windows.popitem(last=False)

    def _reuse(self, document: str, prefix: str) -> tuple[_Window, str] | None:
        """The newest window of the document that serves a cursor behind `prefix`."""
        known = self._windows.get(document, ())
        return next((found for window in known if (found := self._serving(window, prefix))), None)

    def _serving(self, window: _Window, prefix: str) -> tuple[_Window, str] | None:
        at, known = window.num_lead, window.before + window.opening
        if not prefix.startswith(known, at):
            at = prefix.rfind(known)
            if at < 0:
                return None
        anchor = at + len(window.before)
        has_its_place = window.opening or anchor == 0 or prefix[anchor - 1] == "\n"
        if not has_its_place or len(prefix) - at > self._max_chars:
            return None
        if at and len(prefix) - at < self._window.num_before // 2:
            return None  # the cursor went far up: too little would be seen
        return replace(window, num_lead=at), prefix[anchor:]

    def _assemble(self, before: str, forced: str, after: str) -> Prompt:
        tokenizer, fim = self._tokenizer, self._tokenizer.fim
        if fim is None:
            kept, healed = self._heal(before + forced)
            return Prompt((*tokenizer.leading_ids, *kept), healed)
        kept, healed = self._heal(forced)
        head = (*tokenizer.leading_ids, fim.prefix, *self._encode(before), fim.suffix, *self._encode(after))
        return Prompt((*head, fim.middle, *kept), healed)

    def _heal(self, text: str) -> tuple[tuple[int, ...], bytes]:
        """Tokens of `text` less its last word, and the bytes that word spells.

        The whole word, because a word cut short is spelt with other tokens than the whole: a prompt
        that ends in `ret` + `u` is one that the target has never seen go on with `rn`. A line end stays:
        with it taken back the target often writes several, and leaves the block. Nor is a word taken back
        of which a tokenizer makes another text: nobody could spell it again.
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


def _open_window(prefix: str, visible: TextWindow, anchor_lines: int) -> tuple[_Window, str]:
    """A fresh window that ends at the cursor: its text before the anchor, and the text after it."""
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
    return _Window(prefix[start:anchor], start, opening), prefix[anchor:]
