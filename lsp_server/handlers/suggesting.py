"""From a place in a document to a suggestion that fits: the way all completion requests go.

Asks the settings whether a completion is wanted, the scheduler for it, and the session whether it still
fits. Must not know protocol types.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from completion_engine.request import CompletionRequest
from completion_engine.stats import Completion, Piece
from lsp_server.documents import Place, Snapshot
from lsp_server.scheduling import SupersededError, empty
from lsp_server.server import SlipstreamServer
from lsp_server.session import Offer, Record
from lsp_server.settings import Settings


@dataclass(frozen=True, slots=True)
class Selected:
    """The item that is selected in the editor's own completion list: `text` is to replace a range."""

    start: Place
    end: Place
    text: str


async def suggest(
    server: SlipstreamServer,
    uri: str,
    place: Place,
    *,
    is_invoked: bool,
    selected: Selected | None = None,
) -> tuple[Offer, ...]:
    """What to offer at a place: nothing, or one suggestion, which goes on from what is `selected`.

    Raises SupersededError when a newer request came, CancelledError when the client cancelled.
    """
    begin = time.perf_counter()
    session = server.session
    session.measurements.num_requests += 1
    snapshot = session.snapshot(uri, place)
    if snapshot is None:
        return ()
    record_id = session.next_id()
    settings = session.settings_for(uri)
    if rule := refusal(settings, snapshot, is_invoked=is_invoked):
        _remember(server, Record(record_id, snapshot, empty(rule), is_triggered=False))
        return ()
    ahead = _rest_of(server, selected, snapshot) if selected else ""
    request = request_for(server, replace(snapshot, prefix=snapshot.prefix + ahead), settings)
    try:
        completion = _after(ahead, await server.scheduler.complete(request))
    except SupersededError:
        session.remember(Record(record_id, snapshot, empty("superseded"), outcome="superseded"))
        raise
    offer = session.offer(record_id, snapshot, completion)
    _remember(server, _record(record_id, snapshot, completion, offer))
    session.measurements.response_ms.append((time.perf_counter() - begin) * 1000)
    return (offer,) if offer else ()


def refusal(settings: Settings, snapshot: Snapshot, *, is_invoked: bool) -> str:
    """The name of the rule by which no completion is wanted here, or nothing."""
    if not settings.is_enabled_for(snapshot.language):
        return "language-disabled"
    if settings.trigger == "manual" and not is_invoked:
        return "trigger-manual"
    return ""


def request_for(server: SlipstreamServer, snapshot: Snapshot, settings: Settings) -> CompletionRequest:
    """What the engine is asked for this place."""
    folder = server.session.folder_of(snapshot.uri)
    return CompletionRequest(
        prefix=snapshot.prefix,
        suffix=snapshot.suffix,
        language=snapshot.language,
        document=server.session.document_name(snapshot.uri),
        index=server.indexing.index_of(folder) if folder else None,
        max_tokens=settings.max_tokens,
        deadline_ms=settings.deadline_ms,
        patience_ms=settings.patience_ms,
        multiline=settings.multiline,
        temperature=settings.temperature,
    )


def _rest_of(server: SlipstreamServer, selected: Selected, snapshot: Snapshot) -> str:
    """What the selected item adds to what is typed; nothing where it would change that."""
    document, encoding = server.session.documents[snapshot.uri], server.session.encoding
    start, end = document.place(selected.start, encoding), document.place(selected.end, encoding)
    if end != (snapshot.line, snapshot.column) or start[0] != snapshot.line:
        return ""
    typed = document.content(snapshot.line)[start[1] : snapshot.column]
    return selected.text.removeprefix(typed) if selected.text.startswith(typed) else ""


def _after(ahead: str, completion: Completion) -> Completion:
    """`completion` with the selected item's rest in front of it."""
    if not ahead or not completion.text:
        return completion
    pieces = (Piece(ahead, "selected"), *completion.pieces)
    return replace(completion, text=ahead + completion.text, pieces=pieces)


def _record(record_id: str, snapshot: Snapshot, completion: Completion, offer: Offer | None) -> Record:
    if offer is not None:
        return Record(record_id, snapshot, completion, text=offer.text)
    return Record(record_id, snapshot, completion, outcome="document-changed" if completion.text else "")


def _remember(server: SlipstreamServer, record: Record) -> None:
    """Keep the record and count it."""
    server.session.remember(record)
    measurements = server.session.measurements
    if record.completion.stats.device:
        measurements.add_completion(record.completion.stats)
    if record.text:
        measurements.num_answered += 1
        return
    measurements.num_empty += 1
    measurements.num_outdated += record.outcome == "document-changed"
    measurements.rules[record.outcome or record.completion.rule or "nothing"] += 1
