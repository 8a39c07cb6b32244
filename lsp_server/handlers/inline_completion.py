"""`textDocument/inlineCompletion`, and `textDocument/completion` for clients without it.

A request is checked against the settings, completed by the scheduler, and offered if the document still fits.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Literal

from lsprotocol import types

from completion_engine.request import Completion, CompletionRequest, CompletionSegment
from completion_engine.text_window import MAX_CHARS_BEFORE, without_surrogates
from lsp_server.engine.engine_types import empty
from lsp_server.engine.scheduler import SupersededError
from lsp_server.handlers.prefetching import request_for, suppressed_in, want_context
from lsp_server.protocol import lsp_conversion
from lsp_server.protocol.lsp_conversion import line_column_of
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.workspace.documents import DocumentSnapshot, LineColumn, plain_newlines
from lsp_server.workspace.edit_log import restores
from lsp_server.workspace.leave_rules import hides_secrets
from lsp_server.workspace.measurements import Answered
from lsp_server.workspace.offers import CompletionRecord, Offer, fitted
from lsp_server.workspace.settings import Settings

# The editor while the user types, the user or the editor where a client does not say, the user for certain.
TriggerKind = Literal["by typing", "maybe", "to choose"]


@dataclass(frozen=True, slots=True)
class Selected:
    """The selected item of the editor's own completion list, whose `text` replaces a range."""

    start: LineColumn
    end: LineColumn
    text: str


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """The client's own part of a request: the item that is selected, and limits in place of the settings'.

    A `deadline_ms` of 0 waits for the whole suggestion; `max_tokens` only lowers the setting.
    """

    selected: Selected | None = None
    deadline_ms: float | None = None
    max_tokens: int | None = None


NO_LIMITS = ClientLimits()
NUM_CANDIDATES = 3  # suggestions to choose from for an explicit request


async def inline_completion(
    server: SlipstreamServer, params: types.InlineCompletionParams
) -> types.InlineCompletionList:
    """Return at most one suggestion, or several for an explicit request."""
    is_invoked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
    asked: TriggerKind = "to choose" if is_invoked else "by typing"
    uri, place = params.text_document.uri, line_column_of(params.position)
    selected = None
    if (info := params.context.selected_completion_info) is not None:
        selected = Selected(line_column_of(info.range.start), line_column_of(info.range.end), info.text)
    offers = await suggest(server, uri, place, asked, ClientLimits(selected))
    return lsp_conversion.inline_completions(offers, server.session.encoding)


async def completion(server: SlipstreamServer, params: types.CompletionParams) -> types.CompletionList:
    """Return the same suggestions as items of the completion list."""
    kind = params.context.trigger_kind if params.context else types.CompletionTriggerKind.Invoked
    uri, place = params.text_document.uri, line_column_of(params.position)
    # Typing a word requests with `Invoked` too: only after other characters it is certainly the user.
    asked: TriggerKind = "by typing"
    if kind == types.CompletionTriggerKind.Invoked:
        asked = "maybe" if server.session.is_behind_word(uri, place) else "to choose"
    return lsp_conversion.completions(await suggest(server, uri, place, asked), server.session.encoding)


async def suggest(
    server: SlipstreamServer,
    uri: str,
    place: LineColumn,
    asked: TriggerKind,
    given: ClientLimits = NO_LIMITS,
) -> tuple[Offer, ...]:
    """Return the suggestions at a cursor, best first; they continue the selected item.

    Raises CancelledError when the client cancelled, or sent a newer request: no client waits for this one.
    """
    begin = time.perf_counter()
    session, selected = server.session, given.selected
    session.measurements.num_requests += 1
    server.prefetch_timer.requested(by_itself=asked == "by typing", has_selection=selected is not None)
    snapshot = session.snapshot(uri, place)
    if snapshot is None:
        return ()
    ahead = _rest_of(server, selected, snapshot) if selected else ""
    turn = server.scheduler.take_turn()
    try:
        await server.open_files.identified(uri)
    except asyncio.CancelledError:
        session.measurements.num_cancelled += 1
        raise
    if uri not in session.documents:
        return ()  # it was closed meanwhile
    settings = session.settings_for(uri)
    if rule := session.refusal(uri, snapshot.language, is_invoked=asked != "by typing"):
        _remember(
            server, [CompletionRecord(session.offers.next_id(), snapshot, empty(rule), is_triggered=False)]
        )
        return ()
    request = request_for(server, replace(snapshot, prefix=snapshot.prefix + ahead), settings)
    is_repeated = session.offers.last_at(snapshot) is not None
    request = replace(_as_asked(request, asked, settings, given), is_repeated=is_repeated)
    if settings.remote.url:
        location, exclude = session.location_of(uri), settings.index.exclude
        is_allowed = await server.leave_rules.allow(location, exclude)
        if (document := session.documents.get(uri)) is None:
            return ()  # it was closed meanwhile
        request = replace(request, may_leave=is_allowed and not hides_secrets(document, snapshot))
    deleted = session.deleted_at(snapshot) if asked == "by typing" else ""
    completion = await _complete(server, snapshot, request, turn)
    if restores(completion.text, deleted):
        completion = replace(completion, text="", segments=(), rule="just-deleted")
    completion = server.growth.answered(snapshot, place, request, completion)
    want_context(server, snapshot, request)
    offers = _offers(server, snapshot, completion, ahead)
    _measure(server, snapshot, offers, completion, (time.perf_counter() - begin) * 1000)
    return offers


