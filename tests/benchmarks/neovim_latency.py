"""Measures the time from a key to the ghost text on Neovim's screen, and the server's own time.

`python tests/benchmarks/neovim_latency.py` types a file key by key, waits for each answer, and prints a
table. With `--growing`, answers are cut, and the time is that from the notification to the longer text.
Owns these two measurements; the keys come in through Neovim's own input queue.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from completion_engine.config import DEFAULT_TARGET
from tests.benchmarks.vscode_latency import GROWING, NAMES, show
from tests.editors import programs
from tests.editors.neovim.editor import SERVER, Neovim
from tests.hosts import own_hosts

TEXT = '''def area(width, height):
    """The area of a rectangle."""
    return width * height


def perimeter(width, height):
    """The length of a rectangle's border."""
'''
TYPED = """    if width < 0 or height < 0:
        raise ValueError("a side cannot be negative")
    return 2 * (width + height)
"""
NUM_COLD = 5
CUT = "deadlineMs = 1, eagerness = 1"
LOOKING_S = 2.0

WATCH = """
Latency = { grown_ms = {} }
local key_at, asked_at, server_ms
vim.on_key(function(_, typed)
  if typed ~= '' and vim.api.nvim_get_mode().mode == 'i' then key_at = vim.uv.hrtime() end
end)
local set_extmark = vim.api.nvim_buf_set_extmark
local waits = false
vim.api.nvim_buf_set_extmark = function(buf, ns, ...)
  local id = set_extmark(buf, ns, ...)
  if waits and ns == vim.api.nvim_create_namespace('slipstream.ghost') then
    Latency.drawn_at = vim.uv.hrtime()
  end
  return id
end
local growth = require('slipstream.growth')
local grew, grew_at = growth.grew, nil
function growth.grew(...)
  grew_at = vim.uv.hrtime()
  grew(...)
end
local Client = require('vim.lsp.client')
local request = Client.request
function Client:request(method, params, handler, ...)
  if method ~= 'textDocument/inlineCompletion' then return request(self, method, params, handler, ...) end
  Latency.row, Latency.drawn_at = nil, nil
  local from = key_at
  return request(self, method, params, function(err, result, ...)
    waits = true
    handler(err, result, ...)
    waits = false
    local has_item = not err and #(result.items or result) > 0
    if grew_at and Latency.drawn_at then
      table.insert(Latency.grown_ms, (Latency.drawn_at - grew_at) / 1e6)
    end
    grew_at = nil
    Latency.row = { ms = Latency.drawn_at and (Latency.drawn_at - from) / 1e6 or -1, has_item = has_item }
  end, ...)
end
"""
STATS = """
local client = vim.lsp.get_clients({ name = 'slipstream' })[1]
local stats = client:request_sync('slipstream/stats', vim.empty_dict(), 10000).result
return { stats.recent_response_ms[#stats.recent_response_ms], stats.counters.num_requests }
"""


def measured(editor: Neovim, text: str) -> list[tuple[float, float]]:
    """(key to ghost text, the server's own time) in milliseconds, for each key that got ghost text."""
    rows = []
    for key in text:
        editor.call("Latency.row = nil")
        editor.type({" ": "<Space>", "\n": "<C-u><CR>", "<": "<lt>"}.get(key, key))
        row = editor.until("return Latency.row")
        if row["ms"] >= 0 and row["has_item"]:
            rows.append((row["ms"], editor.call(STATS)[0]))
        time.sleep(0.1)
    return rows[NUM_COLD:]


def grown_ms(editor: Neovim) -> list[float]:
    """The times from each notification to the longer text, after the heads of some functions."""
    for name in NAMES:
        editor.type(f"<Esc>Godef {name}(values):<CR>")
        time.sleep(LOOKING_S)
    found: list[float] = editor.call("return Latency.grown_ms")
    return found


def run(version: str, *, is_growing: bool) -> None:
    """Measure in one version of Neovim."""
    program = programs.find(f"neovim-{version}", "nvim")
    with tempfile.TemporaryDirectory() as name, own_hosts() as hosts:
        folder = Path(name)
        (folder / ".git").mkdir()
        path = folder / "shapes.py"
        path.write_text(TEXT)
        environment: dict[str, Any] = {"SLIPSTREAM_INDEX_DIR": name, "HF_HUB_OFFLINE": "1", **hosts.env}
        options = (
            f"cmd = '{SERVER}', settings = {{ target = '{DEFAULT_TARGET}', {CUT if is_growing else ''} }}"
        )
        init = f"vim.o.swapfile = false\nrequire('slipstream').setup({{ {options} }})"
        editor = Neovim(program, init, folder / "home", environment)
        try:
            editor.call(WATCH)
            editor.edit(path)
            editor.wait_ready()
            editor.type("Go")
            editor.wait_quiet()
            if is_growing:
                times = {GROWING: grown_ms(editor)}
            else:
                rows = measured(editor, TYPED)
                times = {"key to ghost text": [key for key, _ in rows]}
                times["server's own time"] = [server for _, server in rows]
                times["Neovim and plugin"] = [key - server for key, server in rows]
            show(f"Neovim {version}", times)
        finally:
            editor.close()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", help="0.12 or 0.11; may be repeated; default: both")
    parser.add_argument("--growing", action="store_true")
    load, chosen = os.getloadavg()[0], parser.parse_args()
    for version in chosen.version or ["0.12", "0.11"]:
        run(version, is_growing=chosen.growing)
    print(f"Load of the machine at the start: {load:.1f} on {os.cpu_count()} cores")  # noqa: T201 - its output
    return 0


if __name__ == "__main__":
    sys.exit(main())
