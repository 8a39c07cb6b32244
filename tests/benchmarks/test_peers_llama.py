"""The llama.cpp worker: its messages, its counts, and what is said where it cannot run.

A scripted `llama_cpp` stands where the real library would: it writes 10, 11, 12 and so on after any prompt,
and with a draft model returns three tokens in each pass after the first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from completion_engine.errors import MachineError, UserError
from completion_engine.models import ModelStore
from tests.benchmarks.peers.llama import LLAMA, gguf_of, llama_peers
from tests.benchmarks.peers.runs import Absent, PeerTask
from tests.benchmarks.peers.worker_process import Worker, running_worker

LIBRARY = """
__version__ = "1.2.3"

class Llama:
    def __init__(self, model_path, n_ctx, n_threads, n_threads_batch, n_gpu_layers, verbose, **options):
        if "broken" in model_path:
            raise ValueError("no such model: " + model_path)
        print("the library chatters on stdout")
        self.per_pass = 3 if options.get("draft_model") else 1
        assert bool(options.get("logits_all")) == bool(options.get("draft_model"))
        self.was_reset = False

    def reset(self):
        self.was_reset = True

    def eval(self, tokens):
        print("evaluating", tokens)

    def generate(self, tokens, temp, repeat_penalty):
        assert self.was_reset and temp == 0.0 and repeat_penalty == 1.0
        if tokens == [666]:
            import os
            os._exit(3)
        self.eval(tokens)
        yield 10
        token = 11
        while True:
            self.eval([token])
            for _ in range(self.per_pass):
                yield token
                token += 1
"""
SPECULATIVE = """
class LlamaPromptLookupDecoding:
    def __init__(self, num_pred_tokens):
        assert num_pred_tokens > 0
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    package = tmp_path / "llama_cpp"
    package.mkdir()
    (package / "__init__.py").write_text(LIBRARY)
    (package / "llama_speculative.py").write_text(SPECULATIVE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with running_worker(LLAMA, Path(sys.executable)) as found:
        assert isinstance(found, Worker)
        yield found


def test_both_ways_are_measured_and_their_passes_counted(worker: Worker) -> None:
    assert worker.version == "1.2.3"
    plain, lookup = llama_peers(worker, "/models/x.gguf", 512, frozenset({18}), on_gpu=False)
    assert not isinstance(plain, Absent)
    assert not isinstance(lookup, Absent)
    assert (plain.name, lookup.name) == ("llama.cpp", "llama.cpp prompt lookup")
    run = plain.write(PeerTask((1, 2, 3)), 5)
    assert (run.tokens, run.num_first, run.num_passes) == ((10, 11, 12, 13, 14), 1, 4)
    assert run.first_ms > 0
    assert run.decode_ms > 0
    run = lookup.write(PeerTask((1, 2, 3)), 5)
    assert (run.tokens, run.num_first, run.num_passes) == ((10, 11, 12, 13, 14), 1, 2)


def test_an_end_token_is_the_last_one_written(worker: Worker) -> None:
    plain, _ = llama_peers(worker, "/models/x.gguf", 512, frozenset({12}), on_gpu=False)
    assert not isinstance(plain, Absent)
    assert plain.write(PeerTask((1,)), 9).tokens == (10, 11, 12)


def test_a_model_that_the_library_cannot_load_leaves_both_out(worker: Worker) -> None:
    peers = llama_peers(worker, "/models/broken.gguf", 512, frozenset(), on_gpu=False)
    assert [peer.reason for peer in peers if isinstance(peer, Absent)] == [
        "llama.cpp: ValueError: no such model: /models/broken.gguf"
    ] * 2


def test_a_worker_that_dies_is_an_error_with_its_exit_code(worker: Worker) -> None:
    plain, _ = llama_peers(worker, "/models/x.gguf", 512, frozenset(), on_gpu=False)
    assert not isinstance(plain, Absent)
    for _ in range(2):
        with pytest.raises(MachineError, match="ended with code 3"):
            plain.write(PeerTask((666,)), 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("import sys; sys.exit(2)", "ended with code 2"),
        ("print('hello')", "It answers 'hello'"),
    ],
)
def test_a_program_that_is_no_such_interpreter_is_a_clear_error(
    tmp_path: Path, content: str, message: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!{sys.executable}\n{content}\n")
    program.chmod(0o755)
    with pytest.raises(UserError, match=message) as caught, running_worker(LLAMA, program):
        pass
    assert "llama-cpp-python" in caught.value.advice


def test_an_interpreter_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be started"), running_worker(LLAMA, tmp_path / "python"):
        pass


def test_without_the_library_the_reader_learns_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with running_worker(LLAMA, None) as found:
        assert isinstance(found, Absent)
        assert "--llama-python" in found.reason
        peers = llama_peers(found, "/models/x.gguf", 512, frozenset(), on_gpu=False)
    assert [peer.name for peer in peers] == ["llama.cpp", "llama.cpp prompt lookup"]
    assert all(isinstance(peer, Absent) and peer.reason == found.reason for peer in peers)


def test_a_named_interpreter_without_the_library_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "llama_cpp.py").write_text("raise ImportError('it was built for another machine')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with (
        pytest.raises(UserError, match="built for another machine") as caught,
        running_worker(LLAMA, Path(sys.executable)),
    ):
        pass
    assert "llama-cpp-python" in caught.value.advice


def test_only_the_very_same_file_is_compared(tmp_path: Path) -> None:
    store = ModelStore(tmp_path)
    assert gguf_of("/models/x.gguf", store) == Path("/models/x.gguf")
    assert "was not made from a GGUF file" in str(gguf_of("owner/model", store))
    assert "was not made from a GGUF file" in str(gguf_of("planted.gguf", store))
    assert isinstance(gguf_of("qwen2.5-coder-0.5b", store), str)
    file = tmp_path / "qwen2.5-coder-0.5b" / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    assert gguf_of("qwen2.5-coder-0.5b", store) == file
