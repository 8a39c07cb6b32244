"""The target on a team's servers, used as the local engine is: text around a cursor in, verified text out.

Owns one window's way there, and what leaves the machine: a prompt, built of text out of which what looks like
a secret is taken. Used on one thread; only cancelling a request may be done on others.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from typing import Any

from completion_engine.decoding.answers import silence, with_alternatives
from completion_engine.decoding.attribution import Origins
from completion_engine.decoding.judged_answers import judged_answer
from completion_engine.decoding.place import cursor_of
from completion_engine.decoding.run import MAX_NEW_TOKENS, Limits, run
from completion_engine.errors import RemoteError
from completion_engine.prompting.prompt import Prompt, RepositoryFormat
from completion_engine.prompting.prompt_choice import (
    MAX_CONTEXT_TOKENS,
    PromptBudget,
    PromptChooser,
    PromptLadder,
)
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.prompting.written import Written
from completion_engine.remote.asking import Asking
from completion_engine.remote.config import RemoteConfig
from completion_engine.remote.endpoint import Endpoint
from completion_engine.remote.leaving import AT_CURSOR, LEAVES, Masking, mask, refusal
from completion_engine.remote.past import Past, Place, setting_of, weighs_for
from completion_engine.remote.servers import Servers
from completion_engine.remote.tokenizer_proof import Served, prove
from completion_engine.remote.transport import Wait, woken_by
from completion_engine.remote.writing import RemoteWriting
from completion_engine.request import Cancellation, CompletionRequest, Progress, ShouldStop
from completion_engine.stats import Completion, CompletionStats
from completion_engine.suggestions.stopping import StopRules, load_grammar
from completion_engine.text_window import TextWindow

EXACTNESS = "verified by the server"
_IDLE_MS, REST_S = 1000.0, 10.0  # of a step, and of all that comes after an answer
_LOAD_S = 10.0


@dataclass(frozen=True, slots=True)
class _Task:
    """What an answer is judged by; satisfies `Judged`."""

    request: CompletionRequest
    tokenizer: Tokenizer
    weighs: bool
    told: Origins

    def origins(self) -> Origins:
        """Tells where characters came from."""
        return self.told


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """What a deadline cut short, and until when the rest of it is taken in."""

    writing: RemoteWriting
    rules: StopRules
    limits: Limits
    place: Place
    until_s: float

    @property
    def is_written(self) -> bool:
        """Whether all of it is here that is wanted."""
        limits = self.limits
        wanted = limits.max_tokens, limits.min_survival, limits.calibration
        return self.writing.finish(self.rules, *wanted) is not None


class RemoteCompleter:
    """Completions by a team's servers. Satisfies the engine's protocol."""

    def __init__(self, config: RemoteConfig, servers: Servers, tokenizer: Tokenizer, served: Served) -> None:
        """On servers that answer, whose `served` model has this tokenizer."""
        self._servers, self._tokenizer, self._served = servers, tokenizer, served
        self._asking, self._past = Asking(servers, served.name, tokenizer), Past()
        self._window = TextWindow.for_device("remote", config.prefix_chars, config.suffix_chars)
        self._masking = Masking(self._window)
        max_context = MAX_CONTEXT_TOKENS if config.context_tokens < 0 else config.context_tokens
        form = RepositoryFormat(tokenizer, max_context, mask)
        ladder = PromptLadder(
            tokenizer,
            self._window,
            max_prompt=max(64, served.num_positions - MAX_NEW_TOKENS - form.max_tokens),
        )
        self._prompts = PromptChooser(ladder, form, self._past)
        self._unfinished: _Unfinished | None = None

    @classmethod
    def load(
        cls,
        config: RemoteConfig,
        tokenizer: Tokenizer,
        report: Progress | None = None,
        should_stop: ShouldStop | None = None,
    ) -> RemoteCompleter:
        """Connect, and prove that the servers' tokenizer is `tokenizer`. Raises UserError, RemoteError."""
        endpoint = Endpoint.of(config)
        if report is not None:
            report(f"Connecting to {endpoint.authority}", 0, 1)
        servers = Servers(endpoint)
        try:
            served = prove(servers, config.model, tokenizer, Wait.seconds(_LOAD_S, should_stop=should_stop))
        except BaseException:
            servers.close()
            raise
        tokenizer.tokens_towards(b"x")  # builds its tables now, not under the first keystroke
        return cls(config, servers, tokenizer, served)

    def complete(self, request: CompletionRequest) -> Completion:
        """The verified completion at the request's cursor; empty text when nothing is worth showing.

        Raises RemoteError, and CancelledError at once when the request is cancelled: the servers stop.
        """
        if rule := refusal(request):
            return Completion("", 0, CompletionStats(), rule=rule)
        with woken_by(self._servers.waker, request.cancellation):
            return self._complete(request)

    def expect(self, request: CompletionRequest, *, writes: bool = False) -> None:
        """Nothing is asked of servers that nobody waits for."""

    def idle(self, cancellation: Cancellation) -> bool:
        """Take in more of an answer that a deadline cut short. False when nothing is left."""
        if self._unfinished is None or cancellation.is_cancelled:
            return False
        rest = self._unfinished
        rest.writing.cancellation = cancellation
        try:
            if time.perf_counter() < rest.until_s and not rest.is_written:
                with woken_by(self._servers.waker, cancellation):
                    rest.writing.step(_IDLE_MS)
                rest.place.has_ended = rest.writing.has_ended
                return True
        except RemoteError:
            pass  # nobody waits: whoever asks next hears of it
        self._leave_unfinished()
        return False

    def open(self, language: str) -> None:
        """A document of a language is open: its grammar is loaded, lest the first keystroke waits for it."""
        load_grammar(language)

    def forget(self, document: str) -> None:
        """A document is closed: nothing of it is kept."""
        if self._unfinished is not None and self._unfinished.place.document == document:
            self._leave_unfinished()
        self._past.forget(document)
        self._prompts.forget(document)

    def describe(self) -> dict[str, Any]:
        """For `stats` and `doctor`."""
        return {
            "state": "ready",
            "target": self._served.name,
            "device": "remote",
            "drafters": [],
            "exactness": EXACTNESS,
            "capacity": self._served.num_positions,
            "num_context_tokens": self._prompts.max_context_tokens,
            "window_chars": astuple(self._window),
            "remote": {
                "servers": self._servers.endpoint.authority,
                "leaves": LEAVES,
                "num_connections": self._servers.num_connections,
            },
        }

    def close(self) -> None:
        """Let go of the connection."""
        self._leave_unfinished()
        self._servers.close()

    def _complete(self, request: CompletionRequest) -> Completion:
        begin = time.perf_counter()
        cursor = cursor_of(request)
        rules = StopRules(cursor)
        if nothing := silence(rules, request):
            return Completion("", 0, CompletionStats(finish_reason=nothing.reason), rule=nothing.rule)
        if (shown := self._masking.around(cursor)) is None:
            return Completion("", 0, CompletionStats(), rule=AT_CURSOR)
        prompt = self._prompts.choose(request, shown.prefix, shown.suffix, PromptBudget()).prompt
        limits = Limits.of(request, min(request.max_tokens, MAX_NEW_TOKENS), begin, cold_ms=0.0)
        writing = self._going_on(request, prompt, limits)
        writing.stats.ms["prompt"] = (time.perf_counter() - begin) * 1e3
        place = self._place(request, prompt, writing)
        with _closed_on_failure(writing), self._asking.others(request, prompt, limits) as others:
            try:
                finish = run(writing, rules, limits, request.cancellation)
            finally:
                place.has_ended = writing.has_ended
                self._past.keep(place)
            origins = Origins(self._tokenizer, request.index, prompt.num_context)
            task = _Task(request, self._tokenizer, writing.weighs, origins)
            completion = judged_answer(task, rules, writing, finish, begin)
            completion = with_alternatives(
                completion, self._answers(task, others, rules, limits), request.num_candidates
            )
        if finish.reason == "deadline" and writing.is_open:
            until_s = time.perf_counter() + REST_S
            self._unfinished = _Unfinished(writing, rules, limits, place, until_s)
        else:
            writing.close()
        return completion

    def _going_on(self, request: CompletionRequest, prompt: Prompt, limits: Limits) -> RemoteWriting:
        """What goes on behind all that is known to follow the prompt, by the stream that writes it."""
        written = Written(self._tokenizer, prompt.healed)
        known = self._past.along(request, prompt, written)
        writing = self._asking.writing(request, prompt, limits, known)
        if self._unfinished is not None:
            if self._unfinished.place.weighs or not weighs_for(request):
                writing.take_over(self._unfinished.writing)
            self._leave_unfinished()
        return writing

    @staticmethod
    def _answers(
        task: _Task, others: list[RemoteWriting], rules: StopRules, limits: Limits
    ) -> Iterator[Completion]:
        """What the further candidates amount to, until patience ends."""
        patient = replace(limits, deadline_at=limits.patience_at)
        for writing in others:
            begin = time.perf_counter()
            if begin > limits.patience_at:
                return
            with contextlib.suppress(RemoteError):
                finish = run(writing, rules, patient, writing.cancellation)
                yield judged_answer(replace(task, weighs=writing.weighs), rules, writing, finish, begin)

    def _place(self, request: CompletionRequest, prompt: Prompt, writing: RemoteWriting) -> Place:
        """What is kept of an answer, also while it goes on."""
        setting, weighs = setting_of(request), weighs_for(request)
        path, chances = writing.path, writing.chances
        return Place(request.document, path, chances, len(prompt.tokens), prompt.healed, setting, weighs)

    def _leave_unfinished(self) -> None:
        if self._unfinished is not None:
            self._unfinished.writing.close()
            self._unfinished = None


@contextlib.contextmanager
def _closed_on_failure(writing: RemoteWriting) -> Iterator[None]:
    """Whatever ends the work on a text but success, the servers stop writing it."""
    try:
        yield
    except BaseException:
        writing.close()
        raise
