"""Who takes part, in which order they load, and what the run says: the composition of this package."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.models import ModelStore
from completion_engine.request import Progress
from lsp_server.tools.bench.peers.llama import (
    LlamaWorker,
    llama_peers,
    llama_worker,
    lookup_tokens,
    num_threads,
)
from lsp_server.tools.bench.peers.ours import PLAIN, our_peers
from lsp_server.tools.bench.peers.reference import (
    GREEDY,
    NUM_LOOKUP_TOKENS,
    TransformersPeer,
    find_assistant,
    transformers_peers,
)
from lsp_server.tools.bench.peers.report import summarise
from lsp_server.tools.bench.peers.runs import Absent, Peer, PeerTask, take_turns
from lsp_server.tools.bench.peers.tasks import tasks_for
from lsp_server.tools.bench.prompts import Sample, repository_index

_WARM_UP = "def add(left, right):\n    return "
_WARM_UP_TOKENS = 8
_SPARE_POSITIONS = 64  # a draft may reach beyond the last token asked for


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """What to compare: `max_tokens` new tokens of `target` behind each sample's prompt.

    An index of `sources`, where they are given, serves one more peer.
    """

    target: str
    max_tokens: int
    dtype: str = "auto"
    llama_python: Path | None = None
    sources: Path | None = None


def measure_peers(samples: Sequence[Sample], asked: PeerOptions, report: Progress) -> dict[str, Any]:
    """Every peer on every sample, interleaved, as one JSON object.

    Raises SlipstreamError when the target or the named llama.cpp interpreter cannot be had.
    """
    load_before = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    with ExitStack() as stack:
        worker = stack.enter_context(llama_worker(asked.llama_python))  # first: a wrong path fails at once
        folder = ModelStore().ensure(asked.target, report)
        config = EngineConfig(target=asked.target, drafters=(), dtype=asked.dtype, num_slots=1)
        plain = CompletionEngine.from_folder(folder, config, report)
        report("Loading the peers", 0, 0)
        tasks = tasks_for(plain, samples)
        num_positions = max(len(task.tokens) for task in tasks) + asked.max_tokens + _SPARE_POSITIONS
        line_up = _line_up(asked, folder, plain, worker, num_positions)
        peers: list[Peer] = [peer for peer in line_up if not isinstance(peer, Absent)]
        warm_up = PeerTask(tuple(plain.tokenizer.encode(_WARM_UP)))
        for peer in peers:
            peer.write(warm_up, _WARM_UP_TOKENS)
        longest = max(tasks, key=lambda task: len(task.tokens))
        for peer in peers:
            if isinstance(peer, TransformersPeer) and peer.cache_implementation:
                peer.write(longest, asked.max_tokens)  # its cache is compiled for the longest text so far
        runs = take_turns(peers, tasks, asked.max_tokens, lambda at, total: report("Comparing", at, total))
    return {
        "bench": "peers",
        "num_prompts": len(tasks),
        "num_prompt_tokens": sum(len(task.tokens) for task in tasks),
        "tokens_asked": asked.max_tokens,
        "load_before": load_before,  # much of it, and the figures are of a machine that others used too
        **_facts(plain, worker),
        "peers": summarise(runs, PLAIN, GREEDY, lambda tokens: plain.tokenizer.decode(list(tokens))),
        "absent": [asdict(peer) for peer in line_up if isinstance(peer, Absent)],
    }


def _line_up(
    asked: PeerOptions,
    folder: Path,
    plain: CompletionEngine,
    worker: LlamaWorker | Absent,
    num_positions: int,
) -> list[Peer | Absent]:
    target, tokenizer = plain.target, plain.tokenizer
    assistant = find_assistant(folder, tokenizer)
    draft_model = str(assistant.absolute()) if isinstance(assistant, Path) else ""
    index = repository_index(asked.sources, tokenizer.encode_many) if asked.sources else None
    on_gpu = target.device.type == "cuda"
    return [
        *transformers_peers(folder, target, tokenizer, assistant),
        *llama_peers(worker, asked.target, num_positions, tokenizer.end_ids, on_gpu=on_gpu),
        *our_peers(plain, draft_model, index),
    ]


def _facts(plain: CompletionEngine, worker: LlamaWorker | Absent) -> dict[str, Any]:
    engine = plain.describe()
    return {
        **{name: engine[name] for name in ("target", "device", "dtype", "exactness", "pass_ms")},
        "num_lookup_tokens": {
            "transformers": NUM_LOOKUP_TOKENS,
            "llama.cpp": lookup_tokens(on_gpu=plain.target.device.type == "cuda"),
        },
        "torch_threads": torch.get_num_threads(),
        "llama_threads": num_threads(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "llama_cpp_python": "" if isinstance(worker, Absent) else worker.version,
    }
