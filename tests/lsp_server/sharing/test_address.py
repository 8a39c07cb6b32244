"""The socket lies where only its user comes, and is shared by those alone who would do the same with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_server.sharing.address import (
    HostAddress,
    SharingError,
    find_address,
    for_host,
    identity,
    sockets,
)
from lsp_server.sharing.listener import open_listener
from tests.hosts import listening, own_hosts

ENVIRONMENT = {"HOME": "/home/ann", "SLIPSTREAM_INDEX_DIR": "/home/ann/index", "TERM": "xterm"}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A private folder with a short path."""
    with own_hosts() as hosts:
        yield hosts.folder


@pytest.fixture
def address(folder: Path) -> HostAddress:
    return HostAddress(folder, "name")


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"TERM": "dumb", "PWD": "/"}, True),
        ({"HOME": "/home/bob"}, False),
        ({"SLIPSTREAM_INDEX_DIR": "/tmp/other"}, False),  # noqa: S108 - a name alone
        ({"SLIPSTREAM_ANYTHING": "1"}, False),
        ({"XDG_CONFIG_HOME": "/tmp/config"}, False),  # noqa: S108 - a name alone
        ({"CUDA_VISIBLE_DEVICES": "1"}, False),
        ({"XDG_SESSION_ID": "7"}, True),
        ({"HTTPS_PROXY": "http://proxy:8080"}, False),
        ({"https_proxy": "http://proxy:8080"}, False),
        ({"NO_PROXY": "models.example"}, False),
        ({"PIP_INDEX_URL": "http://mirror/simple"}, False),
        ({"SSL_CERT_FILE": "/home/ann/ca.pem"}, False),
        ({"REQUESTS_CA_BUNDLE": "/home/ann/ca.pem"}, False),
        ({"VSCODE_PROXY_URI": "./proxy/1"}, True),
        ({"GIT_CONFIG_GLOBAL": "/home/ann/other"}, False),
        ({"GIT_CONFIG_COUNT": "0"}, False),
        ({"GIT_DIR": "/home/ann/.dotfiles"}, False),
        ({"GIT_WORK_TREE": "/home/ann"}, False),
        ({"GIT_PAGER": "less"}, True),
        ({"PYTHONUSERBASE": "/home/ann/python"}, False),
        ({"PYTHONPATH": "/home/ann/project"}, False),
    ],
)
def test_what_a_server_reads_and_computes_on_tells_hosts_apart(
    changes: dict[str, str], is_same: bool
) -> None:
    assert (identity(ENVIRONMENT) == identity({**ENVIRONMENT, **changes})) == is_same


def test_a_folder_means_the_same_from_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, relative in (("SLIPSTREAM_MODEL_DIR", "models"), ("GIT_CONFIG_GLOBAL", "own/config")):
        assert identity({name: relative}) == identity({name: str(tmp_path / relative)})
    monkeypatch.setenv("HOME", str(tmp_path))
    assert for_host({"SLIPSTREAM_INDEX_DIR": "~/index"}) == {"SLIPSTREAM_INDEX_DIR": str(tmp_path / "index")}


def test_a_shell_s_limit_on_memory_tells_hosts_apart() -> None:
    code = "import os; from lsp_server.sharing.address import identity; print(identity(os.environ))"
    shells = ("", "ulimit -S -v 8000000; ", "ulimit -S -v 9000000; ")
    commands = [f'{shell}exec "$@"' for shell in shells]
    named = [
        subprocess.run(
            ["/bin/sh", "-c", command, "sh", sys.executable, "-c", code], capture_output=True, check=True
        ).stdout
        for command in commands
    ]
    assert len(set(named)) == 3


def test_a_relative_folder_for_temporary_files_is_not_used() -> None:
    assert find_address({"TMPDIR": "tmp"}) == find_address({"TMPDIR": "/tmp"})  # noqa: S108 - a name alone


def test_the_program_and_the_module_find_the_same_host() -> None:
    """Modules that the program imports before it looks for the host must not change its environment."""
    code = (
        "import os\n"
        "from lsp_server.sharing.address import identity\n"
        "before = identity(os.environ)\n"
        "import lsp_server.cli, lsp_server.app, completion_engine.engine\n"
        "print(before == identity(os.environ))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_the_sessions_own_folder_is_taken_and_made_private(folder: Path) -> None:
    address = find_address({"XDG_RUNTIME_DIR": str(folder)})
    assert address.folder == folder / "slipstream"
    assert address.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("fault", ["open to others", "not there", "relative", "too long"])
def test_a_session_folder_that_is_no_good_is_passed_over(folder: Path, fault: str) -> None:
    runtime = folder / "runtime"
    if fault == "too long":
        runtime = folder / ("x" * 90)
    if fault != "not there":
        runtime.mkdir(mode=0o755 if fault == "open to others" else 0o700)
    given = "runtime" if fault == "relative" else str(runtime)
    address = find_address({"XDG_RUNTIME_DIR": given, "TMPDIR": str(folder)})
    assert address.folder == folder / f"slipstream-{os.getuid()}"


@pytest.mark.parametrize(("mode", "words"), [(0o755, "open to other users"), (0o777, "open to other users")])
def test_a_folder_that_others_can_enter_is_refused(folder: Path, mode: int, words: str) -> None:
    ours = folder / f"slipstream-{os.getuid()}"
    ours.mkdir()
    ours.chmod(mode)
    with pytest.raises(SharingError, match=words):
        find_address({"TMPDIR": str(folder)})


def test_a_link_is_refused_wherever_it_leads(folder: Path) -> None:
    (folder / "real").mkdir(mode=0o700)
    (folder / f"slipstream-{os.getuid()}").symlink_to(folder / "real")
    with pytest.raises(SharingError, match="is not a folder"):
        find_address({"TMPDIR": str(folder)})


@pytest.mark.skipif(os.getuid() != 0, reason="root alone can give a folder away")
def test_another_users_folder_is_refused(folder: Path) -> None:
    ours = folder / f"slipstream-{os.getuid()}"
    ours.mkdir(mode=0o700)
    os.chown(ours, 12345, 12345)
    with pytest.raises(SharingError, match="belongs to another user"):
        find_address({"TMPDIR": str(folder)})


def test_one_process_at_a_time_is_the_host(address: HostAddress) -> None:
    with listening(address) as listener:
        assert open_listener(address) is None
        assert sockets({"TMPDIR": str(address.folder)}) == []
    assert not Path(address.socket_path).exists()
    with listening(address):
        listener.close()  # a second time: the new host's socket stays
        assert Path(address.socket_path).exists()


def test_a_socket_that_nobody_listens_on_is_replaced(address: HostAddress) -> None:
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(address.socket_path)
    with listening(address), socket.socket(socket.AF_UNIX) as window:
        window.connect(address.socket_path)
        assert Path(address.socket_path).stat().st_mode & 0o077 == 0
