"""The composition root: which engine, which streams. Nothing else builds these."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from completion_engine.choice.choice import Choice
from completion_engine.config import DEFAULT_TARGET
from completion_engine.errors import DataError
from completion_engine.request import CancelledError, Progress
from completion_engine.runtime import seldom_collected
from lsp_server.engine.engine_types import Completer, Load, OnTokens
from lsp_server.engine.pool import EnginePool, engine_config, remote_config, tokenizer_folder
from lsp_server.handlers import register
from lsp_server.protocol.client_streams import ByteSink, claim_stdio
from lsp_server.protocol.server import SlipstreamServer
from lsp_server.sharing.host import Host
from lsp_server.sharing.listener import HostListener
from lsp_server.sharing.supervision import LINE, HostLog, on_own_thread
from lsp_server.workspace.settings import Settings
from ngram_cache.overlays import TokenSource

if TYPE_CHECKING:
    from completion_engine.choice.target_chooser import TargetChooser
    from completion_engine.models import ModelStore
    from completion_engine.prompting.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

# A thread that waits for the interpreter gets it within this; the default of 5 ms is felt while typing.
SWITCH_INTERVAL_S = 0.0005

# An engine's thread ends with the pass that it is in.
STOP_S = 3.0

# The host stays this long without windows, so that a reloaded window finds its engine ready.
LINGER_S = 60.0
LINGER_VARIABLE = "SLIPSTREAM_HOST_LINGER_S"

LOADING_STEP_S = 0.1

_loading = threading.Lock()


def serve_stdio() -> NoReturn:
    """Serve one editor on standard input and output, then leave with its exit code."""
    stdin, stdout = claim_stdio()
    _log_to(logging.StreamHandler(sys.stderr), "%(levelname)s %(name)s: %(message)s")
    _leave(_serve_one(stdin, stdout))


def serve_windows(listener: HostListener) -> NoReturn:
    """Serve all windows that connect through `listener`, until none needs the host."""
    os.dup2(2, 1)  # whatever else prints, prints into the log
    _log_to(HostLog(sys.stderr), LINE)
    _leave(_serve_all(listener, float(os.environ.get(LINGER_VARIABLE) or LINGER_S)))


class WindowService:
    """Windows of one user, each with a server of its own, on engines that they share."""

    def __init__(self, engines: EnginePool) -> None:
        self._engines = engines
        self.has_stopped = True

    @property
    def is_sick(self) -> bool:
        """See `Service`."""
        return self._engines.is_sick

    def describe(self) -> dict[str, Any]:
        """See `Service`."""
        return {"engines": self._engines.describe()}

    async def serve(self, stdin: BinaryIO, stdout: ByteSink, window: int = 0) -> int:
        """See `Service`."""
        logger.info("The window is here")
        server = SlipstreamServer(version(), self._engines, window)
        register(server)
        code = await server.serve(stdin, stdout)
        self.has_stopped &= server.has_stopped
        logger.info("The window has gone, with code %d", code)
        return code


async def _serve_one(stdin: BinaryIO, stdout: BinaryIO) -> tuple[int, bool]:
    models = MachineModels()
    engines = EnginePool(models.load_for, chooser=models)
    service = WindowService(engines)
    code = await service.serve(stdin, stdout)
    return code, await on_own_thread(engines.stop, STOP_S) and service.has_stopped


async def _serve_all(listener: HostListener, linger_s: float) -> tuple[int, bool]:
    models = MachineModels()
    engines = EnginePool(models.load_for, linger_s, models)
    service = WindowService(engines)
    await Host(listener, service, linger_s).run()
    return 0, await on_own_thread(engines.stop, STOP_S) and service.has_stopped


def _leave(serving: Coroutine[Any, Any, tuple[int, bool]]) -> NoReturn:
    """Run to the end and leave with the exit code; `serving` says too whether all threads have ended."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:  # the same one on every system
            code, has_stopped = runner.run(serving)
    except KeyboardInterrupt:
        code, has_stopped = 130, False
    if not has_stopped:
        # A thread is deep in a library, and the interpreter's end under its feet may crash or hang.
        logger.warning("Background work did not stop in time and is abandoned")
        logging.shutdown()
        os._exit(code)
    sys.exit(code)


def _log_to(handler: logging.Handler, line: str) -> None:
    logging.basicConfig(handlers=[handler], level=logging.INFO, format=line)
    logging.getLogger("pygls").setLevel(logging.ERROR)


