"""The target: weights on a device, the forward pass, and the proof that its rows do not disturb each other.

With `tokenizer` the only module that knows transformers. Knows nothing of drafts or prompts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from completion_engine.decoder import ROWS, Decoder, FusedDecoder, pad_rows
from completion_engine.errors import DataError, MachineError, UserError
from completion_engine.kv_cache import CacheShape, KVCache
from completion_engine.linear import can_pack

PREFILL_ROWS = 64
CAPACITY = {"cpu": 2048, "cuda": 8192}  # positions of a KV slot
WIDTHS = (8, 16)  # rows of a verification pass that the policy may choose from


class LanguageModel:
    """A target ready to run. All calls belong to one thread."""

    def __init__(self, decoder: Decoder, device: torch.device, dtype: torch.dtype, capacity: int) -> None:
        self._decoder = decoder
        self.device = device
        self.dtype = dtype
        self.capacity = capacity
        self.is_row_invariant = self._rows_are_invariant()
        self.widths = WIDTHS if self.is_row_invariant else (ROWS,)
        self.pass_ms = self._measure_passes()

    @property
    def vocab_size(self) -> int:
        """Entries of a row of logits; may be padded beyond the tokenizer's."""
        return self._decoder.vocab_size

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
            self.capacity,
            self.dtype,
            self.device,
        )

    def pass_ms_from(self, num_pending: int) -> dict[int, float]:
        """Widths that hold `num_pending` known rows, with the cost of each; wider ones cost in proportion."""
        if num_pending <= min(self.widths):
            return self.pass_ms
        base, top = min(self.widths), max(self.widths)
        slope = (self.pass_ms[top] - self.pass_ms[base]) / max(1, top - base)
        first = pad_rows(num_pending)
        return {width: self.pass_ms[base] + slope * (width - base) for width in (first, first + ROWS)}

    @torch.inference_mode()
    def forward(self, tokens: Sequence[int], cache: KVCache, num_logits: int) -> Tensor | None:
        """Run `tokens` behind what is cached; logits [num_logits, vocab_size] of the last ones.

        Rows are padded to a whole group; what the padding writes lies behind the valid positions.
        The cache's length is left as it is: keep what turns out to be true.
        """
        num_rows = pad_rows(len(tokens))
        if cache.num_cached + num_rows > cache.capacity:
            raise ValueError(f"{num_rows} rows do not fit behind {cache.num_cached} of {cache.capacity}")
        padding = [0] * (num_rows - len(tokens))
        rows = torch.tensor([*tokens, *padding], device=self.device)
        logits = self._decoder.forward(rows, cache, num_logits + len(padding) if num_logits else 0)
        return None if logits is None else logits[:num_logits]

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

    def _measure_passes(self) -> dict[int, float]:
        """Milliseconds of one verification pass by width, the median of a few."""
        cache = KVCache(self.cache_shape)
        cache.keep([0] * min(512, self.capacity // 2))
        found: dict[int, float] = {}
        for width in self.widths:
            times: list[float] = []
            for _ in range(5):
                begin = time.perf_counter()
                logits = self.forward([0] * width, cache, width)
                assert logits is not None  # noqa: S101 - logits were asked for
                logits[0, 0].item()
                times.append((time.perf_counter() - begin) * 1e3)
            found[width] = sorted(times)[len(times) // 2]
        return found


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


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """`auto` takes bf16 where the machine computes in it, else float32."""
    known = {
        "bfloat16": torch.bfloat16,
        "bf16": torch.bfloat16,
        "float32": torch.float32,
        "fp32": torch.float32,
    }
    if name in known:
        return known[name]
    if name != "auto":
        raise UserError(f"Unknown dtype {name!r}.", advice="Choose auto, bfloat16 or float32.")
    if device.type == "cuda" or can_pack(torch.empty(1, 1, dtype=torch.bfloat16)):
        return torch.bfloat16
    return torch.float32


def load_language_model(folder: Path, device: str, dtype: str, capacity: int = 0) -> LanguageModel:
    """Load a model folder (config.json, safetensors). Seconds. `capacity` 0 takes what suits the device.

    Raises MachineError when it does not fit into memory, DataError when the files are damaged.
    """
    from transformers import AutoModelForCausalLM  # noqa: PLC0415 - seconds that `--help` need not pay
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415 - as above

    place = choose_device(device)
    kind = choose_dtype(dtype, place)
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers is untyped
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # as above
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=kind, local_files_only=True, trust_remote_code=False, use_safetensors=True
        )
        model.eval().requires_grad_(False).to(place)
        capacity = capacity or CAPACITY[place.type]
        capacity = min(capacity, getattr(model.config, "max_position_embeddings", None) or capacity)
        return LanguageModel(_decoder_for(model, capacity), place, kind, capacity)
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


def _decoder_for(model: Any, num_positions: int) -> Decoder:
    if FusedDecoder.serves(model.config):
        return FusedDecoder(model, num_positions)
    from completion_engine.module_decoder import ModuleDecoder  # noqa: PLC0415 - rarely needed

    return ModuleDecoder(model)