def _as_asked(
    request: CompletionRequest, asked: TriggerKind, settings: Settings, given: ClientLimits
) -> CompletionRequest:
    """Suppress automatic suggestions at positions that the settings exclude; an explicit request gets
    several, unfiltered.
    """
    if given.deadline_ms is not None:
        request = replace(request, deadline_ms=given.deadline_ms)
    if given.max_tokens is not None:
        request = replace(request, max_tokens=min(given.max_tokens, request.max_tokens))
    if asked == "by typing":
        return replace(request, suppressed_in=suppressed_in(settings))
    if asked == "to choose":
        return replace(request, num_candidates=NUM_CANDIDATES, eagerness=1.0, is_explicit=True)
    return request


async def _complete(
    server: SlipstreamServer, snapshot: DocumentSnapshot, request: CompletionRequest, turn: int
) -> Completion:
    """Return the engine's completion. Raises as `suggest`, after remembering a superseded request."""
    try:
        return await server.scheduler.complete(request, turn)
    except SupersededError:
        offers = server.session.offers
        offers.remember(
            CompletionRecord(offers.next_id(), snapshot, empty("superseded"), outcome="superseded")
        )
        raise asyncio.CancelledError from None


def _measure(
    server: SlipstreamServer,
    snapshot: DocumentSnapshot,
    offers: tuple[Offer, ...],
    completion: Completion,
    response_ms: float,
) -> None:
    server.session.measurements.add_response(response_ms)
    if offers:
        best = offers[0]
        before = snapshot.prefix[-MAX_CHARS_BEFORE:]
        server.session.measurements.last = Answered(best.id, before, best.text, response_ms, completion.stats)


def _rest_of(server: SlipstreamServer, selected: Selected, snapshot: DocumentSnapshot) -> str:
    """Return the text that the selected item adds to the typed text; nothing where it would change that."""
    document, encoding = server.session.documents[snapshot.uri], server.session.encoding
    start, end = document.place(selected.start, encoding), document.place(selected.end, encoding)
    if end != (snapshot.line, snapshot.column) or start[0] != snapshot.line:
        return ""
    typed = document.content(snapshot.line)[start[1] : snapshot.column]
    rest = selected.text.removeprefix(typed) if selected.text.startswith(typed) else ""
    return without_surrogates(plain_newlines(rest))


def _offers(
    server: SlipstreamServer, snapshot: DocumentSnapshot, completion: Completion, ahead: str
) -> tuple[Offer, ...]:
    """Return the distinct candidates that fit the document now; each is remembered by its own id."""
    session = server.session
    offers: dict[str, Offer] = {}
    records: list[CompletionRecord] = []
    for rank, candidate in enumerate((completion, *completion.alternatives)):
        whole = replace(candidate, alternatives=())
        if ahead and whole.text:
            segments = (CompletionSegment(ahead, "selected"), *whole.segments)
            whole = replace(whole, text=ahead + whole.text, segments=segments)
        record = CompletionRecord(session.offers.next_id(), snapshot, whole, rank=rank)
        offer = fitted(session.documents.get(snapshot.uri), record.id, snapshot, whole)
        if offer is not None:
            record = replace(record, text=offer.text)
            offers.setdefault(offer.text, offer)
        elif whole.text:
            record = replace(record, outcome="document-changed")
        records.append(record)
    _remember(server, records)
    return tuple(offers.values())


def _remember(server: SlipstreamServer, records: list[CompletionRecord]) -> None:
    """Remember the candidates of one request, best first, and count the request."""
    for record in records:
        server.session.offers.remember(record)
    best, measurements = records[0], server.session.measurements
    if best.completion.stats.device:
        measurements.add_completion(best.completion.stats)
    if any(record.text for record in records):
        measurements.num_answered += 1
        return
    measurements.num_empty += 1
    measurements.num_outdated += best.outcome == "document-changed"
    measurements.rules[best.outcome or best.completion.rule or "nothing"] += 1
