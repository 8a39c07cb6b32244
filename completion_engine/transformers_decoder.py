"""Any causal model of transformers, run through its own modules over our static cache.

The way for architectures that we have no decoder for, and for GPUs that our kernels cannot run on:
transformers' attention registry takes our attention, and a small cache object hands it our keys and values.
Importing this module takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AttentionInterface,
    AttentionMaskInterface,
    AutoConfig,
)
from transformers.utils import logging as transformers_logging

from completion_engine.cpu.attention import OpenBranches
from completion_engine.cpu.linear import computes_bf16
from completion_engine.errors import DataError, UserError
from completion_engine.models.gguf_layout import read_layout
from completion_engine.target_model.brake import Brake
from completion_engine.target_model.decoder import Layout
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.llama_family import is_of_family, rotary_tables
from completion_engine.target_model.model_files import Config, damaged, open_weights
from completion_engine.target_model.passes import ROWS
from completion_engine.target_model.weights import Precision

_NAME = "slipstream"
_view: ContextVar[_CacheView] = ContextVar("the pass under way")


def _attention(
    _module: Any, query: Tensor, key: Tensor, value: Tensor, _mask: Tensor, **options: Any
) -> tuple[Tensor, None]:
    """query [1, num_heads, num_rows, head_size]; key, value [1, num_kv_heads, num_rows, head_size]."""
    scale = options.get("scaling") or query.shape[-1] ** -0.5
    q, k, v = query[0].transpose(0, 1).contiguous(), key[0].contiguous(), value[0].contiguous()
    return _view.get().attend(q, k, v, scale)[None], None


def _mask(*_: Any, **__: Any) -> None:
    """None is needed: our attention knows itself what its rows see."""


AttentionInterface.register(_NAME, _attention)
AttentionMaskInterface.register(_NAME, _mask)


class _CacheView:
    """A cache in the form that transformers expects, over the engine's caches during one pass.

    Keys and values pass through it unchanged: the attention that follows writes them to their branches.
    """

    is_compileable = False

    def __init__(self, branches: OpenBranches, start: int, num_layers: int) -> None:
        self.branches = branches
        self._start = start
        self._layer = 0
        self.is_sliding = [False] * num_layers

    def update(self, key: Tensor, value: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """A layer has its keys and values."""
        self._layer = layer_idx
        return key, value

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """Attention of the layer that was updated last; see `OpenBranches.attend`."""
        return self.branches.attend(self._layer, q, k, v, scale)

    def get_seq_length(self, *_: Any) -> int:
        """Tokens already cached."""
        return self._start

    def get_query_offset(self, *_: Any) -> int:
        """Position of the first row."""
        return self._start

    def get_mask_sizes(self, *_: Any) -> tuple[int, int]:
        """Keys that a mask covers, and where they begin."""
        return self.branches.num_keys, 0


class _LaidOut(nn.Module):
    """A product in bf16 whose weights oneDNN has laid out once; a pass lays out plain ones each time."""

    def __init__(self, plain: nn.Linear) -> None:
        super().__init__()
        self.bias = plain.bias
        self._weight = torch.ops.mkldnn._reorder_linear_weight(plain.weight.contiguous(), ROWS)

    def forward(self, x: Tensor) -> Tensor:
        """The product with x [..., num_inputs]."""
        found: Tensor = torch.ops.mkldnn._linear_pointwise(x, self._weight, self.bias, "none", [], "")
        return found


class TransformersDecoder:
    """Forward pass through transformers' modules; see `target_model.decoder.Decoder`."""

    row_step = ROWS
    computes_in_torch = True

    def __init__(self, model: Any, num_positions: int) -> None:
        config = model.config
        try:
            model.set_attn_implementation(_NAME)
        except ValueError as error:
            raise UserError(
                f"Models of the kind {config.model_type!r} have their own attention and cannot run here.",
                advice="Choose a model whose attention transformers can replace.",
            ) from error
        self._model = model
        self.brake = Brake()
        self.num_layers = config.num_hidden_layers
        self.num_kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        self.head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.hidden_size = config.hidden_size
        self.vocab_size = config.vocab_size
        self.num_weight_bytes = sum(p.nbytes for p in model.parameters())
        self._head: Tensor = model.get_output_embeddings().weight
        self._rotary: tuple[Tensor, Tensor] | None = None
        if is_of_family(settings := config.to_dict()):
            table = self.embedding
            cos, sin = rotary_tables(settings, self.head_size, num_positions, table.dtype)
            self._rotary = cos.to(table.device), sin.to(table.device)
        if self.embedding.device.type == "cpu" and self.embedding.dtype == torch.bfloat16 and computes_bf16():
            self._lay_out()

    @property
    def embedding(self) -> Tensor:
        """See `Decoder.embedding`."""
        weight: Tensor = self._model.get_input_embeddings().weight
        return weight

    @property
    def rotary(self) -> tuple[Tensor, Tensor] | None:
        """See `Decoder.rotary`. Other families turn in their own ways, or not at all."""
        return self._rotary

    def head_rows(self, tokens: Tensor) -> Tensor:
        """See `Decoder.head_rows`."""
        return self._head[tokens]

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """See `Decoder.forward`."""
        rows = rows.to(self.embedding.device)
        branches = OpenBranches(layout, caches, rows.device)
        view = _CacheView(branches, caches[0].num_cached, self.num_layers)
        token = _view.set(view)
        try:
            output = self._model(
                input_ids=rows[None],
                position_ids=branches.positions[None],
                past_key_values=view,
                use_cache=True,
                output_hidden_states=True,
                logits_to_keep=max(num_logits, 1),  # 0 would keep all
            )
        finally:
            _view.reset(token)
        branches.store_hidden(output.hidden_states[-1][0])
        logits: Tensor = output.logits[0]
        if logits.dtype == torch.float16:  # which what reads logits does not know
            logits = logits.float()
        return logits[len(logits) - num_logits :]

    def _lay_out(self) -> None:
        """Lay out the weights of all products."""
        for module in tuple(self._model.modules()):
            for name, child in tuple(module.named_children()):
                if isinstance(child, nn.Linear):
                    setattr(module, name, _LaidOut(child))


def module_decoder(
    folder: Path, config: Config, num_positions: int, precision: Precision, device: torch.device
) -> TransformersDecoder:
    """Return a decoder for any causal model. Raises UserError for a dtype that rounds weights."""
    if precision.kind != "float":
        raise UserError(
            f"Models of the kind {config.get('model_type')!r} cannot run in {precision.kind} here.",
            advice="Set dtype to auto.",
        )
    return TransformersDecoder(build_modules(folder, precision.dtype).to(device), num_positions)


def build_modules(folder: Path, dtype: torch.dtype) -> Any:
    """Return the model as transformers' modules. Raises DataError, MemoryError, OSError."""
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers is untyped
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # as above
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        weights = open_weights(folder, dtype) if read_layout(folder) else None
        kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
        model, found = kind.from_pretrained(
            None if weights else folder,
            config=config,
            dtype=dtype,
            state_dict=weights and {name: weights[name] for name in weights},
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
        )
    except (MemoryError, OSError):
        raise
    except Exception as error:  # its checks and those of other libraries raise many kinds
        raise DataError(
            f"The model in {folder} cannot be built: {error}",
            advice="Download it again with `slipstream models pull`, or choose another target.",
        ) from error
    if missing := sorted(found["missing_keys"]):
        raise damaged(folder, ValueError(f"its files hold no {missing[0]}"))
    return model.eval().requires_grad_(False)
