"""What a person sees while typing: the text around the cursor, which suggestions are shown, for how long,
what they are worth, and whether they end where a person would stop reading: after a line, an argument, a
member or a word.

Sums over one or several stretches of typing. Has no access to a server or the clock: times are given to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from lsp_server.workspace.documents import PositionEncoding, index_of, units_of

Change = dict[str, Any]  # a content change of the protocol

READ_MS = 250.0  # a changed text costs this before it can be accepted; docs/typists.md names the studies
USUAL_PACE_MS = 220.0  # time of a key where a replay waits for each answer
_STATE = {"is_state": True}  # fields that describe the present moment; `sum_of` leaves them out
MIN_SIGNIFICANT_CHARS = 3
_ENDS_OPEN = re.compile(r"[(\[]\Z|(?:\A|[\s([{,])\{\Z(?<![\w)\]>] \{)")  # not the head of a block
_COMMENTS = ("#", "//", "/*", "*", "--")
_SENTENCE_ENDS = tuple(".!?")
_UNFINISHED = tuple(".=+-*/%<>&|^~!@\\")
_KEYWORD_ALONE = re.compile(
    r"(?:return|let|const|var|if|elif|else if|for|while|def|func|fn|class|import|from|not|await|async|pub|mut"
    r"|new|in|is|and|or|raise|throw|yield|with|match|switch|case|static|struct|enum|type|impl|use|lambda)"
)
_QUOTE = re.compile(r"\\.|[\"`]|(?<!\w)'|'(?!\w)", re.DOTALL)


@dataclass(slots=True)
class Buffer:
    """Text around a cursor. Each change returns the same change in the protocol's form."""

    left: str
    right: str
    encoding: PositionEncoding = "utf-16"

    @property
    def text(self) -> str:
        """The whole text."""
        return self.left + self.right

    @property
    def position(self) -> dict[str, int]:
        """The cursor as an LSP position."""
        return self._position_of(self.left)

    def _position_of(self, before: str) -> dict[str, int]:
        line = before[before.rfind("\n") + 1 :]
        return {"line": before.count("\n"), "character": units_of(line, self.encoding)}

    def offset_of(self, position: dict[str, int]) -> int:
        """An LSP position as an offset into the text."""
        lines = self.text.split("\n")
        line = min(position["line"], len(lines) - 1)
        above = sum(len(text) + 1 for text in lines[:line])
        return above + index_of(lines[line], position["character"], self.encoding)

    def write(self, before: str, after: str = "", *, num_erased: int = 0, num_replaced: int = 0) -> Change:
        """Put `before` left and `after` right of the cursor, after erasing characters on both sides of it."""
        kept, rest = self.left[: len(self.left) - num_erased], self.right[num_replaced:]
        start = self._position_of(kept)
        end = self._position_of(self.left + self.right[:num_replaced])
        self.left, self.right = kept + before, after + rest
        return {"range": {"start": start, "end": end}, "text": before + after}

    def move(self, num_chars: int) -> None:
        """Move the cursor to the right, as typing over a closing bracket does."""
        self.left, self.right = self.left + self.right[:num_chars], self.right[num_chars:]


class ShownSuggestion(NamedTuple):
    """What the editor shows: `text` at the cursor, replacing `num_replaced` characters right of it."""

    text: str
    num_replaced: int


class Seen(NamedTuple):
    """One moment of the screen: `text` at the cursor. The file does not have `num_wrong` of its characters.

    `ends_unit` as the function of this name.
    """

    text: str = ""
    num_wrong: int = 0
    ends_unit: bool = False


_NOTHING = Seen()


