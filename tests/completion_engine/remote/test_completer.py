"""The completer on a server that writes by the tiny target: what the local engine would have said."""

from __future__ import annotations

from collections.abc import Callable

from completion_engine.engine import CompletionEngine
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.request import CompletionRequest
from tests.remote_server import RemoteServer


def test_an_answer_is_the_local_engine_s(
    completer: RemoteCompleter,
    make_engine: Callable[..., CompletionEngine],
    request_at: Callable[..., CompletionRequest],
    server: RemoteServer,
) -> None:
    local = make_engine(drafters=(), context_tokens=0)
    for prefix in ("def mul", "import os\n\nfor name in os.", "class Loan:\n    ", "x = "):
        request = request_at(prefix)
        ours, theirs = completer.complete(request), local.complete(request)
        assert (ours.text, ours.num_replaced, ours.rule) == (theirs.text, theirs.num_replaced, theirs.rule)
        assert ours.stats.num_tokens == theirs.stats.num_tokens
    assert server.num_connections == 1
