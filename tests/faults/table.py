"""Faults as data, and one check: the answers of a typing window, its recovery, and no lost request.

The host is a process as users have it, on a scripted engine, or on a toy target where a fault is the model's.
A window whose host is lost does what editors do: it is started again and opens what it had open.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from completion_engine.compile_kernels import TARGET, write_toy_model
from lsp_server.sharing import relay
from tests.faults import causes
from tests.faults.causes import (
    Bench,
    Cause,
    asks,
    harms_the_model,
    nothing,
    over_http,
    removes,
    sends,
    signals,
    spoils,
)
from tests.faults.fairness import environment
from tests.hosts import own_hosts
from tests.http_clients import request
from tests.stored_toy import write_stored_toy
from tests.windows import Window, window_at_host

URI = "file:///innocent/b.py"
MAX_RECOVERY_S = 60.0  # on a machine that does nothing else
PATIENCE_S, ANSWER_S = 400.0, 180.0  # for all of a fault and for one answer, on a busy machine
MEGABYTE = 1024 * 1024
SETTINGS = ".slipstream.toml"


@dataclass(frozen=True, slots=True)
class Fault:
    """A name, its cause, what is wrong with the host from its start, and whether its windows may be lost."""

    name: str
    cause: Cause = nothing
    host: str = ""
    may_lose_host: bool = False

    @property
    def has_engine(self) -> bool:
        """Whether the engine is a real one."""
        return "engine" in self.host.split(",")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a typing window saw."""

    saw: str
    recovery_s: float
    is_whole: bool


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def opening(text: bytes) -> bytes:
    item = b'{"uri":"file:///hostile/a.py","languageId":"python","version":1,"text":"' + text + b'"}'
    return framed(
        b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":' + item + b"}}"
    )


def _prompt(text: str) -> bytes:
    return json.dumps({"input_prefix": "", "input_suffix": "", "prompt": text}).encode()


def _calls(name: str) -> tuple[Fault, ...]:
    """The N-th call of this name for a file of the index fails, and every third one after it."""
    return tuple(
        Fault(f"{name} {number} of the index fails", host=f"{name}:{number}") for number in (1, 2, 5)
    )


