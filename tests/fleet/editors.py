"""Editors that use a fleet as people type: prompts that grow, answers that are read or taken back.

Owns an editor's actions and results. Every editor has a connection and a thread of its own.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from completion_engine.decoding.ending import Limits
from completion_engine.decoding.reuse import Continuation
from completion_engine.errors import RemoteError
from completion_engine.prompting.prompt import Prompt, Written
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.endpoint import Endpoint, RemoteConfig
from completion_engine.remote.remote_writing import RemoteWriting
from completion_engine.remote.token_stream import TokenStream
from completion_engine.remote.vllm_client import CompletionQuery, QueryNames, VllmClient
from completion_engine.request import Cancellation, CompletionStats
from tests.fleet.replica import MODEL

ANSWER = 24  # tokens of an awaited answer
UNWANTED = 2000  # and of one that is taken back: were it not, it would be written for long
PATIENCE_S = 600.0  # the machine is busy, and no editor leaves before its answer
_SHARE_TAKEN_BACK = 0.3


def prompt_tokens(seed: int, num_tokens: int) -> tuple[int, ...]:
    """A document: tokens that no other seed begins with."""
    return tuple(300 + (seed * 7919 + at * at * 31 + at) % 600 for at in range(num_tokens))


@dataclass(slots=True)
class Seen:
    """What editors saw: times until the first tokens, in s, and what became of their requests."""

    first_s: list[float] = field(default_factory=list)
    num_answered: int = 0
    num_taken_back: int = 0
    num_resumed: int = 0
    lost: list[str] = field(default_factory=list)

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            self.first_s + other.first_s,
            self.num_answered + other.num_answered,
            self.num_taken_back + other.num_taken_back,
            self.num_resumed + other.num_resumed,
            self.lost + other.lost,
        )


class Editor:
    """One document in one window of a user."""

    def __init__(self, config: RemoteConfig, tokenizer: Tokenizer, number: int) -> None:
        self._tokenizer, self._number = tokenizer, number
        self._servers = VllmClient(Endpoint.of(config))
        self._names = QueryNames(self._servers.endpoint.token)
        self.num_asked = 0  # requests: more than texts where one broke off

    def ask(self, prompt: Sequence[int], num_tokens: int) -> RemoteWriting:
        """A text of this number of tokens after the prompt, not yet awaited."""
        now_s = time.perf_counter()
        writing = RemoteWriting(
            self._answer,
            CompletionQuery((), 0, salt=self._names.salt, session=self._names.session(str(self._number))),
            "the fleet",
            Prompt(tuple(prompt), b""),
            Written(self._tokenizer, b""),
            Continuation(),
            limits=Limits(num_tokens, patience_at=now_s + PATIENCE_S),
            cancellation=Cancellation(),
            stats=CompletionStats(),
        )
        writing.begin()
        return writing

    @staticmethod
    def read(writing: RemoteWriting) -> None:
        """Read the next part, however long it takes."""
        writing.step(PATIENCE_S * 1e3)

    def read_all(self, writing: RemoteWriting, num_tokens: int) -> None:
        """Read until this number of tokens is there, or the stream ends."""
        while len(writing.tokens) < num_tokens and not writing.has_ended:
            self.read(writing)
        writing.close()

    def close(self) -> None:
        """The window is closed."""
        self._servers.close()

    def _answer(self, query: CompletionQuery) -> TokenStream:
        self.num_asked += 1
        return self._servers.complete(query, MODEL)

    def type(self, is_over: Callable[[], bool], pause: Callable[[float], object]) -> Seen:
        """Send a request after each word, pausing now and then, until it is over."""
        seen, chance = Seen(), random.Random(self._number)  # noqa: S311 - typing, no secret
        document = prompt_tokens(self._number, 4000)
        for length in range(200 + chance.randrange(200), len(document), 3):
            if is_over():
                break
            self._one(document[:length], chance, seen)
            pause(chance.expovariate(0.1))
        return seen

    def _one(self, prompt: Sequence[int], chance: random.Random, seen: Seen) -> None:
        is_taken_back = chance.random() < _SHARE_TAKEN_BACK
        begin_s, num_asked = time.perf_counter(), self.num_asked
        try:
            writing = self.ask(prompt, UNWANTED if is_taken_back else ANSWER)
            if is_taken_back:
                if chance.random() < 0.5:  # at once, or with the first of it on the screen
                    self.read(writing)
                writing.close()
                seen.num_taken_back += 1
                return
            while not writing.tokens:
                self.read(writing)
            seen.first_s.append(time.perf_counter() - begin_s)
            self.read_all(writing, ANSWER)
        except RemoteError as fault:
            seen.lost.append(str(fault))
            return
        seen.num_answered += len(writing.tokens) == ANSWER
        seen.num_resumed += self.num_asked > num_asked + 1
        if len(writing.tokens) != ANSWER:
            seen.lost.append(f"{len(writing.tokens)} tokens in place of {ANSWER}")


def many_type(
    configs: Sequence[RemoteConfig], tokenizer: Tokenizer, num_editors: int, meanwhile: Callable[[], None]
) -> Seen:
    """This number of editors types, those of a user with the same settings, until `meanwhile` has run."""
    over = threading.Event()

    def type_on(number: int) -> Seen:
        editor = Editor(configs[number % len(configs)], tokenizer, number)
        try:
            return editor.type(over.is_set, over.wait)
        finally:
            editor.close()

    with ThreadPoolExecutor(num_editors) as threads:
        typing = [threads.submit(type_on, number) for number in range(num_editors)]
        try:
            meanwhile()
        finally:
            over.set()
        return sum((done.result() for done in typing), Seen())