def version() -> str:
    """The installed package's version."""
    try:
        return metadata.version("slipstream-completion")
    except metadata.PackageNotFoundError:
        return "0"


class MachineModels:
    """Engines on the models of this machine: how to load one, and which one the target `auto` is.

    All methods are called on engines' threads.
    """

    def load_for(self, settings: Settings, on_tokens: OnTokens) -> Load:
        """How to load the engine of `settings`. Its tokenizer is announced before the model is read."""

        if settings.remote.url:
            return self._remote_load(settings, on_tokens)

        config = engine_config(settings)

        def load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
            # Together these take seconds to import, and the editor waits for its first answer meanwhile.
            from completion_engine.loading.warmup import compiled_meanwhile  # noqa: PLC0415

            with compiled_meanwhile(config, report, should_stop):
                folder = self._store().ensure(config.target, report, should_stop)
                with _loading_alone(report, should_stop):
                    from completion_engine.prompting.tokenizer import load_tokenizer  # noqa: PLC0415

                    tokenizer = load_tokenizer(folder)
                    on_tokens(TokenSource(tokenizer.fingerprint, tokenizer.encode_many, tokenizer.spell))
                    from completion_engine.load_engine import load_engine_from  # noqa: PLC0415

            with _loading_alone(report, should_stop):
                chooser = self._chooser()
                with chooser.loading(config.target):
                    engine = load_engine_from(folder, config, report, tokenizer)
                chooser.record(engine.describe())
                return engine

        def load_or_repair(report: Progress, should_stop: Callable[[], bool]) -> Completer:
            try:
                return load(report, should_stop)
            except DataError:
                if not self._store().discard_damaged(config.target):
                    raise
            return load(report, should_stop)

        return with_frozen_objects(load_or_repair)

    def _remote_load(self, settings: Settings, on_tokens: OnTokens) -> Load:
        """Return how to reach the servers of `settings`.

        Only the tokenizer of their model is on this machine.
        """

        def load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
            folder = tokenizer_folder(settings, lambda name: self._store().ensure(name, report, should_stop))
            with _loading_alone(report, should_stop):
                from completion_engine.remote.completer import RemoteCompleter  # noqa: PLC0415 - see load_for

                tokenizer = _tokenizer_in(folder)
            on_tokens(TokenSource(tokenizer.fingerprint, tokenizer.encode_many, tokenizer.spell))
            return RemoteCompleter.load(remote_config(settings), tokenizer, report, should_stop)

        return with_frozen_objects(load)

    def choose(self, settings: Settings, running: str, refused: Mapping[str, str]) -> Choice:
        """See `Chooser`."""
        config = engine_config(settings.model_copy(update={"target": DEFAULT_TARGET}))
        with _loading:
            chooser = self._chooser()
        return chooser.choose(config, running, refused)

    def fetch(self, target: str, report: Progress, should_stop: Callable[[], bool]) -> None:
        """See `Chooser`."""
        self._store().ensure(target, report, should_stop)

    def _store(self) -> ModelStore:
        from completion_engine.models import ModelStore  # noqa: PLC0415 - see load_for

        return ModelStore()

    def _chooser(self) -> TargetChooser:
        from completion_engine.choice.target_chooser import TargetChooser  # noqa: PLC0415 - see load_for

        return TargetChooser(self._store())


@functools.lru_cache(maxsize=2)
def _tokenizer_in(folder: Path) -> Tokenizer:
    """Each window's way to the servers has the same one."""
    from completion_engine.prompting.tokenizer import load_tokenizer  # noqa: PLC0415 - see load_for

    return load_tokenizer(folder)


def with_frozen_objects(load: Load) -> Load:
    """Wrap `load`: after the first load, the garbage collector treats all objects as permanent.

    Modules and kernels are a quarter of a million objects. Each time the collector traverses them, all
    windows wait for some tenths of a second.
    """

    def load_and_freeze(report: Progress, should_stop: Callable[[], bool]) -> Completer:
        engine = load(report, should_stop)
        _freeze_objects()
        return engine

    return load_and_freeze


@functools.cache
def _freeze_objects() -> None:
    gc.freeze()


@contextlib.contextmanager
def _loading_alone(report: Progress, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Load one engine at a time: the libraries are not safe to import on two threads.

    Objects that are made meanwhile live as long as the engine, so little of them is garbage.
    """
    while not _loading.acquire(timeout=LOADING_STEP_S):
        report("Waiting until another model is loaded", 0, 0)
        if should_stop():
            raise CancelledError
    try:
        with seldom_collected():
            yield
    finally:
        _loading.release()
