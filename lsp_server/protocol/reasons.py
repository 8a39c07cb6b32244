"""The sentences that a person reads about a suggestion, by the names that answers carry.

Editors show the sentences that the server sends and have none of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from completion_engine.cutting.repeats import Reason
from lsp_server.engine.engine_types import EngineState

# Why a suggestion ended where it did, by the rule that cut it.
CUT_REASONS: Mapping[Reason, str] = {
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

# The reason for no suggestion, or for the end of one, by the rule that decided.
REASONS: Mapping[str, str] = {
    **{str(rule): sentence for rule, sentence in CUT_REASONS.items()},
    "engine-loading": "The model is still loading.",
    "engine-error": "Slipstream could not run the model. Run `slipstream doctor` for details.",
    "engine-failed": "The engine failed at this cursor position. The log has the details.",
    "servers-busy": "Your team's servers are busy. Continue typing, or ask again in a moment.",
    "servers-failed": "Your team's servers did not answer this request.",
    "stray-text": "Your team's servers returned text that does not fit what you typed.",
    "stays-here": "The repository's ignore rules exclude this file, so your team's servers do not get it.",
    "secret-at-cursor": "The text at the cursor looks like a secret, so your team's servers do not get it.",
    "language-disabled": "Suggestions are switched off for this language.",
    "trigger-manual": "The setting trigger is manual: suggestions appear only when you ask for them.",
    "secret-file": "Files of this name usually hold secrets, so no model reads them.",
    "unread-folder": "Slipstream has not read the settings of this folder yet.",
    "just-deleted": "You have just deleted this text. Type on, or ask for a suggestion by its key.",
    "still-writing": "Slipstream is still writing here. The text grows, or comes with the next key.",
    "superseded": "A newer request replaced this one.",
    "document-changed": "The document changed before the suggestion was ready.",
    "replaces-text": "The suggestion replaces text after the cursor, which this client cannot do.",
    "unknown-document": "This document is not open.",
    "document-too-large": (
        "This document is too large, one of its lines is too long, or a change to it could not be read."
    ),
    "unknown-suggestion": "Slipstream no longer has the record of this suggestion.",
    "next-edit-off": "The setting nextEdit is off.",
    "next-edit-manual": "The setting nextEdit is manual: edits are proposed only when you ask for one.",
    "no-recent-edit": "You have not edited anything lately that could be repeated.",
    "no-similar-place": "No other line has the text that you just changed.",
    "edit-unlikely": "The model does not expect the same edit elsewhere.",
    "edit-needs-local-model": "Your team's servers do not propose edits; a model on this machine does.",
    "excluded-file": "The repository's ignore rules exclude this file, so its edits are not followed.",
    "nothing": "The model had nothing to add.",
}

# The reason for the end of a suggestion that no rule ended.
FINISH_REASONS: Mapping[str, str] = {
    "end": "The model ended the text here.",
    "deadline": "The time of the setting deadlineMs was over.",
    "length": "The suggestion has as many tokens as the setting maxTokens allows.",
}

# The message of a state that has none of its own.
STATES: Mapping[EngineState, str] = {
    "loading": "Loading the model.",
    "ready": "Ready.",
    "error": "Slipstream could not load the model. Run `slipstream doctor` for details.",
}

SOURCES: Mapping[str, str] = {
    "target": "the model",
    "ngram": "this repository or file",
    "neural": "the trained drafter",
    "selected": "the selected item of the completion list",
}

STAGES: Mapping[str, str] = {
    "queue": "waiting in the queue",
    "prompt": "building the prompt",
    "prefill": "reading the prompt",
    "draft": "drafting",
    "verify": "verifying drafts",
    "postprocess": "fitting the text",
    "total": "total",
}


def reason_of(rule: str, finish_reason: str, *, is_shown: bool) -> str:
    """The reason for the end of a suggestion, or for none, by its rule or otherwise its finish reason."""
    if rule:
        return REASONS[rule]
    return FINISH_REASONS.get(finish_reason) or ("" if is_shown else REASONS["nothing"])


def texts(rules: Iterable[str] = ()) -> dict[str, Mapping[str, str]]:
    """The texts that editors show for the names in an answer: rules, sources of drafts, and stages."""
    known = {rule: REASONS[rule] for rule in rules if rule in REASONS}
    return {"rules": known, "sources": SOURCES, "stages": STAGES}
