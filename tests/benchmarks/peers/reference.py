"""The target in transformers: greedy, with prompt lookup, and assisted by a smaller model. One loaded model.

Knows transformers and nothing of Slipstream's own decoding.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from completion_engine.errors import MachineError
from completion_engine.models import ModelStore
from completion_engine.models.gguf_layout import read_layout
from completion_engine.prompting.tokenizer import Tokenizer, load_tokenizer
from completion_engine.target_model.language_model import LanguageModel
from tests.benchmarks.peers.runs import Absent, Peer, PeerTask, Run, up_to_end

GREEDY = "transformers greedy"
COMPILED = "transformers compiled, static cache"
NUM_LOOKUP_TOKENS = 10  # the generator's own default
_LOOKUP = "transformers prompt lookup"
_ASSISTED = "transformers assisted"


@dataclass(slots=True)
class _Streamer:
    """Notes what each pass handed over; transformers calls `put` with the prompt first."""

    passes: list[list[int]] = field(default_factory=list)
    first_at: float = 0.0

    def put(self, tokens: Tensor) -> None:
        """The prompt, then the tokens of one pass at a time."""
        if len(self.passes) == 1:
            self.first_at = time.perf_counter()
        self.passes.append(tokens.flatten().tolist())

    def end(self) -> None:
        """The call returns next."""


@dataclass(frozen=True, slots=True)
class TransformersPeer:
    """One way to call `generate`. On a GPU transformers compiles the forward for a `static` cache."""

    name: str
    model: Any
    end_ids: frozenset[int]
    num_lookup_tokens: int | None = None
    assistant: Any = None
    cache_implementation: str = ""

    def write(self, task: PeerTask, max_tokens: int) -> Run:
        """See `Peer.write`."""
        from transformers import GenerationConfig

        ends = sorted(self.end_ids)
        config = GenerationConfig(  # type: ignore[no-untyped-call]  # transformers is untyped
            do_sample=False,
            max_new_tokens=max_tokens,
            eos_token_id=ends or None,
            pad_token_id=ends[0] if ends else 0,
            prompt_lookup_num_tokens=self.num_lookup_tokens,
            cache_implementation=self.cache_implementation or None,
        )
        rows = torch.tensor([task.tokens], device=self.model.device)
        streamer = _Streamer()
        more = {"assistant_model": self.assistant} if self.assistant is not None else {}
        begin = time.perf_counter()
        self.model.generate(
            rows, attention_mask=torch.ones_like(rows), generation_config=config, streamer=streamer, **more
        )
        end = time.perf_counter()
        _, first, *others = streamer.passes
        tokens = up_to_end(
            [*first, *(token for other in others for token in other)], max_tokens, self.end_ids
        )
        decode_ms = (end - streamer.first_at) * 1e3
        return Run(tokens, len(first), (streamer.first_at - begin) * 1e3, decode_ms, len(others))


def transformers_peers(
    folder: Path, target: LanguageModel, tokenizer: Tokenizer, assistant: Path | str
) -> list[Peer | Absent]:
    """The model in `folder` on the device and in the number format of `target`.

    `assistant` is what `find_assistant` found. Raises MachineError when a model does not fit into memory
    beside what is loaded.
    """
    model = _load(folder, target)
    if isinstance(assistant, Path):
        assisted: Peer | Absent = TransformersPeer(
            _ASSISTED, model, tokenizer.end_ids, assistant=_load(assistant, target)
        )
    else:
        assisted = Absent(_ASSISTED, assistant)
    on_gpu = target.device.type == "cuda"
    compiled = TransformersPeer(COMPILED, model, tokenizer.end_ids, cache_implementation="static")
    return [
        TransformersPeer(GREEDY, model, tokenizer.end_ids),
        compiled if on_gpu else Absent(COMPILED, "transformers compiles for GPUs only"),
        TransformersPeer(_LOOKUP, model, tokenizer.end_ids, num_lookup_tokens=NUM_LOOKUP_TOKENS),
        assisted,
    ]


def find_assistant(folder: Path, tokenizer: Tokenizer, store: ModelStore | None = None) -> Path | str:
    """The smallest stored catalogue model below the target that has its tokenizer, or why there is none."""
    store = store or ModelStore()
    found: list[Path] = []
    missing: list[str] = []
    for stored in store.list():
        if stored.spec.num_bf16_bytes >= _num_bf16_bytes(folder):
            continue
        if not stored.is_ready:
            missing.append(stored.spec.id)
            continue
        candidate = store.ensure(stored.spec.id)
        same_tokens = load_tokenizer(candidate).fingerprint == tokenizer.fingerprint
        if same_tokens and _num_logits(candidate) == _num_logits(folder):
            found.append(candidate)
    if found:
        return min(found, key=_num_bf16_bytes)
    also = f"; not fetched, so not looked at: {', '.join(missing)}" if missing else ""
    return f"no smaller model with the same tokenizer in the model store{also}"


def _num_bf16_bytes(folder: Path) -> int:
    if layout := read_layout(folder):
        return 2 * sum(math.prod(tensor.shape) for tensor in layout.tensors.values())
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def _num_logits(folder: Path) -> int:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return int(config.get("vocab_size", 0))


def _load(folder: Path, target: LanguageModel) -> Any:
    from transformers import GenerationConfig

    from completion_engine.transformers_decoder import build_modules

    try:
        model = build_modules(folder, target.precision.dtype).to(target.device)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise MachineError(
            f"The model in {folder} does not fit into memory a second time.",
            advice="Choose a smaller target for this comparison.",
        ) from error
    # The model's own may sample or punish repetition.
    model.generation_config = GenerationConfig()  # type: ignore[no-untyped-call]  # as above
    return model
