"""The faults, one function for each; their places in the program are the bench's.

Owns the ways. Has no access to the expected results.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from completion_engine.compile_kernels import WEIGHTS
from completion_engine.cpu.kernels.kernel_cache import KERNEL_FOLDER
from lsp_server.sharing.address import find_address
from lsp_server.sharing.listener import open_listener
from tests.http_clients import HttpClient, http_process, request
from tests.waiting import until
from tests.windows import Window, window_at_host

OTHER = "file:///hostile/a.py"


@dataclass(slots=True)
class Bench:
    """A host, the window that types at it, its settings, and where its files are."""

    env: dict[str, str]
    root: Path
    pid: int
    window: Window
    settings: dict[str, str] = field(default_factory=dict)
    others: list[Window] = field(default_factory=list)

    @property
    def socket(self) -> Path:
        return Path(find_address(self.env).socket_path)

    @property
    def lock(self) -> Path:
        return Path(find_address(self.env).lock_path)

    @property
    def model(self) -> Path:
        """The target's weights, where the engine is a real one."""
        stored = Path(self.settings["target"], "model.safetensors")
        return stored if stored.exists() else Path(self.settings["target"]).with_name(WEIGHTS)

    async def another(self) -> Window:
        window = await window_at_host(self.env)
        self.others.append(window)
        await window.begin()
        return window


Cause = Callable[[Bench], Awaitable[None]]


async def nothing(_bench: Bench) -> None:
    """The fault is in the host from its start."""


def asks(line: str) -> Cause:
    """Another window sends a request that triggers this in the scripted engine; its answer is not awaited."""

    async def cause(bench: Bench) -> None:
        window = await bench.another()
        window.open(OTHER, line)
        window.ask(OTHER, 0, len(line))
        await window.writer.drain()
        await asyncio.sleep(0.3)

    return cause


def signals(*numbers: signal.Signals, pause_s: float = 3.0) -> Cause:
    async def cause(bench: Bench) -> None:
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(bench.pid, number)
            await asyncio.sleep(pause_s if len(numbers) > 1 else 0.1)

    return cause


def removes(*names: str) -> Cause:
    async def cause(bench: Bench) -> None:
        for name in names:
            shutil.rmtree(bench.socket.parent) if name == "folder" else getattr(bench, name).unlink()
        (await bench.another()).vanish()

    return cause


async def links_the_lock(bench: Bench) -> None:
    """The host ends, and the lock of the next one is a link to nothing."""
    bench.lock.unlink()
    bench.lock.symlink_to("nowhere")
    os.kill(bench.pid, signal.SIGKILL)
    await asyncio.sleep(0.1)


async def takes_the_place(bench: Bench) -> None:
    shutil.rmtree(bench.socket.parent)
    address = find_address(bench.env)
    listener = open_listener(address)
    assert listener is not None
    await asyncio.sleep(2)
    listener.close()


def harms_the_model(make: Callable[[Bench], Any]) -> Cause:
    """Something happens to the files that the engine was read from; it still writes what is new to it."""

    async def cause(bench: Bench) -> None:
        make(bench)
        bench.window.open(OTHER, "print = 1\npri")
        assert await bench.window.suggest(OTHER, 1, 3)

    return cause


async def has_no_model_for_a_while(bench: Bench) -> None:
    """The host is killed; the next one finds no model, reports that, and finds it again."""
    aside = bench.model.rename(bench.model.with_suffix(".aside"))
    os.kill(bench.pid, signal.SIGKILL)
    await bench.window.until(lambda: bench.window.answers.get("end"))
    other = await window_at_host(bench.env)
    await other.initialize(None, **bench.settings)
    other.notify("initialized", {})
    while (stats := await other.request("slipstream/stats"))["state"] != "error":  # noqa: ASYNC110 - it is asked
        await asyncio.sleep(0.05)
    assert stats["advice"]
    await other.close()
    aside.rename(bench.model)


async def loses_its_model_while_it_reads(bench: Bench) -> None:
    """The host cuts the file under its own feet; who owns the file puts it right."""
    whole = bench.model.with_suffix(".whole")
    await until(whole.exists)
    await bench.window.until(lambda: bench.window.answers.get("end"))
    whole.rename(bench.model)


def _zero_the_middle(file: Path) -> None:
    third = file.stat().st_size // 3
    with file.open("r+b") as opened:
        opened.seek(third)
        opened.write(bytes(third))


async def finds_damaged_kernels(bench: Bench) -> None:
    """The host is killed; the kernels that the next one loads have zeros in their machine code."""
    cache = bench.root.with_name("cache")
    copy = shutil.copytree(KERNEL_FOLDER, cache / "slipstream/kernels" / KERNEL_FOLDER.name)
    for file in sorted(copy.glob("*.nbc"), key=lambda file: file.stat().st_size)[-2:]:
        _zero_the_middle(file)
    bench.env["XDG_CACHE_HOME"] = str(cache)
    os.kill(bench.pid, signal.SIGKILL)


