"""Several candidates: the first as ever, the others what the target writes after its second choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from completion_engine.cutting.surroundings import CursorSurroundings
from completion_engine.cutting.units import MOST_LENIENT
from completion_engine.decoding.alternatives import decode_after, rank_runners_up
from completion_engine.decoding.completion import run
from completion_engine.decoding.ending import Finish, Limits, NoRules
from completion_engine.decoding.loop import Decoding, DecodingSetup
from completion_engine.decoding.preparation import PreparedRequest
from completion_engine.decoding.reuse import Slot
from completion_engine.drafting.ngram import NgramDrafter
from completion_engine.drafting.policy import AcceptanceTable
from completion_engine.engine import CompletionEngine
from completion_engine.probability import SHIPPED
from completion_engine.prompting.prompt import Prompt
from completion_engine.prompting.tokenizer import Tokenizer
from completion_engine.request import (
    Cancellation,
    CancelledError,
    Completion,
    CompletionRequest,
    CompletionStats,
)
from completion_engine.target_model.kv_cache import KVCache
from completion_engine.target_model.language_model import LanguageModel
from completion_engine.text_window import CursorContext

Make = Callable[..., CompletionEngine]

HEAD = "import sys\n\n\ndef parse(arguments):\n    result = []\n    for argument in arguments:\n"
PREFIXES = (HEAD, HEAD * 2 + "        res", "x = f(", HEAD + "        result.append(argument)\n    retu")


def request(prefix: str, num_candidates: int = 4, **options: object) -> CompletionRequest:
    options = {"deadline_ms": 0.0, "patience_ms": 60_000.0, "max_tokens": 16, **options}
    suffix = "\n\ndef main():\n    pass\n"
    return CompletionRequest(prefix, suffix, "python", "a.py", num_candidates=num_candidates, **options)  # type: ignore[arg-type]  # options of several types


def prepared(target: LanguageModel, tokenizer: Tokenizer, healed: bytes) -> PreparedRequest:
    prompt = Prompt(tuple(tokenizer.encode(HEAD)), healed)
    setup = DecodingSetup(target, tokenizer.num_tokens, (NgramDrafter(),), AcceptanceTable())
    slot = Slot(KVCache(target.cache_shape))
    return PreparedRequest(request(HEAD), prompt, slot, setup, tokenizer)


def all_of(completion: Completion) -> list[Completion]:
    return [completion, *completion.alternatives]


def texts_of(completion: Completion) -> list[str]:
    return [candidate.text for candidate in all_of(completion)]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_first_is_what_a_request_for_one_gets_and_the_others_differ(
    make_engine: Make, prefix: str
) -> None:
    one = make_engine().complete(request(prefix, 1))
    several = make_engine().complete(request(prefix, 4))
    assert (several.text, several.num_replaced) == (one.text, one.num_replaced)
    assert several.stats.num_forwards == one.stats.num_forwards
    assert one.alternatives == ()
    assert len(several.alternatives) == 3
    assert len(set(texts_of(several))) == 4
    assert all(candidate.text for candidate in several.alternatives)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_drafts_change_no_candidate(make_engine: Make, prefix: str) -> None:
    work = request(prefix, 5)
    drafting, plain = make_engine(), make_engine(drafters=())
    for _ in range(2):  # the second time much is known and drafted
        assert texts_of(drafting.complete(work)) == texts_of(plain.complete(work))


@pytest.mark.parametrize("healed", [b"", b"re"])
def test_behind_a_branch_stands_what_the_target_writes_there_by_itself(
    target: LanguageModel, tokenizer: Tokenizer, write: Callable[..., tuple[Decoding, Finish]], healed: bytes
) -> None:
    place = prepared(target, tokenizer, healed)
    first = place.decode(CompletionStats())
    num_chars = run(first, NoRules(), Limits(12), Cancellation()).num_chars
    branches = rank_runners_up(first, num_chars)
    assert len(branches) > 4
    assert sorted(branches, key=lambda branch: -branch.path_probability) == branches
    for branch in branches:
        path = [*first.tokens[: branch.num_shared], branch.token]
        assert branch.token != first.tokens[branch.num_shared]
        assert tokenizer.spell(path).startswith(healed[: len(tokenizer.spell(path))])
        decoding = decode_after(place, first, branch, CompletionStats())
        run(decoding, NoRules(), Limits(12), Cancellation())
        healing = healed[len(tokenizer.spell(path)) :]
        alone, _ = write([*place.prompt.tokens, *path], healed=healing, num_tokens=12 - len(path))
        assert decoding.tokens[:12] == [*path, *alone.tokens][:12]


def test_a_branch_is_as_likely_as_the_target_says(target: LanguageModel, tokenizer: Tokenizer) -> None:
    place = prepared(target, tokenizer, b"")
    first = place.decode(CompletionStats())
    num_chars = run(first, NoRules(), Limits(12), Cancellation()).num_chars
    for branch in rank_runners_up(first, num_chars):
        path = [*first.tokens[: branch.num_shared], branch.token]
        logits = target.forward([*place.prompt.tokens, *path[:-1]], KVCache(target.cache_shape), len(path))
        chances = torch.softmax(logits[:, : tokenizer.num_tokens].float(), -1)
        wanted = math.prod(float(row[token]) for row, token in zip(chances, path, strict=True))
        assert branch.path_probability == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("healed", [b"", b"re"])
def test_the_confidence_of_an_alternative_counts_each_token_once(
    target: LanguageModel, tokenizer: Tokenizer, healed: bytes
) -> None:
    """An alternative ends for its confidence exactly where the product of its tokens' confidences falls."""
    place = prepared(target, tokenizer, healed)
    first = place.decode(CompletionStats())
    num_chars = run(first, NoRules(), Limits(12), Cancellation()).num_chars
    late = [branch for branch in rank_runners_up(first, num_chars) if branch.num_shared > 1]
    assert late
    for branch in late:
        num_tokens = branch.num_shared + 1
        decoding = decode_after(place, first, branch, CompletionStats())
        values = [probability.value for probability in decoding.probabilities[:num_tokens]]
        assert math.prod(values) == pytest.approx(branch.path_probability, rel=0.05)
        confidence = math.prod(map(SHIPPED.of, values))
        for factor, is_cut in ((0.95, False), (1.05, True)):
            decoding = decode_after(place, first, branch, CompletionStats())
            least = (factor * confidence) ** (1 / MOST_LENIENT)
            limits = Limits(num_tokens + 1, min_confidence=least)
            run(decoding, NoRules(), limits, Cancellation())
            assert (decoding.num_checked == num_tokens) is is_cut


