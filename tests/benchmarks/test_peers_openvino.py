"""The OpenVINO worker: its counts, the file that it is given, and where it takes no part.

Scripted libraries stand where the real ones would: they write 10, 11, 12 and so on after any prompt, and with
prompt lookup return three tokens in each pass after the first.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from completion_engine.errors import UserError
from tests.benchmarks.peers import PeerOptions
from tests.benchmarks.peers.eight_bits import has_five_bits, in_eight_bits
from tests.benchmarks.peers.openvino_peers import OPENVINO, openvino_peers
from tests.benchmarks.peers.runs import Absent, PeerTask
from tests.benchmarks.peers.worker_process import Worker, running_worker

GENAI = """
__version__ = "1.2.3"

class StreamerBase: pass
class StreamingStatus: RUNNING = 0
class GenerationConfig: pass

class LLMPipeline:
    def __init__(self, path, device, INFERENCE_NUM_THREADS, prompt_lookup=False):
        assert device == "CPU" and INFERENCE_NUM_THREADS > 0
        with open(path, "rb") as file:
            assert file.read(4) == b"GGUF"
        self.lookup = prompt_lookup

    def generate(self, ids, config, streamer):
        assert ids.tolist() == [[1, 2, 3]] and not config.do_sample
        assert hasattr(config, "max_ngram_size") == self.lookup
        tokens = list(range(10, 10 + config.max_new_tokens))
        streamer.write(tokens[0])
        for at in range(1, len(tokens), 3 if self.lookup else 1):
            streamer.write(tokens[at : at + 3] if self.lookup else tokens[at])
        streamer.end()
"""
SHAPE = (3, 64)


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    (tmp_path / "openvino_genai.py").write_text(GENAI)
    (tmp_path / "openvino.py").write_text("def Tensor(array): return array")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with running_worker(OPENVINO, Path(sys.executable)) as found:
        assert isinstance(found, Worker)
        yield found


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file with weights of 5 bits, of 8, and in floats."""
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_array("tokenizer.ggml.tokens", ["a", "bc"])
    values = np.random.default_rng(5).normal(size=SHAPE).astype(np.float32)
    for kind in (gguf.GGMLQuantizationType.Q5_0, gguf.GGMLQuantizationType.Q8_0):
        writer.add_tensor(kind.name, gguf.quantize(values, kind), raw_dtype=kind)
    writer.add_tensor("floats", values[0, :5])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_both_ways_are_measured_and_their_passes_counted(worker: Worker, model: Path, tmp_path: Path) -> None:
    assert worker.version == "1.2.3"
    plain, lookup = openvino_peers(worker, str(model), frozenset({18}), tmp_path, on_gpu=False)
    for peer, num_passes in ((plain, 5), (lookup, 2)):
        assert not isinstance(peer, Absent)
        run = peer.write(PeerTask((1, 2, 3)), 6)
        assert (run.tokens, run.num_first, run.num_passes) == ((10, 11, 12, 13, 14, 15), 1, num_passes)
    assert isinstance(lookup, type(plain))
    assert lookup.name == "OpenVINO GenAI prompt lookup"


def test_weights_of_five_bits_lose_nothing_in_eight(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    in_eight_bits(model, out)
    assert [has_five_bits(path) for path in (model, out)] == [True, False]
    before, after = gguf.GGUFReader(model), gguf.GGUFReader(out)
    assert after.fields.keys() == before.fields.keys()
    for old, new in zip(before.tensors, after.tensors, strict=True):
        assert (old.name, list(old.shape)) == (new.name, list(new.shape))
        values = [gguf.dequantize(tensor.data, tensor.tensor_type) for tensor in (old, new)]
        assert np.array_equal(*values)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(struct.pack("<IIQQ", 0x46554747, 3, 1 << 60, 0))
    with pytest.raises(ValueError, match="ends too early"):
        has_five_bits(path)


def test_it_takes_no_part_on_a_gpu(worker: Worker, model: Path, tmp_path: Path) -> None:
    peers = openvino_peers(worker, str(model), frozenset(), tmp_path, on_gpu=True)
    assert all(isinstance(peer, Absent) for peer in peers)


def test_only_families_that_there_are_can_be_left_out() -> None:
    assert PeerOptions("x", 8, without=("llama.cpp",)).without == ("llama.cpp",)
    with pytest.raises(UserError, match="llamas"):
        PeerOptions("x", 8, without=("llamas",))
