"""The forward pass of a target: token rows in, logits out, keys and values into a cache.

Owns the protocol alone. It is implemented in `cpu.int8_decoder`, `cpu.float_decoder`, `gpu.decoder` and
`transformers_decoder`. All are built for one property: a row's logits, keys and values depend only on its own
token and the tokens before it, not on the number of rows beside it. `exactness` tests this property at load.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from completion_engine.target_model.branch_caches import Layout
from completion_engine.target_model.in_flight import Brake
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.weights import RowTable


class Decoder(Protocol):
    """One target's forward pass."""

    num_layers: int
    num_kv_heads: int
    head_size: int
    hidden_size: int
    vocab_size: int
    row_step: int  # passes run a multiple of this number of rows
    computes_in_torch: bool  # its operations also need threads
    brake: Brake  # ends a pass early, where passes are made of kernels that look at it

    @property
    def num_weight_bytes(self) -> int:
        """Memory of the weights."""
        ...

    @property
    def embedding(self) -> RowTable:
        """The numbers that the first layer reads for each token, [vocab_size, hidden_size]."""
        ...

    @property
    def rotary(self) -> tuple[Tensor, Tensor] | None:
        """Arguments of `rotate` that turn queries for cached keys, by position; None if unknown."""
        ...

    def head_rows(self, tokens: Tensor) -> Tensor:
        """The head's weights of some tokens [num_tokens, hidden_size]; a copy."""
        ...

    def forward(self, rows: Tensor, layout: Layout, caches: Sequence[KVCache], num_logits: int) -> Tensor:
        """Run `rows` [num_rows] on the host, a multiple of `row_step`, after the cached positions.

        `layout` says where each row stands; `caches` holds one cache a branch, and gets the rows' keys,
        values and hidden states (its length stays as it is). Returns the logits [num_logits, vocab_size] of
        the last `num_logits` rows. Raises CancelledError where `brake` ended the pass: nothing that the
        caches hold of its rows counts then.
        """
        ...
