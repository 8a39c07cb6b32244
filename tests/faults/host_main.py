"""The host as users have it, with the faults that a variable names; a scripted engine but for `engine`."""

from __future__ import annotations

import builtins
import errno
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lsp_server.sharing import watchdog
from lsp_server.sharing.address import find_address
from lsp_server.sharing.listener import open_listener

VARIABLE = "SLIPSTREAM_TEST_FAULTS"
MEGABYTE = 1024 * 1024


def hang(*_arguments: object) -> None:
    """Hold the interpreter for longer than anybody waits, as a pattern that backtracks does."""
    re.match(r"(a+)+$", "a" * 64 + "b")


def failing(function: Callable[..., Any], number: int, code: int) -> Callable[..., Any]:
    """`function`, whose call of this number from now on fails, and every third one after it."""
    num_calls = 0

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal num_calls
        if any("index" in str(argument) for argument in arguments) or function is os.fsync:
            num_calls += 1
            if num_calls >= number and (num_calls - number) % 3 == 0:
                raise OSError(code, os.strerror(code))
        return function(*arguments, **named)

    return call


def jumping_clock() -> Callable[[], float]:
    """A wall clock that is set to another day at every question."""
    true_time, jumps = time.time, [0.0]

    def read() -> float:
        jumps[0] = -jumps[0] + 86_400.0
        return true_time() + jumps[0]

    return read


def hang_in_first_index() -> None:
    """The first of a test's hosts hangs when it builds an index."""
    from ngram_cache.indexing import Indexer

    has_hung = Path(os.environ["SLIPSTREAM_INDEX_DIR"], "has_hung")
    if not has_hung.exists():
        has_hung.parent.mkdir(parents=True, exist_ok=True)
        has_hung.touch()
        Indexer.build = hang  # type: ignore[assignment]


def inject(faults: list[str]) -> None:
    """Make the named faults happen."""
    for fault in faults:
        name, _, number = fault.partition(":")
        match name:
            case "short watch":
                watchdog.BUSY_CPU_S, watchdog.SILENT_BEATS, watchdog.BEAT_S = 1.0, 100, 0.1
            case "index hangs once":
                hang_in_first_index()
            case "open":
                builtins.open = failing(open, int(number), errno.EMFILE)
            case "write":
                os.open = failing(os.open, int(number), errno.ENOSPC)
            case "fsync":
                os.fsync = failing(os.fsync, int(number), errno.EIO)
            case "rename":
                os.replace = failing(os.replace, int(number), errno.EACCES)
                os.rename = failing(os.rename, int(number), errno.EACCES)
            case "clock":
                time.time = jumping_clock()
            case "descriptors":
                resource.setrlimit(resource.RLIMIT_NOFILE, (int(number), int(number)))
            case "file size":
                resource.setrlimit(resource.RLIMIT_FSIZE, (int(number), int(number)))
            case "thread":
                end_engine_thread_once()
            case "cut model":
                cut_model_once()


def end_engine_thread_once() -> None:
    """An error of our own, outside of the engine, at the first request."""
    from lsp_server.engine.request_queue import RequestQueue
    from tests.windows import Panic

    take, endings = RequestQueue.take_job, [Panic()]

    def take_job(queue: RequestQueue) -> Any:
        if queue.has_jobs and endings:
            raise endings.pop()
        return take(queue)

    RequestQueue.take_job = take_job  # type: ignore[method-assign]


def cut_model_once() -> None:
    """The first file of weights that is opened is cut short before a weight is read; a whole one is kept."""
    from completion_engine.target_model import weights

    open_whole = weights.safe_open

    def open_and_cut(path: Path, *arguments: Any) -> Any:
        file, mark = open_whole(path, *arguments), path.with_suffix(".cut")
        if not mark.exists():
            mark.touch()
            shutil.copy(path, copy := path.with_suffix(".copy"))
            os.truncate(path, 0)
            copy.rename(path.with_suffix(".whole"))
        return file

    weights.safe_open = open_and_cut  # type: ignore[assignment]


def limit_memory(num_bytes: int) -> None:
    """No more than this beside what the process has now."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - one line of the system
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + num_bytes, now + num_bytes))


def scripted_models(app: Any) -> Any:
    """The replacement of the machine's models."""
    from completion_engine.choice.choice import Choice
    from tests.windows import load_scripted

    class ScriptedModels(app.MachineModels):  # type: ignore[misc]
        def load_for(self, settings: Any, on_tokens: Any) -> Any:
            return app.with_frozen_objects(load_scripted(settings, on_tokens))

        def choose(self, settings: Any, running: str, refused: Any) -> Choice:
            return Choice("scripted", "scripted", "there is no other")

    return ScriptedModels


def main() -> None:
    faults = list(filter(None, os.environ.get(VARIABLE, "").split(",")))
    inject([fault for fault in faults if fault == "short watch"])
    watchdog.start()
    if (listener := open_listener(find_address(os.environ))) is None:
        return
    from lsp_server import app

    if "engine" not in faults:
        app.MachineModels = scripted_models(app)
    inject([fault for fault in faults if fault != "short watch"])
    if "memory" in faults:
        limit_memory(1500 * MEGABYTE)
    app.serve_windows(listener)


if __name__ == "__main__":
    assert sys.argv[1] == "--host"
    main()
