"""The engines of one process: one per configuration, and none without users.

Creates engines, adds and removes their users, and ends them. Limits how many are in memory.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from completion_engine.config import AUTO, DEFAULT_TARGET, DRAFTERS, EngineConfig
from completion_engine.remote.endpoint import RemoteConfig
from completion_engine.request import CancelledError, Progress, ShouldStop
from lsp_server.engine.auto_target import AutoTarget, Chooser
from lsp_server.engine.engine_types import Completer, EngineUser, Load, LoadFor
from lsp_server.engine.thread import EngineThread
from lsp_server.workspace.settings import Settings

EngineKey = tuple[object, ...]

# A new engine waits this long for those that are ending to release their memory.
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


class EngineSlots:
    """The threads of a process that may hold an engine, and the slots for engines in memory.

    A thread that is stopped keeps its slot until it ends. Used on any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: list[EngineThread] = []
        self._holders: list[EngineThread] = []
        self._missed_s = -math.inf

    @property
    def is_wanted(self) -> bool:
        """Whether a thread waits for a slot."""
        return time.monotonic() - self._missed_s < WANTED_S

    def new_thread(self, thread: EngineThread) -> EngineThread:
        """Return a new thread, for `join`."""
        with self._lock:
            self._threads = [*(it for it in self._threads if not it.join(0)), thread]
        return thread

    def join(self, timeout_s: float) -> bool:
        """Return whether all threads end within `timeout_s`."""
        until = time.monotonic() + timeout_s
        return all(thread.join(max(0.0, until - time.monotonic())) for thread in self._threads)

    def in_slot(self, thread: EngineThread, load: Load) -> Load:
        """Return a load that first waits for a slot, and for engines that are ending to release theirs."""

        def wait_and_load(report: Progress, should_stop: ShouldStop) -> Completer:
            while not self._take(thread):
                report(f"Waiting: {MAX_ENGINES} other models are in memory for other windows", 0, 0)
                if should_stop():
                    raise CancelledError
                time.sleep(WAIT_STEP_S)
            try:
                until = time.monotonic() + MAX_WAIT_S
                for other in [it for it in self._holders if it.is_stopping and it is not thread]:
                    while not other.join(WAIT_STEP_S) and time.monotonic() < until and not should_stop():
                        pass
                return load(report, should_stop)
            except BaseException:
                with self._lock:
                    self._holders = [holder for holder in self._holders if holder is not thread]
                raise

        return wait_and_load

    def _take(self, thread: EngineThread) -> bool:
        """Return whether the thread got a slot, or has one already."""
        with self._lock:
            self._holders = [it for it in self._holders if it is thread or not it.join(0)]
            if thread not in self._holders:
                if len(self._holders) >= MAX_ENGINES:
                    self._missed_s = time.monotonic()
                    return False
                self._holders.append(thread)
            return True


@dataclass(slots=True, eq=False)
class SharedEngine:
    """The engine of one configuration, and the load that begins it anew. `timer` ends one without users."""

    key: EngineKey
    thread: EngineThread
    load: Load
    is_remote: bool
    timer: asyncio.TimerHandle | None = None


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

    def use(self, settings: Settings, user: EngineUser) -> EngineThread:
        """Return the engine for these settings; `user` stops using its previous one.

        An engine that could not be loaded is loaded again, for all its users. Raises RuntimeError if the
        system cannot start a thread.
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
            entry = self._new_entry(key, settings)
            entry.thread.join_in(user)  # before the load, whose messages it receives
            entry.thread.load(entry.load)
            self._entries[key] = entry  # only now, because starting a thread may have failed
        else:
            if entry.thread.status.state == "error":
                entry.thread.load(entry.load)
            entry.thread.join_in(user)
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        self._used[user] = entry
        return entry.thread

    def _new_entry(self, key: EngineKey, settings: Settings) -> SharedEngine:
        thread, is_remote = self._slots.new_thread(EngineThread()), bool(settings.remote.url)
        if settings.target == AUTO and self._chooser is not None and not is_remote:
            load: Load = AutoTarget(settings, self._chooser, self._load_for, thread).load
        else:
            load = self._load_for(settings, thread.set_tokens)
        return SharedEngine(key, thread, load if is_remote else self._slots.in_slot(thread, load), is_remote)

    def reload(self, user: EngineUser) -> None:
        """Drop the engine of a user and load it again, on the same thread."""
        entry = self._used[user]
        entry.thread.load(entry.load)

    def release(self, user: EngineUser) -> None:
        """Remove `user` from its engine, if it has one."""
        entry = self._used.pop(user, None)
        if entry is None:
            return
        entry.thread.leave(user)
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
                "target": entry.thread.status.details.get("target", entry.key[0]),
                "state": entry.thread.status.state,
                "num_users": len(entry.thread.users),
            }
            for entry in self._entries.values()
        ]

    def _drop(self, entry: SharedEngine) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
        del self._entries[entry.key]
        entry.thread.stop()
