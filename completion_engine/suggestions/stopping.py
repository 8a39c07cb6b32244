"""Owns when generation at a place ends: the rules of all families, asked after every verified token.

Text in, decisions out; knows no tokens, no model and no editor.
"""

from __future__ import annotations

from completion_engine.suggestions.blocks import end_of_suggestion, mode_of
from completion_engine.suggestions.boundary import boundary, head
from completion_engine.suggestions.brackets import unmatched_bracket
from completion_engine.suggestions.cursor_context import CursorContext
from completion_engine.suggestions.fences import ends_fence
from completion_engine.suggestions.repeats import (
    repeated_lines,
    repeated_text,
    repeats_next_line,
    repeats_suffix,
    rest_of_line_reached,
)
from completion_engine.suggestions.rules import Fire, Stop
from completion_engine.suggestions.site import Reading, Site
from completion_engine.suggestions.syntax import SyntaxWindow

_RULES = (
    unmatched_bracket,
    repeats_next_line,
    repeats_suffix,
    rest_of_line_reached,
    repeated_lines,
    repeated_text,
    ends_fence,
)


class StopRules:
    """Decides for one place when to stop. Built once per completion.

    Each rule fires at the first character that settles it, and the rule that fires first decides. So a
    decision, once made, holds for every longer text, however the text was cut into calls.
    """

    def __init__(self, cursor: CursorContext) -> None:
        self.site = Site(cursor)
        self.syntax = SyntaxWindow(cursor.language, self.site.before)
        self._mode = mode_of(self.site)
        self._definitions: dict[str, bool] = {}

    def check(self, generated: str) -> Stop | None:
        """Where to stop in all the text generated so far at the cursor; None to go on."""
        reading = self.site.read(generated)
        fires = [fire for rule in _RULES if (fire := rule(self.site, reading))]
        end = end_of_suggestion(self.site, self._mode, reading, self._is_definition)
        first = min([*fires, end] if end else fires, key=_seen, default=None)
        return Stop(first.rule, first.keep) if first else None

    def boundary(self, generated: str) -> int:
        """How much of the text to keep when time is up: whole statements, else whole words, else 0."""
        return boundary(self.site, self.read(generated))

    def head(self, generated: str, num_chars: int) -> int:
        """How much of the first `num_chars` to keep, seeing what follows them: as `boundary`."""
        return head(self.site, generated, num_chars)

    def read(self, generated: str) -> Reading:
        """The scan of generated text that the rules share."""
        return self.site.read(generated)

    def _is_definition(self, text: str) -> bool:
        if text not in self._definitions:
            self._definitions[text] = self.syntax.ends_with_definition(text)
        return self._definitions[text]


def load_grammar(language: str) -> None:
    """Load what the first completion in a language would otherwise wait for, 15 to 30 ms once."""
    rules = StopRules(CursorContext("", "", language))
    rules.syntax.ends_with_definition("x")


def _seen(fire: Fire) -> int:
    return fire.seen