def _files_in(folder: str) -> list[Path]:
    return [file for file in Path(folder).rglob("*") if file.is_file()]


async def finds_a_damaged_index(bench: Bench) -> None:
    """The host is killed once its index is saved; the next one reads zeros in its middle."""
    await until(lambda: _files_in(bench.env["SLIPSTREAM_INDEX_DIR"]))
    for file in _files_in(bench.env["SLIPSTREAM_INDEX_DIR"]):
        _zero_the_middle(file)
    os.kill(bench.pid, signal.SIGKILL)


def sends(*data: bytes, reads: bool = True, pause_s: float = 0.5) -> Cause:
    """Another window sends these bytes, then vanishes in the middle of whatever it is in."""

    async def cause(bench: Bench) -> None:
        window = await window_at_host(bench.env, reads=reads)
        if reads:
            await window.begin()
        with suppress(OSError, TimeoutError):
            for piece in data:
                window.writer.write(piece)
                await asyncio.wait_for(window.writer.drain(), 10)
        await asyncio.sleep(pause_s)
        window.vanish()

    return cause


def over_http(*data: bytes, num_clients: int = 1, pause_s: float = 0.5) -> Cause:
    """Clients of an HTTP server at the host send these bytes and go; then it answers a good one."""

    async def cause(bench: Bench) -> None:
        with http_process(bench.root, env=bench.env) as http:
            clients = [await http.connect() for _ in range(num_clients)]
            for _, writer in clients:
                with suppress(OSError, TimeoutError):
                    for piece in data:
                        writer.write(piece)
                        await asyncio.wait_for(writer.drain(), 10)
            await asyncio.sleep(pause_s)
            for _, writer in clients:
                writer.transport.abort()
            await _until_answered(http)

    return cause


async def _until_answered(http: HttpClient) -> None:
    """Ask until the clients that are going have left room for an answer."""
    while (found := await http.ask("/infill", {"prompt": "http"})).status == 503:  # noqa: ASYNC110 - asked
        await asyncio.sleep(0.05)
    assert found.json["content"] == "http!", found


async def crowds_of_http_clients_that_leave(bench: Bench) -> None:
    """Three times 300 clients ask and leave; another one is answered, and nothing is kept of them."""

    async def ask_and_leave(number: int) -> None:
        with suppress(OSError):  # the server may refuse it first
            _, writer = await http.connect()
            writer.write(request("/infill", json.dumps({"prompt": f"{number} = slow"}).encode()))
            (writer.transport.abort if number % 2 else writer.close)()

    with http_process(bench.root, env=bench.env) as http:
        await _until_answered(http)
        num_before, used_mb = http.num_descriptors, []
        for crowd in range(3):
            await asyncio.gather(*(ask_and_leave(1000 * crowd + number) for number in range(300)))
            await _until_answered(http)
            await until(lambda: http.num_descriptors <= num_before, 30)
            used_mb.append(http.memory_mb)
        assert used_mb[-1] < used_mb[0] + 10, used_mb


async def handshakes_that_end(bench: Bench) -> None:
    for number in range(30):
        window = await window_at_host(bench.env)
        if number % 3:
            await window.initialize(bench.root)
        if number % 3 == 2:
            window.notify("initialized", {})
            await window.writer.drain()
        window.vanish()


async def many_at_once(bench: Bench) -> None:
    windows = await asyncio.gather(*(window_at_host(bench.env) for _ in range(80)))
    for window in windows:
        window.vanish()


async def many_without_a_host(bench: Bench) -> None:
    os.kill(bench.pid, signal.SIGKILL)
    await many_at_once(bench)


async def reads_nothing(bench: Bench) -> None:
    window = await window_at_host(bench.env, reads=False)
    window.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    with suppress(OSError, TimeoutError):
        for _ in range(2000):
            window.send("slipstream/stats", None)
            await asyncio.wait_for(window.writer.drain(), 2)
    window.vanish()


async def too_many_configurations(bench: Bench) -> None:
    windows = [await window_at_host(bench.env) for _ in range(6)]
    for number, window in enumerate(windows):
        await window.initialize(None, target=f"target {number}")
        window.notify("initialized", {})
    await asyncio.sleep(0.5)
    for window in windows:
        window.vanish()


def spoils(make: Callable[[Bench], Any]) -> Cause:
    """Something happens to files of the repository or of the host; then its files change."""

    async def cause(bench: Bench) -> None:
        make(bench)
        changes = [{"uri": (bench.root / name).as_uri(), "type": 2} for name in ("a.py", ".slipstream.toml")]
        bench.window.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        await asyncio.sleep(0.3)

    return cause
