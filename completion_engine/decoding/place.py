"""Where a request's cursor is, as rules and prompts see it."""

from __future__ import annotations

from completion_engine.request import CompletionRequest
from completion_engine.suggestions.cursor_context import CursorContext


def cursor_of(request: CompletionRequest) -> CursorContext:
    """The cursor's place, in text that any tokenizer takes: lone surrogates become U+FFFD."""

    def clean(text: str) -> str:
        return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    return CursorContext(clean(request.prefix), clean(request.suffix), request.language, request.multiline)
