"""Measures the time from the notification that a suggestion grew to the longer text on the screen.

Run as `python -m tests.benchmarks.growing_latency`, after `make editors`: a real VS Code and a real Neovim
with the real server, at new places. The deadline is so short that each first answer is cut.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from completion_engine.config import DEFAULT_TARGET
from lsp_server.workspace.growth import GREW
from tests.benchmarks.vscode_latency import KNOWN, SERVER
from tests.editors import programs, recorder
from tests.editors.neovim.editor import Neovim
from tests.editors.recorder import Heard
from tests.editors.vscode import extension, workbench
from tests.editors.vscode.window import Window, browsing
from tests.hosts import own_hosts

SETTINGS = {"deadlineMs": 1, "eagerness": 1.0, "target": DEFAULT_TARGET}
NAMES = (
    "total", "largest", "smallest", "middle", "spread", "deviation", "squares", "weights", "shares",
    "ranks", "missing", "positive", "negative", "quartiles", "outliers", "scaled", "rounded", "running",
)  # fmt: skip
LOOKING_S = 2.0
REQUEST = "textDocument/inlineCompletion"
STAGES = (
    "notification to request (editor)",
    "request to answer (server)",
    "answer to screen (editor)",
    "together",
)
WATCH = """
Grown = {}
local set_extmark = vim.api.nvim_buf_set_extmark
vim.api.nvim_buf_set_extmark = function(buf, namespace, ...)
  local id = set_extmark(buf, namespace, ...)
  if namespace == vim.api.nvim_create_namespace('slipstream.ghost') then
    local seconds, microseconds = vim.uv.gettimeofday()
    table.insert(Grown, { seconds * 1000 + microseconds / 1000, Drawn.text(buf) })
  end
  return id
end
"""

Shown = tuple[float, str]  # a text on the screen from a time on, in milliseconds since the epoch


def is_longer(text: str, before: str) -> bool:
    """Whether a text goes on with the one before it."""
    return text != before and text.startswith(before)


def stages(heard: Sequence[Heard], shown: Sequence[Shown]) -> list[tuple[float, ...]]:
    """The stages of each notification whose request brought a longer text, in milliseconds."""
    found: list[tuple[float, ...]] = []
    for number, notice in enumerate(heard):
        if notice.message.get("method") != GREW:
            continue
        later = [one for one in heard[number:] if one.at_ms < notice.at_ms + LOOKING_S * 1000]
        asked = next((one for one in later if one.message.get("method") == REQUEST), None)
        if asked is None:
            continue
        wanted = (asked.message["id"], False)
        answer = next((one for one in later if (one.message.get("id"), one.from_editor) == wanted), None)
        before = next((text for at_ms, text in reversed(shown) if at_ms <= notice.at_ms), "")
        longer = (at_ms for at_ms, text in shown if at_ms > notice.at_ms and is_longer(text, before))
        if answer and (drawn_ms := next(longer, None)):
            times = (notice.at_ms, asked.at_ms, answer.at_ms, drawn_ms)
            found.append((*(end - start for start, end in pairwise(times)), drawn_ms - times[0]))
    return found


def in_vscode(folder: Path, env: dict[str, str]) -> list[tuple[float, ...]]:
    """The stages in VS Code."""
    profile, samples = folder / "profile", folder / "samples"
    samples.mkdir()
    command = [sys.executable, recorder.__file__, str(profile / "recordings"), *SERVER]
    settings = {f"slipstream.{name}": value for name, value in SETTINGS.items()}
    with (
        workbench.running(
            profile,
            vsix=extension.package(),
            machine_settings={"slipstream.server.command": command, **settings},
            env=env,
        ) as started,
        browsing() as browser,
        Window.on(browser, started.url(samples), samples) as window,
    ):
        window.wait_until_up()
        window.wait_until_ready()
        for name in NAMES:
            window.open(f"{name}.py", KNOWN)
            window.type(f"def {name}(values):\n")
            window.page.wait_for_timeout(LOOKING_S * 1000)
        shown = [(sight.at_ms, sight.ghost) for sight in window.sights()]
        return stages(recorder.read(recorder.recordings(profile / "recordings")[-1]), shown)


def in_neovim(folder: Path, env: dict[str, str]) -> list[tuple[float, ...]]:
    """The stages in Neovim."""
    recordings = folder / "recordings"
    (folder / ".git").mkdir()
    command = [sys.executable, recorder.__file__, str(recordings), *SERVER]
    options = json.dumps({"cmd": command, "settings": SETTINGS})
    init = f"vim.o.swapfile = false\nrequire('slipstream').setup(vim.json.decode('{options}'))"
    editor = Neovim(programs.find("neovim-0.12", "nvim"), init, folder / "home", env)
    try:
        editor.call(WATCH)
        for name in NAMES:
            path = folder / f"{name}.py"
            path.write_text(KNOWN)
            editor.edit(path)
            editor.wait_ready()
            editor.type(f"Godef {name}(values):<CR>")
            time.sleep(LOOKING_S)
        shown: list[Any] = editor.call("return Grown")
        return stages(
            recorder.read(recorder.recordings(recordings)[-1]), [(at_ms, text) for at_ms, text in shown]
        )
    finally:
        editor.close()


def main() -> None:
    """Print the medians and quartiles of each editor."""
    sys.stdout.write(
        f"Load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
    )
    for name, measure in (("VS Code", in_vscode), ("Neovim 0.12", in_neovim)):
        with tempfile.TemporaryDirectory(prefix="slipstream-benchmark-") as scratch, own_hosts() as hosts:
            found = measure(Path(scratch), {"SLIPSTREAM_INDEX_DIR": f"{scratch}/index", **hosts.env})
        sys.stdout.write(f"{name}, {len(found)} notifications, ms{'p25':>15}{'p50':>8}{'p75':>8}\n")
        for stage, times in zip(STAGES, zip(*found, strict=True), strict=True):
            sys.stdout.write(
                f"{stage:<34}" + "".join(f"{ms:8.1f}" for ms in statistics.quantiles(times, n=4)) + "\n"
            )


if __name__ == "__main__":
    main()
