"""The front of a fleet, HAProxy with the documents' own configuration, before replicas that are scripted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from completion_engine.errors import RemoteError
from completion_engine.remote.answer import Wait
from completion_engine.remote.token_stream import Chunk, TokenStream
from completion_engine.remote.vllm_client import CompletionQuery
from tests.fleet.conftest import Connect
from tests.fleet.front import PLENTY, Front
from tests.fleet.processes import free_port
from tests.fleet.scripted import ScriptedReplica, serving
from tests.fleet.team import ADA, BEN, USERS
from tests.parts import MissingError

PATIENCE_S = 120.0


def patience() -> Wait:
    return Wait.seconds(PATIENCE_S)


@contextmanager
def front_of(folder: Path, *replicas: ScriptedReplica, quota: int = PLENTY) -> Iterator[Front]:
    """The front with these replicas; a missing one is a port without a listener."""
    with ExitStack() as stack:
        ports = [stack.enter_context(serving(replica)).port for replica in replicas]
        ports += [free_port() for _ in range(2 - len(ports))]
        try:
            front = Front(folder, [f"127.0.0.1:{port}" for port in ports], USERS, quota=quota)
        except MissingError as error:
            pytest.skip(str(error))
        stack.callback(front.kill)
        yield front


def all_of(stream: TokenStream) -> list[int]:
    tokens: list[int] = []
    while (chunk := stream.read(patience())) is not None:
        tokens += chunk.tokens
    assert stream.has_ended
    return tokens


def ask(connect: Connect, front: Front, token: str = ADA, session: str = "one") -> list[int]:
    servers = connect(front.client(token))
    return all_of(servers.complete(CompletionQuery((1, 2, 3), 8, session=session), "target"))


def test_an_answer_comes_through_and_no_token_goes_to_a_replica(tmp_path: Path, connect: Connect) -> None:
    replica = ScriptedReplica()
    with front_of(tmp_path, replica, replica) as front:
        assert ask(connect, front) == [5, 6, 7]
        assert ADA not in front.log.read_text()
    assert not any(name.lower() == "authorization" for headers in replica.headers for name in headers)


def test_who_has_no_known_token_is_turned_away(tmp_path: Path, connect: Connect) -> None:
    replica = ScriptedReplica()
    with front_of(tmp_path, replica, replica) as front:
        with pytest.raises(RemoteError) as refused:
            ask(connect, front, "another-token")
        assert refused.value.kind == "refused"
        assert "401" in refused.value.message
    assert not replica.headers


def test_a_user_above_the_quota_gives_way_and_the_others_do_not(tmp_path: Path, connect: Connect) -> None:
    replica = ScriptedReplica()
    with front_of(tmp_path, replica, replica, quota=3) as front:
        answers = [ask(connect, front) for _ in range(3)]
        with pytest.raises(RemoteError) as busy:
            ask(connect, front)
        assert busy.value.kind == "busy"
        assert busy.value.retry_s == 1.0
        assert [*answers, ask(connect, front, BEN)] == [[5, 6, 7]] * 4


def test_a_documents_requests_go_to_one_replica(tmp_path: Path, connect: Connect) -> None:
    one, two = ScriptedReplica(), ScriptedReplica()
    sessions = [f"document {number}" for number in range(12)]
    with front_of(tmp_path, one, two) as front:
        for session in [*sessions, *sessions]:
            ask(connect, front, session=session)
    assert not set(one.sessions) & set(two.sessions)
    assert sorted(one.sessions + two.sessions) == sorted([*sessions, *sessions])
    assert one.sessions
    assert two.sessions


def test_a_dead_replicas_requests_are_answered_by_the_other(tmp_path: Path, connect: Connect) -> None:
    """Also before any check has noticed."""
    with front_of(tmp_path, ScriptedReplica()) as front:
        assert [ask(connect, front, session=f"document {at}") for at in range(6)] == [[5, 6, 7]] * 6


def test_a_dead_replica_is_not_offered_again_because_the_other_has_much_to_do(
    tmp_path: Path, connect: Connect
) -> None:
    with front_of(tmp_path, ScriptedReplica(goes_on=False)) as front:
        servers = connect(front.client(ADA))
        questions = [CompletionQuery((1, 2, 3), 8, session=f"document {number}") for number in range(12)]
        streams = [servers.complete(question, "target") for question in questions]
        assert [stream.read(patience()) for stream in streams] == [Chunk((5,))] * 12


def test_with_no_replica_left_the_front_says_so(tmp_path: Path, connect: Connect) -> None:
    with front_of(tmp_path) as front:
        with pytest.raises(RemoteError) as missing:
            ask(connect, front)
        assert missing.value.kind == "unavailable"
        assert "503" in missing.value.message


def test_leaving_an_answer_reaches_the_replica(tmp_path: Path, connect: Connect) -> None:
    replica = ScriptedReplica(goes_on=False)
    with front_of(tmp_path, replica, replica) as front:
        servers = connect(front.client(ADA))
        stream = servers.complete(CompletionQuery((1, 2, 3), 8), "target")
        chunk = stream.read(patience())
        assert chunk is not None
        assert chunk.tokens == (5,)
        assert not replica.was_left.is_set()
        stream.close()
        assert replica.was_left.wait(PATIENCE_S)


def test_metrics_stay_inside(tmp_path: Path, connect: Connect) -> None:
    replica = ScriptedReplica()
    with front_of(tmp_path, replica, replica) as front:
        config = front.client(ADA)
        servers = connect(config)
        answer = servers.request("GET", "/metrics", b"", {})
        assert answer.wait_for_status(patience()) == 404
