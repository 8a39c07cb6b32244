"""The network of a distilled drafter, one decoding step at a time.

A state is the hidden vector that the target's head turns into the logits of the next token. One step takes
the state before a token and that token, and returns the state after it. The network has no KV cache of its
own: it attends to the keys and values that one layer of the target has cached (as in GLIDE, Du et al. 2024).
It uses the target's embedding and head. `scripts.distillation.trained_network` is the same function
for training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from completion_engine.cpu.attention import attend, num_keys_for
from completion_engine.cpu.kernels import rows
from completion_engine.cpu.kernels.attention import serves_heads
from completion_engine.cpu.kernels.language import Array, Floats, array_of
from completion_engine.cpu.kernels.rows import round_whole_rows
from completion_engine.cpu.kernels.top_k import score_promising
from completion_engine.cpu.linear import Linear, can_quantise
from completion_engine.drafting.step_program import DraftProgram, Memory, Products
from completion_engine.errors import UserError
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import rotate
from completion_engine.target_model.weights import WeightKind

EPS = 1e-6
# The least number of tokens that get an accurate logit.
NUM_EXACT = 128


@dataclass(frozen=True, slots=True)
class DrafterShape:
    """Sizes of a drafter and of its target.

    `num_layers` to `vocab_size` are the target's. `memory_layer` is the target's layer whose keys and values
    the drafter attends to. `num_heads` counts the drafter's query heads, `num_tokens` the tokens it can
    propose.
    """

    num_layers: int
    num_kv_heads: int
    head_size: int
    hidden_size: int
    vocab_size: int
    memory_layer: int
    num_heads: int
    mlp_size: int
    num_tokens: int

    @property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight by name: [num_outputs, num_inputs], or [num_inputs] for a norm."""
        hidden, attended = self.hidden_size, self.num_heads * self.head_size
        return {
            "embedding_norm": (hidden,),
            "embedding": (hidden, hidden),
            "state_norm": (hidden,),
            "state": (hidden, hidden),
            "attention_norm": (hidden,),
            "query": (attended, hidden),
            "query_bias": (attended,),
            "attended": (hidden, attended),
            "mlp_norm": (hidden,),
            "gate_up": (2 * self.mlp_size, hidden),
            "down": (hidden, self.mlp_size),
            "output_norm": (hidden,),
        }

    def check_target(self, target: LanguageModel) -> None:
        """Raises UserError unless the drafter was made for a target of this geometry."""
        shape = target.cache_shape
        theirs = {
            "layers": (shape.num_layers, self.num_layers),
            "key heads": (shape.num_kv_heads, self.num_kv_heads),
            "head size": (shape.head_size, self.head_size),
            "hidden size": (shape.hidden_size, self.hidden_size),
            "vocabulary": (target.vocab_size, self.vocab_size),
        }
        for name, (found, wanted) in theirs.items():
            if found != wanted:
                raise UserError(
                    f"The drafter was made for another target: {name} {wanted}, here {found}.",
                    advice="Train one for this target, or clear the setting draftModel.",
                )


def _rotary_of(target: LanguageModel) -> tuple[Tensor, Tensor]:
    if target.decoder.rotary is None:
        raise UserError(
            "A distilled drafter cannot read the keys of a target of this architecture.",
            advice="Take a smaller model of its family as draftModel.",
        )
    return target.decoder.rotary


def _joined(w: Mapping[str, Tensor]) -> Tensor:
    """Return the weight [hidden_size, 2 * hidden_size] that joins a token's embedding and a state."""
    return torch.cat([w["embedding"] * w["embedding_norm"], w["state"] * w["state_norm"]], 1)


def _products_of(parts: Sequence[Linear]) -> Products | None:
    """Return the arguments of the compiled program; None unless all weights are int8."""
    products = [part.product for part in parts]
    return Products(*filter(None, products)) if all(products) else None


