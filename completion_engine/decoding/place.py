"""Where a request's cursor is, as rules and prompts see it."""

from __future__ import annotations

from completion_engine.request import CompletionRequest
from completion_engine.suggestions.cursor_context import CursorContext
from completion_engine.text_window import without_surrogates


def cursor_of(request: CompletionRequest) -> CursorContext:
    """Return the request's cursor, in text that any tokenizer takes."""
    before, after = without_surrogates(request.prefix), without_surrogates(request.suffix)
    return CursorContext(before, after, request.language, request.multiline)
