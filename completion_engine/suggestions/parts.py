"""Rules that end a suggestion with the part at the cursor that is in another language."""

from __future__ import annotations

import re

from completion_engine.suggestions.regions import CursorRegion, Reading
from completion_engine.suggestions.rules import Fire

_HEREDOC_WORD = re.compile(r"[A-Z_][A-Z0-9_]+")


def end_of_part(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires at the end of the line that ends the cursor's embedded region, which has its own language."""
    line_start = -len(region.line_prefix)
    for event in reading.events:
        entry = event.entry
        is_part = event.kind == "close" and entry is not None and entry.pair.kind == "region"
        if event.start == event.end and not reading.text[: event.start].strip():
            continue
        if is_part and entry is not None and entry.start < line_start and event.start == event.end:
            # A line that is indented no deeper does not belong to the part.
            blanks = len(reading.text) - event.end - len(reading.text[event.end :].lstrip(" \t"))
            return Fire(event.end + blanks + 1, len(reading.text[: event.start].rstrip()), "end-of-block")
        if is_part and entry is not None and entry.start < line_start:
            end = reading.text.find("\n", event.end)
            return Fire(end + 1, end, "end-of-block") if end >= 0 else None
    return None


def ends_another_heredoc(region: CursorRegion, reading: Reading) -> Fire | None:
    """Fires at a line in a heredoc that is the closing word of another one, which the document has."""
    around = next((entry for entry in reversed(region.stack) if entry.pair.kind == "region"), None)
    if around is None or around.pair.holds != "<tag>":
        return None
    for index, line in enumerate(reading.lines):
        word = region.line_text(reading, index).strip()
        if not line.is_ended or word == around.tag or not _HEREDOC_WORD.fullmatch(word):
            continue
        if re.search(rf"<<\S{{0,2}}[ \t]*['\"]?{word}\b", region.before + region.after):
            return Fire(line.end + 1, max(0, line.start - 1), "end-of-block")
    return None
