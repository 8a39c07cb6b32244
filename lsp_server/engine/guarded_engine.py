"""The guard around an engine: its errors are returned and reported, and never end its thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from completion_engine.errors import RemoteError, SlipstreamError
from completion_engine.request import CancelledError, Progress
from lsp_server.engine.engine_types import (
    Closable,
    Completer,
    EngineStatus,
    Load,
    NoEngineError,
    failed_status,
)

logger = logging.getLogger(__name__)

R = TypeVar("R")


class GuardedEngine:
    """At most one engine, `engine`, from its loading to its end. Used on one thread.

    Every exception counts as the engine's error, BaseException included, because libraries raise panics that
    are not an Exception.
    """

    def __init__(self) -> None:
        self.engine: Completer | None = None

    def load(self, load: Load, report: Progress, is_outdated: Callable[[], bool]) -> EngineStatus | None:
        """Load an engine. Return the state after a failure; None if no user needs to receive it."""
        try:
            self.engine = load(report, is_outdated)
        except CancelledError:
            return None
        except SlipstreamError as error:
            return EngineStatus("error", error.message, error.advice)
        except BaseException as error:
            logger.exception("The engine cannot be loaded")
            return failed_status(error)
        return None

    def unload(self) -> None:
        """Drop the engine; there is none until another one is loaded."""
        engine, self.engine = self.engine, None
        if isinstance(engine, Closable):
            engine.close()

    def call(
        self, function: Callable[[Completer], R], on_failure: Callable[[BaseException], None]
    ) -> R | BaseException:
        """Return what a function of the engine returns, or its error; `on_failure` also gets a bug."""
        if self.engine is None:
            return NoEngineError()
        try:
            return function(self.engine)
        except (CancelledError, RemoteError) as error:
            return error
        except BaseException as error:
            on_failure(error)
            return error
