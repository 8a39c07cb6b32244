"""Calls that differ between systems, with the other side played here."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from lsp_server.sharing import address, system


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The module as Windows loads it, with a played `msvcrt`."""
    locked: set[tuple[int, int]] = set()

    def locking(descriptor: int, mode: int, num_bytes: int) -> None:
        assert (mode, num_bytes) == (msvcrt.LK_NBLCK, 1)
        facts = os.fstat(descriptor)
        if (facts.st_dev, facts.st_ino) in locked:
            raise PermissionError(13, "Permission denied")
        locked.add((facts.st_dev, facts.st_ino))

    msvcrt: Any = types.ModuleType("msvcrt")
    msvcrt.LK_NBLCK, msvcrt.locking = 2, locking
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    monkeypatch.setattr(subprocess, "DETACHED_PROCESS", 8, raising=False)
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 512, raising=False)
    spec = importlib.util.spec_from_file_location("system_of_windows", str(system.__file__))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["here", "windows"])
def test_a_lock_is_held_by_one(name: str, windows: types.ModuleType, tmp_path: Path) -> None:
    try_lock = {"here": system, "windows": windows}[name].try_lock
    one, other = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    try_lock(one)
    with pytest.raises((BlockingIOError, PermissionError)):
        try_lock(other)
    os.close(one)
    os.close(other)


def test_windows_has_a_port_in_the_profile(
    windows: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "user_id", windows.user_id)
    monkeypatch.setattr(address, "HAS_UNIX_SOCKETS", windows.HAS_UNIX_SOCKETS)
    found = address.find_address({"LOCALAPPDATA": str(tmp_path)})
    assert found.is_loopback
    assert Path(found.socket_path).parent == tmp_path / "slipstream-host"
    assert windows.OUTLIVING == {"creationflags": 8 | 512}
    with pytest.raises(address.SharingError, match="names no folder"):
        address.find_address({})


class WithoutHandlers(asyncio.SelectorEventLoop):
    """A loop as on Windows, which takes no handlers of signals."""

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> NoReturn:
        raise NotImplementedError


@pytest.mark.parametrize("make_loop", [asyncio.SelectorEventLoop, WithoutHandlers])
def test_a_process_that_is_told_to_end_hears_it(make_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def wait() -> None:
        told = asyncio.Event()
        system.on_terminate(asyncio.get_running_loop(), told.set)
        os.kill(os.getpid(), signal.SIGTERM)
        await told.wait()

    before = signal.getsignal(signal.SIGTERM)
    try:
        with asyncio.Runner(loop_factory=make_loop) as runner:
            runner.run(wait())
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("variables", "is_refused"),
    [
        ({"HOME": "/home/ann"}, False),
        ({"HOME": "here"}, True),
        ({"HOME": "here", "XDG_CONFIG_HOME": "/c", "XDG_CACHE_HOME": "/d", "XDG_STATE_HOME": "/e"}, False),
    ],
)
def test_without_a_home_there_is_a_message(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], *, is_refused: bool
) -> None:
    monkeypatch.setenv("HOME", variables["HOME"])
    if is_refused:
        with pytest.raises(SystemExit, match="Set HOME"):
            system.check_home(variables)
    else:
        system.check_home(variables)


def test_a_private_folder_is_made_with_those_above_it_and_others_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir(mode=0o755)
    before = os.umask(0)
    try:
        system.make_private_folder(tmp_path / "shared" / "new" / "inner")
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "shared", *tmp_path.glob("shared/**/*"))]
    assert modes == [0o755, 0o700, 0o700]
