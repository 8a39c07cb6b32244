"""Every suggestion is judged by what was written in its place; what comes of that, the next ones are read by.

Knows settings, the session and what was learned. Must not know protocol types.
"""

from __future__ import annotations

from completion_engine.calibration import SHIPPED, Calibration
from completion_engine.request import CompletionRequest
from completion_engine.stats import Completion
from lsp_server.server import SlipstreamServer
from lsp_server.workspace.documents import DocumentSnapshot
from lsp_server.workspace.settings import Settings


def calibration_for(server: SlipstreamServer, settings: Settings) -> Calibration:
    """How the running target's own estimates are read."""
    if server.learned is None or not settings.learn_from_use:
        return SHIPPED
    return server.learned.calibration_of(str(server.scheduler.status.details.get("target", "")))


def learn(server: SlipstreamServer, now: DocumentSnapshot, settings: Settings) -> None:
    """Judge what was foretold on the lines that the cursor has left."""
    learned, document = server.learned, server.session.documents.get(now.uri)
    if learned is None or document is None or not settings.learn_from_use:
        return
    for target, token in server.session.outcomes.judged(document, now):
        learned.add(target, token.share, is_right=token.is_right)
    learned.store_if_due()


def foretell(
    server: SlipstreamServer, now: DocumentSnapshot, request: CompletionRequest, completion: Completion
) -> None:
    """Have a completion judged later, where that is wanted and it says how likely its tokens are."""
    stats = completion.stats
    is_wanted = server.learned is not None and server.session.settings_for(now.uri).learn_from_use
    is_ours = stats.device == "cpu" and not request.temperature
    if is_wanted and is_ours and not stats.is_provisional:
        server.session.outcomes.expect(stats.target, now, completion.forecast)
