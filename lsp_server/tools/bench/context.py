"""What an editor would have in front of a request after a moment's rest. Knows no measurement."""

from __future__ import annotations

from collections.abc import Collection

from completion_engine.context.choosing import INGREDIENTS, CursorLocation, choose
from completion_engine.context.repository_view import RepositoryView
from completion_engine.engine import CompletionEngine
from completion_engine.request import CompletionRequest, RepositoryContext
from completion_engine.text_window import TextWindow
from lsp_server.workspace.context_jobs import CHARS_OF_TOKEN


def context_of(
    engine: CompletionEngine,
    request: CompletionRequest,
    repository: str,
    ingredients: Collection[str] = INGREDIENTS,
) -> RepositoryContext | None:
    """The pieces of the request's index that stand in front of its document; None without an index."""
    if request.index is None:
        return None
    path, tokenizer = request.indexed_as or request.document, engine.tokenizer
    view = RepositoryView(request.index, tokenizer.encode_many, tokenizer.spell, repository, path)
    described = engine.describe()
    window = TextWindow(*described["window_chars"])
    location = CursorLocation(path, request.language, request.prefix, request.suffix, window)
    return choose(location, view, int(described["num_context_tokens"] * CHARS_OF_TOKEN), ingredients)
