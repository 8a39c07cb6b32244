"""Drafts by a smaller model with the target's tokenizer: its likeliest chain, and other tokens as leaves."""

from __future__ import annotations

import torch
from torch import Tensor

from completion_engine.drafting.drafts import Allowed, Draft, Drafter, DraftToken
from completion_engine.errors import UserError
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import PREFILL_ROWS, LanguageModel
from completion_engine.target_model.passes import ROWS

_BREADTH = 3  # likeliest tokens at each depth; the best continues the chain, the others are leaves
_LEAST_PROBABILITY = 0.05  # leaves need at least this


class ModelDrafter(Drafter):
    """Drafts with a smaller model, which has one KV cache of its own, reused by longest common prefix."""

    def __init__(self, model: LanguageModel, num_tokens: int) -> None:
        """`num_tokens` is the size of the shared vocabulary, without the padding of the model's logits."""
        super().__init__()
        self._model = model
        self._num_tokens = num_tokens
        self._cache = KVCache(model.cache_shape)  # the next prompt may share its beginning
        self.step_ms = model.ms_of(1)
        self.num_bytes = model.num_weight_bytes + model.cache_shape.num_bytes

    def drafts(self, max_tokens: int, allowed: Allowed, min_probability: float) -> list[Draft]:
        """See `Drafter.drafts`."""
        max_depth = min(max_tokens, self._cache.capacity - len(self._path) - 2 * ROWS)
        tree: list[DraftToken] = []
        path, parent, path_probability = list(self._path), -1, 1.0
        for depth in range(max_depth):
            probabilities, tokens = self._likeliest(self._logits_after(path), allowed if depth == 0 else None)
            if not tokens:
                break
            first = len(tree)
            tree.extend(
                DraftToken(token, "neural", "model", depth, probability, parent)
                for probability, token in zip(probabilities, tokens, strict=True)
                if probability >= min(_LEAST_PROBABILITY, probabilities[0])
            )
            path_probability *= probabilities[0]
            if path_probability < min_probability:
                break
            path.append(tokens[0])
            parent = first
        return [tuple(tree)] if tree else []

    def _logits_after(self, path: list[int]) -> Tensor:
        """Return the model's logits [vocab_size] after `path`, and cache all of `path`."""
        cache = self._cache
        cache.rewind(min(cache.num_shared(path), len(path) - 1))
        while True:
            chunk = path[cache.num_cached : cache.num_cached + PREFILL_ROWS]
            logits = self._model.forward(chunk, cache, 1)
            cache.keep(chunk)
            if cache.num_cached == len(path):
                return logits[0]

    def _likeliest(self, logits: Tensor, allowed: Allowed | None) -> tuple[list[float], list[int]]:
        """Return the probabilities and ids of the best few tokens that are `allowed`, best first."""
        found = torch.topk(torch.softmax(logits[: self._num_tokens].float(), -1), 8 * _BREADTH)
        pairs = zip(found.values.tolist(), found.indices.tolist(), strict=True)
        kept = [pair for pair in pairs if allowed is None or allowed(pair[1])][:_BREADTH]
        return [value for value, _ in kept], [token for _, token in kept]


def check_same_vocabulary(target: Tokenizer, drafter: Tokenizer, name: str) -> None:
    """Raises UserError unless both models have the same tokens with the same ids."""
    if target.num_tokens != drafter.num_tokens or target.fingerprint != drafter.fingerprint:
        raise UserError(
            f"The draft model {name!r} has another vocabulary than the target.",
            advice="Choose a smaller model of the same family, or remove the setting draftModel.",
        )
