"""Owns the rules' names, the sentence that `why` shows for each, and how a decision is written down.

Knows no rule's code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RuleName = Literal[
    "single-line",
    "end-of-statement",
    "end-of-block",
    "end-of-definition",
    "end-of-paragraph",
    "unmatched-bracket",
    "rest-of-line-reached",
    "repeats-suffix",
    "repeats-next-line",
    "repeats-line-above",
    "repeated-lines",
    "repeated-text",
    "chat-fence",
    "undecodable-text",
    "does-not-fit-rest-of-line",
    "no-change",
    "blank",
    "out-of-time",
    "nothing-to-add",
    "unsure",
    "unknown-name",
    "in-comment",
    "in-string",
]

RULES: dict[str, str] = {
    "single-line": "Text stands right of the cursor, or multi-line is off: one line is enough.",
    "end-of-statement": "The statement at the cursor is complete.",
    "end-of-block": "The block at the cursor is closed, or the next line is indented less than it.",
    "end-of-definition": "A whole definition has been written.",
    "end-of-paragraph": "A blank line ends the group of lines at the cursor.",
    "unmatched-bracket": "The next bracket would close what the text after the cursor closes, or nothing.",
    "rest-of-line-reached": "The suggestion has arrived at the rest of the line and covers it.",
    "repeats-suffix": "The suggestion began to repeat the text after the cursor.",
    "repeats-next-line": "The suggestion repeats the line that follows the cursor.",
    "repeats-line-above": "The suggestion repeats the line above the cursor.",
    "repeated-lines": "The suggestion wrote the same lines three times in a row.",
    "repeated-text": "The suggestion turned in a circle within a line.",
    "chat-fence": "The model ended the code as it does in a chat: with three backticks, which are no code.",
    "undecodable-text": "The suggestion held a character that is no text: it ends before it.",
    "does-not-fit-rest-of-line": "With the suggestion the rest of the line would not be whole.",
    "no-change": "The suggestion says what already stands at the cursor.",
    "blank": "Nothing but blanks was left of the suggestion.",
    "out-of-time": "Time was up before anything could be shown: see the settings deadlineMs and patienceMs.",
    "nothing-to-add": "The model had nothing to write here.",
    "unknown-name": "What would come is a name that neither this file nor the repository holds.",
    "in-comment": "The cursor stands in a comment, where the setting suggestInComments wants nothing.",
    "in-string": "The cursor stands in a string, where the setting suggestInStrings wants nothing.",
    "unsure": "What would come is less likely to be right than the setting eagerness asks for.",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """End the suggestion: keep the first `num_chars` characters of what was generated."""

    rule: RuleName
    num_chars: int


@dataclass(frozen=True, slots=True)
class Fire:
    """A rule's decision, made as soon as the first `seen` generated characters are known.

    It depends on those characters alone, so text that arrives later cannot change it. `keep <= seen`.
    """

    seen: int
    keep: int
    rule: RuleName
