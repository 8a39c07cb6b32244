"""The promises of a fleet of real vLLM replicas: unwanted streams end, users are kept apart."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from completion_engine.prompting.prompt import HealingConstraint
from completion_engine.prompting.tokenizer import load_tokenizer
from completion_engine.remote.answer import Wait
from completion_engine.remote.token_stream import TokenStream
from completion_engine.remote.vllm_client import CompletionQuery, QueryNames
from tests.fleet.conftest import Connect
from tests.fleet.editors import prompt_tokens
from tests.fleet.replica import MODEL
from tests.fleet.team import ADA, BEN, Team
from tests.parts import ROOT

pytestmark = [pytest.mark.fleet, pytest.mark.timeout(1200)]
PATIENCE_S = 300.0
LONG = 2000  # tokens, far more than are written before the test's next move
# Tokens that may be written while a reset is on its way: the step under way, and what was written and not
# read yet.
IN_FLIGHT = 200
# Seeds of prompts that no other test has asked for, and how long those are.
FRESH, NUM_TOKENS = 500, 320
_IMPOSSIBLE = 1e-6


METRIC = re.compile(r"(?:vllm:|haproxy_)\w+")


def metrics_of_the_board() -> set[str]:
    """The names of all that it asks for."""
    board = json.loads((ROOT / "docs/fleet/grafana.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return {name for expression in asked for name in METRIC.findall(expression)}


def patience() -> Wait:
    return Wait.seconds(PATIENCE_S)


def read_until(stream: TokenStream, num_tokens: int) -> list[int]:
    """The first tokens: at least this number, or all."""
    tokens: list[int] = []
    while len(tokens) < num_tokens:
        chunk = stream.read(patience())
        if chunk is None:
            assert stream.has_ended, "the servers do not answer"
            break
        tokens += chunk.tokens
    return tokens


def wait_until_running(team: Team, num_requests: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while team.num_running != num_requests:
        assert time.monotonic() < until, "the replicas still work"


def test_leaving_an_answer_frees_the_server_and_its_sibling_goes_on(
    team: Team, connect: Connect, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = connect(team.front.client(ADA))
    wait_until_running(team, 0)
    before = team.num_written
    unwanted = servers.complete(CompletionQuery(prompt_tokens(FRESH, NUM_TOKENS), LONG, session="one"), MODEL)
    sibling = servers.complete(
        CompletionQuery(prompt_tokens(FRESH + 1, NUM_TOKENS), LONG, session="one"), MODEL
    )
    num_read = len(read_until(unwanted, 20))
    unwanted.close()
    wait_until_running(team, 1)
    assert len(read_until(sibling, LONG)) == LONG
    wait_until_running(team, 0)
    num_vain = team.num_written - before - LONG - num_read
    with capsys.disabled():
        print(f"\ntokens written after what was read when it was left: {num_vain}")  # noqa: T201
    assert num_vain < IN_FLIGHT


def test_a_users_own_prompt_is_cached_and_nobody_elses_is(team: Team, connect: Connect) -> None:
    """A user who could see that a text is cached would learn that another user has it."""
    text = prompt_tokens(FRESH + 2, NUM_TOKENS)

    def cached_for(token: str) -> int:
        salt = QueryNames(token).salt
        stream = connect(team.front.client(token)).complete(
            CompletionQuery(text, 4, salt=salt, session="same"), MODEL
        )
        read_until(stream, LONG)
        return stream.num_cached

    wait_until_running(team, 0)
    before = team.num_cached
    assert cached_for(ADA) == 0
    assert cached_for(BEN) == 0
    assert team.num_cached == before  # by the replicas' own count
    own = cached_for(ADA)
    assert own > len(text) - 64
    assert team.num_cached == before + own


def test_an_answer_begins_as_it_must_and_tells_how_likely_it_is(
    team: Team, connect: Connect, served_target: Path
) -> None:
    """Shares are those among what may be written, and no pattern is worth a line in a replica's log."""
    bound = HealingConstraint(load_tokenizer(served_target), b" (x.y")
    question = CompletionQuery(prompt_tokens(FRESH + 3, 64), 16, healed=bound.bytes, scores=True)
    stream = connect(team.front.client(ADA)).complete(question, MODEL)
    tokens: list[int] = []
    while (chunk := stream.read(patience())) is not None:
        assert len(chunk.probabilities) == len(chunk.tokens)
        for token, probability in zip(chunk.tokens, chunk.probabilities, strict=True):
            assert 0 < probability.value <= 1
            assert all(bound.allows(rival) for rival, value in probability.rivals if value > _IMPOSSIBLE)
            bound = bound.after(token)
        tokens += chunk.tokens
    assert bound.tokenizer.spell(tokens).startswith(question.healed)
    assert not any("Escape sequence" in replica.log.read_text() for replica in team.replicas)


@pytest.mark.parametrize("metric", sorted(metrics_of_the_board()))
def test_what_the_board_shows_is_what_a_fleet_measures(team: Team, metric: str) -> None:
    named = "".join([team.front.read("/metrics"), *(replica.read("/metrics") for replica in team.replicas)])
    assert f"\n{metric}{{" in named
