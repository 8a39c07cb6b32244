"""Text of a replay's suggestions that the file will not hold, and right text that deadlines cut off.

Watches a player's answers as they arrive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lsp_server.commands.player import Answer
from lsp_server.commands.replay_report import ratio
from lsp_server.scripted_typing.screen import ShownSuggestion
from lsp_server.scripted_typing.typist import Typist


def num_left_of_line(typist: Typist, suggestion: ShownSuggestion) -> int:
    """Number of characters that the line holds after a suggestion; 0 after a wrong one."""
    num_right = typist.num_right_chars(suggestion)
    if typist.num_wrong or num_right < len(suggestion.text):
        return 0
    start = typist.offset + num_right
    end = typist.plan.text.find("\n", start)
    return (typist.plan.end if end < 0 else end) - start


@dataclass(slots=True)
class ShownWrong:
    """Sums over the answers of one run: text shown wrong, and text that deadlines cut off."""

    num_chars_wrong: int = 0
    num_shown_warm: int = 0
    num_cut: int = 0
    num_cut_within_right_line: int = 0
    num_chars_lost: int = 0
    _seen: tuple[int, str] = (0, "")

    def add(self, answer: Answer, typist: Typist) -> None:
        """Count one answer, before the typist reacts to it."""
        if answer.suggestion is None:
            return
        seen, self._seen = self._seen, typist.wrong_part(answer.suggestion)
        self.num_chars_wrong += len(self._seen[1]) if self._seen != seen else 0
        if not answer.is_first:
            self.count_warm(answer, num_left_of_line(typist, answer.suggestion))

    def count_warm(self, answer: Answer, num_left: int) -> None:
        """Count a warm suggestion; `num_left` characters of the line follow it, if it is right."""
        self.num_shown_warm += 1
        if answer.stats.get("finish_reason") == "deadline":
            self.num_cut += 1
            self.num_cut_within_right_line += bool(num_left)
            self.num_chars_lost += num_left

    def as_dict(self, num_chars: int) -> dict[str, Any]:
        """The figures, for `num_chars` typed characters."""
        return {
            "num_chars_shown_wrong": self.num_chars_wrong,
            "shown_wrong_per_100": ratio(100 * self.num_chars_wrong, num_chars),
            "whole": {
                "share_whole": ratio(self.num_shown_warm - self.num_cut, self.num_shown_warm),
                "num_cut": self.num_cut,
                "num_cut_within_right_line": self.num_cut_within_right_line,
                "num_chars_lost": self.num_chars_lost,
            },
        }


def key_figures(result: Mapping[str, Any], num_keys: int) -> dict[str, Any]:
    """The key presses saved, of the `num_keys` that are needed without suggestions.

    They are fewer than the characters, because a line's indentation comes with Enter.
    """
    num_takes = result["num_accepted"] + result["num_partially_accepted"]
    num_pressed = (
        result["num_requests"] - num_takes
    )  # a request follows each key, and each accepted suggestion
    return {
        "num_keys": num_keys,
        "share_keys_not_pressed": ratio(num_keys - num_pressed, num_keys),
        "share_keys_spared": ratio(num_keys - num_pressed - num_takes, num_keys),
    }
