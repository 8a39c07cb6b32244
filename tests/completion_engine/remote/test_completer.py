"""The completer on a server: the same answers as the local engine, with few requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from completion_engine.engine import CompletionEngine
from completion_engine.errors import RemoteError
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.remote_writing import RemoteWriting
from completion_engine.request import (
    Cancellation,
    CancelledError,
    CompletionRequest,
    RepositoryContext,
    Snippet,
)
from tests.remote_server import PATIENCE_S, Answering, Brain, RemoteServer, pausing, whole

Load = Callable[..., RemoteCompleter]
At = Callable[..., CompletionRequest]
REST = "tiply(first, second):\n    return first * second"


def test_an_answer_is_the_local_engine_s(
    load: Load,
    serve: Callable[..., RemoteServer],
    toy: Brain,
    make_engine: Callable[..., CompletionEngine],
    request_at: At,
) -> None:
    local, server = make_engine(drafters=(), context_tokens=0), serve(toy)
    completer = load(server)
    for prefix in ("def mul", "import os\n\nfor name in os.", "class Loan:\n    ", "x = "):
        request = request_at(prefix)
        ours, theirs = completer.complete(request), local.complete(request)
        assert (ours.text, ours.num_replaced, ours.rule) == (theirs.text, theirs.num_replaced, theirs.rule)
        assert ours.stats.num_tokens == theirs.stats.num_tokens


def test_typing_along_an_answer_asks_nobody(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    request = request_at()
    assert completer.complete(request).text == REST
    for typed in ("t", "tip", "tiply(", "tiply(first, sec"):
        along = replace(request, prefix=request.prefix + typed)
        assert completer.complete(along).text == REST.removeprefix(typed)
    assert len(server.completions) == 1
    completer.complete(replace(request, prefix=request.prefix + "tx"))
    assert len(server.completions) == 2


def test_what_is_asked(completer: RemoteCompleter, server: RemoteServer, request_at: At) -> None:
    completer.complete(request_at())
    asked = server.completions[0]
    body = asked.json
    assert asked.healed == b" mul"
    fixed = {"temperature": 0.0, "stream": True, "return_token_ids": True, "max_tokens": 72, "model": "tiny"}
    assert {key: body[key] for key in fixed} == fixed
    assert all(type(token) is int for token in body["prompt"])
    assert body["stop_token_ids"]
    assert len(body["cache_salt"]) == 64
    assert "seed" not in body
    completer.complete(request_at("import ", document="b.py"))
    other = server.completions[1]
    assert other.json["cache_salt"] == body["cache_salt"]
    assert other.headers["x-session-id"] != asked.headers["x-session-id"]


def test_a_broken_answer_goes_on_where_it_broke(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    def die(answering: Answering) -> None:
        answering.write(3)
        answering.data(b"", end=True)

    def hang_up(answering: Answering) -> None:
        answering.write(2)
        answering.hang_up()

    def broken(answering: Answering) -> None:
        answering.write(1)
        answering.event({"error": {"message": "EngineDeadError", "type": "InternalServerError"}})
        answering.event("[DONE]")
        answering.data(b"", end=True)

    server.faults.extend([die, hang_up, broken])
    assert completer.complete(request_at()).text == REST
    prompts = [asked.json["prompt"] for asked in server.completions]
    assert [len(prompt) - len(prompts[0]) for prompt in prompts] == [0, 3, 5, 6]


def test_an_answer_that_breaks_off_again_and_again_is_given_up(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    server.always = lambda answering: (answering.head(), answering.data(b"", end=True))
    with pytest.raises(RemoteError) as failure:
        completer.complete(request_at())
    assert failure.value.kind == "truncated"
    assert len(server.completions) == 4


def test_a_cancelled_request_frees_the_server_and_the_next_is_answered(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    may_end = threading.Event()

    def begin_and_wait(answering: Answering) -> None:
        answering.write(1)
        may_end.set()
        answering.stay_silent()

    server.faults.append(begin_and_wait)
    request = request_at()

    def cancel() -> None:
        assert may_end.wait(PATIENCE_S)
        request.cancellation.cancel()

    threading.Thread(target=cancel).start()
    with pytest.raises(CancelledError):
        completer.complete(request)
    assert server.completions[0].was_left.wait(PATIENCE_S)
    assert server.completions[0].num_written == 1
    assert completer.complete(request_at()).text == REST


def test_what_a_rule_ends_is_written_no_further(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    def write_and_wait(answering: Answering) -> None:
        answering.write(18)
        answering.stay_silent()

    server.faults.append(write_and_wait)
    assert completer.complete(request_at(multiline="never")).text == "tiply(first, second):"
    assert server.completions[0].was_left.wait(PATIENCE_S)


def test_a_deadline_s_rest_comes_while_nobody_waits_and_is_gone_on_with(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    may_go_on = threading.Event()

    server.faults.append(pausing(18, may_go_on))
    request = request_at(deadline_ms=200)
    first = completer.complete(request)
    assert first.stats.finish_reason == "deadline"
    assert REST.startswith(first.text) and first.text != REST
    may_go_on.set()
    while completer.idle(Cancellation()):
        pass
    assert completer.complete(request_at()).text == REST
    assert len(server.completions) == 1


def test_no_answer_within_patience_is_an_error(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    server.always = Answering.stay_silent
    with pytest.raises(RemoteError) as failure:
        completer.complete(request_at(deadline_ms=20, patience_ms=60))
    assert (failure.value.kind, failure.value.is_lasting) == ("silent", True)
    assert server.completions[0].was_left.wait(PATIENCE_S)


def test_silence_is_an_error_although_the_thread_wakes_after_patience(
    completer: RemoteCompleter, server: RemoteServer, request_at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = RemoteWriting.step

    def wake_late(writing: RemoteWriting, within_ms: float) -> None:
        step(writing, within_ms)
        time.sleep(0.1)

    monkeypatch.setattr(RemoteWriting, "step", wake_late)
    server.always = Answering.stay_silent
    with pytest.raises(RemoteError) as failure:
        completer.complete(request_at(deadline_ms=20, patience_ms=60))
    assert failure.value.kind == "silent"


def test_text_that_does_not_begin_as_typed_is_not_shown(
    load: Load, serve: Callable[..., RemoteServer], tokenizer: Tokenizer, request_at: At
) -> None:
    server = serve(lambda *_: tokenizer.encode(" add(first):\n"))
    assert load(server).complete(request_at()).text == ""


def test_candidates_are_asked_for_side_by_side(
    completer: RemoteCompleter, server: RemoteServer, tokenizer: Tokenizer, request_at: At
) -> None:
    def by_seed(answering: Answering) -> None:
        if (seed := answering.asked.json.get("seed")) is None:
            return whole(answering)
        answering.head()
        answering.tokens(tokenizer.encode(f" mul{seed}(a, b):\n"))
        return answering.done()

    server.always = by_seed
    found = completer.complete(request_at(num_candidates=3, multiline="never"))
    assert found.text == "tiply(first, second):"
    assert {one.text for one in found.alternatives} == {"1(a, b):", "2(a, b):"}


def test_who_cancels_the_wait_for_further_candidates_leaves_none_open(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    """The first text is cut short by its deadline meanwhile."""
    written = threading.Semaphore(0)

    def write_and_wait(answering: Answering) -> None:
        answering.write(18)
        written.release()
        answering.stay_silent()

    def cancel() -> None:
        for _ in range(2):
            assert written.acquire(timeout=PATIENCE_S)
        request.cancellation.cancel()

    server.faults.extend([write_and_wait] * 2)
    request = request_at(deadline_ms=1, num_candidates=2)
    threading.Thread(target=cancel).start()
    with pytest.raises(CancelledError):
        completer.complete(request)
    for asked in server.completions:
        assert asked.was_left.wait(PATIENCE_S)


def test_a_repository_s_pieces_stand_in_front(load: Load, server: RemoteServer, request_at: At) -> None:
    context = RepositoryContext("library", (Snippet("loans.py", "class Loan:\n    pass\n"),))
    completer = load(server, context_tokens=64)
    completer.complete(request_at(context=context, indexed_as="a.py"))
    completer.complete(request_at("import ", document="b.py"))
    assert completer.describe()["num_context_tokens"] == 64
    first, second = (asked.json["prompt"] for asked in server.completions)
    assert first[0] != second[0]


def test_what_must_not_leave_is_not_asked(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    secret = "ghp_" + "a8Fk2LmQ9xZr4TvB7nYc1WdE5uHj3GpS6oIk"
    refused = [
        request_at(may_leave=False),
        request_at(f'token = "{secret}'),
        request_at("x = 1\n", suffix="-----BEGIN RSA PRIVATE KEY-----\nMIIE\n"),
    ]
    rules = [completer.complete(request).rule for request in refused]
    assert rules == ["stays-here", "secret-at-cursor", "secret-at-cursor"]
    assert server.completions == []


def test_what_leaves_is_the_window_without_secrets(
    completer: RemoteCompleter, server: RemoteServer, tokenizer: Tokenizer, request_at: At
) -> None:
    secret = "ghp_" + "a8Fk2LmQ9xZr4TvB7nYc1WdE5uHj3GpS6oIk"
    far = "FAR_AWAY = 1\n" + "# filler\n" * 400
    request = request_at(
        f'{far}TOKEN = "{secret}"\n\ndef mul',
        suffix=f'\n\nKEY = "{secret}"\n',
        document="file:///home/someone/module.py",
    )
    completer.complete(request)
    sent = tokenizer.decode(server.completions[0].json["prompt"])
    assert "TOKEN" in sent and "KEY" in sent
    whole = sent + server.completions[0].body.decode() + str(server.completions[0].headers)
    assert secret not in whole and secret[4:12] not in whole
    assert "FAR_AWAY" not in whole
    assert "someone" not in whole
    assert sent.startswith("module.py\n")
