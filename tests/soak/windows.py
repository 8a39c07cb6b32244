"""Windows that open, reload and die at every step of the handshake. Owns what a window does before its end.

Each window is a real relay process to a real host; the toy target writes. The typist here types as people do:
key after key through a line, then a thought, and all rest together from time to time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsp_server.commands.language_client import INVOKED, LanguageClient, PendingRequest, ServerGoneError
from lsp_server.commands.player import SERVER_COMMAND

STEPS = (
    "started", "asked to initialize", "initialized", "opened", "asked", "answered", "typed on", "shut down",
)  # fmt: skip
TEXT = "def area(width, height):\n    ret\n"
TYPED = "\n\n".join(
    f"def area_{number}(width, height):\n    area = width * height\n    return area" for number in range(40)
)
PATIENCE_S = 120.0

# Seconds. A typist pauses at some line ends, and all of them rest after this number of keys.
THOUGHTS_S, SHARE_OF_THOUGHTS = (0.1, 0.6), 0.1
REST_S, KEYS_TO_REST = 1.5, 300

# Files that a window has open, and the keys that it types in one before it goes to the next.
NUM_FILES, KEYS_IN_A_FILE = 3, 120


async def open_window(env: Mapping[str, str]) -> LanguageClient:
    """A relay to the host, which starts one where there is none."""
    return await LanguageClient.start((*SERVER_COMMAND, "--shared"), env=env)


async def one_window(
    env: Mapping[str, str], folder: Path, settings: Mapping[str, Any], number: int, rng: random.Random
) -> str:
    """One window's life up to a step, then a sudden end (or a proper one at the last); names the step."""
    step = STEPS[number % len(STEPS)]
    client = await open_window(env)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await _live(client, folder, settings, step, number)
    except ServerGoneError:
        return f"gone while {step}"
    finally:
        await _end(client, step, rng)
    return step


async def _live(
    client: LanguageClient, folder: Path, settings: Mapping[str, Any], step: str, number: int
) -> None:
    uri = (folder / f"window{number}.py").as_uri()
    place = {"line": 1, "character": 7}
    for reached in STEPS:
        if reached == "asked to initialize":
            if step == reached:
                client.send("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}})
            else:
                await client.initialize(folder, settings=settings)
        elif reached == "opened":
            client.open(uri, TEXT, language="python")
        elif reached == "asked":
            pending = client.ask(uri, place, INVOKED)
        elif reached == "answered":
            await pending
        elif reached == "typed on":
            client.change(uri, [{"range": {"start": place, "end": place}, "text": "u"}])
            client.ask(uri, place, INVOKED)
        if reached == step:
            return


async def _end(client: LanguageClient, step: str, rng: random.Random) -> None:
    """Proper after the last step; before it the relay is killed, or asked to end, at random."""
    if step != STEPS[-1] and client.process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(client.process.pid, rng.choice((signal.SIGKILL, signal.SIGTERM)))
    await client.shutdown()


async def type_together(
    env: Mapping[str, str], folder: Path, settings: Mapping[str, Any], num_windows: int, num_keys: int
) -> int:
    """Windows type `num_keys` keys each with a request after each; returns the number of answers.

    A key before the answer cancels its request; every eighth answer is awaited.
    """
    together = asyncio.Barrier(num_windows)
    typing = (_type_for(env, folder, settings, num_keys, number, together) for number in range(num_windows))
    return sum(await asyncio.gather(*typing))


async def _type_for(
    env: Mapping[str, str],
    folder: Path,
    settings: Mapping[str, Any],
    num_keys: int,
    number: int,
    together: asyncio.Barrier,
) -> int:
    """Type in several open files in turn, a stretch in each; then close them and open others."""
    num_answered = 0
    rng = random.Random(number)  # noqa: S311 - no secret
    async with await open_window(env) as client:
        await client.initialize(folder, settings=settings)
        for first in range(0, num_keys, len(TYPED)):
            uris = [(folder / f"typed{number}_{first}_{at}.py").as_uri() for at in range(NUM_FILES)]
            files = [OpenFile(client, uri) for uri in uris]
            keys = TYPED[: num_keys - first]
            for stretch in range(0, len(keys), KEYS_IN_A_FILE):
                file = files[stretch // KEYS_IN_A_FILE % NUM_FILES]
                typed = keys[stretch : stretch + KEYS_IN_A_FILE]
                num_answered += await file.type(typed, first + stretch, rng, together)
            for file in files:
                client.close(file.uri)
    return num_answered


class OpenFile:
    """An open document and the cursor in it."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.uri = uri
        self._client = client
        self._line = self._column = 0
        client.open(uri, "", language="python")

    async def type(self, text: str, number: int, rng: random.Random, together: asyncio.Barrier) -> int:
        """Type `text`, which begins with the window's key of this `number`; returns the number of answers."""
        client, num_answered = self._client, 0
        pending: PendingRequest | None = None
        for at, key in enumerate(text, number):
            if at % KEYS_TO_REST == KEYS_TO_REST - 1:
                async with asyncio.timeout(PATIENCE_S):
                    await together.wait()
                await asyncio.sleep(REST_S)
            elif key == "\n" and rng.random() < SHARE_OF_THOUGHTS:
                await asyncio.sleep(rng.uniform(*THOUGHTS_S))
            place = {"line": self._line, "character": self._column}
            client.change(self.uri, [{"range": {"start": place, "end": place}, "text": key}])
            self._line, self._column = (self._line + 1, 0) if key == "\n" else (self._line, self._column + 1)
            if pending is not None and not pending.answer.done():
                client.cancel(pending.id)
            pending = client.ask(self.uri, {"line": self._line, "character": self._column})
            if at % 8 == 0:
                async with asyncio.timeout(PATIENCE_S):
                    num_answered += bool((await pending)["items"])
        return num_answered
