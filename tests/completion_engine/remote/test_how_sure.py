"""Probabilities from the servers: an answer ends where the local engine's would."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from completion_engine.engine import CompletionEngine
from completion_engine.probability import NOT_SCORED, NUM_RIVALS, TokenProbability
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.token_stream import probabilities_of
from completion_engine.request import Cancellation, Completion, CompletionRequest
from ngram_cache import NgramIndex
from tests.completion_engine.remote.conftest import STORY
from tests.remote_server import (
    PATIENCE_S,
    Answering,
    Brain,
    RemoteServer,
    by_heart,
    logprobs,
    pausing,
)

At = Callable[..., CompletionRequest]
Both = Callable[[CompletionRequest], tuple[Completion, Completion]]
HEAD = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n"
TEXTS = [HEAD, HEAD + "        res", HEAD + "        result.append(argument)\n    ret", "class Loan:\n    "]
EAGERNESSES = [0.05, 0.6, 0.9, 0.999, 1.0]


@pytest.fixture
def completer_of_toy(
    load: Callable[..., RemoteCompleter], serve: Callable[..., RemoteServer], toy: Brain
) -> RemoteCompleter:
    return load(serve(toy))


@pytest.fixture
def both(completer_of_toy: RemoteCompleter, make_engine: Callable[..., CompletionEngine]) -> Both:
    """Asks the servers and the local engine."""
    local = make_engine(drafters=(), context_tokens=0)
    return lambda request: (completer_of_toy.complete(request), local.complete(request))


def check(theirs: Completion, ours: Completion, *, is_begun: bool = False) -> None:
    """Both show the same, and are as sure of it.

    Where tokens are begun, the servers gave the likeliest rivals of their first forms alone; the local
    engine scores them again.
    """
    sure, expected = theirs.forecast.probabilities, ours.forecast.probabilities
    if is_begun:
        assert theirs.text.startswith(ours.text)
        assert all(one > other - 1e-6 for one, other in zip(sure, expected, strict=False))
        return
    assert (theirs.text, theirs.num_replaced, theirs.rule) == (ours.text, ours.num_replaced, ours.rule)
    assert theirs.forecast.text == ours.forecast.text
    assert theirs.forecast.num_chars == ours.forecast.num_chars
    assert sure == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("eagerness", EAGERNESSES)
def test_an_answer_ends_where_the_local_engines_does(both: Both, request_at: At, eagerness: float) -> None:
    for at, prefix in enumerate(TEXTS):
        theirs, ours = both(request_at(prefix, document=f"{at}.py", eagerness=eagerness))
        if eagerness < 1:
            check(theirs, ours)
        else:
            assert theirs.text == ours.text


def test_typing_along_is_as_sure_as_in_the_local_engine(both: Both, request_at: At) -> None:
    num_typed = 0
    for at, prefix in enumerate(TEXTS):
        request = request_at(prefix, document=f"{at}.py", eagerness=0.999)
        whole = both(request)[1].text
        for end in range(1, len(whole)):
            check(*both(replace(request, prefix=prefix + whole[:end])), is_begun=True)
            num_typed += 1
    assert num_typed > 8


def test_what_was_asked_for_by_a_key_is_scored_before_it_counts_as_sure(
    both: Both, completer_of_toy: RemoteCompleter, request_at: At
) -> None:
    for at, prefix in enumerate(TEXTS):
        request = request_at(prefix, document=f"{at}.py", eagerness=0.6)
        assert not completer_of_toy.complete(replace(request, eagerness=1.0)).forecast.is_scored
        check(*both(request))


def test_an_answer_ends_before_a_name_that_nobody_knows(
    both: Both, tokenizer: Tokenizer, request_at: At
) -> None:
    index = NgramIndex([("b.py", tokenizer.encode(HEAD * 250))])
    rules = set()
    for at, prefix in enumerate(TEXTS):
        for eagerness in (0.9, 0.99, 0.997, 0.999, 0.9999):
            found = both(
                request_at(
                    prefix, document=f"{at}.py", eagerness=eagerness, index=index, repository_memory="off"
                )
            )
            check(*found)
            rules |= {one.rule for one in found}
    assert "unknown-name" in rules


def test_the_servers_write_no_further_than_they_are_sure(
    load: Callable[..., RemoteCompleter],
    serve: Callable[..., RemoteServer],
    tokenizer: Tokenizer,
    request_at: At,
) -> None:
    words = tokenizer.encode(" add(first, second):\n    return first\n")
    doubted = len(tokenizer.encode(" add(first,"))
    shares = [0.99 if at < doubted else 0.01 for at in range(len(words))]

    def write_and_wait(answering: Answering) -> None:
        answering.write(doubted + 1)
        answering.stay_silent()

    server = serve(by_heart(words, shares))
    server.faults.append(write_and_wait)
    found = load(server).complete(request_at("def add", eagerness=0.6))
    assert (found.rule, found.stats.finish_reason) == ("unsure", "unsure")
    assert found.text and "(first,".startswith(found.text)
    assert server.completions[0].was_left.wait(PATIENCE_S)


def test_the_rest_of_a_late_answer_is_taken_in_as_far_as_it_is_sure(
    load: Callable[..., RemoteCompleter],
    serve: Callable[..., RemoteServer],
    tokenizer: Tokenizer,
    request_at: At,
) -> None:
    words = tokenizer.encode(STORY)
    shares = [0.999 if at < 20 else 0.01 for at in range(len(words))]
    may_go_on = threading.Event()

    server = serve(by_heart(words, shares))
    server.faults.append(pausing(18, may_go_on))
    completer = load(server)
    request = request_at(eagerness=0.6, deadline_ms=200)
    assert completer.complete(request).stats.finish_reason == "deadline"
    may_go_on.set()
    while completer.idle(Cancellation()):
        pass
    known = tokenizer.decode(words[:21]).removeprefix(" mul")
    completer.complete(replace(request, prefix=request.prefix + known[:-1]))
    assert len(server.completions) == 1
    completer.complete(replace(request, prefix=request.prefix + tokenizer.decode(words[:25])[4:]))
    assert len(server.completions) == 2


def test_probabilities_are_asked_for_where_they_decide(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    completer.complete(request_at(eagerness=0.6))
    completer.complete(request_at("import ", eagerness=1.0))
    asked, not_asked = (asked.json for asked in server.completions)
    assert (asked["logprobs"], asked["return_tokens_as_token_ids"]) == (NUM_RIVALS, True)
    assert "logprobs" not in not_asked


def test_servers_that_do_not_say_how_sure_they_are_are_believed(
    completer: RemoteCompleter, request_at: At
) -> None:
    assert completer.complete(request_at(eagerness=0.05)).text.startswith("tiply(first, second):")


def test_typing_along_what_they_were_not_sure_of_asks_nobody(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    request = request_at(eagerness=0.6)
    for typed in ("", "t", "tip"):
        assert completer.complete(replace(request, prefix=request.prefix + typed)).text
    assert len(server.completions) == 1


def test_a_stream_that_tells_no_probabilities_is_not_gone_on_with_where_they_decide(
    load: Callable[..., RemoteCompleter],
    serve: Callable[..., RemoteServer],
    tokenizer: Tokenizer,
    request_at: At,
) -> None:
    words = tokenizer.encode(STORY)
    may_go_on = threading.Event()

    def write_slowly(answering: Answering) -> None:
        answering.write(len(words) // 2)
        may_go_on.wait(PATIENCE_S)

    server = serve(by_heart(words, [0.999] * len(words)))
    server.faults.append(write_slowly)
    completer = load(server)
    request = request_at(eagerness=1.0, deadline_ms=200)
    assert completer.complete(request).stats.finish_reason == "deadline"
    found = completer.complete(replace(request, eagerness=0.6, deadline_ms=0))
    may_go_on.set()
    assert found.forecast.is_scored
    assert len(server.completions) == 2


@pytest.mark.parametrize(
    "told",
    [
        None,
        7,
        {},
        {"token_logprobs": None},
        {"token_logprobs": [-1.0]},
        {"token_logprobs": [-1.0, -1.0, -1.0]},
    ],
)
def test_what_fits_no_tokens_is_not_told(told: object) -> None:
    assert probabilities_of(told, [1, 2]) == ()


@pytest.mark.parametrize("value", [None, "x", True, 0.5, float("nan"), float("inf"), [], {}])
def test_what_is_no_probability_is_not_told(value: object) -> None:
    assert probabilities_of({"token_logprobs": [value]}, [1]) == (NOT_SCORED,)
    told = {"token_logprobs": [-1.0], "top_logprobs": [{"token_id:2": value}]}
    (probability,) = probabilities_of(told, [1])
    assert probability.rivals == ()


@pytest.mark.parametrize("value", [-(10**400), float("-inf"), -9999.0])
def test_the_unlikeliest_token_is_not_impossible(value: float) -> None:
    (probability,) = probabilities_of({"token_logprobs": [value]}, [1])
    assert probability.among(lambda _: False).value > 0
    assert probability.value < 1e-6


@pytest.mark.parametrize("name", ["2", "token_id:", "token_id:-2", "token_id:²", "token_id:99999999999", "x"])
def test_a_rival_without_a_number_is_none(name: str) -> None:
    (probability,) = probabilities_of({"token_logprobs": [-1.0], "top_logprobs": [{name: -2.0}]}, [1])
    assert probability.rivals == ()


def test_probabilities_in_vllms_words_are_understood() -> None:
    probabilities = [TokenProbability(0.5, ((3, 0.25), (4, 0.125))), TokenProbability(0.125, ((9, 0.75),))]
    found = probabilities_of(logprobs(probabilities, [1, 2]), [1, 2])
    assert [probability.value for probability in found] == pytest.approx([0.5, 0.125])
    assert [dict(probability.rivals) for probability in found] == [
        pytest.approx({3: 0.25, 4: 0.125}),
        pytest.approx({9: 0.75}),
    ]
