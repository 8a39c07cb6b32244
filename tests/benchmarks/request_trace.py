"""The way of one warm request through the code, and the size of the packages.

    python -m tests.benchmarks.request_trace [--json]

A profiler records every file that a warm completion enters, in a real server with a miniature model. `--json`
prints the files themselves, in the order in which each thread first enters them. The thread that reads
messages is not recorded. A reader who follows `CompletionEngine.complete` by its calls makes a return where
the next new file is not called from the file before it: they go back to an earlier file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, cast

from completion_engine.compile_kernels import DRAFTER, TARGET, write_toy_model
from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.load_engine import load_engine_from
from completion_engine.prompting.tokenizer import load_tokenizer
from lsp_server.engine.engine_types import Completer, Load, OnTokens
from lsp_server.workspace.settings import Settings
from ngram_cache.overlays import TokenSource
from tests.windows import insertion, one_window

ROOT = Path(__file__).parents[2]
PACKAGES = ("lsp_server", "completion_engine", "ngram_cache")
SOURCE = (
    "def add(first, second):\n    return first + second\n\n\ndef total(values):\n    result = 0\n"
    "    for value in values:\n        result = add(result, value)\n    return result\n\n\n"
)
_TYPED = "def mean(values):\n    return to"
_SMALL_LINES = 45
_PAUSE_S = 1.5  # background work ends meanwhile, as it does at a typist's pace


@dataclass
class Trace:
    """The files that threads enter while recording, in order of their first visit."""

    is_recording: bool = False
    visits: dict[str, dict[str, None]] = field(default_factory=dict)
    num_returns: Counter[str] = field(default_factory=Counter)

    def record(self, frame: FrameType, event: str, _: object) -> None:
        """A profile function of `sys.setprofile`."""
        if event != "call" or not self.is_recording or not (name := shipped_file(frame)):
            return
        thread = threading.current_thread().name
        visited = self.visits.setdefault(thread, {})
        if name not in visited:
            self.num_returns[thread] += bool(visited) and caller_file(frame) != next(reversed(visited))
            visited[name] = None

    @property
    def files(self) -> set[str]:
        """All files that were entered."""
        return {name for visited in self.visits.values() for name in visited}


def shipped_file(frame: FrameType) -> str:
    """Return the file of a frame within the packages; empty for any other file."""
    path = Path(frame.f_code.co_filename)
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else Path()
    return name.as_posix() if name.parts and name.parts[0] in PACKAGES else ""


def caller_file(frame: FrameType) -> str:
    """Return the file of the packages that leads to a frame, over calls of other libraries."""
    above = frame.f_back
    while above is not None and not shipped_file(above):
        above = above.f_back
    return shipped_file(above) if above is not None else ""


class TracedEngine:
    """An engine whose thread is profiled while it completes."""

    def __init__(self, engine: CompletionEngine, trace: Trace) -> None:
        self._engine, self._trace = engine, trace

    def complete(self, request: Any) -> Any:
        """See `CompletionEngine.complete`."""
        sys.setprofile(self._trace.record)
        try:
            return self._engine.complete(request)
        finally:
            sys.setprofile(None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def toy_engine(folder: Path, trace: Trace) -> Callable[[Settings, OnTokens], Load]:
    """A loader of the miniature model."""
    folder.mkdir()
    write_toy_model(folder)
    tokenizer = load_tokenizer(folder / TARGET)
    config = EngineConfig(TARGET, draft_model=str(folder / DRAFTER), device="cpu")
    engine = load_engine_from(folder / TARGET, config, tokenizer=tokenizer)

    def load_for(_: Settings, on_tokens: OnTokens) -> Load:
        def load(*_: Any) -> Completer:
            on_tokens(TokenSource(tokenizer.fingerprint, tokenizer.encode_many, tokenizer.spell))
            return cast(Completer, TracedEngine(engine, trace))

        return load

    return load_for


async def trace_request(folder: Path, trace: Trace) -> None:
    """Open a document, complete once, type one character and record the second completion."""
    load_for = await asyncio.to_thread(toy_engine, folder / "models", trace)
    (root := folder / "repository").mkdir()
    (root / "sums.py").write_text(SOURCE * 6)
    text = SOURCE * 6 + _TYPED
    uri, line, column = (root / "means.py").as_uri(), text.count("\n"), len(text.rpartition("\n")[2])
    async with one_window(root, load_for=load_for) as window:
        while (await window.request("slipstream/stats"))["index"][0]["state"] != "ready":
            pass
        window.open(uri, text)
        await window.suggest(uri, line, column)
        await asyncio.sleep(_PAUSE_S)
        window.change(uri, insertion(line, column, "t"))
        await asyncio.sleep(_PAUSE_S)
        trace.is_recording = True
        sys.setprofile(trace.record)
        await window.suggest(uri, line, column + 1)
        sys.setprofile(None)
        trace.is_recording = False


def house() -> dict[str, Any]:
    """Lines, small modules and repeated names of the packages that ship."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in files}
    modules = {path: num for path, num in lines.items() if path.name != "__init__.py"}
    names = Counter(path.name for path in modules)
    folders = Counter(path.relative_to(ROOT).parts[0] for path in {path.parent for path in modules})
    return {
        "num_lines": sum(lines.values()),
        "num_modules": len(modules),
        "num_small_modules": sum(num < _SMALL_LINES for num in modules.values()),
        "num_repeated_names": sum(num > 1 for num in names.values()),
        "num_folders": dict(folders),
    }


def main() -> None:
    """Print the counts of one warm request and of the packages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the files of the trace as JSON")
    asked, trace = parser.parse_args(), Trace()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(trace_request(Path(folder).resolve(), trace))
    by_folder = Counter(str(Path(name).parent) for name in trace.files)
    found = {
        "num_files": len(trace.files),
        "num_main_files": len(trace.visits["MainThread"]),
        "num_folders": len(by_folder),
        "num_returns": trace.num_returns["engine"],
        "by_folder": dict(by_folder),
    }
    if asked.json:
        sys.stdout.write(json.dumps({thread: list(names) for thread, names in trace.visits.items()}) + "\n")
    found |= house()
    sys.stdout.write("".join(f"{name:20} {value}\n" for name, value in found.items()))
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
