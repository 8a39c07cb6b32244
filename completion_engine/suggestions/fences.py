"""Owns how a model ends code in a chat: with a fence of three backticks. Knows no other habit of models."""

from __future__ import annotations

from completion_engine.suggestions.rules import Fire
from completion_engine.suggestions.site import Reading, Site

_FENCE = "```"


def ends_fence(site: Site, reading: Reading) -> Fire | None:
    """Fires when a line of code begins with a fence: no statement does, so the code ends before it."""
    if site.language.holds_text:
        return None
    for index, line in enumerate(reading.lines):
        if line.inside or (index == 0 and not site.is_blank_line):
            continue
        text = reading.text[line.start : line.end]
        start = line.start + len(text) - len(text.lstrip())
        if reading.text.startswith(_FENCE, start):
            return Fire(start + len(_FENCE), max(0, line.start - 1), "chat-fence")
    return None
