"""The composition root: which engine, which streams. Nothing else builds these."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from importlib import metadata

from completion_engine.config import EngineConfig
from lsp_server.engine_thread import Completer, Load, Report
from lsp_server.folder_worker import TokenSource
from lsp_server.handlers import register
from lsp_server.server import SlipstreamServer
from lsp_server.settings import Settings
from lsp_server.transport import claim_stdio

logger = logging.getLogger(__name__)

# A thread that waits for the interpreter gets it within this; the default of 5 ms is felt while typing.
SWITCH_INTERVAL_S = 0.0005


def serve_stdio() -> None:
    """Serve one editor on standard input and output, then leave with its exit code."""
    stdin, stdout = claim_stdio()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.ERROR)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    server = SlipstreamServer(version(), load_for)
    register(server)
    try:
        code = asyncio.run(server.serve(stdin, stdout))
    except KeyboardInterrupt:
        code = 130
    if not server.has_stopped:
        # A thread is deep in a library, and the interpreter's end under its feet may crash or hang.
        logger.warning("Background work did not stop in time and is abandoned")
        logging.shutdown()
        os._exit(code)
    sys.exit(code)


def version() -> str:
    """The installed package's version."""
    try:
        return metadata.version("slipstream-completion")
    except metadata.PackageNotFoundError:
        return "0"


def load_for(settings: Settings, on_tokens: Callable[[TokenSource], None]) -> Load:
    """How to load the engine that `settings` ask for. Its tokenizer is announced before the model is read."""

    def load(report: Report, should_stop: Callable[[], bool]) -> Completer:
        # All of these together take seconds to import, and the editor waits for its first answer meanwhile.
        from completion_engine.models import ModelStore  # noqa: PLC0415
        from completion_engine.tokenizer import load_tokenizer  # noqa: PLC0415

        config = engine_config(settings)
        folder = ModelStore().ensure(config.target, report, should_stop)
        tokenizer = load_tokenizer(folder)
        on_tokens(TokenSource(tokenizer.fingerprint, tokenizer.encode_many))
        from completion_engine.engine import CompletionEngine  # noqa: PLC0415

        return CompletionEngine.load(config, report, should_stop)

    return load


def engine_config(settings: Settings) -> EngineConfig:
    """The engine's part of the settings. Raises UserError for what this version cannot do."""
    return EngineConfig(
        target=settings.target,
        drafters=settings.drafters,
        draft_model=settings.draft_model,
        device=settings.device,
        dtype=settings.dtype,
    )
