"""A replica that dies takes no answer with it: twelve streams, and two hundred editors."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError

import pytest

from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from lsp_server.workspace.measurements import percentiles
from tests.fleet.editors import Editor, many_type, prompt_tokens
from tests.fleet.replica import Replica
from tests.fleet.team import USERS, Team

pytestmark = [pytest.mark.fleet, pytest.mark.timeout(1800)]
PATIENCE_S = 600.0
NUM_STREAMS = 12
NUM_TOKENS = 400  # tokens of each, far more than are written while a replica is being killed
NUM_EDITORS = int(os.environ.get("SLIPSTREAM_FLEET_EDITORS", "40"))
TYPING_S = float(os.environ.get("SLIPSTREAM_FLEET_SECONDS", "10"))


@pytest.fixture(scope="module")
def tokenizer(served_target: Path) -> Tokenizer:
    return load_tokenizer(served_target)


def wait_for(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.1)


@contextmanager
def revived(team: Team) -> Iterator[None]:
    """Whatever dies in here is there again for the tests that follow."""
    try:
        yield
    finally:
        for replica in team.replicas:
            if not replica.is_running:
                replica.start()
                replica.wait_until_ready()
        wait_for(lambda: team.front.num_up() == len(team.replicas), "the front misses a replica")


@contextmanager
def all_or_none(barrier: Barrier) -> Iterator[None]:
    """No thread waits for one that failed."""
    try:
        yield
    except BaseException:
        barrier.abort()
        raise


def busiest(team: Team) -> Replica:
    return max(team.replicas, key=lambda replica: replica.num_running)


def written_by_all(
    team: Team, tokenizer: Tokenizer, meanwhile: Callable[[], None]
) -> list[tuple[list[int], int]]:
    """Streams beside each other, each a window's; `meanwhile` runs when all are under way.

    Returns the tokens of each, and how often it was asked for.
    """
    all_under_way = Barrier(NUM_STREAMS + 1)

    def write(number: int) -> tuple[list[int], int]:
        token = sorted(USERS)[number % len(USERS)]
        with (
            all_or_none(all_under_way),
            closing(Editor(team.front.client(token), tokenizer, number)) as editor,
        ):
            writing = editor.ask(prompt_tokens(1000 + number, 320), NUM_TOKENS)
            while not writing.tokens:
                editor.read(writing)
            all_under_way.wait(PATIENCE_S)
            editor.read_all(writing, NUM_TOKENS)
            return writing.tokens, editor.num_asked

    with ThreadPoolExecutor(NUM_STREAMS) as threads:
        streams = [threads.submit(write, number) for number in range(NUM_STREAMS)]
        with suppress(BrokenBarrierError):
            all_under_way.wait(PATIENCE_S)
            meanwhile()
        return [stream.result() for stream in streams]


def test_of_twelve_streams_none_is_lost_and_none_differs(team: Team, tokenizer: Tokenizer) -> None:
    undisturbed = written_by_all(team, tokenizer, lambda: None)
    with revived(team):
        disturbed = written_by_all(team, tokenizer, lambda: busiest(team).kill())
    assert [len(tokens) for tokens, _ in disturbed] == [NUM_TOKENS] * NUM_STREAMS
    assert [tokens for tokens, _ in disturbed] == [tokens for tokens, _ in undisturbed]
    assert [num_asked for _, num_asked in undisturbed] == [1] * NUM_STREAMS
    assert any(num_asked > 1 for _, num_asked in disturbed)


def test_of_many_editors_none_loses_an_answer_and_none_that_left_is_written_for(
    team: Team, tokenizer: Tokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    num_long: list[int] = []
    before = sum(replica.num_long for replica in team.replicas)

    def half_way() -> None:
        time.sleep(TYPING_S / 2)
        victim = busiest(team)
        num_long.append(victim.num_long)
        victim.kill()
        time.sleep(TYPING_S / 2)

    configs = [team.front.client(token) for token in USERS]
    with revived(team):
        seen = many_type(configs, tokenizer, NUM_EDITORS, half_way)
        (survivor,) = [replica for replica in team.replicas if replica.is_running]
        wait_for(lambda: survivor.num_running == 0, "the replica still works")
        num_long.append(survivor.num_long)
    figures = {
        "num_editors": NUM_EDITORS,
        "typing_s": TYPING_S,
        "num_answered": seen.num_answered,
        "num_lost": len(seen.lost),
        "num_resumed": seen.num_resumed,
        "num_taken_back": seen.num_taken_back,
        "num_written_on": sum(num_long) - before,
        "first_token_ms": percentiles(1e3 * seconds for seconds in seen.first_s),
    }
    with capsys.disabled():
        print("\n" + json.dumps(figures))  # noqa: T201 - what `make test-fleet` reports
    assert seen.lost == []
    assert seen.num_answered >= NUM_EDITORS
    assert seen.num_taken_back > 0
    assert sum(num_long) == before
