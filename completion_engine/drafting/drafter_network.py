"""The network of a distilled drafter, one decoding step at a time.

A state is the hidden vector that the target's head turns into the logits of the next token. One step takes
the state before a token and that token, and returns the state after it. The network has no KV cache of its
own: it attends to the keys and values that one layer of the target has cached (as in GLIDE, Du et al. 2024).
It uses the target's embedding and head. `scripts.distillation.trained_network` is the same function
for training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import linear

from completion_engine.cpu.attention import attend, num_keys_for
from completion_engine.cpu.kernels.attention import serves_heads
from completion_engine.cpu.kernels.language import Array, Floats, array_of
from completion_engine.cpu.kernels.rows import round_whole_rows
from completion_engine.cpu.kernels.top_k import score_promising
from completion_engine.cpu.linear import QuantisedLinear, can_quantise, packed
from completion_engine.drafting.step_program import DraftProgram, Memory, Products
from completion_engine.errors import UserError
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.target_model.llama_family import rotate

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


def _folded(w: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of a step by name, each with the scale of the norm before it folded in."""
    return {
        "join": torch.cat([w["embedding"] * w["embedding_norm"], w["state"] * w["state_norm"]], 1),
        "query": w["query"] * w["attention_norm"],
        "query_bias": w["query_bias"],
        "attended": w["attended"],
        "gate_up": w["gate_up"] * w["mlp_norm"],
        "down": w["down"],
        "output_norm": w["output_norm"],
    }


class _Compiled:
    """The weights of a step as the compiled program multiplies with them: rounded, for the CPU."""

    def __init__(self, w: Mapping[str, Tensor], preview: Preview | None) -> None:
        biases = {"query": w["query_bias"]}
        parts = {name: QuantisedLinear(packed(w[name]), biases.get(name)) for name in Products._fields}
        self.products = Products(*(part.product for part in parts.values()))
        self.head = PreviewedHead(w["head"], preview) if preview else QuantisedLinear(packed(w["head"]))
        self.num_bytes = self.head.num_bytes + sum(part.num_bytes for part in parts.values())


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
        if target.decoder.rotary is None:
            raise UserError(
                "A distilled drafter cannot read the keys of a target of this architecture.",
                advice="Remove the setting draftModel.",
            )
        self._cos, self._sin = target.decoder.rotary
        self._embedding = place = target.decoder.embedding
        w = _folded({name: weight.to(place.device, torch.float32) for name, weight in weights.items()})
        w["head"] = target.decoder.head_rows(tokens.to(place.device))
        self._weights = {name: weight.to(place.dtype) for name, weight in w.items()}
        self.num_heads, self.memory_layer = shape.num_heads, shape.memory_layer
        can_compile = target.cache_shape.keys_by_channel and serves_heads(shape.head_size)
        self._compiled = (
            _Compiled(self._weights, preview) if can_compile and can_quantise(place.device) else None
        )
        if self._compiled is not None:
            self._weights = {"output_norm": self._weights["output_norm"]}
        held = sum(weight.nbytes for weight in self._weights.values())
        self.num_bytes = held + (self._compiled.num_bytes if self._compiled else 0)
        self._programs: dict[tuple[int, int], DraftProgram] = {}

    def step(self, tokens: Tensor, states: Tensor, cache: KVCache, position: int) -> tuple[Tensor, Tensor]:
        """Return states [num_beams, hidden_size] and logits [num_beams, num_tokens] after `tokens`
        [num_beams].

        `states` are those before the tokens, which all have the same `position`.
        """
        w, embedded = self._weights, self._embedding[tokens]
        if self._compiled is not None:
            key = len(tokens), cache.capacity
            if key not in self._programs:
                memory = Memory(self.memory_layer, self._cos, self._sin)
                self._programs[key] = DraftProgram(self._compiled.products, memory, len(tokens), cache, EPS)
            states = self._programs[key].run(embedded, states, cache, position, array_of(w["output_norm"]))
            return states, self._compiled.head(states)
        x = linear(torch.cat([_normed(embedded), _normed(states)], 1), w["join"])
        query = linear(_normed(x), w["query"], w["query_bias"])
        x = x + linear(self._attend(query, cache, position), w["attended"])
        gate, up = linear(_normed(x), w["gate_up"]).chunk(2, dim=-1)
        x = x + linear(functional.silu(gate) * up, w["down"])
        states = _normed(x) * w["output_norm"]
        return states, linear(states, w["head"])

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
    """The product with the head; the logits of unlikely tokens stay approximate.

    Multiplying by the whole head takes much of a drafter's step, mostly for unlikely tokens. A
    product of small rank first approximates all logits, and only the rows of the best tokens are multiplied
    accurately (SVD-softmax, Shim et al. 2017). The low-rank factors are fitted to states that the drafter
    really produces: fitted to the head's weights alone, they would need several times the rank
    (docs/experiments/drafting.md).
    """

    def __init__(self, rows: Tensor, preview: Preview) -> None:
        """`rows` [num_tokens, hidden_size] are the head's weights; `preview` was fitted to the drafter."""
        self._narrow = preview.narrow.float().T.contiguous()
        self._rough = QuantisedLinear(packed(rows.float() @ preview.widen.float()))
        self._levels: Array = np.empty(rows.shape, np.int8)
        self._scales: Floats = np.empty(len(rows), np.float32)
        round_whole_rows(array_of(rows), self._levels, self._scales)
        self.num_bytes = self._narrow.nbytes + self._rough.num_bytes + self._levels.nbytes

    def __call__(self, states: Tensor) -> Tensor:
        """Return the logits [num_rows, num_tokens], float32, of states [num_rows, hidden_size]."""
        logits = self._rough(states.float() @ self._narrow)
        score_promising(array_of(logits), array_of(states), self._levels, self._scales, NUM_EXACT)
        return logits