@dataclass(slots=True)
class ScreenLog:
    """The shown texts and their savings; `read_ms` is how long the present text has been on the screen.

    A text stays the same if its beginning is typed, or if it grows. A key takes `pace_ms`. `num_broken` texts
    changed although the key was their next character; they are among the `num_replaced`. `num_read_in_vain`
    were on the screen long enough to be read, and not accepted. `wrong_char_ms` adds up the time of each
    wrong character on the screen.
    """

    num_texts: int = 0
    num_units: int = 0
    num_replaced: int = 0
    num_broken: int = 0
    num_wrong: int = 0
    num_read_in_vain: int = 0
    num_accepted: int = 0
    num_accepted_chars: int = 0
    num_keys_skipped: int = 0
    skipped_ms: float = 0.0
    accepting_ms: float = 0.0
    char_ms: float = 0.0
    wrong_char_ms: float = 0.0
    pace_ms: float = field(default=USUAL_PACE_MS, metadata=_STATE)
    read_ms: float = field(default=0.0, metadata=_STATE)
    _present: Seen = field(default=_NOTHING, metadata=_STATE)

    def saw(self, seen: Seen, typed: str, visible_ms: float) -> None:
        """Record what is shown until the next key; `typed` is the text that the last key added."""
        before, self._present = self._present, seen
        left = before.text[len(typed) :] if before.text.startswith(typed) else ""
        is_same = bool(left) and seen.text.startswith(left)
        if not is_same:
            self.num_read_in_vain += bool(before.text) and self.read_ms >= READ_MS
            self.read_ms = 0.0
            if before.text and (left or seen.text):
                self.num_replaced += 1
                self.num_broken += bool(left)
            if seen.text:
                self.num_texts += 1
                self.num_units += seen.ends_unit
        if seen.num_wrong and not (is_same and before.num_wrong):
            self.num_wrong += seen.num_wrong
        self.read_ms += visible_ms if seen.text else 0.0
        self.char_ms += len(seen.text) * visible_ms
        self.wrong_char_ms += seen.num_wrong * visible_ms

    def accepted(self, num_chars: int, num_keys: int) -> None:
        """Record that a text was accepted with one key, in place of `num_keys` others.

        The pauses that these keys would have had count nothing: the person thinks all the same.
        """
        self.num_accepted += 1
        self.num_accepted_chars += num_chars
        self.num_keys_skipped += num_keys
        self.skipped_ms += num_keys * self.pace_ms
        self.accepting_ms += self.pace_ms + READ_MS
        self._present, self.read_ms = _NOTHING, 0.0

    def sums(self) -> dict[str, float]:
        """Return the sums alone, without what is on the screen now."""
        return {name: getattr(self, name) for name in _SUMS}

    def figures(self, num_chars: int) -> dict[str, Any]:
        """Return the figures of a report, for `num_chars` characters that came into files."""
        reading_ms = self.accepting_ms + self.num_read_in_vain * READ_MS
        return {
            "seconds_saved": round((self.skipped_ms - reading_ms) / 1e3, 1),
            "keys_saved": self.num_keys_skipped - self.num_accepted,
            "num_accepted": self.num_accepted,
            "share_not_typed": _share(self.num_accepted_chars, num_chars),
            "chars_per_accepted": round(self.num_accepted_chars / max(1, self.num_accepted), 1),
            "share_units": _share(self.num_units, self.num_texts),
            "num_texts": self.num_texts,
            "replaced_per_100": round(100 * _share(self.num_replaced, num_chars), 1),
            "broken_per_100": round(100 * _share(self.num_broken, num_chars), 1),
            "wrong_per_100": round(100 * _share(self.num_wrong, num_chars), 1),
            "wrong_per_100_by_time": round(100 * _share(self.wrong_char_ms, self.char_ms), 1),
        }


def sum_of(logs: Iterable[ScreenLog]) -> ScreenLog:
    """Return one log with the sums of several."""
    found = [log.sums() for log in logs]
    return ScreenLog(**{name: sum(sums[name] for sums in found) for name in _SUMS})  # type: ignore[arg-type]


_SUMS = tuple(one.name for one in fields(ScreenLog) if not one.metadata)


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def ends_unit(before: str, text: str, after: str) -> bool:
    """Return whether `text` ends a unit between the line `before` it and what the file has `after` it.

    `after` begins with the next character of the file if the text is right, and is empty otherwise. A right
    text that ends a line ends a unit. In a comment or in a string that was open before, so does a sentence.
    """
    shown = text.rstrip()
    if sum(not character.isspace() for character in shown) < MIN_SIGNIFICANT_CHARS:
        return False
    if shown[-1:] and after[:1] and shown == text and _is_word(shown[-1]) and _is_word(after[0]):
        return False
    if after.startswith("\n"):
        return True
    start = before.rpartition("\n")[2]
    line = f"{start}{shown}".rpartition("\n")[2]
    is_prose = _is_in_string(start) or line.lstrip().startswith(_COMMENTS)
    if is_prose and shown.endswith(_SENTENCE_ENDS):
        return True
    if shown.endswith(_UNFINISHED) or _ENDS_OPEN.search(line) or _KEYWORD_ALONE.fullmatch(shown.strip()):
        return False
    return is_prose or not _is_in_string(line)


def num_beyond_word(before: str, text: str) -> int:
    """Return the characters of `text` after the rest of the word that the cursor stands in."""
    if not before or not _is_word(before[-1]):
        return len(text)
    rest = next((at for at, character in enumerate(text) if not _is_word(character)), len(text))
    return len(text) - rest


def is_one_word(text: str) -> bool:
    """Return whether a text is not empty and has nothing but letters, digits and underscores."""
    return bool(text) and all(map(_is_word, text))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_in_string(line: str) -> bool:
    """Return whether a quote is open at the end of a line; an apostrophe in a word opens none."""
    opened = ""
    for match in _QUOTE.finditer(line):
        quote = match.group()
        if quote == opened:
            opened = ""
        elif not opened and len(quote) == 1:
            opened = quote
    return bool(opened)
