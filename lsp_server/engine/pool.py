"""The engines of one process: one for each configuration, whoever asks for it, and none that nobody uses.

Owns which engines there are, who uses them, and when one is given up. Must not know the protocol, nor what
an engine does.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from completion_engine.config import DRAFTERS, EngineConfig
from completion_engine.request import CancelledError, Progress
from lsp_server.engine.thread import EngineThread
from lsp_server.engine.work import Completer, EngineUser, Load
from lsp_server.workspace.folder_worker import TokenSource
from lsp_server.workspace.settings import Settings

OnTokens = Callable[[TokenSource], None]

# A way to load the engine that the settings ask for; says which tokens it speaks as soon as it knows.
LoadFor = Callable[[Settings, OnTokens], Load]

# A new engine waits this long for the memory of one that is given up.
MAX_WAIT_S = 20.0
WAIT_STEP_S = 0.05

# Further configurations wait until a window with one of these goes: each engine takes a model's memory.
MAX_ENGINES = 3
# Who waits for a place asks more often than this.
WANTED_S = 2.0

EngineKey = tuple[object, ...]


def engine_key(settings: Settings) -> EngineKey:
    """What of the settings makes another engine."""
    return (settings.target, _drafters(settings), settings.draft_model, settings.device, settings.dtype)


def engine_config(settings: Settings) -> EngineConfig:
    """The engine's part of the settings. Raises UserError for what this version cannot do."""
    return EngineConfig(
        target=settings.target,
        drafters=_drafters(settings),
        draft_model=settings.draft_model,
        device=settings.device,
        dtype=settings.dtype,
    )


def _drafters(settings: Settings) -> tuple[str, ...]:
    """The drafters that are wanted; neither their order nor a repetition makes a difference."""
    return tuple(name for name in DRAFTERS if name in settings.drafters)


class _Places:
    """How many engines are in memory at once, by the threads that hold one. Used on any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: list[EngineThread] = []
        self._missed_s = -math.inf

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for a place."""
        return time.monotonic() - self._missed_s < WANTED_S

    def take(self, thread: EngineThread) -> bool:
        """Whether there is a place for this thread's engine, or it has one already."""
        with self._lock:
            self._holders = [it for it in self._holders if it is thread or not it.join(0)]
            if thread not in self._holders:
                if len(self._holders) >= MAX_ENGINES:
                    self._missed_s = time.monotonic()
                    return False
                self._holders.append(thread)
            return True

    def leave(self, thread: EngineThread) -> None:
        """The thread holds no engine, for now."""
        with self._lock:
            self._holders = [holder for holder in self._holders if holder is not thread]


@dataclass(slots=True, eq=False)
class _Entry:
    """An engine and who uses it, each user with its wish to hear of the tokens."""

    key: EngineKey
    thread: EngineThread = field(default_factory=EngineThread)
    users: dict[EngineUser, OnTokens] = field(default_factory=dict)
    load: Load | None = None
    timer: asyncio.TimerHandle | None = None
    tokens: TokenSource | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def set_tokens(self, tokens: TokenSource) -> None:
        """The tokenizer is loaded. Called on the engine's thread."""
        with self.lock:
            self.tokens = tokens
            for on_tokens in self.users.values():
                on_tokens(tokens)

    def join_in(self, user: EngineUser, on_tokens: OnTokens) -> None:
        with self.lock:
            self.users[user] = on_tokens
            if self.tokens is not None:
                on_tokens(self.tokens)
        self.thread.join_in(user)

    def leave(self, user: EngineUser) -> None:
        with self.lock:
            del self.users[user]
        self.thread.leave(user)


class EnginePool:
    """Used on the event loop only, except where a method says otherwise.

    An engine that nobody uses is kept for `linger_s`, so that a window that is loaded anew finds it ready,
    but never beside one that is loaded in its place.
    """

    def __init__(self, load_for: LoadFor, linger_s: float = 0.0) -> None:
        self._load_for = load_for
        self._linger_s = linger_s
        self._entries: dict[EngineKey, _Entry] = {}
        self._used: dict[EngineUser, _Entry] = {}
        self._leaving: list[EngineThread] = []
        self._places = _Places()

    @property
    def is_busy(self) -> bool:
        """Whether any engine has a completion to make. May be read from any thread."""
        return any(entry.thread.is_busy for entry in tuple(self._entries.values()))

    @property
    def is_sick(self) -> bool:
        """Whether an engine is in a state that only a new process would end."""
        return any(entry.thread.is_sick for entry in self._entries.values())

    def use(self, settings: Settings, user: EngineUser, on_tokens: OnTokens) -> EngineThread:
        """The engine for these settings, in place of the one that `user` used before.

        One that could not be loaded is tried again, for all who use it. `on_tokens` is called on any thread.
        """
        is_change = user in self._used
        self.release(user)
        key = engine_key(settings)
        entry = self._entries.get(key)
        if is_change or entry is None:
            self._drop_unused(but=entry)
        if entry is None:
            entry = self._open(key, settings)
        elif entry.load is not None and entry.thread.status.state == "error":
            entry.thread.load(entry.load)
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        self._used[user] = entry
        entry.join_in(user, on_tokens)
        return entry.thread

    def release(self, user: EngineUser) -> None:
        """`user` needs its engine no more, if it has one."""
        entry = self._used.pop(user, None)
        if entry is None:
            return
        entry.leave(user)
        if not entry.users and self._linger_s and not self._places.is_wanted:
            loop = asyncio.get_running_loop()
            entry.timer = loop.call_later(self._linger_s, self._drop, entry)
        elif not entry.users:
            self._drop(entry)

    def stop(self, timeout_s: float) -> bool:
        """Give all engines up. Blocks; True when their threads have ended within `timeout_s`."""
        for entry in tuple(self._entries.values()):
            self._drop(entry)
        until = time.monotonic() + timeout_s
        return all(thread.join(max(0.0, until - time.monotonic())) for thread in self._leaving)

    def describe(self) -> list[dict[str, Any]]:
        """Each engine: its target, its state, how many use it."""
        return [
            {"target": entry.key[0], "state": entry.thread.status.state, "num_users": len(entry.users)}
            for entry in self._entries.values()
        ]

    def _open(self, key: EngineKey, settings: Settings) -> _Entry:
        entry = _Entry(key)
        self._leaving = [thread for thread in self._leaving if not thread.join(0)]
        load = _after(tuple(self._leaving), self._load_for(settings, entry.set_tokens))
        entry.load = _with_place(self._places, entry.thread, load)
        entry.thread.start()
        self._entries[key] = entry  # only now: the system may have no thread for it
        entry.thread.load(entry.load)
        return entry

    def _drop_unused(self, but: _Entry | None) -> None:
        for entry in tuple(self._entries.values()):
            if not entry.users and entry is not but:
                self._drop(entry)

    def _drop(self, entry: _Entry) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
        del self._entries[entry.key]
        entry.thread.stop()
        self._leaving.append(entry.thread)


def _after(leaving: tuple[EngineThread, ...], load: Load) -> Load:
    """`load`, once the engines that are given up have given their memory back, or take too long."""

    def wait_and_load(report: Progress, should_stop: Callable[[], bool]) -> Completer:
        until = time.monotonic() + MAX_WAIT_S
        for thread in leaving:
            while not thread.join(WAIT_STEP_S) and time.monotonic() < until and not should_stop():
                pass
        return load(report, should_stop)

    return wait_and_load


def _with_place(places: _Places, thread: EngineThread, load: Load) -> Load:
    """`load`, once so few engines are in memory that there is a place for this one."""

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
