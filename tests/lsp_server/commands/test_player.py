"""A replay's person looks at a suggestion that grows, and accepts what it grew to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from lsp_server.commands.language_client import LanguageClient, PendingRequest
from lsp_server.commands.player import Player
from lsp_server.scripted_typing.typing_plan import plan_typing
from lsp_server.workspace.growth import GREW

CODE = "total = price * amount\n"


class GrowingServer:
    """Answers each request with the next text, and notifies at once while there is a further one."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.grew: Callable[[Any], None] = lambda _: None
        self.gone: list[Callable[[Any], None]] = []

    def on_notification(self, method: str, handler: Callable[[Any], None]) -> Callable[[], None]:
        assert method == GREW
        self.grew = handler
        return lambda: self.gone.append(handler)

    def ask(self, uri: str, position: dict[str, int]) -> PendingRequest:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        text = self.texts.pop(0) if self.texts else ""
        answer.set_result({"items": [{"insertText": text}] if text else []})
        if self.texts:
            loop.call_soon(self.grew, {"textDocument": {"uri": uri}, "position": position})
        return PendingRequest(0, answer)

    async def request(self, *_: Any) -> dict[str, Any]:
        return {}

    def ignore(self, *_: Any, **__: Any) -> None:
        pass

    open = change = close = notify = cancel = send = ignore


async def played(*texts: str) -> tuple[list[str], int]:
    """The shown texts that were accepted, and the number of texts on the screen."""
    server = GrowingServer(*texts)
    plan = plan_typing(CODE, start=CODE.index(" * "), end=CODE.index("amount") + 1, seed=3)
    player = Player(cast("LanguageClient", server), Path("/a.py"), plan, pace_ms=1000)
    answers = await player.play(lambda: any(answer.num_taken_chars for answer in player.answers))
    assert server.gone == [server.grew]  # nothing of it stays on the client
    return [
        one.suggestion.text for one in answers if one.suggestion and one.num_taken_chars
    ], player.person.screen.num_texts


def test_what_a_suggestion_grew_to_is_accepted() -> None:
    assert asyncio.run(played("*", "* a")) == (["* a"], 1)


def test_a_text_that_does_not_grow_is_accepted_as_it_is() -> None:
    assert asyncio.run(played("* a")) == (["* a"], 1)
