"""All faults of a server end in an error with advice, never in an endless wait."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from completion_engine.errors import RemoteError, RemoteFault
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote import connections
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.endpoint import RemoteConfig
from completion_engine.request import CompletionRequest
from tests.remote_server import PATIENCE_S, Answering, Fault, RemoteServer

Load = Callable[..., RemoteCompleter]
At = Callable[..., CompletionRequest]


def says(data: bytes, **head: str) -> Fault:
    return lambda answering: (answering.head(**head), answering.data(data, end=True))


def status(number: int, **headers: str) -> Fault:
    return lambda answering: answering.json({"error": {"type": "Some\x1bError"}}, number, **headers)


def event(value: object) -> Fault:
    text = value if isinstance(value, str) else json.dumps(value)
    return says(f"data: {text}\n\n".encode())


def choice(**fields: object) -> Fault:
    return event({"choices": [fields]})


def endless(answering: Answering) -> None:
    answering.head()
    while not answering.asked.was_left.is_set():
        answering.data(b": nothing\n" * 1000)


def dripping(answering: Answering) -> None:
    """A byte of a comment now and then, without an end."""
    answering.head()
    while not answering.asked.was_left.wait(0.001):
        answering.data(b":")


def endless_head(answering: Answering) -> None:
    answering.raw(b"HTTP/1.1 200 OK\r\n")
    while not answering.asked.was_left.is_set():
        answering.raw(b"x-filler: y\r\n")


def raw(data: bytes, num_times: int = 1) -> Fault:
    """Bytes as they are, after which the connection ends."""

    def answer(answering: Answering) -> None:
        for _ in range(num_times):
            answering.raw(data)
        answering.hang_up()

    return answer


def cut_short(answering: Answering) -> None:
    answering.head(transfer_encoding="identity", content_length="100")
    answering.raw(b"data: ")
    answering.hang_up()


CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (status(401), "refused"),
        (status(403), "refused"),
        (status(404), "refused"),
        (status(429, retry_after="7"), "busy"),
        (status(400), "unavailable"),
        (status(503), "unavailable"),
        (status(302, location="https://elsewhere.example"), "invalid"),
        (says(b"<html>", content_type="text/html"), "invalid"),
        (event("no json"), "invalid"),
        (event("[" * 10_000), "invalid"),
        (event([1]), "invalid"),
        (event({"choices": "none"}), "invalid"),
        (event({"choices": [{}, {}]}), "invalid"),
        (choice(text="words", token_ids=None), "invalid"),
        (choice(token_ids=["1"]), "invalid"),
        (choice(token_ids=[True]), "invalid"),
        (choice(token_ids=[-1]), "invalid"),
        (choice(token_ids=[1] * 100), "invalid"),
        (choice(token_ids=[], finish_reason="abort"), "truncated"),
        (choice(token_ids=[], finish_reason=[1]), "truncated"),
        (choice(token_ids=[], finish_reason={"stop": 1}), "truncated"),
        (says(b"data: " + b"x" * 600_000), "invalid"),
        (endless, "invalid"),
        (Answering.reset, "truncated"),
        (Answering.hang_up, "truncated"),
        (lambda answering: (answering.write(2), answering.reset()), "truncated"),
        (lambda answering: answering.head(x_filler="x" * 1_000_000), "invalid"),
        (endless_head, "invalid"),
        (raw(b"SSH-2.0-OpenSSH_9.9\r\n"), "invalid"),
        (raw(b"HTTP/\x1b[2J"), "invalid"),
        (raw(b"x" * 100_000, 10), "invalid"),
        (raw(b"HTTP/1.1 abc OK\r\n\r\n"), "invalid"),
        (raw(b"HTTP/1.1 200 OK\r\n"), "invalid"),
        (raw(CHUNKED + b"zz\r\n"), "truncated"),
        (raw(CHUNKED + b"1" * 100_000 + b"\r\n"), "invalid"),
        (raw(CHUNKED + b"ffffffffffff\r\ndata: "), "truncated"),
        (cut_short, "truncated"),
    ],
)
def test_a_fault_is_named_and_what_to_do(
    completer: RemoteCompleter, server: RemoteServer, request_at: At, fault: Fault, kind: RemoteFault
) -> None:
    server.always = fault
    with pytest.raises(RemoteError) as failure:
        completer.complete(request_at())
    assert failure.value.kind == kind
    assert "localhost" in failure.value.message
    assert failure.value.message.isprintable()
    server.always = None
    assert completer.complete(request_at()).text.startswith("tiply")


def test_how_long_a_busy_server_wants_to_be_left_alone(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    for said, seconds in (("7", 7.0), ("9999", 60.0), ("-1", 0.0), ("soon", 0.0), ("9" * 400, 0.0)):
        server.faults.append(status(429, retry_after=said))
        with pytest.raises(RemoteError) as failure:
            completer.complete(request_at())
        assert failure.value.retry_s == seconds


def test_a_wrong_token_is_refused_and_a_right_one_taken(
    serve: Callable[..., RemoteServer], load: Load, request_at: At, tmp_path: Path
) -> None:
    server, file = serve(token="abc-123"), tmp_path / "token"  # noqa: S106 - a test's
    file.write_text("wrong")
    file.chmod(0o600)
    with pytest.raises(RemoteError, match="tokenFile") as failure:
        load(server, token_file=str(file))
    assert failure.value.kind == "refused"
    file.write_text("abc-123")
    assert load(server, token_file=str(file)).complete(request_at()).text.startswith("tiply")


def test_another_tokenizer_is_found_out(server: RemoteServer, load: Load, tokenizer: Tokenizer) -> None:
    server.tokenize = lambda text: tokenizer.encode(text.replace("naïve", "naive"))
    with pytest.raises(RemoteError, match=r"remote\.tokenizer") as failure:
        load(server)
    assert failure.value.kind == "tokenizer"


@pytest.mark.parametrize("model", ["tiny", ""])
def test_the_model_is_the_one_that_is_named_or_the_first(
    server: RemoteServer, load: Load, model: str
) -> None:
    assert load(server, model=model).describe()["target"] == "tiny"


def test_a_model_that_is_not_served_is_named_with_those_that_are(server: RemoteServer, load: Load) -> None:
    with pytest.raises(RemoteError, match="one of: tiny"):
        load(server, model="large")


def test_a_port_where_nobody_listens(tokenizer: Tokenizer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(RemoteError, match="cannot be reached") as failure:
        RemoteCompleter.load(RemoteConfig(f"http://localhost:{port}"), tokenizer)
    assert failure.value.kind == "unreachable"


def test_a_server_that_answers_with_a_fault_and_hangs_up(tokenizer: Tokenizer) -> None:
    def answer(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        accepted.recv(1000)
        accepted.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        accepted.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        config = RemoteConfig(f"http://localhost:{listener.getsockname()[1]}")
        with pytest.raises(RemoteError) as failure:
            RemoteCompleter.load(config, tokenizer)
    assert failure.value.kind == "unavailable"


def test_a_slow_drip_ends_with_patience(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    server.always = dripping
    with pytest.raises(RemoteError) as failure:
        completer.complete(request_at(deadline_ms=50, patience_ms=150))
    assert failure.value.kind == "silent"
    assert server.completions[0].was_left.wait(PATIENCE_S)


def test_an_event_of_a_gigabyte_is_left_at_its_beginning(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    num_sent = 0

    def write(answering: Answering) -> None:
        nonlocal num_sent
        answering.head()
        answering.data(b"data: ")
        for _ in range(1000):
            answering.data(b"x" * 1_000_000)
            num_sent += 1

    server.always = write
    with pytest.raises(RemoteError, match="an event has no end"):
        completer.complete(request_at())
    assert server.completions[0].was_left.wait(PATIENCE_S)
    assert num_sent < 100


def test_connections_that_the_server_closed_are_not_used(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    completer.complete(request_at())
    server.close_idle()
    assert completer.complete(request_at("import ")).stats.num_forwards > 0
    server.hang_up()
    assert completer.complete(request_at("from ")).stats.num_forwards > 0


def test_an_answer_under_way_goes_on_where_its_server_went_away(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    def write(answering: Answering) -> None:
        answering.write(1)
        server.hang_up()

    whole = completer.complete(request_at(document="b.py")).text
    server.faults.append(write)
    assert completer.complete(request_at()).text == whole
    first, second = server.completions[-2:]
    assert first.connection is not second.connection


def test_a_connection_that_was_quiet_for_long_is_not_trusted(
    completer: RemoteCompleter, server: RemoteServer, request_at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A router forgot the connection: no data and no error would arrive."""
    completer.complete(request_at())
    server.deafen()
    monkeypatch.setattr(connections, "IDLE_S", 0.0)
    assert completer.complete(request_at("import ")).stats.num_forwards > 0


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """A key, and a certificate of localhost that is signed with it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the program openssl, which makes certificates")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = [
        openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
        "-keyout", str(key), "-out", str(certificate),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    yield key, certificate


def test_tls_with_the_team_s_certificate_and_without(
    serve: Callable[..., RemoteServer], load: Load, request_at: At, certificates: tuple[Path, Path]
) -> None:
    key, certificate = certificates
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    tls.set_alpn_protocols(["h2", "http/1.1"])
    server = serve(tls=tls)
    trusting = load(server, ca_file=str(certificate))
    assert trusting.complete(request_at()).text.startswith("tiply")
    with pytest.raises(RemoteError, match=r"remote\.caFile") as failure:
        load(server)
    assert failure.value.kind == "certificate"


def test_an_answer_that_is_long_and_right_is_taken(
    serve: Callable[..., RemoteServer], load: Load, tokenizer: Tokenizer, request_at: At
) -> None:
    """Chunks of a token each, and comments between them as proxies send to keep a stream open."""

    def write(answering: Answering) -> None:
        answering.head()
        for token in tokenizer.encode(" multiply(a, b)"):
            answering.data(b": still here\n\n" * 50)
            answering.tokens([token])
        answering.done()

    server = serve()
    server.always = write
    request = replace(request_at(), multiline="never")
    assert load(server).complete(request).text == "tiply(a, b)"
