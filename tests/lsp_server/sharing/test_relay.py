"""The relay gives up in time on a host that is none, and passes every byte on with one that is."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from lsp_server.sharing import host_connection, relay
from lsp_server.sharing.address import SharingError, find_address
from lsp_server.sharing.host_connection import WELCOME, WINDOW, BlockReader, BlockWriter, read_word
from lsp_server.sharing.system import uid_of_peer
from tests.hosts import Hosts, listening, own_hosts


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """An environment without a host."""
    with own_hosts() as hosts:
        yield {**os.environ, **hosts.env, "XDG_STATE_HOME": str(hosts.folder / "state")}


def test_a_host_that_does_not_answer_is_given_up(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "ANSWER_S", 0.2)
    with listening(find_address(environment)), pytest.raises(SharingError, match="does not answer"):
        relay.connect(environment)


def test_a_host_of_another_user_hears_nothing(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_connection, "uid_of_peer", lambda _connection: os.getuid() + 1)
    with listening(find_address(environment)) as listener:
        with pytest.raises(SharingError, match="another user's"):
            relay.connect(environment)
        with listener.socket.accept()[0] as connection:
            assert connection.recv(100) == b""


def test_the_user_at_the_other_end_is_told_by_the_system() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert uid_of_peer(one) in {None, os.getuid()}


def test_a_window_for_which_there_is_no_room_to_wait_tries_again(environment: dict[str, str]) -> None:
    address = find_address(environment)

    def serve(listener: socket.socket) -> None:
        time.sleep(0.3)  # so long there is no room
        with listener.accept()[0], listener.accept()[0] as connection:
            assert read_word(connection) == WINDOW
            connection.sendall(WELCOME)

    with listening(address) as listener, socket.socket(socket.AF_UNIX) as before:
        listener.socket.listen(0)
        before.connect(address.socket_path)
        serving = threading.Thread(target=serve, args=(listener.socket,), daemon=True)
        serving.start()
        relay.connect(environment).close()
        serving.join()


@pytest.mark.parametrize(
    ("python", "reason"), [("/bin/false", "does not start"), ("/nowhere/python", "No such file")]
)
def test_a_host_that_cannot_start_is_given_up_at_once_with_the_reason(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, python: str, reason: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    with pytest.raises(SharingError, match=reason):
        relay.connect(environment)


def test_without_a_host_the_window_is_served_alone_and_the_user_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nowhere(_environment: object) -> NoReturn:
        raise SharingError("there is no place for a socket")

    monkeypatch.setattr(relay, "find_address", nowhere)
    served = []
    relay.serve_shared(lambda: served.append(True))
    assert served == [True]
    assert capsys.readouterr().err == (
        "slipstream: this window starts its own engine: there is no place for a socket.\n"
    )


def test_blocks_of_any_size_arrive_whole_and_the_exit_code_behind_them() -> None:
    sent = [b"x", b"y" * 3_000_000, b"\0\0\0\0\0", b"z" * 70_000]
    host, window = socket.socketpair()
    with host, window:
        writer, reader = BlockWriter(host), BlockReader(window)

        def send() -> None:
            for block in sent:
                writer.write(block)
            writer.end(0, timeout_s=60)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        assert list(reader.blocks()) == sent
        assert reader.exit_code == 0
        thread.join()


@pytest.mark.parametrize("said", [b"", b"\0\0", b"\0\0\0\5abc", b"\0\0\0\1a", b"\0\0\0\0"])
def test_a_host_that_is_lost_in_the_middle_is_exit_code_1(said: bytes) -> None:
    host, window = socket.socketpair()
    with window:
        with host:
            host.sendall(said)
        reader = BlockReader(window)
        assert list(reader.blocks()) == ([b"a"] if said.endswith(b"a") else [])
        assert reader.exit_code == 1


def test_the_end_is_not_waited_for_where_nobody_reads() -> None:
    host, window = socket.socketpair()
    with host, window:
        host.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                host.send(b"x" * 65536)
        host.setblocking(True)
        BlockWriter(host).end(0, timeout_s=0.1)  # to wait for a reader would be to wait for ever


def test_the_end_is_never_put_into_the_middle_of_a_block() -> None:
    host, window = socket.socketpair()
    with window, host:
        writer = BlockWriter(host)
        thread = threading.Thread(target=lambda: suppress_broken(writer), daemon=True)
        thread.start()
        assert window.recv(4) == (3_000_000).to_bytes(4, "big")
        writer.end(0, timeout_s=0.1)
        host.shutdown(socket.SHUT_RDWR)
        thread.join(60)
        host.close()
        with window.makefile("rb") as stream:
            assert set(stream.read()) == set(b"y")


def suppress_broken(writer: BlockWriter) -> None:
    with contextlib.suppress(OSError):
        writer.write(b"y" * 3_000_000)


def test_the_log_is_put_aside_when_it_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lsp_server.sharing import supervision

    monkeypatch.setattr(supervision, "log_path", lambda: tmp_path / "log" / "host.log")
    for text in (b"x" * (supervision.MAX_KEPT_BYTES + 1), b"new"):
        number = supervision.open_log()
        os.write(number, text)
        os.close(number)
    assert (tmp_path / "log" / "host.log").read_bytes() == b"new"
    assert (tmp_path / "log" / "host.old.log").stat().st_size > supervision.MAX_KEPT_BYTES


@pytest.mark.skipif(sys.platform != "linux", reason="reads the limits of another process")
def test_the_shell_of_the_first_window_changes_nothing_for_others(tmp_path: Path) -> None:
    """A project's modules do not run, files are private, and a crash leaves no image of the memory."""
    project, state = tmp_path / "project", tmp_path / "state"
    project.mkdir()
    for module in ("psutil", "platformdirs", "pygls"):
        (project / f"{module}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with own_hosts() as hosts:
        environment = {**os.environ, **hosts.env, "PYTHONPATH": str(project), "XDG_STATE_HOME": str(state)}
        command = [sys.executable, "-P", "-m", "lsp_server", "--shared"]
        shell = ["/bin/sh", "-c", 'umask 0; ulimit -S -c unlimited; exec "$@"', "sh", *command]
        with subprocess.Popen(shell, env=environment, stdin=subprocess.PIPE) as window:
            pid = Hosts(hosts.folder).only()["pid"]
            process = Path(f"/proc/{pid}")
            assert "PYTHONPATH=" not in (process / "environ").read_text()
            (core,) = [row for row in (process / "limits").read_text().split("\n") if "core file" in row]
            assert int(core.split()[4]) <= 1
            assert "Umask:\t0022" in (process / "status").read_text()
            modes = [folder.stat().st_mode & 0o777 for folder in state.rglob("*") if folder.is_dir()]
            assert modes and set(modes) == {0o700}
            window.communicate(b"")
    assert not (tmp_path / "ran").exists()
