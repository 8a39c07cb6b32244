"""After `slipstream uninstall` a home is as empty as before, and what is not ours is as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_server.commands.uninstall import next_step
from tests.hosts import own_hosts

# The stored files of servers, each by the code that places it.
USE = """
from pathlib import Path
from completion_engine.choice.pass_log import PassLog
from completion_engine.cpu.kernels.kernel_cache import KERNEL_FOLDER, can_store
from completion_engine.cpu.packed_file import packed_path
from completion_engine.models.catalogue import CATALOGUE
from completion_engine.models.job import Monitor
from completion_engine.models.storage import Storage, default_root
from lsp_server.sharing.supervision import log_path
from lsp_server.workspace.settings_reading import user_file
from ngram_cache.snapshot import index_directory, snapshot_path
import sys
import torch
assert can_store()
root, model = default_root(), "qwen2.5-coder-0.5b"
official, index = CATALOGUE[model].file_name, snapshot_path(index_directory(), Path("/project"), "tokens")
files = [
    KERNEL_FOLDER / "kernel.nbc", packed_path([Path(sys.argv[1])], torch.float32, ()),
    root / f"{model}.17-1-{'0' * 32}.loading",
    *(root / model / name for name in (official, f"{official}.partial", f"{official}.partial.json")),
    root / model / "prepared" / "config.json", root / model / "work-1" / "x",
    root / "local" / "mine-0123456789ab" / "prepared" / "config.json",
    root / "locks" / "a--b" / "work-1" / "x", index, index.with_name(f"{index.name}.x1_y.tmp"),
    log_path(), *(log_path().with_name(name) for name in ("learned.json", "hangs.json")), user_file(),
]
for file in files:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x")
for name in (model, "mine-0123456789ab", "a--b"):
    with Storage(root).locked(name, Monitor()):
        pass
PassLog(root).record("a", "b", {16: 1.0})
"""

# Foreign files in the folders that a user names for models and indexes, in similar places.
OTHERS = [
    "others.bin", "qwen2.5-coder-0.5b.loading", "qwen2.5-coder-0.5b/notes.txt",
    "qwen2.5-coder-1.5b/model.safetensors", "hub/models--someone--finetune/blobs/x",
    "hub/models--someone--finetune.json/x", "hub/version.txt",
    "hub/settings.json", "local/bin/x", "local/mine-0123456789ac/mine.gguf", "locks/app.lock",
    "locks/app/work-1/x", "faiss.index", "0123456789ab.index.tmp",
]  # fmt: skip


@pytest.fixture(params=[False, True], ids=["usual folders", "named folders"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home with something of another program's in it, and with nothing of ours."""
    home = tmp_path / "home"
    (home / ".cache" / "other").mkdir(parents=True)
    (home / ".cache" / "other" / "file").write_text("not ours")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "SLIPSTREAM_"))}
    if request.param:
        named = {"SLIPSTREAM_MODEL_DIR": tmp_path / "models", "SLIPSTREAM_INDEX_DIR": tmp_path / "indexes"}
        for file in (folder / name for folder in named.values() for name in OTHERS):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("not ours either")
        kept |= {name: str(folder) for name, folder in named.items()}
    with own_hosts() as hosts:
        yield {**kept, "HOME": str(home), "TMPDIR": str(hosts.folder), "PYTHONPATH": str(Path.cwd())}


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", *arguments], env=environment, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


SLIPSTREAM = ("-c", "from lsp_server.cli import main; main()", "uninstall")


def test_nothing_of_ours_is_left_and_nothing_of_others_is_gone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    before = everything(tmp_path)
    used = run(environment, "-c", USE, __file__)
    assert used.returncode == 0, used.stderr
    assert everything(tmp_path) > before
    unasked = run(environment, *SLIPSTREAM)
    assert unasked.returncode == 1
    assert "add --yes" in unasked.stderr
    assert everything(tmp_path) > before
    done = run(environment, *SLIPSTREAM, "--yes")
    assert done.returncode == 0, done.stderr
    assert everything(tmp_path) == before
    again = run(environment, *SLIPSTREAM, "--yes")
    assert (again.returncode, again.stdout.splitlines()[0]) == (0, "There is nothing to remove.")


def test_of_folders_that_were_made_for_us_the_named_ones_stay(
    environment: dict[str, str], tmp_path: Path
) -> None:
    named = {name: tmp_path / "new" / name for name in ("SLIPSTREAM_MODEL_DIR", "SLIPSTREAM_INDEX_DIR")}
    environment = {**environment, **{name: str(folder) for name, folder in named.items()}}
    for arguments in (("-c", USE, __file__), (*SLIPSTREAM, "--yes")):
        done = run(environment, *arguments)
        assert done.returncode == 0, done.stderr
    assert everything(tmp_path / "new") == {*named}


@pytest.mark.parametrize(
    ("mark", "command", "folder_is_named"),
    [
        ("uv-receipt.toml", "uv tool uninstall", False),
        ("pipx_metadata.json", "pipx uninstall", False),
        ("", "pip uninstall", True),
    ],
)
def test_the_command_that_removes_the_program_is_named(
    tmp_path: Path, mark: str, command: str, folder_is_named: bool
) -> None:
    for name in filter(None, ("pyvenv.cfg", mark)):
        (tmp_path / name).touch()
    said = next_step(tmp_path)
    assert said.splitlines()[0] == f"Now remove the program: {command} slipstream-completion"
    assert (str(tmp_path) in said) == folder_is_named


def test_the_systems_own_python_is_no_folder_to_delete(tmp_path: Path) -> None:
    assert next_step(tmp_path) == "Now remove the program: pip uninstall slipstream-completion"


HOST = """
import asyncio, os
from lsp_server.sharing.address import find_address
from lsp_server.sharing.listener import open_listener
from lsp_server.sharing.host import Host
class Service:
    is_sick = False
    def describe(self):
        return {"engines": []}
listener = open_listener(find_address(os.environ))
print("listens", flush=True)
asyncio.run(Host(listener, Service(), 600.0).run())
"""


@pytest.mark.parametrize("loopback", ["", "1"])
def test_the_shared_process_is_ended_first(environment: dict[str, str], loopback: str) -> None:
    environment = {**environment, "SLIPSTREAM_HOST_LOOPBACK": loopback}
    sockets = Path(environment["TMPDIR"])
    with subprocess.Popen(
        [sys.executable, "-P", "-c", HOST], env=environment, stdout=subprocess.PIPE
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"listens\n"
        assert everything(sockets)
        threading.Thread(target=host.wait, daemon=True).start()  # a process that ended exists until that
        done = run(environment, *SLIPSTREAM, "--yes")
        assert done.returncode == 0, done.stderr
        assert f"process {host.pid}" in done.stdout
        assert host.wait(60) == 0
    assert everything(sockets) == set()