def test_what_is_taken_back_before_the_cursor_is_spelt_by_all(make_engine: Make) -> None:
    completion = make_engine().complete(request(HEAD + "        res", 5))
    for candidate in all_of(completion):
        assert "".join(segment.text for segment in candidate.segments) == candidate.text


def test_alternatives_leave_the_way_of_the_first_as_it_was(make_engine: Make) -> None:
    several, one = make_engine(), make_engine()
    shown = several.complete(request(HEAD, 4)).text
    one.complete(request(HEAD, 1))
    for num_typed in range(4):
        work = request(HEAD + shown[:num_typed], 1)
        after, wanted = several.complete(work), one.complete(work)
        assert after.text == wanted.text
        assert after.stats.num_forwards <= wanted.stats.num_forwards


def test_what_the_deadline_cut_off_is_the_first_alternative(make_engine: Make) -> None:
    whole = make_engine().complete(request(HEAD, 1)).text
    warm = make_engine()
    warm.prepare(request(HEAD, 3))
    hurried = warm.complete(request(HEAD, 3, deadline_ms=0.001))
    assert hurried.stats.finish_reason == "deadline"
    assert whole.startswith(hurried.text)
    assert whole in texts_of(hurried)[:2]


def test_alternatives_end_with_patience(make_engine: Make) -> None:
    completion = make_engine().complete(request(HEAD, 8, deadline_ms=0.001, patience_ms=0.002))
    assert completion.alternatives == ()


def test_the_cancel_flag_counts_for_all(make_engine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make_engine()
    work = request(HEAD, 4)

    def ranked(*arguments: object) -> list[object]:
        found = rank_runners_up(*arguments)  # type: ignore[arg-type]  # passed through
        work.cancellation.cancel()
        return list(found)

    monkeypatch.setattr("completion_engine.decoding.alternatives.rank_runners_up", ranked)
    with pytest.raises(CancelledError):
        engine.complete(work)
    monkeypatch.undo()
    fresh = replace(work, cancellation=Cancellation())
    assert texts_of(engine.complete(fresh)) == texts_of(make_engine().complete(fresh))


def test_the_surroundings_of_a_place_are_read_once_for_all_its_candidates(
    make_engine: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine()
    places: list[CursorContext] = []
    read = CursorSurroundings.__init__

    def counting(site: CursorSurroundings, cursor: CursorContext) -> None:
        places.append(cursor)
        read(site, cursor)

    monkeypatch.setattr(CursorSurroundings, "__init__", counting)
    assert engine.complete(request(HEAD)).alternatives
    assert len(places) == 1
