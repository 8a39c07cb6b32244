"""OpenVINO GenAI as a peer, in a worker process, on the model store's own GGUF file.

Its reader does not support Q5_0: a file that has such weights is written again with the same levels in 8
bits.
"""

from __future__ import annotations

from pathlib import Path

from completion_engine.errors import MachineError
from tests.benchmarks.peers.eight_bits import has_five_bits, in_eight_bits
from tests.benchmarks.peers.llama import gguf_of, num_threads
from tests.benchmarks.peers.runs import Absent, Peer
from tests.benchmarks.peers.worker_process import Engine, Worker, WorkerPeer

OPENVINO = Engine(
    "OpenVINO GenAI", "openvino_genai", "openvino-genai", "--openvino-python", "openvino_backend"
)
NUM_LOOKUP_TOKENS = 5  # as in its own samples
_LOOKUP = f"{OPENVINO.name} prompt lookup"


def openvino_peers(
    worker: Worker | Absent, target: str, end_ids: frozenset[int], folder: Path, *, on_gpu: bool
) -> list[Peer | Absent]:
    """OpenVINO GenAI greedy and with its prompt lookup.

    A file that it cannot read is written again to `folder`.
    """
    gguf = gguf_of(target)
    why = worker.reason if isinstance(worker, Absent) else gguf
    if isinstance(worker, Absent) or isinstance(why, str):
        return [Absent(name, str(why)) for name in (OPENVINO.name, _LOOKUP)]
    if on_gpu:
        return [Absent(name, "it has nothing for this GPU") for name in (OPENVINO.name, _LOOKUP)]
    if has_five_bits(why):
        gguf = folder / "eight_bits.gguf"
        in_eight_bits(why, gguf)
    found: list[Peer | Absent] = []
    for name, num_lookup_tokens in ((OPENVINO.name, 0), (_LOOKUP, NUM_LOOKUP_TOKENS)):
        message = {"op": "load", "name": name, "path": str(gguf), "num_lookup_tokens": num_lookup_tokens}
        try:
            worker.ask(message | {"num_threads": num_threads()})
            found.append(WorkerPeer(name, worker, end_ids))
        except MachineError as error:
            found.append(Absent(name, error.message))
    return found
