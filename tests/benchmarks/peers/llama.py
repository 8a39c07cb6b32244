"""llama.cpp as a peer, through llama-cpp-python in a worker process, on the model store's own GGUF file."""

from __future__ import annotations

import os
from pathlib import Path

from completion_engine.errors import MachineError, UserError
from completion_engine.models import ModelStore
from completion_engine.models.catalogue import CATALOGUE, path_of
from tests.benchmarks.peers.runs import Absent, Peer
from tests.benchmarks.peers.worker_process import Engine, Worker, WorkerPeer

LLAMA = Engine("llama.cpp", "llama_cpp", "llama-cpp-python", "--llama-python", "llama_backend")
_LOOKUP = f"{LLAMA.name} prompt lookup"


def num_threads() -> int:
    """Threads that a worker's engine gets: every core, as torch takes by itself."""
    return os.cpu_count() or 1


def lookup_tokens(*, on_gpu: bool) -> int:
    """Tokens that its prompt lookup drafts: the number in the binding's documentation."""
    return 10 if on_gpu else 2


def gguf_of(target: str, store: ModelStore | None = None) -> Path | str:
    """The GGUF file that the target was made from, or why there is none."""
    path = path_of(target)
    if path is not None and path.suffix == ".gguf":
        return path
    if target not in CATALOGUE:
        return f"{target} was not made from a GGUF file, and the peers are to run the very same model"
    try:
        return (store or ModelStore()).path(target)
    except UserError as error:
        return error.message


def llama_peers(
    worker: Worker | Absent, target: str, num_positions: int, end_ids: frozenset[int], *, on_gpu: bool
) -> list[Peer | Absent]:
    """llama.cpp greedy and with its prompt lookup, each with a context of `num_positions`."""
    gguf = gguf_of(target)
    why = worker.reason if isinstance(worker, Absent) else gguf
    if isinstance(worker, Absent) or isinstance(why, str):
        return [Absent(name, str(why)) for name in (LLAMA.name, _LOOKUP)]
    found: list[Peer | Absent] = []
    for name, num_lookup_tokens in ((LLAMA.name, 0), (_LOOKUP, lookup_tokens(on_gpu=on_gpu))):
        message = {"op": "load", "name": name, "path": str(gguf), "num_lookup_tokens": num_lookup_tokens}
        sizes = {"num_positions": num_positions, "num_threads": num_threads(), "on_gpu": on_gpu}
        try:
            worker.ask(message | sizes)
            found.append(WorkerPeer(name, worker, end_ids))
        except MachineError as error:
            found.append(Absent(name, error.message))
    return found
