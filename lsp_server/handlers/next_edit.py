"""`textDocument/copilotInlineEdit`: the next edit, in the form that clients of other servers already use.

Collects the recent edits and the open documents, passes the request to the scheduler where syntax trees do
not decide, and checks that the answer still fits.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import Any

from pygls.exceptions import JsonRpcInvalidParams

from completion_engine.next_edit.certain_edits import FilesHolding, all_certain_edits, certain_edit, no_files
from completion_engine.next_edit.edits import EditAnswer, EditDocument, EditRequest, Hunk
from lsp_server.engine.scheduler import SupersededError
from lsp_server.protocol import edit_conversion
from lsp_server.protocol.lsp_conversion import read_position
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.sharing.supervision import on_own_thread
from lsp_server.workspace.documents import Document
from lsp_server.workspace.offers import EditRecord

_INVOKED = 1  # the trigger kind of a request by hand; clients that send none request automatically
_IDENTIFIED_S = 1.0  # a document on a slow disk is left out after it
_MAX_DOCUMENTS = 8
_MAX_CHARS = 1_000_000  # characters of all documents of one request


async def next_edit(server: SlipstreamServer, params: Any) -> dict[str, Any]:
    """Return one edit or none. Raises JsonRpcInvalidParams for parameters that name no position."""
    try:
        uri, place = read_position(params)
    except (LookupError, TypeError) as error:
        raise JsonRpcInvalidParams(edit_conversion.EXPECTED) from error
    context = edit_conversion.read_context(params)
    begin_s = time.perf_counter()
    server.session.measurements.num_edit_requests += 1
    version = server.session.version_of(uri)
    is_invoked = context.trigger_kind == _INVOKED
    rule = await _refusal(server, uri, is_invoked=is_invoked)
    document = server.session.documents.get(uri)
    if rule or document is None:
        rule = rule or "unknown-document"
        _remember(server, uri, EditAnswer(rule=rule))
        return edit_conversion.no_edit(rule)
    _check_unchanged(document, version)
    line, _ = document.place(place, server.session.encoding)
    is_wide = context.takes_other_documents
    request = _request(server, document, line, is_wide=is_wide, is_invoked=is_invoked)
    versions = {it.document: server.session.version_of(it.document) for it in request.documents}
    try:
        search = all_certain_edits if context.wants_all else certain_edit
        find = partial(search, changes_files=context.takes_other_files)
        answer = await on_own_thread(find, request, _files_holding(server, uri))
        _check_unchanged(document, version)
        if answer is None:
            answer = await server.scheduler.propose_edit(request)
    except SupersededError:
        # No client waits for this one: it ends as one that the client cancelled itself.
        raise asyncio.CancelledError from None
    return _answered(server, uri, answer, versions, begin_s)


def _check_unchanged(document: Document, version: int | None) -> None:
    """Raise CancelledError if a key came during the search: no client waits for its answer."""
    if document.version != version:
        raise asyncio.CancelledError


async def _refusal(server: SlipstreamServer, uri: str, *, is_invoked: bool) -> str:
    """Return the rule by which no edit is proposed in a document; empty if there is none.

    The rules of the index are read anew: a document that they exclude by now is followed no more.
    """
    session = server.session
    document = session.documents.get(uri)
    if document is None:
        return "unknown-document"
    await server.open_files.identified(uri)
    settings = session.settings_for(uri)
    if settings.next_edit == "off":
        return "next-edit-off"
    if settings.next_edit == "manual" and not is_invoked:
        return "next-edit-manual"
    if rule := session.refusal(uri, document.language, is_invoked=True):
        return rule
    with suppress(TimeoutError):
        async with asyncio.timeout(_IDENTIFIED_S):
            for followed in session.edits.documents:
                await server.open_files.identified(followed)
    for followed in session.edits.documents:
        await server.check_followed(followed)
    return "" if session.edits.is_followed(uri) else "excluded-file"


def _request(
    server: SlipstreamServer, focused: Document, line: int, *, is_wide: bool, is_invoked: bool
) -> EditRequest:
    """Freeze the recent edits and the documents for new ones: the focused one, then those edited last."""
    session, hunks = server.session, server.session.edits.hunks()
    session.measurements.num_edits_rejected += session.proposals.pass_over(hunks)
    last_edit = {hunk.document: number for number, hunk in enumerate(hunks, 1)}
    others = [it for it in session.documents.values() if it is not focused] if is_wide else []
    frozen: list[EditDocument] = []
    num_left = _MAX_CHARS
    for document in (focused, *sorted(others, key=lambda it: -last_edit.get(it.uri, 0))):
        num_left -= document.num_chars
        if session.edits.is_followed(document.uri) and num_left > 0 and len(frozen) < _MAX_DOCUMENTS:
            path = session.location_of(document.uri).name
            frozen.append(EditDocument(document.uri, path, document.language, document.contents()))
    folder = session.location_of(focused.uri).folder
    name = folder.name if folder else ""
    return EditRequest(frozen, hunks, line, name, session.proposals.rejected, is_invoked)


def _files_holding(server: SlipstreamServer, uri: str) -> FilesHolding:
    """Return the search in files of the document's folder that are not open."""
    session, here = server.session, server.session.location_of(uri)
    if here.folder is None:
        return no_files
    places = map(session.location_of, session.followed)
    opened = frozenset(place.name for place in places if place.folder == here.folder)
    files = server.indexes.other_files(here.folder, here.name, opened)
    return files.holding if files is not None else no_files


def _answered(
    server: SlipstreamServer, uri: str, answer: EditAnswer, versions: dict[str, int | None], begin_s: float
) -> dict[str, Any]:
    """Return the answer as it fits the documents now; it is remembered and counted."""
    session, proposal = server.session, answer.proposal
    edits = (proposal.edit, *answer.others) if proposal else ()
    is_current = all(session.version_of(it.document) == versions.get(it.document) for it in edits)
    if proposal is None or not is_current:
        answer = answer if proposal is None else EditAnswer(rule="document-changed")
        _remember(server, uri, answer)
        return edit_conversion.no_edit(answer.rule)
    record = _remember(server, uri, answer, proposal.repeats)
    session.measurements.add_edit((time.perf_counter() - begin_s) * 1e3)
    return edit_conversion.some_edits(record, edits, session.documents, session.encoding)


def _remember(
    server: SlipstreamServer, uri: str, answer: EditAnswer, repeats: Hunk | None = None
) -> EditRecord:
    path = server.session.location_of(repeats.document).indexed_as if repeats else ""
    if answer.rule:
        server.session.measurements.rules[answer.rule] += 1
    return server.session.proposals.remember(uri, answer, time.monotonic(), path)