class DistilledNetwork:
    """The weights of one drafter, with the embedding and head of its target."""

    def __init__(
        self,
        weights: Mapping[str, Tensor],
        tokens: Tensor,
        shape: DrafterShape,
        target: LanguageModel,
        preview: Preview | None = None,
    ) -> None:
        """`weights` as in `DrafterShape.sizes`; `tokens` [num_tokens] are the ids that the drafter can
        propose.

        Raises UserError for a target whose sizes or cached keys do not fit.
        """
        shape.check_target(target)
        self._cos, self._sin = _rotary_of(target)
        self._embedding = target.decoder.embedding
        place = target.decoder.embedding
        w = {name: weight.to(place.device, torch.float32) for name, weight in weights.items()}
        kind: WeightKind = "int8" if can_quantise(place.device) else "float"

        def product(weight: Tensor, bias: Tensor | None = None) -> Linear:
            return Linear(weight.to(place.dtype), None if bias is None else bias.to(place.dtype), kind)

        self.num_heads, self.memory_layer = shape.num_heads, shape.memory_layer
        self._join = product(_joined(w))
        self._query = product(w["query"] * w["attention_norm"], w["query_bias"])
        self._attended = product(w["attended"])
        self._gate_up = product(w["gate_up"] * w["mlp_norm"])
        self._down = product(w["down"])
        self._output_norm = w["output_norm"].to(place.dtype)
        self._head = head_for(
            target.decoder.head_rows(tokens.to(place.device)).to(place.dtype), preview, kind
        )
        parts = (self._join, self._query, self._attended, self._gate_up, self._down, self._head)
        self.num_bytes = sum(part.num_bytes for part in parts)
        can_compile = target.cache_shape.keys_by_channel and serves_heads(shape.head_size)
        self._products = _products_of(parts[:-1]) if can_compile else None
        self._programs: dict[tuple[int, int], DraftProgram] = {}

    def step(self, tokens: Tensor, states: Tensor, cache: KVCache, position: int) -> tuple[Tensor, Tensor]:
        """Return states [num_beams, hidden_size] and logits [num_beams, num_tokens] after `tokens`
        [num_beams].

        `states` are those before the tokens, which all have the same `position`.
        """
        if self._products is not None:
            key = len(tokens), cache.capacity
            if key not in self._programs:
                memory = Memory(self.memory_layer, self._cos, self._sin)
                self._programs[key] = DraftProgram(self._products, memory, len(tokens), cache, EPS)
            embedded, norm = self._embedding[tokens], array_of(self._output_norm)
            states = self._programs[key].run(embedded, states, cache, position, norm)
            return states, self._head(states)
        inputs = torch.cat([_normed(self._embedding[tokens]), _normed(states)], 1)
        x = self._join(inputs)
        x = x + self._attended(self._attend(self._query(_normed(x)), cache, position))
        x = x + self._down.of_gated(self._gate_up(_normed(x)))
        states = _normed(x) * self._output_norm
        return states, self._head(states)

    def _attend(self, q: Tensor, cache: KVCache, position: int) -> Tensor:
        """Return the attention of queries [num_beams, num_heads * head_size] to the target's cached keys."""
        num_beams, num_cached, head_size = q.shape[0], cache.num_cached, cache.shape.head_size
        q = q.to(cache.keys.dtype).view(num_beams, -1, head_size)
        q = rotate(q, self._cos[position], self._sin[position])
        num_keys = num_keys_for(num_cached, cache.capacity, q.device)
        keys, values = (x[self.memory_layer, :, :num_keys] for x in (cache.keys, cache.values))
        num_seen = torch.full((num_beams,), num_cached, device=q.device)
        return attend(q, (keys, values), num_seen, head_size**-0.5).flatten(1)


def _normed(x: Tensor) -> Tensor:
    """Return x [num_rows, hidden_size] divided by its root mean square."""
    if x.device.type == "cpu":
        normed = torch.empty_like(x)
        rows.norm(array_of(x), EPS, array_of(normed))
        return normed
    return functional.rms_norm(x, x.shape[-1:], None, EPS)


@dataclass(frozen=True, slots=True)
class Preview:
    """Low-rank factors: `head @ widen @ (narrow @ state)` approximates `head @ state` for the drafter's
    states.

    `narrow` is [rank, hidden_size], `widen` [hidden_size, rank].
    """

    narrow: Tensor
    widen: Tensor

    def check(self, hidden_size: int) -> None:
        """Raises ValueError unless the two factors fit each other and `hidden_size`."""
        rank = len(self.narrow)
        if tuple(self.narrow.shape) != (rank, hidden_size) or tuple(self.widen.shape) != (hidden_size, rank):
            raise ValueError("the preview has another size than the weights")


class PreviewedHead:
    """The product with the head on the CPU; the logits of unlikely tokens stay approximate.

    Multiplying by the whole head takes much of a drafter's step, mostly for unlikely tokens. On the CPU, a
    product of small rank first approximates all logits, and only the rows of the best tokens are multiplied
    accurately (SVD-softmax, Shim et al. 2017). The low-rank factors are fitted to states that the drafter
    really produces: fitted to the head's weights alone, they would need several times the rank
    (docs/experiments/drafting.md).
    """

    def __init__(self, rows: Tensor, preview: Preview, kind: WeightKind) -> None:
        """`rows` [num_tokens, hidden_size] are the head's weights; `preview` was fitted to the drafter."""
        self._narrow = preview.narrow.float().T.contiguous()
        self._rough = Linear(rows.float() @ preview.widen.float(), kind=kind)
        self._levels: Array = np.empty(rows.shape, np.int8)
        self._scales: Floats = np.empty(len(rows), np.float32)
        round_whole_rows(array_of(rows), self._levels, self._scales)
        self.num_bytes = self._narrow.nbytes + self._rough.num_bytes + self._levels.nbytes

    def __call__(self, states: Tensor) -> Tensor:
        """Return the logits [num_rows, num_tokens], float32, of states [num_rows, hidden_size]."""
        logits = self._rough(states.float() @ self._narrow)
        score_promising(array_of(logits), array_of(states), self._levels, self._scales, NUM_EXACT)
        return logits


def head_for(rows: Tensor, preview: Preview | None, kind: WeightKind) -> Linear | PreviewedHead:
    """Return the faster head for the device of `rows`; without a preview, the full product."""
    if preview is None or rows.device.type != "cpu":
        return Linear(rows, kind=kind)
    return PreviewedHead(rows, preview, kind)
