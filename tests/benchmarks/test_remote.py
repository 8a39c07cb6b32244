"""A team's servers are measured as they are: their texts and their pace, from as far away as is simulated."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.loading.model import load_language_model
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.remote.answer import Wait
from completion_engine.remote.completer import RemoteCompleter
from completion_engine.remote.endpoint import Endpoint, RemoteConfig
from completion_engine.remote.vllm_client import VllmClient
from lsp_server.commands.local_engine import Sample
from lsp_server.commands.replay import ReplayOptions
from tests.benchmarks.command_line import app_of
from tests.benchmarks.remote import arithmetic, matching
from tests.benchmarks.remote.__main__ import remote
from tests.benchmarks.remote.counters import Counts, read_counts
from tests.benchmarks.remote.distance import HERE, rows, typed_from_afar
from tests.benchmarks.remote.relay import delaying_relay
from tests.benchmarks.remote.streams import Pace, paces
from tests.remote_server import Answering, RemoteServer, whole

WORDS = " value = total(items)\n"
SAMPLES = [
    Sample(f"{name}.py", f"{name}.py", "python", f"def {name}(items):\n   ", "\n", "")
    for name in ("add", "multiply")
]
METRICS = b"""# HELP vllm:generation_tokens_total Tokens.
vllm:generation_tokens_total{model_name="target"} 40.0
vllm:time_to_first_token_seconds_count{model_name="target"} 4.0
vllm:request_success_total{finished_reason="stop"} 3.0
vllm:request_success_total{finished_reason="abort"} 0.0
vllm:prefix_cache_queries_total{model_name="target"} 1000.0
vllm:prefix_cache_hits_total{model_name="target"} 900.0
"""


@pytest.fixture(scope="module")
def tokenizer(tiny_model_dir: Path) -> Tokenizer:
    return load_tokenizer(tiny_model_dir)


@pytest.fixture
def server(tokenizer: Tokenizer) -> Iterator[RemoteServer]:
    """Writes the same words after every prompt."""

    def write(_prompt: Sequence[int], healed: bytes, _ends: Sequence[int], most: int) -> list[int]:
        return tokenizer.encode(healed.decode() + WORDS)[:most]

    server = RemoteServer(write, tokenizer.encode)
    yield server
    server.stop()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file in a folder of its own."""
    file = tmp_path / "work" / "sums.py"
    file.parent.mkdir()
    file.write_text("import os\n\n\ndef total(items):\n    return sum(items)\n\n\nprint(total([1, 2]))\n")
    return file


@pytest.fixture
def metrics() -> Iterator[str]:
    """Address of a replica's metrics."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(METRICS)

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Infilling tasks at the places of the samples."""
    file = tmp_path / "tasks.jsonl.gz"
    with gzip.open(file, "wt") as lines:
        for at, sample in enumerate(SAMPLES):
            task = {"task_id": str(at), "prompt": sample.prefix, "suffix": sample.suffix}
            hole = {"canonical_solution": " pass", "entry_point": "add", "test": ""}
            lines.write(json.dumps(task | hole) + "\n")
    return file


def test_texts_that_differ_are_counted(
    tiny_model_dir: Path, server: RemoteServer, tokenizer: Tokenizer
) -> None:
    config = EngineConfig(target=str(tiny_model_dir), prefix_chars=400, suffix_chars=200)
    here = CompletionEngine(config, load_language_model(tiny_model_dir, "cpu", "auto", 512), tokenizer)
    there = RemoteCompleter.load(RemoteConfig(server.url, context_tokens=0), tokenizer)
    found = list(matching.matches(here, there, SAMPLES, 24, lambda *_: None))
    there.close()
    assert [match.there.strip() for match in found] == [WORDS.strip()] * 2
    assert matching.summary(found)["num_equal"] == 0
    same = matching.Match("value = 1", "value = 2", 1.0, 1.0)
    assert same.num_same_chars == len("value = ")


def paced(server: RemoteServer, tokenizer: Tokenizer, *nums: int) -> list[Pace]:
    """The pace of streams that write at most 64 tokens."""
    with closing(VllmClient(Endpoint.of(RemoteConfig(server.url)))) as servers:
        prompts = [[1, 2, 3], [4, 5]]
        return list(paces(servers, "tiny", tokenizer, prompts, nums, 64, lambda _: None, 60.0))


def test_streams_beside_each_other_are_read_to_their_ends(server: RemoteServer, tokenizer: Tokenizer) -> None:
    num_words = len(tokenizer.encode(WORDS))
    found = paced(server, tokenizer, 1, 3)
    assert [(pace.num_streams, pace.num_tokens) for pace in found] == [(1, num_words), (3, 3 * num_words)]
    salts = [asked.json["cache_salt"] for asked in server.completions]
    assert len(set(salts)) == len(salts) == 4


def test_streams_write_no_more_than_they_are_to(server: RemoteServer, tokenizer: Tokenizer) -> None:
    with closing(VllmClient(Endpoint.of(RemoteConfig(server.url)))) as servers:
        (found,) = paces(servers, "tiny", tokenizer, [[1, 2, 3]], (3,), 2, lambda _: None, 60.0)
    assert (found.num_tokens, found.lost) == (3 * 2, ())
    assert [asked.json["max_tokens"] for asked in server.completions] == [2] * 3


