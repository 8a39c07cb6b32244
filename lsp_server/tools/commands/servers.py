"""The doctor's look at a team's servers: are they there, do they speak our tokens, is the token private?

Asks them once, as the server does when it loads. Must not send any of a person's text.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from completion_engine.errors import SlipstreamError
from lsp_server.tools.commands.check import Check

if TYPE_CHECKING:
    from completion_engine.request import Progress
    from lsp_server.workspace.settings import Settings


def server_checks(settings: Settings, report: Progress) -> list[Check]:
    """What the settings name, and what answers there; nothing where they name nobody."""
    if not settings.remote.url:
        return []
    from completion_engine.models import ModelStore  # noqa: PLC0415 - not needed for help
    from completion_engine.prompting.tokenizer import load_tokenizer  # noqa: PLC0415 - as above
    from completion_engine.remote.completer import RemoteCompleter  # noqa: PLC0415 - as above
    from completion_engine.remote.leaving import LEAVES  # noqa: PLC0415 - as above
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
    completer.close()
    who = engine["remote"]["servers"]
    found = f"{who} serves {engine['target']}, with our tokenizer, after {connected_ms:.0f} ms"
    return [Check("servers", "ok", found), Check("what leaves", "ok", f"{LEAVES}, to {who}")]
