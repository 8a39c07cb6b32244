"""Completions that are written again by plain decoding, in a KV cache that nothing else fills."""

from __future__ import annotations

from completion_engine.decoding.loop import Decoding, DecodingSetup
from completion_engine.decoding.reuse import Slot
from completion_engine.drafting.policy import AcceptanceTable
from completion_engine.engine import CompletionEngine
from completion_engine.prompting.prompt import Written
from completion_engine.request import Completion, CompletionRequest, CompletionStats
from completion_engine.target_model.kv_cache import KVCache


def complete_checked(
    engine: CompletionEngine, request: CompletionRequest, checked: list[int] | None = None
) -> Completion:
    """Complete the request, and compare its tokens with those that follow the same prompt without drafts.

    `checked` gets their number, unless there are none: the answer is the rest of another, or suppressed.
    """
    completion = engine.complete(request)
    answer = engine.background._answer
    if answer is None or answer.finish.is_suppressed:
        return completion
    prepared, tokenizer, target = answer.prepared, engine.tokenizer, engine.target
    past = prepared.slot.past
    written = past.path[past.num_forced :]
    setup = DecodingSetup(
        target, tokenizer.num_tokens, (), AcceptanceTable(), drafts_trees=False, bias=past.bias, scores=False
    )
    plain = Decoding(
        setup,
        Slot(KVCache(target.cache_shape)),
        prepared.prompt,
        Written(tokenizer, prepared.prompt.healed),
        CompletionStats(),
    )
    while len(plain.tokens) < len(written):
        plain.step()
    assert plain.tokens[: len(written)] == written
    if checked is not None and written:
        checked.append(len(written))
    return completion
