"""Any causal model of transformers, run through its own modules over our static cache.

The way for architectures that `FusedDecoder` does not know: transformers' attention registry takes our
attention, and a small cache object hands it our keys and values.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface

from completion_engine.decoder import causal_mask, num_keys_for
from completion_engine.errors import UserError
from completion_engine.kv_cache import KVCache

_NAME = "slipstream"


def _attention(
    _module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, **options: Any
) -> tuple[Tensor, None]:
    """Grouped attention with the group folded into the rows.

    query [1, num_heads, num_rows, head_size]; key, value [1, num_kv_heads, num_keys, head_size].
    """
    _, num_heads, num_rows, head_size = query.shape
    num_kv = key.shape[1]
    folded = query.reshape(1, num_kv, -1, head_size)
    rows = mask.repeat(1, 1, num_heads // num_kv, 1)
    heads = functional.scaled_dot_product_attention(folded, key, value, rows, scale=options.get("scaling"))
    return heads.view(1, num_heads, num_rows, -1).transpose(1, 2), None


def _mask(*_: Any, **options: Any) -> Tensor:
    view: _CacheView = options.get("past_key_values") or _CacheView.current
    return view.mask


AttentionInterface.register(_NAME, _attention)
AttentionMaskInterface.register(_NAME, _mask)


class _CacheView:
    """What transformers expects of a cache, over one KVCache during one pass."""

    is_compileable = False
    current: Any = None

    def __init__(self, cache: KVCache, num_rows: int, dtype: torch.dtype, device: torch.device) -> None:
        self._cache = cache
        self._start, self._end = cache.num_cached, cache.num_cached + num_rows
        self._num_keys = num_keys_for(self._end, cache.capacity)
        self.is_sliding = [False] * cache.shape.num_layers
        self.mask = causal_mask(self._start, num_rows, self._num_keys, dtype, device)[None, None]

    def update(self, key: Tensor, value: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Write this layer's keys and values, hand out all that the rows may see."""
        keys, values = self._cache.keys[layer_idx], self._cache.values[layer_idx]
        keys[:, self._start : self._end] = key[0]
        values[:, self._start : self._end] = value[0]
        return keys[None, :, : self._num_keys], values[None, :, : self._num_keys]

    def get_seq_length(self, *_: Any) -> int:
        """Tokens already cached."""
        return self._start

    def get_query_offset(self, *_: Any) -> int:
        """Position of the first row."""
        return self._start

    def get_mask_sizes(self, *_: Any) -> tuple[int, int]:
        """Keys that a mask covers, and where they begin."""
        return self._num_keys, 0


class ModuleDecoder:
    """Forward pass through transformers' modules; the same contract as `FusedDecoder`."""

    def __init__(self, model: Any) -> None:
        config = model.config
        try:
            model.set_attn_implementation(_NAME)
        except ValueError as error:
            raise UserError(
                f"Models of the kind {config.model_type!r} bring attention of their own and cannot run here.",
                advice="Choose a model whose attention transformers lets be replaced.",
            ) from error
        self._model = model
        self.num_layers = config.num_hidden_layers
        self.num_kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        self.head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.vocab_size = config.vocab_size
        self.num_weight_bytes = sum(p.nbytes for p in model.parameters())

    def forward(self, rows: Tensor, cache: KVCache, num_logits: int) -> Tensor | None:
        """See `Decoder.forward`."""
        view = _CacheView(cache, rows.shape[0], self._model.dtype, rows.device)
        _CacheView.current = view
        positions = torch.arange(cache.num_cached, cache.num_cached + rows.shape[0], device=rows.device)
        output = self._model(
            input_ids=rows[None],
            position_ids=positions[None],
            past_key_values=view,
            use_cache=True,
            logits_to_keep=max(num_logits, 1),
        )
        return output.logits[0, -num_logits:] if num_logits else None
