"""The names of the rules, the sentence that `why` shows for each, and the record of a decision."""

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
    "single-line": "The suggestion has one line: text follows the cursor, or multi-line suggestions are off.",
    "end-of-statement": "The statement at the cursor is complete.",
    "end-of-block": "The block at the cursor is complete.",
    "end-of-definition": "The definition at the cursor is complete.",
    "end-of-paragraph": "A blank line ends the group of lines at the cursor.",
    "unmatched-bracket": "The next bracket would have no partner, or the partner of one after the cursor.",
    "rest-of-line-reached": "The suggestion contains the rest of the line.",
    "repeats-suffix": "The suggestion would repeat the text after the cursor.",
    "repeats-next-line": "The suggestion would repeat the next line.",
    "repeats-line-above": "The suggestion would repeat the line above.",
    "repeated-lines": "The model wrote the same lines three times.",
    "repeated-text": "The model repeated itself within a line.",
    "chat-fence": "The model ended the code with three backticks, as in a chat.",
    "undecodable-text": "The model wrote a character that is not valid text. The suggestion ends before it.",
    "does-not-fit-rest-of-line": "The suggestion would break the rest of the line.",
    "no-change": "The suggestion would change nothing.",
    "blank": "The suggestion would contain nothing but blanks.",
    "out-of-time": "No part was ready within the time of the settings deadlineMs and patienceMs.",
    "nothing-to-add": "The model had nothing to add.",
    "unknown-name": "The next name is in neither this file nor the repository, so it is probably wrong.",
    "in-comment": "The cursor is in a comment, and the setting suggestInComments is off.",
    "in-string": "The cursor is in a string, and the setting suggestInStrings is off.",
    "unsure": "The next text is less likely to be right than the setting eagerness asks for.",
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
