"""Why a suggestion ended where it did: the names, and the sentence that `why` shows for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reason = Literal[
    "single-line", "end-of-statement", "end-of-block", "end-of-paragraph", "does-not-fit", "repeats-document",
    "repeats-itself", "chat", "undecodable-text", "no-change", "too-short", "blank", "out-of-time",
    "nothing-to-add", "unsure", "unknown-name", "in-comment", "in-string",
]  # fmt: skip

CUT_REASONS: dict[str, str] = {
    "single-line": "The suggestion has one line: text follows the cursor, or multi-line suggestions are off.",
    "end-of-statement": "The statement at the cursor is complete.",
    "end-of-block": "The block at the cursor is complete.",
    "end-of-paragraph": "A blank line ends the group of lines at the cursor.",
    "does-not-fit": "The next text would not fit the code after the cursor.",
    "repeats-document": "The next text would repeat the text around the cursor.",
    "repeats-itself": "The model repeated itself.",
    "chat": "The model ended the code as in a chat.",
    "undecodable-text": "The model wrote a character that is not valid text. The suggestion ends before it.",
    "no-change": "The suggestion would change nothing.",
    "too-short": "The suggestion would have fewer than three characters.",
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
    """End the text after its first `num_chars` characters."""

    rule: Reason
    num_chars: int
