"""The request for a cursor, and the work before a client sends one: its prompt and repository context."""

from __future__ import annotations

from dataclasses import replace

from completion_engine.request import CompletionRequest, Surroundings
from completion_engine.text_window import TextWindow
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace.documents import DocumentSnapshot, Edit, LineColumn
from lsp_server.workspace.leave_rules import hides_secrets
from lsp_server.workspace.prefetch import ContextQuery, cursor_after
from lsp_server.workspace.settings import Settings


def prefetch_after_edit(server: SlipstreamServer, uri: str, edit: Edit | None) -> None:
    """Prefetch after a typed `edit`: the editor is likely to request a suggestion in a moment."""
    place = cursor_after(edit, server.session.encoding) if edit else None
    server.prefetch_timer.document_changed(
        (lambda: prefetch(server, uri, place, writes=True)) if place else None
    )


def prefetch(server: SlipstreamServer, uri: str, place: LineColumn, *, writes: bool = False) -> None:
    """Compute the prompt at a cursor in the background, and the suggestion too where it `writes`."""
    snapshot = server.session.snapshot(uri, place)
    if snapshot is not None:
        _prefetch_at(server, snapshot, writes=writes)


def _prefetch_at(server: SlipstreamServer, snapshot: DocumentSnapshot, *, writes: bool) -> None:
    """Do nothing while it is unknown whether a team's servers or this machine will answer."""
    settings = server.session.settings_for(snapshot.uri)
    location = server.session.location_of(snapshot.uri)
    may_leave = server.leave_rules.known(location, settings.index.exclude) if settings.remote.url else False
    if may_leave is not None and not server.session.refusal(
        snapshot.uri, snapshot.language, is_invoked=False
    ):
        request = request_for(server, snapshot, settings)
        may_leave = may_leave and not hides_secrets(server.session.documents[snapshot.uri], snapshot)
        request = replace(request, suppressed_in=suppressed_in(settings), may_leave=may_leave)
        server.scheduler.prefetch(request, writes=writes)
        want_context(server, snapshot, request)


def want_context(server: SlipstreamServer, snapshot: DocumentSnapshot, request: CompletionRequest) -> None:
    """Have repository context chosen for this cursor, once it rests there and the folder is indexed."""
    folder, tokens = server.session.location_of(snapshot.uri).folder, server.indexes.tokens
    is_open = server.session.follows(snapshot.uri)  # it may have been closed since the request
    if folder is None or not is_open or not server.session.settings_for(snapshot.uri).context:
        return

    def is_current() -> bool:
        return server.session.version_of(snapshot.uri) == snapshot.version

    def begin_again() -> None:
        if is_current():
            _prefetch_at(server, snapshot, writes=False)

    server.when_indexed = begin_again if request.index is None else None
    if request.index is None:
        return
    engine = server.scheduler.status.details
    num_tokens = engine.get("num_context_tokens", 0)
    if tokens is None or not num_tokens:
        return
    window = TextWindow(*engine["window_chars"])
    server.contexts.want(ContextQuery(request, folder, tokens, num_tokens, window, is_current))


def request_for(
    server: SlipstreamServer, snapshot: DocumentSnapshot, settings: Settings
) -> CompletionRequest:
    """Return the engine's request for this cursor."""
    location = server.session.location_of(snapshot.uri)
    session = server.session
    prefix, suffix = session.notebooks.with_neighbours(snapshot, session.documents)
    # A lone cell does not show names of other cells, and beside an index they would count as unknown.
    is_alone = location.is_cell and not session.notebooks.notebook_of(snapshot.uri)
    indexed = None if is_alone else location.folder
    request = CompletionRequest(
        prefix=prefix,
        suffix=suffix,
        language=snapshot.language,
        document=server.session.document_key(snapshot.uri),
        indexed_as=location.indexed_as,
        recent_scope=server.session.recent_scope(location, is_shared=server.indexes.is_shared(location)),
        index=server.indexes.index_of(indexed) if indexed else None,
        max_tokens=settings.max_tokens,
        deadline_ms=settings.deadline_ms,
        patience_ms=settings.patience_ms,
        multiline=settings.multiline,
        repository_memory=settings.repository_memory,
        eagerness=settings.eagerness,
    )
    return replace(request, context=server.contexts.of(request)) if settings.context else request


def suppressed_in(settings: Settings) -> frozenset[Surroundings]:
    """Return the kinds of text around the cursor in which nothing is suggested automatically."""
    wanted: dict[Surroundings, bool] = {
        "comment": settings.suggest_in_comments,
        "string": settings.suggest_in_strings,
    }
    return frozenset(place for place, is_wanted in wanted.items() if not is_wanted)
