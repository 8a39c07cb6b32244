"""The engines of one process: one per configuration, and none without users.

Creates engines, adds and removes their users, and ends them.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from completion_engine.config import AUTO, DEFAULT_TARGET, DRAFTERS, EngineConfig
from completion_engine.remote.endpoint import RemoteConfig
from completion_engine.request import CancelledError, Progress
from lsp_server.engine.auto_target import AutoTarget, Chooser
from lsp_server.engine.engine_types import Completer, EngineUser, Load, LoadFor, OnTokens
from lsp_server.engine.shared_engine import EngineKey, SharedEngine
from lsp_server.engine.thread import EngineThread
from lsp_server.workspace.settings import Settings

# A new engine waits this long for a dropped one to release its memory.
MAX_WAIT_S = 20.0
WAIT_STEP_S = 0.05

# Further configurations wait until a window with one of these goes: each engine takes a model's memory.
MAX_ENGINES = 3
# A load that waits for a slot asks more often than this.
WANTED_S = 2.0


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


class _Places:
    """The slots for engines in memory, each with the thread that holds it. Used on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: list[EngineThread] = []
        self._missed_s = -math.inf

    @property
    def is_wanted(self) -> bool:
        """Whether a thread waits for a slot."""
        return time.monotonic() - self._missed_s < WANTED_S

    def take(self, thread: EngineThread) -> bool:
        """Return whether the thread got a slot, or has one already."""
        with self._lock:
            self._holders = [it for it in self._holders if it is thread or not it.join(0)]
            if thread not in self._holders:
                if len(self._holders) >= MAX_ENGINES:
                    self._missed_s = time.monotonic()
                    return False
                self._holders.append(thread)
            return True

    def leave(self, thread: EngineThread) -> None:
        """Release the slot of the thread."""
        with self._lock:
            self._holders = [holder for holder in self._holders if holder is not thread]


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
        self._leaving: list[EngineThread] = []
        self._places = _Places()

    @property
    def is_busy(self) -> bool:
        """Whether any engine has a completion to write. May be read from any thread."""
        return any(entry.thread.is_busy for entry in tuple(self._entries.values()) if not entry.is_remote)

    @property
    def is_sick(self) -> bool:
        """Whether an engine is in a state that only a new process can end."""
        return any(entry.thread.is_sick for entry in self._entries.values())

    def use(self, settings: Settings, user: EngineUser, on_tokens: OnTokens) -> SharedEngine:
        """Return the engine for these settings; `user` stops using its previous one.

        An engine that could not be loaded is loaded again, for all its users. `on_tokens` is called on any
        thread.
        """
        is_change = user in self._used
        self.release(user)
        key = engine_key(settings)
        if settings.remote.url:
            key = (*key, user)  # separate per window, because a round trip to servers blocks the thread
        entry = self._entries.get(key)
        if is_change or entry is None:
            self._drop_unused(but=entry)
        if entry is None:
            entry = self._open(key, settings)
        elif entry.thread.status.state == "error":
            entry.reload()
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        self._used[user] = entry
        entry.join_in(user, on_tokens)
        return entry

    def release(self, user: EngineUser) -> None:
        """Remove `user` from its engine, if it has one."""
        entry = self._used.pop(user, None)
        if entry is None:
            return
        entry.leave(user)
        may_linger = self._linger_s and not self._places.is_wanted and not entry.is_remote
        if not entry.num_users and may_linger:
            loop = asyncio.get_running_loop()
            entry.timer = loop.call_later(self._linger_s, self._drop, entry)
        elif not entry.num_users:
            self._drop(entry)

    def stop(self, timeout_s: float) -> bool:
        """Drop all engines. Blocks; returns True if their threads ended within `timeout_s`."""
        for entry in tuple(self._entries.values()):
            self._drop(entry)
        until = time.monotonic() + timeout_s
        return all(thread.join(max(0.0, until - time.monotonic())) for thread in self._leaving)

    def describe(self) -> list[dict[str, Any]]:
        """Return for each engine the setting, its target, its state and its number of users."""
        return [
            {
                "setting": entry.key[0],
                "target": entry.target,
                "state": entry.thread.status.state,
                "num_users": entry.num_users,
            }
            for entry in self._entries.values()
        ]

    def _open(self, key: EngineKey, settings: Settings) -> SharedEngine:
        if settings.remote.url:
            entry = SharedEngine(key, None, lambda _thread, load: load, is_remote=True)
            entry.start(self._load_for(settings, entry.set_tokens))
            self._entries[key] = entry
            return entry
        auto_target = None
        if settings.target == AUTO and self._chooser is not None:
            auto_target = AutoTarget(settings, self._chooser, self._load_for)
        entry = SharedEngine(key, auto_target, partial(_with_place, self._places))
        load_for = auto_target.load_first if auto_target else partial(self._load_for, settings)
        self._leaving = [thread for thread in self._all_leaving() if not thread.join(0)]
        entry.start(_after(tuple(self._leaving), load_for(entry.set_tokens)))
        self._entries[key] = entry  # only now, because starting a thread may have failed
        return entry

    def _all_leaving(self) -> list[EngineThread]:
        """Threads that were asked to end, and may still hold an engine."""
        return [*self._leaving, *(thread for entry in self._entries.values() for thread in entry.left)]

    def _drop_unused(self, but: SharedEngine | None) -> None:
        for entry in tuple(self._entries.values()):
            if not entry.num_users and entry is not but:
                self._drop(entry)

    def _drop(self, entry: SharedEngine) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
        del self._entries[entry.key]
        entry.stop()
        self._leaving += [entry.thread, *entry.left]


def _after(leaving: tuple[EngineThread, ...], load: Load) -> Load:
    """Return a load that first waits until the dropped engines have released their memory, or a timeout."""

    def wait_and_load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
        until = time.monotonic() + MAX_WAIT_S
        for thread in leaving:
            while not thread.join(WAIT_STEP_S) and time.monotonic() < until and not should_stop():
                pass
        return load(report, should_stop)

    return wait_and_load


def _with_place(places: _Places, thread: EngineThread, load: Load) -> Load:
    """Return a load that first waits for a free slot for engines in memory."""

    def wait_and_load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
        while not places.take(thread):
            report(f"Waiting: {MAX_ENGINES} other models are in memory for other windows", 0, 0)
            if should_stop():
                raise CancelledError
            time.sleep(WAIT_STEP_S)
        try:
            return load(report, should_stop)
        except BaseException:
            places.leave(thread)
            raise

    return wait_and_load
