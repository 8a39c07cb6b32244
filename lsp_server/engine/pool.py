"""The engines of one process: one per configuration, and none without users.

Creates engines, adds and removes their users, and ends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from completion_engine.config import AUTO, DEFAULT_TARGET, DRAFTERS, EngineConfig
from completion_engine.remote.endpoint import RemoteConfig
from lsp_server.engine.auto_target import AutoTarget, Chooser
from lsp_server.engine.engine_types import EngineUser, LoadFor
from lsp_server.engine.shared_engine import EngineKey, EngineSlots, SharedEngine
from lsp_server.workspace.settings import Settings


def engine_key(settings: Settings) -> EngineKey:
    """Return the settings that require a separate engine. The present choice of `auto` is not one of them."""
    local = (settings.target, _drafters(settings), settings.draft_model, settings.device, settings.dtype)
    return (*local, *settings.remote.model_dump().values()) if settings.remote.url else local


def engine_config(settings: Settings) -> EngineConfig:
    """Return the engine's part of the settings. Raises UserError for values that are not supported."""
    return EngineConfig(
        target=settings.target,
        drafters=_drafters(settings),
        draft_model=settings.draft_model,
        device=settings.device,
        dtype=settings.dtype,
    )


def remote_config(settings: Settings) -> RemoteConfig:
    """Return the configuration of the team's servers in the settings."""
    return RemoteConfig(**settings.remote.model_dump())


def tokenizer_folder(settings: Settings, ensure: Callable[[str], Path]) -> Path:
    """Return the folder of the tokenizer of the servers' model: the target's, from `ensure`.

    Raises SlipstreamError as `ensure` does.
    """
    if settings.remote.tokenizer:
        return Path(settings.remote.tokenizer).expanduser()
    return ensure(DEFAULT_TARGET if settings.target == AUTO else settings.target)


def _drafters(settings: Settings) -> tuple[str, ...]:
    """Return the drafters to use, sorted and without repetition."""
    return tuple(name for name in DRAFTERS if name in settings.drafters)


class EnginePool:
    """The engines of one process. Used on the event loop only, except where a method says otherwise.

    An engine without users is kept for `linger_s`, so that a reloaded window finds it ready, but never beside
    one that replaces it.
    """

    def __init__(self, load_for: LoadFor, linger_s: float = 0.0, chooser: Chooser | None = None) -> None:
        """`chooser` selects the model of the target `auto`; without it, `load_for` does."""
        self._load_for = load_for
        self._chooser = chooser
        self._linger_s = linger_s
        self._entries: dict[EngineKey, SharedEngine] = {}
        self._used: dict[EngineUser, SharedEngine] = {}
        self._slots = EngineSlots()

    @property
    def is_busy(self) -> bool:
        """Whether any engine has a completion to write. May be read from any thread."""
        return any(entry.thread.is_busy for entry in tuple(self._entries.values()) if not entry.is_remote)

    @property
    def is_sick(self) -> bool:
        """Whether an engine is in a state that only a new process can end."""
        return any(entry.thread.is_sick for entry in self._entries.values())

    def use(self, settings: Settings, user: EngineUser) -> SharedEngine:
        """Return the engine for these settings; `user` stops using its previous one.

        An engine that could not be loaded is loaded again, for all its users.
        """
        is_change = user in self._used
        self.release(user)
        key = engine_key(settings)
        if settings.remote.url:
            key = (*key, user)  # separate per window, because a round trip to servers blocks the thread
        entry = self._entries.get(key)
        if is_change or entry is None:
            for unused in [it for it in self._entries.values() if not it.thread.users and it is not entry]:
                self._drop(unused)
        if entry is None:
            auto_target = None
            if settings.target == AUTO and self._chooser is not None and not settings.remote.url:
                auto_target = AutoTarget(settings, self._chooser, self._load_for)
            entry = SharedEngine(key, auto_target, self._slots, is_remote=bool(settings.remote.url))
            entry.start(auto_target.load_first if auto_target else partial(self._load_for, settings))
            self._entries[key] = entry  # only now, because starting a thread may have failed
        elif entry.thread.status.state == "error":
            entry.reload()
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        self._used[user] = entry
        entry.thread.join_in(user)
        return entry

    def release(self, user: EngineUser) -> None:
        """Remove `user` from its engine, if it has one."""
        entry = self._used.pop(user, None)
        if entry is None:
            return
        entry.leave(user)
        may_linger = self._linger_s and not self._slots.is_wanted and not entry.is_remote
        if not entry.thread.users and may_linger:
            loop = asyncio.get_running_loop()
            entry.timer = loop.call_later(self._linger_s, self._drop, entry)
        elif not entry.thread.users:
            self._drop(entry)

    def stop(self, timeout_s: float) -> bool:
        """Drop all engines. Blocks; returns True if their threads ended within `timeout_s`."""
        for entry in tuple(self._entries.values()):
            self._drop(entry)
        return self._slots.join(timeout_s)

    def describe(self) -> list[dict[str, Any]]:
        """Return for each engine the setting, its target, its state and its number of users."""
        return [
            {
                "setting": entry.key[0],
                "target": entry.target,
                "state": entry.thread.status.state,
                "num_users": len(entry.thread.users),
            }
            for entry in self._entries.values()
        ]

    def _drop(self, entry: SharedEngine) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
        del self._entries[entry.key]
        entry.stop()
