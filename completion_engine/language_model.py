"""The target: weights on a device, the forward pass, and the proof that its rows do not disturb each other.

With `tokenizer` the only module that knows transformers. Knows nothing of drafts or prompts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from completion_engine.attention import ROWS, pad_rows
from completion_engine.costs import Costs
from completion_engine.decoder import Decoder, FusedDecoder
from completion_engine.errors import DataError, MachineError, UserError
from completion_engine.kv_cache import CacheShape, KVCache
from completion_engine.lanes import Lanes, lay_out
from completion_engine.linear import Kind, can_pack
from completion_engine.quantised import can_quantise

PREFILL_ROWS = 64
CAPACITY = {"cpu": 2048, "cuda": 8192}  # positions of a KV slot
WIDTHS = (8, 16, 24)  # rows of a verification pass that the policy may choose from


class LanguageModel:
    """A target ready to run. All calls belong to one thread."""

    def __init__(self, decoder: Decoder, device: torch.device, precision: Precision, capacity: int) -> None:
        self._decoder = decoder
        self.device = device
        self.precision = precision
        self.capacity = capacity
        self._lanes = Lanes(self.cache_shape)
        self.is_row_invariant = self._rows_are_invariant()
        self.verifies_trees = self.is_row_invariant and self._branches_are_exact()
        self.widths = WIDTHS if self.is_row_invariant else (ROWS,)
        self.pass_ms, self.lane_ms = self._measure_passes()

    @property
    def vocab_size(self) -> int:
        """Entries of a row of logits; may be padded beyond the tokenizer's."""
        return self._decoder.vocab_size

    @property
    def embedding(self) -> Tensor:
        """What the first layer reads of each token, [vocab_size, hidden_size]."""
        return self._decoder.embedding

    @property
    def rotary(self) -> tuple[Tensor, Tensor] | None:
        """See `Decoder.rotary`."""
        return self._decoder.rotary

    def head_rows(self, tokens: Tensor) -> Tensor:
        """The head's weights of some tokens [num_tokens, hidden_size]; a copy."""
        return self._decoder.head_rows(tokens)

    @property
    def num_weight_bytes(self) -> int:
        """Memory of the weights."""
        return self._decoder.num_weight_bytes

    @property
    def cache_shape(self) -> CacheShape:
        """Geometry of a KV cache for this target."""
        decoder = self._decoder
        return CacheShape(
            decoder.num_layers,
            decoder.num_kv_heads,
            decoder.head_size,
            decoder.hidden_size,
            self.capacity,
            self.precision.dtype,
            self.device,
        )

    def costs_from(self, num_pending: int, max_lanes: int = 1) -> Costs:
        """What passes that hold `num_pending` known rows cost; wider ones than measured in proportion."""
        if num_pending <= min(self.widths):
            return Costs(self.pass_ms, self.lane_ms, max_lanes)
        base, top = min(self.widths), max(self.widths)
        slope = (self.pass_ms[top] - self.pass_ms[base]) / max(1, top - base)
        first = pad_rows(num_pending)
        pass_ms = {width: self.pass_ms[base] + slope * (width - base) for width in (first, first + ROWS)}
        return Costs(pass_ms, self.lane_ms, max_lanes)

    @torch.inference_mode()
    def forward(
        self, tokens: Sequence[int], cache: KVCache, num_logits: int, parents: Sequence[int] | None = None
    ) -> Tensor | None:
        """Run `tokens` behind what is cached; logits [num_logits, vocab_size] of the last ones.

        `parents` [num_tokens] makes a tree of them: the row that each follows, -1 for the first. Without it
        each follows the one before. The cache's length is left as it is: `keep` what turns out to be true.
        """
        num_rows = pad_rows(len(tokens))
        chain = range(len(tokens) - 1, num_rows - 1)
        layout = lay_out([*(range(-1, len(tokens) - 1) if parents is None else parents), *chain])
        if cache.num_cached + max(layout.depths) >= cache.capacity:
            raise ValueError(f"{num_rows} rows do not fit behind {cache.num_cached} of {cache.capacity}")
        padding = [0] * (num_rows - len(tokens))
        rows = torch.tensor([*tokens, *padding], device=self.device)
        caches = self._lanes.open(cache, layout)
        logits = self._decoder.forward(rows, layout, caches, num_logits + len(padding) if num_logits else 0)
        return None if logits is None else logits[:num_logits]

    @torch.inference_mode()
    def keep(
        self, cache: KVCache, parents: Sequence[int], path: Sequence[int], tokens: Sequence[int]
    ) -> None:
        """Keep the rows `path` of the pass just run, whose tokens are `tokens`; `parents` as in `forward`."""
        self._lanes.keep(cache, lay_out(parents), path, tokens)

    def _rows_are_invariant(self) -> bool:
        """Whether a position comes out bit for bit the same alone, in a chain and in a prefill chunk.

        Where it does, the cache holds the same bits however it was filled, and a pass may have any width.
        Where it does not, every pass of decoding runs one fixed width, which keeps drafts from
        changing the text.
        """
        generator = torch.Generator().manual_seed(0)
        tokens = torch.randint(0, self.vocab_size, (PREFILL_ROWS,), generator=generator).tolist()
        together, apart = KVCache(self.cache_shape), KVCache(self.cache_shape)
        wanted = self.forward(tokens, together, ROWS)
        step, logits = 3, None
        for first in range(0, len(tokens), step):
            chunk = tokens[first : first + step]
            logits = self.forward(chunk, apart, len(chunk))
            apart.keep(chunk)
        if wanted is None or logits is None:
            raise AssertionError("logits were asked for")
        end = len(tokens)
        same_keys = torch.equal(together.keys[:, :, :end], apart.keys[:, :, :end])
        same_values = torch.equal(together.values[:, :, :end], apart.values[:, :, :end])
        return same_keys and same_values and torch.equal(wanted[-1], logits[-1])

    def _branches_are_exact(self) -> bool:
        """Whether a path gives the same bits in a branch of a tree as in a chain."""
        generator = torch.Generator().manual_seed(1)
        known = torch.randint(0, self.vocab_size, (PREFILL_ROWS - 3,), generator=generator).tolist()
        chain, tree = KVCache(self.cache_shape), KVCache(self.cache_shape)
        for cache in (chain, tree):
            self.forward(known, cache, 0)
            cache.keep(known)
        parents = [-1, 0, 1, 2, 3, 1, 5, 6, 0, 8, 9, 10]
        tokens = [row + 1 for row in range(len(parents))]
        logits = self.forward(tokens, tree, len(tokens), parents)
        path = [0, 1, 5, 6, 7]
        kept = [tokens[row] for row in path]
        wanted = self.forward(kept, chain, len(kept))
        if wanted is None or logits is None:
            raise AssertionError("logits were asked for")
        self.keep(tree, parents, path, kept)
        chain.keep(kept)
        end = tree.num_cached
        same_keys = torch.equal(tree.keys[:, :, :end], chain.keys[:, :, :end])
        same_values = torch.equal(tree.values[:, :, :end], chain.values[:, :, :end])
        return same_keys and same_values and torch.equal(logits[path], wanted)

    def _measure_passes(self) -> tuple[dict[int, float], float]:
        """Milliseconds of one verification pass by width, and of a lane more: medians of a few, in turn."""
        cache = KVCache(self.cache_shape)
        cache.keep([0] * min(512, self.capacity // 2))
        base = min(self.widths)
        shapes = {width: list(range(-1, width - 1)) for width in self.widths}
        if self.verifies_trees:
            shapes[0] = [*range(-1, base - 2), 0]
        times: dict[int, list[float]] = {shape: [] for shape in shapes}
        for _ in range(6):
            for shape, parents in shapes.items():
                begin = time.perf_counter()
                logits = self.forward([0] * len(parents), cache, len(parents), parents)
                assert logits is not None  # noqa: S101 - logits were asked for
                logits[0, 0].item()
                times[shape].append((time.perf_counter() - begin) * 1e3)
        found = {shape: sorted(taken[1:])[2] for shape, taken in times.items()}
        lane_ms = max(0.0, found.pop(0, 0.0) - found[base])
        return found, lane_ms


def choose_device(name: str) -> torch.device:
    """`auto` takes the GPU when there is one. Raises UserError for a device that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in {"cpu", "cuda"}:
        raise UserError(f"Unknown device {name!r}.", advice="Choose auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "The device cuda was asked for, but torch finds no usable GPU.",
            advice="Set device to auto or cpu, or install a torch build for your GPU.",
        )
    return torch.device(name)


@dataclass(frozen=True, slots=True)
class Precision:
    """What the target computes in, and whether its large weights are held in bytes."""

    name: str
    dtype: torch.dtype
    kind: Kind = "float"


def choose_precision(name: str, device: torch.device) -> Precision:
    """What a dtype's name means on this machine. Raises UserError for what cannot be.

    `auto` holds weights in bytes where the machine multiplies those fast, else computes in bf16, else in
    float32.
    """
    computes_bf16 = device.type == "cuda" or can_pack(torch.empty(1, 1, dtype=torch.bfloat16))
    best = torch.bfloat16 if computes_bf16 else torch.float32
    has_bytes = can_quantise(torch.empty(1, 1, device=device))
    if name == "int8" and not has_bytes:
        raise UserError(
            "This machine does not multiply bytes fast (int8 needs a CPU with AVX-512 VNNI).",
            advice="Set dtype to auto.",
        )
    if name == "int8" or (name == "auto" and has_bytes):
        return Precision("int8", best, "int8")
    known = {"auto": best, "bfloat16": torch.bfloat16, "float32": torch.float32}
    if name not in known:
        raise UserError(f"Unknown dtype {name!r}.", advice="Choose auto, bfloat16, float32 or int8.")
    return Precision(str(known[name]).removeprefix("torch."), known[name])


def load_language_model(folder: Path, device: str, dtype: str, capacity: int = 0) -> LanguageModel:
    """Load a model folder (config.json, safetensors). Seconds. `capacity` 0 takes what suits the device.

    Raises MachineError when it does not fit into memory, DataError when the files are damaged.
    """
    from transformers import AutoModelForCausalLM  # noqa: PLC0415 - seconds that `--help` need not pay
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415 - as above

    place = choose_device(device)
    precision = choose_precision(dtype, place)
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers is untyped
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # as above
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=precision.dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
        model.eval().requires_grad_(False).to(place)
        capacity = capacity or CAPACITY[place.type]
        capacity = min(capacity, getattr(model.config, "max_position_embeddings", None) or capacity)
        if dtype == "auto" and not FusedDecoder.serves(model.config):
            precision = Precision(str(precision.dtype).removeprefix("torch."), precision.dtype)
        return LanguageModel(_decoder_for(model, capacity, precision.kind), place, precision, capacity)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise MachineError(
            f"The model in {folder} does not fit into the memory of {place}.",
            advice="Choose a smaller target or another device.",
        ) from error
    except (OSError, KeyError, ValueError) as error:
        raise DataError(
            f"The model in {folder} cannot be loaded: {error}",
            advice="Fetch it again with `slipstream models pull`.",
        ) from error


def _decoder_for(model: Any, num_positions: int, kind: Kind) -> Decoder:
    if FusedDecoder.serves(model.config):
        return FusedDecoder(model, num_positions, kind)
    if kind != "float":
        raise UserError(
            f"Models of the kind {model.config.model_type!r} cannot run in {kind} here.",
            advice="Set dtype to auto.",
        )
    from completion_engine.module_decoder import ModuleDecoder  # noqa: PLC0415 - rarely needed

    return ModuleDecoder(model)
