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
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from completion_engine.errors import RemoteError, RemoteFault
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.remote import connection
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.endpoint import RemoteConfig
from completion_engine.request import CompletionRequest
from tests.remote_server import Answering, Fault, RemoteServer

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
    while not answering.asked.was_reset.is_set():
        answering.data(b": nothing\n" * 1000)


def empty_frames(answering: Answering) -> None:
    answering.head()
    for _ in range(2 * connection.MAX_EMPTY_FRAMES):
        answering.connection.call("send_data", answering.number, b"")
    answering.stay_silent()


def pings(answering: Answering) -> None:
    for _ in range(2 * connection.MAX_EMPTY_FRAMES):
        answering.connection.call("ping", b"12345678")
    answering.stay_silent()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (status(401), "refused"),
        (status(403), "refused"),
        (status(404), "refused"),
        (status(429, retry_after="7"), "busy"),
        (status(400), "unavailable"),
        (status(503), "unavailable"),
        (status(302, location="https://elsewhere.example"), "rubbish"),
        (says(b"<html>", content_type="text/html"), "rubbish"),
        (event("no json"), "rubbish"),
        (event("[" * 10_000), "rubbish"),
        (event([1]), "rubbish"),
        (event({"choices": "none"}), "rubbish"),
        (event({"choices": [{}, {}]}), "rubbish"),
        (choice(text="words", token_ids=None), "rubbish"),
        (choice(token_ids=["1"]), "rubbish"),
        (choice(token_ids=[True]), "rubbish"),
        (choice(token_ids=[-1]), "rubbish"),
        (choice(token_ids=[1] * 100), "rubbish"),
        (choice(token_ids=[], finish_reason="abort"), "truncated"),
        (choice(token_ids=[], finish_reason=[1]), "truncated"),
        (choice(token_ids=[], finish_reason={"stop": 1}), "truncated"),
        (says(b"data: " + b"x" * 600_000), "rubbish"),
        (endless, "rubbish"),
        (empty_frames, "rubbish"),
        (pings, "rubbish"),
        (lambda answering: answering.reset(), "truncated"),
        (lambda answering: answering.reset(ErrorCodes.REFUSED_STREAM), "truncated"),
        (lambda answering: answering.connection.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9), "rubbish"),
        (lambda answering: answering.head(x_filler="x" * 60_000), "rubbish"),
        (Answering.hang_up, "truncated"),
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


def test_a_server_that_speaks_no_http2(tokenizer: Tokenizer) -> None:
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
    assert failure.value.kind == "rubbish"


def test_a_window_of_few_bytes_is_waited_for(
    serve: Callable[..., RemoteServer], load: Load, request_at: At
) -> None:
    server = serve(settings={SettingCodes.INITIAL_WINDOW_SIZE: 100})
    assert load(server).complete(request_at()).text.startswith("tiply")


def test_a_server_that_says_goodbye_is_asked_again_on_another_connection(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    completer.complete(request_at())
    server.say_goodbye()
    assert completer.complete(request_at("import ")).stats.num_forwards > 0
    server.hang_up()
    assert completer.complete(request_at("from ")).stats.num_forwards > 0
    assert len(server.completions) == 3 + (server.num_connections < 3)


def test_an_answer_under_way_at_a_goodbye_is_written_on_another_connection(
    completer: RemoteCompleter, server: RemoteServer, request_at: At
) -> None:
    def write(answering: Answering) -> None:
        answering.head()
        for at, (token, reason) in enumerate(answering.written()):
            if at == 1:
                server.say_goodbye()
            answering.tokens([token], reason)
        answering.done()

    whole = completer.complete(request_at(document="b.py")).text
    server.faults.append(write)
    assert completer.complete(request_at()).text == whole
    assert server.num_connections == 2


def test_a_connection_that_died_in_silence_is_found_out(
    completer: RemoteCompleter, server: RemoteServer, request_at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A router forgot the connection: no data and no error arrives."""
    monkeypatch.setattr(connection, "_IDLE_S", 0.0)
    monkeypatch.setattr(connection, "_PROVE_S", 0.05)
    completer.complete(request_at())
    server.deafen()
    assert completer.complete(request_at("import ")).stats.num_forwards > 0
    assert server.num_connections == 2


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
    tls.set_alpn_protocols(["h2"])
    server = serve(tls=tls)
    trusting = load(server, ca_file=str(certificate))
    assert trusting.complete(request_at()).text.startswith("tiply")
    with pytest.raises(RemoteError, match=r"remote\.caFile") as failure:
        load(server)
    assert failure.value.kind == "certificate"
    tls.set_alpn_protocols(["http/1.1"])
    with pytest.raises(RemoteError, match="does not speak HTTP/2") as failure:
        load(server, ca_file=str(certificate))


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
