"""The composition of this package: the peers, their loading order, and the report."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from completion_engine.config import EngineConfig
from completion_engine.engine import CompletionEngine
from completion_engine.errors import UserError
from completion_engine.load_engine import load_engine_from
from completion_engine.models import ModelStore
from completion_engine.request import Progress
from lsp_server.commands.local_engine import Sample
from tests.benchmarks.peers import openvino_peers as openvino
from tests.benchmarks.peers.llama import LLAMA, llama_peers, lookup_tokens, num_threads
from tests.benchmarks.peers.ours import PLAIN, our_peers
from tests.benchmarks.peers.reference import (
    GREEDY,
    NUM_LOOKUP_TOKENS,
    TransformersPeer,
    find_assistant,
    transformers_peers,
)
from tests.benchmarks.peers.report import summarise
from tests.benchmarks.peers.runs import Absent, Peer, PeerTask, take_turns
from tests.benchmarks.peers.tasks import tasks_for
from tests.benchmarks.peers.worker_process import Engine, Worker, running_worker
from tests.benchmarks.samples import repository_index

_TRANSFORMERS, _PARTS = "transformers", "parts of Slipstream"  # each drafter by itself, and more of them
FAMILIES = (_TRANSFORMERS, LLAMA.name, openvino.OPENVINO.name, _PARTS)  # that can be left out
_WARM_UP = "def add(left, right):\n    return "
_WARM_UP_TOKENS = 8
_SPARE_POSITIONS = 64  # a draft may reach beyond the last token asked for


@dataclass(frozen=True, slots=True)
class PeerOptions:
    """What to compare: `max_tokens` new tokens of `target` after each sample's prompt.

    An index of `sources`, where they are given, serves one more peer. `llama_python` and `openvino_python`
    are interpreters that have these peers. The members of `FAMILIES` that are in `without` are left out.
    """

    target: str
    max_tokens: int
    dtype: str = "auto"
    llama_python: Path | None = None
    openvino_python: Path | None = None
    sources: Path | None = None
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises UserError for a name that no family has."""
        if unknown := set(self.without) - set(FAMILIES):
            raise UserError(
                f"No peers are called {', '.join(sorted(unknown))}.",
                advice=f"Choose of {', '.join(FAMILIES)}.",
            )


def measure_peers(samples: Sequence[Sample], asked: PeerOptions, report: Progress) -> dict[str, Any]:
    """Every peer on every sample, interleaved, as one JSON object.

    Raises SlipstreamError when the target or a named interpreter cannot be had.
    """
    load_before = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    with ExitStack() as stack:
        workers = _Workers(  # first: a wrong path fails at once
            stack.enter_context(_wanted(LLAMA, asked.llama_python, asked)),
            stack.enter_context(_wanted(openvino.OPENVINO, asked.openvino_python, asked)),
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slipstream-peers-"))),
        )
        folder = ModelStore().ensure(asked.target, report)
        config = EngineConfig(target=asked.target, drafters=(), dtype=asked.dtype, num_slots=1)
        plain = load_engine_from(folder, config, report)
        report("Loading the peers", 0, 0)
        tasks = tasks_for(plain, samples)
        num_positions = max(len(task.tokens) for task in tasks) + asked.max_tokens + _SPARE_POSITIONS
        line_up = _line_up(asked, folder, plain, workers, num_positions)
        peers: list[Peer] = [peer for peer in line_up if not isinstance(peer, Absent)]
        _warm_up(peers, PeerTask(tuple(plain.tokenizer.encode(_WARM_UP))), tasks, asked.max_tokens)
        runs = take_turns(peers, tasks, asked.max_tokens, lambda at, total: report("Comparing", at, total))
    return {
        "bench": "peers",
        "num_prompts": len(tasks),
        "num_prompt_tokens": sum(len(task.tokens) for task in tasks),
        "tokens_asked": asked.max_tokens,
        "load_before": load_before,  # much of it, and the figures are of a machine that others used too
        **_facts(plain, workers),
        "peers": summarise(runs, PLAIN, GREEDY, lambda tokens: plain.tokenizer.decode(list(tokens))),
        "absent": [asdict(peer) for peer in line_up if isinstance(peer, Absent)],
    }


@dataclass(frozen=True, slots=True)
class _Workers:
    """Peers' processes, and a folder that is gone with the run."""

    llama: Worker | Absent
    openvino: Worker | Absent
    folder: Path


def _wanted(
    engine: Engine, python: Path | None, asked: PeerOptions
) -> AbstractContextManager[Worker | Absent]:
    if engine.name in asked.without:
        return nullcontext(Absent(engine.name, "it was left out"))
    return running_worker(engine, python)


def _line_up(
    asked: PeerOptions,
    folder: Path,
    plain: CompletionEngine,
    workers: _Workers,
    num_positions: int,
) -> list[Peer | Absent]:
    target, tokenizer = plain.target, plain.tokenizer
    assistant = find_assistant(folder, tokenizer)
    few = _PARTS in asked.without
    index = repository_index(asked.sources, tokenizer.encode_many) if asked.sources else None
    on_gpu = target.device.type == "cuda"
    found: list[Peer | Absent] = []
    if _TRANSFORMERS not in asked.without:
        found += transformers_peers(folder, target, tokenizer, assistant)
    found += llama_peers(workers.llama, asked.target, num_positions, tokenizer.end_ids, on_gpu=on_gpu)
    found += openvino.openvino_peers(
        workers.openvino, asked.target, tokenizer.end_ids, workers.folder, on_gpu=on_gpu
    )
    return [*found, *our_peers(plain, index, few=few)]


def _warm_up(peers: Sequence[Peer], short: PeerTask, tasks: Sequence[PeerTask], max_tokens: int) -> None:
    """Let each peer do its one-time work before the measurement: after a `short` text, and the longest."""
    for peer in peers:
        peer.write(short, _WARM_UP_TOKENS)
    longest = max(tasks, key=lambda task: len(task.tokens))
    for peer in peers:
        if isinstance(peer, TransformersPeer) and peer.cache_implementation:
            peer.write(longest, max_tokens)  # its cache is compiled for the longest text so far


def _facts(plain: CompletionEngine, workers: _Workers) -> dict[str, Any]:
    engine = plain.describe()
    return {
        **{name: engine[name] for name in ("target", "device", "dtype", "exactness", "pass_ms")},
        "num_lookup_tokens": {
            "transformers": NUM_LOOKUP_TOKENS,
            LLAMA.name: lookup_tokens(on_gpu=plain.target.device.type == "cuda"),
            openvino.OPENVINO.name: openvino.NUM_LOOKUP_TOKENS,
        },
        "torch_threads": torch.get_num_threads(),
        "worker_threads": num_threads(),
        "python": platform.python_version(),
        "torch": version("torch"),
        "transformers": version("transformers"),
        "llama_cpp_python": _version(workers.llama),
        "openvino_genai": _version(workers.openvino),
    }


def _version(worker: Worker | Absent) -> str:
    return "" if isinstance(worker, Absent) else worker.version