def _no_folder_for_the_index(bench: Bench) -> None:
    folder = Path(bench.env["SLIPSTREAM_INDEX_DIR"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.touch()


def _no_log(bench: Bench) -> None:
    shutil.rmtree(bench.env["XDG_STATE_HOME"], ignore_errors=True)


def _a_pipe_for_a_file(bench: Bench) -> None:
    (bench.root / "a.py").unlink()
    os.mkfifo(bench.root / "a.py")


def _another_model(bench: Bench) -> None:
    folder = bench.model.parent
    folder.rename(folder.with_name("aside"))
    folder.mkdir()
    bench.model.write_bytes(b"no weights")


def _over_the_model(bench: Bench) -> None:
    with bench.model.open("r+b") as file:
        file.write(b"\xff" * bench.model.stat().st_size)


FAULTS = (
    Fault("a library panics in a completion", asks("panic")),
    Fault("the engine has a bug", asks("fail")),
    Fault("a completion runs out of memory", asks("forget memory")),
    Fault("a completion is slow", asks("slow")),
    Fault("the engine's thread has a bug of its own", host="thread"),
    Fault("a completion holds the interpreter", asks("hang"), "short watch", may_lose_host=True),
    Fault("an index holds the interpreter", host="short watch,index hangs once", may_lose_host=True),
    Fault("the host is killed", signals(signal.SIGKILL), may_lose_host=True),
    Fault("the host is told to end", signals(signal.SIGTERM), may_lose_host=True),
    Fault("the host crashes", signals(signal.SIGSEGV), may_lose_host=True),
    Fault("the host is stopped and goes on", signals(signal.SIGSTOP, signal.SIGCONT), "short watch"),
    Fault("the socket is cleaned away", removes("socket")),
    Fault("the lock is cleaned away", removes("lock")),
    Fault("socket and lock are cleaned away", removes("socket", "lock")),
    Fault("the socket's folder is cleaned away", removes("folder")),
    Fault("a link has the lock's place", causes.links_the_lock, may_lose_host=True),
    Fault("another process takes the host's place", causes.takes_the_place),
    Fault("a relay is killed in a header", sends(b"Content-Le")),
    Fault("a relay is killed in a message", sends(b'Content-Length: 100\r\n\r\n{"jsonrpc"')),
    Fault("a window sends no protocol", sends(b"GET / HTTP/1.1\r\n\r\n")),
    Fault("a window announces a petabyte", sends(b"Content-Length: 1000000000000000\r\n\r\n")),
    Fault("a window sends no JSON", sends(framed(b"\xff{"), framed(b"[1,"))),
    Fault("a window nests values deeply", sends(framed(b"[" * 200_000))),
    Fault("a window sends many small values", sends(framed(b"[" + b"1," * 3_000_000 + b"1]"))),
    Fault("a window opens 60 MB", sends(opening(b"x = 1\\n" * 8_600_000))),
    Fault("a window opens a line of 20 MB", sends(opening(b"x" * 20 * MEGABYTE))),
    Fault("a window reads nothing", causes.reads_nothing),
    Fault("windows go at each step of the handshake", causes.handshakes_that_end),
    Fault("80 windows come at once", causes.many_at_once),
    Fault("80 windows come at once to no host", causes.many_without_a_host, may_lose_host=True),
    Fault("an HTTP client sends no HTTP", over_http(b"\x16\x03\x01" * 99 + b"\r\n\r\n")),
    Fault("an HTTP client sends headers without an end", over_http(*[b"A: b\r\n" * 1000] * 99)),
    Fault(
        "an HTTP client announces a petabyte", over_http(request("/infill", **{"Content-Length": "9" * 15}))
    ),
    Fault("an HTTP client sends 60 MB", over_http(request("/infill", b"[" * 60 * MEGABYTE))),
    Fault("an HTTP client sends a line of 3 MB", over_http(request("/infill", _prompt("x" * 3 * MEGABYTE)))),
    Fault("an HTTP client reads nothing", over_http(*[request("/v1/models", is_post=False)] * 999)),
    Fault("HTTP clients send nothing", over_http(num_clients=80)),
    Fault(
        "HTTP clients go in the middle of answers",
        over_http(request("/infill", _prompt("slow")), num_clients=60),
    ),
    Fault("300 HTTP clients leave at once", causes.crowds_of_http_clients_that_leave),
    Fault("an HTTP client's request has a bug", over_http(request("/infill", _prompt("fail")))),
    Fault("an HTTP client's request panics", over_http(request("/infill", _prompt("panic")))),
    Fault("six windows want six models", causes.too_many_configurations),
    Fault("the wall clock jumps by a day", host="clock"),
    Fault("there is little memory", sends(opening(b"x = 1\\n" * 8_600_000)), "memory"),
    Fault("there are few descriptors", causes.many_at_once, "descriptors:60"),
    Fault("no file may grow", host="file size:2000"),
    *_calls("open"),
    *_calls("write"),
    *_calls("fsync"),
    *_calls("rename"),
    Fault("the index folder cannot be written", spoils(_no_folder_for_the_index)),
    Fault("the saved index has zeros", causes.finds_a_damaged_index, may_lose_host=True),
    Fault("compiled kernels have zeros", causes.finds_damaged_kernels, "engine", may_lose_host=True),
    Fault("the log's folder is gone", spoils(_no_log)),
    Fault("the repository is gone", spoils(lambda b: shutil.rmtree(b.root))),
    Fault("the settings file is a pipe", spoils(lambda b: os.mkfifo(b.root / SETTINGS))),
    Fault("the settings file is a folder", spoils(lambda b: (b.root / SETTINGS).mkdir())),
    Fault("the settings file is a link", spoils(lambda b: (b.root / SETTINGS).symlink_to("a.py"))),
    Fault("the settings file is cut short", spoils(lambda b: (b.root / SETTINGS).write_text("[index"))),
    Fault("the settings file has a wrong type", spoils(lambda b: (b.root / SETTINGS).write_text("index=1"))),
    Fault("the settings file is no text", spoils(lambda b: (b.root / SETTINGS).write_bytes(b"\xff" * 999))),
    Fault("a source file is a pipe", spoils(_a_pipe_for_a_file)),
    Fault("the model's file is removed", harms_the_model(lambda b: b.model.unlink()), "engine"),
    Fault("the model's file is cut short", harms_the_model(lambda b: os.truncate(b.model, 0)), "engine"),
    Fault("the model's file is written over", harms_the_model(_over_the_model), "engine"),
    Fault("the model's folder is another one", harms_the_model(_another_model), "engine"),
    Fault("the model is gone for a while", causes.has_no_model_for_a_while, "engine", may_lose_host=True),
    Fault(
        "the model's file is cut short while read",
        causes.loses_its_model_while_it_reads,
        "engine,cut model",
        may_lose_host=True,
    ),
)


async def check(fault: Fault) -> Outcome:
    """Let the fault happen to a host at which a window types."""
    relay.HOST_ARGUMENTS = ("-m", "tests.faults.host_main", "--host")
    with own_hosts() as hosts:
        env = environment(hosts, *filter(None, fault.host.split(",")))
        root = hosts.folder / "repository"
        root.mkdir()
        (root / "a.py").write_text("def known():\n    return 1\n", encoding="utf-8")
        settings = _toy_target(hosts.folder / "models", fault.host) if fault.has_engine else {}
        window = await _typing(env, root, settings)
        pid = hosts.only()["pid"] if "index hangs once" not in fault.host else 0
        bench = Bench(env, root, pid, window, settings)
        try:
            async with asyncio.timeout(PATIENCE_S):
                wanted = await _wanted(fault, bench)
                await fault.cause(bench)
                return await _recover(bench, wanted)
        finally:
            for other in (bench.window, *bench.others):
                await other.close()


async def _wanted(fault: Fault, bench: Bench) -> list[str]:
    """The good answer: that of the scripted engine, or the earlier one of a real engine; otherwise any."""
    if not fault.has_engine:
        return ["kno!"]
    if "cut model" in fault.host:
        return []
    while not (answer := await bench.window.suggest(URI, 1, 3)):  # noqa: ASYNC110 - it is asked
        await asyncio.sleep(0.05)
    return answer


def _toy_target(models: Path, host: str) -> dict[str, str]:
    """Settings that name a toy target in a new folder; only mapped safetensors can be cut while read."""
    models.mkdir()
    (write_stored_toy if "cut model" in host else write_toy_model)(models)
    return {"target": str(models / TARGET), "device": "cpu", "eagerness": 1}


async def _typing(env: dict[str, str], root: Path, settings: dict[str, str]) -> Window:
    window = await window_at_host(env)
    await window.initialize(root, **settings)
    window.notify("initialized", {})
    # Texts that the scripted engine and the toy target continue.
    window.open(URI, "slice = 1\nsli" if settings else "known = 1\nkno")
    return window


async def _recover(bench: Bench, wanted: list[str]) -> Outcome:
    """Ask as an editor does until there is a good answer; nothing is `wanted` where any one is good."""
    begin, num_empty, num_lost = time.monotonic(), 0, 0
    while True:
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await bench.window.suggest(URI, 1, 3)
        except OSError:
            num_lost += 1
            await bench.window.close()
            bench.window = await _typing(bench.env, bench.root, bench.settings)
            continue
        if answer:
            seconds = time.monotonic() - begin
            times = f"lost its host {num_lost} times, " if num_lost else ""
            return Outcome(f"{times}{num_empty} empty answers", seconds, answer == (wanted or answer))
        num_empty += 1
        await asyncio.sleep(0.05)


def is_good(fault: Fault, outcome: Outcome) -> bool:
    """Whether this is all that the fault may do."""
    has_lost = outcome.saw.startswith("lost")
    return outcome.is_whole and has_lost <= fault.may_lose_host


async def report() -> bool:
    """Print a line for each fault; whether all of them are good."""
    say = sys.stdout.write
    num_good = 0
    for fault in FAULTS:
        try:
            outcome = await check(fault)
        except Exception as error:
            outcome = Outcome(f"no good answer: {error!r}", MAX_RECOVERY_S, is_whole=False)
        good = is_good(fault, outcome) and outcome.recovery_s < MAX_RECOVERY_S
        num_good += good
        whole = "nothing lost" if outcome.is_whole else "LOST"
        verdict = "" if good else "  BAD"
        say(f"{fault.name:44} {outcome.recovery_s:6.2f} s  {whole:12} {outcome.saw}{verdict}\n")
        sys.stdout.flush()
    say(f"{num_good} of {len(FAULTS)} faults are good\n")
    return num_good == len(FAULTS)