def test_a_stream_that_breaks_off_is_gone_on_with(server: RemoteServer, tokenizer: Tokenizer) -> None:
    def begin_and_break(answering: Answering) -> None:
        answering.write(2)
        answering.reset()

    server.faults.append(begin_and_break)
    (found,) = paced(server, tokenizer, 1)
    assert (found.num_resumed, found.lost) == (1, ())
    first, second = server.completions
    assert second.json["prompt"] == [*first.json["prompt"], *tokenizer.encode(WORDS)[:2]]
    assert second.headers["x-session-id"] == first.headers["x-session-id"]


def test_streams_that_are_lost_are_counted_beside_those_that_are_not(
    server: RemoteServer, tokenizer: Tokenizer
) -> None:
    def refuse(answering: Answering) -> None:
        answering.json({"error": {"type": "Overloaded"}}, 503)

    server.faults.append(refuse)
    (found,) = paced(server, tokenizer, 2)
    assert found.num_tokens == len(tokenizer.encode(WORDS))
    (refused,) = found.lost
    assert "503" in refused


def test_a_stream_that_does_not_end_is_lost(server: RemoteServer, tokenizer: Tokenizer) -> None:
    server.always = Answering.stay_silent
    with closing(VllmClient(Endpoint.of(RemoteConfig(server.url)))) as servers:
        servers.models(Wait.seconds(60))  # it is connected, however long that takes
        (found,) = paces(servers, "tiny", tokenizer, [[1, 2, 3]], (1,), 64, lambda _: None, 0.05)
    assert (found.num_tokens, found.first_s) == (0, None)
    assert found.lost == ("It has not ended after 0.05 s.",)


def test_what_was_measured_is_told_where_the_rest_is_missing(
    tiny_model_dir: Path, server: RemoteServer, tasks: Path
) -> None:
    def refuse(answering: Answering) -> None:
        answering.json({}, 401)

    def run() -> tuple[int, str, dict[str, Any]]:
        options = ["--tasks", str(tasks), "--target", str(tiny_model_dir), "--prompts", "2", "--streams", "2"]
        result = CliRunner().invoke(app_of(remote), ["--url", server.url, *options])
        return result.exit_code, result.stdout, json.loads(result.stdout.splitlines()[-1])

    code, _, found = run()
    assert (code, found["missing"]) == (0, {})
    assert (found["match"]["num_places"], len(found["paces"])) == (2, 1)
    server.faults.append(whole)
    server.always = refuse
    code, shown, found = run()
    assert code == 1
    assert found["match"]["num_places"] == 1
    assert "does not accept the token" in found["missing"]["match"]
    assert "does not accept the token" in shown
    (pace,) = found["paces"]
    assert (pace["num_tokens"], pace["first_s"], len(pace["lost"])) == (0, None, 2)


def test_what_passes_the_relay_comes_whole_and_no_sooner() -> None:
    sent = [bytes([number]) * 1000 for number in range(20)]

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(4096):
            writer.write(data)
        writer.close()

    async def pass_on() -> tuple[bytes, float]:
        far = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with delaying_relay("127.0.0.1", far.sockets[0].getsockname()[1], 60.0) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            begin_s = time.perf_counter()
            for data in sent:
                writer.write(data)
            first = await reader.readexactly(1)
            waited_s = time.perf_counter() - begin_s
            writer.write_eof()
            received = first + await reader.read()
            writer.close()
        far.close()
        return received, waited_s

    received, waited_s = asyncio.run(pass_on())
    assert received == b"".join(sent)
    assert waited_s > 0.059


def test_what_replicas_count_is_summed_and_taken_apart(metrics: str) -> None:
    once, twice = read_counts([metrics]), read_counts([metrics, metrics])
    assert once == twice - once == Counts(4, 1000, 900, 40)
    assert once.share_cached == 0.9
    assert once.for_each_request(once.num_written_tokens) == 10


def test_metrics_that_cannot_be_read_are_named() -> None:
    with pytest.raises(UserError, match=r"No metrics at http://127\.0\.0\.1:1/metrics"):
        read_counts(["http://127.0.0.1:1/metrics"])


def test_a_gpu_of_twice_the_bandwidth_steps_in_half_the_time() -> None:
    model = arithmetic.Model("one", 1.0, 2.0)
    slow, fast = arithmetic.Gpu("slow", 500, 1e9), arithmetic.Gpu("fast", 1000, 1e9)
    assert arithmetic.step_ms(slow, model) == pytest.approx(2 * arithmetic.step_ms(fast, model))
    near, far = (arithmetic.suggestion_ms(fast, model, 20, 8, ms) for ms in (0, 40))
    assert far - near == pytest.approx(40)


def test_servers_elsewhere_are_not_simulated_farther_away() -> None:
    with pytest.raises(UserError, match="only simulated"):
        way = typed_from_afar([], ReplayOptions(), {"url": "https://example.org"}, [5.0], [], lambda *_: None)
        asyncio.run(anext(way))


def test_a_file_is_typed_here_and_with_the_servers(
    tiny_model_dir: Path, server: RemoteServer, metrics: str, source: Path
) -> None:
    options = ReplayOptions(
        24, start_line=2, settings={"target": str(tiny_model_dir), "patienceMs": 30_000}, has_index=False
    )

    async def typed() -> dict[str, dict[str, Any]]:
        way = typed_from_afar([source], options, {"url": server.url}, [1.0], [metrics], lambda *_: None)
        return {name: replayed async for name, replayed in way}

    found = asyncio.run(typed())
    assert [*found] == [HERE, "1 ms away"]
    assert set(found[HERE]["answered_on"]) == {"cpu"}
    assert set(found["1 ms away"]["answered_on"]) == {"remote"}
    assert server.completions
    assert len(rows(found)) == 2
