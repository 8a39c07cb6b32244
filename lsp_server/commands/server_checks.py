"""The doctor's look at a team's servers: whether they answer, use our tokens, and keep the token private.

Connects as the server does when it loads, and completes a text of its own. Must not send any of a person's
text.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from completion_engine.errors import SlipstreamError
from lsp_server.commands.machine_checks import Check

if TYPE_CHECKING:
    from completion_engine.remote.completer import RemoteCompleter
    from completion_engine.request import Progress
    from lsp_server.workspace.settings import Settings

# The last word is typed in part, as it usually is when a suggestion is requested.
_TEXT = ("def add(first, second):\n    return first + second\n\n\nresult = ad", "\nprint(result)\n")
_NUM_TOKENS = 8
_PATIENCE_MS = 60_000.0  # a server's first answer after its start may take that long


def server_checks(settings: Settings, report: Progress) -> list[Check]:
    """Check the servers that the settings name; nothing if they name none."""
    if not settings.remote.url:
        return []
    from completion_engine.models import ModelStore  # noqa: PLC0415 - not needed for help
    from completion_engine.prompting.tokenizer import load_tokenizer  # noqa: PLC0415 - as above
    from completion_engine.remote.completer import RemoteCompleter  # noqa: PLC0415 - as above
    from completion_engine.remote.outbound_text import LEAVES  # noqa: PLC0415 - as above
    from lsp_server.engine.pool import remote_config, tokenizer_folder  # noqa: PLC0415 - as above

    try:
        folder = tokenizer_folder(settings, lambda name: ModelStore().ensure(name, report))
        tokenizer = load_tokenizer(folder)
        begin = time.perf_counter()
        completer = RemoteCompleter.load(remote_config(settings), tokenizer, report)
    except SlipstreamError as error:
        return [Check("servers", "missing", error.message, error.advice)]
    connected_ms = (time.perf_counter() - begin) * 1e3
    engine = completer.describe()
    answers = _answer_check(completer, settings.patience_ms)
    completer.close()
    who = engine["remote"]["servers"]
    found = f"{who} serves {engine['target']}, with our tokenizer, after {connected_ms:.0f} ms"
    return [Check("servers", "ok", found), answers, Check("what leaves", "ok", f"{LEAVES}, to {who}")]


def _answer_check(completer: RemoteCompleter, patience_ms: float) -> Check:
    """Time a second answer, because the first one may be the first since the server started."""
    from completion_engine.request import CompletionRequest  # noqa: PLC0415 - as above

    try:
        for document in ("first", "second"):
            begin = time.perf_counter()
            request = CompletionRequest(*_TEXT, "python", document, indexed_as="check.py")
            limits: dict[str, Any] = {"deadline_ms": 0, "patience_ms": _PATIENCE_MS, "eagerness": 0.99}
            limits |= {"max_tokens": _NUM_TOKENS, "may_leave": True}
            answer = completer.complete(replace(request, **limits))
            took_ms = (time.perf_counter() - begin) * 1e3
    except SlipstreamError as error:
        return Check("their answers", "missing", error.message, error.advice)
    is_told = any(probability < 1 for probability in answer.forecast.probabilities)
    told = "return probabilities" if is_told else "return no probabilities, so eagerness has no effect"
    found = f"take {took_ms:.0f} ms for a few tokens, and {told}"
    if took_ms <= patience_ms:
        return Check("their answers", "ok", found)
    advice = (
        f"Requests wait at most {patience_ms:.0f} ms. Raise patienceMs, or ask the servers' administrator."
    )
    return Check("their answers", "slow", found, advice)
